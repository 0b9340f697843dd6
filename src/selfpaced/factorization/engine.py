"""One half-step of the alternation on either backend, and what is measured between steps."""

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

from ..regularizers import GroupRegularizer
from .entries import NO_MEANS, Entries, Floats, Means, Side

logger = logging.getLogger(__name__)


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
        pairs = None if self.compiled else _pairs(V)
        for start, stop in side.blocks():
            low, high = int(side.indptr[start]), int(side.indptr[stop])
            known = None if given is None else given[low:high]
            weights = self._weights(side, U, V, solve, start, stop, known)
            if pairs is None:
                self._solve_compiled(side, U, V, weights, solve.ridge, start, stop)
            else:
                _solve_rows(side, U, V, pairs, weights, solve.ridge, start, stop)

    def _weights(
        self, side: Side, U: Floats, V: Floats, solve: WeightedSolve, start: int, stop: int, given: Floats | None
    ) -> Floats:
        """IRLS weights of the entries of some rows: over max(|residual|, eps) for the absolute loss."""
        part = slice(side.indptr[start], side.indptr[stop])
        own = side.sample_weight[part] if side.sample_weight.size else None
        if solve.plain and solve.quadratic:
            return np.ones_like(side.values[part]) if own is None else own
        residuals = self.residuals(side, U, V, start, stop)
        weights = solve.relative_weight(residuals) if given is None else given
        if not solve.quadratic:
            weights = weights / np.maximum(np.abs(residuals), residuals.dtype.type(solve.eps))
        return weights if own is None else weights * own

    def _solve_compiled(
        self, side: Side, U: Floats, V: Floats, weights: Floats, ridge: float, start: int, stop: int
    ) -> None:
        from . import kernels

        arrays = (side.indptr, side.indices, side.values, np.ascontiguousarray(weights, dtype=U.dtype), U, V)
        span = (start, stop, int(side.indptr[start]))
        kernels.solve_rows(*arrays, U.dtype.type(ridge), *span, n_threads=self.n_threads)

    def sweep(self, entries: Entries, U: Floats, V: Floats, solve: WeightedSolve) -> None:
        """One half-step for the rows, one for the columns."""
        self.half(entries.by_row, U, V, solve)
        self.half(entries.by_column, V, U, solve, by_row=False)

    def residuals(self, side: Side, U: Floats, V: Floats, start: int = 0, stop: int | None = None) -> Floats:
        """y - U V^T at the stored entries of rows start to stop, in their stored order."""
        stop = side.n_rows if stop is None else stop
        if not self.compiled:
            return _residuals_rows(side, U, V, start, stop)
        from . import kernels

        out = np.empty(side.indptr[stop] - side.indptr[start], dtype=side.values.dtype)
        kernels.residuals_rows(side.indptr, side.indices, side.values, U, V, start, stop, out)
        return out

    def sampled_residuals(self, entries: Entries, U: Floats, V: Floats) -> Floats:
        """Residuals of the fixed sample of entries: enough for scales and for the pace."""
        rows, columns, values = entries.sample
        if not self.compiled:
            return _residuals_at(rows, columns, values, U, V)
        from . import kernels

        out = np.empty_like(values)
        kernels.residuals_at(rows, columns, values, U, V, out)
        return out


# The NumPy path. The Gram matrices of all rows are one sparse product: with Z the pairwise products of V's columns,
# row i of W Z is the lower half of sum_j w_ij v_j v_j^T.


def _residuals_rows(side: Side, U: Floats, V: Floats, start: int, stop: int) -> Floats:
    """y - U V^T at the stored entries of rows start to stop."""
    low, high = side.indptr[start], side.indptr[stop]
    return _residuals_at(side.row_of(start, stop), side.indices[low:high], side.values[low:high], U, V)


def _residuals_at(rows: Any, columns: Any, values: Floats, U: Floats, V: Floats, chunk: int = 1 << 16) -> Floats:
    """y - U V^T at the given entries, in chunks so that the gathered factors stay small."""
    out = np.empty_like(values)
    for low in range(0, values.size, chunk):
        part = slice(low, low + chunk)
        out[part] = values[part] - np.einsum("ij,ij->i", U[rows[part]], V[columns[part]])
    return out


def _pairs(V: Floats) -> Floats:
    """Products of every two columns of V, the lower half."""
    lower = np.tril_indices(V.shape[1])
    return np.asarray(V[:, lower[0]] * V[:, lower[1]])


def _solve_rows(
    side: Side, U: Floats, V: Floats, pairs: Floats, weights: Floats, ridge: float, start: int, stop: int
) -> None:
    """Update rows start to stop of U in place: per row the exact ridge solution under these weights."""
    low, high = side.indptr[start], side.indptr[stop]
    r, shape = V.shape[1], (stop - start, V.shape[0])
    lower = np.tril_indices(r)
    indptr, indices = side.indptr[start : stop + 1] - low, side.indices[low:high]
    gram = np.empty((stop - start, r, r), dtype=U.dtype)
    gram[:, lower[0], lower[1]] = sp.csr_array((weights, indices, indptr), shape) @ pairs
    gram[:, lower[1], lower[0]] = gram[:, lower[0], lower[1]]
    gram[:, np.arange(r), np.arange(r)] += U.dtype.type(ridge)
    targets = sp.csr_array((weights * side.values[low:high], indices, indptr), shape) @ V
    U[start:stop] = np.linalg.solve(gram, targets[:, :, None])[:, :, 0]
