"""The warm start, the rank and the rescue."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import svds

from selfpaced.factorization.engine import Engine
from selfpaced.factorization.row_refit import inlier_shares, refit_row, rescue_side
from selfpaced.factorization.start import balanced, continuation, random_factors, reveal_rank, ridge_bound

NUMPY = Engine(compiled=False)


def test_ridge_bound_is_the_norm_of_the_signs(csr, entries):
    signs = csr.copy()
    signs.data = np.sign(signs.data)
    exact = svds(signs, k=1, return_singular_vectors=False)[0]
    assert ridge_bound(entries) == pytest.approx(exact, rel=0.05)
    assert ridge_bound(entries) <= exact * (1 + 1e-9)


def test_balanced_keeps_the_product_and_orders_the_components(factors):
    U, V, values = balanced(*factors)
    np.testing.assert_allclose(U @ V.T, factors[0] @ factors[1].T, atol=1e-10)
    np.testing.assert_allclose(U.T @ U, np.diag(values), atol=1e-9)
    np.testing.assert_allclose(V.T @ V, np.diag(values), atol=1e-9)
    assert (np.diff(values) <= 0).all()
    assert (V[np.argmax(abs(V), axis=0), np.arange(4)] > 0).all()


def test_continuation_falls_and_settles():
    ridges = continuation(10.0, 1.0, 0.01, 20)
    assert ridges[0] == 10
    assert ridges[-1] == pytest.approx(0.1)
    assert (np.diff(ridges) <= 0).all()
    assert (ridges[-8:] == ridges[-1]).all()


@pytest.mark.parametrize(
    ("values", "complete", "rank"),
    [
        ([5, 4, 3, 0.5, 0.4, 0.3, 0.25, 0.2], False, 3),
        ([5, 4, 3, 2.9, 2.8, 2.7, 2.6, 0.2], False, 2),
        ([5, 4, 3], True, 3),
        ([5, 0.01, 0.001], True, 1),
        ([0, 0, 0], True, 1),
        ([7.0], False, 1),
        ([7.0, 6.0], False, 1),
    ],
)
def test_rank_is_the_largest_drop(values, complete, rank):
    assert reveal_rank(np.array(values, dtype=float), complete) == rank


def test_random_factors_have_the_magnitude_of_the_data(entries):
    U, V = random_factors(entries, 4, np.random.default_rng(0))
    assert 0.3 < np.median(abs(U @ V.T)) / np.median(abs(entries.by_row.values)) < 3


def test_refit_finds_the_clean_row_among_outliers():
    rng = np.random.default_rng(2)
    X, u = rng.standard_normal((50, 3)), np.array([1.0, -2.0, 0.5])
    y = X @ u + 0.05 * rng.standard_normal(50)
    y[:20] += rng.uniform(-20, 20, 20)
    found = refit_row(X, y, np.zeros(3), 0.05, rng)
    np.testing.assert_allclose(found, u, atol=0.3)
    assert refit_row(X, y, u, 0.05, rng) is None


@pytest.mark.parametrize("made_wrong", [[4], [4, 50]])
def test_rescue_repairs_lost_rows_only(made, entries, made_wrong):
    U, V = made.U.copy(), made.V.copy()
    U[made_wrong] = 7.0
    shares = inlier_shares(NUMPY, entries.by_row, U, V, 0.1)
    assert set(np.argsort(shares)[: len(made_wrong)]) == set(made_wrong)
    rescue_side(NUMPY, entries.by_row, U, V, 0.1, seed=0)
    np.testing.assert_allclose(U, made.U, atol=0.3)
