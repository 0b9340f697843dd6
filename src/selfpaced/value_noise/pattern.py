"""Whether outliers of a model look like mistakes: strewn over the rows, apart from the others, the others even."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import chi2, rankdata

from .base import Array

__all__ = ["strewn"]

GOOD, GROSS = 2.5, 4.0  # theory: sigmas; 1.2 % of normal errors lie between them, 0.006 % beyond
BETWEEN = 0.15  # of the gross errors may lie between, besides what a normal puts there: benchmarks/values.py
UNUSUAL = 4.0  # standard errors of a correlation: a choice, for hundreds of features at once
DOUBT = 1e-3  # a choice: level at which good residuals are not normal
CELLS = 10  # convention: equally likely parts of the good residuals
GAP = 1.0  # a choice: spreads of the others' features that part a cluster of outliers from them
EDGE = 0.01  # a choice: of each side that may lie in the gap


def strewn(z: Array, columns: Array) -> bool:
    """Whether the outliers among residuals need no other explanation than that they are wrong.

    They lie apart from the good residuals, which are normal and whose size depends on nothing; and which rows they are
    depends on nothing either, unless they stand apart from all others in the features too (leverage points).

    Parameters
    ----------
    z : ndarray of shape (n,)
        Residuals in units of the sigma of the good ones.
    columns : ndarray of shape (n, p)
        What they might depend on.

    Returns
    -------
    bool
    """
    size = np.abs(z)
    good, gross = size <= GOOD, size > GROSS
    expected = len(z) * (2 * ndtr(-GOOD) + BETWEEN * float(gross.mean()))
    if np.sum(~good & ~gross) > expected + 2 * np.sqrt(expected) or not _normal(z[good]):
        return False
    ranks = _ranks(columns)
    if _depends(size[good], ranks[good]):
        return False
    return not _depends(gross.astype(float), ranks) or _apart(columns, gross)


def _normal(z: Array) -> bool:
    """Whether residuals within ``GOOD`` sigmas are those of a normal."""
    edges = ndtri(np.linspace(ndtr(-GOOD), ndtr(GOOD), CELLS + 1)[1:-1])
    counts = np.bincount(np.searchsorted(edges, z), minlength=CELLS)
    expected = len(z) / CELLS
    return bool(np.sum(np.square(counts - expected)) / expected <= chi2.ppf(1 - DOUBT, CELLS - 1))


def _ranks(columns: Array) -> Array:
    """Ranks of every column, and how far they are from the middle: what falls, rises, or does both."""
    filled = np.where(np.isnan(columns), -np.inf, columns)
    ranks = np.apply_along_axis(rankdata, 0, filled) / len(columns) - 0.5
    return np.hstack([ranks, np.abs(ranks)])


def _depends(values: Array, ranks: Array) -> bool:
    """Whether values go with any of the ranks."""
    if len(values) < 3 or np.ptp(values) == 0:
        return False
    values = values - values.mean()
    centred = ranks - ranks.mean(axis=0)
    spread = np.sqrt(np.sum(np.square(centred), axis=0) * float(values @ values))
    correlation = np.divide(np.abs(values @ centred), spread, out=np.zeros(len(spread)), where=spread > 0)
    return bool(np.any(correlation * np.sqrt(len(values)) > UNUSUAL))


def _apart(columns: Array, gross: np.ndarray) -> bool:
    """Whether outliers form a cluster beyond all other rows: along the direction that parts the two best."""
    filled = np.nan_to_num(columns)
    others, ours = filled[~gross], filled[gross]
    spread = others.std(axis=0)
    kept = spread > 0
    others, ours = others[:, kept] / spread[kept], ours[:, kept] / spread[kept]
    step = ours.mean(axis=0) - others.mean(axis=0)
    covariance = np.atleast_2d(np.cov(others.T)) + 1e-3 * np.eye(int(kept.sum()))
    direction = np.linalg.solve(covariance, step)
    near, far = others @ direction, ours @ direction
    gap = float(np.quantile(far, EDGE) - np.quantile(near, 1 - EDGE))
    return gap > GAP * float(near.std())
