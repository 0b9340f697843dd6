"""Algorithm 1 of the paper for logistic regression: alternate weights and weighted fits while the pace opens.

The paper starts with half of the samples, multiplies lam by 1.05 and stops "at convergence", which is the plain model
again. Here the stage to stop at is chosen by the accuracy of held-out noisy labels. For large tables a sample walks the
schedule, and the last pace is fitted to all rows.
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
from ..solver import Solution, Stage, alternate
from ._candidates import Choice, given_pace, held_weights
from ._fold_fits import FoldFits, FoldModel
from ._lbfgs import Metric, Minimum, minimize
from ._loss import Latent, Objective, Vector, predicted

if TYPE_CHECKING:
    from ._logistic_fit import LogisticFit, LogisticTrainer

# a choice on the data sets of the paper: benchmarks/classification.py --part schedule.
FULL = 0.98  # mean weight at which the model is the plain one again
LITTLE_ERROR, MUCH_ERROR = (
    0.1,
    0.4,
)  # confident error: below, plain unless clearly beaten; above, the smallest pace in reach
LEAD = 0.5  # standard errors that the best stage must be ahead of the plain model unless there is much noise


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """Weighted logistic regression as a problem of the solver."""

    objective: Objective
    metric: Metric
    tol: float
    max_iter: int

    def fit(self, weights: Any, previous: Minimum | None) -> Minimum:
        """Minimise the weighted log-loss from the previous parameters."""
        objective = self.objective if weights is None else self.objective.weighted(np.asarray(weights, dtype=float))
        start, before = (np.zeros(objective.size), 0) if previous is None else (previous.x, previous.n_iter)
        found = minimize(objective, start, metric=self.metric, max_iter=self.max_iter, tol=self.tol)
        return replace(found, n_iter=before + found.n_iter)

    def losses(self, model: Minimum) -> Vector:
        """Log-loss of the given labels."""
        return self.objective.losses(model.x)

    def penalty(self, model: Minimum) -> float:
        """Half the squared norm of the coefficients, in the unit of summed losses."""
        coef = model.x.reshape(self.objective.n_outputs, -1)[:, :-1]
        return 0.5 * self.objective.ridge * self.objective.total * float(np.vdot(coef, coef))


def paper_schedule(
    trainer: LogisticTrainer, fit: LogisticFit, fits: FoldFits, plain: Trial
) -> tuple[LogisticFit, Choice]:
    """Walk the paper's schedule outside every fold, choose the stage, and walk as far on all rows."""
    rule, rows, pacing = trainer.settings.regularizer, fits.rows, paper_pace(trainer.settings.regularizer)
    with trainer.progress.stage("the paper's schedule in folds"):
        walks = [_fold_walk(trainer, fits, plain, number, pacing) for number in range(rows.n_validated)]
    worth = _worth(fits)
    trials = [replace(plain, scores=worth * (predicted(plain.fit.scores) == rows.held_codes))]
    for index, stages in enumerate(zip(*walks, strict=False)):  # as far as every fold came
        lams, params, costs = zip(*stages, strict=True)
        latent = Latent(rule, float(np.mean(lams)))
        model = FoldModel(latent, fit.C, np.stack(params), fits.score(np.stack(params)))
        right = worth * (predicted(model.scores) == rows.held_codes)
        trials.append(
            Trial(latent.lam, f"{rule.name} stage {index}", right, held_weights(fits, model), float(sum(costs)), model)
        )
    rho, _ = confident_error(plain.fit.scores, rows.held_codes, rows.held_weight)
    decision = decide(behind(trials, rows.held_weight), rho)
    fit = replace(fit, path=path_of(trials, decision, rows.held_weight), reason=decision.reason)
    if decision.index:
        with trainer.progress.stage(f"the paper's schedule, {decision.index} stages"):
            solution = _alternated(trainer, fit, replace(pacing, stop=Stages(decision.index)), inner=1)
        fit = _at_the_end_of(solution, fit, trainer)
    return fit, Choice(tuple(trials), decision)


def followed(trainer: LogisticTrainer, fit: LogisticFit, fits: FoldFits, plain: Trial) -> tuple[LogisticFit, Choice]:
    """Follow a given `Pacing` to its end on all rows."""
    rule, rows = trainer.settings.regularizer, trainer.in_sample(fit.C)
    trials = [Trial(math.inf, "plain", None, np.ones(rows.n), fit.path[0].cost)]

    def record(stage: Stage, solution: Solution[Minimum]) -> None:
        trials.append(Trial(stage.lam, f"{rule.name} lam={stage.lam:.3g}", None, solution.weights, stage.cost))

    with trainer.progress.stage("given pace"):
        solution = _alternated(trainer, fit, trainer.settings.pace, inner=20, callback=record)
    decision = Decision(len(solution.stages), f"the given pace ended there ({solution.reason})")
    fit = replace(fit, path=path_of(trials, decision, rows.sample_weight), reason=decision.reason)
    if not solution.stages:
        return fit, Choice((plain,), Decision(0, ""))
    _warn_if_lost(rows, solution)
    return _at_the_end_of(solution, fit, trainer), given_pace(fits, plain, rule, solution.lam)


