"""Means of rows and columns as part of a factorization: columns of the factors, so that the kernels stay as they are.

With both means U = [u, a, C] and V = [v, C, b], the C constant: U V^T = u v^T + C a + C b. A half-step solves u and a
(or v and b) and takes the other side's mean off the entries first. Because C is large, the ridge hardly sees the means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .entries import Floats, Side

Factors = tuple[Floats, Floats]


@dataclass(frozen=True)
class Means:
    """Which means are part of the model.

    Attributes
    ----------
    rows, columns : bool
        Whether every row, every column has a mean of its own.
    """

    rows: bool = False
    columns: bool = False

    @property
    def count(self) -> int:
        """How many columns of the factors hold means."""
        return self.rows + self.columns

    def rank(self, U: Floats) -> int:
        """The number of components, means left out."""
        return int(U.shape[1]) - self.count

    def join(self, U: Floats, V: Floats, lever: float) -> Factors:
        """Factors with means, which are zero at first."""
        rank = U.shape[1]
        left, right = (np.zeros((len(factor), rank + self.count), U.dtype) for factor in (U, V))
        left[:, :rank], right[:, :rank] = U, V
        if self.rows:
            right[:, rank] = lever
        if self.columns:
            left[:, -1] = lever
        return left, right

    def split(self, U: Floats, V: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Components of rows and columns, means of rows and columns."""
        rank = self.rank(U)
        rows, columns = np.zeros(len(U), U.dtype), np.zeros(len(V), U.dtype)
        if self.rows:
            rows = U[:, rank] * V[0, rank]
        if self.columns:
            columns = V[:, -1] * U[0, -1]
        return U[:, :rank], V[:, :rank], rows, columns

    def with_components(self, U: Floats, V: Floats, components: Factors) -> Factors:
        """The same means with other components."""
        rank = self.rank(U)
        u, v = components
        return np.ascontiguousarray(np.hstack([u, U[:, rank:]])), np.ascontiguousarray(np.hstack([v, V[:, rank:]]))

    def half(self, side: Side, U: Floats, V: Floats, by_row: bool) -> tuple[Side, Floats, Floats, Any]:
        """What one half-step solves: entries less the other side's means, and the columns of U and V, by number."""
        if not self.count:
            return side, U, V, slice(None)
        rank = self.rank(U)
        of_rows, of_columns = rank if self.rows else None, rank + self.rows if self.columns else None
        own, other = (of_rows, of_columns) if by_row else (of_columns, of_rows)
        if other is not None:
            side = replace(side, values=side.values - (V[:, other] * U[0, other])[side.indices])
        free = np.arange(rank) if own is None else np.append(np.arange(rank), own)
        return side, np.ascontiguousarray(U[:, free]), np.ascontiguousarray(V[:, free]), free


NO_MEANS = Means()


@dataclass(frozen=True, eq=False)
class Levels:
    """First means, which were taken off the entries; the factors hold what was added to them since."""

    means: Means
    rows: Floats
    columns: Floats
