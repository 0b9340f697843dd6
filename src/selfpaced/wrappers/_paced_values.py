"""The paced fit of a regressor, as in the paper: its own residuals give the weights of the next fit."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..fitting import Interruptible, warn_unpaced
from ..folds import Split
from ..pacing import Fixed, Geometric, Pacing, Stages
from ..regularizers import Regularizer, get
from ..robust import (
    EfficientPace,
    EfficientStop,
    ResidualRule,
    efficient_pace,
    shorth,
    tukey_loss,
    weighted_quantile,
)
from ..robust.rules import TUKEY
from ..selection import Decision, Trial, end_of_pace, gap
from ..solver import Solution, Stage, State, alternate, walk
from ._cases import Array
from ._default_values import MIN_ROWS, N_FOLDS, Round, assessed, capacity, predict, residual_floor, sigma_of
from ._routing import TooFewRows, rows_left
from ._wrapper import Found, Task

__all__ = ["fit_paced_values"]

# a choice, made on development data.
ROUNDS = 3  # rounds of cross-fitting after the plain one
IN_SAMPLE_ROUNDS = 12  # rounds of a model of little capacity, which settle and are cheap
GAIN_ERRORS = 2.0  # standard errors that the gain must be above
NO_OUTLIERS = 5.0  # times as much gain if the paced model shows no outlier
LEAST_GAIN = 0.01  # leaving out rows of large residuals alone lowers the loss of clean rows by a little less than this

SETTLED = 1e-3  # numerical safety: largest change of a weight below which another round would change nothing
HALF_QUADRATIC = 5  # cost: rounds at a fixed pace
TOLERANCE = 1e-4  # numerical safety: of the latent objective, if a pace has more than one round


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals by which rows are weighted, and how many rounds of weighted fits came before."""

    values: Array
    number: int = 0


@dataclass(frozen=True, eq=False)
class PacedValues:
    """Weighted fits of a regressor on fixed data: a `Problem` of the core whose model is its `Residuals`.

    Attributes
    ----------
    task : Task
        Rows and estimator.
    folds : sequence of (train, test)
        Of a cross-fit.
    cross : bool
        Whether residuals come from models that have not seen the row.
    unit : float
        The unit of squared residuals that the rule uses.
    """

    task: Task
    folds: Sequence[Split]
    cross: bool = True
    unit: float = 1.0

    def fit(self, weights: Array | None, previous: Residuals | None) -> Residuals:
        """Run one round; ``weights`` contain the sample weights already."""
        number = 1 if previous is None else previous.number + 1
        with self.task.progress.stage(f"round {number}"), rows_left():
            return Residuals(self.unseen(weights) if self.cross else self.seen(weights), number)

    def unseen(self, weights: Array | None) -> Array:
        """Return residuals of every row by a model that was not fitted on it."""
        return np.asarray(self.task.y - self.task.cross_fit(weights, self.folds, predict))

    def seen(self, weights: Array | None) -> Array:
        """Return residuals of the model of all rows."""
        return np.asarray(self.task.y - predict(self.task.fit(weights), self.task.X))

    def losses(self, model: Residuals) -> Array:
        """Return squared residuals in the rule's unit."""
        return np.asarray(np.square(model.values) / self.unit)

    def penalty(self, model: Residuals) -> float:  # noqa: ARG002
        """Return 0: the penalty of the wrapped model is not known."""
        return 0.0


def fit_paced_values(task: Task, rule: Regularizer, pace: Any, efficiency: float, cross_fit: Any) -> Found:
    """Fit a regressor along a pace.

    Parameters
    ----------
    task : Task
        Rows and estimator.
    rule : Regularizer
        With relative weights.
    pace : "auto", "paper", float or Pacing
    efficiency : float
        At which the pace stops.
    cross_fit : bool or "auto"

    Returns
    -------
    Found
    """
    with task.progress.stage("plain fit"):
        plain = task.fit(task.prior)
    seen = np.asarray(task.y - predict(plain, task.X))
    if task.n_units < MIN_ROWS:
        why = f"{task.n_units} rows are too few to find outliers"
        return _found(task, plain, plain, [_plain_trial(rule, seen)], Decision(0, why))
    problem, unseen = PacedValues(task, task.splits(N_FOLDS)), None
    try:
        if cross_fit is not False:
            with task.progress.stage("plain cross-fit"):
                unseen = problem.unseen(task.prior)
        cross, how = capacity(task, seen, seen if unseen is None else unseen, cross_fit)
        if not task.route.takes_weights:
            how += f"; rows are selected instead of weighted, because {task.route.reason}"
        first = _plain_trial(rule, unseen if cross and unseen is not None else seen)
        return _paced(replace(problem, cross=cross), plain, rule, pace, efficiency, first, unseen, how)
    except KeyboardInterrupt:  # the plain model is complete
        decision = Decision(0, "no candidate could be completed")
        return _found(task, plain, plain, [_plain_trial(rule, seen)], decision, interrupted=True)


