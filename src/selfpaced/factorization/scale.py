"""The noise scale of residuals, and the pace that opens until it is large against that scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..pacing import CalibrationError, Pacing, StageLike, calibrate, half_loss, lam_at
from ..regularizers import BoundGroups
from .entries import Floats

MADN = 0.6744897501960817  # the median of |N(0, 1)|
CLIPPED = 0.986578  # the standard deviation of N(0, 1) within 3 sigma


def noise_scale(residuals: Floats, floor: float = 0.0) -> float:
    """The standard deviation of the small residuals: the median's, then refined by clipping at 3 sigma.

    >>> rng = np.random.default_rng(0)
    >>> residuals = np.concatenate([0.1 * rng.standard_normal(6000), rng.uniform(-20, 20, 3000)])
    >>> bool(0.09 < noise_scale(residuals) < 0.12)
    True
    """
    size = np.abs(residuals)
    scale = float(np.median(size)) / MADN
    for _ in range(15):
        inside = size[size < 3 * scale].astype(np.float64)
        refined = math.sqrt(float(np.mean(inside * inside))) / CLIPPED if inside.size else scale
        if abs(refined - scale) <= 1e-3 * scale:
            break
        scale = refined
    return max(scale, floor)


def half_weight_loss(rule: Any, lam: float) -> float:
    """The loss of half weight; for group rules, whose threshold depends on the group, lam itself."""
    return lam if isinstance(rule, BoundGroups) else half_loss(rule, lam)


@dataclass(frozen=True)
class ScaleStop:
    """Stop when the loss of half weight is ``ratio`` times the noise scale of the residuals.

    The one number serves all rules, because it speaks of the loss of half weight and not of lam.
    """

    ratio: float = 6.7

    def __call__(self, stages: Sequence[StageLike], losses: Any, regularizer: Any) -> str | None:
        reached = half_weight_loss(regularizer, stages[-1].lam) / max(noise_scale(losses), 1e-300)
        if reached < self.ratio:
            return None
        return f"entries {reached:.1f} times the noise scale off have half weight"


@dataclass(frozen=True)
class Opening(Pacing):
    """Start at the mean weight ``fraction``; the loss of half weight then grows by ``growth`` per stage.

    The first loss of half weight is at least ``floor``: a start that fits almost perfectly must not shut out everything
    at the first pace. For the rules of scale lam^2 a growth of 1.44 is the paper's mu = 1.2. Other than
    :class:`~selfpaced.pacing.Geometric` the pace means the same for every rule, a user's own included.
    """

    growth: float = 1.44
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
