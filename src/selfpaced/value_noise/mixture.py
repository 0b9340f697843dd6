"""Errors as a core that may have heavy and uneven tails, and perhaps a gross part that is far out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from ..robust import weighted_quantile
from ..robust.scales import NORMAL_95

__all__ = ["NEAR", "Mixture", "fit_mixture"]

Array = NDArray[np.floating[Any]]
NEAR = 3.0  # scales of the core within which no value is gross: benchmarks/regression.py claims and errors
LARGE_PART, TAIL_RISE = 0.2, 1.5  # share; nats by which it rises on one side: benchmarks/regression.py claims
SCHWARZ = 2.0  # theory: nats per log of the rows that four more parameters must gain (Schwarz's criterion)
FARTHEST = 1e6  # numerical safety: scales beyond which residuals count as this far
RESIDUAL_BINS = 400  # cost: of the residuals
#: a choice: bounds of centre, log scales and tails of the core (3: heavier than t with 1.5 degrees of freedom); of log
#: odds, side, log distance and its spread
BOUNDS = np.array(
    [(-1, 1), (-3, 2), (-3, 2), (0.02, 3), (0.02, 3), (-9, 0), (-5, 5), (math.log(NEAR), 12), (-2.5, 0.3)]
)
#: a choice: cores (normal and heavy) and gross parts (log odds, side, log distance, its log spread) to start from
CORES = ((0.0, 0.0, 0.0, 0.1, 0.1), (0.0, 0.0, 0.0, 1.0, 1.0))
GROSS_PARTS = ((-3.0, 0.0, 1.6, -1.0), (-3.0, 0.0, 2.7, -0.3), (-3.0, 0.0, 4.0, -0.3))


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
    gain, needed : float
        Nats by which the gross part raises the likelihood, and from which on it counts as found.
    interval : tuple of float
        Of the share of the gross part (95 %).
    middle : float
        What residuals are taken from first: their median if many errors have moved the model beyond the bounds of the
        centre, else 0.
    """

    parameters: Array
    gain: float
    needed: float
    interval: tuple[float, float]
    middle: float = 0.0

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
        offset = z - self.middle - self.parameters[0]
        return np.asarray(np.abs(offset) / np.exp(np.where(offset < 0, self.parameters[1], self.parameters[2])))

    def gross(self, z: Array) -> Array:
        """Return the probability that each residual belongs to the gross part; farther out is never less."""
        if not self.found:
            return np.zeros(len(z))
        moved = np.clip(z - self.middle, -FARTHEST, FARTHEST)
        core, gross = _log_parts(self.parameters, moved)
        probability = np.where(self.distance(z) > NEAR, expit(self.parameters[5] + gross - core), 0.0)
        offset = moved - self.parameters[0]
        for side in (offset < 0, offset >= 0):
            rows = np.flatnonzero(side)
            rows = rows[np.argsort(np.abs(offset[rows]), kind="stable")]
            probability[rows] = np.maximum.accumulate(probability[rows])
        return np.asarray(probability)


def fit_mixture(z: Array, weight: Array | None = None, *, finest: float = 0.0) -> Mixture:
    """Fit the core with and without a gross part.

    Parameters
    ----------
    z : ndarray
        Residuals in units of their scale.
    weight : ndarray, optional
        Frequencies of them.
    finest : float, default=0
        What rounding alone makes of a residual: the smallest scale of the core. Most of the values of a rounded sum
        may fit exactly, and the others are one step off.

    Returns
    -------
    Mixture

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = fit_mixture(rng.standard_t(3, size=2000))
    >>> dirty = fit_mixture(np.r_[rng.standard_t(3, size=1900), rng.normal(15, 2, size=100)])
    >>> clean.found, dirty.found, dirty.interval[0] < 0.05 < dirty.interval[1]
    (False, True, True)
    """
    median = weighted_quantile(z, 0.5, weight)
    middle = median if abs(median) > BOUNDS[0, 1] else 0.0
    points, counts = _binned(np.clip(z - middle, -FARTHEST, FARTHEST), weight)
    bounds = BOUNDS.copy()
    bounds[1:3, 0] = math.log(max(finest, math.exp(BOUNDS[1, 0])))
    nothing = (-30.0, *GROSS_PARTS[0][1:])  # log odds that stand for no gross part
    alone, core = max((_likeliest(points, counts, bounds, (*core, *nothing), 5) for core in CORES), key=itemgetter(0))
    # what is gross may have been taken for a tail of the core alone
    alike = tuple(float(value) for value in core[:5])
    starts = [(*start, *part) for start, part in zip((alike, CORES[0], alike), GROSS_PARTS, strict=True)]
    both, best = max((_likeliest(points, counts, bounds, start) for start in starts), key=itemgetter(0))
    error = _odds_error(best, bounds, points, counts)
    interval = float(expit(best[5] - NORMAL_95 * error)), float(expit(best[5] + NORMAL_95 * error))
    # a large part on one side (the odds of sides are at their bound) that does not stand out from the core is its tail
    one_sided = abs(best[6]) >= BOUNDS[6, 1]
    tail = expit(best[5]) > LARGE_PART and one_sided and _rise(best) < TAIL_RISE
    return Mixture(best, both - alone, math.inf if tail else SCHWARZ * math.log(counts.sum()), interval, middle)


