"""Blocks of a Dask array or data frame as a table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from scipy import sparse

from ..parameters import speaking_of
from .blocks import CountedPasses, Facts, aligned, classes_of, facts_of, joined, starts_of
from .table import Block, Rows

logger = logging.getLogger(__name__)


class DaskTable(CountedPasses):
    """A table whose blocks are those of Dask collections; made by `table`.

    Attributes
    ----------
    groups : DaskGroups or None
        The group of every row.
    n_unlabelled : int
        Rows without a label, which are left out. The others are known by their numbers in the collections.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        names: Sequence[str] | None,
        *,
        labels: bool,
        persist: bool,
        gaps: bool = False,
        weighted: bool = False,
        grouped: bool = False,
    ) -> None:
        self.names, self.weighted, self._persist = names, weighted, persist
        given = self._made(_read, parts, labels)  # at once: what is asked first would read everything
        known, lengths = self._known(given, labels, gaps)
        used = [facts for facts in known if facts.n]
        self.sizes = np.array([facts.n for facts in known], dtype=np.intp)
        self.starts, self.n = starts_of(self.sizes), int(self.sizes.sum())
        self.n_features = used[0].n_features
        self.dtype = np.result_type(*{facts.dtype for facts in used})
        self.classes, self.mass = classes_of(used, labels)
        self.n_unlabelled = sum(lengths) - self.n
        self.parts = self._made(_coded, given, self.classes, self.dtype)
        self.places = None  # numbers of the rows of every block
        if self.n_unlabelled:
            logger.warning("%d of %d rows have no label and are left out", self.n_unlabelled, sum(lengths))
            self.places = self._made(_numbered, list(zip(given, starts_of(lengths).tolist(), strict=True)))
        self.groups = DaskGroups(self, self._made(_groups, given)) if grouped else None

    def _made(self, function: Callable[..., Any], parts: Sequence[Any], *args: Any) -> list[Any]:
        call = dask.delayed(function, pure=False)
        found = [call(part, *args) for part in parts]
        return list(dask.persist(*found)) if self._persist else found

    def _known(self, given: Sequence[Any], labels: bool, gaps: bool) -> tuple[list[Facts], list[int]]:
        """What is known of every block, and how many rows it had with those without a label: one pass."""
        look = dask.delayed(_facts, pure=False)
        known, lengths = zip(*dask.compute(*[look(part, labels, gaps) for part in given]), strict=True)
        faults = [f"{facts.fault} of block {place}" for place, facts in enumerate(known) if facts.fault]
        if faults:
            raise ValueError(f"the table must hold numbers only, got {faults[0]}")
        if not any(facts.n for facts in known):
            raise ValueError("the table has no rows")
        return list(known), list(lengths)

    def _sum(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        call = dask.delayed(_call, pure=False, traverse=False)
        blocks = [part for part, n in zip(self.parts, self.sizes, strict=True) if n]
        return sum(dask.compute(*[call(part, function, args) for part in blocks]))

    def take(self, rows: Rows) -> Block:
        """Return these rows, by ascending numbers, in memory."""
        return joined(self._picked(self.parts, rows))

    def numbers(self, rows: Rows) -> Rows:
        """Numbers in the collections."""
        return rows if self.places is None else np.asarray(self.entries(self.places, rows))

    def entries(self, parts: Sequence[Any], rows: Rows) -> Any:
        """What some rows have in delayed arrays, one for each block."""
        order = np.argsort(rows, kind="stable")
        return np.concatenate(self._picked(parts, rows[order]))[np.argsort(order)]

    def _picked(self, parts: Sequence[Any], rows: Rows) -> Any:
        pick, blocks = dask.delayed(_pick, pure=False, traverse=False), zip(parts, self._wanted(rows), strict=True)
        return dask.compute(*[pick(part, own) for part, own in blocks if len(own)])


@dataclass(frozen=True, eq=False)
class DaskGroups:
    """The groups of the rows of a table, ``groups[rows]`` loads the codes of some of them."""

    table: DaskTable
    parts: list[Any]

    def __getitem__(self, rows: Rows) -> Rows:
        import pandas as pd

        found = self.table.entries(self.parts, rows)
        absent = pd.isna(found)
        if absent.any():
            row = self.table.numbers(rows[absent][:1])[0]
            raise ValueError(f"groups must not be missing, got a gap in row {row}")
        return np.unique(found.astype(str), return_inverse=True)[1]


def table(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    labels: bool = True,
    persist: bool = True,
    gaps: bool = False,
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
    sample_weight, groups : dask array or Series, array-like, or str, optional
        Weights and groups, in the same way.
    labels : bool, default=True
        Whether y holds labels, and not values. Rows without a label are left out and counted.
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
    parts, names = _paired(X, {"y": y, "sample_weight": sample_weight, "groups": groups})
    has = {"weighted": sample_weight is not None, "grouped": groups is not None}
    return DaskTable(parts, names, labels=labels, persist=persist, gaps=gaps, **has)


# ------------------------------------------------------------------------------------------- columns beside features


def is_frame(X: Any) -> bool:
    """Whether it is a Dask DataFrame."""
    return hasattr(X, "partitions") and hasattr(X, "columns")


def columns_of(model: Any, X: Any, *others: Any) -> Any:
    """The columns of a frame that a model knows, and those of labels and weights that are given by name."""
    names = getattr(model, "feature_names_in_", None)
    if not is_frame(X) or names is None:
        return X
    absent = [name for name in names if name not in X.columns]
    if absent:
        raise ValueError(f"X must have the columns of the fit, got none with the name {absent[0]!r}")
    return X[[*names, *(name for name in others if isinstance(name, str))]]


def _paired(X: Any, columns: dict[str, Any]) -> tuple[list[Any], list[str] | None]:
    """Delayed tuples of features and what belongs to them, for every block; names of the features."""
    features = None
    if is_frame(X):
        X, columns, features = _within(X, columns)
        parts, known = list(X.to_delayed()), None
    elif isinstance(X, da.Array) and X.ndim == 2:
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        parts, known = X.to_delayed().ravel().tolist(), None if np.isnan(X.shape[0]) else X.chunks[0]
    else:
        raise TypeError(f"X must be a Dask array with two dimensions or a Dask DataFrame, got {type(X).__name__}")

    @cache
    def lengths() -> tuple[int, ...]:
        call = dask.delayed(_length, pure=False)
        return tuple(known or dask.compute(*[call(part) for part in parts]))

    blocks = [
        [column] * len(parts)
        if column is None or (isinstance(column, str) and features is not None)
        else _in_blocks(name, column, len(parts), known, lengths)
        for name, column in columns.items()
    ]
    split = dask.delayed(_part, pure=False)
    named = features is not None and all(isinstance(name, str) for name in features)
    return [split(part, features, *own) for part, *own in zip(parts, *blocks, strict=True)], features if named else None


def _within(X: Any, columns: dict[str, Any]) -> tuple[Any, dict[str, Any], list[Any]]:
    """A frame that holds its columns, and Series with as many partitions: these may be fused when they are read."""
    features, found = list(X.columns), dict(columns)
    for name, column in columns.items():
        if is_frame(column) and column.ndim > 1:  # a Series has columns too
            raise TypeError(f"{name} must be one column, got a data frame of {list(column.columns)!r}")
        if isinstance(column, str):
            if column not in features:
                raise ValueError(f"{name} must name a column, one of {features!r}, got {column!r}")
        elif _is_series(column) and column.npartitions == X.npartitions:
            found[name] = f"__selfpaced_{name}__"
            X = X.assign(**{found[name]: column})
    taken = [column for column in columns.values() if isinstance(column, str)]
    return X, found, [name for name in features if name not in taken]


def _is_series(column: Any) -> bool:
    return hasattr(column, "partitions") and hasattr(column, "to_dask_array")


def _in_blocks(name: str, column: Any, count: int, known: Any, lengths: Callable[[], tuple[int, ...]]) -> list[Any]:
    """A column in the blocks of X."""
    if not (_is_series(column) or isinstance(column, da.Array)):
        values = np.asarray(column)
        if isinstance(column, str) or values.ndim != 1:
            raise TypeError(f"{name} must be a column, one entry per row of X, got {column!r:.60}")
        _check_length(name, len(values), lengths())
        return np.split(values, np.cumsum(lengths())[:-1])
    if column.ndim != 1:
        raise TypeError(f"{name} must have one dimension, got {column.ndim}")
    unknown = _is_series(column) or np.isnan(column.shape[0])
    if column.npartitions == count and (unknown or column.chunks[0] == known):  # lengths are compared block by block
        return list(np.ravel(column.to_delayed()))
    if _is_series(column):
        column = column.astype(object).to_dask_array(lengths=True)
    elif unknown:
        column = column.copy().compute_chunk_sizes()
    _check_length(name, column.shape[0], lengths())
    return list(column.rechunk((lengths(),)).to_delayed())


def _check_length(name: str, n: int, lengths: tuple[int, ...]) -> None:
    if n != sum(lengths):
        raise ValueError(f"{name} must have {sum(lengths)} entries, one per row, got {n}")


# ----------------------------------------------------------------------------------------------- on the workers


class Given(NamedTuple):
    """The rows of a block that have a label, their places in it, their groups, and how many rows it has."""

    block: Block
    places: Rows
    groups: Any
    n: int


def _length(part: Any) -> int:
    return int(part.shape[0])


def _part(rows: Any, features: list[Any] | None, *columns: Any) -> tuple[Any, ...]:
    """Features as numbers, and the columns that belong to them."""
    found = [rows[column] if isinstance(column, str) else column for column in columns]
    if features is None:
        return rows, *found
    bad = next((name for name in features if rows[name].dtype.kind not in "biuf"), None)
    if bad is not None:
        raise ValueError(f"features must be numbers, got {rows[bad].dtype} in column {bad!r}: encode it first")
    single = bool(features) and all(rows[name].dtype == np.float32 for name in features)
    return rows[features].to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan), *found


def _read(part: tuple[Any, ...], labels: bool) -> Given:
    import pandas as pd

    X, y, weight, groups = part
    with speaking_of("sample_weight", "numbers"):
        own = None if weight is None else np.asarray(weight, dtype=np.float64)
    n, places = int(X.shape[0]), np.arange(X.shape[0])
    if not labels:
        with speaking_of("y", "numbers for a regression"):
            values = pd.Series(y).to_numpy(dtype=np.float64, na_value=np.nan)
        return Given(Block(X, values, own), places, groups, n)
    nullable = hasattr(getattr(y, "dtype", None), "na_value")  # pandas keeps gaps apart from values
    block, absent = Block(X, np.asarray(y, dtype=object if nullable else None), own), np.asarray(pd.isna(y))
    if not absent.any() or len(y) != n or (own is not None and len(own) != n):
        return Given(block, places, groups, n)
    places = np.flatnonzero(~absent)
    block = block.rows(places)
    whole = block.y.astype(np.int64) if block.y.dtype.kind == "f" else block.y  # which gaps had made fractions
    block = block._replace(y=whole if np.array_equal(whole, block.y) else block.y)
    return Given(block, places, None if groups is None else np.asarray(groups)[places], n)


def _facts(given: Given, labels: bool, gaps: bool) -> tuple[Facts, int]:
    return facts_of(given.block, labels, gaps), given.n


def _numbered(given: tuple[Given, int]) -> Rows:
    return given[0].places + given[1]


def _groups(given: Given) -> Any:
    return np.asarray(given.groups, dtype=object)


def _coded(given: Given, classes: Any, dtype: Any) -> Block:
    X, y, weight = given.block
    X = X.astype(dtype).tocsr() if sparse.issparse(X) else aligned(np.ascontiguousarray(X, dtype=dtype))
    return Block(X, y if classes is None else np.searchsorted(classes, y.astype(classes.dtype)).astype(np.intp), weight)


def _call(block: Block, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return function(block if sparse.issparse(block.X) else block._replace(X=aligned(block.X)), *args)


def _pick(part: Any, rows: Rows) -> Any:
    return part.rows(rows) if isinstance(part, Block) else part[rows]
