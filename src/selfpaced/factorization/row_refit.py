"""Rows and columns that a fit has lost, refitted from random subsets of their entries.

Two cases. A row with far fewer inliers than usual gets the best of many exact fits to small subsets. In a matrix with
few entries per row and component, such a fit may explain most entries by a wild combination of components; there every
row is refitted with the distribution of the other rows as a prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..robust.scales import MAD_TO_SIGMA
from .engine import Engine
from .entries import Entries, Floats, Side

# a choice, made on development data.
INLIER = 4.0  # residuals within this many noise scales are inliers
STARVED = 0.7  # rows below this share of the median inlier share are refitted
DOUBTFUL = 0.85  # the same after the polish, when the noise scale is exact
CAP = 6.0  # residuals count at most this many noise scales when candidates are compared
BETTER = 0.99  # of the current cost: what a candidate has to reach to replace a row
REFINED = 5  # the best candidates, which are refined before they are compared with the current row
SUBSETS = 300  # random ones of a row's entries

MOST_SUBSETS = 1000  # cost
MOST_THIN = 200  # cost
FEW_CLEAN = 5.0  # a choice: subsets without a wrong entry to be expected, or rows that are not lost are left alone
LEAST_CLEAN, MOST_CLEAN = 0.35, 0.6  # a choice: what is believed of the share of clean entries in a bad row
ALL_SPOILT = 1e-6  # a choice: the chance that no subset is clean
MOST = 500  # cost: at most so many rows are refitted; beyond, it is the model that is wrong, not the rows

THIN = 12  # theory: entries per component below which an inlier share does not tell a wrong optimum
# Thin rows; measured by benchmarks/factorization.py, parts offsets and ratings.
MANY = 4.0  # times the other side's rows: then the components are sure, and it is the rows that are not
FEWEST = 2.5  # entries per factor of a row: with fewer, anything is explained and the noise scale says nothing
THIN_SUBSETS = 100  # random ones of a row's entries
THIN_REFINED = 8  # the best of them, which are refined
THIN_STEPS = 3  # of the refinement
NEAR = 3.5  # noise scales within which an entry counts in the refinement
GROSS = 6.0  # the cost of an entry that is not explained, a squared residual of 3.5 noise scales

USUAL = 4.0  # a choice: robust standard deviations within which rows are usual
FLAT = 1e-9  # numerical safety: of the largest variance, so that a component which no row has can be divided by
CHUNK = 1 << 20  # cost: numbers in the largest array at a time


def inlier_shares(engine: Engine, side: Side, U: Floats, V: Floats, scale: float) -> Floats:
    """The share of each row's entries within 4 noise scales; NaN for rows without entries."""
    shares = np.full(side.n_rows, np.nan)
    for start, stop in side.blocks():
        inside = np.abs(engine.residuals(side, U, V, start, stop)) < INLIER * scale
        below = np.concatenate([[0], np.cumsum(inside)])[side.indptr[start : stop + 1] - side.indptr[start]]
        counts = np.diff(side.indptr[start : stop + 1])
        np.divide(np.diff(below), counts, out=shares[start:stop], where=counts > 0)
    return shares


def starved_rows(shares: Floats, side: Side, rank: int, below: float, usual: float | None = None) -> Any:
    """Rows with too few inliers and enough entries to try again, worst first."""
    if np.isnan(shares).all():
        return np.empty(0, dtype=np.intp)
    usual = float(np.nanmedian(shares)) if usual is None else usual
    counts = side.counts()
    worst_first = np.argsort(shares, kind="stable")
    worst_first = worst_first[counts[worst_first] > rank]
    lost = shares[worst_first] < below * usual
    chosen = lost & (np.cumsum(lost) <= MOST)
    if below >= DOUBTFUL and usual**rank * MOST_SUBSETS >= FEW_CLEAN:
        thin = counts[worst_first] <= THIN * rank
        chosen |= thin & (np.cumsum(thin) <= MOST_THIN)
    return worst_first[chosen]


@np.errstate(invalid="ignore")  # some kernels of single precision say so of products that are finite
def refit_row(X: Floats, y: Floats, current: Floats, scale: float, rng: np.random.Generator) -> Floats | None:
    """The best of many exact fits to random subsets, or None if the current row is as good."""
    n, rank = X.shape
    size = float(np.mean(X * X))
    if not size > 0:  # factors of zeros determine no row
        return None
    # enough subsets for several clean ones, if as many entries are clean as the current row explains
    clean = min(max(float(np.mean(np.abs(X @ current - y) < INLIER * scale)), LEAST_CLEAN), MOST_CLEAN)
    count = int(min(MOST_SUBSETS, max(SUBSETS, math.log(ALL_SPOILT) / math.log1p(-(clean ** min(rank, 12))))))
    chosen = np.argpartition(rng.random((count, n)), rank - 1, axis=1)[:, :rank] if n <= 200 else None
    if chosen is None:  # collisions are rare and harmless in long rows
        chosen = rng.integers(0, n, (count, rank))
    subsets, targets = X[chosen], y[chosen]
    gram = np.einsum("kij,kil->kjl", subsets, subsets)
    gram[:, np.arange(rank), np.arange(rank)] += 1e-3 * size
    found = np.linalg.solve(gram, np.einsum("kij,ki->kj", subsets, targets)[:, :, None])[:, :, 0]
    best = np.argsort(_cost(X, y, found, scale))[:REFINED]
    candidates = np.vstack([current, *(_concentrate(X, y, found[k], scale) for k in best)])
    cost = _cost(X, y, candidates, scale)
    winner = int(np.argmin(cost))
    return candidates[winner] if cost[winner] < BETTER * cost[0] else None


