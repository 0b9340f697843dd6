"""Tables larger than memory on one machine: read and turned into rows once, then passed over in a scratch file.

A pass over the scratch file costs about what one over memory does; decoding Parquet again for every pass would cost
several times that (``benchmarks/scale.py``). Rows are read with plain reads: the pages of a memory map would count as
memory of the process. The files have no name, so that they vanish with the process, however it ends.
"""

from __future__ import annotations

import logging
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..assessment import SUSPECT, Assessment, AssessmentMixin
from ..fitting import is_dask
from .blocks import CountedPasses, places_among
from .sources import LABELS_READ, LabelCodes, ReadRows, n_columns, read
from .table import Array, Block, Rows, Table, from_dask

logger = logging.getLogger(__name__)

READ_BYTES = 1 << 22  # cost: bytes that are read at a time in a pass: few calls, and blocks that stay in the cache
LEAST_MEMORY = 1 << 26  # numerical safety: less is no budget that anything here would keep to
# convention: decimal units, and binary ones with an i
_BYTE_UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse_bytes(text: str | int | float) -> int:
    """A number of bytes, also with a unit.

    >>> parse_bytes("1GB"), parse_bytes("512 MiB"), parse_bytes(100000000)
    (1000000000, 536870912, 100000000)
    """
    found = re.fullmatch(r"\s*([0-9.]+(?:[eE][0-9]+)?)\s*([A-Za-z]*)\s*", str(text))
    if found is None or found[2].upper() not in _BYTE_UNITS or found[1].count(".") > 1:
        raise ValueError(f"memory must be a number of bytes, also with KB, MB or GB, got {text!r}")
    size = int(float(found[1]) * _BYTE_UNITS[found[2].upper()])
    if size < LEAST_MEMORY:
        raise ValueError(f"memory must be at least {LEAST_MEMORY >> 20} MiB, got {text!r}")
    return size


class _Column:
    """What every row has, in a file without a name."""

    def __init__(self, folder: Path, dtype: Any, shape: tuple[int, ...] = ()) -> None:
        self.file: Any = tempfile.TemporaryFile(dir=folder, prefix="selfpaced-")  # noqa: SIM115
        self.empty = partial(np.empty, dtype=dtype)
        self.shape, self.row_bytes = shape, np.dtype(dtype).itemsize * math.prod(shape)

    def write(self, values: Array) -> None:
        """Write rows where the last ones ended."""
        self.file.write(np.ascontiguousarray(values))
        self.file.flush()

    def read(self, first: int, into: Array) -> Array:
        """Fill an array with the rows from the first on."""
        self.file.seek(first * self.row_bytes)
        if self.file.readinto(into) < into.nbytes:
            raise OSError("the scratch file is shorter than it was written")
        return into

    def take(self, rows: Rows) -> Array:
        """Some rows."""
        out = self.empty((len(rows), *self.shape))
        for place, row in enumerate(rows.tolist()):
            self.read(row, out[place : place + 1])
        return out


