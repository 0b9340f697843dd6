"""The paper's protocol: alternate weights and weighted fits while lam grows by 5 %, from half the samples on.

The paper stops "at convergence", which is the plain model again.  Here the stage is chosen by held-out noisy
labels, with the rule of the automatic stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..label_noise import confident_error
from ..pacing import CalibrationError, Geometric, Stages, lam_at
from ..regularizers import Regularizer, relative
from ..selection import behind
from ..solver import DeadEnd, Solution, Stage, State, alternate
from .blocks import TableObjective
from .descent import FoldFits, FoldModel
from .minimize import Metric, minimize
from .objective import Latent, Objective, Vector, loss_of_scores
from .selection import FoldVerdict, decide, verdict

# Measured by benchmarks/constants.py paper.
# Half the samples of well separated classes have hardly any loss: a floor (a loss that has half the weight) keeps
# the first stage from being decided by rounding.  Rules with a unit of their own do not reach every floor.
FLOORS = tuple(np.log(2.0) * np.array([0.5, 1.0, 2.0, 4.0]))
FULL = 0.98  # mean weight at which the model is the plain one again

LOOSE, FEW = 1e-3, 20  # cost: gradient entry and iterations at which a weighted fold fit ends: the next stage goes on


@dataclass(frozen=True, eq=False)
class Iterate:
    """Parameters on their way, and how many iterations have led to them."""

    params: Vector
    n_iter: int = 0


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """Weighted logistic regression as the solver's problem; weights are relative to the rule's maximum."""

    objective: Objective
    metric: Metric
    tol: float
    max_iter: int

    def fit(self, weights: Any, previous: Iterate | None) -> Iterate:
        """Minimise the weighted log-loss from the previous parameters."""
        objective = self.objective
        if weights is not None:
            objective = objective.weighted(np.asarray(weights, dtype=float))
        start = Iterate(np.zeros(objective.size)) if previous is None else previous
        found = minimize(objective, start.params, metric=self.metric, max_iter=self.max_iter, tol=self.tol)
        return Iterate(found.x, start.n_iter + found.n_iter)

    def losses(self, model: Iterate) -> Vector:
        """Log-loss of the given labels."""
        return self.objective.losses(model.params)

    def penalty(self, model: Iterate) -> float:
        """Half the squared norm of the coefficients, in the units of summed losses."""
        coef = model.params.reshape(self.objective.n_outputs, -1)[:, :-1]
        return 0.5 * self.objective.ridge * self.objective.total * float(np.vdot(coef, coef))


@dataclass(frozen=True, eq=False)
class HeldAlternation:
    """The paper's step on the rows of a table: weights are made anew in every pass, block by block, and never kept."""

    objective: TableObjective
    evidence: Objective
    metric: Metric
    regularizer: Regularizer
    tol: float
    max_iter: int
    inner: int
    tolerance: float = 1e-8

    def __call__(self, lam: float, state: State[Iterate]) -> State[Iterate]:
        """Alternate at one pace, until the latent objective of all rows settles."""
        latent, model, rows, rise = Latent(self.regularizer, lam), state.model, self.evidence, 0.0
        if not latent.weight(rows.losses(model.params), rows.codes).sum() > 0:
            raise DeadEnd(f"at lam = {lam:.4g} every weight is zero (start at a larger fraction or set a floor)")
        value = self.objective.latent_value(latent, model.params)
        for fits in range(1, self.inner + 1):  # noqa: B007
            held = self.objective.held(latent, model.params)
            found = minimize(held, model.params, metric=self.metric, max_iter=self.max_iter, tol=self.tol)
            model = Iterate(found.x, model.n_iter + found.n_iter)
            before, value = value, self.objective.latent_value(latent, model.params)
            scale = max(abs(before), abs(value), 1e-300)
            rise = max(rise, (value - before) / scale)
            if not before - value > self.tolerance * scale:
                break
        losses = rows.losses(model.params)
        weights = latent.weight(losses, rows.codes)
        return State(model, losses, weights, fits, value, rise if rise > 1e-10 else 0.0)


@dataclass(frozen=True, eq=False)
class FoldStage:
    """One stage of the path outside one fold."""

    lam: float
    params: Vector
    scores: Vector
    cost: float


def paper_path(fits: FoldFits, regularizer: Regularizer, tol: float) -> tuple[FoldVerdict, Geometric]:
    """Held-out verdict on every stage, and the pace; the chosen index is the number of stages to run on all rows."""
    plain, pacing = fits.plain, paper_pace(regularizer)
    runs = [_fold_path(fits, fold, regularizer, pacing, tol) for fold in range(len(fits.objectives))]
    trials = [plain]
    for index, stages in enumerate(zip(*runs, strict=False)):  # as far as every fold came
        lam = float(np.mean([stage.lam for stage in stages]))
        scores = np.concatenate([stage.scores for stage in stages])
        model = FoldModel(Latent(regularizer, lam), fits.penalty.C, [stage.params for stage in stages], scores[None])
        weight = model.latent.weight(loss_of_scores(scores, fits.codes), fits.codes)
        cost = float(sum(stage.cost for stage in stages))
        trials.append(fits.trial(lam, f"{regularizer.name} stage {index}", model, weight, cost))
    rho, _ = confident_error(plain.fit.scores, fits.codes, fits.sample_weight)
    return verdict(fits, tuple(trials), decide(behind(trials, fits.sample_weight), rho)), pacing


def paper_pace(regularizer: Regularizer) -> Geometric:
    """The paper's pace, with the smallest floor that the rule can start from."""
    rule = relative(regularizer)
    for floor in FLOORS:
        pacing = Geometric(mu=1.05, fraction=0.5, floor=float(floor), stop=Stages(60))
        try:
            lam_at(rule, floor)
        except CalibrationError:
            continue
        break
    return pacing


def _fold_path(fits: FoldFits, fold: int, regularizer: Regularizer, pacing: Geometric, tol: float) -> list[FoldStage]:
    """Every stage outside one fold."""
    objective = fits.objectives[fold]
    stages: list[FoldStage] = []

    def record(stage: Stage, solution: Solution[Iterate]) -> bool:
        params = solution.model.params
        stages.append(FoldStage(stage.lam, params, fits.layout.scores(fold, params), stage.cost))
        return stage.mean_weight > FULL

    with fits.progress.stage(f"fold {fold}, the paper's path"):
        alternate(
            LogisticProblem(objective, fits.metric, max(tol, LOOSE), FEW),
            relative(regularizer),
            pacing,
            initial=Iterate(fits.plain.fit.params[fold]),
            sample_weight=objective.sample_weight,
            callback=record,
            inner=1,
        ).uninterrupted()
    return stages
