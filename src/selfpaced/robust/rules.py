"""Regularizers on the residuals of a regression: the loss is the squared residual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..regularizers import Regularizer
from .efficiency import efficient_pace
from .scales import Floats

__all__ = ["ResidualRule", "efficient_rule", "tukey_loss"]

TUKEY = 4.685  # theory: Tukey's constant of 95 % efficiency at the normal (Huber and Ronchetti 2009)


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
