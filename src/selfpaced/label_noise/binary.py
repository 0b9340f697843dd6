"""The label-noise model in two classes: damped Fisher scoring on binned margins, all starts and models at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .model import Array, Model

MAX_RATE = 0.48  # theory: beyond 1/2 the classes have swapped names; how near: a choice
MARGIN_BINS = 256  # cost: bins of the margins; the log-likelihood is off by some tenths at most


def _bins(margin: Array, y: NDArray[np.intp], weight: Array) -> tuple[Array, Array, Array]:
    """Mean margin, weight and weight of class 1 in bins that are narrow near 0 and wide far out."""
    index = (0.5 * MARGIN_BINS * (1.0 + margin / (2.0 + np.abs(margin)))).astype(np.intp)
    mass, sums, ones = (
        np.bincount(index, part, minlength=MARGIN_BINS).astype(float) for part in (weight, weight * margin, weight * y)
    )
    return sums / np.maximum(mass, np.finfo(float).tiny), mass, ones


class _Form(NamedTuple):
    """What a model may use: a shift of the margins, and no, one common or one rate per class."""

    shift: bool
    rates: int

    @property
    def projection(self) -> Array:
        """The subspace of the four parameters."""
        out = np.eye(4)
        if self.rates < 2:
            out[2:, 2:] = 0.5 * self.rates
        out[1, 1] = float(self.shift)
        return out


_RATE, _CLASS_RATES = _Form(False, 1), _Form(True, 2)


def _starts(form: _Form) -> Array:
    """Parameters to start from: log scale, bias, rate logits 0 and 1.

    Several, because the likelihood has two basins: a flat sigmoid without noise, a steep one with noise.
    """
    scale, *rates = np.transpose(
        [
            ((0.4, 0.0, 0.0), (-1.0, 0.0, 0.0)),
            ((0.4, 0.03, 0.03), (1.4, 0.3, 0.3)),
            ((1.1, 0.3, 0.05), (1.1, 0.05, 0.3), (0.7, 0.1, 0.1), (1.4, 0.3, 0.3)),
        ][form.rates]
    )
    share = np.maximum(np.array(rates), 1e-9) / MAX_RATE
    return np.column_stack([scale, np.zeros(len(scale)), np.clip(np.log(share / (1 - share)), -12, None).T])


class _BinaryLikelihood:
    """Negative log-likelihood of several starts at once, parameters (log scale, bias, rate logits 0 and 1).

    Priors: log scale ~ N(0, 1) at margins scaled to mean 2, bias ~ N(0, 1).  With ``free`` hardly anything holds the
    scale from below: margins that know nothing may shrink to nothing, instead of asking for noise.  Bins may be one
    set for all starts, or a row for each.
    """

    def __init__(self, x: Array, mass: Array, ones: Array, free: bool = False) -> None:
        self.x, self.mass, self.ones = x, mass, ones
        self.hold = 0.04 if free else 1.0

    def forward(self, p: Array) -> tuple[Array, ...]:
        scale = np.exp(np.clip(p[:, :1], -4, 5))
        rate = MAX_RATE / (1 + np.exp(-p[:, 2:]))
        clean = 0.5 + 0.5 * np.tanh(0.5 * (scale * self.x + p[:, 1:2]))
        contrast = 1 - rate.sum(axis=1, keepdims=True)
        q = np.clip(rate[:, :1] + contrast * clean, 1e-9, 1 - 1e-9)
        value = -(self.ones * np.log(q) + (self.mass - self.ones) * np.log1p(-q)).sum(axis=1)
        return value + 0.5 * (self._held(p) * p[:, 0] ** 2 + p[:, 1] ** 2), scale, rate, clean, contrast, q

    def _held(self, p: Array) -> Array:
        """Precision of the prior on each log scale."""
        return np.where(p[:, 0] < 0, self.hold, 1.0)

    def derivatives(self, p: Array, state: tuple[Array, ...], by_rate: bool = False) -> tuple[Array, Array]:
        """Gradient and Fisher information; in the rates themselves instead of their logits on request."""
        _, scale, rate, clean, contrast, q = state
        slope = contrast * clean * (1 - clean)
        chain = np.ones_like(rate) if by_rate else rate * (1 - rate / MAX_RATE)
        jac = np.stack([slope * scale * self.x, slope, (1 - clean) * chain[:, :1], -clean * chain[:, 1:]], axis=1)
        variance = q * (1 - q)
        grad = np.matmul(jac, ((self.mass * q - self.ones) / variance)[:, :, None])[:, :, 0]
        held = self._held(p)
        grad[:, 0] += held * p[:, 0]
        grad[:, 1] += p[:, 1]
        fisher = np.matmul(jac * (self.mass / variance)[:, None, :], jac.transpose(0, 2, 1))
        fisher[:, 0, 0] += held
        fisher[:, 1, 1] += 1
        return grad, fisher


def _scoring(likelihood: _BinaryLikelihood, p: Array, project: Array, max_iter: int = 25) -> tuple[Array, Array]:
    """Damped Fisher scoring of all starts in parallel."""
    damping = np.full(len(p), 1e-2)
    state = likelihood.forward(p)
    for _ in range(max_iter):
        grad, fisher = likelihood.derivatives(p, state)
        grad = np.matmul(project, grad[:, :, None])
        fisher = project @ fisher @ project
        diagonal = np.einsum("sii->si", fisher) + 1e-3
        fisher = fisher + (damping[:, None] * diagonal + 1e-9)[:, :, None] * np.eye(4)
        step = np.clip(np.matmul(project, np.linalg.solve(fisher, grad))[:, :, 0], -3, 3)
        trial = p - step
        trial[:, 2:] = np.clip(trial[:, 2:], -12, 12)
        if (np.einsum("si,si->s", grad[:, :, 0], p - trial) < 0.01).all():  # nats that a step gains, about
            break
        new = likelihood.forward(trial)
        better = new[0] <= state[0] + 1e-12
        p = np.where(better[:, None], trial, p)
        damping = np.where(better, damping * 0.3, damping * 8)
        state = tuple(np.where(better.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(new, state, strict=True))
    return p, state[0]


def fit_binary(margin: Array, y: NDArray[np.intp], weight: Array, shift: bool, noiseless: bool) -> list[Model]:
    """The models that are allowed, each at the better of its starts."""
    unit = np.average(np.abs(margin), weights=weight) / 2 + 1e-9
    likelihood = _BinaryLikelihood(*_bins(margin / unit, y, weight), free=noiseless)
    forms = [_RATE] + [_Form(True, 1)] * shift + [_CLASS_RATES] * shift
    forms += ([_Form(False, 0)] + [_Form(True, 0)] * shift) * noiseless
    starts = [_starts(form) for form in forms]
    which = np.repeat(np.arange(len(forms)), [len(own) for own in starts])
    project = np.stack([forms[i].projection for i in which])
    p, value = _scoring(likelihood, np.concatenate(starts), project)
    models = []
    for i, form in enumerate(forms):
        best = min(np.flatnonzero(which == i), key=lambda at: value[at])
        cost = value[best] + form.shift + (form.rates == 2)
        models.append(_binary_model(likelihood, p[best : best + 1], project[best], cost, unit, form.rates > 0))
    return models


def _binary_model(
    likelihood: _BinaryLikelihood, p: Array, project: Array, cost: float, unit: float, noisy: bool
) -> Model:
    state = likelihood.forward(p)
    _, scale, rate, clean, _, _ = state
    r0, r1 = rate[0] if noisy else np.zeros(2)
    share = float((likelihood.mass * clean[0]).sum() / likelihood.mass.sum())
    error = 0.0
    if noisy:
        _, fisher = likelihood.derivatives(p, state, by_rate=True)
        covariance = np.linalg.pinv(project @ fisher[0] @ project)
        slope = np.array([0.0, 0.0, 1 - share, share])
        error = float(np.sqrt(max(slope @ covariance @ slope, 0.0)))
    return Model(
        scale=float(scale[0, 0]) / unit,
        bias=np.array([0.0, p[0, 1]]),
        transition=np.array([[1 - r0, r0], [r1, 1 - r1]]),
        evidence=-float(cost),
        rate=float((1 - share) * r0 + share * r1),
        error=error,
        noisy=noisy,
    )


def one_rate_binary(margins: Array, y: NDArray[np.intp], weight: Array) -> Array:
    """Log-likelihood of every given label under scale and one rate, fitted to each row of ``margins`` at once."""
    units = np.average(np.abs(margins), axis=1, weights=weight) / 2 + 1e-9
    binned = [_bins(margin / unit, y, weight) for margin, unit in zip(margins, units, strict=True)]
    first, m = _starts(_RATE), len(margins)
    count = len(first)
    x, mass, ones = (np.repeat(part, count, axis=0) for part in map(np.stack, zip(*binned, strict=True)))
    likelihood = _BinaryLikelihood(x, mass, ones, free=True)
    p, value = _scoring(likelihood, np.tile(first, (m, 1)), np.tile(_RATE.projection, (m * count, 1, 1)))
    best = np.arange(m) * count + value.reshape(m, count).argmin(axis=1)
    scale = np.exp(np.clip(p[best, :1], -4, 5)) / units[:, None]
    rate = MAX_RATE / (1 + np.exp(-p[best, 2:3]))
    own = 0.5 + 0.5 * np.tanh(0.5 * scale * margins * (2.0 * y - 1.0))
    return np.asarray(np.log(rate + (1 - 2 * rate) * own))
