"""Rows whose features are unusual, and those of them whose features mislead a fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import rankdata

from .squares import Squares

__all__ = ["FAR", "misled_rows", "row_sizes"]

Floats = NDArray[np.floating[Any]]
FAR = 2.0  # a choice: times the size of the median row, from which on features are unusual
CUT = 3.0  # convention: standard errors, below which a difference says nothing


def row_sizes(squares: Squares) -> Floats:
    """How far each row of features is from their medians, relative to the median row.

    A column counts in units of its median nonzero deviation, so that indicators and counts of zero have a unit, too.
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


def misled_rows(squares: Squares, residuals: Floats, sigma: float) -> NDArray[np.bool_]:
    """Rows that a fit predicts worse than the median of the values does, because of their unusual features.

    Wrong features say nothing of the values. If these values are larger, smaller or more extreme than those of all
    rows, the features are right and the relation is no line there: then there are none.
    """
    size, spread = np.abs(residuals), np.abs(squares.target - np.median(squares.target))
    misled = (size > CUT * sigma) & (size > spread)
    if misled.any():
        misled &= row_sizes(squares) > FAR
    if misled.any():
        error = math.sqrt(1 / 12 / np.count_nonzero(misled))  # of the mean of uniform ranks
        shifts = [abs(float(_ranks(values)[misled].mean()) - 0.5) for values in (squares.target, spread)]
        misled &= max(shifts) <= CUT * error
    return misled


def _ranks(values: Floats) -> Floats:
    """Ranks in (0, 1)."""
    return np.asarray((rankdata(values) - 0.5) / len(values))
