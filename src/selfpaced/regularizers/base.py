"""The protocol of a regularizer: a robust loss, its slope, its conjugate, and how these formulas meet an array."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np

Array = Any  # a NumPy, torch or JAX array, or a scalar

# Blocks of 256 kB stay in the cache, so that the passes of a formula cost one trip to memory and no large
# temporary: on 1e7 samples this is faster than the bare expression.
BLOCK_VALUES = 1 << 15
_BISECTIONS = 110  # numerical safety: halves log(loss) over 600 decades down to the spacing of doubles


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
        """The paces at which the weight is monotone in ``lam``: all valid ones, unless a rule says otherwise."""
        return self.lam_range

    @property
    def power(self) -> int | None:
        """The p of the loss scale lam**p, or None if the rule is not free of scale."""
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

    A subclass gives the curve as ``profile`` (f), ``slope`` (f') and, if it has a closed form,
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
        """f(z) for finite z >= 0, if digits near zero do not matter; given if ``profile`` has branches."""
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
    """Return the rule with weights relative to their maximum, or the rule itself if that is 1 at every pace."""
    if regularizer.opens == regularizer.relative_opens and regularizer._max_weight(0.5) == 1.0:
        return regularizer
    return Relative(regularizer)


@dataclass(frozen=True)
class Quadratic:
    """phi2(t) = phi(t^2), sigma2(t) = phi2'(t)/t = 2 sigma(t^2), psi2(p) = psi(p/2): phi2 = min_p p t^2/2 + psi2.

    >>> from selfpaced.regularizers import Huber
    >>> float(quadratic(Huber()).weight(-2.0, lam=1.0))
    0.5
    """

    base: Regularizer

    def latent(self, residual: Array, lam: Any) -> Array:
        """The robust loss of a residual, of either sign."""
        _, t = namespace(residual)
        return self.base.latent(t * t, lam)

    def weight(self, residual: Array, lam: Any) -> Array:
        """The minimizer function of Table 1."""
        _, t = namespace(residual)
        return 2 * self.base.weight(t * t, lam)

    def dual(self, weight: Array, lam: Any) -> Array:
        """The dual potential function in the weight of the quadratic form."""
        _, p = namespace(weight)
        return self.base.dual(p / 2, lam)


def quadratic(regularizer: Regularizer) -> Quadratic:
    """The Definition 2 view of a rule: what statsmodels' norms and half-quadratic papers use."""
    return Quadratic(regularizer)


# ---------------------------------------------------------------------------------------------------- arrays


def namespace(values: Array) -> tuple[Any, Array]:
    """The array namespace of ``values`` and the values as a real floating array of it."""
    if not array_api_compat.is_array_api_obj(values) or array_api_compat.is_numpy_array(values):
        array = np.asarray(values)
        if array.dtype.kind in "OUSMmVc":
            raise TypeError(f"expected real numbers, got an array of dtype {array.dtype}")
        return np, array if array.dtype.kind == "f" else array.astype(np.float64)
    xp = array_api_compat.array_namespace(values)
    if not xp.isdtype(values.dtype, "real floating"):
        values = xp.astype(values, xp.float64)
    return xp, values


def elementwise(
    formula: Callable[[Any, Array, Any], Array],
    values: Array,
    lam: Any,
    *,
    what: str,
    lam_range: tuple[float, float] = (0.0, math.inf),
) -> Array:
    """Validate, then evaluate ``formula(xp, values, lam)`` on every element.

    Scalars come back as scalars, float32 stays float32, and no floating-point warning escapes: the formulas
    are written for the limits they pass through.
    """
    xp, array = namespace(values)
    lam = _valid_lam(xp, array, lam, lam_range)
    if xp is not np:
        _refuse_negative(xp, array, what)
        return formula(xp, array, lam)
    with np.errstate(all="ignore"):
        blocked = array.size > BLOCK_VALUES and not np.ndim(lam)
        result = _in_blocks(formula, array, lam, what) if blocked else _at_once(formula, array, lam, what)
    return result[()]


def _at_once(formula: Callable[[Any, Array, Any], Array], array: Array, lam: Any, what: str) -> Array:
    _refuse_negative(np, array, what)
    return np.asarray(formula(np, array, lam))


def _in_blocks(formula: Callable[[Any, Array, Any], Array], array: Array, lam: float, what: str) -> Array:
    flat = np.ravel(array)
    out = np.empty_like(flat)
    for start in range(0, flat.size, BLOCK_VALUES):
        block = flat[start : start + BLOCK_VALUES]
        _refuse_negative(np, block, what, offset=start)
        out[start : start + BLOCK_VALUES] = formula(np, block, lam)
    return out.reshape(array.shape)


def _refuse_negative(xp: Any, array: Array, what: str, offset: int = 0) -> None:
    if 0 in array.shape or bool(xp.min(array) >= 0):  # a NaN makes the minimum NaN, and the comparison False
        return
    flat = xp.reshape(array, (-1,))
    index = int(xp.argmax(xp.astype(~(flat >= 0), xp.int8)))
    raise ValueError(f"every {what} must be >= 0 and not NaN, got {float(flat[index])!r} at position {index + offset}")


def _valid_lam(xp: Any, array: Array, lam: Any, lam_range: tuple[float, float]) -> Any:
    low, high = lam_range
    info = xp.finfo(array.dtype)
    if np.ndim(lam) == 0:
        lam = float(lam)
        if not (low < lam < high or lam == high == math.inf):
            raise ValueError(f"lam must be in ({low:g}, {high:g}), got {lam!r}")
        # lam = inf is the plain model; a finite stand-in keeps inf * 0 out of the formulas.
        return min(max(lam, float(info.smallest_normal)), float(info.max))
    lam = xp.asarray(lam, dtype=array.dtype)
    inside = (lam > low) & ((lam < high) | (high == math.inf))
    if not bool(xp.all(inside)):
        worst = xp.reshape(lam, (-1,))[int(xp.argmax(xp.astype(~xp.reshape(inside, (-1,)), xp.int8)))]
        raise ValueError(f"every lam must be in ({low:g}, {high:g}), got {float(worst)!r}")
    return xp.clip(lam, float(info.smallest_normal), float(info.max))


def conjugate(latent: Any, weight: Any, xp: Any, value: Array, lam: Any) -> Array:
    """sup over losses of phi(loss) - value * loss, for every element of ``value``.

    The weight is decreasing in the loss, so the maximiser is where it crosses ``value``: found by bisection in
    log(loss), which also lands on the jump of a rule that has one.
    """
    low = xp.full_like(value, -690.0)
    high = xp.full_like(value, 690.0)
    if value.dtype == xp.float32:
        low, high = low / 8, high / 8
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        rising = weight(xp, xp.exp(middle), lam) > value
        low, high = xp.where(rising, middle, low), xp.where(rising, high, middle)
    loss = xp.exp((low + high) / 2)
    zero = xp.zeros_like(value)
    bounded = xp.clip(latent(xp, loss, lam) - value * loss, min=0.0)
    # Without a penalty on the loss the supremum is the limit of phi, infinite for rules that never saturate.
    limit = latent(xp, zero + float("inf"), lam)
    return xp.where(value <= 0, limit, xp.where(weight(xp, zero, lam) <= value, zero, bounded))
