"""The channel in two classes: damped Fisher scoring on binned margins, all starts and models at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .base import Array, Model

_MAX_RATE = 0.48  # theory: beyond 1/2 the classes have swapped names; how near: benchmarks/constants.py label-noise
_BINS = 128  # of the margins, for speed: benchmarks/constants.py label-noise


def _bins(margin: Array, y: NDArray[np.intp], weight: Array) -> tuple[Array, Array, Array]:
    """Mean margin, weight and weight of class 1 in quantile bins; equal margins always share a bin."""
    values, inverse = np.unique(margin, return_inverse=True)
    mass: Array = np.bincount(inverse, weight).astype(float)
    ones: Array = np.bincount(inverse, weight * y).astype(float)
    before = np.cumsum(mass) - mass
    index = np.minimum((before * (_BINS / mass.sum())).astype(np.intp), _BINS - 1)
    m, sums, positive = (
        np.bincount(index, part, minlength=_BINS).astype(float) for part in (mass, mass * values, ones)
    )
    used = m > 0
    return sums[used] / m[used], m[used], positive[used]


# theory: model, log scale, rate of class 0, rate of class 1; several starts, because the likelihood has two basins
# (a flat sigmoid without noise, a steep one with noise).
_STARTS = (
    ("scale", 0.4, 0.03, 0.03),
    ("scale", 1.4, 0.3, 0.3),
    ("bias", 0.4, 0.03, 0.03),
    ("bias", 1.4, 0.3, 0.3),
    ("class", 1.1, 0.3, 0.05),
    ("class", 1.1, 0.05, 0.3),
    ("class", 0.7, 0.1, 0.1),
    ("class", 1.4, 0.3, 0.3),
)


class _BinaryLikelihood:
    """Negative log-likelihood of several starts at once, parameters (log scale, bias, rate logits 0 and 1).

    Priors: log scale ~ N(0, 1) at margins scaled to mean 2, bias ~ N(0, 1).
    """

    def __init__(self, x: Array, mass: Array, ones: Array) -> None:
        self.x, self.mass, self.ones = x, mass, ones

    def forward(self, p: Array) -> tuple[Array, ...]:
        scale = np.exp(np.clip(p[:, :1], -4, 5))
        rate = _MAX_RATE / (1 + np.exp(-np.clip(p[:, 2:], -12, 12)))
        clean = 0.5 + 0.5 * np.tanh(0.5 * (scale * self.x + p[:, 1:2]))
        contrast = 1 - rate.sum(axis=1, keepdims=True)
        q = np.clip(rate[:, :1] + contrast * clean, 1e-9, 1 - 1e-9)
        value = -(self.ones * np.log(q) + (self.mass - self.ones) * np.log1p(-q)).sum(axis=1)
        return value + 0.5 * (p[:, 0] ** 2 + p[:, 1] ** 2), scale, rate, clean, contrast, q

    def derivatives(self, p: Array, state: tuple[Array, ...], by_rate: bool = False) -> tuple[Array, Array]:
        """Gradient and Fisher information; in the rates themselves instead of their logits on request."""
        _, scale, rate, clean, contrast, q = state
        slope = contrast * clean * (1 - clean)
        chain = np.ones_like(rate) if by_rate else rate * (1 - rate / _MAX_RATE)
        jac = np.stack([slope * scale * self.x, slope, (1 - clean) * chain[:, :1], -clean * chain[:, 1:]], axis=1)
        variance = q * (1 - q)
        grad = np.matmul(jac, ((self.mass * q - self.ones) / variance)[:, :, None])[:, :, 0]
        grad[:, :2] += p[:, :2]
        fisher = np.matmul(jac * (self.mass / variance)[:, None, :], jac.transpose(0, 2, 1))
        fisher[:, 0, 0] += 1
        fisher[:, 1, 1] += 1
        return grad, fisher


def _projection(kind: str) -> Array:
    """The subspace of the four parameters that a model may use."""
    out = np.eye(4)
    if kind != "class":
        out[2:, 2:] = 0.5
    if kind == "scale":
        out[1, 1] = 0.0
    return out


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
        new = likelihood.forward(trial)
        better = new[0] <= state[0] + 1e-12
        gain = np.where(better, state[0] - new[0], 0.0)
        p = np.where(better[:, None], trial, p)
        damping = np.where(better, damping * 0.3, damping * 8)
        state = tuple(np.where(better.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(new, state, strict=True))
        if (gain < 1e-4).all() and (better | (damping > 1e3)).all():
            break
    return p, state[0]


def fit_binary(margin: Array, y: NDArray[np.intp], weight: Array, class_conditional: bool, shift: bool) -> list[Model]:
    unit = np.average(np.abs(margin), weights=weight) / 2 + 1e-9
    likelihood = _BinaryLikelihood(*_bins(margin / unit, y, weight))
    allowed = {"scale"} | ({"bias"} if shift else set()) | ({"class"} if shift and class_conditional else set())
    starts = [s for s in _STARTS if s[0] in allowed]
    logit = [[np.log(r / _MAX_RATE / (1 - r / _MAX_RATE)) for r in s[2:]] for s in starts]
    p = np.array([[s[1], 0.0, *r] for s, r in zip(starts, logit, strict=True)])
    project = np.stack([_projection(s[0]) for s in starts])
    p, value = _scoring(likelihood, p, project)
    models = []
    for extra, kind in enumerate(("scale", "bias", "class")):
        members = [i for i, s in enumerate(starts) if s[0] == kind]
        if members:
            best = min(members, key=lambda i: value[i])
            models.append(_binary_model(likelihood, p[best : best + 1], project[best], value[best] + extra, unit))
    return models


def _binary_model(likelihood: _BinaryLikelihood, p: Array, project: Array, cost: float, unit: float) -> Model:
    state = likelihood.forward(p)
    _, scale, rate, clean, _, _ = state
    r0, r1 = rate[0]
    share = float((likelihood.mass * clean[0]).sum() / likelihood.mass.sum())
    _, fisher = likelihood.derivatives(p, state, by_rate=True)
    covariance = np.linalg.pinv(project @ fisher[0] @ project)
    slope = np.array([0.0, 0.0, 1 - share, share])
    return Model(
        scale=float(scale[0, 0]) / unit,
        bias=np.array([0.0, p[0, 1]]),
        transition=np.array([[1 - r0, r0], [r1, 1 - r1]]),
        evidence=-float(cost),
        rate=float((1 - share) * r0 + share * r1),
        error=float(np.sqrt(max(slope @ covariance @ slope, 0.0))),
    )
