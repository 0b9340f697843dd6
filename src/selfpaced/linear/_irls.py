"""The robust fit of a linear model: easy half first, upward to the noise, then an efficient rule under guard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..pacing import Fixed, Pacing, Stages
from ..regularizers import relative
from ..robust import (
    ResidualRule,
    ResidualScale,
    largest_sigma,
    residual_scale,
    truncated_sigma,
    weighted_quantile,
)
from ..robust.sigma import CUTOFF
from ..solver import DeadEnd, Solution, State, walk
from ._initial import column_medians, elemental_start, majority_share, s_estimate, sensitivity_start
from ._least_squares import DENSE_GRAM, Squares, exact_floor
from ._rare_levels import CommonPart, RareColumns
from .levels import agreeing_levels
from .support import supported

__all__ = ["Reweighted", "ascend", "exact_floor", "fit_scale", "objective", "robust_start", "settle"]

Floats = NDArray[np.floating[Any]]
# a choice, made on development data.
GROWTH = 1.5  # of the cut per stage of the way up: a gap between good residuals and outliers must not be jumped
EXPLAINED = 0.7  # share of the rows that the central start has to explain to win
TIGHTER = 0.97  # and its sigma, relative to the first one's

MUCH_TIGHTER = 0.4  # a choice: the sigma by which a start from random subsets wins, relative to the first one's
WORTH_LEADING = 0.7  # cost: and before it is led upward

SUBSET = 1000  # cost: rows that the search for a start looks at, unless 10 per column are more
WIDE = 600  # cost: columns up to which the search for a start pays; beyond, least absolute deviations

LOOSE = 1e-3  # a choice: of the residuals' spread, by which a fit at the limit of iterations may still move
ENOUGH_STAGES = Stages(30)  # of the way up, which ends at its limit long before


# ----------------------------------------------------------------------------------------------- reweighting


def objective(squares: Squares, rule: ResidualRule, fit: Reweighted, lam: float) -> float:
    """The penalised latent loss of a fit."""
    latent = rule.latent(fit.residuals, lam)
    weight = squares.sample_weight
    return float(latent.sum() if weight is None else weight @ latent) + squares.penalty(fit.b)


@dataclass(frozen=True, eq=False)
class Reweighted:
    """A fit at one pace: coordinates, residuals, and whether the weighted fits settled."""

    b: Floats
    residuals: Floats
    converged: bool = True


@dataclass(frozen=True, eq=False)
class LinearReweighting:
    """The step of iteratively reweighted least squares: half-quadratic minimisation of the latent loss at one pace.

    The normal matrix is factorised again only while the weights still move; with a stale factor each step is
    still exact in its fixed point, because the step is driven by the current gradient.
    """

    squares: Squares
    rule: ResidualRule
    tol: float
    max_iter: int

    def __call__(self, lam: float, state: State[Reweighted]) -> State[Reweighted]:
        """Weigh and fit until the coordinates settle."""
        b, fits, converged = self._settled(lam, state.model.b)
        residuals = self.squares.residuals(b)
        weights = self.rule.weights(residuals, lam)
        return State(Reweighted(b, residuals, converged), self.rule.losses(residuals), weights, fits)

    def _settled(self, lam: float, b: Floats) -> tuple[Floats, int, bool]:
        squares, floor = self.squares, exact_floor(self.squares)
        factor, before, stale = None, math.inf, True
        last: tuple[Floats, Floats] | None = None
        matrix_free = sparse.issparse(squares.matrix) and squares.n_columns > DENSE_GRAM
        for iteration in range(1, self.max_iter + 1):
            residuals = squares.residuals(b)
            weights = self.rule.weights(residuals, lam)
            total: Floats = weights if squares.sample_weight is None else weights * squares.sample_weight
            mass = float(total.sum())
            if not mass > 0:
                raise DeadEnd(f"at lam = {lam:.4g} every weight is zero")
            spread = math.sqrt(float(total @ np.square(residuals)) / mass)
            if spread <= floor and squares.penalty(b) == 0.0:
                return b, iteration, True  # rounding is left, and would move what the rows leave open
            step: Floats
            if matrix_free:
                step = squares.solve(weights, b) - b
            else:
                if factor is None or stale:
                    factor = squares.factor(total)
                step = squares.correct(factor, total, b, residuals)
            moved = float(np.max(np.abs(step), initial=0.0))
            # The coordinates are scaled: a step of one is about one unit of the target.
            if moved <= self.tol * spread + 1e-2 * floor:
                return b + step, iteration, True
            stale = moved > 0.2 * before or iteration == 1
            b, last = _mixed(b, step, last if moved < 2 * before else None), (b, step)
            before = moved
        return b, self.max_iter, bool(before <= LOOSE * spread)


def settle(
    squares: Squares, rule: ResidualRule, lam: float, b: Floats, *, tol: float, max_iter: int
) -> Solution[Reweighted]:
    """A fit at a fixed pace from b; without a stage where no row has weight there."""
    begin = State(Reweighted(b, np.empty(0)), np.empty(0))  # a fixed pace asks for no losses
    step = LinearReweighting(squares, rule, tol, max_iter)
    return walk(step, relative(rule.regularizer), Fixed(lam), begin).uninterrupted()


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


def robust_start(squares: Squares, rng: np.random.RandomState) -> tuple[Floats, float]:
    """A fit that up to 40 % outliers do not own, and its M-scale (inf where only a part of the rows was seen).

    Rows of rare columns are put aside for the search. Beyond 600 columns it costs too much, and least absolute
    deviations are led upward: they stand vertical outliers, not leverage.
    """
    if squares.n_columns > WIDE:
        return ascend(squares, least_absolute(squares)), math.inf
    index = _sampled(squares, rng)
    whole = index.size == squares.n_rows
    part = squares if whole and not sparse.issparse(squares.matrix) else squares.subset(index)
    rare = RareColumns.of(squares.source, index)
    if rare is None:
        b, majority = _searched(part, rng)
    else:
        lone = rare.rows(squares.source)
        common = CommonPart.of(part, lone[index])
        c, majority = _searched(common.squares, rng)
        b = common.whole(c, squares, rare, lone)
    if whole:
        return _supported(squares, agreeing_levels(squares, b)), majority
    # One step of hard selection on all rows carries the fit of the subset over.
    scale = largest_sigma(squares.residuals(b), squares.sample_weight, dof=squares.dof)
    cut = max(CUTOFF * scale.sigma, exact_floor(squares))
    return _supported(squares, _selected(squares, b, cut)), math.inf


def _supported(squares: Squares, b: Floats) -> Floats:
    """The fit with what its good rows leave open fitted to the others."""
    sigma = largest_sigma(squares.residuals(b), squares.sample_weight, dof=squares.dof).sigma
    return supported(squares, b, max(CUTOFF * sigma, exact_floor(squares)))


@dataclass(frozen=True, eq=False)
class Led:
    """A start refined to an S-estimate and led upward: the fit, its M-scale, its sigma and the share it explains."""

    b: Floats
    majority: float
    sigma: float
    share: float

    @classmethod
    def of(cls, part: Squares, start: Floats) -> Led:
        """From a rough start."""
        b, majority = s_estimate(part, start)
        b = ascend(part, b)
        size = np.abs(part.residuals(b))
        sigma = truncated_sigma(size, part.sample_weight)
        return cls(b, majority, sigma, float(np.average(size <= CUTOFF * sigma, weights=part.sample_weight)))


def _searched(part: Squares, rng: np.random.RandomState) -> tuple[Floats, float]:
    """The best of three candidates, and its M-scale: by sensitivity, by random subsets, by the rows in the centre.

    Random subsets win by a much smaller sigma only: then the others are a compromise between good rows and outliers, as
    happens where these are nearly half. By a little they would win with tight clusters of outliers. The rows central in
    the features win where they explain at least 70 % of the rows by a smaller sigma, for the same reason.
    """
    best = Led.of(part, sensitivity_start(part)[0])
    drawn = elemental_start(part, rng)
    if drawn is not None and truncated_sigma(part.residuals(drawn), part.sample_weight) < WORTH_LEADING * best.sigma:
        led = Led.of(part, drawn)
        best = led if led.sigma < MUCH_TIGHTER * best.sigma else best
    central = Led.of(part, central_fit(part))
    if central.share >= EXPLAINED and central.sigma < TIGHTER * best.sigma:
        best = central
    return best.b, best.majority


def _sampled(squares: Squares, rng: np.random.RandomState) -> NDArray[np.intp]:
    """The rows that the search looks at."""
    wanted = max(SUBSET, 10 * squares.n_columns)
    if squares.n_rows <= wanted:
        return np.arange(squares.n_rows)
    return np.sort(rng.choice(squares.n_rows, wanted, replace=False))


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


@dataclass(frozen=True, eq=False)
class Upward(Pacing):
    """From the cut that lets the easy half in, up to 2.5 sigma of the fit's own good residuals; losses are squares."""

    share: float
    dof: float
    floor: float
    growth: float = GROWTH
    stop: Any = ENOUGH_STAGES

    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:  # noqa: ARG002
        size = np.sqrt(losses)
        return self._next(weighted_quantile(size, self.share, sample_weight), self._limit(size, sample_weight))

    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> float | None:  # noqa: ARG002
        cut, limit = math.sqrt(lam), self._limit(np.sqrt(losses), sample_weight)
        return None if cut >= limit * (1 - 1e-3) else self._next(cut, limit)

    def _limit(self, size: Floats, sample_weight: Floats | None) -> float:
        return max(CUTOFF * largest_sigma(size, sample_weight, dof=self.dof).sigma, self.floor)

    def _next(self, cut: float, limit: float) -> float:
        return max(max(min(max(limit, cut), self.growth * cut), self.floor) ** 2, 1e-300)


