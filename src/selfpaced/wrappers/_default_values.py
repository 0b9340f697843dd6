"""The default fit of a regressor: held-out predictions, an assessment of the values, one fit without gross errors."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import cauchy
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from ..regularizers import get
from ..robust import ResidualRule, largest_sigma
from ..selection import Decision, Trial, mean_and_error
from ..value_noise import EVEN_ODDS, assess_values, numeric_features, repeated_value
from ._cases import Array
from ._known_models import ABSOLUTE_ERROR, changed_params, told
from ._routing import TooFewRows, WeightRoute
from ._wrapper import Found, Task, decide_cross_fit

__all__ = [
    "MIN_ROWS",
    "N_FOLDS",
    "Round",
    "assessed",
    "capacity",
    "fit_default_values",
    "predict",
    "residual_floor",
    "sigma_of",
]

MIN_ROWS = 20  # a choice: fewer rows are not split into folds
N_FOLDS = 5  # convention: five-fold cross-validation, as in scikit-learn
LEAST_GAP = 0.05  # a choice: gap of absolute residuals, in sigma, of a model that memorises
CLEARLY = 2.0  # theory: standard errors, about 95 %
MANY_WRONG = 0.2  # cost: share of wrong values above which boosting by absolute error is compared once more
# Measured by benchmarks/wrappers.py --part values.
SURE = 0.9  # posterior above which a value is far from rows with a similar prediction
WINDOW = 101  # rows with a similar prediction
CORE_DOF = 3  # degrees of freedom of the errors that are no gross errors
TRIMMED = (0.02, 0.98)  # quantiles between which the spread of the values is taken
FIRST_SHARE = 0.05  # numerical safety: share of gross errors to start from
STEPS = 200  # numerical safety: steps of expectation maximisation
ROUNDING = 1e2  # numerical safety: units in the last place below which residuals are rounding errors
WITHOUT = "the fit without gross errors"
ABSOLUTE = "the fit by absolute error"


@dataclass(frozen=True, eq=False)
class Round:
    """Weights, the residuals that they follow from, the rule that made them, and the number of rounds so far."""

    weights: Array
    residuals: Array
    rule: ResidualRule
    number: int = 0


def predict(model: Any, X: Any) -> Array:
    """Return predictions as one column of floats."""
    return np.asarray(model.predict(X), dtype=float).reshape(-1)


def residual_floor(task: Task) -> float:
    """Return the size below which residuals are rounding errors."""
    eps = np.finfo(task.y.dtype if task.y.dtype.kind == "f" else np.float64).eps
    return ROUNDING * float(eps) * math.sqrt(float(np.mean(np.square(task.y, dtype=float)))) + 1e-140


def sigma_of(task: Task, residuals: Array) -> float:
    """Return the sigma of the good residuals, never zero."""
    return max(largest_sigma(residuals, task.prior, dof=1).sigma, residual_floor(task))


def assessed(task: Task, expected: Array, local: bool = False) -> Any:
    """Return the assessment of the values: which are grossly wrong, told from what the model misfits.

    With ``local``, a value must also be far from the prediction in the scale of rows with a similar prediction. Other
    models than boosting by absolute error are protected by a comparison with and without the rows instead.
    """
    sigma, features = sigma_of(task, task.y - expected), numeric_features(task.X)
    found = assess_values(
        task.y, (expected,), sigma, features=features, sample_weight=task.prior, groups=task.groups,
        random_state=task.seed,
    )  # fmt: skip
    if not local or not np.any(found.wrong > EVEN_ODDS):
        return found
    wrong = np.where(gross_posterior(task, expected) >= SURE, found.wrong, np.minimum(found.wrong, EVEN_ODDS))
    share, (low, high) = float(np.sum(wrong > EVEN_ODDS) / np.sum(found.wrong > EVEN_ODDS)), found.interval
    return replace(found, wrong=wrong, rate=share * found.rate, interval=(share * low, high))


def gross_posterior(task: Task, expected: Array) -> Array:
    """Return the probability that a value is a gross error, given the spread of rows with a similar prediction.

    Errors are Student's t with 3 degrees of freedom, in the local scale; gross errors are Cauchy, in the spread of the
    values. Their share is found by expectation maximisation.
    """
    residuals = np.asarray(task.y - expected, dtype=float)
    centre, scale = _local_scale(expected, residuals, residual_floor(task))
    scale = scale / student.ppf(0.75, CORE_DOF)
    low, high = np.quantile(task.y, TRIMMED)
    wide = np.maximum(np.std(np.clip(task.y, low, high)), 2.0 * scale)
    core = student.pdf((residuals - centre) / scale, CORE_DOF) / scale
    gross, share = cauchy.pdf((residuals - centre) / wide) / wide, FIRST_SHARE
    posterior = np.zeros(len(residuals))
    for _ in range(STEPS):
        posterior = share * gross / (share * gross + (1.0 - share) * core)
        before, share = share, float(np.clip(np.average(posterior, weights=task.prior), 1e-4, 0.45))
        if abs(share - before) < 1e-6:
            break
    return posterior


def _local_scale(expected: Array, residuals: Array, floor: float) -> tuple[Array, Array]:
    """Return centre and half-length of the shortest half of residuals among rows with a similar prediction."""
    order, n = np.argsort(expected, kind="stable"), len(residuals)
    width, step = min(WINDOW, n), max(1, min(WINDOW, n) // 10)
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


def fit_default_values(task: Task, *, tune: bool = True, keep_plain: bool = False) -> Found | None:
    """Fit a regressor to the rows that are not grossly wrong; None for a model of little capacity.

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
    if task.n_units < MIN_ROWS:
        return _too_few(task)
    # if many rows share one value (often zero), the median is no estimate of the mean
    usual = repeated_value(np.asarray(task.y, dtype=float), task.prior) is None
    params = changed_params(task.estimator, ABSOLUTE_ERROR) if tune and usual else {}
    used = replace(task, estimator=clone(task.estimator).set_params(**params)) if params else task
    plain = None
    if keep_plain or not params:
        with task.progress.stage("plain fit"):
            plain = task.fit(task.prior)
    try:
        return _fit_assessed(task, used, params, plain, usual)
    except KeyboardInterrupt:
        if plain is None:
            raise
        residuals = np.asarray(task.y - predict(plain, task.X))
        decision = Decision(0, "no candidate could be completed")
        return Found(plain, plain, [_plain_trial(residuals)], decision, interrupted=True)


