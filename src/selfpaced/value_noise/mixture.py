"""Errors as a core that may have heavy and uneven tails, and perhaps a part that is grossly off."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .base import Array
from .likelihood import Likelihood, log_parts

__all__ = ["Mixture", "fit_mixture"]

LEAST_GAIN = 5.0  # nats that the gross part must gain, clean data gain up to 5: benchmarks/values.py
NEAR = 3.0  # scales of the core within which nothing is gross: benchmarks/values.py

FAR = 10.0  # a choice: scales beyond which distances count by their logarithm
REACH = 40.0  # numerical safety: residuals that count as farther away count as this far
BINS = 250  # cost: of the residuals; their width in the core is 0.035 of its scale
RARE = -9.0  # numerical safety: log odds of the gross part at least
NOTHING = -30.0  # numerical safety: log odds that stand for none
HALF_CHI = 1.92  # theory: half the 95 % point of chi-squared with one degree of freedom
START = -3.0  # a choice: log odds of the gross part at which a search starts
#: cost: log odds, beside the likeliest, at which the profile is asked: fine near it, coarse where little is known
PROFILE = np.sign(np.arange(-9, 10)) * np.array([0.1 * 1.5 ** (abs(k) - 1) for k in range(-9, 10)])
BROAD = 1.4  # a choice: log spread of a far gross part at least: of ten-fold errors of unlike rows few are of one size
#: a choice: ranges of a gross part's centre and log spread, and where they start: around the core, beside it, far.
SHAPES = (
    ((-2.5, 2.5), (1.1, 4.0), (0.0, 2.0)),
    ((2.5, FAR), (-0.36, 4.0), (5.0, 0.4)),
    ((FAR, REACH), (BROAD, 4.0), (14.0, 1.6)),
    ((-FAR, -2.5), (-0.36, 4.0), (-5.0, 0.4)),
    ((-REACH, -FAR), (BROAD, 4.0), (-14.0, 1.6)),
)
#: a choice: ranges of the core's centre, log scales and log degrees above the least (left, right), gross log odds.
CORE = ((-1.0, 1.0), (-3.0, 1.5), (-3.0, 1.5), (-5.0, 4.5), (-5.0, 4.5), (RARE, 0.0))
NORMAL = (0.0, 0.0, 0.0, 3.0, 3.0, 2.0, 2.0)  # theory: centre, log scales, log degrees and bends of a normal core
BENDS = (1.0, 3.0)  # a choice: from exponential to lighter than normal


@dataclass(frozen=True, eq=False)
class Mixture:
    """Residuals in units of their scale: a core with two tails of their own, and a normal gross part.

    Attributes
    ----------
    parameters : ndarray
        Centre, log scales and log degrees of freedom of the core's two sides; log odds, centre and log spread of the
        gross part; bends of the core's two sides.
    gain : float
        Nats by which the gross part raises the likelihood of all residuals.
    needed : float
        Nats from which on it is believed.
    interval : tuple of float
        Shares of the gross part that the residuals do not contradict (95 %).
    """

    parameters: Array
    gain: float
    needed: float
    interval: tuple[float, float]

    @property
    def found(self) -> bool:
        """Whether there is a gross part."""
        return self.gain >= self.needed

    @property
    def share(self) -> float:
        """Of the gross part."""
        return float(expit(self.parameters[5]))

    def distance(self, z: Array) -> Array:
        """From the centre, in scales of the core on that side."""
        centre, left, right = self.parameters[:3]
        offset = z - centre
        return np.asarray(np.abs(offset) / np.exp(np.where(offset < 0, left, right)))

    def gross(self, z: Array) -> Array:
        """How probably each residual belongs to the gross part; farther out is never less."""
        z = nearer(z)
        core, broad = log_parts(self.parameters, z)
        odds = self.parameters[5]
        probability = expit(odds + broad - core)
        offset = z - self.parameters[0]
        for side in (offset < 0, offset >= 0):
            rows = np.flatnonzero(side)
            rows = rows[np.argsort(np.abs(offset[rows]), kind="stable")]
            probability[rows] = np.maximum.accumulate(probability[rows])
        return np.asarray(np.where(self.distance(z) > NEAR, probability, 0.0))


def fit_mixture(z: Array, sample_weight: Array | None = None) -> Mixture:
    """The likeliest core, with and without a gross part.

    Parameters
    ----------
    z : ndarray
        Residuals in units of their scale.
    sample_weight : ndarray, optional
        Counts of the rows.

    Returns
    -------
    Mixture

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = fit_mixture(rng.standard_t(3, size=2000))
    >>> dirty = fit_mixture(np.r_[rng.standard_t(3, size=1900), rng.normal(15, 2, size=100)])
    >>> clean.found, dirty.found, 0.04 < dirty.share < 0.07
    (False, True, True)
    """
    likelihood = Likelihood(*_binned(nearer(z), sample_weight))
    alone, nats_alone = _without_gross(likelihood)
    cores = [(*alone[:5], *alone[8:]), NORMAL]  # what is gross may have been a tail of the core alone
    starts = np.array([(*core[:5], START, *start, *core[5:]) for core in cores for _, _, start in SHAPES])
    bounds = np.array([(*CORE, centre, spread, BENDS, BENDS) for _ in cores for centre, spread, _ in SHAPES])
    found, nats = likelihood.largest(starts, bounds[:, :, 0], bounds[:, :, 1])
    best = int(nats.argmax())
    interval = _profile(likelihood, found[best], float(nats[best]), bounds[best])
    needed = max(LEAST_GAIN, math.log(max(float(likelihood.counts.sum()), 2.0)))
    return Mixture(found[best], float(nats[best] - nats_alone), needed, interval)


def nearer(z: Array) -> Array:
    """Residuals with far ones drawn nearer: by what factor they are too far matters more than by how much.

    A gross part that reaches from ten scales to hundreds has a middle then, and a core with a heavy tail fits it less.
    """
    size = np.abs(z)
    drawn = FAR * (1 + np.log(np.maximum(size, FAR) / FAR))
    return np.asarray(np.sign(z) * np.minimum(np.minimum(size, drawn), REACH))


def _without_gross(likelihood: Likelihood) -> tuple[Array, float]:
    """The likeliest core alone, and its nats."""
    firsts = [(scale, tail, bend) for scale, tail in ((0.0, 1.0), (-0.2, -1.0)) for bend in (1.2, 2.0)]
    starts = np.array([(0, scale, scale, tail, tail, NOTHING, 0, 2, bend, bend) for scale, tail, bend in firsts])
    bounds = np.array([*CORE[:5], *((value, value) for value in starts[0, 5:8]), BENDS, BENDS])
    low, high = (np.tile(bounds[:, end], (len(starts), 1)) for end in (0, 1))
    found, nats = likelihood.largest(starts, low, high)
    return found[nats.argmax()], float(nats.max())


def _profile(likelihood: Likelihood, best: Array, nats: float, bounds: Array) -> tuple[float, float]:
    """Shares of the gross part at which the likelihood is not lower than 95 % allow, each at its likeliest shape."""
    odds = np.unique(np.clip(best[5] + PROFILE, RARE, 0.0))
    low, high, starts = (np.tile(part, (len(odds), 1)) for part in (bounds[:, 0], bounds[:, 1], best))
    starts[:, 5] = low[:, 5] = high[:, 5] = odds
    reached = likelihood.largest(starts, low, high)[1]
    kept = odds[reached >= nats - HALF_CHI]
    return float(expit(min(kept.min(initial=best[5]), best[5]))), float(expit(max(kept.max(initial=best[5]), best[5])))


def _binned(z: Array, weight: Array | None) -> tuple[Array, Array]:
    """Mean and count of the residuals in bins that are narrow where there are many."""
    place = np.arcsinh(z)
    edge = math.asinh(REACH)
    index = np.minimum(((place + edge) * (BINS / (2 * edge))).astype(np.intp), BINS - 1)
    weight = np.ones(len(z)) if weight is None else weight
    counts = np.bincount(index, weight, minlength=BINS)
    sums = np.bincount(index, weight * z, minlength=BINS)
    used = counts > 0
    return np.asarray(sums[used] / counts[used]), np.asarray(counts[used])
