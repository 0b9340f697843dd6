"""Where rows lie, and the little that a model asks of them: sums over blocks, and some rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..fitting import is_dask

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
    """Rows in blocks, numbered from 0 in an order that stays; the same model comes of them wherever they lie.

    Attributes
    ----------
    n, n_features : int
        Rows and features.
    dtype : dtype
        Of the features.
    names : sequence of str or None
        Of the features.
    classes : ndarray or None
        The labels, sorted, where blocks hold their codes; None where they hold values.
    mass : ndarray
        Weight of the rows of every class; one number where they have values.
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

    def __init__(
        self,
        X: Any,
        y: Array,
        weight: Array | None = None,
        *,
        classes: Array | None = None,
        names: Sequence[str] | None = None,
        n_blocks: int = 1,
    ) -> None:
        self.block, self.classes, self.names = Block(X, y, weight), classes, names
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


# ------------------------------------------------------------------ what may stand where arrays are expected


def on_dask(X: Any) -> bool:
    """Whether it is a Dask collection, or a table of one."""
    return is_dask(X) or (isinstance(X, Table) and hasattr(X, "parts"))


def is_source(X: Any) -> bool:
    """Whether rows come in batches, and not all at once."""
    lazy = type(X).__module__.startswith("polars") and type(X).__name__ == "LazyFrame"
    return lazy or is_dataset(X) or isinstance(X, Iterator | str | Path)


def is_dataset(X: Any) -> bool:
    """Whether it is a dataset of pyarrow."""
    return hasattr(X, "to_batches") and hasattr(X, "scanner") and hasattr(X, "schema")


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
