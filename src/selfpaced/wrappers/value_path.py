"""The path of a self-paced regressor: rounds of weighted fits, and whether the last is better than the plain model."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..fitting import Interruptible, interrupted_sentence, warn_unpaced
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
from ..selection import Decision, Trial, end_of_pace, gap, sentence
from ..solver import Solution, Stage, State, alternate, walk
from ..value_noise import ValueAssessment
from .crossfit import decide_cross_fit
from .routing import TooFewRows
from .value_verdict import Compared, assessed
from .values import Array, RegressorProblem, Residuals, Round

__all__ = ["Round", "ValueFit", "run"]

# Measured by benchmarks/constants.py regressor.
ROUNDS = 3  # rounds of cross-fitting after the plain one
IN_SAMPLE = 12  # rounds of a model of little capacity, which settle and are cheap
ERRORS = 2.0  # standard errors that the gain must be above
NO_OUTLIERS = 5.0  # times as much gain where the paced model shows no outlier
LEAST_GAP = 0.05  # of the absolute residuals on unseen and on seen rows, in sigma: the model memorises
LEAST_GAIN = 0.01  # leaving out rows of large residuals alone lowers the loss of clean rows by a little less than this

SETTLED = 1e-3  # numerical safety: largest change of a weight below which another round would change nothing
HALF_QUADRATIC = 5  # cost: rounds at a fixed pace
TOLERANCE = 1e-4  # numerical safety: of the latent objective, where a pace has more than one round


@dataclass(frozen=True, eq=False)
class ValueFit:
    """What a fit has found.

    Attributes
    ----------
    model : regressor or None
        None where the plain model was kept.
    trials : sequence of Trial
        The plain model and every candidate; ``fit`` of a trial is its `Round`.
    decision : Decision
        Which of them was kept.
    cross : bool
        Whether residuals are those of models which had not seen the row.
    interrupted : bool
        Whether it ended early.
    verdict : ValueAssessment or None
        About the values; None where it was not reached.
    """

    model: Any
    trials: Sequence[Trial]
    decision: Decision
    cross: bool = False
    interrupted: bool = False
    verdict: ValueAssessment | None = None

    @property
    def kept(self) -> Trial:
        """The candidate that was kept."""
        return self.trials[self.decision.index]

    @property
    def termination(self) -> str:
        """What was kept and why."""
        if self.interrupted:
            return interrupted_sentence("the plain model" if self.model is None else self.kept.label)
        return sentence(self.trials, self.decision)


def run(
    problem: RegressorProblem, rule: Regularizer, pace: Any, efficiency: float, cross_fit: Any, seen: Residuals
) -> ValueFit:
    """Everything after the plain fit: residuals of unseen rows, rounds, choice, the final fit.

    Parameters
    ----------
    problem : RegressorProblem
        The data and the wrapped estimator.
    rule : Regularizer
        With relative weights.
    pace : "auto", "paper", float or Pacing
    efficiency : float
        At which the pace stops.
    cross_fit : bool or "auto"
    seen : Residuals
        Of the plain model on its own rows.

    Returns
    -------
    ValueFit
    """
    plain = _plain(rule, seen)
    if not problem.folds:
        return ValueFit(None, [plain], Decision(0, f"{problem.n_units} rows are too few to assess outliers by"))
    try:
        unseen = None
        if cross_fit is not False:
            with problem.progress.stage("plain cross-fit"):
                unseen = problem.unseen(problem.prior)
        cross, how = _decide_cross_fit(problem, cross_fit, seen, unseen)
        if not problem.route.takes_weights:
            how += f"; rows are selected instead of weighted, because {problem.route.reason}"
        first = _plain(rule, unseen if cross and unseen is not None else seen)
        return _paced(replace(problem, cross=cross), rule, pace, efficiency, first, unseen, how)
    except KeyboardInterrupt:  # the plain model is complete
        return ValueFit(None, [plain], Decision(0, "no candidate could be completed"), interrupted=True)


def _plain(rule: Regularizer, residuals: Residuals) -> Trial:
    ones = np.ones(residuals.values.size)
    return Trial(math.inf, "plain", None, ones, residuals.cost, Round(ones, residuals, ResidualRule(rule)))


def _decide_cross_fit(
    problem: RegressorProblem, setting: Any, seen: Residuals, unseen: Residuals | None
) -> tuple[bool, str]:
    """Cross-fitted or in-sample residuals."""
    if unseen is None:
        return decide_cross_fit(False, np.empty(0), np.empty(0), unit="")
    sigma = problem.sigma(unseen.values)
    fitted, fresh = (np.minimum(np.abs(residuals.values) / sigma, 5.0) for residuals in (seen, unseen))
    unit = "absolute residual (in sigma)"
    return decide_cross_fit(setting, fitted, fresh, problem.prior, unit=unit, least=LEAST_GAP)


def _paced(
    problem: RegressorProblem, rule: Regularizer, pace: Any, efficiency: float, first: Trial,
    unseen: Residuals | None, how: str,
) -> ValueFit:  # fmt: skip
    """Walk along the pace and keep the end of it, or the plain model."""
    try:
        try:
            if pace == "auto":
                trials, ended = _automatic(problem, rule, efficiency, first)
            else:
                trials, ended = _along(problem, rule, pace, efficiency, first)
        except TooFewRows as error:
            return _kept(problem, [first], Decision(0, f"{error}; {how}"), False)
        trials, decision, interrupted, compared = _decide(problem, trials, ended, pace, unseen)
        if not (isinstance(pace, str) or decision.index or interrupted):
            warn_unpaced(decision.reason)
        verdict = None
        if not interrupted:
            with Interruptible() as guard, problem.progress.stage("verdict"):
                trials, decision, verdict = assessed(problem, trials, decision, compared)
            interrupted = guard.interrupted
        decision = replace(decision, reason=f"{decision.reason}; {how}")
        return replace(_kept(problem, trials, decision, interrupted), verdict=verdict)
    except KeyboardInterrupt:
        return ValueFit(None, [first], Decision(0, "no candidate could be completed"), problem.cross, interrupted=True)


# ------------------------------------------------------------------------------------------ automatic rounds


@dataclass(frozen=True, eq=False)
class Reweighting:
    """A step: weights by the current residuals at this pace, and a fit with them.

    The last weights are those of the last residuals: as good as a round more, and one cross-fit cheaper. So there is
    no fit where the rounds are used up, nor where the weights have settled, and there the path ends.
    """

    problem: RegressorProblem
    rule: Regularizer
    pace: EfficientPace
    rounds: int

    def __call__(self, lam: float, state: State[Round]) -> State[Round]:
        """One round."""
        before = state.model
        unit = 1.0
        if self.rule.power is None:  # a rule that is not free of scale may need residuals in another unit
            _, unit = self.pace.at(state.losses, self.rule, self.problem.prior)
        used = ResidualRule(self.rule, unit)
        weights = used.weights(before.residuals.values, lam)
        settled = np.abs(weights - before.weights).max() < SETTLED
        if settled or before.residuals.number >= self.rounds:
            return State(Round(weights, before.residuals, used), state.losses, weights)
        residuals = self.problem.fit(self.problem.total(weights), before.residuals)
        return State(Round(weights, residuals, used), np.square(residuals.values), weights, inner=1)


def _no_fit(stages: Sequence[Stage], losses: Any, regularizer: Any) -> str | None:  # noqa: ARG001
    """Stop after a round of weights alone."""
    return None if stages[-1].inner else "the weights follow from the last residuals"


def easy_rows(problem: RegressorProblem, values: Array) -> tuple[Array, float]:
    """The half of the rows to begin with, and their cut: around where most residuals are.

    Outliers on one side shift the plain model as a whole, so its residuals are centred by the shortest half. They also
    make them noisy: a scale may reach over the gap to the outliers here, which half of the rows never do.
    """
    size = np.abs(values - shorth(values, problem.prior))
    cut = weighted_quantile(size, 0.5, problem.prior)
    return (size <= cut).astype(float), cut


def _automatic(
    problem: RegressorProblem, rule: Regularizer, efficiency: float, first: Trial
) -> tuple[list[Trial], Solution[Any]]:
    """Easy rows, then rounds of weights at the pace that is efficient for the current residuals."""
    trials = [first]

    def start() -> State[Round]:
        weights, cut = easy_rows(problem, first.fit.residuals.values)
        residuals = problem.fit(problem.total(weights), first.fit.residuals)
        easy = Round(weights, residuals, ResidualRule(get("hard")))
        trials.append(Trial(cut**2, "easy rows", None, weights, residuals.cost, easy))
        return State(easy, np.square(residuals.values), weights)

    def keep(stage: Stage, state: Solution[Round]) -> None:
        label = f"{rule.name or 'custom'} round {len(trials) - 1}"
        trials.append(Trial(stage.lam, label, None, state.weights, stage.cost, state.model))

    pace = EfficientPace(efficiency, dof=1, floor=problem.floor, stop=_no_fit)
    step = Reweighting(problem, rule, pace, ROUNDS if problem.cross else IN_SAMPLE)
    solution = walk(step, rule, pace, start, sample_weight=problem.prior, callback=keep)
    return trials, solution


# ---------------------------------------------------------------------------------------------- given paces


def _along(
    problem: RegressorProblem, rule: Regularizer, pace: Any, efficiency: float, first: Trial
) -> tuple[list[Trial], Solution[Any]]:
    """Alternate along the paper's pace or a given one."""
    inner, pacing = 1, pace
    if isinstance(pace, float):
        inner, pacing, unit = HALF_QUADRATIC, Fixed(pace), 1.0
    else:
        unit = efficient_pace(rule, problem.sigma(first.fit.residuals.values), efficiency)[1]
        if pace == "paper":
            pacing = _paper_pace(problem, unit, efficiency)
    used, trials = ResidualRule(rule, unit), [first]

    def keep(stage: Stage, state: Solution[Residuals]) -> None:
        label = f"{rule.name or 'custom'} stage {len(trials)}"
        made = Round(state.weights, state.model, used)
        trials.append(Trial(stage.lam, label, None, state.weights, stage.cost, made))

    solution = alternate(
        replace(problem, unit=unit), rule, pacing, inner=inner, tolerance=TOLERANCE, sample_weight=problem.prior,
        initial=first.fit.residuals, callback=keep,
    )  # fmt: skip
    return trials, solution


