"""Rows that a linear fit should not follow: misled by their own features, or in a second heap of residuals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import rankdata

from ..robust import madn, second_heap, weighted_quantile
from ._least_squares import Squares, exact_floor

__all__ = ["CUT", "FAR", "rejected_rows", "row_sizes"]

Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
# Measured by benchmarks/regression.py tables.
FAR = 2.0  # times the size of the median row, from which on features are unusual
CUT = 3.0  # standard errors, below which a residual of an unusual row or a shift of ranks says nothing
EXTREME = 0.85  # mean rank of |y - median| of misled rows, above which the relation bends there


def row_sizes(squares: Squares) -> Floats:
    """Return how far each row of features is from their medians, relative to the median row.

    A column counts in units of its median nonzero deviation, so that indicators and counts have a unit, too.
    """
    X = squares.source if squares.source is not None else squares.matrix
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    size = np.abs(X - np.median(X, axis=0))
    unit = np.array([np.median(column[column > 0]) if column.any() else 1.0 for column in size.T])
    size /= unit
    largest = np.maximum(size.max(axis=1, initial=0.0), np.finfo(float).tiny)  # squares of these may overflow
    distance = largest * np.sqrt(np.mean(np.square(size / largest[:, None]), axis=1))
    usual = float(np.median(distance)) or float(np.median(distance[distance > 0])) if distance.any() else 1.0
    return np.asarray(distance / usual)


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
    return off | (((t > second_heap(t[usual])) | (-t > second_heap(-t[usual]))) & (sizes <= FAR))


def misled_rows(squares: Squares, residuals: Floats, sigma: float, sizes: Floats) -> Mask:
    """Return the rows of unusual features that the fit predicts worse than the median of the values does.

    Wrong features say nothing of the values. If these values are larger, smaller or more extreme than those of all
    rows, the features are right and the relation is no line there: then no row is misled.
    """
    size, spread = np.abs(residuals), np.abs(squares.target - np.median(squares.target))
    misled = (sizes > FAR) & (size > CUT * sigma) & (size > spread)
    if misled.any():
        shift = abs(_mean_rank(squares.target, misled) - 0.5)
        error = math.sqrt(1 / 12 / np.count_nonzero(misled))  # of the mean of uniform ranks
        if shift > CUT * error or _mean_rank(spread, misled) > EXTREME:
            misled[:] = False
    return np.asarray(misled)


def _mean_rank(values: Floats, rows: Mask) -> float:
    """Return the mean rank of some of the values, between 0 and 1."""
    return float(np.mean((rankdata(values)[rows] - 0.5) / len(values)))
