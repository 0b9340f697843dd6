"""Scales of a target on which its noise may be even: as it is, its logarithm, or a power of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import yeojohnson, yeojohnson_llf

from ..robust import madn

__all__ = ["TargetScale", "target_scales"]

Array = NDArray[np.floating[Any]]
POSITIVE = 0.85  # of the values must be positive for a logarithm: benchmarks/regression.py errors
NEAR_ONE = 0.15  # a choice: a power so near to 1 is none
POWERS = (0.0, 2.0)  # a choice: a negative power draws one-sided outliers back among the others
MIDDLE = (0.1, 0.9)  # a choice: quantiles between which the power is found, away from what may be wrong


@dataclass(frozen=True)
class TargetScale:
    """The target as it is, its logarithm, or Yeo and Johnson's power of it.

    Attributes
    ----------
    name : {"none", "log", "power"}
    power, unit : float
        Of ``y / unit``.
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
        """Return values on this scale."""
        if self.name == "none":
            return y
        if self.name == "log":
            return np.asarray(np.log(np.maximum(y, self.least)))
        return np.asarray(yeojohnson(np.asarray(y / self.unit, dtype=float), self.power))

    def log_slope(self, y: Array) -> Array:
        """Return the logarithm of the derivative, which makes densities on two scales comparable."""
        if self.name == "none":
            return np.zeros(len(y))
        if self.name == "log":
            return -self.forward(y)
        sizes = np.sign(y) * np.log1p(np.abs(y / self.unit))
        return np.asarray((self.power - 1) * sizes - np.log(self.unit))

    def holds(self, y: Array) -> NDArray[np.bool_]:
        """Return which values the scale has a place for."""
        return y > 0 if self.name == "log" else np.ones(len(y), dtype=bool)

    @property
    def words(self) -> str:
        """How it reads in a sentence."""
        power = {"none": 1.0, "log": 0.0}.get(self.name, round(self.power, 1))
        return "" if power == 1 else f"the target to the power {power:g}" if power else "the logarithm of the target"


def target_scales(y: Array) -> Iterator[TargetScale]:
    """Yield the scales worth a try, the target's own first."""
    yield TargetScale()
    positive = y > 0
    if positive.mean() >= POSITIVE:
        yield TargetScale("log", least=float(y[positive].min()))
    unit = madn(y - np.median(y))
    if not unit > 0:
        return
    low, high = np.quantile(y / unit, MIDDLE)
    inside = (y / unit)[(y / unit >= low) & (y / unit <= high)]
    if np.ptp(inside) > 0:
        found = minimize_scalar(lambda p: -yeojohnson_llf(p, inside), bounds=POWERS, method="bounded")
        if abs(found.x - 1) > NEAR_ONE:
            yield TargetScale("power", power=float(found.x), unit=unit)
