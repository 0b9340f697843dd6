"""Quantiles, robust scales and a robust location of residuals.

What takes ``sample_weight`` takes it as frequencies up to a common factor, see `selfpaced.selection.frequencies`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..selection import effective_size

__all__ = ["effective_size", "m_scale", "madn", "noise_scale", "shorth", "weighted_quantile"]

Floats = NDArray[np.floating[Any]]
MAD_TO_SIGMA = 1.4826022185056018  # theory: 1 / Phi^-1(3/4), the reciprocal of the median of |N(0, 1)|
BIWEIGHT = 1.547645  # theory: Tukey's constant whose M-scale is consistent at the normal with a breakdown of 1/2
CLIPPED_SD = 0.986578  # theory: the standard deviation of N(0, 1) within 3 sigma


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

    Zero where half the residuals or more are zero.

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
