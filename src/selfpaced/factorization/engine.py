"""The observed entries of a matrix, by row and by column, means of rows and columns, and the half-steps of the solver.

Means are columns of the factors, so that the kernels stay as they are. With both means U = [u, a, C] and V = [v, C, b],
the C constant: U V^T = u v^T + C a + C b. A half-step solves u and a (or v and b) and takes the other side's mean off
the entries first. Because C is large, the ridge hardly sees the means.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..regularizers import GroupRegularizer

logger = logging.getLogger(__name__)

Floats = NDArray[np.floating[Any]]
Factors = tuple[Floats, Floats]

# cost: scales are estimated from at most this many entries; their standard error is then about 0.3 %.
SCALE_ENTRIES = 100_000
HELD_OUT_ENTRIES = 200  # a choice: entries that are held out at least; with fewer in all nothing is
ON_GRID = 0.95  # a choice: the share of the values that have to lie on a grid, the commonest value left aside


@dataclass(frozen=True)
class Side:
    """Entries grouped by row (or, transposed, by column)."""

    indptr: NDArray[np.int64]  # row i holds the entries ``indptr[i]`` to ``indptr[i + 1]``
    indices: NDArray[np.int32]  # the column of every entry
    values: Floats  # the value of every entry, float32 or float64
    sample_weight: Floats  # one weight per entry, or an empty array if all are 1

    @property
    def n_rows(self) -> int:
        return self.indptr.size - 1

    def matrix(self, values: NDArray[Any], n_columns: int) -> Any:
        """A CSR array of these values; with narrow row pointers, or SciPy would copy the indices to wide ones."""
        narrow = self.indptr.astype(np.int32) if self.values.size < 2**31 else self.indptr
        return sp.csr_array((values, self.indices, narrow), shape=(self.n_rows, n_columns))

    def rows(self, start: int, stop: int) -> Side:
        """The entries of rows start to stop, not copied."""
        part = slice(self.indptr[start], self.indptr[stop])
        weights = self.sample_weight[part] if self.sample_weight.size else self.sample_weight
        return Side(self.indptr[start : stop + 1] - self.indptr[start], self.indices[part], self.values[part], weights)

    def across(self, n_columns: int) -> Side:
        """The same entries grouped by column."""
        order = self.matrix(np.arange(self.values.size), n_columns).tocsc()
        weights = self.sample_weight[order.data] if self.sample_weight.size else self.sample_weight
        return Side(order.indptr.astype(np.int64), order.indices, self.values[order.data], weights)

    def counts(self) -> NDArray[np.int64]:
        """How many entries each row has."""
        return np.diff(self.indptr)

    def row_of(self, start: int = 0, stop: int | None = None) -> NDArray[np.int32]:
        """The row of every entry of rows start to stop."""
        stop = self.n_rows if stop is None else stop
        rows = np.arange(start, stop, dtype=np.int32)
        return np.repeat(rows, np.diff(self.indptr[start : stop + 1]))

    def blocks(self, size: int = 1 << 16) -> list[tuple[int, int]]:
        """Ranges of whole rows with about ``size`` entries each, for passes that need a buffer per entry."""
        ranges, start = [], 0
        while start < self.n_rows:
            stop = int(np.searchsorted(self.indptr, self.indptr[start] + size, side="right")) - 1
            stop = min(max(stop, start + 1), self.n_rows)
            ranges.append((start, stop))
            start = stop
        return ranges


@dataclass(frozen=True, eq=False)
class ValueGrid:
    """Values in equal steps: stars, counts, zeros and ones, decimals."""

    error: float  # the standard deviation of what was lost if the values were rounded to the grid
    common: NDArray[np.bool_]  # which entries of the sample have the commonest value


@dataclass(frozen=True)
class Entries:
    """All observed entries in both orders, the fixed sample that scales are estimated from, and the grid of values."""

    shape: tuple[int, int]
    by_row: Side
    by_column: Side
    sample: tuple[NDArray[np.int32], NDArray[np.int32], Floats]
    grid: ValueGrid | None = None

    @property
    def grain(self) -> float:
        """Residuals below it are not told apart: L1 would meet as many values of a grid as it can exactly."""
        return 0.0 if self.grid is None else self.grid.error

    @property
    def size(self) -> int:
        return self.by_row.values.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.by_row.values.dtype

    def shifted(self, rows: Floats, columns: Floats) -> Entries:
        """The entries less a number per row and one per column."""

        def less(side: Side, own: Floats, other: Floats) -> Side:
            return replace(side, values=side.values - own[side.row_of()] - other[side.indices])

        i, j, values = self.sample
        by_row, by_column = less(self.by_row, rows, columns), less(self.by_column, columns, rows)
        return Entries(self.shape, by_row, by_column, (i, j, values - rows[i] - columns[j]), self.grid)

    def empty_rows(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.by_row.counts() == 0)

    def empty_columns(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.by_column.counts() == 0)


def _side(matrix: Any, sample_weight: Floats) -> Side:
    # read-only arrays (memory maps) would make the kernels compile once more
    return Side(
        np.require(matrix.indptr, np.int64, ["C", "W"]),
        np.require(matrix.indices, np.int32, ["C", "W"]),
        np.require(matrix.data, None, ["C", "W"]),
        np.require(sample_weight, matrix.dtype, ["C", "W"]),
    )


def _sample(side: Side, rng: np.random.Generator) -> tuple[Any, Any, Floats]:
    """A fixed random sample of entries; sorted, so that reading it is friendly to the cache."""
    size = side.values.size
    if size <= SCALE_ENTRIES:
        return side.row_of(), side.indices, side.values
    chosen = np.sort(rng.integers(0, size, SCALE_ENTRIES))
    rows = np.searchsorted(side.indptr, chosen, side="right") - 1
    return rows.astype(np.int32), side.indices[chosen], side.values[chosen]


def grid_of(values: Floats) -> ValueGrid | None:
    """The grid that values lie on, or None.

    >>> round(grid_of(np.array([1.0, 2.0, 2.0, 5.0, 4.0, 1.0])).error, 3)
    0.289
    >>> grid_of(np.random.default_rng(0).normal(size=100)) is None
    True
    """
    some = values[:: max(values.size // 10_000, 1)]
    # what differs by less than ten roundings of the largest value is the same value
    unit = 10 * float(np.finfo(values.dtype).eps) * float(np.abs(some).max(initial=0.0))
    if not unit > 0:
        return None
    distinct, counts = np.unique(np.rint(some.astype(np.float64) / unit), return_counts=True)
    repeated = distinct[counts > 1]
    if repeated.size < 2:
        return None
    step, commonest = float(np.diff(repeated).min()), int(np.argmax(counts))
    places = (distinct - distinct[commonest]) / step
    counts[commonest] = 0
    if counts[np.abs(places - np.rint(places)) < 0.1].sum() < ON_GRID * counts.sum():
        return None
    return ValueGrid(step * unit / math.sqrt(12), np.abs(values - distinct[commonest] * unit) < step * unit / 2)


def from_csr(matrix: Any, sample_weight: Floats | None = None, *, both: bool = True) -> Entries:
    """Entries from a CSR matrix with sorted indices; its arrays are shared, not copied.

    Parameters
    ----------
    matrix : CSR matrix or array
        Stored entries are the observed ones, zeros included.
    sample_weight : ndarray or None
        One weight per stored entry.
    both : bool, default=True
        Whether the entries by column are needed too (not when only rows are fitted).
    """
    none = np.empty(0, dtype=matrix.dtype)
    by_row = _side(matrix, none if sample_weight is None else sample_weight)
    by_column = by_row
    if both:
        transposed = matrix.tocsc()
        weights = none
        if sample_weight is not None:
            weights = sp.csr_array((sample_weight, matrix.indices, matrix.indptr), matrix.shape).tocsc().data
        by_column = _side(transposed, weights)
    # The sample only has to be representative: a fixed seed keeps fits with equal random_state equal.
    sample = _sample(by_row, np.random.default_rng(0))
    return Entries(matrix.shape, by_row, by_column, sample, grid_of(sample[2]) if both else None)


@dataclass(frozen=True)
class Means:
    """Which means are part of the model."""

    rows: bool = False  # whether every row, every column has a mean of its own
    columns: bool = False

    @property
    def count(self) -> int:
        """How many columns of the factors hold means."""
        return self.rows + self.columns

    def rank(self, U: Floats) -> int:
        """The number of components, means left out."""
        return int(U.shape[1]) - self.count

    def join(self, U: Floats, V: Floats, lever: float) -> Factors:
        """Factors with means, which are zero at first."""
        rank = U.shape[1]
        left, right = (np.zeros((len(factor), rank + self.count), U.dtype) for factor in (U, V))
        left[:, :rank], right[:, :rank] = U, V
        if self.rows:
            right[:, rank] = lever
        if self.columns:
            left[:, -1] = lever
        return left, right

    def split(self, U: Floats, V: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Components of rows and columns, means of rows and columns."""
        rank = self.rank(U)
        rows, columns = np.zeros(len(U), U.dtype), np.zeros(len(V), U.dtype)
        if self.rows:
            rows = U[:, rank] * V[0, rank]
        if self.columns:
            columns = V[:, -1] * U[0, -1]
        return U[:, :rank], V[:, :rank], rows, columns

    def with_components(self, U: Floats, V: Floats, components: Factors) -> Factors:
        """The same means with other components."""
        rank = self.rank(U)
        u, v = components
        return np.ascontiguousarray(np.hstack([u, U[:, rank:]])), np.ascontiguousarray(np.hstack([v, V[:, rank:]]))

    def half(self, side: Side, U: Floats, V: Floats, by_row: bool) -> tuple[Side, Floats, Floats, Any]:
        """What one half-step solves: entries less the other side's means, and the columns of U and V, by number."""
        if not self.count:
            return side, U, V, slice(None)
        rank = self.rank(U)
        of_rows, of_columns = rank if self.rows else None, rank + self.rows if self.columns else None
        own, other = (of_rows, of_columns) if by_row else (of_columns, of_rows)
        if other is not None:
            side = replace(side, values=side.values - (V[:, other] * U[0, other])[side.indices])
        free = np.arange(rank) if own is None else np.append(np.arange(rank), own)
        return side, np.ascontiguousarray(U[:, free]), np.ascontiguousarray(V[:, free]), free


