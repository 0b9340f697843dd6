"""The default fit of a classifier: reference models, the posterior of every label, one fit to soft labels."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.special import softmax

from ..label_noise import (
    ChannelModels,
    NoiseModel,
    Suspicion,
    fit_channel,
    logits_from_proba,
    one_rate_likelihood,
    symmetric,
)
from ..selection import Decision, Trial
from ._reference_models import ReferenceModel, reference_models
from ._routing import Array
from ._soft_labels import (
    Fitted,
    Reading,
    as_logits,
    confirmed,
    fit_soft,
    fitted_scale,
    layout_words,
    output_kind,
    read_output,
    rival_loss,
)
from ._wrapper import Found, Task, changed_params, told

__all__ = ["OVERLAP_RATE", "fit_default_labels", "too_few", "unassessed"]

FOLD_ROWS = 40  # a choice: fewer rows are not split into folds
TUNED_ROWS = 2_000  # a choice: rows up to which known models are regularised; more rows may need many small leaves

# a choice, made on development data; benchmarks/wrappers.py --part ablation switches each off.
HEAVY_RATE = 0.25  # noise rate from which the reference models are fitted again, to soft labels
OVERLAP_RATE = 0.05  # noise rate below which disagreement is taken for overlap of classes
LEAN = 0.25  # share of P(true | x) in the soft labels, for labels that are wrong near the border
PULL = 0.5  # how far class totals move from the posterior's to the given ones

# Measured by benchmarks/wrappers.py --part claims, labels and ablation.
DECISIVE = 4.0  # nats by which noise explains labels better than overlap, times the confidence of the models
UNINFORMATIVE = 0.1  # probability of noise, and of any signal, below which a rate cannot be estimated
PREDICTABLE = 0.1  # share of labels that the reference models miss, below which classes hardly overlap: --part groups
LEAST_CONFUSION = 0.2  # each pair of classes is confused at least at this share of one rate for all

# name of a class -> parameter -> (default, changed value); measured by benchmarks/wrappers.py --part labels
REGULARISED: Mapping[str, Mapping[str, tuple[Any, Any]]] = {
    "LGBMClassifier": {"num_leaves": (31, 7), "min_child_samples": (20, 50)},
    "HistGradientBoostingClassifier": {"max_leaf_nodes": (31, 7), "min_samples_leaf": (20, 50)},
    "RandomForestClassifier": {"min_samples_leaf": (1, 5)},
    "ExtraTreesClassifier": {"min_samples_leaf": (1, 5)},
}


def fit_default_labels(task: Task, references: Any = "auto", *, tune: bool = True, keep_plain: bool = False) -> Found:
    """Fit a classifier to the soft labels of reference models, or the plain model if there are too few rows."""
    plain = _plain(task) if keep_plain else None
    if too_few(task):
        return unassessed(task, plain or _plain(task))
    try:
        return _fit_soft(task, references, tune, plain)
    except KeyboardInterrupt:
        if plain is None:
            raise
        return replace(unassessed(task, plain), interrupted=True)


def _plain(task: Task) -> Fitted:
    with task.progress.stage("plain fit"):
        return fit_soft(task, task.hard)


def too_few(task: Task) -> bool:
    """Return whether there is one class, or too few rows to hold some out."""
    return len(task.classes) < 2 or task.n_units < max(FOLD_ROWS, 2 * len(task.classes))


def unassessed(task: Task, plain: Fitted) -> Found:
    """Return the plain model, if there is too little data (or time) for anything else."""
    n, k = len(task.y), len(task.classes)
    why = f"{task.n_units} rows of {k} classes are too few to estimate noise" if k > 1 else "there is only one class"
    identity = NoiseModel.identity(k)
    only = Trial(math.inf, "plain", None, np.ones(n), fit=Reading(np.zeros((n, k)), np.zeros(n), identity))
    return Found(
        plain.model, plain.model, [only], Decision(0, why), labels=plain.labels, noise=identity, reference=identity
    )


def _fit_soft(task: Task, references: Any, tune: bool, plain: Fitted | None) -> Found:
    """Run the reference models and fit the model to soft labels."""
    began, (rows, of_row) = time.perf_counter(), task.distinct()
    with task.progress.stage("reference models"):
        posterior = posterior_of(rows, reference_models(rows, references))
    clean = posterior.clean[of_row]
    logits = np.log(np.maximum(clean, np.finfo(float).tiny))
    reading = Reading(logits - logits.mean(axis=1, keepdims=True), rival_loss(clean, task.codes), posterior.channel)
    soft, cost = confirmed(task, posterior.soft(rows.codes)[of_row]), time.perf_counter() - began
    trials = [Trial(math.inf, "plain", None, np.ones(len(soft)), 0.0, reading)]
    words, params = [_words(posterior)], {}
    if _predictable(task, posterior.rate, clean):
        chosen = plain = plain or _plain(task)
        words.append("reference models predict nearly all labels")
    else:
        if tune and task.n_used <= TUNED_ROWS:
            params = changed_params(task.estimator, REGULARISED)
        with task.progress.stage("final fit"):
            chosen = fit_soft(task.with_params(params), soft)
        weight, even = soft[np.arange(len(soft)), task.codes], _even_loss(posterior.rate, len(task.classes))
        trials.append(Trial(even, "the fit to soft labels", None, weight, cost, reading))
        words += [layout_words(task), *([f"regularised with {told(params)}"] if params else [])]
    return Found(
        chosen.model, None if plain is None else plain.model, trials, Decision(len(trials) - 1, "; ".join(words)), True,
        labels=chosen.labels, noise=_scaled(task, reading, chosen), reference=posterior.channel,
        weights=posterior.weights, params=params,
    )  # fmt: skip


def _predictable(task: Task, rate: float, clean: Array) -> bool:
    """Return whether there is no noise and hardly any overlap: soft labels could only blur a sharp border.

    The largest class alone must not be the reason.
    """
    missed = float(np.average(clean.argmax(axis=1) != task.codes, weights=task.weight))
    rarer = 1.0 - float(np.bincount(task.codes, task.weight).max() / task.weight.sum())
    return rate < OVERLAP_RATE and missed < min(PREDICTABLE, rarer / 2.0)


# -------------------------------------------------------------------------------------------------------------- results


def _words(posterior: Posterior) -> str:
    """Return what the reference models say about the labels."""
    rate, (low, high) = posterior.channel.noise_rate, posterior.channel.interval
    between = f"({100 * low:.0f} % to {100 * high:.0f} %)"
    if math.isnan(rate):
        return f"the features say too little about the labels to estimate a label-error rate {between}"
    if posterior.rate >= OVERLAP_RATE:
        claim = "" if low > 0.0 else "possible "
        return f"{claim}label-error rate {100 * rate:.0f} % {between}"
    return "no label noise detected"


def _even_loss(rate: float, n_classes: int) -> float:
    """Return the loss at which a label is as probably wrong as right."""
    rate = min(max(rate, OVERLAP_RATE), 1.0 - 1e-9)
    return float(np.log1p((1.0 - rate) * (n_classes - 1) / rate))


def _scaled(task: Task, reading: Reading, chosen: Fitted) -> NoiseModel:
    """Return the noise model of the chosen model's output: decision values get the scale of the references."""
    kind, channel = output_kind(chosen.model), reading.channel
    if kind == "predict_proba":
        return channel
    raw = read_output(chosen.model, task.X, kind=kind, labels=chosen.labels)
    target = softmax(reading.clean, axis=1)

    def cross_entropy(z: Array) -> Array:
        return np.asarray(np.logaddexp.reduce(z, axis=1) - (target * z).sum(axis=1))

    scale, doubt = fitted_scale(as_logits(raw, kind), task.weight, cross_entropy), channel.suspicion
    return replace(channel, scale=scale, suspicion=None if doubt is None else replace(doubt, scale=scale))


