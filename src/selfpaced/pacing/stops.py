"""When a path ends: values that are asked after every stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .calibration import loss_scale


class StageLike(Protocol):
    """What a stop reads of a finished stage."""

    @property
    def lam(self) -> float: ...
    @property
    def mean_weight(self) -> float: ...


#: Called after every stage with the stages so far, the losses and the rule; a sentence (or True) ends the path.
Stop = Callable[[Sequence[StageLike], Any, Any], "str | bool | None"]


@dataclass(frozen=True)
class Stages:
    """Stop after this many stages."""

    count: int = 40

    def __post_init__(self) -> None:
        if int(self.count) != self.count or self.count < 1:
            raise ValueError(f"count must be an integer >= 1, got {self.count!r}")

    def __call__(self, stages: Sequence[StageLike], losses: Any, regularizer: Any) -> str | None:  # noqa: ARG002
        return f"all {self.count} stages are done" if len(stages) >= self.count else None


@dataclass(frozen=True)
class Plateau:
    """Stop when the mean weight has moved by less than ``tolerance`` in each of the last ``patience`` stages."""

    tolerance: float = 1e-3
    patience: int = 3

    def __call__(self, stages: Sequence[StageLike], losses: Any, regularizer: Any) -> str | None:  # noqa: ARG002
        recent = [stage.mean_weight for stage in stages[-self.patience - 1 :]]
        if len(recent) <= self.patience or np.abs(np.diff(recent)).max() >= self.tolerance:
            return None
        return f"the mean weight stayed at {recent[-1]:.3f} for {self.patience} stages"


@dataclass(frozen=True)
class ScaleRatio:
    """Stop when the rule's loss scale is ``ratio`` times the scale of the losses (their median by default)."""

    ratio: float
    scale: Callable[[Any], float] = field(default=np.median)

    def __call__(self, stages: Sequence[StageLike], losses: Any, regularizer: Any) -> str | None:
        reached = loss_scale(regularizer, stages[-1].lam) / max(float(self.scale(losses)), 1e-300)
        return f"the pace is {reached:.3g} times the scale of the losses" if reached >= self.ratio else None


def stop_reason(stop: Any, stages: Sequence[StageLike], losses: Any, regularizer: Any) -> str | None:
    """The first reason that one of the stops gives, as a sentence; a number is a number of stages."""
    for rule in stop if isinstance(stop, tuple) else (stop,):
        said = (Stages(rule) if isinstance(rule, int) else rule)(stages, losses, regularizer)
        if said:
            return said if isinstance(said, str) else "the stop rule ended the path"
    return None


__all__ = ["Plateau", "ScaleRatio", "StageLike", "Stages", "Stop", "stop_reason"]
