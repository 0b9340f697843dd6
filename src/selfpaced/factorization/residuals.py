"""What residuals say: which rows are lost and refitted, how much the model knows of each, and which entries are errors.

A row (or column) is lost if it has far fewer inliers than usual. In a matrix with few entries per row and component any
row may be, because a wild combination of components explains most entries. Such rows are refitted from random subsets
of their entries, with the distribution of the other rows as a prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaln, ndtr

from ..assessment import OUTLIER_Z
from ..robust.scales import MAD_TO_SIGMA
from .engine import SCALE_ENTRIES, Engine, Floats, Side, WeightedSolve

# a choice, made on development data; benchmarks/factorization.py, part ablation, shows what refitting earns.
INLIER = 4.0  # noise scales within which a residual, and deviations within which a row, is usual
STARVED = 0.7  # of the median inlier share: rows below it are lost
THIN = 12  # entries per component up to which an inlier share does not tell a wrong optimum
SURE_SIDE = 4.0  # times the other side's rows: then the components are sure, and it is the rows that are not
ENTRIES_PER_FACTOR = 2.5  # of a row at least: with fewer, anything is explained and the noise scale says nothing

MOST_LOST = 500  # cost: beyond so many lost rows it is the model that is wrong
MOST_THIN = 200_000  # cost: entries of a matrix in which all rows of few entries are refitted; 1e7 took minutes
LONGEST = 2000  # cost: entries of a row that take part
SUBSETS = 1000  # cost: random ones of a row's entries at most
REFINED = 8  # cost: the best of them, which are refined
REFINEMENTS = 3  # cost: of a refinement
ROW_FOLDS = 5  # cost: parts of the rows, of which each is predicted by columns fitted to the others

DEGREES_OF_FREEDOM = (3.0, math.inf)  # theory: degrees of freedom; Student's t with heavy tails, and the normal
FEW_ERRORS = 0.05  # a choice: the share of errors that the EM algorithm starts at


@dataclass(frozen=True, eq=False)
class UsualRows:
    """Where the factors of usual rows lie."""

    centre: Floats
    precision: Floats  # the inverse of their covariance

    def less(self, mean: float) -> UsualRows:
        """The same with something taken off the last factor."""
        return replace(self, centre=np.append(self.centre[:-1], self.centre[-1] - mean))


def usual_rows(U: Floats, counts: Any) -> UsualRows:
    """Centre and precision of the rows that have entries, those far out left aside."""
    rows = U[counts > 0]
    rows = rows[:: max(rows.size // SCALE_ENTRIES, 1)].astype(np.float64)
    off = np.abs(rows - np.median(rows, axis=0))
    near = rows[(off <= INLIER * MAD_TO_SIGMA * np.median(off, axis=0)).all(axis=1)]
    near = near if len(near) > 2 * U.shape[1] else rows
    spread = np.atleast_2d(np.cov(near.T)) if len(near) > 1 else np.eye(U.shape[1])
    # a component that no row has could not be divided by
    spread[np.diag_indices_from(spread)] += 1e-9 * max(float(np.trace(spread)), np.finfo(float).tiny ** 0.5)
    return UsualRows(near.mean(axis=0), np.linalg.inv(spread))


def inlier_shares(engine: Engine, side: Side, U: Floats, V: Floats, scale: float) -> Floats:
    """The share of each row's entries within 4 noise scales; NaN for rows without entries."""
    shares = np.full(side.n_rows, np.nan)
    for start, stop in side.blocks():
        inside = np.abs(engine.residuals(side, U, V, start, stop)) < INLIER * scale
        below = np.concatenate([[0], np.cumsum(inside)])[side.indptr[start : stop + 1] - side.indptr[start]]
        counts = np.diff(side.indptr[start : stop + 1])
        np.divide(np.diff(below), counts, out=shares[start:stop], where=counts > 0)
    return shares


def lost_rows(shares: Floats, side: Side, rank: int, usual: float | None = None) -> Any:
    """Rows with too few inliers (``usual`` is the median share) and enough entries to try again, worst first."""
    usual = float(np.nanmedian(shares)) if usual is None else usual
    worst = np.argsort(shares, kind="stable")[:MOST_LOST]
    return worst[(side.counts()[worst] > rank) & (shares[worst] < STARVED * usual)]


