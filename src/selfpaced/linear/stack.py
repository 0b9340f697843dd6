"""The objectives outside every fold at once: rows are read once for all folds, and one product serves them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..regularizers import Welsch
from .objective import BLOCK_BYTES, Codes, Latent, Matrix, Vector, backward, class_scores

Rows = Any

MANY = 10_000  # cost: probabilities above which their digits do


@dataclass(frozen=True, eq=False)
class Stack:
    """Weighted means of latent losses + ridge / 2 times the squared norm of the coefficients, as `Objective` has one.

    Attributes
    ----------
    X, codes : matrix, ndarray
        All rows, and their given labels.
    n_classes : int
        Number of classes; two are modelled by one margin.
    weight : ndarray of shape (n_objectives, n)
        Weight of every row in every objective: 0 where it is held out.
    ridge : float
        As in `Objective`.
    fit_intercept : bool
        Whether the intercepts are free.
    latent : Latent
        The loss.
    """

    X: Matrix
    codes: Codes
    n_classes: int
    weight: Vector
    ridge: float
    fit_intercept: bool
    latent: Latent

    def __call__(self, points: Vector, which: Rows) -> tuple[Vector, Vector]:
        """Values and gradients of some objectives, each at its own parameters."""
        outputs, d = (1 if self.n_classes == 2 else self.n_classes), self.X.shape[1]
        params = points.reshape(-1, d + 1)
        weight = self.weight if len(which) == len(self.weight) else self.weight[which]
        value, grad = np.zeros(len(points)), np.zeros_like(params)
        share = self._binary if outputs == 1 else self._multinomial
        for rows in self._blocks(len(params)):
            block = self.X if rows == slice(0, len(self.codes)) else self.X[rows]
            value += share(block, self.codes[rows], params, weight[:, rows], grad)
        total = weight.sum(axis=1)
        grad = grad.reshape(len(points), outputs, d + 1) / total[:, None, None]
        coef = points.reshape(grad.shape)[:, :, :-1]
        grad[:, :, :-1] += self.ridge * coef
        if not self.fit_intercept:
            grad[:, :, -1] = 0.0
        return value / total + 0.5 * self.ridge * np.square(coef).sum(axis=(1, 2)), grad.reshape(points.shape)

    def _blocks(self, outputs: int) -> Iterator[slice]:
        """Places of rows that fit in the cache with all that is made of them."""
        n = len(self.codes)
        if sparse.issparse(self.X):  # slicing copies; only the dense scores need bounding
            step = max(1024, (1 << 22) // outputs)
        else:
            step = max(64, BLOCK_BYTES // (8 * (self.X.shape[1] + 3 * outputs)))
        for first in range(0, n, step):
            yield slice(first, min(first + step, n))

    def _binary(self, block: Matrix, codes: Codes, params: Vector, weight: Vector, grad: Vector) -> Vector:
        sign = 2.0 * codes - 1.0
        margin = class_scores(block, params)
        margin *= sign
        margin = margin.astype(self._digits, copy=False)
        bound = 80.0 if margin.dtype == np.float32 else 690.0  # keeps exp from overflowing
        prob = np.minimum(-margin, bound)
        np.exp(prob, out=prob)
        prob += 1.0
        if self.latent.plain:
            loss, own = np.log(prob) - np.minimum(margin + bound, 0.0), None
        np.reciprocal(prob, out=prob)
        if not self.latent.plain:
            loss, own = self.latent(prob, codes)
        residual = prob - 1  # not in place: a power of 1 is the probability itself
        if own is not None:
            residual *= own
        residual = residual * (sign * weight)
        grad[:, :-1] += backward(block, residual)
        grad[:, -1] += residual.sum(axis=1)
        return np.asarray(np.einsum("ij,ij->i", weight, loss.astype(np.float64, copy=False)))

    def _multinomial(self, block: Matrix, codes: Codes, params: Vector, weight: Vector, grad: Vector) -> Vector:
        count, n = weight.shape
        scores = class_scores(block, params).reshape(count, -1, n)
        scores -= scores.max(axis=1, keepdims=True)
        prob = scores.astype(self._digits, copy=False)
        table, place = prob.reshape(count, -1), codes * n + np.arange(n)  # of given labels
        given = table[:, place]
        np.exp(prob, out=prob)
        total = prob.sum(axis=1)
        prob /= total[:, None]
        if self.latent.plain:
            loss, own = np.log(total) - given, None
        else:
            loss, own = self.latent(table[:, place], codes)
        table[:, place] -= 1
        prob *= (weight if own is None else own * weight)[:, None].astype(prob.dtype, copy=False)
        residual = prob.reshape(-1, n)
        grad[:, :-1] += backward(block, residual)
        grad[:, -1] += residual.sum(axis=1, dtype=np.float64)
        return np.asarray(np.einsum("ij,ij->i", weight, loss.astype(np.float64, copy=False)))

    @property
    def _digits(self) -> Any:
        """The precision of probabilities: single, where there are so many that it costs and the rule knows it.

        Exponentials take a third of the time so.  Every row's own rounding is far below the tolerance of fold fits,
        and they do not add up: scores and sums have double precision.
        """
        known = self.latent.plain or isinstance(self.latent.regularizer, Welsch)
        return np.float32 if known and self.weight.size * max(self.n_classes - 1, 1) > MANY else np.float64
