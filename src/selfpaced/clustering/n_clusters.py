"""The number of clusters and the trust in views, by the agreement of clusterings; and samples far from every centre.

The number is one on which halves of the samples agree, or one that a neighbours graph shows.
Each half is clustered on its own and labels the other half too. The adjusted Rand index of the two labellings tells
which numbers of clusters are stable. Their mutual information, in nats and adjusted for chance, grows while real
clusters are separated and stands still when one is split at random. Without excellent agreement the number is that of
the largest modularity: the share of a neighbours graph's edges inside its spectral clusters, less that of random edges.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import entropy
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from ..assessment import OUTLIER_Z
from ..robust.scales import MAD_TO_SIGMA, weighted_quantile
from .embedding import leading_vectors, neighbor_graph, spectral_clusters
from .kernels import Views, filled

Floats = NDArray[Any]

# Measured by benchmarks/clustering.py (count).
NEARLY_BEST = 0.97  # of the largest information or modularity: the smallest such number is taken

EXCELLENT = 0.9  # convention: adjusted Rand index of an excellent recovery (Steinley 2004)
PRINCIPAL_COMPONENTS = 60  # cost: principal components that take part
SPLITS = 3  # cost: pairs of halves
HALF_RESTARTS = 10  # cost: of every half and number
SAMPLES = 2000  # cost: most that take part
FEW_LEFT_OUT = 0.15  # a choice: a smaller share left out counts again in the end, lest a tail be cut ever shorter


@dataclass(frozen=True)
class Count:
    """A number of clusters, and the least agreement of halves on every number tried (empty if it was given)."""

    n_clusters: int
    agreement: dict[int, float]

    @property
    def status(self) -> str:
        """One of "given", "chosen" and "unsure" (the halves do not agree excellently on the number)."""
        if not self.agreement:
            return "given"
        return "chosen" if self.agreement[self.n_clusters] >= EXCELLENT else "unsure"

    def __str__(self) -> str:
        if self.status == "given":
            return ""
        agreed = f"halves of the samples agree by at least {self.agreement[self.n_clusters]:.2f}"
        tried = f"of {min(self.agreement)} to {max(self.agreement)} tried"
        return f"{self.n_clusters} clusters {tried} ({'unsure: ' * (self.status == 'unsure')}{agreed}); "


def numbers(n_clusters: Any) -> tuple[int, ...]:
    """The numbers of clusters that the parameter asks for; empty for "auto"."""
    rule = "n_clusters must be an integer >= 1, 'auto' or a range of integers >= 2"
    if isinstance(n_clusters, str):
        if n_clusters != "auto":
            raise ValueError(f"{rule}, got {n_clusters!r}")
        return ()
    given = isinstance(n_clusters, Iterable) and getattr(n_clusters, "ndim", 1) > 0
    tried = tuple(n_clusters) if given else (n_clusters,)
    least = 2 if given else 1
    if not tried or not all(isinstance(k, int | np.integer) and not isinstance(k, bool) and k >= least for k in tried):
        raise ValueError(f"{rule}, got {n_clusters!r}")
    return tuple(sorted({int(k) for k in tried}))


def count_clusters(data: Views, tried: tuple[int, ...], neighbors: int, rng: np.random.Generator) -> Count:
    """Choose the number of clusters; ``tried`` empty means 2 to the root of the number of samples."""
    few = data if data.n <= SAMPLES else data.take(np.sort(rng.choice(data.n, SAMPLES, replace=False)))
    if not tried and few.n < 8:
        raise ValueError(f"n_clusters='auto' needs at least 8 distinct samples, got {few.n}: give the number")
    tried = tried or tuple(range(2, min(math.isqrt(few.n), few.n // 4) + 1))
    if few.n < 4 * max(tried):
        raise ValueError(f"n_clusters must be at most a quarter of the {few.n} samples to be chosen, got {max(tried)}")
    rows, weight = _usual_samples(principal_components(few), few.weight, 4 * max(tried))
    orders = [rng.permutation(len(rows)) for _ in range(SPLITS)]
    seed = int(rng.integers(2**31))
    found = {k: _agreement(rows, weight, orders, k, seed) for k in tried}
    worth = {k: alike * common for k, (alike, common) in found.items() if alike >= EXCELLENT}
    worth = worth or modularity(few, tried, neighbors, seed)
    best = max(worth.values())
    chosen = min(k for k in worth if worth[k] >= min(NEARLY_BEST * best, best))  # modularity may be negative
    return Count(chosen, {k: alike for k, (alike, _) in found.items()})


def modularity(data: Views, tried: tuple[int, ...], neighbors: int, seed: int) -> dict[int, float]:
    """Modularity of the spectral clusters of the views' joint neighbours graph, by their number."""
    graph = neighbor_graph(data, neighbors)
    graph = graph + graph.T
    degree = np.asarray(graph.sum(axis=1)).ravel() / graph.sum()
    vectors, found = leading_vectors(graph, max(tried)), {}
    for k in tried:
        labels = spectral_clusters(vectors[:, :k], seed)
        member = sp.csr_matrix((np.ones(data.n), (labels, np.arange(data.n))))
        inside = (member @ graph @ member.T).diagonal().sum() / graph.sum()
        found[k] = float(inside - np.square(member @ degree).sum())
    return found


