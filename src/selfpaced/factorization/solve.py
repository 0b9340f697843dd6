"""One run from a random start to the end: warm start, path, rescue, polish."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..pacing import CalibrationError, Pacing, lam_at, stop_reason
from ..path import Candidate, weight_histogram
from ..regularizers import GroupRegularizer, Hard, relative
from ..residuals import Opening, noise_scale
from ..solver import Stage
from .engine import Engine, WeightedSolve
from .entries import Entries, Floats
from .rescue import DOUBTFUL, STARVED, rescue
from .start import (
    RIDGE_END,
    RIDGE_RANK,
    SMOOTHING,
    SPARE,
    Factors,
    Progress,
    balanced,
    continuation,
    descend,
    random_factors,
    reveal_rank,
    typical_size,
)

FIRST_SWEEPS = 3  # at the first pace: the warm start has to forget its outliers
RESCUE_SWEEPS = 3
POLISH_AGAIN = 3
REJECT = 3.5  # the polish leaves out residuals beyond this many noise scales
NEGLIGIBLE = 1e-4
STARVING = 0.01  # a mean weight below which there is nothing to learn from
TRUNCATION = 1.005  # the standard deviation of a normal cut at 3.5 sigma is too small by this


@dataclass(frozen=True)
class Settings:
    """The estimator's parameters, checked."""

    regularizer: Any
    pacing: Pacing | None
    ridge: float
    warm_sweeps: int = 28
    warm: bool = True
    inner: int = 1
    max_sweeps: int = 200
    tol: float = 1e-4
    rescue: bool = True
    polish: int = 8
    max_rank: int = 12
    smoothing: float = SMOOTHING


@dataclass
class Run:
    """Where one start ended."""

    U: Floats
    V: Floats
    step: WeightedSolve
    scale: float
    path: list[Candidate] = field(default_factory=list)
    reason: str = ""
    plain: Factors | None = None
    sweeps: int = 0
    rescued: int = 0
    lam: float = math.inf
    unit: float = 1.0
    converged: bool = True


