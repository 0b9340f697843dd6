"""The fits of a linear regression at any ``pace``: one complete result after the other, each better than the last."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pacing import Geometric, Pacing, Stages
from ..regularizers import Regularizer
from ..regularizers import relative as relative_rule
from ..robust import EfficientStop, ResidualRule, efficient_pace
from ..selection import Decision, Trial
from ..solver import alternate
from ._initial import robust_start
from ._irls import fit_scale, objective, settle
from ._least_squares import Squares, exact_floor
from ._regression_fit import (
    ROWS_PER_COEFFICIENT,
    Attempt,
    RegressionFit,
    RegressionSettings,
    automatic,
    paced_trial,
    unsettled,
)
from ._ridge_fallback import penalised

__all__ = ["fits"]

Floats = NDArray[np.floating[Any]]
PAPER_FITS = 5  # cost: weighted fits per stage of the paper's path, whose stages are many and near each other


def fits(plain: RegressionFit, settings: RegressionSettings) -> Iterator[RegressionFit]:
    """What is found on the way from the plain fit; the last one is the result."""
    pace = settings.pace
    if isinstance(pace, str) and pace == "auto":
        few = plain.squares.size < ROWS_PER_COEFFICIENT * plain.squares.dof
        return penalised(plain, settings) if few else automatic(plain, settings)
    return fixed(plain, settings, pace) if isinstance(pace, float) else paced(plain, settings)


def fixed(plain: RegressionFit, settings: RegressionSettings, lam: float) -> Iterator[RegressionFit]:
    """Half-quadratic fitting at one pace, from the plain and from a robust start; the lower objective wins."""
    if math.isinf(lam):
        yield plain.keeping_plain("it is the model of the given pace, lam = inf")
        return
    squares, rule, began = plain.squares, ResidualRule(settings.regularizer), time.perf_counter()
    lowest = math.inf
    for b in _starts(plain, settings):
        solution = settle(squares, rule, lam, b, tol=settings.tol, max_iter=settings.max_iter)
        if not solution.stages:
            continue
        found = solution.model
        value = objective(squares, rule, found, lam)
        if value >= lowest:
            continue
        lowest = value
        label = f"{_name(settings.regularizer)}, fixed"
        yield replace(
            plain,
            trials=(*plain.trials, paced_trial(found, lam, label, rule, solution.weights, began)),
            decision=Decision(1, f"lam = {lam:.4g} is the given pace"),
            scale=fit_scale(squares, found.residuals),
            n_iter=solution.stages[-1].inner,
            warning="" if found.converged else unsettled(lam, settings.max_iter),
        )
    if not math.isfinite(lowest):
        kept = plain.keeping_plain(f"at lam = {lam:.4g} no row has any weight")
        yield replace(kept, warning=kept.termination)


def _starts(plain: RegressionFit, settings: RegressionSettings) -> Iterator[Floats]:
    robust = None if settings.start == "plain" else _robust(plain.squares, settings)
    if settings.start != "robust" or robust is None:
        yield plain.plain.b
    if robust is not None:
        yield robust


def _robust(squares: Squares, settings: RegressionSettings) -> Floats | None:
    if squares.size < ROWS_PER_COEFFICIENT * squares.dof:
        return None
    return robust_start(squares, settings.rng)[0]


def paced(plain: RegressionFit, settings: RegressionSettings) -> Iterator[RegressionFit]:
    """The alternation of the core along a given pace, or the paper's."""
    squares, began, regularizer = plain.squares, time.perf_counter(), settings.regularizer
    floor = exact_floor(squares)
    sigma = max(plain.scale.sigma, floor)
    unit = 1.0 if regularizer.power is not None else efficient_pace(regularizer, sigma, settings.efficiency)[1]
    rule = ResidualRule(relative_rule(regularizer), unit)
    given = isinstance(settings.pace, Pacing)
    initial = _robust(squares, settings) if settings.start == "robust" else None
    solution = alternate(
        SquaresProblem(squares, rule),
        rule.regularizer,
        settings.pace if given else _paper_pace(squares, settings.efficiency, unit, floor),
        inner=settings.max_iter if given else PAPER_FITS,
        tolerance=1e-10,
        sample_weight=squares.sample_weight,
        initial=plain.plain.b if initial is None else initial,
    )
    if not solution.stages:
        yield replace(plain, status=solution.status)
        solution.uninterrupted()
        return
    b = np.asarray(solution.model)
    attempt = Attempt(b, squares.residuals(b), rule)
    label = f"{_name(regularizer)}, {type(settings.pace).__name__ if given else settings.pace}"
    trial = Trial(solution.lam, label, None, solution.weights, time.perf_counter() - began, attempt)
    yield replace(
        plain,
        trials=(*plain.trials, trial),
        decision=Decision(1, solution.status),
        scale=fit_scale(squares, attempt.residuals),
        n_iter=sum(stage.inner for stage in solution.stages),
        status=solution.status,
    )
    solution.uninterrupted()


def _paper_pace(squares: Squares, efficiency: float, unit: float, floor: float) -> Geometric:
    stop = EfficientStop(efficiency, unit, squares.dof, squares.sample_weight, floor)
    return Geometric(mu=1.05, fraction=0.5, floor=(floor**2 / unit) or 1e-300, stop=(stop, Stages(400)))


@dataclass(frozen=True, eq=False)
class SquaresProblem:
    """The linear model as a Problem of the core."""

    squares: Squares
    rule: ResidualRule

    def fit(self, weights: Floats | None, previous: Floats | None) -> Floats:
        """The weighted fit."""
        if weights is not None and self.squares.sample_weight is not None:
            # The core multiplies the prior weights in; the squares do so by themselves.
            weights = weights / self.squares.sample_weight
        return self.squares.solve(weights, previous)

    def losses(self, model: Floats) -> Floats:
        """Squared residuals in the rule's unit."""
        return self.rule.losses(self.squares.residuals(model))

    def penalty(self, model: Floats) -> float:
        """The ridge, in the rule's unit."""
        return self.squares.penalty(model) / self.rule.unit


def _name(regularizer: Regularizer) -> str:
    return regularizer.name or type(regularizer).__name__