def _rise(parameters: Array) -> float:
    """Return by how many nats the density rises again on its way out from the centre."""
    rises = []
    for side, scale in ((-1.0, parameters[1]), (1.0, parameters[2])):
        nats = _log_density(parameters, parameters[0] + side * math.exp(scale) * np.geomspace(0.5, 1e3, 300))[0]
        rises.append(float(np.max(nats - np.minimum.accumulate(nats))))
    return max(rises)


def _likeliest(
    points: Array, counts: Array, bounds: Array, start: tuple[float, ...], free: int = 9
) -> tuple[float, Array]:
    """Return the largest log-likelihood from a start over the first ``free`` parameters, and the parameters."""
    begin = np.array(start)
    begin[:free] = np.clip(begin[:free], *bounds[:free].T)

    def loss(head: Array) -> tuple[float, Array]:
        nats, slopes = _log_density(np.r_[head, begin[free:]], points)
        return -float(nats @ counts), -(slopes @ counts)[:free]

    found = minimize(loss, begin[:free], jac=True, method="L-BFGS-B", bounds=bounds[:free], options={"ftol": 1e-7})
    return -float(found.fun), np.r_[found.x, begin[free:]]


def _odds_error(best: Array, bounds: Array, points: Array, counts: Array) -> float:
    """Return the standard error of the log odds, by the curvature in the parameters that are not at a bound.

    One or two gross residuals do not show the shape of their part: it is taken to be anywhere within the bounds.
    """
    slopes = _log_density(best, points)[1]
    free = (best > bounds[:, 0]) & (best < bounds[:, 1])
    anywhere = 12 / np.square(np.ptp(bounds, axis=1)) * (np.arange(len(best)) > 5)
    curvature = ((slopes * counts) @ slopes.T + np.diag(anywhere))[np.ix_(free, free)]
    place = int(free[:5].sum())
    return math.sqrt(max(float(np.linalg.pinv(curvature)[place, place]), 0.0)) if free[5] else 0.0


class _Sides:
    """Distances of residuals in scales of their side of the core, and what asinh makes of them."""

    def __init__(self, parameters: Array, z: Array) -> None:
        offset = z - parameters[0]
        self.below = offset < 0
        self.scale = np.exp(np.where(self.below, parameters[1], parameters[2]))
        self.tail = np.where(self.below, parameters[3], parameters[4])
        self.t = np.abs(offset) / self.scale
        self.u = np.arcsinh(self.tail * self.t) / self.tail
        self.slope = 1 / np.sqrt(1 + (self.tail * self.t) ** 2)  # of u by t
        self.log_distance = np.log(np.maximum(np.abs(z), 0.05))
        self.w = (self.log_distance - parameters[7]) * np.exp(-parameters[8])


def _log_parts(parameters: Array, z: Array, sides: _Sides | None = None) -> tuple[Array, Array]:
    """Return the log densities of core and gross part."""
    sides = sides or _Sides(parameters, z)
    both = np.logaddexp(parameters[1], parameters[2])
    core = -0.5 * sides.u**2 + np.log(sides.slope) - both + 0.5 * math.log(2 / math.pi)
    share = -np.logaddexp(0, np.where(z >= 0, -parameters[6], parameters[6]))
    gross = -0.5 * sides.w**2 - parameters[8] - sides.log_distance - 0.5 * math.log(2 * math.pi) + share
    return np.asarray(core), np.asarray(gross)


def _log_density(parameters: Array, points: Array) -> tuple[Array, Array]:
    """Return the log density of every residual, and its slopes: a table of parameters times residuals."""
    sides = _Sides(parameters, points)
    core, gross = _log_parts(parameters, points, sides)
    odds, side = parameters[5], parameters[6]
    nats = np.logaddexp(core - np.logaddexp(0, odds), gross - np.logaddexp(0, -odds))
    grossly = expit(odds + gross - core)
    kept = 1 - grossly
    fall = sides.u * sides.slope + sides.tail**2 * sides.t * sides.slope**2  # minus the slope of the core by t
    by_tail = -sides.u * (sides.t * sides.slope - sides.u) / sides.tail - sides.tail * (sides.t * sides.slope) ** 2
    left = expit(parameters[1] - parameters[2])  # mass of the left side
    halves = (sides.below, left), (~sides.below, 1 - left)
    slopes = [kept * fall / sides.scale * np.where(sides.below, -1.0, 1.0)]
    slopes += [kept * (np.where(rows, fall * sides.t, 0.0) - mass) for rows, mass in halves]
    slopes += [kept * np.where(rows, by_tail, 0.0) for rows, _ in halves]
    slopes += [grossly - expit(odds), grossly * np.where(points >= 0, expit(-side), -expit(side))]
    slopes += [grossly * sides.w * np.exp(-parameters[8]), grossly * (sides.w * sides.w - 1)]
    return np.asarray(nats), np.array(slopes)


def _binned(z: Array, weight: Array | None) -> tuple[Array, Array]:
    """Return mean and count of the residuals in bins that are narrow in the core."""
    edge = math.asinh(FARTHEST)
    index = np.minimum(((np.arcsinh(z) + edge) * (RESIDUAL_BINS / (2 * edge))).astype(np.intp), RESIDUAL_BINS - 1)
    weight = np.ones(len(z)) if weight is None else weight
    counts = np.bincount(index, weight)
    used = counts > 0
    return np.asarray(np.bincount(index, weight * z)[used] / counts[used]), np.asarray(counts[used])
