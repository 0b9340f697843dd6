"""From data and a pace to fitted parameters: the plain fit, the stop, the paced fit, the calibration."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engines import MemoryTable
from ..fitting import Interruptible, Progress, interrupted_sentence
from ..label_noise import NoiseChannel
from ..pacing import Fixed, Pacing, Stages
from ..path import Candidate
from ..regularizers import relative
from ..selection import Decision, Trial, path_of, sentence
from ..solver import Solution, Stage, State, alternate, walk
from .calibration import calibrate
from .descent import FoldFits, FullDescent, FullModel, pace_label, predicted
from .evidence import Evidence, LogisticSettings
from .folds import FoldLayout
from .minimize import Metric, Minimum, minimize
from .objective import Latent, Objective, Vector
from .paper import HeldAlternation, Iterate, LogisticProblem, paper_path
from .selection import FoldVerdict, automatic, best_penalty, given, penalties, verdict
from .vanishing import ClassWatch

WORTH_IT = 2  # a choice: times as many deals below which nothing is fitted again


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A complete fit, with everything an estimator reports about it.

    Its own rows may be judged by another channel than further ones (``judging``): it has seen their labels.
    """

    plain: Vector
    params: Vector
    latent: Latent
    lam: float
    C: float
    path: tuple[Candidate, ...]
    termination: str
    channel: NoiseChannel
    judging: NoiseChannel | None = None
    witness: str = "linear"
    stability: Vector | None = None
    hanging: bool = False
    n_iter: int = 0
    converged: bool = True
    interrupted: bool = False


@dataclass(frozen=True, eq=False)
class Timed:
    """A minimum, and the seconds it took."""

    found: Minimum
    cost: float

    @property
    def x(self) -> Vector:
        """The parameters."""
        return self.found.x


