"""A line that few values cannot move."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, RegressorMixin

from ..robust import madn
from .base import Array

__all__ = ["RobustLine"]

HUBER = 1.345  # theory: Huber's constant of 95 % efficiency at the normal
STEPS = 10  # cost: of reweighting; the line need not be exact
RIDGE = 1e-4  # numerical safety: per row, on standardised features, which may depend on each other


class RobustLine(RegressorMixin, BaseEstimator):
    """Huber's regression by a few reweighted least squares; gaps count as the median of their column.

    >>> x = np.arange(50.0)[:, None]
    >>> y = 2 * x[:, 0]
    >>> y[25] = 1e6
    >>> RobustLine().fit(x, y).predict([[10.0]]).round(1).tolist()
    [20.0]
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RobustLine:
        """Fit to numbers."""
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        prior = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.n_features_in_ = X.shape[1]
        self.middle_ = np.nan_to_num(_medians(X))
        filled = np.where(np.isnan(X), self.middle_, X)
        spread = filled.std(axis=0)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        Z = np.c_[np.ones(len(y)), (filled - self.middle_) / self.spread_]
        ridge = RIDGE * prior.sum() * np.eye(Z.shape[1])
        ridge[0, 0] = 0.0
        weight, slopes = prior, np.zeros(Z.shape[1])
        for _ in range(STEPS):
            scaled = Z * weight[:, None]
            slopes = linalg.solve(scaled.T @ Z + ridge, scaled.T @ y, assume_a="pos")
            residuals = np.abs(y - Z @ slopes)
            cut = HUBER * madn(residuals, sample_weight)
            if not cut > 0:
                break
            weight = prior * np.minimum(1.0, cut / np.maximum(residuals, 1e-300))
        self.slopes_ = slopes
        return self

    def predict(self, X: Any) -> Array:
        """Predict the target."""
        X = np.asarray(X, dtype=float)
        filled = np.where(np.isnan(X), self.middle_, X)
        return np.asarray(self.slopes_[0] + (filled - self.middle_) / self.spread_ @ self.slopes_[1:])


def _medians(X: Array) -> Array:
    gone = np.isnan(X).all(axis=0)
    return np.asarray(np.where(gone, 0.0, np.nanmedian(np.where(gone, 0.0, X), axis=0)))
