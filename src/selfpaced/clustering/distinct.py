"""The distinct samples that the clustering works on, in an order of their own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import mixed, row_keys
from .kernels import Views

Floats = NDArray[Any]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Distinct:
    """One sample for all that are equal, with the sum of their weights; none for those without weight.

    They stand in an order that follows from what they hold. So where samples stand makes no difference, and a sample
    of weight 2 is that sample twice: to random seeds and to neighbours as well.

    Attributes
    ----------
    rows : array of int
        Where the distinct samples are.
    copy : array of int (n,)
        Which of them each sample is a copy of, -1 for one without weight.
    weight : array or None
        Their weights; None if all are one.
    """

    rows: Rows
    copy: Rows
    weight: Floats | None

    @classmethod
    def of(cls, blocks: Mapping[Hashable, Any], weight: Floats | None) -> Distinct:
        """The distinct samples of these views."""
        keys = sum(mixed(row_keys(block), place) for place, block in enumerate(blocks.values(), start=1))
        n = len(np.asarray(keys))
        used = np.arange(n) if weight is None else np.flatnonzero(weight)
        _, first, copy = np.unique(np.asarray(keys)[used], return_index=True, return_inverse=True)
        place = np.full(n, -1, dtype=np.intp)
        place[used] = copy.reshape(-1)
        mass = np.bincount(place[used], None if weight is None else weight[used])
        return cls(used[first], place, None if np.all(mass == 1) else mass.astype(np.float64))

    @property
    def complete(self) -> bool:
        """Whether every sample has weight."""
        return bool(self.copy.min(initial=0) >= 0)

    @property
    def n_used(self) -> int:
        """Samples of positive weight."""
        return int(np.count_nonzero(self.copy >= 0))

    def check_enough(self, clusters: int, n: int) -> None:
        """Refuse more clusters than there are samples of weight, of ``n`` in all."""
        if clusters > self.n_used:
            count = f"n_samples={n}" if self.complete else f"{self.n_used} samples of positive weight"
            raise ValueError(f"n_clusters must be at most the number of samples, {count}, got {clusters!r}")

    def views(self, data: Views) -> Views:
        """The distinct samples of scaled views."""
        part = data.take(self.rows)
        return Views(part.blocks, part.present, None if self.weight is None else self.weight.astype(data.dtype))
