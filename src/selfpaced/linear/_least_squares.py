"""Weighted ridge least squares on one fixed set of rows, solved again and again for changing weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, lsmr

from ..robust import effective_size

__all__ = ["Squares", "build", "exact_floor", "rounding_sigma"]

Floats = NDArray[np.floating[Any]]
DENSE_GRAM = 2000  # cost: columns of sparse data up to which a dense normal matrix pays
CONDITION = 1e-9  # numerical safety: smallest squared pivot of a scaled normal matrix for a Cholesky factor
RANK_ROUNDING = (
    10.0  # numerical safety: times the number of columns and the rounding of a number: no direction of its own
)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Centred and scaled features, with a leading column of ones for the intercept, and the centred target.

    Sparse features are scaled alone. Where columns depend on each other, ``back`` is a matrix: the coordinates are
    independent axes, of which it makes the coefficients of the given features.
    """

    center: Floats  # subtracted from the features
    back: Floats  # takes coordinates to coefficients
    offset: float  # subtracted from the target
    fit_intercept: bool

    def ridge(self, alpha: float) -> Floats:
        """The penalty of each coordinate."""
        square = np.square(self.back)
        own = square if square.ndim == 1 else square.sum(axis=0)
        return np.concatenate([np.zeros(int(self.fit_intercept)), alpha * own])

    def coefficients(self, b: Floats) -> tuple[Floats, float]:
        """Coefficients of the given features, and the intercept."""
        slopes = b[1:] if self.fit_intercept else b
        coef = self.back * slopes if self.back.ndim == 1 else self.back @ slopes
        return coef, float(self.offset + b[0] - self.center @ coef) if self.fit_intercept else 0.0

    def jacobian(self) -> Floats:
        """The linear map from coordinates to the intercept (first, if there is one) and the coefficients."""
        back = np.diag(self.back) if self.back.ndim == 1 else self.back
        if not self.fit_intercept:
            return back
        return np.block([[np.ones((1, 1)), -(self.center @ back)[None, :]], [np.zeros((len(back), 1)), back]])