NO_MEANS = Means()


@dataclass(frozen=True, eq=False)
class Levels:
    """First means, which were taken off the entries; the factors hold what was added to them since."""

    means: Means
    rows: Floats
    columns: Floats


# ------------------------------------------------------------------------------------------------- the half-steps


@dataclass(frozen=True)
class WeightedSolve:
    """What one weighted ridge solve needs to know."""

    regularizer: Any  # the rule; None weighs all entries alike
    lam: float  # the pace, ``inf`` for the plain model
    ridge: float  # the L2 penalty of the factors
    eps: float = 0.0  # residuals below it are not told apart: the smoothing of the absolute value
    quadratic: bool = False  # whether the base loss is r^2 (no IRLS) instead of abs(r)
    unit: float = 1.0  # losses are divided by it before the rule sees them; 1 unless the rule has a scale of its own

    def at(self, **changes: Any) -> WeightedSolve:
        return replace(self, **changes)

    @property
    def grouped(self) -> bool:
        return isinstance(self.regularizer, GroupRegularizer)

    @property
    def plain(self) -> bool:
        return self.regularizer is None or math.isinf(self.lam)

    def loss(self, residuals: Floats) -> Floats:
        """The base loss as the rule sees it."""
        size = np.abs(residuals)
        if self.quadratic:
            size *= size
        if self.unit != 1.0:
            size /= size.dtype.type(self.unit)
        return size

    def relative_weight(self, residuals: Floats, groups: Any = None) -> Floats:
        """Weights in [0, 1]; group rules balance the matrix's rows, whose labels are ``groups``."""
        if self.plain:
            return np.ones_like(residuals)
        if self.grouped:
            weights = self.regularizer.weight(self.loss(residuals), self.lam, groups)
        else:
            weights = self.regularizer.relative_weight(self.loss(residuals), self.lam)
        return np.asarray(weights, dtype=residuals.dtype)


