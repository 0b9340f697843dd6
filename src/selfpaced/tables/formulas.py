"""Texts that a spreadsheet would run: marked by an apostrophe in tables that are written as text, and read without it.

A cell that begins with ``=``, ``+``, ``-`` or ``@``, also in its wide form or after a tab or the end of a line, is a
formula to some spreadsheet. Numbers and such a sign alone stay as they are. What has an apostrophe before the sign
already gets a second one, so that every table is read as it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["guarded", "guarded_frame", "unguarded", "unguarded_table"]

_SIGNS = r"'*[=+\-@\t\r\n＝＋－＠]"
_RISKY = re.compile(f"{_SIGNS}.", re.DOTALL)


def guarded(text: str) -> str:
    """Return the text as it is safe in a spreadsheet.

    >>> guarded("=HYPERLINK(A1)"), guarded("-1.5"), guarded("'=x"), guarded("a=b")
    ("'=HYPERLINK(A1)", '-1.5', "''=x", 'a=b')
    """
    if not _RISKY.match(text):
        return text
    try:
        float(text.replace(",", "."))
    except ValueError:
        return f"'{text}"
    return text


def unguarded(text: str) -> str:
    """Return the text as it was.

    >>> unguarded("'=HYPERLINK(A1)"), unguarded("''=x"), unguarded("'quoted'")
    ('=HYPERLINK(A1)', "'=x", "'quoted'")
    """
    return text[1:] if text[:1] == "'" and _RISKY.match(text[1:]) else text


def guarded_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose texts, names of columns included, are safe in a spreadsheet."""
    safe = frame.copy(deep=False)
    for place, kind in enumerate(frame.dtypes):
        if kind.kind in "OUS" or str(kind) in ("str", "string", "category"):
            column = frame.iloc[:, place]
            if column.astype("str").str.match(_SIGNS).any():  # by Arrow, not cell by cell
                cells = column.astype(object)
                safe.isetitem(place, cells.map(lambda cell: guarded(cell) if isinstance(cell, str) else cell))
    safe.columns = [guarded(name) if isinstance(name, str) else name for name in frame.columns]
    return safe


def unguarded_table(table: Any) -> Any:
    """Return an Arrow table with its texts as they were."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for position, kind in enumerate(table.schema.types):
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            column = table.column(position)
            if pc.any(pc.starts_with(column, "'")).as_py():
                plain = pc.replace_substring_regex(column, f"(?s)^'({_SIGNS}.)", "\\1", max_replacements=1)
                table = table.set_column(position, table.schema.names[position], plain)
    return table
