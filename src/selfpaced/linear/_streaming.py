"""A linear regression that a sample has decided, carried over to all rows of a table by sums over blocks.

The sample says which rule weighs the rows and at which pace, or which rows are grossly wrong. What is left is weighted
least squares: the weights follow from the residuals, block by block, and every pass gives the normal equations of the
next step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..distributed import Block, Sums, Table
from ._least_squares import Factor, independent_axes, triangular

Floats = NDArray[np.floating[Any]]
#: Weights of the rows of a block from features, given values and residuals; None: all 1.
Weigh = Callable[[Any, Floats, Floats], Floats]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Centred and scaled features, with a leading column of ones for the intercept, and the centred target.

    Sparse features are scaled alone. Where columns depend on each other, ``back`` is a matrix: the coordinates are
    independent axes, of which it makes the coefficients of the given features.
    """

    center: Floats
    back: Floats
    offset: float
    fit_intercept: bool

    def features(self, X: Any) -> Any:
        """Features of a block in these coordinates, in double precision."""
        lead = int(self.fit_intercept)
        if sparse.issparse(X):
            scaled = sparse.csr_array(X, dtype=np.float64) @ sparse.diags_array(self.back)
            return sparse.hstack([np.ones((X.shape[0], lead)), scaled], format="csr") if lead else scaled
        if self.back.ndim == 2:
            turned = (X - self.center) @ self.back
            return np.concatenate([np.ones((len(turned), lead)), turned], axis=1)
        out = np.empty((X.shape[0], X.shape[1] + lead))
        out[:, :lead] = 1.0
        np.subtract(X, self.center, out=out[:, lead:])
        out[:, lead:] *= self.back
        return out

    def ridge(self, alpha: float) -> Floats:
        """The penalty of each coordinate."""
        square = self.back**2
        own = square if square.ndim == 1 else square.sum(axis=0)
        return np.concatenate([np.zeros(int(self.fit_intercept)), alpha * own])

    def coefficients(self, b: Floats) -> tuple[Floats, float]:
        """Coefficients of the given features, and the intercept."""
        slopes = b[1:] if self.fit_intercept else b
        coef = self.back * slopes if self.back.ndim == 1 else self.back @ slopes
        return coef, float(self.offset + b[0] - self.center @ coef) if self.fit_intercept else 0.0

    def point(self, coef: Floats, intercept: float) -> Floats:
        """The coordinates of a model."""
        if self.back.ndim == 1:
            slopes = np.divide(coef, self.back, out=np.zeros(len(coef)), where=self.back > 0)
        else:
            slopes = np.linalg.lstsq(self.back, coef)[0]
        return (
            np.concatenate([[intercept - self.offset + self.center @ coef], slopes]) if self.fit_intercept else slopes
        )


def moments(block: Block, shift: Floats, offset: float) -> Sums:
    """Weight of the rows, and sums of features, their squares and the target about a provisional centre."""
    weight = np.ones(len(block.y)) if block.weight is None else block.weight
    target = float(weight @ (block.y - offset))
    if sparse.issparse(block.X):
        X = sparse.csr_array(block.X, dtype=np.float64)
        return Sums((float(weight.sum()), X.T @ weight, X.power(2).T @ weight, target))
    centred = np.asarray(block.X - shift, dtype=np.float64)
    return Sums((float(weight.sum()), weight @ centred, weight @ centred**2, target))


class Triangle:
    """The triangular factor of rows, which has their squares without having squared them; those of parts add up."""

    def __init__(self, factor: Floats) -> None:
        self.factor = factor

    @classmethod
    def of(cls, rows: Floats) -> Triangle:
        """The factor of some rows."""
        return cls(triangular(rows))

    def __add__(self, other: Triangle) -> Triangle:
        return Triangle.of(np.concatenate([self.factor, other.factor]))

    def __radd__(self, other: Any) -> Triangle:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum(parts) works


def triangle(block: Block, center: Floats) -> Triangle:
    """The factor of the centred features of a block."""
    centred = np.asarray(block.X, dtype=np.float64) - center
    return Triangle.of(centred if block.weight is None else centred * np.sqrt(block.weight)[:, None])


def residual_sums(block: Block, at: Coordinates, b: Floats, weigh: Weigh | None) -> Sums:
    """Normal matrix and gradient of the weighted squares at a point, and the weight of the rows."""
    Z = at.features(block.X)
    residuals = block.y - at.offset - Z @ b
    weight = np.ones(len(residuals)) if weigh is None else weigh(block.X, block.y, residuals)
    weight = weight if block.weight is None else weight * block.weight
    if sparse.issparse(Z):
        gram = (Z.T @ (sparse.diags_array(weight) @ Z)).toarray()
    else:
        half = Z * np.sqrt(weight)[:, None]
        gram = half.T @ half
    return Sums((gram, Z.T @ (weight * residuals), float(weight.sum())))


def coordinates(table: Table, rows: Block, fit_intercept: bool) -> Coordinates:
    """The centre and spread of all rows, taken about those of a sample so that no digits are lost: one pass.

    Where columns depend on each other in the sample, a second pass finds axes of all rows that do not.
    """
    shift, offset, loose = np.zeros(table.n_features), 0.0, sparse.issparse(rows.X)
    if fit_intercept:
        offset = float(np.average(rows.y, weights=rows.weight))
        if not loose:
            shift = np.asarray(np.average(rows.X, axis=0, weights=rows.weight), dtype=np.float64)
    mass, first, second, target = table.reduce(moments, shift, offset)
    centred = fit_intercept and not loose
    mean = first / mass if centred else np.zeros_like(first)
    center = shift + mean
    spread = np.sqrt(np.maximum(second / mass - mean**2, 0.0))
    # A constant column is rounding noise once centred: it must not be scaled up into a feature.
    spread[spread <= 10 * np.finfo(table.dtype).eps * np.abs(center)] = 0.0
    back = np.divide(1.0, spread, out=np.zeros(len(spread)), where=spread > 0)
    found = Coordinates(center, back, offset + target / mass if fit_intercept else 0.0, fit_intercept)
    if loose or Factor.of(residual_sums(rows, found, np.zeros(len(back) + fit_intercept), None)[0]).safe:
        return found
    return replace(found, back=independent_axes(table.reduce(triangle, center).factor, center, mass, table.dtype))


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
