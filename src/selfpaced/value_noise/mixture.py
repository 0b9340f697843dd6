"""Errors as a core that may have heavy and uneven tails, and perhaps a gross part that is far out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..robust.outliers import NORMAL_95

__all__ = ["NEAR", "Mixture", "fit_mixture"]

Array = NDArray[np.floating[Any]]
# Measured by benchmarks/regression.py claims and errors.
LEAST_GAIN, PER_LOG_ROW = 9.0, 1.5  # nats that the gross part must gain, in all and per log of the rows
NEAR = 3.0  # scales of the core within which no value is gross
HEAVIEST = 3.0  # the largest tail parameter of the core: heavier tails than t with 1.5 degrees of freedom

FARTHEST = 1e6  # numerical safety: scales beyond which residuals count as this far
BINS = 400  # cost: of the residuals
STEPS, FLAT = 40, 1e-2  # cost: of a search, and nats that its last step may promise
EASIER, HARDER, STUCK = (
    0.3,
    4.0,
    1e8,
)  # convention: damping after a step that was taken, after one that was not, its end
NOTHING = -30.0  # numerical safety: log odds that stand for no gross part
#: a choice: bounds of centre, log scales and tails of the core; of log odds, side, log distance and its spread
BOUNDS = np.array(
    [(-1, 1), (-3, 2), (-3, 2), (0.02, HEAVIEST), (0.02, HEAVIEST), (-9, 0), (-5, 5), (math.log(NEAR), 12), (-2.5, 0.3)]
)
NORMAL = (0.0, 0.0, 0.0, 0.1, 0.1)  # theory: centre, log scales and tails of a normal core
SKEWED = (0.0, 0.0, 0.0, 1.0, 1.0)  # a choice: another core from which a search starts
#: a choice: side, log distance and its log spread of the gross part from which a search starts
FIRST_GROSS = ((0.0, 1.6, -1.0), (0.0, 2.7, -0.3), (0.0, 4.0, -0.3))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Residuals in units of their scale: a core with two sides, and a part that is far out.

    A side of the core is half a normal after ``asinh``: with a tail parameter near 0 it is normal, with a large one its
    tail is that of a lognormal variable. The logarithm of the distance of a gross residual is normal.

    Attributes
    ----------
    parameters : ndarray of shape (9,)
        Centre, log scales (left, right) and tail parameters (left, right) of the core; log odds of the gross part, log
        odds of its right side, mean and log spread of its log distance.
    gain : float
        Nats by which the gross part raises the likelihood.
    needed : float
        Nats from which on it counts as found.
    interval : tuple of float
        Of the share of the gross part (95 %).
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
        """Share of the gross part."""
        return float(expit(self.parameters[5])) if self.found else 0.0

    def distance(self, z: Array) -> Array:
        """Return the distance from the centre in scales of the core on that side."""
        offset = z - self.parameters[0]
        return np.asarray(np.abs(offset) / np.exp(np.where(offset < 0, self.parameters[1], self.parameters[2])))

    def gross(self, z: Array) -> Array:
        """Return the probability that each residual belongs to the gross part; farther out is never less."""
        if not self.found:
            return np.zeros(len(z))
        z = np.clip(z, -FARTHEST, FARTHEST)
        core, gross = _log_parts(self.parameters[None], z)
        probability = expit(self.parameters[5] + gross[0] - core[0])
        probability = np.where(self.distance(z) > NEAR, probability, 0.0)
        offset = z - self.parameters[0]
        for side in (offset < 0, offset >= 0):
            rows = np.flatnonzero(side)
            rows = rows[np.argsort(np.abs(offset[rows]), kind="stable")]
            probability[rows] = np.maximum.accumulate(probability[rows])
        return np.asarray(probability)


def fit_mixture(z: Array) -> Mixture:
    """Fit the core with and without a gross part.

    Parameters
    ----------
    z : ndarray
        Residuals in units of their scale.

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
    points, counts = _binned(np.clip(z, -FARTHEST, FARTHEST))
    alone = np.array([(*core, NOTHING, *FIRST_GROSS[0]) for core in (NORMAL, SKEWED)])
    low, high = (np.tile(end, (2, 1)) for end in BOUNDS.T)
    low[:, 5:] = high[:, 5:] = alone[:, 5:]
    cores, nats_alone = _likeliest(points, counts, alone, low, high)
    best_core = cores[nats_alone.argmax()][:5]
    # what is gross may have been taken for a tail of the core alone
    starts = np.array([(*core, -3.0, *gross) for core in (best_core, NORMAL) for gross in FIRST_GROSS])
    low, high = (np.tile(end, (len(starts), 1)) for end in BOUNDS.T)
    found, nats = _likeliest(points, counts, starts, low, high)
    best, gain = found[nats.argmax()], float(nats.max() - nats_alone.max())
    error = _odds_error(best, points, counts)
    interval = float(expit(best[5] - NORMAL_95 * error)), float(expit(best[5] + NORMAL_95 * error))
    return Mixture(best, gain, max(LEAST_GAIN, PER_LOG_ROW * math.log(max(len(z), 2))), interval)


