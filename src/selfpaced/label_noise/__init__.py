"""The label-noise channel: from out-of-fold logits to clean probabilities and a noise rate.

A model trained on noisy labels, however robustly, is calibrated for nobody: its logits have some arbitrary
scale, and the labels at hand are not the ones that matter.  The channel model says what those are,

    P(given = y | z) = sum_j softmax(tau z + beta)_j T_jy ,

clean probabilities seen through a transition matrix ``T`` (``T[j, y]``: a true ``j`` recorded as ``y``).  Its
parameters are fitted by likelihood on out-of-fold logits, so no clean label is ever needed.  Three nested
models (scale and one noise rate; also a bias; also one rate per class pair) are averaged with Akaike weights.

The average is taken over parameters, not over probabilities: a weighted geometric mean of softmax models is
the softmax of the averaged parameters, so the result stays one linear map of the logits, and decision,
probability and predicted label can never disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..selection import effective_size
from .base import Array, Model, softmax
from .binary import fit_binary
from .multiclass import fit_multiclass

__all__ = ["NoiseChannel", "confident_error", "fit_channel", "logits_from_proba"]

_MAX_PAIRWISE = 30  # classes: a cap on cost; there are K^2 rates, and rarely the rows to tell them from one
_LEVEL = 1.959963984540054  # theory: Phi^-1(0.975), for intervals of 95 %


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
        Akaike weights of the models (scale; scale and bias; class-conditional).
    """

    scale: float
    bias: Array
    transition: Array
    noise_rate: float
    interval: tuple[float, float]
    model_weights: tuple[float, ...]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.bias)

    def proba(self, logits: ArrayLike) -> Array:
        """Probability of each CLEAN class, shape (n, n_classes), for logits as given to `fit_channel`."""
        return softmax(self.scale * _as_matrix(logits) + self.bias)

    def decide(self, logits: ArrayLike) -> NDArray[np.intp]:
        """Code of the most probable clean class."""
        z = np.asarray(logits, dtype=float)
        if z.ndim == 1 or z.shape[1] == 1:
            return np.asarray(self.scale * z.reshape(-1) + (self.bias[1] - self.bias[0]) > 0, dtype=np.intp)
        return np.asarray((self.scale * z + self.bias).argmax(axis=1))

    def given_proba(self, logits: ArrayLike) -> Array:
        """Probability of each GIVEN label: clean probabilities sent through the channel."""
        return self.proba(logits) @ self.transition

    def noise_probability(self, logits: ArrayLike, y: ArrayLike) -> Array:
        """Posterior probability that the given label ``y`` (codes 0 .. n_classes - 1) is wrong."""
        codes = np.asarray(y, dtype=np.intp)
        joint = self.proba(logits) * self.transition[:, codes].T
        kept = joint[np.arange(len(codes)), codes]
        return np.asarray(1.0 - kept / np.maximum(joint.sum(axis=1), np.finfo(float).tiny))

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


def confident_error(
    logits: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, share: float = 1 / 3
) -> tuple[float, float]:
    """Noisy error of the most confident predictions: a noise gauge that needs no fit.

    Where a model is sure, its own mistakes are rare, so what disagrees there is mostly label noise.

    Parameters
    ----------
    logits : array-like of shape (n,), (n, 1) or (n, n_classes)
        Out-of-fold logits (binary: the margin of the second class, or two columns).
    y : array-like of shape (n,)
        Given labels as codes.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    share : float
        Share of rows that counts as confident.

    Returns
    -------
    overall, by_class : float
        The error over all confident rows, and its mean over the predicted classes (one third of each).

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced.label_noise import confident_error
    >>> margin = np.r_[np.linspace(-3, -1, 30), np.linspace(1, 3, 30)]
    >>> y = (margin > 0).astype(int)
    >>> y[0] = 1
    >>> round(confident_error(margin, y)[0], 2)
    0.05
    """
    z = _as_matrix(logits)
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
        if len(rows) and effective_size(weight[rows], len(rows)) >= 10
    ]
    return overall, float(np.mean(errors)) if errors else 0.5


