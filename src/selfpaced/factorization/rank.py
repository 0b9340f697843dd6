"""Choice of rank, ridge and means by held-out entries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..regularizers import get
from ..selection import Gap, Trial, gap
from .engine import Engine
from .entries import Entries, Floats
from .holdout import Holdout, hold_out, lines_of, thinned
from .means import NO_MEANS, Means
from .row_refit import INLIER
from .solve import NEGLIGIBLE, Recipe, Solver
from .start import RIDGE_END, RIDGE_RANK, Centred, Factors, centred, lever, low_scale, reveal_rank, ridge_bound

# Measured by benchmarks/factorization.py, parts offsets, quality, ratings and cost.
SHARES = (RIDGE_RANK, 0.1, 0.03, RIDGE_END)  # ridges compared, as shares of the bound
OPEN_SWEEPS = 16  # under a strong ridge, all ranks at once
RANK_SWEEPS = 3  # per rank and ridge
FORM_SWEEPS = 4  # for the factors to do without means, per ridge
CLOSE = 0.3  # standard errors within which the smaller rank is taken; at 1 ranks come out too small
FIRST_WIDTH = 12  # ranks looked at first; doubled while the best is not well inside
INSIDE = 0.7  # of the width
CLEAR = 2.0  # a singular value this many times the next one shows the rank
MUCH = 0.12  # of what the means leave: more is left where components are lost, or where there are none
FAR_LESS = 0.5  # of what a plain start leaves: both starts end alike where neither is lost

TUKEY = 4.685  # theory: the biweight's constant for 95 % efficiency
MOST_RANK = 64  # cost
FLAT = 1e-9  # numerical safety: the share that stands for no ridge at all
PER_LINE = 0.4  # theory: components per entry of a usual row or column, with room for wrong entries
WORTH = 2.0  # convention: standard errors by which components must be ahead of the means
LINE = 60.0  # cost: entries of a usual row or column among those
HALF = 0.5  # the paper: a path starts at half the entries
POLISH = 8  # convention: the estimator's own default
BELOW = 0.75  # a choice: of the share of right entries, where that is less
LEAST = 200  # a choice: with fewer entries nothing is held out


@dataclass(frozen=True)
class Form:
    """What a factorization looks like before it is fitted, and how it starts."""

    rank: int
    ridge: float
    means: Means
    guarded: bool = False


@dataclass(frozen=True, eq=False)
class FormFit:
    """A form as it was fitted to the entries that were not held out."""

    form: Form
    factors: Factors
    errors: Floats


@dataclass(frozen=True, eq=False)
class FormChoice:
    """What the held-out entries say.

    Attributes
    ----------
    form : Form
        What is to be fitted.
    trials : tuple of Trial
        The means alone, then every rank with its best ridge.
    index : int
        Which of them was chosen.
    gain : Gap
        By how much the chosen form is ahead of the means alone, in biweight loss.
    errors : ndarray
        What it leaves of the held-out entries.
    places : tuple of ndarray
        Rows and columns of the held-out entries, and their values.
    at_cap : bool
        Whether the rank is the largest that was looked for, although the entries may support a larger one.
    room : int
        Components that all entries may support beyond it; 0 where all of them were looked at.
    """

    form: Form
    trials: tuple[Trial, ...]
    index: int
    gain: Gap
    errors: Floats
    places: tuple[Any, Any, Floats]
    at_cap: bool
    room: int = 0

    @property
    def fraction(self) -> float:
        """The mean weight to begin with: below the share of the entries that are right."""
        if not self.form.guarded:
            return HALF
        right = float(np.mean(np.abs(self.errors) < INLIER * low_scale(self.errors)))
        return min(HALF, BELOW * right)


def largest_rank(entries: Entries) -> int:
    """The largest rank that the entries can support."""
    usual = min(float(np.median(entries.by_row.counts())), float(np.median(entries.by_column.counts())))
    return int(max(1, min(min(entries.shape) - 1, PER_LINE * usual, MOST_RANK)))


def tukey(errors: Floats, scale: float) -> Floats:
    """The biweight loss, 1 for what is far off."""
    inside = np.clip(1 - (errors.astype(np.float64) / (TUKEY * scale)) ** 2, 0, None)
    return np.asarray(1 - inside**3)


@dataclass(eq=False)
class FormSearch:
    """Ranks, ridges and means compared on held-out entries.

    Attributes
    ----------
    engine : Engine
        The kernels, without means.
    entries, holdout : Entries, Holdout
        What is fitted and what is predicted.
    rank, ridge : number or None
        None is to be found.
    cap : int
        The largest rank.
    tick : callable
        Called after every sweep.
    rng : numpy.random.Generator
        Of the starts.
    guarded : bool
        Whether starts leave out what is far off.
    shown : set of int
        Ranks that showed in the singular values of a start.
    """

    engine: Engine
    entries: Entries
    holdout: Holdout
    rank: int | None
    ridge: float | None
    cap: int
    tick: Callable[[str], None]
    rng: np.random.Generator
    guarded: bool = False
    shown: set[int] = field(default_factory=set)

    def solver(self, centre: Centred, ridge: float = RIDGE_END, polish: int = 0) -> Solver:
        recipe = Recipe(get("mixture"), None, ridge, rescue=False, polish=polish)
        bound = ridge_bound(centre.entries, cut=centre.cut)
        return Solver(centre.engine, centre.entries, recipe, bound, self.tick, cut=centre.cut)

    def centred(self, means: Means) -> Centred:
        return centred(replace(self.engine, means=means), self.entries, self.guarded)

    def attempt(self, centre: Centred, factors: Factors, ridge: float) -> FormFit:
        means = centre.engine.means
        errors = self.holdout.errors(centre.levels, factors)
        return FormFit(Form(means.rank(factors[0]), ridge, means, self.guarded), factors, errors)

    def means_alone(self, centre: Centred) -> FormFit:
        """No components: the means that were taken off."""
        rows, columns = (np.zeros((n, 0), self.entries.dtype) for n in self.entries.shape)
        return self.attempt(centre, centre.engine.means.join(rows, columns, lever(centre.entries)), RIDGE_END)

    # --------------------------------------------------------------------------------------------- the rank

    def ranks(self, centre: Centred) -> list[FormFit]:
        """Every rank tried under every ridge; starts are widened as long as the best rank is not well inside."""
        solver = self.solver(centre)
        width = min(self.rank or FIRST_WIDTH, self.cap)
        tried: list[FormFit] = []
        while True:
            wide = solver.open_start(width, self.rng, OPEN_SWEEPS)
            U, V, values = solver.balanced(*wide)
            found = self._between(solver, centre, (U, V), values, width, tried)
            tried += found
            best = self.best(tried)
            if self.rank or width >= self.cap or best.form.rank <= INSIDE * width or best not in found:
                return tried
            width = min(2 * width, self.cap)

    def _between(
        self, solver: Solver, centre: Centred, wide: Factors, values: Floats, width: int, before: list[FormFit]
    ) -> list[FormFit]:
        """The rank that shows in the singular values, its neighbours, then halving around the best.

        Where narrower starts were tried ``before``, smaller ranks are tried again only if they show.
        """
        tried: list[FormFit] = []
        least = max((attempt.form.rank for attempt in before), default=0)
        if self.rank:
            return list(self._under_ridges(solver, centre, wide, self.rank))
        if centre.engine.means.count:
            tried.append(self.means_alone(centre))
        hint = min(reveal_rank(values, values.size == min(self.entries.shape)), width)
        if hint < values.size and values[hint - 1] > CLEAR * values[hint]:
            self.shown.add(hint)
        wanted = {max(hint - 1, 1), hint, min(hint + 1, width), min(2 * hint, width)}
        if hint <= least:
            wanted = {hint, width}
        while wanted:
            for rank in sorted(wanted):
                tried += self._under_ridges(solver, centre, wide, rank)
            done = sorted({least, *(attempt.form.rank for attempt in tried)})
            best = self.best(before + tried).form.rank
            around = [(a, b) for a, b in itertools.pairwise(done) if best in (a, b)]
            wanted = {(a + b) // 2 for a, b in around if b - a > 1} | ({width} if best == done[-1] < width else set())
        return tried

    def _under_ridges(self, solver: Solver, centre: Centred, wide: Factors, rank: int) -> Iterable[FormFit]:
        factors = solver.first_components(wide, rank)
        shares = SHARES if self.ridge is None else (*(s for s in SHARES if s > self.ridge), self.ridge)
        for above, share in zip((RIDGE_RANK, *shares), shares, strict=False):
            ridges = solver.bound * np.geomspace(above, max(share, FLAT), RANK_SWEEPS + 1)[1:]
            factors = solver.descend((factors[0].copy(), factors[1].copy()), ridges)
            if self.ridge is None or share == self.ridge:
                yield self.attempt(centre, factors, share)

    def scores(self, attempts: list[FormFit]) -> list[Trial]:
        """Held-out entries' biweight losses, all in the unit of the best attempt's errors."""
        # an exact fit is not told apart from one that has not quite converged
        floor = max(NEGLIGIBLE * (float(np.mean(np.abs(self.holdout.values))) or 1.0), self.entries.grain)
        scale = max(min(low_scale(attempt.errors) for attempt in attempts), floor)
        return [Trial(math.inf, f"rank {a.form.rank}", -tukey(a.errors, scale), fit=a) for a in attempts]

    def best(self, attempts: list[FormFit]) -> FormFit:
        trials = self.scores(attempts)
        return max(trials, key=_mean).fit  # type: ignore[no-any-return]

    def pick(self, attempts: list[FormFit]) -> FormFit:
        """The smallest rank that is as good as the best, and there the smallest ridge.

        A rank that shows in the singular values is taken unless the held-out entries contradict it.
        """
        trials = self.scores(attempts)
        best = max(trials, key=_mean)

        def close(trial: Trial) -> bool:
            return trial is best or gap(best, trial).z <= (CLOSE if trial.fit.form.rank else 1.0)

        near = [trial for trial in trials if close(trial)]
        rank = min(trial.fit.form.rank for trial in near)
        possible = [t for t in trials if t.fit.form.rank in self.shown and gap(best, t).z <= WORTH]
        if rank and possible:
            near, rank = possible, max(possible, key=_mean).fit.form.rank
        same = [trial for trial in near if trial.fit.form.rank == rank]
        if best.fit.form.ridge >= SHARES[1]:  # the ridge is what regularizes
            return max(same, key=_mean).fit  # type: ignore[no-any-return]
        return min(same, key=lambda trial: trial.fit.form.ridge).fit  # type: ignore[no-any-return]

    # -------------------------------------------------------------------------------------------- the forms

    def without_means(self, centre: Centred, start: FormFit) -> FormFit:
        """As many components without means: those found beside the means, or the largest of all, means included."""
        plain = self.centred(NO_MEANS)
        solver, means = self.solver(plain, start.form.ridge), centre.engine.means
        u, v, rows, columns = means.split(*start.factors)
        ones = np.ones((len(u), 1), u.dtype), np.ones((len(v), 1), u.dtype)
        whole = (
            np.hstack([u, (centre.levels.rows + rows)[:, None], ones[0]]),
            np.hstack([v, ones[1], (centre.levels.columns + columns)[:, None]]),
        )
        ridges = solver.bound * np.geomspace(SHARES[1], max(start.form.ridge, FLAT), FORM_SWEEPS)
        starts = (u, v), solver.first_components(solver.balanced(*whole)[:2], u.shape[1])
        fits = (solver.descend((left.copy(), right.copy()), ridges) for left, right in starts)
        return self.best([self.attempt(plain, factors, start.form.ridge) for factors in fits])

    def choose(self, means: tuple[Means, ...]) -> tuple[FormFit, FormFit, list[FormFit]]:
        """The chosen attempt, the means alone, and everything that was tried.

        Of two ``means`` the second are to be the simpler ones: they are taken if they are as good.
        """
        centre = self.centred(means[0])
        tried = self.ranks(centre)
        chosen = self.pick(tried)
        base = centre
        if not means[0].count:
            base = self.centred(Means(True, True))
        # under a strong ridge components cannot replace the means: it would shrink them
        if len(means) > 1 and chosen.form.rank and chosen.form.ridge < SHARES[1]:
            plain = self.without_means(centre, chosen)
            full, simple = self.scores([chosen, plain])
            if gap(full, simple).z <= 1.0:
                chosen = plain
        return chosen, self.means_alone(base), tried

    def choose_start(self, means: tuple[Means, ...]) -> tuple[FormFit, FormFit, list[FormFit]]:
        """The same from a plain start and, where that leaves much, from a guarded one, which has to leave far less."""
        chosen, alone, tried = self.choose(means)
        enough = FAR_LESS * low_scale(chosen.errors)
        guarded = replace(self, guarded=True, shown=set())
        if low_scale(chosen.errors) <= MUCH * low_scale(alone.errors) or not guarded.promises(means[0], enough):
            return chosen, alone, tried
        found, base, others = guarded.choose(means)
        plain, other = self.scores([chosen, found])
        better = low_scale(found.errors) <= enough and gap(other, plain).z > WORTH
        return (found if better else chosen), self.best([alone, base]), (others if better else tried)

    def converged(self, found: FormFit) -> FormFit:
        """The chosen form fitted as the final model will be, still without the held-out entries."""
        search = replace(self, guarded=found.form.guarded)
        centre = search.centred(found.form.means)
        solver = search.solver(centre, found.form.ridge, polish=POLISH)
        run = solver.follow((found.factors[0].copy(), found.factors[1].copy()), 0)
        if run.interrupted:  # there is no complete model yet
            raise KeyboardInterrupt
        return search.attempt(centre, (run.fit.U, run.fit.V), found.form.ridge)

    def promises(self, means: Means, enough: float) -> bool:
        """Whether the rank that shows in the singular values, or all that is looked at, leaves so little."""
        centre = self.centred(means)
        solver = self.solver(centre)
        width = min(self.rank or FIRST_WIDTH, self.cap)
        U, V, values = solver.balanced(*solver.open_start(width, self.rng, OPEN_SWEEPS))
        hint = self.rank or min(reveal_rank(values, values.size == min(self.entries.shape)), width)
        found = [f for rank in {hint, width} for f in self._under_ridges(solver, centre, (U, V), rank)]
        return min(low_scale(fit.errors) for fit in found) <= enough


def choose_form(
    engine: Engine,
    observed: tuple[Any, Any],
    form: tuple[int | None, float | None, tuple[Means, ...]],
    max_rank: int | None,
    tick: Callable[[str], None],
    rng: np.random.Generator,
) -> FormChoice:
    """Choose rank, ridge and means by held-out entries; of many entries by those in some rows and columns."""
    (matrix, weights), (rank, ridge, means) = observed, form
    per_line = LINE
    while True:
        rows, columns = lines_of(matrix, per_line, rng)
        entries, holdout = hold_out(*thinned(matrix, weights, rows, columns), rng)
        cap = min(largest_rank(entries), max_rank or MOST_RANK)
        search = FormSearch(engine, entries, holdout, rank, ridge, cap, tick, rng)
        chosen, alone, tried = search.choose_start(means)
        reached = rank is None and chosen.form.rank == cap
        if not reached or cap == max_rank or rows.size + columns.size == sum(matrix.shape):
            break
        per_line *= 2  # the cap may be that of the few entries
    places = rows[holdout.rows], columns[holdout.columns], holdout.values
    alone = search.converged(alone)
    if chosen.form.rank and chosen.form.ridge < 1:
        chosen = search.converged(chosen)
    else:  # from the bound on, the ridge makes all components zero
        chosen = replace(alone, form=chosen.form) if chosen.form.rank else alone
    first, *trials = search.scores([alone, *(a for a in tried if a.form.rank), chosen])
    last = trials.pop()
    listed = [first]
    for number in sorted({trial.fit.form.rank for trial in trials}):
        same = [trial for trial in trials if trial.fit.form.rank == number]
        listed.append(last if number == chosen.form.rank else max(same, key=_mean))
    gain, index = gap(last, first), listed.index(last) if last in listed else 0
    if rank is None and means[0].count and gain.z < WORTH:
        chosen, index = alone, 0
    at_cap = reached and cap in (max_rank, MOST_RANK)
    whole = rows.size + columns.size == sum(matrix.shape)
    room = 0 if whole or not chosen.form.rank else (max_rank or MOST_RANK) - chosen.form.rank
    return FormChoice(chosen.form, tuple(listed), index, gain, chosen.errors, places, at_cap, room)


def _mean(trial: Trial) -> float:
    return float(np.mean(trial.scores))  # type: ignore[arg-type]