@dataclass(frozen=True)
class Squares:
    """Minimise sum_i w_i s_i (y_i - (Z b)_i)^2 + sum_j ridge_j b_j^2 over b, for any weights w.

    ``Z`` are the features in coordinates that make this well conditioned.
    """

    matrix: Any  # Z, dense or CSR, of shape (n, k)
    target: Floats
    ridge: Floats
    sample_weight: Floats | None
    at: Coordinates
    source: Any = None  # the features as they were given; None once rows were taken

    @property
    def n_rows(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def n_columns(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def features(self) -> Any:
        """The features as they were given, as far as they are known."""
        return self.matrix if self.source is None else self.source

    @cached_property
    def size(self) -> float:
        """The number of rows the sample weights stand for."""
        return effective_size(self.sample_weight, self.n_rows)

    def residuals(self, b: Floats) -> Floats:
        return np.asarray(self.target - self.matrix @ b)

    def zero(self) -> Floats:
        return np.zeros(self.n_columns)

    def penalty(self, b: Floats) -> float:
        return float(self.ridge @ np.square(b))

    def total(self, weights: Floats | None) -> Floats | None:
        """The weights together with the sample weights."""
        if weights is None or self.sample_weight is None:
            return self.sample_weight if weights is None else weights
        return weights * self.sample_weight

    def solve(self, weights: Floats | None = None, start: Floats | None = None) -> Floats:
        """The minimiser for these weights, as a correction of ``start``.

        Solving for the correction makes the residuals carry the accuracy, so that single precision and bad
        conditioning cost little; directions the weighted rows do not determine stay as in ``start``.
        """
        b = self.zero() if start is None else start
        rows, total = self, self.total(weights)
        if total is not None and np.count_nonzero(total) < 0.8 * total.size:
            kept = np.flatnonzero(total)
            rows, total = self.rows(kept), total[kept]
        if sparse.issparse(rows.matrix) and rows.n_columns > DENSE_GRAM:
            return rows._iterate(total, b, 1e-9 if start is None else 1e-5)
        factor = rows.factor(total)
        for _ in range(2 if start is None else 1):
            b = b + rows.correct(factor, total, b)
        return b

    def gram(self, total: Floats | None) -> Floats:
        """Z' W Z + ridge in double precision."""
        scaled = self.matrix
        if total is not None:
            root = np.sqrt(total).astype(self.matrix.dtype, copy=False)
            scaled = sparse.diags_array(root) @ scaled if sparse.issparse(scaled) else scaled * root[:, None]
        gram = scaled.T @ scaled
        gram = np.asarray(gram.toarray() if sparse.issparse(gram) else gram, dtype=np.float64)
        gram[np.diag_indices_from(gram)] += self.ridge
        return gram

    def factor(self, total: Floats | None) -> Factor:
        return Factor.of(self.gram(total))

    def correct(self, factor: Factor, total: Floats | None, b: Floats, residuals: Floats | None = None) -> Floats:
        """The step from b to the minimiser, by a factor of this or a nearby normal matrix."""
        residuals = self.residuals(b) if residuals is None else residuals
        weighted = residuals if total is None else residuals * total
        return factor.solve(np.asarray(self.matrix.T @ weighted, dtype=np.float64) - self.ridge * b)

    def _iterate(self, total: Floats | None, b: Floats, tol: float) -> Floats:
        """Matrix-free: for sparse data with too many columns for a normal matrix."""
        root = np.ones(self.n_rows) if total is None else np.sqrt(total)
        rows = sparse.diags_array(root) @ self.matrix
        damped = np.sqrt(self.ridge)
        n = self.n_rows

        operator = LinearOperator(
            shape=(n + self.n_columns, self.n_columns),
            matvec=lambda v: np.concatenate([rows @ v.ravel(), damped * v.ravel()]),
            rmatvec=lambda u: rows.T @ u.ravel()[:n] + damped * u.ravel()[n:],
            dtype=np.float64,
        )
        aim = np.concatenate([root * self.residuals(b), -damped * b])
        step = lsmr(operator, aim, atol=tol, btol=tol, maxiter=1000)[0]
        return np.asarray(b + step)

    @cached_property
    def dof(self) -> float:
        """Effective number of coefficients: the trace of the plain fit's hat matrix."""
        if not self.ridge.any():
            return float(min(self.n_columns, self.n_rows))
        if sparse.issparse(self.matrix) and self.n_columns > DENSE_GRAM:
            square = np.asarray(self.matrix.power(2).sum(axis=0)).ravel()
            return float(min(np.sum(square / np.maximum(square + self.ridge, 1e-300)), 0.9 * self.n_rows))
        return float(self.n_columns - self.ridge @ self.factor(self.sample_weight).inverse_diagonal())

    def leverage(self, weights: Floats | None = None, inverse: Floats | None = None) -> Floats:
        """How much each row determines its own fitted value in the weighted fit, per unit of sample weight."""
        if inverse is None:
            inverse = self.factor(self.total(weights)).solve(np.eye(self.n_columns))
        turned = self.matrix @ inverse
        product = self.matrix.multiply(turned) if sparse.issparse(self.matrix) else self.matrix * turned
        diagonal = np.asarray(product.sum(axis=1), dtype=np.float64).ravel()
        return diagonal if weights is None else weights * diagonal

    def left_out(self, residuals: Floats, weights: Floats | None = None) -> Floats:
        """Residuals of each row as if it had been left out of the weighted fit; as they are if columns are too many.

        A row that counts for several is left out once.
        """
        if sparse.issparse(self.matrix) and self.n_columns > DENSE_GRAM:
            return residuals
        leverage = self.leverage(weights) * (
            1.0 if self.sample_weight is None else self.sample_weight.sum() / self.size
        )
        return np.asarray(residuals / np.maximum(1 - leverage, math.sqrt(np.finfo(np.float64).eps)))

    def damped(self, alpha: float) -> Squares:
        """The same problem with a larger ridge."""
        return replace(self, ridge=self.ridge + self.at.ridge(alpha))

    def rows(self, index: NDArray[np.intp]) -> Squares:
        """The same problem on some of the rows, with the ridge unchanged."""
        weight = None if self.sample_weight is None else self.sample_weight[index]
        return replace(self, matrix=self.matrix[index], target=self.target[index], sample_weight=weight, source=None)

    def subset(self, index: NDArray[np.intp]) -> Squares:
        """A smaller problem of the same kind: some rows, dense, with the ridge in proportion."""
        part = self.rows(index)
        matrix = part.matrix.toarray() if sparse.issparse(part.matrix) else part.matrix
        return replace(part, matrix=matrix, ridge=self.ridge * (part.size / self.size))


def exact_floor(squares: Squares) -> float:
    """The size below which residuals are rounding: a fit this exact has no noise to estimate."""
    eps = float(np.finfo(squares.matrix.dtype).eps)
    size = math.sqrt(float(np.average(np.square(squares.target), weights=squares.sample_weight)))
    return max(1e2 * eps * (size + abs(squares.at.offset)), 1e-140)  # never zero: a pace is made of it


def rounding_sigma(squares: Squares) -> float:
    """Half a step of the target's last decimal, the most that rounding changes it; 0.0 if it is not rounded.

    Residuals of rounded values may vanish for half of the rows and be one step for the others. At this sigma, one step
    is within the cutoff: rounded features explain it.
    """
    y = np.asarray(squares.target + squares.at.offset, dtype=np.float64)
    finest = 1e3 * float(np.finfo(squares.target.dtype).eps) * float(np.abs(y).max(initial=0.0))
    for decimals in range(-9, 16):
        step = 10.0**-decimals
        if step <= finest:
            break
        if step <= np.ptp(y) and np.all(np.abs(y - np.round(y, decimals)) <= 1e-3 * step):
            return step / 2
    return 0.0


@dataclass(frozen=True)
class Factor:
    """A factor of a normal matrix: Cholesky where it is safe, else the pseudo-inverse."""

    scale: Floats
    lower: Floats | None
    pseudo: Floats | None

    @classmethod
    def of(cls, gram: Floats) -> Factor:
        diagonal = np.diag(gram)
        scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scaled = gram * scale[:, None] * scale
        try:
            lower = linalg.cholesky(scaled, lower=True, check_finite=False)
            if np.square(np.diag(lower)).min() > CONDITION:
                return cls(scale, lower, None)
        except linalg.LinAlgError:
            pass
        return cls(scale, None, linalg.pinvh(scaled, rtol=1e-11))

    @property
    def safe(self) -> bool:
        return self.lower is not None

    def solve(self, right: Floats) -> Floats:
        scale = self.scale if right.ndim == 1 else self.scale[:, None]
        if self.pseudo is not None:
            return np.asarray(scale * (self.pseudo @ (scale * right)))
        return np.asarray(scale * linalg.cho_solve((self.lower, True), scale * right, check_finite=False))

    def inverse_diagonal(self) -> Floats:
        if self.pseudo is not None:
            return np.asarray(self.scale**2 * self.pseudo.diagonal())
        inverse = linalg.solve_triangular(self.lower, np.eye(self.scale.size), lower=True)
        return np.asarray(self.scale**2 * np.square(inverse).sum(axis=0))


def build(
    X: Any, y: Floats, *, alpha: float = 0.0, fit_intercept: bool = True, sample_weight: Floats | None = None
) -> Squares:
    """Set up the problem for features X (dense or CSR) and target y."""
    if sparse.issparse(X):
        return _build_sparse(X, y, alpha, fit_intercept, sample_weight)
    n, p = X.shape
    center, offset = np.zeros(p), 0.0
    if fit_intercept:
        center = np.asarray(np.average(X, axis=0, weights=sample_weight), dtype=np.float64)
        offset = float(np.average(y, weights=sample_weight))
    matrix = np.empty((n, p + fit_intercept), dtype=X.dtype)
    matrix[:, :fit_intercept] = 1
    features = matrix[:, int(fit_intercept) :]
    np.subtract(X, center, out=features, casting="same_kind")
    spread = np.sqrt(np.average(np.square(features), axis=0, weights=sample_weight).astype(np.float64))
    spread, back = true_spreads(spread, center, X.dtype)
    features *= back.astype(X.dtype)
    at = Coordinates(center, back, offset, fit_intercept)
    squares = Squares(matrix, y - offset, at.ridge(alpha), sample_weight, at, X)
    if p < n and squares.factor(sample_weight).safe:
        return squares
    features *= spread.astype(X.dtype)
    return _rotated(squares, features, alpha)


def _rotated(squares: Squares, features: Floats, alpha: float) -> Squares:
    """Principal axes as coordinates, where columns depend on each other or outnumber the rows.

    The ridge stays diagonal because the axes are those of the unscaled features, and the fit without a ridge is
    the shortest one, as in scikit-learn's LinearRegression.
    """
    weight = squares.sample_weight
    weighted = (features if weight is None else features * np.sqrt(weight)[:, None]).astype(np.float64)
    back = independent_axes(triangular(weighted), squares.at.center, squares.size, features.dtype)
    lead = squares.matrix[:, : int(squares.at.fit_intercept)]
    matrix = np.concatenate([lead, features @ back.astype(features.dtype)], axis=1)
    at = replace(squares.at, back=back)
    return replace(squares, matrix=matrix, ridge=at.ridge(alpha), at=at)


def true_spreads(spread: Floats, center: Floats, dtype: Any) -> tuple[Floats, Floats]:
    """Spreads of centred columns and their inverses; 0 for a constant column, which is rounding noise once centred."""
    spread = np.where(spread <= 10 * float(np.finfo(dtype).eps) * np.abs(center), 0.0, spread)
    return spread, np.divide(1.0, spread, out=np.zeros(len(spread)), where=spread > 0)


def triangular(rows: Floats) -> Floats:
    """The factor of a QR decomposition, which has the squares of the rows without having squared them.

    Few rows are their own.
    """
    if len(rows) <= rows.shape[1]:
        return rows
    return np.asarray(linalg.qr(rows, mode="r", check_finite=False)[0][: rows.shape[1]])


def independent_axes(factor: Floats, center: Floats, mass: float, dtype: Any) -> Floats:
    """Principal axes of centred features by their triangular factor, of unit variance, as many as are independent.

    Which are is told with all columns at one scale: beside a year or a price everything else would be rounding. The
    axes themselves are those of the columns as they are, so that a ridge stays diagonal.
    """
    eps = float(np.finfo(dtype).eps)
    spread, scale = true_spreads(np.linalg.norm(factor, axis=0) / math.sqrt(mass), center, dtype)
    _, sizes, axes = linalg.svd(factor * scale, full_matrices=False)
    # Centring leaves rounding of the size of the centre behind, which must not count as a direction.
    largest = float(sizes.max(initial=0.0)) + math.sqrt(mass) * float(np.abs(center * scale).max(initial=0.0))
    rank = int(np.sum(sizes > RANK_ROUNDING * len(center) * eps * largest))
    basis = linalg.qr(spread[:, None] * axes[:rank].T, mode="economic")[0]
    _, sizes, turned = linalg.svd(factor @ basis, full_matrices=False)
    return np.asarray((basis @ turned.T) * (math.sqrt(mass) / sizes))


def _build_sparse(X: Any, y: Floats, alpha: float, fit_intercept: bool, sample_weight: Floats | None) -> Squares:
    """Scaled but not centred, so that the data stay sparse."""
    X = sparse.csr_array(X)
    n, p = X.shape
    offset = float(np.average(y, weights=sample_weight)) if fit_intercept else 0.0
    square = X.power(2)
    mean = (square.sum(axis=0) if sample_weight is None else square.T @ sample_weight) / (
        n if sample_weight is None else sample_weight.sum()
    )
    spread = np.sqrt(np.asarray(mean, dtype=np.float64).ravel())
    back = np.divide(1.0, spread, out=np.zeros(p), where=spread > 0)
    matrix = X @ sparse.diags_array(back.astype(X.dtype))
    if fit_intercept:
        matrix = sparse.hstack([sparse.csr_array(np.ones((n, 1), dtype=X.dtype)), matrix])
    at = Coordinates(np.zeros(p), back, offset, fit_intercept)
    return Squares(sparse.csr_array(matrix), y - offset, at.ridge(alpha), sample_weight, at, X)
