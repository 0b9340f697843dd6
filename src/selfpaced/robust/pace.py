"""Rules on squared residuals, how far one may open for normal errors of a given sigma, and paces by that scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..pacing import CalibrationError, Pacing, StageLike, calibrate, half_loss, lam_at
from ..regularizers import BoundGroups, Regularizer
from .scales import Floats, largest_sigma, noise_scale

TUKEY = 4.685  # theory: Tukey's constant of 95 % efficiency at the normal (Huber and Ronchetti 2009)
NO_NOISE = 1e3  # display: noise scales; so small a scale is no noise


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
    """The pace at which a rule on squared residuals has this efficiency, at which an upward path should stop.

    Raises
    ------
    ValueError
        If the rule has no such pace for errors of this size (rules that are not free of scale).

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


# --------------------------------------------------------------------------------------------------------------- paces


@dataclass(frozen=True, eq=False)
class EfficientStop:
    """Stop a path at the pace that is efficient for the good residuals of the current fit."""

    efficiency: float = 0.95  # theory: the customary price of robustness at the normal, 5 %
    unit: float = 1.0
    dof: float = 0.0
    sample_weight: Floats | None = None
    floor: float = 1e-300

    def __call__(self, stages: Sequence[Any], losses: Any, regularizer: Any) -> str | None:
        size = np.sqrt(np.asarray(losses) * self.unit)
        sigma = max(largest_sigma(size, self.sample_weight, dof=self.dof), self.floor)
        limit = efficient_pace(regularizer, sigma / np.sqrt(self.unit), self.efficiency)[0]
        if regularizer.opens * (stages[-1].lam - limit) < 0:
            return None
        return f"the rule is {100 * self.efficiency:.0f} % efficient for the residuals' sigma = {sigma:.4g}"


@dataclass(frozen=True)
class EfficientPace(Pacing):
    """At every stage the pace at which the rule is efficient for the good residuals of the current fit.

    Losses are squared residuals; ``dof`` is the number of coefficients they were fitted with, and no sigma is taken to
    be below ``floor``. The path ends by its ``stop``.

    >>> from selfpaced.regularizers import get
    >>> residuals = np.r_[np.random.default_rng(0).normal(size=900), np.full(100, 50.0)]
    >>> round(EfficientPace().first(residuals**2, get("hard")) ** 0.5, 1)
    2.9
    """

    efficiency: float = 0.95
    dof: float = 0.0
    floor: float = 1e-300
    stop: Any = ()

    def at(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> tuple[float, float]:
        """The pace, and the unit of squared residuals in which it is meant, see :func:`efficient_pace`."""
        sigma = largest_sigma(np.sqrt(np.asarray(losses)), sample_weight, dof=self.dof)
        return efficient_pace(regularizer, max(sigma, self.floor), self.efficiency)

    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:
        return self.at(losses, regularizer, sample_weight)[0]

    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> float | None:  # noqa: ARG002
        return self.at(losses, regularizer, sample_weight)[0]


def half_weight_loss(rule: Any, lam: float) -> float:
    """The loss of half weight; for group rules, whose threshold depends on the group, lam itself."""
    return lam if isinstance(rule, BoundGroups) else half_loss(rule, lam)


@dataclass(frozen=True)
class ScaleStop:
    """Stop when the loss of half weight is ``ratio`` times the noise scale of the residuals.

    The one number serves all rules, because it speaks of the loss of half weight and not of lam.
    """

    ratio: float = 6.7  # errors hardly change from 4.5 to 15: examples/factorization_paths.py draws them along the path

    def __call__(self, stages: Sequence[StageLike], losses: Any, regularizer: Any) -> str | None:
        reached = half_weight_loss(regularizer, stages[-1].lam) / max(noise_scale(losses), 1e-300)
        if reached < self.ratio:
            return None
        if reached > NO_NOISE:
            return "most entries are fitted exactly, and those far off have half weight"
        return f"a residual of {reached:.1f} noise scales has half weight"


@dataclass(frozen=True)
class Opening(Pacing):
    """Start at the mean weight ``fraction``; the loss of half weight then grows by ``growth`` per stage.

    The first loss of half weight is at least ``floor``: a start that fits almost perfectly must not shut out everything
    at the first pace. For the rules of scale lam^2 a growth of 1.44 is the paper's mu = 1.2. Other than
    :class:`~selfpaced.pacing.Geometric` the pace means the same for every rule, a user's own included.
    """

    growth: float = 1.44  # the paper's 1.2, squared
    fraction: float = 0.5
    floor: float = 0.0
    stop: Any = ScaleStop()

    def __post_init__(self) -> None:
        if not 1 < self.growth < math.inf:
            raise ValueError(f"growth must be > 1, got {self.growth!r}")

    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:
        try:
            lam = calibrate(regularizer, losses, self.fraction, sample_weight)
            if half_weight_loss(regularizer, lam) >= self.floor:
                return lam
        except CalibrationError:  # a rule that never falls so low, or losses that are mostly zero
            pass
        return self._at(regularizer, max(float(np.median(losses)), self.floor, 1e-300))

    def _at(self, regularizer: Any, loss: float) -> float:
        return loss if isinstance(regularizer, BoundGroups) else lam_at(regularizer, loss)

    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> float | None:  # noqa: ARG002
        reached = half_weight_loss(regularizer, lam)
        if not 0 < reached < math.inf:
            return None
        try:
            return self._at(regularizer, reached * self.growth)
        except CalibrationError:  # the end of the rule's range
            return None
