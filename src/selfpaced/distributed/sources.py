"""Tables that come in batches: from Arrow datasets, lazy frames, files and iterators to blocks of numbers.

A batch is anything with columns (a pandas or polars frame, an Arrow table or record batch), or a tuple of features,
labels or values and perhaps weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from ..fitting import is_dataset, reach
from ..parameters import one_kind
from .blocks import label_array
from .table import Array

LABELS_READ = 10_000  # cost: a noise model has a number for each pair of labels; more are probably values


@dataclass(frozen=True, eq=False)
class ReadRows:
    """Rows as they were read, with the number of the first."""

    X: Array
    y: Any
    weight: Array | None
    first: int
    names: Sequence[str] | None = None


def _is_files(X: Any) -> bool:
    """Whether it names files: a path, a pattern, or a list of paths."""
    if isinstance(X, str | Path):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(path, str | Path) for path in X)


def read(source: Any, target: str | None, weight: str | None, rows: int) -> Iterator[ReadRows]:
    """Batches of at most so many rows, more or less, in the order of the source."""
    first = 0
    for batch in _raw_batches(source, rows):
        if isinstance(batch, tuple):
            found = _of_arrays(batch, first)
        else:
            found = _of_columns(batch, target, weight, first)
        if len(found.X):
            _check(found)
            yield found
        first += len(found.X)


def _raw_batches(source: Any, rows: int) -> Iterator[Any]:
    """What the source itself gives, batch after batch."""
    if _is_files(source):
        source = _dataset(source)
    if is_dataset(source):
        yield from _dataset_batches(source, rows)
    elif hasattr(source, "collect_batches"):
        yield from source.collect_batches(chunk_size=rows, maintain_order=True)
    elif isinstance(source, Iterator):
        yield from source
    else:
        raise TypeError(
            "a table in batches must be a pyarrow dataset, a polars LazyFrame (polars >= 1.34), an iterator of batches "
            f"or names of files, got {type(source).__name__}"
        )


def n_columns(source: Any) -> int:
    """How many columns there are, or may be where that is not known beforehand."""
    if hasattr(source, "collect_schema"):
        return max(len(source.collect_schema()), 1)
    if _is_files(source):
        source = _dataset(source)
    return max(len(source.schema.names), 1) if is_dataset(source) else 100


# --------------------------------------------------------------------------------------------------- sources


def _dataset(paths: Any) -> Any:
    """Files by name: Parquet, else text that Arrow reads."""
    try:
        from pyarrow import dataset
    except ImportError as error:
        raise ImportError('reading files needs pyarrow: pip install "selfpaced[io]"') from error
    named = [paths] if isinstance(paths, str | Path) else list(paths)
    found = [path for name in named for path in (sorted(glob(str(name))) or [str(name)])]
    absent = [path for path in found if not Path(path).exists()]
    if absent:
        raise FileNotFoundError(f"no file matches {absent[0]!r}")
    folder = next((path for path in found if Path(path).is_dir()), None)
    if folder is not None:
        raise ValueError(f"X must name files, got the folder {folder!r}: try {str(Path(folder) / '*.parquet')!r}")
    kinds = {"parquet" if path.lower().endswith((".parquet", ".pq")) else "csv" for path in found}
    if len(kinds) > 1:
        raise ValueError(f"files must be of one kind, got Parquet and text: {found[:3]!r}")
    whole = dataset.dataset(found, format=kinds.pop())
    if len(found) > 1:  # Arrow fills up with gaps what a file does not have
        _same_columns(whole)
    return whole


def _same_columns(whole: Any) -> None:
    """Every file must have every column, in whatever order, and numbers where the others have numbers."""
    import pyarrow as pa

    def numeric(kind: Any) -> bool:
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

    for fragment in whole.get_fragments():
        own = fragment.physical_schema.names
        if set(own) != set(whole.schema.names):
            lacking = [name for name in whole.schema.names if name not in own]
            alone = lacking and set(own) <= set(whole.schema.names)
            differs = f"lacks the column {lacking[0]!r}" if alone else f"has other columns: {own!r}"
            raise ValueError(f"files must have the same columns: {fragment.path!r} {differs}")
        for one in fragment.physical_schema:
            known = whole.schema.field(one.name).type
            empty = pa.types.is_null(one.type) or pa.types.is_null(known)
            if not (empty or one.type == known or (numeric(one.type) and numeric(known))):
                told = f"{fragment.path!r} has {one.type} in the column {one.name!r}, and others {known}"
                raise ValueError(f"files must have the same types: {told}")


def _dataset_batches(source: Any, rows: int) -> Iterator[Any]:
    """File by file where they are Parquet on a disk: a scan would read ahead of what is asked for."""
    files: Any = getattr(source, "files", None)
    plain = type(getattr(source, "format", None)).__name__ == "ParquetFileFormat" and files is not None
    if plain and type(source.filesystem).__name__ == "LocalFileSystem" and _columns_in_files(source):
        from pyarrow import parquet

        for path in files:
            with parquet.ParquetFile(path, memory_map=True, pre_buffer=False) as file:
                yield from file.iter_batches(batch_size=rows, columns=source.schema.names, use_threads=False)
        return
    yield from source.scanner(batch_size=rows, use_threads=False, batch_readahead=2, fragment_readahead=1).to_batches()


def _columns_in_files(source: Any) -> bool:
    """Whether all columns, with their types, are in the files, and none in the names of folders."""
    fragment = next(iter(source.get_fragments()), None)
    return fragment is not None and bool(fragment.physical_schema.equals(source.schema))


# --------------------------------------------------------------------------------------------------- batches


def _of_arrays(batch: tuple[Any, ...], first: int) -> ReadRows:
    if len(batch) not in (2, 3) or np.ndim(batch[0]) != 2:
        raise ValueError(
            "a batch must be a table, or a tuple of features of shape (n, d), labels or values, and perhaps weights; "
            f"got a tuple of {len(batch)} whose first has shape {np.shape(batch[0])}"
        )
    X = np.ascontiguousarray(batch[0])
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    weight = None if len(batch) == 2 or batch[2] is None else np.asarray(batch[2], dtype=np.float64)
    y = np.asarray(batch[1])
    for name, part in (("labels or values", y), ("weights", weight)):
        if part is not None and part.shape != (len(X),):
            raise ValueError(f"{name} of a batch must have shape ({len(X)},), one per row, got {part.shape}")
    return ReadRows(X, y, weight, first)


def _of_columns(batch: Any, target: str | None, weight: str | None, first: int) -> ReadRows:
    batch = batch.to_arrow() if hasattr(batch, "to_arrow") else batch
    names = [str(name) for name in (batch.schema.names if hasattr(batch, "schema") else batch.columns)]
    if target is None:
        raise ValueError(f"y must name the column of labels or values, one of {names!r}, got None")
    for what, name in (("y", target), ("sample_weight", weight)):
        if name is not None and name not in names:
            raise ValueError(f"{what} must name a column, one of {names!r}, got {name!r}")
    features = [name for name in names if name not in (target, weight)]
    if not features:
        raise ValueError(f"X must have at least one feature beside y, got columns {names!r}")
    columns = [_numbers(batch[name], name, first) for name in features]
    single = all(column.dtype == np.float32 for column in columns)
    X = np.ascontiguousarray(np.array(columns, dtype=np.float32 if single else np.float64).T)
    return ReadRows(
        X, batch[target], None if weight is None else _numbers(batch[weight], weight, first), first, tuple(features)
    )


def _numbers(column: Any, name: str, first: int) -> Array:
    """A column as numbers; gaps are NaN."""
    values = np.asarray(column)
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"features must be numbers, got {values.dtype} in column {name!r} (rows from {first}): encode it first, or "
            "use the command line, which does"
        )
    return values


def _check(batch: ReadRows) -> None:
    """Gaps, infinities and numbers beyond reach, by the row they are in."""
    limit = reach(batch.X.dtype)[1]
    if batch.X.max(initial=0.0) <= limit and batch.X.min(initial=0.0) >= -limit:  # neither where there is a NaN
        return
    row, place = np.argwhere(~(np.abs(batch.X) <= limit))[0].tolist()
    name, value = place if batch.names is None else batch.names[place], batch.X[row, place]
    raise ValueError(
        f"X must hold numbers between -{limit:g} and {limit:g}, got {value} in row {batch.first + row}, column {name!r}"
    )


# ---------------------------------------------------------------------------------------------------- labels


class LabelCodes:
    """Labels as small numbers, while they come; sorted when all are known.

    >>> codes = LabelCodes()
    >>> codes.encode(np.array(["c", "b"])).tolist(), codes.encode(np.array(["a", "b"])).tolist()
    ([0, 1], [2, 1])
    >>> classes, order = codes.sorted()
    >>> classes.tolist(), order.tolist()
    (['a', 'b', 'c'], [2, 1, 0])
    """

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def encode(self, labels: Any) -> Array:
        """The number of every label, in the order in which they first came; -1 for rows without one."""
        import pandas as pd

        if hasattr(labels, "dictionary_encode"):  # Arrow: by hashing what it holds, and no objects of Python
            labels = labels.combine_chunks() if hasattr(labels, "chunks") else labels
            labels = pd.arrays.ArrowExtensionArray(labels)
        codes, distinct = pd.factorize(labels)
        places = [self.known.setdefault(label, len(self.known)) for label in distinct.tolist()]
        one_kind(self.known)
        if len(self.known) > LABELS_READ:
            raise ValueError(
                f"y has more than {LABELS_READ:,} different labels: are they values, for SelfPacedLinearRegression?"
            )
        return np.asarray(np.array([*places, -1], dtype=np.int32)[codes])

    def sorted(self) -> tuple[Array, Array]:
        """All labels in their order, and the number that each has."""
        labels = label_array(self.known)
        order = np.argsort(labels, kind="stable")
        return labels[order], order
