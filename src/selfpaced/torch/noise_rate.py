"""The rate of wrong labels, told from overlapping classes by where labels contradict the network.

Overlap bends the curve of agreement against confidence: labels differ where the network is unsure. Wrong labels lower
its ceiling: they contradict a network that is sure, too. The missing part of the ceiling (the lapse rate of a
psychometric function) is the rate r of

    P(label agrees | log-odds m of the predicted class) = r/(K-1) + (1 - r - r/(K-1)) sigmoid(slope m + shift).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LOGIT_BINS, BIN_WIDTH = 64, 0.25  # cost: log-odds 0 ... 16; a network surer than that is in the last bin

LOG_ODDS = (np.arange(LOGIT_BINS) + 0.5) * BIN_WIDTH  # centres of the bins
# cost: the grid on which the likelihood is looked at first; scoring refines slopes and shifts
_RATES = np.linspace(0.0, 0.7, 57)
_SLOPES = np.logspace(-1.0, 0.7, 9)
_SHIFTS = np.linspace(-3.0, 1.0, 5)


@dataclass(frozen=True)
class AgreementCurve:
    """A fitted curve: the rate with its interval, and the bend that overlap explains."""

    rate: float
    lower: float
    upper: float
    slope: float
    shift: float
    n_classes: int

    def curve(self, odds: Floats) -> Floats:
        """The share of labels that agree, at these log-odds of the predicted class."""
        return _agreement(self.rate, 1 / (1 + np.exp(-(self.slope * odds + self.shift))), self.n_classes)


def fit_agreement(agreement: Floats, n_classes: int) -> AgreementCurve:
    """Fit the curve to counts of shape (2, LOGIT_BINS): labels that contradict, labels that agree.

    >>> odds = (np.arange(LOGIT_BINS) + 0.5) * BIN_WIDTH
    >>> rows, agree = np.where(odds < 8, 100.0, 0.0), 0.2 / 9 + (0.8 - 0.2 / 9) / (1 + np.exp(-odds))
    >>> fitted = fit_agreement(np.stack([rows * (1 - agree), rows * agree]), 10)
    >>> round(fitted.rate, 3), bool(fitted.lower < 0.2 < fitted.upper)
    (0.2, True)
    """
    contradict, agree = np.asarray(agreement, dtype=np.float64)
    bends = _refined(_coarse(contradict, agree, n_classes), contradict, agree, n_classes)
    profile = _likelihood(bends, contradict, agree, n_classes)
    best = int(profile.argmax())
    inside = _RATES[profile >= profile[best] - 2]  # about 95 % by the likelihood ratio
    ends = float(inside.min()), float(inside.max())
    return AgreementCurve(float(_RATES[best]), *ends, float(bends[best, 0]), float(bends[best, 1]), n_classes)


def _coarse(contradict: Floats, agree: Floats, n_classes: int) -> Floats:
    """For every rate the best slope and shift of a grid."""
    log_agree, log_contradict = _log_curves(n_classes)
    likelihood = log_agree @ agree + log_contradict @ contradict
    slope, shift = np.unravel_index(likelihood.argmax(axis=1), (_SLOPES.size, _SHIFTS.size))
    return np.stack([_SLOPES[slope], _SHIFTS[shift]], axis=1)


def _refined(bends: Floats, contradict: Floats, agree: Floats, n_classes: int) -> Floats:
    """Fisher scoring of slope and shift, all rates at once; a step that does not help is not taken."""
    reached = _likelihood(bends, contradict, agree, n_classes)
    low, high = ([_SLOPES[end], _SHIFTS[end]] for end in (0, -1))
    span = 1 - _RATES - _RATES / (n_classes - 1)
    for _ in range(8):
        share, p = _curves(bends, n_classes)
        slope_of_p = span[:, None] * share * (1 - share)
        score = (agree / p - contradict / (1 - p)) * slope_of_p
        weight = (agree + contradict) * slope_of_p**2 / (p * (1 - p))
        gradient = np.stack([score @ LOG_ODDS, score.sum(axis=1)], axis=1)
        moments = [weight @ LOG_ODDS**power for power in (2, 1, 0)]
        a, b, c = moments[0] + 1e-6, moments[1], moments[2] + 1e-6
        step = np.stack([c * gradient[:, 0] - b * gradient[:, 1], a * gradient[:, 1] - b * gradient[:, 0]], axis=1)
        tried = np.clip(bends + step / np.maximum(a * c - b * b, 1e-12)[:, None], low, high)
        likelihood = _likelihood(tried, contradict, agree, n_classes)
        better = likelihood > reached
        if not better.any():
            break
        bends = np.where(better[:, None], tried, bends)
        reached = np.where(better, likelihood, reached)
    return bends


def _likelihood(bends: Floats, contradict: Floats, agree: Floats, n_classes: int) -> Floats:
    _, p = _curves(bends, n_classes)
    return np.asarray(np.log(p) @ agree + np.log1p(-p) @ contradict)


def _curves(bends: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Share of predictions that are right, and of labels that agree: rate x bin."""
    right = 1 / (1 + np.exp(-(bends[:, :1] * LOG_ODDS + bends[:, 1:])))
    return right, np.clip(_agreement(_RATES[:, None], right, n_classes), 1e-4, 1 - 1e-4)


def _agreement(rate: float | Floats, bend: Floats, n_classes: int) -> Floats:
    chance = rate / (n_classes - 1)  # a wrong label hits the prediction of an unsure network now and then
    return chance + (1 - rate - chance) * bend


@lru_cache(maxsize=4)
def _log_curves(n_classes: int) -> tuple[Floats, Floats]:
    """Logarithms of agreement and of contradiction, rate x bend x bin: 3 MB on the host, made once."""
    right = 1 / (1 + np.exp(-(_SLOPES[:, None, None] * LOG_ODDS + _SHIFTS[:, None]))).reshape(-1, LOGIT_BINS)
    agree = np.clip(_agreement(_RATES[:, None, None], right, n_classes), 1e-4, 1 - 1e-4)
    return np.log(agree), np.log1p(-agree)
