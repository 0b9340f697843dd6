"""Text files as they are written: lines, quotes, separators, encodings; and what is wrong with a file, and where."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import os
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from ..formatting import plural
from .cells import CellLevels, are_codes, separator_of

if TYPE_CHECKING:
    import pandas as pd

# What counts as "no value" in a text file. "None" and "-" are left to the column types: they are also words.
NULLS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A", "<NA>", "?"]
BYTES_AT_ONCE = 1 << 22  # cost: bytes of text that are looked through at a time
CACHED = 1 << 18  # cost: bytes of text that are parsed at a time, which stay in cache (benchmarks/scale.py)
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_ZEROS = re.compile(rb'[,;\t|"\n]0\d')
_NUMBER = re.compile(r"\s*[-+]?(\d[\d.,]*|[.,]\d+)(?:[eE][-+]?\d+)?\s*")


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


def suggestion(name: str, known: Iterable[Any], which: str = "its columns are") -> str:
    """Return ``"; did you mean ...?"`` for a name that is nearly one of the known ones, else the known ones.

    >>> suggestion("lable", ["label", "age"])
    "; did you mean 'label'?"
    """
    names = [str(other) for other in known]
    folded = {other.casefold().strip(): other for other in names}
    near = difflib.get_close_matches(str(name).casefold().strip(), list(folded), n=1, cutoff=0.5)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; {which} {shown}"


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; the decimal sign is empty if nothing tells it."""

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = ""
    header: bool = True
    newline: str = "\n"


