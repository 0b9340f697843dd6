"""A start that outliers do not own: principal sensitivity components and random subsets, then the S-estimator.

The path upward keeps what it starts with, so the start decides. Rows that pull the fit in the same way line up along a
few directions of the sensitivity matrix, and the half without them is clean (Pena and Yohai, 1999). Where outliers are
nearly half of the rows no direction need part them; a few rows drawn at random are then clean by luck, and the half
that is nearest to their fit concentrates on the majority (Rousseeuw and Van Driessen, 2006; Salibian-Barrera and
Yohai, 2006).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..robust import largest_sigma, m_scale, truncated_sigma, weighted_quantile
from ..robust.scales import BIWEIGHT, CUTOFF, MAD_TO_SIGMA
from ._least_squares import Squares, exact_floor, rounding_sigma
from ._leverage import CommonPart, agreeing_levels, usual_rows

__all__ = ["SEARCHED_COLUMNS", "robust_start", "s_estimate", "sensitivity_start"]

Floats = NDArray[np.floating[Any]]
# Measured by benchmarks/regression.py linear and far.
GROWTH = 1.5  # of the cut per stage of the way up: a gap between good residuals and outliers must not be jumped
MUCH_TIGHTER = 0.4  # the sigma by which a start from random subsets wins, relative to the other one's
DIRECTIONS = 10  # sensitivity directions tried at each end of the spectrum: vertical outliers, then leverage

START_ROWS = 1000  # cost: rows that the search for a start looks at, unless 10 per column are more
SEARCHED_COLUMNS = 600  # cost: columns up to which the search for a start pays; beyond, least absolute deviations
DRAWS = 300  # cost: random subsets of as many rows as coefficients
CONCENTRATED = 10  # cost: of these, the best are concentrated
BATCHED = 24  # cost: columns up to which all normal matrices of a round come from one product


# ---------------------------------------------------------------------------------------------------- the search


def robust_start(squares: Squares, rng: np.random.RandomState) -> Floats:
    """Return a fit that up to 40 % outliers do not own.

    Beyond 600 columns the search costs too much, and least absolute deviations are led upward: they stand vertical
    outliers, not leverage.
    """
    if squares.n_columns > SEARCHED_COLUMNS:
        return _upward(squares, _half_linear(squares))
    wanted = max(START_ROWS, 10 * squares.n_columns)
    whole = squares.n_rows <= wanted
    index = np.arange(squares.n_rows) if whole else np.sort(rng.choice(squares.n_rows, wanted, replace=False))
    part = squares if whole and not sparse.issparse(squares.matrix) else squares.subset(index)
    common = CommonPart.of(part)
    b = _searched(part if common is None else common.squares, rng)
    if common is not None:
        b = common.whole(b, squares)
    if _constant(part, b):
        b = _agreed(part, b, _without_far_rows(part, _half_linear(part)))
    # On all rows, one more step carries the fit of the subset over.
    return agreeing_levels(squares, b) if whole else _without_far_rows(squares, b)


def _near(squares: Squares, b: Floats) -> NDArray[np.bool_]:
    """Return the rows near to a fit."""
    size = np.abs(squares.residuals(b))
    cut = max(CUTOFF * largest_sigma(size, squares.sample_weight, dof=squares.dof), exact_floor(squares))
    return np.asarray(size <= cut)


def _without_far_rows(squares: Squares, b: Floats) -> Floats:
    """Return the fit of the rows near to a fit."""
    return squares.solve(_near(squares, b).astype(np.float64), b)


def _constant(squares: Squares, b: Floats) -> bool:
    """Whether a feature is constant for the rows near to a fit, and not for all."""
    near = squares.matrix[_near(squares, b)]
    return bool(np.any((np.ptp(near, axis=0) == 0) & (np.ptp(squares.matrix, axis=0) > 0))) if len(near) else True


def _agreed(squares: Squares, *fits: Floats) -> Floats:
    """Return the fit that agrees with the most rows, by squared residuals cut off at 2.5 of the smallest sigma.

    The search begins with the half that is easiest to fit. If a feature is constant there, a ridge may leave out all
    rows that tell its coefficient. Huber's fit keeps them, but follows rows of unusual features: these count less here.
    """
    sizes, weight = [np.abs(squares.residuals(b)) for b in fits], squares.sample_weight
    sigma = max(min(truncated_sigma(size, weight) for size in sizes), rounding_sigma(squares), exact_floor(squares))
    usual = usual_rows(squares) if weight is None else weight * usual_rows(squares)
    costs = [float(usual @ np.square(np.minimum(size / (CUTOFF * sigma), 1))) for size in sizes]
    return fits[int(np.argmin(costs))]


def _searched(part: Squares, rng: np.random.RandomState) -> Floats:
    """Return the better of two starts, each refined to an S-estimate and led upward.

    Random subsets win by a much smaller sigma only: then the other start is a compromise between good rows and
    outliers, as happens if these are nearly half. By a little they would win with tight clusters of outliers.
    """
    b, sigma = _led(part, sensitivity_start(part)[0])
    drawn = _elemental_start(part, rng)
    if drawn is not None:
        other = _led(part, drawn)
        if other[1] < MUCH_TIGHTER * sigma:
            return other[0]
    return b


def _led(part: Squares, start: Floats) -> tuple[Floats, float]:
    """Return the fit that a rough start leads to, and its sigma."""
    b = _upward(part, s_estimate(part, start)[0])
    return b, truncated_sigma(part.residuals(b), part.sample_weight)


def _upward(squares: Squares, b: Floats, max_iter: int = 30) -> Floats:
    """Hard self-pacing: from the easy half, the cut grows to 2.5 sigma of the fit's own good residuals."""
    floor, weight = exact_floor(squares), squares.sample_weight
    size = np.abs(squares.residuals(b))
    cut = weighted_quantile(size, majority_share(squares), weight)
    for stage in range(max_iter):
        limit = max(CUTOFF * largest_sigma(size, weight, dof=squares.dof), floor)
        if stage and cut >= limit * (1 - 1e-3):
            break
        cut = max(min(max(limit, cut), GROWTH * cut), floor)
        inside = size <= cut
        if np.average(inside, weights=weight) * squares.size < squares.dof + 1:
            break
        b = squares.solve(inside.astype(np.float64), b)
        size = np.abs(squares.residuals(b))
    return b


