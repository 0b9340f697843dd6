"""Folds for the automatic stop: stratified, blind to the order of rows, and never splitting equal rows.

Equal rows share a fold because a copy of a held-out row in the training part would vouch for its own label; it
also makes a row of weight 2 and a row given twice the same thing.  A coarse table, of few distinct rows that are each
there many times and with different labels, is the exception: copies are further observations there, and a model that
has seen none of them is asked about what it cannot know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..engines import Block, ContentSample, MemoryTable, Table, drawn
from ..fingerprint import Keys, mixed
from ..folds import COPIES, Rows, deal, row_keys
from ..label_noise import N_HELD
from .objective import Codes, Matrix, Objective, Vector

# Measured by benchmarks/constants.py linear.
N_FOLDS = 5

ENOUGH = 10_000  # cost: rows that tell candidates apart well enough in one deal, and are fitted well in one fit
MANY = 20000  # cost: rows above which a sample of them decides
CELLS = 1_000_000  # cost: cells in which fits outside one more fold take about as long as a plain fit of all rows
ROWS_PER_FEATURE = 50  # cost: rows of a sample, where these are more
MIXED = 0.5  # a choice: share of rows that must have a copy of another label in a coarse table


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
    copies : ndarray or None
        How many rows are equal to each, itself among them, whatever their labels; None: none.
    further : tuple of ndarray
        Folds of further deals of the same rows; estimates are means over all deals.
    coarse : bool
        Whether copies are further observations, in a table of few distinct rows.
    """

    X: Matrix
    codes: Codes
    sample_weight: Vector | None
    fold: Rows
    n_validated: int
    n_classes: int
    n_total: int
    copies: Vector | None = None
    further: tuple[Rows, ...] = ()
    coarse: bool = False

    @property
    def n(self) -> int:
        """Rows that take part."""
        return len(self.codes)

    @property
    def sampled(self) -> bool:
        """Whether only a sample of the data takes part."""
        return self.n_total > MANY

    @property
    def alone(self) -> bool:
        """Whether rows are so many that the model is one fit of all of them, and not the mean of fold fits."""
        return self.n_total >= ENOUGH

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

    @property
    def deals(self) -> tuple[Rows, ...]:
        """The fold of every row in every deal."""
        return (self.fold, *self.further)

    def outside(self, fold: int, turn: int = 0) -> Vector:
        """Weights of all rows, those of a fold being 0."""
        weight: Vector = np.ones(self.n) if self.sample_weight is None else np.array(self.sample_weight, dtype=float)
        weight[self.deals[turn] == fold] = 0.0
        return weight

    def every(self, step: int) -> FoldLayout:
        """Every so many of the rows, in the same folds."""
        if step == 1:
            return self
        weight, copies = (None if part is None else part[::step] for part in (self.sample_weight, self.copies))
        further = tuple(one[::step] for one in self.further)
        return replace(
            self, X=self.X[::step], codes=self.codes[::step], sample_weight=weight, fold=self.fold[::step],
            copies=copies, further=further,
        )  # fmt: skip

    def held_out_scores(self, params: Sequence[Vector]) -> Vector:
        """Scores of all validated rows in every deal, shape (n_deals, n_held_out, n_outputs)."""
        first = np.concatenate([self.scores(fold, params[fold]) for fold in range(self.n_validated)])
        out = np.empty((len(self.deals), *first.shape))
        out[0] = first
        held = self.held_out(np.arange(self.n))
        for turn, folds in enumerate(self.further, 1):
            for fold in range(self.n_validated):
                at = np.flatnonzero(folds[held] == fold)
                own = Objective([self.X[held[at]]], self.codes[held[at]], self.n_classes)
                out[turn, at] = own.scores(params[turn * self.n_validated + fold])
        return out

    def training(self, fold: int, **options: Any) -> Objective:
        """The objective of everything outside a fold."""
        if sparse.issparse(self.X):
            return Objective([self.X], self.codes, self.n_classes, sample_weight=self.outside(fold), **options)
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
    size = max(MANY, ROWS_PER_FEATURE * table.n_features) + 1
    return drawn(table, seed, size, n_classes)


def many(sample: ContentSample) -> bool:
    """Whether there are so many rows that a sample of them decides."""
    return sample.n_distinct > MANY


