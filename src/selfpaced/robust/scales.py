"""Quantiles, robust scales and a robust location of residuals, and the outliers that a normal does not explain.

What takes ``sample_weight`` takes it as frequencies up to a common factor, see `selfpaced.selection.frequencies`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from ..selection import effective_size, frequencies

Floats = NDArray[np.floating[Any]]
MAD_TO_SIGMA = 1.4826022185056018  # theory: 1 / Phi^-1(3/4), the reciprocal of the median of |N(0, 1)|
BIWEIGHT = 1.547645  # theory: Tukey's constant whose M-scale is consistent at the normal with a breakdown of 1/2
CLIPPED_SD = 0.986578  # theory: the standard deviation of N(0, 1) within 3 sigma
CUTOFF = 2.5  # convention: sigmas beyond which residuals are outliers (Rousseeuw and Leroy 1987)
TAIL_RATIO = 0.0125745  # theory: residuals of a normal between one and two cutoffs, relative to those within one
SETTLING = 20  # cost: steps of the sigma that settles
# benchmarks/regression.py, scale: without either, sigma of 60 rows, 40 % of them outliers at 5 sigma, is 1.7, not 1.1.
LEAST_SETTLING = 0.8  # of its first value, to which sigma may fall when it settles
RISE = 1.5  # factor by which the cut rises at most, so that a gap stops it

# Measured by benchmarks/regression.py tables.
HEAP, WINDOW = 2.5, 1.5  # first cut in sigmas, width of a window as a ratio
RISING = 2.0  # z from which the density rises again

STEP = 1.1  # cost: ratio of neighbouring cuts
NORMAL_95 = 1.96  # theory: sigmas to each side that hold 95 % of a normal


def weighted_quantile(values: ArrayLike, q: float, sample_weight: Floats | None = None) -> float:
    """The smallest value with at least a share q of the weight at or below it.

    >>> weighted_quantile([3.0, 1.0, 2.0], 0.5), weighted_quantile([3.0, 1.0, 2.0], 0.5, np.array([5.0, 1, 1]))
    (2.0, 3.0)
    """
    values = np.asarray(values)
    if sample_weight is None:
        rank = min(max(math.ceil(q * values.size - 1e-9), 1), values.size) - 1
        return float(np.partition(values, rank)[rank])
    order = np.argsort(values, kind="stable")
    below = np.cumsum(sample_weight[order])
    return float(values[order[min(np.searchsorted(below, q * below[-1] * (1 - 1e-12)), values.size - 1)]])


def madn(residuals: ArrayLike, sample_weight: Floats | None = None) -> float:
    """The median absolute residual, consistent for the normal's standard deviation.

    >>> round(madn([-1.0, 0.0, 1.0, 50.0, -1.0]), 4)
    1.4826
    """
    return MAD_TO_SIGMA * weighted_quantile(np.abs(residuals), 0.5, sample_weight)


def noise_scale(residuals: Floats, floor: float = 0.0, start: float | None = None) -> float:
    """The standard deviation of the small residuals: the median's (or ``start``), then refined by clipping at 3 sigma.

    >>> rng = np.random.default_rng(0)
    >>> residuals = np.concatenate([0.1 * rng.standard_normal(6000), rng.uniform(-20, 20, 3000)])
    >>> bool(0.09 < noise_scale(residuals) < 0.12)
    True
    """
    size = np.abs(residuals)
    scale = MAD_TO_SIGMA * float(np.median(size)) if start is None else start
    for _ in range(15):
        inside = size[size < 3 * scale].astype(np.float64)
        refined = math.sqrt(float(np.mean(inside * inside))) / CLIPPED_SD if inside.size else scale
        if abs(refined - scale) <= 1e-3 * scale:
            break
        scale = refined
    return max(scale, floor)


def m_scale(
    residuals: ArrayLike,
    sample_weight: Floats | None = None,
    *,
    dof: float = 0.0,
    start: float | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
) -> float:
    """Tukey's M-scale with the highest breakdown: the s with mean rho(r / s) = (1 - dof / n) / 2.

    Zero if half the residuals or more are zero.

    >>> from scipy.special import ndtri
    >>> round(m_scale(ndtri((np.arange(1000) + 0.5) / 1000)), 2)
    1.0
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    target = 0.5 * (1 - min(dof / effective_size(sample_weight, size.size), 0.9))
    scale = start or MAD_TO_SIGMA * weighted_quantile(size, 0.5, sample_weight)
    if not scale > 0:
        scale = float(np.average(size, weights=sample_weight))
    largest = float(size.max())
    if not (scale > 0 and largest > 0):
        return 0.0
    for _ in range(max_iter):
        rho = _biweight_rho(size, BIWEIGHT * scale)
        mean = float(rho.mean() if sample_weight is None else np.average(rho, weights=sample_weight))
        update = scale * math.sqrt(mean / target)
        if update < 1e-12 * largest:
            return 0.0
        if abs(update - scale) <= tol * scale:
            return update
        scale = update
    return scale


