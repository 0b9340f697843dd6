"""Levels of categories that a start has given to their outliers: each is moved to where most of its rows agree.

Far outliers in a level of a few rows can own its coefficient while all other levels are fitted well: no direction of
the whole fit parts them, and random subsets seldom hold good rows of every level. Seen level by level it is plain,
because only the rows of a level depend on its coefficient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..robust import truncated_sigma, tukey_loss
from ..robust.sigma import CUTOFF
from ._least_squares import Squares

__all__ = ["agreeing_levels"]

Floats = NDArray[np.floating[Any]]
PLACES = 50  # cost: of a level's rows that it may be moved to
WORTH = 1.0  # theory: rows that a move must win over; fewer are within the rule's own shape
ROUNDS = 3  # cost: of moving levels, each followed by a fit to the rows that agree
HEAD = 64  # cost: rows by which ordinary columns are known at once


def agreeing_levels(squares: Squares, b: Floats) -> Floats:
    """The fit with every level where most of its rows agree; b itself where they all are.

    Parameters
    ----------
    squares : Squares
        The problem, with its features as they were given.
    b : ndarray
        A robust fit.

    Returns
    -------
    ndarray
    """
    columns = _indicators(squares.source)
    weight = np.ones(squares.n_rows) if squares.sample_weight is None else squares.sample_weight
    for _ in range(ROUNDS if columns.size else 0):
        residuals = squares.residuals(b)
        sigma = truncated_sigma(residuals, squares.sample_weight)
        if not sigma > 0:
            break
        moved = b
        for column in columns:
            rows = np.flatnonzero(squares.source[:, column])
            shift = _better_place(residuals[rows], sigma, weight[rows])
            if shift:
                moved = moved + shift * _direction(squares, int(column))
                residuals[rows] -= shift
        if moved is b:
            break
        sigma = truncated_sigma(residuals, squares.sample_weight)
        b = squares.solve((np.abs(residuals) <= CUTOFF * sigma).astype(np.float64), moved)
    return b


def _indicators(X: Any) -> NDArray[np.intp]:
    """Columns of zeros and ones, with more of the former."""
    if X is None or sparse.issparse(X):
        return np.empty(0, dtype=np.intp)
    columns = np.flatnonzero(np.all((X[:HEAD] == 0) | (X[:HEAD] == 1), axis=0))
    taken = X[:, columns]
    kept = np.all((taken == 0) | (taken == 1), axis=0) & (taken.sum(axis=0) > 1) & (taken.mean(axis=0) <= 0.5)
    return np.asarray(columns[kept])


def _better_place(residuals: Floats, sigma: float, weight: Floats) -> float:
    """By how much the level has to move for most of its rows to agree; 0 where they do."""
    places = np.sort(residuals)[:: max(len(residuals) // PLACES, 1)]
    losses = weight @ tukey_loss(residuals[:, None] - places, sigma)
    best = int(losses.argmin())
    if losses[best] >= weight @ tukey_loss(residuals, sigma) - WORTH * float(weight.max(initial=0.0)):
        return 0.0
    return float(places[best])


def _direction(squares: Squares, column: int) -> Floats:
    """The step of b that adds one to the coefficient of a feature."""
    if squares.back.ndim == 1:
        step = np.zeros(squares.n_columns)
        step[column + int(squares.fit_intercept)] = 1 / squares.back[column]
    else:
        inner = squares.back[column] / np.square(squares.back).sum(axis=0)
        step = np.concatenate([np.zeros(int(squares.fit_intercept)), inner])
    if squares.fit_intercept:
        step[0] = squares.center[column]
    return step