@dataclass(frozen=True)
class TextFile:
    """A text file as one pass over its bytes tells: how it is written, names, lines, quotes."""

    path: Path
    dialect: Dialect
    names: list[str]
    skip: int
    lines: int
    quoted: bool

    @classmethod
    def open(cls, path: Path, separator: str | None, header: bool, encoding: str | None, decimal: str) -> TextFile:
        """Look through a file."""
        _check_encoding(path, encoding)
        if decimal not in ("", ".", ","):
            raise ValueError(f"decimal must be '', '.' or ',', got {decimal!r}")
        lines = quotes = 0
        head, last = b"", b""
        try:
            with _binary(path) as stream:
                while block := stream.read(BYTES_AT_ONCE):
                    lines += block.count(b"\n")
                    quotes += block.count(b'"')
                    head, last = head or block[: 1 << 16], block[-1:]
        except (EOFError, OSError, zlib.error) as error:
            raise TableError(path, f"cannot be read: {error}") from error
        if not head.strip():
            raise TableError(path, "is empty")
        wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
        if b"\0" in head and not wide:
            excel = " (an Excel workbook? save it as CSV)" * head.startswith((b"PK", b"\xd0\xcf\x11\xe0"))
            raise TableError(path, f"is not text{excel}; CSV, TSV and Parquet (.parquet) can be read")
        dialect = _dialect(path, head, separator, header, encoding, decimal)
        names, skip = _column_names(path, dialect)
        if quotes % 2:
            for _ in records(path, dialect, strict=True):
                pass
        return cls(path, dialect, names, skip, lines + (last != b"\n"), quotes > 0)

    def _options(self, broken: list[Any], types: dict[str, Any], only: Collection[str] = ()) -> tuple[Any, Any, Any]:
        """Return how Arrow is to read the file; rows that do not fit are added to ``broken``."""
        from pyarrow import csv as arrow_csv

        def skip_row(row: Any) -> str:
            broken.append(row)
            return "skip"

        codec = {"utf-8-sig": "utf-8"}.get(self.dialect.encoding, self.dialect.encoding)
        reading = arrow_csv.ReadOptions(
            column_names=self.names, skip_rows=self.skip, encoding=codec, block_size=CACHED, use_threads=False
        )
        parsing = arrow_csv.ParseOptions(
            delimiter=self.dialect.separator, newlines_in_values=self.quoted, invalid_row_handler=skip_row
        )
        converting = arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=list(only),
            null_values=NULLS,
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            true_values=[],
            false_values=[],
            decimal_point=self.dialect.decimal or ".",
        )
        return reading, parsing, converting

    def read(self, text: Collection[str], only: Collection[str] = ()) -> tuple[pd.DataFrame, int]:
        """Return the columns of the file, and how many rows did not fit."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        broken: list[Any] = []
        options = self._options(broken, dict.fromkeys(text, pa.string()), only)
        try:
            with pa.input_stream(str(self.path), compression="detect") as stream:
                table = arrow_csv.read_csv(stream, *options)
        except UnicodeDecodeError:
            raise
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(self.path, f"cannot be read as a table: {error}") from error
        if any(pa.types.is_binary(kind) for kind in table.schema.types):
            raise UnicodeDecodeError("utf-8", b"", 0, 1, "invalid bytes")
        return to_frame(table), len(broken)

    @contextmanager
    def batches(self, broken: list[Any], types: dict[str, Any]) -> Iterator[Any]:
        """Open the file to read it piece by piece; other columns have the types of the first piece."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        with (
            pa.input_stream(str(self.path), compression="detect") as stream,
            arrow_csv.open_csv(stream, *self._options(broken, types)) as batches,
        ):
            yield batches

    def codes(self, integers: Collection[str]) -> set[str]:
        """Return the columns of whole numbers whose leading zeros tell that they are codes."""
        if not integers or not self.leading_zeros():
            return set()
        frame, _ = self.read(integers, [name for name in self.names if name in integers])
        return {name for name in frame.columns if are_codes(CellLevels.of(frame[name]))}

    def leading_zeros(self) -> bool:
        """Return whether any field may begin with a zero and a digit."""
        if self.dialect.separator not in ",;\t|":
            return True
        last = b""
        with _binary(self.path) as stream:
            while block := stream.read(BYTES_AT_ONCE):
                if b"\0" in block or _ZEROS.search(block) or _ZEROS.search(last + block[:2]):  # UTF-16 has zero bytes
                    return True
                last = block[-2:]
        return False

    def refuse_broken(self, skip: bool) -> None:
        """Name the lines of rows that do not fit: an error for the first, or one warning for all."""
        width = len(self.names)
        broken = [(line, cells) for line, cells in records(self.path, self.dialect) if len(cells) != width]
        if skip:
            lines = ", ".join(str(line) for line, _ in broken[:5]) + (", ..." if len(broken) > 5 else "")
            warn(f"{self.path}: {len(broken):,} broken rows left out (lines {lines})")
            return
        line, cells = broken[0]
        if 2 * len(broken) > max(self.lines - self.skip, 10):
            what = f"the first line has {plural(width, 'field')}, but {plural(len(broken), 'row')} have {len(cells)}"
            raise TableError(self.path, f"{what}: is it a title? Remove the lines above the column names", self.skip)
        text = self.dialect.separator.join(cells)
        what = f"{len(cells)} field{'s' * (len(cells) != 1)}, where the header has {width}"
        if "\n" in text:
            what += "; a quote that is opened here is closed lines later or never"
        more = f" ({len(broken) - 1:,} more such rows)" if len(broken) > 1 else ""
        shown = text if len(text) <= 60 else text[:57] + "..."
        message = f"the row has {what}{more}: {shown!r}. Correct it, or leave such rows out with --skip-broken"
        raise TableError(self.path, message, line)


def _check_encoding(path: Path, encoding: str | None) -> None:
    try:
        "".encode(encoding or "utf-8")
    except LookupError:
        what = f"encoding must be one that Python knows, such as utf-8 or cp1252, got {encoding!r}"
        raise TableError(path, what) from None


