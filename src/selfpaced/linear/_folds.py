"""Folds of a logistic regression: by the content of a row, so that a row keeps its fold when other rows come or go.

Equal rows share a fold: a copy of a held-out row in the training part would leak its label. It also makes a row of
weight 2 the same as a row given twice. A coarse table is the exception: it has few distinct rows, each there many times
and with different labels. Copies are further observations there, and are spread over the folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..distributed.table import Block, ContentSample, MemoryTable, Table, drawn
from ..fingerprint import N_FOLDS, Keys, content_keys, hash_folds
from ..folds import Rows
from ..selection import effective_size
from ._loss import Codes, Matrix, Vector

SAMPLED_ROWS = 10_000  # cost: rows above which a sample of them decides
ROWS_PER_FEATURE = 50  # cost: rows of that sample, if this is more
FOLD_CELLS = 5_000_000  # cost: cells of the sample above which fewer folds are held out
REPETITIONS, REPEATED_CELLS = 6, 60_000  # cost: repetitions at most, and the cells in all of them together
ERROR_CORRELATION = 0.1  # a choice: intra-class correlation of the errors of equal rows
MIXED = 0.5  # a choice: share of rows that must have a copy with another label in a coarse table


@dataclass(frozen=True, eq=False)
class FoldRows:
    """The rows that decide, and the folds that hold them out. Equal rows of equal labels are one row."""

    X: Matrix
    codes: Codes
    weight: Vector | None  # None: all 1
    folds: Rows  # (n_repetitions, n); N_FOLDS for rows that are never held out
    n_validated: int  # folds that are held out, the first ones
    n_classes: int
    n_total: int  # distinct rows of the whole table
    copies: Vector | None = None  # how many rows of the table equal each row, whatever their label; None: no copies
    groups: Rows | None = None  # rows of a group share a fold
    design_effect: float = 1.0  # factor by which groups make held-out rows less evidence than independent rows

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def held(self) -> Rows:
        """The rows that are held out once in each repetition."""
        return np.flatnonzero(self.folds[0] < self.n_validated)

    @cached_property
    def held_codes(self) -> Codes:
        """Labels of the held-out rows."""
        return self.codes[self.held]

    @cached_property
    def held_weight(self) -> Vector | None:
        """Weights of the held-out rows."""
        return None if self.weight is None else self.weight[self.held]

    @cached_property
    def evidence_weight(self) -> Vector | None:
        """Weights of the held-out rows as evidence about a model: equal rows err alike, so copies count less.

        Otherwise every bend that the model misses would be significant on a table of few distinct rows, and would
        be taken for label noise. The shares of labels among equal rows stay as they are.
        """
        if self.weight is None or self.copies is None:
            return self.held_weight
        return np.asarray(
            self.weight[self.held] / (1 + ERROR_CORRELATION * (self.copies[self.held] - 1))
        )  # Kish's design effect

    @cached_property
    def evidence_size(self) -> float:
        """Number of independent rows that the held-out rows are worth."""
        weight, own = self.held_weight, self.evidence_weight
        size = effective_size(weight, len(self.held)) / self.design_effect
        return size if weight is None or own is None else size * float(own.sum() / weight.sum())

    @cached_property
    def training_weight(self) -> Vector:
        """Relative weight of each row in the fit outside each fold, repetition after repetition."""
        weight = np.ones(self.n) if self.weight is None else self.weight / self.weight.mean()
        return np.stack([np.where(fold == f, 0.0, weight) for fold in self.folds for f in range(self.n_validated)])

    def held_by(self, number: int) -> Rows:
        """The rows that a fit holds out."""
        repetition, fold = divmod(number, self.n_validated)
        return np.flatnonzero(self.folds[repetition] == fold)

    def every(self, step: int) -> FoldRows:
        """Every ``step``-th row, in the same folds."""
        if step == 1:
            return self
        parts = {"weight": self.weight, "copies": self.copies, "groups": self.groups}
        some: dict[str, Any] = {name: None if part is None else part[::step] for name, part in parts.items()}
        return replace(self, X=self.X[::step], codes=self.codes[::step], folds=self.folds[:, ::step], **some)


def draw(table: Table, n_classes: int, seed: int) -> ContentSample:
    """Return all distinct rows or, of a large table, a sample of them by content."""
    return drawn(table, seed, max(SAMPLED_ROWS, ROWS_PER_FEATURE * table.n_features) + 1, n_classes)


def lay_out(
    table: Table,
    sample: ContentSample,
    n_classes: int,
    repeat: bool = True,
    groups: Rows | None = None,
    X: Matrix | None = None,
) -> FoldRows | None:
    """Assign folds to the rows of a sample; None if there are too few rows or groups to hold any out.

    ``X`` are the features of the sample if they are at hand: to fetch them again takes a pass.
    """
    n_total, at_hand = sample.n_distinct, sample.rows
    if n_total > SAMPLED_ROWS:
        sample = sample.smaller(min(n_total, max(SAMPLED_ROWS, ROWS_PER_FEATURE * table.n_features)))
    cells = _Cells.of(sample)
    coarse = n_total <= SAMPLED_ROWS and cells.coarse and groups is None
    own = None if groups is None else groups[cells.rows]
    if coarse:
        cells, fold = cells.spread(content_keys(fetch(table, cells.rows).X))
        folds, units = fold[None], int(cells.count.sum())
    else:
        units = cells.n_groups if own is None else len(np.unique(own))
        keys = cells.keys if own is None else _smallest(cells.keys, own)
        size = cells.n_groups * table.n_features * (n_classes - 1)
        n_repetitions = int(np.clip(REPEATED_CELLS // max(size, 1), 1, REPETITIONS)) if repeat else 1
        folds = np.stack([hash_folds(keys, repetition=repetition) for repetition in range(n_repetitions)])
    never = np.any([_one_fold(cells.codes, fold, n_classes) for fold in folds], axis=0)
    if units < 2 * N_FOLDS or (~never).sum() < 2:
        return None
    folds = np.where(never[cells.codes], N_FOLDS, folds)
    affordable = FOLD_CELLS // max(len(cells.codes) * table.n_features, 1)
    return FoldRows(
        X=fetch(table, cells.rows).X if X is None else X[_places(at_hand, cells.rows)],
        codes=cells.codes,
        weight=cells.weight,
        folds=folds,
        n_validated=int(np.clip(affordable, 1, N_FOLDS)) if len(folds) == 1 else N_FOLDS,
        n_classes=n_classes,
        n_total=n_total,
        copies=cells.copies,
        groups=own,
    )


def connected(X: Matrix, groups: Rows) -> Rows:
    """Number the groups so that groups with an equal row are one: such a row cannot be held out with both."""
    _, row = np.unique(content_keys(X), return_inverse=True)
    shape = (int(row.max()) + 1, int(groups.max()) + 1)
    links = sparse.coo_array((np.ones(len(row)), (row, groups)), shape=shape)
    both = sparse.block_array([[None, links], [links.T, None]])
    return np.asarray(connected_components(both, directed=False)[1][: shape[0]][row], dtype=np.intp)


def _smallest(keys: Keys, groups: Rows) -> Keys:
    """The smallest key of each row's group: it stays when other groups come or go."""
    least = np.full(int(groups.max()) + 1, np.iinfo(np.uint64).max)
    np.minimum.at(least, groups, keys)
    return least[groups]


