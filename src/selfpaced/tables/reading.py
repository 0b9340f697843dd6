"""Reading a table strictly: every complaint names the file and the line."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Lines", "Table", "TableError", "TableWarning", "read_table", "text_rows"]

# What counts as "no value" in a text file. "None" and "-" are left to the column types: they are also words.
NULLS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A", "<NA>", "?"]
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_BLOCK = 1 << 22
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")


class TableError(ValueError):
    """A file that cannot be read as a table.

    Attributes
    ----------
    path : Path
        The file.
    line : int or None
        The line, from 1, where it breaks.
    """

    def __init__(self, path: str | os.PathLike[str], message: str, line: int | None = None) -> None:
        self.path, self.line = Path(path), line
        where = f"{self.path}:{line}" if line is not None else f"{self.path}"
        super().__init__(f"{where}: {message}")


class TableWarning(UserWarning):
    """Something in a table was left out or read in a particular way."""


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    header: bool = True


@dataclass(frozen=True)
class Facts:
    """What one pass over the bytes tells: number of lines, whether anything is quoted, the beginning."""

    lines: int
    quoted: bool
    head: bytes


@dataclass(frozen=True)
class Lines:
    """The line of a file at which each data row begins.

    Parameters
    ----------
    path : Path or None
        The text file; None where rows have no lines (Parquet, a frame in memory).
    dialect : Dialect
        How it is written.
    width : int
        Number of columns.
    first : int or None
        Line of the first row where every row has exactly one line; None where the file has to be walked.
    """

    path: Path | None = None
    dialect: Dialect = field(default_factory=Dialect)
    width: int = 0
    first: int | None = None

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        assert self.path is not None
        starts = (line for line, cells in _records(self.path, self.dialect) if len(cells) == self.width)
        if self.dialect.header:
            next(starts, None)
        return np.fromiter(starts, dtype=np.int64)

    def of(self, rows: ArrayLike) -> NDArray[np.int64] | None:
        """Lines, from 1, of data rows counted from 0; None where there are no lines."""
        rows = np.asarray(rows, dtype=np.int64)
        if self.path is None:
            return None
        return rows + self.first if self.first is not None else self._starts[rows]


@dataclass(frozen=True)
class Table:
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
        Of a text file.
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
) -> Table:
    """Read a CSV, TSV or Parquet file, gzipped or not.

    Rows with too many or too few fields are errors that name their line. Numbers and ISO dates get their types;
    everything else, ``true`` and ``false`` included, stays the text it is.

    Parameters
    ----------
    path : path-like
        ``.parquet``/``.pq`` is Parquet, everything else is text; ``.gz`` is unpacked on the fly.
    separator : str, optional
        Between fields; found from the first line where not given (``.tsv`` means tab).
    header : bool, default=True
        Whether the first line holds the column names; without, columns are ``column_1``, ``column_2``, ...
    encoding : str, optional
        Of a text file: UTF-8, UTF-16 with its mark, else Windows-1252 with a warning.
    skip_broken : bool, default=False
        Leave broken rows out, with a warning, instead of refusing the file.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        The file is absent, empty, not a table, or has a broken row.
    """
    path = Path(path)
    _require("pandas"), _require("pyarrow")
    if path.is_dir() or not path.exists():
        raise TableError(path, "is a directory, not a file" if path.is_dir() else _absent(path))
    if path.name.lower().endswith((".parquet", ".pq", ".parquet.gz", ".pq.gz")):
        return _read_parquet(path)
    facts = _scan(path)
    dialect = _dialect(path, facts, separator, header, encoding)
    try:
        return _read_text(path, facts, dialect, skip_broken)
    except UnicodeDecodeError:
        if encoding is not None:
            raise TableError(path, f"is not written in {encoding!r}; pass another encoding") from None
        dialect = Dialect(dialect.separator, "cp1252", dialect.decimal, header)
        _warn(f"{path}: is not UTF-8; read as Windows-1252. Pass the encoding if letters look wrong.")
        return _read_text(path, facts, dialect, skip_broken)


def text_rows(table: Table) -> Iterator[list[str]]:
    """The records of a text file as they are written: the header first, then the rows of ``table.frame``."""
    assert table.path is not None
    width = table.lines.width
    return (cells for _, cells in _records(table.path, table.dialect) if len(cells) == width)


def _read_text(path: Path, facts: Facts, dialect: Dialect, skip_broken: bool) -> Table:
    names, skip = _names(path, dialect)
    table, broken = _arrow(path, names, skip, facts, dialect)
    if broken:
        _report_broken(path, dialect, len(names), skip_broken)
    if not table.num_rows:
        raise TableError(path, "has column names but no rows" if dialect.header else "has no rows")
    simple = not broken and facts.lines == table.num_rows + skip
    lines = Lines(path, dialect, len(names), skip + 1 if simple else None)
    return Table(_frame(table), path, "csv", lines, dialect)


def _arrow(path: Path, names: list[str], skip: int, facts: Facts, dialect: Dialect) -> tuple[Any, int]:
    """The file as an Arrow table, and how many rows did not fit."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    broken = 0

    def count(_: Any) -> str:
        nonlocal broken
        broken += 1
        return "skip"

    codec = {"utf-8-sig": "utf-8"}.get(dialect.encoding, dialect.encoding)
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            table = arrow_csv.read_csv(
                stream,
                read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=skip, encoding=codec),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=dialect.separator, newlines_in_values=facts.quoted, invalid_row_handler=count
                ),
                convert_options=arrow_csv.ConvertOptions(
                    null_values=NULLS,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    true_values=[],
                    false_values=[],
                    decimal_point=dialect.decimal,
                ),
            )
    except UnicodeDecodeError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(path, f"cannot be read as a table: {error}") from error
    if any(pa.types.is_binary(kind) for kind in table.schema.types):
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "invalid bytes")
    return table, broken


