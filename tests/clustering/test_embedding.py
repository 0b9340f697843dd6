"""Spectral embeddings in front of the clustering, and the baselines."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons

from selfpaced import SelfPacedMultiViewKMeans
from selfpaced.clustering.embedding import leading_vectors
from selfpaced_experiments.metrics import clustering_accuracy


def moons(n=300, seed=0):
    """Two views of clusters that no k-means can separate."""
    a, y = make_moons(n, noise=0.05, random_state=seed, shuffle=False)
    b, _ = make_moons(n, noise=0.05, random_state=seed + 1, shuffle=False)
    return {"a": a, "b": b}, y


def model(**settings):
    return SelfPacedMultiViewKMeans(2, embedding="spectral", n_init=5, random_state=0, **settings)


def test_embedding_separates_what_k_means_cannot():
    views, y = moons()
    plain = SelfPacedMultiViewKMeans(2, n_init=5, random_state=0).fit(views)
    found = model().fit(views)
    assert clustering_accuracy(y, plain.labels_) < 0.95
    assert clustering_accuracy(y, found.labels_) > 0.99
    assert found.view_names_ == ["a", "b", "joint"]
    assert found.sample_weight_.shape == (300, 3)
    assert found.cluster_centers_["a"].shape == (2, 2)


def test_new_samples_from_all_or_some_views():
    views, y = moons()
    fresh, target = moons(100, seed=7)
    found = model().fit(views)
    names = np.array([found.labels_[y == k][0] for k in (0, 1)])
    for part in (fresh, {"b": fresh["b"]}):
        assert (found.predict(part) == names[target]).mean() > 0.97
    assert found.transform(fresh).shape == (100, 2)


def test_missing_views_stay_missing_and_sparse_views_embed():
    views, y = moons()
    views["a"] = views["a"].copy()
    views["a"][::10] = np.nan
    found = model().fit(views)
    assert clustering_accuracy(y, found.labels_) > 0.97
    assert (found.sample_weight_[::10, 0] == 0).all()
    assert (found.predict(views) == found.labels_).mean() > 0.95
    views, y = moons()
    views["a"] = sp.csr_matrix(views["a"])
    assert clustering_accuracy(y, model().fit(views).labels_) > 0.97


def test_single_view_has_no_joint_graph():
    views, y = moons()
    found = model().fit(views["a"])
    assert found.view_names_ == [0]
    assert clustering_accuracy(y, found.labels_) > 0.97


@pytest.mark.parametrize("n", [30, 120])
def test_vectors_diagonalise_the_normalised_graph(n):
    rng = np.random.default_rng(0)
    graph = sp.csr_matrix((rng.random((n, n)) < 0.2).astype(float))
    graph.setdiag(1)
    vectors = leading_vectors(graph, 4)
    dense = (graph + graph.T).toarray() / 2
    root = np.sqrt(dense.sum(axis=1))
    normal = dense / root / root[:, None]
    values = np.linalg.eigvalsh(normal)[::-1][:4]
    np.testing.assert_allclose(np.diag(vectors.T @ normal @ vectors), values, atol=1e-4)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-6)
