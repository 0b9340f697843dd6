"""Blocks of a Dask array or data frame as a table."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import dask
import dask.array as da
import numpy as np
from scipy import sparse

from ..engines import Block, Facts, Rows, added, aligned, classes_of, facts_of, joined

Result = TypeVar("Result")
logger = logging.getLogger(__name__)


class DaskTable:
    """A table whose blocks are those of Dask collections; made by `table`.

    Parameters
    ----------
    parts : sequence of delayed
        Tuples of features, labels or values, and weights or None.
    names : sequence of str or None
        Of the features.
    labels : bool
        Whether the target holds labels, and not values.
    persist : bool
        Whether blocks are kept as rows of numbers in the memory of the workers.
    gaps : bool
        Whether features may be missing (NaN).
    """

    def __init__(
        self, parts: Sequence[Any], names: Sequence[str] | None, *, labels: bool, persist: bool, gaps: bool = False
    ) -> None:
        self.names, self.passes = names, 0
        if persist:  # at once: what is asked first would read everything, and the blocks again
            parts = list(dask.persist(*parts))
        known = dask.compute(*[dask.delayed(_facts, pure=False)(part, labels, gaps) for part in parts])
        faults = [f"{facts.fault} of block {place}" for place, facts in enumerate(known) if facts.fault]
        if faults:
            raise ValueError(f"the table must hold numbers only, got {faults[0]}")
        self.sizes = np.array([facts.n for facts in known], dtype=np.intp)
        self.n, used = int(self.sizes.sum()), [facts for facts in known if facts.n]
        if not used:
            raise ValueError("the table has no rows")
        self.n_features = used[0].n_features
        self.dtype = np.result_type(*{facts.dtype for facts in used})
        self.classes, self.mass = classes_of(used, labels)
        wrap = dask.delayed(_block, pure=False)
        self.parts = [wrap(part, self.classes, self.dtype) for part in parts]
        if persist:
            self.parts = list(dask.persist(*self.parts))
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    def reduce(self, function: Callable[..., Result], *args: Any) -> Result:
        """The sum over blocks, in their order, of ``function(block, *args)``: one pass."""
        began = time.perf_counter()
        self.passes += 1
        call = dask.delayed(_call, pure=False, traverse=False)
        blocks = [part for part, n in zip(self.parts, self.sizes, strict=True) if n]
        total: Result = added(dask.compute(*[call(part, function, args) for part in blocks]))
        name = getattr(function, "__name__", "sum")
        logger.info("pass %d, %s: %d rows (%.2f s)", self.passes, name, self.n, time.perf_counter() - began)
        return total

    def take(self, rows: Rows) -> Block:
        """These rows, by ascending numbers, brought here."""
        wanted = np.split(rows, np.searchsorted(rows, self.starts[1:]))
        pick = dask.delayed(_pick, pure=False, traverse=False)
        picks = [
            pick(part, own - start)
            for part, own, start in zip(self.parts, wanted, self.starts, strict=True)
            if len(own)
        ]
        return joined(dask.compute(*picks))

    def map(self, function: Callable[..., Any], *args: Any) -> Any:
        """``function(block, *args)``, one value or line per row, as a Dask array in the order of the rows."""
        shown = np.asarray(function(self.take(np.arange(1)), *args))
        call = dask.delayed(_call, pure=False, traverse=False)
        pieces = [
            da.from_delayed(call(part, function, args), (int(n), *shown.shape[1:]), dtype=shown.dtype)
            for part, n in zip(self.parts, self.sizes, strict=True)
            if n
        ]
        return da.concatenate(pieces)


def table(
    X: Any, y: Any, sample_weight: Any = None, *, labels: bool = True, persist: bool = True, gaps: bool = False
) -> DaskTable:
    """A Dask array or data frame as a table that ``fit`` takes.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask DataFrame
        Features. Chunk sizes may be unknown, and partitions empty.
    y : dask array or Series, or str
        Labels or values, in the blocks of X; or the name of their column in a data frame.
    sample_weight : dask array or Series, or str, optional
        Weights, in the same way.
    labels : bool, default=True
        Whether y holds labels, and not values.
    persist : bool, default=True
        Keep the blocks, as rows of numbers, in the memory of the workers; otherwise they are made again in every pass,
        from wherever they come.
    gaps : bool, default=False
        Whether features may be missing (NaN), for a wrapped estimator that takes them.

    Returns
    -------
    DaskTable

    Examples
    --------
    >>> from selfpaced import SelfPacedLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = da.from_array(rng.normal(size=(300, 2)), chunks=(100, 2))
    >>> y = X[:, 0] > 0
    >>> model = SelfPacedLogisticRegression().fit(table(X, y))
    >>> model.predict([[1.0, 0.0]])
    array([ True])
    """
    if hasattr(X, "partitions") and hasattr(X, "columns"):
        return _of_frame(X, y, sample_weight, labels=labels, persist=persist, gaps=gaps)
    if not isinstance(X, da.Array) or X.ndim != 2:
        raise TypeError(f"X must be a Dask array with two dimensions or a Dask DataFrame, got {type(X).__name__}")
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    features = X.to_delayed().ravel().tolist()
    columns = [_in_blocks(name, column, X) for name, column in (("y", y), ("sample_weight", sample_weight))]
    parts = [tuple(part) for part in zip(features, *columns, strict=True)]
    return DaskTable([dask.delayed(part) for part in parts], None, labels=labels, persist=persist, gaps=gaps)


def _in_blocks(name: str, column: Any, X: Any) -> list[Any]:
    """A column in the blocks of X."""
    if column is None:
        return [None] * X.numblocks[0]
    column = column.to_dask_array() if hasattr(column, "to_dask_array") else column
    if not isinstance(column, da.Array) or column.ndim != 1:
        raise TypeError(f"{name} must be a Dask array with one dimension, got {type(column).__name__}")
    known = not (np.isnan(X.shape[0]) or np.isnan(column.shape[0]))
    if known and column.chunks[0] != X.chunks[0]:
        if column.shape[0] != X.shape[0]:
            raise ValueError(f"{name} must have {X.shape[0]} entries, one per row, got {column.shape[0]}")
        column = column.rechunk((X.chunks[0],))
    if column.numblocks[0] != X.numblocks[0]:
        raise ValueError(f"{name} must have the {X.numblocks[0]} blocks of X, got {column.numblocks[0]}")
    found: list[Any] = column.to_delayed().ravel().tolist()
    return found


def _of_frame(X: Any, y: Any, sample_weight: Any, **options: bool) -> DaskTable:
    """A data frame is split by ONE ``to_delayed``: partitions may be fused, and others then have other lengths."""
    named = {"y": y, "sample_weight": sample_weight}
    for name, column in named.items():
        if column is not None and not isinstance(column, str):
            raise TypeError(f"{name} must name a column where X is a data frame, got {type(column).__name__}")
        if column is not None and column not in X.columns:
            raise ValueError(f"{name} must name a column, one of {list(X.columns)!r}, got {column!r}")
    if y is None:
        raise ValueError("y must name the column of labels or values, got None")
    names = [str(name) for name in X.columns if name not in (y, sample_weight)]
    split = dask.delayed(_columns, pure=False)
    parts = [split(part, names, y, sample_weight) for part in X.to_delayed()]
    return DaskTable(parts, names, **options)


# ----------------------------------------------------------------------------------------------- on the workers


def _columns(frame: Any, names: list[str], target: str, weight: str | None) -> tuple[Any, Any, Any]:
    kinds = {frame[name].dtype.kind for name in names}
    if kinds - set("biuf"):
        bad = next(name for name in names if frame[name].dtype.kind not in "biuf")
        raise ValueError(f"features must be numbers, got {frame[bad].dtype} in column {bad!r}: encode it first")
    X = frame[names].to_numpy()
    own = None if weight is None else frame[weight].to_numpy(dtype=float)
    return np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64), frame[target], own


def _facts(part: tuple[Any, Any, Any], labels: bool, gaps: bool) -> Facts:
    return facts_of(Block(part[0], np.asarray(part[1]), part[2]), labels, gaps)


def _block(part: tuple[Any, Any, Any], classes: Any, dtype: Any) -> Block:
    X, y, weight = part
    X = X.astype(dtype).tocsr() if sparse.issparse(X) else aligned(np.ascontiguousarray(X, dtype=dtype))
    given = np.asarray(y)
    target = np.asarray(given, dtype=np.float64) if classes is None else np.searchsorted(classes, given).astype(np.intp)
    return Block(X, target, None if weight is None else np.asarray(weight, dtype=np.float64))


def _call(block: Block, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return function(block if sparse.issparse(block.X) else block._replace(X=aligned(block.X)), *args)


def _pick(block: Block, rows: Rows) -> Block:
    return block.rows(rows)


__all__ = ["DaskTable", "table"]
