r"""Spectral embeddings of the views in front of the clustering.

Every view, and all of them side by side, becomes a graph of nearest neighbours
:math:`A = (G + G^T)/2`; the embedding is the unit-length rows of the leading eigenvectors of
:math:`D^{-1/2} A D^{-1/2}` (Ng, Jordan and Weiss 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from .kernels import Block, Views, filled
from .views import Distinct, unit_rows

Floats = NDArray[Any]

SPECTRAL_SAMPLES = 1000  # cost: samples in the graphs whose clusters are only a start


@dataclass(frozen=True)
class Graph:
    """The embedded neighbours graph of one view: enough to embed new samples too."""

    samples: Block  # not their search tree: compiled code reads it, so nobody should take one out of a file
    neighbors: int
    vectors: Floats  # eigenvectors of the training samples, rows not normalised

    def embed(self, block: Block) -> Floats:
        """Mean eigenvector of the training neighbours, at unit length (a Nystrom step along the graph)."""
        search = NearestNeighbors(n_neighbors=self.neighbors).fit(self.samples)
        neighbours = search.kneighbors(block, return_distance=False)
        return np.asarray(unit_rows(self.vectors[neighbours].mean(axis=1)), np.float32)


def leading_vectors(graph: Any, components: int) -> Floats:
    """Leading eigenvectors of the normalised adjacency, largest eigenvalue first.

    Every connected part of the graph has an eigenvector of eigenvalue one, the square root of its degrees. A
    Lanczos run from one vector cannot find a multiple eigenvalue, so these are written down and deflated.
    """
    adjacency = sp.csr_matrix(0.5 * (graph + graph.T))
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    root = sp.diags(1 / np.sqrt(degree))
    normal = root @ adjacency @ root
    known = _parts(adjacency, degree)[:, :components]
    n, wanted = normal.shape[0], components - known.shape[1]
    if wanted == 0:
        return known
    if n <= max(64, 2 * components + 1):  # few samples: a dense solver is faster
        rest = np.linalg.eigh(normal.toarray() - 2 * known @ known.T)[1][:, ::-1][:, :wanted]
        return np.hstack([known, rest])
    rest = _lanczos(
        LinearOperator((n, n), matvec=lambda x: normal @ x - 2 * (known @ (known.T @ x)), dtype=np.float64), wanted
    )
    return np.hstack([known, rest])


def _parts(adjacency: Any, degree: Floats) -> Floats:
    """Unit vectors of the connected parts, the largest first."""
    count, part = connected_components(adjacency, directed=False)
    order = np.argsort(np.argsort(-np.bincount(part, minlength=count), kind="stable"))
    vectors = np.zeros((len(part), count))
    vectors[np.arange(len(part)), order[part]] = np.sqrt(degree)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=0))


def _lanczos(operator: Any, wanted: int) -> Floats:
    """Eigenvectors of the largest eigenvalues, largest first."""
    # A fixed start: the embedding belongs to the data and must not depend on the seed of the restarts.
    begin = np.random.default_rng(0).standard_normal(operator.shape[0])
    try:
        values, vectors = eigsh(operator, k=wanted, which="LA", v0=begin, tol=1e-4)
    except ArpackNoConvergence:
        values, vectors = eigsh(operator, k=wanted, which="LA", v0=begin, tol=1e-2, ncv=max(10 * wanted, 100))
    return np.asarray(vectors[:, np.argsort(values)[::-1]])


def neighbor_graph(views: Views, neighbors: int) -> Any:
    """The sum of the views' graphs of nearest neighbours, each of the samples that have the view."""
    graph = sp.csr_matrix((views.n, views.n))
    for v, block in enumerate(views.blocks):
        here = np.arange(views.n) if views.present is None else np.flatnonzero(views.present[v])
        if here.size < 2:
            continue
        nearest = NearestNeighbors(n_neighbors=min(neighbors, here.size - 1)).fit(filled(block)[here])
        place = sp.csr_matrix((np.ones(here.size), (here, np.arange(here.size))), shape=(views.n, here.size))
        graph = graph + place @ nearest.kneighbors_graph() @ place.T
    return graph


def spectral_clusters(vectors: Floats, seed: int) -> NDArray[np.int32]:
    """As many clusters as there are leading eigenvectors, by k-means of their unit rows."""
    return np.asarray(KMeans(vectors.shape[1], n_init=5, random_state=seed).fit_predict(unit_rows(vectors)))


