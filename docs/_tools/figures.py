"""Write the figures of ``docs/limits.md`` from the pages of results: ``python docs/_tools/figures.py``.

A test compares the page with the results, so that no figure is typed by hand. Sentences of other pages that quote
results are checked, not written: `sentences` says what they must be.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "limits.md"
RESULTS = ROOT / "benchmarks" / "results"
NUMBER = r"[-+]?[\d.]+"


def look(page: str, place: str, row: str, column: str, pattern: str = NUMBER) -> str:
    """Return a cell of a page of results, or "least to most" if a row stands for several.

    Parameters
    ----------
    page, place : str
        Name of the page, and "heading > words": the beginning of a section, and words in or just above the table.
    row, column : str
        Regular expression for the first cell of a row, or the first two or three, and name of the column.
    pattern : str
        Which part of the cell is meant; the first number by default.
    """
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    heading, _, words = place.partition(" > ")
    section = next(part for part in re.split(r"^## ", text, flags=re.MULTILINE) if part.startswith(heading))
    for table in re.findall(r".*\n\n?(?:^\|.*\n)+", section + "\n", flags=re.MULTILINE):
        header, _, *rows = (line.strip("|").split("|") for line in table.splitlines() if line.startswith("|"))
        rows = [[cell.strip() for cell in cells] for cells in rows]
        rows = [cells for cells in rows if any(re.fullmatch(row, " ".join(cells[:key])) for key in (1, 2, 3))]
        names = [name.strip() for name in header]
        if words in table and column in names and rows:
            at = len(names) - 1 - names[::-1].index(column)  # of two columns of one name, the last
            found = [re.search(pattern, cells[at]) for cells in rows]
            values = [match[match.lastindex or 0] for match in found if match]
            least, most = min(values, key=float), max(values, key=float)
            return least if least == most else f"{least} to {most}"
    raise ValueError(f"results/{page}.md must have a row {row!r} with a column {column!r} in {place!r}")


def printed(pattern: str) -> str:
    """Return the group of a pattern in what the examples of the page print."""
    return re.search(pattern, PAGE.read_text(encoding="utf-8"))[1]


def figures() -> dict[str, str]:
    """Return the figure of every row of the page that has one, by the beginning of the row."""
    fourth = "Tables of the fourth look"

    def gain(labels: str, method: str = "selfpaced") -> str:
        return look("classification", f"{fourth} > Accuracy over plain", method, labels)

    def precision(labels: str) -> str:
        return look("classification", f"{fourth} > Rows that are listed", "likely errors that are wrong", labels)

    def balanced(method: str) -> str:
        return look("classification", f"{fourth} > Balanced accuracy", method, "20 %")

    any_error = look("classification", f"{fourth} > Rows that are listed", "fits with any", "40 %")
    logarithm = look("classification", "Nothing", ".*a column's logarithm.*", "interval contains 0")
    clean_gain = look("wrappers", "Wrong labels", "LightGBM selfpaced", "clean")
    claims = look("wrappers", "Claims", "(line|clouds|product|skewed|moons|three|nothing) 20 %", "likely errors")
    absolute = look("wrappers", "Gross errors in values: boosting", "selfpaced", "clean")
    small = look("wrappers", "Gross errors in values: LightGBM", "selfpaced", "cost")
    large = look("wrappers", "Cost at", "LightGBM .*", "selfpaced")
    without, features = (look("audit", "Features", f"disc .* 0.00 {way}", "likely of 1,000") for way in ("no", "yes"))
    coarse = look("tables", "", r"(nsf|wrecks|museums|officers) \d", "P")
    five, cross = (look("networks", "Rare > size=5", row, "0 %") for row in (r"selfpaced \(ids\)", "cross entropy"))
    interaction = look("regression", "misfits", "interaction", "draws")
    moved = [look("regression", "shifted", f"{kind} errors 40% 5", "misses") for kind in ("lognormal", "normal")]
    zeros = look("regression", "tables, confirmed", "ours", "+5 sd 20 %", r"affairs ([\d.]+)")
    plateaus = look("regression", "clean", "confirmed ours", "worst table", r"wind ([\d.]+)")
    csv = look("scale", "", ".*on a CSV.*", "here")
    cost = look("cost", "", r"(.*, )?\d?,?\d{3} x .*", "in LR fits")
    spark = [look("scale", "", "Spark.*", "here", pattern) for pattern in (NUMBER, f"packing ({NUMBER})")]
    push, careful = (look("factorization", "Push", f"reweight_rows={again} 10%", "shift") for again in (0, "auto"))
    few, many = (look("factorization", "Push", f"reweight_rows=auto {share}%", "shift") for share in (2, 20))
    image = look("factorization", "Images", "160", "time ratio")
    shuffled = "shuffled: first / others"
    two = look("clustering", "public", "Cornell|Movies", shuffled)
    more = look("clustering", "public", "3Sources|BBC4views|MSRC-v1|Reuters-1200", shuffled)
    interval = printed(r"between ([\d.]+ and [\d.]+)")
    likely = printed(r"likely errors: (\d+)")
    alike = printed(r"false claims: (\d+ of \d+)")
    cross_validated = {labels: gain(labels, "LR CV") for labels in ("border 20 %", "40 %")}
    weights = "selfpaced, balance .5"
    return {
        "No label is wrong": f"accuracy {gain('clean')} points for logistic regression (classification), "
        f"{clean_gain} for LightGBM (wrappers)",
        "Classes overlap": f"interval {interval.replace(' and ', ' to ')}, {likely} likely errors (example below)",
        "Two of several": f"{alike} clean rows are called likely errors (example below)",
        "Labels are wrong near": f"{gain('border 20 %')} points, `LogisticRegressionCV` "
        f"{cross_validated['border 20 %']} (classification)",
        "Only accuracy": f"40 % wrong: {gain('40 %')} points, `LogisticRegressionCV` "
        f"{cross_validated['40 %']} (classification)",
        "All wrong labels": f"precision of the likely errors: {precision('region')} (classification)",
        "The noise is barely": f"precision of the likely errors: {precision('5 %')} at 5 %, {precision('10 %')} "
        f"at 10 %, {precision('20 %')} at 20 % (classification, tables listed before)",
        "A few hundred rows": f"fits with any likely error: {any_error} % (classification)",
        "A few coarse columns": "tables nsf, wrecks, museums and officers, 5 % planted: no likely errors; precision "
        f"of the rows worth a look: {coarse} (tables)",
        "A rare class": f"balanced accuracy {balanced('selfpaced')} and {balanced(weights)}, gain in accuracy "
        f"{gain('20 %')} and {gain('20 %', weights)}, at 20 % (classification)",
        "Labels depend": f"clean draws whose interval contains 0: {logarithm} % (classification)",
        "One label in ten": "made tables of 600 rows that overlap by 15 to 50 %, 20 % wrong labels: "
        f"{claims} likely errors (wrappers)",
        "Noisy probabilities": f"disc and half-plane, clean: {without} likely errors among 1,000 rows without "
        f"features, {features} with them (audit)",
        "A line for": f"ends of a parabola: weights {printed('two ends: (.+)')} (example below)",
        "Two features": f"{interaction} of 20 draws (regression)",
        "40 % of the values": f"share of draws without a claim: {moved[0]}, normal errors {moved[1]} (regression)",
        "More than half": f"affairs, 20 % raised: RMSE {zeros} times that of the clean fit (regression)",
        "A clean curve": f"wind: RMSE {plateaus} times that of least squares (regression)",
        "Skewed targets": f"clean tables: RMSE {absolute} times that of the plain model (wrappers)",
        "Raters who push": f"10 % attackers: {careful} stars, {push} with `reweight_rows=0`; "
        f"2 %: {few}, 20 %: {many} (factorization)",
        "An image": f"{image} times its time (factorization)",
        "Two views": f"weight of the shuffled one: {two}, of three or more {more} (clustering)",
        "`n_clusters=": f"{counted()} public sets (clustering)",
        "Wide, sparse": f"{behind()} public sets (clustering)",
        "A network and": f"{five} %, cross entropy {cross} % (networks)",
        "Many small": f"{cost} plain fits below 10,000 rows (cost)",
        "Small tables and": f"values: {small} plain fits with 400 rows; labels: {large} with 20,000 (wrappers)",
        "A CSV": f"{csv} times `pandas.read_csv` (scale)",
        "Spark": f"{spark[0]} of the time of Spark ML's fit, {spark[1]} with packing (scale)",
    }


def sentences() -> dict[str, list[str]]:
    """Return the parts of sentences that must be in a page, with the figures of the results."""
    xgboost, spark = (weighted_gain(name) for name in ("xgboost.dask", "Spark ML's LogisticRegression"))
    return {
        "guide/any-estimator.md": wrapper_sentences(),
        "guide/factorization.md": attack_sentences(),
        "guide/large.md": [f"XGBoost on Dask gains {xgboost} points"],
        "guide/pytorch.md": network_sentences(),
        "guide/spark.md": [f"logistic regression gains {spark} points"],
        "tutorial.md": park_sentences(),
    }


def missing() -> list[tuple[str, str]]:
    """Return the sentences that their pages do not have, as pairs (page, part of a sentence)."""
    texts = {name: " ".join((PAGE.parent / name).read_text(encoding="utf-8").split()) for name in sentences()}
    return [(name, phrase) for name, phrases in sentences().items() for phrase in phrases if phrase not in texts[name]]


def span(values: list[float], digits: int) -> str:
    """Return "least to most" of some figures, or the figure that they share."""
    least, most = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"


def wrapper_sentences() -> list[str]:
    bases = ("LightGBM", "boosting", "forest")
    loss = "Wrong labels > Log-loss"
    behind = [
        float(look("wrappers", loss, f"{base} selfpaced", "clean"))
        - float(look("wrappers", loss, f"{base} tuned", "clean"))
        for base in bases
    ]
    rare = [
        float(look("wrappers", "Rare groups", f"{base} 20 %", "rare: plain"))
        - float(look("wrappers", "Rare groups", f"{base} 20 %", "rare: selfpaced"))
        for base in bases
    ]
    cost = look("wrappers", "Cost at", ".*(diamonds|nassCDS)", "selfpaced")
    return [
        f"the tuned model has the lower log-loss, by {span(behind, 2)}",
        f"it is {span(rare, 1)} points lower",
        f"cost {cost} plain fits",
    ]


def attack_sentences() -> list[str]:
    rows = ("reweight_rows=0 10%", "reweight_rows=auto 10%", "reweight_rows=auto 2%")
    once, default, few = (float(look("factorization", "Push", row, "shift")) for row in rows)
    return [f"by {once:.2f} stars in one fit, and by {default:.2f} by default", f"shift them by {few:.2f}"]


def network_sentences() -> list[str]:
    def figure(place: str, row: str, column: str) -> float:
        return float(look("networks", place, row, column))

    def gain(name: str, column: str) -> float:
        place = f"Wrong labels: tables > {name}"
        return figure(place, "selfpaced", column) - figure(place, "cross entropy", column)

    def beside(method: str) -> list[float]:
        """Points over early stopping, on both sets of texts at both rates."""
        return [
            figure(f"Bags > {name}", method, rate) - figure(f"Bags > {name}", "early stopping", rate)
            for name in ("vocabulary=500", "vocabulary=1000")
            for rate in ("20 %", "40 %")
        ]

    names = ("letter", "satimage", "penbased", "segment")
    letter, satimage, penbased, segment = (f"{gain(name, '20 %'):.1f}" for name in names)
    ids = r"selfpaced \(ids\)"
    lost = min(figure(f"Rare > size={size}", "selfpaced", "worst") for size in (5, 10))
    without, held = beside("selfpaced"), beside(r"selfpaced \(held-out, best epoch\)")
    text = (RESULTS / "networks.md").read_text(encoding="utf-8")
    step = max(float(share) for share in re.findall(r"takes ([\d.]+) \(look\) and", text))
    return [
        f"is {letter} points on letter, {satimage} on satimage, {penbased} on penbased and {segment} on segment",
        f"With 30 % pair noise, it is {span([gain(name, '30 % pair') for name in names], 0)} points",
        f"up to {-lost:.0f} points are lost",
        f"{figure('Rare > size=5', ids, 'paced'):.0f} of 10 seeds loses {-figure('Rare > size=5', ids, 'worst'):.0f}",
        f"which costs {span([-points for points in without], 0)} points against early stopping",
        f"between {-min(held):.1f} points below and {max(held):.1f} above",
        f"takes {100 * (step - 1):.0f} % longer",
    ]


def weighted_gain(estimator: str) -> str:
    """Return by how many points a cross-fit is ahead of the plain model on two borders."""
    rows = [f"clean accuracy, CrossFit of {estimator}, {border} boundary" for border in ("straight", "curved")]
    gains = [
        100 * (float(look("scale", "", row, "value")) - float(look("scale", "", row, "", f"plain ({NUMBER})")))
        for row in rows
    ]
    return span(gains, 1)


def park_sentences() -> list[str]:
    planted, likely, both, listed = (
        look("tables", "", "saferparks 0", column, pattern)
        for column, pattern in (
            ("planted", NUMBER),
            ("likely: found / flags", NUMBER),
            ("both levels: found / flags", NUMBER),
            ("both levels: found / flags", f"/ ({NUMBER})"),
        )
    )
    unplanted = look("tables", "", "saferparks unplanted", "both levels: found / flags", f"/ ({NUMBER})")
    return [
        f"{planted} in all, the likely errors hold {likely} of them and both lists {both}, among {listed} rows",
        f"There are {unplanted} rows worth a look",
    ]


def public_sets() -> list[list[str]]:
    """Return the cells of the public sets of several views."""
    text = (RESULTS / "clustering.md").read_text(encoding="utf-8")
    section = text.split("## public", 1)[1].split("## ", 1)[0]
    rows = re.findall(r"^\|.*\|$", section, re.MULTILINE)[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def behind() -> str:
    """Return on how many of the public sets a peer is ahead."""
    peers = [cells[5] for cells in public_sets()]
    return f"behind a peer on {sum(peer != '-' for peer in peers)} of {len(peers)}"


def counted() -> str:
    """Return on how many of the public sets the number of clusters is right within one."""
    pairs = [(int(cells[7]), int(cells[8].split()[0])) for cells in public_sets()]
    return f"within one on {sum(abs(true - found) <= 1 for true, found in pairs)} of {len(pairs)}"


def filled(text: str) -> str:
    """Return the text of the page with every figure as the results have it."""
    lines = text.splitlines()
    for situation, figure in figures().items():
        places = [at for at, line in enumerate(lines) if line.startswith(f"| {situation}")]
        if len(places) != 1:
            raise ValueError(f"limits.md must have one row that begins with {situation!r}, found {len(places)}")
        lines[places[0]] = " | ".join([*lines[places[0]].split(" | ")[:3], f"{figure} |"])
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{PAGE.name}: written")
    for name, phrase in missing():
        print(f"{name}: write {phrase!r}")
