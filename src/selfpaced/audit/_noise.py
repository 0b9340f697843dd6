"""The label-noise model of held-out probabilities: the one place where the audit depends on the model fits.

Rate, interval, levels and the length of the list have the definitions of `SelfPacedLogisticRegression`, so the same
held-out probabilities give the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..assessment import Assessment, Labels, look_by_share
from ..label_noise import (
    MISFIT,
    ChannelModels,
    NoiseModel,
    confident_error,
    share_to_check,
)
from ..label_noise.model import as_matrix
from ..selection import CLEARLY_BETTER, effective_size, mean_and_error

Array = NDArray[np.floating[Any]]
Codes = NDArray[np.intp]

SMALLEST_PROBABILITY = 1e-12  # numerical safety: logarithms of smaller probabilities would swamp all others


@dataclass(frozen=True, eq=False)
class BothModels:
    """The label-noise models of two sets of logits, side by side: a label is wrong only as far as both say so."""

    model: NoiseModel  # of the given probabilities
    reference: NoiseModel

    def proba(self, logits: Any) -> Array:
        """Probability of each clean class, by the given probabilities."""
        return self.model.proba(logits[:, : self.model.n_classes])

    def noise_probability(self, logits: Any, y: Any) -> Array:
        """Probability that the given label is wrong."""
        k, own, other = self.model.n_classes, self.model, self.reference
        return np.minimum(own.noise_probability(logits[:, :k], y), other.noise_probability(logits[:, k:], y))

    def probability_if_noisy(self, logits: Any, y: Any) -> Array:
        """The same if any labels are wrong."""
        k, own, other = self.model.n_classes, self.model, self.reference
        return np.minimum(own.probability_if_noisy(logits[:, :k], y), other.probability_if_noisy(logits[:, k:], y))


@dataclass(frozen=True, eq=False)
class FittedNoise:
    """A label-noise model and what follows from it for the rows it was fitted to."""

    model: NoiseModel  # from logits to probabilities of clean labels, and of errors
    logits: Array
    codes: Codes
    look: float  # probability of an error, if any labels are wrong, from which a row is worth a look
    accuracy: float  # share of the given labels that the probabilities predict
    size: float  # number of independent rows
    undecided: NoiseModel | None = None  # with posteriors as they are, if those of ``model`` stay below 1/2: no noise
    gain: float = 0.0  # nats by which noise explains the labels better than none
    reference: tuple[NoiseModel, Array] | None = None  # a model that explains the labels better, and its logits

    @property
    def rate(self) -> float:
        """Estimated share of wrong labels; NaN if the labels cannot tell whether any are wrong."""
        low, high = self.model.interval
        if low > 0 or self.established:
            return self.model.noise_rate
        return 0.0 if high <= MISFIT else math.nan

    @property
    def established(self) -> bool:
        """Whether noise is detected, here or in other columns like this one."""
        return self.undecided is None

    def decided(self) -> FittedNoise:
        """The same rows if noise is known to be there from elsewhere; unchanged if it explains them no better."""
        if self.undecided is None or self.gain <= 0:
            return self
        return replace(self, model=self.undecided, undecided=None)

    @property
    def margins(self) -> Array:
        """Calibrated margins of two classes."""
        model = self.undecided or self.model
        return np.asarray(model.scale * self.logits + model.bias[1] - model.bias[0])

    def assessment(self, classes: NDArray[Any], numbers: NDArray[np.intp] | None) -> Assessment:
        """Levels, ranking and probabilities of the rows."""
        diagnosis = Labels(classes, self.codes, *_with_logits(self.model, self.logits, self.reference))
        losses = -np.log(np.maximum(diagnosis.support, np.finfo(float).tiny))
        return Assessment(
            "labels", diagnosis, losses, lam=math.inf, held_out=True, given_weight=1.0 - diagnosis.wrong,
            numbers=numbers, look=self.look,
        )  # fmt: skip


def logits_of(probs: Array, least: float | None = None) -> Array:
    """Logarithms of probabilities, for two classes their margin.

    A probability of 0 (a vote of no tree, a rounded number) counts as half of the smallest positive one, or of
    ``least`` (infinity: there is no 0).
    """
    if least is None:
        least = float(probs[probs > 0].min()) if (probs == 0).any() else math.inf
    floor = SMALLEST_PROBABILITY if math.isinf(least) else max(0.5 * least, SMALLEST_PROBABILITY)
    logs = np.log(np.maximum(probs, floor))
    return np.asarray(logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs)


def fit_noise(
    logits: Array,
    codes: Codes,
    weight: Array | None = None,
    groups: Any = None,
    reference: Array | None = None,
    size: float | None = None,
    counts: bool = False,
) -> FittedNoise:
    """Fit the label-noise model to held-out logits.

    With ``groups`` evidence and interval count independent rows; ``size`` is their number if the weights do not say it.
    If the logits of ``reference`` explain the labels better, its rate limits that of the first, the interval covers
    both, and a label is wrong only as far as both models say so. With ``counts`` weights tell how many rows a row
    stands for, in the list of rows worth a look too.
    """
    size = effective_size(weight, len(codes)) if size is None else size
    models = ChannelModels.of(logits, codes, weight, size=size, groups=groups)
    model, size = models.assessed(), size / models.design_effect
    second: tuple[NoiseModel, Array] | None = None
    if reference is not None and models.models:
        model, second = _with_reference(models, model, reference, weight, size)
    accuracy = float(np.average(model.decide(logits) == codes, weights=weight))
    if not models.models:  # the logits are all the same
        return FittedNoise(model, logits, codes, math.inf, accuracy, size, model)
    undecided = None if model.interval[0] > 0 else model
    model = model.unless_established()
    error = confident_error(logits, codes, weight)[1]
    share = share_to_check(model.rate_if_any, error, accuracy)
    seen, noise = _with_logits(model, logits, second)
    look = look_by_share(noise.probability_if_noisy(seen, codes), share, weight if counts else None)
    return FittedNoise(model, logits, codes, look, accuracy, size, undecided, models.gain, second)


def _with_logits(
    model: NoiseModel, logits: Array, reference: tuple[NoiseModel, Array] | None
) -> tuple[Array, NoiseModel | BothModels]:
    """Logits and the model that reads them; those of a reference stand beside the others."""
    if reference is None:
        return logits, model
    return np.column_stack([as_matrix(logits), as_matrix(reference[1])]), BothModels(model, reference[0])


def fit_columns(columns: Sequence[FittedNoise], rows: Sequence[Codes]) -> list[FittedNoise]:
    """Several labels of the same rows: noise that is detected in all columns together counts in each of them.

    ``rows`` are the rows, or groups, of the labels of every column: labels of one row are no independent evidence.
    """
    margins = np.concatenate([column.margins for column in columns])
    codes = np.concatenate([column.codes for column in columns])
    together = fit_noise(margins, codes, groups=np.concatenate(list(rows)))
    return [column.decided() if together.established else column for column in columns]


def _with_reference(
    models: ChannelModels, model: NoiseModel, reference: Array, weight: Array | None, size: float
) -> tuple[NoiseModel, tuple[NoiseModel, Array] | None]:
    """The noise model that does not take for noise what a better model explains, and that model if it is better."""
    at, codes = np.arange(len(models.codes)), models.codes
    other = ChannelModels.of(reference, codes, weight, size=size).assessed()
    scores = [
        np.log(np.maximum(one.given_proba(z)[at, codes], SMALLEST_PROBABILITY))
        for one, z in ((model, models.logits), (other, reference))
    ]
    if mean_and_error(scores[1] - scores[0], weight, size).z < CLEARLY_BETTER:
        return model, None
    low, high = min(model.interval[0], other.interval[0]), max(model.interval[1], other.interval[1])
    if other.noise_rate < model.noise_rate:
        model = models.assessed(other.noise_rate)
    return replace(model, interval=(low, high)), (other.unless_established(), reference)


# ---------------------------------------------------------------------------------------- groups with one label


def one_label_each(groups: Codes, codes: Codes) -> bool:
    """Whether the label belongs to the group: all rows of every group have the same one.

    >>> one_label_each(np.array([0, 0, 1]), np.array([2, 2, 1])), one_label_each(np.array([0, 0]), np.array([0, 1]))
    (True, False)
    """
    pairs = len(np.unique(np.column_stack([groups, codes]), axis=0))
    return pairs == len(np.unique(groups))


def pooled(probs: Any, groups: Codes) -> NDArray[np.float64]:
    """The geometric mean of the probabilities of a group, for each of its rows.

    >>> pooled(np.array([[0.9, 0.1], [0.1, 0.9], [0.2, 0.8]]), np.array([0, 0, 1])).round(2).tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]]
    """
    positive = probs[probs > 0]
    logs = np.log(np.maximum(probs, 0.5 * positive.min()))
    sums = np.zeros((int(groups.max()) + 1, probs.shape[1]))
    np.add.at(sums, groups, logs)
    means = (sums / np.maximum(np.bincount(groups), 1)[:, None])[groups]
    out = np.exp(means - means.max(axis=1, keepdims=True))
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def group_weights(groups: Codes, weight: Array | None) -> tuple[Array, float]:
    """Weights of rows that sum to one for each group, or to the mean weight of its rows, and the number of groups."""
    mass = np.ones(len(groups)) if weight is None else weight
    rows = np.bincount(groups)
    means = np.bincount(groups, mass) / np.maximum(rows, 1)
    there = means[rows > 0]
    return np.asarray(mass / rows[groups]), effective_size(None if weight is None else there, len(there))