class Solver:
    """One factorization problem: the entries, the settings, and a run per start."""

    def __init__(
        self,
        engine: Engine,
        entries: Entries,
        settings: Settings,
        bound: float,
        progress: Progress,
        callback: Callable[..., Any] | None = None,
    ) -> None:
        self.engine, self.entries, self.settings = engine, entries, settings
        self.bound, self.ridge = bound, max(settings.ridge * bound, 1e-12)
        self.callback = callback
        self.sweeps = 0
        self._progress = progress
        # Noise so far below the entries is not told apart from an alternation that has not quite converged.
        self.floor = NEGLIGIBLE * typical_size(entries)

    # ------------------------------------------------------------------------------------------ warm start

    def warm_start(self, rank: int | None, rng: np.random.Generator) -> Factors:
        """Random factors, then L1 sweeps with a falling ridge; ``rank=None`` finds the rank on the way."""
        settings = self.settings
        if rank is not None and not settings.warm:
            return random_factors(self.entries, rank, rng)
        # Spare factors let wrong directions be outgrown; they are cut off while the ridge still holds them small.
        width = (settings.max_rank if rank is None else rank) + SPARE
        U, V = random_factors(self.entries, min(width, *self.entries.shape), rng)
        early = max(settings.warm_sweeps * 4 // 7, 1)
        U, V = self.descend((U, V), continuation(self.bound, 1.0, RIDGE_RANK, early))
        U, V, values = balanced(U, V)
        if rank is None:
            rank = min(reveal_rank(values, values.size == min(self.entries.shape)), settings.max_rank)
        U, V = np.ascontiguousarray(U[:, :rank]), np.ascontiguousarray(V[:, :rank])
        late = settings.warm_sweeps - early
        return self.descend((U, V), continuation(self.bound, RIDGE_RANK, min(settings.ridge, RIDGE_RANK), late))

    def descend(self, factors: Factors, ridges: Any) -> Factors:
        """Plain L1 sweeps, one per ridge."""
        return descend(self.engine, self.entries, factors, ridges, self.floor, self._count, self.settings.smoothing)

    def _eps(self, scale: float) -> float:
        """The smoothing of the absolute value: along a path the noise is not told apart, L1 alone needs it smaller."""
        return scale if self.settings.regularizer is not None else max(self.settings.smoothing * scale, self.floor)

    def _count(self, label: str) -> None:
        self.sweeps += 1
        self._progress(label)

    def _sweep(self, U: Floats, V: Floats, step: WeightedSolve, label: str) -> Floats:
        self.engine.sweep(self.entries, U, V, step)
        self._count(label)
        return self.engine.sampled_residuals(self.entries, U, V)

    # ------------------------------------------------------------------------------------------------ path

    def follow(self, factors: Factors, seed: int) -> Run:
        """The whole path from warm factors: pace, rescue, polish."""
        self.sweeps = 0
        U, V = (factor.copy() for factor in factors)
        residuals = self.engine.sampled_residuals(self.entries, U, V)
        scale = noise_scale(residuals, self.floor)
        step = WeightedSolve(self.settings.regularizer, math.inf, self.ridge, self._eps(scale))
        run = Run(U, V, step, scale, plain=factors)
        if self.settings.regularizer is not None:
            self._pace(run, residuals)
        if self.settings.rescue:
            self._rescue(run, seed)
        if self.settings.polish:
            self._polish(run, self.settings.polish)
            if self.settings.rescue and self._refit(run, seed, DOUBTFUL):
                self._polish(run, POLISH_AGAIN)
        self._finish(run)
        run.sweeps = self.sweeps
        return run

    def _pace(self, run: Run, residuals: Floats) -> None:
        pacing = self.settings.pacing or Opening()
        rule = self.settings.regularizer
        paced = rule.bind(self.entries.sample[0]) if isinstance(rule, GroupRegularizer) else relative(rule)
        before = run.scale
        if isinstance(pacing, Opening):
            run.unit = _unit(paced, run.scale)
            pacing = replace(pacing, floor=max(pacing.floor, 0.5 * run.scale / run.unit))
        run.step = run.step.at(unit=run.unit)
        run.path.append(self._candidate(run, residuals, 0.0, "plain"))
        lam = pacing.first(run.step.loss(residuals), paced)
        stages: list[Stage] = []
        while True:
            clock = time.perf_counter()
            run.lam, run.step = lam, run.step.at(lam=lam, eps=run.scale)
            for _ in range(self.settings.inner if stages else max(FIRST_SWEEPS, self.settings.inner)):
                residuals = self._sweep(run.U, run.V, run.step, "path")
            run.scale = noise_scale(residuals, self.floor)
            candidate = self._candidate(run, residuals, time.perf_counter() - clock, f"stage {len(stages)}")
            if candidate.mean_weight < STARVING or run.scale > 3 * before:
                self._step_back(run, before, lam)
                return
            run.path.append(candidate)
            stages.append(Stage(lam, self.settings.inner, math.nan, candidate.mean_weight, math.nan))
            if self.callback is not None and self.callback(candidate, run.U, run.V):
                run.reason = "the callback ended the path"
                return
            losses = run.step.loss(residuals)
            reason = stop_reason(pacing.stop, stages, losses, paced)
            if reason is not None:
                run.reason = reason
                return
            following = pacing.advance(len(stages), lam, losses, paced)
            if following is None or self.sweeps >= self.settings.max_sweeps:
                self._converge(run, residuals, ended=following is None)
                return
            lam = following

    def _step_back(self, run: Run, scale: float, lam: float) -> None:
        """A pace so narrow that the factors fade away: the plain start is better than nothing."""
        run.U, run.V = (factor.copy() for factor in run.plain or ())
        run.scale, run.lam, run.converged = scale, math.inf, False
        run.step, run.path = run.step.at(lam=math.inf, eps=scale), run.path[:1]
        run.reason = f"at lam = {lam:.4g} hardly any entry has weight (open the pace); the plain start is kept"

    def _converge(self, run: Run, residuals: Floats, ended: bool) -> None:
        """At the end of a pace without a stop of its own, alternate until nothing moves."""
        if ended:
            run.reason = "the pace came to its end"
            while self.sweeps < self.settings.max_sweeps:
                before, residuals = residuals, self._sweep(run.U, run.V, run.step.at(eps=run.scale), "last pace")
                run.scale = noise_scale(residuals, self.floor)
                if np.mean(np.abs(residuals - before)) <= self.settings.tol * np.mean(np.abs(residuals)):
                    return
        run.reason = f"max_sweeps = {self.settings.max_sweeps} sweeps were done"
        run.converged = False

    def _candidate(self, run: Run, residuals: Floats, cost: float, label: str) -> Candidate:
        weights = run.step.relative_weight(residuals, self.entries.sample[0])
        return Candidate(
            lam=float(run.step.lam),
            score=-run.scale,
            mean_weight=float(np.mean(weights)),
            cost=cost,
            histogram=weight_histogram(weights),
            label=label,
        )

    # --------------------------------------------------------------------------------------------- the end

    def _refit(self, run: Run, seed: int, below: float) -> int:
        changed = rescue(self.engine, self.entries, run.U, run.V, run.scale, seed, below)
        run.rescued += changed
        return changed

    def _rescue(self, run: Run, seed: int) -> None:
        if self._refit(run, seed, STARVED):
            for _ in range(RESCUE_SWEEPS):
                residuals = self._sweep(run.U, run.V, run.step, "rescue")
            run.scale = noise_scale(residuals, self.floor)
            run.step = run.step.at(eps=self._eps(run.scale))

    def _polish(self, run: Run, sweeps: int) -> None:
        """Least squares on what lies within 3.5 noise scales: the efficiency that the L1 loss gives away."""
        shape, rank = self.entries.shape, run.V.shape[1]
        empty = self.entries.empty_rows().size + self.entries.empty_columns().size
        freedom = rank * max(sum(shape) - empty - rank, 1)
        for _ in range(sweeps):
            residuals = self._sweep(run.U, run.V, self._rejecting(run.scale), "polish").astype(np.float64)
            inside = residuals[np.abs(residuals) < REJECT * run.scale]
            if not inside.size:
                return
            kept = inside.size / residuals.size * self.entries.size
            corrected = kept / max(kept - freedom, 0.1 * kept)
            run.scale = max(TRUNCATION * math.sqrt(float(np.mean(inside**2)) * corrected), self.floor)

    def _rejecting(self, scale: float) -> WeightedSolve:
        # L1 residuals of the noise's size weigh 1/scale in IRLS: the same ridge, in units of squared residuals
        return WeightedSolve(Hard(), (REJECT * scale) ** 2, self.ridge * scale, quadratic=True)

    def _finish(self, run: Run) -> None:
        """Balanced factors; the rows are solved last, so that they are the exact transform of their entries."""
        U, V, _ = balanced(run.U, run.V)
        run.U, run.V = np.ascontiguousarray(U), np.ascontiguousarray(V)
        run.step = run.step.at(eps=self._eps(run.scale))
        last = self._rejecting(run.scale) if self.settings.polish else run.step
        self.engine.half(self.entries.by_row, run.U, run.V, last)

    def objective(self, run: Run, lam: float) -> float:
        """The latent objective at a pace, for the comparison of starts."""
        residuals = self.engine.sampled_residuals(self.entries, run.U, run.V)
        loss = run.step.at(unit=run.unit, quadratic=False).loss(residuals)
        rule = self.settings.regularizer
        if rule is None:
            latent = loss
        elif isinstance(rule, GroupRegularizer):
            latent = rule.bind(self.entries.sample[0]).latent(loss, lam)
        else:
            latent = relative(rule).latent(loss, lam)
        total = float(np.sum(latent, dtype=np.float64)) * run.unit * self.entries.size / loss.size
        return total + 0.5 * self.ridge * float(np.vdot(run.U, run.U) + np.vdot(run.V, run.V))


def _unit(rule: Any, scale: float) -> float:
    """The unit in which a rule that is not free of scale can open from the noise to well above it."""
    if getattr(rule, "groups", None) is not None:
        return scale
    if rule.power is not None:
        return 1.0
    for unit in (1.0, scale / 4, scale, 10 * scale, 50 * scale):
        try:
            lam_at(rule, 0.5 * scale / unit)
            lam_at(rule, 10 * scale / unit)
        except CalibrationError:
            continue
        return unit
    return scale


def best_run(solver: Solver, runs: list[Run]) -> tuple[Run, list[float]]:
    """The run of the smallest latent objective, all compared at the same pace, and all objectives."""
    if len(runs) == 1:
        return runs[0], []
    lam = min(runs, key=lambda run: run.scale).lam
    objectives = [solver.objective(run, lam) for run in runs]
    return runs[int(np.argmin(objectives))], objectives


def warn_unconverged(run: Run) -> None:
    """The last model is kept; the warning says what to do."""
    if not run.converged:
        warnings.warn(
            f"the path did not come to its end: {run.reason}; the default pacing, or more max_sweeps, may help",
            ConvergenceWarning,
            stacklevel=4,
        )


def mark_chosen(path: list[Candidate]) -> tuple[Candidate, ...]:
    """The path with its last candidate marked."""
    return (*path[:-1], replace(path[-1], chosen=True)) if path else ()


__all__ = [
    "REJECT",
    "RIDGE_END",
    "SMOOTHING",
    "Run",
    "Settings",
    "Solver",
    "best_run",
    "mark_chosen",
    "warn_unconverged",
]
