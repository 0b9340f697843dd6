"""The robust fit of a linear model: easy half first, upward to the noise, then an efficient rule under guard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..residuals import ResidualRule, ResidualScale, residual_scale, truncated_sigma, weighted_quantile
from ..residuals.sigma import CUTOFF
from .squares import DENSE_GRAM, Squares
from .start import column_medians, majority_share, s_estimate, sensitivity_start

__all__ = ["Reweighted", "ascend", "exact_floor", "fit_scale", "objective", "reweight", "robust_start"]

Floats = NDArray[np.floating[Any]]
SUBSET = 1000  # rows that the search for a start looks at, unless 10 per column are more
WIDE = 600  # columns up to which the search for a start is worth its cost; beyond, least absolute deviations


def objective(squares: Squares, rule: ResidualRule, b: Floats, lam: float) -> float:
    """The penalised latent loss of a fit."""
    latent = rule.latent(squares.residuals(b), lam)
    weight = squares.sample_weight
    return float(latent.sum() if weight is None else weight @ latent) + squares.penalty(b)


@dataclass(frozen=True)
class Reweighted:
    """A fit at one pace: coordinates, how many weighted fits it took, and whether they settled."""

    b: Floats
    n_iter: int
    converged: bool


def reweight(squares: Squares, rule: ResidualRule, lam: float, b: Floats, *, tol: float, max_iter: int) -> Reweighted:
    """Iteratively reweighted least squares: half-quadratic minimisation of the latent loss at a fixed pace.

    The normal matrix is factorised again only while the weights still move; with a stale factor each step is
    still exact in its fixed point, because the step is driven by the current gradient.
    """
    factor, before, stale = None, math.inf, True
    last: tuple[Floats, Floats] | None = None
    matrix_free = sparse.issparse(squares.matrix) and squares.n_columns > DENSE_GRAM
    floor = exact_floor(squares)
    for iteration in range(1, max_iter + 1):
        residuals = squares.residuals(b)
        weights = rule.weights(residuals, lam)
        total = squares.total(weights)
        mass = float(total.sum())
        if not mass > 0:
            return Reweighted(b, iteration - 1, False)
        spread = math.sqrt(float(total @ np.square(residuals)) / mass)
        if matrix_free:
            step = squares.solve(weights, b) - b
        else:
            if factor is None or stale:
                factor = squares.factor(total)
            step = squares.correct(factor, total, b, residuals)
        moved = float(np.max(np.abs(step), initial=0.0))
        # The coordinates are scaled: a step of one is about one unit of the target.
        if moved <= tol * spread + 1e-2 * floor:
            return Reweighted(b + step, iteration, True)
        stale = moved > 0.2 * before or iteration == 1
        b, last = _mixed(b, step, last if moved < 2 * before else None), (b, step)
        before = moved
    return Reweighted(b, max_iter, False)


def _mixed(b: Floats, step: Floats, last: tuple[Floats, Floats] | None) -> Floats:
    """The next point: the step itself, or Anderson's mixture with the one before, which converges much faster."""
    if last is None:
        return b + step
    turn = step - last[1]
    size = float(turn @ turn)
    share = float(step @ turn) / size if size > 0 else 0.0
    if not -5 < share < 5:
        return b + step
    return b + step - share * (b - last[0] + turn)


def exact_floor(squares: Squares) -> float:
    """The size below which residuals are rounding: a fit this exact has no noise to estimate."""
    eps = float(np.finfo(squares.matrix.dtype).eps)
    size = math.sqrt(float(np.average(np.square(squares.target), weights=squares.sample_weight)))
    return 1e2 * eps * (size + abs(squares.offset))