@dataclass(frozen=True, eq=False)
class Trainer(Evidence):
    """One fit of one table, wherever its rows lie.

    Of many rows a sample by content decides, and stands for all of them in everything but the full fits: these, and
    what is asked of all rows afterwards, are sums over blocks. Few rows are in memory.
    """

    progress: Progress
    warm: Vector | None = None

    def at(self, C: float) -> Trainer:
        """The same data under another penalty; what is known of them stays known."""
        if self.settings.penalty.C == C:
            return self
        other = replace(self, settings=replace(self.settings, penalty=replace(self.settings.penalty, C=C)))
        ridge = other.settings.penalty.ridge
        known: dict[str, Any] = {"sample": self.sample, "layout": self.layout, "geometry": self.geometry}
        known["objective"] = self.objective.penalised(ridge)
        if "thinned" in self.__dict__:
            known["thinned"] = self.thinned.penalised(ridge)
        other.__dict__.update(known)
        return other

    def gathered(self) -> Trainer:
        """This one, or where a table elsewhere has few distinct rows one that has them in memory."""
        if self.sampled or isinstance(self.table, MemoryTable):
            return self
        order = np.argsort(self.sample.rows)
        codes, weight = self.sample.codes[order], self.sample.sample_weight
        X = self.table.take(self.sample.rows[order]).X
        other = replace(self, table=MemoryTable(X, codes, None if weight is None else weight[order]))
        other.__dict__["sample"] = replace(self.sample, rows=np.argsort(order))
        return other

    def run(self) -> LogisticFit:
        """Fit; on Ctrl-C the best model so far, if there is one."""
        fits = self.gathered()._fits()
        fit = next(fits)
        with Interruptible() as guard:
            for fit in fits:  # noqa: B007
                pass
        if guard.interrupted:
            kept = "the plain model" if fit.params is fit.plain else "the last complete model"
            fit = replace(fit, interrupted=True, termination=interrupted_sentence(kept))
        return fit

    def _fits(self) -> Iterator[LogisticFit]:
        """One complete fit after the other, each better than the one before; the first is the plain one."""
        if self.layout is None:
            fit = self._plain_fit(self._timed_plain(None))
            yield fit
            yield from self._without_folds(fit)
        elif self.sampled:
            # Many rows: a sample decides first, and the full fits start where its fits ended.
            path = penalties(self._fold_fits(self.layout, None), self.settings.choose_penalty)
            folds, chosen = self._chosen(path)
            found = self.at(folds.penalty.C)._timed_plain(folds, rough=chosen is not None and not chosen.trial.plain)
            yield from self.at(folds.penalty.C)._paces(self._plain_fit(found), folds, chosen)
        else:
            found = self._timed_plain(None)
            fit = self._plain_fit(found)
            yield fit
            for fit in self._held_out(self.layout, found):
                yield fit
            if not fit.hanging:
                return
            again = self._dealt_again()
            if again.layout is not None and len(again.layout.deals) > WORTH_IT * len(self.layout.deals):
                *_, fit = again._held_out(again.layout, found)  # on the way it knows less than the fit before
                yield fit

    def _held_out(self, layout: FoldLayout, found: Timed) -> Iterator[LogisticFit]:
        """What folds decide, from the plain fit of all rows on."""
        path = penalties(self._fold_fits(layout, found.x), self.settings.choose_penalty)
        folds, chosen = self._chosen(path)
        trainer = self.at(folds.penalty.C)
        if trainer is not self:
            found = trainer._timed_plain(None, start=found.x)
        yield from trainer._paces(trainer._plain_fit(found), folds, chosen)

    def _dealt_again(self) -> Trainer:
        """The same data in more deals."""
        other = replace(self, again=True)
        other.__dict__.update(sample=self.sample, objective=self.objective, geometry=self.geometry)
        return other

    def _chosen(self, path: list[FoldFits]) -> tuple[FoldFits, FoldVerdict | None]:
        """The fold fits under the chosen penalty and, with the automatic pace, what they decided."""
        if not self.settings.automatic:
            return best_penalty(path), None
        chosen = automatic(path, self.settings.regularizer)
        return next(fits for fits in path if fits.penalty.C == chosen.trial.fit.C), chosen

    def _paces(self, fit: LogisticFit, folds: FoldFits, chosen: FoldVerdict | None) -> Iterator[LogisticFit]:
        """From the plain model on."""
        pace = self.settings.pace
        yield fit
        if chosen is not None:
            yield from self._auto(fit, folds, chosen)
        elif isinstance(pace, Pacing):
            yield from self._paced(fit, folds)
        elif not isinstance(pace, str):
            yield from self._fixed(fit, folds, float(pace))
        else:
            yield from self._paper(fit, folds)

    def _fold_fits(self, layout: FoldLayout, plain: Vector | None) -> FoldFits:
        return FoldFits(
            layout,
            penalty=self.settings.penalty,
            fit_intercept=self.settings.fit_intercept,
            plain=plain,
            geometry=self.geometry,
            n_jobs=self.settings.n_jobs,
            progress=self.progress,
        )

    # --------------------------------------------------------------------------------------------- fits

    def _timed_plain(self, folds: FoldFits | None, rough: bool = False, start: Vector | None = None) -> Timed:
        """The plain fit; only roughly converged where a sample has already chosen another model."""
        settings, unit, began = self.settings, self.geometry.unit, time.perf_counter()
        start = self.warm if start is None else start
        tol = settings.tol
        with self.progress.stage("plain fit"):
            if folds is None:
                start = np.zeros(self.objective.size) if start is None else start
                metric = self.geometry.curvature(settings.penalty.ridge)
            else:
                start, metric = self._near(Latent(), folds.plain.fit.mean if start is None else start)
                tol = 30 * settings.tol if rough else settings.tol
            found = minimize(self.objective, start, metric=metric, max_iter=settings.max_iter, tol=tol * unit)
        return Timed(found, time.perf_counter() - began)

    def _near(self, latent: Latent, start: Vector) -> tuple[Vector, Metric]:
        """Where a full fit starts and in which geometry; of many rows, those of a sample near its own minimum."""
        if not self.sampled:
            return start, self.metric
        thin = self.thinned.at(latent)
        if not latent.plain:
            near = 3 * self.settings.tol * self.geometry.unit
            start = minimize(thin, start, metric=self.metric, max_iter=30, tol=near).x
        return start, thin.curvature(start)

    def _full(self, latent: Latent, lam: float, start: Vector) -> FullModel:
        """A full fit at one pace."""
        settings, tol = self.settings, self.settings.tol * self.geometry.unit
        with self.progress.stage(f"full fit, {pace_label(latent, lam)}"):
            start, metric = self._near(latent, start)
            step = FullDescent(self.objective.at(latent), self.evidence, metric, latent, settings.max_iter, tol)
            # A fixed pace asks for no losses before the first.
            begin = State(FullModel(start, 0, False), np.empty(0))
            return walk(step, relative(settings.regularizer), Fixed(lam), begin).uninterrupted().model

    def _plain_fit(self, timed: Timed) -> LogisticFit:
        """The plain model as long as nothing better is known."""
        found, trials = timed.found, (_bare(None, timed.cost),)
        decision = Decision(0, "nothing else was tried")
        return LogisticFit(
            plain=found.x,
            params=found.x,
            latent=Latent(),
            lam=math.inf,
            C=self.settings.penalty.C,
            path=path_of(trials, decision),
            termination=sentence(trials, decision),
            channel=NoiseChannel.identity(self.n_classes),
            n_iter=found.n_iter,
            converged=found.converged,
        )

    # -------------------------------------------------------------------------------------------- paces

    def _auto(self, fit: LogisticFit, folds: FoldFits, chosen: FoldVerdict) -> Iterator[LogisticFit]:
        if chosen.averaged or not chosen.trial.plain:
            model, lam = chosen.model, chosen.trial.lam
            if folds.layout.alone:
                full = self._full(model.latent, lam, model.mean)
            else:
                full = FullModel(model.mean, 0, True)
            if self._sane(full.params, chosen):
                fit = _adopted(fit, model.latent, lam, full)
            else:
                index = next(i for i, trial in enumerate(chosen.trials) if trial.plain and trial.fit.C == fit.C)
                reason = f"the fold fits of {chosen.trial.label} do not agree"
                chosen = replace(chosen, decision=Decision(index, reason), shares=None)
        yield from self._reported(fit, folds, chosen)

    def _sane(self, params: Vector, chosen: FoldVerdict) -> bool:
        """Whether the full fit is no worse on its own noisy labels than the plain model on held-out ones."""
        right, _, _, total = self.agreement(params, NoiseChannel.identity(self.n_classes))
        held_out = predicted(chosen.trials[0].fit.scores) == chosen.codes
        expected = np.average(held_out, weights=chosen.sample_weight)
        slack = 2 * np.sqrt(expected * (1 - expected) / len(held_out))
        return bool(right / total >= expected - slack)

    def _fixed(self, fit: LogisticFit, folds: FoldFits, lam: float) -> Iterator[LogisticFit]:
        if math.isinf(lam):
            reason = "it is the model of the given pace, lam = inf"
            yield from self._reported(fit, folds, verdict(folds, (folds.plain,), Decision(0, reason)))
            return
        chosen = given(folds, self.settings.regularizer, lam)
        start = self.warm if self.warm is not None else chosen.model.mean
        full = self._full(chosen.model.latent, lam, start)
        yield from self._reported(_adopted(fit, chosen.model.latent, lam, full), folds, chosen)

    def _paced(self, fit: LogisticFit, folds: FoldFits) -> Iterator[LogisticFit]:
        rule = self.settings.regularizer
        trials = [_bare(np.ones(self.evidence.n), fit.path[0].cost)]

        watch = ClassWatch(self.evidence.codes)

        def record(stage: Stage, solution: Solution[Iterate]) -> None:
            label = f"{rule.name} lam={stage.lam:.3g}"
            trials.append(Trial(stage.lam, label, None, solution.weights, stage.cost))
            watch.see(solution)

        with self.progress.stage("paced path"):
            solution = watch.end(self._alternated(fit, self.settings.pace, inner=20, callback=record))
        decision = Decision(len(solution.stages), solution.status)
        fit = self._at_the_end_of(solution, fit)
        path = path_of(trials, decision, self.evidence.sample_weight)
        fit = replace(fit, path=path, termination=solution.status)
        yield fit
        solution.uninterrupted()
        plain = verdict(folds, (folds.plain,), decision)
        yield self._calibrated(fit, folds, given(folds, rule, solution.lam) if solution.stages else plain)

    def _paper(self, fit: LogisticFit, folds: FoldFits) -> Iterator[LogisticFit]:
        chosen, pacing = paper_path(folds, self.settings.regularizer, self.settings.tol)
        count = chosen.decision.index
        if count:
            with self.progress.stage(f"full path, {count} stages"):
                solution = self._alternated(fit, replace(pacing, stop=Stages(count)), inner=1)
            fit = self._at_the_end_of(solution, fit)
            if solution.interrupted and solution.stages:
                yield replace(fit, path=path_of(chosen.trials, chosen.decision, chosen.sample_weight))
            solution.uninterrupted()
        yield from self._reported(fit, folds, chosen)

    def _alternated(self, fit: LogisticFit, pacing: Pacing, *, inner: int, callback: Any = None) -> Solution[Iterate]:
        """The paper's alternation on all rows, from the plain model; of many rows, a sample sets the pace."""
        settings, metric, rule = self.settings, self.metric, relative(self.settings.regularizer)
        if isinstance(self.objective, Objective):
            return alternate(
                LogisticProblem(self.objective, metric, settings.tol, settings.max_iter),
                rule,
                pacing,
                initial=Iterate(fit.plain),
                sample_weight=self.objective.sample_weight,
                callback=callback,
                inner=inner,
            )
        rows = self.evidence
        step = HeldAlternation(
            self.objective, rows, metric, settings.regularizer, settings.tol, settings.max_iter, inner
        )
        begin = State(Iterate(fit.plain), rows.losses(fit.plain))
        return walk(step, rule, pacing, begin, sample_weight=rows.sample_weight, callback=callback)

    def _at_the_end_of(self, solution: Solution[Iterate], fit: LogisticFit) -> LogisticFit:
        if not solution.stages:
            return fit
        full = FullModel(solution.model.params, solution.model.n_iter, True)
        return _adopted(fit, Latent(self.settings.regularizer, solution.lam), solution.lam, full)

    def _without_folds(self, fit: LogisticFit) -> Iterator[LogisticFit]:
        """Too few rows to hold any out."""
        rows = self.evidence
        pace, trials = self.settings.pace, [_bare(np.ones(rows.n), fit.path[0].cost)]
        decision = Decision(0, "there are too few rows, or a class with one row, to hold any out")
        if not isinstance(pace, str | Pacing) and math.isfinite(pace):
            began, lam = time.perf_counter(), float(pace)
            latent = Latent(self.settings.regularizer, lam)
            full = self._full(latent, lam, np.zeros(self.objective.size) if self.warm is None else self.warm)
            fit = _adopted(fit, latent, lam, full)
            weight = latent.weight(rows.losses(full.params), rows.codes)
            trials.append(Trial(lam, pace_label(latent, lam), None, weight, time.perf_counter() - began))
            decision = Decision(
                1, "it is the given pace; there are too few rows to hold any out, so nothing is calibrated"
            )
        yield replace(fit, path=path_of(trials, decision, rows.sample_weight), termination=sentence(trials, decision))

    # ------------------------------------------------------------------------------------------ reports

    def _reported(self, fit: LogisticFit, folds: FoldFits, chosen: FoldVerdict) -> Iterator[LogisticFit]:
        """The fit with its path and sentence, then calibrated too."""
        plain, *others = chosen.trials
        trials = (replace(plain, cost=plain.cost + fit.path[0].cost), *others)
        path = path_of(trials, chosen.decision, chosen.sample_weight)
        fit = replace(fit, path=path, termination=chosen.termination)
        yield fit
        yield self._calibrated(fit, folds, chosen)

    def _calibrated(self, fit: LogisticFit, folds: FoldFits, chosen: FoldVerdict) -> LogisticFit:
        if folds.layout.alone:  # else the model is the mean of the fold fits
            chosen = chosen.as_large(folds.layout.held_out(folds.layout.everything().scores(fit.params)))
        found = calibrate(self, fit.params, folds, chosen, self.progress)
        return replace(
            fit,
            channel=found.channel,
            judging=found.judging,
            witness=found.witness,
            stability=found.stability,
            hanging=found.hanging,
            termination=fit.termination + found.said,
        )


def _bare(weight: Vector | None, cost: float) -> Trial:
    """The plain model where no score is known."""
    return Trial(math.inf, "plain", None, weight, cost)


def _adopted(fit: LogisticFit, latent: Latent, lam: float, full: FullModel) -> LogisticFit:
    return replace(
        fit,
        params=full.params,
        latent=latent,
        lam=lam,
        n_iter=fit.n_iter + full.n_iter,
        converged=fit.converged and full.converged,
    )


__all__ = ["LogisticFit", "LogisticSettings", "Trainer"]
