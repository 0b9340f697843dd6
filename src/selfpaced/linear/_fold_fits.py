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
from scipy import sparse

from ._folds import FoldRows
from ._lbfgs import Metric, minimize_all
from ._loss import CACHE_BYTES, WIDEST, Latent, Objective, Vector

FOLD_TOLERANCE = 1e-3  # cost: gradient entry, in coordinates of unit curvature, at which a fold fit ends
LARGEST_SCORE = (
    80.0  # numerical safety: a score beyond which exp overflows in single precision, and probabilities are 0 or 1
)
FOLD_STEPS = 12  # cost: iterations of a fold fit; 10 lose .7 points on noisy digits of scikit-learn
SCORES_AT_ONCE = CACHE_BYTES // 16  # cost: scores that are made at a time, with three temporaries of single precision
_IDENTITY = Metric(lambda gradient, _: gradient, curvature=False)


@dataclass(frozen=True, eq=False)
class FoldModel:
    """One candidate: the fits outside every fold, and the scores of what they held out."""

    latent: Latent
    C: float
    params: Vector  # (n_fits, size), repetition after repetition
    scores: Vector  # (n_held_out, n_outputs), the mean over repetitions

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
    """Fits candidates outside every fold of some rows; the penalty stands beside the ``total`` weight of the table."""

    def __init__(self, rows: FoldRows, total: float, fit_intercept: bool, C: float = 1.0) -> None:
        self.rows, self.total, self.fit_intercept, self.C = rows, total, fit_intercept, C
        self.everything = Objective(
            rows.X, rows.codes, rows.n_classes, sample_weight=rows.weight, fit_intercept=fit_intercept
        )
        self.n_outputs = self.everything.n_outputs

    def ridge(self, C: float) -> float:
        """Weight of half the squared norm beside the mean loss."""
        return 1.0 / (C * self.total)

    @cached_property
    def coordinates(self) -> _FoldCoordinates:
        """Coordinates of about unit curvature."""
        return _FoldCoordinates.of(self.everything, self.ridge(self.C))

    @cached_property
    def weight(self) -> Vector:
        """Weight of each row in each fit."""
        return self.rows.training_weight.astype(np.float32)

    def free(self) -> None:
        """Forget the coordinates, which are made again if they are needed."""
        self.__dict__.pop("coordinates", None)

    def fit(self, candidates: Sequence[Spec], max_iter: int = FOLD_STEPS) -> list[FoldModel]:
        """Fit all candidates outside all folds at once, and score what was held out."""
        n_fits, shape = len(self.weight), (self.n_outputs, self.everything.n_features + 1)
        blank = None if all(c.start is not None for c in candidates) else self._class_shares()
        starts = [blank if c.start is None else c.start for c in candidates]
        points = self.coordinates.inward(np.concatenate(starts).reshape(-1, shape[1]))  # type: ignore[arg-type]
        points = points.reshape(len(candidates) * n_fits, -1)
        metric = self._curvature(candidates, points) if all(c.latent.plain for c in candidates) else _IDENTITY
        found = minimize_all(_Batch(self, candidates), points, metric=metric, max_iter=max_iter, tol=FOLD_TOLERANCE)
        ends = np.stack([one.x for one in found]).reshape(-1, self.coordinates.size)
        params = self.coordinates.outward(ends).reshape(len(candidates), n_fits, -1)
        held = self._held_out(ends.reshape(len(candidates), n_fits, -1))
        return [FoldModel(c.latent, c.C, p, h) for c, p, h in zip(candidates, params, held, strict=True)]

    def _curvature(self, candidates: Sequence[Spec], points: Vector) -> Metric:
        """Inverse Hessians of the plain loss at the mean start, one for each penalty; paced fits need no such steps.

        Far from the minimum of a latent loss they run along directions that few rows support.
        """
        c = self.coordinates
        if sparse.issparse(c.table) or not 0 < c.size <= min(WIDEST, self.rows.n):
            return _IDENTITY
        hessian = self._hessian(points.mean(axis=0).reshape(self.n_outputs, -1))
        level = 1e-6 * float(np.diagonal(hessian).mean()) + 1e-12
        inverse = []
        for candidate in candidates:
            own = hessian + np.diag(self.ridge(candidate.C) * c.penalty + level)
            inverse.append(np.linalg.inv(own))
        stack, n_fits = np.stack(inverse), len(self.weight)

        def apply(grad: Vector, which: Any) -> Vector:
            if len(stack) == 1:
                return np.asarray(grad.reshape(-1, c.size) @ stack[0]).reshape(grad.shape)
            lines = grad.reshape(len(which), -1, c.size)
            return np.asarray(lines @ stack[which // n_fits]).reshape(grad.shape)

        return Metric(apply)

    def _hessian(self, point: Vector) -> Vector:
        """Mean products of the coordinates times the curvature of each row's loss, in double precision."""
        c, weight = self.coordinates, self.rows.weight
        proba = np.exp(np.clip(c.scores(point), -LARGEST_SCORE, LARGEST_SCORE))
        proba /= 1.0 + proba if len(proba) == 1 else proba.sum(axis=0)
        curvature = (proba * (1 - proba)).mean(axis=0)
        if weight is not None:
            curvature *= weight / weight.mean()
        out = np.zeros((c.size, c.size))
        for begin in range(0, len(c.table), step := max(1, SCORES_AT_ONCE // c.size)):
            rows = slice(begin, begin + step)
            half = c.table[rows] * np.sqrt(curvature[rows], dtype=np.float32)[:, None]
            out += half.T @ half
        return out / len(c.table)

    def score(self, params: Vector) -> Vector:
        """Scores of the held-out rows by given parameters of the fold fits."""
        points = self.coordinates.inward(params.reshape(-1, self.everything.n_features + 1))
        return np.asarray(self._held_out(points.reshape(1, len(self.weight), -1))[0])

    def _held_out(self, points: Vector) -> Vector:
        """Scores of the held-out rows by each candidate, the mean over repetitions: (n_candidates, n_held, outputs)."""
        out = np.zeros((len(points), self.rows.n, self.n_outputs))
        for number in range(len(self.weight)):
            own = self.rows.held_by(number)
            scores = self.coordinates.scores(points[:, number].reshape(-1, self.coordinates.size), own)
            # One absurd value must not decide the scale of all scores.
            np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE, out=scores)
            out[:, own] += scores.reshape(len(points), self.n_outputs, -1).transpose(0, 2, 1)
        return np.asarray(out[:, self.rows.held] / len(self.rows.folds))

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
class _FoldCoordinates:
    """Centred features of about unit curvature, with a constant, in single precision; sparse ones are not centred."""

    table: Any  # (n, d + 1), array or CSR matrix
    scale: Vector  # coefficients times this are the point
    mean: Vector  # the intercept refers to it
    constant: float  # the last column of the table; 0 without an intercept

    @classmethod
    def of(cls, rows: Objective, ridge: float) -> _FoldCoordinates:
        """The coordinates of these rows."""
        X, (mean, variance), root = rows.X, (part.copy() for part in rows.moments), np.sqrt(rows.flatness)
        constant = float(root) if rows.fit_intercept else 0.0
        if sparse.issparse(X):
            variance = np.maximum(variance, variance.mean())  # a rare word must not move far by one row
            mean = np.zeros_like(mean)
        else:
            mean, variance = _without_one_row(X, mean, variance)
        if not sparse.issparse(X) and not rows.fit_intercept:
            variance, mean = variance + np.square(mean), np.zeros_like(mean)
        # A feature that hardly varies is held by the penalty: as a unit it would bend the paths of the others.
        scale = np.sqrt(np.maximum(variance / rows.flatness, ridge))
        scale[scale == 0] = 1.0 / root
        if sparse.issparse(X):
            column = sparse.csr_array(np.full((X.shape[0], 1), constant, dtype=np.float32))
            scaled = (X @ sparse.diags_array(1.0 / scale)).astype(np.float32)
            return cls(sparse.hstack([scaled, column], format="csr"), scale, mean, constant)
        table = np.empty((len(X), X.shape[1] + 1), dtype=np.float32)
        table[:, -1] = constant
        # No value of n can be farther than sqrt(n) standard deviations, but for rows that were left out of these.
        farthest = float(root) * np.sqrt(len(X))
        for block, own in rows.blocks(small=True):
            np.clip((block - mean) / scale, -farthest, farthest, out=table[own, :-1], casting="same_kind")
        return cls(table, scale, mean, constant)

    @property
    def size(self) -> int:
        return len(self.mean) + 1

    def outward(self, points: Vector) -> Vector:
        """Parameters of these points."""
        coef = points[:, :-1] / self.scale
        return np.column_stack([coef, self.constant * points[:, -1] - coef @ self.mean])

    def inward(self, params: Vector) -> Vector:
        """Points of these parameters."""
        coef = params[:, :-1]
        level = (params[:, -1] + coef @ self.mean) / self.constant if self.constant else np.zeros(len(params))
        return np.column_stack([coef * self.scale, level])

    @cached_property
    def penalty(self) -> Vector:
        """Factor of each squared coordinate in the squared norm of the coefficients."""
        return np.append(self.scale**-2.0, 0.0)

    def scores(self, points: Vector, rows: Any = slice(None)) -> Vector:
        """Scores of rows, one line per point."""
        points = points.astype(np.float32, copy=False)
        if sparse.issparse(self.table):
            return np.ascontiguousarray((self.table[rows] @ points.T).T)
        return np.asarray(points @ self.table[rows].T)


def _without_one_row(X: Vector, mean: Vector, variance: Vector) -> tuple[Vector, Vector]:
    """Mean and variance of features, without the farthest row of a feature if it alone makes up half of the variance.

    One absurd value must not make the others of its column look constant.
    """
    n = len(X)
    far = np.maximum(X.max(axis=0) - mean, mean - X.min(axis=0))
    odd = np.flatnonzero(np.square(far) > 0.5 * n * variance)
    for j in odd if n > 2 else ():
        rest = np.delete(X[:, j], int(np.argmax(np.abs(X[:, j] - mean[j]))))
        if np.ptp(rest) > 0:  # else it is the only row of a level
            mean[j], variance[j] = rest.mean(), rest.var()
    return mean, variance


class _Batch:
    """Values and gradients of all candidates outside all folds, each at its own point."""

    def __init__(self, fits: FoldFits, candidates: Sequence[Spec]) -> None:
        self.fits, self.candidates = fits, candidates
        self.ridge = np.repeat([fits.ridge(c.C) for c in candidates], len(fits.weight))
        self.sign = (2.0 * fits.rows.codes - 1.0).astype(np.float32)
        self.total = np.tile(fits.weight.sum(axis=1, dtype=np.float64), len(candidates))
        self.step = (
            fits.rows.n
            if sparse.issparse(fits.rows.X)
            else max(256, SCORES_AT_ONCE // (len(self.ridge) * fits.n_outputs))
        )

    def __call__(self, points: Vector, which: Any) -> tuple[Vector, Vector]:
        fits, coordinates = self.fits, self.fits.coordinates
        lines, n = points.reshape(-1, coordinates.size), fits.rows.n
        single, value, gradient = lines.astype(np.float32), np.zeros(len(which)), np.zeros(lines.shape)
        passed = self._binary if fits.n_outputs == 1 else self._multinomial
        for begin in range(0, n, self.step):
            rows = slice(begin, min(begin + self.step, n))
            scores = coordinates.scores(single, rows).reshape(len(which), fits.n_outputs, -1)
            losses, residual = passed(scores, rows, which)
            value += losses
            residual, block = residual.reshape(len(lines), -1), coordinates.table[rows]
            gradient += (block.T @ residual.T).T if sparse.issparse(block) else residual @ block
        held = self.ridge[which][:, None] * points * np.tile(coordinates.penalty, fits.n_outputs)
        value = value / self.total[which] + 0.5 * np.vecdot(points, held)
        return value, gradient.reshape(points.shape) / self.total[which][:, None] + held

    def _binary(self, scores: Vector, rows: slice, which: Any) -> tuple[Vector, Vector]:
        sign = self.sign[rows]
        probability = scores[:, 0]
        probability *= -sign
        np.minimum(probability, LARGEST_SCORE, out=probability)
        np.exp(probability, out=probability)
        probability += 1.0
        np.reciprocal(probability, out=probability)
        residual = np.subtract(probability, 1.0)
        value = self._weighted(probability, residual, rows, which)
        residual *= sign
        return value, residual

    def _multinomial(self, scores: Vector, rows: slice, which: Any) -> tuple[Vector, Vector]:
        codes = self.fits.rows.codes[rows]
        at = (slice(None), codes, np.arange(len(codes)))
        np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE, out=scores)
        np.exp(scores, out=scores)
        total = scores.sum(axis=1)
        given = scores[at] / total
        weight = np.ones_like(given)
        value = self._weighted(given, weight, rows, which)
        scores *= (weight / total)[:, None]
        scores[at] -= weight
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
