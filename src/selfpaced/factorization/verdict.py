"""Whether a factorization found anything, said by entries that its form was not fitted to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .choose import WORTH, FormChoice
from .entries import Floats, Side
from .solve import REJECT
from .start import low_scale

# Measured by benchmarks/real_matrices.py, part verdict.
APART = 0.5  # of the means' usual error: so much two independent fits differ if one of them has lost the factors
CORE = 0.6  # hidden errors are below this share of the noise scale only if more than the tails are wrong
LITTLE = 0.55  # of the means' errors: more is little gain, as if half of the components were missing
WORSE = 1.5  # times the hidden errors: a fit that has seen the entries leaves less of them, not more
UNSURE = 0.1  # of the rows or columns: with so many two-fold levels some are on the wrong one

EXACT = 1e-3  # a choice: of the entries' spread; what is off by less is explained
TOGETHER = 4.0  # a choice: noise scales that entries of one level lie apart at most
FEW_WRONG = 0.1  # cost: of the entries; with fewer outliers means are not looked at
LEAST_LEVEL = 3  # a choice: entries that make a second level
MANY_LINES = 2000  # cost: rows or columns that are looked at

RECOVERED, MEANS_ALONE, APART_FITS = "recovered", "no better than the means", "did not hold together"


@dataclass(frozen=True)
class FitVerdict:
    """One of three words, and why."""

    word: str
    reason: str

    def __str__(self) -> str:
        return f"{self.word} ({self.reason})"

    @property
    def good(self) -> bool:
        """Whether there is nothing to warn of."""
        return self.word == RECOVERED


def unsure_means(left: Side, n_columns: int, center: str | None, scale: float) -> float:
    """Of the means of rows or of columns, the share that might as well be others; ``left`` are the residuals."""
    few = np.count_nonzero(np.abs(left.values) > REJECT * scale) < FEW_WRONG * left.values.size
    if center is None or few:
        return 0.0
    rows = 0.0 if center == "columns" else _unsure_levels(left, scale)
    return rows if center == "rows" else max(rows, _unsure_levels(left.across(n_columns), scale))


def _unsure_levels(left: Side, scale: float) -> float:
    """The share of the rows in which another level explains as many entries as their own, up to a standard error.

    Errors of one size and sign in half of a row's entries are the same as a row with another mean.
    """
    lines = np.flatnonzero(left.counts())
    lines = lines[:: max(lines.size // MANY_LINES, 1)]
    unsure = 0
    for i in lines:
        off = left.values[left.indptr[i] : left.indptr[i + 1]]
        far = np.sort(off[np.abs(off) > REJECT * scale])
        if far.size < LEAST_LEVEL:
            continue
        second = int((np.searchsorted(far, far + TOGETHER * scale, side="right") - np.arange(far.size)).max())
        own = off.size - far.size
        unsure += second >= LEAST_LEVEL and second > own - math.sqrt(own + second)
    return unsure / max(lines.size, 1)


def assess_fit(choice: FormChoice, fitted: Floats, scale: float, unsure: float = 0.0) -> FitVerdict:
    """Compare the fit to all entries with the independent one to those that were not hidden.

    Parameters
    ----------
    choice : FormChoice
        What was chosen by hidden entries.
    fitted : ndarray
        What the fit to all entries says at the hidden ones' places.
    scale : float
        Its noise scale.
    unsure : float
        The share of its means that might as well be others.
    """
    values, alone = choice.places[2], choice.trials[0].fit.errors
    spread = float(np.median(np.abs(values - np.median(values))))
    held = low_scale(choice.errors)
    if choice.form.rank == 0 and held <= EXACT * spread:
        return FitVerdict(RECOVERED, "the means explain the entries")
    if choice.form.rank == 0 or choice.gain.z < WORTH:
        return FitVerdict(
            MEANS_ALONE, f"hidden entries are predicted {max(choice.gain.z, 0):.1f} standard errors better"
        )
    apart = float(np.median(np.abs(values - choice.errors - fitted)))
    usual = float(np.median(np.abs(alone)))
    if apart > APART * usual:
        return FitVerdict(APART_FITS, f"two fits differ by {apart:.3g}, where means are off by {usual:.3g}")
    left = low_scale(values - fitted)
    if left > WORSE * max(held, EXACT * spread):
        return FitVerdict(
            APART_FITS, f"it is off by {left:.3g}, where a fit that had not seen the entries is by {held:.3g}"
        )
    if unsure > UNSURE:
        return FitVerdict(APART_FITS, f"in {unsure:.0%} of the rows or columns another level explains as many entries")
    if held < CORE * scale and held > LITTLE * low_scale(alone):
        return FitVerdict(
            APART_FITS, f"a noise scale of {scale:.3g}, although hidden entries are off by {held:.3g} only"
        )
    return FitVerdict(
        RECOVERED, f"hidden entries are predicted {choice.gain.z:.0f} standard errors better than by means"
    )
