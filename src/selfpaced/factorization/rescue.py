"""Rows and columns that a fit has lost, refitted from random subsets of their entries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .engine import Engine
from .entries import Entries, Floats, Side

INLIER = 4.0  # residuals within this many noise scales are inliers
STARVED = 0.7  # rows below this share of the median inlier share are refitted
DOUBTFUL = 0.85  # the same after the polish, when the noise scale is exact
THIN = 12  # then also rows with fewer entries per component: their inlier share does not tell a wrong optimum
MOST_THIN = 200
CAP = 6.0  # residuals count at most this many noise scales when candidates are compared
BETTER = 0.95  # of the current cost: what a candidate has to reach to replace a row
SUBSETS = 300
MOST = 500  # at most so many rows are refitted: beyond, it is the model that is wrong, not the rows


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
    if below >= DOUBTFUL:
        thin = counts[worst_first] <= THIN * rank
        chosen |= thin & (np.cumsum(thin) <= MOST_THIN)
    return worst_first[chosen]


def refit_row(X: Floats, y: Floats, current: Floats, scale: float, rng: np.random.Generator) -> Floats | None:
    """The best of many exact fits to random subsets, or None if the current row is as good."""
    n, rank = X.shape
    # enough subsets for one clean one, at 60 % clean entries, with probability 0.95
    count = int(min(1000, max(SUBSETS, math.log(0.05) / math.log1p(-(0.6 ** min(rank, 12))))))
    chosen = np.argpartition(rng.random((count, n)), rank - 1, axis=1)[:, :rank] if n <= 200 else None
    if chosen is None:  # collisions are rare and harmless in long rows
        chosen = rng.integers(0, n, (count, rank))
    subsets, targets = X[chosen], y[chosen]
    gram = np.einsum("kij,kil->kjl", subsets, subsets)
    gram[:, np.arange(rank), np.arange(rank)] += 1e-3 * np.mean(X * X)
    found = np.linalg.solve(gram, np.einsum("kij,ki->kj", subsets, targets)[:, :, None])[:, :, 0]
    candidates = np.vstack([current, found])
    cost = np.minimum(np.abs(candidates @ X.T - y), CAP * scale).sum(axis=1)
    best = int(np.argmin(cost))
    # a least-squares row always loses a little to some subset under this cost: ask for more than that
    return candidates[best] if cost[best] < BETTER * cost[0] else None


def rescue_side(
    engine: Engine,
    side: Side,
    U: Floats,
    V: Floats,
    scale: float,
    seed: int,
    below: float = STARVED,
    usual: float | None = None,
) -> int:
    """Refit the starved rows of U in place; returns how many changed."""
    changed = 0
    shares = inlier_shares(engine, side, U, V, scale)
    for i in starved_rows(shares, side, V.shape[1], below, usual):
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
    """Refit starved rows, then starved columns, in place."""
    rows = rescue_side(engine, entries.by_row, U, V, scale, seed, below)
    return rows + rescue_side(engine, entries.by_column, V, U, scale, seed + 1, below)
