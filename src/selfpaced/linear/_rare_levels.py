"""Columns that a handful of rows alone determine, such as rare levels: fitted after the rest, as in an M-S estimate.

A start that looks for the majority leaves such rows out, and nothing is left to say what their coefficient is; or it
calls them outliers of a coefficient that nobody has estimated. So the search looks at the other rows only, and the rare
columns then get the least absolute deviations of their own rows (Maronna and Yohai, 2000).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ._least_squares import Squares

__all__ = ["CommonPart", "RareColumns", "least_absolute_deviations"]

Floats = NDArray[np.floating[Any]]
RARE = 5  # a choice: rows at most that differ from all others in a rare column
MOST_ASIDE = 0.25  # a choice: share of the rows that may be put aside for rare columns; else rarer ones only are
NO_EFFECT = 0.1  # a choice: of a row, by which a rare column is drawn to no effect: enough to settle a tie
HEAD = 64  # cost: rows by which ordinary columns are known at once


@dataclass(frozen=True, eq=False)
class RareColumns:
    """Columns with one value in all but a few of the rows that are looked at."""

    columns: NDArray[np.intp]
    usual: Floats

    @classmethod
    def of(cls, X: Any, index: NDArray[np.intp] | slice = slice(None)) -> RareColumns | None:
        """Those of some rows of X; None where there are none, or where nearly every row is in one."""
        rows = X[index]
        n = rows.shape[0]
        columns, usual = _candidates(rows)
        for most in range(RARE, 0, -1):
            other = differing(rows, columns, usual)
            few = np.asarray(other.sum(axis=0)).ravel() <= most
            columns, usual, other = columns[few], usual[few], other[:, few]
            if np.asarray(other.sum(axis=1)).astype(bool).sum() <= MOST_ASIDE * n:
                break
        else:
            return None
        return cls(columns, usual) if other.sum() or (columns.size and n < X.shape[0]) else None

    def rows(self, X: Any) -> NDArray[np.bool_]:
        """Which rows have another value than the usual one in a rare column."""
        return np.asarray(differing(X, self.columns, self.usual).sum(axis=1)).ravel() > 0


def _candidates(rows: Any) -> tuple[NDArray[np.intp], Floats]:
    """Columns that may be rare by their first rows, and the value most of their rows have."""
    if sparse.issparse(rows):
        counts = np.bincount(rows.indices, minlength=rows.shape[1])
        columns = np.flatnonzero(counts <= RARE)
        return columns, np.zeros(columns.size, dtype=rows.dtype)
    first = np.sort(rows[: 2 * RARE + 1], axis=0)
    usual = first[len(first) // 2]
    columns = np.flatnonzero((rows[:HEAD] != usual).sum(axis=0) <= RARE)
    return columns, usual[columns]


def differing(X: Any, columns: NDArray[np.intp], usual: Floats) -> Any:
    """A table of where these columns have another value than their usual one."""
    taken = X[:, columns]
    return (taken != 0) if sparse.issparse(X) else taken != usual


@dataclass(frozen=True, eq=False)
class CommonPart:
    """A problem without the rows of rare columns, in coordinates that its rows determine.

    Attributes
    ----------
    squares : Squares
        The smaller problem.
    turn, free : array of shape (k, r), (k, k - r)
        Coordinates of the whole problem are ``turn @ c + free @ d``, with c of the smaller one.
    """

    squares: Squares
    turn: Floats
    free: Floats

    @classmethod
    def of(cls, part: Squares, lone: NDArray[np.bool_]) -> CommonPart:
        """The part of a dense problem outside the lone rows."""
        common = part.rows(np.flatnonzero(~lone))
        matrix = np.asarray(common.matrix, dtype=np.float64)
        weight = common.sample_weight
        weighted = matrix if weight is None else matrix * np.sqrt(weight)[:, None]
        _, singular, axes = linalg.svd(weighted, full_matrices=False)
        precision = max(matrix.shape) * float(np.finfo(part.matrix.dtype).eps)
        rank = int(np.sum(singular > singular.max(initial=0.0) * 10 * precision))
        turn = axes[:rank].T * (math.sqrt(common.size) / singular[:rank])
        ridge = np.square(turn).T @ common.ridge
        return cls(replace(common, matrix=matrix @ turn, ridge=ridge), turn, axes[rank:].T)

    def whole(self, c: Floats, squares: Squares, rare: RareColumns, lone: NDArray[np.bool_]) -> Floats:
        """The fit of all rows: that of the common ones, and least absolute deviations of the lone rows.

        Two rows of a level that contradict each other have every value between them as least absolute deviations: of
        these the one nearest to no effect is taken, because the outlier is usually the row that is farther off.
        """
        b = self.turn @ c
        rows = squares.rows(np.flatnonzero(lone))
        if not (self.free.shape[1] and rows.n_rows):
            return b
        effects = squares.jacobian()[rare.columns + int(squares.fit_intercept)]
        b = b - self.free @ linalg.lstsq(effects @ self.free, effects @ b)[0]  # no effect of a rare column
        table = np.asarray(rows.matrix @ self.free, dtype=np.float64)
        left = rows.residuals(b)
        weight = np.ones(len(left)) if rows.sample_weight is None else rows.sample_weight
        twice, target = np.concatenate([table, table]), np.r_[left, np.zeros(len(left))]
        return np.asarray(b + self.free @ least_absolute_deviations(twice, target, np.r_[weight, NO_EFFECT * weight]))


def least_absolute_deviations(table: Floats, target: Floats, weight: Floats, max_iter: int = 30) -> Floats:
    """Least absolute deviations of a small problem, by reweighted least squares."""
    d, size = np.zeros(table.shape[1]), np.ones(len(target))
    for _ in range(max_iter):
        root = np.sqrt(weight / size)[:, None]
        update = linalg.lstsq(root * table, root[:, 0] * target)[0]
        left = np.abs(target - table @ update)
        moved = float(np.max(np.abs(update - d), initial=0.0))
        d, size = update, np.maximum(left, 1e-4 * float(left.max()) + 1e-300)
        if moved <= 1e-6 * float(np.max(np.abs(d), initial=0.0)):
            break
    return d
