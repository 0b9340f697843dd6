"""The check of a linear fit: which values are grossly wrong, and which fit is nearest to the others."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fitting import trusting
from ..regularizers import get
from ..robust import ResidualRule
from ..selection import Decision, Trial
from ..value_noise import (
    EVEN_ODDS,
    WITHOUT,
    ValueAssessment,
    assess_values,
    by_model,
    nearest,
    numeric_features,
    repeated_value,
)
from ._least_squares import exact_floor
from ._leverage import rejected_rows, row_sizes
from ._regression_fit import Attempt, RegressionFit, fit_scale

__all__ = ["by_residuals", "checked", "trusting_regression"]

Floats = NDArray[np.floating[Any]]


def checked(
    fit: RegressionFit, X: Any, *, choose: bool, groups: Any = None, random_state: Any = 0
) -> tuple[RegressionFit, ValueAssessment]:
    """Assess the values, and choose between the weighted fit, one without the gross rows and the plain fit.

    ``X`` are the features of the rows as given; nothing is chosen if the pace was given. Rows of a group are predicted
    by models of other groups.
    """
    squares = fit.squares
    y = squares.target + squares.offset
    if fit.scale.sigma <= exact_floor(squares) and repeated_value(y, squares.sample_weight) is None:
        return fit, by_residuals(fit)
    assessment = assess_values(
        y,
        (y - fit.best.residuals,),
        fit.sigma,
        features=numeric_features(X),
        sample_weight=squares.sample_weight,
        groups=groups,
        linear=True,
        random_state=random_state,
    )
    if not (choose and assessment.asked):
        return fit, assessment
    rejected = rejected_rows(squares, fit.best.residuals, row_sizes(squares))
    dropped = rejected | ~assessment.trusted if assessment.found else rejected
    without = _without(fit, ~dropped) if dropped.any() and np.sum(~dropped) > squares.dof else None
    chosen = _nearest(fit, assessment, rejected, without)
    return chosen, replace(assessment, applied=True, dropped=dropped) if chosen is without else assessment


def by_residuals(fit: RegressionFit) -> ValueAssessment:
    """Return the assessment by the residuals of the fit alone."""
    y = fit.squares.target
    return by_model(y, y - fit.best.residuals, fit.sigma, fit.squares.sample_weight)


def _nearest(
    fit: RegressionFit, assessment: ValueAssessment, rejected: NDArray[np.bool_], without: RegressionFit | None
) -> RegressionFit:
    """Return the fit that is nearest to the rows that are right; the plain one unless another is nearer."""
    rivals = [] if fit.trial.plain else [fit]
    if without is not None:
        rivals.append(without)
    # rejected rows would decide for the plain fit, which follows them
    compared = replace(assessment, wrong=np.where(rejected, 1.0, assessment.wrong))
    residuals = [fit.squares.left_out(one.best.residuals, one.trial.weight) for one in rivals]
    number = nearest(residuals, fit.squares.left_out(fit.plain.residuals), compared, fit.squares.sample_weight)
    if number is not None:
        return rivals[number]
    if fit.trial.plain:
        return fit
    said = assessment.sentence
    reason = f"{fit.trial.label} is not better on the rows that are not grossly wrong" + (f"; {said}" if said else "")
    return rivals[-1].keeping_plain(reason)


def _without(fit: RegressionFit, trusted: NDArray[np.bool_]) -> RegressionFit:
    """Return the least-squares fit without the gross rows."""
    began, weights = time.perf_counter(), trusted.astype(float)
    b = fit.squares.solve(weights, fit.best.b)  # what the other rows leave open stays
    attempt = Attempt(b, fit.squares.residuals(b), ResidualRule(get("hard")))
    trial = Trial(EVEN_ODDS, WITHOUT, None, weights, time.perf_counter() - began, attempt)
    share = 1 - float(np.average(weights, weights=fit.squares.sample_weight))
    left = f"{share:.1%} of the rows, which are grossly wrong or misled by their features"
    reason = f"without {left}, it is better on the others"
    return replace(
        fit,
        trials=(*fit.trials, trial),
        decision=Decision(len(fit.trials), reason),
        scale=fit_scale(fit.squares.rows(np.flatnonzero(trusted)), attempt.residuals[trusted]),
        n_iter=1,
        warning="",
    )


def trusting_regression(fit: RegressionFit, trusted: NDArray[np.bool_]) -> RegressionFit:
    """Return the chosen fit again, with full weight for the rows that a person has confirmed."""
    if fit.trial.plain:
        return fit
    weights: Any = trusting(fit.trial.weight, trusted)
    b = fit.squares.solve(weights)
    trials = list(fit.trials)
    attempt = replace(fit.best, b=b, residuals=fit.squares.residuals(b))
    trials[fit.decision.index] = replace(fit.trial, weight=weights, fit=attempt)
    return replace(fit, trials=tuple(trials))
