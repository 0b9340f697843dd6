"""The protocol of a regularizer: a robust loss, its slope, its conjugate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Array, elementwise
from .conjugation import conjugate


@dataclass(frozen=True)
class Formula:
    """How a rule reads on paper: shown by the documentation and the command line."""

    latent: str
    weight: str
    dual: str
    reference: str


class Regularizer(ABC):
    """A self-paced regularizer in the loss form (Definition 1 of Fan et al., 2017).

    A subclass is a frozen dataclass that gives ``_latent`` and ``_weight`` as formulas of an array namespace
    ``xp``, a loss and a pace ``lam``; only shape constants are fields, ``lam`` is always an argument.

    Attributes
    ----------
    name : str
        What :func:`selfpaced.regularizers.get` knows it by.
    opens : int
        +1 if weights rise with ``lam``, -1 if they rise as ``lam`` falls.
    lam_range : tuple of float
        The open interval of valid paces.
    """

    name: str = ""
    opens: int = 1
    lam_range: tuple[float, float] = (0.0, math.inf)
    formula: Formula

    @abstractmethod
    def _latent(self, xp: Any, loss: Array, lam: Any) -> Array: ...

    @abstractmethod
    def _weight(self, xp: Any, loss: Array, lam: Any) -> Array: ...

    def _quick_latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        """phi to the digits that sums of float32 have, for finite losses: what sweeps over millions of them need."""
        return self._latent(xp, loss, lam)

    def _dual(self, xp: Any, weight: Array, lam: Any) -> Array:
        return conjugate(self._latent, self._weight, xp, weight, lam)

    def _max_weight(self, lam: Any) -> Any:  # noqa: ARG002
        return 1.0

    @property
    def pace_range(self) -> tuple[float, float]:
        """Where the weight is monotone in ``lam``: all valid paces, unless a rule says otherwise."""
        return self.lam_range

    @property
    def power(self) -> int | None:
        """The p of the loss scale lam**p, or None where the rule is not free of scale."""
        return None

    @property
    def relative_opens(self) -> int:
        """The direction of ``lam`` that raises the weight *relative to its maximum*."""
        return self.opens

    def latent(self, loss: Array, lam: Any) -> Array:
        """The robust loss phi(lam, loss) that is really minimised."""
        return elementwise(self._latent, loss, lam, what="loss", lam_range=self.lam_range)

    def weight(self, loss: Array, lam: Any) -> Array:
        """The sample weight sigma(lam, loss) = d phi / d loss."""
        return elementwise(self._weight, loss, lam, what="loss", lam_range=self.lam_range)

    def dual(self, weight: Array, lam: Any) -> Array:
        """The implicit regularizer psi(lam, weight) = sup over losses of phi - weight * loss."""
        return elementwise(self._dual, weight, lam, what="weight", lam_range=self.lam_range)

    def max_weight(self, lam: Any) -> Any:
        """The weight of a sample without loss, the largest there is."""
        return self.weight(np.zeros(np.shape(lam)), lam)

    def relative_weight(self, loss: Array, lam: Any) -> Array:
        """The weight divided by its maximum: in [0, 1] for every rule."""
        return elementwise(self._relative, loss, lam, what="loss", lam_range=self.lam_range)

    def _relative(self, xp: Any, loss: Array, lam: Any) -> Array:
        weight, largest = self._weight(xp, loss, lam), self._max_weight(lam)
        return weight if isinstance(largest, float) and largest == 1.0 else weight / largest


class Scaled(Regularizer):
    """A rule that is one curve at every pace: phi(lam, l) = lam**p * f(l / lam**p).

    A subclass gives the curve as ``profile`` (f), ``slope`` (f') and, where it has a closed form,
    ``conjugate`` (f*); everything else follows.
    """

    _power: int = 2

    @abstractmethod
    def profile(self, xp: Any, z: Array) -> Array:
        """f(z), with f(0) = 0; called with z > 0 only."""

    @abstractmethod
    def slope(self, xp: Any, z: Array) -> Array:
        """f'(z), in [0, 1] or [0, slope(0)]."""

    def quick_profile(self, xp: Any, z: Array) -> Array:
        """f(z) for finite z >= 0, where digits near zero do not matter; given where ``profile`` has branches."""
        return self.profile(xp, z)

    def conjugate(self, xp: Any, weight: Array) -> Array:
        """sup over z >= 0 of f(z) - weight * z, for 0 <= weight <= slope(0)."""
        return conjugate(
            lambda xp, z, _: xp.where(z > 0, self.profile(xp, xp.where(z > 0, z, 1.0)), 0.0),
            lambda xp, z, _: self.slope(xp, z),
            xp,
            weight,
            1.0,
        )

    @property
    def power(self) -> int | None:
        return self._power

    def _max_weight(self, lam: Any) -> Any:  # noqa: ARG002
        return float(self.slope(np, np.float64(0.0)))

    def _ratio(self, loss: Array, lam: Any) -> Array:
        """loss / lam**p, without overflow or underflow in lam**p."""
        if self._power == 1:
            return loss / lam
        if isinstance(lam, float) and 1e-15 < lam < 1e15:
            return loss / (lam * lam)
        return loss / lam / lam

    def _unit(self, values: Array, lam: Any) -> Array:
        """lam**p * values, in an order that keeps 0 * inf away."""
        return lam * values if self._power == 1 else lam * (lam * values)

    def _weight(self, xp: Any, loss: Array, lam: Any) -> Array:
        return self.slope(xp, self._ratio(loss, lam))

    def _latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        z = self._ratio(loss, lam)
        # Under a huge lam z comes near the smallest numbers and loses digits: there phi is its tangent.
        inside = z > 1e8 * float(xp.finfo(z.dtype).smallest_normal)
        # Under a tiny lam a finite loss overflows: only an infinite one may become infinite.
        z = xp.where(inside, xp.where(xp.isinf(loss), loss, xp.clip(z, max=float(xp.finfo(z.dtype).max))), 1.0)
        value = self.profile(xp, z)
        # Below the scale, loss * (f / z) is exact where lam**p would overflow; above it, lam**p is safe.
        near = loss * (value / z)
        return xp.where(inside, xp.where(z <= 1, near, self._unit(value, lam)), loss * self._max_weight(lam))

    def _quick_latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        return self._unit(self.quick_profile(xp, self._ratio(loss, lam)), lam)

    def _dual(self, xp: Any, weight: Array, lam: Any) -> Array:
        largest = self._max_weight(lam)
        value = self.conjugate(xp, xp.clip(weight, max=largest))
        # At the maximal weight the dual is exactly 0, also where lam**p is infinite.
        return xp.where(weight >= largest, xp.zeros_like(weight), self._unit(value, lam))


@dataclass(frozen=True)
class Relative(Regularizer):
    """A rule with its weight divided by its maximum, so that the weight of an easy sample is 1.

    For L1-L2 this reverses the direction of the pace: the raw weight rises as lam falls, the relative one as it
    grows. Use :func:`selfpaced.regularizers.relative` to make one.
    """

    base: Regularizer

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.base.name

    @property
    def opens(self) -> int:  # type: ignore[override]
        return self.base.relative_opens

    @property
    def lam_range(self) -> tuple[float, float]:  # type: ignore[override]
        return self.base.lam_range

    @property
    def pace_range(self) -> tuple[float, float]:
        return self.base.pace_range

    @property
    def power(self) -> int | None:
        return self.base.power

    def _latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        return self.base._latent(xp, loss, lam) / self.base._max_weight(lam)

    def _quick_latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        return self.base._quick_latent(xp, loss, lam) / self.base._max_weight(lam)

    def _weight(self, xp: Any, loss: Array, lam: Any) -> Array:
        return self.base._weight(xp, loss, lam) / self.base._max_weight(lam)

    def _dual(self, xp: Any, weight: Array, lam: Any) -> Array:
        largest = self.base._max_weight(lam)
        return self.base._dual(xp, weight * largest, lam) / largest


def relative(regularizer: Regularizer) -> Regularizer:
    """The rule with weights relative to their maximum; the rule itself where that is 1 at every pace."""
    if regularizer.opens == regularizer.relative_opens and regularizer._max_weight(0.5) == 1.0:
        return regularizer
    return Relative(regularizer)
