"""Scaling by the form of a view."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from selfpaced import SelfPacedMultiViewKMeans
from selfpaced.clustering.views import is_direction

from .conftest import blobs


def counts(n=300, k=4, words=400, seed=0):
    """Word counts of documents of very different lengths, each of one topic."""
    rng = np.random.default_rng(seed)
    topics = rng.gamma(0.3, size=(k, words)) / np.arange(5, words + 5)
    topics /= topics.sum(axis=1, keepdims=True)
    y = np.arange(n) % k
    lengths = np.maximum(10, rng.lognormal(3.5, 1, n)).astype(int)
    return np.stack([rng.multinomial(length, topics[c]) for length, c in zip(lengths, y, strict=True)]).astype(float), y


def fitted(X, k=4, **settings):
    return SelfPacedMultiViewKMeans(k, n_init=5, random_state=0, **settings).fit(X)


def test_counts_are_directions_and_z_scores_destroy_them():
    words, y = counts()
    for view in (words, sp.csr_matrix(words)):
        found = fitted(view)
        assert found.view_scaling_ == {0: "unit-row"}
        assert adjusted_rand_score(y, found.labels_) > 0.9
        np.testing.assert_array_equal(found.predict(view), found.labels_)
    assert adjusted_rand_score(y, fitted(words, view_scaling="zscore").labels_) < 0.6


def test_each_view_has_its_own_scaling_and_the_same_say():
    words, y = counts()
    (numbers,), _ = blobs(300, 4, (5,), spread=1.5)
    found = fitted({"words": words, "numbers": numbers})
    assert found.view_scaling_ == {"words": "unit-row", "numbers": "zscore"}
    assert adjusted_rand_score(y, found.labels_) > 0.9
    total = np.array([np.median(found.sample_loss_[:, v]) for v in range(2)])
    assert total.max() < 5 * total.min()


@pytest.mark.parametrize("scaling", ["zscore", "variance", "unit-row", "none"])
def test_a_given_scaling_is_taken(scaling):
    assert fitted(counts()[0], view_scaling=scaling).view_scaling_ == {0: scaling}


def test_a_typo_does_not_change_the_form():
    words, _ = counts()
    assert is_direction(words)
    words[3, 5] = -7
    assert is_direction(words)
    assert not is_direction(-words)


def test_what_is_no_direction():
    words, _ = counts()
    assert not is_direction(words[:, :3])  # too few columns
    assert not is_direction(words + 1)  # no zeros
    assert not is_direction(np.random.default_rng(0).normal(size=(50, 20)))


def test_noise_in_some_rows_does_not_change_the_form():
    words, _ = counts()
    rng = np.random.default_rng(0)
    noisy = rng.random(len(words)) < 0.2
    words = np.array(words, dtype=float)
    words[noisy] += rng.normal(size=(noisy.sum(), words.shape[1]))
    assert fitted(words).view_scaling_ == {0: "unit-row"}


@pytest.mark.parametrize("seed", [0, 1])
def test_spectral_clusters_are_tried_where_seeds_miss_clusters(seed):
    """Fifteen topics: two restarts from k-means++ end at 0.77 to 0.81."""
    words, y = counts(n=400, k=15, seed=1)
    found = SelfPacedMultiViewKMeans(15, n_init=2, random_state=seed).fit(words)
    assert adjusted_rand_score(y, found.labels_) > 0.85
    np.testing.assert_array_equal(found.predict(words), found.labels_)