def _odds_error(best: Array, points: Array, counts: Array) -> float:
    """Return the standard error of the log odds, by the curvature in the parameters that are not at a bound."""
    table = _slopes(best[None], points)[0]
    free = (best > BOUNDS[:, 0]) & (best < BOUNDS[:, 1])
    curvature = ((table * counts) @ table.T)[np.ix_(free, free)]
    place = int(free[:5].sum())
    return math.sqrt(max(float(np.linalg.pinv(curvature)[place, place]), 0.0)) if free[5] else 0.0


# ------------------------------------------------------------------------------------------------ likelihood


def _log_parts(parameters: Array, z: Array) -> tuple[Array, Array]:
    """Log densities of core and gross part, one row per row of parameters."""
    sides = _Sides(parameters, z)
    both = np.logaddexp(parameters[:, 1], parameters[:, 2])[:, None]
    core = -0.5 * sides.u**2 + np.log(sides.slope) - both + 0.5 * math.log(2 / math.pi)
    _, side, log_spread, w, distance = _gross_terms(parameters, z)
    share = -np.logaddexp(0, np.where(z >= 0, -side, side))
    gross = -0.5 * w**2 - log_spread - distance - 0.5 * math.log(2 * math.pi) + share
    return np.asarray(core), np.asarray(gross)


def _gross_terms(parameters: Array, z: Array) -> tuple[Array, Array, Array, Array, Array]:
    odds, side, middle, log_spread = (parameters[:, j, None] for j in (5, 6, 7, 8))
    distance = np.log(np.maximum(np.abs(z), 0.05))
    return odds, side, log_spread, (distance - middle) * np.exp(-log_spread), distance


class _Sides:
    """Distances of residuals in scales of their side of the core, and what asinh makes of them."""

    def __init__(self, parameters: Array, z: Array) -> None:
        offset = z - parameters[:, 0, None]
        self.below = offset < 0
        self.scale = np.exp(np.where(self.below, parameters[:, 1, None], parameters[:, 2, None]))
        self.tail = np.where(self.below, parameters[:, 3, None], parameters[:, 4, None])
        self.t = np.abs(offset) / self.scale
        self.u = np.arcsinh(self.tail * self.t) / self.tail
        self.slope = 1 / np.sqrt(1 + (self.tail * self.t) ** 2)  # of u by t


def _nats(parameters: Array, points: Array, counts: Array) -> Array:
    core, gross = _log_parts(parameters, points)
    odds = parameters[:, 5, None]
    return np.asarray(np.logaddexp(core - np.logaddexp(0, odds), gross - np.logaddexp(0, -odds)) @ counts)


