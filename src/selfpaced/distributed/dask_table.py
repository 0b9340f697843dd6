"""Blocks of a Dask array or data frame as a table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from scipy import sparse

from .table import Block, CountedPasses, Facts, Rows, added, aligned, classes_of, facts_of, joined

logger = logging.getLogger(__name__)


class DaskTable(CountedPasses):
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

    Attributes
    ----------
    groups : DaskGroups or None
        The group of every row.
    n_unlabelled : int
        Rows without a label. They keep their numbers, have weight 0 and are never listed.
    """

    groups: DaskGroups | None = None

    def __init__(
        self, parts: Sequence[Any], names: Sequence[str] | None, *, labels: bool, persist: bool, gaps: bool = False
    ) -> None:
        self.names = names
        if persist:  # at once: what is asked first would read everything, and the blocks again
            parts = list(dask.persist(*parts))
        known, without = self._known(parts, labels, gaps)
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
        self.n_unlabelled, wrap = int(sum(without)), dask.delayed(_block, pure=False)
        self.parts = [wrap(part, self.classes, self.dtype, self.n_unlabelled > 0) for part in parts]
        self.without = [dask.delayed(_without, pure=False)(part) for part in parts] if self.n_unlabelled else None
        if persist:
            self.parts = list(dask.persist(*self.parts))
            self.without = None if self.without is None else list(dask.persist(*self.without))
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    def _known(self, parts: Sequence[Any], labels: bool, gaps: bool) -> tuple[list[Facts], list[int]]:
        """What is known of every block, and how many of its rows have no label: one pass."""
        look = dask.delayed(_facts, pure=False)
        known, without = zip(*dask.compute(*[look(part, labels, gaps) for part in parts]), strict=True)
        if sum(without):
            logger.warning("%d of %d rows have no label and are left out", sum(without), sum(f.n for f in known))
        return list(known), list(without)

    def _sum(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        call = dask.delayed(_call, pure=False, traverse=False)
        blocks = [part for part, n in zip(self.parts, self.sizes, strict=True) if n]
        return added(dask.compute(*[call(part, function, args) for part in blocks]))

    def take(self, rows: Rows) -> Block:
        """These rows, by ascending numbers, brought here."""
        wanted = np.split(rows, np.searchsorted(rows, self.starts[1:]))
        pick = dask.delayed(_pick, pure=False, traverse=False)
        blocks = zip(self.parts, wanted, self.starts, strict=True)
        return joined(dask.compute(*[pick(part, own - start) for part, own, start in blocks if len(own)]))


class DaskGroups:
    """A column of groups in the blocks of X, of which some rows are brought here: ``groups[rows]`` are their codes."""

    def __init__(self, X: Any, groups: Any) -> None:
        if is_frame(X):
            X = X[[groups]] if isinstance(groups, str) and groups in X.columns else X[[]]
        self.parts = paired(X, groups, name="groups")[0]

    def of(self, table: DaskTable) -> DaskGroups:
        """The same, with the row numbers of a table."""
        self.starts = table.starts
        return self

    def __getitem__(self, rows: Rows) -> Rows:
        order = np.argsort(rows, kind="stable")
        wanted = np.split(rows[order], np.searchsorted(rows[order], self.starts[1:]))
        pick = dask.delayed(_pick_groups, pure=False, traverse=False)
        blocks = zip(self.parts, wanted, self.starts, strict=True)
        found = np.concatenate(dask.compute(*[pick(part, own - start) for part, own, start in blocks if len(own)]))
        absent = found != found
        if absent.any():
            raise ValueError(f"groups must not be missing, got a gap in row {rows[order][np.argmax(absent)]}")
        codes = np.empty(len(rows), dtype=np.intp)
        codes[order] = np.unique(found.astype(str), return_inverse=True)[1]
        return codes


def table(
    X: Any, y: Any, sample_weight: Any = None, *, labels: bool = True, persist: bool = True, gaps: bool = False
) -> DaskTable:
    """Make a table that ``fit`` takes from Dask collections.

    ``fit(X, y)`` of the linear estimators does this by itself. Use `table` to keep the blocks on the workers for
    several fits, or to read them again in every pass (``persist=False``).

    Parameters
    ----------
    X : dask array of shape (n, d), or dask DataFrame
        Features. Chunk sizes may be unknown, and partitions empty.
    y : dask array or Series, array-like, or str
        Labels or values, in the order of X; or the name of their column in a data frame.
    sample_weight : dask array or Series, array-like, or str, optional
        Weights, in the same way.
    labels : bool, default=True
        Whether y holds labels, and not values. Rows without a label are left out of the fit and counted.
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
    if y is None:
        raise ValueError("y must be labels or values, or the name of their column in X, got None")
    parts, names = paired(X, y, sample_weight)
    return DaskTable(parts, names, labels=labels, persist=persist, gaps=gaps)


def paired(X: Any, y: Any, sample_weight: Any = None, name: str = "y") -> tuple[list[Any], list[str] | None]:
    """Delayed tuples of features, labels or values, and weights or None for every block; names of the features."""
    if is_frame(X):
        return _of_frame(X, y, sample_weight, name)
    if not isinstance(X, da.Array) or X.ndim != 2:
        raise TypeError(f"X must be a Dask array with two dimensions or a Dask DataFrame, got {type(X).__name__}")
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    features = X.to_delayed().ravel().tolist()
    columns = [_in_blocks(name, column, X) for name, column in ((name, y), ("sample_weight", sample_weight))]
    return [dask.delayed(tuple(part)) for part in zip(features, *columns, strict=True)], None


def is_frame(X: Any) -> bool:
    """Whether it is a Dask DataFrame."""
    return hasattr(X, "partitions") and hasattr(X, "columns")


def _in_blocks(name: str, column: Any, X: Any) -> list[Any]:
    """A column in the blocks of X."""
    if column is None:
        return [None] * X.numblocks[0]
    if hasattr(column, "partitions") and hasattr(column, "to_dask_array"):  # a Series keeps gaps as they are
        return _as_many(name, list(column.to_delayed()), X)
    if not isinstance(column, da.Array):
        column = _from_memory(name, column, X)
    if column.ndim != 1:
        raise TypeError(f"{name} must have one dimension, got {column.ndim}")
    known = not (np.isnan(X.shape[0]) or np.isnan(column.shape[0]))
    if known and column.chunks[0] != X.chunks[0]:
        if column.shape[0] != X.shape[0]:
            raise ValueError(f"{name} must have {X.shape[0]} entries, one per row, got {column.shape[0]}")
        column = column.rechunk((X.chunks[0],))
    return _as_many(name, column.to_delayed().ravel().tolist(), X)


def _as_many(name: str, blocks: list[Any], X: Any) -> list[Any]:
    if len(blocks) != X.numblocks[0]:
        raise ValueError(
            f"{name} must have the {X.numblocks[0]} blocks of X, got {len(blocks)}: call compute_chunk_sizes() on "
            "both, or make them from the same collection"
        )
    return blocks


def _from_memory(name: str, column: Any, X: Any) -> Any:
    values = np.asarray(column)
    if isinstance(column, str) or values.ndim != 1:
        raise TypeError(f"{name} must be a column of labels, values or weights, one per row of X, got {column!r:.60}")
    if np.isnan(X.shape[0]):
        raise ValueError(
            f"{name} must be a Dask collection if the chunk sizes of X are unknown, got an array in memory"
        )
    return da.from_array(values, chunks=max(len(values), 1))


def _of_frame(X: Any, y: Any, sample_weight: Any, target: str) -> tuple[list[Any], list[str]]:
    """A data frame is split by ONE ``to_delayed``: partitions may be fused, and others then have other lengths."""
    taken: list[str | None] = []
    features = [str(name) for name in X.columns]
    for name, column in ((target, y), ("sample_weight", sample_weight)):
        if column is None or isinstance(column, str):
            if column is not None and column not in X.columns:
                raise ValueError(f"{name} must name a column, one of {list(X.columns)!r}, got {column!r}")
            taken.append(column)
            continue
        own = f"__selfpaced_{name}__"
        X = X.assign(**{own: column if hasattr(column, "dask") else da.from_array(np.asarray(column))})
        taken.append(own)
    names = [name for name in features if name not in taken]
    split = dask.delayed(_columns, pure=False)
    return [split(part, names, *taken) for part in X.to_delayed()], names


# ----------------------------------------------------------------------------------------------- on the workers


def _columns(frame: Any, names: list[str], target: str, weight: str | None) -> tuple[Any, Any, Any]:
    kinds = {frame[name].dtype.kind for name in names}
    if kinds - set("biuf"):
        bad = next(name for name in names if frame[name].dtype.kind not in "biuf")
        raise ValueError(f"features must be numbers, got {frame[bad].dtype} in column {bad!r}: encode it first")
    X = frame[names].to_numpy()
    own = None if weight is None else frame[weight].to_numpy(dtype=float)
    X = np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
    return X, frame[target], own


def _facts(part: tuple[Any, Any, Any], labels: bool, gaps: bool) -> tuple[Facts, int]:
    kept, without = labelled(part) if labels else (_arrays(part), np.empty(0, dtype=np.intp))
    facts = facts_of(kept, labels, gaps)
    return facts._replace(n=facts.n + len(without)), len(without)


def _arrays(part: tuple[Any, Any, Any]) -> Block:
    X, y, weight = part
    return Block(X, np.asarray(y), None if weight is None else np.asarray(weight, dtype=np.float64))


def labelled(part: tuple[Any, Any, Any]) -> tuple[Block, Rows]:
    """The rows of a block that have a label, and the numbers of the others in it."""
    import pandas as pd

    block = _arrays((part[0], np.asarray(part[1], dtype=object) if _nullable(part[1]) else part[1], part[2]))
    without = np.asarray(pd.isna(part[1])) if len(block.y) else np.zeros(0, dtype=bool)
    if not without.any() or len(block.y) != block.X.shape[0]:
        return block, np.empty(0, dtype=np.intp)
    known = block.rows(np.flatnonzero(~without))
    return known._replace(y=_plain(known.y)), np.flatnonzero(without)


def _without(part: tuple[Any, Any, Any]) -> Rows:
    return labelled(part)[1]


def _nullable(column: Any) -> bool:
    """Whether pandas keeps gaps of the column apart from its values."""
    return hasattr(getattr(column, "dtype", None), "na_value")


def _plain(labels: Any) -> Any:
    """Labels without gaps: whole numbers that a gap had made fractions or objects are whole again."""
    if labels.dtype.kind == "O":
        return np.array(labels.tolist()) if len(labels) else labels
    whole = labels.astype(np.int64) if labels.dtype.kind == "f" else labels
    return whole if np.array_equal(whole, labels) else labels


def _block(part: tuple[Any, Any, Any], classes: Any, dtype: Any, unlabelled: bool) -> Block:
    if classes is None:
        X, y, weight = _arrays(part)
        return Block(_rows(X, dtype), np.asarray(y, dtype=np.float64), weight)
    (_, y, weight), without = labelled(part)
    n = part[0].shape[0]
    known, codes = np.setdiff1d(np.arange(n), without), np.zeros(n, dtype=np.intp)
    codes[known] = np.searchsorted(classes, y)
    if unlabelled or weight is not None:
        every = np.zeros(n)
        every[known] = 1.0 if weight is None else weight
        weight = every
    X = _rows(part[0], dtype)
    if len(without) and not sparse.issparse(X):  # whose features nobody has checked: a NaN stays NaN at weight 0
        X = X.copy()
        X[without] = 0.0
    return Block(X, codes, weight)


def _rows(X: Any, dtype: Any) -> Any:
    return X.astype(dtype).tocsr() if sparse.issparse(X) else aligned(np.ascontiguousarray(X, dtype=dtype))


def _call(block: Block, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return function(block if sparse.issparse(block.X) else block._replace(X=aligned(block.X)), *args)


def _pick(block: Block, rows: Rows) -> Block:
    return block.rows(rows)


def _pick_groups(part: tuple[Any, Any, Any], rows: Rows) -> Any:
    """As objects, gaps as NaN."""
    import pandas as pd

    found = pd.Series(np.asarray(part[1])[rows], dtype=object)
    return found.where(found.notna(), np.nan).to_numpy()


__all__ = ["DaskGroups", "DaskTable", "is_frame", "labelled", "paired", "table"]
