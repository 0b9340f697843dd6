"""Samples of which some cells are not known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from selfpaced import SelfPacedMultiViewKMeans
from selfpaced.clustering.kernels import Cost, Holed, Views, distances, row_norms, sweep

from .conftest import blobs


def model(**settings):
    return SelfPacedMultiViewKMeans(3, n_init=5, random_state=0, **settings)


def holed(views, share, seed=1):
    rng = np.random.default_rng(seed)
    return [np.where(rng.random(view.shape) < share, np.nan, view) for view in views]


def test_distances_are_those_of_the_known_columns_scaled_up():
    rng = np.random.default_rng(0)
    rows, centers = rng.normal(size=(20, 5)), rng.normal(size=(3, 5))
    known = rng.random((20, 5)) < 0.7
    known[0] = True
    block = Holed(np.where(known, rows, 0), known.astype(float))
    found = distances(block, row_norms(block), centers)
    gaps = (rows[None] - centers[:, None]) ** 2 * known
    np.testing.assert_allclose(found, gaps.sum(axis=2) * 5 / np.maximum(known.sum(axis=1), 1), atol=1e-12)


def test_centres_are_the_means_of_what_is_known():
    rng = np.random.default_rng(0)
    known = rng.random((40, 4)) < 0.6
    known[:, 0] = True
    block = Holed(np.where(known, rng.normal(size=(40, 4)), 0), known.astype(float))
    views, centers = Views((block,)), [np.zeros((1, 1, 4))]
    for _ in range(200):
        centers = sweep(views, views.norms(), centers, Cost()).centers
    mass = known / known.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(centers[0][0, 0], (mass * block.filled).sum(axis=0) / mass.sum(axis=0), atol=1e-9)


@pytest.mark.parametrize("scaling", ["auto", "variance", "unit-row", "none"])
@pytest.mark.parametrize("regularizer", ["welsch", "hard", None])
def test_clusters_are_found_through_holes(scaling, regularizer):
    views, y = blobs(widths=(6, 5), spread=0.4)
    full = model(view_scaling=scaling, regularizer=regularizer).fit(views)
    found = model(view_scaling=scaling, regularizer=regularizer).fit(holed(views, 0.2))
    assert adjusted_rand_score(y, found.labels_) >= adjusted_rand_score(y, full.labels_) - 0.1
    assert np.isfinite(found.sample_loss_).all()
    assert np.isfinite(found.sample_weight_).all()
    assert all(np.isfinite(center).all() for center in found.cluster_centers_)


def test_holes_in_new_samples(two_views):
    views, _ = two_views
    found = model().fit(views)
    assert adjusted_rand_score(found.labels_, found.predict(holed(views, 0.2))) > 0.95
    assert np.isfinite(found.transform(holed(views, 0.2))).all()


def test_a_row_of_nan_is_still_a_view_that_is_not_there(two_views):
    (a, b), _ = two_views
    a = holed([a], 0.1)[0]
    a[7] = np.nan
    found = model().fit([a, b])
    assert found.sample_weight_[7, 0] == 0
    assert found.sample_weight_[7, 1] > 0


def test_an_embedding_takes_the_mean_for_what_is_not_known(two_views):
    views, y = two_views
    assert adjusted_rand_score(y, model(embedding="spectral").fit(holed(views, 0.1)).labels_) > 0.8


def test_a_sparse_view_may_not_have_holes(two_views):
    (a, b), _ = two_views
    sparse = sp.csr_matrix(a)
    sparse.data[5] = np.nan
    with pytest.raises(ValueError, match=r"view 0 is sparse and must hold no NaN inside a row, got NaN in 1 rows"):
        model().fit([sparse, b])
