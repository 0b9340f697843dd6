"""Explicit regularizers: weight rules written down as a penalty g(lam, v) on v in [0, 1] (the paper's appendix).

Each has a latent loss by integration of its weight (Meng & Zhao 2015). The dual is g shifted by a constant so that
it vanishes at v = 1: then phi(0) = 0, and these rules fit the same interface as the implicit ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .base import Array, Formula, Regularizer, Scaled


@dataclass(frozen=True)
class Hard(Scaled):
    """A sample is in or out.

    >>> Hard().weight([0.5, 1.0, 2.0], lam=1.0).tolist()
    [1.0, 0.0, 0.0]
    """

    _power = 1
    name = "hard"
    formula = Formula("min(l, lam)", "1 if l < lam else 0", "lam (1 - v)", "Kumar et al. 2010")

    def profile(self, xp: Any, z: Array) -> Array:
        return xp.clip(z, max=1.0)

    def slope(self, xp: Any, z: Array) -> Array:
        return xp.astype(z < 1, z.dtype)

    def conjugate(self, xp: Any, weight: Array) -> Array:  # noqa: ARG002
        return 1 - weight


@dataclass(frozen=True)
class Linear(Scaled):
    """The weight falls in proportion to the loss.

    >>> Linear().weight([0.0, 0.25, 2.0], lam=1.0).tolist()
    [1.0, 0.75, 0.0]
    """

    _power = 1
    name = "linear"
    formula = Formula(
        "l - l^2/(2 lam) if l <= lam else lam/2",
        "max(0, 1 - l/lam)",
        "lam (1 - v)^2 / 2",
        "Jiang et al. 2014a",
    )

    def profile(self, xp: Any, z: Array) -> Array:
        z = xp.clip(z, max=1.0)
        return z * (1 - z / 2)

    def slope(self, xp: Any, z: Array) -> Array:
        return 1 - xp.clip(z, max=1.0)

    def conjugate(self, xp: Any, weight: Array) -> Array:  # noqa: ARG002
        return (1 - weight) ** 2 / 2


@dataclass(frozen=True)
class Logarithmic(Regularizer):
    """The weight falls like a logarithm; defined for 0 < lam < 1.

    The weight of a small loss rises with lam only up to 1 - 1/e and falls beyond: condition 5 of the paper's
    Definition 1 holds below that, so pacing and calibration stay below it.

    >>> Logarithmic().weight([0.0, 0.5], lam=0.5).round(12).tolist()
    [1.0, 0.0]
    """

    name = "logarithmic"
    lam_range = (0.0, 1.0)
    pace_range = (0.0, 1 - 1 / math.e)
    formula = Formula(
        "((l + z) log(l + z) - l - z log z) / log z if l <= lam, z = 1 - lam; constant beyond",
        "log(l + z) / log z if l < lam else 0",
        "z (v - 1) + (z - z^v) / log z",
        "Jiang et al. 2014a",
    )

    def _latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        remaining = lam - xp.clip(loss, max=lam)  # l + z = 1 - remaining
        far = (_entropy(xp, remaining) - _entropy(xp, xp.zeros_like(loss) + lam)) / _log_z(xp, lam)
        # Near 0 the two entropies cancel; there the weight is a straight line and its mean is exact enough.
        near = xp.clip(loss, max=lam) * (1 + self._weight(xp, loss, lam)) / 2
        return xp.where(loss < 1e-5 * (1 - lam), near, far)

    def _weight(self, xp: Any, loss: Array, lam: Any) -> Array:
        remaining = lam - xp.clip(loss, max=lam)
        return xp.log1p(-remaining) / _log_z(xp, lam)

    def _dual(self, xp: Any, weight: Array, lam: Any) -> Array:
        rate = -_log_z(xp, lam)
        x = (1 - xp.clip(weight, max=1.0)) * rate
        series = x * x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5)))
        return (1 - lam) / rate * xp.where(x < 1e-3, series, xp.expm1(x) - x)


def _log_z(xp: Any, lam: Any) -> Any:
    return math.log1p(-lam) if isinstance(lam, float) else xp.log1p(-lam)


def _entropy(xp: Any, a: Array) -> Array:
    """(1 - a) log(1 - a) + a, by its series where the two terms cancel."""
    series = a * a / 2 * (1 + a / 3 + a * a / 6 + a**3 / 10)
    return xp.where(a < 1e-3, series, (1 - a) * xp.log1p(-a) + a)


@dataclass(frozen=True)
class MixtureJiang(Scaled):
    """Full weight below ratio * lam, none above lam, soft between.

    >>> MixtureJiang(ratio=0.5).weight([0.5, 0.75, 1.0], lam=1.0).round(4).tolist()
    [1.0, 0.3333, 0.0]
    """

    ratio: float = 0.5

    _power = 1
    name = "mixture-jiang"
    formula = Formula(
        "l below l2; l2 + z (log(l/l2) - (l - l2)/lam); z log(lam/l2) above lam; l2 = ratio lam, z = lam l2/(lam - l2)",
        "1 if l <= l2, 0 if l >= lam, else z (1/l - 1/lam)",
        "-z log((v + z/lam) / (1 + z/lam))",
        "Jiang et al. 2014a",
    )

    def __post_init__(self) -> None:
        if not 0 < self.ratio < 1:
            raise ValueError(f"ratio must be in (0, 1), got {self.ratio!r}")

    @property
    def _zeta(self) -> float:
        return self.ratio / (1 - self.ratio)

    def profile(self, xp: Any, z: Array) -> Array:
        between = xp.clip(z, self.ratio, 1.0)
        soft = self.ratio + self._zeta * (xp.log(between / self.ratio) - (between - self.ratio))
        return xp.where(z <= self.ratio, z, soft)

    def slope(self, xp: Any, z: Array) -> Array:
        between = xp.clip(z, self.ratio, 1.0)
        return xp.clip(self._zeta * (1 / between - 1), max=1.0)

    def conjugate(self, xp: Any, weight: Array) -> Array:
        return -self._zeta * xp.log((weight + self._zeta) * (1 - self.ratio))


@dataclass(frozen=True)
class MixtureZhao(Regularizer):
    """Full weight below (lam gamma / (lam + gamma))^2, none above lam^2; gamma=None means gamma = lam.

    >>> MixtureZhao().weight([0.25, 4 / 9, 1.0], lam=1.0).round(4).tolist()
    [1.0, 0.5, 0.0]
    """

    gamma: float | None = None

    name = "mixture-zhao"
    formula = Formula(
        "l below t^2; t^2 + gamma (2 (sqrt(l) - t) - (l - t^2)/lam); lam t above lam^2; t = lam gamma/(lam + gamma)",
        "1 if l <= t^2, 0 if l >= lam^2, else gamma (1/sqrt(l) - 1/lam)",
        "lam gamma^2/(lam v + gamma) - lam gamma^2/(lam + gamma)",
        "Zhao et al. 2015",
    )

    def __post_init__(self) -> None:
        if self.gamma is not None and not 0 < self.gamma < math.inf:
            raise ValueError(f"gamma must be a positive number or None, got {self.gamma!r}")

    @property
    def power(self) -> int | None:
        return 2 if self.gamma is None else None

    def _relative_gamma(self, xp: Any, lam: Any) -> Any:
        """gamma / lam, capped where the soft zone is narrower than the spacing of numbers."""
        if self.gamma is None:
            return 1.0
        return min(self.gamma / lam, 1e15) if isinstance(lam, float) else xp.clip(self.gamma / lam, max=1e15)

    def _weight(self, xp: Any, loss: Array, lam: Any) -> Array:
        # in x = sqrt(l) / lam the rule is clip(k (1/x - 1)), k = gamma/lam
        return xp.clip(self._relative_gamma(xp, lam) * (lam / xp.sqrt(loss) - 1), 0.0, 1.0)

    def _latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        k = self._relative_gamma(xp, lam)
        start = k / (1 + k)
        # the clip keeps the infinite slope of the root at 0 out of automatic differentiation
        x = xp.sqrt(xp.clip(loss, min=float(xp.finfo(loss.dtype).smallest_normal))) / lam
        between = xp.maximum(xp.clip(x, max=1.0), xp.zeros_like(x) + start)
        soft = start * start + k * (between - start) * (2 - between - start)
        return xp.where(x <= start, loss, lam * (lam * soft))

    def _quick_latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        k = self._relative_gamma(xp, lam)
        start, z = k / (1 + k), loss / (lam * lam)
        # one formula for the three parts: each bound stops one term
        between = xp.clip(z, start * start, 1.0)
        soft = 2 * k * xp.sqrt(between) - k * between
        return lam * (lam * (xp.clip(z, max=start * start) + soft - k * start * (2 - start)))

    def _dual(self, xp: Any, weight: Array, lam: Any) -> Array:
        gamma = lam if self.gamma is None else self.gamma
        weight = xp.clip(weight, max=1.0)
        return (1 - weight) / (weight / gamma + 1 / lam) / (1 / gamma + 1 / lam)


@dataclass(frozen=True)
class Logistic(Regularizer):
    """The rule of MSPL: a logistic curve in the loss; depends on the loss's unit.

    >>> float(Logistic().weight(0.0, lam=1.0))
    1.0
    """

    name = "logistic"
    formula = Formula(
        "(1 + e^-lam) (log(1 + e^lam) - log(1 + e^(lam - l)))",
        "(1 + e^-lam) / (1 + e^(l - lam))",
        "(c - v) log(c - v) + v log v + lam (c - v), c = 1 + e^-lam",
        "Xu et al. 2015",
    )

    def _weight(self, xp: Any, loss: Array, lam: Any) -> Array:
        return (1 + _tail(xp, lam)) / (1 + xp.exp(loss - lam))

    def _latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        tail = _tail(xp, lam)
        far = xp.clip(loss, max=lam) + xp.log1p(xp.zeros_like(loss) + tail) - xp.log1p(xp.exp(-xp.abs(lam - loss)))
        small = xp.clip(loss, max=1.0)  # there the two logarithms would cancel
        near = small - xp.log1p(tail / (1 + tail) * xp.expm1(small))
        return (1 + tail) * xp.where(loss <= 1, near, far)

    def _quick_latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        tail = _tail(xp, lam)
        return (1 + tail) * (xp.log1p(tail) - xp.log(xp.exp(-loss) + tail))

    def _dual(self, xp: Any, weight: Array, lam: Any) -> Array:
        weight = xp.clip(weight, max=1.0)
        rest = (1 - weight) + _tail(xp, lam)
        return xp.clip(_xlogx(xp, rest) + _xlogx(xp, weight) + lam * rest, min=0.0)


def _tail(xp: Any, lam: Any) -> Any:
    return math.exp(-lam) if isinstance(lam, float) else xp.exp(-lam)


def _xlogx(xp: Any, x: Array) -> Array:
    return x * xp.log(xp.where(x > 0, x, 1.0))
