"""Where lam starts, where it goes next, and when the path ends."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .calibration import calibrate, distribution, half_loss, lam_at, loss_scale


class StageLike(Protocol):
    """The record of a finished stage, as a stop reads it."""

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


class Pacing(ABC):
    """The start and the growth of lam; ``stop`` may end the path before ``advance`` does."""

    stop: Any = ()

    @abstractmethod
    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:
        """The first pace, from the losses of the initial model."""

    @abstractmethod
    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> float | None:
        """The pace of stage number ``stage`` (from 0), or None at the path's end."""


@dataclass(frozen=True)
class Geometric(Pacing):
    """The paper's pace: start where the mean weight is ``fraction``, then times ``mu`` in the direction that opens.

    The direction is the rule's own ``opens``: L1-L2 goes down, unless its weights are normalised
    (:func:`selfpaced.regularizers.relative`), where it goes up.
    """

    mu: float = 1.05
    fraction: float = 0.5
    floor: float = 0.0
    lam: float | None = None
    stop: Any = (Plateau(), Stages(100))

    def __post_init__(self) -> None:
        if not 1 < self.mu < math.inf:
            raise ValueError(f"mu must be > 1, got {self.mu!r}")

    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:
        if self.lam is not None:
            return self.lam
        return calibrate(regularizer, losses, self.fraction, sample_weight, self.floor)

    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> float | None:  # noqa: ARG002
        following = lam * self.mu**regularizer.opens
        low, high = regularizer.pace_range
        return following if low < following < high else None


@dataclass(frozen=True)
class Quantile(Pacing):
    """Set lam from the losses in every stage: half weight at a quantile that rises from ``start`` to ``end``."""

    start: float = 0.5
    end: float = 0.9
    stages: int = 10
    floor: float = 1e-12
    stop: Any = ()

    def __post_init__(self) -> None:
        if not (0 < self.start <= 1 and 0 < self.end <= 1):
            raise ValueError(f"the quantiles must be in (0, 1], got {self.start!r} and {self.end!r}")
        if int(self.stages) != self.stages or self.stages < 1:
            raise ValueError(f"stages must be an integer >= 1, got {self.stages!r}")

    def _at(self, stage: int, losses: Any, regularizer: Any, sample_weight: Any) -> float:
        share = self.start + (self.end - self.start) * stage / max(self.stages - 1, 1)
        values, weights = distribution(losses, sample_weight)
        edge = np.quantile(values, share, method="inverted_cdf", weights=weights)
        return lam_at(regularizer, min(max(float(edge), self.floor), 1e300))

    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:
        return self._at(0, losses, regularizer, sample_weight)

    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> float | None:  # noqa: ARG002
        return None if stage >= self.stages else self._at(stage, losses, regularizer, sample_weight)


@dataclass(frozen=True)
class Fixed(Pacing):
    """One stage at one pace: half-quadratic optimisation (iteratively reweighted fitting)."""

    lam: float

    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:  # noqa: ARG002
        return self.lam

    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> None:  # noqa: ARG002
        return None


@dataclass(frozen=True)
class Ladder(Pacing):
    """The given paces, one stage each, in their order; the same pace may stand there more than once.

    >>> Ladder((0.5, 1.0)).advance(1, 0.5, [], None), Ladder((0.5, 1.0)).advance(2, 1.0, [], None)
    (1.0, None)
    """

    lams: tuple[float, ...]
    stop: Any = ()

    def __post_init__(self) -> None:
        if not len(self.lams):
            raise ValueError("lams must hold at least one pace, got none")

    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:  # noqa: ARG002
        return self.lams[0]

    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> float | None:  # noqa: ARG002
        return self.lams[stage] if stage < len(self.lams) else None


@dataclass(frozen=True)
class Span(Pacing):
    """From ``start`` to ``end`` median losses in ``stages`` equal ratios: what has half the weight there.

    The median is that of the losses at the start, so the path's length does not depend on their unit; where most rows
    are fitted exactly, it is that of the others.

    >>> from selfpaced.regularizers import get
    >>> [round(Span().first(losses, get("hard")), 9) for losses in ([1.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0])]
    [2.0, 3.0, 1.0]
    """

    start: float = 1.0
    end: float = 2.2
    stages: int = 8
    stop: Any = ()

    def __post_init__(self) -> None:
        if not (0 < self.start < math.inf and 0 < self.end < math.inf):
            raise ValueError(f"start and end must be positive numbers, got {self.start!r} and {self.end!r}")
        if int(self.stages) != self.stages or self.stages < 1:
            raise ValueError(f"stages must be an integer >= 1, got {self.stages!r}")

    def lams(self, median: float, regularizer: Any) -> tuple[float, ...]:
        """Every pace, given the median loss at the start."""
        halves = np.geomspace(self.start, self.end, self.stages)
        if regularizer.power is None:
            return tuple(lam_at(regularizer, float(half) * median) for half in halves)
        one = lam_at(regularizer, 1.0)  # the pace itself carries the scale
        return tuple(float(one * (half * median) ** (1 / regularizer.power)) for half in halves)

    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:
        values, weights = distribution(losses, sample_weight)
        counts = np.ones(values.shape) if weights is None else weights
        for lost in (counts > 0, (counts > 0) & (values > 0)):
            if lost.any():
                median = float(np.quantile(values[lost], 0.5, method="inverted_cdf", weights=counts[lost]))
                if median > 0:
                    return self.lams(median, regularizer)[0]
        return self.lams(1.0, regularizer)[0]  # rows without any loss have full weight at every pace

    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> float | None:  # noqa: ARG002
        if stage >= self.stages:
            return None
        growth = (self.end / self.start) ** (1 / (self.stages - 1))
        if regularizer.power is None:
            return lam_at(regularizer, half_loss(regularizer, lam) * growth)
        return float(lam * growth ** (1 / regularizer.power))


@dataclass(frozen=True)
class Graduated(Pacing):
    """Graduated non-convexity: all samples first, then lam closes to a noise bound.

    Parameters
    ----------
    bound : float or callable
        The loss that has half the weight at the end, or a function of the losses that returns it.
    factor : float
        How much lam closes per stage.
    """

    bound: float | Callable[[Any], float]
    factor: float = 1.2
    stop: Any = ()

    def __post_init__(self) -> None:
        if not 1 < self.factor < math.inf:
            raise ValueError(f"factor must be > 1, got {self.factor!r}")

    def _last(self, losses: Any, regularizer: Any) -> float:
        bound = float(self.bound(losses) if callable(self.bound) else self.bound)
        if not 0 < bound < math.inf:
            raise ValueError(f"bound must be a positive loss, got {bound!r}")
        return lam_at(regularizer, bound)

    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:  # noqa: ARG002
        values = np.asarray(losses)
        largest = float(values[np.isfinite(values)].max(initial=0.0))
        last = self._last(losses, regularizer)
        if largest == 0:
            return last
        first = lam_at(regularizer, largest, relative=0.9)
        return max(first, last) if regularizer.relative_opens > 0 else min(first, last)

    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> float | None:  # noqa: ARG002
        last = self._last(losses, regularizer)
        if regularizer.relative_opens > 0:
            return None if lam <= last else max(lam / self.factor, last)
        return None if lam >= last else min(lam * self.factor, last)


__all__ = [
    "Fixed",
    "Geometric",
    "Graduated",
    "Ladder",
    "Pacing",
    "Plateau",
    "Quantile",
    "ScaleRatio",
    "Span",
    "StageLike",
    "Stages",
    "Stop",
]