def _fit_assessed(task: Task, used: Task, params: dict[str, Any], plain: Any, usual: bool) -> Found | None:
    """Predict held-out values, assess the given ones, and fit the model without gross errors."""
    began = time.perf_counter()
    with task.progress.stage("held-out predictions"):
        own = expected = used.cross_fit(task.prior, task.splits(2), predict)
        if not params and not capacity(task, task.y - predict(plain, task.X), task.y - own)[0]:
            return None
        if not params and usual:
            expected = _nearer(task, own, _boosted(task))
    with task.progress.stage("assessment of values"):
        assessment = assessed(task, expected, local=bool(params))
    excluded, share = _wrong(assessment, task), float(np.average(_wrong(assessment, task), weights=task.prior))
    if share > (MANY_WRONG if params else 0.0):
        again = _without(used, excluded)
        if again is not None and _nearer(task, expected, again) is again:
            with task.progress.stage("assessment of values"):
                expected, assessment = again, assessed(task, again, local=bool(params))
                excluded = _wrong(assessment, task)
        if not params and (again is None or not _improved(task, excluded, own, again)):
            excluded = np.zeros_like(excluded)
    return _finish(task, used, params, plain, expected, assessment, excluded, time.perf_counter() - began)


def _too_few(task: Task) -> Found:
    with task.progress.stage("plain fit"):
        model = task.fit(task.prior)
    residuals = np.asarray(task.y - predict(model, task.X))
    decision = Decision(0, f"{task.n_units} rows are too few to find gross errors")
    return Found(model, model, [_plain_trial(residuals)], decision, noise=assessed(task, task.y - residuals))


def _plain_trial(residuals: Array) -> Trial:
    ones = np.ones(residuals.size)
    return Trial(math.inf, "plain", None, ones, 0.0, Round(ones, residuals, ResidualRule(get("hard"))))


def capacity(task: Task, seen: Array, unseen: Array, setting: bool | str = "auto") -> tuple[bool, str]:
    """Return whether residuals are cross-fitted, and why."""
    sigma = sigma_of(task, unseen)
    fitted, fresh = (np.minimum(np.abs(residuals) / sigma, 5.0) for residuals in (seen, unseen))
    unit = "absolute residual (in sigma)"
    return decide_cross_fit(setting, fitted, fresh, task.prior, unit=unit, least=LEAST_GAP)


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
        with task.progress.stage("held-out predictions without gross errors"):
            return task.cross_fit(task.total((~excluded).astype(float)), task.splits(2), predict)
    except TooFewRows:
        return None


def _improved(task: Task, excluded: Array, before: Array, after: Array) -> bool:
    """Return whether predictions of the other rows are clearly better without the excluded ones."""
    gain = np.where(excluded, 0.0, np.abs(task.y - before) - np.abs(task.y - after))
    return mean_and_error(gain, task.prior).z > CLEARLY


def _finish(
    task: Task, used: Task, params: dict[str, Any], plain: Any, expected: Array, assessment: Any, excluded: Array,
    cost: float,
) -> Found:  # fmt: skip
    """Fit the chosen model and put the result together."""
    weights, residuals = (~excluded).astype(float), np.asarray(task.y - expected)
    trials = [_plain_trial(residuals)]
    parts = [assessment.sentence] if assessment.sentence else []
    changed, (low, high) = bool(params) or bool(excluded.any()), assessment.interval
    if excluded.any():
        share = float(np.average(excluded, weights=task.prior))
        parts.insert(0, f"{share:.1%} of the values are grossly wrong and excluded (rate {low:.0%} to {high:.0%})")
    elif _wrong(assessment, task).any():
        parts.insert(0, "held-out predictions are not clearly better without the suspects")
    else:
        parts.insert(0, "no gross errors detected")
    if params:
        parts.append(f"fitted with {told(params)}")
    if changed:
        label = WITHOUT if excluded.any() else ABSOLUTE
        trials.append(Trial(EVEN_ODDS, label, None, weights, cost, Round(weights, residuals, trials[0].fit.rule)))
    with task.progress.stage("final fit"):
        model = used.fit(task.total(weights)) if changed else task.fit(task.prior) if plain is None else plain
    decision = Decision(len(trials) - 1, "; ".join(parts))
    found = Found(
        model, plain if changed else model, trials, decision, True, noise=replace(assessment, applied=changed)
    )
    return replace(found, details={"tuned_params_": params})
