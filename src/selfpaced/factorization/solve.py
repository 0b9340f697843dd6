"""One run from a random start to the end: warm start, path, rescue, polish."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, replace
from typing import Any

import numpy as np

from ..assessment import OUTLIER_Z
from ..fitting import Interruptible
from ..pacing import CalibrationError, Pacing, lam_at
from ..regularizers import GroupRegularizer, Hard, relative
from ..robust import Opening, noise_scale
from ..selection import Trial
from ..solver import Callback, DeadEnd, End, Solution, Stage, State, walk
from .engine import Factors, Floats, Side, WeightedSolve
from .residuals import UsualRows, inlier_shares, is_thin, lost_rows, refit_rows, thin_rows, usual_rows
from .start import (
    RIDGE_RANK,
    SMOOTHING,
    SPARE,
    Centred,
    balanced,
    continuation,
    descend,
    further_components,
    lever,
    low_scale,
    random_factors,
    reveal_rank,
    ridge_bound,
    typical_size,
)

# Measured by benchmarks/factorization.py, parts ablation (rank 20), images and grids.
LONGER = 4  # times as many sweeps at most, if the polish is not at its end
STILL = 0.99  # of the noise scale before the sweep: the polish is not at its end
GROWN_SWEEPS = 6  # for components that were added
MET = 0.1  # of the error of rounding: a fit so near to the values of a grid lies on it; 0.01 or less there, else 0.2 on

NEGLIGIBLE = 1e-4  # numerical safety: of the typical entry; smaller residuals are not told apart
STARVING = 0.01  # numerical safety: a mean weight below which there is nothing to learn from
SPOILT = 3.0  # numerical safety: times the noise scale of the start; a path that has lost the factors


@dataclass(frozen=True)
class Recipe:
    """The estimator's parameters, checked; without a regularizer there is no path."""

    regularizer: Any
    pacing: Pacing | None
    ridge: float
    warm_sweeps: int = 28
    warm: bool = True
    max_sweeps: int = 200
    tol: float = 1e-4
    rescue: bool = True
    polish: int = 8
    max_rank: int = 12
    room: int = 0

    @property
    def early_sweeps(self) -> int:
        """Sweeps of the warm start under a strong ridge."""
        return max(self.warm_sweeps * 4 // 7, 1)


@dataclass(frozen=True, eq=False)
class Factorized:
    """Factors between two sweeps, with the noise scale of their residuals and the solve that made them."""

    U: Floats
    V: Floats
    step: WeightedSolve
    scale: float

    def copied(self) -> Factorized:
        """The same with factors of its own, which a sweep may change."""
        return replace(self, U=self.U.copy(), V=self.V.copy())


@dataclass(frozen=True, eq=False)
class RefitLines:
    """Rows (or columns) to be refitted: their entries, factors with whole means, and where the factors are kept."""

    side: Side
    factors: Floats
    others: Floats
    target: Floats
    free: Any
    shift: Floats

    def usual(self) -> UsualRows:
        return usual_rows(self.factors, self.side.counts())


@dataclass(frozen=True, eq=False)
class FactorRun:
    """Where one start ended."""

    fit: Factorized
    plain: Factors
    trials: tuple[Trial, ...]
    lam: float = math.inf
    reason: str = ""
    end: End = "stop"
    seed: int = 0
    sweeps: int = 0
    rescued: int = 0
    usual: UsualRows | None = None
    thin: bool = False
    converged: bool = True
    interrupted: bool = False


@dataclass(eq=False)
class Solver:
    """One factorization problem: the entries, the recipe, and a run per start."""

    centre: InitVar[Centred]
    recipe: Recipe
    tick: Callable[[str], None] = lambda _: None
    callback: Callback | None = None
    sweeps: int = 0

    def __post_init__(self, centre: Centred) -> None:
        self.engine, self.entries, self.levels, self.cut = centre.engine, centre.entries, centre.levels, centre.cut
        self.bound = ridge_bound(self.entries, self.cut)
        self.ridge = max(self.recipe.ridge * self.bound, 1e-12)
        # Noise so far below the entries is not told apart from an alternation that has not quite converged.
        self.floor = NEGLIGIBLE * typical_size(self.entries)

    # ------------------------------------------------------------------------------------------ warm start

    def warm_start(self, rank: int | None, rng: np.random.Generator) -> Factors:
        """Random factors, then L1 sweeps with a falling ridge; ``rank=None`` finds the rank on the way."""
        recipe = self.recipe
        if rank is not None and not recipe.warm:
            return self._with_means(random_factors(self.entries, rank, rng))
        wide = self.open_start(recipe.max_rank if rank is None else rank, rng)
        U, V, values = self.balanced(*wide)
        if rank is None:
            rank = min(reveal_rank(values, values.size == min(self.entries.shape)), recipe.max_rank)
        late = recipe.warm_sweeps - recipe.early_sweeps
        ridges = continuation(self.bound, RIDGE_RANK, min(recipe.ridge, RIDGE_RANK), late)
        return self.descend(self.first_components((U, V), rank), ridges)

    def grown_start(self, rank: int | None, rng: np.random.Generator) -> Factors:
        """A warm start with as many components more as all entries show, in the recipe's room."""
        factors = self.warm_start(rank, rng)
        means, side, n_columns = self.engine.means, self.entries.by_row, self.entries.shape[1]
        room = self.recipe.room
        while room > 0:
            left = self.engine.residuals(side, *factors).astype(np.float64)
            left[np.abs(left) > OUTLIER_Z * self._scale(left)] = 0.0
            more = further_components(side.matrix(left, n_columns), room, rng)
            if more is None:
                break
            room -= more[0].shape[1]
            u, v, *_ = means.split(*factors)
            wider = np.hstack([u, more[0].astype(u.dtype)]), np.hstack([v, more[1].astype(v.dtype)])
            ridges = np.full(GROWN_SWEEPS, self.ridge)
            factors = self.descend(means.with_components(*factors, wider), ridges)
        return factors

    def open_start(self, rank: int, rng: np.random.Generator) -> Factors:
        """The first half of the warm start, under a strong ridge."""
        # Spare factors let wrong directions be outgrown; they are cut off while the ridge still holds them small.
        width = min(rank + SPARE, *self.entries.shape) if rank else 0
        factors = self._with_means(random_factors(self.entries, width, rng))
        return self.descend(factors, continuation(self.bound, 1.0, RIDGE_RANK, self.recipe.early_sweeps))

    def _with_means(self, factors: Factors) -> Factors:
        return self.engine.means.join(*factors, lever(self.entries)) if self.engine.means.count else factors

    def balanced(self, U: Floats, V: Floats) -> tuple[Floats, Floats, Floats]:
        """Orthogonal components, largest first, and their singular values; means stay as they are."""
        means = self.engine.means
        u, v, values = balanced(*means.split(U, V)[:2])
        return *means.with_components(U, V, (u, v)), values

    def first_components(self, factors: Factors, rank: int) -> Factors:
        """The first components of balanced factors, and the means."""
        u, v, *_ = self.engine.means.split(*factors)
        return self.engine.means.with_components(*factors, (u[:, :rank], v[:, :rank]))

    def descend(self, factors: Factors, ridges: Any) -> Factors:
        """Plain L1 sweeps, one per ridge."""
        return descend(self.engine, self.entries, factors, ridges, self.floor, self._count, self.cut)

    def _scale(self, residuals: Floats) -> float:
        """The noise scale; where the start was guarded, more than half of the entries may be wrong."""
        floor = max(self.floor, self.entries.grain)
        return noise_scale(residuals, floor, low_scale(residuals) if math.isfinite(self.cut) else None)

    def _eps(self, scale: float) -> float:
        """The smoothing of the absolute value: along a path the noise is not told apart, L1 alone needs it smaller."""
        eps = scale if self.recipe.regularizer is not None else max(SMOOTHING * scale, self.floor)
        return max(eps, self.entries.grain)

    def _count(self, label: str) -> None:
        self.sweeps += 1
        self.tick(label)

    def _sweep(self, fit: Factorized, step: WeightedSolve, label: str) -> Floats:
        """One sweep of the factors in place; the residuals of the sample."""
        self.engine.sweep(self.entries, fit.U, fit.V, step)
        self._count(label)
        return self.engine.sampled_residuals(self.entries, fit.U, fit.V)

    # ------------------------------------------------------------------------------------------------ path

    def follow(self, factors: Factors, seed: int) -> FactorRun:
        """The whole path from warm factors: pace, rescue, polish. Ctrl-C keeps what the last whole part has made."""
        self.sweeps = 0
        residuals = self.engine.sampled_residuals(self.entries, *factors)
        scale = self._scale(residuals)
        step = WeightedSolve(self.recipe.regularizer, math.inf, self.ridge, self._eps(scale))
        plain = Trial(math.inf, "plain", np.array([-scale]), np.ones_like(residuals))
        run = FactorRun(Factorized(*factors, step, scale), factors, (plain,), seed=seed)
        parts: list[Callable[[FactorRun], FactorRun]] = []
        if self.recipe.regularizer is not None:
            parts += [lambda run: self._paced(run, residuals), self._settled]
        if self.entries.grid is not None:
            parts.append(self._on_the_grid)
        parts.append(self._polished)
        with Interruptible() as guard:
            for part in parts:
                run = part(run)
                if run.interrupted:
                    break
        return replace(self._finished(run), sweeps=self.sweeps, interrupted=run.interrupted or guard.interrupted)

    def _paced(self, run: FactorRun, residuals: Floats) -> FactorRun:
        """Walk along the pace, a sweep per stage with the weights fused into it."""
        rule = self.recipe.regularizer
        grouped = isinstance(rule, GroupRegularizer)
        groups = self.entries.sample[0] if grouped else None
        pacing, unit = self.recipe.pacing or Opening(), 1.0
        if isinstance(pacing, Opening):
            unit = run.fit.scale if grouped else _unit(relative(rule), run.fit.scale)
            pacing = replace(pacing, floor=max(pacing.floor, 0.5 * run.fit.scale / unit))
        start = replace(run.fit, step=run.fit.step.at(unit=unit))
        trials = list(run.trials)

        def listen(stage: Stage, solution: Solution[Factorized]) -> Any:
            score, weights = np.array([-solution.model.scale]), solution.weights
            some = weights[:: max(weights.size // 10_000, 1)].copy()  # enough for a mean
            trials.append(Trial(stage.lam, f"stage {len(trials) - 1}", score, some, stage.cost))
            return self.callback(stage, solution) if self.callback is not None else None

        solution = walk(
            FusedSweeps(self, start.scale),
            rule if grouped else relative(rule),
            pacing,
            State(start, start.step.loss(residuals)),
            groups=groups,
            stop=self._exhausted,
            callback=listen,
        )
        return replace(
            run,
            fit=solution.model,
            trials=tuple(trials) if solution.stages else run.trials,
            lam=solution.lam,
            reason=solution.reason,
            end=solution.end,
            converged=solution.end not in ("dead end", "limit"),
            interrupted=solution.interrupted,
        )

    def _exhausted(self, *_: Any) -> str | None:
        done = self.sweeps >= self.recipe.max_sweeps
        return f"max_sweeps = {self.recipe.max_sweeps} sweeps were done" if done else None

    def _settled(self, run: FactorRun) -> FactorRun:
        """At the end of a pace without a stop of its own, alternate until nothing moves."""
        if run.end != "pace":
            return run
        fit = run.fit.copied()
        residuals = self.engine.sampled_residuals(self.entries, fit.U, fit.V)
        while self.sweeps < self.recipe.max_sweeps:
            before, residuals = residuals, self._sweep(fit, fit.step.at(eps=self._eps(fit.scale)), "last pace")
            fit = replace(fit, scale=self._scale(residuals))
            if np.mean(np.abs(residuals - before)) <= self.recipe.tol * np.mean(np.abs(residuals)):
                return replace(run, fit=fit)
        return replace(run, fit=fit, reason=str(self._exhausted()), converged=False)

    # --------------------------------------------------------------------------------------------- the end

    def _on_the_grid(self, run: FactorRun) -> FactorRun:
        """Where the fit itself lies on the values' grid nothing was rounded, and half a step off is wrong.

        Rare values have to be met as well as the commonest one: zeros that are met say nothing about ones.
        """
        grid = self.entries.grid
        assert grid is not None
        residuals = self.engine.sampled_residuals(self.entries, run.fit.U, run.fit.V)
        parts = (residuals[grid.common], residuals[~grid.common])
        scale = max(noise_scale(part, self.floor) for part in parts)
        met = self.engine.means.rank(run.fit.V) > 0 and scale < MET * grid.error
        half_step = math.sqrt(3) * grid.error  # which the limit of rejection is to be
        return replace(run, fit=replace(run.fit, scale=half_step / OUTLIER_Z)) if met else run

    def _polished(self, run: FactorRun) -> FactorRun:
        """Polish, refit the rows and columns that are lost, and polish again."""
        fit = self._polish(run.fit.copied(), self.recipe.polish)
        changed = sum(self._refit(fit, by_row, run.seed, thin=False) for by_row in (True, False) if self.recipe.rescue)
        fit = self._polish(fit, min(self.recipe.polish, 3)) if changed else fit
        return replace(run, fit=fit, rescued=changed)

    def _polish(self, fit: Factorized, sweeps: int) -> Factorized:
        """Least squares on what lies within 3.5 noise scales: the efficiency that the L1 loss gives away.

        Many components converge slowly: it goes on as long as the noise scale falls.
        """
        floor = max(self.floor, min(self.entries.grain, fit.scale))  # below the error of rounding as it began
        for done in range(LONGER * sweeps):
            before = fit.scale
            residuals = self._sweep(fit, rejecting(fit.scale, self.ridge), "polish").astype(np.float64)
            inside = residuals[np.abs(residuals) < OUTLIER_Z * fit.scale]
            if not inside.size:
                break
            kept = inside.size / residuals.size * self.entries.size
            corrected = kept / max(kept - self._freedom(fit), 0.1 * kept)
            fit = replace(fit, scale=max(math.sqrt(float(np.mean(inside**2)) * corrected), floor))
            if done + 1 >= sweeps and fit.scale > STILL * before:
                break
        return fit

    def _freedom(self, fit: Factorized) -> float:
        """Effective degrees of freedom: a ridge shrinks components of few entries, and what is shrunk fits less."""
        means, ridge, total = self.engine.means, self.ridge * fit.scale, 0.0
        u, v, *_ = means.split(fit.U, fit.V)
        for side, other in ((self.entries.by_row, v), (self.entries.by_column, u)):
            sizes = np.linalg.eigvalsh(other.T.astype(np.float64) @ other / max(len(other), 1))
            information = side.counts()[:, None] * np.maximum(sizes, 0.0)
            total += float((information / (information + ridge)).sum())
        empty = self.entries.empty_rows().size + self.entries.empty_columns().size
        return float(max(total - u.shape[1] ** 2, 0.0) + means.count * (sum(self.entries.shape) - empty) / 2)

    def _finished(self, run: FactorRun) -> FactorRun:
        """Balanced factors; the rows are solved last, so that they are the exact transform of their entries."""
        fit, rescue = run.fit.copied(), self.recipe.rescue and self.recipe.polish
        moved = self._refit(fit, False, run.seed, thin=True) if rescue and self._is_thin(fit, False) else 0
        U, V, _ = self.balanced(fit.U, fit.V)
        fit = Factorized(U, V, fit.step.at(eps=self._eps(fit.scale)), fit.scale)
        self.engine.half(
            self.entries.by_row, fit.U, fit.V, rejecting(fit.scale, self.ridge) if self.recipe.polish else fit.step
        )
        if not rescue or not self.engine.means.rank(fit.U):
            return replace(run, fit=fit)
        thin = self._is_thin(fit, True)
        usual = self._lines(fit, True).usual()
        moved += self._refit(fit, True, run.seed, thin=True) if thin else 0
        return replace(run, fit=fit, rescued=run.rescued + moved, usual=usual, thin=thin)

    def _is_thin(self, fit: Factorized, by_row: bool) -> bool:
        means, side = self.engine.means, self.entries.by_row if by_row else self.entries.by_column
        own_mean = means.rows if by_row else means.columns
        return is_thin(side, len(fit.V if by_row else fit.U), means.rank(fit.U), own_mean)

    def _lines(self, fit: Factorized, by_row: bool) -> RefitLines:
        """The rows (or columns) with their whole means: first means of a few entries may be far off."""
        means = self.engine.means
        side, own, other = (self.entries.by_row, fit.U, fit.V) if by_row else (self.entries.by_column, fit.V, fit.U)
        part, u, v, free = means.half(side, own, other, by_row)
        shift = np.zeros(len(u), u.dtype)
        if means.rows if by_row else means.columns:
            level = self.levels.rows if by_row else self.levels.columns
            part = replace(part, values=part.values + level[part.row_of()])
            shift = level / v[0, -1]
            u[:, -1] += shift
        return RefitLines(part, u, v, own, free, shift)

    def _refit(self, fit: Factorized, by_row: bool, seed: int, *, thin: bool) -> int:
        """Refit all thin rows (or columns), or those that are lost, in place; returns how many moved."""
        lines, rank = self._lines(fit, by_row), self.engine.means.rank(fit.U)
        if not rank:
            return 0
        side, u, v = lines.side, lines.factors, lines.others
        if thin:
            rows = thin_rows(side, u.shape[1])
        else:
            rows = lost_rows(inlier_shares(self.engine, side, u, v, fit.scale), side, rank)
        moved = refit_rows(side, rows, u, v, fit.scale, lines.usual(), seed) if rows.size else 0
        u[:, -1] -= lines.shift
        lines.target[:, lines.free] = u
        return moved


@dataclass(frozen=True, eq=False)
class FusedSweeps:
    """The step of a factorization: sweeps with the weights at the pace worked out inside them."""

    solver: Solver
    first_scale: float

    def __call__(self, lam: float, state: State[Factorized]) -> State[Factorized]:
        """One sweep at a pace."""
        solver = self.solver
        fit = state.model.copied()
        step = fit.step.at(lam=lam, eps=solver._eps(fit.scale))
        residuals = solver._sweep(fit, step, "path")
        scale = solver._scale(residuals)
        weights = step.relative_weight(residuals, solver.entries.sample[0])
        if np.mean(weights) < STARVING or scale > SPOILT * self.first_scale:
            raise DeadEnd(f"at lam = {lam:.4g} hardly any entry has weight (open the pace)", back_to_start=True)
        return State(replace(fit, step=step, scale=scale), step.loss(residuals), weights, 1)


def rejecting(scale: float, ridge: float) -> WeightedSolve:
    """Least squares without the outliers."""
    # L1 residuals of the noise's size weigh 1/scale in IRLS: the same ridge, in units of squared residuals
    return WeightedSolve(Hard(), (OUTLIER_Z * scale) ** 2, ridge * scale, quadratic=True)


def _unit(rule: Any, scale: float) -> float:
    """The unit in which a rule that is not free of scale can open from the noise to well above it."""
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
