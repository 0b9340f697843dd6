"""The default fit of a regressor: held-out predictions, an assessment of the values, one fit without gross errors."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import cauchy
from scipy.stats import t as student
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor

from ..regularizers import get
from ..robust import ResidualRule
from ..selection import Decision, Trial, mean_and_error
from ..value_noise import EVEN_ODDS, by_model, numeric_features, repeated_value
from ._default_labels import TUNED_ROWS
from ._paced import CLEARLY, MIN_VALUES, Round, assessed, memorises, predict, residual_floor, sigma_of
from ._reference_models import numeric_table
from ._routing import MOST_REPEATED, Array, TooFewRows, WeightRoute, last_step, rows_left
from ._wrapper import Found, Task, changed_params, told

__all__ = ["fit_default_values"]

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
REGULARISED_FOREST = {"RandomForestRegressor": {"min_samples_leaf": (1, 2), "max_features": (1.0, 0.5)}}


def fit_default_values(task: Task, *, tune: bool = True, keep_plain: bool = False) -> Found | None:
    """Fit a regressor to the rows that are not grossly wrong; None if there are few rows or the model is too simple.

    Models that know absolute error are fitted with it: their held-out predictions are the reference, and gross errors
    hardly move them. The reference of forests is boosting by absolute error. For other models that memorise, it is the
    better of the two: the model itself, or boosting.

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
    params = changed_params(task.estimator, ABSOLUTE_ERROR) if tune and usual else {}
    robust, few = bool(params), task.n_used <= TUNED_ROWS
    if tune and usual and few and not robust:
        params = changed_params(task.estimator, REGULARISED_FOREST)
    forest = isinstance(last_step(task.estimator), RandomForestRegressor | ExtraTreesRegressor)
    began, used, plain = time.perf_counter(), task.with_params(params), None
    if keep_plain or not (robust or forest):
        with task.progress.stage("plain fit"):
            plain = task.fit(task.prior)
    try:
        with task.progress.stage("held-out predictions"):
            expected = _boosted(task) if forest and usual else None
            if expected is None:
                expected = used.cross_fit(task.prior, task.splits(2), predict)
            if not (robust or forest):
                if not _memorises(task, predict(plain, task.X), expected):
                    return None
                expected = _nearer(task, expected, _boosted(task) if usual else None)
        with task.progress.stage("assessment of values"):
            assessment, excluded = _assessed(task, expected, usual, robust, trees=not (robust or forest))
        if excluded.any() and not robust and not _improved(used, excluded):
            assessment, excluded = _without_claim(assessment), np.zeros_like(excluded)
        return _finish(task, used, params, plain, expected, assessment, excluded, time.perf_counter() - began)
    except KeyboardInterrupt:
        if plain is None:
            raise
        trials = [_plain_trial(task, predict(plain, task.X))]
        return Found(plain, plain, trials, Decision(0, "no candidate could be completed"), interrupted=True)


def _plain_trial(task: Task, expected: Array) -> Trial:
    reading = Round(expected, np.asarray(task.y - expected), ResidualRule(get("hard")))
    return Trial(math.inf, "plain", None, np.ones(len(task.y)), 0.0, reading)


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
    """Return the predictions with the smaller mean absolute residual."""
    if second is None:
        return first
    errors = [float(np.average(np.abs(task.y - one), weights=task.prior)) for one in (first, second)]
    return second if errors[1] < errors[0] else first


def _improved(task: Task, excluded: Array) -> bool:
    """Return whether held-out predictions of the other rows are clearly better without the excluded ones."""
    kept, folds = task.total((~excluded).astype(float)), task.splits(2)
    try:
        with task.progress.stage("held-out predictions without gross errors"), rows_left():
            before, after = (task.cross_fit(weight, folds, predict) for weight in (task.prior, kept))
    except TooFewRows:
        return False
    gain = np.where(excluded, 0.0, np.abs(task.y - before) - np.abs(task.y - after))
    sigma = sigma_of(task, task.y - after)
    gain = np.clip(gain, -sigma, sigma)  # else few rows beside the errors decide
    return mean_and_error(gain, task.prior).z > CLEARLY


def _without_claim(assessment: Any) -> Any:
    """Return an assessment that calls no value wrong."""
    wrong = np.minimum(assessment.wrong, EVEN_ODDS)
    return replace(assessment, wrong=wrong, rate=0.0, interval=(0.0, assessment.interval[1]))


