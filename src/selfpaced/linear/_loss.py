"""The latent loss of (multinomial) logistic regression, its gradient, and a preconditioner, in passes over X.

Each pass walks over row blocks that fit in the cache, so that X is read once per gradient and no temporary grows with
n times the number of classes or features. Sums over the blocks of a table that is elsewhere are at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..distributed.table import Block, Sums, Table
from ..label_noise import NoiseModel, softmax_columns
from ..regularizers import Regularizer, Welsch
from ..regularizers.base import relative
from ._lbfgs import Metric

Matrix = Any  # dense array or CSR
Vector = NDArray[np.floating[Any]]
Codes = NDArray[np.intp]

CACHE_BYTES = 1 << 21  # cost: 2 MB, which stay in the processor's cache
WIDEST = 400  # cost: features above which curvatures are not factorised


@dataclass(frozen=True)
class Latent:
    """A rule (None: the plain log-loss) at a pace, one for all rows or one per class of the given label."""

    regularizer: Regularizer | None = None
    lam: Any = np.inf

    @cached_property
    def plain(self) -> bool:
        """Whether every weight is 1."""
        return self.regularizer is None or bool(np.all(np.isinf(self.lam)))

    @cached_property
    def _rule(self) -> Any:
        return None if self.regularizer is None else relative(self.regularizer)

    @cached_property
    def _exponent(self) -> Any:
        """On the log-loss Welsch is a power of the probability: exp(-l / lam^2) = p^(1 / lam^2)."""
        return np.asarray(self.lam, dtype=float) ** -2.0 if isinstance(self.regularizer, Welsch) else None

    def __call__(self, prob: Vector, codes: Codes) -> tuple[Vector, Vector | None]:
        """Latent loss and relative weight (None: all 1) from the probability of the given label."""
        if self.plain:
            return _log_loss(prob), None
        exponent = self._exponent
        if exponent is not None:
            own = float(exponent) if exponent.ndim == 0 else exponent[codes].astype(prob.dtype, copy=False)
            weight = _power(prob, own)
            return (1 - weight) / own, weight
        loss = _log_loss(prob)
        lam = self.lam if np.ndim(self.lam) == 0 else np.asarray(self.lam)[codes]
        return self._rule.latent(loss, lam), self.weight(loss, codes)

    def weight(self, loss: Vector, codes: Codes) -> Vector:
        """Relative weight from log-losses."""
        if self.plain:
            return np.ones_like(loss)
        lam = self.lam if np.ndim(self.lam) == 0 else np.asarray(self.lam)[codes]
        return np.asarray(self._rule.weight(loss, lam))


def _log_loss(prob: Vector) -> Vector:
    """-log(prob), finite where rounding has made the probability zero."""
    return -np.log(np.maximum(prob, np.finfo(prob.dtype).tiny))


def _power(prob: Vector, exponent: Any) -> Vector:
    """prob ** exponent; the exponents of the default paces (1/2, 1, 3/2) by a square root, which is far faster."""
    halves = 2.0 * exponent
    if np.ndim(exponent) or not 0.5 < halves < 3.5 or abs(halves - round(halves)) > 1e-9:
        return np.asarray(prob**exponent)
    return prob if round(halves) == 2 else np.sqrt(prob) if halves < 2 else prob * np.sqrt(prob)


class Objective:
    """The weighted mean of latent losses + ridge / 2 times the squared norm of the coefficients.

    Two classes are modelled by one margin. ``ridge`` is 1 / (C * total weight of all the data), also where only a part
    of them is at hand. Nothing changes after an objective is made: `at`, `penalised` and `weighted` give others on the
    same rows.
    """

    def __init__(
        self,
        X: Matrix,
        codes: Codes,
        n_classes: int,
        *,
        sample_weight: Vector | None = None,
        ridge: float = 0.0,
        fit_intercept: bool = True,
    ) -> None:
        self.X, self.codes, self.n_classes = X, codes, n_classes
        self.sample_weight, self.fit_intercept = sample_weight, fit_intercept
        self.n, self.n_features = len(codes), int(X.shape[1])
        self.n_outputs = 1 if n_classes == 2 else n_classes
        self.total = float(self.n if sample_weight is None else sample_weight.sum())
        self.ridge = ridge
        self.sign = None if n_classes > 2 else 2.0 * codes - 1.0
        self.latent = Latent()

    def at(self, latent: Latent) -> Objective:
        """The same rows under another latent loss."""
        return self._like(latent=latent)

    def penalised(self, ridge: float) -> Objective:
        """The same rows under another penalty."""
        return self._like(ridge=ridge)

    def weighted(self, sample_weight: Vector) -> Objective:
        """The plain loss of the same rows under other weights.

        The mean stays per unit of the data's own weight, so that the ridge keeps its meaning as weights fall.
        """
        other = self._like(latent=Latent(), sample_weight=sample_weight)
        for known in ("moments", "_gram"):
            other.__dict__.pop(known, None)
        return other

    def _like(self, **changed: Any) -> Objective:
        """One on the same rows."""
        other = copy(self)
        for name, value in changed.items():
            setattr(other, name, value)
        return other

    @property
    def size(self) -> int:
        """Number of parameters: coefficients and intercept of every output, as one vector."""
        return self.n_outputs * (self.n_features + 1)

    def blocks(self, small: bool = False) -> Iterator[tuple[Matrix, slice]]:
        """Row blocks that fit in the cache with their place among the rows; small ones where they are copied."""
        step = self._rows_per_block(small)
        for first in range(0, self.n, step):
            rows = slice(first, min(first + step, self.n))
            yield self.X if step >= self.n else self.X[rows], rows

    def _rows_per_block(self, small: bool) -> int:
        if sparse.issparse(self.X):
            # Slicing CSR copies; only the dense n x K scores need bounding.
            return max(self.n, 1) if self.n_outputs == 1 else max(1024, (1 << 22) // self.n_outputs)
        width = self.X.dtype.itemsize * (self.n_features + 2 * self.n_outputs)
        budget = min(CACHE_BYTES, max(self.n * width // 8, 1 << 16)) if small else CACHE_BYTES
        return int(max(64, budget // max(width, 1)))

    # ------------------------------------------------------------------------------------------- passes

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        """Value and gradient at the parameters ``x``."""
        value, flat = self.sums(x)
        coef = x.reshape(self.n_outputs, self.n_features + 1)[:, :-1]
        grad = flat.reshape(self.n_outputs, self.n_features + 1)
        grad /= self.total
        grad[:, :-1] += self.ridge * coef
        value = value / self.total + 0.5 * self.ridge * float(np.vdot(coef, coef))
        return value, flat

    def sums(self, x: Vector) -> tuple[float, Vector]:
        """Latent losses and their gradient, summed over the rows: what adds up over blocks."""
        params = x.reshape(self.n_outputs, self.n_features + 1)
        grad = np.zeros_like(params)
        share = self._binary if self.n_outputs == 1 else self._multinomial
        value = 0.0
        for block, rows in self.blocks():
            value += share(block, rows, params, grad)
        if not self.fit_intercept:
            grad[:, -1] = 0.0
        return value, grad.ravel()

    def _binary(self, block: Matrix, rows: slice, params: Vector, grad: Vector) -> float:
        sign = self.sign[rows]  # type: ignore[index]
        prob = sigmoid(class_scores(block, params)[0], sign)
        loss, weight = self.latent(prob, self.codes[rows])
        residual = prob - 1
        residual *= sign
        if weight is not None:
            residual *= weight
        value = self._weighted(loss, residual, rows)
        grad[0, :-1] += backward(block, residual)
        grad[0, -1] += residual.sum()
        return value

    def _multinomial(self, block: Matrix, rows: slice, params: Vector, grad: Vector) -> float:
        prob = softmax_columns(class_scores(block, params))
        codes = self.codes[rows]
        index = np.arange(len(codes))
        loss, weight = self.latent(prob[codes, index], codes)
        prob[codes, index] -= 1
        if weight is not None:
            prob *= weight
        value = self._weighted(loss, prob, rows)
        grad[:, :-1] += backward(block, prob)
        grad[:, -1] += prob.sum(axis=1)
        return value

    def _weighted(self, loss: Vector, residual: Vector, rows: slice) -> float:
        if self.sample_weight is None:
            return float(loss.sum())
        weight = self.sample_weight[rows]
        residual *= weight
        return float(weight @ loss)

    # ---------------------------------------------------------------------------------------- what rows say

    def scores(self, x: Vector) -> Vector:
        """Raw scores of all rows, shape (n, n_outputs)."""
        params, out = x.reshape(self.n_outputs, -1), np.empty((self.n, self.n_outputs))
        for block, rows in self.blocks():
            out[rows] = class_scores(block, params).T
        return out

    def losses(self, x: Vector) -> Vector:
        """Log-loss of every row's given label."""
        return loss_of_scores(self.scores(x), self.codes)

    # ------------------------------------------------------------------------------------------- geometry

    def curvature(self, at: Vector | None = None) -> Metric:
        """Inverse Hessian (its convex part) at parameters or, of the plain loss, at zero; see `standardized`.

        On a latent loss only near its minimum.  Far from it Newton-like steps run along directions that few
        rows support, and end in worse basins than steps in the plain geometry of the features.
        """
        wide = self.n_features > min(WIDEST, max(self.n, 50))
        if wide or sparse.issparse(self.X):
            return self.standardized(curvature=True)
        d = self.n_features
        hessian = self._gram / self.flatness if at is None else self._products(at)
        # The intercept has no penalty: a little of the mean curvature keeps the factor regular, and of a feature's
        # own one where that is far smaller, so that small features are not held back.
        diagonal = np.diagonal(hessian)
        mean = max(float(diagonal.mean()), 1e-12)
        hessian[np.diag_indices(d + 1)] += 1e-8 * np.where(diagonal < 1e-3 * mean, np.maximum(diagonal, 1e-20), mean)
        hessian[np.arange(d), np.arange(d)] += self.ridge
        try:
            factor = cho_factor(hessian, lower=True, check_finite=False)
        except LinAlgError:  # features far from zero: rounding of their squares hides the rest
            return self.standardized(curvature=True)

        def apply(grad: Vector, _: Any) -> Vector:
            out = cho_solve(factor, grad.reshape(-1, d + 1).T, check_finite=False).T
            if not self.fit_intercept:
                out[:, -1] = 0.0
            return np.ascontiguousarray(out).reshape(grad.shape)

        return Metric(apply)

    @cached_property
    def _gram(self) -> Vector:
        """Mean products of the features and a constant; the same for every penalty."""
        return self._products(None)

    def _products(self, at: Vector | None) -> Vector:
        """Mean products of the features and a constant, times the curvatures at parameters."""
        d = self.n_features
        out, mass = np.zeros((d + 1, d + 1)), 0.0
        for block, rows in self.blocks(small=True):
            weight = self._curvatures(block, rows, at)
            half = block if weight is None else block * np.sqrt(weight)[:, None]
            out[:-1, :-1] += half.T @ half  # one operand: BLAS then does half the work
            sums = block.sum(axis=0, dtype=np.float64) if weight is None else weight @ block
            out[-1, :-1] += sums
            mass += float(block.shape[0] if weight is None else weight.sum())
        out[:-1, -1], out[-1, -1] = out[-1, :-1], mass
        out /= self.total
        return out

    def _curvatures(self, block: Matrix, rows: slice, at: Vector | None) -> Vector | None:
        """Curvature of each row's latent loss in its score, times its weight; None: all the same."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        if at is None:
            return weight
        scores, codes = class_scores(block, at.reshape(self.n_outputs, -1)), self.codes[rows]
        if self.n_outputs == 1:
            # Differences of the slope, for any rule; rows of negative curvature have no say.
            margin, step = scores[0] * self.sign[rows], 1e-4  # type: ignore[index]
            curved = (self._slope(margin + step, codes) - self._slope(margin - step, codes)) / (2 * step)
            curved = np.maximum(curved, 0.0)
        else:
            prob = softmax_columns(scores)
            own = self.latent(prob[codes, np.arange(len(codes))], codes)[1]
            curved = (prob * (1 - prob)).mean(axis=0) * (1.0 if own is None else own)
        return curved.astype(block.dtype) if weight is None else (curved * weight).astype(block.dtype)

    def _slope(self, margin: Vector, codes: Codes) -> Vector:
        """Derivative of the latent loss in the margin of the given label."""
        prob = sigmoid(margin, 1.0)
        weight = self.latent(prob, codes)[1]
        return prob - 1 if weight is None else (prob - 1) * weight

    @property
    def flatness(self) -> float:
        """Inverse of the plain loss's curvature in a score, at zero."""
        return 4.0 if self.n_outputs == 1 else self.n_classes**2 / (self.n_classes - 1)

    def standardized(self, *, curvature: bool = False) -> Metric:
        """The geometry of centred features of unit variance, whatever units they come in.

        Sparse features rarer than the average keep the average's scale, lest a few rows move much.
        """
        d = self.n_features
        mean, variance = self.moments
        if sparse.issparse(self.X):
            variance = np.maximum(variance, variance.mean())
        scale = np.append(1.0 / np.maximum(variance / self.flatness + self.ridge, 1e-12), self.flatness)
        if not self.fit_intercept:
            scale[-1], mean = 0.0, np.zeros(d)

        def apply(grad: Vector, _: Any) -> Vector:
            out = grad.reshape(-1, d + 1).copy()
            out[:, :-1] -= out[:, -1:] * mean
            out *= scale
            out[:, -1] -= out[:, :-1] @ mean
            return out.reshape(grad.shape)

        return Metric(apply, curvature)

    @property
    def unit(self) -> float:
        """Unit of a gradient entry: the typical spread of a feature, where that is below 1."""
        return min(1.0, float(np.sqrt(self.moments[1].mean())) or 1.0)

    @cached_property
    def moments(self) -> tuple[Vector, Vector]:
        """Weighted mean and variance of the features."""
        first, second = np.zeros(self.n_features), np.zeros(self.n_features)
        for block, rows in self.blocks(small=True):
            weight = np.ones(block.shape[0]) if self.sample_weight is None else self.sample_weight[rows]
            first += block.T @ weight
            second += (block.power(2) if sparse.issparse(block) else block * block).T @ weight
        mean = first / self.total
        return mean, np.maximum(second / self.total - mean**2, 0.0)


