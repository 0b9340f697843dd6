"""The self-paced alternation: one pace for all views and restarts, pruning, choice by latent objective."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pacing import lam_at
from ..path import Candidate, weight_histogram
from ..regularizers import Regularizer, Welsch
from .cost import Cost
from .kernels import Sweep, Views, median_loss, sweep, workers
from .seeding import nearest_gaps, plus_plus

Floats = NDArray[Any]
logger = logging.getLogger(__name__)

WARM = 3  # steps before the first weights: losses of raw seeds say nothing
INNER = 2  # sweeps per stage
WIDE = 4.0  # half weight of the robust start, in median losses
LEAST_CHANCE = 0.01  # of the most isolated sample to become a seed, relative to the least isolated
WELSCH = Welsch()
# Stage -> divisor of the restarts that go on after it.
PRUNE = {1: 2, 3: 1 << 30}
SUBSET = 10_000  # of at least twice as many samples, the stages before the last see only so many


@dataclass(frozen=True)
class Pace:
    """How the pace runs: half-weight losses from ``start`` to ``end`` in units of the median starting loss.

    Attributes
    ----------
    rule : Regularizer
        The elementwise rule.
    typical : float
        What the median starting loss is scaled to for rules that are not free of scale.
    start, end : float
        First and last half-weight loss, as multiples of the median starting loss.
    stages : int
        Number of stages, geometric from start to end.
    """

    rule: Regularizer | None
    typical: float = 1.0
    start: float = 1.0
    end: float = 2.0
    stages: int = 8

    def costs(self, median: float) -> list[Cost]:
        """The cost of every stage, given the median starting loss."""
        if self.rule is None:
            return [Cost()]
        halves = np.geomspace(self.start, self.end, self.stages)
        if self.rule.power is not None:  # the pace itself carries the scale
            first = lam_at(self.rule, 1.0)
            return [Cost(self.rule, float(first * (half * median) ** (1 / self.rule.power))) for half in halves]
        unit = median / self.typical
        return [Cost(self.rule, float(lam_at(self.rule, half * self.typical)), unit) for half in halves]


@dataclass
class Fit:
    """The chosen restart and the way to it."""

    labels: NDArray[np.int32]
    centers: list[Floats]
    losses: Floats  # (V, n)
    weights: Floats  # (V, n), relative
    cost: Cost
    objective: float
    path: tuple[Candidate, ...]
    sweeps: int
    converged: bool


class Runner:
    """State of the batched restarts: centres, the last sweep, the number of sweeps."""

    def __init__(self, views: Views, norms: Floats, centers: list[Floats], pool: Executor | None = None) -> None:
        self.views, self.norms, self.centers, self.pool = views, norms, centers, pool
        self.last: Sweep | None = None
        self.sweeps = 0

    @property
    def seen(self) -> Sweep:
        """The last sweep."""
        if self.last is None:
            raise RuntimeError("no sweep has been made yet")
        return self.last

    def step(self, cost: Cost) -> bool:
        """One sweep; whether any label changed."""
        new = sweep(self.views, self.norms, self.centers, cost, pool=self.pool)
        changed = self.last is None or not np.array_equal(new.labels, self.last.labels)
        self.last, self.centers = new, new.centers
        self.sweeps += 1
        if new.empty.any():
            self._refill(new, cost)
            changed = True
        return changed

    def settle(self, cost: Cost, most: int, tol: float) -> bool:
        """Up to ``most`` sweeps at one cost; whether labels or objectives stopped moving before that."""
        before = None
        for _ in range(most):
            changed = self.step(cost)
            objective = self.seen.objective
            if before is not None and (not changed or np.all(before - objective <= tol * before)):
                return True
            before = objective
        return False

    def median_loss(self) -> float:
        """Median loss of the best restart: the unit of the pace, the same for all views and restarts."""
        best = int(self.seen.objective.argmin())
        return median_loss(self.views, self.seen.losses[:, best])

    def keep(self, count: int) -> None:
        """Drop all but the ``count`` restarts of least objective."""
        last = self.seen
        if len(last.objective) <= count:
            return
        best = np.sort(np.argsort(last.objective, kind="stable")[:count])
        self.centers = [c[best] for c in self.centers]
        self.last = Sweep(last.labels[best], last.losses[:, best], last.objective[best], self.centers, last.empty[best])

    def _refill(self, new: Sweep, cost: Cost) -> None:
        """Move the centre of an empty cluster to the sample that costs most and is not yet saturated."""
        price = cost.weight(new.losses) * new.losses
        if self.views.present is not None:
            price = price * self.views.present[:, None]
        price = price.sum(axis=0)
        if self.views.weight is not None:
            price = price * (self.views.weight > 0)
        for restart, cluster in zip(*np.nonzero(new.empty), strict=True):
            sample = int(price[restart].argmax())
            price[restart, sample] = -1
            for center, block in zip(self.centers, self.views.blocks, strict=True):
                row = block[sample]
                center[restart, cluster] = row.toarray().ravel() if hasattr(row, "toarray") else row


def fit_paced(
    views: Views,
    clusters: int,
    pace: Pace,
    *,
    restarts: int,
    keep: int,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    robust: bool = True,
    callback: Callable[[Candidate], None] | None = None,
) -> Fit:
    """Cluster the views: seeds, a few steps, the paced stages with pruning, a polish at the last pace.

    ``robust=False`` starts from plain k-means++ and plain steps, for data that cannot hold gross outliers.
    """
    part = _subset(views, clusters, rng)
    path: list[Candidate] = []
    with workers() as pool:
        runner = _start(part, clusters, restarts, rng, robust, pool)
        costs = pace.costs(runner.median_loss())
        for stage, cost in enumerate(costs):
            began = time.perf_counter()
            final = stage == len(costs) - 1
            if final and part is not views:
                runner = _widen(runner, views, cost, keep, tol)
            converged = runner.settle(cost, max_iter if final else INNER, tol)
            if stage + 1 in PRUNE:
                runner.keep(max(keep, -(-restarts // PRUNE[stage + 1])))
            path.append(_candidate(runner, cost, stage, time.perf_counter() - began, final))
            logger.info("stage %d: %s", stage, path[-1])
            if callback is not None:
                callback(path[-1])
        return _finish(runner, costs[-1], tuple(path), converged)


def _widen(runner: Runner, views: Views, cost: Cost, keep: int, tol: float) -> Runner:
    """From a subset to all samples; after a look at them only the best restart goes on."""
    runner.keep(keep)
    wide = Runner(views, views.norms(), runner.centers, runner.pool)
    wide.sweeps = runner.sweeps
    wide.settle(cost, INNER, tol)
    wide.keep(1)
    return wide


def _subset(views: Views, clusters: int, rng: np.random.Generator) -> Views:
    """A random part of many samples: enough to find the basin in, before all of them settle the centres."""
    most = max(SUBSET, 200 * clusters)
    if views.n <= 2 * most:
        return views
    return views.take(np.sort(rng.choice(views.n, most, replace=False)))


def _start(
    views: Views,
    clusters: int,
    restarts: int,
    rng: np.random.Generator,
    robust: bool,
    pool: Executor | None = None,
) -> Runner:
    """Seeds and the first steps of all restarts, the same for every rule.

    Under the plain squared distance gross outliers would attract seeds and centres, and the pace would then be
    measured on losses they have spoilt: so the start, too, runs under a latent loss, a wide one.
    """
    norms = views.norms()
    cost, chance = Cost(), None
    if robust:
        gap = nearest_gaps(views, norms, clusters, rng)
        cost = _wide(median_loss(views, gap))
        chance = np.maximum(cost.weight(gap).mean(axis=0), LEAST_CHANCE)
    seeds = plus_plus(views, norms, clusters, restarts, cost, rng, chance, pool)
    runner = Runner(views, norms, seeds, pool)
    for _ in range(WARM):
        runner.step(cost)
        if robust:
            cost = _wide(runner.median_loss())
    return runner


def _wide(median: float) -> Cost:
    """Welsch with half weight at a multiple of the median loss."""
    return Cost(WELSCH, math.sqrt(WIDE * max(median, 1e-30) / math.log(2)))


def _candidate(runner: Runner, cost: Cost, stage: int, seconds: float, final: bool) -> Candidate:
    best = int(runner.seen.objective.argmin())
    weight = cost.weight(runner.seen.losses[:, best])
    weight = weight.ravel() if runner.views.present is None else weight[runner.views.present]
    return Candidate(
        lam=cost.lam,
        score=-float(runner.seen.objective[best]),
        mean_weight=float(weight.mean()),
        cost=seconds,
        chosen=final,
        histogram=weight_histogram(weight),
        label="plain" if cost.rule is None else f"{cost.rule.name} stage {stage + 1}",
    )


def _finish(runner: Runner, cost: Cost, path: tuple[Candidate, ...], converged: bool) -> Fit:
    """The restart of least latent objective, with labels that agree with its final centres."""
    runner.keep(1)
    end = sweep(runner.views, runner.norms, runner.centers, cost, update=False)
    losses = end.losses[:, 0]
    weights = cost.weight(losses)
    if runner.views.present is not None:
        weights = weights * runner.views.present
    centers = [center[0] for center in runner.centers]
    return Fit(end.labels[0], centers, losses, weights, cost, float(end.objective[0]), path, runner.sweeps, converged)
