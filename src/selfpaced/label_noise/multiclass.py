"""Label noise in many classes: none, one rate, one class into one other, or a free matrix under pseudo-counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .binary import MAX_RATE
from .model import Array, Model, softmax, softmax_columns, symmetric

PSEUDO_COUNTS = 0.25  # a choice: what holds a free transition matrix near one rate, as a share of the rows
MAX_PAIRWISE = 30  # cost: classes above which there is no rate per pair
ROWS_COMPARED = 1000  # cost: rows that tell a scale and one rate where candidates are compared


class _MulticlassLikelihood:
    """Likelihood in K classes: (log scale, rate), (log scale, bias) or (log scale, bias, transition).

    Tables have a row for every class and a column for every sample: sums over few classes are fast so.
    """

    def __init__(self, z: Array, y: NDArray[np.intp], weight: Array) -> None:
        self.k, self.n = z.shape
        self.z, self.y, self.weight = z, y, weight
        self.own = (y, np.arange(self.n))  # the place of given labels
        self.members = np.zeros((self.k, self.n))
        self.members[self.own] = 1.0
        self.max_rate = 2 * MAX_RATE * (self.k - 1) / self.k  # labels say nothing at (k - 1) / k

    def _joint(self, scores: Array, transition: Array) -> tuple[float, Array, Array]:
        clean = softmax_columns(scores)
        joint = clean * transition[:, self.y]
        q = np.maximum(joint.sum(axis=0), 1e-300)
        joint /= q
        return -float(self.weight @ np.log(q)), clean, joint

    def rate_of(self, x: Array) -> float:
        """The rate that a logit stands for."""
        return float(self.max_rate / (1 + np.exp(-np.clip(x[1], -30, 30))))

    def simple(self, x: Array) -> tuple[float, Array, Array]:
        """Value, gradient and empirical Fisher information in the log scale and the logit of one rate."""
        scale, rate = float(np.exp(np.clip(x[0], -4, 5))), self.rate_of(x)
        clean = softmax_columns(scale * self.z)
        own = clean[self.own]
        clean *= self.z
        by_scale = (1 - self.k / (self.k - 1) * rate) * scale * own * (self.z[self.own] - clean.sum(axis=0))
        by_rate = (1 - self.k * own) / (self.k - 1)
        q = np.maximum(own + rate * by_rate, 1e-300)
        slopes = np.stack([by_scale, by_rate * (rate * (1 - rate / self.max_rate))]) / q
        weighted = slopes * self.weight
        fisher = weighted @ slopes.T
        fisher[0, 0] += 1
        grad = -weighted.sum(axis=1)
        return -float(self.weight @ np.log(q)) + 0.5 * x[0] ** 2, grad + np.array([x[0], 0.0]), fisher

    def unbiased(self, x: Array) -> tuple[float, Array]:
        """Log scale and, where there are further entries, a bias; without noise."""
        scale, bias = float(np.exp(np.clip(x[0], -6, 5))), x[1:]
        p = softmax_columns(scale * self.z + bias[:, None] if len(bias) else scale * self.z)
        value = -float(self.weight @ np.log(np.maximum(p[self.own], 1e-300)))
        p[self.own] -= 1
        p *= self.weight
        held = max(float(x[0]), 0.0)  # scores that know nothing may shrink to nothing
        grad = np.r_[scale * np.vdot(p, self.z) + held, p.sum(axis=1) + bias if len(bias) else []]
        return (value + 0.5 * (held**2 + bias @ bias)) / self.n, grad / self.n

    def _under(self, x: Array, transition: Array) -> tuple[float, Array, Array]:
        """Value, slopes in log scale and bias, and expected counts of pairs of labels, under a transition matrix."""
        scale, bias = float(np.exp(np.clip(x[0], -4, 5))), x[1:]
        value, clean, joint = self._joint(scale * self.z + bias[:, None], transition)
        joint *= self.weight
        residual = clean * self.weight - joint
        value += 0.5 * (x[0] ** 2 + bias @ bias)
        grad = np.r_[scale * np.vdot(residual, self.z) + x[0], residual.sum(axis=1) + bias]
        return value, grad, joint @ self.members.T

    def full(self, x: Array, prior: Array) -> tuple[float, Array]:
        """Log scale, bias and a free transition matrix under Dirichlet pseudo-counts ``prior``."""
        k = self.k
        transition = softmax(x[1 + k :].reshape(k, k))
        value, grad, counts = self._under(x[: 1 + k], transition)
        cost, by_logit = _free(transition, counts, prior)
        return (value + cost) / self.n, np.r_[grad, by_logit] / self.n

    def one_way(self, x: Array, a: int, b: int) -> tuple[float, Array]:
        """Log scale, bias and the logit of one rate, by which ``a`` is recorded as ``b``."""
        rate = one_way_rate(x)
        value, grad, counts = self._under(x[:-1], one_way_transition(self.k, a, b, rate))
        by_rate = counts[a, a] / (1 - rate) - counts[a, b] / rate
        return value / self.n, np.r_[grad, by_rate * rate * (1 - rate / MAX_RATE)] / self.n

    def by_pair(self, x: Array, scale: float, base: Array) -> tuple[float, Array]:
        """Factors of the differences of two scores, near one scale, and a bias, under a transition matrix.

        Where there are further entries, they are its logits, under pseudo-counts.
        """
        k, (a, b) = self.k, np.triu_indices(self.k, 1)
        factors, bias, rest = np.split(x, [len(a), len(a) + k])
        transition = softmax(rest.reshape(k, k)) if len(rest) else base
        value, clean, joint = self._joint(scale * pair_factors(factors, k) @ self.z + bias[:, None], transition)
        joint *= self.weight
        residual = clean * self.weight - joint
        slope = residual @ self.z.T * (scale / k)
        off = factors - 1.0
        grad = [slope[a, a] + slope[b, b] - slope[a, b] - slope[b, a] + off, residual.sum(axis=1) + bias]
        value += 0.5 * float(off @ off + bias @ bias)
        if len(rest):
            cost, by_logit = _free(transition, joint @ self.members.T, PSEUDO_COUNTS * self.n / k * base)
            value += cost
            grad.append(by_logit)
        return value / self.n, np.concatenate(grad) / self.n

    def one_way_error(self, x: Array, a: int, b: int) -> float:
        """Standard error of that rate, scale and bias being estimated too."""
        scale, rate = float(np.exp(np.clip(x[0], -4, 5))), one_way_rate(x)
        scores = scale * self.z + x[1:-1, None]
        _, clean, joint = self._joint(scores, one_way_transition(self.k, a, b, rate))
        by_bias = joint - clean
        by_rate = joint[a] * ((self.y == b) / rate - (self.y == a) / (1 - rate))
        scores = np.vstack([(by_bias * self.z).sum(axis=0), by_bias, by_rate])
        fisher = (scores * self.weight) @ scores.T
        fisher[np.arange(self.k + 1), np.arange(self.k + 1)] += 1.0
        return float(np.sqrt(max(np.linalg.pinv(fisher)[-1, -1], 0.0)))

    def rate_error(self, x: Array) -> float:
        """Standard error of one symmetric rate, the scale being estimated too."""
        rate, fisher = self.rate_of(x), self.simple(x)[2]
        chain = np.array([1.0, max(rate * (1 - rate / self.max_rate), np.finfo(float).tiny)])
        return float(np.sqrt(max(np.linalg.pinv(fisher / np.outer(chain, chain))[1, 1], 0.0)))


def pair_factors(factors: Array, k: int) -> Array:
    """The matrix by which the difference of every two scores gets a factor of its own; equal ones are one scale."""
    out = np.zeros((k, k))
    out[np.triu_indices(k, 1)] = -factors / k
    out += out.T
    return np.asarray(out - np.diag(out.sum(axis=1)))


def one_way_rate(x: Array) -> float:
    """The rate that the last logit stands for."""
    return float(MAX_RATE / (1 + np.exp(-np.clip(x[-1], -30, 30))))


def one_way_transition(k: int, a: int, b: int, rate: float) -> Array:
    """Labels are right, but for a share of one class that is recorded as one other."""
    out = np.eye(k)
    out[a, a], out[a, b] = 1 - rate, rate
    return out


def _one_rate(like: _MulticlassLikelihood, max_iter: int = 25) -> tuple[Array, float]:
    """Log scale and logit of one rate by damped Fisher scoring from both basins, and the value there."""
    best, lowest = np.zeros(2), np.inf
    for scale, rate in ((1.5, 0.03), (4.0, 0.3)):  # in each of the two basins, without noise and with it
        r = rate / like.max_rate
        x, damping = np.array([np.log(scale), np.log(r / (1 - r))]), 1e-2
        value, grad, fisher = like.simple(x)
        for _ in range(max_iter):
            damped = fisher + np.diag(damping * np.diagonal(fisher) + 1e-6)
            trial = x - np.clip(np.linalg.solve(damped, grad), -3, 3)
            new = like.simple(trial)
            if new[0] > value + 1e-12:
                damping *= 8
                if damping > 1e3:
                    break
                continue
            gain, damping = value - new[0], 0.3 * damping
            x, (value, grad, fisher) = trial, new
            if gain < 0.01 or (gain < 0.1 and value > lowest + 2.0):  # done, or on the way to the worse basin
                break
        if value < lowest:
            best, lowest = x, value
    return best, lowest


def _minimum(function: Callable[..., tuple[float, Array]], start: Array, *args: Any) -> Any:
    options = {"maxiter": 60, "ftol": 1e-6, "gtol": 1e-5}
    return minimize(function, start, args=args, jac=True, method="L-BFGS-B", options=options)


def _scaled(z: Array, weight: Array) -> tuple[Array, float]:
    """Centred scores at a common size, classes as rows."""
    z = z.T - z.mean(axis=1)
    unit = float(np.average(np.abs(z).mean(axis=0), weights=weight)) + 1e-9
    return np.ascontiguousarray(z / unit), unit


def fit_multiclass(z: Array, y: NDArray[np.intp], weight: Array, shift: bool, noiseless: bool) -> list[Model]:
    """Scale and one rate; with ``shift`` also scale, bias and a rate per pair; models without noise."""
    by_pair = shift and z.shape[1] <= MAX_PAIRWISE
    z, unit = _scaled(z, weight)
    like = _MulticlassLikelihood(z, y, weight)
    x, value = _one_rate(like)
    models = [_one_rate_model(like, x, value, unit)]
    if by_pair:
        models.append(_class_conditional(like, x[0], models[0].rate, models[0].error, unit))
    if noiseless:
        clean = _without_noise(like, unit, shift)
        models += _one_way(like, clean[0].scale * unit, unit) if by_pair else []
        with_noise, without = (max(m.evidence for m in some) for some in (models, clean))
        if by_pair and with_noise > without:
            by_pairs, start = _scaled_by_pair(like, clean[-1], unit)
            clean.append(by_pairs)
            if by_pairs.evidence > 0.5 * (with_noise + without):  # they explain half of what noise explains
                models.append(_noisy_by_pair(like, models[0], start, unit))
        models += clean
    return models


def _scaled_by_pair(like: _MulticlassLikelihood, clean: Model, unit: float) -> tuple[Model, Array]:
    """The model without noise, by the evidence that it has if every pair of classes has a scale of its own.

    Between classes that look alike, scores are mostly overfitted. At the scale of the other classes such scores
    contradict many labels, which looks like noise. The prior of the factors is their Occam factor.
    """
    run = _by_pair(like, clean.scale * unit, np.eye(like.k))
    return replace(clean, evidence=-run.fun * like.n - (like.k - 1)), run.x


def _noisy_by_pair(like: _MulticlassLikelihood, one_rate: Model, start: Array, unit: float) -> Model:
    """A transition matrix near one rate, with a scale for every pair of classes."""
    k, base = like.k, symmetric(one_rate.rate, like.k)
    run = _by_pair(like, one_rate.scale * unit, base, start)
    matrix, bias, transition = _parts(run.x, one_rate.scale * unit, k)
    clean = softmax_columns(matrix @ like.z + bias[:, None])
    rate = float(np.average(clean, axis=1, weights=like.weight) @ (1 - np.diag(transition)))
    evidence = -_prior_at(PSEUDO_COUNTS * like.n / k * base, base) - run.fun * like.n - (k - 1) - (k * (k - 1) - 1)
    return Model(float(np.trace(matrix)) / (k - 1) / unit, bias, transition, evidence, rate, one_rate.error)


def scaled_by_pair(
    z: Array, y: NDArray[np.intp], weight: Array, base: Array, scale: float
) -> tuple[Array, Array, Array]:
    """Matrix for logits whose pairs of classes have scales of their own, the bias, and a transition matrix near one."""
    columns, unit = _scaled(z, weight)
    like = _MulticlassLikelihood(columns, y, weight)
    start = _by_pair(like, scale * unit, base).x  # before a rate explains what a scale can
    matrix, bias, transition = _parts(_by_pair(like, scale * unit, base, start).x, scale * unit, like.k)
    return matrix / unit, bias, transition


def _by_pair(like: _MulticlassLikelihood, scale: float, base: Array, start: Array | None = None) -> Any:
    """The best factors and bias under a transition matrix; with a start, also the best matrix near it."""
    k = like.k
    x = np.r_[np.ones(k * (k - 1) // 2), np.zeros(k)]
    x = x if start is None else np.r_[start, np.log(np.maximum(base, 1e-3)).ravel()]
    return _minimum(like.by_pair, x, scale, base)


def _parts(x: Array, scale: float, k: int) -> tuple[Array, Array, Array]:
    """Matrix on the scores, bias and transition matrix."""
    m = k * (k - 1) // 2
    return scale * pair_factors(x[:m], k), x[m : m + k], softmax(x[m + k :].reshape(k, k))


def _free(transition: Array, counts: Array, prior: Array) -> tuple[float, Array]:
    """What pseudo-counts add to the value, and the slopes in the logits of a free transition matrix."""
    counts = counts + prior
    cost = -float((prior * np.log(np.maximum(transition, 1e-300))).sum())
    return cost, (transition * counts.sum(axis=1, keepdims=True) - counts).ravel()


def _prior_at(prior: Array, base: Array) -> float:
    """Log-likelihood of pseudo-counts at the matrix that they came from, which is no evidence."""
    return float((prior * np.log(np.maximum(base, 1e-300))).sum())


def _one_rate_model(like: _MulticlassLikelihood, x: Array, value: float, unit: float) -> Model:
    scale, rate = float(np.exp(np.clip(x[0], -4, 5))), like.rate_of(x)
    error = like.rate_error(x)
    return Model(scale / unit, np.zeros(like.k), symmetric(rate, like.k), -value, rate, error)


def _without_noise(like: _MulticlassLikelihood, unit: float, shift: bool) -> list[Model]:
    """A scale; a scale and a bias."""
    models, start = [], np.array([np.log(1.5)])
    for bias in [False, True][: 1 + shift]:
        run = _minimum(like.unbiased, np.r_[start, np.zeros(like.k)] if bias else start)
        start, shifts = run.x[:1], run.x[1:] if bias else np.zeros(like.k)
        evidence = -run.fun * like.n - (like.k - 1) * bias
        scale = float(np.exp(np.clip(run.x[0], -6, 5))) / unit
        models.append(Model(scale, shifts - shifts.mean(), np.eye(like.k), evidence, 0.0, 0.0, noisy=False))
    return models


def _class_conditional(like: _MulticlassLikelihood, log_scale: float, rate: float, error: float, unit: float) -> Model:
    k, base = like.k, symmetric(rate, like.k)
    prior = PSEUDO_COUNTS * like.n / k * base
    start = np.r_[log_scale, np.zeros(k), np.log(np.maximum(base, 1e-3)).ravel()]
    run = _minimum(like.full, start, prior)
    scale, bias = float(np.exp(np.clip(run.x[0], -4, 5))), run.x[1 : 1 + k]
    transition = softmax(run.x[1 + k :].reshape(k, k))
    share = np.average(softmax_columns(scale * like.z + bias[:, None]), axis=1, weights=like.weight)
    evidence = -_prior_at(prior, base) - run.fun * like.n - (k - 1) - (k * (k - 1) - 1)
    return Model(scale / unit, bias, transition, evidence, float(share @ (1 - np.diag(transition))), error)


def _one_way(like: _MulticlassLikelihood, clean_scale: float, unit: float) -> list[Model]:
    """One class recorded as one other, where labels ask for it: k^2 rates would cost more than this one is worth."""
    (a, b), z = _asked_for(like, clean_scale)
    k = like.k
    if z**2 < 2 * np.log(k * (k - 1)):  # the largest of so many scores is as large without noise
        return []
    best = _minimum(like.one_way, np.r_[max(np.log(clean_scale), -4.0), np.zeros(k + 1)], a, b)
    rate, scale, bias = one_way_rate(best.x), float(np.exp(np.clip(best.x[0], -4, 5))), best.x[1:-1]
    share = float(np.average(softmax_columns(scale * like.z + bias[:, None])[a], weights=like.weight))
    evidence = -best.fun * like.n - (k - 1) - np.log(k * (k - 1))  # which of the pairs was a choice, too
    error = share * like.one_way_error(best.x, a, b)
    return [Model(scale / unit, bias, one_way_transition(k, a, b, rate), evidence, share * rate, error)]


def _asked_for(like: _MulticlassLikelihood, clean_scale: float) -> tuple[tuple[int, int], float]:
    """The two classes whose rate has the largest score in a model that knows no noise, and its standard errors."""
    clean = softmax_columns(clean_scale * like.z)
    odds = clean / np.maximum(clean[like.own], 1e-9)
    members = like.members * like.weight
    own = members.sum(axis=1, keepdims=True)
    z = (odds @ members.T - own) / np.sqrt(np.square(odds) @ members.T + own + 1e-300)
    np.fill_diagonal(z, -np.inf)
    a, b = np.unravel_index(int(np.argmax(z)), z.shape)
    return (int(a), int(b)), float(z[a, b])


def one_rate_multiclass(logits: Array, y: NDArray[np.intp], weight: Array) -> Array:
    """Log-likelihood of every given label under scale and one rate, fitted to every entry of ``logits``."""
    out = np.empty(logits.shape[:2])
    every = slice(None, None, -(-len(y) // ROWS_COMPARED))
    for row, scores in zip(out, logits, strict=True):
        z, _ = _scaled(scores, weight)
        like = _MulticlassLikelihood(np.ascontiguousarray(z[:, every]), y[every], weight[every])
        x, _ = _one_rate(like)
        rate, k = like.rate_of(x), like.k
        own = softmax_columns(float(np.exp(np.clip(x[0], -4, 5))) * z)[y, np.arange(len(y))]
        row[:] = np.log(np.maximum(rate / (k - 1) + (1 - rate * k / (k - 1)) * own, 1e-12))
    return out