def _half_linear(squares: Squares, max_iter: int = 20) -> Floats:
    """Return Huber's fit whose loss is linear for half of the rows, roughly: outliers of the values do not own it.

    The other half has weight one, so that a ridge counts as much as in the plain fit.
    """
    b = squares.solve()
    for _ in range(max_iter):
        size = np.abs(squares.residuals(b))
        middle = weighted_quantile(size, 0.5, squares.sample_weight)
        if not middle > 0:
            break
        b = squares.solve(np.minimum(middle / np.maximum(size, middle), 1.0), b)
    return b


# -------------------------------------------------------------------------------------------------- rough starts


def sensitivity_start(squares: Squares, *, rounds: int = 5) -> tuple[Floats, float]:
    """The best fit among the halves that the principal sensitivity components suggest, and its M-scale."""
    n, half = squares.n_rows, majority_share(squares)
    kept = np.arange(n)
    best, best_scale, before = squares.zero(), math.inf, math.inf
    for _ in range(rounds):
        part = squares if kept.size == n else squares.rows(kept)
        fits = _half_fits(part)
        sizes = np.abs(squares.target[:, None] - squares.matrix @ fits)
        scales = column_scales(sizes, squares)
        index = int(np.argmin(scales))
        scale = float(scales[index])
        if scale < best_scale:
            best, best_scale = fits[:, index], scale
        if not 0 < scale < math.inf or abs(scale - before) < 1e-3 * before:
            break
        before, size = scale, sizes[:, index]
        kept = np.flatnonzero(size <= max(2 * scale, weighted_quantile(size, half, squares.sample_weight)))
    return best, best_scale


def _elemental_start(squares: Squares, rng: np.random.RandomState) -> Floats | None:
    """The fit of smallest M-scale that random subsets of as many rows as coefficients lead to.

    Each of the best few is fitted again and again to the half that is nearest to it. Beyond 24 columns hardly any
    subset would be clean: None.
    """
    k, share = squares.n_columns, majority_share(squares)
    if not 0 < k <= min(BATCHED, squares.n_rows):
        return None
    fits = _subset_fits(squares, _disjoint_subsets(squares.n_rows, k, rng))
    sizes = np.abs(squares.target[:, None] - squares.matrix @ fits)
    best = np.argsort(column_quantiles(sizes, share, squares.sample_weight))[:CONCENTRATED]
    fits, sizes = fits[:, best], sizes[:, best]
    for _ in range(3):
        fits = fits_of(squares, sizes <= column_quantiles(sizes, share, squares.sample_weight))
        sizes = np.abs(squares.target[:, None] - squares.matrix @ fits)
    return np.asarray(fits[:, int(np.argmin(column_scales(sizes, squares)))])


