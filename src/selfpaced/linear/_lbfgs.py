"""Preconditioned limited-memory BFGS for smooth losses that need not be convex, one or several at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating[Any]]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]
Function = Callable[[Vector], tuple[float, Vector]]
Functions = Callable[[Vector, Rows], tuple[Vector, Vector]]


@dataclass(frozen=True)
class Metric:
    """The geometry in which steps are taken.

    ``apply`` maps gradients, one per row, and the numbers of their functions to directions; it is linear and positive
    definite. With ``curvature`` it is an inverse Hessian, so that its directions have the right length, too.
    """

    apply: Callable[[Vector, Rows], Vector]
    curvature: bool = True


@dataclass(frozen=True)
class Minimum:
    """Where a minimisation ended.

    ``converged`` also holds where no step lowers the value any more: at kinks of a hard rule the gradient
    never vanishes.
    """

    x: Vector
    n_iter: int
    converged: bool


class _Memory:
    """The last few (step, gradient change) pairs of every function, and the two-loop recursion over them."""

    def __init__(self, size: int, metric: Metric, count: int) -> None:
        self.pairs: deque[tuple[Vector, Vector, Vector]] = deque(maxlen=size)  # the last is 0 where there is no pair
        self.metric, self.count = metric, count
        self.gamma = np.full(count, np.nan)

    def clear(self, which: Rows) -> None:
        for *_, rho in self.pairs:
            rho[which] = 0.0
        self.gamma[which] = np.nan

    def filled(self, which: Rows) -> Mask:
        return np.any([rho[which] != 0 for *_, rho in self.pairs], axis=0) if self.pairs else np.zeros(len(which), bool)

    def update(self, which: Rows, step: Vector, change: Vector) -> None:
        curvature, lengths = np.vecdot(step, change), np.vecdot(step, step) ** 0.5 * np.vecdot(change, change) ** 0.5
        # A region of negative curvature says nothing about the scale of the next step.
        useful = curvature > 1e-10 * lengths
        inverse = np.where(useful, 1 / np.where(useful, curvature, 1.0), 0.0)
        gamma = curvature / np.maximum(np.vecdot(change, self.metric.apply(change, which)), 1e-300)
        if self.metric.curvature:
            gamma = np.clip(gamma, 0.05, 20.0)
        self.gamma[which] = np.where(useful, gamma, self.gamma[which])
        if len(which) < self.count:
            rho, steps, changes = np.zeros(self.count), *(np.zeros((self.count, step.shape[1])) for _ in range(2))
            rho[which], steps[which], changes[which] = inverse, step, change
            inverse, step, change = rho, steps, changes
        self.pairs.append((step, change, inverse))

    def direction(self, which: Rows, grad: Vector) -> Vector:
        taken = slice(None) if len(which) == self.count else which
        pairs = [(step[taken], change[taken], rho[taken]) for step, change, rho in self.pairs]
        q, alphas = grad.copy(), []
        for step, change, rho in reversed(pairs):
            alphas.append(rho * np.vecdot(step, q))
            q -= alphas[-1][:, None] * change
        q = self.metric.apply(q, which)
        unit = 1.0 if self.metric.curvature else np.maximum(np.vecdot(grad, q), 1e-300) ** -0.5
        # Where nothing is remembered: a first step of unit length in this metric, unless it has the right length.
        q *= np.where(np.isnan(self.gamma[which]), unit, self.gamma[which])[:, None]
        for (step, change, rho), alpha in zip(pairs, reversed(alphas), strict=True):
            q += (alpha - rho * np.vecdot(change, q))[:, None] * step
        return -q


def minimize(
    function: Function, x: Vector, *, metric: Metric, max_iter: int = 100, tol: float = 1e-4, memory: int = 8
) -> Minimum:
    """Minimise ``function`` (value and gradient) from ``x`` until no gradient entry exceeds ``tol``."""

    def alone(points: Vector, which: Rows) -> tuple[Vector, Vector]:  # noqa: ARG001
        value, grad = function(points[0])
        return np.array([value]), grad[None]

    return minimize_all(alone, x[None], metric=metric, max_iter=max_iter, tol=tol, memory=memory)[0]


def minimize_all(
    functions: Functions, x: Vector, *, metric: Metric, max_iter: int = 100, tol: float = 1e-4, memory: int = 8
) -> list[Minimum]:
    """Minimise several functions side by side, each from its row of ``x``.

    ``functions(points, which)`` gives values and gradients of the functions numbered ``which`` at the rows of
    ``points``.  Only sufficient decrease is asked of a step, never a curvature condition: latent losses are flat far
    out, and a step that must find curvature can be carried into another basin.
    """
    count = len(x)
    x, every = np.array(x), np.arange(count)
    value, grad = functions(x, every)
    value, grad = np.array(value), np.array(grad)
    store, iterations = _Memory(memory, metric, count), np.zeros(count, int)
    converged = np.abs(grad).max(axis=1, initial=0.0) <= tol
    while (active := np.flatnonzero(~converged & (iterations < max_iter))).size:
        direction = store.direction(active, grad[active])
        slope = np.vecdot(direction, grad[active])
        uphill = ~(slope < 0)
        if uphill.any():
            store.clear(active[uphill])
            direction[uphill] = -grad[active[uphill]]
            slope[uphill] = -np.vecdot(direction[uphill], direction[uphill])
        found = _search(functions, active, x[active], value[active], direction, slope)
        lost = active[~found.accepted]
        if lost.size:  # stale curvature is the usual reason: try once more from the metric alone
            converged[lost[~store.filled(lost)]] = True
            store.clear(lost)
        won, at = active[found.accepted], found.accepted
        if won.size:
            store.update(won, found.x[at] - x[won], found.grad[at] - grad[won])
            flat = value[won] - found.value[at] <= 1e-13 * np.maximum(np.abs(value[won]), 1e-300)
            x[won], value[won], grad[won] = found.x[at], found.value[at], found.grad[at]
            iterations[won] += 1
            converged[won] = (np.abs(grad[won]).max(axis=1) <= tol) | flat
    return [Minimum(p, int(i), bool(c)) for p, i, c in zip(x, iterations, converged, strict=True)]


class _SearchEnds(NamedTuple):
    """Where line searches ended; ``x``, ``value`` and ``grad`` hold where ``accepted`` does."""

    accepted: Mask
    x: Vector
    value: Vector
    grad: Vector


def _search(
    functions: Functions, which: Rows, x: Vector, value: Vector, direction: Vector, slope: Vector
) -> _SearchEnds:
    """Along every direction the first of ever shorter steps that lowers the value enough."""
    count = len(which)
    length, pending = np.ones(count), np.arange(count)
    found = _SearchEnds(np.zeros(count, bool), x.copy(), value.copy(), np.empty_like(x))
    for _ in range(20):
        points = x[pending] + length[pending, None] * direction[pending]
        values, grads = functions(points, which[pending])
        good = values <= value[pending] + 1e-4 * length[pending] * slope[pending]
        at = pending[good]
        found.accepted[at], found.x[at], found.value[at], found.grad[at] = True, points[good], values[good], grads[good]
        pending, values = pending[~good], values[~good]
        if not pending.size:
            break
        length[pending] *= _shorter(value[pending], slope[pending], values, length[pending])
    return found


def _shorter(value: Vector, slope: Vector, new_value: Vector, length: Vector) -> Vector:
    """Factors of the next trials: the minimum of the parabola through what is known, kept in [0.1, 0.5]."""
    finite = np.isfinite(new_value)
    rise = np.where(finite, new_value, value) - value - length * slope
    best = np.where(rise > 0, -0.5 * length * slope / np.where(rise > 0, rise, 1.0), 0.5)
    return np.where(finite, np.clip(best, 0.1, 0.5), 0.1)