@functools.cache
def _say_slower() -> None:
    logger.warning(
        "numba is not installed: matrix factorization uses its NumPy path, with equal results at about a third "
        'of the speed; pip install "selfpaced[fast]" makes it fast'
    )


def resolve(backend: str, n_jobs: int | None) -> Engine:
    """The engine for the estimator's parameters ``backend`` and ``n_jobs``."""
    if backend == "auto":
        backend = "numba" if importlib.util.find_spec("numba") is not None else "numpy"
        if backend == "numpy":
            _say_slower()
    cores = os.cpu_count() or 1
    threads = 1 if n_jobs is None else int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))
    return Engine(backend == "numba", threads)


@dataclass(frozen=True)
class Engine:
    """The half-steps and residuals, compiled or not: the results agree to rounding.

    ``means`` says which columns of the factors are means.
    """

    compiled: bool
    n_threads: int = 1
    means: Means = NO_MEANS

    def half(self, side: Side, U: Floats, V: Floats, solve: WeightedSolve, *, by_row: bool = True) -> None:
        """Solve every row of U exactly, V held fixed; U is updated in place."""
        side, own, V, free = self.means.half(side, U, V, by_row)
        if own.shape[1]:
            self._solve(side, own, V, solve, by_row)
        if own is not U:
            U[:, free] = own

    def _solve(self, side: Side, U: Floats, V: Floats, solve: WeightedSolve, by_row: bool) -> None:
        """Block by block: the IRLS weights of the entries, then one weighted ridge solve per row."""
        # The weights of a group rule depend on all entries; the groups are the rows of the matrix.
        given = None
        if solve.grouped:
            given = solve.relative_weight(self.residuals(side, U, V), side.row_of() if by_row else side.indices)
        pairs, ridge = None if self.compiled else _pairs(V), U.dtype.type(solve.ridge)
        for start, stop in side.blocks():
            low, high = int(side.indptr[start]), int(side.indptr[stop])
            known = None if given is None else given[low:high]
            weights = np.ascontiguousarray(self._weights(side, U, V, solve, start, stop, known), dtype=U.dtype)
            if pairs is not None:
                _solve_rows(side, U, V, pairs, weights, ridge, start, stop)
                continue
            from .kernels import solve_rows

            arrays = side.indptr, side.indices, side.values, weights, U, V
            solve_rows(*arrays, ridge, start, stop, low, n_threads=self.n_threads)

    def _weights(
        self, side: Side, U: Floats, V: Floats, solve: WeightedSolve, start: int, stop: int, given: Floats | None
    ) -> Floats:
        """IRLS weights of the entries of some rows: over max(|residual|, eps) for the absolute loss."""
        part = slice(side.indptr[start], side.indptr[stop])
        own = side.sample_weight[part] if side.sample_weight.size else None
        residuals = self.residuals(side, U, V, start, stop)
        weights = solve.relative_weight(residuals) if given is None else given
        if not solve.quadratic:
            weights = weights / np.maximum(np.abs(residuals), residuals.dtype.type(solve.eps))
        return weights if own is None else weights * own

    def sweep(self, entries: Entries, U: Floats, V: Floats, solve: WeightedSolve) -> None:
        """One half-step for the rows, one for the columns."""
        self.half(entries.by_row, U, V, solve)
        self.half(entries.by_column, V, U, solve, by_row=False)

    def residuals(self, side: Side, U: Floats, V: Floats, start: int = 0, stop: int | None = None) -> Floats:
        """y - U V^T at the stored entries of rows start to stop, in their stored order."""
        stop = side.n_rows if stop is None else stop
        part = slice(side.indptr[start], side.indptr[stop])
        if not self.compiled:
            return _residuals_at(side.row_of(start, stop), side.indices[part], side.values[part], U, V)
        from .kernels import residuals_rows

        out = np.empty(part.stop - part.start, dtype=side.values.dtype)
        residuals_rows(side.indptr, side.indices, side.values, U, V, start, stop, out)
        return out

    def sampled_residuals(self, entries: Entries, U: Floats, V: Floats) -> Floats:
        """Residuals of the fixed sample of entries: enough for scales and for the pace."""
        rows, columns, values = entries.sample
        if not self.compiled:
            return _residuals_at(rows, columns, values, U, V)
        from .kernels import residuals_at

        out = np.empty_like(values)
        residuals_at(rows, columns, values, U, V, out)
        return out


