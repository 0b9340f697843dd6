"""From losses to a pace and back, also from a summary of losses that merges by addition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from ..regularizers import Hard, get

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
    """The smallest pace that the floor allows, or None where it forbids nothing."""
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
    """The loss at which the relative weight has fallen to one half; ``inf`` where it never does.

    >>> round(half_loss("cauchy", 2.0), 6)
    4.0
    """
    rule = get(regularizer)

    def excess(log_loss: float) -> float:
        return float(rule.relative_weight(math.exp(log_loss), lam)) - 0.5

    if excess(700.0) >= 0:
        return math.inf
    return math.exp(brentq(excess, -700.0, 700.0, xtol=1e-12)) if excess(-700.0) > 0 else 0.0


def loss_scale(regularizer: Any, lam: float) -> float:
    """The unit in which a rule measures losses at this pace: lam**power, or the half-weight loss without one."""
    rule = get(regularizer)
    return half_loss(rule, lam) if rule.power is None else float(lam**rule.power)


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
        raise CalibrationError(f"more than {1 - fraction:.1%} of the losses are infinite and never get weight")
    if edge == 0:
        raise CalibrationError(_all_easy(_share(values, weights, 0.0), fraction))
    return float(np.nextafter(edge, math.inf))  # a sample is in only if its loss is below lam


def _all_easy(share: float, fraction: float) -> str:
    return (
        f"{share:.1%} of the samples have no loss and count in full at every lam, so the mean weight cannot be "
        f"{fraction:.1%}; set floor (e.g. floor=0.5) or a larger fraction"
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
            f"even at lam = {math.exp(closed):.3g} the mean weight is {at_closed + fraction:.1%} > {fraction:.1%}: "
            f"the losses are small in the unit of {rule.name!r}; rescale them or set floor"
        )
    if at_opened < 0:
        endless = _share(values, weights, math.inf)
        why = (
            f"{endless:.1%} of the losses are infinite"
            if endless
            else f"the losses are large in the unit of {rule.name!r}"
        )
        raise CalibrationError(
            f"even at lam = {math.exp(opened):.3g} the mean weight is {at_opened + fraction:.1%} < {fraction:.1%}: "
            f"{why}; rescale the losses or lower the fraction"
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
    """The bin of every loss, between 0 and ``SKETCH_BINS - 1``, as floats of whatever array namespace ``xp`` is."""
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