def _error_of_surest(gap: Array, wrong: Array, weight: Array, share: float) -> float:
    """The error of the surest share; of rows that are equally sure at its edge, each counts in part."""
    order = np.argsort(-gap, kind="stable")
    total = np.cumsum(weight[order])
    wanted = share * float(total[-1])
    least = gap[order[min(int(np.searchsorted(total, wanted)), len(order) - 1)]]
    above, edge = gap > least, gap == least
    part = (wanted - float(weight[above].sum())) / max(float(weight[edge].sum()), np.finfo(float).tiny)
    return float((wrong[above].sum() + part * wrong[edge].sum()) / max(wanted, np.finfo(float).tiny))


def fit_channel(
    logits: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    class_conditional: bool = True,
    shift: bool = True,
) -> NoiseChannel:
    """Fit the noise channel to out-of-fold logits and noisy labels.

    Parameters
    ----------
    logits : array-like of shape (n,), (n, 1) or (n, n_classes)
        OUT-OF-FOLD logits (binary: the margin of class 1, or two columns).  In-sample logits of a flexible
        model make every label look right.
    y : array-like of shape (n,)
        Given labels as codes 0 .. n_classes - 1.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    class_conditional : bool
        Also consider a rate per class (pair of classes when there are more than two).
    shift : bool
        Also consider a bias and, with ``class_conditional``, rates that differ between classes.  With False the most
        probable class of every row stays as the logits have it: only their scale and one rate are fitted.

    Returns
    -------
    NoiseChannel

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced.label_noise import fit_channel
    >>> rng = np.random.default_rng(0)
    >>> z = 4 * rng.standard_normal(4000)
    >>> y = (rng.random(4000) < 1 / (1 + np.exp(-z))).astype(int)
    >>> flipped = rng.random(4000) < 0.2
    >>> channel = fit_channel(0.5 * z, np.where(flipped, 1 - y, y))
    >>> bool(abs(channel.noise_rate - 0.2) < 0.03), bool(channel.interval[0] < 0.2 < channel.interval[1])
    (True, True)
    >>> bool(abs(channel.scale - 2) < 0.5)
    True
    """
    z = _as_matrix(logits)
    codes = np.asarray(y, dtype=np.intp)
    if len(z) != len(codes):
        raise ValueError(f"logits and y must have the same length; got {len(z)} and {len(codes)}")
    if not np.isfinite(z).all():
        raise ValueError("logits must be finite; take logits_from_proba() of probabilities that reach 0 or 1")
    weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    n_classes = z.shape[1]
    if len(codes) == 0 or weight.sum() <= 0 or np.ptp(z - z.mean(axis=1, keepdims=True)) == 0:
        return NoiseChannel.identity(n_classes)
    weight = weight * (effective_size(weight, len(weight)) / weight.sum())
    if n_classes == 2:
        models = fit_binary(z[:, 1] - z[:, 0], codes, weight, class_conditional, shift)
    else:
        models = fit_multiclass(z, codes, weight, shift and class_conditional and n_classes <= _MAX_PAIRWISE)
    return _average(models)


def _average(models: list[Model]) -> NoiseChannel:
    evidence = np.array([m.evidence for m in models])
    w = np.exp(evidence - evidence.max())
    w /= w.sum()
    rate = float(sum(a * m.rate for a, m in zip(w, models, strict=True)))
    # Variance of a model average (Buckland 1997): within each model plus between them.
    spread = np.sqrt(sum(a * (m.error**2 + (m.rate - rate) ** 2) for a, m in zip(w, models, strict=True)))
    return NoiseChannel(
        scale=float(sum(a * m.scale for a, m in zip(w, models, strict=True))),
        bias=np.sum([a * m.bias for a, m in zip(w, models, strict=True)], axis=0),
        transition=np.sum([a * m.transition for a, m in zip(w, models, strict=True)], axis=0),
        noise_rate=rate,
        interval=(float(max(0.0, rate - _LEVEL * spread)), float(min(1.0, rate + _LEVEL * spread))),
        model_weights=tuple(float(a) for a in w),
    )


def _as_matrix(logits: ArrayLike) -> Array:
    z = np.asarray(logits, dtype=float)
    if z.ndim == 1 or z.shape[1] == 1:
        z = z.reshape(-1)
        return np.stack([np.zeros_like(z), z], axis=1)
    return z