def _biweight_rho(size: Floats, cut: float | Floats) -> Floats:
    inside = 1 - np.minimum(size / cut, 1) ** 2
    return np.asarray(1 - inside * inside * inside)


def shorth(values: ArrayLike, sample_weight: Floats | None = None) -> float:
    """Return the mean of the shortest half of the values, which a far minority on one side does not change.

    >>> shorth([0.0, 1.0, 2.0, 90.0, 95.0])
    1.0
    """
    values = np.asarray(values, dtype=float)
    weight = np.ones(values.size) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    order = np.argsort(values, kind="stable")
    order = order[weight[order] > 0]
    values, weight = values[order], weight[order]
    above = np.cumsum(weight)
    last = np.searchsorted(above, above - weight + above[-1] / 2 * (1 - 1e-12))
    first = np.flatnonzero(last < values.size)
    best = first[np.argmin(values[last[first]] - values[first])]
    half = (values >= values[best]) & (values <= values[last[best]])
    return float(np.average(values[half], weights=weight[half]))


# ----------------------------------------------------------------------------------------- sigma of the good residuals


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

    def settled(self, sigma: float) -> float:
        """The spread below the cut alone, from a first sigma.

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
            before, found = found, max(_spread(square / count, cut), LEAST_SETTLING * sigma)
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


def truncated_sigma(residuals: ArrayLike, sample_weight: Floats | None = None) -> float:
    """Sigma of the normal that fits the small residuals, found from below.

    The cut starts at the median and rises to ``CUTOFF * sigma(cut)`` by at most half of itself at a time, so a
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
    for _ in range(60):
        if CUTOFF * sigma > cut * (1 + 1e-9):
            cut = min(CUTOFF * sigma, RISE * cut)
            sigma = below.sigma(cut)
            continue
        cut, before = CUTOFF * sigma, sigma
        sigma = below.sigma(cut)
        if not sigma > 0:  # the cut has fallen below every residual: none is near zero, so they have no small ones
            return before
        if abs(sigma - before) <= 1e-8 * before:
            break
    return sigma


def residual_scale(residuals: ArrayLike, sample_weight: Floats | None = None, *, dof: float = 0.0) -> float:
    """Sigma of the good residuals of a fit with ``dof`` coefficients.

    The truncated-normal sigma takes the smaller of two estimates on its way up, which keeps it from climbing over
    outliers and makes it a little too small. Once it has arrived the spread below the cut is right by itself, and is
    corrected for the coefficients. ``benchmarks/regression.py --part scale`` shows what is left.

    >>> round(residual_scale(ndtri((np.arange(1000) + 0.5) / 1000)), 2)
    1.0
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    sigma = truncated_sigma(size, sample_weight)
    if sigma > 0:
        sigma = _Truncated(size, sample_weight).settled(sigma)
    return _for_coefficients(sigma, size, sample_weight, dof)


def largest_sigma(residuals: ArrayLike, sample_weight: Floats | None = None, *, dof: float = 0.0) -> float:
    """The largest sigma that the residuals of a sharp fit allow: how far a path that starts there may open.

    The S-estimate of many coefficients makes half of the residuals far too small. So the truncated sigma is divided by
    what it is at least at the normal, and the M-scale, which knows the same of itself, is the limit.
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    majority = m_scale(size, sample_weight, dof=dof, tol=1e-5)
    n = effective_size(sample_weight, size.size)
    sigma = sigma_of_fit(size, sample_weight, dof) / sharpness(n, dof)
    return min(majority, sigma)


