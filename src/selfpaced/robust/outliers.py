"""How many residuals are outliers, and which: what a normal of a given sigma does not explain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from .scales import Floats, effective_size
from .sigma import CUTOFF

__all__ = ["OutlierShare", "outlier_probability", "outlier_share", "second_heap"]

# Measured by benchmarks/regression.py tables.
HEAP, WINDOW = 2.5, 1.5  # first cut in sigmas, width of a window as a ratio
RISING = 2.0  # z from which the density rises again

STEP = 1.1  # cost: ratio of neighbouring cuts
NORMAL_95 = 1.96  # theory: sigmas to each side that hold 95 % of a normal


@dataclass(frozen=True)
class OutlierShare:
    """An estimated share of outliers with an interval of about 95 %."""

    estimate: float
    low: float
    high: float


def outlier_share(
    residuals: ArrayLike, sigma: float, sample_weight: Floats | None = None, *, cutoff: float = CUTOFF
) -> OutlierShare:
    """How many residuals a normal of this sigma does not explain.

    With F the share within ``cutoff * sigma``, the estimate is 1 - F / P(|N(0, 1)| <= cutoff); the interval
    adds the error of sigma to the one of F.

    >>> from scipy.special import ndtri
    >>> values = np.r_[ndtri((np.arange(600) + 0.5) / 600), np.full(400, 30.0)]
    >>> round(outlier_share(values, 1.0).estimate, 2)
    0.4
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    n = effective_size(sample_weight, size.size)
    inside = size <= cutoff * sigma
    share = float(inside.mean() if sample_weight is None else np.average(inside, weights=sample_weight))
    expected = float(2 * ndtr(cutoff) - 1)
    # Wilson's interval of the share, widened by sigma's own error of about 1 / sqrt(2 n).
    z2 = NORMAL_95**2
    middle, half = (share + z2 / (2 * n)) / (1 + z2 / n), NORMAL_95 / (1 + z2 / n)
    half *= math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    density = 2 * math.exp(-(cutoff**2) / 2) / math.sqrt(2 * math.pi)
    moved = NORMAL_95 * share * density * cutoff / math.sqrt(2 * n)
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


def second_heap(t: Floats) -> float:
    """Return the cut beyond which the density of standardised residuals rises again; inf if it only falls.

    Residuals of clean data become rarer the farther out one looks. For an even density, a share ``WINDOW / (1 +
    WINDOW)`` of the rows in a window of two equal ratios would lie in its outer half.

    >>> rng = np.random.default_rng(0)
    >>> clean = rng.standard_t(3, size=500)
    >>> second_heap(clean), 3 < second_heap(np.r_[clean, rng.normal(9, 1, size=50)]) < 9
    (inf, True)
    """
    t = np.sort(t[t > HEAP / WINDOW])
    if not (t.size and t[-1] > HEAP):
        return np.inf
    cuts = HEAP * STEP ** np.arange(int(np.log(t[-1] / HEAP) / np.log(STEP)) + 1)
    below, here, above = (np.searchsorted(t, cuts * ratio) for ratio in (1 / WINDOW, 1.0, WINDOW))
    even, rows = WINDOW / (1 + WINDOW), np.maximum(above - below, 1)
    z = (above - here - even * rows) / np.sqrt(even * (1 - even) * rows)
    best = int(z.argmax())
    return float(cuts[best]) if z[best] > RISING else np.inf
