"""The self-paced path of k-means: one pace for all views and restarts, pruning, choice by latent objective."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fitting import Interruptible, check_rule
from ..pacing import Fixed, Geometric, Ladder, Pacing, Span
from ..parameters import check_pace
from ..regularizers import Hard, Logistic, Regularizer, Welsch
from ..selection import Trial
from ..solver import Callback, Solution, Stage, State, walk
from .embedding import SPECTRAL_SAMPLES, spectral_centers
from .kernels import Cost, Sweep, Views, filled, median_loss, plus_plus, sweep, usual_gap, workers

Floats = NDArray[Any]

# Measured by benchmarks/clustering.py, section ablation.
WARM = 3  # steps before the first weights: losses of raw seeds say nothing
START_WIDTH = 4.0  # half weight of the robust start, in median losses
PRUNE = {1: 2, 3: 1 << 30}  # cost: stage -> divisor of the restarts that go on after it

STAGE_SAMPLES = 10_000  # cost: of at least twice as many samples, the stages before the last see only so many

# theory: not free of scale; what the median starting loss is scaled to before it meets the rule. At 4 the logistic
# weight falls from near 1 to near 0 within the spread of the losses; the logarithmic rule lives in (0, 1).
_TYPICAL = {"logistic": 4.0, "channel": 4.0, "logarithmic": 0.1}

# Measured by benchmarks/clustering.py, sections rules and paper.
# Last half-weight loss as a multiple of the median starting loss, and the number of stages.
_END = {"hard": (3.2, 16), "tls": (3.2, 16), "logistic": (3.2, 16), "channel": (3.2, 16)}
_DEFAULT_END = (2.2, 8)
UNEVEN_VIEWS = 1.8  # times as far for views of different spread


def resolve(regularizer: Any) -> Regularizer | None:
    """The rule of this name or instance; ``"mspl"`` is the logistic rule, None is plain k-means."""
    if regularizer is None:
        return None
    if isinstance(regularizer, str) and regularizer.lower() == "mspl":
        return Logistic()
    return check_rule(regularizer)


def pace_of(rule: Regularizer | None, pace: Any, uneven: bool = False) -> tuple[Pacing, float | None]:
    """The pacing that the parameter ``pace`` asks for, and the median loss that it is meant for (None: as it is).

    "auto" runs from one median loss to the rule's own end; "paper" starts at half the samples and grows lam by 1.05.
    ``uneven`` views were not brought to one variance. The median loss is then that of the middle view, and the
    pace has to run further before the wider views count.
    """
    pace = check_pace(pace)
    if rule is None:
        return Ladder((1.0,)), None
    if isinstance(pace, float):
        return Fixed(pace), None
    typical = _TYPICAL.get(rule.name, 1.0)
    if isinstance(pace, Pacing):
        return pace, typical
    if pace == "paper":
        return Geometric(), typical
    end, stages = _END.get(rule.name, _DEFAULT_END)
    if uneven:
        end, stages = UNEVEN_VIEWS * end, 2 * stages
    return Span(1.0, end, stages), typical


@dataclass(frozen=True)
class Plan:
    """How the path is to run."""

    rule: Regularizer | None  # the elementwise rule; None is plain k-means
    pacing: Pacing  # the pace of that rule
    # what the median starting loss is scaled to for rules that are not free of scale; None keeps its unit
    typical: float | None
    restarts: int  # restarts, and those that outlive the first stages
    keep: int
    max_iter: int  # most sweeps at the last pace
    tol: float  # relative change of the objective at which it has converged
    neighbors: int = 0  # of the graphs whose spectral clusters are tried at the last pace; 0 for none
    robust: bool = True  # false starts from plain k-means++ and plain steps, for data that cannot hold gross outliers

    def unit(self, median: float) -> float:
        """What distances are divided by before they meet the rule, given their median at the start."""
        if self.rule is None or self.rule.power is not None or self.typical is None:
            return 1.0
        return median / self.typical

    def paced(self, median: float) -> Pacing:
        """The pacing; a span is measured by this median, which knows of sample weights and missing views."""
        if self.rule is None or not isinstance(self.pacing, Span):
            return self.pacing
        return Ladder(self.pacing.lams(median / self.unit(median), self.rule), self.pacing.stop)


@dataclass(frozen=True, eq=False)
class Clustering:
    """The chosen restart and the way to it."""

    labels: NDArray[np.int32]
    centers: list[Floats]
    losses: Floats  # (V, n)
    weights: Floats  # (V, n), relative
    cost: Cost
    objective: float
    trials: tuple[Trial, ...]
    sweeps: int
    converged: bool
    interrupted: bool


@dataclass(frozen=True, eq=False)
class Restarts:
    """The batched restarts between two sweeps."""

    views: Views  # the samples that take part
    norms: Floats
    centers: list[Floats]  # of every restart, one array per view
    last: Any = None  # what the last sweep found; None before the first
    sweeps: int = 0  # how many sweeps and stages there were
    stage: int = 0
    changed: bool = True  # whether the last sweep changed a label; whether the last stage came to rest
    converged: bool = False

    @property
    def best(self) -> int:
        """The restart of least objective."""
        return int(self.last.objective.argmin())

    def swept(self, cost: Cost, pool: Executor | None) -> Restarts:
        """One sweep further."""
        new = sweep(self.views, self.norms, self.centers, cost, pool=pool)
        changed = self.last is None or not np.array_equal(new.labels, self.last.labels)
        if new.empty.any():
            refill(self.views, new, cost)
            changed = True
        return replace(self, last=new, centers=new.centers, sweeps=self.sweeps + 1, changed=changed)

    def settled(self, cost: Cost, most: int, tol: float, pool: Executor | None) -> Restarts:
        """Up to ``most`` sweeps at one cost; converged if labels or objectives stopped moving before that."""
        now, before = self, None
        for _ in range(most):
            now = now.swept(cost, pool)
            objective = now.last.objective
            if before is not None and (not now.changed or np.all(before - objective <= tol * before)):
                return replace(now, converged=True)
            before = objective
        return replace(now, converged=False)

    def kept(self, count: int) -> Restarts:
        """All but the ``count`` restarts of least objective dropped."""
        last = self.last
        if len(last.objective) <= count:
            return self
        best = np.sort(np.argsort(last.objective, kind="stable")[:count])
        centers = [c[best] for c in self.centers]
        fewer = Sweep(last.labels[best], last.losses[:, best], last.objective[best], centers, last.empty[best])
        return replace(self, centers=centers, last=fewer)

    def median_loss(self) -> float:
        """Median loss of the best restart: the unit of the pace, the same for all views and restarts."""
        return median_loss(self.views, self.last.losses[:, self.best])


def refill(views: Views, new: Sweep, cost: Cost) -> None:
    """Move the centre of an empty cluster to the sample that costs most and is not yet saturated."""
    price = cost.weight(new.losses) * new.losses
    if views.present is not None:
        price = price * views.present[:, None]
    price = price.sum(axis=0)
    if views.weight is not None:
        price = price * (views.weight > 0)
    for restart, cluster in zip(*np.nonzero(new.empty), strict=True):
        sample = int(price[restart].argmax())
        price[restart, sample] = -1
        for center, block in zip(new.centers, views.blocks, strict=True):
            row = filled(block)[sample]
            center[restart, cluster] = row.toarray().ravel() if hasattr(row, "toarray") else row


@dataclass(frozen=True, eq=False)
class Settling:
    """The step of k-means: a sweep of all restarts, pruning, and at the last pace sweeps until they settle."""

    plan: Plan
    pacing: Pacing
    views: Views
    unit: float
    pool: Executor | None

    def cost(self, lam: float) -> Cost:
        """The latent loss at a pace."""
        return Cost() if self.plan.rule is None else Cost(self.plan.rule, float(lam), self.unit)

    def state(self, restarts: Restarts, cost: Cost) -> State[Restarts]:
        """Losses of the best restart set the pace; views that a sample lacks have none."""
        losses = restarts.last.losses[:, restarts.best]
        weights = cost.weight(losses)
        if restarts.views.present is not None:
            losses, weights = losses[restarts.views.present], weights[restarts.views.present]
        objective = float(restarts.last.objective[restarts.best])
        return State(restarts, losses.ravel() / self.unit, weights.ravel(), 1, objective)

    def __call__(self, lam: float, state: State[Restarts]) -> State[Restarts]:
        """One stage."""
        cost, now, plan = self.cost(lam), state.model, self.plan
        stage = now.stage + 1
        final = self.pacing.advance(stage, lam, state.losses, plan.rule) is None
        if final:
            now = self.widened(now, cost)
        now = now.settled(cost, plan.max_iter if final else 1, plan.tol, self.pool)
        if stage in PRUNE:
            now = now.kept(max(plan.keep, -(-plan.restarts // PRUNE[stage])))
        return self.state(replace(now, stage=stage), cost)

    def widened(self, now: Restarts, cost: Cost) -> Restarts:
        """From a subset to all samples; after a look at them only the best restart goes on."""
        if now.views is self.views:
            return now
        few = now.kept(self.plan.keep)
        wide = replace(few, views=self.views, norms=self.views.norms(), last=None)
        return wide.swept(cost, self.pool).kept(1)

    def finished(self, now: Restarts, cost: Cost) -> Restarts:
        """The end of a path that did not know which stage was its last."""
        if now.converged and now.views is self.views:
            return now
        return self.widened(now, cost).settled(cost, self.plan.max_iter, self.plan.tol, self.pool)

    def with_starts(self, now: Restarts, others: list[Floats], cost: Cost) -> Restarts:
        """The restarts and further starts, all settled at the last pace."""
        centers = [np.concatenate(pair) for pair in zip(now.centers, others, strict=True)]
        return replace(now, centers=centers, last=None).settled(cost, self.plan.max_iter, self.plan.tol, self.pool)


def fit_paced(
    views: Views, clusters: int, plan: Plan, rng: np.random.Generator, callback: Callback | None = None
) -> Clustering:
    """Cluster the views: seeds, a few steps, the paced stages with pruning, and at the last pace until it settles."""
    part = _subset(views, clusters, rng)
    with workers() as pool:
        start = _start(part, clusters, plan, rng, pool)
        median = start.median_loss()
        pacing = plan.paced(median)
        step = Settling(plan, pacing, views, plan.unit(median), pool)
        trials: list[Trial] = []

        def listen(stage: Stage, solution: Solution[Restarts]) -> Any:
            trials.append(_trial(stage, solution, plan))
            return callback(stage, solution) if callback is not None else None

        # Without a rule nothing is weighed: any rule may keep the record.
        rule = Hard() if plan.rule is None else plan.rule
        solution = walk(step, rule, pacing, step.state(start, Cost()), callback=listen)
        cost = step.cost(solution.lam) if solution.stages else Cost()
        now = solution.model if solution.interrupted else step.finished(solution.model, cost)
        enough = 5 * clusters <= min(views.n, SPECTRAL_SAMPLES)
        interrupted = solution.interrupted
        if plan.neighbors and enough and clusters > 1 and plan.restarts > 1 and not interrupted:
            with Interruptible() as guard:
                now = step.with_starts(now.kept(1), spectral_centers(views, clusters, plan.neighbors, rng), cost)
            interrupted = guard.interrupted
        return _finish(now, views, cost, trials, interrupted)


def _trial(stage: Stage, solution: Solution[Restarts], plan: Plan) -> Trial:
    """A stage as a candidate: its score is minus the latent objective of the best restart."""
    label = "plain" if plan.rule is None else f"{plan.rule.name} stage {solution.model.stage}"
    lam = math.inf if plan.rule is None else stage.lam
    return Trial(lam, label, np.array([-stage.objective]), solution.weights, stage.cost)


def _subset(views: Views, clusters: int, rng: np.random.Generator) -> Views:
    """A random part of many samples: enough to find the basin in, before all of them settle the centres."""
    most = max(STAGE_SAMPLES, 200 * clusters)
    if views.n <= 2 * most:
        return views
    return views.take(np.sort(rng.choice(views.n, most, replace=False)))


def _start(views: Views, clusters: int, plan: Plan, rng: np.random.Generator, pool: Executor | None = None) -> Restarts:
    """Seeds and the first steps of all restarts, the same for every rule.

    Under the plain squared distance gross outliers would attract seeds and centres, and the pace would then be
    measured on losses they have spoilt: so the start, too, runs under a latent loss, a wide one.
    """
    norms = views.norms()
    cost = _wide(usual_gap(views, norms, clusters, rng)) if plan.robust else Cost()
    seeds = plus_plus(views, norms, clusters, plan.restarts, cost, rng, pool)
    now = Restarts(views, norms, seeds)
    for _ in range(WARM):
        now = now.swept(cost, pool)
        if plan.robust:
            cost = _wide(now.median_loss())
    return now


def _wide(median: float) -> Cost:
    """Welsch with half weight at a multiple of the median loss."""
    return Cost(Welsch(), math.sqrt(START_WIDTH * max(median, 1e-30) / math.log(2)))


def _finish(now: Restarts, views: Views, cost: Cost, trials: list[Trial], interrupted: bool) -> Clustering:
    """The restart of least latent objective, with labels that agree with its final centres."""
    now = now.kept(1)
    norms = now.norms if now.views is views else views.norms()
    end = sweep(views, norms, now.centers, cost, update=False)
    losses = end.losses[:, 0]
    weights = cost.weight(losses)
    if views.present is not None:
        weights = weights * views.present
    return Clustering(
        labels=end.labels[0],
        centers=[center[0] for center in now.centers],
        losses=losses,
        weights=weights,
        cost=cost,
        objective=float(end.objective[0]),
        trials=tuple(trials) or (Trial(math.inf, "plain start"),),
        sweeps=now.sweeps,
        converged=now.converged,
        interrupted=interrupted,
    )
