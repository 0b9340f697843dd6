"""Rows that a linear fit should not follow: misled by their own features, or in a second heap of residuals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.stats import rankdata

from ..robust import madn, second_heap, weighted_quantile
from ._least_squares import DENSE_GRAM, Squares, exact_floor

__all__ = ["ABSURD", "RANK_SHIFT", "UNUSUAL", "absurd_rows", "rejected_rows", "row_sizes"]

Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
# Measured by benchmarks/regression.py tables.
UNUSUAL = 2.0  # times the size of the median row, from which on features are unusual
RANK_SHIFT = 3.0  # standard errors, below which a residual of an unusual row or a shift of ranks says nothing
ABSURD = 10.0  # a choice: times the largest residual of the plain fit
EXTREME = 0.85  # mean rank of |y - median| of misled rows, above which the relation bends there


def row_sizes(squares: Squares) -> Floats:
    """Return how far each row of features is from their medians, relative to the median row.

    A column counts in units of its median nonzero deviation, so that indicators and counts have a unit, too.
    """
    X = squares.source if squares.source is not None else squares.matrix
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    weight = squares.sample_weight
    size = np.abs(X - [weighted_quantile(column, 0.5, weight) for column in X.T])
    size /= [_median_of_nonzero(column, weight) for column in size.T]
    largest = np.maximum(size.max(axis=1, initial=0.0), np.finfo(float).tiny)  # squares of these may overflow
    distance = largest * np.sqrt(np.mean(np.square(size / largest[:, None]), axis=1))
    return np.asarray(distance / (weighted_quantile(distance, 0.5, weight) or _median_of_nonzero(distance, weight)))


def _median_of_nonzero(size: Floats, weight: Floats | None) -> float:
    used = size > 0
    return weighted_quantile(size[used], 0.5, None if weight is None else weight[used]) if used.any() else 1.0


def rejected_rows(squares: Squares, residuals: Floats, sizes: Floats) -> Mask:
    """Return the rows that are misled by unusual features, and usual rows in a second heap of residuals."""
    weight = squares.sample_weight
    centre = weighted_quantile(residuals, 0.5, weight)
    sigma = madn(residuals - centre, weight)
    if not sigma > exact_floor(squares):
        return np.zeros(len(residuals), dtype=bool)
    off = misled_rows(squares, residuals, sigma, sizes)
    t = (residuals - centre) / sigma
    usual = ~off
    return off | (((t > second_heap(t[usual])) | (-t > second_heap(-t[usual]))) & (sizes <= UNUSUAL))


def misled_rows(squares: Squares, residuals: Floats, sigma: float, sizes: Floats) -> Mask:
    """Return the rows of unusual features that the fit predicts worse than the median of the values does.

    Wrong features say nothing of the values. If these values are larger, smaller or more extreme than those of all
    rows, the features are right and the relation is no line there: then no row is misled.
    """
    size, spread = np.abs(residuals), np.abs(squares.target - np.median(squares.target))
    misled = (sizes > UNUSUAL) & (size > RANK_SHIFT * sigma) & (size > spread)
    if misled.any():
        shift = abs(_mean_rank(squares.target, misled) - 0.5)
        error = math.sqrt(1 / 12 / np.count_nonzero(misled))  # of the mean of uniform ranks
        if shift > RANK_SHIFT * error or _mean_rank(spread, misled) > EXTREME:
            misled[:] = False
    return np.asarray(misled)


def _mean_rank(values: Floats, rows: Mask) -> float:
    """Return the mean rank of some of the values, between 0 and 1."""
    return float(np.mean((rankdata(values)[rows] - 0.5) / len(values)))


def absurd_rows(
    squares: Squares, residuals: Floats, plain: Floats, weights: Floats, sigma: float, trusted: Mask | None = None
) -> Mask:
    """Rows that a fit predicts absurdly although nothing shows that they are wrong.

    Absurd is ten times as far off as the worst row of the plain fit. Nothing shows that a row is wrong if it is
    trusted, or if the rows in the fit determine its prediction so poorly that the residual is within its error.
    """
    size = np.abs(residuals)
    absurd = size > max(ABSURD * float(np.abs(plain).max(initial=0.0)), exact_floor(squares))
    if absurd.any() and squares.n_columns <= DENSE_GRAM:
        values, axes = linalg.eigh(squares.gram(squares.total(weights)))
        least = float(np.finfo(np.float64).eps) * values[-1]
        turned = np.asarray(squares.matrix[np.flatnonzero(absurd)] @ axes, dtype=np.float64)
        error = sigma * np.sqrt(1 + (np.square(turned) / np.maximum(values, least)).sum(axis=1))
        known = size[absurd] > RANK_SHIFT * error
        absurd[absurd] = ~known if trusted is None else ~known | trusted[absurd]
    return absurd
