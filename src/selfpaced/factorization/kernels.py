"""Compiled inner loops of the alternating solver (numba): one exact weighted ridge solve per row.

Nothing is compiled on import: the first call compiles (a few seconds) and the result is cached on disk.
The rank is a run-time value, so that a machine code serves every rank; the Gram matrix is updated by eight
entries at a time, which is what lets the compiler keep its rows in vector registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import numba as nb
except ImportError as error:  # the NumPy path needs none of this file
    raise ImportError('the compiled kernels need numba: pip install "selfpaced[fast]"') from error

# Reassociation lets sums be vectorised; NaN and infinity keep their meaning (an infinite pace is legal).
_FAST = {"reassoc", "contract", "arcp", "nsz"}


def _compiled(**options: Any) -> Callable[[Any], Any]:
    """``njit`` with the cache on disk, or without it where no cache directory can be written."""

    def decorate(function: Any) -> Any:
        try:
            return nb.njit(cache=True, fastmath=_FAST, error_model="numpy", nogil=True, **options)(function)
        except RuntimeError:
            return nb.njit(fastmath=_FAST, error_model="numpy", nogil=True, **options)(function)

    return decorate


@_compiled()
def _cholesky_solve(A, b):  # type: ignore[no-untyped-def]
    """Solve A x = b in place, A symmetric positive definite (its lower half is read and overwritten)."""
    r = b.size
    for j in range(r):
        total = A[j, j]
        for k in range(j):
            total -= A[j, k] * A[j, k]
        pivot = math.sqrt(total)
        A[j, j] = pivot
        for i in range(j + 1, r):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / pivot
    for i in range(r):
        total = b[i]
        for k in range(i):
            total -= A[i, k] * b[k]
        b[i] = total / A[i, i]
    for i in range(r - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, r):
            total -= A[k, i] * b[k]
        b[i] = total / A[i, i]


@_compiled()
def _add_outer(A, G, H):  # type: ignore[no-untyped-def]
    """A += H^T G for eight rows at a time."""
    r = A.shape[0]
    for k in range(r):
        h0, h1, h2, h3 = H[0, k], H[1, k], H[2, k], H[3, k]
        h4, h5, h6, h7 = H[4, k], H[5, k], H[6, k], H[7, k]
        for m in range(r):
            A[k, m] += (
                h0 * G[0, m]
                + h1 * G[1, m]
                + h2 * G[2, m]
                + h3 * G[3, m]
                + h4 * G[4, m]
                + h5 * G[5, m]
                + h6 * G[6, m]
                + h7 * G[7, m]
            )


@_compiled()
def _solve_range(indptr, indices, y, weights, U, V, ridge, start, stop, offset):  # type: ignore[no-untyped-def]
    """Solve rows start to stop of U; ``weights`` are those of the stored entries from ``offset`` on."""
    r = U.shape[1]
    A = np.empty((r, r), U.dtype)
    b = np.empty(r, U.dtype)
    G = np.zeros((8, r), U.dtype)
    H = np.zeros((8, r), U.dtype)
    for i in range(start, stop):
        for k in range(r):
            b[k] = 0
            for m in range(r):
                A[k, m] = 0
        filled = 0
        for p in range(indptr[i], indptr[i + 1]):
            weight = weights[p - offset]
            if weight > 0:  # rejected entries cost nothing
                j = indices[p]
                target = y[p] * weight
                for k in range(r):
                    value = V[j, k]
                    G[filled, k] = value
                    H[filled, k] = weight * value
                    b[k] += target * value
                filled += 1
                if filled == 8:
                    _add_outer(A, G, H)
                    filled = 0
        if filled:
            for q in range(filled, 8):
                for k in range(r):
                    H[q, k] = 0
            _add_outer(A, G, H)
        for k in range(r):
            A[k, k] += ridge
        _cholesky_solve(A, b)
        for k in range(r):
            U[i, k] = b[k]


@_compiled(parallel=True)
def _solve_parallel(indptr, indices, y, weights, U, V, ridge, start, stop, offset, chunks):  # type: ignore[no-untyped-def]
    rows = stop - start
    for chunk in nb.prange(chunks):
        low = start + rows * chunk // chunks
        high = start + rows * (chunk + 1) // chunks
        _solve_range(indptr, indices, y, weights, U, V, ridge, low, high, offset)


@_compiled()
def residuals_rows(indptr, indices, y, U, V, start, stop, out):  # type: ignore[no-untyped-def]
    """y - U V^T at the stored entries of rows start to stop."""
    offset = indptr[start]
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            e = y[p]
            for k in range(U.shape[1]):
                e -= U[i, k] * V[indices[p], k]
            out[p - offset] = e


@_compiled()
def residuals_at(rows, columns, y, U, V, out):  # type: ignore[no-untyped-def]
    """y - U V^T at the given entries."""
    for p in range(y.size):
        e = y[p]
        for k in range(U.shape[1]):
            e -= U[rows[p], k] * V[columns[p], k]
        out[p] = e


def solve_rows(*args: Any, n_threads: int = 1) -> None:
    """Update rows start to stop of U in place, in parallel if more than one thread is asked for."""
    if n_threads <= 1:
        _solve_range(*args)
        return
    allowed = min(n_threads, int(nb.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
    before = nb.get_num_threads()
    nb.set_num_threads(allowed)
    try:
        _solve_parallel(*args, 8 * allowed)
    finally:
        nb.set_num_threads(before)
