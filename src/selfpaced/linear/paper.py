"""The paper's protocol: alternate weights and weighted fits while lam grows by 5 %, from half the samples on.

The paper stops "at convergence", which is the plain model again.  Here the stage is chosen by held-out noisy
labels, with the rule of the automatic stop.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..label_noise import confident_error
from ..pacing import CalibrationError, Geometric, Stages, lam_at
from ..regularizers import relative
from ..solver import Solution, Stage, alternate
from .minimize import Metric, minimize
from .objective import Latent, Objective, Vector
from .selection import Selection, Selector, Trial, behind, decide

# Half the samples of well separated classes have hardly any loss: a floor (a loss that has half the weight) keeps
# the first stage from being decided by rounding.  Rules with a unit of their own do not reach every floor.
FLOORS = tuple(np.log(2.0) * np.array([0.5, 1.0, 2.0, 4.0]))
FULL = 0.98  # mean weight at which the model is the plain one again


class LogisticProblem:
    """Weighted logistic regression as the solver's problem; weights are relative to the rule's maximum."""

    def __init__(self, objective: Objective, metric: Metric, tol: float, max_iter: int) -> None:
        self.objective, self.metric, self.tol, self.max_iter = objective, metric, tol, max_iter
        self.weight, self.total = objective.sample_weight, objective.total
        self.n_iter = 0

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.objective.n

    def fit(self, weights: Any, previous: Vector | None) -> Vector:
        """Minimise the weighted log-loss from the previous parameters."""
        objective = self.objective
        objective.latent = Latent()
        # The mean stays per unit of the data's weight, so that the ridge keeps its meaning as weights fall.
        objective.sample_weight = self.weight if weights is None else np.asarray(weights, dtype=float)
        start = np.zeros(objective.size) if previous is None else previous
        found = minimize(objective, start, metric=self.metric, max_iter=self.max_iter, tol=self.tol)
        objective.sample_weight = self.weight
        self.n_iter += found.n_iter
        return found.x

    def losses(self, model: Vector) -> Vector:
        """Log-loss of the given labels."""
        return self.objective.losses(model)

    def penalty(self, model: Vector) -> float:
        """Half the squared norm of the coefficients, in the units of summed losses."""
        coef = model.reshape(self.objective.n_outputs, -1)[:, :-1]
        return 0.5 * self.objective.ridge * self.total * float(np.vdot(coef, coef))


def paper_path(selector: Selector, tol: float) -> tuple[Selection, int, Geometric]:
    """Held-out verdict on every stage; the number of stages to run on all the data (0: the plain model)."""
    plain = selector.plain_trial()
    pacing = _pacing(selector)
    folds = range(len(selector.objectives))
    runs = [_fold_path(selector, fold, plain.params[fold], pacing, tol) for fold in folds]
    count = min(len(run) for run in runs)
    trials = [plain]
    for index in range(count):
        stages = [run[index] for run in runs]
        lam = float(np.mean([stage[0] for stage in stages]))
        latent = Latent(selector.regularizer, lam)
        trial = Trial(latent, lam, f"{selector.regularizer.name} stage {index}")
        trial.params = [stage[1] for stage in stages]
        trial.scores = np.concatenate([stage[2] for stage in stages])
        trial.cost = float(sum(stage[3] for stage in stages))
        trials.append(trial)
    gaps = behind(*selector.judge(trials))
    rho, _ = confident_error(plain.scores, selector.codes, selector.sample_weight)
    chosen, reason = decide(gaps, rho)
    return selector.selection(trials, chosen, reason), chosen, pacing


def _pacing(selector: Selector) -> Geometric:
    """The paper's pace, with the smallest floor that the rule can start from."""
    rule = relative(selector.regularizer)
    for floor in FLOORS:
        pacing = Geometric(mu=1.05, fraction=0.5, floor=float(floor), stop=Stages(60))
        try:
            lam_at(rule, floor)
        except CalibrationError:
            continue
        break
    return pacing


def _fold_path(selector: Selector, fold: int, start: Vector, pacing: Geometric, tol: float) -> list[tuple[Any, ...]]:
    """lam, parameters, held-out scores and seconds of every stage outside one fold."""
    objective = selector.objectives[fold]
    problem = LogisticProblem(objective, selector.metric, max(tol, 1e-3), 20)
    stages: list[tuple[Any, ...]] = []
    clock = [time.perf_counter()]

    def record(stage: Stage, solution: Solution[Vector]) -> bool:
        now = time.perf_counter()
        stages.append((stage.lam, solution.model, selector.folds.scores(fold, solution.model), now - clock[0]))
        clock[0] = now
        return stage.mean_weight > FULL

    with selector.progress.stage(f"fold {fold}, the paper's path"):
        alternate(
            problem,
            relative(selector.regularizer),
            pacing,
            initial=start,
            sample_weight=objective.sample_weight,
            callback=record,
            inner=1,
        )
    return stages
