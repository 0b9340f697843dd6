"""Numeric convex conjugation: the dual regularizer of a rule that has no closed form for it."""

from __future__ import annotations

from typing import Any

from .arrays import Array

_BISECTIONS = 110  # numerical safety: halves log(loss) over 600 decades down to the spacing of doubles


def conjugate(latent: Any, weight: Any, xp: Any, value: Array, lam: Any) -> Array:
    """sup over losses of phi(loss) - value * loss, for every element of ``value``.

    The weight is decreasing in the loss, so the maximiser is where it crosses ``value``: found by bisection in
    log(loss), which also lands on the jump of a rule that has one.
    """
    low = xp.full_like(value, -690.0)
    high = xp.full_like(value, 690.0)
    if value.dtype == xp.float32:
        low, high = low / 8, high / 8
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        rising = weight(xp, xp.exp(middle), lam) > value
        low, high = xp.where(rising, middle, low), xp.where(rising, high, middle)
    loss = xp.exp((low + high) / 2)
    zero = xp.zeros_like(value)
    bounded = xp.clip(latent(xp, loss, lam) - value * loss, min=0.0)
    # Without a penalty on the loss the supremum is the limit of phi, infinite for rules that never saturate.
    limit = latent(xp, zero + float("inf"), lam)
    return xp.where(value <= 0, limit, xp.where(weight(xp, zero, lam) <= value, zero, bounded))
