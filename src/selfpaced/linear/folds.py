"""Folds for the automatic stop: stratified, blind to the order of rows, and never splitting equal rows.

Equal rows share a fold because a copy of a held-out row in the training part would vouch for its own label; it
also makes a row of weight 2 and a row given twice the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..engines import Block, ContentSample, MemoryTable, Table, contents
from ..fingerprint import Keys
from ..folds import Rows, deal
from .objective import Codes, Matrix, Objective, Vector

# Measured by benchmarks/constants.py linear.
N_FOLDS = 5

N_HELD = 3  # a choice: rows that a class must have for any to be held out
ENOUGH = 2000  # cost: held-out rows that tell candidates apart well enough
MANY = 20000  # cost: rows above which a sample of them decides
ROWS_PER_FEATURE = 50  # cost: rows of a sample, where these are more


@dataclass(frozen=True, eq=False)
class FoldLayout:
    """The rows that decide, and which fold holds them out.

    Dense rows are in the order of their folds, so that a training part is at most two views.  Sparse rows stay
    where they are, with weight 0 outside the part, because every slice of them would be a copy.

    Attributes
    ----------
    X : matrix
        The rows.
    codes : ndarray
        Their labels.
    sample_weight : ndarray or None
        Their weights (None: all 1).
    fold : ndarray
        Number of the fold that holds a row out.
    n_validated : int
        Folds that are really held out, the first ones.
    n_classes, n_total : int
        Classes, and distinct rows of the data these were taken from.
    """

    X: Matrix
    codes: Codes
    sample_weight: Vector | None
    fold: Rows
    n_validated: int
    n_classes: int
    n_total: int

    @property
    def n(self) -> int:
        """Rows that take part."""
        return len(self.codes)

    @property
    def sampled(self) -> bool:
        """Whether only a sample of the data takes part."""
        return self.n_total > MANY

    def rows(self, fold: int) -> Any:
        """Where the rows of a fold are."""
        if sparse.issparse(self.X):
            kept = self.fold == fold
            return np.flatnonzero(kept if self.sample_weight is None else kept & (self.sample_weight > 0))
        return slice(*np.searchsorted(self.fold, [fold, fold + 1]).tolist())

    def held_out(self, values: Any) -> Any:
        """Values of all validated rows, in the order of the folds; None stays None."""
        if values is None:
            return None
        return np.concatenate([values[self.rows(fold)] for fold in range(self.n_validated)])

    def training(self, fold: int, **options: Any) -> Objective:
        """The objective of everything outside a fold."""
        if sparse.issparse(self.X):
            outside: Vector = np.ones(self.n) if self.sample_weight is None else self.sample_weight.copy()
            outside[self.fold == fold] = 0.0
            return Objective([self.X], self.codes, self.n_classes, sample_weight=outside, **options)
        out = self.rows(fold)
        parts = [part for part in (self.X[: out.start], self.X[out.stop :]) if part.shape[0]]
        weight = None if self.sample_weight is None else np.delete(self.sample_weight, out)
        return Objective(parts, np.delete(self.codes, out), self.n_classes, sample_weight=weight, **options)

    def scores(self, fold: int, params: Vector) -> Vector:
        """Scores of the rows of a fold."""
        rows = self.rows(fold)
        if sparse.issparse(self.X):
            return np.asarray(Objective([self.X], self.codes, self.n_classes).scores(params)[rows])
        return Objective([self.X[rows]], self.codes[rows], self.n_classes).scores(params)

    def everything(self, **options: Any) -> Objective:
        """The objective of all rows that take part."""
        return Objective([self.X], self.codes, self.n_classes, sample_weight=self.sample_weight, **options)


def draw(table: Table, n_classes: int, seed: int) -> ContentSample:
    """The rows that may decide: all distinct ones or, when there are many, a sample of them."""
    return table.reduce(contents, seed, max(MANY, ROWS_PER_FEATURE * table.n_features) + 1, n_classes)


def many(sample: ContentSample) -> bool:
    """Whether there are so many rows that a sample of them decides."""
    return sample.n_distinct > MANY


def lay_out(table: Table, sample: ContentSample, n_classes: int) -> FoldLayout | None:
    """Folds over all rows or, when there are many, over a sample; None where there is too little to hold out."""
    n_total = sample.n_distinct
    if n_total > MANY:
        sample = sample.smaller(min(n_total, max(N_FOLDS * ENOUGH, ROWS_PER_FEATURE * table.n_features)))
    keys, codes, weight = sample.keys, sample.codes, sample.sample_weight
    fold, n_groups = _assign(keys, codes)
    count = np.bincount(codes, minlength=n_classes)
    if n_groups < 2 * N_FOLDS or (count >= N_HELD).sum() < 2:
        return None
    fold[count[codes] < N_HELD] = N_FOLDS  # a class of one or two rows is in every training part
    # One fold is enough from ENOUGH * N_FOLDS rows on; below, at least three, whose mean is the model.
    needed = int(np.ceil(ENOUGH * N_FOLDS / n_groups))
    validated = 1 if needed == 1 else min(max(needed, 3), N_FOLDS)
    if n_total <= MANY and isinstance(table, MemoryTable) and sparse.issparse(table.block.X):
        all_weight = None if weight is None and len(keys) == table.n else np.zeros(table.n)
        if all_weight is not None:
            all_weight[sample.rows] = 1.0 if weight is None else weight
        folds = np.zeros(table.n, dtype=np.intp)
        folds[sample.rows] = fold
        return FoldLayout(table.block.X, table.block.y, all_weight, folds, validated, n_classes, n_total)
    order = np.argsort(fold, kind="stable")
    taken = fetch(table, sample.rows[order])
    weight = None if weight is None else weight[order]
    return FoldLayout(taken.X, codes[order], weight, fold[order], validated, n_classes, n_total)


def fetch(table: Table, rows: Rows) -> Block:
    """These rows of a table in the order asked for; tables give them in their own."""
    if isinstance(table, MemoryTable):
        return table.take(rows)
    order = np.argsort(rows, kind="stable")
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return table.take(rows[order]).rows(back)


def _assign(keys: Keys, codes: Codes) -> tuple[Rows, int]:
    """Fold of each row: groups of equal keys are dealt out in turn, label by label, in the order of their keys."""
    first = np.r_[True, keys[1:] != keys[:-1]]
    group = np.cumsum(first) - 1
    n_groups = int(group[-1]) + 1
    return deal(np.arange(n_groups), codes[first], N_FOLDS)[group], n_groups
