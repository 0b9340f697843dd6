"""Text files as they are written: lines, quotes, separators, encodings."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, BinaryIO, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bombs import refuse_bomb
from .cells import separator_of
from .errors import TableError, TableWarning

SEPARATORS = (",", ";", "\t", "|")
_BLOCK = 1 << 22  # cost: bytes read at a time, 4 MB
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_ZEROS = re.compile(rb'[,;\t|"\n]0\d')
_DIGITS = re.compile(r"[-+]?(\d[\d.,]*|[.,]\d+)(?:[eE][-+]?\d+)?")
_NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; the decimal sign is empty if nothing tells it."""

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = ""
    header: bool = True
    newline: str = "\n"


@dataclass(frozen=True)
class FileFacts:
    """What one pass over the bytes tells: number of lines, quotes and bytes, the beginning, and leading zeros."""

    lines: int
    quotes: int
    size: int
    head: bytes
    zeros: bool = False


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
        starts = (line for line, cells in records(self.path, self.dialect) if len(cells) == self.width)
        if self.dialect.header:
            next(starts, None)
        return np.fromiter(starts, dtype=np.int64)

    def of(self, rows: ArrayLike) -> NDArray[np.int64] | None:
        """Lines, from 1, of data rows counted from 0; None where there are no lines."""
        rows = np.asarray(rows, dtype=np.int64)
        if self.path is None:
            return None
        return rows + self.first if self.first is not None else self._starts[rows]


def scan(path: Path, *, text: bool = True) -> FileFacts:
    """One pass over the bytes."""
    newlines = returns = quotes = size = 0
    head, last, packed, zeros = b"", b"", path.suffix.lower() == ".gz", False
    try:
        with _binary(path) as stream:
            while block := stream.read(_BLOCK):
                newlines += block.count(b"\n")
                returns += block.count(b"\r") if not newlines else 0
                quotes += block.count(b'"')
                size += len(block)
                if packed:
                    refuse_bomb(path, size)
                zeros = zeros or _ZEROS.search(block) is not None or _ZEROS.search(last + block[:2]) is not None
                head, last = head or block[: 1 << 16], block[-2:]
    except (EOFError, gzip.BadGzipFile, OSError, zlib.error) as error:
        raise TableError(path, f"cannot be read: {error}") from error
    if not head.strip():
        raise TableError(path, "is empty")
    if text and b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(path, "is not text; CSV, TSV and Parquet (.parquet) can be read")
    count = newlines or returns
    zeros = zeros or b"\0" in head  # UTF-16 has other bytes between them
    return FileFacts(count + (last[-1:] not in (b"\n", b"\r")), quotes, size, head, zeros)


def find_dialect(
    path: Path, facts: FileFacts, separator: str | None, header: bool, encoding: str | None, decimal: str = ""
) -> Dialect:
    if encoding is None:
        encoding = next((name for mark, name in _BOMS.items() if facts.head.startswith(mark)), "utf-8")
    text = facts.head.decode(encoding, errors="replace")
    head = text.splitlines()[:50]
    if separator is None:
        plain = re.sub(r'"[^"]*"', "", next((line for line in head if line.strip()), ""))
        counts = {sign: plain.count(sign) for sign in SEPARATORS}
        best = max(counts, key=lambda sign: counts[sign])
        tab = path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
        separator = "\t" if tab and counts["\t"] else best if counts[best] else ","
    if len(separator) != 1 or separator in '"\r\n':
        raise ValueError(f"separator must be one character, no quote and no line break, got {separator!r}")
    newline = "\r\n" if "\r\n" in text else "\n"
    return Dialect(separator, encoding, decimal or _decimal(head[1:], separator), header, newline)


def _decimal(lines: list[str], separator: str) -> str:
    """Return the decimal sign of the numbers in some lines; nothing if there is none, or both."""
    cells = {cell.strip() for record in csv.reader(lines, delimiter=separator) for cell in record}
    found = {separator_of(digits[1]) for cell in cells if (digits := _DIGITS.fullmatch(cell))} - {""}
    return found.pop() if len(found) == 1 else ""


def column_names(path: Path, dialect: Dialect) -> tuple[list[str], int]:
    """SchemaColumn names, unique and not empty, and how many lines they take."""
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
        warn(f"{path}: the column name {twice[0]!r} appears more than once; later ones get a number")
    return _unique(names), end


def _unique(names: list[str]) -> list[str]:
    taken, seen, result = set(names), set(), []
    for name in names:
        if name in seen:
            number = 1
            while f"{name}.{number}" in taken:
                number += 1
            name = f"{name}.{number}"
            taken.add(name)
        seen.add(name)
        result.append(name)
    return result


def report_broken(path: Path, dialect: Dialect, width: int, skip: bool) -> None:
    """Find the lines of rows that do not fit: an error for the first, or one warning for all."""
    broken = [(line, cells) for line, cells in records(path, dialect) if len(cells) != width]
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
    warn(f"{path}: {len(broken):,} broken rows left out (lines {lines})")


def find_open_quote(path: Path, dialect: Dialect) -> None:
    """Name the line of a quote that is never closed: it would swallow the rest of the file."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    begin = 1
    with _text(path, dialect) as stream:
        reader = csv.reader(stream, delimiter=dialect.separator, strict=True)
        try:
            for _ in reader:
                begin = reader.line_num + 1
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise TableError(path, "a quote is opened here and never closed", begin) from None


def longest_line(path: Path, dialect: Dialect) -> int:
    """The line on which the longest record begins."""
    return max(records(path, dialect), key=lambda record: sum(map(len, record[1])))[0]


def records(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
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
    return io.TextIOWrapper(_binary(path), encoding=dialect.encoding, newline="")


def _binary(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else open(path, "rb")


def warn(message: str) -> None:
    warnings.warn(message, TableWarning, stacklevel=4)