# ----------------------------------------------------------------------------------------------------------- posterior


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities of the true label of every case."""

    clean: Array  # P(true | x) by the reference models, which have not seen the given label
    channel: NoiseModel  # from logarithms of ``clean`` to the probability that a label is wrong
    rate: float  # the noise rate if there is any noise: used for the fit, which loses little if there is none
    weights: dict[str, float]  # of the reference models

    def soft(self, codes: Array) -> Array:
        """Return P(true | x, given) at a rate of at least 5 %, mixed with a share of P(true | x)."""
        n_classes = self.clean.shape[1]
        transition = self.channel.transition if self.rate >= OVERLAP_RATE else symmetric(OVERLAP_RATE, n_classes)
        return (1.0 - LEAN) * _in_view(self.clean, transition, codes) + LEAN * self.clean


def posterior_of(task: Task, references: Mapping[str, ReferenceModel]) -> Posterior:
    """Stack the predictions of reference models and estimate what each label should be."""
    hard, codes, weight = task.hard, task.codes, task.weight
    predicted = [logarithms(reference(hard)) for reference in references.values()]
    shares = stacked(predicted, codes, weight)
    logits, used = _pooled(predicted, shares), weight > 0.0
    channel = fit_channel(logits[used], codes[used], sample_weight=weight[used])
    models = ChannelModels.of(logits[used], codes[used], weight[used])
    clean, transition = channel.proba(logits), channel.transition
    # given class totals count as far as noise does not differ between classes, which moves them
    pull = PULL * (1.0 - channel.model_weights[-1])
    totals = np.average((1.0 - pull) * _in_view(clean, transition, codes) + pull * hard, axis=0, weights=weight)
    clean = with_totals(clean, transition, codes, weight, totals)
    if channel.noise_rate >= HEAVY_RATE:
        # Models of soft labels predict the clean label: no noise model; average with the first predictions.
        soft = confirmed(task, _in_view(clean, transition, codes))
        second = softmax(_pooled([logarithms(reference(soft)) for reference in references.values()], shares), axis=1)
        clean = _normal(np.sqrt(second * np.maximum(clean, 1e-6)))
        clean = with_totals(clean, transition, codes, weight, totals)
    weights = dict(zip(references, shares.tolist(), strict=True))
    cases = ChannelModels([], np.log(clean)[used], codes[used], weight[used])
    return Posterior(clean, cases.withstanding(_of_clean(channel, models)), channel.noise_rate, weights)


def logarithms(proba: Array) -> Array:
    """Return logarithms of floored probabilities that sum to 1."""
    floored = np.exp(logits_from_proba(proba))
    return np.asarray(np.log(floored / floored.sum(axis=1, keepdims=True)))


def _of_clean(channel: NoiseModel, models: ChannelModels) -> NoiseModel:
    """Return the noise model of clean probabilities.

    The rate is that of the models with noise: an average with "none" would be half of it whenever evidence is thin.
    Interval and suspicion are those of the model that may say "none". If predictions say nothing, the rate is NaN.
    """
    claim = models.assessed()
    share, signal = (1.0, 1.0) if claim.suspicion is None else (claim.suspicion.share, claim.suspicion.signal)
    rate, (low, high) = 0.0 if share < UNINFORMATIVE else channel.noise_rate, claim.interval
    even = 1.0 / channel.n_classes
    sure = (channel.proba(models.logits).max(axis=1) - even) / (1.0 - even)
    # if classes overlap, predictions of forests level off, which looks like noise
    low = min(low, rate) if models.gain * np.average(sure, weights=models.weight) >= DECISIVE else 0.0
    if max(share, signal) < UNINFORMATIVE:
        rate = math.nan
    else:
        high = max(high, rate)
    return replace(
        channel, scale=1.0, bias=np.zeros_like(channel.bias), noise_rate=rate, interval=(low, high), rate_if_any=rate,
        suspicion=Suspicion(1.0, _least_confusion(channel), share, signal=signal),
    )  # fmt: skip


def _least_confusion(channel: NoiseModel) -> Array:
    """Return the transition matrix by which rows are ranked: every class may be confused with every other.

    Labels that are wrong near the border of two classes are often all on one side by chance. A rate of 0 for the other
    class would rank its labels last, whatever the reference models predict.
    """
    one_rate = symmetric(max(channel.noise_rate, OVERLAP_RATE), channel.n_classes)
    return _normal(np.maximum(channel.transition, LEAST_CONFUSION * one_rate))


# ------------------------------------------------------------------------------------------------- stacking


def stacked(predicted: Sequence[Array], codes: Array, weight: Array) -> Array:
    """Return the weights of reference models: the mean of a grid of weights, by their likelihood of the given labels.

    >>> right = np.log([[0.9, 0.1], [0.1, 0.9]] * 50)
    >>> stacked([right, -right], np.array([0, 1] * 50), np.ones(100)).round(2).tolist()
    [0.83, 0.17]
    """
    n = len(predicted)
    if n == 1:
        return np.ones(1)
    thirds = [part for part in product(range(4), repeat=n) if sum(part) == 3]
    grid = np.vstack([np.array(thirds) / 3.0, np.full(n, 1.0 / n)])
    evidence = one_rate_likelihood([_pooled(predicted, shares) for shares in grid], codes, weight) @ weight
    likely = np.exp(evidence - evidence.max())
    return np.asarray(likely @ grid / likely.sum())


def _pooled(predicted: Sequence[Array], shares: Array) -> Array:
    return np.asarray(np.tensordot(shares, np.stack(predicted), axes=1))


# -------------------------------------------------------------------------------------------- probabilities


def _in_view(clean: Array, transition: Array, codes: Array) -> Array:
    """Return P(true | x, given), in proportion to P(true | x) P(given | true)."""
    return _normal(np.maximum(clean * transition[:, codes].T, np.finfo(float).tiny))


def with_totals(clean: Array, transition: Array, codes: Array, weight: Array, totals: Array) -> Array:
    """Return clean probabilities with one factor per class, such that the posterior has these totals."""
    factor = np.ones(len(totals))
    for _ in range(50):
        now = np.average(_in_view(clean * factor, transition, codes), axis=0, weights=weight)
        change = totals / np.maximum(now, 1e-9)
        factor *= change
        factor /= factor.mean()
        if np.abs(change - 1.0).max() < 1e-4:
            break
    return _normal(np.maximum(clean * factor, np.finfo(float).tiny))


def _normal(rows: Array) -> Array:
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))
