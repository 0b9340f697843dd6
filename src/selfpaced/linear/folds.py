"""Folds for the automatic stop: stratified, blind to the order of rows, and never splitting equal rows.

Equal rows share a fold because a copy of a held-out row in the training part would vouch for its own label; it
also makes a row of weight 2 and a row given twice the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .objective import Codes, Matrix, Objective, Vector

N_FOLDS = 5
ENOUGH = 2000  # held-out rows that tell candidates apart well enough
MANY = 20000  # rows above which a sample of them decides


@dataclass(frozen=True)
class Folds:
    """Rows in fold order, so that every training part is at most two views.

    Attributes
    ----------
    X : matrix
        The rows that take part.
    codes, sample_weight : ndarray
        Their labels and weights (None: all 1).
    bounds : tuple of (int, int)
        Where each validated fold lies.
    n_classes, n_total : int
        Classes, and rows of the data these were taken from.
    """

    X: Matrix
    codes: Codes
    sample_weight: Vector | None
    bounds: tuple[tuple[int, int], ...]
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

    @property
    def held_out(self) -> slice:
        """All validated rows; folds that are not validated come last."""
        return slice(0, self.bounds[-1][1])

    def training(self, fold: int, **options: Any) -> Objective:
        """The objective of everything outside a fold."""
        first, last = self.bounds[fold]
        parts = [part for part in (self.X[:first], self.X[last:]) if part.shape[0]]
        weight = None if self.sample_weight is None else np.delete(self.sample_weight, np.s_[first:last])
        codes = np.delete(self.codes, np.s_[first:last])
        return Objective(parts, codes, self.n_classes, sample_weight=weight, **options)

    def validation(self, fold: int) -> Objective:
        """The rows of a fold, to be scored."""
        first, last = self.bounds[fold]
        return Objective([self.X[first:last]], self.codes[first:last], self.n_classes)

    def everything(self, **options: Any) -> Objective:
        """The objective of all rows that take part."""
        return Objective([self.X], self.codes, self.n_classes, sample_weight=self.sample_weight, **options)


def make_folds(
    X: Matrix, codes: Codes, n_classes: int, sample_weight: Vector | None, random_state: np.random.RandomState
) -> Folds | None:
    """Folds over all rows or, when there are many, over a sample; None where there is too little to hold out."""
    n, d = X.shape
    size = min(n, max(N_FOLDS * ENOUGH, 50 * d)) if n > MANY else n
    rows = np.arange(n)
    if size < n:
        draw = np.random.default_rng(random_state.randint(1 << 31))
        rows = np.sort(draw.choice(n, size, replace=False, shuffle=False))
    keys = row_keys(X if size == n else X[rows], random_state)
    order = np.lexsort((codes[rows], keys))
    rows, keys = rows[order], keys[order]
    rows, keys, weight = _merge(rows, keys, codes, sample_weight)
    fold, n_groups = _assign(keys, codes[rows])
    if n_groups < 2 * N_FOLDS or np.bincount(codes[rows], minlength=n_classes).min() < 2:
        return None
    validated = 1 if n > MANY else int(np.clip(np.ceil(ENOUGH * N_FOLDS / n_groups), 1, N_FOLDS))
    order = np.argsort(fold, kind="stable")
    ends = np.cumsum(np.bincount(fold, minlength=N_FOLDS))[:validated]
    bounds = tuple((int(a), int(b)) for a, b in zip(np.r_[0, ends[:-1]], ends, strict=True))
    taken = rows[order]
    return Folds(X[taken], codes[taken], None if weight is None else weight[order], bounds, n_classes, n)


def _merge(
    rows: NDArray[np.intp], keys: Vector, codes: Codes, sample_weight: Vector | None
) -> tuple[NDArray[np.intp], Vector, Vector | None]:
    """One row with the sum of weights in place of equal rows with equal labels (sorted by key, then label)."""
    new = np.r_[True, (keys[1:] != keys[:-1]) | (codes[rows[1:]] != codes[rows[:-1]])]
    if new.all():
        return rows, keys, None if sample_weight is None else sample_weight[rows]
    weight = np.ones(len(rows)) if sample_weight is None else sample_weight[rows]
    return rows[new], keys[new], np.add.reduceat(weight, np.flatnonzero(new))


def _assign(keys: Vector, codes: Codes) -> tuple[NDArray[np.intp], int]:
    """Fold of each row: groups of equal keys are dealt out in turn, label by label, in the order of their keys."""
    first = np.r_[True, keys[1:] != keys[:-1]]
    group = np.cumsum(first) - 1
    deal = np.argsort(codes[first], kind="stable")
    fold = np.empty(len(deal), dtype=np.intp)
    fold[deal] = np.arange(len(deal)) % N_FOLDS
    return fold[group], len(deal)


def row_keys(X: Matrix, random_state: np.random.RandomState) -> Vector:
    """A number per row, equal for equal rows: its projection on a random direction.

    ``einsum`` adds up every row in the same order, wherever it lies; BLAS does not.
    """
    direction = random_state.standard_normal(X.shape[1])
    if sparse.issparse(X):
        return np.asarray(X.astype(np.float64, copy=False) @ direction)
    keys = np.empty(X.shape[0])
    step = max(256, (1 << 17) // max(X.shape[1], 1))
    for start in range(0, X.shape[0], step):
        block = np.ascontiguousarray(X[start : start + step], dtype=np.float64)
        keys[start : start + step] = np.einsum("ij,j->i", block, direction)
    return keys
