"""Errors as a core that may have heavy and uneven tails, and perhaps a part that is grossly off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit

from .base import Array, t_log_peak

__all__ = ["Mixture", "fit_mixture"]

LEAST_GAIN = 5.0  # nats that the gross part must gain, clean data gain up to 5: benchmarks/values.py
NEAR = 3.0  # scales of the core within which nothing is gross: benchmarks/values.py
LEAST_DEGREES = 1.5  # a choice: degrees of freedom of the core at least; a heavier tail would explain anything

REACH = 40.0  # numerical safety: residuals beyond this many scales count as this far
BINS = 250  # cost: of the residuals; their width in the core is 0.035 of its scale
RARE = -9.0  # numerical safety: log odds of the gross part at least
NOTHING = -30.0  # numerical safety: log odds that stand for none
HALF_CHI = 1.92  # theory: half the 95 % point of chi-squared with one degree of freedom
STEP = 0.25  # cost: first step along the profile, in log odds
PRECISION = 0.1  # cost: last step along the profile
#: a choice: ranges of a gross part's centre and log spread, and where they start: broad around the core, or beside it.
SHAPES = (
    ((-3.5, 3.5), (1.1, 4.0), (0.0, 2.0)),
    ((3.5, REACH), (-0.36, 4.0), (5.0, 0.4)),
    ((3.5, REACH), (-0.36, 4.0), (14.0, 1.6)),
    ((-REACH, -3.5), (-0.36, 4.0), (-5.0, 0.4)),
    ((-REACH, -3.5), (-0.36, 4.0), (-14.0, 1.6)),
)
#: a choice: ranges of the core's centre, log scales and log degrees above the least (left, right), gross log odds.
CORE = ((-1.0, 1.0), (-1.5, 1.5), (-1.5, 1.5), (-5.0, 4.5), (-5.0, 4.5), (RARE, 0.0))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Residuals in units of their scale: a core with two t tails of their own, and a normal gross part.

    Attributes
    ----------
    parameters : ndarray
        Centre, log scales and log degrees of freedom of the core's two sides; log odds, centre and log spread of the
        gross part.
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
        z = np.clip(z, -REACH, REACH)
        core, broad = log_parts(self.parameters, z)
        odds = self.parameters[5]
        probability = expit(odds + broad - core)
        offset = z - self.parameters[0]
        for side in (offset < 0, offset >= 0):
            rows = np.flatnonzero(side)
            rows = rows[np.argsort(np.abs(offset[rows]), kind="stable")]
            probability[rows] = np.maximum.accumulate(probability[rows])
        return np.asarray(np.where(self.distance(z) > NEAR, probability, 0.0))


def log_parts(parameters: Array, z: Array) -> tuple[Array, Array]:
    """Log densities of the core and of the gross part."""
    centre, left, right, tail_left, tail_right, _, middle, spread = parameters
    degrees = LEAST_DEGREES + math.exp(tail_left), LEAST_DEGREES + math.exp(tail_right)
    peak = math.log(2) - np.logaddexp(left - t_log_peak(degrees[0]), right - t_log_peak(degrees[1]))
    below = z < centre
    u = (z - centre) * np.where(below, math.exp(-left), math.exp(-right))
    nu = np.where(below, *degrees)
    core = peak - (nu + 1) / 2 * np.log1p(u * u / nu)
    gross = -0.5 * ((z - middle) * math.exp(-spread)) ** 2 - spread - 0.5 * math.log(2 * math.pi)
    return np.asarray(core), np.asarray(gross)


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
    points, counts = _binned(np.clip(z, -REACH, REACH), sample_weight)
    search = _Search(points, counts)
    starts = [(0, 0, 0, 1, 1, NOTHING, 0, 2), (0, -0.2, -0.2, -1, -1, NOTHING, 0, 2)]
    alone = min((search(start, SHAPES[0], odds=NOTHING) for start in starts), key=lambda found: found.fun)
    core = alone.x[:5]
    tries = [(search((*core, -3, *shape[2]), shape), shape) for shape in SHAPES]
    best, shape = min(tries, key=lambda found: found[0].fun)
    low, high = (_profile_end(search, best, shape, direction) for direction in (-1, 1))
    needed = max(LEAST_GAIN, math.log(max(float(counts.sum()), 2.0)))
    return Mixture(best.x, float(alone.fun - best.fun), needed, (low, high))


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


@dataclass(frozen=True, eq=False)
class _Search:
    """Minimise minus the log-likelihood of binned residuals."""

    points: Array
    counts: Array

    def cost(self, parameters: Array) -> float:
        core, gross = log_parts(parameters, self.points)
        odds = parameters[5]
        share = -np.logaddexp(0, -odds), -np.logaddexp(0, odds)
        return -float(self.counts @ np.logaddexp(share[1] + core, share[0] + gross))

    def __call__(
        self, start: Sequence[float], shape: tuple[tuple[float, float], ...], odds: float | None = None, steps: int = 60
    ) -> OptimizeResult:
        bounds, first = [*CORE, *shape[:2]], np.asarray(start, dtype=float)
        if odds is not None:
            bounds[5], first[5] = (odds, odds), odds
        return minimize(self.cost, first, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})


def _profile_end(
    search: _Search, best: OptimizeResult, shape: tuple[tuple[float, float], ...], direction: int
) -> float:
    """How far the share can go before the likelihood falls by what 95 % allow."""
    odds, step, last, grows = float(best.x[5]), STEP, best.x, True
    while RARE < odds < 0 and step > PRECISION:
        tried = float(np.clip(odds + direction * step, RARE, 0.0))
        found = search(last, shape, odds=tried, steps=20)
        grows = grows and found.fun - best.fun <= HALF_CHI
        if found.fun - best.fun <= HALF_CHI:
            odds, last = tried, found.x
        step = step * 2 if grows else step / 2
    return float(expit(odds))
