"""Rows that a fit has lost, and narrow matrices: many rows of a few entries each."""

from __future__ import annotations

import numpy as np
import pytest

from selfpaced import SelfPacedMF
from selfpaced.datasets import make_low_rank


def rmse(model, truth):
    return float(np.sqrt(np.mean((model.reconstruct() - truth) ** 2)))


@pytest.fixture(scope="module")
def tall():
    return make_low_rank(800, 10, 2, missing=0.2, outliers=0.1, random_state=7)


@pytest.fixture(scope="module")
def fitted(tall):
    return SelfPacedMF(random_state=0).fit(tall.data)


def test_rows_of_a_few_entries_are_not_lost(tall, fitted):
    """Without the refit a few rows fit their wrong entries: several times the error that is left here."""
    assert (fitted.rank_, fitted.quality_) == (2, "recovered")
    assert fitted.n_rescued_ > 0
    error = rmse(fitted, tall.truth)
    assert error < 0.15
    assert rmse(SelfPacedMF(rescue=False, random_state=0).fit(tall.data), tall.truth) > 2 * error


def test_columns_of_a_few_entries(tall):
    wide = SelfPacedMF(random_state=0).fit(tall.data.T)
    assert wide.rank_ == 2
    assert rmse(wide, tall.truth.T) < 0.15


def test_components_are_orthogonal_largest_first_and_have_a_sign(tall):
    wide = SelfPacedMF(2, center=None, ridge=0.005, random_state=0).fit(tall.data.T)
    gram = wide.components_ @ wide.components_.T
    assert abs(gram[0, 1]) < 1e-9 * gram[0, 0]
    assert gram[0, 0] > gram[1, 1]
    assert (wide.components_[np.arange(2), np.abs(wide.components_).argmax(axis=1)] > 0).all()


def test_with_means(tall):
    """First means of a few entries may be far off; what is usual is said of the whole mean."""
    level = 5 + 2 * np.random.default_rng(1).standard_normal((800, 1))
    found = SelfPacedMF(random_state=0).fit(tall.data + level)
    assert (found.rank_, found.center_) == (2, "both")
    assert rmse(found, tall.truth + level) < 0.18
    same = np.isclose(found.transform(tall.data + level)[:, :2], found.row_factors_, atol=1e-6).all(axis=1)
    assert same.mean() > 0.98


def test_new_rows_are_fitted_in_the_same_way_whatever_rows_come_with_them(tall, fitted):
    coordinates = fitted.transform(tall.data)
    same = np.isclose(coordinates, fitted.row_factors_, atol=1e-6).all(axis=1)
    assert same.mean() > 0.98
    np.testing.assert_allclose(fitted.transform(tall.data[5:8]), coordinates[5:8], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_usual_decides_between_two_explanations(dtype):
    """Three entries of six are wrong and agree with a wild row; the other rows are small."""
    rng = np.random.default_rng(0)
    V, U = rng.standard_normal((6, 2)), rng.standard_normal((100, 2))
    X = U @ V.T + 0.01 * rng.standard_normal((100, 6))
    X[3, :3] = V[:3] @ np.array([60.0, -80.0])
    found = SelfPacedMF(2, center=None, ridge=0.005, random_state=0).fit(X.astype(dtype))
    assert found.row_factors_.dtype == dtype
    np.testing.assert_allclose(found.reconstruct()[3], U[3] @ V.T, atol=0.1)


def test_lost_rows_are_refitted():
    """43 % wrong: some row ends in a wrong optimum, which random subsets of its entries do not share."""
    lost = []
    for seed in range(4):
        made = make_low_rank(outliers=0.26, random_state=seed)
        given = {"rank": 4, "center": None, "ridge": 0.005, "random_state": 0}
        model = SelfPacedMF(**given).fit(made.data)
        assert rmse(model, made.truth) < 0.07
        lost.append(rmse(SelfPacedMF(rescue=False, **given).fit(made.data), made.truth))
    assert max(lost) > 0.07


def test_a_lost_row_of_many_components():
    """One lost row at rank 34: its random subsets alone fill more than one batch."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((120, 34)) @ rng.standard_normal((34, 120))
    X = truth + 0.01 * rng.standard_normal(truth.shape)
    X[5, :50] += rng.choice([-60.0, 60.0], 50)
    found = SelfPacedMF(34, center=None, ridge=0.005, random_state=0).fit(X)
    assert np.sqrt(np.mean(np.delete(found.reconstruct() - truth, 5, axis=0) ** 2)) < 0.05
