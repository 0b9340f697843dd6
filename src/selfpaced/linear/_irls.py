"""A linear fit at one pace: iteratively reweighted least squares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..pacing import Fixed
from ..regularizers import relative
from ..robust import ResidualRule, ResidualScale, residual_scale
from ..solver import DeadEnd, Solution, State, walk
from ._least_squares import DENSE_GRAM, Squares, exact_floor

__all__ = ["Reweighted", "fit_scale", "objective", "settle"]

Floats = NDArray[np.floating[Any]]
LOOSE = 1e-3  # a choice: of the residuals' spread, by which a fit at the limit of iterations may still move


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


def fit_scale(squares: Squares, residuals: Floats) -> ResidualScale:
    """Return sigma and M-scale of the residuals of a fit."""
    return residual_scale(residuals, squares.sample_weight, dof=squares.dof)
