"""Preconditioned limited-memory BFGS for smooth losses that need not be convex."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating[Any]]
Function = Callable[[Vector], tuple[float, Vector]]


@dataclass(frozen=True)
class Metric:
    """The geometry in which steps are taken.

    Attributes
    ----------
    apply : callable
        Maps a gradient to a direction, linear and positive definite.
    curvature : bool
        Whether ``apply`` is an inverse Hessian, so that its directions have the right length too.
    """

    apply: Callable[[Vector], Vector]
    curvature: bool = True


@dataclass(frozen=True)
class Minimum:
    """Where a minimisation ended.

    ``converged`` also holds where no step lowers the value any more: at kinks of a hard rule the gradient
    never vanishes.
    """

    x: Vector
    value: float
    n_iter: int
    n_evaluations: int
    converged: bool


class _Memory:
    """The last few (step, gradient change) pairs and the two-loop recursion over them."""

    def __init__(self, size: int, metric: Metric) -> None:
        self.pairs: deque[tuple[Vector, Vector, float]] = deque(maxlen=size)
        self.metric = metric
        self.gamma: float | None = None

    def clear(self) -> None:
        self.pairs.clear()
        self.gamma = None

    def update(self, step: Vector, change: Vector) -> None:
        curvature = float(step @ change)
        if curvature <= 1e-10 * float(step @ step) ** 0.5 * float(change @ change) ** 0.5:
            return  # a region of negative curvature says nothing about the scale of the next step
        self.pairs.append((step, change, 1 / curvature))
        self.gamma = curvature / max(float(change @ self.metric.apply(change)), 1e-300)
        if self.metric.curvature:
            self.gamma = min(max(self.gamma, 0.05), 20.0)

    def direction(self, grad: Vector) -> Vector:
        q, alphas = grad.copy(), []
        for step, change, rho in reversed(self.pairs):
            alphas.append(rho * float(step @ q))
            q -= alphas[-1] * change
        q = self.metric.apply(q)
        if self.gamma is not None:
            q *= self.gamma
        elif not self.metric.curvature:
            q /= max(float(grad @ q), 1e-300) ** 0.5  # a first step of unit length in this metric
        for (step, change, rho), alpha in zip(self.pairs, reversed(alphas), strict=True):
            q += (alpha - rho * float(change @ q)) * step
        return -q


def minimize(
    function: Function,
    x: Vector,
    *,
    metric: Metric,
    max_iter: int = 100,
    tol: float = 1e-4,
    memory: int = 8,
    callback: Callable[[int, float], Any] | None = None,
) -> Minimum:
    """Minimise ``function`` (value and gradient) from ``x`` until no gradient entry exceeds ``tol``.

    Only sufficient decrease is asked of a step, never a curvature condition: latent losses are flat far out,
    and a step that must find curvature can be carried into another basin.
    """
    value, grad = function(x)
    store = _Memory(memory, metric)
    evaluations, iteration, converged = 1, 0, bool(np.abs(grad).max(initial=0.0) <= tol)
    while not converged and iteration < max_iter:
        direction = store.direction(grad)
        slope = float(direction @ grad)
        if not slope < 0:
            store.clear()
            direction, slope = -grad, -float(grad @ grad)
        length, accepted = 1.0, False
        for _ in range(20):
            trial = x + length * direction
            new_value, new_grad = function(trial)
            evaluations += 1
            accepted = new_value <= value + 1e-4 * length * slope
            if accepted:
                break
            length *= _shorter(value, slope, new_value, length)
        if not accepted:
            if store.pairs:  # stale curvature is the usual reason: try once more from the metric alone
                store.clear()
                continue
            converged = True
            break
        store.update(trial - x, new_grad - grad)
        flat = value - new_value <= 1e-13 * max(abs(value), 1e-300)
        x, value, grad = trial, new_value, new_grad
        iteration += 1
        converged = bool(np.abs(grad).max() <= tol) or flat
        if callback is not None:
            callback(iteration, value)
    return Minimum(x, value, iteration, evaluations, converged)


def _shorter(value: float, slope: float, new_value: float, length: float) -> float:
    """Factor of the next trial: the minimum of the parabola through what is known, kept in [0.1, 0.5]."""
    if not np.isfinite(new_value):
        return 0.1
    rise = new_value - value - length * slope
    best = -0.5 * length * slope / rise if rise > 0 else 0.5
    return float(min(max(best, 0.1), 0.5))
