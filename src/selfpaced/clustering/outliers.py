"""Samples far from every centre: outliers, or the tail of a cluster that is not round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..robust.scales import MAD_TO_SIGMA, weighted_quantile

Floats = NDArray[Any]

FEW_LEFT_OUT = 0.15  # a choice: a smaller share left out counts again in the end, lest a tail be cut ever shorter


@dataclass(frozen=True)
class UsualLoss:
    """What samples lose that belong to a cluster.

    Losses are compared as logarithms. Of clusters with heavy tails (incomes, counts) many samples lie several
    deviations above the median without anything being wrong, and on that scale their tail is that of a normal.
    """

    median: float
    spread: float  # the standard deviation of log losses above the median
    least: float  # smaller losses are not told apart

    def excess(self, loss: Floats) -> Floats:
        """How far the log losses are above the median; 0 below it."""
        ratio = np.log(np.maximum(loss, self.least) / max(self.median, self.least))
        return np.asarray(np.maximum(ratio, 0.0))


def mean_loss(losses: Floats, there: Floats) -> Floats:
    """Mean over the views that a sample has, of (V, n) losses."""
    return np.asarray(losses.sum(axis=0) / there.sum(axis=0))


def usual_loss(loss: Floats, weight: Floats | None, threshold: float) -> UsualLoss:
    """Median and spread of the losses, those ``threshold`` spreads above the median left out.

    Up to the last round the smaller of the spreads below and above the median is taken: outliers widen the upper one,
    and many samples near their centre the lower.
    """
    least = max(1e-12 * float(loss.max()), float(np.finfo(float).tiny))
    logs = np.log(np.maximum(np.asarray(loss, dtype=float), least))
    kept = np.ones(logs.size, bool)
    for _ in range(5):  # more change nothing
        low, middle, high = _quartiles(logs[kept], None if weight is None else weight[kept])
        kept = logs <= middle + threshold * MAD_TO_SIGMA * min(middle - low, high - middle)
    if np.average(kept, weights=weight) > 1 - FEW_LEFT_OUT:
        kept[:] = True
    _, middle, high = _quartiles(logs[kept], None if weight is None else weight[kept])
    return UsualLoss(float(np.exp(middle)), MAD_TO_SIGMA * (high - middle), least)


def _quartiles(values: Floats, weight: Floats | None) -> tuple[float, ...]:
    return tuple(weighted_quantile(values, q, weight) for q in (0.25, 0.5, 0.75))
