"""Whether outliers of a model need no reference: very many beside normal residuals, or leverage points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from ..robust.sigma import CUTOFF

__all__ = ["needs_no_reference"]

Array = NDArray[np.floating[Any]]
# a choice: 40 % outliers of boosted trees and leverage points (first example of docs/guide/regression.md) need them
RARE = 0.002  # share of gross residuals that a reference model learns nothing from
CROWD = 0.3  # share of gross residuals that reference models do not stand
FEATURE_GAP = 1.0  # spreads of the others' features that part a cluster of outliers from them
EDGE = 0.1  # of the outliers and of the others that may lie on the wrong side of the gap


def needs_no_reference(z: Array, gross: NDArray[np.bool_], columns: Array, share: float) -> bool:
    """Return whether the residuals of most rows are normal, and no reference model could say more about the others.

    That is so if they are so many that they would own a reference, too, or too few to be told from it; and if most of
    them form a cluster beyond a gap in the features: trees could explain it, whatever its values are. A relation that
    bends has rows on its way from the good ones to the others; leverage points have none.

    Parameters
    ----------
    z : ndarray of shape (n,)
        Residuals in units of the sigma of the good ones.
    gross : ndarray of shape (n,)
        Which of them are gross.
    columns : ndarray of shape (n, p)
        Features.
    share : float
        Of gross residuals among all rows, of which these may be a sample.
    """
    if gross.sum() > len(z) / 2 or not _normal(z[np.abs(z) <= CUTOFF]):
        return False
    if share > CROWD or share < RARE or gross.sum() < 2:
        return share > CROWD or share < RARE
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
