"""Robust scales and locations of residuals, and how far a rule may open for a given scale.

Everything takes ``sample_weight`` as counts: a row of weight 2 is that row twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from .regularizers import Regularizer

__all__ = [
    "OutlierShare",
    "ResidualScale",
    "effective_size",
    "efficiency",
    "efficient_lam",
    "efficient_pace",
    "m_scale",
    "madn",
    "outlier_share",
    "residual_scale",
    "shorth",
    "truncated_sigma",
    "weighted_quantile",
]

Floats = NDArray[np.floating[Any]]
CONSISTENCY = 1.4826022185056018  # 1 / Phi^-1(3/4): the median of |N(0, 1)| is its reciprocal
BIWEIGHT = 1.547645  # Tukey's constant whose M-scale is consistent at the normal with a breakdown of 1/2
CUTOFF = 2.5  # residuals beyond this many sigma are not used to estimate sigma


def effective_size(sample_weight: Floats | None, n_rows: int) -> float:
    """How many rows the weights stand for: their sum if they are counts, else Kish's effective size.

    >>> effective_size(np.array([2.0, 1.0]), 2), round(effective_size(np.array([0.2, 0.1]), 2), 6)
    (3.0, 1.8)
    """
    if sample_weight is None:
        return float(n_rows)
    total = float(np.sum(sample_weight))
    if np.array_equal(sample_weight, np.rint(sample_weight)):
        return total
    return total * total / float(np.sum(np.square(sample_weight)))


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
    return CONSISTENCY * weighted_quantile(np.abs(residuals), 0.5, sample_weight)


def shorth(values: ArrayLike, sample_weight: Floats | None = None) -> float:
    """The mean of the shortest half: where most values sit, untouched by a minority far away on one side.

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

    Zero where half the residuals or more are zero.

    >>> round(m_scale(ndtri((np.arange(1000) + 0.5) / 1000)), 2)
    1.0
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    target = 0.5 * (1 - min(dof / effective_size(sample_weight, size.size), 0.9))
    scale = start or CONSISTENCY * weighted_quantile(size, 0.5, sample_weight)
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
    return 1 - inside * inside * inside