def is_thin(side: Side, n_others: int, rank: int, own_mean: bool = False) -> bool:
    """Whether rows are many, and a usual one has few entries per component but more than it could always explain."""
    counts = side.counts()
    usual = float(np.median(counts[counts > 0]))
    return (
        rank > 0
        and side.values.size <= MOST_THIN
        and side.n_rows > SURE_SIDE * n_others
        and ENTRIES_PER_FACTOR * (rank + own_mean) <= usual <= THIN * rank
    )


def thin_rows(side: Side, rank: int) -> Any:
    """Rows with entries, but few of them per factor."""
    counts = side.counts()
    return np.flatnonzero((counts > 0) & (counts <= THIN * rank))


def refit_rows(side: Side, rows: Any, U: Floats, V: Floats, scale: float, usual: UsualRows, seed: int) -> int:
    """Refit some rows of U in place; returns how many moved by a noise scale or more at one of their entries."""
    counts, rank, moved = side.counts(), V.shape[1], 0
    # enough for a subset without errors if 60 % of the entries are right, but for one chance in a hundred
    subsets = int(min(SUBSETS, max(math.log(0.01) / math.log1p(-(0.6**rank)), 100)))
    for length in np.unique(counts[rows]):
        # the same subsets for all rows of a length: what happens to a row must not depend on the others
        used = np.arange(0, length, -(-length // LONGEST))
        count = used.size
        drawn = np.random.default_rng(seed).random((subsets, count))
        kept = min(rank, count)
        chosen = np.zeros((subsets, count))
        np.put_along_axis(chosen, np.argpartition(drawn, kept - 1, axis=1)[:, :kept], 1.0, axis=1)
        same = rows[counts[rows] == length]
        # in parts, so that no array has more than about a quarter of a million numbers
        parts = min(same.size, -(-same.size * subsets * (count + rank * rank) // (1 << 18)))
        for part in np.array_split(same, parts):
            at = side.indptr[part][:, None] + used
            X, y = V[side.indices[at]].astype(np.float64), side.values[at].astype(np.float64)
            before = U[part].astype(np.float64)
            found = _best(X, y, before, scale, usual, chosen)
            U[part] = found
            change = np.abs(np.einsum("nik,nk->ni", X, found - before)).max(axis=1)
            moved += int((change > scale).sum())
    return moved


def _best(X: Floats, y: Floats, current: Floats, scale: float, usual: UsualRows, chosen: Floats) -> Floats:
    """Of rows of one length: the candidates of the smallest cost, refined."""
    y = y - X @ usual.centre
    current = current - usual.centre
    squares = (X[:, :, :, None] * X[:, :, None, :]).reshape(*X.shape[:2], -1)

    def solve(inside: Floats) -> Floats:
        """The ridge solutions, one per set of entries."""
        rank = X.shape[2]
        gram = (inside @ squares).reshape(*inside.shape[:2], rank, rank) / scale**2 + usual.precision
        return np.asarray(np.linalg.solve(gram, ((inside * y[:, None]) @ X / scale**2)[..., None])[..., 0])

    def off(rows: Floats) -> Floats:
        return np.asarray((rows @ X.transpose(0, 2, 1) - y[:, None]) / scale)

    def cheapest(rows: Floats, count: int) -> Floats:
        far = np.einsum("nki,ij,nkj->nk", rows, usual.precision, rows)
        cost = np.minimum(off(rows) ** 2, OUTLIER_Z**2).sum(axis=2) + far
        best = np.argsort(cost, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(rows, best[..., None], axis=1)

    start = solve(np.broadcast_to(chosen, (len(X), *chosen.shape)))
    nothing = np.zeros_like(current)
    rows = np.concatenate([current[:, None], nothing[:, None], cheapest(start, REFINED)], axis=1)
    for _ in range(REFINEMENTS):
        rows = solve((np.abs(off(rows)) < OUTLIER_Z).astype(np.float64))
    return cheapest(rows, 1)[:, 0] + usual.centre


# ------------------------------------------------------------------------------------------------------- gains


@dataclass(frozen=True, eq=False)
class FittedLines:
    """Factors and means of the rows (or the columns) of a fitted matrix; means are zeros without ``own_mean``."""

    factors: Floats
    means: Floats
    own_mean: bool

    def usual(self, counts: Any) -> UsualRows:
        """Where the factors of usual lines lie, the mean last."""
        return usual_rows(np.hstack([self.factors, self.means[:, None]]) if self.own_mean else self.factors, counts)


def gains(side: Side, rows: FittedLines, columns: FittedLines, mean: float, scale: float, seed: int) -> Floats:
    """By how much the model predicts each row's entries better than the row's own mean does; NaN without entries.

    A residual does not tell a careless rater from an odd one: with as many components as a row has entries anything is
    explained. So every entry is predicted from the other entries of its row, by columns that were fitted to other rows.
    The unit is the squared error that own means leave of a usual entry, errors cut off at 3.5 noise scales: 0 is no
    better than the own mean, less than 0 is worse.
    """
    level, unit = mean + float(np.median(columns.means)), _unit(scale, side)
    own_usual = UsualRows(np.zeros(1), np.full((1, 1), unit**-2.0))  # the usual level counts as one more entry
    found, left, count = np.full(side.n_rows, np.nan), 0.0, 0
    for i, y, given, model in left_out_rows(side, rows, columns, mean, scale, seed):
        alone = left_out(np.ones((y.size, 1)), y - level, given, unit, own_usual)
        errors = np.minimum(np.abs([alone, model]), OUTLIER_Z * unit) ** 2
        found[i] = np.average(errors[0] - errors[1], weights=given)
        left, count = left + float(errors[0].sum()), count + y.size
    return np.asarray(found / (left / count)) if left > 0 else np.where(np.isnan(found), np.nan, 0.0)


def relative_gains(found: Floats) -> Floats:
    """Gains over the usual one, between 0 and 1; 1 where there are none, or where rows cannot be told apart by them."""
    usual = float(np.nanmedian(found))
    return np.asarray(np.clip(np.nan_to_num(found / usual, nan=1.0), 0.0, 1.0)) if usual > 0 else np.ones(found.size)


def odd_raters(side: Side, found: Floats, n_columns: int) -> bool:
    """Whether some column has twice as many rows of less than half the usual gain as others, and not by chance."""
    odd = (relative_gains(found) < 0.5)[side.row_of()]
    counts, odds = (np.bincount(side.indices, weight, n_columns) for weight in (None, odd))
    chance = stats.binom.sf(odds - 1, counts, odd.mean())
    unlike = odds > 2 * odd.mean() * counts
    return bool(chance[unlike].min(initial=1.0) * n_columns < ndtr(-OUTLIER_Z))


def left_out_rows(
    side: Side, rows: FittedLines, columns: FittedLines, mean: float, scale: float, seed: int
) -> Iterator[tuple[int, Floats, Floats, Floats]]:
    """Number, values, sample weights and prediction errors of every row that has entries, as :func:`gains` has them."""
    fold, unit = np.random.default_rng(seed).permutation(side.n_rows) % ROW_FOLDS, _unit(scale, side)
    usual = rows.usual(side.counts())
    for part in range(ROW_FOLDS):
        factors, means = _columns_of_others(side, rows, columns, mean, unit, fold != part)
        for i in np.flatnonzero((fold == part) & (side.counts() > 0)).tolist():
            at = slice(side.indptr[i], side.indptr[i + 1])
            y, across = side.values[at].astype(np.float64), side.indices[at]
            given = side.sample_weight[at] if side.sample_weight.size else np.ones(y.size)
            X = _design(factors[across], rows.own_mean)
            yield i, y, given, left_out(X, y - mean - means[across], given, unit, usual)


def _unit(scale: float, side: Side) -> float:
    return max(scale, float(np.finfo(side.values.dtype).tiny))


def left_out(X: Floats, y: Floats, given: Floats, scale: float, usual: UsualRows) -> Floats:
    """What is left of each entry if it is predicted from the others, by a robust fit with what is usual as a prior."""
    found, weight, inverse = _solve(X, y, given, scale, usual)
    leverage = weight * np.einsum("ij,jk,ik->i", X, inverse, X)
    return np.asarray((y - X @ found) / np.maximum(1 - leverage, np.finfo(float).eps))


def _solve(X: Floats, y: Floats, given: Floats, scale: float, usual: UsualRows) -> tuple[Floats, Floats, Floats]:
    """Factors of one line by Huber's weights, the weights of its entries and the inverse of their moments."""
    found = usual.centre
    for _ in range(REFINEMENTS):
        far = np.abs(y - X @ found) / (1.345 * scale)
        weight = given / np.maximum(far, 1.0) / scale**2
        inverse = np.linalg.inv((X * weight[:, None]).T @ X + usual.precision)
        found = inverse @ (X.T @ (weight * y) + usual.precision @ usual.centre)
    return found, weight, inverse


def _design(factors: Floats, own_mean: bool) -> Floats:
    return np.hstack([factors, np.ones((len(factors), 1))]) if own_mean else factors


def _columns_of_others(
    side: Side, rows: FittedLines, columns: FittedLines, mean: float, scale: float, used: Any
) -> tuple[Floats, Floats]:
    """Factors and means of the columns, fitted to some rows only; those that no such row has are usual ones."""
    i = side.row_of()
    kept = np.flatnonzero(used[i])
    kept = kept[np.argsort(side.indices[kept], kind="stable")]
    i, j = i[kept], side.indices[kept]
    y = side.values[kept] - mean - rows.means[i]
    given = side.sample_weight[kept] if side.sample_weight.size else np.ones(kept.size)
    n, rank = columns.factors.shape
    usual = columns.usual(np.bincount(side.indices, minlength=n))
    ends = np.searchsorted(j, np.arange(n + 1))
    found = np.tile(usual.centre, (n, 1))
    for column in np.flatnonzero(np.diff(ends)):
        at = slice(ends[column], ends[column + 1])
        X = _design(rows.factors[i[at]], columns.own_mean)
        found[column] = _solve(X, y[at], given[at], scale, usual)[0]
    return found[:, :rank], found[:, rank] if columns.own_mean else np.zeros(n)


# ------------------------------------------------------------------------------------------------------- errors


@dataclass(frozen=True)
class CellErrors:
    """A mixture for residuals: Student's t (or the normal) for right entries, a uniform density for errors.

    A model that leaves structure in its residuals makes them heavy-tailed. With a normal core that misfit would be
    taken for errors; a t core has room for it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> residuals = np.concatenate([rng.normal(size=950), rng.uniform(-50, 50, 50)])
    >>> found = fit_cell_errors(residuals)
    >>> bool(0.03 < found.share < 0.06), bool(3 < found.beyond < 6)
    (True, True)
    """

    df: float  # degrees of freedom of the core; infinite is the normal
    scale: float  # scale of the core
    share: float  # share of errors
    least: float  # errors are uniform in size between these two
    reach: float

    def log_core(self, residuals: Floats) -> Floats:
        """Log density of right entries."""
        z2 = np.square(residuals / self.scale, dtype=np.float64)
        if math.isinf(self.df):
            return np.asarray(-z2 / 2 - math.log(self.scale * math.sqrt(2 * math.pi)))
        half = (self.df + 1) / 2
        norm = gammaln(half) - gammaln(self.df / 2) - math.log(self.scale * math.sqrt(self.df * math.pi))
        return np.asarray(norm - half * np.log1p(z2 / self.df))

    @property
    def log_errors(self) -> float:
        """Log of the share of errors times their density."""
        width = max(self.reach - self.least, self.scale)
        return math.log(self.share) - math.log(2 * width) if self.share > 0 else -math.inf

    def probability(self, residuals: Floats) -> Floats:
        """Probability that each entry is an error."""
        odds = self.log_core(residuals) + math.log1p(-self.share) - self.log_errors
        found = 1 / (1 + np.exp(np.clip(odds, -700, 700)))
        return np.asarray(np.where(np.abs(residuals) > self.least, found, 0.0))

    @property
    def beyond(self) -> float:
        """The size from which a residual is more probably an error than not; infinite if there is none."""
        drop = float(self.log_core(np.zeros(1))[0]) + math.log1p(-self.share) - self.log_errors
        if math.isinf(drop):
            return math.inf
        wide = 2 * drop if math.isinf(self.df) else self.df * math.expm1(drop * 2 / (self.df + 1))
        return max(self.scale * math.sqrt(max(wide, 0.0)), self.least)

    @property
    def look(self) -> float:
        """The size from which a residual is as rare among right entries as one beyond 3.5 sigma of a normal."""
        return float(self.scale * stats.t.isf(ndtr(-OUTLIER_Z), self.df))


def fit_cell_errors(residuals: Floats, floor: float = 0.0, least: float = 0.0) -> CellErrors:
    """The mixture of largest likelihood over both cores.

    Parameters
    ----------
    residuals : ndarray
        Given less expected values.
    floor : float
        The smallest scale of the core.
    least : float
        The smallest error.
    """
    size = np.abs(residuals, dtype=np.float64)
    reach = max(float(size.max(initial=0.0)), least)
    floor = max(floor, float(np.finfo(np.float64).eps) * reach, float(np.finfo(np.float64).tiny))
    fits = [_expect_maximise(size, CellErrors(df, floor, FEW_ERRORS, least, reach), floor) for df in DEGREES_OF_FREEDOM]
    return max(fits, key=lambda fit: fit[0])[1]


def _expect_maximise(size: Floats, start: CellErrors, floor: float) -> tuple[float, CellErrors]:
    """Log likelihood and mixture after the EM algorithm, from the lower quartile."""
    now = replace(start, scale=max(float(np.quantile(size, 0.25) / stats.t.isf(0.375, start.df)), floor))
    for _ in range(50):
        wrong = now.probability(size)
        z2 = np.square(size / now.scale)
        weight = (1 - wrong) * (1.0 if math.isinf(now.df) else (now.df + 1) / (now.df + z2))
        variance = float((weight * size**2).sum() / max(float((1 - wrong).sum()), 1.0))
        share = min(float(wrong.mean()), 0.5)
        before, now = now.scale, replace(now, scale=max(math.sqrt(variance), floor), share=share)
        if share < 1 / size.size or abs(now.scale - before) <= 1e-4 * before:
            break
    mixed = np.log1p(-now.share) + now.log_core(size)
    return float(np.where(size > now.least, np.logaddexp(mixed, now.log_errors), mixed).sum()), now


def about_the_usual(level: Floats, cold: Any) -> tuple[Floats, float]:
    """Means as differences from their median, zero where there is no entry; and the median."""
    usual = float(np.median(np.delete(level, cold)))
    level = np.asarray(level - level.dtype.type(usual))
    level[cold] = 0.0
    return level, usual


def weight_blocks(step: WeightedSolve, side: Side, residuals: Floats) -> Iterator[tuple[int, int, slice, Floats]]:
    """Relative weights of the entries of some rows at a time: a rule may need several temporaries."""
    whole = step.relative_weight(residuals, side.row_of()) if step.grouped else None
    for start, stop in side.blocks():
        part = slice(side.indptr[start], side.indptr[stop])
        yield start, stop, part, step.relative_weight(residuals[part]) if whole is None else whole[part]


def entry_weights(step: WeightedSolve, side: Side, residuals: Floats) -> Floats:
    """Relative weights of all entries."""
    weights = np.empty_like(residuals)
    for *_, part, own in weight_blocks(step, side, residuals):
        weights[part] = own
    return weights


def line_means(step: WeightedSolve, side: Side, residuals: Floats, n_columns: int) -> tuple[Floats, Floats]:
    """The mean weight of every row and of every column; NaN where there is no entry."""
    means, total, count = np.full(side.n_rows, np.nan), np.zeros(n_columns), np.zeros(n_columns)
    for start, stop, part, own in weight_blocks(step, side, residuals):
        rows = np.diff(side.indptr[start : stop + 1])
        summed = np.bincount(side.row_of(start, stop) - start, own, minlength=stop - start)
        np.divide(summed, rows, out=means[start:stop], where=rows > 0)
        total += np.bincount(side.indices[part], own, minlength=n_columns)
        count += np.bincount(side.indices[part], minlength=n_columns)
    return means, np.divide(total, count, out=np.full(n_columns, np.nan), where=count > 0)


def beyond(residuals: Floats, least: float) -> Any:
    """Which residuals are larger than ``least``."""
    far = residuals > least
    far |= residuals < -least
    return far


def outlier_table(side: Side, residuals: Floats, weights: Floats, least: float, labels: tuple[Any, Any]) -> Any:
    """The entries farther off than ``least``, most suspicious first, by their labels if there are any."""
    found = np.flatnonzero(beyond(residuals, least))
    found = found[np.argsort(-np.abs(residuals[found]))]
    real = residuals.dtype
    types = [np.int32 if given is None else given.dtype for given in labels]
    kinds = [("row", types[0]), ("column", types[1]), ("value", real), ("expected", real), ("weight", real)]
    out = np.empty(found.size, dtype=kinds)
    places = np.searchsorted(side.indptr, found, side="right") - 1, side.indices[found]
    named = (at if given is None else given[at] for at, given in zip(places, labels, strict=True))
    fields = (*named, side.values[found], side.values[found] - residuals[found], weights[found])
    for name, field in zip(out.dtype.names or (), fields, strict=True):
        out[name] = field
    return out
