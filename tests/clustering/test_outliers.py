"""Outliers are marked, tails are not."""

from __future__ import annotations

import numpy as np
import pytest

from selfpaced import SelfPacedMultiViewKMeans
from selfpaced.clustering.n_clusters import UsualLoss, usual_loss


def groups(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) + np.repeat([[0], [8]], n // 2, axis=0)


def marked(X, **setting):
    return SelfPacedMultiViewKMeans(2, random_state=0, **setting).fit(X)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_heavy_tail_is_not_taken_for_outliers(d):
    """Of 200 lognormal samples without any error 40 to 50 were once marked."""
    found = [marked(np.random.default_rng(seed).lognormal(size=(200, d))) for seed in range(6)]
    assert np.mean([one.outliers_.mean() for one in found]) < 0.01
    assert np.median([(one.assessment_.diagnosis.wrong > 0.5).sum() for one in found]) <= 4


@pytest.mark.parametrize("d", [1, 2, 10])
def test_round_clusters_have_no_outliers(d):
    assert not marked(groups(300, d)).outliers_.any()


@pytest.mark.parametrize("count", [1, 5, 20, 70])
def test_outliers_are_marked_few_or_many(count):
    outliers = np.random.default_rng(1).uniform(20, 60, (count, 2)) * np.random.default_rng(2).choice(
        [-1, 1], (count, 2)
    )
    found = marked(np.vstack([groups(130, 2), outliers]))
    assert found.outliers_[130:].all()
    assert found.outliers_[:130].sum() <= 1
    assert found.assessment_.diagnosis.wrong[130:].min() > 0.5


def test_a_new_outlier_is_known_by_the_losses_of_the_training_rows():
    found = marked(groups(200, 2))
    wrong = found.assess(np.array([[0.5, 0.0], [300.0, -300.0]])).diagnosis.wrong
    assert wrong[0] < 0.1
    assert wrong[1] > 0.9


def test_the_unit_of_losses_and_whole_weights():
    loss = np.random.default_rng(0).lognormal(size=99)
    plain, scaled = usual_loss(loss, None, 3.5), usual_loss(1e6 * loss, None, 3.5)
    assert scaled.median == pytest.approx(1e6 * plain.median)
    assert scaled.spread == pytest.approx(plain.spread)
    count = np.random.default_rng(1).integers(1, 4, 99)
    assert usual_loss(loss, count.astype(float), 3.5) == usual_loss(np.repeat(loss, count), None, 3.5)


def test_samples_at_their_centre():
    none = usual_loss(np.zeros(5), None, 3.5)
    np.testing.assert_array_equal(none.excess(np.zeros(5)), 0.0)
    some = usual_loss(np.array([0.0] * 9 + [2.0]), None, 3.5)
    assert some.spread == 0
    assert (some.excess(np.array([0.0, 2.0])) > 0).tolist() == [False, True]
    assert UsualLoss(1.0, 1.0, 1e-12).excess(np.array([0.5, np.e])).tolist() == [0.0, 1.0]


def test_few_distinct_samples_have_no_outliers():
    # two of the four places share a centre, so half of the samples are at theirs and half are not
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 6)), 30, axis=0)
    model = SelfPacedMultiViewKMeans(3, random_state=0).fit(X)
    assert not model.outliers_.any()
    assert np.isfinite(model.assess(X).wrong).all()