class _Truncated:
    """Sigma of a normal seen only below a cut, for any cut, after sorting once."""

    def __init__(self, size: Floats, sample_weight: Floats | None) -> None:
        if sample_weight is None:
            self.size = np.sort(size)
            self.count = np.arange(1.0, size.size + 1)
            self.square = np.cumsum(self.size**2)
        else:
            order = np.argsort(size, kind="stable")
            self.size, weight = size[order], sample_weight[order]
            self.count = np.cumsum(weight)
            self.square = np.cumsum(weight * self.size**2)
        self.total = float(self.count[-1])

    def share(self, cut: float) -> float:
        last = int(np.searchsorted(self.size, cut, side="right"))
        return float(self.count[last - 1]) / self.total if last else 0.0

    def sigma(self, cut: float) -> float:
        """The smaller of two estimates: from the spread below the cut, and from the share below it."""
        last = int(np.searchsorted(self.size, cut, side="right"))
        if not last or not cut > 0:
            return 0.0
        ratio = float(self.square[last - 1]) / float(self.count[last - 1]) / cut**2
        ratios, cuts = _truncation_table()
        spread = cut / float(np.interp(ratio, ratios, cuts))
        share = min(float(self.count[last - 1]) / self.total, 1 - 0.5 / max(self.total, 1.0))
        return min(spread, cut / float(ndtri((1 + share) / 2)))


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
            cut = min(cutoff * sigma, 1.5 * cut)
            sigma = below.sigma(cut)
            continue
        cut, before = cutoff * sigma, sigma
        sigma = below.sigma(cut)
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

    The truncated-normal sigma, corrected for the coefficients and for its bias in small samples (it takes a
    minimum and starts at a median), and never above the M-scale.

    >>> round(residual_scale(ndtri((np.arange(1000) + 0.5) / 1000)).sigma, 2)
    1.0
    """
    size = np.abs(np.asarray(residuals, dtype=float))
    n = effective_size(sample_weight, size.size)
    majority = m_scale(size, sample_weight, dof=dof, tol=1e-5)
    sigma = truncated_sigma(size, sample_weight)
    inside = size <= CUTOFF * sigma
    used = float(inside.mean() if sample_weight is None else np.average(inside, weights=sample_weight)) * n
    sigma *= math.sqrt(used / max(used - dof, 1.0)) if used > dof else 1.0
    return ResidualScale(min(majority, sigma / _small_sample(n, dof)), majority)


def _small_sample(n: float, dof: float) -> float:
    """The mean of the truncated sigma at the normal, fitted to simulations over n and dof."""
    return float(np.clip(1 - 2.3 / math.sqrt(n) - 4 * max(0.0, dof / n - 0.05), 0.25, 1.0))


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
    z2 = 1.96**2
    middle, half = (share + z2 / (2 * n)) / (1 + z2 / n), 1.96 / (1 + z2 / n)
    half *= math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    density = 2 * math.exp(-(cutoff**2) / 2) / math.sqrt(2 * math.pi)
    moved = 1.96 * share * density * cutoff / math.sqrt(2 * n)
    high = math.hypot(share - (middle - half), moved)
    low = math.hypot(middle + half - share, moved)
    bounds = (1 - share / expected, 1 - (share + low) / expected, 1 - (share - high) / expected)
    return OutlierShare(*(float(np.clip(value, 0.0, 1.0)) for value in bounds))


@lru_cache(maxsize=1)
def _normal_grid() -> tuple[Floats, Floats]:
    x = (np.arange(8000) + 0.5) / 1000  # midpoints, so that a hard rule's step falls between two of them
    return x, np.exp(-x * x / 2) / np.exp(-x * x / 2).sum()


def efficiency(regularizer: Regularizer, lam: float, sigma: float = 1.0) -> float:
    """Precision of the fit at this pace relative to least squares, for normal errors of this sigma.

    With psi(x) = x * weight(x^2) it is E[x psi]^2 / E[psi^2].

    >>> from selfpaced.regularizers import get
    >>> round(efficiency(get("tukey"), 4.685), 3)
    0.95
    """
    x, mass = _normal_grid()
    psi = x * regularizer.relative_weight(np.square(sigma * x), lam)
    spread = float(mass @ psi**2)
    return float(mass @ (x * psi)) ** 2 / spread if spread > 0 else 0.0


def efficient_lam(regularizer: Regularizer, sigma: float = 1.0, target: float = 0.95) -> float:
    """The pace at which a rule on squared residuals has this efficiency: where an upward path should stop.

    Raises
    ------
    ValueError
        Where the rule has no such pace for errors of this size (rules that are not free of scale).

    Examples
    --------
    >>> from selfpaced.regularizers import get
    >>> [round(efficient_lam(get(name)), 1) for name in ("tukey", "welsch", "huber", "cauchy")]
    [4.7, 3.0, 1.3, 2.4]
    """
    if regularizer.power is not None:
        return _unit_lam(regularizer, target) * sigma ** (2 / regularizer.power)
    return _search_lam(regularizer, sigma, target)


def efficient_pace(regularizer: Regularizer, sigma: float, target: float = 0.95) -> tuple[float, float]:
    """The efficient pace and the unit of squared residuals it is meant in.

    The unit is 1 unless the rule is not free of scale and fits neither the residuals' own unit: then the squared
    residuals are divided by sigma^2 or by (10 sigma)^2, whichever the rule can work with.
    """
    if regularizer.power is not None:
        return efficient_lam(regularizer, sigma, target), 1.0
    for unit in (1.0, sigma**2, (10 * sigma) ** 2):
        try:
            return efficient_lam(regularizer, sigma / math.sqrt(unit), target), unit
        except ValueError as error:
            last = error
    raise last


@lru_cache(maxsize=256)
def _unit_lam(regularizer: Regularizer, target: float) -> float:
    return _search_lam(regularizer, 1.0, target)


def _search_lam(regularizer: Regularizer, sigma: float, target: float) -> float:
    """Bisection at the first crossing on a grid of paces, walking in the direction that opens the rule."""
    closed: float | None = None
    reached = 0.0
    for opened in _lam_grid(regularizer, sigma):
        value = efficiency(regularizer, opened, sigma)
        reached = max(reached, value)
        if value >= target:
            break
        closed = opened
    else:
        raise ValueError(_no_pace(regularizer, sigma, f"is at most {reached:.3f} efficient, not {target:.3f}"))
    if closed is None:
        raise ValueError(_no_pace(regularizer, sigma, "lets every residual in at any pace"))
    for _ in range(50):
        middle = 0.5 * (closed + opened)
        if efficiency(regularizer, middle, sigma) >= target:
            opened = middle
        else:
            closed = middle
    return float(opened)


def _no_pace(regularizer: Regularizer, sigma: float, why: str) -> str:
    return f"regularizer {regularizer!r} {why}, for errors of sigma {sigma:.3g}: rescale y or pass pace as a number"


def _lam_grid(regularizer: Regularizer, sigma: float) -> Floats:
    """Paces from closed to open, over the part of the rule's range that matters at this sigma."""
    low, high = regularizer.pace_range
    if math.isfinite(high):
        grid = low + (high - low) * np.geomspace(1e-8, 1 - 1e-6, 200)
    else:
        grid = np.geomspace(1e-3 * min(sigma, sigma * sigma), 1e4 * max(sigma, sigma * sigma), 200)
    return grid if regularizer.relative_opens > 0 else grid[::-1]