def lay_out(table: Table, sample: ContentSample, n_classes: int, deals: int = 1, rows: int = 1) -> FoldLayout | None:
    """Folds over all rows or, when there are many, over a sample; None where there is too little to hold out.

    The fewer rows, the more hangs on how they were dealt: they are dealt again, up to ``deals`` times, and ``rows``
    times as many as are enough, unless they are spread over the folds anyway.
    """
    n_total = sample.n_distinct
    if n_total > MANY:
        sample = sample.smaller(min(n_total, max(ENOUGH, ROWS_PER_FEATURE * table.n_features)))
    cells = _Cells.of(sample)
    coarse, n_units = n_total <= MANY and cells.coarse, cells.n_groups
    if coarse:
        cells, fold = cells.spread(row_keys(fetch(table, cells.rows).X))
        n_units = int(cells.count.sum())
    else:
        fold = cells.dealt()
    count = np.bincount(cells.codes, cells.count if coarse else None, minlength=n_classes)
    if n_units < 2 * N_FOLDS or (count >= N_HELD).sum() < 2:
        return None
    # Below ENOUGH rows the mean of all fold fits is the model; above, folds are held out as long as they cost little.
    affordable = CELLS // max(n_units * table.n_features, 1)
    validated = N_FOLDS if n_total < ENOUGH else min(max(affordable, 1), N_FOLDS)
    # Where a fold is not held out, rows of another deal's would have no score.
    turns = 1 if coarse or validated < N_FOLDS else min(deals, rows * ENOUGH // (n_units * (n_classes - 1)))
    again = [cells.dealt(turn) for turn in range(1, turns)]
    rare = count[cells.codes] < N_HELD  # one or two rows of a class: in every training part
    folds = [np.where(rare, N_FOLDS, one) for one in (fold, *again)]
    if n_total <= MANY and not coarse and isinstance(table, MemoryTable) and sparse.issparse(table.block.X):
        return _in_place(table, n_classes, cells, folds, validated)
    order = np.argsort(folds[0], kind="stable")
    X, codes = fetch(table, cells.rows[order]).X, cells.codes[order]
    weight, copies = (None if part is None else part[order] for part in (cells.weight, cells.copies))
    fold, *further = (one[order] for one in folds)
    return FoldLayout(X, codes, weight, fold, validated, n_classes, n_total, copies, tuple(further), coarse)


def fetch(table: Table, rows: Rows) -> Block:
    """These rows of a table in the order asked for; tables give them in their own."""
    if isinstance(table, MemoryTable):
        return table.take(rows)
    order = np.argsort(rows, kind="stable")
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return table.take(rows[order]).rows(back)


def _in_place(table: MemoryTable, n_classes: int, cells: _Cells, folds: list[Rows], validated: int) -> FoldLayout:
    """Sparse rows where they stand: those that were merged into another have no weight."""
    n, rows = table.n, cells.rows
    merged = cells.weight is not None or len(rows) < n
    fold, *further = (_placed(one, rows, n) for one in folds)
    weight = _placed(np.ones(len(rows)) if cells.weight is None else cells.weight, rows, n) if merged else None
    copies = _placed(np.ones(len(rows)) if cells.copies is None else cells.copies, rows, n) if merged else None
    X, codes = table.block.X, table.block.y
    return FoldLayout(X, codes, weight, fold, validated, n_classes, cells.n_groups, copies, tuple(further))


def _placed(values: Any, rows: Rows, n: int) -> Any:
    """Values of some rows where they stand, 0 elsewhere."""
    out = np.zeros(n, dtype=values.dtype)
    out[rows] = values
    return out


@dataclass(frozen=True, eq=False)
class _Cells:
    """Rows that differ, or whose labels do, sorted by key, then label.

    Attributes
    ----------
    rows, keys, codes : ndarray
        The first of each, its key and its label.
    count : ndarray
        Rows that it stands for: weights that are whole numbers count as rows.
    weight : ndarray or None
        The sum of their weights; None: all 1.
    """

    rows: Rows
    keys: Keys
    codes: Codes
    count: Vector
    weight: Vector | None

    @classmethod
    def of(cls, sample: ContentSample) -> _Cells:
        """The rows of a sample, which has merged equal rows of equal labels."""
        weight = sample.sample_weight
        whole = weight is not None and np.array_equal(weight, np.rint(weight))
        count = np.ones(len(sample.rows)) if weight is None or not whole else weight
        return cls(sample.rows, sample.keys, sample.codes, count, weight)

    @property
    def group(self) -> Rows:
        """Numbers of the distinct rows."""
        return np.asarray(np.cumsum(np.r_[True, self.keys[1:] != self.keys[:-1]]) - 1)

    @property
    def n_groups(self) -> int:
        """Distinct rows."""
        return int(self.group[-1]) + 1

    @property
    def copies(self) -> Vector | None:
        """How many rows are equal to each, whatever their labels."""
        if self.weight is None:
            return None
        group = self.group
        return np.asarray(np.bincount(group, self.count)[group])

    @property
    def coarse(self) -> bool:
        """Whether copies are further observations: they are many, and their labels differ."""
        group, total = self.group, float(self.count.sum())
        mixed_labels = np.bincount(group)[group] > 1
        return total > COPIES * self.n_groups > COPIES and float(self.count[mixed_labels].sum()) > MIXED * total

    def dealt(self, turn: int = 0) -> Rows:
        """Distinct rows are dealt out in turn, label by label, in the order of their keys; mixed for another turn."""
        first = np.r_[True, self.keys[1:] != self.keys[:-1]]
        order = np.argsort(mixed(self.keys[first], turn)) if turn else np.arange(self.n_groups)
        fold = np.empty(len(order), dtype=np.intp)
        fold[order] = deal(order, self.codes[first], N_FOLDS)
        return fold[self.group]

    def spread(self, content: Keys) -> tuple[_Cells, Rows]:
        """Every row is dealt by itself, label by label, in the order of ``content``; copies in one fold are merged.

        That leaves nothing to chance: whole cells of alike rows hang on small differences here.
        """
        order = np.lexsort((content, self.codes))
        end = np.cumsum(self.count[order])
        begin = (end - self.count[order])[:, None]
        # How many of the places from begin to end, counted round the folds, fall on each of them.
        share = np.ceil((end[:, None] - np.arange(N_FOLDS)) / N_FOLDS) - np.ceil((begin - np.arange(N_FOLDS)) / N_FOLDS)
        at, fold = np.nonzero(share)
        which, share = order[at], share[at, fold]
        weight = share if self.weight is None else share * (self.weight / self.count)[which]
        back = np.lexsort((fold, self.codes[which], self.keys[which]))
        which, fold, share, weight = which[back], fold[back], share[back], weight[back]
        return _Cells(self.rows[which], self.keys[which], self.codes[which], share, weight), fold
