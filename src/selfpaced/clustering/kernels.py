r"""One pass over the data for many restarts at once: assign by latent loss, weigh, sum the weighted centroids.

All restarts share every matrix product: the centres of a view are stacked to (R k, d), and a chunk of m samples
gives all distances :math:`\|x\|^2 + \|c\|^2 - 2 c^T x` as one (R k, m) product. A chunk is small enough for its
temporaries to stay in the cache, so memory does not grow with restarts x clusters x samples.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from ..regularizers import Regularizer
from ..robust import weighted_quantile

Floats = NDArray[Any]
Block = Any  # a C-contiguous float array, a CSR matrix, or Holed, n x d

# cost: elements of one (restarts x clusters) x samples temporary: 256 kB of float32.
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Holed:
    """Rows of which some cells are not known.

    Squared distances are taken over the cells that are, and scaled up to all columns.
    """

    filled: Floats  # the rows, 0 where a cell is not known: the mean of a centred column
    known: Floats  # which cells are known

    @property
    def shape(self) -> tuple[int, ...]:
        return self.filled.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.filled.dtype
        return dtype

    @property
    def stretch(self) -> Floats:
        """From the known columns of every row to all of them; 1 where none is."""
        return np.asarray(self.shape[1] / np.maximum(self.known.sum(axis=1), 1), self.dtype)

    def __getitem__(self, rows: Any) -> Holed:
        return Holed(self.filled[rows], self.known[rows])


def filled(block: Block) -> Any:
    """A block as an array or CSR matrix, 0 in the place of unknown cells."""
    return block.filled if isinstance(block, Holed) else block


@dataclass(frozen=True)
class Views:
    """Scaled views of the same n samples, ready for the kernels."""

    blocks: tuple[Block, ...]  # rows of missing views hold zeros
    present: NDArray[np.bool_] | None = None  # which view is there for which sample; None if all are
    weight: Floats | None = None  # sample weights; None if all are one

    @property
    def n(self) -> int:
        return int(self.blocks[0].shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.blocks[0].dtype
        return dtype

    def norms(self) -> Floats:
        """Squared lengths of all rows, (V, n)."""
        return np.stack([row_norms(block) for block in self.blocks])

    def filled(self) -> Views:
        """The same views without holes."""
        return Views(tuple(filled(block) for block in self.blocks), self.present, self.weight)

    def take(self, rows: NDArray[np.intp]) -> Views:
        """The same views of some samples."""
        return Views(
            tuple(block[rows] for block in self.blocks),
            None if self.present is None else np.ascontiguousarray(self.present[:, rows]),
            None if self.weight is None else self.weight[rows],
        )


@dataclass(frozen=True)
class Cost:
    """The latent loss of one rule at one pace; ``rule=None`` is the plain squared distance."""

    rule: Regularizer | None = None  # the elementwise rule
    lam: float = float("inf")  # its pace
    # distances are divided by it before they meet the rule: rules that are not free of scale need it
    unit: float = 1.0

    @property
    def plain(self) -> bool:
        return self.rule is None

    def latent(self, distance: Floats) -> Floats:
        """Latent loss in the units of the distances, divided by the rule's largest weight (slope 1 at zero)."""
        if self.rule is None:
            return distance
        unit = distance.dtype.type(self.unit)
        with np.errstate(all="ignore"):  # finite, non-negative numbers: the quick formula will do
            value = self.rule._quick_latent(np, distance / unit, self.lam)
        return np.asarray(value * (unit / distance.dtype.type(self.rule.max_weight(self.lam))))

    def weight(self, distance: Floats) -> Floats:
        """Weight relative to its maximum, in [0, 1]."""
        if self.rule is None:
            return np.ones_like(distance)
        return np.asarray(self.rule.relative_weight(distance / distance.dtype.type(self.unit), self.lam))


@dataclass
class Sweep:
    """What one pass found: (R, n) labels, (V, R, n) losses, (R,) objective, and the next centres."""

    labels: NDArray[np.int32]
    losses: Floats
    objective: NDArray[np.float64]
    centers: list[Floats]
    empty: NDArray[np.bool_]  # (R, k): clusters without any sample


def row_norms(block: Block) -> Floats:
    """Squared length of every row."""
    if sp.issparse(block):
        return np.asarray(block.multiply(block).sum(axis=1)).ravel().astype(block.dtype)
    if isinstance(block, Holed):
        return row_norms(block.filled) * block.stretch
    return np.asarray(np.einsum("ij,ij->i", block, block))