def _disjoint_subsets(n: int, k: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Draws of k rows each: permutations cut into pieces, so that every row is drawn about as often."""
    pieces = n // k
    orders = [rng.permutation(n)[: pieces * k].reshape(pieces, k) for _ in range(math.ceil(DRAWS / pieces))]
    return np.concatenate(orders)[:DRAWS]


def _subset_fits(squares: Squares, subsets: NDArray[np.intp]) -> Floats:
    """The fit of each subset of rows, as a column."""
    k = squares.n_columns
    rows = np.asarray(squares.matrix, dtype=np.float64)[subsets]
    turned = rows.transpose(0, 2, 1)
    ridge = np.diag(squares.ridge * (k / squares.size))
    return _solved(turned @ rows, turned @ squares.target[subsets][:, :, None], ridge)


def majority_share(squares: Squares) -> float:
    """The smallest share of rows that outnumbers the rest and determines the fit."""
    return min((squares.size + squares.dof + 1) // 2 / squares.size, 1.0)


def _half_fits(part: Squares) -> Floats:
    """Fits of the rows and of three halves per sensitivity direction: low, high and central."""
    matrix = np.asarray(part.matrix, dtype=np.float64)
    plain = part.solve()
    weight = part.sample_weight
    root = None if weight is None else np.sqrt(weight)[:, None]
    rows = matrix if root is None else matrix * root
    if part.ridge.any():
        rows = np.concatenate([rows, np.diag(np.sqrt(part.ridge))])
    basis = np.linalg.qr(rows)[0][: part.n_rows]
    if root is not None:
        basis = basis / root
    leverage = np.square(basis).sum(axis=1)
    left_out = part.residuals(plain) / (1 - np.minimum(leverage, 1 - 1e-6))
    pull = basis * left_out[:, None]
    pull = pull.T @ (pull if weight is None else pull * weight[:, None])
    axes = np.linalg.eigh(pull)[1]
    ends = DIRECTIONS if axes.shape[1] <= 100 else DIRECTIONS // 2
    if axes.shape[1] > 2 * ends:
        axes = np.concatenate([axes[:, :ends], axes[:, -ends:]], axis=1)
    directions = basis @ axes
    return np.column_stack([plain, fits_of(part, _halves(directions, part))])


def _halves(values: Floats, part: Squares) -> NDArray[np.bool_]:
    """For each column of values, the rows of its lower half, its upper half and its central half."""
    n = part.size
    share = max(n // 2, min(part.n_columns + 2, n)) / n
    size, weight = np.abs(values), part.sample_weight
    low, high = column_quantiles(values, share, weight), -column_quantiles(-values, share, weight)
    middle = column_quantiles(size, share, weight)
    return np.concatenate([values <= low, values >= high, size <= middle], axis=1)


def fits_of(part: Squares, chosen: NDArray[np.bool_]) -> Floats:
    """One least-squares fit per column of a table of rows taken, for few columns from a single product."""
    k, weights = part.n_columns, chosen.astype(np.float64)
    if k > BATCHED:
        return np.column_stack([part.solve(column) for column in weights.T])
    matrix = np.asarray(part.matrix, dtype=np.float64)
    if part.sample_weight is not None:
        weights = weights * part.sample_weight[:, None]
    products = (matrix[:, :, None] * matrix[:, None, :]).reshape(-1, k * k)
    grams = (weights.T @ products).reshape(-1, k, k)
    right = weights.T @ (matrix * part.target[:, None])
    return _solved(grams, right[:, :, None], np.diag(part.ridge))


def _solved(grams: Floats, right: Floats, ridge: Floats) -> Floats:
    """Solutions of many normal equations, one per column."""
    k = grams.shape[1]
    size = np.einsum("fii->f", grams) / k
    # A little ridge instead of a branch for rows that do not determine the fit.
    grams = grams + (1e-10 * size + 1e-300)[:, None, None] * np.eye(k) + ridge
    return np.asarray(np.linalg.solve(grams, right)[:, :, 0].T)


def column_quantiles(table: Floats, share: float, weight: Floats | None) -> Floats:
    """The weighted quantile of every column."""
    if weight is None:
        n = table.shape[0]
        rank = min(max(math.ceil(share * n - 1e-9), 1), n) - 1
        return np.asarray(np.partition(table, rank, axis=0)[rank])
    return np.array([weighted_quantile(column, share, weight) for column in table.T])


def column_scales(sizes: Floats, squares: Squares, max_iter: int = 8) -> Floats:
    """M-scales of the columns of absolute residuals, roughly: good enough to compare fits."""
    weight = squares.sample_weight
    target = 0.5 * (1 - min(squares.dof / squares.size, 0.9))
    scale = MAD_TO_SIGMA * column_quantiles(sizes, 0.5, weight)
    if weight is not None:
        weight = weight / weight.sum()
    live = scale > 0
    scale = np.where(live, scale, 1.0)
    for _ in range(max_iter):
        inside = 1 - np.minimum(sizes / (BIWEIGHT * scale), 1) ** 2
        rho = 1 - inside**3
        scale = scale * np.sqrt((rho.mean(axis=0) if weight is None else weight @ rho) / target)
        scale = np.maximum(scale, 1e-300)
    return np.where(np.isfinite(scale), np.where(live, scale, 0.0), np.inf)


def s_estimate(squares: Squares, b: Floats, *, max_iter: int = 50) -> tuple[Floats, float]:
    """The fit with the smallest M-scale of residuals near b, and that scale."""
    scale: float | None = None
    dof = squares.dof
    for step in range(max_iter):
        size = np.abs(squares.residuals(b))
        scale = m_scale(size, squares.sample_weight, dof=dof, start=scale, tol=1e-6, max_iter=5 if step else 50)
        if not scale > 0:
            return b, 0.0
        weights = np.square(1 - np.minimum(size / (BIWEIGHT * scale), 1) ** 2)
        update = squares.solve(weights, b)
        moved = float(np.max(np.abs(squares.matrix @ (update - b))))
        b = update
        if moved < 1e-4 * scale:
            break
    return b, m_scale(squares.residuals(b), squares.sample_weight, dof=dof)
