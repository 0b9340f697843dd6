"""Fits outside every fold: all folds, paces and penalties are one batch, and one matrix product serves them all.

The batch works in coordinates in which the loss has about unit curvature at zero, in single precision. Each fit's own
rounding is far below the tolerance of a fold fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ._folds import FoldRows
from ._lbfgs import Metric, minimize_all
from ._loss import Latent, Objective, Vector

TOLERANCE = 1e-3  # gradient entry, in coordinates of unit curvature, at which a fold fit ends
WHITENED = 400  # cost: features up to which coordinates are uncorrelated, and not only of unit variance
BLOCK = 1 << 19  # cost: scores that are made at a time, so that they stay in the cache
_IDENTITY = Metric(lambda gradient: gradient, curvature=False)


@dataclass(frozen=True, eq=False)
class FoldModel:
    """One candidate: the fits outside every fold, and the scores of what they held out.

    Attributes
    ----------
    latent : Latent
        The loss that was minimised.
    C : float
        Inverse strength of the penalty.
    params : ndarray of shape (n_fits, size)
        Parameters outside each fold, repetition after repetition.
    by_repetition : ndarray of shape (n_repetitions, n_held_out, n_outputs)
        Raw scores of the held-out rows.
    """

    latent: Latent
    C: float
    params: Vector
    by_repetition: Vector

    @cached_property
    def scores(self) -> Vector:
        """Raw scores of the held-out rows, the mean over the repetitions."""
        return np.asarray(self.by_repetition[0] if len(self.by_repetition) == 1 else self.by_repetition.mean(axis=0))

    @property
    def mean(self) -> Vector:
        """Mean of the fold fits."""
        return np.asarray(self.params.mean(axis=0))


@dataclass(frozen=True)
class Spec:
    """What to fit outside every fold, and where to start: shape (n_fits, size), or None for the class shares."""

    latent: Latent
    C: float
    start: Vector | None = None


class FoldFits:
    """Fits candidates outside every fold of some rows.

    Parameters
    ----------
    rows : FoldRows
        The rows and their folds.
    total : float
        Weight of all rows of the table, which the penalty stands beside.
    weakest : float
        Largest C that is tried: coordinates are chosen for it.
    fit_intercept : bool
        Whether the intercepts are free.
    """

    def __init__(self, rows: FoldRows, total: float, weakest: float, fit_intercept: bool) -> None:
        self.rows, self.total, self.weakest, self.fit_intercept = rows, total, weakest, fit_intercept
        self.everything = Objective(
            [rows.X], rows.codes, rows.n_classes, sample_weight=rows.weight, fit_intercept=fit_intercept
        )
        self.n_outputs = self.everything.n_outputs

    def ridge(self, C: float) -> float:
        """Weight of half the squared norm beside the mean loss."""
        return 1.0 / (C * self.total)

    @cached_property
    def coordinates(self) -> _Coordinates:
        """Coordinates of about unit curvature."""
        return _Coordinates.of(self.everything, self.ridge(self.weakest))

    @cached_property
    def weight(self) -> Vector:
        """Weight of each row in each fit."""
        return self.rows.training_weight.astype(np.float32)

    def fit(self, candidates: Sequence[Spec], max_iter: int) -> list[FoldModel]:
        """Fit all candidates outside all folds at once, and score what was held out."""
        n_fits, shape = len(self.weight), (self.n_outputs, self.everything.n_features + 1)
        blank = None if all(c.start is not None for c in candidates) else self._class_shares()
        starts = [blank if c.start is None else c.start for c in candidates]
        points = self.coordinates.inward(np.concatenate(starts).reshape(-1, shape[1]))  # type: ignore[arg-type]
        batch = _Batch(self, candidates)
        found = minimize_all(
            batch,
            points.reshape(len(candidates) * n_fits, -1),
            metric=_IDENTITY,
            max_iter=max_iter,
            tol=TOLERANCE,
        )
        ends = np.stack([one.x for one in found]).reshape(-1, self.coordinates.size)
        params = self.coordinates.outward(ends).reshape(len(candidates), n_fits, -1)
        scores = self.coordinates.scores(ends).reshape(len(candidates), n_fits, self.n_outputs, -1)
        held = [self.rows.held_out(own).astype(np.float64) for own in scores]
        return [FoldModel(c.latent, c.C, p, h) for c, p, h in zip(candidates, params, held, strict=True)]

    def score(self, params: Vector) -> Vector:
        """Scores of the held-out rows by given parameters of the fold fits."""
        points = self.coordinates.inward(params.reshape(-1, self.everything.n_features + 1))
        scores = self.coordinates.scores(points).reshape(len(self.weight), self.n_outputs, -1)
        return self.rows.held_out(scores).astype(np.float64)

    def _class_shares(self) -> Vector:
        """No coefficients, and the intercepts of the class shares outside each fold."""
        out = np.zeros((len(self.weight), self.n_outputs, self.everything.n_features + 1))
        if self.fit_intercept:
            k = self.rows.n_classes
            share = np.stack([np.bincount(self.rows.codes, w, minlength=k) for w in self.weight])
            logs = np.log(np.maximum(share / share.sum(axis=1, keepdims=True), 1e-3))
            out[:, :, -1] = logs[:, 1:] - logs[:, :1] if k == 2 else logs - logs.mean(axis=1, keepdims=True)
        return out.reshape(len(out), -1)


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """A linear map of features and intercept under which the loss has about unit curvature at zero.

    Attributes
    ----------
    table : array or CSR matrix of shape (n, size)
        The rows in these coordinates, in single precision.
    root : ndarray of shape (d, d) or (d,)
        Coefficients times ``root`` are the point; a vector if only the scale of the features changes.
    mean : ndarray of shape (d,)
        Point of the features that the intercept refers to.
    constant : float
        The last column of the table; 0 without an intercept.
    """

    table: Any
    root: Vector
    mean: Vector
    constant: float

    @classmethod
    def of(cls, rows: Objective, ridge: float) -> _Coordinates:
        """The coordinates of these rows under a penalty."""
        X, (mean, variance) = rows.parts[0], rows.moments
        constant = float(np.sqrt(rows.flatness)) if rows.fit_intercept else 0.0
        if sparse.issparse(X):
            variance = np.maximum(variance, variance.mean())  # a rare word must not move far by one row
        if sparse.issparse(X) or not rows.fit_intercept:
            variance, mean = variance + np.square(mean) * (not rows.fit_intercept), np.zeros_like(mean)
        scale = np.where(variance > 0, np.sqrt(np.maximum(variance, 1e-300)), 1.0)
        column = np.full((X.shape[0], 1), constant, dtype=np.float32)
        if sparse.issparse(X):
            root = scale / np.sqrt(rows.flatness)
            scaled = (X @ sparse.diags_array(1.0 / root)).astype(np.float32)
            return cls(sparse.hstack([scaled, sparse.csr_array(column)], format="csr"), root, mean, constant)
        table = ((X - mean) / scale).astype(np.float32)
        if rows.n_features > WHITENED:
            root = scale / np.sqrt(rows.flatness)
            return cls(np.hstack([table * np.float32(np.sqrt(rows.flatness)), column]), root, mean, constant)
        factor = linalg.cholesky(_correlation(table, rows) + np.diag(ridge * rows.flatness / scale**2), lower=True)
        outward = linalg.solve_triangular(factor, np.eye(len(scale)), lower=True) * np.sqrt(rows.flatness)
        root = scale[:, None] * factor / np.sqrt(rows.flatness)
        return cls(np.hstack([table @ outward.T.astype(np.float32), column]), root, mean, constant)

    @property
    def size(self) -> int:
        return len(self.mean) + 1

    @cached_property
    def back(self) -> Vector:
        """The inverse of ``root``."""
        return np.asarray(1.0 / self.root if self.root.ndim == 1 else np.linalg.inv(self.root))

    def outward(self, points: Vector) -> Vector:
        """Parameters of these points."""
        coef = points[:, :-1] * self.back if self.back.ndim == 1 else points[:, :-1] @ self.back
        return np.column_stack([coef, self.constant * points[:, -1] - coef @ self.mean])

    def inward(self, params: Vector) -> Vector:
        """Points of these parameters."""
        coef = params[:, :-1]
        points = coef * self.root if self.root.ndim == 1 else coef @ self.root
        level = (params[:, -1] + coef @ self.mean) / self.constant if self.constant else np.zeros(len(params))
        return np.column_stack([points, level])

    @cached_property
    def penalty(self) -> Vector:
        """The squared norm of the coefficients as a form of the point: a matrix, or one number per coordinate."""
        if self.back.ndim == 1:
            return np.append(np.square(self.back), 0.0)
        return np.pad(self.back @ self.back.T, (0, 1))

    def scores(self, points: Vector) -> Vector:
        """Scores of all rows, one line per point."""
        points = points.astype(np.float32)
        return np.asarray((self.table @ points.T).T if sparse.issparse(self.table) else points @ self.table.T)


def _correlation(table: Vector, rows: Objective) -> Vector:
    """Mean products of standardised features; constant ones have a product of 1 with themselves."""
    half = table if rows.sample_weight is None else table * np.sqrt(rows.sample_weight).astype(np.float32)[:, None]
    out = np.asarray(half.T @ half, dtype=np.float64) / rows.total
    diagonal = np.diagonal(out)
    out[np.diag_indices(len(out))] = np.where(diagonal > 0, diagonal + 1e-5, 1.0)  # features may be dependent
    return out


class _Batch:
    """Values and gradients of all candidates outside all folds, each at its own point."""

    def __init__(self, fits: FoldFits, candidates: Sequence[Spec]) -> None:
        self.fits, self.candidates = fits, candidates
        self.ridge = np.repeat([fits.ridge(c.C) for c in candidates], len(fits.weight))
        self.total = np.tile(fits.weight.sum(axis=1, dtype=np.float64), len(candidates))
        self.step = max(256, BLOCK // (len(self.ridge) * fits.n_outputs))

    def __call__(self, points: Vector, which: Any) -> tuple[Vector, Vector]:
        fits, coordinates = self.fits, self.fits.coordinates
        lines = points.reshape(-1, coordinates.size)
        single = lines.astype(np.float32)
        value, gradient = np.zeros(len(which)), np.zeros(lines.shape)
        n, table = fits.rows.n, coordinates.table
        for begin in range(0, n, self.step if not sparse.issparse(table) else n):
            rows = slice(begin, min(begin + self.step, n) if not sparse.issparse(table) else n)
            block = table[rows]
            scores = (block @ single.T).T if sparse.issparse(block) else single @ block.T
            scores = np.ascontiguousarray(scores).reshape(len(which), fits.n_outputs, -1)
            losses, residual = (
                self._binary(scores, rows, which) if fits.n_outputs == 1 else self._many(scores, rows, which)
            )
            value += losses
            residual = residual.reshape(len(lines), -1)
            gradient += (block.T @ residual.T).T if sparse.issparse(block) else residual @ block
        gradient = gradient.reshape(len(which), fits.n_outputs, -1) / self.total[which][:, None, None]
        lines = lines.reshape(gradient.shape)
        penalty = coordinates.penalty
        held = (lines @ penalty if penalty.ndim == 2 else lines * penalty) * self.ridge[which][:, None, None]
        value = value / self.total[which] + 0.5 * np.einsum("ijk,ijk->i", lines, held)
        return value, (gradient + held).reshape(points.shape)

    def _binary(self, scores: Vector, rows: slice, which: Any) -> tuple[Vector, Vector]:
        sign = (2.0 * self.fits.rows.codes[rows] - 1.0).astype(np.float32)
        probability = scores[:, 0]
        probability *= -sign
        np.minimum(probability, 80.0, out=probability)  # keeps exp from overflowing
        np.exp(probability, out=probability)
        probability += 1.0
        np.reciprocal(probability, out=probability)
        residual = np.subtract(probability, 1.0)
        value = self._weighted(probability, residual, rows, which)
        residual *= sign
        return value, residual

    def _many(self, scores: Vector, rows: slice, which: Any) -> tuple[Vector, Vector]:
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        codes = self.fits.rows.codes[rows]
        given = scores[:, codes, np.arange(len(codes))]
        scores[:, codes, np.arange(len(codes))] -= 1.0
        weight = np.ones_like(given)
        value = self._weighted(given, weight, rows, which)
        scores *= weight[:, None]
        return value, scores

    def _weighted(self, probability: Vector, factor: Vector, rows: slice, which: Any) -> Vector:
        """Sum the latent losses of each fit; ``factor`` is multiplied by the weights in place."""
        n_fits, codes = len(self.fits.weight), self.fits.rows.codes[rows]
        value = np.empty(len(which))
        for place, candidate in enumerate(self.candidates):
            own = slice(*np.searchsorted(which, [place * n_fits, (place + 1) * n_fits]).tolist())
            if own.start == own.stop:
                continue
            weight = self.fits.weight[which[own] - place * n_fits, rows]
            loss, relative = candidate.latent(probability[own], codes)
            value[own] = np.multiply(weight, loss).sum(axis=1)
            factor[own] *= weight
            if relative is not None:
                factor[own] *= relative
        return value


__all__ = ["FoldFits", "FoldModel", "Spec"]
