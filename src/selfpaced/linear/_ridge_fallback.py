"""Fewer than three rows per coefficient: a ridge takes what the rows do not determine, and outliers show again.

Outliers can then be fitted like any other row, so least squares cannot be trusted to show them. The ridge is raised
until there are three rows per effective coefficient, the robust search finds the rows that agree, and how much of the
ridge is needed is asked of the rows left out in turn, which have a closed form. The plain fit answers the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..robust import ResidualScale, efficient_rule, m_scale, tukey_loss
from ..selection import Decision, gap
from ._initial import SEARCHED_COLUMNS, robust_start
from ._irls import fit_scale, settle
from ._least_squares import Squares, exact_floor
from ._regression_fit import ROWS_PER_COEFFICIENT, RegressionFit, RegressionSettings, paced_trial, unsettled

__all__ = ["LEAST_ROWS", "penalised"]

Floats = NDArray[np.floating[Any]]
LEAST_ROWS = 10  # a choice: rows below which nothing is said about outliers
RIDGES = np.geomspace(1e-4, 1e2, 13)  # a choice: tried, relative to the ridge of the search
DOUBLINGS = 60  # numerical safety: of the ridge, until the effective coefficients are few enough
SMALL_RIDGE = (
    1e-3  # numerical safety: relative to the ridge that was chosen; with less, leverages are 1 but for rounding
)
FALLBACK_LEAD = 1.0  # convention: standard errors by which the paced fit has to be ahead on rows left out


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
    b = robust_start(heavy, settings.rng)[0]
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
        "fit, so the fit is penalised or plain (see termination_); more rows, fewer features or a ridge, alpha, help"
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
    sigma = max(fit_scale(squares, residuals).sigma, exact_floor(squares))
    rule, lam = efficient_rule(settings.regularizer, sigma, settings.efficiency)
    solution = settle(squares, rule, lam, b, tol=settings.tol, max_iter=settings.max_iter)
    if not solution.stages:
        return plain
    found, first = solution.model, plain.trials[0]
    label = f"{settings.regularizer.name or 'custom'} with a ridge, {settings.efficiency:.0%} efficient"
    trial = paced_trial(found, lam, label, rule, solution.weights, began)
    # The plain fit may go through every row: the limit of a small ridge says what it would do without each of them.
    limit = plain.squares.damped(SMALL_RIDGE * extra)
    without = limit.left_out(limit.residuals(limit.solve()))
    trials = (
        replace(first, scores=-tukey_loss(without, common)),
        replace(trial, scores=-tukey_loss(squares.left_out(found.residuals, solution.weights), common)),
    )
    ahead = gap(trials[1], trials[0], squares.sample_weight)
    through = plain.squares.dof >= plain.squares.n_rows  # a fit through every row has no claim to be kept
    if ahead.z <= (0.0 if through else FALLBACK_LEAD):
        reason = f"{label} does not predict rows that are left out better"
        scale = m_scale(without, squares.sample_weight)
        return replace(plain, decision=Decision(0, reason), trials=trials, scale=ResidualScale(scale, scale))
    return replace(
        plain,
        squares=squares,
        trials=trials,
        decision=Decision(1, "it predicts rows that are left out better than the plain model"),
        scale=fit_scale(squares, found.residuals),
        n_iter=solution.stages[-1].inner,
        extra_ridge=extra,
        warning="" if found.converged else unsettled(lam, settings.max_iter),
    )


def _enough_ridge(squares: Squares) -> float:
    """The ridge by which three rows per effective coefficient are left, found by doubling."""
    most = squares.size / ROWS_PER_COEFFICIENT
    unit = squares.unit_ridge()
    extra = 1e-6 * squares.size / max(float(unit.max(initial=0.0)), 1e-300)
    for _ in range(DOUBLINGS):
        if squares.damped(extra).dof <= most:
            break
        extra *= 2
    return extra


def _weights(squares: Squares, settings: RegressionSettings, b: Floats) -> Floats:
    """Weights of the rows by the rule at its efficient pace, settled roughly."""
    residuals = squares.residuals(b)
    sigma = max(fit_scale(squares, residuals).sigma, exact_floor(squares))
    rule, lam = efficient_rule(settings.regularizer, sigma, settings.efficiency)
    rough = settle(squares, rule, lam, b, tol=1e-3, max_iter=10)
    return rough.weights if rough.stages else rule.weights(residuals, lam)
