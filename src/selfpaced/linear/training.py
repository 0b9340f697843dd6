"""From data and a pace to fitted parameters: the plain fit, the stop, the paced fit, the calibration."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..label_noise import NoiseChannel, fit_channel
from ..pacing import Pacing
from ..path import Candidate, weight_histogram
from ..regularizers import Regularizer, relative
from ..solver import alternate
from .folds import MANY, Folds, make_folds
from .minimize import Metric, Minimum, minimize
from .objective import Codes, Latent, Matrix, Objective, Vector
from .paper import LogisticProblem, paper_path
from .progress import Progress
from .selection import Selection, Selector, Trial, predicted

MISMATCH = 0.1  # class shares of full and held-out predictions further apart: no shift of decisions


@dataclass
class Outcome:
    """Everything an estimator reports about its fit; filled as the fit goes on, so that Ctrl-C keeps it."""

    plain: Vector
    params: Vector
    latent: Latent = field(default_factory=Latent)
    lam: float = np.inf
    path: tuple[Candidate, ...] = ()
    termination: str = ""
    channel: NoiseChannel | None = None
    scores: Vector | None = None
    n_iter: int = 0
    converged: bool = True
    interrupted: bool = False


@dataclass(frozen=True)
class Settings:
    """The estimator's parameters that a fit needs."""

    regularizer: Regularizer
    pace: Any
    ridge: float
    fit_intercept: bool
    tol: float
    max_iter: int
    n_jobs: int | None
    random_state: np.random.RandomState


