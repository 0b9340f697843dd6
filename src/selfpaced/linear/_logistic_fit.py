"""A logistic regression from data to model, in the order of the steps: plain fit, folds, choice, refit, noise model."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..assessment import SUSPECT, look_by_share
from ..distributed.table import ContentSample, MemoryTable, Table
from ..fitting import Progress
from ..label_noise import (
    CLEAN,
    ChannelModels,
    NoiseModel,
    confident_error,
    share_to_check,
)
from ..pacing import Pacing
from ..regularizers import Regularizer
from ..selection import Candidate, Decision, Trial, path_of
from . import _folds
from ._candidates import Choice, best_of, choose, given_pace, pace_label, penalties, plain_trials
from ._fold_fits import FoldFits, FoldModel
from ._folds import N_FOLDS, FoldRows, connected, draw, fetch, lay_out
from ._lbfgs import Metric, Minimum, minimize
from ._loss import Latent, Objective, TableObjective, Vector, class_scores, predicted
from ._misfit import MisfitCheck, misfit_check


@dataclass(frozen=True, eq=False)
class LogisticSettings:
    """Parameters of the estimator that a fit needs."""

    regularizer: Regularizer
    pace: Any
    C: float
    choose_penalty: bool
    fit_intercept: bool
    tol: float
    max_iter: int
    seed: int
    shift: bool | str = "auto"


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A complete fit, with what an estimator reports about it."""

    plain: Vector  # parameters of the plain model under the penalty C
    params: Vector  # parameters of the model
    latent: Latent  # of the chosen candidate, as lam and C are
    lam: float
    C: float
    path: tuple[Candidate, ...]
    channel: NoiseModel  # fitted to held-out scores
    reason: str = ""  # why this candidate, if the held-out scores in the path do not say it
    accuracy: float = math.nan  # on held-out given labels; NaN if no rows were held out
    moved: float = 0.0  # share of the rows whose prediction the noise model changes
    look: float = math.inf  # probability of an error, if any labels are wrong, from which a row is worth a look
    check: MisfitCheck | None = None
    stability: Vector | None = None  # share of the fold fits by which each row is a suspect
    n_iter: int = 0
    converged: bool = True


