"""Whether outliers of a model look like mistakes: strewn over the rows, apart from the others, the others even."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import chi2, rankdata

__all__ = ["GROSS", "even_and_normal"]

Array = NDArray[np.floating[Any]]
GOOD, GROSS = 2.5, 4.0  # theory: sigmas; 1.2 % of normal errors lie between them, 0.006 % beyond
BETWEEN = 0.15  # of the gross errors may lie between, besides what a normal puts there: benchmarks/regression.py errors
UNUSUAL = 4.0  # standard errors of a correlation: a choice, for hundreds of features at once
DOUBT = 1e-3  # a choice: level at which good residuals are not normal
CELLS = 10  # convention: equally likely parts of the good residuals
GAP = 1.0  # a choice: spreads of the others' features that part a cluster of outliers from them
EDGE = 0.1  # a choice: of the outliers and of the others that may lie on the wrong side of the gap
ROUNDING = 1e-9  # numerical safety: of a column's size, below which differences are rounding


def even_and_normal(z: Array, columns: Array) -> bool:
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
    if good.sum() < CELLS or gross.sum() > good.sum():  # outliers are few, or there is nothing that they lie out of
        return False
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
    size = np.nan_to_num(np.abs(columns)).max(axis=0)
    filled = np.round(columns / np.where(size > 0, size, 1.0) / ROUNDING)
    filled = np.where(np.isnan(filled), -np.inf, filled)
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
    """Whether most outliers form a cluster beyond a gap in the features, along the direction that parts the two best.

    A relation that bends has rows on its way from the good ones to the others; leverage points have none.
    """
    filled = np.nan_to_num(columns)
    spread = filled[~gross].std(axis=0)
    kept = spread > 0
    filled = filled[:, kept] / spread[kept]
    others = filled[~gross]
    covariance = np.atleast_2d(np.cov(others.T)) + 1e-3 * np.eye(int(kept.sum()))
    along = filled @ np.linalg.solve(covariance, filled[gross].mean(axis=0) - others.mean(axis=0))
    order = np.argsort(along, kind="stable")
    sorted_along, sorted_gross = along[order], gross[order]
    ours_below = np.cumsum(sorted_gross)[:-1] / gross.sum()
    others_below = np.cumsum(~sorted_gross)[:-1] / (~gross).sum()
    between = (ours_below <= EDGE) & (others_below >= 1 - EDGE)
    return bool(np.any(np.diff(sorted_along)[between] > GAP * float(along[~gross].std())))