def _paper_pace(problem: RegressorProblem, unit: float, efficiency: float) -> Pacing:
    stop = EfficientStop(efficiency, unit, 1.0, problem.prior, problem.floor)
    return Geometric(floor=problem.floor**2 / unit or 1e-300, stop=(stop, Stages(100)))


# -------------------------------------------------------------------------------------------------- choice


def _decide(
    problem: RegressorProblem, trials: list[Trial], solution: Solution[Any], pace: Any, unseen: Residuals | None
) -> tuple[list[Trial], Decision, bool, Compared | None]:
    """The candidates with their scores, which of them to keep, whether it was interrupted, and what was compared."""
    last, status = trials[-1], solution.status[:1].lower() + solution.status[1:].rstrip(".")
    values: list[Array | None] = [trial.fit.residuals.values for trial in trials]
    if len(trials) == 1 or not isinstance(pace, str):
        sigma = problem.sigma(last.fit.residuals.values)
        return _scored(trials, values, sigma), end_of_pace(trials, status), solution.interrupted, None
    where, interrupted = "unseen rows" if problem.cross else "the rows themselves", solution.interrupted
    if not problem.cross and unseen is not None and not interrupted:
        with Interruptible() as guard:
            again = problem.unseen(problem.total(last.fit.weights)).values
            # candidates in between are not compared on unseen rows, which costs a cross-fit each
            values, where = [unseen.values, *[None] * (len(trials) - 2), again], "unseen rows"
        interrupted = guard.interrupted
    paced = np.asarray(values[-1])
    compared = Compared(np.asarray(values[0]), paced, where == "unseen rows")
    sigma = problem.sigma(paced)
    trials = _scored(trials, values, sigma)
    gain = gap(trials[-1], trials[0], problem.prior)
    figures = f"its Tukey loss on {where} is lower by {gain}"
    gross = bool(np.any(np.abs(paced) > TUKEY * sigma))
    why = f"; {status}" if pace == "paper" else ""
    if gain.mean > max(ERRORS * gain.error, LEAST_GAIN if gross else NO_OUTLIERS * LEAST_GAIN):
        return trials, Decision(len(trials) - 1, figures + why), interrupted, compared
    return trials, Decision(0, f"for {last.label}, {figures}{why}"), interrupted, compared


def _scored(trials: list[Trial], values: Sequence[Array | None], sigma: float) -> list[Trial]:
    """Candidates with their scores: minus the Tukey loss of residuals in the sigma of the last candidate's."""
    return [
        trial if residuals is None else replace(trial, scores=-tukey_loss(residuals, sigma))
        for trial, residuals in zip(trials, values, strict=True)
    ]


def _kept(problem: RegressorProblem, trials: list[Trial], decision: Decision, interrupted: bool) -> ValueFit:
    """Fit the chosen weights on all rows."""
    if not decision.index:
        return ValueFit(None, trials, decision, problem.cross, interrupted)
    trial, model, began = trials[decision.index], None, time.perf_counter()
    with Interruptible(), problem.progress.stage("final fit"):
        model = problem.full_fit(problem.total(trial.fit.weights))
    if model is None:
        return ValueFit(None, trials, Decision(0, "the final fit was not completed"), problem.cross, True)
    trials = list(trials)
    trials[decision.index] = replace(trial, cost=trial.cost + time.perf_counter() - began)
    return ValueFit(model, trials, decision, problem.cross, interrupted)
