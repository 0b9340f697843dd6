r"""One pass over the data for many restarts at once: assign by latent loss, weigh, sum the weighted centroids.

All restarts share every matrix product: the centres of a view are stacked to (R k, d), and a chunk of m samples
gives all distances :math:`\|x\|^2 + \|c\|^2 - 2 c^T x` as one (R k, m) product. A chunk is small enough for its
temporaries to stay in the cache, so memory does not grow with restarts x clusters x samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .cost import Cost

Floats = NDArray[Any]
Block = Any  # a C-contiguous float array or a CSR matrix, n x d

# Elements of one (restarts x clusters) x samples temporary: 512 kB of float32.
CHUNK = 1 << 17
# From this many clusters on a sparse indicator beats the dense product for the centroids' sums.
SPARSE_CLUSTERS = 48


@dataclass(frozen=True)
class Views:
    """Scaled views of the same n samples, ready for the kernels.

    Attributes
    ----------
    blocks : tuple of array or CSR matrix, each (n, d_v)
        Rows of missing views hold zeros.
    present : array (V, n) of bool or None
        Which view is there for which sample; None if all are.
    weight : array (n,) or None
        Sample weights; None if all are one.
    """

    blocks: tuple[Block, ...]
    present: NDArray[np.bool_] | None = None
    weight: Floats | None = None

    @property
    def n(self) -> int:
        return int(self.blocks[0].shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.blocks[0].dtype

    def norms(self) -> Floats:
        """Squared lengths of all rows, (V, n)."""
        return np.stack([row_norms(block) for block in self.blocks])

    def take(self, rows: NDArray[np.intp]) -> Views:
        """The same views of some samples."""
        return Views(
            tuple(block[rows] for block in self.blocks),
            None if self.present is None else np.ascontiguousarray(self.present[:, rows]),
            None if self.weight is None else self.weight[rows],
        )


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
    return np.einsum("ij,ij->i", block, block)


def chunks(n: int, width: int) -> Iterator[slice]:
    """Slices of samples such that ``width`` x samples fits the cache."""
    size = max(64, CHUNK // max(width, 1))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def distances(block: Block, norms: Floats, centers: Floats) -> Floats:
    """Squared distances (..., m) from stacked centres (..., d) to the rows of a block."""
    flat = centers.reshape(-1, centers.shape[-1])
    scaled = flat * flat.dtype.type(-2)
    out = np.asarray((block @ scaled.T).T) if sp.issparse(block) else scaled @ block.T
    out += np.einsum("ij,ij->i", flat, flat)[:, None]
    out += norms
    np.maximum(out, 0, out=out)  # rounding can leave a tiny negative
    return out.reshape(*centers.shape[:-1], -1)


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
        plain = sum(distance[restart, :, sample] for distance in found)
        labels[restart, sample] = plain.argmin(axis=1)
    return labels, best


def sweep(views: Views, norms: Floats, centers: list[Floats], cost: Cost, update: bool = True) -> Sweep:
    """One pass: labels, losses and objective under ``centers``; weighted centroids for the next pass."""
    restarts, clusters = centers[0].shape[:2]
    n, dtype = views.n, views.dtype
    labels = np.empty((restarts, n), np.int32)
    losses = np.empty((len(views.blocks), restarts, n), dtype)
    objective = np.zeros(restarts)
    sums = [np.zeros((restarts * clusters, c.shape[-1])) for c in centers]
    mass = np.zeros((len(centers), restarts * clusters))
    count = np.zeros((restarts, clusters), bool)
    for part in chunks(n, restarts * clusters):
        found = [distances(block[part], norms[v, part], centers[v]) for v, block in enumerate(views.blocks)]
        if views.present is not None:
            for distance, present in zip(found, views.present[:, part], strict=True):
                distance[:, :, ~present] = 0
        labels[:, part], best = assign(found, cost)
        weight = None if views.weight is None else views.weight[part]
        objective += best.sum(axis=1, dtype=np.float64) if weight is None else best @ weight.astype(np.float64)
        chosen = labels[:, part]
        for v, distance in enumerate(found):
            losses[v, :, part] = np.take_along_axis(distance, chosen[:, None], axis=1)[:, 0]
        if update:
            _accumulate(views, part, chosen, losses[:, :, part], cost, sums, mass, count)
    if not update:
        return Sweep(labels, losses, objective, centers, np.zeros_like(count))
    return Sweep(labels, losses, objective, _centroids(sums, mass, centers), ~count)


def _accumulate(
    views: Views,
    part: slice,
    labels: NDArray[np.int32],
    losses: Floats,
    cost: Cost,
    sums: list[Floats],
    mass: Floats,
    count: NDArray[np.bool_],
) -> None:
    """Add a chunk's weighted rows to the sums of the clusters they are in."""
    restarts, clusters = count.shape
    m = labels.shape[1]
    rows, columns = np.arange(restarts)[:, None], np.arange(m)
    count[rows, labels] = True
    weights = cost.weight(losses)
    if views.weight is not None:
        weights *= views.weight[part]
    if views.present is not None:
        weights *= views.present[:, None, part]
    flat = labels + np.arange(restarts, dtype=np.int32)[:, None] * clusters
    dense = np.zeros((restarts, clusters, m), views.dtype) if clusters < SPARSE_CLUSTERS else None
    for v, block in enumerate(views.blocks):
        mass[v] += np.bincount(flat.ravel(), weights[v].ravel(), minlength=restarts * clusters)
        if dense is not None and not sp.issparse(block):
            dense[rows, labels, columns] = weights[v]
            sums[v] += dense.reshape(-1, m) @ block[part]
            continue
        pointer = np.arange(0, m * restarts + 1, restarts)
        indicator = sp.csc_matrix((weights[v].T.ravel(), flat.T.ravel(), pointer), shape=(len(mass[v]), m))
        product = indicator @ block[part]
        sums[v] += product.toarray() if sp.issparse(product) else product


def _centroids(sums: list[Floats], mass: Floats, centers: list[Floats]) -> list[Floats]:
    """Weighted means; a cluster without weight in a view keeps its centre there."""
    out = []
    for total, weight, old in zip(sums, mass, centers, strict=True):
        kept = weight > 1e-9 * max(weight.sum(), np.finfo(np.float64).tiny)
        mean = total / np.where(kept, weight, 1)[:, None]
        out.append(np.where(kept[:, None], mean, old.reshape(mean.shape)).astype(old.dtype).reshape(old.shape))
    return out


def weighted_median(values: Floats, weight: Floats | None = None) -> float:
    """The median, or the lower weighted median."""
    if weight is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order], dtype=np.float64)
    return float(values[order[np.searchsorted(total, total[-1] / 2)]])


def median_loss(views: Views, losses: Floats) -> float:
    """Median over all views that are there of one restart's (V, n) losses."""
    if views.present is None and views.weight is None:
        return weighted_median(losses)
    weight = np.ones(losses.shape) if views.weight is None else np.broadcast_to(views.weight, losses.shape)
    there = np.ones(losses.shape, bool) if views.present is None else views.present
    return weighted_median(losses[there], weight[there])
