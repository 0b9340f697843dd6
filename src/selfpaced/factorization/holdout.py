"""Held-out entries; of a large matrix those in some rows and columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .entries import Entries, Floats, from_csr
from .means import Factors, Levels

HELD_OUT, LEAST_HELD_OUT, MOST_HELD_OUT = 0.05, 200, 20_000  # a choice: share of the entries, and its limits
MOST_OF_ALL = 0.15  # a choice: the share of a small matrix that is held out at most
ENOUGH = 40_000  # cost: entries that the form is chosen on, if rows and columns keep enough of theirs


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
    """Entries to fit, and a random part to predict."""
    size = matrix.data.size
    count = int(min(max(HELD_OUT * size, LEAST_HELD_OUT), MOST_OF_ALL * size, MOST_HELD_OUT))
    kept = np.ones(size, dtype=bool)
    kept[rng.permutation(size)[:count]] = False
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
    wanted = max(per_line, math.sqrt(ENOUGH * usual[0] * usual[1] / matrix.data.size))
    shares = [wanted / across for across in reversed(usual)]
    if max(shares) >= 1:  # a narrow matrix: its short side is kept whole
        shares = [share if share >= 1 else max(share, ENOUGH / matrix.data.size) for share in shares]
    kept = []
    for count, share in zip(counts, shares, strict=True):
        if share >= 1 or matrix.data.size <= ENOUGH:
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