def sharpness(n: float, dof: float) -> float:
    """What the truncated sigma of a sharp fit is at least at the normal of sigma 1, nearly always.

    ``benchmarks/regression.py --part scale`` compares it with the fifth percentile of simulated S-estimates.
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


# ------------------------------------------------------------------------------------------------------------ outliers


@dataclass(frozen=True)
class OutlierShare:
    """An estimated share of outliers with an interval of about 95 %."""

    estimate: float
    low: float
    high: float


def outlier_share(residuals: ArrayLike, sigma: float, sample_weight: Floats | None = None) -> OutlierShare:
    """How many residuals a normal of this sigma does not explain.

    With F the share within ``CUTOFF * sigma``, the estimate is 1 - F / P(|N(0, 1)| <= CUTOFF); the interval
    adds the error of sigma to the one of F.

    >>> from scipy.special import ndtri
    >>> values = np.r_[ndtri((np.arange(600) + 0.5) / 600), np.full(400, 30.0)]
    >>> round(outlier_share(values, 1.0).estimate, 2)
    0.4
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    n = effective_size(sample_weight, size.size)
    inside = size <= CUTOFF * sigma
    share = float(inside.mean() if sample_weight is None else np.average(inside, weights=sample_weight))
    expected = float(2 * ndtr(CUTOFF) - 1)
    # Wilson's interval of the share, widened by sigma's own error of about 1 / sqrt(2 n).
    z2 = NORMAL_95**2
    middle, half = (share + z2 / (2 * n)) / (1 + z2 / n), NORMAL_95 / (1 + z2 / n)
    half *= math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    density = 2 * math.exp(-(CUTOFF**2) / 2) / math.sqrt(2 * math.pi)
    moved = NORMAL_95 * share * density * CUTOFF / math.sqrt(2 * n)
    high = math.hypot(share - (middle - half), moved)
    low = math.hypot(middle + half - share, moved)
    bounds = (1 - share / expected, 1 - (share + low) / expected, 1 - (share - high) / expected)
    return OutlierShare(*(float(np.clip(value, 0.0, 1.0)) for value in bounds))


def outlier_probability(residuals: ArrayLike, sigma: float, share: float, *, reach: float | None = None) -> Floats:
    """How likely each residual is an outlier: a broad component against normal errors, at a share of outliers.

    The broad component is uniform as far as the largest residual, and 3 sigma at least. Without errors (``sigma`` 0)
    whatever is not zero up to rounding is an outlier. With a ``reach``, the largest residual of the rows that the share
    was estimated of, each residual is assessed by itself; without, they are those rows, and one of them at least is
    taken for an outlier.

    >>> outlier_probability([0.0, 1.0, 3.0, 30.0], sigma=1.0, share=0.25).round(2).tolist()
    [0.01, 0.02, 0.56, 1.0]
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    if reach is None:
        reach, share = float(size.max(initial=0.0)), max(share, 1.0 / max(len(size), 2))
    if not sigma > 0.0:
        return np.asarray(size > 1e-9 * max(reach, 1e-300), dtype=float)
    share, reach = min(share, 0.5), max(reach, 3.0 * sigma)
    broad = math.log(share) - math.log(2.0 * reach)
    good = math.log1p(-share) - 0.5 * np.minimum(size / sigma, 1e150) ** 2 - math.log(sigma * math.sqrt(2.0 * math.pi))
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(good - broad, -700.0, 700.0))))


def second_heap(t: Floats, weight: Floats | None = None) -> float:
    """Return the cut beyond which the density of standardised residuals rises again; inf if it only falls.

    Residuals of clean data become rarer the farther out one looks. For an even density, a share ``WINDOW / (1 +
    WINDOW)`` of the rows in a window of two equal ratios would lie in its outer half. A weight is the number of rows
    that a row stands for.

    >>> rng = np.random.default_rng(0)
    >>> clean = rng.standard_t(3, size=500)
    >>> second_heap(clean), 3 < second_heap(np.r_[clean, rng.normal(9, 1, size=50)]) < 9
    (inf, True)
    """
    far = np.flatnonzero(t > HEAP / WINDOW)
    far = far[np.argsort(t[far], kind="stable")]
    t = t[far]
    if not (t.size and t[-1] > HEAP):
        return np.inf
    cuts = HEAP * STEP ** np.arange(int(np.log(t[-1] / HEAP) / np.log(STEP)) + 1)
    counts = np.append(0.0, np.cumsum(np.ones(t.size) if weight is None else weight[far]))
    below, here, above = (counts[np.searchsorted(t, cuts * ratio)] for ratio in (1 / WINDOW, 1.0, WINDOW))
    even, rows = WINDOW / (1 + WINDOW), np.maximum(above - below, 1)
    z = (above - here - even * rows) / np.sqrt(even * (1 - even) * rows)
    best = int(z.argmax())
    return float(cuts[best]) if z[best] > RISING else np.inf
