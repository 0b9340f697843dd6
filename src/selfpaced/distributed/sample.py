"""A sample of rows by what they hold: the same rows, wherever they lie and however they are cut into blocks.

Every row has a number that follows from its content and a seed (`fingerprint.row_keys`); the rows with the smallest
numbers are the sample. Copies of a row are in it together, so that they can be held out together, and come as one
row with the sum of their weights. Samples of blocks merge into the sample of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..fingerprint import N_FOLDS, Keys, mixed, row_keys
from .table import Array, Block, Rows, Table

SPARE_ROWS = 4  # cost: times the size asked for that samples may have until they are cut down: rows may be copies
EACH = 2 * N_FOLDS  # theory: rows of every class that a sample has if the table has them, two for each fold


@dataclass(frozen=True, eq=False)
class ContentSample:
    """The distinct rows with the smallest keys, and of every class at least a few; none that has no weight."""

    size: int  # how many distinct rows are asked for
    keys: Keys  # ascending; equal for rows with equal features
    codes: Rows  # class of each (0 without any); rows with equal features are once in each of their classes
    rows: Rows  # number of one such row in the table
    weight: Array  # sum of the weights of all such rows
    mass: Array  # weight of each class in the whole table
    n: int  # rows that were seen

    def __add__(self, other: Any) -> ContentSample:
        """The sample of both parts; sorted and cut down now and then only, see `settled`."""
        if not isinstance(other, ContentSample):
            return NotImplemented
        both = ContentSample(
            self.size,
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.rows, other.rows + self.n]),
            np.concatenate([self.weight, other.weight]),
            self.mass + other.mass,
            self.n + other.n,
        )
        return both.settled() if len(both.keys) > 2 * SPARE_ROWS * self.size else both

    def __radd__(self, other: Any) -> ContentSample:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum(parts) works

    def settled(self) -> ContentSample:
        """Sorted, equal rows of equal class once, and no more than are asked for."""
        order = np.lexsort((self.codes, self.keys))
        keys, codes = self.keys[order], self.codes[order]
        first = np.flatnonzero(np.r_[True, (np.diff(keys) != 0) | (np.diff(codes) != 0)][: len(keys)])
        weight = np.add.reduceat(self.weight[order], first) if len(first) else self.weight[:0]
        keys, codes, rows = keys[first], codes[first], self.rows[order][first]
        whole = ContentSample(self.size, keys, codes, rows, weight, self.mass, self.n)
        return whole if whole.complete else whole.smaller(self.size)

    @property
    def limit(self) -> np.uint64:
        """The largest key of the distinct rows that were asked for; rows of rare classes may lie beyond."""
        return self._limit(self.size)

    @property
    def _distinct(self) -> Keys:
        """The distinct keys of a settled sample."""
        return self.keys[np.r_[True, self.keys[1:] != self.keys[:-1]][: len(self.keys)]]

    def _limit(self, size: int) -> np.uint64:
        distinct = self._distinct
        return distinct[min(size, len(distinct)) - 1] if len(distinct) else np.uint64(0)

    @property
    def complete(self) -> bool:
        """Whether it holds every distinct row."""
        return len(self._distinct) < self.size

    @property
    def n_distinct(self) -> int:
        """Distinct rows of the table: counted where the sample holds them all, else estimated to a percent or so."""
        if self.complete:
            return len(self._distinct)
        return max(self.size, round((self.size - 1) / ((float(self.limit) + 1.0) / 2.0**64)))

    def smaller(self, size: int) -> ContentSample:
        """The sample of fewer rows."""
        ranks = _ranks(self.keys, self.codes)
        bound = np.full(len(self.mass), np.iinfo(np.uint64).max)
        last = ranks == EACH - 1
        bound[self.codes[last]] = np.maximum(self.keys[last], self._limit(size))
        kept = np.flatnonzero(self.keys <= bound[self.codes])
        parts = (self.keys[kept], self.codes[kept], self.rows[kept], self.weight[kept])
        return ContentSample(size, *parts, self.mass, self.n)

    @property
    def sample_weight(self) -> Array | None:
        """What each row stands for, None where that is one row throughout; rows of rare classes, of which more are
        here than their share, stand for less.
        """
        beyond = np.zeros(len(self.keys), dtype=bool) if self.complete else self.keys > self.limit
        if not beyond.any():
            return self.weight if np.any(self.weight != 1.0) else None
        share = min(1.0, (float(self.limit) + 1.0) / 2.0**64)  # of the table's distinct rows that are in the sample
        topped = np.zeros(len(self.mass), dtype=bool)
        topped[self.codes[beyond]] = True
        here = np.bincount(self.codes, self.weight, minlength=len(self.mass))
        factor = np.where(topped, np.minimum(1.0, share * self.mass / np.maximum(here, 1e-300)), 1.0)
        return np.asarray(self.weight * factor[self.codes])


def drawn(table: Table, seed: int, size: int, n_classes: int) -> ContentSample:
    """The sample of a table: one pass or, where most rows are copies of others, two."""
    share = SPARE_ROWS * size / max(table.n, 1)
    if share < 1:
        ceiling = np.uint64(int(share * 2**64))
        found = table.reduce(contents, seed, size, n_classes, ceiling).settled()
        if len(np.unique(found.keys[found.keys <= ceiling])) >= size:
            return found
    return table.reduce(contents, seed, size, n_classes).settled()


def contents(block: Block, seed: int, size: int, n_classes: int, ceiling: Any = None) -> ContentSample:
    """The sample of one block, to be added up and settled; without classes, values tell rows apart too.

    Where a key is known below which the whole table has enough distinct rows, no more are kept (``ceiling``).
    """
    keys = row_keys(block.X)
    keys = mixed(keys if n_classes else keys ^ mixed(row_keys(block.y), 1), seed)
    n = len(keys)
    codes = block.y.astype(np.intp, copy=False) if n_classes else np.zeros(n, dtype=np.intp)
    weight = np.ones(n) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    mass = np.bincount(codes, weight, minlength=max(n_classes, 1))
    used = np.arange(n) if block.weight is None else np.flatnonzero(weight)
    rows = used[_candidates(keys[used], codes[used], size, ceiling)]
    return ContentSample(size, keys[rows], codes[rows], rows, weight[rows], mass, n)


def _candidates(keys: Keys, codes: Rows, size: int, ceiling: Any) -> Rows:
    """Rows with the smallest distinct keys, and of classes that have few among these their smallest."""
    limit = _enough(keys, size) if ceiling is None else ceiling
    if limit is None:
        return np.arange(len(keys))
    small = keys <= limit
    rows = np.flatnonzero(small)
    scarce = np.full(int(codes.max(initial=0)) + 1, True)
    scarce[codes[rows[_ranks(keys[rows], codes[rows]) == EACH - 1]]] = False
    if not scarce.any():
        return rows
    others = np.flatnonzero(scarce[codes] & ~small)
    return np.concatenate([rows, others[_ranks(keys[others], codes[others]) < EACH]])


def _enough(keys: Keys, size: int) -> Any:
    """A key up to which there are so many distinct ones; None where there are not."""
    asked = size
    while asked < len(keys):
        limit = np.partition(keys, asked)[asked]
        if len(np.unique(keys[keys <= limit])) >= size:
            return limit
        asked *= 2
    return None


def _ranks(keys: Keys, codes: Rows) -> Rows:
    """How many distinct smaller keys there are in the class of each."""
    ranks = np.zeros(len(keys), dtype=np.intp)
    if not len(keys):
        return ranks
    order = np.lexsort((keys, codes))
    begins = np.r_[True, np.diff(codes[order]) != 0]
    count = np.cumsum(begins | np.r_[True, np.diff(keys[order]) != 0])
    ranks[order] = count - count[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    return ranks