def _cost(X: Floats, y: Floats, candidates: Floats, scale: float) -> Floats:
    """The absolute residuals of each candidate, cut off: what a row with outliers is assessed by."""
    return np.asarray(np.minimum(np.abs(candidates @ X.T - y), CAP * scale).sum(axis=1))


def _concentrate(X: Floats, y: Floats, row: Floats, scale: float, steps: int = 3) -> Floats:
    """Least squares on what is near, a few times: a subset's exact fit made as good as the row it may replace."""
    for _ in range(steps):
        near = np.abs(X @ row - y) < INLIER * scale
        if near.sum() <= row.size:
            break
        row = np.linalg.lstsq(X[near], y[near], rcond=None)[0]
    return row


def rescue_side(
    engine: Engine,
    side: Side,
    U: Floats,
    V: Floats,
    scale: float,
    seed: int,
    below: float = STARVED,
    usual: float | None = None,
    rank: int | None = None,
) -> int:
    """Refit the starved rows of U in place; returns how many changed. ``rank`` is that of V, unless means are in it."""
    changed = 0
    shares = inlier_shares(engine, side, U, V, scale)
    for i in starved_rows(shares, side, V.shape[1] if rank is None else rank, below, usual):
        part = slice(side.indptr[i], side.indptr[i + 1])
        # a stream per row: what happens to a row must not depend on the other rows of the batch
        found = refit_row(V[side.indices[part]], side.values[part], U[i], scale, np.random.default_rng(seed))
        if found is not None:
            U[i] = found
            changed += 1
    return changed


def rescue(
    engine: Engine, entries: Entries, U: Floats, V: Floats, scale: float, seed: int, below: float = STARVED
) -> int:
    """Refit starved rows, then starved columns, in place, with their means."""
    changed = 0
    for side, own, other, by_row in ((entries.by_row, U, V, True), (entries.by_column, V, U, False)):
        part, u, v, free = engine.means.half(side, own, other, by_row)
        if u.shape[1]:
            at, rank = seed if by_row else seed + 1, engine.means.rank(own)
            changed += rescue_side(engine, part, u, v, scale, at, below, rank=rank)
        if u is not own:
            own[:, free] = u
    return changed


@dataclass(frozen=True, eq=False)
class UsualRows:
    """Where the factors of usual rows lie.

    Attributes
    ----------
    centre : ndarray of shape (rank,)
    precision : ndarray of shape (rank, rank)
        The inverse of their covariance.
    """

    centre: Floats
    precision: Floats

    def less(self, mean: float) -> UsualRows:
        """The same with something taken off the last factor."""
        return replace(self, centre=np.append(self.centre[:-1], self.centre[-1] - mean))


def usual_rows(U: Floats, counts: Any) -> UsualRows:
    """Centre and precision of the rows that have entries, those far out left aside."""
    rows = U[counts > 0].astype(np.float64)
    off = np.abs(rows - np.median(rows, axis=0))
    near = rows[(off <= USUAL * MAD_TO_SIGMA * np.median(off, axis=0)).all(axis=1)]
    near = near if len(near) > 2 * U.shape[1] else rows
    spread = np.atleast_2d(np.cov(near.T)) if len(near) > 1 else np.eye(U.shape[1])
    spread[np.diag_indices_from(spread)] += FLAT * max(float(np.trace(spread)), np.finfo(float).tiny)
    return UsualRows(near.mean(axis=0), np.linalg.inv(spread))


def is_thin(side: Side, n_others: int, rank: int, own_mean: bool = False) -> bool:
    """Whether rows are many, and a usual one has few entries per component but more than it could always explain."""
    counts = side.counts()
    usual = float(np.median(counts[counts > 0]))
    return rank > 0 and side.n_rows > MANY * n_others and FEWEST * (rank + own_mean) <= usual <= THIN * rank


def refit_thin(side: Side, U: Floats, V: Floats, scale: float, usual: UsualRows, seed: int) -> int:
    """Refit every thin row of U in place; returns how many moved by a noise scale or more at one of their entries."""
    counts, rank = side.counts(), V.shape[1]
    moved = 0
    for count in np.unique(counts[(counts > 0) & (counts <= THIN * rank)]):
        # the same subsets for all rows of a length: what happens to a row must not depend on the others
        drawn = np.random.default_rng(seed).random((THIN_SUBSETS, count))
        kept = min(rank, count)
        chosen = np.zeros((THIN_SUBSETS, count))
        np.put_along_axis(chosen, np.argpartition(drawn, kept - 1, axis=1)[:, :kept], 1.0, axis=1)
        rows = np.flatnonzero(counts == count)
        for part in np.array_split(rows, -(-rows.size * THIN_SUBSETS * (count + rank * rank) // CHUNK)):
            at = side.indptr[part][:, None] + np.arange(count)
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

    def cost(rows: Floats) -> Floats:
        far = np.einsum("nki,ij,nkj->nk", rows, usual.precision, rows) / 2
        return np.asarray(np.minimum(off(rows) ** 2 / 2, GROSS).sum(axis=2) + far)

    def cheapest(rows: Floats, count: int) -> Floats:
        best = np.argsort(cost(rows), axis=1, kind="stable")[:, :count]
        return np.take_along_axis(rows, best[..., None], axis=1)

    start = solve(np.broadcast_to(chosen, (len(X), *chosen.shape)))
    nothing = np.zeros_like(current)
    rows = np.concatenate([current[:, None], nothing[:, None], cheapest(start, THIN_REFINED)], axis=1)
    for _ in range(THIN_STEPS):
        rows = solve((np.abs(off(rows)) < NEAR).astype(np.float64))
    return cheapest(rows, 1)[:, 0] + usual.centre
