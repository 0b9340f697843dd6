"""The number of clusters that the data hold to."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from selfpaced import SelfPacedMultiViewKMeans


def counted(X, n_clusters="auto", n_init=5):
    return SelfPacedMultiViewKMeans(n_clusters, n_init=n_init, random_state=0).fit(X)


@pytest.mark.parametrize("clusters", [2, 4, 7])
def test_finds_the_number_of_blobs_outliers_or_not(clusters):
    X, y = make_blobs(300, 6, centers=clusters, random_state=clusters)
    outliers = np.random.default_rng(0).uniform(-60, 60, size=(20, 6))
    for table in (X, np.vstack([X, outliers])):
        found = counted(table, range(2, 10), n_init=10)
        assert found.n_clusters_ == clusters
        assert set(found.cluster_agreement_) == set(range(2, 10))
        assert f"{clusters} clusters of 2 to 9" in found.termination_
        assert adjusted_rand_score(y, found.labels_[:300]) > 0.95


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cloud", ["normal", "uniform", "lognormal"])
def test_unsure_if_there_are_no_clusters(seed, cloud):
    rng = np.random.default_rng(seed)
    X = rng.random((300, 2)) if cloud == "uniform" else getattr(rng, cloud)(size=(200, 4))
    with pytest.warns(ConvergenceWarning, match="number of clusters is unsure"):
        found = counted(X, range(2, 11))
    assert found.n_clusters_status_ == "unsure"
    assert "clusters of 2 to 10 tried (unsure: halves of the samples agree by at least" in found.termination_


def test_many_small_clusters_are_counted():
    X, y = make_blobs(600, 10, centers=20, random_state=3)
    found = counted(X)
    assert abs(found.n_clusters_ - 20) <= 1
    assert list(found.cluster_agreement_) == list(range(2, 25))
    assert adjusted_rand_score(y, found.labels_) > 0.9


def test_auto_tries_as_many_as_the_samples_allow():
    X, _ = make_blobs(60, 3, centers=3, random_state=10)
    found = counted(X)
    assert list(found.cluster_agreement_) == [2, 3, 4, 5, 6, 7]
    assert (found.n_clusters_, found.n_clusters_status_) == (3, "chosen")


def test_a_given_number_is_taken_as_it_is():
    X, _ = make_blobs(60, 3, centers=3, random_state=10)
    found = counted(X, 4)
    assert found.n_clusters_ == 4
    assert found.cluster_agreement_ == {}
    assert found.n_clusters_status_ == "given"
    assert "agree" not in found.termination_


@pytest.mark.parametrize("wrong", ["many", 0, True, 2.5, [], [1, 2], range(2, 2), [2, "3"]])
def test_a_number_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="n_clusters must be an integer >= 1, 'auto' or a range"):
        counted(np.zeros((30, 2)), wrong)


def test_too_few_samples_to_choose_from():
    with pytest.raises(ValueError, match="at most a quarter of the 30 samples to be chosen, got 9"):
        counted(np.random.default_rng(0).normal(size=(30, 2)), range(2, 10))
    with pytest.raises(ValueError, match="n_clusters='auto' needs at least 8 distinct samples, got 7"):
        counted(np.random.default_rng(0).normal(size=(7, 2)), "auto")


@pytest.mark.filterwarnings("ignore:the number of clusters is unsure")
@pytest.mark.parametrize("n", [8, 10, 17])
def test_few_samples_are_enough(n):
    X, _ = make_blobs(120, 6, centers=3, random_state=0)
    assert 2 <= counted(X[:n], "auto").n_clusters_ <= n // 4


def test_few_samples_whose_modularity_is_negative_get_a_number_too():
    with pytest.warns(ConvergenceWarning, match="number of clusters is unsure"):
        found = counted(np.random.default_rng(0).normal(size=(12, 4)))
    assert (found.n_clusters_, found.n_clusters_status_) == (2, "unsure")


def test_the_score_has_its_peak_near_the_truth():
    X, _ = make_blobs(300, 6, centers=4, random_state=4)
    scores = [counted(X, k).score(X) for k in (2, 4, 8, 12)]
    assert np.argmax(scores) in (0, 1)
    assert scores[1] > scores[2] > scores[3]


def test_the_score_of_a_single_cluster_is_zero():
    X, _ = make_blobs(60, 3, centers=3, random_state=10)
    assert counted(X, 1).score(X) == 0


def test_wide_views_are_counted_on_their_principal_components():
    X, _ = make_blobs(90, 80, centers=3, random_state=2)
    assert (counted(X).n_clusters_, counted([X[:, :30], X[:, 30:]]).n_clusters_) == (3, 3)


@pytest.mark.parametrize("scaling", ["unit-row", "none"])
def test_a_given_scaling_is_that_of_the_count_too(scaling):
    X, _ = make_blobs(60, 3, centers=3, random_state=10)
    found = SelfPacedMultiViewKMeans("auto", view_scaling=scaling, n_init=5, random_state=0).fit(X)
    assert found.n_clusters_ == 3
