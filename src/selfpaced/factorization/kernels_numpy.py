"""The alternating solver's inner step in NumPy and SciPy: the reference for the compiled kernels, and their stand-in.

The Gram matrices of all rows are one sparse product: with Z the pairwise products of V's columns,
row i of W Z is the lower half of sum_j w_ij v_j v_j^T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .entries import Floats, Side


def residuals_rows(side: Side, U: Floats, V: Floats, start: int, stop: int) -> Floats:
    """y - U V^T at the stored entries of rows start to stop."""
    low, high = side.indptr[start], side.indptr[stop]
    return residuals_at(side.row_of(start, stop), side.indices[low:high], side.values[low:high], U, V)


def residuals_at(rows: Any, columns: Any, values: Floats, U: Floats, V: Floats, chunk: int = 1 << 16) -> Floats:
    """y - U V^T at the given entries, in chunks so that the gathered factors stay small."""
    out = np.empty_like(values)
    for low in range(0, values.size, chunk):
        part = slice(low, low + chunk)
        out[part] = values[part] - np.einsum("ij,ij->i", U[rows[part]], V[columns[part]])
    return out


def solve_rows(side: Side, U: Floats, V: Floats, weigh: Callable[[Floats, int, int], Floats], ridge: float) -> None:
    """Update U in place: per row the exact ridge solution under the weights of its current residuals.

    ``weigh(residuals, start, stop)`` gives the IRLS weights of rows start to stop.
    """
    r = V.shape[1]
    lower = np.tril_indices(r)
    pairs = V[:, lower[0]] * V[:, lower[1]]
    for start, stop in side.blocks():
        low, high = side.indptr[start], side.indptr[stop]
        weights = weigh(residuals_rows(side, U, V, start, stop), start, stop)
        shape = (stop - start, V.shape[0])
        indptr, indices = side.indptr[start : stop + 1] - low, side.indices[low:high]
        gram = np.empty((stop - start, r, r), dtype=U.dtype)
        gram[:, lower[0], lower[1]] = sp.csr_array((weights, indices, indptr), shape) @ pairs
        gram[:, lower[1], lower[0]] = gram[:, lower[0], lower[1]]
        gram[:, np.arange(r), np.arange(r)] += U.dtype.type(ridge)
        targets = sp.csr_array((weights * side.values[low:high], indices, indptr), shape) @ V
        U[start:stop] = np.linalg.solve(gram, targets[:, :, None])[:, :, 0]
