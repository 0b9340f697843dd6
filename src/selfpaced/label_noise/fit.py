"""Fitting the label-noise model: models with and without noise, their average, and what it may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri

from ..selection import effective_size
from .binary import fit_binary, one_rate_binary
from .model import (
    CLASS_ROWS,
    Array,
    Model,
    NoiseModel,
    Suspicion,
    as_matrix,
    design_effect,
    rate_scores,
    softmax,
    symmetric,
)
from .multiclass import MAX_PAIRWISE, fit_multiclass, one_rate_multiclass, scaled_by_pair

__all__ = ["ChannelModels", "fit_channel", "one_rate_likelihood"]

Codes = NDArray[np.intp]

NORMAL_975 = float(ndtri(0.975))
# benchmarks/classification.py --part development chose these.
MISFIT = 0.03  # standard deviation of the rate that a wrong link function alone brings about, at most
FEIGNED = 0.2  # the same as a share of the errors that overlap explains: without overlap no link function feigns noise
CONVINCING = 2.0  # nats that noise must gain for an interval without 0
LEAST_DOUBT = 0.01  # numerical safety: the smallest rate by which labels are ranked


def fit_channel(
    logits: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    shift: bool = True,
    noiseless: bool = False,
) -> NoiseModel:
    """Fit the label-noise model to out-of-fold logits and noisy labels, given as codes 0 .. n_classes - 1.

    In-sample logits of a flexible model make every label look right. With more than two classes, labels of classes with
    fewer than ten rows are not assessed: they are taken to be right.

    Parameters
    ----------
    shift : bool
        Also consider a bias, and rates that differ between classes (pairs of classes if there are more than two).  With
        False the most probable class of every row stays as the logits have it: only their scale and one rate are
        fitted.
    noiseless : bool
        Also consider that no label is wrong.  A rate then pays for the range that it could have had, the rate never
        exceeds the noisy error of the logits, the interval reaches down to 0 unless noise is significant, and a shift
        is cut back where it costs noisy accuracy.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = 4 * rng.standard_normal(4000)
    >>> y = (rng.random(4000) < 1 / (1 + np.exp(-z))).astype(int)
    >>> flipped = rng.random(4000) < 0.2
    >>> model = fit_channel(0.5 * z, np.where(flipped, 1 - y, y))
    >>> bool(abs(model.noise_rate - 0.2) < 0.03), bool(model.interval[0] < 0.2 < model.interval[1])
    (True, True)
    >>> bool(abs(model.scale - 2) < 0.5)
    True
    >>> clean = fit_channel(0.5 * z, y, noiseless=True)
    >>> clean.noise_rate < 0.01, clean.interval[0]
    (True, 0.0)
    """
    models = ChannelModels.of(logits, y, sample_weight, shift="auto" if shift else False, noiseless=noiseless)
    return models.assessed() if noiseless else models.averaged()


@dataclass(frozen=True, eq=False)
class ChannelModels:
    """The candidate models of the label noise, each fitted once, for repeated use.

    Weights sum to the number of independent rows; ``classes`` are those with rows enough to be assessed (None: all).
    ``shift`` says how decisions follow different error rates per class. "auto": as far as held-out accuracy on the
    given labels does not fall and no more rows move than the rate can explain; True: fully; False: not at all.
    """

    models: list[Model]  # those with noise first; none if there is nothing to fit to
    logits: Array
    codes: Codes
    weight: Array
    classes: Codes | None = None
    shift: bool | str = "auto"
    design_effect: float = 1.0  # factor by which groups make the rows less evidence than independent rows

    @classmethod
    def of(
        cls,
        logits: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        size: float | None = None,
        groups: ArrayLike | None = None,
        shift: bool | str = "auto",
        noiseless: bool = True,
    ) -> ChannelModels:
        """Fit the models; see `fit_channel`.

        ``size`` is the number of independent rows if the weights do not say it. Rows of one of the ``groups`` are less
        evidence than independent rows.
        """
        z, codes, weight = _checked(logits, y, sample_weight)
        if len(codes) == 0 or weight.sum() <= 0 or np.ptp(z - z.mean(axis=1, keepdims=True)) == 0:
            return cls([], z, codes, weight)
        weight = weight * (effective_size(weight, len(weight)) / weight.sum())
        assessed = _assessable(codes, weight, z.shape[1])
        weight = weight if size is None else weight * (size / weight.sum())
        self = cls([], z, codes, weight, assessed, shift)._fitted(noiseless)
        if groups is None:
            return self
        effect = design_effect(rate_scores(self.assessed(), z, codes), groups, weight)
        return replace(self, weight=weight / effect, design_effect=effect)._fitted(noiseless)

    def _fitted(self, noiseless: bool) -> ChannelModels:
        z, codes, weight = self.rows
        if z.shape[1] == 2:
            models = fit_binary(z[:, 1] - z[:, 0], codes, weight, bool(self.shift), noiseless)
        else:
            models = fit_multiclass(z, codes, weight, bool(self.shift), noiseless)
        return replace(self, models=models)

    @cached_property
    def rows(self) -> tuple[Array, Codes, Array]:
        """Logits, codes and weights of the classes that are assessed."""
        if self.classes is None:
            return self.logits, self.codes, self.weight
        code = np.full(self.logits.shape[1], -1)
        code[self.classes] = np.arange(len(self.classes))
        own = np.flatnonzero(code[self.codes] >= 0)
        return self.logits[np.ix_(own, self.classes)], code[self.codes[own]], self.weight[own]

    @property
    def gain(self) -> float:
        """Nats by which noise explains the labels better than none."""
        return _gain(self.models) if self.models else 0.0

    def averaged(self) -> NoiseModel:
        """The mean of all models, by their evidence."""
        return self._of_all(_average(self.models, _weights(_evidence(self.models))) if self.models else None)

    def assessed(self, most: float = 1.0) -> NoiseModel:
        """Return the noise model if there may be no noise, with a rate of at most ``most``."""
        fully = self.shift is True
        return self._of_all(_assessed(self.models, *self.rows, most, fully) if self.models else None)

    def withstanding(self, model: NoiseModel) -> NoiseModel:
        """Return a model by which a likely error is one even half-way to the lower end of the interval of the rate.

        That is about one standard error below the rate. Pairs of classes have scales of their own there, because scores
        that cannot tell two classes contradict many labels. If the end is 0, only single errors are likely ones.
        """
        doubt, low = model.suspicion, model.interval[0]
        if doubt is None or low == 0:
            return model.unless_established()
        rate, n_classes = (low + model.rate_if_any) / 2, self.logits.shape[1]
        some = slice(None, None, max(1, len(self.logits) // 1000))  # cost: as many rows tell a scale
        z, codes, weight = (self.logits + model.bias / model.scale)[some], self.codes[some], self.weight[some]
        if 2 < n_classes <= MAX_PAIRWISE:
            matrix, bias, transition = scaled_by_pair(z, codes, weight, symmetric(rate, n_classes), doubt.scale)
            lower = Suspicion(1.0, transition, matrix=matrix, bias=bias)
        else:
            transition = _at_rate(doubt.transition, model.rate_if_any, rate)
            lower = Suspicion(_scale_at(transition, z, codes, weight, doubt.scale), transition)
        return replace(model, suspicion=replace(doubt, lower=lower))

    def _of_all(self, model: NoiseModel | None) -> NoiseModel:
        """A model of the classes that are assessed as one of all classes."""
        n_classes = self.logits.shape[1]
        if model is None:
            return NoiseModel.identity(n_classes)
        return model if self.classes is None else model.among(self.classes, n_classes)


def one_rate_likelihood(logits: Sequence[ArrayLike], y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
    """Log-likelihood of every given label under a scale and one rate, for several models at once.

    A proper score of out-of-fold logits against noisy labels, of shape (n_models, n): the rate keeps a label that the
    model is sure is wrong from costing more than noise costs.

    >>> z = np.random.default_rng(0).standard_normal(500) * 3
    >>> y = (z > 0).astype(int)
    >>> good, bad = one_rate_likelihood([z, -z], y).mean(axis=1)
    >>> bool(good > bad)
    True
    """
    checked = [_checked(z, y, sample_weight) for z in logits]
    codes, weight = checked[0][1:]
    weight = weight * (effective_size(weight, len(weight)) / weight.sum())
    stack = np.stack([z for z, _, _ in checked])
    if stack.shape[2] == 2:
        return one_rate_binary(stack[:, :, 1] - stack[:, :, 0], codes, weight)
    return one_rate_multiclass(stack, codes, weight)


def _checked(logits: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Array, Codes, Array]:
    z, codes = as_matrix(logits), np.asarray(y, dtype=np.intp)
    if len(z) != len(codes):
        raise ValueError(f"logits and y must have the same length; got {len(z)} and {len(codes)}")
    if not np.isfinite(z).all():
        raise ValueError("logits must be finite; take logits_from_proba() of probabilities that reach 0 or 1")
    return z, codes, np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)


def _assessable(codes: Codes, weight: Array, n_classes: int) -> Codes | None:
    """The classes with enough rows; None if these are all, or too few to compare.

    Wrong labels that a model spreads over all classes alike would be missed between large classes beside a tiny one.
    """
    enough = np.flatnonzero(np.bincount(codes, weight, minlength=n_classes) >= CLASS_ROWS)
    return enough if 2 <= len(enough) < n_classes else None


# ------------------------------------------------------------------------------------------------ averages


def _evidence(models: Sequence[Model]) -> Array:
    """Evidence of the models; beside models without noise a rate pays its Occam factor.

    That factor is the share of its range [0, 1/2] that the labels leave to the rate, about 2.5 standard errors.
    """
    evidence = np.array([m.evidence for m in models])
    if all(m.noisy for m in models):
        return evidence
    return np.asarray(evidence + [np.log(min(1.0, 5.0 * m.error + 1e-9)) if m.noisy else 0.0 for m in models])


def _weights(evidence: Array) -> Array:
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights / weights.sum())


def _average(models: Sequence[Model], weights: Array) -> NoiseModel:
    def mean(name: str) -> Array:
        return np.asarray(np.sum([w * getattr(m, name) for w, m in zip(weights, models, strict=True)], axis=0))

    rate = float(mean("rate"))
    # Variance of a model average (Buckland 1997): within each model plus between them.
    spread = np.sqrt(sum(w * (m.error**2 + (m.rate - rate) ** 2) for w, m in zip(weights, models, strict=True)))
    return NoiseModel(
        scale=float(mean("scale")),
        bias=mean("bias"),
        transition=mean("transition"),
        noise_rate=rate,
        interval=(float(max(0.0, rate - NORMAL_975 * spread)), float(min(1.0, rate + NORMAL_975 * spread))),
        model_weights=tuple(float(w) for w in weights),
    )


# ---------------------------------------------------------------------------------- where there may be no noise


def _assessed(models: Sequence[Model], z: Array, codes: Codes, weight: Array, most: float, fully: bool) -> NoiseModel:
    """Scale and rate from all models, the shift and the suspicion from those with noise."""
    noisy = [m for m in models if m.noisy]
    noise, weights = _average(noisy, _weights(_evidence(noisy))), _at_most(most, models, _weights(_evidence(models)))
    full = _average(models, weights)
    scale = _common_scale([m.scale for m in models], weights, z)
    expected = _expected_rate(noise)
    moved = noise.bias / noise.scale
    moved = moved if fully else _affordable(z, moved, codes, weight, expected)
    error = 1.0 - float(np.average((z + moved).argmax(axis=1) == codes, weights=weight))
    signal = _signal(models, codes, weight)
    rate = min(signal * full.noise_rate, error)
    doubt = max(expected, LEAST_DOUBT)
    overlap = 1.0 - float(np.average(softmax(noise.scale * z + noise.bias).max(axis=1), weights=weight))
    low, high = _interval(noise, models, error, float(weight.sum()), min(MISFIT, FEIGNED * overlap))
    share = signal * float(weights[: len(noisy)].sum())
    return NoiseModel(
        scale=scale,
        bias=scale * moved,
        transition=full.transition,
        noise_rate=rate,
        interval=(min(low, rate), max(high, rate)),
        model_weights=full.model_weights,
        rate_if_any=min(expected, error),
        suspicion=Suspicion(
            noise.scale,
            0.5 * (_at_rate(noise.transition, noise.noise_rate, doubt) + symmetric(doubt, z.shape[1])),
            max(share, LEAST_DOUBT),
            clean_scale=max((m for m in models if not m.noisy), key=lambda m: m.evidence).scale,
            size=float(weight.sum()),
            signal=signal,
        ),
    )


def _expected_rate(noise: NoiseModel) -> float:
    """The mean of what labels leave to the rate between 0 and 1/2.

    The most likely rate changes with the split if many rates are about as likely; their mean does not.
    """
    error = max((noise.interval[1] - noise.noise_rate) / NORMAL_975, 1e-6)
    ends = (np.array([0.0, 0.5]) - noise.noise_rate) / error
    height, mass = np.exp(-0.5 * ends**2) / np.sqrt(2 * np.pi), float(np.diff(ndtr(ends))[0])
    if mass < 1e-6:  # beyond 1/2, which three classes and more allow
        return noise.noise_rate
    return float(noise.noise_rate + error * (height[0] - height[1]) / mass)


def _at_rate(transition: Array, rate: float, wanted: float) -> Array:
    """A transition matrix of one rate at another, between classes as before."""
    factor = min(wanted / max(rate, LEAST_DOUBT), 1 / max(1 - np.diag(transition).min(), 1e-12))
    off = factor * (transition - np.diag(np.diag(transition)))
    return np.asarray(off + np.diag(1 - off.sum(axis=1)))


def _scale_at(transition: Array, z: Array, codes: Codes, weight: Array, largest: float) -> float:
    """The scale of the logits by which a transition matrix explains the labels best, at most the given one."""

    def loss(log_scale: float) -> float:
        given = (softmax(np.exp(log_scale) * z) * transition[:, codes].T).sum(axis=1)
        return -float(weight @ np.log(np.maximum(given, np.finfo(float).tiny)))

    top = float(np.log(largest))
    found = minimize_scalar(loss, bounds=(top - 4.0, top), method="bounded", options={"xatol": 0.02})
    return float(np.exp(found.x))


def _signal(models: Sequence[Model], codes: Codes, weight: Array) -> float:
    """Probability that the logits are informative; if they are not, no label can be called wrong."""
    counts = np.bincount(codes, weight)
    counts = counts[counts > 0]
    gain = max(m.evidence for m in models) - float(counts @ np.log(counts / counts.sum()))
    return float(1.0 - np.exp(-max(gain - CONVINCING, 0.0)))


def _common_scale(scales: Sequence[float], weights: Array, z: Array, max_iter: int = 20) -> float:
    """The one scale whose probabilities come nearest to the models' averaged ones, in cross-entropy.

    The mean of the scales would let a model that half believes in noise, and is sure of everything, make the rest sure.
    """
    z = z[:: max(1, len(z) // 500)]  # cost: so many rows tell a scale
    target = np.sum([w * softmax(s * z) for w, s in zip(weights, scales, strict=True)], axis=0)
    low, high = min(scales), max(scales)
    scale = float(np.exp(weights @ np.log(scales)))
    for _ in range(max_iter):
        p = softmax(scale * z)
        slope = float(((p - target) * z).sum())
        low, high = (scale, high) if slope < 0 else (low, scale)
        curvature = float((p * z**2).sum() - ((p * z).sum(axis=1) ** 2).sum())
        step = scale - slope / max(curvature, np.finfo(float).tiny)
        step = step if low < step < high else 0.5 * (low + high)
        if abs(step - scale) <= 1e-6 * scale:
            break
        scale = step
    return float(scale)


def _at_most(most: float, models: Sequence[Model], weights: Array) -> Array:
    """The weights with as much less for the models with noise as brings the rate down to what is believed."""
    rate = float(sum(w * m.rate for w, m in zip(weights, models, strict=True)))
    if rate <= most:
        return weights
    noisy = np.array([m.noisy for m in models])
    left = most / rate
    # Noise may have been so significant that nothing is left of the models without it.
    clean = np.where(noisy, 0.0, np.maximum(weights, np.finfo(float).tiny))
    return np.where(noisy, left * weights, (1 - left * weights[noisy].sum()) * clean / clean.sum())


def _interval(noise: NoiseModel, models: Sequence[Model], error: float, n: float, misfit: float) -> tuple[float, float]:
    """Interval of the models with noise, widened by what a wrong link function does to the rate.

    The likelihood is far from a parabola in the rate: its curvature would promise a rate well above 0 where a rate of 0
    is hardly less likely. So the lower end is at least as near 0 as the likelihood ratio says.

    Unless noise is significant, it goes from 0 to the error of the logits on the given labels: errors near the border
    of the classes may be the labels' or the model's, and the labels cannot tell.
    """
    largest = min(error + 2 * np.sqrt(error * (1 - error) / n), 1.0)
    rate, gain = noise.noise_rate, _gain(models)
    if gain < CONVINCING:
        return 0.0, float(largest)
    wald = (noise.interval[1] - rate) / NORMAL_975
    below = NORMAL_975 * np.hypot(max(wald, rate / np.sqrt(2 * gain)), misfit)
    above = NORMAL_975 * np.hypot(wald, misfit)
    return float(max(0.0, rate - below)), float(min(rate + above, largest))


def _gain(models: Sequence[Model]) -> float:
    """By how much the best models with and without noise differ in evidence, or the simplest ones.

    A scale for every pair of classes, the last of those without noise, may explain what the simplest one cannot.
    """
    with_noise, without = ([m.evidence for m in models if m.noisy is kind] for kind in (True, False))
    return float(max(max(with_noise) - max(without), with_noise[0] - max([without[0], *without[2:]])))


def _affordable(z: Array, shift: Array, codes: Codes, weight: Array, rate: float) -> Array:
    """The largest part of a shift that costs no accuracy on the given labels and moves no more rows than the rate."""
    before = z.argmax(axis=1)
    right = float(weight @ (before == codes))
    for part in (1.0, 0.75, 0.5, 0.25):
        decided = (z + part * shift).argmax(axis=1)
        changed = decided != before
        if not changed.any():
            break
        if float(weight @ (decided == codes)) >= right and float(np.average(changed, weights=weight)) <= rate:
            return np.asarray(part * shift)
    return np.zeros_like(shift)
