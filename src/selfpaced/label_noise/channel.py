"""What a fitted channel says: clean probabilities, and the posterior that a given label is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from .base import Array, pair, softmax

UNDECIDED = 0.499  # a choice: noise or none, and no row that is surely wrong if there is any is a suspect for it


@dataclass(frozen=True)
class Suspicion:
    """How given labels are doubted, where that differs from how clean ones are predicted.

    Parameters
    ----------
    scale : float
        Factor on the logits in the models with noise.
    transition : ndarray of shape (n_classes, n_classes)
        As in `NoiseChannel`, but halfway to one rate for all: a class whose rate is estimated as 0 can still be
        suspected.
    share : float
        Probability that there is any noise: what the models with noise weigh in the average, at odds that lean to
        doubt.
    signal : float
        How sure it is that the logits tell labels at all, 0 to 1.
    contradicted : float
        Probability that a label is wrong which the model is sure to be wrong, although no noise may be seen.
    """

    scale: float
    transition: Array
    share: float
    signal: float = 1.0
    contradicted: float = 0.0


@dataclass(frozen=True)
class NoiseChannel:
    """A fitted noise channel.

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
        Weights of the models in the average: with noise (scale; scale and bias, or one rate by the size of classes;
        class-conditional; one class into one other, where labels ask for it), then without.
    suspicion : Suspicion or None
        How given labels are doubted; None: by the channel itself.
    """

    scale: float
    bias: Array
    transition: Array
    noise_rate: float
    interval: tuple[float, float]
    model_weights: tuple[float, ...]
    suspicion: Suspicion | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.bias)

    def proba(self, logits: ArrayLike) -> Array:
        """Probability of each CLEAN class, shape (n, n_classes), for logits as given to `fit_channel`."""
        z = np.asarray(logits, dtype=float)
        if self.n_classes != 2 or (z.ndim > 1 and z.shape[1] > 1):
            return softmax(self.scale * z + self.bias)
        return pair(self.scale * z.reshape(-1) + (self.bias[1] - self.bias[0]))

    def decide(self, logits: ArrayLike) -> NDArray[np.intp]:
        """Code of the most probable clean class."""
        z = np.asarray(logits, dtype=float)
        if self.n_classes == 2 and (z.ndim == 1 or z.shape[1] == 1):
            return np.asarray(self.scale * z.reshape(-1) + (self.bias[1] - self.bias[0]) > 0, dtype=np.intp)
        return np.asarray((self.scale * z + self.bias).argmax(axis=1))

    def given_proba(self, logits: ArrayLike) -> Array:
        """Probability of each GIVEN label: clean probabilities sent through the channel."""
        return self.proba(logits) @ self.transition

    def posterior(self, logits: ArrayLike, y: ArrayLike) -> Array:
        """Probability of each TRUE label in view of the given one ``y`` (codes 0 .. n_classes - 1)."""
        codes, doubt = np.asarray(y, dtype=np.intp), self._doubt
        own = (np.arange(len(codes)), codes)
        out = doubt.share * self._in_view(logits, codes)
        out[own] += 1.0 - doubt.share  # perhaps there is no noise at all
        if doubt.contradicted:
            wrong = self._contradicted(logits, codes)
            other = self.proba(logits)
            other[own] = 0.0
            other *= (wrong / np.maximum(other.sum(axis=1), np.finfo(float).tiny))[:, None]
            other[own] = 1.0 - wrong
            out = np.where((other[own] < out[own])[:, None], other, out)
        return np.asarray(out)

    def noise_probability(self, logits: ArrayLike, y: ArrayLike) -> Array:
        """Posterior probability that the given label ``y`` (codes 0 .. n_classes - 1) is wrong."""
        codes, doubt = np.asarray(y, dtype=np.intp), self._doubt
        if self.n_classes == 2:
            wrong = doubt.share * self._wrong_of_two(logits, codes)
        else:
            wrong = doubt.share * (1.0 - self._in_view(logits, codes)[np.arange(len(codes)), codes])
        if doubt.contradicted:
            wrong = np.maximum(wrong, self._contradicted(logits, codes))
        return np.asarray(wrong)

    def _contradicted(self, logits: ArrayLike, codes: NDArray[np.intp]) -> Array:
        """Probability that labels are wrong because another one is that much more probable."""
        own, rival = (np.arange(len(codes)), codes), self.proba(logits)
        given = rival[own]
        rival[own] = 0.0
        best = rival.max(axis=1)
        return np.asarray(self._doubt.contradicted * best / np.maximum(best + given, np.finfo(float).tiny))

    @property
    def _doubt(self) -> Suspicion:
        return self.suspicion or Suspicion(self.scale, self.transition, 1.0)

    def _in_view(self, logits: ArrayLike, codes: NDArray[np.intp]) -> Array:
        """Probability of each true label in view of the given one, if there is noise."""
        clean = softmax(self._doubt.scale * (as_matrix(logits) + self.bias / self.scale))
        joint = clean * self._doubt.transition[:, codes].T
        return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), np.finfo(float).tiny))

    def _wrong_of_two(self, logits: ArrayLike, codes: NDArray[np.intp]) -> Array:
        """Probability that a label is wrong if there is noise: its log-odds are a margin and a constant a class."""
        z, (first, second) = np.asarray(logits, dtype=float), self.bias
        margin = z.reshape(-1) if z.ndim == 1 or z.shape[1] == 1 else z[:, 1] - z[:, 0]
        margin = self._doubt.scale * (margin + (second - first) / self.scale)
        with np.errstate(divide="ignore"):
            changed = np.log(self._doubt.transition[[1, 0], [0, 1]]) - np.log(np.diag(self._doubt.transition))
        return np.asarray(expit(changed[codes] - np.where(codes == 1, margin, -margin)))

    def contradicting(self, sure: float) -> NoiseChannel:
        """The same channel for rows that the model was fitted to and yet contradicts, ``sure`` of which are wrong."""
        doubt = self._doubt
        return replace(self, suspicion=replace(doubt, contradicted=sure * doubt.signal))

    def even(self) -> NoiseChannel:
        """The same channel where, unless noise is plain to see, there is as probably none: no row is a suspect then."""
        if self.interval[0] > 0:
            return self
        return replace(self, suspicion=replace(self._doubt, share=min(self._doubt.share, UNDECIDED)))

    def without_bias(self) -> NoiseChannel:
        """The same channel for logits to which ``bias / scale`` has already been added."""
        return replace(self, bias=np.zeros_like(self.bias))

    @classmethod
    def identity(cls, n_classes: int) -> NoiseChannel:
        """The channel that changes nothing: no noise, logits taken at their word."""
        return cls(1.0, np.zeros(n_classes), np.eye(n_classes), 0.0, (0.0, 1.0), (1.0, 0.0, 0.0))


def logits_from_proba(proba: ArrayLike, floor: float = 1e-3) -> Array:
    """Logits of predicted probabilities, floored so that a vote of 0 does not claim infinite certainty."""
    return np.asarray(np.log(np.maximum(np.asarray(proba, dtype=float), floor)))


def as_matrix(logits: ArrayLike) -> Array:
    z = np.asarray(logits, dtype=float)
    if z.ndim == 1 or z.shape[1] == 1:
        z = z.reshape(-1)
        return np.stack([np.zeros_like(z), z], axis=1)
    return z
