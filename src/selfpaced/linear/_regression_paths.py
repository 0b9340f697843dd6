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
from ..robust import (
    EfficientStop,
    ResidualRule,
    efficient_pace,
    efficient_rule,
    m_scale,
    tukey_loss,
)
from ..selection import Decision, Trial, gap
from ..solver import alternate
from ._initial import SEARCHED_COLUMNS, robust_start
from ._least_squares import Squares, exact_floor
from ._regression_fit import (
    ROWS_PER_COEFFICIENT,
    Attempt,
    RegressionFit,
    RegressionSettings,
    fit_scale,
    paced_trial,
    settle,
    unsettled,
)

__all__ = ["LEAST_ROWS", "fixed", "paced", "penalised"]

Floats = NDArray[np.floating[Any]]
PAPER_FITS = 5  # cost: weighted fits per stage of the paper's path, whose stages are many and near each other
LEAST_ROWS = 10  # a choice: rows below which nothing is said about outliers
RIDGES = np.geomspace(1e-4, 1e2, 13)  # a choice: tried, relative to the ridge of the search
DOUBLINGS = 60  # numerical safety: of the ridge, until the effective coefficients are few enough
SMALL_RIDGE = (
    1e-3  # numerical safety: relative to the ridge that was chosen; with less, leverages are 1 but for rounding
)
FALLBACK_LEAD = 1.0  # convention: standard errors by which the paced fit has to be ahead on rows left out