# The NumPy path. The Gram matrices of all rows are one sparse product: with Z the pairwise products of V's columns,
# row i of W Z is the lower half of sum_j w_ij v_j v_j^T.


def _residuals_at(rows: Any, columns: Any, values: Floats, U: Floats, V: Floats) -> Floats:
    """y - U V^T at the given entries, in chunks so that the gathered factors stay small."""
    out = np.empty_like(values)
    for low in range(0, values.size, 1 << 16):
        part = slice(low, low + (1 << 16))
        out[part] = values[part] - np.einsum("ij,ij->i", U[rows[part]], V[columns[part]])
    return out


def _pairs(V: Floats) -> Floats:
    """Products of every two columns of V, the lower half."""
    lower = np.tril_indices(V.shape[1])
    return np.asarray(V[:, lower[0]] * V[:, lower[1]])


def _solve_rows(
    side: Side, U: Floats, V: Floats, pairs: Floats, weights: Floats, ridge: Any, start: int, stop: int
) -> None:
    """Update rows start to stop of U in place: per row the exact ridge solution under these weights."""
    low, high = side.indptr[start], side.indptr[stop]
    r, shape = V.shape[1], (stop - start, V.shape[0])
    lower = np.tril_indices(r)
    indptr, indices = side.indptr[start : stop + 1] - low, side.indices[low:high]
    gram = np.empty((stop - start, r, r), dtype=U.dtype)
    gram[:, lower[0], lower[1]] = sp.csr_array((weights, indices, indptr), shape) @ pairs
    gram[:, lower[1], lower[0]] = gram[:, lower[0], lower[1]]
    gram[:, np.arange(r), np.arange(r)] += ridge
    targets = sp.csr_array((weights * side.values[low:high], indices, indptr), shape) @ V
    U[start:stop] = np.linalg.solve(gram, targets[:, :, None])[:, :, 0]
