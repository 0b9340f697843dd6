"""Reading a table strictly: every complaint names the file and the line."""

from __future__ import annotations

import codecs
import gzip
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .bombs import refuse_parquet_bomb
from .cells import CellLevels, are_codes
from .errors import TableError
from .filling import ReadColumns, fill
from .formulas import unguarded, unguarded_column
from .text import (
    SEPARATORS,
    Dialect,
    FileFacts,
    Lines,
    column_names,
    find_dialect,
    find_open_quote,
    longest_line,
    records,
    report_broken,
    scan,
    warn,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LoadedTable", "read_table", "text_rows"]

# What counts as "no value" in a text file. "None" and "-" are left to the column types: they are also words.
NULLS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A", "<NA>", "?"]
STREAMED = 1 << 26  # cost: bytes of text above which a file is read piece by piece (benchmarks/large_csv.py)
PIECE = 1 << 20  # cost: larger ones leave the processor's cache: half as fast at 16 MB


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
    decimal: str = "",
    text: Collection[str] = (),
) -> LoadedTable:
    """Read a CSV, TSV or Parquet file, gzipped or not.

    Rows with too many or too few fields are errors that name their line. Numbers and ISO dates get their types;
    everything else, ``true`` and ``false`` included, stays the text it is. So do digits with leading zeros (``02139``).

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
    decimal : {"", ".", ","}
        Decimal sign of numbers that could be read either way; found from the others if not given.
    text : collection of str
        Columns that are read as text whatever they hold.

    Returns
    -------
    LoadedTable

    Raises
    ------
    TableError
        The file is absent, empty, not a table, or has a broken row.
    """
    path = Path(path)
    _require("pandas")
    _require("pyarrow")
    if path.is_dir() or not path.exists():
        raise TableError(path, "is a directory, not a file" if path.is_dir() else _absent(path))
    if not path.is_file():
        raise TableError(path, "is a pipe or a device, and a table is read twice: write it to a file first")
    if encoding is not None and not _is_encoding(encoding):
        raise TableError(path, f"encoding must be one that Python knows, such as utf-8 or cp1252, got {encoding!r}")
    if decimal not in ("", ".", ","):
        raise ValueError(f"decimal must be '', '.' or ',', got {decimal!r}")
    if path.name.lower().endswith((".parquet", ".pq", ".parquet.gz", ".pq.gz")):
        return _read_parquet(path, decimal)
    facts = scan(path)
    dialect = find_dialect(path, facts, separator, header, encoding, decimal)
    try:
        return _read_text(path, facts, dialect, skip_broken, text)
    except UnicodeDecodeError:
        if encoding is not None:
            raise TableError(path, f"is not written in {encoding!r}; pass another encoding") from None
        dialect = replace(dialect, encoding="cp1252")
        warn(f"{path}: is not UTF-8; read as Windows-1252. Pass the encoding if letters look wrong.")
        return _read_text(path, facts, dialect, skip_broken, text)


def text_rows(table: LoadedTable) -> Iterator[list[str]]:
    """The records of a text file as they are written: the header first, then the rows of ``table.frame``."""
    assert table.path is not None
    width = table.lines.width
    found = (cells for _, cells in records(table.path, table.dialect) if len(cells) == width)
    return ([unguarded(cell) for cell in cells] for cells in found)


def _read_text(path: Path, facts: FileFacts, dialect: Dialect, skip_broken: bool, text: Collection[str]) -> LoadedTable:
    names, skip = column_names(path, dialect)
    if facts.quotes % 2:
        find_open_quote(path, dialect)
    text = {name for name in names if unguarded(name) in text}
    found, broken = _arrow(path, names, skip, facts, dialect, text)
    codes = zero_led(path, names, skip, facts, dialect, found.integers - text)
    if codes:
        found, broken = _arrow(path, names, skip, facts, dialect, text | codes)
    if broken:
        report_broken(path, dialect, len(names), skip_broken)
    if not found.n:
        raise TableError(path, "has column names but no rows" if dialect.header else "has no rows")
    simple = not broken and facts.lines == found.n + skip
    lines = Lines(path, dialect, len(names), skip + 1 if simple else None)
    frame = found.beside(_frame(_without_marks(found.table)))
    return LoadedTable(frame, path, "csv", lines, dialect)


def _without_marks(table: Any) -> Any:
    """Texts as they were before they were made safe for spreadsheets."""
    import pyarrow as pa

    for position, kind in enumerate(table.schema.types):
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            column = unguarded_column(table.column(position))
            table = table.set_column(position, table.schema.names[position], column)
    return table.rename_columns([unguarded(name) for name in table.schema.names])


