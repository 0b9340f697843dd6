"""The verdict about the values of a wrapped regressor, and which candidate it lets stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..regularizers import get
from ..robust import ResidualRule, tukey_loss
from ..selection import Decision, Trial
from ..value_noise import EVEN_ODDS, WITHOUT, ValueAssessment, assess_values, by_model, nearest, numeric_features
from .values import Array, RegressorProblem, Residuals, Round

__all__ = ["Compared", "assessed", "own_word"]

AGREED = (
    0.01  # a choice: of the weight of trusted rows that a paced model may take away and still agree with the verdict
)


@dataclass(frozen=True, eq=False)
class Compared:
    """Residuals of the plain model and of the last candidate on the same rows, unseen ones where there are such."""

    plain: Array
    paced: Array
    unseen: bool


def assessed(
    problem: RegressorProblem, trials: list[Trial], decision: Decision, compared: Compared | None
) -> tuple[list[Trial], Decision, ValueAssessment]:
    """Which values are wrong, and the candidate that stands in view of it.

    Parameters
    ----------
    problem : RegressorProblem
        The data and the wrapped estimator.
    trials : list of Trial
        The plain model and every candidate.
    decision : Decision
        Which of them was to be kept.
    compared : Compared or None
        None where the choice is not ours.

    Returns
    -------
    trials, decision, verdict
    """
    residuals = trials[decision.index].fit.residuals.values
    verdict = assess_values(
        problem.y,
        (problem.y - residuals,),
        problem.sigma(residuals),
        features=numeric_features(problem.X),
        sample_weight=problem.prior,
        groups=problem.groups,
        random_state=problem.seed,
    )
    before = len(trials)
    if compared is not None and verdict.asked:
        trials, decision = _standing(problem, trials, decision, verdict, compared)
    reason = "; ".join(part for part in (decision.reason, verdict.sentence) if part)
    # the candidate without the gross rows comes last
    return trials, replace(decision, reason=reason), replace(verdict, applied=decision.index >= before)


def own_word(problem: RegressorProblem, residuals: Array) -> ValueAssessment:
    """The verdict of the model alone, where nobody else could be asked."""
    return by_model(problem.y, problem.y - residuals, problem.sigma(residuals), problem.prior)


def _standing(
    problem: RegressorProblem, trials: list[Trial], decision: Decision, verdict: ValueAssessment, compared: Compared
) -> tuple[list[Trial], Decision]:
    """The paced candidate or one without the gross rows, whichever is nearer to trusted rows; else the plain model."""
    trusted, label = verdict.trusted, trials[-1].label
    rivals: list[tuple[int, Array]] = [] if decision.index == 0 else [(decision.index, compared.paced)]
    if verdict.found and not trusted.all() and not _agrees(trials, decision, trusted):
        without, residuals = _without(problem, trusted, compared)
        trials = [*trials, without]
        rivals.append((len(trials) - 1, residuals))
    number = nearest([residuals for _, residuals in rivals], compared.plain, verdict, problem.prior)
    if number is None:
        if decision.index == 0:
            return trials, decision
        return trials, Decision(0, f"{label} is not better on the rows that are not grossly wrong")
    index = rivals[number][0]
    if index == decision.index:
        return trials, decision
    share = float(np.average(~trusted, weights=problem.prior))
    return trials, Decision(index, f"{share:.1%} of the rows are grossly wrong, and it is better on the others")


def _agrees(trials: Sequence[Trial], decision: Decision, trusted: np.ndarray) -> bool:
    """Whether the paced candidate has left the trusted rows their weight."""
    weights = trials[decision.index].fit.weights
    return decision.index > 0 and float(np.mean(weights[trusted])) > 1 - AGREED


def _without(problem: RegressorProblem, trusted: np.ndarray, compared: Compared) -> tuple[Trial, Array]:
    """The candidate without the gross rows, and its residuals as the others are compared."""
    weights, unseen = trusted.astype(float), compared.unseen
    fitted = problem.unseen(problem.total(weights)) if unseen else problem.seen(problem.total(weights))
    own: Residuals = fitted if problem.cross or not unseen else problem.seen(problem.total(weights))
    made = Round(weights, own, ResidualRule(get("hard")))
    scores = -tukey_loss(fitted.values, problem.sigma(compared.paced))
    return Trial(EVEN_ODDS, WITHOUT, scores, weights, fitted.cost, made), fitted.values