class ScratchTable(CountedPasses, AbstractContextManager["ScratchTable"]):
    """A table of rows in a scratch file; use it in a ``with`` statement, or close it.

    Made by `spool`. Blocks that a pass gives are overwritten by the next: functions must not keep them.
    """

    def __init__(self, scratch: Path, labels: bool) -> None:
        self.folder, self.labels = scratch, LabelCodes() if labels else None
        self.n, self.n_features, self.dtype = 0, 0, np.dtype(np.float64)
        self.names: Sequence[str] | None = None
        self.classes: Array | None = None
        self.mass: Array = np.zeros(LABELS_READ if labels else 1)
        self._columns: list[_Column] = []  # features, labels or values, and weights if there are any
        self._without: list[Rows] = []

    @property
    def n_unlabelled(self) -> int:
        """Rows of the source without a label, which are left out."""
        return sum(map(len, self._without))

    def numbers(self, rows: Rows) -> Rows:
        """Numbers in the source."""
        return numbers_with(self._without, rows)

    # -------------------------------------------------------------------------------------------- writing

    def write(self, batch: ReadRows) -> None:
        """Add the rows of a batch."""
        if not self._columns:
            self.n_features, self.dtype, self.names = batch.X.shape[1], batch.X.dtype, batch.names
            kinds = [(self.dtype, (self.n_features,)), (np.float64 if self.labels is None else np.int32, ())]
            kinds += [] if batch.weight is None else [(np.float64, ())]
            self._columns = [_Column(self.folder, *kind) for kind in kinds]
        self._check(batch)
        block = self._labelled(batch)
        try:
            for column, values in zip(self._columns, block, strict=False):
                column.write(values)
        except OSError as error:  # the files have no name that it could tell
            where = f"the scratch file in {str(self.folder)!r} cannot be written: {error.strerror}"
            raise OSError(error.errno, f"{where}; choose another folder (scratch)", str(self.folder)) from error
        codes = np.zeros(len(block.y), dtype=np.intp) if self.labels is None else block.y
        self.mass += np.bincount(codes, block.weight, minlength=len(self.mass))
        self.n += len(codes)

    def _labelled(self, batch: ReadRows) -> Block:
        """The rows with their values, or with codes of their labels; rows without a label are left out."""
        X = batch.X.astype(self.dtype, copy=False)
        if self.labels is None:
            given = np.asarray(batch.y, dtype=np.float64)
            if not np.isfinite(given).all():
                row = int(np.argmin(np.isfinite(given)))
                raise ValueError(f"y must be finite, got {given[row]} in row {batch.first + row}")
            return Block(X, given, batch.weight)
        block = Block(X, self.labels.encode(batch.y), batch.weight)
        without = np.flatnonzero(block.y < 0)
        if not without.size:
            return block
        self._without.append(batch.first + without)
        return block.rows(np.flatnonzero(block.y >= 0))

    def _check(self, batch: ReadRows) -> None:
        same = batch.names == self.names and (batch.weight is not None) == (len(self._columns) == 3)
        if not same or batch.X.shape[1] != self.n_features:
            raise ValueError(
                f"batches must have the same columns: {self.n_features} features {list(self.names or ())!r} at first, "
                f"got {batch.X.shape[1]} {list(batch.names or ())!r} from row {batch.first}"
            )
        if batch.weight is not None and not (np.isfinite(batch.weight).all() and (batch.weight >= 0).all()):
            raise ValueError(f"sample_weight must be finite and >= 0, got others from row {batch.first}")

    def done(self) -> ScratchTable:
        """All rows are written."""
        if self.n_unlabelled:
            n = self.n + self.n_unlabelled
            logger.warning("%d of %d rows have no label and are left out", self.n_unlabelled, n)
        if not self.n:
            raise ValueError("the table has no rows: nothing to learn from")
        if not self.mass.any():
            raise ValueError("the table has no rows of positive weight: nothing to learn from")
        if self.labels is not None:
            self.classes, order = self.labels.sorted()
            self.mass = self.mass[order]
            if not np.array_equal(order, np.arange(len(order))):
                self._sort_codes(np.argsort(order).astype(np.int32))
        return self

    def _sort_codes(self, place: Array) -> None:
        """Labels were numbered as they came: write their places in the order of the classes, once for all passes."""
        column = self._columns[1]
        for first in range(0, self.n, READ_BYTES):
            given = column.read(first, column.empty(min(READ_BYTES, self.n - first)))
            column.file.seek(first * column.row_bytes)
            column.write(place[given])

    # -------------------------------------------------------------------------------------------- reading

    def blocks(self) -> Iterator[Block]:
        """Every row, block by block, in the same buffers."""
        size = min(self.n, max(64, READ_BYTES // (self.dtype.itemsize * (self.n_features + 2))))
        buffers = [column.empty((size, *column.shape)) for column in self._columns]
        for first in range(0, self.n, size):
            m = min(size, self.n - first)
            yield Block(*[column.read(first, own[:m]) for column, own in zip(self._columns, buffers, strict=True)])

    def _sum(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return sum(function(block, *args) for block in self.blocks())

    def take(self, rows: Rows) -> Block:
        """These rows, by ascending numbers."""
        return Block(*[column.take(rows) for column in self._columns])

    def close(self) -> None:
        """Give the disk back."""
        for column in self._columns:
            column.file.close()

    def __exit__(self, *error: object) -> None:
        self.close()


def spool(
    source: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    labels: bool = True,
    memory: str | int = "1GB",
    scratch: str | os.PathLike[str] | None = None,
) -> ScratchTable:
    """Read a table that comes in batches once, into a scratch file of rows.

    Parameters
    ----------
    source : pyarrow dataset, polars LazyFrame, iterator of batches, or names of files
        Batches are frames or Arrow tables of numbers, or tuples ``(X, y)`` or ``(X, y, weight)`` of arrays.
    target : str, optional
        Column of labels or values; not if batches are tuples.
    weight : str, optional
        Column of weights.
    labels : bool, default=True
        Whether the target holds labels, and not values.
    memory : str or int, default="1GB"
        What reading may take, about.
    scratch : path, optional
        Folder of the scratch file; that of temporary files by default. It takes 8 bytes for every number (4 in single
        precision), and some more per row.

    Returns
    -------
    ScratchTable

    Examples
    --------
    >>> batches = ((np.eye(2) + i, np.array(["no", "yes"])) for i in range(3))
    >>> with spool(batches) as table:
    ...     table.n, table.classes.tolist(), float(table.reduce(lambda block: block.X.sum()))
    (6, ['no', 'yes'], 18.0)
    """
    folder = Path(tempfile.gettempdir() if scratch is None else scratch)
    if not folder.is_dir():
        raise ValueError(f"scratch must be a folder, got {str(folder)!r}")
    # a batch takes a sixteenth of the memory: decoders hold several, and copies of them
    size = int(np.clip(parse_bytes(memory) // 16 // (8 * n_columns(source)), 1 << 10, 1 << 16))
    table, began, told = ScratchTable(folder, labels), time.perf_counter(), 1 << 10
    try:
        for batch in read(source, target, weight, size):
            table.write(batch)
            if table.n >= told:
                logger.info("read %d rows (%.1f s)", table.n, time.perf_counter() - began)
                told = 2 * table.n
        return table.done()
    except BaseException:
        table.close()
        raise


@contextmanager
def opened(
    X: Any, y: Any, sample_weight: Any, *, labels: bool, trusted: Any = None, groups: Any = None
) -> Iterator[Table]:
    """The table that ``fit`` is to learn from: a table, a Dask collection, or batches that are spooled for as long."""
    if is_dask(X):
        X, y, sample_weight, groups = from_dask(X, y, sample_weight, groups, labels=labels), None, None, None
    for name, value in (("trusted", trusted), ("groups", groups)):
        if value is not None:
            raise ValueError(f"{name} must be None if X is a table of blocks: it is for rows in memory only")
    if isinstance(X, Table):
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight must be None if X is a table, which holds them")
        if (X.classes is None) == labels:
            asked, found = ("labels", "values") if labels else ("values", "labels")
            raise ValueError(f"X must be a table of {asked}, got one of {found}")
        yield X
        return
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} must name a column if X comes in batches, got {type(value).__name__}")
    with spool(X, y, weight=sample_weight, labels=labels) as table:
        yield table


def write_suspects(
    model: AssessmentMixin,
    table: ScratchTable,
    path: str | os.PathLike[str],
    *,
    threshold: float = 0.5,
    numbers: Callable[[Array], Array] | None = None,
) -> NDArray[np.intp]:
    """Assess every row of a table and write those of both levels to a Parquet file, in the order of the rows.

    Parameters
    ----------
    model : fitted estimator
        Model of the table, or of another with the same columns.
    table : ScratchTable
        The rows.
    path : path-like
        The file; it appears when it is complete.
    threshold : float, default=0.5
        Rows whose probability of being wrong is above it are likely errors; rows worth a look are written too. 0 writes
        all rows, with their weights.
    numbers : callable, optional
        Takes the numbers of rows in the table to those that are written; by default, to those in its source.

    Returns
    -------
    ndarray of int
        Number of rows of each level: not listed, worth a look, likely errors.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError('writing Parquet needs pyarrow: pip install "selfpaced[io]"') from error
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be between 0 and 1, got {threshold!r}")
    target, counts, writer = Path(path), np.zeros(3, dtype=np.intp), None
    part = target.with_name(f".{target.name}.part")
    try:
        for assessed in assessed_blocks(model, table, numbers):
            found = pa.Table.from_pandas(suspect_frame(assessed, threshold, threshold == 0), preserve_index=False)
            writer = parquet.ParquetWriter(part, found.schema) if writer is None else writer
            writer.write_table(found.cast(writer.schema))
            counts = counts + np.bincount(assessed.levels(threshold), minlength=3)
        if writer is not None:
            writer.close()
            os.replace(part, target)
    finally:
        if writer is not None:
            writer.close()
        part.unlink(missing_ok=True)
    return counts


def assessed_blocks(
    model: Any, table: ScratchTable, numbers: Callable[[Array], Array] | None = None
) -> Iterator[Assessment]:
    """The assessment of every block, with the numbers of its rows in the source."""
    first, places = 0, places_among(table.classes, getattr(model, "classes_", None))
    for block in table.blocks():
        own = (numbers or table.numbers)(first + np.arange(len(block.y)))
        codes = block.y if places is None else places[block.y]
        yield replace(model._assess(block.X, codes), numbers=own)
        first += len(block.y)


def suspect_frame(assessed: Assessment, threshold: float = SUSPECT, all_rows: bool = False) -> Any:
    """Both levels, or all rows, in the order of the rows."""
    import pandas as pd

    levels = assessed.levels(threshold)
    return pd.DataFrame(assessed.table(np.arange(len(levels)) if all_rows else np.flatnonzero(levels), levels))


def numbers_with(without: Sequence[Rows], rows: Rows) -> Rows:
    """Numbers of rows before some, by ascending numbers in one or more pieces, were left out.

    >>> numbers_with([np.array([0, 3])], np.arange(4)).tolist()
    [1, 2, 4, 5]
    """
    gaps = np.concatenate([*without, np.empty(0, dtype=np.intp)])
    return np.asarray(rows + np.searchsorted(gaps - np.arange(len(gaps)), rows, side="right"))
