"""What each label should be: votes of several references, stacked, seen through the noise channel."""

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
    one_rate_likelihood,
    symmetric,
)
from .cases import Array, Cases
from .joining import FLOOR, Applicant, compared, logs
from .reference_models import ReferenceModel

__all__ = ["Posterior", "posterior_of"]

# a choice, made on development data.
HEAVY = 0.25  # noise rate from which the references learn once more, from the soft labels
PULL = 0.5  # how far totals of the classes go from the posterior's to the given ones

# benchmarks/overlap.py: how sure references are of clean labels, on average, where noise alone explains their
# errors, and the nats by which it must explain labels better than none where they are less sure.
SURE = 0.8
PLAIN = 8.0
# a choice: probability of any noise, and that votes predict labels at all, below which there is none; labels at random
# have 0.01 and 0, clean ones 0.01 and 1, noisy ones 0.5 and 1
SILENT = 0.1

# benchmarks/ranking.py: labels of a class that seems never to be mistaken are doubted too, at this part of one rate for
# all, and that rate is at least so much.
DOUBTED = 0.2
LEAST_DOUBTED = 0.05

STEPS = 3  # cost: weights of references are multiples of 1/3; beyond FEW of them, each alone or all alike
FEW = 5  # cost: references whose weights are tried in all combinations
SCALINGS = 50  # numerical safety: steps in which totals are met
TINY = 1e-300  # numerical safety: of products of probabilities


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities of the true label of every case.

    Attributes
    ----------
    clean : ndarray of shape (n_cases, n_classes)
        By the references, who have not seen the given label.
    channel : NoiseModel
        From logarithms of ``clean`` to the probability that a label is wrong; the noise rate and its interval. Nobody
        is suspected beyond the probability that there is any noise at all.
    rate : float
        The noise rate if there is any noise: what a fit goes by, which loses little where there is none.
    reference_models : dict of str to float
        The weight of each reference.
    score : ndarray of shape (n_cases,)
        Log-likelihood of each given label by the references, who have not seen it, through one noise rate. NaN for
        cases
        about which the wrapped model needed not be asked: both are scored on the same.
    own_score : ndarray or None
        The same by the wrapped model; None where it was not asked at all.
    ahead : bool
        Whether the references foretell given labels clearly better than the wrapped model.
    """

    clean: Array
    channel: NoiseModel
    rate: float
    reference_models: dict[str, float]
    score: Array
    own_score: Array | None = None
    ahead: bool = False

    @property
    def silent(self) -> bool:
        """Whether votes predict so little that the share of wrong labels cannot be estimated."""
        return _silent(self.channel)

    def soft(self, rate: float) -> NoiseModel:
        """The channel if there is noise; at another rate than that of the references, labels are wrong at random."""
        if rate == self.rate:
            return replace(self.channel, suspicion=None)
        return replace(self.channel, suspicion=None, transition=symmetric(rate, self.clean.shape[1]))


def posterior_of(cases: Cases, references: Sequence[ReferenceModel], model: Applicant | None = None) -> Posterior:
    """Let references vote and say what each label should be.

    Parameters
    ----------
    cases : Cases
        Given labels and weights.
    reference_models : sequence of ReferenceModel
        At least one.
    model : Applicant, optional
        The wrapped model, which joins them where it foretells given labels clearly better than they do together.

    Returns
    -------
    Posterior
    """
    hard, codes, weight = cases.hard, cases.codes, cases.weight
    votes = [logs(reference.votes(hard)) for reference in references]
    shares = stacked(votes, codes, weight)
    logits, used = _pooled(votes, shares), slice(0, cases.n_used)
    said = compared(logits, cases, model)
    score = said.score
    if model is not None and said.votes is not None and said.behind:
        references, votes = [*references, model], [*votes, said.votes]
        shares = stacked(votes, codes, weight)
        logits = _pooled(votes, shares)
        score = one_rate_likelihood([logits], codes, weight)[0]
    channel = fit_channel(logits[used], codes[used], sample_weight=weight[used], by_share=True)
    told = _told(logits[used], [each[used] for each in votes], codes[used], weight[used], channel)
    clean, transition = channel.proba(logits), channel.transition
    soft = _given(clean, transition, codes)
    totals = _totals(soft, hard, weight, channel)
    clean = with_totals(clean, transition, codes, weight, totals)
    if channel.noise_rate >= HEAVY:
        # Reference models of soft labels vote on the clean label already: no channel, half-way with the first
        # diagnosis.
        soft = np.where(cases.trusted[:, None], hard, _given(clean, transition, codes))
        again = _softmax(_pooled([logs(reference.votes(soft)) for reference in references], shares))
        clean = _normal(np.sqrt(again * np.maximum(clean, FLOOR**2)))
        clean = with_totals(clean, transition, codes, weight, totals)
    weights = {reference.name: float(share) for reference, share in zip(references, shares, strict=True)}
    return Posterior(clean, _seen(channel, told), channel.noise_rate, weights, score, said.own_score, said.ahead)


def _totals(soft: Array, hard: Array, weight: Array, channel: NoiseModel) -> Array:
    """Shares of the classes; the given ones count as far as noise does not differ between classes, which moves them."""
    pull = PULL * (1.0 - channel.model_weights[-1])
    return _mean((1.0 - pull) * soft + pull * hard, weight)


def _told(logits: Array, votes: Sequence[Array], codes: Array, weight: Array, channel: NoiseModel) -> NoiseModel:
    """A channel that may say "none".

    Votes of references are no logistic curve: where classes overlap they level off by themselves, which looks like
    noise.
    If there is noise and nothing else, the references are sure of most rows beneath it, and each of them sees it
    by itself;
    where not, it has to be plain.
    """
    models = ChannelModels.of(logits, codes, weight, by_share=True)
    told, even = models.assessed(), 1.0 / logits.shape[1]
    sure = float(np.average((channel.proba(logits).max(axis=1) - even) / (1.0 - even), weights=weight))
    if told.suspicion is None or models.gain >= PLAIN or (sure >= SURE and _all_see(votes, codes, weight)):
        return told
    doubt = replace(told.suspicion, share=min(told.suspicion.share, UNDECIDED))
    return replace(told, interval=(0.0, told.interval[1]), suspicion=doubt)


def _all_see(votes: Sequence[Array], codes: Array, weight: Array) -> bool:
    """Whether every reference claims noise by itself; who foretells nothing is not asked."""
    if len(votes) == 1:
        return True
    said = [ChannelModels.of(each, codes, weight, by_share=True).assessed() for each in votes]
    return all(one.interval[0] > 0.0 for one in said if one.suspicion is None or one.suspicion.share >= SILENT)


def _seen(channel: NoiseModel, told: NoiseModel) -> NoiseModel:
    """The channel of clean probabilities.

    The rate is that of the models with noise: whoever averages it with "none" reads half of what there is wherever the
    evidence is thin. Interval and suspicion are those of a channel that may say "none". If votes predict no label, the
    rate is NaN: labels at random are as well explained by one half of them being wrong.
    """
    share, signal = (1.0, 1.0) if told.suspicion is None else (told.suspicion.share, told.suspicion.signal)
    rate, (low, high) = 0.0 if share < SILENT else channel.noise_rate, told.interval
    if _silent(told):
        rate = math.nan
    else:
        low, high = min(low, rate), max(high, rate)
    return replace(
        channel, scale=1.0, bias=np.zeros_like(channel.bias), noise_rate=rate, interval=(low, high),
        suspicion=Suspicion(1.0, doubted(channel), share, signal=signal),
    )  # fmt: skip


def _silent(channel: NoiseModel) -> bool:
    """Whether no noise is seen because votes do not predict labels."""
    doubt = channel.suspicion
    return doubt is not None and doubt.share < SILENT and doubt.signal < SILENT


def doubted(channel: NoiseModel) -> Array:
    """The transition by which given labels are doubted: every class is mistaken for every other now and then.

    Labels wrong near the border of two classes are often all of one side by chance. A rate of 0 for the other would
    rank its labels behind all of these, whatever the references say of them.
    """
    one_rate = symmetric(max(channel.noise_rate, LEAST_DOUBTED), channel.n_classes)
    return _normal(np.maximum(channel.transition, DOUBTED * one_rate))


# ------------------------------------------------------------------------------------------------- stacking


def stacked(votes: Sequence[Array], codes: Array, weight: Array) -> Array:
    """Weights of the references: the mean of all combinations on a grid, each as likely as it makes the given labels.

    >>> right = np.log([[0.9, 0.1], [0.1, 0.9]] * 50)
    >>> stacked([right, -right], np.array([0, 1] * 50), np.ones(100)).round(2).tolist()
    [0.83, 0.17]
    """
    grid = _grid(len(votes))
    if len(grid) == 1:
        return np.asarray(grid[0])
    logs = one_rate_likelihood([_pooled(votes, shares) for shares in grid], codes, weight) @ weight
    likely = np.exp(logs - logs.max())
    return np.asarray(likely @ grid / likely.sum())


def _grid(n: int) -> Array:
    if n > FEW:
        return np.vstack([np.eye(n), np.full(n, 1.0 / n)])
    parts = np.array([part for part in product(range(STEPS + 1), repeat=n) if sum(part) == STEPS]) / STEPS
    return parts if STEPS % n == 0 else np.vstack([parts, np.full(n, 1.0 / n)])


def _pooled(votes: Sequence[Array], shares: Array) -> Array:
    return np.asarray(np.tensordot(shares, np.stack(votes), axes=1))


# -------------------------------------------------------------------------------------------- probabilities


def _given(clean: Array, transition: Array, codes: Array) -> Array:
    """P(true | x, given), in proportion to P(true | x) P(given | true)."""
    return _normal(np.maximum(clean * transition[:, codes].T, TINY))


def with_totals(clean: Array, transition: Array, codes: Array, weight: Array, totals: Array) -> Array:
    """Clean probabilities with one factor per class, such that the posterior's totals are these."""
    factor = np.ones(len(totals))
    for _ in range(SCALINGS):
        change = totals / np.maximum(_mean(_given(clean * factor, transition, codes), weight), 1e-9)
        factor *= change
        factor /= factor.mean()
        if np.abs(change - 1.0).max() < 1e-4:
            break
    return _normal(np.maximum(clean * factor, TINY))


def _mean(rows: Array, weight: Array) -> Array:
    return np.asarray(np.average(rows, axis=0, weights=weight))


def _normal(rows: Array) -> Array:
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _softmax(logits: Array) -> Array:
    return _normal(np.exp(logits - logits.max(axis=1, keepdims=True)))