class Trainer:
    """One fit of one data set."""

    def __init__(
        self,
        X: Matrix,
        codes: Codes,
        n_classes: int,
        sample_weight: Vector | None,
        settings: Settings,
        progress: Progress,
        warm: Vector | None = None,
    ) -> None:
        self.X, self.codes, self.n_classes, self.sample_weight = X, codes, n_classes, sample_weight
        self.settings, self.progress, self.warm = settings, progress, warm
        self.options = {"ridge": settings.ridge, "fit_intercept": settings.fit_intercept}
        self.objective = Objective([X], codes, n_classes, sample_weight=sample_weight, **self.options)
        self.outcome: Outcome | None = None
        self.sample: Objective | None = None
        self.curvature: Metric | None = None
        self._scored: tuple[Vector, Vector] | None = None

    def run(self) -> Outcome:
        """Fit; on Ctrl-C the best model so far, if there is one."""
        try:
            self._run()
        except KeyboardInterrupt:
            if self.outcome is None:
                raise
            self.outcome.interrupted = True
            kept = "plain model" if self.outcome.latent.plain else "last complete model"
            self.outcome.termination = f"Interrupted: the {kept} is kept."
        assert self.outcome is not None
        if self.outcome.channel is None:
            self.outcome.channel = NoiseChannel.identity(self.n_classes)
        self.outcome.scores = self._scores(self.outcome.params)
        return self.outcome

    def _run(self) -> None:
        pace = self.settings.pace
        folds = make_folds(self.X, self.codes, self.n_classes, self.sample_weight, self.settings.random_state)
        selector = selection = None
        if folds is not None and folds.sampled:
            # Many rows: a sample decides first, and the full fits start where its fits ended.
            selector = self._selector(folds, None)
            selection = selector.run() if isinstance(pace, str) and pace == "auto" else None
        rough = selection is not None and selection.chosen > 0
        with self.progress.stage("plain fit"):
            began = time.perf_counter()
            plain = self._plain(selector, rough)
            seconds = time.perf_counter() - began
        self.outcome = Outcome(plain.x, plain.x, n_iter=plain.n_iter, converged=plain.converged)
        if folds is None:
            self._without_folds(seconds)
            return
        selector = selector or self._selector(folds, plain.x)
        if isinstance(pace, Pacing):
            self._paced(selector, seconds)
        elif not isinstance(pace, str):
            self._fixed(selector, float(pace), seconds)
        elif pace == "paper":
            self._paper(selector, seconds)
        else:
            self._auto(selection or selector.run(), seconds)

    def _selector(self, folds: Folds, plain: Vector | None) -> Selector:
        self.sample = folds.everything(**self.options) if folds.sampled else None
        objective = self.sample or self.objective
        if self.curvature is None or self.sample is not None:
            self.curvature = objective.curvature()
        self.metric = objective.standardized()
        return Selector(
            folds,
            self.settings.regularizer,
            options=self.options,
            plain=plain,
            curvature=self.curvature,
            metric=self.metric,
            unit=objective.unit,
            n_jobs=self.settings.n_jobs,
            progress=self.progress,
        )

    # --------------------------------------------------------------------------------------------- fits

    def _plain(self, selector: Selector | None, rough: bool) -> Minimum:
        """The plain fit; only roughly converged where a sample has already chosen another model."""
        if selector is None:
            self.curvature = self.objective.curvature()
            return self._minimize(Latent(), self.warm, self.curvature)
        start = self.warm if self.warm is not None else selector.plain_start()
        return self._full(Latent(), start, 30 * self.settings.tol if rough else self.settings.tol)

    def _full(self, latent: Latent, start: Vector, tol: float | None = None) -> Minimum:
        """A full fit; of many rows, in the geometry that every k-th of them has near its own minimum."""
        if self.sample is None:
            return self._minimize(latent, start, self.metric, tol)
        thin = self._thin()
        thin.latent = latent
        if not latent.plain:
            near = 3 * self.settings.tol * self.sample.unit
            start = minimize(thin, start, metric=self.metric, max_iter=30, tol=near).x
        return self._minimize(latent, start, thin.curvature(start), tol)

    def _thin(self) -> Objective:
        n, d = self.X.shape
        every = slice(None, None, max(1, n // max(MANY, 100 * d)))
        weight = None if self.sample_weight is None else self.sample_weight[every]
        return Objective([self.X[every]], self.codes[every], self.n_classes, sample_weight=weight, **self.options)

    def _minimize(self, latent: Latent, start: Vector | None, metric: Metric, tol: float | None = None) -> Minimum:
        self.objective.latent = latent
        start = np.zeros(self.objective.size) if start is None else start
        tol = (self.settings.tol if tol is None else tol) * (self.sample or self.objective).unit
        return minimize(self.objective, start, metric=metric, max_iter=self.settings.max_iter, tol=tol)

    def _adopt(self, latent: Latent, lam: float, found: Minimum) -> None:
        outcome = self.outcome
        assert outcome is not None
        outcome.params, outcome.latent, outcome.lam = found.x, latent, lam
        outcome.n_iter += found.n_iter
        outcome.converged = outcome.converged and found.converged

    # -------------------------------------------------------------------------------------------- paces

    def _auto(self, selection: Selection, seconds: float) -> None:
        trial = selection.trial
        reason = selection.reason
        if selection.chosen:
            if len(trial.params) > 1:
                found = Minimum(trial.start, np.nan, 0, 0, True)
            else:
                with self.progress.stage(f"full fit, {trial.label}"):
                    found = self._full(trial.latent, trial.start)
            if self._sane(self._scores(found.x), selection):
                self._adopt(trial.latent, trial.lam, found)
            else:
                selection = replace(selection, chosen=0)
                reason = f"the fold fits of {trial.label} do not agree"
        self._report(selection, reason, seconds)
        self._calibrate(selection)

    def _scores(self, params: Vector) -> Vector:
        """Scores of all rows, kept for whoever asks next."""
        if self._scored is None or self._scored[0] is not params:
            self._scored = (params, self.objective.scores(params))
        return self._scored[1]

    def _sane(self, scores: Vector, selection: Selection) -> bool:
        """Whether the full fit is no worse on its own noisy labels than the plain model on held-out ones."""
        right = predicted(scores) == self.codes
        held_out = predicted(selection.trials[0].scores) == selection.codes
        expected = np.average(held_out, weights=selection.sample_weight)
        slack = 2 * np.sqrt(expected * (1 - expected) / len(held_out))
        return bool(np.average(right, weights=self.sample_weight) >= expected - slack)

    def _fixed(self, selector: Selector, lam: float, seconds: float) -> None:
        latent = Latent(self.settings.regularizer, lam)
        selection = selector.single(Trial(latent, lam, f"{self.settings.regularizer.name} lam={lam:.3g}"))
        with self.progress.stage(f"full fit, {selection.trial.label}"):
            start = self.warm if self.warm is not None else selection.trial.start
            found = self._full(latent, start)
        self._adopt(latent, lam, found)
        self._report(selection, "the given pace", seconds)
        self._calibrate(selection)

    def _paced(self, selector: Selector, seconds: float) -> None:
        rule = relative(self.settings.regularizer)
        problem = LogisticProblem(self.objective, self.metric, self.settings.tol, self.settings.max_iter)
        assert self.outcome is not None
        with self.progress.stage("paced path"):
            solution = alternate(
                problem, rule, self.settings.pace, initial=self.outcome.plain, sample_weight=self.sample_weight
            )
        latent = Latent(self.settings.regularizer, solution.lam)
        self._adopt(latent, solution.lam, Minimum(solution.model, np.nan, problem.n_iter, 0, True))
        label = self.settings.regularizer.name
        stages = [
            Candidate(s.lam, mean_weight=s.mean_weight, label=f"{label} lam={s.lam:.3g}") for s in solution.stages
        ]
        if stages:
            stages[-1] = replace(stages[-1], chosen=True)
        self.outcome.path = (*self._plain_candidate(seconds, chosen=not stages), *stages)
        self.outcome.termination = solution.status
        if solution.interrupted:
            raise KeyboardInterrupt
        self._calibrate(selector.single(Trial(latent, solution.lam, label)))

    def _paper(self, selector: Selector, seconds: float) -> None:
        selection, n_stages, pacing = paper_path(selector, self.settings.tol)
        assert self.outcome is not None
        if n_stages:
            rule = relative(self.settings.regularizer)
            problem = LogisticProblem(self.objective, self.metric, self.settings.tol, self.settings.max_iter)
            with self.progress.stage(f"full path, {n_stages} stages"):
                solution = alternate(
                    problem,
                    rule,
                    replace(pacing, stop=lambda stages, *_: len(stages) >= n_stages),
                    initial=self.outcome.plain,
                    sample_weight=self.sample_weight,
                    inner=1,
                )
            latent = Latent(self.settings.regularizer, solution.lam)
            self._adopt(latent, solution.lam, Minimum(solution.model, np.nan, problem.n_iter, 0, True))
            if solution.interrupted:
                raise KeyboardInterrupt
        self._report(selection, selection.reason, seconds)
        self._calibrate(selection)

    def _without_folds(self, seconds: float) -> None:
        """Too few rows to hold any out."""
        assert self.outcome is not None
        pace = self.settings.pace
        if isinstance(pace, str | Pacing):
            self.outcome.path = self._plain_candidate(seconds, chosen=True)
            self.outcome.termination = "Plain model: too few rows, or a class with one row, to hold any out."
            return
        self.metric = self.objective.standardized()
        latent = Latent(self.settings.regularizer, float(pace))
        self._adopt(latent, float(pace), self._minimize(latent, self.warm, self.metric))
        self.outcome.path = self._plain_candidate(seconds, chosen=False)
        self.outcome.termination = "The given pace; too few rows to hold any out, so nothing is calibrated."

    # ------------------------------------------------------------------------------------------ reports

    def _plain_candidate(self, seconds: float, chosen: bool) -> tuple[Candidate]:
        histogram = weight_histogram(np.ones(len(self.codes)))
        return (Candidate(np.inf, mean_weight=1.0, cost=seconds, chosen=chosen, histogram=histogram, label="plain"),)

    def _report(self, selection: Selection, reason: str, seconds: float) -> None:
        outcome = self.outcome
        assert outcome is not None
        outcome.path = tuple(
            Candidate(
                lam=float(trial.lam),
                score=trial.score,
                spread=trial.spread,
                mean_weight=trial.mean_weight,
                cost=trial.cost + (seconds if index == 0 else 0.0),
                chosen=index == selection.chosen,
                histogram=trial.histogram,
                label=trial.label,
            )
            for index, trial in enumerate(selection.trials)
        )
        what = "Plain model" if selection.chosen == 0 else f"{selection.trial.label}"
        outcome.termination = f"{what}: {reason}."

    def _calibrate(self, selection: Selection) -> None:
        """Noise channel on held-out scores; decisions move only if full and held-out predictions agree."""
        outcome = self.outcome
        assert outcome is not None
        scores, codes, weight = selection.trial.scores, selection.codes, selection.sample_weight
        shift = self.settings.fit_intercept
        channel = fit_channel(scores, codes, sample_weight=weight, shift=shift)
        if shift and np.any(channel.bias):
            full = channel.decide(self._scores(outcome.params))
            held_out = channel.decide(scores)
            shares = [
                np.bincount(p, w, minlength=self.n_classes) / (len(p) if w is None else w.sum())
                for p, w in ((full, self.sample_weight), (held_out, weight))
            ]
            if 0.5 * np.abs(shares[0] - shares[1]).sum() > MISMATCH:
                channel = fit_channel(scores, codes, sample_weight=weight, shift=False)
        outcome.channel = channel


__all__ = ["Outcome", "Settings", "Trainer"]
