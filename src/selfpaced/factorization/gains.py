"""How much a factorization knows about each row: entries predicted from the others, against the row's own mean.

A residual does not tell a careless rater from an odd one: with as many components as a row has entries anything is
explained. So every entry is predicted from the other entries of its row, by columns that were fitted to other rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .entries import Floats, Side
from .row_refit import UsualRows, usual_rows

FOLDS = 5  # a choice: parts of the rows, of which each is predicted by columns fitted to the others
STEPS = 3  # cost: reweighted solves of a row or column
BEND = 1.5  # convention: noise scales from which on a residual counts less (Huber)
MOST = 3.0  # a choice: noise scales that an error counts at most


@dataclass(frozen=True, eq=False)
class FittedLines:
    """The rows (or the columns) of a fitted matrix.

    Attributes
    ----------
    factors : ndarray of shape (n, rank)
    means : ndarray of shape (n,)
        Zeros where they have none.
    own_mean : bool
        Whether means are part of the model.
    """

    factors: Floats
    means: Floats
    own_mean: bool

    def usual(self, counts: Any) -> UsualRows:
        """Where the factors of usual lines lie, the mean last."""
        parts = [self.factors, self.means[:, None]] if self.own_mean else [self.factors]
        return usual_rows(np.hstack(parts), counts)


def gains(side: Side, rows: FittedLines, columns: FittedLines, mean: float, scale: float, seed: int) -> Floats:
    """By how much the model predicts each row's entries better than the row's own mean does; NaN without entries.

    The unit is the squared error that own means leave of a usual entry, errors cut off at 3 noise scales: 0 is no
    better than the own mean, less than 0 is worse.
    """
    fold = np.random.default_rng(seed).permutation(side.n_rows) % FOLDS
    level, unit = mean + float(np.median(columns.means)), max(scale, float(np.finfo(side.values.dtype).tiny))
    usual = rows.usual(side.counts())
    own_usual = UsualRows(np.zeros(1), np.full((1, 1), unit**-2.0))  # the usual level counts as one more entry
    found, left, count = np.full(side.n_rows, np.nan), 0.0, 0
    for part in range(FOLDS):
        factors, means = _columns_of_others(side, rows, columns, mean, unit, fold != part)
        for i in np.flatnonzero((fold == part) & (side.counts() > 0)):
            at = slice(side.indptr[i], side.indptr[i + 1])
            y, across = side.values[at].astype(np.float64), side.indices[at]
            given = side.sample_weight[at] if side.sample_weight.size else np.ones(y.size)
            model = left_out(_design(factors[across], rows.own_mean), y - mean - means[across], given, unit, usual)
            alone = left_out(np.ones((y.size, 1)), y - level, given, unit, own_usual)
            errors = np.minimum(np.abs([alone, model]), MOST * unit) ** 2
            found[i] = np.average(errors[0] - errors[1], weights=given)
            left, count = left + float(errors[0].sum()), count + y.size
    return np.asarray(found / (left / count)) if left > 0 else np.where(np.isnan(found), np.nan, 0.0)


def left_out(X: Floats, y: Floats, given: Floats, scale: float, usual: UsualRows) -> Floats:
    """What is left of each entry if it is predicted from the others, by a robust fit with what is usual as a prior."""
    found, weight, inverse = _solve(X, y, given, scale, usual)
    leverage = weight * np.einsum("ij,jk,ik->i", X, inverse, X)
    return np.asarray((y - X @ found) / np.maximum(1 - leverage, np.finfo(float).eps))


def _solve(X: Floats, y: Floats, given: Floats, scale: float, usual: UsualRows) -> tuple[Floats, Floats, Floats]:
    """Factors of one line, the weights of its entries and the inverse of their moments."""
    found = usual.centre
    for _ in range(STEPS):
        far = np.abs(y - X @ found) / (BEND * scale)
        weight = given / np.maximum(far, 1.0) / scale**2
        inverse = np.linalg.inv((X * weight[:, None]).T @ X + usual.precision)
        found = inverse @ (X.T @ (weight * y) + usual.precision @ usual.centre)
    return found, weight, inverse


def _design(factors: Floats, own_mean: bool) -> Floats:
    return np.hstack([factors, np.ones((len(factors), 1))]) if own_mean else factors


def _columns_of_others(
    side: Side, rows: FittedLines, columns: FittedLines, mean: float, scale: float, used: Any
) -> tuple[Floats, Floats]:
    """Factors and means of the columns, fitted to some rows only; those that no such row has are usual ones."""
    i = side.row_of()
    kept = np.flatnonzero(used[i])
    kept = kept[np.argsort(side.indices[kept], kind="stable")]
    i, j = i[kept], side.indices[kept]
    y = side.values[kept] - mean - rows.means[i]
    given = side.sample_weight[kept] if side.sample_weight.size else np.ones(kept.size)
    n, rank = columns.factors.shape
    usual = columns.usual(np.bincount(side.indices, minlength=n))
    ends = np.searchsorted(j, np.arange(n + 1))
    found = np.tile(usual.centre, (n, 1))
    for column in np.flatnonzero(np.diff(ends)):
        at = slice(ends[column], ends[column + 1])
        X = _design(rows.factors[i[at]], columns.own_mean)
        found[column] = _solve(X, y[at], given[at], scale, usual)[0]
    return found[:, :rank], found[:, rank] if columns.own_mean else np.zeros(n)
