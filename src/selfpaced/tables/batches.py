"""Tables of any size in one file or many, read a batch at a time and as often as asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..fingerprint import mixed
from .reading import is_parquet, require_arrow
from .text import TableError, TextFile, to_frame, unguarded_table

if TYPE_CHECKING:
    import pandas as pd

_KEY = "\0key"


def matching_files(pattern: str) -> list[Path]:
    """Return files by a name or a pattern (``data/*.parquet``), in the order of their names."""
    found = [Path(path) for path in sorted(glob(pattern, recursive=True)) if Path(path).is_file()]
    if not found and Path(pattern).is_file():
        return [Path(pattern)]
    if not found:
        where = str(Path(pattern).parent)
        raise TableError(pattern, f"no file matches this pattern in {where!r}; is the folder right?")
    return found


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
        require_arrow()
        self.paths, self.rows, self.skip_broken, self.as_text = list(paths), rows, skip_broken, False
        self._text = {
            path: TextFile.open(path, separator, header, encoding, decimal)
            for path in self.paths
            if not is_parquet(path)
        }
        signs = {file.dialect.decimal for file in self._text.values()} - {""}
        self.decimal = decimal or (signs.pop() if len(signs) == 1 else "")
        self._types: dict[str, Any] | None = None
        schemas = {path: self._schema(path) for path in self.paths}
        self.columns = list(schemas[self.paths[0]].names)
        for path, schema in schemas.items():
            lacking = [name for name in self.columns if name not in schema.names]
            if set(schema.names) < set(self.columns):
                raise TableError(path, f"lacks the column {lacking[0]!r} of {self.paths[0]}")
            if set(schema.names) != set(self.columns):
                raise TableError(path, f"has other columns than {self.paths[0]}: {schema.names!r}")

    def _schema(self, path: Path) -> Any:
        """Return the names and types of a file; Parquet files must agree on what a column holds."""
        import pyarrow as pa
        from pyarrow import parquet

        if path in self._text:
            return pa.schema([(name, pa.null()) for name in self._text[path].names])
        try:
            schema = parquet.read_schema(path)
            first = next((one for one in self.paths if one not in self._text), path)
            if first != path:
                pa.unify_schemas([parquet.read_schema(first), schema], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise TableError(path, f"holds other kinds of cells than {first}: {error}") from error
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(path, f"cannot be read as Parquet: {error}") from error
        return schema

    def __iter__(self) -> Iterator[pd.DataFrame]:
        """Yield every batch, in the order of the rows."""
        for path in self.paths:
            batches = self._text_batches(path) if path in self._text else self._parquet_batches(path)
            for batch in batches:
                if len(batch):
                    yield batch

    def sample(self, count: int, seed: int = 0) -> tuple[pd.DataFrame, int]:
        """Return random rows, in their order, and how many there are in all; every row if there are no more."""
        import pyarrow as pa

        try:
            return self._sample(count, seed)
        except pa.ArrowInvalid:
            if self.as_text or not self._text:
                raise
            self.as_text = True
            return self._sample(count, seed)

    def _sample(self, count: int, seed: int) -> tuple[pd.DataFrame, int]:
        """Return the rows whose numbers, scattered by the seed, are the smallest."""
        import pandas as pd

        kept: list[pd.DataFrame] = []
        limit, n = np.uint64(2**64 - 1), 0
        for batch in self:
            keys = mixed(np.arange(n, n + len(batch), dtype=np.uint64), seed)
            chosen = keys <= limit
            kept.append(batch[chosen].assign(**{_KEY: keys[chosen]}))
            n += len(batch)
            if sum(map(len, kept)) > 2 * count:
                kept = [_smallest(kept, count)]
                limit = kept[0][_KEY].max()
        if not n:
            raise TableError(self.paths[0], "has no rows")
        merged = _smallest(kept, count) if sum(map(len, kept)) > count else pd.concat(kept, ignore_index=True)
        return merged.drop(columns=_KEY).reset_index(drop=True), n

    def _parquet_batches(self, path: Path) -> Iterator[pd.DataFrame]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(path, memory_map=True, pre_buffer=False) as file:
                for batch in file.iter_batches(batch_size=self.rows, columns=self.columns, use_threads=False):
                    yield to_frame(pa.Table.from_batches([batch]))
        except pa.ArrowInvalid as error:
            raise TableError(path, f"cannot be read as Parquet: {error}") from error

    def _column_types(self) -> dict[str, Any]:
        """Return the types of columns, one for all text files: numbers if every file has them, else text."""
        import pyarrow as pa

        if self._types is None:
            numbers, words = dict[str, Any](), set[str]()
            for file in self._text.values():
                types = self._first_types(file)
                whole = {name for name, kind in types.items() if pa.types.is_integer(kind)}
                floats = {name for name, kind in types.items() if pa.types.is_floating(kind)}
                numbers |= {name: pa.int64() for name in whole - set(numbers)} | dict.fromkeys(floats, pa.float64())
                words |= {name for name, kind in types.items() if not pa.types.is_null(kind)} - whole - floats
                words |= file.codes(whole - words)
            self._types = {name: pa.string() if name in words else kind for name, kind in numbers.items()}
        return self._types

    def _first_types(self, file: TextFile) -> dict[str, Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        with (
            pa.input_stream(str(file.path), compression="detect") as stream,
            arrow_csv.open_csv(stream, *file.options([], self.decimal)) as batches,
        ):
            return {one.name: one.type for one in batches.schema}

    def _text_batches(self, path: Path) -> Iterator[pd.DataFrame]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        file, broken = self._text[path], list[Any]()
        reading, parsing, converting = file.options(broken, self.decimal)
        text = dict.fromkeys(file.names, pa.string())
        converting.column_types = text if self.as_text else self._column_types()
        with (
            pa.input_stream(str(path), compression="detect") as stream,
            arrow_csv.open_csv(stream, reading, parsing, converting) as batches,
        ):
            for batch in batches:
                table = pa.Table.from_batches([batch])
                if any(pa.types.is_binary(kind) for kind in table.schema.types):
                    raise TableError(path, f"is not written in {file.dialect.encoding}: give its --encoding")
                yield to_frame(unguarded_table(table.select(self.columns)))
        if broken:
            file.refuse_broken(self.skip_broken)


def _smallest(kept: list[pd.DataFrame], count: int) -> pd.DataFrame:
    import pandas as pd

    merged = pd.concat(kept, ignore_index=True)
    limit = np.partition(merged[_KEY].to_numpy(), count - 1)[count - 1]
    return merged[merged[_KEY] <= limit]