def _frame(table: Any) -> pd.DataFrame:
    """Arrow to pandas without a second copy: each column's memory is given up as soon as it is converted."""
    import pandas as pd
    import pyarrow as pa

    for position, kind in enumerate(table.schema.types):
        if pa.types.is_time(kind):
            column = table.column(position).cast(pa.string())
            table = table.set_column(position, table.schema.names[position], column)
    frame = table.to_pandas(split_blocks=True, self_destruct=True, date_as_object=False)
    if not isinstance(frame.index, pd.RangeIndex):  # Parquet written by pandas may carry one
        frame = frame.reset_index()
    return frame


def _read_parquet(path: Path) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path) as stream:
                table = parquet.read_table(pa.BufferReader(stream.read()))
        else:
            table = parquet.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(path, f"cannot be read as Parquet: {error}") from error
    if not table.num_rows:
        raise TableError(path, "has no rows")
    return Table(_frame(table), path, "parquet")


def _scan(path: Path) -> Facts:
    """One pass over the bytes."""
    newlines = returns = 0
    quoted, head, last = False, b"", b""
    try:
        with _binary(path) as stream:
            while block := stream.read(_BLOCK):
                newlines += block.count(b"\n")
                returns += block.count(b"\r") if not newlines else 0
                quoted = quoted or b'"' in block
                head, last = head or block[: 1 << 16], block[-1:]
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        raise TableError(path, f"cannot be read: {error}") from error
    if not head.strip():
        raise TableError(path, "is empty")
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(path, "is not text; CSV, TSV and Parquet (.parquet) can be read")
    count = newlines or returns
    return Facts(count + (last not in (b"\n", b"\r")), quoted, head)