def robust_start(squares: Squares, rng: np.random.RandomState) -> tuple[Floats, float]:
    """A fit that up to 40 % outliers do not own, and its M-scale (inf where only a part of the rows was seen).

    Two candidates, each refined to an S-estimate and led upward: the best half by principal sensitivity, and the
    rows central in the features. The second wins only where it explains at least 70 % of the rows by a smaller
    sigma; at a smaller share such a comparison would favour tight clusters of outliers. Beyond 600 columns the search
    costs too much, and least absolute deviations are led upward: they stand vertical outliers, not leverage.
    """
    if squares.n_columns > WIDE:
        return ascend(squares, least_absolute(squares)), math.inf
    part, whole = _sampled(squares, rng)
    best: tuple[Floats, float, float] | None = None
    for b in (sensitivity_start(part)[0], central_fit(part)):
        b, majority = s_estimate(part, b)
        b = ascend(part, b)
        size = np.abs(part.residuals(b))
        sigma = truncated_sigma(size, part.sample_weight)
        share = float(np.average(size <= CUTOFF * sigma, weights=part.sample_weight))
        if best is None or (share >= 0.7 and sigma < 0.97 * best[1]):
            best = (b, sigma, majority)
    assert best is not None
    b, _, majority = best
    if whole:
        return b, majority
    # One step of hard selection on all rows carries the fit of the subset over.
    scale = residual_scale(squares.residuals(b), squares.sample_weight, dof=squares.dof)
    cut = max(CUTOFF * scale.sigma, exact_floor(squares))
    return _selected(squares, b, cut), math.inf


def _sampled(squares: Squares, rng: np.random.RandomState) -> tuple[Squares, bool]:
    """The rows that the search looks at, dense, and whether they are all rows."""
    k, n = squares.n_columns, squares.n_rows
    wanted = max(SUBSET, 10 * k)
    if n <= wanted:
        return squares.subset(np.arange(n)) if sparse.issparse(squares.matrix) else squares, True
    usable = np.arange(n) if squares.sample_weight is None else np.flatnonzero(squares.sample_weight)
    if usable.size <= wanted:
        return squares.subset(usable), True
    return squares.subset(np.sort(rng.choice(usable, wanted, replace=False))), False


def central_fit(part: Squares) -> Floats:
    """Least squares on the half of the rows nearest to the centre of the features."""
    features = np.asarray(part.matrix, dtype=np.float64)
    center = column_medians(features, part.sample_weight)
    spread = column_medians(np.abs(features - center), part.sample_weight)
    used = spread > 0
    if not used.any():
        return part.solve()
    distance = np.square((features[:, used] - center[used]) / spread[used]).sum(axis=1)
    near = distance <= weighted_quantile(distance, majority_share(part), part.sample_weight)
    return part.solve(near.astype(np.float64))


def least_absolute(squares: Squares, max_iter: int = 10) -> Floats:
    """Least absolute deviations, roughly: the start where the features are too many for the search."""
    b = squares.solve()
    for _ in range(max_iter):
        size = np.abs(squares.residuals(b))
        floor = 0.05 * weighted_quantile(size, 0.5, squares.sample_weight)
        if not floor > 0:
            break
        b = squares.solve(floor / np.maximum(size, floor), b)
    return b


def ascend(squares: Squares, b: Floats, *, growth: float = 1.5, max_iter: int = 30) -> Floats:
    """Hard self-pacing upward: from the easy half, the cut grows to 2.5 sigma of the fit's own good residuals."""
    dof, floor = squares.dof, exact_floor(squares)
    size = np.abs(squares.residuals(b))
    cut = weighted_quantile(size, majority_share(squares), squares.sample_weight)
    for iteration in range(max_iter):
        limit = max(CUTOFF * residual_scale(size, squares.sample_weight, dof=dof).sigma, floor)
        if iteration and cut >= limit * (1 - 1e-3):
            break
        cut = max(min(max(limit, cut), growth * cut), floor)
        if np.average(size <= cut, weights=squares.sample_weight) * squares.size < dof + 1:
            break
        b = _selected(squares, b, cut)
        size = np.abs(squares.residuals(b))
    return b


def _selected(squares: Squares, b: Floats, cut: float) -> Floats:
    return squares.solve((np.abs(squares.residuals(b)) <= cut).astype(np.float64), b)


def fit_scale(squares: Squares, b: Floats) -> ResidualScale:
    """Sigma and M-scale of the residuals of a fit."""
    return residual_scale(squares.residuals(b), squares.sample_weight, dof=squares.dof)
