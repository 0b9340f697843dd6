"""Reading a table strictly: every complaint names the file and the line."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .text import Dialect, TableError, TextFile, records, to_frame, warn

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Lines:
    """The line of a file at which each data row begins.

    Parameters
    ----------
    path : Path or None
        The text file; None if rows have no lines (Parquet, a frame in memory).
    dialect : Dialect
        How it is written.
    width : int
        Number of columns.
    first : int or None
        Line of the first row if every row has exactly one line; None if the file has to be read for them.
    """

    path: Path | None = None
    dialect: Dialect = field(default_factory=Dialect)
    width: int = 0
    first: int | None = None

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        assert self.path is not None
        starts = (line for line, cells in records(self.path, self.dialect) if len(cells) == self.width)
        if self.dialect.header:
            next(starts, None)
        return np.fromiter(starts, dtype=np.int64)

    def of(self, rows: ArrayLike) -> NDArray[np.int64] | None:
        """Return the lines, from 1, of data rows counted from 0; None if there are no lines."""
        rows = np.asarray(rows, dtype=np.int64)
        if self.path is None:
            return None
        return rows + self.first if self.first is not None else self._starts[rows]


@dataclass(frozen=True)
class LoadedTable:
    """A table in memory and where it came from.

    Attributes
    ----------
    frame : pandas.DataFrame
        The data, with a plain index from 0.
    path : Path or None
        The file.
    format : {"csv", "parquet", "memory"}
        What kind of file.
    lines : Lines
        Row -> line.
    dialect : Dialect
        How a text file is written.
    """

    frame: pd.DataFrame
    path: Path | None = None
    format: str = "memory"
    lines: Lines = field(default_factory=Lines)
    dialect: Dialect = field(default_factory=Dialect)


def read_table(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    skip_broken: bool = False,
    decimal: str = "",
    text: Collection[str] | None = (),
) -> LoadedTable:
    """Read a CSV or TSV file, gzipped or not, or a Parquet file.

    Rows with too many or too few fields are errors that name their line. Numbers and ISO dates get their types;
    everything else, ``true`` and ``false`` included, stays the text it is. So do digits with leading zeros (``02139``).

    Parameters
    ----------
    path : path-like
        ``.parquet``/``.pq`` is Parquet, everything else is text; ``.gz`` is unpacked on the fly.
    separator : str, optional
        Character between fields; found from the first line if not given (``.tsv`` means tab).
    header : bool, default=True
        Whether the first line holds the column names; without, columns are ``column_1``, ``column_2``, ...
    encoding : str, optional
        Encoding of a text file: UTF-8, UTF-16 with its mark, else Windows-1252 with a warning.
    skip_broken : bool, default=False
        Leave broken rows out, with a warning, instead of refusing the file.
    decimal : {"", ".", ","}
        Decimal sign of numbers that could be read either way; found from the others if not given.
    text : collection of str or None
        Columns that are read as text whatever they hold; None: all of them.

    Returns
    -------
    LoadedTable

    Raises
    ------
    TableError
        The file is absent, empty, not a table, or has a broken row.
    """
    path = Path(path)
    require_arrow()
    if not path.is_file():
        raise TableError(path, _no_file(path))
    if is_parquet(path):
        return _read_parquet(path, decimal)
    try:
        return _read_text(TextFile.open(path, separator, header, encoding, decimal), skip_broken, text)
    except UnicodeDecodeError:
        if encoding is not None:
            raise TableError(path, f"is not written in {encoding!r}; pass another encoding") from None
        warn(f"{path}: is not UTF-8; read as Windows-1252. Pass the encoding if letters look wrong.")
        return _read_text(TextFile.open(path, separator, header, "cp1252", decimal), skip_broken, text)


def text_rows(table: LoadedTable) -> Iterator[list[str]]:
    """Return the records of a text file as they are written: the header first, then the rows of ``table.frame``."""
    assert table.path is not None
    width = table.lines.width
    return (cells for _, cells in records(table.path, table.dialect) if len(cells) == width)


def _read_text(file: TextFile, skip_broken: bool, text: Collection[str] | None) -> LoadedTable:
    text = {name for name in file.names if text is None or name in text}
    frame, broken = file.read(text)
    codes = file.codes({name for name in frame.columns if name not in text and _is_whole(frame[name])})
    if codes:
        frame, broken = file.read(text | codes)
    if broken:
        file.refuse_broken(skip_broken)
    if not len(frame):
        raise TableError(file.path, "has column names but no rows" if file.dialect.header else "has no rows")
    simple = not broken and file.lines == len(frame) + file.skip
    lines = Lines(file.path, file.dialect, len(file.names), file.skip + 1 if simple else None)
    return LoadedTable(frame, file.path, "csv", lines, file.dialect)


def _is_whole(column: pd.Series) -> bool:
    """Return whether a column holds whole numbers; gaps make them decimals."""
    if getattr(column.dtype, "kind", "") not in "iuf":
        return False
    values = column.to_numpy()
    some = values[:1000]  # most columns of decimals show one at once
    return all(np.array_equal(part, np.rint(part), equal_nan=True) for part in (some, values))


# ------------------------------------------------------------------------------------------------------ parquet


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet by its name."""
    return path.suffix.lower() in (".parquet", ".pq")


def _read_parquet(path: Path, decimal: str) -> LoadedTable:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(path, f"cannot be read as Parquet: {error}") from error
    if not table.num_rows:
        raise TableError(path, "has no rows")
    return LoadedTable(to_frame(table), path, "parquet", dialect=replace(Dialect(), decimal=decimal))


def _no_file(path: Path) -> str:
    """Return why a path is no file, and what may be meant."""
    if path.is_dir():
        return "is a folder; name a file, or several by a pattern such as 'data/*.csv'"
    if path.exists():
        return "is not a regular file, and a table is read twice"
    folder = path.parent if path.parent.is_dir() else Path()
    near = difflib.get_close_matches(path.name, [p.name for p in folder.iterdir()], n=1)
    return "no such file" + (f"; did you mean {str(path.parent / near[0])!r}?" if near else "")


def require_arrow() -> None:
    """Refuse to read without pyarrow, with the extra that installs it."""
    import importlib.util

    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError('reading tables needs pyarrow: pip install "selfpaced[io]"')
