"""Scales of a target on which its noise may be even: as it is, its logarithm, or a power of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from ..robust import madn
from .base import Array

__all__ = ["TargetScale", "target_scales"]

POSITIVE = 0.85  # of the values must be positive for a logarithm: benchmarks/values.py
NEAR_ONE = 0.15  # a choice: a power so near to 1 is none
POWERS = (0.0, 2.0)  # a choice: a negative power draws one-sided outliers back among the others
MIDDLE = (0.1, 0.9)  # a choice: quantiles between which the power is found, away from what may be wrong


@dataclass(frozen=True)
class TargetScale:
    """The target as it is, its logarithm, or Yeo and Johnson's power of it.

    Attributes
    ----------
    name : {"none", "log", "power"}
    power : float
        Of ``y / unit``.
    unit : float
        The spread of the target.
    least : float
        The smallest value a logarithm is taken of: predictions below are lifted to it.

    Examples
    --------
    >>> TargetScale("power", power=0.5, unit=1.0).forward(np.array([-1.0, 0.0, 3.0])).round(2).tolist()
    [-1.22, 0.0, 2.0]
    """

    name: str = "none"
    power: float = 1.0
    unit: float = 1.0
    least: float = 0.0

    def forward(self, y: Array) -> Array:
        """Values on this scale."""
        if self.name == "none":
            return y
        if self.name == "log":
            return np.asarray(np.log(np.maximum(y, self.least)))
        return yeo_johnson(y / self.unit, self.power)

    def log_slope(self, y: Array) -> Array:
        """The logarithm of the derivative, which makes densities on two scales comparable."""
        if self.name == "none":
            return np.zeros(len(y))
        if self.name == "log":
            return -self.forward(y)
        sizes = np.sign(y) * np.log1p(np.abs(y / self.unit))
        return np.asarray((self.power - 1) * sizes - np.log(self.unit))

    def holds(self, y: Array) -> np.ndarray:
        """Which values the scale has a place for."""
        return y > 0 if self.name == "log" else np.ones(len(y), dtype=bool)

    @property
    def words(self) -> str:
        """How it reads in a sentence."""
        if self.name == "none":
            return ""
        power = 0.0 if self.name == "log" else round(self.power, 1)
        return f"on the scale of its power {power:g}" if power else "on a log scale"


def yeo_johnson(u: Array, power: float) -> Array:
    """Yeo and Johnson's power (Biometrika 2000), which takes values of either sign."""
    out = np.empty_like(u)
    for side, sign, p in ((u >= 0, 1.0, power), (u < 0, -1.0, 2 - power)):
        size = np.log1p(np.abs(u[side]))
        out[side] = sign * (size if abs(p) < 1e-9 else np.expm1(p * size) / p)
    return out


def target_scales(y: Array) -> Iterator[TargetScale]:
    """Scales worth a try, the target's own first."""
    yield TargetScale()
    positive = y > 0
    if positive.mean() >= POSITIVE:
        yield TargetScale("log", least=float(y[positive].min()))
    unit = madn(y - np.median(y))
    if not unit > 0:
        return
    u = y / unit
    low, high = np.quantile(u, MIDDLE)
    inside = u[(u >= low) & (u <= high)]
    if np.ptp(inside) > 0:
        power = _likeliest_power(inside)
        if abs(power - 1) > NEAR_ONE:
            yield TargetScale("power", power=power, unit=unit)


def _likeliest_power(u: Array) -> float:
    """The power that makes these values most nearly normal."""
    slope = float(np.mean(np.sign(u) * np.log1p(np.abs(u))))

    def cost(power: float) -> float:
        variance = float(np.var(yeo_johnson(u, power)))
        return 0.5 * math.log(max(variance, 1e-300)) - (power - 1) * slope

    return float(minimize_scalar(cost, bounds=POWERS, method="bounded", options={"xatol": 1e-3}).x)
