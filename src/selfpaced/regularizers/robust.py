"""Implicit regularizers: robust losses whose slope is the weight (Table 1 of the paper, and relatives).

All are in the loss form of Definition 1, with the misprints of the table corrected: L1-L2 starts at zero, and
the weight is half the table's minimizer, which is written for t = sqrt(loss).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .base import Array, Formula, Regularizer, Scaled


@dataclass(frozen=True)
class Huber(Scaled):
    """Linear in the residual beyond lam: no sample is ever dropped.

    >>> float(Huber().weight(4.0, lam=1.0))
    0.25
    """

    name = "huber"
    formula = Formula(
        "l/2 if l <= lam^2 else lam sqrt(l) - lam^2/2",
        "1/2 if l <= lam^2 else lam / (2 sqrt(l))",
        "lam^2/(4v) - lam^2/2",
        "Huber 1964",
    )

    def profile(self, xp: Any, z: Array) -> Array:
        return xp.where(z <= 1, z / 2, xp.sqrt(xp.clip(z, min=1.0)) - 0.5)

    def quick_profile(self, xp: Any, z: Array) -> Array:
        return xp.clip(z, max=1.0) / 2 + (xp.sqrt(xp.clip(z, min=1.0)) - 1)

    def slope(self, xp: Any, z: Array) -> Array:
        return 0.5 / xp.sqrt(xp.clip(z, min=1.0))

    def conjugate(self, xp: Any, weight: Array) -> Array:  # noqa: ARG002
        return 0.25 / weight - 0.5


@dataclass(frozen=True)
class Cauchy(Scaled):
    """Logarithmic growth: far samples keep a weight that falls like 1/loss.

    >>> float(Cauchy().weight(1.0, lam=1.0))
    0.5
    """

    name = "cauchy"
    formula = Formula("lam^2 log(1 + l/lam^2)", "1 / (1 + l/lam^2)", "lam^2 (v - 1 - log v)", "Black & Anandan 1996")

    def profile(self, xp: Any, z: Array) -> Array:
        return xp.log1p(z)

    def slope(self, xp: Any, z: Array) -> Array:  # noqa: ARG002
        return 1 / (1 + z)

    def conjugate(self, xp: Any, weight: Array) -> Array:
        return weight - 1 - xp.log(weight)


@dataclass(frozen=True)
class L1L2(Regularizer):
    """Between squared and absolute; its raw weight opens as lam FALLS, its relative weight as lam grows.

    >>> L1L2().opens, L1L2().relative_opens
    (-1, 1)
    """

    name = "l1l2"
    opens = -1
    formula = Formula("sqrt(lam + l) - sqrt(lam)", "1 / (2 sqrt(lam + l))", "1/(4v) + lam v - sqrt(lam)", "Zhang 1997")

    @property
    def power(self) -> int | None:
        return 1

    @property
    def relative_opens(self) -> int:
        return 1

    def _max_weight(self, lam: Any) -> Any:
        return 0.5 * lam**-0.5

    def _latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        root, at_zero = xp.sqrt(loss + lam), lam**0.5
        # The quotient is exact for small losses, the difference is finite for infinite ones.
        return xp.where(loss <= lam, loss / (root + at_zero), root - at_zero)

    def _quick_latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        return xp.sqrt(loss + lam) - lam**0.5

    def _weight(self, xp: Any, loss: Array, lam: Any) -> Array:
        return 0.5 / xp.sqrt(loss + lam)

    def _dual(self, xp: Any, weight: Array, lam: Any) -> Array:
        relative = xp.clip(2 * weight * lam**0.5, max=1.0)
        return (1 - relative) ** 2 / (4 * weight)


@dataclass(frozen=True)
class Welsch(Scaled):
    """Exponential weights: the paper's best. On the log-loss it is the generalised cross entropy, q = 1/lam^2.

    >>> round(float(Welsch().weight(1.0, lam=1.0)), 4)
    0.3679
    """

    name = "welsch"
    formula = Formula("lam^2 (1 - exp(-l/lam^2))", "exp(-l/lam^2)", "lam^2 (1 - v + v log v)", "Dennis & Welsch 1978")

    def profile(self, xp: Any, z: Array) -> Array:
        return -xp.expm1(-z)

    def slope(self, xp: Any, z: Array) -> Array:
        return xp.exp(-z)

    def conjugate(self, xp: Any, weight: Array) -> Array:
        return 1 - weight + weight * xp.log(xp.where(weight > 0, weight, 1.0))


@dataclass(frozen=True)
class GemanMcClure(Scaled):
    """Redescending, saturating at lam^2.

    >>> float(GemanMcClure().weight(1.0, lam=1.0))
    0.25
    """

    name = "geman-mcclure"
    formula = Formula(
        "lam^2 l / (lam^2 + l)", "(lam^2 / (lam^2 + l))^2", "lam^2 (1 - sqrt(v))^2", "Geman & McClure 1987"
    )

    def profile(self, xp: Any, z: Array) -> Array:
        return xp.where(z <= 1, z / (1 + xp.clip(z, max=1.0)), 1 / (1 + 1 / xp.clip(z, min=1.0)))

    def quick_profile(self, xp: Any, z: Array) -> Array:  # noqa: ARG002
        return 1 - 1 / (1 + z)

    def slope(self, xp: Any, z: Array) -> Array:  # noqa: ARG002
        relative = 1 / (1 + z)
        return relative * relative

    def conjugate(self, xp: Any, weight: Array) -> Array:
        return (1 - xp.sqrt(weight)) ** 2


@dataclass(frozen=True)
class Tukey(Scaled):
    """Tukey's biweight: weight zero beyond lam^2.

    >>> float(Tukey().weight(0.5, lam=1.0)), float(Tukey().weight(1.5, lam=1.0))
    (0.25, 0.0)
    """

    name = "tukey"
    formula = Formula(
        "lam^2/3 (1 - (1 - l/lam^2)^3) if l <= lam^2 else lam^2/3",
        "max(0, 1 - l/lam^2)^2",
        "lam^2/3 (1 - sqrt(v))^2 (1 + 2 sqrt(v))",
        "Beaton & Tukey 1974",
    )

    def profile(self, xp: Any, z: Array) -> Array:
        z = xp.clip(z, max=1.0)
        return z * (1 - z + z * z / 3)

    def quick_profile(self, xp: Any, z: Array) -> Array:
        rest = 1 - xp.clip(z, max=1.0)
        return (1 - rest * rest * rest) / 3

    def slope(self, xp: Any, z: Array) -> Array:
        relative = 1 - xp.clip(z, max=1.0)
        return relative * relative

    def conjugate(self, xp: Any, weight: Array) -> Array:
        root = xp.sqrt(weight)
        return (1 - root) ** 2 * (1 + 2 * root) / 3


@dataclass(frozen=True)
class Barron(Scaled):
    """Barron's general loss: Cauchy at alpha = 0, Welsch at -inf, like L1-L2 at 1; alpha < 2.

    The scale is chosen so that the weight of a sample without loss is 1.

    >>> float(Barron(alpha=0.0).weight(1.0, lam=1.0))
    0.5
    """

    alpha: float = -1.0

    name = "barron"
    formula = Formula(
        "lam^2 (b/alpha) ((1 + 2l/(b lam^2))^(alpha/2) - 1), b = 2 - alpha",
        "(1 + 2l/(b lam^2))^(-b/2)",
        "lam^2 (b/2) ((b/alpha) (v^(-alpha/b) - 1) - (1 - v))",
        "Barron 2019",
    )

    def __post_init__(self) -> None:
        if not self.alpha < 2:
            raise ValueError(f"alpha must be < 2 (2 is the unweighted loss), got {self.alpha!r}")

    def _box_cox(self, xp: Any, log_base: Array) -> Array:
        """(b/alpha) (base^(alpha/2) - 1), continuous at alpha = 0."""
        b = 2 - self.alpha
        if abs(self.alpha) < 1e-12:
            return b / 2 * log_base
        return b / self.alpha * xp.expm1(self.alpha / 2 * log_base)

    def profile(self, xp: Any, z: Array) -> Array:
        if self.alpha == -math.inf:
            return -xp.expm1(-z)
        return self._box_cox(xp, xp.log1p(z / (1 - self.alpha / 2)))

    def slope(self, xp: Any, z: Array) -> Array:
        if self.alpha == -math.inf:
            return xp.exp(-z)
        half = 1 - self.alpha / 2
        if half < 10:
            return (1 + z / half) ** -half
        return xp.exp(-half * xp.log1p(z / half))  # the rounding of 1 + z/half grows with the exponent

    def conjugate(self, xp: Any, weight: Array) -> Array:
        log_weight = xp.log(xp.where(weight > 0, weight, 1.0))
        if self.alpha == -math.inf:
            return 1 - weight + weight * log_weight
        b = 2 - self.alpha
        value = b / 2 * (self._box_cox(xp, -2 / b * log_weight) - (1 - weight))
        limit = math.inf if self.alpha >= 0 else -b / self.alpha
        return xp.where(weight > 0, value, xp.full_like(weight, limit))


@dataclass(frozen=True)
class TruncatedQuadratic(Scaled):
    """Truncated least squares in the graduated form: plain up to the bound lam^2, constant beyond.

    ``sharpness`` is the mu of graduated non-convexity: near 0 the loss is almost convex, at inf it is the
    truncated loss itself (hard selection at lam^2).

    >>> TruncatedQuadratic(sharpness=1.0).weight([0.4, 1.0, 2.1], lam=1.0).round(3).tolist()
    [1.0, 0.414, 0.0]
    """

    sharpness: float = 1.0

    name = "tls"
    formula = Formula(
        "l below a lam^2, lam^2 above lam^2/a, between: 2 lam sqrt(m (m+1) l) - m (lam^2 + l); a = m/(m+1)",
        "1 below, 0 above, between: lam sqrt(m (m+1) / l) - m",
        "lam^2 m (1 - v) / (m + v)",
        "Yang et al. 2020",
    )

    def __post_init__(self) -> None:
        if not self.sharpness > 0:
            raise ValueError(f"sharpness must be > 0, got {self.sharpness!r}")

    def profile(self, xp: Any, z: Array) -> Array:
        m = self.sharpness
        if m == math.inf:
            return xp.clip(z, max=1.0)
        low, high = m / (m + 1), (m + 1) / m
        between = xp.clip(z, low, high)
        between = 2 * math.sqrt(m * (m + 1)) * xp.sqrt(between) - m * (1 + between)
        return xp.where(z <= low, z, between)

    def slope(self, xp: Any, z: Array) -> Array:
        m = self.sharpness
        if m == math.inf:
            return xp.where(z < 1, xp.ones_like(z), xp.zeros_like(z))
        between = xp.clip(z, m / (m + 1), (m + 1) / m)
        return xp.clip(math.sqrt(m * (m + 1)) / xp.sqrt(between) - m, 0.0, 1.0)

    def conjugate(self, xp: Any, weight: Array) -> Array:  # noqa: ARG002
        m = self.sharpness
        return 1 - weight if m == math.inf else m * (1 - weight) / (m + weight)


@dataclass(frozen=True)
class Channel(Regularizer):
    """Label noise on the log-loss: a pace that IS the rate of wrong labels, 0 < lam < 1 - 1/n_classes.

    A label is wrong with probability lam, and then any other class. The weight is the posterior probability
    that the given label is right, times 1 - b/a; as lam falls to 0 every sample counts in full.

    >>> rule = Channel(n_classes=2)
    >>> round(float(rule.weight(0.0, lam=0.2)), 4), round(float(rule.weight(5.0, lam=0.2)), 4)
    (0.75, 0.0198)
    """

    n_classes: int = 2

    name = "channel"
    opens = -1
    formula = Formula(
        "-log(a e^-l + b (1 - e^-l)) + log a, a = 1 - lam, b = lam/(K - 1)",
        "(a - b) e^-l / (a e^-l + b (1 - e^-l))",
        "by numeric conjugation",
        "Sukhbaatar et al. 2015",
    )

    def __post_init__(self) -> None:
        if int(self.n_classes) != self.n_classes or self.n_classes < 2:
            raise ValueError(f"n_classes must be an integer >= 2, got {self.n_classes!r}")

    @property
    def lam_range(self) -> tuple[float, float]:  # type: ignore[override]
        return (0.0, 1 - 1 / self.n_classes)

    def _odds(self, lam: Any) -> Any:
        """b / a: how likely a particular wrong label is, against the right one."""
        return lam / (self.n_classes - 1) / (1 - lam)

    def _max_weight(self, lam: Any) -> Any:
        return 1 - self._odds(lam)

    def _latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        # e^-l + (b/a) (1 - e^-l) = 1 - (1 - b/a) (1 - e^-l): exact at l = 0, but it cancels far out
        odds = xp.zeros_like(loss) + self._odds(lam)
        far = xp.clip(loss, min=1.0)
        outer = -xp.logaddexp(-far, xp.log(odds) + xp.log1p(-xp.exp(-far)))
        return xp.where(loss <= 1, -xp.log1p((1 - odds) * xp.expm1(-xp.clip(loss, max=1.0))), outer)

    def _weight(self, xp: Any, loss: Array, lam: Any) -> Array:
        odds = self._odds(lam)
        return (1 - odds) / (1 - odds + odds * xp.exp(loss))
