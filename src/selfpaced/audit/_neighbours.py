"""Nearest neighbours in a space of features or embeddings: a second model, reasons, and near-duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fitting import check_size
from ._inputs import array_of

Array = NDArray[Any]
Codes = NDArray[np.intp]

NEAREST = 10  # convention: neighbours that vote on the label of a row
NAMED = 5  # display: neighbours that are named as a reason
MOST_OF_GROUP = 50  # cost: rows of the same group that are skipped among the neighbours of a row
DUPLICATE = 0.05  # display: part of the usual distance to the nearest row below which two rows are near-duplicates


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest labelled rows of every labelled row, itself and its group left out."""

    points: NDArray[np.float64]  # scaled features of the labelled rows
    nearest: Codes  # n x NEAREST positions among the labelled rows, nearest first; -1 where there are fewer
    distance: NDArray[np.float64]  # to the nearest one

    def probabilities(self, codes: Codes, n_classes: int) -> NDArray[np.float64]:
        """Share of each label among the neighbours, with one more vote for the shares of all rows."""
        share = np.bincount(codes, minlength=n_classes) / len(codes)
        votes = np.zeros((len(codes), n_classes))
        for place in self.nearest.T:
            there = np.flatnonzero(place >= 0)
            votes[there, codes[place[there]]] += 1.0
        return np.asarray((votes + share) / (votes.sum(axis=1, keepdims=True) + 1.0))

    def duplicates(self, codes: Codes) -> tuple[Codes, Codes]:
        """Pairs of near-duplicates with different labels, each pair once, nearest first."""
        bound = DUPLICATE * float(np.median(self.distance))
        rows = np.flatnonzero((self.distance <= bound) & (self.nearest[:, 0] >= 0))
        others = self.nearest[rows, 0]
        unlike = codes[rows] != codes[others]
        rows, others = rows[unlike], others[unlike]
        pairs = np.unique(np.sort(np.column_stack([rows, others]), axis=1), axis=0)
        order = np.argsort(self.distance[pairs[:, 0]], kind="stable") if len(pairs) else np.empty(0, dtype=np.intp)
        return pairs[order, 0], pairs[order, 1]

    def reasons(self, rows: Codes, confident: Codes, given: Array, expected: Array, numbers: Codes) -> list[str]:
        """One sentence for each of some rows about the confident rows, those of no level, next to it."""
        from sklearn.neighbors import NearestNeighbors

        if len(confident) <= NAMED or not len(rows):
            return ["too few confident rows to compare with"] * len(rows)
        search = NearestNeighbors(n_neighbors=NAMED + 1).fit(self.points[confident])
        found = confident[search.kneighbors(self.points[rows], return_distance=False)]
        out = []
        for row, near, label in zip(rows, found, expected, strict=True):
            others = near[near != row][:NAMED]
            agree, names = int(np.sum(given[others] == label)), ", ".join(str(numbers[i]) for i in others)
            out.append(f"{agree} of the {len(others)} nearest confident rows are {str(label)!r} (rows {names})")
        return out


def find_neighbours(features: Any, n_rows: int, labelled: Codes, groups: Array | None) -> Neighbours:
    """Scale the features of the labelled rows and find the nearest of each."""
    from sklearn.neighbors import NearestNeighbors

    points = _scaled(features, n_rows)[labelled]
    n = len(points)
    if n < 2:
        raise ValueError(f"features need at least two labelled rows, got {n}")
    code = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    skipped = min(int(np.bincount(code).max()), MOST_OF_GROUP)
    wanted = min(NEAREST + skipped, n)
    distance, found = NearestNeighbors(n_neighbors=wanted).fit(points).kneighbors(points)
    own = code[found] == code[:, None]
    order = np.argsort(own, axis=1, kind="stable")[:, :NEAREST]
    nearest = np.where(np.take_along_axis(own, order, axis=1), -1, np.take_along_axis(found, order, axis=1))
    return Neighbours(points, nearest, np.take_along_axis(distance, order, axis=1)[:, 0])


def _scaled(features: Any, n_rows: int) -> NDArray[np.float64]:
    """Columns of unit variance; a sparse table becomes dense."""
    table = array_of(features.toarray() if hasattr(features, "toarray") else features, "features")
    if table.dtype.kind not in "biuf":
        raise ValueError(f"features must be numbers (embeddings), got {table.dtype}")
    if table.ndim != 2 or len(table) != n_rows:
        raise ValueError(f"features must have shape ({n_rows}, n_features), got {table.shape}")
    table = table.astype(np.float64)
    if not np.isfinite(table).all():
        raise ValueError("features must be finite; fill the gaps or leave these columns out")
    check_size("features", table)
    spread = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
