"""The default fit of a regressor: held-out predictions, an assessment of the values, one fit without gross errors."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from ..fingerprint import N_FOLDS
from ..regularizers import get
from ..robust import ResidualRule, weighted_quantile
from ..selection import Decision, Trial
from ..value_noise import EVEN_ODDS, by_model, numeric_features, repeated_value
from ._paced import MIN_VALUES, Round, assessed, memorises, predict, sigma_of
from ._reference_models import LEAF, TREE_ROWS, numeric_table, training_rows
from ._routing import MOST_REPEATED, Array, WeightRoute, last_step, rows_left
from ._wrapper import Found, Task, changed_params, told

__all__ = ["fit_default_values"]

# name of a class -> parameter -> (default, changed value); measured by benchmarks/wrappers.py --part values
ABSOLUTE_ERROR: Mapping[str, Mapping[str, tuple[Any, Any]]] = {
    "HistGradientBoostingRegressor": {"loss": ("squared_error", "absolute_error")},
    "GradientBoostingRegressor": {"loss": ("squared_error", "absolute_error")},
    "LGBMRegressor": {"objective": (None, "regression_l1")},
    "XGBRegressor": {"objective": ("reg:squarederror", "reg:absoluteerror")},
}
# leaves of one row repeat its value, wrong or not; leaves of three lose on clean development tables
LEAVES_OF_TWO: Mapping[str, Mapping[str, tuple[Any, Any]]] = {
    "RandomForestRegressor": {"min_samples_leaf": (1, 2)},
    "ExtraTreesRegressor": {"min_samples_leaf": (1, 2)},
}


def fit_default_values(task: Task, *, tune: bool = True, keep_plain: bool = False) -> Found | None:
    """Fit a regressor to the rows that are not grossly wrong; None if there are few rows or the model is too simple.

    Models that know absolute error are fitted with it: their held-out predictions are the reference, and gross errors
    hardly move them. For other models that memorise, the reference is the better of two: the model itself, or boosting
    by absolute error.
    """
    if task.n_units < MIN_VALUES:
        return None
    # if many rows share one value (often zero), the median is no estimate of the mean
    usual = repeated_value(np.asarray(task.y, dtype=float), task.prior) is None
    known = {**ABSOLUTE_ERROR, **LEAVES_OF_TWO} if usual else LEAVES_OF_TWO
    params, plain = changed_params(task.estimator, known) if tune else {}, None
    robust = _by_absolute_error(task.with_params(params).estimator)
    if keep_plain or not (robust or params):
        with task.progress.stage("plain fit"):
            plain = task.fit(task.prior)
    try:
        return _fit_assessed(task, params, plain, robust, usual)
    except KeyboardInterrupt:
        if plain is None:
            raise
        trials = [_plain_trial(task, predict(plain, task.X))]
        return Found(plain, plain, trials, Decision(0, "no candidate could be completed"), interrupted=True)


def _fit_assessed(task: Task, params: Mapping[str, Any], plain: Any, robust: bool, usual: bool) -> Found | None:
    """Predict held-out values, assess the given ones, and fit the model without gross errors."""
    began, used = time.perf_counter(), task.with_params(params)
    with task.progress.stage("held-out predictions"):
        expected = used.cross_fit(task.prior, task.splits(2), predict)
        if not robust:
            if not params and not _memorises(task, predict(plain, task.X), expected):
                return None
            expected = _nearer(task, expected, _boosted(task) if usual else None)
    with task.progress.stage("assessment of values"):
        assessment = assessed(task, expected, flexible=True)
    if _shared(task, assessment.wrong > EVEN_ODDS) > EVEN_ODDS:
        assessment = assessment.without_claims(task.prior)
    excluded = _wrong(assessment, task)
    if excluded.any() and not robust:
        # such a model follows every error: what is gross by the reference alone is left out, too
        excluded |= _wrong(by_model(task.y, expected, assessment.sigma, task.prior), task)
    return _finish(task, used, params, plain, expected, assessment, excluded, time.perf_counter() - began)


def _by_absolute_error(estimator: Any) -> bool:
    """Return whether the user has set the absolute error of a known model."""
    last = last_step(estimator)
    known = ABSOLUTE_ERROR.get(type(last).__name__, {})
    return any(getattr(last, name) == changed for name, (_, changed) in known.items())


def _plain_trial(task: Task, expected: Array) -> Trial:
    reading = Round(expected, np.asarray(task.y - expected), ResidualRule(get("hard")))
    return Trial(math.inf, "plain", None, np.ones(len(task.y)), 0.0, reading)


def _wrong(assessment: Any, task: Task) -> Array:
    """Return the rows that are more probably wrong than right, and that no person has confirmed."""
    wrong = np.asarray(assessment.wrong > EVEN_ODDS)
    return wrong if task.trusted is None else wrong & ~task.trusted


def _shared(task: Task, wrong: Array) -> float:
    """Return how many of the rows like those that are called wrong are called wrong, too: 1 is a rule of the data.

    Errors are isolated: trees that have not seen a row predict for it the share of errors among all rows. A part of the
    table that the model does not know, such as the end of a steep curve or a small group, is far from it as a whole.
    """
    table, rows = numeric_table(task.X), np.flatnonzero(wrong & (task.weight > 0.0))
    if table is None or not rows.size:
        return 0.0
    target, predicted = wrong.astype(float), np.zeros(len(wrong))
    for train, test in task.splits(N_FOLDS):
        train = training_rows(task, train, TREE_ROWS, task.seed)
        tree = DecisionTreeRegressor(min_samples_leaf=LEAF, random_state=task.seed)
        predicted[test] = tree.fit(table[train], target[train], task.weight[train]).predict(table[test])
    return float(predicted[rows].mean())


def _memorises(task: Task, seen: Array, unseen: Array) -> bool:
    """Return whether a model is clearly nearer to the rows that it has seen."""
    seen, unseen = np.abs(task.y - seen), np.abs(task.y - unseen)
    sigma = sigma_of(task, unseen)
    return memorises("auto", np.minimum(seen / sigma, 5.0), np.minimum(unseen / sigma, 5.0), "", task)[0]


def _boosted(task: Task) -> Array | None:
    """Return held-out predictions of boosting by absolute error; None if X is no table of numbers."""
    features = numeric_features(task.X)
    if features is None:  # many columns
        features = numeric_table(task.X)
    if features is None or sparse.issparse(features):
        return None
    model = HistGradientBoostingRegressor(loss="absolute_error", early_stopping=False, random_state=task.seed)
    whole = np.array_equal(task.weight, np.rint(task.weight)) and task.weight.sum() <= MOST_REPEATED
    route = WeightRoute(None if whole else "sample_weight", "")  # leaves count rows: whole weights repeat rows
    other = replace(task, estimator=model, X=features, route=route, fit_params={}, n_jobs=None)
    return other.cross_fit(task.prior, task.splits(2), predict)


def _nearer(task: Task, first: Array, second: Array | None) -> Array:
    """Return the predictions with the smaller median of absolute residuals, which gross errors hardly move."""
    if second is None:
        return first
    errors = [weighted_quantile(np.abs(task.y - one), 0.5, task.prior) for one in (first, second)]
    return second if errors[1] < errors[0] else first


def _finish(
    task: Task, used: Task, params: Mapping[str, Any], plain: Any, expected: Array, assessment: Any, excluded: Array,
    cost: float,
) -> Found:  # fmt: skip
    """Fit the chosen model and put the result together."""
    trials, weights = [_plain_trial(task, expected)], (~excluded).astype(float)
    if excluded.any():
        gross, (low, high) = excluded & _wrong(assessment, task), assessment.interval
        share, more = (100 * np.average(rows, weights=task.prior) for rows in (gross, excluded & ~gross))
        rate = f"rate {100 * low:.0f} % to {100 * high:.0f} %"
        parts = [f"{share:.1f} % of the values are grossly wrong and excluded ({rate})"]
        parts += [f"{more:.1f} % more are far from this model and excluded, too"] * bool(more)
    else:
        parts = ["no gross errors detected"]
    if assessment.sentence:
        parts.append(assessment.sentence)
    if params:
        parts.append(f"fitted with {told(params)}")
    changed = bool(params) or bool(excluded.any())
    if changed:
        label = "the fit without gross errors" if excluded.any() else "the fit with changed parameters"
        trials.append(replace(trials[0], lam=EVEN_ODDS, label=label, weight=weights, cost=cost))
    model = plain
    if changed or plain is None:
        with task.progress.stage("final fit"), rows_left():
            model = used.fit(task.total(weights) if changed else task.prior)
    decision, noise = Decision(len(trials) - 1, "; ".join(parts)), replace(assessment, applied=changed)
    return Found(model, plain if changed else model, trials, decision, True, noise=noise, params=params)