def _plain_trial(rule: Regularizer, residuals: Array) -> Trial:
    ones = np.ones(residuals.size)
    return Trial(math.inf, "plain", None, ones, 0.0, Round(ones, residuals, ResidualRule(rule)))


def _paced(
    problem: PacedValues, plain: Any, rule: Regularizer, pace: Any, efficiency: float, first: Trial,
    unseen: Array | None, how: str,
) -> Found:  # fmt: skip
    """Follow the pace and choose the end of it, or the plain model."""
    task = problem.task
    try:
        if isinstance(pace, str) and pace == "auto":
            trials, ended = _automatic(problem, rule, efficiency, first)
        else:
            trials, ended = _along(problem, rule, pace, efficiency, first)
    except TooFewRows as error:
        return _found(task, plain, plain, [first], Decision(0, f"{error}; {how}"), problem.cross)
    trials, decision, interrupted = _decide(problem, trials, ended, pace, unseen)
    if not (isinstance(pace, str) or decision.index or interrupted):
        warn_unpaced(decision.reason)
    decision, model, began = replace(decision, reason=f"{decision.reason}; {how}"), plain, time.perf_counter()
    if decision.index:
        trial = trials[decision.index]
        with Interruptible() as guard, task.progress.stage("final fit"):
            model = task.fit(task.total(trial.fit.weights))
        if guard.interrupted:
            decision, interrupted = Decision(0, "the final fit was not completed"), True
        else:
            trials[decision.index] = replace(trial, cost=trial.cost + time.perf_counter() - began)
    return _found(task, model, plain, trials, decision, problem.cross, interrupted)


def _found(
    task: Task, model: Any, plain: Any, trials: Sequence[Trial], decision: Decision, cross: bool = False,
    interrupted: bool = False,
) -> Found:  # fmt: skip
    """Return the result, with an assessment of the values by the chosen residuals."""
    assessment = None
    if not interrupted:
        with Interruptible() as guard, task.progress.stage("assessment of values"):
            assessment = assessed(task, task.y - trials[decision.index].fit.residuals)
        interrupted = guard.interrupted
    return Found(model, plain, trials, decision, cross, interrupted, noise=assessment)


# ------------------------------------------------------------------------------------------ automatic rounds


@dataclass(frozen=True, eq=False)
class Reweighting:
    """A step: weights by the current residuals at this pace, and a fit with them.

    The last weights are those of the last residuals: as good as one more round, and one cross-fit cheaper. So there is
    no fit in the last round, nor if the weights have settled, and the path ends there.
    """

    problem: PacedValues
    rule: Regularizer
    pace: EfficientPace
    rounds: int

    def __call__(self, lam: float, state: State[Any]) -> State[Any]:
        """Run one round."""
        before, task = state.model, self.problem.task
        unit = 1.0
        if self.rule.power is None:  # a rule that is not free of scale may need residuals in another unit
            _, unit = self.pace.at(state.losses, self.rule, task.prior)
        used = ResidualRule(self.rule, unit)
        weights = used.weights(before.residuals, lam)
        settled = np.abs(weights - before.weights).max() < SETTLED
        if settled or before.number >= self.rounds:
            return State(replace(before, weights=weights, rule=used), state.losses, weights)
        residuals = self.problem.fit(task.total(weights), Residuals(before.residuals, before.number))
        made = Round(weights, residuals.values, used, residuals.number)
        return State(made, np.square(residuals.values), weights, inner=1)


def _no_fit(stages: Sequence[Stage], losses: Any, regularizer: Any) -> str | None:  # noqa: ARG001
    """Stop after a round of weights alone."""
    return None if stages[-1].inner else "the weights follow from the last residuals"


