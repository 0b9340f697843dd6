"""One half-step of the alternation on either backend, and what is measured between steps."""

from __future__ import annotations

import functools
import importlib.util
import logging
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..regularizers import GroupRegularizer
from ..regularizers.program import Program, record, weight_program
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


_PLAIN = record(lambda xp, loss: xp.ones_like(loss), np.float64)


def compiled_weight(solve: WeightedSolve, dtype: Any) -> Program | None:
    """The weight of the rule as the compiled loop runs it; None if all entries have to be weighed between two loops."""
    if solve.plain:
        return _PLAIN
    return None if solve.grouped else weight_program(solve.regularizer, solve.lam, np.dtype(dtype))


@functools.cache
def _say_slower() -> None:
    logger.warning(
        "numba is not installed: matrix factorization uses its NumPy path, with equal results at about a third "
        'of the speed; pip install "selfpaced[fast]" makes it fast'
    )


def resolve(backend: str, n_jobs: int | None) -> Engine:
    """The engine for the estimator's parameters ``backend`` and ``n_jobs``."""
    if backend not in ("auto", "numba", "numpy"):
        raise ValueError(f"backend must be 'auto', 'numba' or 'numpy', got {backend!r}")
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or a non-zero integer, got {n_jobs!r}")
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
        if self.compiled:
            self._half_compiled(side, U, V, solve, by_row)
        else:
            self._half_numpy(side, U, V, solve, by_row)

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

    def _half_numpy(self, side: Side, U: Floats, V: Floats, solve: WeightedSolve, by_row: bool) -> None:
        given = self._group_weights(side, U, V, solve, by_row) if solve.grouped else None

        def weigh(residuals: Floats, start: int, stop: int) -> Floats:
            part = slice(side.indptr[start], side.indptr[stop])
            weights = solve.relative_weight(residuals) if given is None else given[part]
            if not solve.quadratic:
                weights = weights / np.maximum(np.abs(residuals), residuals.dtype.type(solve.eps))
            if side.sample_weight.size:
                weights = weights * side.sample_weight[part]
            return weights

        _solve_rows(side, U, V, weigh, solve.ridge)

    def _group_weights(self, side: Side, U: Floats, V: Floats, solve: WeightedSolve, by_row: bool) -> Floats:
        """Weights of a group rule: not elementwise, so all entries at once; the groups are the matrix's rows."""
        return solve.relative_weight(self.residuals(side, U, V), side.row_of() if by_row else side.indices)

    def _half_compiled(self, side: Side, U: Floats, V: Floats, solve: WeightedSolve, by_row: bool) -> None:
        from . import kernels

        real = U.dtype.type
        numbers = (real(1 / solve.unit), real(solve.eps), real(solve.ridge), solve.quadratic)
        arrays = (side.indptr, side.indices, side.values, side.sample_weight)
        program = compiled_weight(solve, U.dtype)
        code = kernels.encode(_PLAIN if program is None else program, U.dtype)
        if program is not None:
            none, span = np.empty(0, dtype=U.dtype), (0, side.n_rows, 0)
            kernels.solve_rows(*arrays, none, U, V, code, *numbers, *span, n_threads=self.n_threads)
            return
        everything = self._group_weights(side, U, V, solve, by_row) if solve.grouped else None
        for start, stop in side.blocks():
            low, high = int(side.indptr[start]), int(side.indptr[stop])
            if everything is None:
                given = solve.relative_weight(self.residuals(side, U, V, start, stop))
            else:
                given = everything[low:high]
            given = np.ascontiguousarray(given, dtype=U.dtype)
            span = (start, stop, low)
            kernels.solve_rows(*arrays, given, U, V, code, *numbers, *span, n_threads=self.n_threads)


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


def _solve_rows(side: Side, U: Floats, V: Floats, weigh: Callable[[Floats, int, int], Floats], ridge: float) -> None:
    """Update U in place: per row the exact ridge solution under the weights of its current residuals.

    ``weigh(residuals, start, stop)`` gives the IRLS weights of rows start to stop.
    """
    r = V.shape[1]
    lower = np.tril_indices(r)
    pairs = V[:, lower[0]] * V[:, lower[1]]
    for start, stop in side.blocks():
        low, high = side.indptr[start], side.indptr[stop]
        weights = weigh(_residuals_rows(side, U, V, start, stop), start, stop)
        shape = (stop - start, V.shape[0])
        indptr, indices = side.indptr[start : stop + 1] - low, side.indices[low:high]
        gram = np.empty((stop - start, r, r), dtype=U.dtype)
        gram[:, lower[0], lower[1]] = sp.csr_array((weights, indices, indptr), shape) @ pairs
        gram[:, lower[1], lower[0]] = gram[:, lower[0], lower[1]]
        gram[:, np.arange(r), np.arange(r)] += U.dtype.type(ridge)
        targets = sp.csr_array((weights * side.values[low:high], indices, indptr), shape) @ V
        U[start:stop] = np.linalg.solve(gram, targets[:, :, None])[:, :, 0]
