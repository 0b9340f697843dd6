"""Where rows lie, and the little that a model asks of them: sums over blocks, some rows, a sample of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import N_FOLDS, Keys, content_keys, mixed
from ..fitting import is_dask, is_source

Array = NDArray[Any]
Rows = NDArray[np.intp]
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])


class Block(NamedTuple):
    """Some rows that lie together."""

    X: Any  # features: an array or a CSR matrix
    y: Array  # labels as positions among the classes of the table, or values
    weight: Array | None = None  # None: all 1

    def rows(self, index: Any) -> Block:
        """Some of them."""
        return Block(self.X[index], self.y[index], None if self.weight is None else self.weight[index])


class Sums(tuple[Any, ...]):
    """Numbers and arrays that add up entry by entry.

    >>> sum([Sums((1, 2.0)), Sums((3, 4.0))])
    (4, 6.0)
    """

    def __add__(self, other: Any) -> Sums:
        return Sums(mine + its for mine, its in zip(self, other, strict=True))

    def __radd__(self, other: Any) -> Sums:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum(parts) works


@runtime_checkable
class Table(Protocol):
    """Rows in blocks, numbered from 0 in a fixed order; the fitted model does not depend on where they are.

    Attributes
    ----------
    n, n_features : int
        Rows and features.
    dtype : dtype
        Type of the features.
    names : sequence of str or None
        Names of the features.
    classes : ndarray or None
        The labels, sorted, if blocks hold their codes; None if they hold values.
    mass : ndarray
        Weight of the rows of every class; one number if they have values.
    """

    n: int
    n_features: int
    dtype: Any
    names: Sequence[str] | None
    classes: Array | None
    mass: Array

    def reduce(self, function: Callable[..., Result], *args: Any) -> Result:
        """The sum over blocks, in their order, of ``function(block, *args)``."""
        ...

    def take(self, rows: Rows) -> Block:
        """These rows, by ascending numbers."""
        ...

    def numbers(self, rows: Rows) -> Rows:
        """What these rows are called where they come from."""
        ...


class MemoryTable:
    """Rows in memory, in one block or in ``n_blocks`` of equal size; ``y`` are values, or places among ``classes``.

    >>> table = MemoryTable(np.eye(3), np.array([1.0, 2.0, 3.0]), n_blocks=2)
    >>> table.reduce(lambda block: float(block.y.sum())), table.take(np.array([1])).y.tolist()
    (6.0, [2.0])
    """

    names: Sequence[str] | None = None

    def __init__(
        self,
        X: Any,
        y: Array,
        weight: Array | None = None,
        *,
        classes: Array | None = None,
        n_blocks: int = 1,
    ) -> None:
        self.block, self.classes = Block(X, y, weight), classes
        self.n, self.n_features = X.shape
        self.dtype = X.dtype
        self.mass = np.bincount(y, weight, len(classes)) if classes is not None else np.array([total(weight, self.n)])
        cuts = np.unique(np.linspace(0, self.n, n_blocks + 1).astype(int)).tolist()
        self._blocks = [self.block] if n_blocks == 1 else [self.block.rows(slice(*ends)) for ends in pairwise(cuts)]

    def reduce(self, function: Callable[..., Result], *args: Any) -> Result:
        """The sum over blocks of ``function(block, *args)``."""
        found: Any = sum(function(block, *args) for block in self._blocks)
        return found  # type: ignore[no-any-return]

    def take(self, rows: Rows) -> Block:
        """These rows."""
        return self.block.rows(rows)

    def numbers(self, rows: Rows) -> Rows:
        """What these rows are called: by their place."""
        return rows


class MappedTable:
    """A table whose blocks are changed by ``change(block, *args)``, with the weights that its classes then have."""

    def __init__(self, table: Table, mass: Array, change: Callable[..., Block], *args: Any) -> None:
        self.table, self.mass, self.change, self.args = table, mass, change, args
        self.n, self.n_features, self.dtype = table.n, table.n_features, table.dtype
        self.names, self.classes = table.names, table.classes

    def reduce(self, function: Callable[..., Result], *args: Any) -> Result:
        """The sum over blocks of ``function(block, *args)``."""
        found: Result = self.table.reduce(_changed, self.change, self.args, function, *args)
        return found

    def take(self, rows: Rows) -> Block:
        """These rows."""
        return self.change(self.table.take(rows), *self.args)

    def numbers(self, rows: Rows) -> Rows:
        """What these rows are called where they come from."""
        return self.table.numbers(rows)


def _changed(block: Block, change: Any, changing: tuple[Any, ...], function: Any, *args: Any) -> Any:
    return function(change(block, *changing), *args)


def class_weighted(table: Table, factors: Array) -> MappedTable:
    """A table whose rows count by their class too."""
    return MappedTable(table, table.mass * factors, _weighed, factors)


def _weighed(block: Block, factors: Array) -> Block:
    own = factors[block.y]
    return block._replace(weight=own if block.weight is None else own * block.weight)


def total(weight: Array | None, n: int) -> float:
    """The weight of n rows."""
    return float(n if weight is None else weight.sum())


# ------------------------------------------------------------------------------------- a sample by what rows hold

# Every row has a number that follows from its content and a seed (`fingerprint.content_keys`); the rows with the
# smallest numbers are the sample. Copies of a row are in it together, so that they can be held out together, and come
# as one row with the sum of their weights. Samples of blocks merge into the sample of all rows.

SPARE_ROWS = 4  # cost: times the size asked for that samples may have until they are cut down: rows may be copies
EACH = 2 * N_FOLDS  # theory: rows of every class that a sample has if the table has them, two for each fold


@dataclass(frozen=True, eq=False)
class ContentSample:
    """The distinct rows with the smallest keys, and of every class at least a few; none that has no weight."""

    size: int  # how many distinct rows are asked for
    keys: Keys  # ascending; equal for rows with equal features
    codes: Rows  # class of each (0 without any); rows with equal features are once in each of their classes
    rows: Rows  # number of one such row in the table
    weight: Array  # sum of the weights of all such rows
    mass: Array  # weight of each class in the whole table
    n: int  # rows that were seen

    def __add__(self, other: Any) -> ContentSample:
        """The sample of both parts; sorted and cut down now and then only, see `settled`."""
        if not isinstance(other, ContentSample):
            return NotImplemented
        both = ContentSample(
            self.size,
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.rows, other.rows + self.n]),
            np.concatenate([self.weight, other.weight]),
            self.mass + other.mass,
            self.n + other.n,
        )
        return both.settled() if len(both.keys) > 2 * SPARE_ROWS * self.size else both

    def __radd__(self, other: Any) -> ContentSample:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum(parts) works

    def settled(self) -> ContentSample:
        """Sorted, equal rows of equal class once, and no more than are asked for."""
        order = np.lexsort((self.codes, self.keys))
        keys, codes = self.keys[order], self.codes[order]
        first = np.flatnonzero(np.r_[True, (np.diff(keys) != 0) | (np.diff(codes) != 0)][: len(keys)])
        weight = np.add.reduceat(self.weight[order], first) if len(first) else self.weight[:0]
        keys, codes, rows = keys[first], codes[first], self.rows[order][first]
        whole = ContentSample(self.size, keys, codes, rows, weight, self.mass, self.n)
        return whole if whole.complete else whole.smaller(self.size)

    @property
    def limit(self) -> np.uint64:
        """The largest key of the distinct rows that were asked for; rows of rare classes may lie beyond."""
        return self._limit(self.size)

    @property
    def _distinct(self) -> Keys:
        """The distinct keys of a settled sample."""
        return np.asarray(self.keys[np.r_[True, self.keys[1:] != self.keys[:-1]][: len(self.keys)]])

    def _limit(self, size: int) -> np.uint64:
        distinct = self._distinct
        return distinct[min(size, len(distinct)) - 1] if len(distinct) else np.uint64(0)

    @property
    def complete(self) -> bool:
        """Whether it holds every distinct row."""
        return len(self._distinct) < self.size

    @property
    def n_distinct(self) -> int:
        """Distinct rows of the table: counted where the sample holds them all, else estimated to a percent or so."""
        if self.complete:
            return len(self._distinct)
        return max(self.size, round((self.size - 1) / ((float(self.limit) + 1.0) / 2.0**64)))

    def smaller(self, size: int) -> ContentSample:
        """The sample of fewer rows."""
        ranks = _ranks(self.keys, self.codes)
        bound = np.full(len(self.mass), np.iinfo(np.uint64).max)
        last = ranks == EACH - 1
        bound[self.codes[last]] = np.maximum(self.keys[last], self._limit(size))
        kept = np.flatnonzero(self.keys <= bound[self.codes])
        parts = (self.keys[kept], self.codes[kept], self.rows[kept], self.weight[kept])
        return ContentSample(size, *parts, self.mass, self.n)

    @property
    def sample_weight(self) -> Array | None:
        """What each row stands for, None if that is one row throughout; rows of rare classes, of which more are
        here than their share, stand for less.
        """
        beyond = np.zeros(len(self.keys), dtype=bool) if self.complete else self.keys > self.limit
        if not beyond.any():
            return self.weight if np.any(self.weight != 1.0) else None
        share = min(1.0, (float(self.limit) + 1.0) / 2.0**64)  # of the table's distinct rows that are in the sample
        topped = np.zeros(len(self.mass), dtype=bool)
        topped[self.codes[beyond]] = True
        here = np.bincount(self.codes, self.weight, minlength=len(self.mass))
        factor = np.where(topped, np.minimum(1.0, share * self.mass / np.maximum(here, 1e-300)), 1.0)
        return np.asarray(self.weight * factor[self.codes])


def drawn(table: Table, seed: int, size: int, n_classes: int) -> ContentSample:
    """The sample of a table: one pass or, where most rows are copies of others, two."""
    share = SPARE_ROWS * size / max(table.n, 1)
    if share < 1:
        ceiling = np.uint64(int(share * 2**64))
        found = table.reduce(contents, seed, size, n_classes, ceiling).settled()
        if len(np.unique(found.keys[found.keys <= ceiling])) >= size:
            return found
    return table.reduce(contents, seed, size, n_classes).settled()


def contents(block: Block, seed: int, size: int, n_classes: int, ceiling: Any = None) -> ContentSample:
    """The sample of one block, to be added up and settled; without classes, values tell rows apart too.

    Where a key is known below which the whole table has enough distinct rows, no more are kept (``ceiling``).
    """
    keys = content_keys(block.X)
    keys = mixed(keys if n_classes else keys ^ mixed(content_keys(block.y), 1), seed)
    n = len(keys)
    codes = block.y.astype(np.intp, copy=False) if n_classes else np.zeros(n, dtype=np.intp)
    weight = np.ones(n) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    mass = np.bincount(codes, weight, minlength=max(n_classes, 1))
    used = np.arange(n) if block.weight is None else np.flatnonzero(weight)
    rows = used[_candidates(keys[used], codes[used], size, ceiling)]
    return ContentSample(size, keys[rows], codes[rows], rows, weight[rows], mass, n)


def _candidates(keys: Keys, codes: Rows, size: int, ceiling: Any) -> Rows:
    """Rows with the smallest distinct keys, and of classes that have few among these their smallest."""
    limit = _enough(keys, size) if ceiling is None else ceiling
    if limit is None:
        return np.arange(len(keys))
    small = keys <= limit
    rows = np.flatnonzero(small)
    scarce = np.full(int(codes.max(initial=0)) + 1, True)
    scarce[codes[rows[_ranks(keys[rows], codes[rows]) == EACH - 1]]] = False
    if not scarce.any():
        return rows
    others = np.flatnonzero(scarce[codes] & ~small)
    return np.concatenate([rows, others[_ranks(keys[others], codes[others]) < EACH]])


def _enough(keys: Keys, size: int) -> Any:
    """A key up to which there are so many distinct ones; None if there are not."""
    asked = size
    while asked < len(keys):
        limit = np.partition(keys, asked)[asked]
        if len(np.unique(keys[keys <= limit])) >= size:
            return limit
        asked *= 2
    return None


def _ranks(keys: Keys, codes: Rows) -> Rows:
    """How many distinct smaller keys there are in the class of each."""
    ranks = np.zeros(len(keys), dtype=np.intp)
    if not len(keys):
        return ranks
    order = np.lexsort((keys, codes))
    begins = np.r_[True, np.diff(codes[order]) != 0]
    count = np.cumsum(begins | np.r_[True, np.diff(keys[order]) != 0])
    ranks[order] = count - count[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    return ranks


# ------------------------------------------------------------------ what may stand where arrays are expected


def on_dask(X: Any) -> bool:
    """Whether it is a Dask collection, or a table of one."""
    return is_dask(X) or (isinstance(X, Table) and hasattr(X, "parts"))


def in_blocks(X: Any) -> bool:
    """Whether these rows are not in memory: a table of blocks, a Dask collection, or a source of batches."""
    return not isinstance(X, np.ndarray) and (isinstance(X, Table) or is_dask(X) or is_source(X))


def from_dask(X: Any, y: Any, sample_weight: Any, groups: Any = None, *, labels: bool) -> Any:
    """Dask collections as a table of blocks that stay where they are."""
    from .dask_table import table

    return table(X, y, sample_weight, groups=groups, labels=labels)


def lazy_for_dask(method: Method) -> Method:
    """Let a method return a lazy Dask array, one line per row, if X is a Dask collection."""

    @wraps(method)
    def either(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        from .dask_results import lazily

        return lazily(self, method.__name__, X, *args, **kwargs)

    return either  # type: ignore[return-value]


class ScoreMixin:
    """Accuracy or R^2 of rows in Dask collections, by sums over their blocks; of others as in scikit-learn."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on given labels, or the coefficient of determination of values.

        Rows of a Dask collection stay where they are, and those without a label are left out.
        """
        if is_dask(X):
            from .dask_results import score

            return score(self, X, y, sample_weight)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]