def spectral_centers(views: Views, clusters: int, neighbors: int, rng: np.random.Generator) -> list[Floats]:
    """Centres per view of the spectral clusters of the joint graph and of the views' mean graph, (graphs, k, d)."""
    few = views if views.n <= SPECTRAL_SAMPLES else views.take(rng.choice(views.n, SPECTRAL_SAMPLES, replace=False))
    seed = int(rng.integers(2**31))
    graphs = [neighbor_graph(Views((_stack(few.filled().blocks),)), neighbors)]
    if len(few.blocks) > 1:
        graphs.append(neighbor_graph(few, neighbors))
    weight = np.ones(few.n) if few.weight is None else few.weight
    centers: list[list[Floats]] = [[] for _ in few.blocks]
    for graph in graphs:
        labels = spectral_clusters(leading_vectors(graph, clusters), seed)
        for v, block in enumerate(few.filled().blocks):
            given = weight if few.present is None else weight * few.present[v]
            member = sp.csr_matrix((given, (labels, np.arange(few.n))), shape=(clusters, few.n))
            total = np.maximum(member.sum(axis=1), np.finfo(np.float64).tiny)
            rows = member @ block
            centers[v].append(np.asarray((rows.toarray() if sp.issparse(rows) else rows) / np.asarray(total)))
    return [np.stack(own).astype(views.dtype) for own in centers]


def fit_graph(block: Block, components: int, neighbors: int) -> Graph:
    """Neighbours graph of one view and its eigenvectors."""
    neighbors = min(neighbors, block.shape[0] - 1)
    graph = neighbor_graph(Views((block,)), neighbors)
    return Graph(block, neighbors, leading_vectors(graph, min(components, block.shape[0])))


def _stack(blocks: Sequence[Block]) -> Block:
    if any(sp.issparse(block) for block in blocks):
        return sp.csr_matrix(sp.hstack([sp.csr_matrix(block) for block in blocks]))
    return np.hstack(list(blocks))


@dataclass(frozen=True)
class SpectralEmbedding:
    """One graph per view and a joint one; the joint graph is left out for a single view."""

    graphs: tuple[Graph, ...]
    joint: Graph | None
    widths: tuple[int, ...]

    @classmethod
    def fit(cls, views: Views, distinct: Distinct, components: int, neighbors: int) -> tuple[SpectralEmbedding, Views]:
        """Embed the training samples; a missing view stays missing, the joint one never is.

        The graphs are those of the distinct samples: a copy would be nobody's neighbour but its own.
        """
        views = views.filled()
        graphs, embedded = [], []
        part = distinct.views(views)
        for v, block in enumerate(part.blocks):
            here = np.arange(part.n) if part.present is None else np.flatnonzero(part.present[v])
            graph = fit_graph(block if len(here) == part.n else block[here], components, neighbors)
            rows = np.zeros((part.n, graph.vectors.shape[1]), np.float32)
            rows[here] = unit_rows(graph.vectors)
            graphs.append(graph)
            embedded.append(rows)
        joint, present = None, views.present
        if len(views.blocks) > 1:
            joint = fit_graph(_stack(part.blocks), components, neighbors)
            embedded.append(unit_rows(joint.vectors).astype(np.float32))
            present = None if present is None else np.vstack([present, np.ones(views.n, bool)])
        widths = tuple(block.shape[1] for block in views.blocks)
        made = cls(tuple(graphs), joint, widths)
        blocks = tuple(rows[distinct.copy] for rows in embedded)
        made._embed_unused(blocks, views, np.flatnonzero(distinct.copy < 0))
        return made, Views(blocks, present, views.weight)

    def _embed_unused(self, blocks: tuple[Floats, ...], views: Views, unused: NDArray[np.intp]) -> None:
        """Samples without weight are embedded like new ones."""
        if not unused.size:
            return
        new = views.take(unused)
        searches = [*self.graphs, *([] if self.joint is None else [self.joint])]
        parts = [*new.blocks, *([] if self.joint is None else [_stack(new.blocks)])]
        for rows, graph, block in zip(blocks, searches, parts, strict=True):
            rows[unused] = graph.embed(block)

    def transform(self, views: Views, used: Sequence[int]) -> tuple[Views, list[int]]:
        """Embed new samples of which the views in ``used`` are there."""
        views = views.filled()
        embedded = [self.graphs[place].embed(block) for place, block in zip(used, views.blocks, strict=True)]
        places, present = list(used), views.present
        if self.joint is not None and len(used) == len(self.widths):
            embedded.append(self.joint.embed(_stack(views.blocks)))
            places.append(len(self.widths))
            present = None if present is None else np.vstack([present, present.all(axis=0)])
        return Views(tuple(embedded), present, views.weight), places