def _slopes(parameters: Array, points: Array) -> Array:
    """Slopes of the log density of every residual: a table of parameters times residuals for each row."""
    core, gross = _log_parts(parameters, points)
    odds, side, log_spread, w, _ = _gross_terms(parameters, points)
    grossly = expit(odds + gross - core)
    kept = 1 - grossly
    sides = _Sides(parameters, points)
    fall = sides.u * sides.slope + sides.tail**2 * sides.t * sides.slope**2  # minus the slope of the core by t
    by_tail = -sides.u * (sides.t * sides.slope - sides.u) / sides.tail - sides.tail * (sides.t * sides.slope) ** 2
    share = expit(parameters[:, 1] - parameters[:, 2])[:, None]  # mass of the left side
    out = np.empty((len(parameters), 9, len(points)))
    out[:, 0] = kept * fall / sides.scale * np.where(sides.below, -1.0, 1.0)
    for j, rows, mass in ((0, sides.below, share), (1, ~sides.below, 1 - share)):
        out[:, 1 + j] = kept * (np.where(rows, fall * sides.t, 0.0) - mass)
        out[:, 3 + j] = kept * np.where(rows, by_tail, 0.0)
    out[:, 5] = grossly - expit(odds)
    out[:, 6] = grossly * np.where(points >= 0, expit(-side), -expit(side))
    out[:, 7] = grossly * w * np.exp(-log_spread)
    out[:, 8] = grossly * (w * w - 1)
    return out


def _likeliest(points: Array, counts: Array, starts: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the likeliest parameters within bounds from each start, and their nats.

    Damped steps by the curvature that the slopes of single residuals imply (Berndt, Hall, Hall and Hausman, 1974), all
    starts at once.
    """
    found = np.clip(starts, low, high)
    nats, damping = _nats(found, points, counts), np.ones(len(found))
    live = np.arange(len(found))
    for _ in range(STEPS):
        at = found[live]
        table = _slopes(at, points)
        slope = table @ counts
        step = _damped(slope, (table * counts) @ table.transpose(0, 2, 1), damping[live], at, low[live], high[live])
        tried = np.clip(at + step, low[live], high[live])
        promised = np.einsum("kj,kj->k", slope, tried - at)
        reached = _nats(tried, points, counts)
        better = reached > nats[live]
        found[live[better]], nats[live[better]] = tried[better], reached[better]
        damping[live] *= np.where(better, EASIER, HARDER)
        live = live[(promised > FLAT) & (damping[live] < STUCK)]
        if not live.size:
            break
    return found, nats


def _damped(slope: Array, curvature: Array, damping: Array, at: Array, low: Array, high: Array) -> Array:
    """Steps upward; parameters that would leave their bounds stay."""
    free = ~((low >= high) | ((at <= low) & (slope <= 0)) | ((at >= high) & (slope >= 0)))
    diagonal = np.einsum("kjj->kj", curvature)
    lifted = (1 + damping[:, None]) * diagonal + 1e-9 * diagonal.max(axis=1, keepdims=True) + 1e-300
    matrix = np.where(free[:, :, None] & free[:, None, :], curvature, 0.0)
    places = np.arange(slope.shape[1])
    matrix[:, places, places] = np.where(free, lifted, 1.0)
    return np.asarray(np.linalg.solve(matrix, np.where(free, slope, 0.0)[:, :, None])[:, :, 0])


def _binned(z: Array) -> tuple[Array, Array]:
    """Return mean and count of the residuals in bins that are narrow in the core."""
    place = np.arcsinh(z)
    edge = math.asinh(FARTHEST)
    index = np.minimum(((place + edge) * (BINS / (2 * edge))).astype(np.intp), BINS - 1)
    counts = np.bincount(index, minlength=BINS)
    used = counts > 0
    return np.asarray(np.bincount(index, z, minlength=BINS)[used] / counts[used]), np.asarray(counts[used], dtype=float)
