"""The result of a fit in the terminal: what was found, in at most 80 columns, and what to do next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from selfpaced.formatting import count, number, percent, plural, unused_columns
from selfpaced.inspection import CERTAIN
from selfpaced.selection import end_in_words

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.inspection import Findings

    from .console import Console
    from .training import Training

LABEL_WIDTH = 18  # display: characters of a label
ROWS_SHOWN = 5  # display: rows of each list


def summary(found: Findings, path: Any, measured: dict[str, Any], console: Console) -> None:
    """Print what was found in a few sentences."""
    used = sum(map(len, measured["columns"].values()))
    console.tell(f"\n{found.lists()}", strong=True)
    unused = unused_columns((one["column"], one["reason"]) for one in measured["not_used"])
    console.tell(f"{measured['target']!r} was predicted from {plural(used, 'column')}." + f" {unused}" * bool(unused))
    told = [measured.get("model_choice"), end_in_words(found.termination, path)]
    told += [found.rate() if found.noun == "value" else found.accuracy()]  # the rest is said above
    for sentence in filter(None, told):
        console.tell(sentence)


def tell_next(result: Training, measured: dict[str, Any], written: list[str], folder: str, console: Console) -> None:
    """Print what became of the last round, the files, the time and the next command."""
    if result.review is not None:
        console.tell(f"\n{_round(measured)} (decided: {result.review})", strong=True)
    console.tell(f"\nWritten: {', '.join(written)}")
    console.tell(console.timing())
    if len(result.suspects):
        next_step(written, folder, console)
    else:
        console.say(f"Next: selfpaced predict {written[0]} NEW.csv")


def next_step(written: list[str], folder: str, console: Console) -> None:
    """Print how to decide about the rows that are listed."""
    listed = next(name for name in written if name.endswith("suspects.csv"))
    page = any(name.endswith("report.html") for name in written)
    console.say(f"Next: selfpaced review {folder}" if page else f"Next: fill in the column decision of {listed}")


def _round(measured: dict[str, Any]) -> str:
    """The rows to check before and now.

    >>> _round({"round": 2, "rows_before": 9, "undecided": 6, "new": 0})
    'round 2: 9 -> 6 undecided, 0 new'
    """
    before, new = measured["rows_before"], measured["new"]
    start = f"round {measured['round']}:"
    if before is None:
        return f"{start} {plural(new, 'row')} to check"
    return f"{start} {count(before)} -> {count(measured['undecided'])} undecided, {count(new)} new"


def show_lists(found: pd.DataFrame, console: Console) -> None:
    """Print the first rows of both lists."""
    likely, look = (found[found["level"] == level] for level in ("likely error", "worth a look"))
    if len(likely):
        console.tell(f"\nLikely errors{_first(len(likely))}")
        _show(likely, "noise_probability", console)
    if len(look):
        console.tell(f"\nRows worth a look{_first(len(look))}")
        _show(look, "probability_if_noisy" if "probability_if_noisy" in look else "residual", console)


def _first(length: int) -> str:
    return f", the first {ROWS_SHOWN} of {count(length)}:" if length > ROWS_SHOWN else ":"


def _show(found: pd.DataFrame, measure: str, console: Console) -> None:
    """One list as a table."""
    place = "line" if found["line"].notna().any() else "row"
    rows = []
    for record in found.head(ROWS_SHOWN).to_dict("records"):
        reason = record.get("against") or record.get("why", "").partition(" (")[0]  # without the lines of neighbours
        cells = [str(record[place]), _cell(record["given"]), _cell(record["expected"]), _measured(record, measure)]
        rows.append([*cells, reason])
    name = {"noise_probability": "wrong", "residual": "off by"}.get(measure, "wrong, if any")
    text = (4,) if isinstance(found["given"].iloc[0], float) else (1, 2, 4)
    width = 5 if any(row[4] for row in rows) else 4  # an audit gives no reasons
    console.table([place, "given", "expected", name, "because of"][:width], [row[:width] for row in rows], left=text)


def _measured(record: dict[str, Any], measure: str) -> str:
    """A probability, or for values without one the residual."""
    if measure == "residual":
        return number(record["given"] - record["expected"], 5)
    return "" if math.isnan(record[measure]) else percent(min(record[measure], CERTAIN))


def _cell(value: Any) -> str:
    """A label or value; of long labels both ends, as many begin alike.

    >>> _cell(1610800.0), _cell("Cause of Death: Gunfire")
    ('1,610,800', 'Cause of…: Gunfire')
    """
    if isinstance(value, float):
        return number(value, 5)
    text = str(value)
    half = LABEL_WIDTH // 2
    return text if len(text) <= LABEL_WIDTH else f"{text[: half - 1].rstrip()}…{text[-half:]}"
