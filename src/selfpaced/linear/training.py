"""From data and a pace to fitted parameters: the plain fit, the stop, the paced fit, the calibration."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..fitting import Interruptible, Progress, interrupted_sentence
from ..label_noise import NoiseChannel, fit_channel
from ..pacing import Fixed, Pacing, Stages
from ..path import Candidate
from ..regularizers import Regularizer, relative
from ..selection import Decision, Trial, path_of, sentence
from ..solver import Solution, Stage, State, alternate, walk
from .descent import FoldFits, FullDescent, FullModel, pace_label, predicted
from .folds import MANY, FoldLayout, lay_out
from .minimize import Metric, Minimum, minimize
from .objective import Codes, Latent, Matrix, Objective, Vector
from .paper import Iterate, LogisticProblem, paper_path
from .selection import FoldVerdict, automatic, given, verdict

# Measured by benchmarks/constants.py linear.
MISMATCH = 0.1  # class shares of full and held-out predictions further apart: no shift of decisions


@dataclass(frozen=True, eq=False)
class LogisticSettings:
    """The estimator's parameters that a fit needs."""

    regularizer: Regularizer
    pace: Any
    ridge: float
    fit_intercept: bool
    tol: float
    max_iter: int
    n_jobs: int | None
    random_state: np.random.RandomState


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A complete fit, with everything an estimator reports about it."""

    plain: Vector
    params: Vector
    latent: Latent
    lam: float
    path: tuple[Candidate, ...]
    termination: str
    channel: NoiseChannel
    scores: Vector | None = None
    n_iter: int = 0
    converged: bool = True
    interrupted: bool = False


@dataclass(frozen=True, eq=False)
class Geometry:
    """In which geometry and unit fits are made; of many rows, those of a sample."""

    curvature: Metric
    metric: Metric
    unit: float


@dataclass(frozen=True, eq=False)
class Trainer:
    """One fit of one data set."""

    X: Matrix
    codes: Codes
    n_classes: int
    sample_weight: Vector | None
    settings: LogisticSettings
    progress: Progress
    warm: Vector | None = None

    @cached_property
    def options(self) -> dict[str, Any]:
        """What every objective has in common."""
        return {"ridge": self.settings.ridge, "fit_intercept": self.settings.fit_intercept}

    @cached_property
    def objective(self) -> Objective:
        """The plain objective of all rows."""
        return Objective([self.X], self.codes, self.n_classes, sample_weight=self.sample_weight, **self.options)

    @cached_property
    def layout(self) -> FoldLayout | None:
        """The rows that decide; None where there are too few."""
        return lay_out(self.X, self.codes, self.n_classes, self.sample_weight, self.settings.random_state)

    @cached_property
    def sampled(self) -> bool:
        """Whether only a sample of the rows decides."""
        return self.layout is not None and self.layout.sampled

    @cached_property
    def geometry(self) -> Geometry:
        """The geometry of the rows that decide."""
        rows = self.layout.everything(**self.options) if self.layout is not None and self.sampled else self.objective
        return Geometry(rows.curvature(), rows.standardized(), rows.unit)

    def run(self) -> LogisticFit:
        """Fit; on Ctrl-C the best model so far, if there is one."""
        fits = self._fits()
        fit = next(fits)
        with Interruptible() as guard:
            for fit in fits:  # noqa: B007
                pass
        if guard.interrupted:
            kept = "the plain model" if fit.latent.plain else "the last complete model"
            fit = replace(fit, interrupted=True, termination=interrupted_sentence(kept))
        return fit if fit.scores is not None else replace(fit, scores=self.objective.scores(fit.params))

    def _fits(self) -> Iterator[LogisticFit]:
        """One complete fit after the other, each better than the one before; the first is the plain one."""
        pace, rule = self.settings.pace, self.settings.regularizer
        folds = chosen = None
        if self.layout is not None and self.sampled:
            # Many rows: a sample decides first, and the full fits start where its fits ended.
            folds = self._fold_fits(self.layout, None)
            chosen = automatic(folds, rule) if isinstance(pace, str) and pace == "auto" else None
        began = time.perf_counter()
        with self.progress.stage("plain fit"):
            found = self._plain(folds, rough=chosen is not None and chosen.decision.index > 0)
        cost = time.perf_counter() - began
        fit = self._plain_fit(found, cost)
        yield fit
        if self.layout is None:
            yield from self._without_folds(fit, cost)
            return
        folds = folds or self._fold_fits(self.layout, found.x)
        if isinstance(pace, Pacing):
            yield from self._paced(fit, folds, cost)
        elif not isinstance(pace, str):
            yield from self._fixed(fit, folds, float(pace), cost)
        elif pace == "paper":
            yield from self._paper(fit, folds, cost)
        else:
            yield from self._auto(fit, chosen or automatic(folds, rule), cost)

    def _fold_fits(self, layout: FoldLayout, plain: Vector | None) -> FoldFits:
        geometry = self.geometry
        return FoldFits(
            layout,
            options=self.options,
            plain=plain,
            curvature=geometry.curvature,
            metric=geometry.metric,
            unit=geometry.unit,
            n_jobs=self.settings.n_jobs,
            progress=self.progress,
        )

    # --------------------------------------------------------------------------------------------- fits

    def _plain(self, folds: FoldFits | None, rough: bool) -> Minimum:
        """The plain fit; only roughly converged where a sample has already chosen another model."""
        settings, unit = self.settings, self.geometry.unit
        if folds is None:
            start = np.zeros(self.objective.size) if self.warm is None else self.warm
            metric, tol = self.geometry.curvature, settings.tol
        else:
            start, metric = self._near(Latent(), folds.plain.fit.mean if self.warm is None else self.warm)
            tol = 30 * settings.tol if rough else settings.tol
        return minimize(self.objective, start, metric=metric, max_iter=settings.max_iter, tol=tol * unit)

    def _near(self, latent: Latent, start: Vector) -> tuple[Vector, Metric]:
        """Where a full fit starts and in which geometry; of many rows, that of every k-th near its own minimum."""
        geometry = self.geometry
        if not self.sampled:
            return start, geometry.metric
        n, d = self.X.shape
        every = slice(None, None, max(1, n // max(MANY, 100 * d)))
        weight = None if self.sample_weight is None else self.sample_weight[every]
        thin = Objective([self.X[every]], self.codes[every], self.n_classes, sample_weight=weight, **self.options)
        thin = thin.at(latent)
        if not latent.plain:
            near = 3 * self.settings.tol * geometry.unit
            start = minimize(thin, start, metric=geometry.metric, max_iter=30, tol=near).x
        return start, thin.curvature(start)

    def _full(self, latent: Latent, lam: float, start: Vector) -> FullModel:
        """A full fit at one pace."""
        settings = self.settings
        with self.progress.stage(f"full fit, {pace_label(latent, lam)}"):
            start, metric = self._near(latent, start)
            step = FullDescent(self.objective, metric, latent, settings.max_iter, settings.tol * self.geometry.unit)
            # A fixed pace asks for no losses, and those of the start would cost a pass over the rows.
            begin = State(FullModel(start, np.empty(0), 0, False), np.empty(0))
            return walk(step, relative(settings.regularizer), Fixed(lam), begin).uninterrupted().model

    def _plain_fit(self, found: Minimum, cost: float) -> LogisticFit:
        """The plain model as long as nothing better is known."""
        trials, decision = (_bare(None, cost),), Decision(0, "nothing else was tried")
        return LogisticFit(
            plain=found.x,
            params=found.x,
            latent=Latent(),
            lam=math.inf,
            path=path_of(trials, decision),
            termination=sentence(trials, decision),
            channel=NoiseChannel.identity(self.n_classes),
            n_iter=found.n_iter,
            converged=found.converged,
        )

    # -------------------------------------------------------------------------------------------- paces

    def _auto(self, fit: LogisticFit, chosen: FoldVerdict, cost: float) -> Iterator[LogisticFit]:
        if chosen.decision.index:
            model, lam = chosen.model, chosen.trial.lam
            if len(model.params) > 1:
                mean = model.mean
                full = FullModel(mean, self.objective.scores(mean), 0, True)
            else:
                full = self._full(model.latent, lam, model.mean)
            if self._sane(full.scores, chosen):
                fit = _adopted(fit, model.latent, lam, full)
            else:
                reason = f"the fold fits of {chosen.trial.label} do not agree"
                chosen = replace(chosen, decision=Decision(0, reason))
        yield from self._reported(fit, chosen, cost)

    def _sane(self, scores: Vector, chosen: FoldVerdict) -> bool:
        """Whether the full fit is no worse on its own noisy labels than the plain model on held-out ones."""
        right = predicted(scores) == self.codes
        held_out = predicted(chosen.trials[0].fit.scores) == chosen.codes
        expected = np.average(held_out, weights=chosen.sample_weight)
        slack = 2 * np.sqrt(expected * (1 - expected) / len(held_out))
        return bool(np.average(right, weights=self.sample_weight) >= expected - slack)

    def _fixed(self, fit: LogisticFit, folds: FoldFits, lam: float, cost: float) -> Iterator[LogisticFit]:
        if math.isinf(lam):
            reason = "it is the model of the given pace, lam = inf"
            yield from self._reported(fit, verdict(folds, (folds.plain,), Decision(0, reason)), cost)
            return
        chosen = given(folds, self.settings.regularizer, lam)
        start = self.warm if self.warm is not None else chosen.model.mean
        full = self._full(chosen.model.latent, lam, start)
        yield from self._reported(_adopted(fit, chosen.model.latent, lam, full), chosen, cost)

    def _paced(self, fit: LogisticFit, folds: FoldFits, cost: float) -> Iterator[LogisticFit]:
        rule = self.settings.regularizer
        trials = [_bare(np.ones(len(self.codes)), cost)]

        def record(stage: Stage, solution: Solution[Iterate]) -> None:
            label = f"{rule.name} lam={stage.lam:.3g}"
            trials.append(Trial(stage.lam, label, None, solution.weights, stage.cost))

        with self.progress.stage("paced path"):
            solution = self._alternated(fit, self.settings.pace, inner=20, callback=record)
        decision = Decision(len(trials) - 1, solution.status)
        fit = self._at_the_end_of(solution, fit)
        fit = replace(fit, path=path_of(trials, decision, self.sample_weight), termination=solution.status)
        yield fit
        solution.uninterrupted()
        plain = verdict(folds, (folds.plain,), decision)
        yield self._calibrated(fit, given(folds, rule, solution.lam) if solution.stages else plain)

    def _paper(self, fit: LogisticFit, folds: FoldFits, cost: float) -> Iterator[LogisticFit]:
        chosen, pacing = paper_path(folds, self.settings.regularizer, self.settings.tol)
        count = chosen.decision.index
        if count:
            with self.progress.stage(f"full path, {count} stages"):
                solution = self._alternated(fit, replace(pacing, stop=Stages(count)), inner=1)
            fit = self._at_the_end_of(solution, fit)
            if solution.interrupted and solution.stages:
                yield replace(fit, path=path_of(chosen.trials, chosen.decision, chosen.sample_weight))
            solution.uninterrupted()
        yield from self._reported(fit, chosen, cost)

    def _alternated(self, fit: LogisticFit, pacing: Pacing, **options: Any) -> Solution[Iterate]:
        """The paper's alternation on all rows, from the plain model."""
        settings = self.settings
        return alternate(
            LogisticProblem(self.objective, self.geometry.metric, settings.tol, settings.max_iter),
            relative(settings.regularizer),
            pacing,
            initial=Iterate(fit.plain),
            sample_weight=self.sample_weight,
            **options,
        )

    def _at_the_end_of(self, solution: Solution[Iterate], fit: LogisticFit) -> LogisticFit:
        if not solution.stages:
            return fit
        params = solution.model.params
        full = FullModel(params, self.objective.scores(params), solution.model.n_iter, True)
        return _adopted(fit, Latent(self.settings.regularizer, solution.lam), solution.lam, full)

    def _without_folds(self, fit: LogisticFit, cost: float) -> Iterator[LogisticFit]:
        """Too few rows to hold any out."""
        pace, trials = self.settings.pace, [_bare(np.ones(len(self.codes)), cost)]
        decision = Decision(0, "there are too few rows, or a class with one row, to hold any out")
        if not isinstance(pace, str | Pacing) and math.isfinite(pace):
            began, lam = time.perf_counter(), float(pace)
            latent = Latent(self.settings.regularizer, lam)
            full = self._full(latent, lam, np.zeros(self.objective.size) if self.warm is None else self.warm)
            fit = _adopted(fit, latent, lam, full)
            weight = latent.weight(self.objective.losses(full.params), self.codes)
            trials.append(Trial(lam, pace_label(latent, lam), None, weight, time.perf_counter() - began))
            decision = Decision(
                1, "it is the given pace; there are too few rows to hold any out, so nothing is calibrated"
            )
        yield replace(fit, path=path_of(trials, decision, self.sample_weight), termination=sentence(trials, decision))

    # ------------------------------------------------------------------------------------------ reports

    def _reported(self, fit: LogisticFit, chosen: FoldVerdict, cost: float) -> Iterator[LogisticFit]:
        """The fit with its path and sentence, then calibrated too."""
        plain, *others = chosen.trials
        trials = (replace(plain, cost=plain.cost + cost), *others)
        path = path_of(trials, chosen.decision, chosen.sample_weight)
        fit = replace(fit, path=path, termination=sentence(trials, chosen.decision))
        yield fit
        yield self._calibrated(fit, chosen)

    def _calibrated(self, fit: LogisticFit, chosen: FoldVerdict) -> LogisticFit:
        """Noise channel on held-out scores; decisions move only if full and held-out predictions agree."""
        scores, codes, weight = chosen.model.scores, chosen.codes, chosen.sample_weight
        full = self.objective.scores(fit.params) if fit.scores is None else fit.scores
        channel = fit_channel(scores, codes, sample_weight=weight, shift=self.settings.fit_intercept)
        if np.any(channel.bias):
            shares = [
                np.bincount(channel.decide(z), w, minlength=self.n_classes) / (len(z) if w is None else w.sum())
                for z, w in ((full, self.sample_weight), (scores, weight))
            ]
            if 0.5 * np.abs(shares[0] - shares[1]).sum() > MISMATCH:
                channel = fit_channel(scores, codes, sample_weight=weight, shift=False)
        return replace(fit, channel=channel, scores=full)


def _bare(weight: Vector | None, cost: float) -> Trial:
    """The plain model where no score is known."""
    return Trial(math.inf, "plain", None, weight, cost)


def _adopted(fit: LogisticFit, latent: Latent, lam: float, full: FullModel) -> LogisticFit:
    return replace(
        fit,
        params=full.params,
        scores=full.scores,
        latent=latent,
        lam=lam,
        n_iter=fit.n_iter + full.n_iter,
        converged=fit.converged and full.converged,
    )


__all__ = ["LogisticFit", "LogisticSettings", "Trainer"]
