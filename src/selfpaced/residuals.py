"""Regularizers on the residuals of a regression: the loss is the squared residual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .regularizers import Regularizer
from .scale import efficient_pace, residual_scale

__all__ = ["EfficientStop", "ResidualRule", "efficient_rule", "tukey_loss"]

Floats = NDArray[np.floating[Any]]
TUKEY = 4.685  # Tukey's constant of 95 % efficiency at the normal


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


@dataclass(frozen=True, eq=False)
class EfficientStop:
    """Stop a path where the rule is as open as the good residuals of the current fit deserve."""

    efficiency: float = 0.95
    unit: float = 1.0
    dof: float = 0.0
    sample_weight: Floats | None = None
    floor: float = 1e-300

    def __call__(self, stages: Sequence[Any], losses: Any, regularizer: Any) -> str | None:
        size = np.sqrt(np.asarray(losses) * self.unit)
        sigma = max(residual_scale(size, self.sample_weight, dof=self.dof).sigma, self.floor)
        limit = efficient_pace(regularizer, sigma / np.sqrt(self.unit), self.efficiency)[0]
        if regularizer.opens * (stages[-1].lam - limit) < 0:
            return None
        return f"the rule is {self.efficiency:.0%} efficient for the residuals' sigma = {sigma:.4g}"


def tukey_loss(residuals: Floats, sigma: float) -> Floats:
    """Tukey's loss at 95 % efficiency, between 0 and 1: by it fits are compared, far residuals count alike.

    >>> tukey_loss(np.array([0.0, 1e6]), 1.0).tolist()
    [0.0, 1.0]
    """
    return 1 - np.clip(1 - np.square(residuals / (TUKEY * sigma)), 0, None) ** 3
