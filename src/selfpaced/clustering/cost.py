"""A rule at a pace, as the kernels need it: latent loss and relative weight of squared distances.

The registry's formulas are written for every limit and every array library. The inner loop of k-means evaluates
them on views x restarts x clusters x samples numbers per sweep, always finite, non-negative and float32; for the
commonest rules a fused in-place formula of the same function is several times faster. Any other rule goes
through the registry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..regularizers import REGISTRY, Regularizer

Floats = NDArray[Any]
LARGEST = 60.0  # numerical safety: e^-lam of the fused logistic formula must not leave float32


def _welsch(z: Floats, lam: float) -> Floats:  # noqa: ARG001
    # 1 - exp(-z) loses digits for small z, but only differences of float32 sums over clusters matter here.
    np.negative(z, out=z)
    np.exp(z, out=z)
    return np.subtract(1, z, out=z)


def _cauchy(z: Floats, lam: float) -> Floats:  # noqa: ARG001
    z += 1
    return np.log(z, out=z)


def _geman_mcclure(z: Floats, lam: float) -> Floats:  # noqa: ARG001
    z += 1
    np.reciprocal(z, out=z)
    return np.subtract(1, z, out=z)


def _huber(z: Floats, lam: float) -> Floats:  # noqa: ARG001
    # min(z, 1)/2 + (sqrt(max(z, 1)) - 1): one formula for both branches.
    low = np.minimum(z, 1)
    low *= 0.5
    np.maximum(z, 1, out=z)
    np.sqrt(z, out=z)
    z += low
    z -= 1
    return z


def _l1l2(z: Floats, lam: float) -> Floats:  # noqa: ARG001
    z += 1
    np.sqrt(z, out=z)
    z -= 1
    return z


def _hard(z: Floats, lam: float) -> Floats:  # noqa: ARG001
    return np.minimum(z, 1, out=z)


def _linear(z: Floats, lam: float) -> Floats:  # noqa: ARG001
    np.minimum(z, 1, out=z)  # beyond 1 the weight is zero and the loss constant
    z -= 0.5 * z * z
    return z


def _tukey(z: Floats, lam: float) -> Floats:  # noqa: ARG001
    np.minimum(z, 1, out=z)
    np.subtract(1, z, out=z)
    cube = z * z
    cube *= z
    return np.subtract(1, cube, out=z)


def _mixture(z: Floats, lam: float) -> Floats:  # noqa: ARG001
    # z up to 1/4, then 2 sqrt(z) - z - 1/2 up to z = 1, then constant; one formula for all three.
    low = np.minimum(z, 0.25)
    np.clip(z, 0.25, 1, out=z)
    low -= z
    np.sqrt(z, out=z)
    z *= 2
    z += low
    z -= 0.75
    return z


def _logistic(z: Floats, lam: float) -> Floats:
    # log(1 + e^-lam) - log(e^-z + e^-lam): the same as the textbook form, without its difference of large terms.
    floor = math.exp(-lam)
    np.negative(z, out=z)
    np.exp(z, out=z)
    z += z.dtype.type(floor)
    np.log(z, out=z)
    np.subtract(z.dtype.type(math.log1p(floor)), z, out=z)
    return np.multiply(z, z.dtype.type(1 + floor), out=z)


# Rule name -> its latent loss in units of the loss scale, up to a positive factor.
Fused = Callable[[Floats, float], Floats]
FUSED: dict[str, Fused] = {
    "welsch": _welsch,
    "cauchy": _cauchy,
    "geman-mcclure": _geman_mcclure,
    "huber": _huber,
    "l1l2": _l1l2,
    "hard": _hard,
    "linear": _linear,
    "tukey": _tukey,
    "mixture-zhao": _mixture,
    "logistic": _logistic,
}


@dataclass(frozen=True)
class Cost:
    """The latent loss of one rule at one pace; ``rule=None`` is the plain squared distance.

    Attributes
    ----------
    rule : Regularizer or None
        The elementwise rule.
    lam : float
        Its pace.
    unit : float
        Distances are divided by it before they meet the rule: rules that are not free of scale need it.
    """

    rule: Regularizer | None = None
    lam: float = float("inf")
    unit: float = 1.0

    @property
    def plain(self) -> bool:
        return self.rule is None

    def latent(self, distance: Floats) -> Floats:
        """Latent loss in the units of the distances, divided by the rule's largest weight (slope 1 at zero)."""
        if self.rule is None:
            return distance
        fused = self._fused()
        if fused is not None:
            formula, scale = fused
            value = formula(distance * distance.dtype.type(1 / scale), self.lam)
            value *= distance.dtype.type(scale * _SLOPE[self.rule.name])
            return value
        value = self.rule.latent(distance / distance.dtype.type(self.unit), self.lam)
        return value * distance.dtype.type(self.unit / float(self.rule.max_weight(self.lam)))

    def weight(self, distance: Floats) -> Floats:
        """Weight relative to its maximum, in [0, 1]."""
        if self.rule is None:
            return np.ones_like(distance)
        return self.rule.relative_weight(distance / distance.dtype.type(self.unit), self.lam)

    def _fused(self) -> tuple[Fused, float] | None:
        """The fused formula and the distance that is its unit, where there is one for this rule and pace."""
        # Only for the registry's rule in its default shape: another shape, or a user's rule, may bear the name too.
        if self.rule is None or self.rule.name not in FUSED or self.rule != REGISTRY[self.rule.name]():
            return None
        formula = FUSED[self.rule.name]
        if self.rule.power is None:
            return (formula, self.unit) if -LARGEST < self.lam < LARGEST else None
        scale = self.unit * self.lam**self.rule.power
        # Outside this range z = distance / scale leaves float32: the registry's careful formula takes over.
        return (formula, scale) if 1e-12 < scale < 1e12 else None


# theory: 1 / slope of the fused formula at zero, so that every latent loss starts with slope 1.
_SLOPE = {
    "welsch": 1.0,
    "cauchy": 1.0,
    "geman-mcclure": 1.0,
    "huber": 2.0,
    "l1l2": 2.0,
    "hard": 1.0,
    "linear": 1.0,
    "tukey": 1 / 3,
    "mixture-zhao": 1.0,
    "logistic": 1.0,
}