def _automatic(
    problem: PacedValues, rule: Regularizer, efficiency: float, first: Trial
) -> tuple[list[Trial], Solution[Any]]:
    """Start with the easy half of the rows, then weight at the pace that is efficient for the current residuals."""
    trials, task = [first], problem.task

    def start() -> State[Any]:
        # Outliers on one side shift the plain model, so its residuals are centred by the shortest half.
        size = np.abs(first.fit.residuals - shorth(first.fit.residuals, task.prior))
        cut = weighted_quantile(size, 0.5, task.prior)
        weights = (size <= cut).astype(float)
        residuals = problem.fit(task.total(weights), Residuals(first.fit.residuals))
        easy = Round(weights, residuals.values, ResidualRule(get("hard")), residuals.number)
        trials.append(Trial(cut**2, "easy rows", None, weights, 0.0, easy))
        return State(easy, np.square(residuals.values), weights)

    def keep(stage: Stage, state: Solution[Any]) -> None:
        label = f"{rule.name or 'custom'} round {len(trials) - 1}"
        trials.append(Trial(stage.lam, label, None, state.weights, stage.cost, state.model))

    pace = EfficientPace(efficiency, dof=1, floor=residual_floor(task), stop=_no_fit)
    step = Reweighting(problem, rule, pace, ROUNDS if problem.cross else IN_SAMPLE_ROUNDS)
    solution = walk(step, rule, pace, start, sample_weight=task.prior, callback=keep)
    return trials, solution


# ---------------------------------------------------------------------------------------------- given paces


def _along(
    problem: PacedValues, rule: Regularizer, pace: Any, efficiency: float, first: Trial
) -> tuple[list[Trial], Solution[Any]]:
    """Alternate along the paper's pace or a given one."""
    inner, pacing, task = 1, pace, problem.task
    if isinstance(pace, float):
        inner, pacing, unit = HALF_QUADRATIC, Fixed(pace), 1.0
    else:
        unit = efficient_pace(rule, sigma_of(task, first.fit.residuals), efficiency)[1]
        if isinstance(pace, str):
            pacing = _paper_pace(task, unit, efficiency)
    used, trials = ResidualRule(rule, unit), [first]

    def keep(stage: Stage, state: Solution[Residuals]) -> None:
        label = f"{rule.name or 'custom'} stage {len(trials)}"
        made = Round(state.weights, state.model.values, used, state.model.number)
        trials.append(Trial(stage.lam, label, None, state.weights, stage.cost, made))

    solution = alternate(
        replace(problem, unit=unit), rule, pacing, inner=inner, tolerance=TOLERANCE, sample_weight=task.prior,
        initial=Residuals(first.fit.residuals), callback=keep,
    )  # fmt: skip
    return trials, solution


def _paper_pace(task: Task, unit: float, efficiency: float) -> Pacing:
    floor = residual_floor(task)
    stop = EfficientStop(efficiency, unit, 1.0, task.prior, floor)
    return Geometric(floor=floor**2 / unit or 1e-300, stop=(stop, Stages(100)))


# -------------------------------------------------------------------------------------------------- choice


def _decide(
    problem: PacedValues, trials: list[Trial], solution: Solution[Any], pace: Any, unseen: Array | None
) -> tuple[list[Trial], Decision, bool]:
    """Return the candidates with their scores, which of them to choose, and whether it was interrupted."""
    task, last, status = problem.task, trials[-1], solution.status[:1].lower() + solution.status[1:].rstrip(".")
    values: list[Array | None] = [trial.fit.residuals for trial in trials]
    if len(trials) == 1 or not isinstance(pace, str):
        sigma = sigma_of(task, last.fit.residuals)
        return _scored(trials, values, sigma), end_of_pace(trials, status), solution.interrupted
    where, interrupted = "unseen rows" if problem.cross else "the rows themselves", solution.interrupted
    if not problem.cross and unseen is not None and not interrupted:
        with Interruptible() as guard:
            again = problem.unseen(task.total(last.fit.weights))
            # candidates in between are not compared on unseen rows, which costs a cross-fit each
            values, where = [unseen, *[None] * (len(trials) - 2), again], "unseen rows"
        interrupted = guard.interrupted
    paced = np.asarray(values[-1])
    sigma = sigma_of(task, paced)
    trials = _scored(trials, values, sigma)
    gain = gap(trials[-1], trials[0], task.prior)
    figures = f"its Tukey loss on {where} is lower by {gain}"
    gross = bool(np.any(np.abs(paced) > TUKEY * sigma))
    why = f"; {status}" if pace == "paper" else ""
    if gain.mean > max(GAIN_ERRORS * gain.error, LEAST_GAIN if gross else NO_OUTLIERS * LEAST_GAIN):
        return trials, Decision(len(trials) - 1, figures + why), interrupted
    return trials, Decision(0, f"for {last.label}, {figures}{why}"), interrupted


def _scored(trials: list[Trial], values: Sequence[Array | None], sigma: float) -> list[Trial]:
    """Return candidates with scores: minus the Tukey loss of residuals in the sigma of the last candidate's."""
    return [
        trial if residuals is None else replace(trial, scores=-tukey_loss(residuals, sigma))
        for trial, residuals in zip(trials, values, strict=True)
    ]