def _arrow(
    path: Path, names: list[str], skip: int, facts: FileFacts, dialect: Dialect, text: Collection[str]
) -> tuple[ReadColumns, int]:
    """The columns of the file, and how many rows did not fit."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    def read(streaming: bool) -> tuple[ReadColumns, int]:
        broken: list[None] = []
        reading, converting = _reading(names, skip, dialect)

        def skip_row(_: Any) -> str:
            broken.append(None)
            return "skip"

        parsing = arrow_csv.ParseOptions(
            delimiter=dialect.separator,
            newlines_in_values=facts.quotes > 0,
            invalid_row_handler=skip_row,
        )
        converting.column_types = dict.fromkeys(text, pa.string())
        if streaming:
            reading.block_size = min(PIECE, STREAMED // 4)
            numbers = number_types(first_types(path, reading, parsing, converting))
            converting.column_types = {**numbers, **dict.fromkeys(text, pa.string())}
            broken.clear()
        with pa.input_stream(str(path), compression="detect") as stream:
            if streaming:
                with arrow_csv.open_csv(stream, reading, parsing, converting) as batches:
                    return fill(batches, facts.lines), len(broken)
            return ReadColumns.of(arrow_csv.read_csv(stream, reading, parsing, converting)), len(broken)

    try:
        found, broken = _read_within(read, facts)
    except UnicodeDecodeError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        if "straddling" in str(error):
            what = f"a row is longer than {PIECE >> 20} MB, as rows of tables are not"
            raise TableError(path, what, longest_line(path, dialect)) from error
        raise TableError(path, f"cannot be read as a table: {error}") from error
    if any(pa.types.is_binary(kind) for kind in found.table.schema.types):
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "invalid bytes")
    return found, broken


def first_types(path: Path, reading: Any, parsing: Any, converting: Any) -> dict[str, Any]:
    """Return the types of the columns as the beginning of a file tells them."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    with (
        pa.input_stream(str(path), compression="detect") as stream,
        arrow_csv.open_csv(stream, reading, parsing, converting) as batches,
    ):
        return {one.name: one.type for one in batches.schema}


def number_types(types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of numbers: a type that is told takes a third less time to read than one Arrow has found."""
    import pyarrow as pa

    return {name: kind for name, kind in types.items() if pa.types.is_floating(kind) or pa.types.is_integer(kind)}


def zero_led(
    path: Path, names: list[str], skip: int, facts: FileFacts, dialect: Dialect, integers: Collection[str]
) -> set[str]:
    """Return the columns of digits whose leading zeros tell that they are codes, read as text once more."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    if not integers or not (facts.zeros or dialect.separator not in SEPARATORS):
        return set()
    reading, converting = _reading(names, skip, dialect)
    reading.block_size = max(facts.size // 64, PIECE)
    converting.include_columns = [name for name in names if name in integers]
    converting.column_types = dict.fromkeys(converting.include_columns, pa.string())
    parsing = arrow_csv.ParseOptions(
        delimiter=dialect.separator, newlines_in_values=facts.quotes > 0, invalid_row_handler=lambda _: "skip"
    )
    with pa.input_stream(str(path), compression="detect") as stream:
        table = arrow_csv.read_csv(stream, reading, parsing, converting)
    return {name for name in converting.include_columns if are_codes(CellLevels.of(table.column(name).to_pandas()))}


def _reading(names: list[str], skip: int, dialect: Dialect) -> tuple[Any, Any]:
    """How Arrow is to read the text, and what it takes for a value."""
    from pyarrow import csv as arrow_csv

    codec = {"utf-8-sig": "utf-8"}.get(dialect.encoding, dialect.encoding)
    reading = arrow_csv.ReadOptions(column_names=names, skip_rows=skip, encoding=codec)
    converting = arrow_csv.ConvertOptions(
        null_values=NULLS,
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
        true_values=[],
        false_values=[],
        decimal_point=dialect.decimal or ".",
    )
    return reading, converting


def _read_within(read: Callable[[bool], tuple[ReadColumns, int]], facts: FileFacts) -> tuple[ReadColumns, int]:
    """Read a large file piece by piece, which holds no text in memory, if its beginning tells the types truly."""
    import pyarrow as pa

    if facts.size >= STREAMED:
        with suppress(pa.ArrowInvalid):
            return read(True)
    return read(False)


def _frame(table: Any) -> pd.DataFrame:
    """Arrow to pandas without a second copy: each column's memory is given up as soon as it is converted."""
    import pandas as pd
    import pyarrow as pa

    for position, kind in enumerate(table.schema.types):
        if pa.types.is_time(kind):
            column = table.column(position).cast(pa.string())
            table = table.set_column(position, table.schema.names[position], column)
    frame = table.to_pandas(split_blocks=True, self_destruct=True, date_as_object=False)
    del table
    pa.default_memory_pool().release_unused()
    if not isinstance(frame.index, pd.RangeIndex):  # Parquet written by pandas may carry one
        frame = frame.reset_index()
    return frame


def _read_parquet(path: Path, decimal: str) -> LoadedTable:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        if path.suffix.lower() == ".gz":
            scan(path, text=False)
            with gzip.open(path) as stream:
                source: Any = pa.BufferReader(stream.read())
        else:
            source = path
        refuse_parquet_bomb(path, source)
        table = parquet.read_table(source)
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(path, f"cannot be read as Parquet: {error}") from error
    if not table.num_rows:
        raise TableError(path, "has no rows")
    return LoadedTable(_frame(table), path, "parquet", dialect=Dialect(decimal=decimal))


def _is_encoding(name: str) -> bool:
    try:
        return bool(codecs.lookup(name)._is_text_encoding)
    except (LookupError, ValueError):
        return False


def _absent(path: Path) -> str:
    import difflib

    folder = path.parent if path.parent.is_dir() else Path()
    near = difflib.get_close_matches(path.name, [p.name for p in folder.iterdir()], n=1)
    return "no such file" + (f"; did you mean {str(path.parent / near[0])!r}?" if near else "")


def _require(module: str) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise ImportError(f'reading tables needs {module}: pip install "selfpaced[io]"')
