"""A rule at a pace, as the kernels need it: latent loss and relative weight of squared distances.

The rules' formulas are written for every limit and every array library. The inner loop of k-means evaluates them on
views x restarts x clusters x samples numbers per sweep, always finite, non-negative and float32: there they run as
programs of in-place steps, several times faster, and where a rule has none it is called as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..regularizers import Regularizer
from ..regularizers.program import latent_program

Floats = NDArray[Any]


@dataclass(frozen=True)
class Cost:
    """The latent loss of one rule at one pace; ``rule=None`` is the plain squared distance."""

    rule: Regularizer | None = None  # the elementwise rule
    lam: float = float("inf")  # its pace
    # distances are divided by it before they meet the rule: rules that are not free of scale need it
    unit: float = 1.0

    @property
    def plain(self) -> bool:
        return self.rule is None

    def latent(self, distance: Floats) -> Floats:
        """Latent loss in the units of the distances, divided by the rule's largest weight (slope 1 at zero)."""
        if self.rule is None:
            return distance
        program = latent_program(self.rule, self.lam, self.unit, distance.dtype)
        if program is not None:
            return program(distance)
        value = self.rule.latent(distance / distance.dtype.type(self.unit), self.lam)
        return np.asarray(value * distance.dtype.type(self.unit / float(self.rule.max_weight(self.lam))))

    def weight(self, distance: Floats) -> Floats:
        """Weight relative to its maximum, in [0, 1]."""
        if self.rule is None:
            return np.ones_like(distance)
        return np.asarray(self.rule.relative_weight(distance / distance.dtype.type(self.unit), self.lam))
