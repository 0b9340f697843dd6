"""The default fit of a regressor: held-out predictions, an assessment of the values, one fit without gross errors."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import cauchy
from scipy.stats import t as student
from sklearn.ensemble import HistGradientBoostingRegressor

from ..regularizers import get
from ..robust import ResidualRule
from ..selection import Decision, Trial, mean_and_error
from ..value_noise import EVEN_ODDS, numeric_features, repeated_value
from ._paced import CLEARLY, MIN_VALUES, Round, assessed, memorises, predict, residual_floor, sigma_of
from ._routing import Array, TooFewRows, WeightRoute, rows_left
from ._wrapper import Found, Task, changed_params, told

__all__ = ["fit_default_values"]

MANY_WRONG = 0.2  # cost: share of wrong values above which boosting by absolute error is compared once more
# Measured by benchmarks/wrappers.py --part values.
FAR_POSTERIOR = 0.9  # posterior above which a value is far from rows with a similar prediction
SIMILAR_ROWS = 101  # rows with a similar prediction
# name of a class -> parameter -> (default, changed value); measured by benchmarks/wrappers.py --part values
ABSOLUTE_ERROR: Mapping[str, Mapping[str, tuple[Any, Any]]] = {
    "HistGradientBoostingRegressor": {"loss": ("squared_error", "absolute_error")},
    "GradientBoostingRegressor": {"loss": ("squared_error", "absolute_error")},
    "LGBMRegressor": {"objective": (None, "regression_l1")},
    "XGBRegressor": {"objective": ("reg:squarederror", "reg:absoluteerror")},
}


def fit_default_values(task: Task, *, tune: bool = True, keep_plain: bool = False) -> Found | None:
    """Fit a regressor to the rows that are not grossly wrong; None if there are few rows or the model is too simple.

    Models that know absolute error are fitted with it: their held-out predictions are the reference, and gross errors
    hardly move them. For other models that memorise, the reference is the better of two: the model itself, or boosting
    by absolute error. Without the rows that are called wrong, the model itself is compared once more.

    Parameters
    ----------
    task : Task
        Rows and estimator.
    tune : bool
        Whether the loss of known models may be changed to absolute error.
    keep_plain : bool
        Whether the plain model is fitted although another may be chosen.

    Returns
    -------
    Found or None
    """
    if task.n_units < MIN_VALUES:
        return None
    # if many rows share one value (often zero), the median is no estimate of the mean
    usual = repeated_value(np.asarray(task.y, dtype=float), task.prior) is None
    params, plain = changed_params(task.estimator, ABSOLUTE_ERROR) if tune and usual else {}, None
    if keep_plain or not params:
        with task.progress.stage("plain fit"):
            plain = task.fit(task.prior)
    try:
        return _fit_assessed(task, params, plain, usual)
    except KeyboardInterrupt:
        if plain is None:
            raise
        trials = [_plain_trial(task, predict(plain, task.X))]
        return Found(plain, plain, trials, Decision(0, "no candidate could be completed"), interrupted=True)


def _fit_assessed(task: Task, params: Mapping[str, Any], plain: Any, usual: bool) -> Found | None:
    """Predict held-out values, assess the given ones, and fit the model without gross errors."""
    began, used, robust = time.perf_counter(), task.with_params(params), bool(params)
    with task.progress.stage("held-out predictions"):
        own = expected = used.cross_fit(task.prior, task.splits(2), predict)
        if not robust:
            seen, unseen = (np.abs(task.y - one) for one in (predict(plain, task.X), own))
            sigma = sigma_of(task, unseen)
            if not memorises("auto", np.minimum(seen / sigma, 5.0), np.minimum(unseen / sigma, 5.0), "", task)[0]:
                return None
            expected = _nearer(task, own, _boosted(task)) if usual else own
    assessment = _assessed(task, expected, robust)
    excluded = _wrong(assessment, task)
    if np.average(excluded, weights=task.prior) > (MANY_WRONG if robust else 0.0):
        again = _without(used, excluded)
        if again is not None and _nearer(task, expected, again) is again:
            expected, assessment = again, _assessed(task, again, robust)
            excluded = _wrong(assessment, task)
        if not robust and (again is None or not _improved(task, excluded, own, again)):
            excluded = np.zeros_like(excluded)
    return _finish(task, used, params, plain, expected, assessment, excluded, time.perf_counter() - began)


def _plain_trial(task: Task, expected: Array) -> Trial:
    reading = Round(expected, np.asarray(task.y - expected), ResidualRule(get("hard")))
    return Trial(math.inf, "plain", None, np.ones(len(task.y)), 0.0, reading)


def _wrong(assessment: Any, task: Task) -> Array:
    """Return the rows that are more probably wrong than right, and that no person has confirmed."""
    wrong = np.asarray(assessment.wrong > EVEN_ODDS)
    return wrong if task.trusted is None else wrong & ~task.trusted


def _boosted(task: Task) -> Array:
    """Return held-out predictions of boosting by absolute error; NaN if X is no table of numbers."""
    features = numeric_features(task.X)
    if features is None:
        return np.full(len(task.y), np.nan)
    model = HistGradientBoostingRegressor(loss="absolute_error", early_stopping=False, random_state=task.seed)
    weighted = WeightRoute("sample_weight", "")
    other = replace(task, estimator=model, X=features, route=weighted, fit_params={}, n_jobs=None)
    return other.cross_fit(task.prior, task.splits(2), predict)


def _nearer(task: Task, first: Array, second: Array) -> Array:
    """Return the predictions with the smaller mean absolute residual; the first if the second are unknown."""
    errors = [float(np.average(np.abs(task.y - one), weights=task.prior)) for one in (first, second)]
    return second if errors[1] < errors[0] else first


def _without(task: Task, excluded: Array) -> Array | None:
    """Return held-out predictions of the model fitted without some rows; None if too few are left."""
    try:
        with task.progress.stage("held-out predictions without gross errors"), rows_left():
            return task.cross_fit(task.total((~excluded).astype(float)), task.splits(2), predict)
    except TooFewRows:
        return None


def _improved(task: Task, excluded: Array, before: Array, after: Array) -> bool:
    """Return whether predictions of the other rows are clearly better without the excluded ones."""
    gain = np.where(excluded, 0.0, np.abs(task.y - before) - np.abs(task.y - after))
    return mean_and_error(gain, task.prior).z > CLEARLY


def _finish(
    task: Task, used: Task, params: Mapping[str, Any], plain: Any, expected: Array, assessment: Any, excluded: Array,
    cost: float,
) -> Found:  # fmt: skip
    """Fit the chosen model and put the result together."""
    trials, weights = [_plain_trial(task, expected)], (~excluded).astype(float)
    if excluded.any():
        share, (low, high) = float(np.average(excluded, weights=task.prior)), assessment.interval
        parts = [f"{share:.1%} of the values are grossly wrong and excluded (rate {low:.0%} to {high:.0%})"]
    elif _wrong(assessment, task).any():
        parts = ["held-out predictions are not clearly better without the suspects"]
    else:
        parts = ["no gross errors detected"]
    if assessment.sentence:
        parts.append(assessment.sentence)
    if params:
        parts.append(f"fitted with {told(params)}")
    changed = bool(params) or bool(excluded.any())
    if changed:
        label = "the fit without gross errors" if excluded.any() else "the fit by absolute error"
        trials.append(replace(trials[0], lam=EVEN_ODDS, label=label, weight=weights, cost=cost))
        with task.progress.stage("final fit"), rows_left():
            model = used.fit(task.total(weights))
    else:
        model = plain
    decision, noise = Decision(len(trials) - 1, "; ".join(parts)), replace(assessment, applied=changed)
    return Found(model, plain if changed else model, trials, decision, True, noise=noise, params=params)


# ------------------------------------------------------------------------- scale of rows with a similar prediction


def _assessed(task: Task, expected: Array, local: bool) -> Any:
    """Return the assessment of the values.

    With ``local``, a value must also be far from the prediction in the scale of rows with a similar prediction. Other
    models than boosting by absolute error are protected by a comparison with and without the rows instead.
    """
    with task.progress.stage("assessment of values"):
        found = assessed(task, expected)
    if not local or not np.any(found.wrong > EVEN_ODDS):
        return found
    wrong = np.where(gross_posterior(task, expected) >= FAR_POSTERIOR, found.wrong, np.minimum(found.wrong, EVEN_ODDS))
    share, (low, high) = float(np.sum(wrong > EVEN_ODDS) / np.sum(found.wrong > EVEN_ODDS)), found.interval
    return replace(found, wrong=wrong, rate=share * found.rate, interval=(share * low, high))


def gross_posterior(task: Task, expected: Array) -> Array:
    """Return the probability that a value is a gross error, given the spread of rows with a similar prediction.

    Errors are Student's t with 3 degrees of freedom, in the local scale; gross errors are Cauchy, in the spread of the
    values. Their share is found by expectation maximisation.
    """
    residuals = np.asarray(task.y - expected, dtype=float)
    centre, scale = _local_scale(expected, residuals, residual_floor(task))
    scale = scale / student.ppf(0.75, 3)
    wide = np.maximum(np.std(np.clip(task.y, *np.quantile(task.y, (0.02, 0.98)))), 2.0 * scale)
    core = student.pdf((residuals - centre) / scale, 3) / scale
    gross, share = cauchy.pdf((residuals - centre) / wide) / wide, 0.05
    posterior = np.zeros(len(residuals))
    for _ in range(200):
        posterior = share * gross / (share * gross + (1.0 - share) * core)
        before, share = share, float(np.clip(np.average(posterior, weights=task.prior), 1e-4, 0.45))
        if abs(share - before) < 1e-6:
            break
    return posterior


def _local_scale(expected: Array, residuals: Array, floor: float) -> tuple[Array, Array]:
    """Return centre and half-length of the shortest half of residuals among rows with a similar prediction."""
    order, n = np.argsort(expected, kind="stable"), len(residuals)
    width, step = min(SIMILAR_ROWS, n), max(1, min(SIMILAR_ROWS, n) // 10)
    centre, scale = np.empty(n), np.empty(n)
    for begin in range(0, n, step):
        first = int(np.clip(begin - width // 2, 0, n - width))
        rows = order[begin : begin + step]
        centre[rows], scale[rows] = _shortest_half(residuals[order[first : first + width]])
    return centre, np.maximum(scale, max(_shortest_half(residuals)[1] / 4.0, floor))


def _shortest_half(values: Array) -> tuple[float, float]:
    ordered, half = np.sort(values), len(values) // 2
    place = int(np.argmin(ordered[half:] - ordered[: len(ordered) - half]))
    low, high = float(ordered[place]), float(ordered[place + half])
    return (low + high) / 2.0, (high - low) / 2.0
