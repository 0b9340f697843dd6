"""The pace: lam, set once an epoch from the counted losses, and the weights of a batch at it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from array_api_compat import torch as xp
from torch import Tensor

from ..pacing import CalibrationError, Pacing, Quantile, lam_at
from ..parameters import check_number
from ..regularizers import Regularizer, Welsch, get, relative
from .counts import EpochCounts, class_centers
from .phases import LOOK, PACED, PLAIN, TRIAL, LabelPhases, Phases, ResidualPhases
from .targets import BatchRows

# While looking, a row weighs the square root of the probability of its label: that learns like cross entropy and
# memorises more slowly. Power 1 halves the speed of learning on hard data, 0 memorises at once.
_LOOKING = Welsch(), math.sqrt(2.0)


class Pace:
    """Weights of rows by their losses: the rule at lam, and a factor that keeps the total weight of every class."""

    def __init__(self, rule: Regularizer, pacing: Pacing | None) -> None:
        self.rule, self.pacing = relative(rule), pacing
        self.lam = math.inf
        self.factor: Tensor | None = None

    def weights(self, rows: BatchRows, phases: Phases) -> Tensor | None:
        """The rule's weights of a batch, in [0, 1]; None for all one."""
        if phases.phase == LOOK and isinstance(phases, ResidualPhases):
            scale = rows.level.median().clamp_min(torch.finfo(rows.level.dtype).tiny)
            return (1 + rows.level / scale).rsqrt()  # between squared and absolute errors
        if not math.isfinite(self.lam):
            return None
        rule = self.rule if phases.phase == PACED else _LOOKING[0]
        # The bare formula: the public one looks for negative losses, and the host would wait for the answer.
        weight: Tensor = rule._weight(xp, rows.level, self.lam)
        return weight

    def balanced(self, weight: Tensor | None, group: Tensor | None) -> Tensor | None:
        """The weights times the factors of the classes."""
        if self.factor is None or weight is None:
            return weight
        one = group is None or self.factor.shape[0] == 1
        return weight * (self.factor if one else self.factor.index_select(0, group))  # type: ignore[arg-type]

    def set(self, epoch: EpochCounts, phases: Phases, number: int, device: torch.device | None) -> None:
        """Set lam and the factors for the epoch that follows this one."""
        self.factor = None
        if phases.phase in (PLAIN, TRIAL) or (phases.phase == LOOK and not isinstance(phases, LabelPhases)):
            self.lam = math.inf
            return
        rule, self.lam = (self.rule, self._next(epoch, phases, number)) if phases.phase == PACED else _LOOKING
        if not math.isfinite(self.lam):
            return
        assert epoch.classes is not None
        levels, counts = class_centers(), epoch.classes.astype(np.float64)
        if not len(counts):
            levels, total = epoch.losses.support()
            counts = total[None]
        rows = counts.sum(axis=1)
        mean = counts @ np.asarray(rule.relative_weight(levels, self.lam)) / np.maximum(rows, 1)
        mean = np.where(rows > 0, np.maximum(mean, 0.05), 1.0)  # no class is multiplied by more than 20
        self.factor = torch.as_tensor(1 / mean, dtype=torch.float32, device=device)

    def _next(self, epoch: EpochCounts, phases: Phases, number: int) -> float:
        losses = epoch.losses
        try:
            if isinstance(phases, ResidualPhases):
                return lam_at(self.rule, phases.half)
            if self.pacing is None:
                return Quantile(phases.trusted, phases.trusted).first(losses, self.rule)
            if not math.isfinite(self.lam):
                return self.pacing.first(losses, self.rule)
            following = self.pacing.advance(number, self.lam, losses, self.rule)
        except CalibrationError:  # for example, no row has a loss: the pace stays as it is
            return self.lam
        return self.lam if following is None else following


def checked_rule(regularizer: Any) -> Regularizer:
    """The rule of this name, or the rule itself."""
    rule = get(regularizer)
    if not isinstance(rule, Regularizer):
        raise ValueError(f"regularizer must weight each row by its own loss alone, got the grouped rule {rule.name!r}")
    return rule


def checked_pacing(pacing: Any, trusted: float | None) -> Pacing | None:
    """The given pace, or that of the trusted share; None for the automatic one."""
    if trusted is not None:
        trusted = check_number("trusted", trusted, math.ulp(0), 1, "a share in (0, 1]")
        if not (isinstance(pacing, str) and pacing == "auto"):
            raise ValueError("give trusted or pacing, not both")
        return Quantile(trusted, trusted)
    if isinstance(pacing, str) and pacing == "auto":
        return None
    if not isinstance(pacing, Pacing):
        raise ValueError(f"pacing must be 'auto' or a Pacing of selfpaced.pacing, got {pacing!r}")
    return pacing
