"""The probability of every true label: predictions of several reference models, stacked, and a label-noise model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ..label_noise import (
    UNDECIDED,
    ChannelModels,
    NoiseModel,
    Suspicion,
    fit_channel,
    logits_from_proba,
    one_rate_likelihood,
    symmetric,
)
from ._cases import Array, Cases
from ._reference_models import ReferenceModel

__all__ = ["LEAST_RATE", "Posterior", "logarithms", "posterior_of"]

# a choice, made on development data.
HEAVY_RATE = 0.25  # noise rate from which the reference models are fitted again, to soft labels
LEAST_RATE = 0.05  # noise rate below which disagreement is taken for overlap of classes
PULL = 0.5  # how far class totals move from the posterior's to the given ones
PROBABILITY_FLOOR = 1e-3  # of predictions, before their logarithm

# Measured by benchmarks/wrappers.py --part claims.
SURE = 0.8  # mean confidence of the reference models from which noise explains their errors
DECISIVE = 8.0  # nats by which noise must explain labels better than overlap, if they are less confident
UNINFORMATIVE = 0.1  # probability of noise, and of any signal, below which a rate cannot be estimated

# Measured by benchmarks/wrappers.py --part lists.
LEAST_SHARE = 0.2  # each pair of classes is confused at least at this share of one rate for all

GRID_STEPS = 3  # cost: weights of reference models are multiples of 1/3
GRID_MODELS = 5  # cost: number of reference models up to which all combinations are tried
SCALINGS = 50  # numerical safety: iterations in which class totals are met
SMALLEST = 1e-300  # numerical safety: of products of probabilities


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities of the true label of every case.

    Attributes
    ----------
    clean : ndarray of shape (n_cases, n_classes)
        P(true | x) by the reference models, which have not seen the given label.
    channel : NoiseModel
        From logarithms of ``clean`` to the probability that a label is wrong; noise rate and interval. No label is more
        probably wrong than there is any noise.
    rate : float
        The noise rate if there is any noise: used for the fit, which loses little if there is none.
    weights : dict of str to float
        The weight of each reference model.
    logits : ndarray of shape (n_cases, n_classes)
        Stacked logarithms of the reference predictions.
    """

    clean: Array
    channel: NoiseModel
    rate: float
    weights: dict[str, float]
    logits: Array

    @property
    def uninformative(self) -> bool:
        """Whether the predictions say so little that the share of wrong labels cannot be estimated."""
        return _uninformative(self.channel)

    def soft(self, codes: Array, lean: float = 0.0) -> Array:
        """Return P(true | x, given) at a rate of at least 5 %, mixed with a share ``lean`` of P(true | x)."""
        n_classes = self.clean.shape[1]
        transition = self.channel.transition if self.rate >= LEAST_RATE else symmetric(LEAST_RATE, n_classes)
        return (1.0 - lean) * _in_view(self.clean, transition, codes) + lean * self.clean


def posterior_of(cases: Cases, references: Sequence[ReferenceModel]) -> Posterior:
    """Stack the predictions of reference models and estimate what each label should be.

    Parameters
    ----------
    cases : Cases
        Given labels and weights.
    references : sequence of ReferenceModel
        At least one.

    Returns
    -------
    Posterior
    """
    hard, codes, weight = cases.hard, cases.codes, cases.weight
    predicted = [logarithms(reference.predict(hard)) for reference in references]
    shares = stacked(predicted, codes, weight)
    logits, used = _pooled(predicted, shares), slice(0, cases.n_used)
    channel = fit_channel(logits[used], codes[used], sample_weight=weight[used])
    claim = _claim(logits[used], [each[used] for each in predicted], codes[used], weight[used], channel)
    clean, transition = channel.proba(logits), channel.transition
    totals = _totals(_in_view(clean, transition, codes), hard, weight, channel)
    clean = with_totals(clean, transition, codes, weight, totals)
    if channel.noise_rate >= HEAVY_RATE:
        # Models of soft labels predict the clean label: no noise model; average with the first predictions.
        soft = np.where(cases.trusted[:, None], hard, _in_view(clean, transition, codes))
        again = _softmax(_pooled([logarithms(reference.predict(soft)) for reference in references], shares))
        clean = _normal(np.sqrt(again * np.maximum(clean, PROBABILITY_FLOOR**2)))
        clean = with_totals(clean, transition, codes, weight, totals)
    weights = {reference.name: float(share) for reference, share in zip(references, shares, strict=True)}
    return Posterior(clean, _of_clean(channel, claim), channel.noise_rate, weights, logits)


def logarithms(proba: Array) -> Array:
    """Return logarithms of floored probabilities that sum to 1."""
    floored = np.exp(logits_from_proba(proba, PROBABILITY_FLOOR))
    return np.asarray(np.log(floored / floored.sum(axis=1, keepdims=True)))


def _totals(soft: Array, hard: Array, weight: Array, channel: NoiseModel) -> Array:
    """Return class shares; the given ones count as far as noise does not differ between classes, which moves them."""
    pull = PULL * (1.0 - channel.model_weights[-1])
    return _mean((1.0 - pull) * soft + pull * hard, weight)


