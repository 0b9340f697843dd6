"""Rows whose features are unusual, and those of them whose features mislead a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .squares import Squares

__all__ = ["FAR", "misled_rows", "row_sizes"]

Floats = NDArray[np.floating[Any]]
FAR = 2.0  # a choice: times the size of the median row, from which on features are unusual
CUT = 3.0  # convention: sigmas, below which the residual of an unusual row says nothing
EXTREME = 0.85  # a choice: mean rank of their values, above which the line bends there and the features are right


def row_sizes(squares: Squares) -> Floats:
    """How far each row of features is from their medians, relative to the median row.

    A column counts in units of its median nonzero deviation, so that indicators and counts of zero have a unit, too.
    """
    X = squares.source if squares.source is not None else squares.matrix
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    size = np.abs(X - np.median(X, axis=0))
    unit = np.array([np.median(column[column > 0]) if column.any() else 1.0 for column in size.T])
    distance = np.sqrt(np.mean(np.square(size / unit), axis=1))
    return np.asarray(distance / max(float(np.median(distance)), np.finfo(float).tiny))


def misled_rows(squares: Squares, residuals: Floats, sigma: float) -> NDArray[np.bool_]:
    """Rows that a fit predicts worse than the median of the values does, because of their unusual features.

    If their own values are extreme as well, the features are probably right and the relation is no line: then there
    are none.
    """
    size, spread = np.abs(residuals), np.abs(squares.target - np.median(squares.target))
    misled = (size > CUT * sigma) & (size > spread)
    if misled.any():
        misled &= row_sizes(squares) > FAR
    if misled.any():
        ranks = np.searchsorted(np.sort(spread), spread[misled], side="right") / len(spread)
        misled &= float(ranks.mean()) <= EXTREME
    return misled
