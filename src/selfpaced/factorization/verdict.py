"""Whether a factorization found anything, said by entries that its form was not fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .choose import WORTH, FormChoice
from .entries import Floats
from .start import low_scale

# Measured by benchmarks/real_matrices.py, part verdict.
APART = 0.5  # of the means' usual error: so much two independent fits differ if one of them has lost the factors
CORE = 0.6  # hidden errors are below this share of the noise scale only if more than the tails are wrong
LITTLE = 0.55  # of the means' errors: more is little gain, as if half of the components were missing
EXACT = 1e-3  # a choice: of the entries' spread; what is off by less is explained

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


def judge_fit(choice: FormChoice, fitted: Floats, scale: float) -> FitVerdict:
    """Compare the fit to all entries with the independent one to those that were not hidden.

    Parameters
    ----------
    choice : FormChoice
        What was chosen by hidden entries.
    fitted : ndarray
        What the fit to all entries says at the hidden ones' places.
    scale : float
        Its noise scale.
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
    if held < CORE * scale and held > LITTLE * low_scale(alone):
        return FitVerdict(
            APART_FITS, f"a noise scale of {scale:.3g}, although hidden entries are off by {held:.3g} only"
        )
    return FitVerdict(
        RECOVERED, f"hidden entries are predicted {choice.gain.z:.0f} standard errors better than by means"
    )
