"""Rows of unusual features: those that mislead a fit, and directions that a few rows alone determine.

A linear fit should not follow rows that are misled by their own features, or in a second heap of residuals.

Rows of a rare level are different. A start that looks for the majority leaves them out, and nothing is left to say what
their coefficient is; or it calls them outliers of a coefficient that nobody has estimated. So the search looks at the
other rows only. What these leave open then gets the least absolute deviations of the rows put aside, as in an M-S
estimate (Maronna and Yohai, 2000).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ..robust import madn, second_heap, truncated_sigma, tukey_loss, weighted_quantile
from ..robust.scales import CUTOFF
from ._least_squares import DENSE_GRAM, Squares, exact_floor

__all__ = ["ABSURD", "CommonPart", "Rejection", "absurd_rows", "agreeing_levels", "usual_rows"]

Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
# Measured by benchmarks/regression.py tables.
UNUSUAL = 2.0  # times the size of the median row, from which on features are unusual
RANK_SHIFT = 3.0  # standard errors, below which a residual of an unusual row or a shift of ranks says nothing
ABSURD = 10.0  # a choice: times the largest residual of the plain fit
EXTREME = 0.85  # mean rank of |y - median| of misled rows, above which the relation bends there
# Measured by benchmarks/regression.py rare and ablation.
SHARED_LEVERAGE = 0.2  # leverage of one of five rows that determine a direction together
MOST_ASIDE = 0.25  # share of the rows that may be put aside at once
NO_EFFECT = 0.1  # of a row, by which an open direction is drawn to no effect: enough to settle a tie


# -------------------------------------------------------------------------------------- misled rows


@dataclass(frozen=True, eq=False)
class RowSizes:
    """How far rows of features are from their medians, relative to the median row.

    A column counts in units of its median nonzero deviation, so that indicators and counts have a unit, too.
    """

    middle: Floats
    unit: Floats
    typical: float = 1.0

    @classmethod
    def of(cls, X: Any, weight: Floats | None) -> RowSizes:
        X = _dense(X)
        middle = np.array([weighted_quantile(column, 0.5, weight) for column in X.T])
        raw = cls(middle, np.array([_median_of_nonzero(column, weight) for column in np.abs(X - middle).T]))
        sizes = raw(X)
        return replace(raw, typical=weighted_quantile(sizes, 0.5, weight) or _median_of_nonzero(sizes, weight))

    def __call__(self, X: Any) -> Floats:
        size = np.abs(_dense(X) - self.middle) / self.unit
        largest = np.maximum(size.max(axis=1, initial=0.0), np.finfo(float).tiny)  # squares of these may overflow
        return np.asarray(largest * np.sqrt(np.mean(np.square(size / largest[:, None]), axis=1)) / self.typical)


def usual_rows(squares: Squares) -> Floats:
    """Return the weights of rows by their features: one for usual rows, and less the farther out they are."""
    sizes = RowSizes.of(squares.features, squares.sample_weight)(squares.features)
    return np.asarray(np.square(UNUSUAL / np.maximum(sizes, UNUSUAL)))


def _dense(X: Any) -> Floats:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def _median_of_nonzero(size: Floats, weight: Floats | None) -> float:
    used = size > 0
    return weighted_quantile(size[used], 0.5, None if weight is None else weight[used]) if used.any() else 1.0


@dataclass(frozen=True, eq=False)
class Rejection:
    """Which rows a fit leaves out although their values may be right.

    These are rows that are misled by unusual features, and usual rows in a second heap of residuals. A row is misled
    if the fit predicts it worse than the median of the values does. Wrong features say nothing of the values: if the
    values of these rows are larger, smaller or more extreme than those of all rows, the features are right and the
    relation is no line there. Then no row is misled.
    """

    sizes: RowSizes
    median: float  # of the values
    centre: float  # of the residuals
    sigma: float
    misled: bool  # whether there are misled rows
    ends: tuple[float, float]  # residuals beyond these are in a second heap

    @classmethod
    def of(cls, squares: Squares, residuals: Floats) -> Rejection:
        """Find out by the residuals of a fit."""
        weight, y = squares.sample_weight, squares.target + squares.at.offset
        centre = weighted_quantile(residuals, 0.5, weight)
        sigma, sizes = madn(residuals - centre, weight), RowSizes.of(squares.features, weight)
        found = cls(sizes, weighted_quantile(y, 0.5, weight), centre, sigma, True, (-math.inf, math.inf))
        if not sigma > exact_floor(squares):
            return replace(found, misled=False)
        misled = found.rows(squares.features, y, residuals)
        stands_for = np.ones(len(y)) if weight is None else weight * (squares.size / weight.sum())
        if misled.any():
            shift = abs(_mean_rank(y, misled, stands_for) - 0.5)
            error = math.sqrt(1 / 12 / stands_for[misled].sum())  # of the mean of uniform ranks
            if shift > RANK_SHIFT * error or _mean_rank(np.abs(y - found.median), misled, stands_for) > EXTREME:
                misled[:] = False
        t, counts = (residuals - centre)[~misled] / sigma, stands_for[~misled]
        ends = centre - sigma * second_heap(-t, counts), centre + sigma * second_heap(t, counts)
        return replace(found, misled=bool(misled.any()), ends=ends)

    def rows(self, X: Any, y: Floats, residuals: Floats) -> Mask:
        """Return which rows are left out."""
        heaps, size = self.heaps(X, residuals), np.abs(residuals)
        if not self.misled:
            return heaps
        unusual = self.sizes(X) > UNUSUAL
        return np.asarray(heaps | (unusual & (size > RANK_SHIFT * self.sigma) & (size > np.abs(y - self.median))))

    def heaps(self, X: Any, residuals: Floats) -> Mask:
        """Return which rows are in a second heap of residuals."""
        low, high = self.ends
        return np.asarray(((residuals < low) | (residuals > high)) & (self.sizes(X) <= UNUSUAL))


def _mean_rank(values: Floats, rows: Mask, weight: Floats) -> float:
    """Return the mean rank of some of the values, between 0 and 1."""
    _, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weight)
    rank = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    return float(np.average(rank[place[rows]], weights=weight[rows]))


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


# -------------------------------------------------------------------------------------- rare levels


@dataclass(frozen=True, eq=False)
class CommonPart:
    """A problem without its rows of high leverage, in coordinates that the other rows determine.

    Coordinates of the whole problem are ``turn @ c + free @ d``, with c of the smaller one.
    """

    squares: Squares
    turn: Floats
    free: Floats

    @classmethod
    def of(cls, part: Squares) -> CommonPart | None:
        """Return the part of a dense problem outside the rows of high leverage; None if they determine nothing alone.

        Rows of high leverage may hide others, so they are looked for again among the rest.
        """
        if part.dof > SHARED_LEVERAGE * part.size:  # the leverage of a usual row is as high
            return None
        common, mass = part, part.n_rows if part.sample_weight is None else float(part.sample_weight.sum())
        for _ in range(2):
            leverage = common.leverage() * (mass / part.size)  # of a single row
            most = max(SHARED_LEVERAGE, weighted_quantile(leverage, 1 - MOST_ASIDE, common.sample_weight))
            common = common.rows(np.flatnonzero(leverage <= most * (1 + 1e-9)))
        matrix = np.asarray(common.matrix, dtype=np.float64)
        weight = common.sample_weight
        weighted = matrix if weight is None else matrix * np.sqrt(weight)[:, None]
        few = np.zeros((max(part.n_columns - len(weighted), 0), part.n_columns))  # so that all columns have axes
        _, singular, axes = linalg.svd(np.concatenate([weighted, few]), full_matrices=False)
        precision = max(common.size, part.n_columns) * float(np.finfo(part.matrix.dtype).eps)
        rank = int(np.sum(singular > singular.max(initial=0.0) * 10 * precision))
        if rank == part.n_columns:
            return None
        turn = axes[:rank].T * (math.sqrt(common.size) / singular[:rank])
        ridge = np.square(turn).T @ common.ridge
        return cls(replace(common, matrix=matrix @ turn, ridge=ridge), turn, axes[rank:].T)

    def whole(self, c: Floats, squares: Squares) -> Floats:
        """Return the fit of all rows: that of the common ones, and least absolute deviations in what these leave open.

        Each row counts the same however far out it is in an open direction, and rows of unusual features count less.
        Two rows of a level that contradict each other have every value between them as least absolute deviations: the
        one nearest to no effect is taken, because the outlier is usually the row that is farther off.
        """
        lead = int(squares.at.fit_intercept)
        b = self.turn @ c
        b = b - self.free @ linalg.lstsq(self.free[lead:], b[lead:])[0]  # no effect
        reach = np.linalg.norm(squares.matrix @ self.free, axis=1)
        index = np.flatnonzero(reach > 1e-6 * reach.max(initial=0.0))
        if not index.size:
            return np.asarray(b)
        rows = squares.rows(index)
        table = np.asarray(rows.matrix @ self.free, dtype=np.float64)
        weight = usual_rows(squares)[index] * (1.0 if rows.sample_weight is None else rows.sample_weight) / reach[index]
        twice, target = np.concatenate([table, table]), np.r_[rows.residuals(b), np.zeros(len(table))]
        return np.asarray(b + self.free @ _least_absolute(twice, target, np.r_[weight, NO_EFFECT * weight]))


def _least_absolute(table: Floats, target: Floats, weight: Floats, max_iter: int = 30) -> Floats:
    """Return the least absolute deviations of a small problem, by reweighted least squares."""
    d, size = np.zeros(table.shape[1]), np.ones(len(target))
    for _ in range(max_iter):
        root = np.sqrt(weight / size)[:, None]
        update = linalg.lstsq(root * table, root[:, 0] * target)[0]
        left = np.abs(target - table @ update)
        moved = float(np.max(np.abs(update - d), initial=0.0))
        d, size = update, np.maximum(left, 1e-4 * float(left.max()) + 1e-300)
        if moved <= 1e-6 * float(np.max(np.abs(d), initial=0.0)):
            break
    return d


def agreeing_levels(squares: Squares, b: Floats, rounds: int = 3) -> Floats:
    """Return the fit with every level of a category where most of its rows agree.

    Far outliers in a level of a few rows can own its coefficient while all other levels are fitted well: no direction
    of the whole fit parts them, and random subsets seldom hold good rows of every level. Only the rows of a level
    depend on its coefficient, so each level is looked at by itself.
    """
    X, weight = squares.source, squares.sample_weight
    if X is None or sparse.issparse(X):
        return b
    low, high = X.min(axis=0), X.max(axis=0)
    two = np.flatnonzero(np.all((low == X) | (high == X), axis=0) & (low < high))
    rarer = np.where(2 * np.sum(high == X, axis=0) <= len(X), high, low)
    levels = [np.flatnonzero(X[:, j] == rarer[j]) for j in two]
    for _ in range(rounds if levels else 0):
        residuals = squares.residuals(b)
        sigma = truncated_sigma(residuals, weight)
        moved = residuals.copy()
        for rows in levels if sigma > 0 else ():
            moved[rows] -= _better_place(moved[rows], sigma, np.ones(len(rows)) if weight is None else weight[rows])
        if np.array_equal(moved, residuals):
            break
        b = squares.solve((np.abs(moved) <= CUTOFF * truncated_sigma(moved, weight)).astype(np.float64), b)
    return b


def _better_place(residuals: Floats, sigma: float, weight: Floats) -> float:
    """Return by how much a level has to move for most of its rows to agree; 0 if they do."""
    places = np.sort(residuals)[:: max(len(residuals) // 50, 1)]
    losses = weight @ tukey_loss(residuals[:, None] - places, sigma)
    best = int(losses.argmin())
    enough = weight @ tukey_loss(residuals, sigma) - float(weight.max())  # one row is within the rule's own shape
    return float(places[best]) if losses[best] < enough else 0.0
