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
    """Log densities of the core and of the gross part."""
    centre, left, right, tail_left, tail_right, _, middle, spread = (parameters[..., j, None] for j in range(8))
    degrees = LEAST_DEGREES + np.exp(tail_left), LEAST_DEGREES + np.exp(tail_right)
    whole = np.logaddexp(left - _log_peak(degrees[0]), right - _log_peak(degrees[1]))
    below = z < centre
    u = (z - centre) * np.exp(-np.where(below, left, right))
    nu = np.where(below, *degrees)
    core = math.log(2) - whole - (nu + 1) / 2 * np.log1p(u * u / nu)
    gross = -0.5 * np.square((z - middle) * np.exp(-spread)) - spread - 0.5 * math.log(2 * math.pi)
    return np.asarray(core), np.asarray(gross)


def _log_peak(degrees: Array) -> Array:
    """The logarithm of Student's density at 0."""
    return np.asarray(gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi))


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
        centre, odds, middle, log_spread = (parameters[:, j, None] for j in (0, 5, 6, 7))
        logs, tails = parameters[:, 1:3], np.exp(parameters[:, 3:5])
        degrees = LEAST_DEGREES + tails
        core, gross = log_parts(parameters, self.points)
        grossly = expit(odds + gross - core)
        kept = 1 - grossly
        below = self.points < centre
        shrink = np.exp(-np.where(below, logs[:, :1], logs[:, 1:]))
        nu = np.where(below, degrees[:, :1], degrees[:, 1:])
        u = (self.points - centre) * shrink
        pull = kept * (nu + 1) / (nu + u * u) * u
        tail = (pull * u / nu - kept * np.log1p(u * u / nu)) / 2
        masses = logs - _log_peak(degrees)  # of the two sides, if their peak were 1
        shares = np.exp(masses - np.logaddexp(masses[:, :1], masses[:, 1:]))
        peaks = 0.5 * (digamma((degrees + 1) / 2) - digamma(degrees / 2) - 1 / degrees)
        v = (self.points - middle) * np.exp(-log_spread)
        out = np.empty((len(parameters), 8, len(self.points)))
        out[:, 0] = pull * shrink
        for side, rows in enumerate((below, ~below)):
            share = shares[:, side, None]
            out[:, 1 + side] = np.where(rows, pull * u, 0.0) - kept * share
            out[:, 3 + side] = tails[:, side, None] * (np.where(rows, tail, 0.0) + kept * share * peaks[:, side, None])
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
        starts, low, high : ndarray of shape (k, 8)
            First parameters, and bounds; equal bounds hold a parameter.

        Returns
        -------
        parameters, nats : ndarray of shape (k, 8), (k,)
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
