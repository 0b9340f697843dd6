"""What a person decided about suspects, and the table that follows from it.

A decision is one line of a table with the columns ``row`` (position, from 0), ``decision`` and, if known,
``expected``, ``target`` and ``fingerprint``: a file ``suspects.csv`` that somebody has
filled in, or ``decisions.csv`` of the report.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import row_keys
from .cells import CellLevels, NumberFormat
from .reading import Lines, read_table
from .text import TableError, unguarded

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Reviewed", "RowDecision", "apply_decisions", "read_answers", "row_marks"]

_WORDS = re.compile(r"(keep|drop|relabel|set)\b\s*(?:to\b)?\s*(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class RowDecision:
    """The decision about one row, which was read at ``line``.

    ``what`` is "keep", "replace" (by ``value``) or "drop". ``mark`` is the fingerprint of the row that was assessed and
    ``target`` the column of its label; both are empty if they are not known.
    """

    row: int
    what: str
    value: str = ""
    mark: str = ""
    target: str = ""
    line: int = 0


@dataclass(frozen=True, eq=False)
class Reviewed:
    """A table after a person has decided about some of its rows.

    Attributes
    ----------
    corrected : pandas.DataFrame
        Every row, with the new labels or values.
    kept, replaced, dropped : ndarray of int
        Positions of the rows in it.
    """

    corrected: pd.DataFrame
    kept: NDArray[np.intp]
    replaced: NDArray[np.intp]
    dropped: NDArray[np.intp]

    @property
    def table(self) -> pd.DataFrame:
        """The corrected table without the rows that were dropped."""
        return self.corrected.drop(index=self.corrected.index[self.dropped]) if self.dropped.size else self.corrected

    @property
    def confirmed(self) -> NDArray[np.bool_]:
        """Rows of ``corrected`` that a person has confirmed or corrected."""
        mask = np.zeros(len(self.corrected), dtype=bool)
        mask[self.kept] = mask[self.replaced] = True
        return mask

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """The same for the rows of ``table``: what ``fit(X, y, trusted=...)`` takes."""
        return np.delete(self.confirmed, self.dropped)

    def __str__(self) -> str:
        counts = {"corrected": self.replaced, "dropped": self.dropped, "kept": self.kept}
        return ", ".join(f"{len(rows):,} {word}" for word, rows in counts.items() if len(rows)) or "nothing decided"


def apply_decisions(table: pd.DataFrame, decisions: Any, *, target: str | None = None, decimal: str = "") -> Reviewed:
    """Apply decisions to a copy of a table.

    Parameters
    ----------
    table : pandas.DataFrame
        The table whose rows were assessed.
    decisions : path-like, or table of decisions
        A file ``decisions.csv`` or a filled-in ``suspects.csv``, or such a table: ``row`` is a position in `table`,
        ``decision`` is ``keep``, ``drop``, ``relabel`` (to what was ``expected``), ``relabel to LABEL`` or
        ``set VALUE``; lines without a decision are passed over.
    target : str, optional
        Column of the labels or values; by default the decisions name it.
    decimal : {"", ".", ","}
        Decimal sign of values that are text, if the column itself does not tell it (``1,234`` in every cell). New
        values are written with it.

    Returns
    -------
    Reviewed
        With ``table`` and, for the next fit, ``trusted``.

    Raises
    ------
    TableError
        A decision cannot be read, or its row is no longer the one that was assessed. Nothing is applied then.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1, 2, 3], "kind": ["a", "b", "b"]})
    >>> reviewed = apply_decisions(table, {"row": [1, 2], "decision": ["relabel to a", "keep"]}, target="kind")
    >>> reviewed.table["kind"].tolist(), reviewed.trusted.tolist()
    (['a', 'a', 'b'], [False, True, True])
    """
    source = str(decisions) if isinstance(decisions, str | os.PathLike) else "decisions"
    answers = read_answers(decisions)
    _check_rows(table, answers, source)
    rows = {
        what: np.array(sorted(a.row for a in answers if a.what == what), dtype=np.intp)
        for what in ("keep", "replace", "drop")
    }
    corrected = table
    if rows["replace"].size:
        column = target or next((answer.target for answer in answers if answer.target), "")
        if column not in table.columns:
            told = f"the table has no column {column!r}" if column else "the column of labels is not known"
            raise TableError(source, f"{told}; name it with target=")
        corrected = _corrected(table, column, [a for a in answers if a.what == "replace"], source, decimal)
    return Reviewed(corrected, rows["keep"], rows["replace"], rows["drop"])


def row_marks(table: pd.DataFrame, rows: Any = slice(None)) -> list[str]:
    """Return a short fingerprint of the content of each row, which no spreadsheet reads as a number.

    >>> import pandas as pd
    >>> row_marks(pd.DataFrame({"size": [1, 1], "kind": ["a", "b"]})) == row_marks(pd.DataFrame({"size": [1.0, 1.0],
    ...     "kind": ["a", "b"]}))
    True
    """
    return [f"r{int(key):016x}" for key in row_keys(table.iloc[rows])]


# ---------------------------------------------------------------------------------------------------- reading


def written_cells(path: str | os.PathLike[str]) -> tuple[pd.DataFrame, Lines]:
    """Return the cells of one of our lists as text, empty where nothing is written, and the lines of its rows."""
    table = read_table(path, text=None)
    frame = table.frame.astype(object)
    return frame.where(frame.notna(), "").map(unguarded), table.lines


def read_answers(decisions: Any) -> list[RowDecision]:
    """The decisions of a file or table, the last one of each row; undecided lines are left out."""
    import pandas as pd

    if isinstance(decisions, str | os.PathLike):
        source = str(Path(decisions))
        frame, lines = written_cells(decisions)
        numbers = lines.of(np.arange(len(frame)))
    else:
        source, numbers = "decisions", None
        frame = decisions.to_pandas() if hasattr(decisions, "to_pandas") else pd.DataFrame(decisions)
        frame = frame.astype(object).where(frame.notna(), "").astype(str)
    for name in ("row", "decision"):
        if len(frame) and name not in frame:
            raise TableError(source, f"is no table of decisions: it has no column {name!r}")
    found: dict[int, RowDecision] = {}
    for place, record in enumerate(frame.to_dict("records")):
        if record["decision"].strip():
            answer = _answer(record, source, place + 1 if numbers is None else int(numbers[place]))
            found[answer.row] = answer
    return list(found.values())


def _answer(record: Mapping[Any, str], source: str, line: int) -> RowDecision:
    words = _WORDS.fullmatch(record["decision"].strip())
    if words is None or (words[1].lower() in ("keep", "drop") and words[2]):
        raise TableError(
            source,
            f"decision must be keep, drop, relabel, relabel to LABEL or set VALUE, got {record['decision']!r}",
            line,
        )
    try:
        row = int(float(record["row"]))
    except ValueError:
        raise TableError(source, f"row must be a number, got {record['row']!r}", line) from None
    verb = words[1].lower()
    value = words[2].strip() or record.get("expected", "")
    if verb in ("relabel", "set") and not value:
        raise TableError(source, f"{verb} needs a value: the model expects none for this row", line)
    what = "replace" if verb in ("relabel", "set") else verb
    mark, target = record.get("fingerprint", ""), record.get("target", "")
    return RowDecision(row, what, value if what == "replace" else "", mark, target, line)


# --------------------------------------------------------------------------------------------------- applying


def _check_rows(table: pd.DataFrame, answers: Sequence[RowDecision], source: str) -> None:
    """Refuse decisions about rows that are not there, or not what they were."""
    for answer in answers:
        if not 0 <= answer.row < len(table):
            raise TableError(source, f"row must be in the table ({len(table):,} rows), got {answer.row}", answer.line)
    marked = [answer for answer in answers if answer.mark]
    marks = row_marks(table, [answer.row for answer in marked]) if marked else []
    stale = [answer for answer, mark in zip(marked, marks, strict=True) if answer.mark != mark]
    if stale:
        named = ", ".join(f"line {answer.line} (row {answer.row})" for answer in stale[:5])
        more = f" and {len(stale) - 5:,} more" if len(stale) > 5 else ""
        what = f"the table has changed since it was assessed: {named}{more}; nothing was applied"
        raise TableError(source, f"{what}. Fit again, or remove these lines")


def _corrected(
    table: pd.DataFrame, column: str, answers: Sequence[RowDecision], source: str, decimal: str
) -> pd.DataFrame:
    from pandas.api import types

    given = table[column]
    values = given.astype(object)
    # Spreadsheets drop leading zeros: 2 means 02 if there is no label 2.
    padded = {str(label).lstrip("0"): label for label in given.unique() if str(label).isdigit()}
    known = set(given.unique())
    text = not types.is_numeric_dtype(given.dtype) and not types.is_datetime64_any_dtype(given.dtype)
    numbers = NumberFormat.find(CellLevels.of(given), decimal) if text else None
    for answer in answers:
        value: Any = answer.value
        if value not in known and value.isdigit():
            value = padded.get(value.lstrip("0"), value)
        if value not in known and numbers is not None and re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", value):
            value = value.replace(".", numbers.decimal or ".")  # the page and the list write a decimal point
        if types.is_bool_dtype(given.dtype):
            value = value.strip().lower() == "true"
        elif types.is_numeric_dtype(given.dtype):
            value = _number(answer, source)
        values.iloc[answer.row] = value
    corrected = table.copy(deep=False)
    corrected[column] = values.infer_objects()
    return corrected


def _number(answer: RowDecision, source: str) -> int | float:
    try:
        value = float(answer.value)
    except ValueError:
        raise TableError(source, f"the column holds numbers, got {answer.value!r}", answer.line) from None
    return int(value) if value.is_integer() else value