@dataclass(frozen=True, eq=False)
class HardSelection:
    """The step of hard self-pacing: least squares on the rows within the cut, whose square is the pace."""

    squares: Squares

    def __call__(self, lam: float, state: State[Floats]) -> State[Floats]:
        """One fit to the rows that are in."""
        squares, cut = self.squares, math.sqrt(lam)
        inside = np.sqrt(state.losses) <= cut
        if np.average(inside, weights=squares.sample_weight) * squares.size < squares.dof + 1:
            raise DeadEnd("fewer rows than coefficients are within the cut")
        b = squares.solve(inside.astype(np.float64), state.model)
        residuals = squares.residuals(b)
        return State(b, np.square(residuals), (np.abs(residuals) <= cut).astype(np.float64), 1)


def ascend(squares: Squares, b: Floats) -> Floats:
    """Hard self-pacing upward: from the easy half, the cut grows to 2.5 sigma of the fit's own good residuals."""
    pacing = Upward(majority_share(squares), squares.dof, exact_floor(squares))
    start = State(b, np.square(squares.residuals(b)))
    step = HardSelection(squares)
    return walk(step, "hard", pacing, start, sample_weight=squares.sample_weight).uninterrupted().model


def _selected(squares: Squares, b: Floats, cut: float) -> Floats:
    return squares.solve((np.abs(squares.residuals(b)) <= cut).astype(np.float64), b)


def fit_scale(squares: Squares, residuals: Floats) -> ResidualScale:
    """Sigma and M-scale of the residuals of a fit."""
    return residual_scale(residuals, squares.sample_weight, dof=squares.dof)
