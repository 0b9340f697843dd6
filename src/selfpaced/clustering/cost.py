"""A rule at a pace, as the kernels need it: latent loss and relative weight of squared distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..regularizers import Regularizer

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
        unit = distance.dtype.type(self.unit)
        with np.errstate(all="ignore"):  # finite, non-negative numbers: the quick formula will do
            value = self.rule._quick_latent(np, distance / unit, self.lam)
        return np.asarray(value * (unit / distance.dtype.type(self.rule.max_weight(self.lam))))

    def weight(self, distance: Floats) -> Floats:
        """Weight relative to its maximum, in [0, 1]."""
        if self.rule is None:
            return np.ones_like(distance)
        return np.asarray(self.rule.relative_weight(distance / distance.dtype.type(self.unit), self.lam))
