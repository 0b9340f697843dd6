"""Algorithm 1 of the paper for logistic regression: alternate weights and weighted fits while the pace opens.

The paper starts with half of the samples, multiplies lam by 1.05 and stops "at convergence", which is the plain model
again. Here the stage to stop at is chosen by the accuracy of held-out noisy labels.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..label_noise import confident_error
from ..pacing import CalibrationError, Geometric, Pacing, Stages, lam_at
from ..regularizers import Regularizer, relative
from ..selection import Decision, Trial, behind, path_of
from ..solver import DeadEnd, Solution, Stage, State, alternate, walk
from ._blocks import TableObjective
from ._candidates import Choice, given_pace
from ._fold_fits import FoldFits, FoldModel
from ._lbfgs import Metric, Minimum, minimize
from ._loss import Latent, Objective, Vector, loss_of_scores, predicted

if TYPE_CHECKING:
    from ._logistic_fit import LogisticFit, LogisticTrainer

# a choice on the data sets of the paper: benchmarks/classification.py --part schedule.
# Half the samples of well separated classes have hardly any loss. A floor (a loss that has half the weight) keeps
# rounding from deciding the first stage. Rules with a unit of their own do not reach every floor.
FLOORS = tuple(np.log(2.0) * np.array([0.5, 1.0, 2.0, 4.0]))
FULL = 0.98  # mean weight at which the model is the plain one again
LITTLE, MUCH = 0.1, 0.4  # confident error: below, plain unless clearly beaten; above, the smallest pace in reach
LEAD = 0.5  # standard errors that the best stage must be ahead of the plain model unless there is much noise
LOST = 1e-3  # share of the weight of the best kept class below which a class is lost

LOOSE, STEPS = 1e-3, 20  # cost: gradient entry and iterations at which a weighted fold fit ends: the next stage goes on


@dataclass(frozen=True, eq=False)
class Iterate:
    """Parameters on their way, the iterations that led to them, and whether the last fit converged."""

    params: Vector
    n_iter: int = 0
    converged: bool = True


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """Weighted logistic regression as a problem of the solver."""

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
        return Iterate(found.x, start.n_iter + found.n_iter, found.converged)

    def losses(self, model: Iterate) -> Vector:
        """Log-loss of the given labels."""
        return self.objective.losses(model.params)

    def penalty(self, model: Iterate) -> float:
        """Half the squared norm of the coefficients, in the unit of summed losses."""
        coef = model.params.reshape(self.objective.n_outputs, -1)[:, :-1]
        return 0.5 * self.objective.ridge * self.objective.total * float(np.vdot(coef, coef))


def paper_schedule(
    trainer: LogisticTrainer, fit: LogisticFit, fits: FoldFits, plain: Trial
) -> tuple[LogisticFit, Choice]:
    """Walk the paper's schedule outside every fold, choose the stage, and walk as far on all rows."""
    rule, pacing = trainer.settings.regularizer, paper_pace(trainer.settings.regularizer)
    with trainer.progress.stage("the paper's schedule in folds"):
        walks = [_fold_walk(trainer, fits, plain, number, pacing) for number in range(fits.rows.n_validated)]
    worth = _worth(fits)
    trials = [replace(plain, scores=worth * (predicted(plain.fit.scores) == fits.rows.held_codes))]
    for index, stages in enumerate(zip(*walks, strict=False)):  # as far as every fold came
        lam, params = float(np.mean([stage.lam for stage in stages])), np.stack([stage.params for stage in stages])
        model = FoldModel(Latent(rule, lam), fit.C, params, fits.score(params))
        weight = model.latent.weight(loss_of_scores(model.scores, fits.rows.held_codes), fits.rows.held_codes)
        right = worth * (predicted(model.scores) == fits.rows.held_codes)
        cost = float(sum(stage.cost for stage in stages))
        trials.append(Trial(lam, f"{rule.name} stage {index}", right, weight, cost, model))
    rho, _ = confident_error(plain.fit.scores, fits.rows.held_codes, fits.rows.held_weight)
    decision = decide(behind(trials, fits.rows.held_weight), rho)
    choice = Choice(tuple(trials), decision)
    fit = replace(fit, path=path_of(trials, decision, fits.rows.held_weight), reason=decision.reason)
    if decision.index:
        with trainer.progress.stage(f"the paper's schedule, {decision.index} stages"):
            solution = _alternated(trainer, fit, replace(pacing, stop=Stages(decision.index)), inner=1)
        fit = _at_the_end_of(solution, fit, rule)
    return fit, choice


def followed(trainer: LogisticTrainer, fit: LogisticFit, fits: FoldFits, plain: Trial) -> tuple[LogisticFit, Choice]:
    """Follow a given `Pacing` to its end on all rows."""
    rule, rows = trainer.settings.regularizer, trainer.in_sample(fit.C)
    trials = [Trial(math.inf, "plain", None, np.ones(rows.n), fit.path[0].cost)]

    def record(stage: Stage, solution: Solution[Iterate]) -> None:
        trials.append(Trial(stage.lam, f"{rule.name} lam={stage.lam:.3g}", None, solution.weights, stage.cost))

    with trainer.progress.stage("given pace"):
        solution = _alternated(trainer, fit, trainer.settings.pace, inner=20, callback=record)
    if solution.stages:
        _warn_if_lost(rows, solution)
    decision = Decision(len(solution.stages), solution.status)
    path = path_of(trials, decision, rows.sample_weight)
    fit = replace(_at_the_end_of(solution, fit, rule), path=path, reason=solution.status)
    return fit, given_pace(fits, plain, rule, solution.lam) if solution.stages else Choice((plain,), Decision(0, ""))


