"""Texts that a spreadsheet would run: marked by an apostrophe where a table is written as text, and read without it.

A cell that begins with ``=``, ``+``, ``-`` or ``@``, also in its wide form or after a tab or the end of a line, is a
formula to some spreadsheet, and a formula may send the table to a stranger. Numbers and such a sign alone are left as
they are. What has an apostrophe before the sign already gets a second one, so that every table comes back as it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["guarded", "guarded_frame", "unguarded", "unguarded_column"]

_SIGNS = r"'*[=+\-@\t\r\n＝＋－＠]"
_RISKY = re.compile(f"{_SIGNS}.", re.DOTALL)
_MARKED = f"(?s)^'({_SIGNS}.)"
_ANY_RISKY = re.compile(f"\0{_SIGNS}")  # in texts that are joined by a sign that texts hardly have


def guarded(text: str) -> str:
    """The text as it is safe in a spreadsheet.

    >>> guarded("=HYPERLINK(A1)"), guarded("-1.5"), guarded("'=x"), guarded("a=b")
    ("'=HYPERLINK(A1)", '-1.5', "''=x", 'a=b')
    """
    return f"'{text}" if _RISKY.match(text) and not _is_number(text) else text


def unguarded(text: str) -> str:
    """The text as it was.

    >>> unguarded("'=HYPERLINK(A1)"), unguarded("''=x"), unguarded("'quoted'")
    ('=HYPERLINK(A1)', "'=x", "'quoted'")
    """
    return text[1:] if text[:1] == "'" and _RISKY.match(text[1:]) else text


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def guarded_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose texts, names of columns included, are safe in a spreadsheet."""
    safe = frame.copy(deep=False)
    for place, kind in enumerate(frame.dtypes):
        if kind.kind in "OUS" or str(kind) in ("str", "string", "category"):
            column = frame.iloc[:, place].astype(object)
            texts = [cell for cell in column.tolist() if isinstance(cell, str)]
            if _ANY_RISKY.search("\0".join(["", *texts])):
                safe.isetitem(place, column.map(lambda cell: guarded(cell) if isinstance(cell, str) else cell))
    safe.columns = [guarded(name) if isinstance(name, str) else name for name in frame.columns]
    return safe


def unguarded_column(column: Any) -> Any:
    """An Arrow column of texts as they were."""
    import pyarrow.compute as pc

    if not pc.any(pc.starts_with(column, "'")).as_py():
        return column
    return pc.replace_substring_regex(column, _MARKED, "\\1", max_replacements=1)
