"""Paths that are measured by the scale of the residuals: where they stop, and one that opens for every rule alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..pacing import CalibrationError, Pacing, StageLike, calibrate, half_loss, lam_at
from ..regularizers import BoundGroups
from .efficiency import efficient_pace
from .scales import Floats, noise_scale
from .sigma import largest_sigma

NO_NOISE = 1e3  # display: noise scales; so small a scale is no noise

__all__ = ["EfficientPace", "EfficientStop", "Opening", "ScaleStop"]


@dataclass(frozen=True, eq=False)
class EfficientStop:
    """Stop a path where the rule is as open as the good residuals of the current fit deserve."""

    efficiency: float = 0.95  # theory: the customary price of robustness at the normal, 5 %
    unit: float = 1.0
    dof: float = 0.0
    sample_weight: Floats | None = None
    floor: float = 1e-300

    def __call__(self, stages: Sequence[Any], losses: Any, regularizer: Any) -> str | None:
        size = np.sqrt(np.asarray(losses) * self.unit)
        sigma = max(largest_sigma(size, self.sample_weight, dof=self.dof).sigma, self.floor)
        limit = efficient_pace(regularizer, sigma / np.sqrt(self.unit), self.efficiency)[0]
        if regularizer.opens * (stages[-1].lam - limit) < 0:
            return None
        return f"the rule is {self.efficiency:.0%} efficient for the residuals' sigma = {sigma:.4g}"


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
        sigma = largest_sigma(np.sqrt(np.asarray(losses)), sample_weight, dof=self.dof).sigma
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

    ratio: float = 6.7  # a choice, made on development data

    def __call__(self, stages: Sequence[StageLike], losses: Any, regularizer: Any) -> str | None:
        reached = half_weight_loss(regularizer, stages[-1].lam) / max(noise_scale(losses), 1e-300)
        if reached < self.ratio:
            return None
        if reached > NO_NOISE:
            return "most entries are met exactly, and those far off have half weight"
        return f"entries {reached:.1f} times the noise scale off have half weight"


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
