"""A linear regression that a sample has decided, carried over to all rows of a table by sums over blocks.

The sample says which rule weighs the rows and at which pace, or which rows are grossly wrong. What is left is weighted
least squares: the weights follow from the residuals, block by block, and every pass gives the normal equations of the
next step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines import Block, Sums, Table
from .squares import Factor

Floats = NDArray[np.floating[Any]]
#: Weights of the rows of a block from features, given values and residuals; None: all 1.
Weigh = Callable[[Any, Floats, Floats], Floats]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Centred and scaled features, with a leading column of ones for the intercept, and the centred target."""

    center: Floats
    back: Floats
    offset: float
    fit_intercept: bool

    def features(self, X: Any) -> Floats:
        """Features of a block in these coordinates, in double precision."""
        lead = int(self.fit_intercept)
        out = np.empty((X.shape[0], X.shape[1] + lead))
        out[:, :lead] = 1.0
        np.subtract(X, self.center, out=out[:, lead:])
        out[:, lead:] *= self.back
        return out

    def ridge(self, alpha: float) -> Floats:
        """The penalty of each coordinate."""
        return np.concatenate([np.zeros(int(self.fit_intercept)), alpha * self.back**2])

    def coefficients(self, b: Floats) -> tuple[Floats, float]:
        """Coefficients of the given features, and the intercept."""
        coef = self.back * (b[1:] if self.fit_intercept else b)
        return coef, float(self.offset + b[0] - self.center @ coef) if self.fit_intercept else 0.0

    def point(self, coef: Floats, intercept: float) -> Floats:
        """The coordinates of a model."""
        slopes = np.divide(coef, self.back, out=np.zeros(len(coef)), where=self.back > 0)
        return (
            np.concatenate([[intercept - self.offset + self.center @ coef], slopes]) if self.fit_intercept else slopes
        )


def moments(block: Block, shift: Floats, offset: float) -> Sums:
    """Weight of the rows, and sums of features, their squares and the target about a provisional centre."""
    weight = np.ones(len(block.y)) if block.weight is None else block.weight
    centred = np.asarray(block.X - shift, dtype=np.float64)
    return Sums((float(weight.sum()), weight @ centred, weight @ centred**2, float(weight @ (block.y - offset))))


def residual_sums(block: Block, at: Coordinates, b: Floats, weigh: Weigh | None) -> Sums:
    """Normal matrix and gradient of the weighted squares at a point, and the weight of the rows."""
    Z = at.features(block.X)
    residuals = block.y - at.offset - Z @ b
    weight = np.ones(len(residuals)) if weigh is None else weigh(block.X, block.y, residuals)
    weight = weight if block.weight is None else weight * block.weight
    half = Z * np.sqrt(weight)[:, None]
    return Sums((half.T @ half, Z.T @ (weight * residuals), float(weight.sum())))


def coordinates(table: Table, shift: Floats, offset: float, fit_intercept: bool) -> Coordinates:
    """The centre and spread of all rows, taken about those of a sample so that no digits are lost: one pass."""
    if not fit_intercept:
        shift, offset = np.zeros(table.n_features), 0.0
    mass, first, second, target = table.reduce(moments, shift, offset)
    mean = first / mass if fit_intercept else np.zeros_like(first)
    center = shift + mean
    spread = np.sqrt(np.maximum(second / mass - mean**2, 0.0))
    # A constant column is rounding noise once centred: it must not be scaled up into a feature.
    spread[spread <= 10 * np.finfo(table.dtype).eps * np.abs(center)] = 0.0
    back = np.divide(1.0, spread, out=np.zeros(len(spread)), where=spread > 0)
    return Coordinates(center, back, offset + target / mass if fit_intercept else 0.0, fit_intercept)


def settled(
    table: Table, at: Coordinates, b: Floats, weigh: Weigh | None, *, alpha: float, tol: float, max_iter: int
) -> tuple[Floats, int, bool]:
    """Weighted least squares from a point until no coordinate moves by more than ``tol``: where, passes, converged."""
    ridge = at.ridge(alpha)
    for passes in range(1, max_iter + 1):
        gram, gradient, _ = table.reduce(residual_sums, at, b, weigh)
        gram[np.diag_indices_from(gram)] += ridge
        step = Factor.of(gram).solve(gradient - ridge * b)
        b = b + step
        if np.abs(step).max(initial=0.0) <= tol:
            return b, passes, True
    return b, max_iter, False


__all__ = ["Coordinates", "Weigh", "coordinates", "moments", "residual_sums", "settled"]
