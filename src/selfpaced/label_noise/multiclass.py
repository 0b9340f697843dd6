"""The channel in many classes: one rate, or a free transition matrix under pseudo-counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .base import Array, Model, softmax

# The largest rate, as a share of the one at which labels say nothing, and the pseudo-counts that hold a free transition
# matrix near one rate, as a share of the rows: benchmarks/constants.py label-noise
_MAX_SHARE = 0.96
_PSEUDO_COUNTS = 0.25

# theory: a scale and a rate in each of the likelihood's two basins, without noise and with it
_STARTS = ((1.5, 0.03), (4.0, 0.3))


class _MulticlassLikelihood:
    """Channel likelihood in K classes: (log scale, rate) or (log scale, bias, transition)."""

    def __init__(self, z: Array, y: NDArray[np.intp], weight: Array) -> None:
        self.n, self.k = z.shape
        self.z, self.y, self.weight = z, y, weight
        self.rows = np.arange(self.n)
        self.max_rate = _MAX_SHARE * (self.k - 1) / self.k
        self.onehot = np.zeros((self.n, self.k))
        self.onehot[self.rows, y] = 1.0

    def symmetric(self, rate: float) -> Array:
        out = np.full((self.k, self.k), rate / (self.k - 1))
        out[np.diag_indices(self.k)] = 1 - rate
        return out

    def _joint(self, scale: float, bias: Array | float, transition: Array) -> tuple[float, Array, Array]:
        clean = softmax(scale * self.z + bias)
        joint = clean * transition[:, self.y].T
        q = np.maximum(joint.sum(axis=1), 1e-300)
        joint /= q[:, None]
        return -float(self.weight @ np.log(q)), clean, joint

    def simple(self, x: Array) -> tuple[float, Array]:
        """Log scale and the logit of one rate."""
        scale = float(np.exp(np.clip(x[0], -4, 5)))
        rate = self.max_rate / (1 + np.exp(-np.clip(x[1], -30, 30)))
        value, clean, joint = self._joint(scale, 0.0, self.symmetric(rate))
        kept = float(self.weight @ joint[self.rows, self.y])
        moved = self.weight.sum() - kept
        g_scale = scale * float(self.weight @ ((clean - joint) * self.z).sum(axis=1)) + x[0]
        g_rate = (kept / (1 - rate) - moved / max(rate, 1e-12)) * rate * (1 - rate / self.max_rate)
        return (value + 0.5 * x[0] ** 2) / self.n, np.array([g_scale, g_rate]) / self.n

    def full(self, x: Array, prior: Array) -> tuple[float, Array]:
        """Log scale, bias and a free transition matrix under Dirichlet pseudo-counts ``prior``."""
        k = self.k
        scale, bias = float(np.exp(np.clip(x[0], -4, 5))), x[1 : 1 + k]
        transition = softmax(x[1 + k :].reshape(k, k))
        value, clean, joint = self._joint(scale, bias, transition)
        residual = (clean - joint) * self.weight[:, None]
        counts = (joint * self.weight[:, None]).T @ self.onehot + prior
        value += 0.5 * (x[0] ** 2 + bias @ bias) - float((prior * np.log(np.maximum(transition, 1e-300))).sum())
        grad = np.empty_like(x)
        grad[0] = scale * (residual * self.z).sum() + x[0]
        grad[1 : 1 + k] = residual.sum(axis=0) + bias
        grad[1 + k :] = (transition * counts.sum(axis=1, keepdims=True) - counts).ravel()
        return value / self.n, grad / self.n

    def rate_error(self, scale: float, rate: float) -> float:
        """Standard error of one symmetric rate, the scale being estimated too."""
        clean = softmax(scale * self.z)
        p = clean[self.rows, self.y]
        other = rate / (self.k - 1)
        q = np.maximum((1 - rate) * p + other * (1 - p), 1e-12)
        by_rate = ((1 - p) / (self.k - 1) - p) / q
        margin = self.z[self.rows, self.y] - (clean * self.z).sum(axis=1)
        scores = np.stack([(1 - rate - other) * scale * p * margin / q, by_rate])
        fisher = (scores * self.weight) @ scores.T
        fisher[0, 0] += 1
        return float(np.sqrt(max(np.linalg.pinv(fisher)[1, 1], 0.0)))


def fit_multiclass(z: Array, y: NDArray[np.intp], weight: Array, class_conditional: bool) -> list[Model]:
    """Scale and one rate; with ``class_conditional`` also scale, bias and a rate per pair of classes."""
    z = z - z.mean(axis=1, keepdims=True)
    unit = float(np.average(np.abs(z).mean(axis=1), weights=weight)) + 1e-9
    like = _MulticlassLikelihood(z / unit, y, weight)
    options = {"maxiter": 60, "ftol": 1e-9, "gtol": 1e-6}
    runs = []
    for scale, rate in _STARTS:
        r = rate / like.max_rate
        start = np.array([np.log(scale), np.log(r / (1 - r))])
        runs.append(minimize(like.simple, start, jac=True, method="L-BFGS-B", options=options))
    best = min(runs, key=lambda run: run.fun)
    scale, rate = float(np.exp(np.clip(best.x[0], -4, 5))), float(like.max_rate / (1 + np.exp(-best.x[1])))
    transition, error = like.symmetric(rate), like.rate_error(scale, rate)
    models = [Model(scale / unit, np.zeros(like.k), transition, -best.fun * like.n, rate, error)]
    if class_conditional:
        models.append(_class_conditional(like, best.x[0], rate, error, unit, options))
    return models


def _class_conditional(
    like: _MulticlassLikelihood,
    log_scale: float,
    rate: float,
    error: float,
    unit: float,
    options: dict[str, Any],
) -> Model:
    k, base = like.k, like.symmetric(rate)
    prior = _PSEUDO_COUNTS * like.n / k * base
    start = np.r_[log_scale, np.zeros(k), np.log(np.maximum(base, 1e-3)).ravel()]
    run = minimize(like.full, start, args=(prior,), jac=True, method="L-BFGS-B", options=options)
    scale, bias = float(np.exp(np.clip(run.x[0], -4, 5))), run.x[1 : 1 + k]
    transition = softmax(run.x[1 + k :].reshape(k, k))
    share = np.average(softmax(scale * like.z + bias), axis=0, weights=like.weight)
    # The pseudo-counts' own likelihood at the matrix they came from is no evidence: take it out again.
    offset = float((prior * np.log(np.maximum(base, 1e-300))).sum())
    evidence = -run.fun * like.n - offset - (k - 1) - (k * (k - 1) - 1)
    return Model(scale / unit, bias, transition, evidence, float(share @ (1 - np.diag(transition))), error)