class LogisticTrainer:
    """Fits one table of coded labels, wherever its rows are; ``best`` is the last complete fit.

    If rows are many, a sample by content decides, and the chosen model is fitted to all rows, in sums over blocks. The
    plain fit starts at ``warm``. Groups of rows of a table in memory are never split over folds.
    """

    def __init__(
        self,
        table: Table,
        n_classes: int,
        settings: LogisticSettings,
        progress: Progress,
        warm: Vector | None = None,
        groups: Any = None,
    ) -> None:
        self.n_classes, self.settings, self.progress, self.warm = n_classes, settings, progress, warm
        self.total = float(np.sum(table.mass))
        self.sample: ContentSample = draw(table, n_classes, settings.seed)
        self.sampled, self.numbers = self.sample.n_distinct > _folds.SAMPLED_ROWS, None
        if not self.sampled and not isinstance(table, MemoryTable):  # the distinct rows of a small table elsewhere
            sample, self.numbers = self.sample, self.sample.rows
            table = MemoryTable(fetch(table, sample.rows).X, sample.codes, sample.sample_weight)
            self.sample = replace(sample, rows=np.arange(table.n))
            groups = None if groups is None else groups[self.numbers]
        self.table, self.groups = table, groups
        if groups is not None and isinstance(table, MemoryTable):
            groups = connected(table.block.X, groups)
        repeat = settings.pace == "auto"
        self.rows: FoldRows | None = lay_out(table, self.sample, n_classes, repeat, groups, self._sampled_features)
        self.best: LogisticFit | None = None

    # ------------------------------------------------------------------------------------------- the steps

    def run(self) -> LogisticFit:
        """Plain fit, candidates in folds, choice, refit, noise model."""
        settings, pace = self.settings, self.settings.pace
        if self.rows is None:
            return self._without_folds()
        fits = FoldFits(self.rows, self.total, settings.fit_intercept, settings.C)
        found = None if self.sampled else self._plain(settings.C)
        if found is not None:
            self.best = self._plain_fit(found, settings.C)
        with self.progress.stage("plain fits in folds"):
            values = penalties(fits, settings.C, settings.choose_penalty and pace != "paper")
            plain = plain_trials(fits, values, None if found is None else found.x)
        if pace == "auto":
            with self.progress.stage("paced fits in folds"):
                choice = choose(fits, plain, settings.regularizer)
            found = self._plain(choice.trial.fit.C, found, choice)
            self.best = fit = self._plain_fit(found, choice.trial.fit.C)
            fit = self._refitted(fit, fits, choice)
        else:
            best = best_of(fits, plain)
            found = self._plain(best.fit.C, found)
            self.best = fit = self._plain_fit(found, best.fit.C)
            fit, choice = self._given(fit, fits, best)
        self.best = fit
        fits.free()
        self.best = self._assessed(fit, fits, choice)
        return self.best

    def _plain(self, C: float, found: Minimum | None = None, choice: Choice | None = None) -> Minimum:
        """Fit the plain model to all rows; roughly if a large table has already chosen another one."""
        if found is not None and self.settings.C == C:
            return found
        objective, tol = self.objective(C), self.settings.tol * self.unit
        start = self.warm
        if found is not None:
            start = found.x
        elif choice is not None:
            start = next(trial.fit.mean for trial in choice.trials if trial.plain and trial.fit.C == C)
            tol *= 1 if choice.trial.plain else 30
        start = np.zeros(objective.size) if start is None else start
        metric = self.in_sample(C).curvature(start if self.sampled else None)
        with self.progress.stage("plain fit"):
            return minimize(objective, start, metric=metric, max_iter=self.settings.max_iter, tol=tol)

    def _refitted(self, fit: LogisticFit, fits: FoldFits, choice: Choice) -> LogisticFit:
        """The chosen model of all rows: the mean of the fold fits or, of a large table, a fit of its own."""
        trials, model = choice.trials, choice.model
        path = path_of(trials, choice.decision, fits.rows.held_weight)
        fit = replace(fit, path=path)
        alone = choice.shares is None or (choice.shares > 0).sum() == 1
        if choice.trial.plain and (alone or self.sampled):
            return fit
        if self.sampled:
            return self.adopted(
                fit, model.latent, choice.trial.lam, self.full(model.latent, choice.trial.lam, fit.C, model.mean)
            )
        return replace(fit, params=model.mean, latent=model.latent, lam=choice.trial.lam)

    def _given(self, fit: LogisticFit, fits: FoldFits, plain: Trial) -> tuple[LogisticFit, Choice]:
        """The model of a given pace: a number, a `Pacing`, or the paper's schedule."""
        from ._paper import followed, paper_schedule

        settings, lam = self.settings, self.settings.pace
        if isinstance(lam, str):
            return paper_schedule(self, fit, fits, plain)
        if isinstance(lam, Pacing):
            return followed(self, fit, fits, plain)
        choice = given_pace(fits, plain, settings.regularizer, lam)
        path = path_of(choice.trials, choice.decision, fits.rows.held_weight)
        fit = replace(fit, path=path, reason=choice.decision.reason)
        if math.isinf(lam):
            return fit, choice
        start = choice.model.mean if self.warm is None else self.warm
        return self.adopted(fit, choice.model.latent, lam, self.full(choice.model.latent, lam, fit.C, start)), choice

    def _without_folds(self) -> LogisticFit:
        """The plain model, or that of a given pace, if there are too few rows to hold any out."""
        settings, lam = self.settings, self.settings.pace
        found = self._plain(settings.C)
        self.best = fit = self._plain_fit(found, settings.C)
        what = "distinct rows" if self.groups is None else "distinct rows or groups"
        fit = replace(fit, reason=f"there are too few {what} to hold any out")
        if not isinstance(lam, str | Pacing) and math.isfinite(lam):
            latent, began = Latent(settings.regularizer, lam), time.perf_counter()
            start = np.zeros(found.x.size) if self.warm is None else self.warm
            fit = self.adopted(fit, latent, lam, self.full(latent, lam, settings.C, start))
            rows = self.in_sample(settings.C)
            weight = latent.weight(rows.losses(fit.params), rows.codes)
            trial = Trial(lam, pace_label(latent, lam), None, weight, time.perf_counter() - began)
            trials = (Trial(np.inf, "plain", None, np.ones(rows.n), fit.path[0].cost), trial)
            fit = replace(fit, path=path_of(trials, Decision(1, ""), rows.sample_weight))
        self.best = fit
        return fit

    # -------------------------------------------------------------------------------------------- full fits

    def objective(self, C: float) -> Objective | TableObjective:
        """The plain objective of all rows."""
        if not self.sampled:
            return self.in_sample(C)
        ridge, intercept = 1.0 / (C * self.total), self.settings.fit_intercept
        return TableObjective(self.table, self.n_classes, self.total, ridge=ridge, fit_intercept=intercept)

    @cached_property
    def in_memory(self) -> Objective:
        """The rows of a table in memory."""
        assert isinstance(self.table, MemoryTable)
        X, codes, weight = self.table.block
        return self._rows(X, codes, weight)

    @cached_property
    def _sample_rows(self) -> Objective:
        """The rows that stand for all: those of the sample, or all rows."""
        if not self.sampled:
            return self.in_memory
        sample = self.sample
        return self._rows(self._sampled_features, sample.codes, sample.sample_weight)

    @cached_property
    def _sampled_features(self) -> Any:
        """The features of the sample; None if it holds all rows."""
        return fetch(self.table, self.sample.rows).X if self.sampled else None

    def _rows(self, X: Any, codes: Any, weight: Any) -> Objective:
        return Objective(X, codes, self.n_classes, sample_weight=weight, fit_intercept=self.settings.fit_intercept)

    @property
    def assessed(self) -> tuple[Objective, Any]:
        """The rows whose assessment is kept, and their numbers in the table (None: all rows, in order)."""
        if isinstance(self.table, MemoryTable):
            return self.in_memory, self.numbers
        return self._sample_rows, self.sample.rows

    def in_sample(self, C: float) -> Objective:
        """The plain objective of the rows that stand for all."""
        return self._sample_rows.penalised(1.0 / (C * self.total))

    @cached_property
    def unit(self) -> float:
        """Unit of gradient entries."""
        return self._sample_rows.unit

    def metric(self, C: float) -> Metric:
        """Geometry of paced fits."""
        return self.in_sample(C).standardized()

    def full(self, latent: Latent, lam: float, C: float, start: Vector) -> Minimum:
        """Fit all rows at one pace: near the minimum of the rows that stand for all, then at the minimum of all."""
        settings, tol, rows = self.settings, self.settings.tol * self.unit, self.in_sample(C).at(latent)
        steps = 30 if self.sampled else settings.max_iter
        with self.progress.stage(f"full fit, {pace_label(latent, lam)}"):
            near = minimize(rows, start, metric=self.metric(C), max_iter=steps, tol=3 * tol).x
            metric = rows.curvature(near)
            tol *= 1.0 if self.sampled else 0.1  # one more step near the minimum costs little
            return minimize(self.objective(C).at(latent), near, metric=metric, max_iter=settings.max_iter, tol=tol)

    def _plain_fit(self, found: Minimum, C: float) -> LogisticFit:
        trial = Trial(np.inf, "plain", None, None)
        return LogisticFit(
            plain=found.x,
            params=found.x,
            latent=Latent(),
            lam=math.inf,
            C=C,
            path=path_of((trial,), Decision(0, "")),
            channel=NoiseModel.identity(self.n_classes),
            n_iter=found.n_iter,
            converged=found.converged,
        )

    @staticmethod
    def adopted(fit: LogisticFit, latent: Latent, lam: float, found: Minimum) -> LogisticFit:
        """The fit with the parameters of a full fit at a pace."""
        converged = fit.converged and found.converged
        return replace(
            fit, params=found.x, latent=latent, lam=lam, n_iter=fit.n_iter + found.n_iter, converged=converged
        )

    # ------------------------------------------------------------------------------------------ noise model

    def _assessed(self, fit: LogisticFit, fits: FoldFits, choice: Choice) -> LogisticFit:
        """Fit the label-noise model to the held-out scores, check it for misfit, and shift decisions if it pays."""
        rows, model = fits.rows, choice.model
        if self.sampled or self.settings.pace != "auto":  # the model is not the mean of the fold fits
            model = choice.rescaled(fits.everything.scores(fit.params)[rows.held])
        scores, codes, weight = model.scores, rows.held_codes, rows.evidence_weight
        shift = self.settings.shift if self.settings.fit_intercept else False
        with self.progress.stage("noise model"):
            groups = None if rows.groups is None else rows.groups[rows.held]
            models = ChannelModels.of(scores, codes, weight, size=rows.evidence_size, groups=groups, shift=shift)
            if groups is not None:
                fits.rows = rows = replace(rows, design_effect=models.design_effect)
            channel = models.assessed()
            error = confident_error(scores, codes, rows.held_weight)[1]
            suspect = error >= CLEAN or bool(np.any(channel.noise_probability(scores, codes) > SUSPECT))
            check = misfit_check(fits, scores, channel) if suspect else None
            if check is not None:
                most = check.most(channel)
                channel = check.applied(models.assessed(most) if most < channel.noise_rate else channel)
            channel = models.withstanding(channel)
            channel = channel if check is None else check.credible(channel, scores, codes)
        full = self._sample_rows.scores(fit.params)
        changed = channel.decide(full) != predicted(full)
        moved = float(np.average(changed, weights=self._sample_rows.sample_weight))
        accuracy = float(np.average(channel.decide(scores) == codes, weights=rows.held_weight))
        share = share_to_check(channel.rate_if_any, error, accuracy)
        look = look_by_share(channel.probability_if_noisy(full, self._sample_rows.codes), share)
        return replace(
            fit, look=look, channel=channel, check=check, moved=moved, accuracy=accuracy,
            stability=self._stability(fit.params, model, channel),
        )  # fmt: skip

    def _stability(self, params: Vector, model: FoldModel, channel: NoiseModel) -> Vector | None:
        """Share of the fold fits by which each row of a table in memory is a suspect; 0 if it is unlikely to be one."""
        if not isinstance(self.table, MemoryTable) or self.rows is None or self.rows.n_validated < N_FOLDS:
            return None
        own = self.in_memory
        asked = np.flatnonzero(channel.noise_probability(own.scores(params), own.codes) > 0.5 * SUSPECT)
        stability, codes = np.zeros(own.n), own.codes[asked]
        if len(asked):
            scores = class_scores(own.X[asked], model.params.reshape(-1, own.n_features + 1))
            each = np.moveaxis(scores.reshape(len(model.params), own.n_outputs, -1), 1, 2).reshape(-1, own.n_outputs)
            wrong = channel.noise_probability(each, np.tile(codes, len(model.params)))
            stability[asked] = np.mean(wrong.reshape(-1, len(asked)) > SUSPECT, axis=0)
        return stability


__all__ = ["LogisticFit", "LogisticSettings", "LogisticTrainer"]