def _warn_if_lost(rows: Objective, solution: Solution[Minimum]) -> None:
    """Warn if a class has next to no weight."""
    mean = np.bincount(rows.codes, solution.weights) / np.maximum(np.bincount(rows.codes), 1)
    if mean.min() <= 1e-3 * mean.max():
        warnings.warn(
            f"At lam = {solution.lam:.4g} a class is left without weight. Start at a larger lam or fraction.",
            ConvergenceWarning,
            stacklevel=6,
        )


def _alternated(
    trainer: LogisticTrainer, fit: LogisticFit, pacing: Pacing, *, inner: int, callback: Any = None
) -> Solution[Minimum]:
    """Algorithm 1 from the plain model, on all rows or on the sample of a large table."""
    settings, rows = trainer.settings, trainer.in_sample(fit.C)
    problem = LogisticProblem(rows, trainer.metric(fit.C), settings.tol * trainer.unit, settings.max_iter)
    return alternate(
        problem,
        relative(settings.regularizer),
        pacing,
        initial=Minimum(fit.plain, 0, True),
        sample_weight=rows.sample_weight,
        callback=callback,
        inner=inner,
    ).uninterrupted()


def _at_the_end_of(solution: Solution[Minimum], fit: LogisticFit, trainer: LogisticTrainer) -> LogisticFit:
    if not solution.stages:
        return fit
    latent = Latent(trainer.settings.regularizer, solution.lam)
    fit = trainer.adopted(fit, latent, solution.lam, solution.model)
    if not trainer.sampled:
        return fit
    return trainer.adopted(fit, latent, solution.lam, trainer.full(latent, solution.lam, fit.C, solution.model.x))


def _fold_walk(
    trainer: LogisticTrainer, fits: FoldFits, plain: Trial, number: int, pacing: Geometric
) -> list[tuple[float, Vector, float]]:
    """Pace, parameters and cost of every stage outside one fold."""
    settings, training = trainer.settings, fits.rows.training_weight[number]
    objective = fits.everything.weighted(training).penalised(fits.ridge(plain.fit.C))
    objective.total = float(training.sum())
    stages: list[tuple[float, Vector, float]] = []

    def record(stage: Stage, solution: Solution[Minimum]) -> bool:
        stages.append((stage.lam, solution.model.x, stage.cost))
        return stage.mean_weight > FULL

    # The next stage goes on where this one ended, so that few steps at a loose tolerance will do.
    problem = LogisticProblem(objective, trainer.metric(plain.fit.C), max(settings.tol, 1e-3) * trainer.unit, 20)
    alternate(
        problem,
        relative(settings.regularizer),
        pacing,
        initial=Minimum(plain.fit.params[number], 0, True),
        sample_weight=objective.sample_weight,
        callback=record,
        inner=1,
    ).uninterrupted()
    return stages


def paper_pace(regularizer: Regularizer) -> Geometric:
    """The paper's pace, with the smallest floor that the rule can start from.

    Half the samples of well separated classes have hardly any loss. A floor (a loss that has half the weight) keeps
    rounding from deciding the first stage. Rules with a unit of their own do not reach every floor.
    """
    rule = relative(regularizer)
    for factor in (0.5, 1.0, 2.0, 4.0):
        pacing = Geometric(mu=1.05, fraction=0.5, floor=factor * math.log(2.0), stop=Stages(60))
        try:
            lam_at(rule, pacing.floor)
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
    noise = f"{100 * rho:.1f} % of the confident held-out predictions disagree with their labels"
    needed = 1.0 if rho < LITTLE_ERROR else LEAD if rho < MUCH_ERROR else -1.0
    if z[0] <= needed:
        if needed < 0:
            return Decision(0, f"it beats every stage by a standard error, although {noise}")
        margin = "a standard error" if needed == 1.0 else f"{needed:g} standard errors"
        return Decision(0, f"no stage beats it by {margin}, and {noise}")
    allowed = min(1.0, max(0.0, (rho - LITTLE_ERROR) / (MUCH_ERROR - LITTLE_ERROR)))
    for j in range(1, len(z)):
        if z[j] == 0:
            return Decision(j, f"it has the best held-out score; {noise}")
        if z[j] <= allowed and (z[j] <= z[0] or rho >= MUCH_ERROR):
            return Decision(j, f"it is the first stage within {allowed:.2f} standard errors of the best; {noise}")
    return Decision(0, noise)


__all__ = ["followed", "paper_schedule"]
