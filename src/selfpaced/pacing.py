"""The pace: where lam starts, how it moves, when it stops. Pure functions of losses; models are never seen."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from .formatting import percent
from .regularizers import Hard, get

Floats = NDArray[np.float64]
_SMALLEST_LOSS = 1e-18  # numerical safety: losses below are rounding, and share the first bin
_BIN_RATIO = 1.0198  # theory: neighbouring bins; the geometric centre is then within 1 % of every loss of the bin
_LOSS_BINS = 4096  # theory: up to 1e-18 * 1.0198**4096, about 7e16
SKETCH_BINS = _LOSS_BINS + 2  # theory: one more for zero and one for infinity
_UNIT = 1 << 20  # numerical safety: sample weights are counted in 2^-20ths, so that sums are exact in any order


class CalibrationError(ValueError):
    """No pace has the wanted mean weight on these losses."""


def calibrate(
    regularizer: Any,
    losses: ArrayLike | LossSketch,
    fraction: float = 0.5,
    sample_weight: ArrayLike | None = None,
    floor: float = 0.0,
) -> float:
    """The pace at which the mean relative weight of the samples is ``fraction``.

    Parameters
    ----------
    regularizer : name or Regularizer
        For ``hard`` the fraction is the share of samples that are in.
    losses : array-like or LossSketch
        Losses >= 0, of any shape; infinite ones never count.
    fraction : float
        In (0, 1).
    sample_weight : array-like, optional
        Weighting a sample by k equals repeating it k times.
    floor : float
        The smallest loss that may have half the full weight. It keeps data that are fitted almost perfectly from
        starting at lam near 0, where nothing is left to learn from.

    Raises
    ------
    CalibrationError
        When no pace reaches the fraction, with the reason.

    Examples
    --------
    >>> calibrate("hard", [1.0, 2.0, 3.0, 4.0]) > 2.0
    True
    >>> round(calibrate("welsch", [1.0, 1.0]) ** 2 * math.log(2), 6)
    1.0
    """
    rule = get(regularizer)
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must be in (0, 1), got {fraction!r}")
    if not 0 <= floor < math.inf:
        raise ValueError(f"floor must be a finite number >= 0, got {floor!r}")
    values, weights = distribution(losses, sample_weight)
    least = _floor_pace(rule, floor)
    try:
        hard = isinstance(rule, Hard)
        lam = _hard_pace(values, weights, fraction) if hard else _solve(rule, values, weights, fraction)
    except CalibrationError:
        if least is None or _share(values, weights, math.inf) > 1 - fraction:
            raise
        return least
    if least is None:
        return lam
    return max(lam, least) if rule.relative_opens > 0 else min(lam, least)


def _floor_pace(rule: Any, floor: float) -> float | None:
    """The smallest pace that the floor allows, or None if it forbids nothing."""
    if floor == 0:
        return None
    try:
        return lam_at(rule, floor)
    except CalibrationError:  # the rule gives such a loss more than half its weight at every pace
        return None


def lam_at(regularizer: Any, loss: float, relative: float = 0.5) -> float:
    """The pace at which a sample of this loss has this relative weight: a pace that means the same for every rule.

    >>> round(lam_at("cauchy", 4.0), 6)
    2.0
    """
    if not 0 < loss < math.inf:
        raise CalibrationError(f"loss must be in (0, inf): without loss the weight is full at every lam, got {loss!r}")
    return calibrate(regularizer, [float(loss)], relative)


def half_loss(regularizer: Any, lam: float) -> float:
    """The loss at which the relative weight has fallen to one half; ``inf`` if it never does.

    >>> round(half_loss("cauchy", 2.0), 6)
    4.0
    """
    rule = get(regularizer)

    def excess(log_loss: float) -> float:
        return float(rule.relative_weight(math.exp(log_loss), lam)) - 0.5

    if excess(700.0) >= 0:
        return math.inf
    return math.exp(brentq(excess, -700.0, 700.0, xtol=1e-12)) if excess(-700.0) > 0 else 0.0


def distribution(losses: ArrayLike | LossSketch, sample_weight: ArrayLike | None) -> tuple[Floats, Floats | None]:
    if isinstance(losses, LossSketch):
        if sample_weight is not None:
            raise ValueError("a LossSketch carries its own sample weights: pass them to LossSketch.of")
        values, counts = losses.support()
        if not values.size:
            raise CalibrationError("there are no losses to calibrate on")
        return values, counts
    values = np.ravel(np.asarray(losses, dtype=np.float64))
    if not values.size:
        raise CalibrationError("there are no losses to calibrate on")
    if not values.min() >= 0:
        raise ValueError(f"every loss must be >= 0 and not NaN, got {float(values[np.argmin(values >= 0)])!r}")
    if sample_weight is None:
        return values, None
    weights = np.ravel(np.asarray(sample_weight, dtype=np.float64))
    if weights.shape != values.shape:
        raise ValueError(f"sample_weight must have one value per loss: got {weights.size} for {values.size}")
    if not (weights.min() >= 0 and np.isfinite(weights).all()):
        raise ValueError("sample_weight must be finite and >= 0")
    if not weights.sum() > 0:
        raise CalibrationError("every sample weight is 0: there is nothing to calibrate on")
    return values, weights


def _share(values: Floats, weights: Floats | None, value: float) -> float:
    return float(np.average(values == value, weights=weights))


def _hard_pace(values: Floats, weights: Floats | None, fraction: float) -> float:
    order = np.argsort(values, kind="stable")
    total = np.arange(1, values.size + 1) if weights is None else np.cumsum(weights[order])
    edge = float(values[order][int(np.argmax(total >= fraction * total[-1] * (1 - 1e-12)))])
    if edge == math.inf:
        raise CalibrationError(f"more than {percent(1 - fraction, 1)} of the losses are infinite and never get weight")
    if edge == 0:
        raise CalibrationError(_all_easy(_share(values, weights, 0.0), fraction))
    return float(np.nextafter(edge, math.inf))  # a sample is in only if its loss is below lam


def _all_easy(share: float, fraction: float) -> str:
    return (
        f"{percent(share, 1)} of the samples have no loss and count in full at every lam, so the mean weight cannot be "
        f"{percent(fraction, 1)}; set floor (e.g. floor=0.5) or a larger fraction"
    )


def _solve(rule: Any, values: Floats, weights: Floats | None, fraction: float) -> float:
    closed, opened = _bracket(rule, values)

    def excess(position: float) -> float:
        lam = math.exp(closed + position * (opened - closed))
        return float(np.average(rule.relative_weight(values, lam), weights=weights)) - fraction

    at_closed, at_opened = excess(0.0), excess(1.0)
    if at_closed > 0:
        share = _share(values, weights, 0.0)
        if share > fraction:
            raise CalibrationError(_all_easy(share, fraction))
        raise CalibrationError(
            f"even at lam = {math.exp(closed):.3g} the mean weight is {percent(at_closed + fraction, 1)} > "
            f"{percent(fraction, 1)}: the losses are small in the unit of {rule.name!r}; rescale them or set floor"
        )
    if at_opened < 0:
        endless = _share(values, weights, math.inf)
        why = (
            f"{percent(endless, 1)} of the losses are infinite"
            if endless
            else f"the losses are large in the unit of {rule.name!r}"
        )
        raise CalibrationError(
            f"even at lam = {math.exp(opened):.3g} the mean weight is {percent(at_opened + fraction, 1)} < "
            f"{percent(fraction, 1)}: {why}; rescale the losses or lower the fraction"
        )
    root = float(brentq(excess, 0.0, 1.0, xtol=1e-15, rtol=1e-14, maxiter=200))
    # At a jump of the mean weight, end on its open side.
    for nudge in (0.0, 1e-14, 1e-13, 1e-12):
        if excess(min(root + nudge, 1.0)) >= -1e-12:
            break
    return math.exp(closed + min(root + nudge, 1.0) * (opened - closed))


def _bracket(rule: Any, values: Floats) -> tuple[float, float]:
    """log(lam) at the closed and at the open end of the search."""
    _, high = rule.pace_range
    positive = values[(values > 0) & np.isfinite(values)]
    least, most = (float(positive.min()), float(positive.max())) if positive.size else (1.0, 1.0)
    if math.isfinite(high):
        ends = (math.log(high) - 700, math.log(high) - 1e-9)
    else:
        power = rule.power or 1
        ends = (math.log(least) / power - 30, math.log(most) / power + 40)
        if rule.power is None:  # lam may have any unit: look further
            ends = (min(ends[0], -30.0), max(ends[1], 40.0))
    ends = (max(ends[0], -700.0), min(ends[1], 700.0))
    return ends if rule.relative_opens > 0 else (ends[1], ends[0])


# ---------------------------------------------------------------------------------------------------- sketch


def sketch_index(losses: Any, xp: Any = np) -> Any:
    """The bin of every loss, between 0 and ``SKETCH_BINS - 1``, as floats of the array namespace ``xp``."""
    step = 1 / math.log(_BIN_RATIO)
    return xp.floor(xp.clip(xp.log(losses) * step + (1 - math.log(_SMALLEST_LOSS) * step), 0, _LOSS_BINS + 1))


def sketch_centers() -> NDArray[np.float64]:
    """The loss that each bin of `sketch_index` stands for."""
    inner = _SMALLEST_LOSS * _BIN_RATIO ** (np.arange(_LOSS_BINS) + 0.5)
    return np.concatenate([[0.0], inner, [math.inf]])


@dataclass(frozen=True, eq=False)
class LossSketch:
    """Counts of losses in logarithmic bins: ``a + b`` is the sketch of both parts, bit for bit in any order.

    Quantiles, and a pace calibrated on it, are within 1 % of those of the losses themselves (for losses
    between 1e-18 and 7e16; smaller ones count as zero, larger ones as infinite).

    >>> import numpy as np
    >>> parts = [LossSketch.of(np.arange(0.0, 50.0)), LossSketch.of(np.arange(50.0, 100.0))]
    >>> abs((parts[0] + parts[1]).quantile(0.5) - 49) < 0.5
    True
    """

    counts: NDArray[np.int64]

    @classmethod
    def of(cls, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> LossSketch:
        """The sketch of these losses."""
        flat = np.ravel(np.asarray(losses, dtype=np.float64))
        if flat.size and not flat.min() >= 0:
            raise ValueError(f"every loss must be >= 0 and not NaN, got {float(flat[np.argmin(flat >= 0)])!r}")
        with np.errstate(divide="ignore"):
            index = sketch_index(flat).astype(np.intp)
        if sample_weight is None:
            return cls.counted(np.bincount(index, minlength=SKETCH_BINS))
        weight = np.ravel(np.asarray(sample_weight, dtype=np.float64))
        if weight.shape != flat.shape:
            raise ValueError(f"sample_weight must have one value per loss: got {weight.size} for {flat.size}")
        if weight.size and not (weight.min() >= 0 and np.isfinite(weight).all()):
            raise ValueError("sample_weight must be finite and >= 0")
        counts = np.zeros(SKETCH_BINS, dtype=np.int64)
        np.add.at(counts, index, np.rint(weight * _UNIT).astype(np.int64))
        return cls(counts)

    @classmethod
    def counted(cls, rows: ArrayLike) -> LossSketch:
        """The sketch of losses already counted, one number of rows for each bin of `sketch_index`."""
        return cls(np.asarray(rows, dtype=np.int64) * np.int64(_UNIT))

    def __add__(self, other: Any) -> LossSketch:
        if not isinstance(other, LossSketch):
            return NotImplemented
        return LossSketch(self.counts + other.counts)

    def __radd__(self, other: Any) -> LossSketch:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum(parts) works

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LossSketch) and bool(np.array_equal(self.counts, other.counts))

    __hash__ = None  # type: ignore[assignment]

    @property
    def total(self) -> float:
        """The sum of sample weights, or the number of losses."""
        return int(self.counts.sum()) / _UNIT

    def support(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The centres of the occupied bins, ascending, and the weight in each."""
        occupied = self.counts > 0
        return sketch_centers()[occupied], self.counts[occupied] / _UNIT

    def quantile(self, q: float) -> float:
        """The smallest loss with at least the share ``q`` of the weight at or below it."""
        values, weights = self.support()
        if not values.size:
            raise ValueError("an empty sketch has no quantile")
        reached = np.cumsum(weights) >= q * weights.sum() * (1 - 1e-12)
        return float(values[int(np.argmax(reached))])


# ----------------------------------------------------------------------------------- the moves of lam, and their end


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
    """The paper's pace: start at the mean weight ``fraction``, then multiply by ``mu`` in the direction that opens.

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
    """The given paces in their order, one stage each; a pace may be repeated.

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
    """Move the loss of half weight from ``start`` to ``end`` median losses, in ``stages`` equal ratios.

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