def _warn_if_lost(rows: Objective, solution: Solution[Iterate]) -> None:
    mean = np.bincount(rows.codes, solution.weights) / np.maximum(np.bincount(rows.codes), 1)
    if mean.min() <= LOST * mean.max():
        warnings.warn(
            f"At lam = {solution.lam:.4g} a class is left without weight. Start at a larger lam or fraction.",
            ConvergenceWarning,
            stacklevel=6,
        )


def _alternated(
    trainer: LogisticTrainer, fit: LogisticFit, pacing: Pacing, *, inner: int, callback: Any = None
) -> Solution[Iterate]:
    """Algorithm 1 on all rows, from the plain model; of a large table, a sample sets the pace."""
    settings, metric, tol = trainer.settings, trainer.metric(fit.C), trainer.settings.tol * trainer.unit
    rule, objective = relative(settings.regularizer), trainer.objective(fit.C)
    if isinstance(objective, Objective):
        return alternate(
            LogisticProblem(objective, metric, tol, settings.max_iter),
            rule,
            pacing,
            initial=Iterate(fit.plain),
            sample_weight=objective.sample_weight,
            callback=callback,
            inner=inner,
        ).uninterrupted()
    rows = trainer.in_sample(fit.C)
    step = TableAlternation(objective, rows, metric, settings.regularizer, tol, settings.max_iter, inner)
    begin = State(Iterate(fit.plain), rows.losses(fit.plain))
    return walk(step, rule, pacing, begin, sample_weight=rows.sample_weight, callback=callback).uninterrupted()


def _at_the_end_of(solution: Solution[Iterate], fit: LogisticFit, rule: Regularizer) -> LogisticFit:
    if not solution.stages:
        return fit
    end = solution.model
    return replace(
        fit, params=end.params, latent=Latent(rule, solution.lam), lam=solution.lam, n_iter=fit.n_iter + end.n_iter,
        converged=fit.converged and end.converged,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class TableAlternation:
    """The paper's step on the rows of a table: weights are made in every pass, block by block, and not kept."""

    objective: TableObjective
    rows: Objective
    metric: Metric
    regularizer: Regularizer
    tol: float
    max_iter: int
    inner: int
    tolerance: float = 1e-8

    def __call__(self, lam: float, state: State[Iterate]) -> State[Iterate]:
        """Alternate at one pace, until the latent objective of all rows settles."""
        latent, model, rows, rise = Latent(self.regularizer, lam), state.model, self.rows, 0.0
        if not latent.weight(rows.losses(model.params), rows.codes).sum() > 0:
            raise DeadEnd(f"at lam = {lam:.4g} every weight is zero (start at a larger fraction or set a floor)")
        value = self.objective.latent_value(latent, model.params)
        for fits in range(1, self.inner + 1):  # noqa: B007
            held = self.objective.held(latent, model.params)
            found: Minimum = minimize(held, model.params, metric=self.metric, max_iter=self.max_iter, tol=self.tol)
            model = Iterate(found.x, model.n_iter + found.n_iter, found.converged)
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
    """One stage of the walk outside one fold."""

    lam: float
    params: Vector
    cost: float


def _fold_walk(
    trainer: LogisticTrainer, fits: FoldFits, plain: Trial, number: int, pacing: Geometric
) -> list[FoldStage]:
    """Every stage outside one fold."""
    objective = fits.everything.weighted(fits.rows.training_weight[number]).penalised(fits.ridge(plain.fit.C))
    objective.total = float(fits.rows.training_weight[number].sum())
    stages: list[FoldStage] = []

    def record(stage: Stage, solution: Solution[Iterate]) -> bool:
        stages.append(FoldStage(stage.lam, solution.model.params, stage.cost))
        return stage.mean_weight > FULL

    alternate(
        LogisticProblem(objective, trainer.metric(plain.fit.C), max(trainer.settings.tol, LOOSE) * trainer.unit, STEPS),
        relative(trainer.settings.regularizer),
        pacing,
        initial=Iterate(plain.fit.params[number]),
        sample_weight=objective.sample_weight,
        callback=record,
        inner=1,
    ).uninterrupted()
    return stages


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


def _worth(fits: FoldFits) -> Vector:
    """What a right prediction is worth: the mean of accuracy and balanced accuracy."""
    codes = fits.rows.held_codes
    share = np.bincount(codes, fits.rows.held_weight, minlength=fits.rows.n_classes)
    share = share / share.sum()
    return np.asarray(0.5 + 0.5 / (len(share) * np.maximum(share, 1e-12))[codes])


def decide(z: Vector, rho: float) -> Decision:
    """Choose a stage (0 is the plain model) from the standard errors behind the best one and the confident error."""
    noise = f"{rho:.1%} of the confident held-out predictions disagree with their labels"
    needed = 1.0 if rho < LITTLE else LEAD if rho < MUCH else -1.0
    if z[0] <= needed:
        if needed < 0:
            return Decision(0, f"it beats every stage by a standard error, although {noise}")
        return Decision(0, f"no stage beats it by {needed:g} standard errors, and {noise}")
    allowed = min(1.0, max(0.0, (rho - LITTLE) / (MUCH - LITTLE)))
    for j in range(1, len(z)):
        if z[j] == 0:
            return Decision(j, f"it has the best held-out score; {noise}")
        if z[j] <= allowed and (z[j] <= z[0] or rho >= MUCH):
            return Decision(j, f"it is the first stage within {allowed:.2f} standard errors of the best; {noise}")
    return Decision(0, noise)


__all__ = ["followed", "paper_schedule"]
