"""Choice of rank, ridge and means by held-out entries, and what these say about the fit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..regularizers import get
from ..robust import tukey_loss
from ..selection import Gap, Trial, gap
from .engine import HELD_OUT_ENTRIES, NO_MEANS, Engine, Entries, Factors, Floats, Levels, Means, from_csr
from .residuals import THIN
from .solve import NEGLIGIBLE, Recipe, Solver
from .start import RIDGE_END, RIDGE_RANK, Centred, centred, lever, low_scale, reveal_rank

# Measured by benchmarks/factorization.py, parts offsets, quality, ratings and cost.
RIDGE_SHARES = (RIDGE_RANK, 0.1, 0.03, RIDGE_END)  # ridges compared, as shares of the bound
RANK_SWEEPS = 3  # per rank and ridge
FIRST_WIDTH = 12  # ranks looked at first; doubled while the best is not well inside
CLEAR = 2.0  # a singular value this many times the next one shows the rank
LARGE_REST = 0.12  # of what the means leave: more is left where components are lost, or where there are none
APART = 0.5  # of the means' usual error: so much two independent fits differ if one of them has lost the factors

WORTH = 2.0  # convention: standard errors by which components must be ahead of the means
PER_LINE = 0.4  # theory: components per entry of a usual row or column, with room for wrong entries
MOST_RANK = 64  # cost
LINE = 60.0  # cost: entries of a usual row or column of a large matrix that take part
ENTRIES_COMPARED = 40_000  # cost: entries that take part, if rows and columns keep enough of theirs
EXPLAINED_EXACTLY = 1e-3  # numerical safety: of the entries' spread; what is off by less is explained

RECOVERED, MEANS_ONLY, UNRELIABLE, NOT_CHECKED = "recovered", "means only", "unreliable", "not checked"


@dataclass(frozen=True, eq=False)
class Holdout:
    """Entries that are predicted, not fitted."""

    rows: Any
    columns: Any
    values: Floats

    def errors(self, levels: Levels, factors: Factors) -> Floats:
        """What the factors leave of them."""
        U, V = factors
        fitted = np.einsum("ij,ij->i", U[self.rows], V[self.columns])
        return np.asarray(self.values - levels.rows[self.rows] - levels.columns[self.columns] - fitted)


def hold_out(matrix: Any, sample_weight: Any, rng: np.random.Generator) -> tuple[Entries, Holdout]:
    """Entries to fit, and a random part to predict: 5 % of them, more of a small matrix, but at most 15 %."""
    size = matrix.data.size
    kept = np.ones(size, dtype=bool)
    kept[rng.permutation(size)[: int(min(max(0.05 * size, HELD_OUT_ENTRIES), 0.15 * size))]] = False
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    below = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
    rest = sp.csr_array((matrix.data[kept], matrix.indices[kept], below), shape=matrix.shape)
    weights = None if sample_weight is None else sample_weight[kept]
    return from_csr(rest, weights), Holdout(rows[~kept], matrix.indices[~kept], matrix.data[~kept])


def lines_of(matrix: Any, per_line: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows and columns, drawn by their entries, so many that a usual one keeps at least ``per_line`` of its own.

    If one side is kept whole, the other side alone has to supply enough entries.
    """
    counts = np.diff(matrix.indptr), np.bincount(matrix.indices, minlength=matrix.shape[1])
    usual = [max(float(np.median(count)), 1.0) for count in counts]
    wanted = max(per_line, math.sqrt(ENTRIES_COMPARED * usual[0] * usual[1] / matrix.data.size))
    shares = [wanted / across for across in reversed(usual)]
    if max(shares) >= 1:  # a narrow matrix: its short side is kept whole
        shares = [share if share >= 1 else max(share, ENTRIES_COMPARED / matrix.data.size) for share in shares]
    kept = []
    for count, share in zip(counts, shares, strict=True):
        if share >= 1 or matrix.data.size <= ENTRIES_COMPARED:
            kept.append(np.arange(count.size))
            continue
        size = math.ceil(np.count_nonzero(count) * share)
        kept.append(np.sort(rng.choice(count.size, size, replace=False, p=count / count.sum())))
    return kept[0], kept[1]


