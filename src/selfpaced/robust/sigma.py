"""The standard deviation of the good residuals: a normal fitted to the small ones, whatever the rest does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from ..selection import frequencies
from .scales import Floats, effective_size, m_scale, weighted_quantile

__all__ = ["ResidualScale", "residual_scale", "truncated_sigma"]

CUTOFF = 2.5  # residuals beyond this many sigma do not estimate sigma: a choice
TAIL_RATIO = 0.0125745  # theory: residuals of a normal between one and two cutoffs, relative to those within one
SETTLING = 20  # cost: steps of the sigma that settles
MOST_SETTLING = 3.0  # a choice: in units of 1 / sqrt(n), by which sigma may rise when it settles; 0.8 is usual
LEAST_SETTLING = 0.8  # a choice: of its first value, to which sigma may fall when it settles
RISE = 1.5  # the cut rises by half of itself at most, so that a gap stops it: a choice


class _Truncated:
    """Sigma of a normal seen only below a cut, for any cut, after sorting once."""

    def __init__(self, size: Floats, sample_weight: Floats | None) -> None:
        if sample_weight is None:
            self.size = np.sort(size)
            self.count = np.arange(1.0, size.size + 1)
            self.square = np.cumsum(self.size**2)
        else:
            order = np.argsort(size, kind="stable")
            self.size, weight = size[order], frequencies(sample_weight)[order]
            self.count = np.cumsum(weight)
            self.square = np.cumsum(weight * self.size**2)
        self.total = float(self.count[-1])

    def below(self, cut: float) -> tuple[float, float]:
        """Weight and sum of squares of the residuals below a cut."""
        last = int(np.searchsorted(self.size, cut, side="right"))
        return (float(self.count[last - 1]), float(self.square[last - 1])) if last else (0.0, 0.0)

    def sigma(self, cut: float) -> float:
        """The smaller of two estimates: from the spread below the cut, and from the share below it."""
        count, square = self.below(cut)
        if not count or not cut > 0:
            return 0.0
        share = min(count / self.total, 1 - 0.5 / max(self.total, 1.0))
        return min(_spread(square / count, cut), cut / float(ndtri((1 + share) / 2)))

    def settled(self, sigma: float, most: float) -> float:
        """The spread below the cut alone, from a first sigma up to the largest allowed.

        Where clearly more residuals lie just beyond the cut than a normal has there, outliers are spread evenly over
        both sides of it, and their part is taken out.
        """
        found = sigma
        for _ in range(SETTLING):
            cut = CUTOFF * found
            count, square = self.below(cut)
            usual = count * TAIL_RATIO
            excess = self.below(2 * cut)[0] - count - usual
            if excess > 3 * math.sqrt(usual + 1):
                count, square = count - excess, square - excess * cut**2 / 3
            if not (count > 0 and square > 0):
                break
            before, found = found, min(max(_spread(square / count, cut), LEAST_SETTLING * sigma), most)
            if abs(found - before) <= 1e-4 * before:
                break
        return found


def _spread(square: float, cut: float) -> float:
    """Sigma of a normal by its mean square below a cut."""
    ratios, cuts = _truncation_table()
    return cut / float(np.interp(square / cut / cut, ratios, cuts))


@lru_cache(maxsize=1)
def _truncation_table() -> tuple[Floats, Floats]:
    """E[x^2 | |x| <= k] / k^2 for a standard normal, with k: sorted by the former, ready for interp."""
    cut = np.linspace(0.02, 8, 4000)
    density = np.exp(-cut * cut / 2) / math.sqrt(2 * math.pi)
    ratio = (1 - 2 * cut * density / (2 * ndtr(cut) - 1)) / cut**2
    return ratio[::-1].copy(), cut[::-1].copy()


def truncated_sigma(
    residuals: ArrayLike, sample_weight: Floats | None = None, *, cutoff: float = CUTOFF, max_iter: int = 60
) -> float:
    """Sigma of the normal that fits the small residuals, found from below.

    The cut starts at the median and rises to ``cutoff * sigma(cut)`` by at most half of itself at a time, so a
    gap between the good residuals and the outliers stops it: 40 % far outliers do not inflate it, where the
    median (2.05 times too large) and the M-scale (2.48) suffer.

    >>> values = np.r_[ndtri((np.arange(600) + 0.5) / 600), np.full(400, 30.0)]
    >>> from selfpaced.robust import madn
    >>> round(truncated_sigma(values), 2), round(madn(values), 2)
    (1.0, 2.04)
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    cut = weighted_quantile(size, 0.5, sample_weight)
    if not cut > 0:
        return 0.0
    below = _Truncated(size, sample_weight)
    sigma = below.sigma(cut)
    for _ in range(max_iter):
        if cutoff * sigma > cut * (1 + 1e-9):
            cut = min(cutoff * sigma, RISE * cut)
            sigma = below.sigma(cut)
            continue
        cut, before = cutoff * sigma, sigma
        sigma = below.sigma(cut)
        if not sigma > 0:  # the cut has fallen below every residual: none is near zero, so they have no small ones
            return before
        if abs(sigma - before) <= 1e-8 * before:
            break
    return sigma