def fixed(plain: RegressionFit, settings: RegressionSettings, lam: float) -> Iterator[RegressionFit]:
    """Half-quadratic fitting at one pace, from the plain and from a robust start; the lower objective wins."""
    if math.isinf(lam):
        yield plain.keeping_plain("it is the model of the given pace, lam = inf")
        return
    squares, rule, began = plain.squares, ResidualRule(settings.regularizer), time.perf_counter()
    lowest = math.inf
    for b in _starts(plain, settings):
        found = settle(squares, rule, lam, b, tol=settings.tol, max_iter=settings.max_iter)
        if found is None:
            continue
        latent, weight = rule.latent(found.residuals, lam), squares.sample_weight
        value = float(latent.sum() if weight is None else weight @ latent) + squares.penalty(found.b)
        if value >= lowest:
            continue
        lowest = value
        label = f"{_name(settings.regularizer)}, fixed"
        yield replace(
            plain,
            trials=(*plain.trials, paced_trial(found, lam, label, rule, began)),
            decision=Decision(1, f"lam = {lam:.4g} is the given pace"),
            scale=fit_scale(squares, found.residuals),
            n_iter=found.n_iter,
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
    return robust_start(squares, settings.rng)


def paced(plain: RegressionFit, settings: RegressionSettings) -> Iterator[RegressionFit]:
    """The alternation of the core along a given pace, or the paper's."""
    squares, began, regularizer = plain.squares, time.perf_counter(), settings.regularizer
    floor = exact_floor(squares)
    sigma = max(plain.scale, floor)
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


# ------------------------------------------------------------------------------- fewer than three rows per coefficient
# Outliers can be fitted like any other row then. The ridge is raised until there are three rows per effective
# coefficient, the robust search finds the rows that agree, and rows left out in turn say how much of it is needed.


def penalised(plain: RegressionFit, settings: RegressionSettings) -> Iterator[RegressionFit]:
    """A robust fit with a ridge, unless the plain fit predicts rows that are left out as well."""
    began, squares = time.perf_counter(), plain.squares
    plain = plain.keeping_plain(f"{_few(squares)} do not show which rows are outliers")
    plain = replace(plain, notice=_notice(squares), final=True)
    yield plain
    if squares.size < LEAST_ROWS or squares.n_columns > SEARCHED_COLUMNS:
        return
    extra = _enough_ridge(squares)
    heavy = squares.damped(extra)
    b = robust_start(heavy, settings.rng)
    weights = _weights(heavy, settings, b)
    common = max(m_scale(heavy.left_out(heavy.residuals(b), weights), squares.sample_weight), exact_floor(squares))
    scored = []
    for factor in RIDGES:
        tried = squares.damped(factor * extra)
        fitted = tried.solve(weights, b)
        loss = tukey_loss(tried.left_out(tried.residuals(fitted), weights), common)
        scored.append((float(np.average(loss, weights=squares.sample_weight)), factor * extra, fitted))
    _, extra, b = min(scored, key=lambda entry: entry[0])
    yield _chosen(plain, settings, squares.damped(extra), b, extra, common, began)


def _few(squares: Squares) -> str:
    return f"{squares.size:g} rows for {squares.dof:.3g} coefficients"


def _notice(squares: Squares) -> str:
    return (
        f"{_few(squares)}: at least {ROWS_PER_COEFFICIENT} per coefficient are needed to tell outliers from a flexible "
        "fit; use more rows, fewer features or a larger penalty"
    )


def _chosen(
    plain: RegressionFit,
    settings: RegressionSettings,
    squares: Squares,
    b: Floats,
    extra: float,
    common: float,
    began: float,
) -> RegressionFit:
    """The settled fit with this ridge or the plain one, whichever predicts the rows left out in turn."""
    residuals = squares.residuals(b)
    sigma = max(fit_scale(squares, residuals), exact_floor(squares))
    rule, lam = efficient_rule(settings.regularizer, sigma, settings.efficiency)
    found, first = settle(squares, rule, lam, b, tol=settings.tol, max_iter=settings.max_iter), plain.trials[0]
    if found is None:
        return plain
    label = f"{settings.regularizer.name or 'custom'} with a ridge, {100 * settings.efficiency:.0f} % efficient"
    trial = paced_trial(found, lam, label, rule, began)
    # The plain fit may go through every row: the limit of a small ridge says what it would do without each of them.
    limit = plain.squares.damped(SMALL_RIDGE * extra)
    without = limit.left_out(limit.residuals(limit.solve()))
    trials = (
        replace(first, scores=-tukey_loss(without, common)),
        replace(trial, scores=-tukey_loss(squares.left_out(found.residuals, found.weights), common)),
    )
    ahead = gap(trials[1], trials[0], squares.sample_weight)
    through = plain.squares.dof >= plain.squares.n_rows  # a fit through every row has no claim to be kept
    if ahead.z <= (0.0 if through else FALLBACK_LEAD):
        reason = f"{label} does not predict rows that are left out better"
        scale = m_scale(without, squares.sample_weight)
        return replace(plain, decision=Decision(0, reason), trials=trials, scale=scale)
    return replace(
        plain,
        squares=squares,
        trials=trials,
        decision=Decision(1, "it predicts rows that are left out better than the plain model"),
        scale=fit_scale(squares, found.residuals),
        n_iter=found.n_iter,
        extra_ridge=extra,
        warning="" if found.converged else unsettled(lam, settings.max_iter),
    )


def _enough_ridge(squares: Squares) -> float:
    """The ridge by which three rows per effective coefficient are left, found by doubling."""
    most = squares.size / ROWS_PER_COEFFICIENT
    unit = squares.at.ridge(1.0)
    extra = 1e-6 * squares.size / max(float(unit.max(initial=0.0)), 1e-300)
    for _ in range(DOUBLINGS):
        if squares.damped(extra).dof <= most:
            break
        extra *= 2
    return extra


def _weights(squares: Squares, settings: RegressionSettings, b: Floats) -> Floats:
    """Weights of the rows by the rule at its efficient pace, settled roughly."""
    residuals = squares.residuals(b)
    sigma = max(fit_scale(squares, residuals), exact_floor(squares))
    rule, lam = efficient_rule(settings.regularizer, sigma, settings.efficiency)
    rough = settle(squares, rule, lam, b, tol=1e-3, max_iter=10)
    return rule.weights(residuals, lam) if rough is None else rough.weights
