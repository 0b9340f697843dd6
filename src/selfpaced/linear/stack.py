"""The objectives outside every fold at once: rows are read once for all folds, and one product serves them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .objective import BLOCK_BYTES, Codes, Latent, Matrix, Vector, backward, class_scores, sigmoid, softmax_columns

Rows = Any


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
        prob = sigmoid(class_scores(block, params), sign)
        loss, own = self.latent(prob, codes)
        residual = prob - 1  # not in place: a power of 1 is the probability itself
        residual *= sign
        residual *= weight if own is None else own * weight
        grad[:, :-1] += backward(block, residual)
        grad[:, -1] += residual.sum(axis=1)
        return np.asarray(np.einsum("ij,ij->i", weight, loss))

    def _multinomial(self, block: Matrix, codes: Codes, params: Vector, weight: Vector, grad: Vector) -> Vector:
        count, n = weight.shape
        prob = softmax_columns(class_scores(block, params).reshape(count, -1, n))
        index = np.arange(n)
        loss, own = self.latent(prob[:, codes, index], codes)
        prob[:, codes, index] -= 1
        prob *= (weight if own is None else own * weight)[:, None]
        residual = prob.reshape(-1, n)
        grad[:, :-1] += backward(block, residual)
        grad[:, -1] += residual.sum(axis=1)
        return np.asarray(np.einsum("ij,ij->i", weight, loss))