def principal_components(data: Views) -> Floats:
    """The first principal components of all views side by side; a missing view counts as the mean."""
    blocks = [filled(block) for block in data.blocks]
    joint = sp.csr_matrix(sp.hstack(blocks)) if any(map(sp.issparse, blocks)) else np.hstack(blocks)
    joint = joint.astype(np.float64)
    wanted = min(PRINCIPAL_COMPONENTS, min(joint.shape) - 1)
    if joint.shape[1] <= PRINCIPAL_COMPONENTS and not sp.issparse(joint):
        return np.asarray(joint - joint.mean(axis=0))
    solver = "arpack" if sp.issparse(joint) else "randomized"
    return np.asarray(PCA(wanted, svd_solver=solver, random_state=0).fit_transform(joint))


def _usual_samples(rows: Floats, weight: Floats | None, least: int) -> tuple[Floats, Floats | None]:
    """The samples without isolated ones, for which k-means would need clusters of their own; ``least`` are kept."""
    nearest = NearestNeighbors(n_neighbors=min(5, len(rows) - 1)).fit(rows)
    gap = nearest.kneighbors()[0][:, -1]
    usual = usual_loss(gap, weight, OUTLIER_Z)  # log distances to a neighbour, as losses
    kept = usual.excess(gap) <= OUTLIER_Z * usual.spread
    if kept.sum() < least:
        return rows, weight
    return rows[kept], None if weight is None else weight[kept]


def _agreement(rows: Floats, weight: Floats | None, orders: list[Any], k: int, seed: int) -> tuple[float, float]:
    """Adjusted Rand index of the halves that agree least, and the mean common information of all."""
    alike, common = [], []
    for order in orders:
        parts = order[: len(order) // 2], order[len(order) // 2 :]
        models = [
            KMeans(k, n_init=HALF_RESTARTS, random_state=seed).fit(
                rows[part], None, None if weight is None else weight[part]
            )
            for part in parts
        ]
        pairs = [
            (other.labels_, model.predict(rows[part]))
            for model, other, part in zip(models, reversed(models), reversed(parts), strict=True)
        ]
        alike.append(np.mean([adjusted_rand_score(*pair) for pair in pairs]))
        for pair in pairs:
            information = np.mean([entropy(np.bincount(labels)) for labels in pair])
            common.append(information * adjusted_mutual_info_score(*pair))
    return float(min(alike)), float(np.mean(common))


def view_trust(data: Views, clusters: int, seed: int) -> Floats:
    """How far the clusters of each view alone agree with those of the other views, relative to the best view.

    The agreement is the mean adjusted Rand index with the other views. Two views agree equally with each other.
    """
    if len(data.blocks) < 3 or clusters < 2:
        return np.ones(len(data.blocks))
    few = data.take(np.linspace(0, data.n - 1, min(data.n, SAMPLES)).astype(np.intp))
    there = np.ones((len(few.blocks), few.n), bool) if few.present is None else few.present
    labels = np.full(there.shape, -1)
    for own, block, here in zip(labels, few.blocks, there, strict=True):
        if here.sum() > clusters:
            own[here] = KMeans(clusters, n_init=3, random_state=seed).fit_predict(filled(block)[here])
    agreement = np.eye(len(labels))
    for i, j in itertools.combinations(range(len(labels)), 2):
        both = (labels[i] >= 0) & (labels[j] >= 0)
        agreement[i, j] = agreement[j, i] = max(adjusted_rand_score(labels[i][both], labels[j][both]), 0.0)
    others = agreement.sum(axis=0) - 1
    return np.asarray(others / others.max()) if others.max() > 0 else np.ones(len(labels))


# --------------------------------------------------------------------------------------------------------- outliers


@dataclass(frozen=True)
class UsualLoss:
    """What samples lose that belong to a cluster.

    Losses are compared as logarithms. Of clusters with heavy tails (incomes, counts) many samples lie several
    deviations above the median without anything being wrong, and on that scale their tail is that of a normal.
    """

    median: float
    spread: float  # the standard deviation of log losses above the median
    least: float  # smaller losses are not told apart

    def excess(self, loss: Floats) -> Floats:
        """How far the log losses are above the median; 0 below it."""
        ratio = np.log(np.maximum(loss, self.least) / max(self.median, self.least))
        return np.asarray(np.maximum(ratio, 0.0))


def mean_loss(losses: Floats, there: Floats) -> Floats:
    """Mean over the views that a sample has, of (V, n) losses."""
    return np.asarray(losses.sum(axis=0) / there.sum(axis=0))


def usual_loss(loss: Floats, weight: Floats | None, threshold: float) -> UsualLoss:
    """Median and spread of the losses, those ``threshold`` spreads above the median left out.

    Up to the last round the smaller of the spreads below and above the median is taken: outliers widen the upper one,
    and many samples near their centre the lower.
    """
    least = max(1e-12 * float(loss.max()), float(np.finfo(float).tiny))
    logs = np.log(np.maximum(np.asarray(loss, dtype=float), least))
    if 0.5 <= np.average(loss <= least, weights=weight) < 1 - FEW_LEFT_OUT:
        return UsualLoss(float(loss.max()), 1.0, least)  # many are at their centre and many are not: no loss is usual
    kept = np.ones(logs.size, bool)
    for _ in range(5):  # more change nothing
        low, middle, high = _quartiles(logs[kept], None if weight is None else weight[kept])
        kept = logs <= middle + threshold * MAD_TO_SIGMA * min(middle - low, high - middle)
    if np.average(kept, weights=weight) > 1 - FEW_LEFT_OUT:
        kept[:] = True
    _, middle, high = _quartiles(logs[kept], None if weight is None else weight[kept])
    return UsualLoss(float(np.exp(middle)), MAD_TO_SIGMA * (high - middle), least)


def _quartiles(values: Floats, weight: Floats | None) -> tuple[float, ...]:
    return tuple(weighted_quantile(values, q, weight) for q in (0.25, 0.5, 0.75))
