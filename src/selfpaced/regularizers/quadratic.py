"""The quadratic form of a rule (Definition 2 of the paper), in the residual t with loss = t^2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arrays import Array, namespace
from .base import Regularizer


@dataclass(frozen=True)
class Quadratic:
    """phi2(t) = phi(t^2), sigma2(t) = phi2'(t)/t = 2 sigma(t^2), psi2(p) = psi(p/2): phi2 = min_p p t^2/2 + psi2.

    >>> from selfpaced.regularizers import Huber
    >>> float(quadratic(Huber()).weight(-2.0, lam=1.0))
    0.5
    """

    base: Regularizer

    def latent(self, residual: Array, lam: Any) -> Array:
        """The robust loss of a residual, of either sign."""
        _, t = namespace(residual)
        return self.base.latent(t * t, lam)

    def weight(self, residual: Array, lam: Any) -> Array:
        """The minimizer function of Table 1."""
        _, t = namespace(residual)
        return 2 * self.base.weight(t * t, lam)

    def dual(self, weight: Array, lam: Any) -> Array:
        """The dual potential function in the weight of the quadratic form."""
        _, p = namespace(weight)
        return self.base.dual(p / 2, lam)


def quadratic(regularizer: Regularizer) -> Quadratic:
    """The Definition 2 view of a rule: what statsmodels' norms and half-quadratic papers use."""
    return Quadratic(regularizer)