def _one_fold(codes: Codes, fold: Rows, n_classes: int) -> Any:
    """Whether all rows of a class are in one fold, outside which the class would be missing."""
    table = np.zeros((n_classes, N_FOLDS), dtype=bool)
    table[codes, fold] = True
    return table.sum(axis=1) < 2


def fetch(table: Table, rows: Rows) -> Block:
    """Return rows of a table in the given order; tables return them in their own order."""
    if isinstance(table, MemoryTable):
        return table.take(rows)
    order = np.argsort(rows, kind="stable")
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return table.take(rows[order]).rows(back)


def _places(rows: Rows, some: Rows) -> Rows:
    """Where some of the rows stand among them."""
    order = np.argsort(rows)
    return np.asarray(order[np.searchsorted(rows, some, sorter=order)])


@dataclass(frozen=True, eq=False)
class _Cells:
    """Distinct pairs of row and label, sorted by key, then label.

    ``count`` is the number of rows that a pair stands for (whole weights count as rows), ``weight`` the sum of their
    weights (None: all 1).
    """

    rows: Rows
    keys: Keys
    codes: Codes
    count: Vector
    weight: Vector | None

    @classmethod
    def of(cls, sample: ContentSample) -> _Cells:
        weight = sample.sample_weight
        whole = weight is not None and np.array_equal(weight, np.rint(weight))
        count = np.ones(len(sample.rows)) if weight is None or not whole else weight
        return cls(sample.rows, sample.keys, sample.codes, count, weight)

    @property
    def group(self) -> Rows:
        """Number of the distinct row of each pair."""
        return np.asarray(np.cumsum(np.r_[True, self.keys[1:] != self.keys[:-1]]) - 1)

    @property
    def n_groups(self) -> int:
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
        """Whether rows have many copies, and the labels of the copies differ."""
        group, total = self.group, float(self.count.sum())
        mixed_labels = np.bincount(group)[group] > 1
        return total > N_FOLDS * self.n_groups > N_FOLDS and float(self.count[mixed_labels].sum()) > MIXED * total

    def spread(self, content: Keys) -> tuple[_Cells, Rows]:
        """Spread equal rows evenly over the folds, label by label; copies in one fold are one row."""
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


__all__ = ["N_FOLDS", "FoldRows", "connected", "draw", "fetch", "lay_out"]