def _dialect(path: Path, facts: Facts, separator: str | None, header: bool, encoding: str | None) -> Dialect:
    if encoding is None:
        encoding = next((name for mark, name in _BOMS.items() if facts.head.startswith(mark)), "utf-8")
    head = facts.head.decode(encoding, errors="replace").splitlines()[:50]
    if separator is None:
        plain = re.sub(r'"[^"]*"', "", next((line for line in head if line.strip()), ""))
        counts = {sign: plain.count(sign) for sign in SEPARATORS}
        best = max(counts, key=lambda sign: counts[sign])
        tab = path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
        separator = "\t" if tab and counts["\t"] else best if counts[best] else ","
    if len(separator) != 1:
        raise ValueError(f"separator must be one character, got {separator!r}")
    cells = [cell.strip().strip('"') for line in head[1:] for cell in line.split(separator)]
    commas = separator != "," and any(re.fullmatch(r"[-+]?\d+,\d+", cell) for cell in cells)
    points = any(re.fullmatch(r"[-+]?\d+\.\d+", cell) for cell in cells)
    return Dialect(separator, encoding, "," if commas and not points else ".", header)


def _names(path: Path, dialect: Dialect) -> tuple[list[str], int]:
    """Column names, unique and not empty, and how many lines they take."""
    with _text(path, dialect) as stream:
        reader = csv.reader(stream, delimiter=dialect.separator)
        cells = next((record for record in reader if record), [])
        end = reader.line_num
    if not dialect.header:
        return [f"column_{i + 1}" for i in range(len(cells))], 0
    if cells and all(_NUMBER.fullmatch(cell) for cell in cells):
        raise TableError(
            path,
            "the first line holds numbers, not column names: say that there is no header (--no-header)",
            end,
        )
    names = [cell.strip() or f"column_{i + 1}" for i, cell in enumerate(cells)]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        _warn(f"{path}: the column name {twice[0]!r} appears more than once; later ones get a number")
    return _unique(names), end


def _unique(names: list[str]) -> list[str]:
    taken, result = set(names), []
    for i, name in enumerate(names):
        if name in names[:i]:
            number = 1
            while f"{name}.{number}" in taken:
                number += 1
            name = f"{name}.{number}"
            taken.add(name)
        result.append(name)
    return result


def _report_broken(path: Path, dialect: Dialect, width: int, skip: bool) -> None:
    """Find the lines of rows that do not fit: an error for the first, or one warning for all."""
    broken = [(line, cells) for line, cells in _records(path, dialect) if len(cells) != width]
    line, cells = broken[0]
    text = dialect.separator.join(cells)
    text = text if len(text) <= 60 else text[:57] + "..."
    more = f" ({len(broken) - 1:,} more such rows)" if len(broken) > 1 else ""
    what = f"{len(cells)} field{'s' * (len(cells) != 1)}, where the header has {width}"
    if "\n" in text:
        what += "; a quote that is opened here is closed lines later or never"
    if not skip:
        message = f"the row has {what}{more}: {text!r}. Mend it, or leave such rows out with --skip-broken"
        raise TableError(path, message, line)
    lines = ", ".join(str(line) for line, _ in broken[:5]) + (", ..." if len(broken) > 5 else "")
    _warn(f"{path}: {len(broken):,} broken rows left out (lines {lines})")


def _records(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Line at which it begins, and cells, of every record that is not blank."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with _text(path, dialect) as stream:
        reader = csv.reader(stream, delimiter=dialect.separator)
        begin = 1
        for record in reader:
            if record:
                yield begin, record
            begin = reader.line_num + 1


def _text(path: Path, dialect: Dialect) -> IO[str]:
    return io.TextIOWrapper(_binary(path), encoding=dialect.encoding, newline="")  # type: ignore[arg-type]


def _binary(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb")  # type: ignore[return-value]


def _absent(path: Path) -> str:
    import difflib

    folder = path.parent if path.parent.is_dir() else Path()
    near = difflib.get_close_matches(path.name, [p.name for p in folder.iterdir()], n=1)
    return "no such file" + (f"; did you mean {str(path.parent / near[0])!r}?" if near else "")


def _require(module: str) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise ImportError(f'reading tables needs {module}: pip install "selfpaced[io]"')


def _warn(message: str) -> None:
    warnings.warn(message, TableWarning, stacklevel=4)