def _finish(
    task: Task, used: Task, params: Mapping[str, Any], plain: Any, expected: Array, assessment: Any, excluded: Array,
    cost: float,
) -> Found:  # fmt: skip
    """Fit the chosen model and put the result together."""
    trials, weights = [_plain_trial(task, expected)], (~excluded).astype(float)
    parts = ["no gross errors detected"]
    if excluded.any():
        share, (low, high) = float(np.average(excluded, weights=task.prior)), assessment.interval
        parts = [f"{share:.1%} of the values are grossly wrong and excluded (rate {low:.0%} to {high:.0%})"]
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


# ------------------------------------------------------------------------- scale of rows with a similar prediction


def _assessed(task: Task, expected: Array, usual: bool, local: bool, trees: bool) -> tuple[Any, Array]:
    """Return the assessment of the values, and the rows that are left out of the fit.

    With ``local``, a value is called wrong if it is far from the prediction in the scale of rows with a similar
    prediction, which is looked at first because it is cheap, and if reference models confirm it. Other models than
    boosting by absolute error are protected by a comparison with and without the rows instead. They follow every error,
    so that all values more probably far than not are left out if any is wrong.
    """
    gross = gross_posterior(task, expected)
    far = gross >= FAR_POSTERIOR
    if far.any():
        found = assessed(task, expected, trees)
    else:  # other rows are called wrong only if they are farther off than any scale explains
        found = by_model(task.y, expected, sigma_of(task, task.y - expected), task.prior)
        found = replace(found, least=float(np.finfo(float).tiny))
    before = found.wrong > EVEN_ODDS
    wrong = np.where(far if local or not far.any() else before, found.wrong, np.minimum(found.wrong, EVEN_ODDS))
    called, unsure = wrong > EVEN_ODDS, np.ones(len(far), dtype=bool) if task.trusted is None else ~task.trusted
    also = (gross > EVEN_ODDS) & (usual and not local and bool(called.any()))
    excluded = (called | also) & unsure
    share, (low, high) = float(called @ task.weight / max(before @ task.weight, 1e-9)), found.interval
    if before.any():
        found = replace(found, wrong=wrong, rate=share * found.rate, interval=(share * low, high))
    return found, excluded


def gross_posterior(task: Task, expected: Array) -> Array:
    """Return the probability that a value is a gross error, given the spread of rows with a similar prediction.

    Errors are Student's t with 3 degrees of freedom, in the local scale; gross errors are Cauchy, in the spread of the
    values. Their share is found by expectation maximisation.
    """
    residuals, weight = np.asarray(task.y - expected, dtype=float), task.weight
    rows = np.repeat(np.arange(len(weight)), np.where(weight > 0.0, np.maximum(np.rint(weight), 1.0), 0.0).astype(int))
    rows = rows[np.lexsort((residuals[rows], expected[rows]))]
    centre, scale = _local_scale(residuals[rows], residual_floor(task))
    place = np.minimum(np.searchsorted(expected[rows], expected), len(rows) - 1)
    centre, scale, used = centre[place], scale[place] / student.ppf(0.75, 3), task.y[rows]
    wide = np.maximum(np.std(np.clip(used, *np.quantile(used, (0.02, 0.98)))), 2.0 * scale)
    core = student.pdf((residuals - centre) / scale, 3) / scale
    gross, share = cauchy.pdf((residuals - centre) / wide) / wide, 0.05
    posterior = np.zeros(len(residuals))
    for _ in range(200):
        posterior = share * gross / (share * gross + (1.0 - share) * core)
        before, share = share, float(np.clip(np.average(posterior, weights=task.prior), 1e-4, 0.45))
        if abs(share - before) < 1e-6:
            break
    return posterior


def _local_scale(residuals: Array, floor: float) -> tuple[Array, Array]:
    """Return centre and half-length of the shortest half of neighbouring residuals, in the order of predictions."""
    n = len(residuals)
    width = min(SIMILAR_ROWS, n)
    step, centre, scale = max(1, width // 10), np.empty(n), np.empty(n)
    for begin in range(0, n, step):
        first = int(np.clip(begin - width // 2, 0, n - width))
        rows = slice(begin, begin + step)
        centre[rows], scale[rows] = _shortest_half(residuals[first : first + width])
    return centre, np.maximum(scale, max(_shortest_half(residuals)[1] / 4.0, floor))


def _shortest_half(values: Array) -> tuple[float, float]:
    ordered, half = np.sort(values), len(values) // 2
    place = int(np.argmin(ordered[half:] - ordered[: len(ordered) - half]))
    low, high = float(ordered[place]), float(ordered[place + half])
    return (low + high) / 2.0, (high - low) / 2.0