def thinned(matrix: Any, sample_weight: Any, rows: Any, columns: Any) -> tuple[Any, Any]:
    """The entries in some rows and columns, with their weights."""
    if rows.size == matrix.shape[0] and columns.size == matrix.shape[1]:
        return matrix, sample_weight
    numbered = sp.csr_array((np.arange(1, matrix.data.size + 1), matrix.indices, matrix.indptr), shape=matrix.shape)
    part = numbered[rows][:, columns]
    part.sort_indices()
    place = part.data - 1
    small = sp.csr_array((matrix.data[place], part.indices, part.indptr), shape=part.shape)
    return small, None if sample_weight is None else sample_weight[place]


# ------------------------------------------------------------------------------------------------- the search


@dataclass(frozen=True, eq=False)
class FormFit:
    """Rank, ridge, means and start of a factorization, fitted to the entries that were not held out."""

    rank: int
    ridge: float
    means: Means
    guarded: bool
    factors: Factors
    errors: Floats


@dataclass(eq=False)
class FormSearch:
    """Ranks, ridges and means compared on held-out entries."""

    engine: Engine  # the kernels, without means
    entries: Entries  # what is fitted and what is predicted
    holdout: Holdout
    rank: int | None  # None is to be found, as for the ridge
    ridge: float | None
    cap: int  # the largest rank
    rng: np.random.Generator  # of the starts
    guarded: bool = False  # whether starts leave out what is far off
    shown: set[int] = field(default_factory=set)  # ranks that showed in the singular values of a start

    def solver(self, centre: Centred, ridge: float = RIDGE_END) -> Solver:
        return Solver(centre, Recipe(get("mixture"), None, ridge, rescue=False))

    def centred(self, means: Means) -> Centred:
        return centred(replace(self.engine, means=means), self.entries, self.guarded)

    def attempt(self, centre: Centred, factors: Factors, ridge: float) -> FormFit:
        means = centre.engine.means
        errors = self.holdout.errors(centre.levels, factors)
        return FormFit(means.rank(factors[0]), ridge, means, self.guarded, factors, errors)

    def means_alone(self, centre: Centred) -> FormFit:
        """No components: the means that were taken off."""
        rows, columns = (np.zeros((n, 0), self.entries.dtype) for n in self.entries.shape)
        return self.attempt(centre, centre.engine.means.join(rows, columns, lever(centre.entries)), RIDGE_END)

    def wide(self, solver: Solver, width: int) -> tuple[Factors, int]:
        """A start with all ranks at once, and the rank that shows in its singular values."""
        U, V, values = solver.balanced(*solver.open_start(width, self.rng))
        hint = min(reveal_rank(values, values.size == min(self.entries.shape)), width)
        if hint < values.size and values[hint - 1] > CLEAR * values[hint]:
            self.shown.add(hint)
        return (U, V), hint

    def ranks(self, centre: Centred) -> list[FormFit]:
        """Every rank tried under every ridge; starts are widened as long as the best rank is not well inside."""
        solver, width = self.solver(centre), min(self.rank or FIRST_WIDTH, self.cap)
        tried: list[FormFit] = []
        while True:
            found = self._between(solver, centre, width, tried)
            tried += found
            best = self.best(tried)
            if self.rank or width >= self.cap or best.rank <= 2 * width / 3 or best not in found:
                return tried
            width = min(2 * width, self.cap)

    def _between(self, solver: Solver, centre: Centred, width: int, before: list[FormFit]) -> list[FormFit]:
        """The rank that shows in the singular values, its neighbours, then halving around the best.

        Where narrower starts were tried ``before``, smaller ranks are tried again only if they show.
        """
        wide, hint = self.wide(solver, width)
        if self.rank:
            return list(self._under_ridges(solver, centre, wide, self.rank))
        tried = [self.means_alone(centre)] if centre.engine.means.count else []
        least = max((attempt.rank for attempt in before), default=0)
        wanted = {max(hint - 1, 1), hint, min(hint + 1, width), min(2 * hint, width)}
        if hint <= least:
            wanted = {hint, width}
        while wanted:
            for rank in sorted(wanted):
                tried += self._under_ridges(solver, centre, wide, rank)
            done = sorted({least, *(attempt.rank for attempt in tried)})
            best = self.best(before + tried).rank
            around = [(a, b) for a, b in itertools.pairwise(done) if best in (a, b)]
            wanted = {(a + b) // 2 for a, b in around if b - a > 1} | ({width} if best == done[-1] < width else set())
        return tried

    def _under_ridges(self, solver: Solver, centre: Centred, wide: Factors, rank: int) -> Iterable[FormFit]:
        factors = solver.first_components(wide, rank)
        shares = RIDGE_SHARES if self.ridge is None else (*(s for s in RIDGE_SHARES if s > self.ridge), self.ridge)
        for above, share in zip((RIDGE_RANK, *shares), shares, strict=False):
            ridges = solver.bound * np.geomspace(above, max(share, 1e-9), RANK_SWEEPS + 1)[1:]
            factors = solver.descend((factors[0].copy(), factors[1].copy()), ridges)
            if self.ridge is None or share == self.ridge:
                yield self.attempt(centre, factors, share)

    def scores(self, attempts: list[FormFit]) -> list[Trial]:
        """Held-out entries' biweight losses, all in the unit of the best attempt's errors."""
        # an exact fit is not told apart from one that has not quite converged
        floor = max(NEGLIGIBLE * (float(np.mean(np.abs(self.holdout.values))) or 1.0), self.entries.grain)
        scale = max(min(low_scale(attempt.errors) for attempt in attempts), floor)
        losses = [tukey_loss(attempt.errors.astype(np.float64), scale) for attempt in attempts]
        return [Trial(math.inf, f"rank {a.rank}", -loss, fit=a) for a, loss in zip(attempts, losses, strict=True)]

    def best(self, attempts: list[FormFit]) -> FormFit:
        return max(self.scores(attempts), key=_mean).fit  # type: ignore[no-any-return]

    def pick(self, attempts: list[FormFit]) -> FormFit:
        """The best attempt, or the means alone if they are within a standard error of it.

        A rank that shows in the singular values is taken unless the held-out entries contradict it.
        """
        trials = self.scores(attempts)
        best = max(trials, key=_mean)
        alone = [t for t in trials if not t.fit.rank and gap(best, t).z <= 1.0]
        shown = [t for t in trials if t.fit.rank in self.shown and gap(best, t).z <= WORTH]
        return max(alone or shown or trials, key=_mean).fit  # type: ignore[no-any-return]

    def without_means(self, centre: Centred, start: FormFit) -> FormFit:
        """As many components without means: those found beside the means, or the largest of all, means included."""
        plain = self.centred(NO_MEANS)
        solver, means = self.solver(plain, start.ridge), centre.engine.means
        u, v, rows, columns = means.split(*start.factors)
        ones = np.ones((len(u), 1), u.dtype), np.ones((len(v), 1), u.dtype)
        whole = (
            np.hstack([u, (centre.levels.rows + rows)[:, None], ones[0]]),
            np.hstack([v, ones[1], (centre.levels.columns + columns)[:, None]]),
        )
        ridges = solver.bound * np.geomspace(RIDGE_SHARES[1], max(start.ridge, 1e-9), RANK_SWEEPS + 1)
        starts = (u, v), solver.first_components(solver.balanced(*whole)[:2], u.shape[1])
        fits = (solver.descend((left.copy(), right.copy()), ridges) for left, right in starts)
        return self.best([self.attempt(plain, factors, start.ridge) for factors in fits])

    def choose(self, means: tuple[Means, ...]) -> tuple[FormFit, FormFit, list[FormFit]]:
        """The chosen attempt, the means alone, and everything that was tried.

        Of two ``means`` the second are to be the simpler ones: they are taken if they are as good.
        """
        centre = self.centred(means[0])
        tried = self.ranks(centre)
        chosen = self.pick(tried)
        # under a strong ridge components cannot replace the means: it would shrink them
        if len(means) > 1 and chosen.rank and chosen.ridge < RIDGE_SHARES[1]:
            full, simple = self.scores([chosen, self.without_means(centre, chosen)])
            chosen = simple.fit if gap(full, simple).z <= 1.0 else chosen
        base = centre if means[0].count else self.centred(Means(True, True))
        return chosen, self.means_alone(base), tried

    def choose_start(self, means: tuple[Means, ...]) -> tuple[FormFit, FormFit, list[FormFit]]:
        """The same from a plain start and, where that leaves much, from a guarded one if it leaves less than half."""
        chosen, alone, tried = self.choose(means)
        left = low_scale(chosen.errors)
        guarded = replace(self, guarded=True, shown=set())
        if left <= LARGE_REST * low_scale(alone.errors) or not guarded.promises(means[0], left / 2):
            return chosen, alone, tried
        found, base, others = guarded.choose(means)
        plain, other = self.scores([chosen, found])
        better = low_scale(found.errors) <= left / 2 and gap(other, plain).z > WORTH
        return (found if better else chosen), self.best([alone, base]), (others if better else tried)

    def promises(self, means: Means, enough: float) -> bool:
        """Whether the rank that shows in the singular values, or all that is looked at, leaves so little."""
        centre = self.centred(means)
        solver, width = self.solver(centre), min(self.rank or FIRST_WIDTH, self.cap)
        wide, hint = self.wide(solver, width)
        found = [f for rank in {self.rank or hint, width} for f in self._under_ridges(solver, centre, wide, rank)]
        return min(low_scale(fit.errors) for fit in found) <= enough

    def converged(self, found: FormFit) -> FormFit:
        """The chosen form fitted as the final model will be, still without the held-out entries."""
        search = replace(self, guarded=found.guarded)
        centre = search.centred(found.means)
        run = search.solver(centre, found.ridge).follow((found.factors[0].copy(), found.factors[1].copy()), 0)
        if run.interrupted:  # there is no complete model yet
            raise KeyboardInterrupt
        fit = search.attempt(centre, (run.fit.U, run.fit.V), found.ridge)
        if self.rank is not None:
            return fit
        # without noise, spare components help a fit of few sweeps; here nothing is left for them
        u, v, *_ = found.means.split(*fit.factors)
        size = np.linalg.norm(u, axis=0) * np.linalg.norm(v, axis=0)
        return replace(fit, rank=int(np.count_nonzero(size > EXPLAINED_EXACTLY * size.max(initial=0.0))))


def _mean(trial: Trial) -> float:
    return float(np.mean(trial.scores))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- the choice


@dataclass(frozen=True, eq=False)
class FormChoice:
    """What the held-out entries say."""

    form: FormFit  # what is to be fitted, and the means alone
    alone: FormFit
    trials: tuple[Trial, ...]  # the means alone, then every rank with its best ridge
    index: int  # which of them was chosen
    gain: Gap  # by how much the chosen form is ahead of the means alone, in biweight loss
    places: tuple[Any, Any, Floats]  # rows and columns of the held-out entries, and their values
    at_cap: bool  # whether the rank is the largest that was looked for, although the entries may support a larger one
    room: int = 0  # components that all entries may support beyond it; 0 where all of them were looked at


def largest_rank(entries: Entries) -> int:
    """The largest rank that the entries can support."""
    usual = min(float(np.median(entries.by_row.counts())), float(np.median(entries.by_column.counts())))
    return int(max(1, min(min(entries.shape) - 1, PER_LINE * usual, MOST_RANK)))


def choose_form(
    engine: Engine,
    observed: tuple[Any, Any],
    form: tuple[int | None, float | None, tuple[Means, ...]],
    max_rank: int | None,
    rng: np.random.Generator,
) -> FormChoice:
    """Choose rank, ridge and means by held-out entries; of many entries by those in some rows and columns."""
    (matrix, weights), (rank, ridge, means) = observed, form
    per_line = max(LINE, THIN * (rank or 0))  # with fewer, means of rows and columns may stand in for lost components
    while True:
        rows, columns = lines_of(matrix, per_line, rng)
        whole = rows.size + columns.size == sum(matrix.shape)
        entries, holdout = hold_out(*thinned(matrix, weights, rows, columns), rng)
        cap = rank or min(largest_rank(entries), max_rank or MOST_RANK)
        search = FormSearch(engine, entries, holdout, rank, ridge, cap, rng)
        chosen, alone, tried = search.choose_start(means)
        reached = rank is None and chosen.rank == cap
        if not reached or cap == max_rank or whole:
            break
        per_line *= 2  # the cap may be that of the few entries
    alone = search.converged(alone)
    if chosen.rank and chosen.ridge < 1:
        chosen = search.converged(chosen)
    else:  # from the bound on, the ridge makes all components zero
        chosen = replace(chosen, errors=alone.errors) if chosen.rank else alone
    first, *trials, last = search.scores([alone, *(a for a in tried if a.rank), chosen])
    listed = [first]
    for number in sorted({trial.fit.rank for trial in trials} | {chosen.rank} - {0}):
        same = [trial for trial in trials if trial.fit.rank == number]
        listed.append(last if number == chosen.rank else max(same, key=_mean))
    gain, index = gap(last, first), listed.index(last) if last in listed else 0
    if rank is None and means[0].count and gain.z < WORTH:
        chosen, index = alone, 0
    places = rows[holdout.rows], columns[holdout.columns], holdout.values
    room = 0 if whole or not chosen.rank else (max_rank or MOST_RANK) - chosen.rank
    return FormChoice(chosen, alone, tuple(listed), index, gain, places, reached and cap in (max_rank, MOST_RANK), room)


# ------------------------------------------------------------------------------------------------- the quality


@dataclass(frozen=True)
class FitQuality:
    """What the held-out entries say about a fit."""

    status: str  # one of "recovered", "means only" and "unreliable"
    # median absolute error of the held-out entries, predicted by the factorization and by the means alone
    error: float
    means_error: float
    z: float  # standard errors by which the factorization is ahead
    cause: str = ""  # what makes a fit unreliable; empty otherwise

    def __str__(self) -> str:
        cause = f"; {self.cause}" if self.cause else ""
        errors = f"held-out error {self.error:.3g}, of the means alone {self.means_error:.3g}"
        return f"{self.status} ({errors}, {self.z:.1f} standard errors apart{cause})"


def fit_quality(choice: FormChoice, fitted: Floats) -> FitQuality:
    """Compare the converged held-out fit with the means, and with what the fit to all entries predicts there."""
    values, errors = choice.places[2], choice.form.errors
    spread = float(np.median(np.abs(values - np.median(values))))
    error, means_error = (float(np.median(np.abs(left))) for left in (errors, choice.alone.errors))
    figures = error, means_error, max(choice.gain.z, 0.0)
    if choice.form.rank == 0 and low_scale(errors) <= EXPLAINED_EXACTLY * spread:
        return FitQuality(RECOVERED, *figures)
    if choice.form.rank == 0 or choice.gain.z < WORTH:
        return FitQuality(MEANS_ONLY, *figures)
    apart = float(np.median(np.abs(values - errors - fitted)))
    if apart > APART * means_error:
        return FitQuality(UNRELIABLE, *figures, f"two fits differ by {apart:.3g}")
    return FitQuality(RECOVERED, *figures)
