"""Rows with few entries per component: the best of many small fits, with what is usual of the other rows as a prior.

Of eight entries two may be wrong, and a row that fits five of them by a wild combination of components is then as good
as the right one. What tells them apart is that the right one looks like the other rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..robust.scales import MAD_TO_SIGMA
from .entries import Floats, Side

THIN = 12  # theory: entries per component below which an inlier share does not tell a wrong optimum
# Measured by benchmarks/real_matrices.py, parts offsets and ratings.
MANY = 4.0  # times the other side's rows: then the components are sure, and it is the rows that are not
FEWEST = 2.5  # entries per factor of a row: with fewer, anything is explained and the noise scale says nothing
SUBSETS = 100  # random ones of a row's entries
REFINED = 8  # the best of them, which are refined
STEPS = 3  # of the refinement
NEAR = 3.5  # noise scales within which an entry counts in the refinement
GROSS = 6.0  # the cost of an entry that is not explained, a squared residual of 3.5 noise scales

USUAL = 4.0  # a choice: robust standard deviations within which rows are usual
FLAT = 1e-9  # numerical safety: of the largest variance, so that a component which no row has can be divided by
CHUNK = 1 << 20  # cost: numbers in the largest array at a time


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
        drawn = np.random.default_rng(seed).random((SUBSETS, count))
        kept = min(rank, count)
        chosen = np.zeros((SUBSETS, count))
        np.put_along_axis(chosen, np.argpartition(drawn, kept - 1, axis=1)[:, :kept], 1.0, axis=1)
        rows = np.flatnonzero(counts == count)
        for part in np.array_split(rows, -(-rows.size * SUBSETS * (count + rank * rank) // CHUNK)):
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
    rows = np.concatenate([current[:, None], nothing[:, None], cheapest(start, REFINED)], axis=1)
    for _ in range(STEPS):
        rows = solve((np.abs(off(rows)) < NEAR).astype(np.float64))
    return cheapest(rows, 1)[:, 0] + usual.centre
