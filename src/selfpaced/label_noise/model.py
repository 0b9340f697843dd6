"""A fitted label-noise model, the posterior of an error, and what held-out logits say without one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..selection import effective_size

Array = NDArray[np.floating[Any]]
UNDECIDED = 0.499  # theory: below even odds, so that no label is a likely error unless noise is established
OVERLAP_ROWS = (
    0.05  # theory: expected rows as far from their label by overlap alone, below which a single error is certain
)
CLASS_ROWS = 10  # a choice: rows of a class below which its labels are not assessed
CLEAN = 0.03  # benchmarks/ablation.py: confident error by class below which labels look clean
CONTRADICTED = 0.75  # a choice: share of the labels that held-out predictions contradict which are worth a look


@dataclass(frozen=True)
class Model:
    """One of the models that are averaged: its evidence, and its share of wrong labels with a standard error."""

    scale: float
    bias: Array
    transition: Array
    evidence: float
    rate: float
    error: float
    noisy: bool = True


@dataclass(frozen=True)
class Suspicion:
    """The model of wrong labels, if it differs from that of clean probabilities.

    Parameters
    ----------
    scale : float
        Factor on the logits if there is noise.
    transition : ndarray of shape (n_classes, n_classes)
        As in `NoiseModel`, but halfway to one rate for all: a class whose rate is estimated as 0 can still have wrong
        labels.
    share : float
        Probability that there is any noise.
    clean_scale : float or None
        Factor on the logits if there is none; None: not known.
    size : float
        Number of independent rows that the models were fitted to.
    signal : float
        Probability that the logits are informative.
    lower : Suspicion or None
        The model of wrong labels one standard error below the rate. A label that is not probably wrong at
        that rate is no likely error. None: the rate is taken as it is.
    matrix : ndarray of shape (n_classes, n_classes) or None
        Symmetric matrix on the logits that scales every pair of classes on its own. None: one scale.
    bias : ndarray of shape (n_classes,)
        Shift of the logits under that matrix.
    """

    scale: float
    transition: Array
    share: float = 1.0
    clean_scale: float | None = None
    size: float = 0.0
    signal: float = 1.0
    lower: Suspicion | None = None
    matrix: Array | None = None
    bias: float | Array = 0.0


@dataclass(frozen=True)
class NoiseModel:
    """A fitted label-noise model.

    Parameters
    ----------
    scale : float
        Factor ``tau`` on the logits (an inverse temperature).
    bias : ndarray of shape (n_classes,)
        Shift ``beta`` added to the scaled logits.
    transition : ndarray of shape (n_classes, n_classes)
        ``transition[j, y]`` is the probability that a true ``j`` was recorded as ``y``.
    noise_rate : float
        Estimated share of wrong labels.
    interval : tuple of float
        95 % interval of the noise rate: sampling error within the averaged models, and between them.
    model_weights : tuple of float
        Weights of the models in the average: with noise (scale; scale and bias; class-conditional; one class into one
        other, where labels ask for it), then without.
    suspicion : Suspicion or None
        The model of wrong labels; None: that of clean probabilities.
    rate_if_any : float
        Expected share of wrong labels if any are wrong; NaN if it was not estimated.
    """

    scale: float
    bias: Array
    transition: Array
    noise_rate: float
    interval: tuple[float, float]
    model_weights: tuple[float, ...]
    suspicion: Suspicion | None = None
    rate_if_any: float = math.nan

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.bias)

    def proba(self, logits: ArrayLike) -> Array:
        """Probability of each CLEAN class, shape (n, n_classes), for logits as given to `fit_channel`."""
        return softmax(self.scale * as_matrix(logits) + self.bias)

    def decide(self, logits: ArrayLike) -> NDArray[np.intp]:
        """Code of the most probable clean class."""
        return np.asarray((self.scale * as_matrix(logits) + self.bias).argmax(axis=1))

    def given_proba(self, logits: ArrayLike) -> Array:
        """Probability of each GIVEN label: clean probabilities times the transition matrix."""
        return self.proba(logits) @ self.transition

    def posterior(self, logits: ArrayLike, y: ArrayLike) -> Array:
        """Probability of each TRUE label in view of the given one ``y`` (codes 0 .. n_classes - 1)."""
        codes = np.asarray(y, dtype=np.intp)
        wrong = self.noise_probability(logits, codes)
        others = self._joint(logits, codes, self._doubt)[1]
        out = others * (wrong / np.maximum(others.sum(axis=1), np.finfo(float).tiny))[:, None]
        out[np.arange(len(codes)), codes] = 1.0 - wrong
        return np.asarray(out)

    def noise_probability(self, logits: ArrayLike, y: ArrayLike) -> Array:
        """Posterior probability that the given label ``y`` (codes 0 .. n_classes - 1) is wrong."""
        doubt, codes = self._doubt, np.asarray(y, dtype=np.intp)
        wrong = doubt.share * self._wrong(logits, codes, doubt)
        if doubt.lower is not None:
            wrong = np.minimum(wrong, np.maximum(self._wrong(logits, codes, doubt.lower), UNDECIDED))
        return wrong if doubt.clean_scale is None else np.maximum(wrong, self._isolated(logits, codes))

    def probability_if_noisy(self, logits: ArrayLike, y: ArrayLike) -> Array:
        """Probability that the given label is wrong if any labels are wrong."""
        return self._wrong(logits, np.asarray(y, dtype=np.intp), self._doubt)

    def _wrong(self, logits: ArrayLike, codes: NDArray[np.intp], doubt: Suspicion) -> Array:
        """Probability that a label is wrong if there is noise."""
        right, others = self._joint(logits, codes, doubt)
        wrong = others.sum(axis=1)
        return np.asarray(wrong / np.maximum(right + wrong, np.finfo(float).tiny))

    def _isolated(self, logits: ArrayLike, y: ArrayLike) -> Array:
        """Probability that a label is a single error: overlap alone would not bring about a row so far from its label.

        The prior is one wrong label in ``1 / OVERLAP_ROWS`` tables of this size, none in classes that are not assessed.
        """
        doubt, codes = self._doubt, np.asarray(y, dtype=np.intp)
        clean = softmax(float(doubt.clean_scale or 0.0) * (as_matrix(logits) + self.bias / self.scale))
        given = clean[np.arange(len(codes)), codes]
        assessed = np.diag(doubt.transition) < 1.0
        return np.where(assessed[codes], 1.0 / (1.0 + doubt.size / OVERLAP_ROWS * given), 0.0)

    @property
    def _doubt(self) -> Suspicion:
        return self.suspicion or Suspicion(self.scale, self.transition)

    def _joint(self, logits: ArrayLike, codes: NDArray[np.intp], doubt: Suspicion) -> tuple[Array, Array]:
        """Probability that the given label is right, and of every other true label together with it (0 at its own)."""
        z = as_matrix(logits) + self.bias / self.scale
        joint = softmax(doubt.scale * z if doubt.matrix is None else z @ doubt.matrix + doubt.bias)
        joint *= doubt.transition[:, codes].T
        own = (np.arange(len(codes)), codes)
        right = joint[own]
        joint[own] = 0.0  # so that a small sum of the others keeps its digits
        return right, joint

    def unless_established(self) -> NoiseModel:
        """The same model, undecided about all labels if the interval contains 0."""
        return self if self.interval[0] > 0 else self.undecided()

    def undecided(self) -> NoiseModel:
        """The same model with posteriors of less than 1/2, single errors excepted."""
        return replace(self, suspicion=replace(self._doubt, share=min(self._doubt.share, UNDECIDED)))

    def without_bias(self) -> NoiseModel:
        """The same model for logits to which ``bias / scale`` has already been added."""
        return replace(self, bias=np.zeros_like(self.bias))

    def among(self, classes: NDArray[np.intp], n_classes: int) -> NoiseModel:
        """The model of some classes as one of all: labels of the others are taken to be right."""
        bias, doubt = np.zeros(n_classes), self.suspicion
        bias[classes] = self.bias - self.bias.mean()
        if doubt is not None:
            doubt = replace(doubt, transition=_among(doubt.transition, classes, n_classes))
        return replace(self, bias=bias, transition=_among(self.transition, classes, n_classes), suspicion=doubt)

    @classmethod
    def identity(cls, n_classes: int) -> NoiseModel:
        """The model without noise: logits are used as they are."""
        return cls(1.0, np.zeros(n_classes), np.eye(n_classes), 0.0, (0.0, 1.0), (1.0, 0.0, 0.0))


def _among(transition: Array, classes: NDArray[np.intp], n_classes: int) -> Array:
    out = np.eye(n_classes)
    out[np.ix_(classes, classes)] = transition
    return out


def logits_from_proba(proba: ArrayLike, floor: float = 1e-3) -> Array:
    """Logits of predicted probabilities, floored so that a probability of 0 does not claim certainty."""
    return np.asarray(np.log(np.maximum(np.asarray(proba, dtype=float), floor)))


def as_matrix(logits: ArrayLike) -> Array:
    z = np.asarray(logits, dtype=float)
    if z.ndim == 1 or z.shape[1] == 1:
        z = z.reshape(-1)
        return np.stack([np.zeros_like(z), z], axis=1)
    return z


def softmax(z: Array) -> Array:
    """Rows of probabilities."""
    if z.shape[1] == 2:
        return pair(z[:, 1] - z[:, 0])
    out = np.asarray(z - z.max(axis=1, keepdims=True))
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)
    return out


def softmax_columns(z: Array) -> Array:
    """Probabilities in place; classes are the axis before the last."""
    z -= z.max(axis=-2, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=-2, keepdims=True)
    return z


def pair(margin: Array) -> Array:
    """The probabilities of two classes from the margin of the second; both keep their digits, however small."""
    ratio = np.exp(-np.abs(margin))
    likely = 1.0 / (1.0 + ratio)
    unlikely, second = ratio * likely, margin > 0
    out = np.empty((len(margin), 2))
    out[:, 0], out[:, 1] = np.where(second, unlikely, likely), np.where(second, likely, unlikely)
    return out


def symmetric(rate: float, n_classes: int) -> Array:
    """The transition matrix of one rate, wrong labels falling on all other classes alike."""
    out = np.full((n_classes, n_classes), rate / (n_classes - 1))
    out[np.diag_indices(n_classes)] = 1 - rate
    return out


def confident_error(
    logits: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, share: float = 1 / 3
) -> tuple[float, float]:
    """Noisy error of the surest share of the predictions: overall, and the mean over the predicted classes.

    If a model is sure, its own mistakes are rare, so what disagrees there is mostly label noise. No fit is needed.

    >>> margin = np.r_[np.linspace(-3, -1, 30), np.linspace(1, 3, 30)]
    >>> y = (margin > 0).astype(int)
    >>> y[0] = 1
    >>> round(confident_error(margin, y)[0], 2)
    0.05
    """
    z = as_matrix(logits)
    codes = np.asarray(y, dtype=np.intp)
    weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    top = np.partition(z, z.shape[1] - 2, axis=1)
    gap = top[:, -1] - top[:, -2]
    predicted = z.argmax(axis=1)
    wrong = (predicted != codes) * weight
    overall = _error_of_surest(gap, wrong, weight, share)
    errors = [
        _error_of_surest(gap[rows], wrong[rows], weight[rows], share)
        for rows in (np.flatnonzero(predicted == c) for c in range(z.shape[1]))
        if len(rows) and effective_size(weight[rows], len(rows)) >= CLASS_ROWS
    ]
    return overall, float(np.mean(errors)) if errors else 0.5


def _error_of_surest(gap: Array, wrong: Array, weight: Array, share: float) -> float:
    """The error of the surest share; of rows that are equally sure at its edge, each counts in part."""
    order = np.argsort(-gap)
    total = np.cumsum(weight[order])
    wanted = share * float(total[-1])
    least = gap[order[min(int(np.searchsorted(total, wanted)), len(order) - 1)]]
    above, edge = gap > least, gap == least
    part = (wanted - float(weight[above].sum())) / max(float(weight[edge].sum()), np.finfo(float).tiny)
    return float((wrong[above].sum() + part * wrong[edge].sum()) / max(wanted, np.finfo(float).tiny))


def share_to_check(rate_if_any: float, confident_error: float, accuracy: float) -> float:
    """Return the share of the rows that are worth a look, from the rate if any labels are wrong.

    >>> share_to_check(0.05, 0.01, 0.8), round(share_to_check(0.05, 0.1, 0.8), 3)
    (0.05, 0.15)
    """
    clean = confident_error < CLEAN
    return max(rate_if_any, confident_error if clean else CONTRADICTED * (1.0 - accuracy))


def design_effect(scores: Array, groups: ArrayLike, weight: Array | None = None) -> float:
    """Variance of the last parameter over what it would be if rows were independent (cluster-robust sandwich).

    Rows of a group often share their errors: six visits of a patient with the wrong diagnosis are one error, not six.
    The number of rows divided by this factor is the number of independent rows. ``scores`` are derivatives of the
    log-likelihood of each row, shape (n, n_parameters).

    >>> scores = np.random.default_rng(0).normal(size=(400, 1))
    >>> alone = design_effect(scores, np.arange(400))
    >>> copies = design_effect(np.repeat(scores, 6, axis=0), np.repeat(np.arange(400), 6))
    >>> round(alone, 1), round(copies, 1)
    (1.0, 6.0)
    """
    mass = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=float)
    centred = mass[:, None] * (scores - np.average(scores, axis=0, weights=mass))
    _, code = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(code.max()) + 1
    sums = np.zeros((n_groups, scores.shape[1]))
    np.add.at(sums, code, centred)
    inverse = np.linalg.pinv(centred.T @ centred)
    robust = inverse @ (sums.T @ sums) @ inverse * (n_groups / max(n_groups - 1, 1))
    return float(max(robust[-1, -1] / max(inverse[-1, -1], np.finfo(float).tiny), 1.0))


def rate_scores(model: NoiseModel, logits: ArrayLike, y: ArrayLike) -> Array:
    """Derivatives of each label's log-likelihood in the log scale and in one noise rate, shape (n, 2)."""
    z, codes = as_matrix(logits), np.asarray(y, dtype=np.intp)
    n_classes = z.shape[1]
    rate = max(float(np.nan_to_num(model.rate_if_any)), 0.01)  # at a rate of 0 scores are infinite
    scale = model.scale if model.suspicion is None else model.suspicion.scale
    clean = softmax(scale * (z + model.bias / model.scale))
    own = clean[np.arange(len(codes)), codes]
    joint = clean * symmetric(rate, n_classes)[:, codes].T
    given = joint.sum(axis=1)
    by_scale = scale * ((joint / given[:, None] - clean) * z).sum(axis=1)
    by_rate = ((1.0 - own) / (n_classes - 1) - own) / given
    return np.stack([by_scale, by_rate], axis=1)
