"""Tables of any size in one file or many, read a batch at a time and as often as asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..fingerprint import mixed
from .bombs import refuse_parquet_bomb
from .errors import TableError
from .reading import _frame, _reading, _require, _without_marks, first_types, number_types, zero_led
from .text import Dialect, FileFacts, column_names, find_dialect, find_open_quote, report_broken, scan

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableBatches", "matching_files"]

_KEY = "\0key"
PIECE = 1 << 22  # cost: bytes of text that are read at a time; each becomes a batch


def matching_files(pattern: str) -> list[Path]:
    """Files by a name or a pattern (``data/*.parquet``), in the order of their names."""
    found = [Path(path) for path in sorted(glob(pattern, recursive=True)) if Path(path).is_file()]
    if not found and Path(pattern).is_file():
        return [Path(pattern)]
    if not found:
        raise TableError(
            pattern, f"no file matches this pattern in {str(Path(pattern).parent)!r}; is the folder right?"
        )
    return found


def _kind(kind: Any) -> str:
    """What a type of Arrow holds, in a word; empty if nothing."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        return ""
    if pa.types.is_boolean(kind):
        return "true and false"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return "dates" if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else str(kind)


class TableBatches:
    """A table in files, as frames of some rows each; it may be gone through more than once.

    The types of text files are those of their first pieces, and the same for all files: a column that holds numbers in
    one text file and words in another is text. If a later piece does not agree, everything is read as text, which
    `TableEncoder` makes numbers of. Parquet files state their types, which must be of the same kind.

    Parameters
    ----------
    paths : sequence of Path
        Parquet files (``.parquet``, ``.pq``) or text files; with the same columns.
    rows : int
        Rows of a batch of Parquet, at most.
    separator, header, encoding, skip_broken, decimal
        As in `read_table`.

    Attributes
    ----------
    columns : list of str
        Their names.
    decimal : {"", ".", ","}
        Decimal sign of numbers that could be read either way, one for all files; empty if nothing tells.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        rows: int = 1 << 16,
        separator: str | None = None,
        header: bool = True,
        encoding: str | None = None,
        skip_broken: bool = False,
        decimal: str = "",
    ) -> None:
        _require("pandas")
        _require("pyarrow")
        self.paths, self.rows, self.skip_broken = list(paths), rows, skip_broken
        self.parquet = [path.name.lower().endswith((".parquet", ".pq")) for path in self.paths]
        self.as_text = False
        self._text: dict[Path, tuple[FileFacts, Dialect, list[str], int]] = {}
        for path, parquet in zip(self.paths, self.parquet, strict=True):
            if not parquet:
                facts = scan(path)
                dialect = find_dialect(path, facts, separator, header, encoding, decimal)
                if facts.quotes % 2:
                    find_open_quote(path, dialect)
                self._text[path] = (facts, dialect, *column_names(path, dialect))
            else:
                refuse_parquet_bomb(path, path)
        signs = {dialect.decimal for _, dialect, _, _ in self._text.values()} - {""}
        self.decimal = decimal or (signs.pop() if len(signs) == 1 else "")
        self._types: dict[str, Any] | None = None
        self.columns = self._names(self.paths[0])
        for path in self.paths:
            own = self._names(path)
            if set(own) != set(self.columns):
                lacking = [name for name in self.columns if name not in own]
                if set(own) <= set(self.columns):
                    raise TableError(path, f"lacks the column {lacking[0]!r} of {self.paths[0]}")
                raise TableError(path, f"has other columns than {self.paths[0]}: {own!r}")
        self._check_kinds()

    def _check_kinds(self) -> None:
        """Refuse Parquet files that disagree on what a column holds."""
        from pyarrow import parquet

        known: dict[str, tuple[str, Path]] = {}
        for path in (path for path, packed in zip(self.paths, self.parquet, strict=True) if packed):
            for one in parquet.read_schema(path):
                kind = _kind(one.type)
                other, first = known.setdefault(one.name, (kind, path)) if kind else (kind, path)
                if other != kind:
                    raise TableError(path, f"the column {one.name!r} holds {kind} here and {other} in {first}")

    def _names(self, path: Path) -> list[str]:
        from pyarrow import parquet

        return self._text[path][2] if path in self._text else list(parquet.read_schema(path).names)

    def __iter__(self) -> Iterator[pd.DataFrame]:
        """Every batch, in the order of the rows."""
        for path in self.paths:
            batches = self._text_batches(path) if path in self._text else self._parquet_batches(path)
            for batch in batches:
                if len(batch):
                    yield batch

    def sample(self, count: int, seed: int = 0) -> tuple[pd.DataFrame, int]:
        """Random rows, in their order, and how many there are in all; every row where there are no more."""
        import pyarrow as pa

        try:
            return self._sample(count, seed)
        except pa.ArrowInvalid:
            if self.as_text or not self._text:
                raise
            self.as_text = True
            return self._sample(count, seed)

    def _sample(self, count: int, seed: int) -> tuple[pd.DataFrame, int]:
        """The rows whose numbers, scattered by the seed, are the smallest."""
        import pandas as pd

        kept: list[pd.DataFrame] = []
        limit, n = np.uint64(2**64 - 1), 0
        for batch in self:
            keys = mixed(np.arange(n, n + len(batch), dtype=np.uint64), seed)
            chosen = keys <= limit
            kept.append(batch[chosen].assign(**{_KEY: keys[chosen]}))
            n += len(batch)
            if sum(map(len, kept)) > 2 * count:
                merged = pd.concat(kept, ignore_index=True)
                limit = np.partition(merged[_KEY].to_numpy(), count - 1)[count - 1]
                kept = [merged[merged[_KEY] <= limit]]
        if not n:
            raise TableError(self.paths[0], "has no rows")
        merged = pd.concat(kept, ignore_index=True)
        if len(merged) > count:
            limit = np.partition(merged[_KEY].to_numpy(), count - 1)[count - 1]
            merged = merged[merged[_KEY] <= limit]
        return merged.drop(columns=_KEY).reset_index(drop=True), n

    def _parquet_batches(self, path: Path) -> Iterator[pd.DataFrame]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(path, memory_map=True, pre_buffer=False) as file:
                for batch in file.iter_batches(batch_size=self.rows, columns=self.columns, use_threads=False):
                    yield _frame(pa.Table.from_batches([batch]))
        except pa.ArrowInvalid as error:
            raise TableError(path, f"cannot be read as Parquet: {error}") from error

    def _options(self, path: Path, skip_row: Any) -> tuple[Any, Any, Any]:
        """How Arrow reads one of the text files."""
        from pyarrow import csv as arrow_csv

        facts, dialect, names, skip = self._text[path]
        reading, converting = _reading(names, skip, replace(dialect, decimal=self.decimal))
        reading.block_size = PIECE
        quoted = facts.quotes > 0
        parsing = arrow_csv.ParseOptions(
            delimiter=dialect.separator, newlines_in_values=quoted, invalid_row_handler=skip_row
        )
        return reading, parsing, converting

    def _column_types(self) -> dict[str, Any]:
        """The types of columns, one for all text files: numbers where every file has them, else text."""
        import pyarrow as pa

        if self._types is None:
            files = {path: first_types(path, *self._options(path, lambda _: "skip")) for path in self._text}
            numbers = {path: number_types(types) for path, types in files.items()}
            words = {
                name
                for path, types in files.items()
                for name, kind in types.items()
                if name not in numbers[path] and not pa.types.is_null(kind)
            }
            for path, (facts, dialect, names, skip) in self._text.items():
                integers = [name for name, kind in numbers[path].items() if pa.types.is_integer(kind)]
                words |= zero_led(path, names, skip, facts, dialect, set(integers) - words)
            found = {name: kind for types in numbers.values() for name, kind in types.items()}
            mixed_kinds = {name: pa.string() for name in words if name in found}
            floats = {n: t for types in numbers.values() for n, t in types.items() if pa.types.is_floating(t)}
            self._types = {**found, **floats, **mixed_kinds}
        return self._types

    def _text_batches(self, path: Path) -> Iterator[pd.DataFrame]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        _, dialect, names, _ = self._text[path]
        broken: list[None] = []

        def skip_row(_: Any) -> str:
            broken.append(None)
            return "skip"

        reading, parsing, converting = self._options(path, skip_row)
        if self.as_text:
            converting.column_types = dict.fromkeys(names, pa.string())
        else:
            converting.column_types = self._column_types()
        with (
            pa.input_stream(str(path), compression="detect") as stream,
            arrow_csv.open_csv(stream, reading, parsing, converting) as batches,
        ):
            for batch in batches:
                table = pa.Table.from_batches([batch])
                if any(pa.types.is_binary(kind) for kind in table.schema.types):
                    raise TableError(path, f"is not written in {dialect.encoding}: give its --encoding")
                yield _frame(_without_marks(table.select(self.columns)))
        if broken:
            report_broken(path, dialect, len(names), self.skip_broken)
