"""Narrow matrices: many rows of a few entries each."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from selfpaced import SelfPacedMF
from selfpaced.datasets import make_low_rank
from selfpaced.factorization.entries import from_csr
from selfpaced.factorization.row_refit import THIN, is_thin, refit_thin, usual_rows


def rmse(model, truth):
    return float(np.sqrt(np.mean((model.reconstruct() - truth) ** 2)))


@pytest.fixture(scope="module")
def tall():
    return make_low_rank(800, 10, 2, missing=0.2, outliers=0.1, random_state=7)


@pytest.fixture(scope="module")
def fitted(tall):
    return SelfPacedMF(random_state=0).fit(tall.data)


def test_rows_of_a_few_entries_are_not_lost(tall, fitted, monkeypatch):
    """By subsets alone a few rows fit their wrong entries: several times the error that is left here."""
    assert (fitted.rank_, fitted.quality_) == (2, "recovered")
    error = rmse(fitted, tall.truth)
    assert error < 0.15
    monkeypatch.setattr("selfpaced.factorization.solve.is_thin", lambda *_: False)
    assert rmse(SelfPacedMF(random_state=0).fit(tall.data), tall.truth) > 2 * error


def test_columns_of_a_few_entries(tall):
    wide = SelfPacedMF(random_state=0).fit(tall.data.T)
    assert wide.rank_ == 2
    assert rmse(wide, tall.truth.T) < 0.15
    gram = wide.components_ @ wide.components_.T
    assert abs(gram[0, 1]) < 1e-9 * gram[0, 0]


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


def side_of(X):
    rows, columns = np.nonzero(~np.isnan(X))
    return from_csr(sp.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)).by_row


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_usual_decides_between_two_explanations(dtype):
    """Three entries of six are wrong and agree with a wild row; the other rows are small."""
    rng = np.random.default_rng(0)
    V = rng.standard_normal((6, 2)).astype(dtype)
    U = rng.standard_normal((100, 2)).astype(dtype)
    X = U @ V.T
    X[3, :3] = V[:3] @ np.array([60.0, -80.0])
    side = side_of(X)
    start = U.copy()
    start[3] = [60.0, -80.0]
    moved = refit_thin(side, start, V, 0.01, usual_rows(start, side.counts()), 0)
    assert moved == 1
    assert start.dtype == dtype
    np.testing.assert_allclose(start, U, atol=0.05)


def test_a_row_without_entries_stays():
    X = np.full((40, 5), np.nan)
    X[:30] = 1.0
    U, V = np.ones((40, 1)), np.ones((5, 1))
    U[30:] = 7.0
    side = side_of(X)
    assert refit_thin(side, U, V, 0.1, usual_rows(U, side.counts()), 0) == 0
    assert (U[30:] == 7.0).all()
    np.testing.assert_allclose(U[:30], 1.0)


def test_only_long_sides_with_few_entries_are_thin():
    few, many = side_of(np.ones((200, 10))), side_of(np.ones((200, 2 * THIN + 1)))
    assert is_thin(few, 10, 2)
    assert not is_thin(few, 100, 2)
    assert not is_thin(few, 10, 0)
    assert not is_thin(many, 25, 2)
    assert is_thin(few, 10, 3, own_mean=True)
    assert not is_thin(few, 10, 4, own_mean=True)  # ten entries, five numbers: they explain whatever there is
