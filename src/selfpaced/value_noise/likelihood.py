"""The likelihood of a core with two tails and a gross part, and its maximum from many starts at once."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma, expit, gammaln

from .base import Array

__all__ = ["LEAST_DEGREES", "Likelihood", "log_parts"]

LEAST_DEGREES = 1.5  # a choice: degrees of freedom of the core at least; a heavier tail would explain anything

FLAT = 1e-2  # cost: nats that the next step may promise at the end of a search; one nat is nothing here
STEPS = 40  # cost: of a search
EASIER, HARDER = 0.3, 4.0  # convention: of the damping, after a step that was taken and one that was not
STUCK = 1e8  # numerical safety: damping at which a search ends


def log_parts(parameters: Array, z: Array) -> tuple[Array, Array]:
    """Log densities of the core and of the gross part.

    A side of the core falls as ``(1 + u ** bend / degrees) ** (-(degrees + 1) / bend)`` of the distance u in scales of
    its own: Student's t where the bend is 2, exponential or normal where it is 1 or 2 and the degrees are many, lighter
    than normal beyond (McDonald and Newey, 1988).
    """
    middle, spread = (parameters[..., j, None] for j in (6, 7))
    sides = _Sides(parameters, z)
    core = -sides.whole[..., None] - (sides.degrees + 1) / sides.bend * np.log1p(sides.power / sides.degrees)
    gross = -0.5 * np.square((z - middle) * np.exp(-spread)) - spread - 0.5 * math.log(2 * math.pi)
    return np.asarray(core), np.asarray(gross)


class _Sides:
    """The side of the core that each residual is on, with the masses of both."""

    def __init__(self, parameters: Array, z: Array) -> None:
        offset = z - parameters[..., 0, None]
        self.below = offset < 0
        self.logs, self.bends = parameters[..., 1:3], parameters[..., 8:10]
        self.tails = np.exp(parameters[..., 3:5])
        self.both = LEAST_DEGREES + self.tails
        self.degrees, self.bend, logs = (self.of(pair) for pair in (self.both, self.bends, self.logs))
        self.shrink = np.exp(-logs)
        self.distance = np.maximum(np.abs(offset) * self.shrink, 1e-300)
        self.power = self.distance**self.bend
        masses = self.logs + _log_mass(self.both, self.bends)
        self.whole = np.logaddexp(masses[..., 0], masses[..., 1])
        self.shares = np.exp(masses - self.whole[..., None])

    def of(self, pair: Array) -> Array:
        return np.asarray(np.where(self.below, pair[..., :1], pair[..., 1:]))


def _log_mass(degrees: Array, bend: Array) -> Array:
    """The logarithm of the integral of one side, if its peak were 1."""
    ratios = gammaln(1 / bend) + gammaln(degrees / bend) - gammaln((degrees + 1) / bend)
    return np.asarray(np.log(degrees) / bend - np.log(bend) + ratios)


def _log_mass_slopes(degrees: Array, bend: Array) -> tuple[Array, Array]:
    """Its slopes by degrees and bend."""
    one, tail, both = digamma(1 / bend), digamma(degrees / bend), digamma((degrees + 1) / bend)
    by_degrees = (1 / degrees + tail - both) / bend
    by_bend = -(np.log(degrees) + bend + one + degrees * tail - (degrees + 1) * both) / bend**2
    return np.asarray(by_degrees), np.asarray(by_bend)


class Likelihood:
    """Of residuals, each counted so many times.

    Parameters
    ----------
    points, counts : ndarray of shape (n,)
        Residuals, and how often they occur.
    """

    def __init__(self, points: Array, counts: Array) -> None:
        self.points, self.counts = points, counts

    def nats(self, parameters: Array) -> Array:
        """The log-likelihood at each row of a table of parameters."""
        core, gross = log_parts(parameters, self.points)
        odds = parameters[:, 5, None]
        return np.asarray(np.logaddexp(core - np.logaddexp(0, odds), gross - np.logaddexp(0, -odds)) @ self.counts)

    def slopes(self, parameters: Array) -> Array:
        """Slopes of the log density of every residual: a table of parameters times residuals for each row."""
        odds, middle, log_spread = (parameters[:, j, None] for j in (5, 6, 7))
        core, gross = log_parts(parameters, self.points)
        grossly = expit(odds + gross - core)
        kept = 1 - grossly
        sides = _Sides(parameters, self.points)
        nu, bend = sides.degrees, sides.bend
        pull = kept * (nu + 1) * sides.power / (nu + sides.power)
        log_tail = kept * np.log1p(sides.power / nu)
        by_degrees = (pull / nu - log_tail) / bend
        by_bend = ((nu + 1) * log_tail / bend - pull * np.log(sides.distance)) / bend
        mass_degrees, mass_bend = _log_mass_slopes(sides.both, sides.bends)
        v = (self.points - middle) * np.exp(-log_spread)
        out = np.empty((len(parameters), 10, len(self.points)))
        out[:, 0] = pull / sides.distance * sides.shrink * np.where(sides.below, -1.0, 1.0)
        for side, rows in enumerate((sides.below, ~sides.below)):
            share = kept * sides.shares[:, side, None]
            out[:, 1 + side] = np.where(rows, pull, 0.0) - share
            fall = np.where(rows, by_degrees, 0.0) - share * mass_degrees[:, side, None]
            out[:, 3 + side] = sides.tails[:, side, None] * fall
            out[:, 8 + side] = np.where(rows, by_bend, 0.0) - share * mass_bend[:, side, None]
        out[:, 5] = grossly - expit(odds)
        out[:, 6] = grossly * v * np.exp(-log_spread)
        out[:, 7] = grossly * (v * v - 1)
        return out

    def largest(self, starts: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """The likeliest parameters within bounds from each start, and their nats.

        Damped steps of the curvature that the slopes of single residuals imply (Berndt, Hall, Hall and Hausman, 1974),
        all starts at once: their number hardly adds to the cost.

        Parameters
        ----------
        starts, low, high : ndarray of shape (k, 10)
            First parameters, and bounds; equal bounds hold a parameter.

        Returns
        -------
        parameters, nats : ndarray of shape (k, 10), (k,)
        """
        found = np.clip(starts, low, high)
        nats, damping = self.nats(found), np.ones(len(found))
        live = np.arange(len(found))
        for _ in range(STEPS):
            at = found[live]
            table = self.slopes(at)
            slope = table @ self.counts
            curvature = (table * self.counts) @ table.transpose(0, 2, 1)
            step = _damped(slope, curvature, damping[live], at, low[live], high[live])
            tried = np.clip(at + step, low[live], high[live])
            promised = np.einsum("kj,kj->k", slope, tried - at)
            reached = self.nats(tried)
            better = reached > nats[live]
            found[live[better]], nats[live[better]] = tried[better], reached[better]
            damping[live] *= np.where(better, EASIER, HARDER)
            live = live[(promised > FLAT) & (damping[live] < STUCK)]
            if not live.size:
                break
        return found, nats


def _damped(slope: Array, curvature: Array, damping: Array, at: Array, low: Array, high: Array) -> Array:
    """Steps upward; parameters that would leave their bounds stay."""
    held = (low >= high) | ((at <= low) & (slope <= 0)) | ((at >= high) & (slope >= 0))
    diagonal = np.einsum("kjj->kj", curvature)
    lifted = (1 + damping[:, None]) * diagonal + 1e-9 * diagonal.max(axis=1, keepdims=True) + 1e-300
    free = ~held
    matrix = np.where(free[:, :, None] & free[:, None, :], curvature, 0.0)
    places = np.arange(slope.shape[1])
    matrix[:, places, places] = np.where(free, lifted, 1.0)
    return np.asarray(np.linalg.solve(matrix, np.where(free, slope, 0.0)[:, :, None])[:, :, 0])
