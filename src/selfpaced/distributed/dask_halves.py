"""A Dask table in two halves, each predicted by a model of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..fingerprint import mixed, row_keys
from . import Block, drawn
from .dask_table import DaskTable

SAMPLE = 20_000  # cost: rows that are brought here, by which models are assessed and compared


@dataclass(frozen=True, eq=False)
class Halves:
    """Rows split by their content, so that copies of a row are in the same half.

    Attributes
    ----------
    table : DaskTable
        The rows.
    seed : int
        Decides the split.
    sizes : ndarray of shape (n_blocks, 2)
        Rows of each half in every block.
    mass : ndarray of shape (2, n_classes)
        Weight of every class in each half; of values, of all rows.
    weighted : bool
        Whether the rows have weights.
    """

    table: DaskTable
    seed: int
    sizes: NDArray[np.intp]
    mass: NDArray[np.floating[Any]]
    weighted: bool

    @classmethod
    def of(cls, table: DaskTable, seed: int) -> Halves:
        """One pass."""
        count = dask.delayed(_counted, pure=False, traverse=False)
        found = dask.compute(*[count(part, seed, len(table.mass)) for part in table.parts])
        sizes, mass, weighted = zip(*found, strict=True)
        return cls(table, seed, np.array(sizes), np.sum(mass, axis=0), any(weighted))

    def sample(self) -> tuple[Block, NDArray[np.intp]]:
        """Some rows, by what they hold, with the weight that each stands for; and which half they are in."""
        n_classes = 0 if self.table.classes is None else len(self.table.classes)
        sample = drawn(self.table, self.seed, SAMPLE, n_classes)
        order = np.argsort(sample.rows)
        rows, weight = self.table.take(sample.rows[order]), sample.sample_weight
        if sparse.issparse(rows.X):
            raise ValueError("X must have dense blocks for a wrapped estimator, got sparse ones")
        return rows._replace(weight=None if weight is None else weight[order]), half_of(rows.X, self.seed)

    def pieces(self, half: int) -> list[Piece]:
        """The blocks of one half that have any rows."""
        pick = dask.delayed(_picked, pure=False, traverse=False)
        counted = zip(self.table.parts, self.sizes[:, half], strict=True)
        return [Piece(pick(part, self.seed, half), int(n)) for part, n in counted if n]

    def features(self, pieces: Sequence[Piece]) -> Any:
        """Their features as a Dask array of known chunks."""
        return features_of(self.table, pieces)

    def target(self, pieces: Sequence[Piece]) -> Any:
        """Their codes or values as a Dask array."""
        return _array([Piece(block[1], n) for block, n in pieces], (), np.float64 if self._values else np.intp)

    def weight(self, pieces: Sequence[Piece], own: Sequence[Any] | None = None) -> Any:
        """Their weights as a Dask array, times others of each block; None where there are none."""
        if own is None:
            return _array([Piece(block[2], n) for block, n in pieces], (), np.float64) if self.weighted else None
        times = dask.delayed(_times, pure=False, traverse=False)
        both = [Piece(times(block, weight), n) for (block, n), weight in zip(pieces, own, strict=True)]
        return _array(both, (), np.float64)

    @property
    def _values(self) -> bool:
        return self.table.classes is None


class Piece(NamedTuple):
    """A delayed block, or a part of one, and the number of its rows."""

    block: Any
    n: int


def features_of(table: DaskTable, pieces: Sequence[Piece]) -> Any:
    """Features of blocks as a Dask array of known chunks."""
    return _array([Piece(block[0], n) for block, n in pieces], (table.n_features,), table.dtype)


def _array(pieces: Sequence[Piece], shape: tuple[int, ...], dtype: Any) -> Any:
    return da.concatenate([da.from_delayed(part, (n, *shape), dtype=dtype) for part, n in pieces])


def half_of(X: Any, seed: int) -> NDArray[np.intp]:
    """In which half rows are: not told by the same bits that draw the sample."""
    return (mixed(row_keys(X), seed + 1) & np.uint64(1)).astype(np.intp)


# ----------------------------------------------------------------------------------------------- on the workers


def _counted(block: Block, seed: int, n_classes: int) -> tuple[Any, Any, bool]:
    half = half_of(block.X, seed)
    codes = block.y if n_classes > 1 else np.zeros(len(half), dtype=np.intp)
    mass = np.bincount(half * n_classes + codes, block.weight, minlength=2 * n_classes)
    return np.bincount(half, minlength=2), mass.reshape(2, n_classes), block.weight is not None


def _picked(block: Block, seed: int, half: int) -> Block:
    return block.rows(np.flatnonzero(half_of(block.X, seed) == half))


def _times(block: Block, weight: Any) -> Any:
    return weight if block.weight is None else weight * block.weight


__all__ = ["Halves", "Piece", "features_of", "half_of"]