def _dialect(path: Path, head: bytes, separator: str | None, header: bool, encoding: str | None, sign: str) -> Dialect:
    """Return how a file is written, from its beginning."""
    if encoding is None:
        encoding = next((name for mark, name in _BOMS.items() if head.startswith(mark)), "utf-8")
    text = head.decode(encoding, errors="replace")
    lines = text.splitlines()[:50]
    if separator is None:
        plain = re.sub(r'"[^"]*"', "", next((line for line in lines if line.strip()), ""))
        tab = path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) and "\t" in plain
        separator = "\t" if tab else max(",;\t|", key=plain.count)
    if len(separator) != 1 or separator in '"\r\n':
        raise ValueError(f"separator must be one character, no quote and no line break, got {separator!r}")
    cells = {cell.strip() for record in csv.reader(lines[1:], delimiter=separator) for cell in record}
    signs = {separator_of(number[1]) for cell in cells if (number := _NUMBER.fullmatch(cell))} - {""}
    decimal = sign or (signs.pop() if len(signs) == 1 else "")
    return Dialect(separator, encoding, decimal, header, "\r\n" if "\r\n" in text else "\n")


def _column_names(path: Path, dialect: Dialect) -> tuple[list[str], int]:
    """Return the column names, unique and not empty, and how many lines they take."""
    with _text(path, dialect) as stream:
        reader = csv.reader(stream, delimiter=dialect.separator)
        cells = next((record for record in reader if record), [])
        end = reader.line_num
    if not dialect.header:
        return [f"column_{i + 1}" for i in range(len(cells))], 0
    if cells and all(_NUMBER.fullmatch(cell) for cell in cells):
        what = "the first line holds numbers, not column names: say that there is no header (--no-header)"
        raise TableError(path, what, end)
    names = [cell.strip() or f"column_{i + 1}" for i, cell in enumerate(cells)]
    named = sum(map(bool, map(str.strip, cells)))
    if 2 * named < len(cells):
        what = f"{path}: the first line names {named} of {len(cells)} columns"
        warn(f"{what}: is it a title? Remove the lines above the header")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        warn(f"{path}: the column name {twice[0]!r} appears more than once; later ones get a number")
    taken, found = set(names), dict[str, None]()
    for name in names:
        number = 1
        while name in found or (number > 1 and name in taken):
            name, number = f"{name.rpartition('.')[0] if number > 1 else name}.{number}", number + 1
        found[name] = None
    return list(found), end


def records(path: Path, dialect: Dialect, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the line at which it begins, and the cells, of every record that is not blank."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with _text(path, dialect) as stream:
        reader = csv.reader(stream, delimiter=dialect.separator, strict=strict)
        begin = 1
        try:
            for record in reader:
                if record:
                    yield begin, record
                begin = reader.line_num + 1
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise TableError(path, "a quote is opened here and never closed", begin) from None


def _text(path: Path, dialect: Dialect) -> IO[str]:
    return io.TextIOWrapper(_binary(path), encoding=dialect.encoding, newline="")


def _binary(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else open(path, "rb")


def warn(message: str) -> None:
    warnings.warn(message, TableWarning, stacklevel=4)


def to_frame(table: Any) -> pd.DataFrame:
    """Return an Arrow table as a data frame; each column's memory is given up as soon as it is converted."""
    import pandas as pd
    import pyarrow as pa

    for position, kind in enumerate(table.schema.types):
        if pa.types.is_time(kind):
            column = table.column(position).cast(pa.string())
            table = table.set_column(position, table.schema.names[position], column)
    frame = table.to_pandas(split_blocks=True, self_destruct=True, use_threads=False, date_as_object=False)
    del table
    pa.default_memory_pool().release_unused()
    if not isinstance(frame.index, pd.RangeIndex):  # Parquet written by pandas may carry one
        frame = frame.reset_index()
    return frame


# ---------------------------------------------------------------------------------------------------- formulas
#
# A text that begins with =, +, - or @, also in its wide form or after a tab or the end of a line, is a formula to some
# spreadsheet. In our lists it has an apostrophe before it. Numbers and such a sign alone stay as they are. What has an
# apostrophe before the sign already gets a second one, so that a list is read back as it was.

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
