"""The result of a fit in the terminal: what was found, in words, within 80 columns, and what to do next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from selfpaced.path import end_in_words, probability_of_labels, trust_in_words

if TYPE_CHECKING:
    from .console import Console
    from .training import Training

__all__ = ["counted", "share_in_words", "show_path", "show_suspects", "tell", "tell_next"]

CELL = 18  # display: letters of a label


def tell(result: Training, measured: dict[str, Any], console: Console) -> None:
    """The result in a few lines."""
    labels = measured["task"] == "classification"
    rows, features = measured["rows_fitted"], measured["features"]
    kinds = ", ".join(f"{len(names)} {kind}" for kind, names in measured["columns"].items() if names)
    console.tell(
        f"\n{rows:,} rows, {kinds} columns -> {features} features; {measured['task']} of {measured['target']!r}"
    )
    if measured["model_choice"]:
        console.tell(measured["model_choice"])
    console.tell(f"{end_in_words(measured['termination'], result.model.path_)}\n")
    show_path(measured, console)
    if measured["typical_error"] is not None:
        plain, chosen = (f"{measured['typical_error'][name]:.3g} {measured['target']}" for name in ("plain", "chosen"))
        console.tell(f"Typical error: {chosen}" + ("." if plain == chosen else f" (plain model: {plain})."))
    if measured["noise_rate"] is not None and not labels:  # of labels the sentence above says it
        share = share_in_words(measured["noise_rate"], measured["noise_rate_interval"])
        console.tell(f"Wrong values: {share}.", strong=True)
    if measured["misfit_words"]:
        console.tell(f"Values this model cannot explain, besides: about {measured['misfit']:.1%}; its fit is poor.")
    show_suspects(result, console)


def tell_next(result: Training, measured: dict[str, Any], written: list[str], folder: str, console: Console) -> None:
    """What came of decisions, what was written, and the next command."""
    count = len(result.suspects)
    if result.review is not None:
        before = measured["suspects_before"]
        now = f"{count:,} rows to check" if before is None else f"{before:,} -> {count:,} rows to check"
        console.tell(f"\nround {measured['round']}: {now} (decided: {result.review})", strong=True)
    console.tell(f"\nWritten: {', '.join(written)}")
    if not count:
        console.say(f"Next: selfpaced predict {written[0]} NEW.csv")
    elif "report.html" in written[-1]:
        console.say(f"Next: selfpaced review {folder}")
    else:
        console.say(f"Next: fill in the column decision of {written[1]}")


def counted(count: int) -> str:
    """Likely errors, counted.

    >>> counted(0), counted(1), counted(1200)
    ('No likely errors', '1 likely error', '1,200 likely errors')
    """
    return f"{count:,} likely error{'s' * (count != 1)}" if count else "No likely errors"


def share_in_words(rate: float, interval: tuple[float, float] | None) -> str:
    """A share of wrong rows in words that claim no more than its interval does."""
    if interval is None:
        return f"about {rate:.1%}"
    low, high = interval
    between = f"between {low:.1%} and {high:.1%}"
    if math.isnan(rate):
        return f"{between}; the data cannot tell whether any are"
    if low != 0:
        return f"about {rate:.1%} ({between})"
    return f"none found (at most {high:.1%})" if rate < 0.0005 else f"perhaps {rate:.1%} ({between})"


def show_path(measured: dict[str, Any], console: Console) -> None:
    """Every candidate, plain and self-paced, by how much it trusts, and which one was taken."""
    path = measured["path"]
    if not path:
        return
    scored = measured["task"] == "classification" and any(_known(row["score"]) for row in path)
    likelihood = all(row["score"] <= 0 for row in path if _known(row["score"]))  # else accuracies
    header = "held-out labels foretold" if likelihood else "held-out labels right"
    table = [["candidate", "", *([header] if scored else [])]]
    for row in path:
        table.append([_in_words(row), "<- chosen" if row["chosen"] else "", *([_score(row)] if scored else [])])
    console.table(table, left=2)
    console.say()


def _in_words(row: dict[str, Any]) -> str:
    """A candidate by how much of the rows it trusts.

    >>> _in_words({"label": "welsch lam=0.816", "lam": 0.816, "mean_weight": 0.74})
    'cautious: trusts 74 % of the rows'
    """
    return trust_in_words(row["mean_weight"]) if _known(row["lam"]) and _known(row["mean_weight"]) else row["label"]


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def show_suspects(result: Training, console: Console, n: int = 5) -> None:
    """The most suspicious rows of each level."""
    likely = result.likely
    look = result.suspects.drop(likely.index)
    right, if_any = result.precision
    known = f" (about {right:.0%} of them wrong)" if len(likely) else ""
    console.tell(f"{counted(len(likely))}{known}{_first(len(likely), n)}")
    _show(likely.head(n), console)
    if len(look):
        what = f"{len(look):,} row{'s' * (len(look) != 1)} worth a look"
        known = "if any are wrong" if math.isnan(if_any) else f"if any are wrong, about {if_any:.0%} of these"
        console.tell(f"\n{what} ({known}){_first(len(look), n)}")
        _show(look.head(n), console, "probability_if_noisy")


def _first(count: int, n: int) -> str:
    return "." if not count else f", the first {n}:\n" if count > n else ":\n"


def _show(found: Any, console: Console, measure: str = "noise_probability") -> None:
    if found.empty:
        return
    place, measure = (
        "line" if found["line"].notna().any() else "row",
        measure if measure in found else "noise_probability",
    )
    rows = [
        [place, "given", "expected", "wrong" if measure == "noise_probability" else "if any", "contributing features"]
    ]
    for record in found.to_dict("records"):
        wrong = record[measure]
        cells = [str(record[place]), _cell(record["given"]), _cell(record["expected"])]
        reason = record["against"] or record["why"].partition(" (")[0]  # without the lines of its neighbours
        rows.append([*cells, "" if wrong != wrong else f"{wrong:.0%}", reason])
    widths = [max(len(row[j]) for row in rows) for j in range(4)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=False)]
        start = "  " + "   ".join([*cells, ""])
        console.say(start + _clipped(row[4], 80 - len(start)))


def _cell(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else _clipped(str(value), CELL)


def _clipped(text: str, most: int) -> str:
    """A text of at most so many signs, cut between words where there are some.

    >>> _clipped("island, bill_length_mm", 20), _clipped("bill_length_mm", 12)
    ('island ...', 'bill_len ...')
    """
    kept = text[: most - 4]
    return text if len(text) <= most else (kept.rpartition(" ")[0] or kept).rstrip(" ,") + " ..."


def _score(row: dict[str, Any]) -> str:
    """The share of held-out labels that are foretold (of a likelihood, its probability) and the standard error."""
    if not _known(row["score"]):
        return "not compared"
    score, spread = row["score"], row["spread"] if _known(row["spread"]) else math.nan
    if score <= 0:
        score, spread = probability_of_labels(score, spread)
    return f"{score:.1%}" + (f" +- {spread:.1%}" if _known(spread) else "")
