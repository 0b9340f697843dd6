"""Results as Markdown: the tables beside the paper's, the theory, the figures, and the page of claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from selfpaced_experiments.results import Claim, Figure, Measure, Published, Results, ResultTable, Row, Score, Statement

__all__ = ["cell_text", "claims_page", "results_page", "table_markdown"]

_GROUPS = {"paper": "", "ours": "**ours**", "peer": "peer", "reference": "reference"}
_MARKS = {"confirmed": "confirmed", "not confirmed": "**not confirmed**", "under conditions": "*under conditions*"}


def published_text(column: Measure, value: Published | None) -> str:
    """A figure of the paper, with its spread where it has one."""
    if value is None:
        return ""
    spread = "" if value.std is None else f" ({value.std:.{column.digits}f})"
    return f"{value.mean:.{column.digits}f}{spread}"


def score_text(column: Measure, score: Score | None) -> str:
    """A figure of ours, mean (std)."""
    if score is None:
        return ""
    return f"{score.mean:.{column.digits}f} ({score.std:.{column.digits}f})"


def difference(column: Measure, row: Row) -> float | None:
    """Ours minus the paper's, signed so that more than zero is better; None without a figure of the paper."""
    score, value = row.scores.get(column.name), row.published.get(column.name)
    if score is None or value is None:
        return None
    return (score.mean - value.mean) * (1 if column.higher_is_better else -1)


def cell_text(column: Measure, row: Row) -> tuple[str, str, str]:
    """Paper, ours and the difference as printed (the difference is ours minus the paper's, unsigned by taste)."""
    gap = difference(column, row)
    if gap is None:
        shown = ""
    else:
        raw = gap if column.higher_is_better else -gap
        shown = f"{raw:+.{column.digits}f}"
    paper = published_text(column, row.published.get(column.name))
    return paper, score_text(column, row.scores.get(column.name)), shown


def _grid(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join(["---"] * len(header)) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def table_markdown(table: ResultTable) -> str:
    """A table as Markdown: for each column the paper's figure, ours, and the difference where both exist."""
    compared = [c for c in table.columns if any(c.name in row.published for row in table.rows)]
    header = ["method", ""]
    for column in table.columns:
        arrow = "" if column.higher_is_better else " (lower is better)"
        header += [f"{column.name}: paper", f"ours{arrow}", "diff."] if column in compared else [column.name + arrow]
    rows = []
    for row in table.rows:
        cells = [row.method, _GROUPS[row.group]]
        for column in table.columns:
            paper, ours, gap = cell_text(column, row)
            cells += [paper, ours, gap] if column in compared else [ours]
        rows.append(cells)
    remarks = [f"- {row.method}: {row.note}" for row in table.rows if row.note]
    return "\n".join(
        [
            f"### {table.title}",
            "",
            table.protocol,
            "",
            *_grid(header, rows),
            "",
            *(f"> {note}" for note in table.notes),
            *([""] if table.notes else []),
            *_costs(table),
            *remarks,
            "",
        ]
    )


def _costs(table: ResultTable) -> list[str]:
    timed = [row for row in table.rows if row.fit is not None]
    if not timed:
        return []
    text = ", ".join(f"{row.method} {row.fit.seconds:.2g}" for row in timed if row.fit is not None)
    return [f"CPU seconds of one fit, mean: {text}.", ""]


def theory_markdown(theory: Sequence[Statement]) -> str:
    """The theory table."""
    titles = {
        "conditions": "Conditions of Definition 1, for every rule of the library",
        "equivalence": "Definitions 1 and 2 are equivalent",
        "theorem": "The latent-loss theorem",
        "misprint": "Statements of the paper that do not hold as printed",
    }
    lines = ["## Table 1: the rules and their theory", ""]
    for part, title in titles.items():
        chosen = [s for s in theory if s.part == part]
        if not chosen:
            continue
        lines += [f"### {title}", ""]
        common = {s.statement for s in chosen}
        if len(common) == 1:
            lines += [f"Tested: {common.pop()}.", ""]
            brief = [(s.subject, "holds" if s.holds else "**fails**", s.value) for s in chosen]
            lines += _grid(("rule", "result", "figure"), brief)
        else:
            rows = [(s.subject, s.statement, "holds" if s.holds else "**fails**", s.value) for s in chosen]
            lines += _grid(("what", "statement", "result", "figure"), rows)
        lines.append("")
    return "\n".join(lines)


def figure_markdown(figure: Figure) -> str:
    """A figure with its caption."""
    png = next((name for name in figure.files if name.endswith(".png")), "")
    return "\n".join([f"### {figure.title}", "", f"![{figure.title}]({png})", "", figure.caption, ""])


def results_page(results: Results) -> str:
    """Everything that was measured, as one Markdown page."""
    run = results.run
    versions = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    seeds = ", ".join(f"{name} {count}" for name, count in run.seeds.items())
    at = f" at commit {run.commit}" if run.commit else ""
    lines = [
        "# The paper's experiments, repeated",
        "",
        "Fan, He, Liang and Hu, *Self-Paced Learning: an Implicit Regularization Perspective* (AAAI 2017): the paper's "
        "figures, ours on the same protocol, and today's alternatives on the same folds. This page was written by",
        "",
        f"    {run.command}",
        "",
        f"on {run.date}{at} from {run.cells} cells, {run.cached} of them cached by earlier runs of the same code; all "
        f"cells took {run.work / 60:.0f} minutes of one process. {versions}. Seeds: {seeds or 'none'}. "
        "Every claim of the paper is assessed on [a page of its own](claims.md).",
        "",
    ]
    if run.kept:
        lines += [f"> Kept from earlier runs, not computed by this one: {run.kept}.", ""]
    if run.missing:
        count = run.cells + run.missing
        told = f"{run.cells} of {count} cells were at hand; rows with fewer seeds than their table say so"
        lines += [f"> Not complete: {told}.", ""]
    if run.quick:
        lines += ["> Quick run: fewer seeds, folds and realizations than the paper.", ""]
    lines += [f"> Skipped: {reason}" for reason in results.skipped]
    if results.skipped:
        lines.append("")
    if results.theory:
        lines.append(theory_markdown(results.theory))
    if results.tables:
        lines += ["## Tables 2, 3 and 5", ""]
        lines += [table_markdown(table) for table in results.tables]
    if results.figures:
        lines += ["## Figures", ""]
        lines += [figure_markdown(figure) for figure in results.figures]
    return "\n".join(lines).rstrip() + "\n"


def claims_page(results: Results) -> str:
    """The page of claims: what the paper says, what we found, and the figure behind it."""
    counts: dict[str, int] = {}
    for claim in results.claims:
        counts[claim.outcome] = counts.get(claim.outcome, 0) + 1
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    lines = [
        "# The paper's claims, one by one",
        "",
        f"Assessed from [the results](results.md) of `{results.run.command}`: {summary or 'none'}. Each result is "
        "computed from the figures by a rule in the source, not chosen by hand.",
        "",
    ]
    if results.run.quick:
        lines += ["> Quick run: the results rest on few seeds.", ""]
    for claim in results.claims:
        lines += _claim(claim)
    return "\n".join(lines).rstrip() + "\n"


def _claim(claim: Claim) -> list[str]:
    mark = _MARKS.get(claim.outcome, claim.outcome)
    found = claim.figure[:1].upper() + claim.figure[1:]
    lines = [f"## {claim.claim}", "", f"Paper: {claim.place}. Result: {mark}.", "", found, ""]
    return [*lines, claim.remark, ""] if claim.remark else lines