def loss_of_scores(scores: Vector, codes: Codes) -> Vector:
    """Log-loss of the given labels from raw scores (one column: the margin of the second class)."""
    if scores.shape[1] == 1:
        margin = (2.0 * codes - 1.0) * scores[:, 0]
        loss: Vector = np.exp(-np.abs(margin))
        np.log1p(loss, out=loss)
        loss -= np.minimum(margin, 0.0)
        return loss
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(codes)), codes])


def predicted(scores: Vector) -> Codes:
    """Class with the largest score."""
    return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)


def sigmoid(margin: Vector, sign: Any) -> Vector:
    """1 / (1 + exp(-sign * margin)); the bound keeps exp from overflowing, where the result is 0 anyway."""
    out: Vector = margin * sign
    np.negative(out, out=out)
    np.minimum(out, 690.0, out=out)
    np.exp(out, out=out)
    out += 1.0
    np.reciprocal(out, out=out)
    return out


def class_scores(block: Matrix, params: Vector) -> Vector:
    """Scores of the rows of a block, one ROW of the result for each row of parameters: sums over classes are fast."""
    coef = params[:, :-1]
    if coef.dtype != block.dtype:
        coef = coef.astype(block.dtype)
    if len(coef) == 1:
        scores = (block @ coef[0])[None]
    else:
        scores = (block @ coef.T).T if sparse.issparse(block) else coef @ block.T
    return np.asarray(np.add(scores, params[:, -1:], order="C", dtype=np.float64))


