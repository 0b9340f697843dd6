"""Distinct samples in an order of their own, and starts for many restarts at once drawn from them.

The starts are greedy k-means++ over all views, batched into shared matrix products.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..fingerprint import mixed, row_keys
from .kernels import Cost, Holed, Views, chunks, distances, filled, row_norms

Floats = NDArray[Any]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Distinct:
    """One sample for all that are equal, with the sum of their weights; none for those without weight.

    They stand in an order that follows from what they hold. So where samples stand makes no difference, and a sample
    of weight 2 is that sample twice: to random seeds and to neighbours as well.
    """

    rows: Rows  # where the distinct samples are
    copy: Rows  # which of them each sample is a copy of, -1 for one without weight
    weight: Floats | None  # their weights; None if all are one

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


def rows_of(block: Any, index: NDArray[np.intp]) -> Floats:
    """Some rows of a dense or sparse block as a dense array, shape index.shape + (d,)."""
    rows = filled(block[index.ravel()])
    rows = rows.toarray() if sp.issparse(rows) else rows
    return np.ascontiguousarray(rows).reshape(*index.shape, -1)


def nearest_gaps(views: Views, norms: Floats, clusters: int, rng: np.random.Generator) -> Floats:
    """Squared distance per view (V, n) of every sample to its nearest among a few random ones.

    Its median is a first guess of the loss inside a cluster that gross outliers cannot move; a sample far above
    it is isolated. A sample is not its own neighbour, nor are its copies, so that repeating a sample is the same
    as weighting it.
    """
    chance = np.ones((1, views.n)) if views.weight is None else views.weight[None]
    few = _draw(chance, 5 * clusters + 1, rng)[0]
    total = gaps(views, norms, few, Cost())
    total[total <= 1e-6 * (1 + norms.sum(axis=0))] = np.inf
    near = few[total.argmin(axis=0)]
    found = np.empty((len(views.blocks), views.n), views.dtype)
    for v, block in enumerate(views.blocks):
        for part in chunks(views.n, block.shape[1]):
            found[v, part] = _gap(block[part], block[near[part]])
    if views.present is not None:
        found[~(views.present & views.present[:, near])] = 0
    return found


def _gap(rows: Any, others: Any) -> Floats:
    """Squared distances row by row; over the columns that both know, scaled up to all of them."""
    if isinstance(rows, Holed):
        both = rows.known * others.known
        return row_norms(Holed((rows.filled - others.filled) * both, both))
    return row_norms(rows - others)


def gaps(views: Views, norms: Floats, index: NDArray[np.intp], cost: Cost, pool: Executor | None = None) -> Floats:
    """Latent losses over views from the samples in ``index`` (any shape) as centres to all samples.

    A view that either side lacks is left out, and the rest is scaled up to the full number of views.
    """
    flat = index.ravel()
    out = np.empty((len(flat), views.n), views.dtype)
    seeds = [rows_of(block, flat) for block in views.blocks]

    def fill(part: slice) -> None:
        total = np.zeros((len(flat), part.stop - part.start), views.dtype)
        shared = np.zeros_like(total)
        for v, block in enumerate(views.blocks):
            gap = cost.latent(distances(block[part], norms[v, part], seeds[v]))
            if views.present is None:
                total += gap
                continue
            both = views.present[v, flat][:, None] & views.present[v, part]
            total += gap * both
            shared += both
        if views.present is not None:
            total *= np.where(shared > 0, len(views.blocks) / np.maximum(shared, 1), 1)
        out[:, part] = total

    parts = chunks(views.n, len(flat))
    deque(map(fill, parts) if pool is None else pool.map(fill, parts), maxlen=0)
    return out.reshape(*index.shape, views.n)


def plus_plus(
    views: Views,
    norms: Floats,
    clusters: int,
    restarts: int,
    cost: Cost,
    rng: np.random.Generator,
    favour: Floats | None = None,
    pool: Executor | None = None,
) -> list[Floats]:
    """Greedy k-means++ for every restart: the best of 2 + log(k) candidates drawn by latent loss.

    ``favour`` multiplies the chance of every sample to be drawn. Returns the centres per view, each
    (restarts, clusters, d).
    """
    chance = np.ones(views.n) if views.weight is None else views.weight.astype(np.float64)
    if favour is not None:
        chance = chance * favour
    if views.present is not None:
        complete = views.present.all(axis=0) & (chance > 0)
        # A seed without a view has no centre there: seed from complete samples while there are enough.
        if complete.sum() >= 5 * clusters:
            chance = chance * complete
    trials = 2 + int(math.log(clusters))
    rows = np.arange(restarts)
    chosen = np.empty((restarts, clusters), np.intp)
    chosen[:, 0] = _draw(np.broadcast_to(chance, (restarts, views.n)), 1, rng)[:, 0]
    closest = gaps(views, norms, chosen[:, 0], cost, pool)
    for j in range(1, clusters):
        candidates = _draw(closest * chance, trials, rng)
        reach = np.minimum(gaps(views, norms, candidates, cost, pool), closest[:, None])
        potential = reach.sum(axis=2) if views.weight is None else reach @ views.weight
        best = potential.argmin(axis=1)
        chosen[:, j] = candidates[rows, best]
        closest = reach[rows, best]
    return [rows_of(block, chosen) for block in views.blocks]


def _draw(mass: Floats, trials: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``trials`` samples per restart with probability proportional to ``mass`` (restarts, n)."""
    total = np.cumsum(mass, axis=1, dtype=np.float64)
    level = rng.random((len(mass), trials)) * total[:, -1:]
    places = np.stack([np.searchsorted(row, at, side="right") for row, at in zip(total, level, strict=True)])
    return np.asarray(np.minimum(places, mass.shape[1] - 1))
