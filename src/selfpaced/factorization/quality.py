"""Whether a factorization found anything: its held-out predictions against those of the means."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .entries import Floats, Side
from .rank import WORTH, FormChoice
from .solve import REJECT
from .start import low_scale

# Measured by benchmarks/factorization.py, part quality.
APART = 0.5  # of the means' usual error: so much two independent fits differ if one of them has lost the factors
CORE = 0.6  # held-out errors are below this share of the noise scale only if more than the tails are wrong
LITTLE = 0.55  # of the means' errors: more is little gain, as if half of the components were missing
WORSE = 1.5  # times the held-out errors: a fit that has seen the entries leaves less of them, not more
UNSURE = 0.1  # of the rows or columns: with so many two-fold levels some are on the wrong one

EXACT = 1e-3  # a choice: of the entries' spread; what is off by less is explained
TOGETHER = 4.0  # a choice: noise scales that entries of one level lie apart at most
FEW_WRONG = 0.1  # cost: of the entries; with fewer outliers means are not looked at
LEAST_LEVEL = 3  # a choice: entries that make a second level
MANY_LINES = 2000  # cost: rows or columns that are looked at

RECOVERED, MEANS_ONLY, UNRELIABLE, NOT_CHECKED = "recovered", "means only", "unreliable", "not checked"


@dataclass(frozen=True)
class FitQuality:
    """What the held-out entries say about a fit.

    Attributes
    ----------
    status : str
        One of "recovered", "means only" and "unreliable".
    error, means_error : float
        Median absolute error of the held-out entries, predicted by the factorization and by the means alone.
    z : float
        Standard errors by which the factorization is ahead.
    cause : str
        What makes a fit unreliable; empty otherwise.
    """

    status: str
    error: float
    means_error: float
    z: float
    cause: str = ""

    def __str__(self) -> str:
        figures = f"held-out error {self.error:.3g}, means alone {self.means_error:.3g}, {self.z:.1f} standard errors"
        return f"{self.status} ({figures}{f'; {self.cause}' if self.cause else ''})"


def unsure_means(left: Side, n_columns: int, center: str | None, scale: float) -> float:
    """Share of the row or column means with an equally good alternative; ``left`` are the residuals."""
    few = np.count_nonzero(np.abs(left.values) > REJECT * scale) < FEW_WRONG * left.values.size
    if center is None or few:
        return 0.0
    rows = 0.0 if center == "columns" else _unsure_levels(left, scale)
    return rows if center == "rows" else max(rows, _unsure_levels(left.across(n_columns), scale))


def _unsure_levels(left: Side, scale: float) -> float:
    """Share of the rows in which another level explains as many entries as their own, up to a standard error.

    Errors of one size and sign in half of a row's entries look the same as a row with another mean.
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


def fit_quality(choice: FormChoice, fitted: Floats, scale: float, unsure: float = 0.0) -> FitQuality:
    """Compare the converged held-out fit with the means, and with the fit to all entries.

    Parameters
    ----------
    choice : FormChoice
        The chosen form and its held-out errors.
    fitted : ndarray
        What the fit to all entries predicts at the held-out places.
    scale : float
        Its noise scale.
    unsure : float
        Share of its means with an equally good alternative.
    """
    values, alone = choice.places[2], choice.trials[0].fit.errors
    spread = float(np.median(np.abs(values - np.median(values))))
    error, means_error = (float(np.median(np.abs(errors))) for errors in (choice.errors, alone))
    figures = error, means_error, max(choice.gain.z, 0.0)
    held, left = low_scale(choice.errors), low_scale(values - fitted)
    if choice.form.rank == 0 and held <= EXACT * spread:
        return FitQuality(RECOVERED, *figures)
    if choice.form.rank == 0 or choice.gain.z < WORTH:
        return FitQuality(MEANS_ONLY, *figures)
    apart = float(np.median(np.abs(values - choice.errors - fitted)))
    causes = {
        f"two fits differ by {apart:.3g}": apart > APART * means_error,
        f"the final fit leaves {left:.3g}, the held-out fit {held:.3g}": left > WORSE * max(held, EXACT * spread),
        f"another mean is as good for {unsure:.0%} of the rows or columns": unsure > UNSURE,
        f"the noise scale {scale:.3g} contradicts the held-out errors": held < CORE * scale
        and held > LITTLE * low_scale(alone),
    }
    found = [cause for cause, holds in causes.items() if holds]
    return FitQuality(UNRELIABLE if found else RECOVERED, *figures, found[0] if found else "")