def chunks(n: int, width: int) -> Iterator[slice]:
    """Slices of samples of about equal length such that ``width`` x samples fits the cache."""
    count = -(-n // max(64, CHUNK // max(width, 1)))
    size = -(-n // max(count, 1))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


@contextmanager
def workers() -> Iterator[Executor | None]:
    """Threads for the chunks: as many as the linear algebra library was allowed, which gets one each meanwhile.

    Chunks are summed in their order, so the result does not depend on the number of threads.
    """
    count = max((lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"), default=1)
    if count == 1:
        yield None
        return
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        yield pool


def distances(block: Block, norms: Floats, centers: Floats) -> Floats:
    """Squared distances (..., m) from stacked centres (..., d) to the rows of a block."""
    flat = centers.reshape(-1, centers.shape[-1])
    scaled = flat * flat.dtype.type(-2)
    if isinstance(block, Holed):
        out = scaled @ block.filled.T
        out += (flat * flat) @ block.known.T
        out *= block.stretch
    else:
        out = np.asarray((block @ scaled.T).T) if sp.issparse(block) else scaled @ block.T
        out += np.einsum("ij,ij->i", flat, flat)[:, None]
    out += norms
    np.maximum(out, 0, out=out)  # rounding can leave a tiny negative
    return np.asarray(out.reshape(*centers.shape[:-1], -1))


def nearest(cost: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Argmin and min over axis 1 of (R, k, m): a running minimum, as argmin over a short axis is slow."""
    best = cost[:, 0].copy()
    labels = np.zeros(best.shape, np.int32)
    for j in range(1, cost.shape[1]):
        better = cost[:, j] < best
        labels[better] = j
        np.minimum(best, cost[:, j], out=best)
    return labels, best


def assign(found: list[Floats], cost: Cost) -> tuple[NDArray[np.int32], Floats]:
    """Cluster of least summed latent loss, and that loss; (R, m) each.

    Where a sample is so far from every centre that the latent loss has saturated, all clusters cost the same to
    rounding; there the plain distance decides.
    """
    if cost.plain:
        total = found[0] if len(found) == 1 else sum(found[1:], found[0])
        return nearest(total)
    total = cost.latent(found[0])
    for distance in found[1:]:
        total += cost.latent(distance)
    labels, best = nearest(total)
    flat = total.max(axis=1) - best <= 1e-5 * best
    if flat.any():
        restart, sample = np.nonzero(flat)
        plain = np.sum([distance[restart, :, sample] for distance in found], axis=0)
        labels[restart, sample] = plain.argmin(axis=1)
    return labels, best


@dataclass
class _Piece:
    """What a pass found on one chunk."""

    labels: NDArray[np.int32]
    losses: Floats
    objective: NDArray[np.float64]
    sums: list[Floats]
    mass: Floats


def sweep(
    views: Views,
    norms: Floats,
    centers: list[Floats],
    cost: Cost,
    update: bool = True,
    pool: Executor | None = None,
) -> Sweep:
    """One pass: labels, losses and objective under ``centers``; weighted centroids for the next pass."""
    restarts, clusters = centers[0].shape[:2]
    labels = np.empty((restarts, views.n), np.int32)
    losses = np.empty((len(views.blocks), restarts, views.n), views.dtype)
    objective = np.zeros(restarts)
    sums = [np.zeros((restarts * clusters, c.shape[-1])) for c in centers]
    mass = np.zeros((len(centers), restarts * clusters))
    parts = list(chunks(views.n, restarts * clusters))
    work = partial(_pass, views, norms, centers, cost, update)
    pieces = map(work, parts) if pool is None or len(parts) == 1 else pool.map(work, parts)
    for part, piece in zip(parts, pieces, strict=True):
        labels[:, part], losses[:, :, part] = piece.labels, piece.losses
        objective += piece.objective
        if update:
            mass += piece.mass
            for total, more in zip(sums, piece.sums, strict=True):
                total += more
    if not update:
        return Sweep(labels, losses, objective, centers, np.zeros((restarts, clusters), bool))
    full = np.zeros((restarts, clusters), bool)
    full[np.arange(restarts)[:, None], labels] = True
    return Sweep(labels, losses, objective, _centroids(sums, mass, centers), ~full)


def _pass(views: Views, norms: Floats, centers: list[Floats], cost: Cost, update: bool, part: slice) -> _Piece:
    """Assign the samples of a chunk and, for an update, sum their weighted rows."""
    found = [distances(block[part], norms[v, part], centers[v]) for v, block in enumerate(views.blocks)]
    if views.present is not None:
        for distance, present in zip(found, views.present[:, part], strict=True):
            distance[:, :, ~present] = 0
    labels, best = assign(found, cost)
    weight = None if views.weight is None else views.weight[part].astype(np.float64)
    objective = best.sum(axis=1, dtype=np.float64) if weight is None else best @ weight
    losses = np.stack([np.take_along_axis(distance, labels[:, None], axis=1)[:, 0] for distance in found])
    if not update:
        return _Piece(labels, losses, objective, [], np.empty(0))
    weights = cost.weight(losses)
    if views.weight is not None:
        weights *= views.weight[part]
    if views.present is not None:
        weights *= views.present[:, None, part]
    blocks = [block[part] for block in views.blocks]
    return _Piece(labels, losses, objective, *_weighted_sums(blocks, labels, weights, centers))


def _weighted_sums(
    blocks: list[Block], labels: NDArray[np.int32], weights: Floats, centers: list[Floats]
) -> tuple[list[Floats], Floats]:
    """Sums of the weighted rows of every cluster and restart, and of the weights, per view.

    An unknown cell counts as if it were at the centre, which leaves the mean of the others where it is.
    """
    (restarts, m), clusters = labels.shape, centers[0].shape[1]
    flat = labels + np.arange(restarts, dtype=np.int32)[:, None] * clusters
    pointer = np.arange(0, m * restarts + 1, restarts)
    sums, mass = [], []
    for block, given, center in zip(blocks, weights, centers, strict=True):
        weight = given * block.stretch if isinstance(block, Holed) else given
        mass.append(np.bincount(flat.ravel(), weight.ravel(), minlength=restarts * clusters))
        member = sp.csc_matrix((weight.T.ravel(), flat.T.ravel(), pointer), shape=(restarts * clusters, m))
        if isinstance(block, Holed):
            unknown = mass[-1][:, None] - member @ block.known
            sums.append(member @ block.filled + unknown * center.reshape(unknown.shape))
        else:
            product = member @ block
            sums.append(product.toarray() if sp.issparse(product) else product)
    return sums, np.stack(mass)


def _centroids(sums: list[Floats], mass: Floats, centers: list[Floats]) -> list[Floats]:
    """Weighted means; a cluster without weight in a view keeps its centre there."""
    out = []
    for total, weight, old in zip(sums, mass, centers, strict=True):
        kept = weight > 1e-9 * max(weight.sum(), np.finfo(np.float64).tiny)
        mean = total / np.where(kept, weight, 1)[:, None]
        out.append(np.where(kept[:, None], mean, old.reshape(mean.shape)).astype(old.dtype).reshape(old.shape))
    return out


def median_loss(views: Views, losses: Floats) -> float:
    """Median over all views that are there of one restart's (V, n) losses.

    Where most samples coincide with their centre the median is zero up to rounding and no pace can be measured
    by it; then it is the median of the others.
    """
    there = np.ones(losses.shape, bool) if views.present is None else views.present
    weight = None if views.weight is None else np.broadcast_to(views.weight.astype(np.float64), losses.shape)
    least = 1e-7 * float(losses.max(initial=0))
    for kept in (there, there & (losses > least)):
        if kept.any():
            values = losses[kept]
            found = float(np.median(values)) if weight is None else weighted_quantile(values, 0.5, weight[kept])
            if found > least:
                return found
    return float(np.finfo(losses.dtype).tiny)


# ----------------------------------------------------------------------------------------------------------- starts


def rows_of(block: Any, index: NDArray[np.intp]) -> Floats:
    """Some rows of a dense or sparse block as a dense array, shape index.shape + (d,)."""
    rows = filled(block[index.ravel()])
    rows = rows.toarray() if sp.issparse(rows) else rows
    return np.ascontiguousarray(rows).reshape(*index.shape, -1)


def usual_gap(views: Views, norms: Floats, clusters: int, rng: np.random.Generator) -> float:
    """Median squared distance, per view, of a sample to its nearest among a few random ones.

    It is a first guess of the loss inside a cluster that gross outliers cannot move. A sample is not its own
    neighbour, nor are its copies, so that repeating a sample is the same as weighting it.
    """
    chance = np.ones((1, views.n)) if views.weight is None else views.weight[None]
    few = _draw(chance, 5 * clusters + 1, rng)[0]
    total = gaps(views, norms, few, Cost())
    total[total <= 1e-6 * (1 + norms.sum(axis=0))] = np.inf
    near = total.min(axis=0) / len(views.blocks)
    near[np.isinf(near)] = 0
    return median_loss(views, np.broadcast_to(near, norms.shape))


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
    pool: Executor | None = None,
) -> list[Floats]:
    """Greedy k-means++ for every restart: the best of 2 + log(k) candidates drawn by latent loss.

    Returns the centres per view, each (restarts, clusters, d).
    """
    chance = np.ones(views.n) if views.weight is None else views.weight.astype(np.float64)
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
