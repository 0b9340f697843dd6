"""Tables of any size in one file or many, read a batch at a time and as often as asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..fingerprint import mixed
from .cells import CellLevels, are_codes
from .reading import is_parquet, require_arrow
from .text import TableError, TextFile, to_frame

if TYPE_CHECKING:
    import pandas as pd

_KEY = "\0key"  # convention: a column that no file has


def matching_files(pattern: str) -> list[Path]:
    """Return files by a name or a pattern (``data/*.parquet``), in the order of their names."""
    if Path(pattern).is_file():
        return [Path(pattern)]
    found = [Path(path) for path in sorted(glob(pattern, recursive=True)) if Path(path).is_file()]
    if not found:
        where = str(Path(pattern).parent)
        raise TableError(pattern, f"no file matches this pattern in {where!r}; is the folder right?")
    return found


class TableBatches:
    """A table in files, as frames of some rows each; it may be gone through more than once.

    The types of text files are those of their first rows, and the same for all files: a column that holds numbers in
    one file and words in another is text. If later rows do not agree, `sample` makes all columns text, which
    `TableEncoder` makes numbers of. Parquet files state their types, which must be of the same kind.

    Parameters
    ----------
    paths : sequence of Path
        Parquet files (``.parquet``, ``.pq``) or text files, with the same columns.
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
        self.paths, self.rows, self.skip_broken, self.decimal = list(paths), rows, skip_broken, decimal
        if len({is_parquet(path) for path in self.paths}) > 1:
            raise TableError(self.paths[0], "is of another format than other files; read Parquet and text apart")
        written = (separator, header, encoding, decimal)
        files = [_open_text(path, *written) for path in self.paths if not is_parquet(path)]
        signs = {file.dialect.decimal for file in files} - {""}
        if len(signs) == 1:
            self.decimal = signs.pop()
        self._text = [replace(file, dialect=replace(file.dialect, decimal=self.decimal)) for file in files]
        schemas = [_text_schema(file) for file in self._text] or _parquet_schemas(self.paths)
        self.columns = list(schemas[0].names)
        for path, schema in zip(self.paths, schemas, strict=True):
            lacking = [name for name in self.columns if name not in schema.names]
            if set(schema.names) < set(self.columns):
                raise TableError(path, f"lacks the column {lacking[0]!r} of {self.paths[0]}")
            if set(schema.names) != set(self.columns):
                raise TableError(path, f"has other columns than {self.paths[0]}: {schema.names!r}")
        self._types = {name: _common_type([schema.field(name).type for schema in schemas]) for name in self.columns}

    def __iter__(self) -> Iterator[pd.DataFrame]:
        """Yield every batch, in the order of the rows."""
        parts = map(self._text_batches, self._text) if self._text else map(self._parquet_batches, self.paths)
        for part in parts:
            for batch in part:
                if batch.num_rows:
                    yield to_frame(batch)

    def sample(self, count: int, seed: int = 0) -> tuple[pd.DataFrame, int]:
        """Return random rows, in their order, and how many there are in all; every row if there are no more.

        This settles the types of text: whole numbers are text if leading zeros in the sample tell that they are codes.
        """
        import pyarrow as pa

        whole = [name for name, kind in self._types.items() if pa.types.is_integer(kind)]
        try:
            if whole and any(file.leading_zeros() for file in self._text):
                self._types |= dict.fromkeys(whole, pa.string())
                frame, _ = self._sample(count, seed)
                self._types |= {name: pa.int64() for name in whole if not are_codes(CellLevels.of(frame[name]))}
            return self._sample(count, seed)
        except pa.ArrowInvalid:
            self._types = dict.fromkeys(self.columns, pa.string())
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

    def _parquet_batches(self, path: Path) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(path, memory_map=True, pre_buffer=False) as file:
                for batch in file.iter_batches(batch_size=self.rows, columns=self.columns, use_threads=False):
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(path, f"cannot be read as Parquet: {error}") from error

    def _text_batches(self, file: TextFile) -> Iterator[Any]:
        import pyarrow as pa

        broken = list[Any]()
        try:
            with file.batches(broken, self._types) as batches:
                for batch in batches:
                    yield pa.Table.from_batches([batch]).select(self.columns)
        except pa.ArrowInvalid as error:
            if not all(map(pa.types.is_string, self._types.values())):
                raise  # `sample` tries again with text
            raise TableError(file.path, f"cannot be read as text in {file.dialect.encoding}: {error}") from error
        except UnicodeDecodeError:
            raise _other_encoding(file.path, file.dialect.encoding) from None
        if broken:
            file.refuse_broken(self.skip_broken)


def _open_text(path: Path, separator: str | None, header: bool, encoding: str | None, decimal: str) -> TextFile:
    try:
        return TextFile.open(path, separator, header, encoding, decimal)
    except UnicodeDecodeError:
        raise _other_encoding(path, encoding or "utf-8") from None


def _other_encoding(path: Path, encoding: str) -> TableError:
    return TableError(path, f"is not written in {encoding}: give its --encoding")


def _text_schema(file: TextFile) -> Any:
    """Return the names and types of the first rows."""
    import pyarrow as pa

    try:
        with file.batches([], {}) as batches:
            schema = batches.schema
    except UnicodeDecodeError:
        raise _other_encoding(file.path, file.dialect.encoding) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(file.path, f"cannot be read as a table: {error}") from error
    if any(map(pa.types.is_binary, schema.types)):
        raise _other_encoding(file.path, file.dialect.encoding)
    return schema


def _parquet_schemas(paths: Sequence[Path]) -> list[Any]:
    """Return the names and types of files that agree on what a column holds."""
    import pyarrow as pa
    from pyarrow import parquet

    found: list[Any] = []
    for path in paths:
        try:
            found.append(parquet.read_schema(path))
            pa.unify_schemas([found[0], found[-1]], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise TableError(path, f"holds other kinds of cells than {paths[0]}: {error}") from error
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(path, f"cannot be read as Parquet: {error}") from error
    return found


def _common_type(kinds: Sequence[Any]) -> Any:
    """Return numbers if every file begins with them or with gaps, else text."""
    import pyarrow as pa

    known = set(kinds) - {pa.null()}
    if not known or not known <= {pa.int64(), pa.float64()}:
        return pa.string()
    return pa.float64() if pa.float64() in known else pa.int64()


def _smallest(kept: list[pd.DataFrame], count: int) -> pd.DataFrame:
    import pandas as pd

    merged = pd.concat(kept, ignore_index=True)
    limit = np.partition(merged[_KEY].to_numpy(), count - 1)[count - 1]
    return merged[merged[_KEY] <= limit]