def backward(block: Matrix, residual: Vector) -> Vector:
    """residual @ block in the block's precision."""
    if residual.dtype != block.dtype:
        residual = residual.astype(block.dtype)
    if residual.ndim == 1:
        return np.asarray(block.T @ residual)
    return np.asarray((block.T @ residual.T).T if sparse.issparse(block) else residual @ block)


# ------------------------------------------------------------------------------------------- tables in blocks


@dataclass(frozen=True, eq=False)
class TableObjective:
    """The objective of all rows of a table: `Objective`, whose passes the table makes."""

    table: Table
    n_classes: int
    total: float
    ridge: float = 0.0
    fit_intercept: bool = True
    latent: Latent = field(default_factory=Latent)

    @property
    def n_outputs(self) -> int:
        """Scores of a row: one margin for two classes."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.n_outputs * (self.table.n_features + 1)

    def at(self, latent: Latent) -> TableObjective:
        """The same rows under another latent loss."""
        return replace(self, latent=latent)

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        """Value and gradient at the parameters ``x``."""
        sums = self.table.reduce(gradient, x, self.latent, self.n_classes, self.fit_intercept)
        coef = x.reshape(self.n_outputs, -1)[:, :-1]
        value, grad = sums[0] / self.total, (sums[1] / self.total).reshape(self.n_outputs, -1)
        grad[:, :-1] += self.ridge * coef
        return value + 0.5 * self.ridge * float(np.vdot(coef, coef)), grad.ravel()


def gradient(block: Block, x: Vector, latent: Latent, n_classes: int, fit_intercept: bool) -> Sums:
    """Latent losses of a block and their gradient, summed; no penalty."""
    own = Objective(block.X, block.y, n_classes, sample_weight=block.weight, fit_intercept=fit_intercept)
    return Sums(own.at(latent).sums(x))


def clean_shares(block: Block, x: Vector, shift: Vector, channel: NoiseModel, n_classes: int) -> Sums:
    """Probabilities of the clean classes of a block, summed, and the weight they are summed with."""
    proba = channel.proba(Objective(block.X, block.y, n_classes).scores(x) + shift)
    weight = np.ones(len(proba)) if block.weight is None else block.weight
    return Sums((weight @ proba, float(weight.sum())))
