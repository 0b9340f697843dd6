"""The default fit of a classifier: reference models, the posterior of every label, one fit to soft labels."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import norm
from sklearn.base import clone

from ..label_noise import NoiseModel, one_rate_likelihood
from ..selection import Decision, Trial, mean_and_error
from ._cases import Array, Cases, cases_of, numeric_table
from ._known_models import REGULARISED, changed_params, told
from ._posterior import LEAST_RATE, Posterior, logarithms, posterior_of
from ._reference_models import ForestReference, LogisticReference, ModelReference, ReferenceModel
from ._routing import weight_route
from ._soft_labels import (
    Fitted,
    Reading,
    as_logits,
    confirmed,
    fit_soft,
    layout_words,
    output_kind,
    read_output,
    rival_loss,
    scaled_to,
)
from ._wrapper import Found, Task, seeded

__all__ = ["MIN_ROWS", "fit_default", "unassessed"]

MIN_ROWS = 40  # a choice: fewer rows are not split into folds, and fewer rows per class are not compared
N_FOLDS = 5  # convention: five-fold cross-validation, as in scikit-learn
CLEARLY = 2.0  # theory: standard errors, about 95 %
LEAN = 0.25  # benchmarks/wrappers.py --part labels: largest share of P(true | x) in the soft labels
ONE_HALF_ROWS = 2_000  # cost: rows above which one half of them is enough to compare models
SOFT = "the fit to soft labels"


def fit_default(task: Task, references: Any = "auto", *, tune: bool = True, keep_plain: bool = False) -> Found:
    """Fit a classifier to the soft labels of reference models, or the plain model if they are worse than it.

    Parameters
    ----------
    task : Task
        Rows and estimator.
    references : "auto", "self", classifier or sequence of those
        The reference models.
    tune : bool
        Whether known models may be regularised more.
    keep_plain : bool
        Whether the plain model is fitted although another may be chosen.

    Returns
    -------
    Found
    """
    codes, n_classes = np.asarray(task.codes), np.asarray(task.classes).size
    cases = cases_of(task.X, codes, n_classes, task.prior, task.groups, task.trusted)
    plain = _plain(task) if keep_plain else None
    if n_classes < 2 or cases.n_units < MIN_ROWS:
        why = f"{cases.n_units} rows of {n_classes} classes are too few to estimate noise"
        return unassessed(task, plain or _plain(task), why if n_classes > 1 else "there is only one class")
    try:
        return _fit_soft(task, cases, references, tune, plain)
    except KeyboardInterrupt:
        if plain is None:
            raise
        return replace(unassessed(task, plain, "no candidate could be completed"), interrupted=True)


def _fit_soft(task: Task, cases: Cases, references: Any, tune: bool, plain: Fitted | None) -> Found:
    """Run the reference models, compare them with the model, and fit it to soft labels or as it is."""
    codes, n_classes, began = np.asarray(task.codes), cases.n_classes, time.perf_counter()
    with task.progress.stage("reference models"):
        models = _references(task, cases, references)
        posterior = posterior_of(cases, models)
    with task.progress.stage("comparison with the model"):
        lead = _compared(task, cases, posterior, models, tune)
    reading, weights = _reading(posterior, cases), posterior.weights
    n, cost = len(codes), time.perf_counter() - began
    first = Trial(math.inf, "plain", lead.own[cases.of_row], np.ones(n), 0.0, reading)
    if not lead.soft(posterior):
        plain = plain or _plain(task)
        decision = Decision(0, _words(posterior, lead))
        return _found(task, [first], decision, reading, plain, plain, posterior, {"reference_weights_": weights})
    soft = confirmed(task, posterior.soft(cases.codes, lead.lean)[cases.of_row])
    with task.progress.stage("final fit"):
        chosen = fit_soft(lead.task, soft)
    weight, scores = soft[np.arange(n), codes], lead.references[cases.of_row]
    trial = Trial(_even_loss(posterior, n_classes), SOFT, scores, weight, cost, reading)
    parts = [_words(posterior, lead), layout_words(task)]
    if lead.params:
        parts.append(f"regularised with {told(lead.params)}")
    details = {"reference_weights_": weights, "tuned_params_": lead.params}
    return _found(task, [first, trial], Decision(1, "; ".join(parts)), reading, chosen, plain, posterior, details)


def _plain(task: Task) -> Fitted:
    with task.progress.stage("plain fit"):
        return fit_soft(task, np.eye(np.asarray(task.classes).size)[task.codes])


# ---------------------------------------------------------------------------------------------------- reference models


def _references(task: Task, cases: Cases, asked: Any) -> list[ReferenceModel]:
    """Return the reference models; the model itself if X is no table of numbers."""
    given = None if task.automatic else cases.given_splits(task.splits(N_FOLDS))
    if isinstance(asked, str) and asked == "auto":
        table = numeric_table(task.X, cases.first, cases.n_used)
        if table is None:
            return [_own(task, cases, given)]
        logistic = LogisticReference(table, cases, cases.splits(N_FOLDS, task.seed) if given is None else given)
        if sparse.issparse(table):
            return [logistic]
        return [ForestReference(table, cases, given, task.seed, task.n_jobs), logistic]
    several = asked if isinstance(asked, list | tuple) else [asked]
    return [_own(task, cases, given) if isinstance(one, str) else _other(task, cases, one, given) for one in several]


def _own(task: Task, cases: Cases, given: Any) -> ModelReference:
    """Return the wrapped model on halves of the rows, twice: half-trained models memorise less."""
    halves = [half for number in range(2) for half in cases.splits(2, task.seed + number)]
    return ModelReference("the model itself", task, cases, halves if given is None else given)


def _other(task: Task, cases: Cases, estimator: Any, given: Any) -> ModelReference:
    model = seeded(estimator, task.seed)
    other = replace(task, estimator=model, route=weight_route(model), fit_params={})
    splits = cases.splits(N_FOLDS, task.seed) if given is None else given
    return ModelReference(type(estimator).__name__, other, cases, splits)


# ------------------------------------------------------------------------------------------- comparison with the base


@dataclass(frozen=True, eq=False)
class Lead:
    """The reference models compared with the wrapped model, on rows that neither has seen.

    Attributes
    ----------
    task : Task
        With the estimator that is fitted, regularised or not.
    params : mapping
        Parameters that were changed.
    z : float
        By how many standard errors the reference models predict given labels better; NaN: not compared.
    own, references : ndarray of shape (n_cases,)
        Log-likelihood of the given labels by the model and by the reference models; NaN: not compared.
    """

    task: Task
    params: Mapping[str, Any]
    z: float
    own: Array
    references: Array

    @property
    def lean(self) -> float:
        """Share of P(true | x) in the soft labels: the better they are, the more."""
        return 0.0 if math.isnan(self.z) else LEAN * float(norm.cdf(self.z))

    def soft(self, posterior: Posterior) -> bool:
        """Return whether the model is fitted to soft labels."""
        return posterior.rate >= LEAST_RATE or self.z >= -CLEARLY


def _compared(task: Task, cases: Cases, posterior: Posterior, models: list[ReferenceModel], tune: bool) -> Lead:
    """Fit the model, and a more regularised one, to halves of the rows, and compare them with the references."""
    unknown = np.full(len(cases.codes), np.nan)
    halves = cases.splits(2, task.seed)[: 1 if cases.n_used > ONE_HALF_ROWS else 2]
    few = cases.n_used < MIN_ROWS * cases.n_classes
    if few or not halves or any(isinstance(model, ModelReference) for model in models):
        return Lead(task, {}, math.nan, unknown, unknown)
    asked = np.unique(np.concatenate([test for _, test in halves]))
    params = changed_params(task.estimator, REGULARISED) if tune else {}
    variants: list[dict[str, Any]] = [{}, params] if params else [{}]
    logits = [posterior.logits, *(logarithms(_variant(task, cases, halves, one)) for one in variants)]
    weight = cases.weight[asked]
    likely = one_rate_likelihood([each[asked] for each in logits], cases.codes[asked], weight)
    # the more regularised variant, unless it is clearly worse: on noisy labels the other one looks better than it is
    best = len(variants) - int(mean_and_error(likely[-1] - likely[1], weight).z < -CLEARLY)
    scores = np.full((2, len(cases.codes)), np.nan)
    scores[:, asked] = likely[[0, best]]
    z = mean_and_error(likely[0] - likely[best], weight).z
    chosen = task if best == 1 else replace(task, estimator=clone(task.estimator).set_params(**params))
    return Lead(chosen, variants[best - 1], z, scores[1], scores[0])


def _variant(task: Task, cases: Cases, halves: Any, params: Mapping[str, Any]) -> Array:
    """Return held-out predictions of the model; on half of the rows, leaves may be half as large."""
    half = {name: max(1, value // 2) if "min_" in name else value for name, value in params.items()}
    model = clone(task.estimator).set_params(**half) if params else task.estimator
    return ModelReference("", replace(task, estimator=model), cases, halves).predict(cases.hard)


# -------------------------------------------------------------------------------------------------------------- results


def _words(posterior: Posterior, lead: Lead) -> str:
    """Return what the reference models say about the labels."""
    rate, (low, high) = posterior.channel.noise_rate, posterior.channel.interval
    if posterior.uninformative:
        return f"the features say too little about the labels to estimate a label-error rate ({low:.0%} to {high:.0%})"
    if posterior.rate >= LEAST_RATE:
        claim = "" if low > 0.0 else "possible "
        return f"{claim}label-error rate {rate:.0%} ({low:.0%} to {high:.0%})"
    compared = "" if math.isnan(lead.z) else f"; the reference models lead by {lead.z:.1f} standard errors"
    return f"no label noise detected{compared}"


def _even_loss(posterior: Posterior, n_classes: int) -> float:
    """Return the loss at which a label is as probably wrong as right."""
    rate = min(max(posterior.rate, LEAST_RATE), 1.0 - 1e-9)
    return float(np.log1p((1.0 - rate) * (n_classes - 1) / rate))


def _reading(posterior: Posterior, cases: Cases) -> Reading:
    clean = posterior.clean[cases.of_row]
    logits = np.log(np.maximum(clean, np.finfo(float).tiny))
    losses = rival_loss(clean, cases.codes[cases.of_row])
    return Reading(logits - logits.mean(axis=1, keepdims=True), losses, posterior.channel)


def _found(
    task: Task, trials: list[Trial], decision: Decision, reading: Reading, chosen: Fitted, plain: Fitted | None,
    posterior: Posterior, details: Mapping[str, Any],
) -> Found:  # fmt: skip
    noise = _scaled(task, reading, chosen)
    return Found(
        chosen.model, None if plain is None else plain.model, trials, decision, True, labels=chosen.labels, noise=noise,
        reference=posterior.channel, details=details,
    )  # fmt: skip


def _scaled(task: Task, reading: Reading, chosen: Fitted) -> NoiseModel:
    """Return the noise model of the chosen model's output: decision values get the scale of the references."""
    kind, channel = output_kind(chosen.model), reading.channel
    if kind == "predict_proba":
        return channel
    raw = read_output(chosen.model, task.X, kind=kind, labels=chosen.labels)
    scale = scaled_to(as_logits(raw, kind), channel.proba(reading.clean), task.prior)
    doubt = channel.suspicion
    return replace(channel, scale=scale, suspicion=None if doubt is None else replace(doubt, scale=scale))


def unassessed(task: Task, plain: Fitted, why: str) -> Found:
    """Return the plain model, if there is too little data (or time) for anything else."""
    n, k = len(task.y), np.asarray(task.classes).size
    identity = NoiseModel.identity(k)
    only = Trial(math.inf, "plain", None, np.ones(n), fit=Reading(np.zeros((n, k)), np.zeros(n), identity))
    decision = Decision(0, why)
    return Found(plain.model, plain.model, [only], decision, labels=plain.labels, noise=identity, reference=identity)
