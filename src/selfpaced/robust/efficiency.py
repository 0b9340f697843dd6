"""Rules on squared residuals, and how far one may open for normal errors of a given sigma."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..regularizers import Regularizer
from .scales import Floats

__all__ = [
    "ResidualRule",
    "consistency",
    "efficiency",
    "efficient_lam",
    "efficient_pace",
    "efficient_rule",
    "tukey_loss",
]

TUKEY = 4.685  # theory: Tukey's constant of 95 % efficiency at the normal (Huber and Ronchetti 2009)


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


def consistency(regularizer: Regularizer, lam: float, sigma: float = 1.0) -> float:
    """What makes the weighted mean of squared normal residuals their variance: E[w] / E[w x^2].

    >>> from selfpaced.regularizers import get
    >>> round(consistency(get("tukey"), 4.685), 4)  # as in Renaud and Victoria-Feser (2010)
    1.2076
    """
    x, mass = _normal_grid()
    weight = regularizer.relative_weight(np.square(sigma * x), lam)
    spread = float(mass @ (weight * x * x))
    return float(mass @ weight) / spread if spread > 0 else 1.0


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
        return float(_unit_lam(regularizer, target) * sigma ** (2 / regularizer.power))
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


@dataclass(frozen=True)
class ResidualRule:
    """A regularizer on squared residuals, measured in a unit and relative to its largest weight.

    >>> from selfpaced.regularizers import Hard
    >>> ResidualRule(Hard()).weights(np.array([-1.0, 3.0]), lam=4.0).tolist()
    [1.0, 0.0]
    """

    regularizer: Regularizer
    unit: float = 1.0

    def losses(self, residuals: Floats) -> Floats:
        """Squared residuals in the rule's unit."""
        return np.square(residuals) / self.unit if self.unit != 1.0 else np.square(residuals)

    def weights(self, residuals: Floats, lam: float) -> Floats:
        """Weights in [0, 1]."""
        return np.asarray(self.regularizer.relative_weight(self.losses(residuals), lam))

    def latent(self, residuals: Floats, lam: float) -> Floats:
        """The loss that is minimised, in units of squared residuals."""
        largest = float(self.regularizer.max_weight(lam))
        return np.asarray(self.regularizer.latent(self.losses(residuals), lam)) * (self.unit / largest)


def efficient_rule(regularizer: Regularizer, sigma: float, efficiency: float = 0.95) -> tuple[ResidualRule, float]:
    """The rule and the pace at which it is this efficient for normal errors of this sigma."""
    lam, unit = efficient_pace(regularizer, sigma, efficiency)
    return ResidualRule(regularizer, unit), lam


def tukey_loss(residuals: Floats, sigma: float) -> Floats:
    """Tukey's loss at 95 % efficiency, between 0 and 1: by it fits are compared, far residuals count alike.

    >>> tukey_loss(np.array([0.0, 1e6]), 1.0).tolist()
    [0.0, 1.0]
    """
    if not sigma > 0:
        return np.asarray(residuals != 0, dtype=np.float64)
    return np.asarray(1 - np.clip(1 - np.square(residuals / (TUKEY * sigma)), 0, None) ** 3)
