"""Whether the outliers of a model are leverage points: a cluster of its own in the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from ..robust.sigma import CUTOFF

__all__ = ["leverage_cluster"]

Array = NDArray[np.floating[Any]]
# Measured by benchmarks/regression.py misfits: without the rule no leverage point is called wrong, with a gap of 2 none
# of those nearby; half or twice the edge changes nothing.
FEATURE_GAP = 0.5  # spreads of the others' features that part a cluster of outliers from them
EDGE = 0.1  # of the outliers and of the others that may lie on the wrong side of the gap


def leverage_cluster(z: Array, gross: NDArray[np.bool_], columns: Array) -> bool:
    """Return whether residuals are normal but for outliers that most form a cluster beyond a gap in the features.

    Trees could explain such a cluster, whatever its values are. A relation that bends has rows on its way from the good
    ones to the others; leverage points have none.

    Parameters
    ----------
    z : ndarray of shape (n,)
        Residuals in units of the sigma of the good ones.
    gross : ndarray of shape (n,)
        Which of them are gross.
    columns : ndarray of shape (n, p)
        Features.
    """
    if not 2 <= gross.sum() <= len(z) / 2 or not _normal(z[np.abs(z) <= CUTOFF]):
        return False
    filled = np.nan_to_num(columns)
    spread = filled[~gross].std(axis=0)
    filled = filled[:, spread > 0] / spread[spread > 0]
    others = filled[~gross]
    covariance = np.atleast_2d(np.cov(others.T)) + 1e-3 * np.eye(filled.shape[1])
    along = filled @ np.linalg.solve(covariance, filled[gross].mean(axis=0) - others.mean(axis=0))
    order = np.argsort(along, kind="stable")
    ours_below = np.cumsum(gross[order])[:-1] / gross.sum()
    others_below = np.cumsum(~gross[order])[:-1] / (~gross).sum()
    between = (ours_below <= EDGE) & (others_below >= 1 - EDGE)
    return bool(np.any(np.diff(along[order])[between] > FEATURE_GAP * float(along[~gross].std())))


def _normal(z: Array, cells: int = 10) -> bool:
    """Return whether residuals within the cutoff are those of a normal, by a chi-squared test at 0.1 %."""
    edges = ndtri(np.linspace(ndtr(-CUTOFF), ndtr(CUTOFF), cells + 1)[1:-1])
    expected = len(z) / cells
    counts = np.bincount(np.searchsorted(edges, z), minlength=cells)
    return bool(np.sum(np.square(counts - expected)) <= expected * chi2.ppf(0.999, cells - 1))