def _claim(logits: Array, predicted: Sequence[Array], codes: Array, weight: Array, channel: NoiseModel) -> NoiseModel:
    """Return a noise model that may say "none".

    If classes overlap, predictions of forests level off, which looks like noise. Noise is claimed if the reference
    models are confident of most rows and each of them detects it, or if it explains labels decisively better.
    """
    models = ChannelModels.of(logits, codes, weight)
    claim, even = models.assessed(), 1.0 / logits.shape[1]
    sure = float(np.average((channel.proba(logits).max(axis=1) - even) / (1.0 - even), weights=weight))
    certain = models.gain >= DECISIVE or (sure >= SURE and _all_detect(predicted, codes, weight))
    if claim.suspicion is None or certain:
        return claim
    doubt = replace(claim.suspicion, share=min(claim.suspicion.share, UNDECIDED))
    return replace(claim, interval=(0.0, claim.interval[1]), suspicion=doubt)


def _all_detect(predicted: Sequence[Array], codes: Array, weight: Array) -> bool:
    """Return whether every informative reference model detects noise by itself."""
    if len(predicted) == 1:
        return True
    claims = [ChannelModels.of(each, codes, weight).assessed() for each in predicted]
    return all(one.interval[0] > 0.0 for one in claims if one.suspicion is None or one.suspicion.share >= UNINFORMATIVE)


def _of_clean(channel: NoiseModel, claim: NoiseModel) -> NoiseModel:
    """Return the noise model of clean probabilities.

    The rate is that of the models with noise: an average with "none" would be half of it whenever evidence is thin.
    Interval and suspicion are those of the model that may say "none". If predictions say nothing, the rate is NaN.
    """
    share, signal = (1.0, 1.0) if claim.suspicion is None else (claim.suspicion.share, claim.suspicion.signal)
    rate, (low, high) = 0.0 if share < UNINFORMATIVE else channel.noise_rate, claim.interval
    if _uninformative(claim):
        rate = math.nan
    else:
        low, high = min(low, rate), max(high, rate)
    return replace(
        channel, scale=1.0, bias=np.zeros_like(channel.bias), noise_rate=rate, interval=(low, high),
        suspicion=Suspicion(1.0, _least_confusion(channel), share, signal=signal),
    )  # fmt: skip


def _uninformative(channel: NoiseModel) -> bool:
    """Return whether no noise is detected because predictions say nothing about labels."""
    doubt = channel.suspicion
    return doubt is not None and doubt.share < UNINFORMATIVE and doubt.signal < UNINFORMATIVE


def _least_confusion(channel: NoiseModel) -> Array:
    """Return the transition matrix by which rows are ranked: every class may be confused with every other.

    Labels that are wrong near the border of two classes are often all on one side by chance. A rate of 0 for the other
    class would rank its labels last, whatever the reference models predict.
    """
    one_rate = symmetric(max(channel.noise_rate, LEAST_RATE), channel.n_classes)
    return _normal(np.maximum(channel.transition, LEAST_SHARE * one_rate))


# ------------------------------------------------------------------------------------------------- stacking


def stacked(predicted: Sequence[Array], codes: Array, weight: Array) -> Array:
    """Return the weights of reference models: the mean of a grid of weights, by their likelihood of the given labels.

    >>> right = np.log([[0.9, 0.1], [0.1, 0.9]] * 50)
    >>> stacked([right, -right], np.array([0, 1] * 50), np.ones(100)).round(2).tolist()
    [0.83, 0.17]
    """
    grid = _grid(len(predicted))
    if len(grid) == 1:
        return np.asarray(grid[0])
    evidence = one_rate_likelihood([_pooled(predicted, shares) for shares in grid], codes, weight) @ weight
    likely = np.exp(evidence - evidence.max())
    return np.asarray(likely @ grid / likely.sum())


def _grid(n: int) -> Array:
    if n > GRID_MODELS:
        return np.vstack([np.eye(n), np.full(n, 1.0 / n)])
    parts = (
        np.array([part for part in product(range(GRID_STEPS + 1), repeat=n) if sum(part) == GRID_STEPS]) / GRID_STEPS
    )
    return parts if GRID_STEPS % n == 0 else np.vstack([parts, np.full(n, 1.0 / n)])


def _pooled(predicted: Sequence[Array], shares: Array) -> Array:
    return np.asarray(np.tensordot(shares, np.stack(predicted), axes=1))


# -------------------------------------------------------------------------------------------- probabilities


def _in_view(clean: Array, transition: Array, codes: Array) -> Array:
    """Return P(true | x, given), in proportion to P(true | x) P(given | true)."""
    return _normal(np.maximum(clean * transition[:, codes].T, SMALLEST))


def with_totals(clean: Array, transition: Array, codes: Array, weight: Array, totals: Array) -> Array:
    """Return clean probabilities with one factor per class, such that the posterior has these totals."""
    factor = np.ones(len(totals))
    for _ in range(SCALINGS):
        change = totals / np.maximum(_mean(_in_view(clean * factor, transition, codes), weight), 1e-9)
        factor *= change
        factor /= factor.mean()
        if np.abs(change - 1.0).max() < 1e-4:
            break
    return _normal(np.maximum(clean * factor, SMALLEST))


def _mean(rows: Array, weight: Array) -> Array:
    return np.asarray(np.average(rows, axis=0, weights=weight))


def _normal(rows: Array) -> Array:
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _softmax(logits: Array) -> Array:
    return _normal(np.exp(logits - logits.max(axis=1, keepdims=True)))