@dataclass(frozen=True)
class ResidualScale:
    """Two scales of one set of residuals.

    Attributes
    ----------
    sigma : float
        The standard deviation of the good residuals.
    majority : float
        The M-scale, which looks at half of the residuals.
    """

    sigma: float
    majority: float


def residual_scale(residuals: ArrayLike, sample_weight: Floats | None = None, *, dof: float = 0.0) -> ResidualScale:
    """Sigma of the good residuals of a fit with ``dof`` coefficients.

    The truncated-normal sigma takes the smaller of two estimates on its way up, which keeps it from climbing over
    outliers and makes it a little too small. Once it has arrived the spread below the cut is right by itself, and is
    corrected for the coefficients. ``benchmarks/small_sample_scale.py`` shows what is left of the bias.

    >>> round(residual_scale(ndtri((np.arange(1000) + 0.5) / 1000)).sigma, 2)
    1.0
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    majority = m_scale(size, sample_weight, dof=dof, tol=1e-5)
    n = effective_size(sample_weight, size.size)
    sigma = truncated_sigma(size, sample_weight)
    if sigma > 0:
        sigma = _Truncated(size, sample_weight).settled(sigma, sigma * (1 + MOST_SETTLING / math.sqrt(n)))
    return ResidualScale(_for_coefficients(sigma, size, sample_weight, dof), majority)


def largest_sigma(residuals: ArrayLike, sample_weight: Floats | None = None, *, dof: float = 0.0) -> ResidualScale:
    """The largest sigma that the residuals of a sharp fit allow: how far a path that starts there may open.

    The S-estimate of many coefficients makes half of the residuals far too small. So the truncated sigma is divided by
    what it is at least at the normal, and the M-scale, which knows the same of itself, is the limit.
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    majority = m_scale(size, sample_weight, dof=dof, tol=1e-5)
    n = effective_size(sample_weight, size.size)
    sigma = sigma_of_fit(size, sample_weight, dof) / sharpness(n, dof)
    return ResidualScale(min(majority, sigma), majority)


def sharpness(n: float, dof: float) -> float:
    """What the truncated sigma of a sharp fit is at least at the normal of sigma 1, nearly always.

    ``benchmarks/small_sample_scale.py`` compares it with the fifth percentile of simulated S-estimates.
    """
    return float(np.clip(1 - 2.3 / math.sqrt(n) - 4 * max(0.0, dof / n - 0.05), 0.25, 1.0))


def sigma_of_fit(size: Floats, sample_weight: Floats | None, dof: float) -> float:
    """The truncated sigma of absolute residuals, corrected for the coefficients that were fitted to them."""
    return _for_coefficients(truncated_sigma(size, sample_weight), size, sample_weight, dof)


def _for_coefficients(sigma: float, size: Floats, sample_weight: Floats | None, dof: float) -> float:
    """Sigma corrected for the coefficients that were fitted to the residuals it is of."""
    inside = size <= CUTOFF * sigma
    share = float(inside.mean() if sample_weight is None else np.average(inside, weights=sample_weight))
    used = share * effective_size(sample_weight, size.size)
    return sigma * (math.sqrt(used / max(used - dof, 1.0)) if used > dof else 1.0)
