"""Heavy-tailed noise is not a list of errors; planted errors are found at both levels."""

from __future__ import annotations

import numpy as np
import pytest

from selfpaced import SelfPacedMF


def heavy_tailed(seed=0, shape=(120, 80)):
    """A periodic matrix of rank 3 with noise of three degrees of freedom, a tenth missing."""
    rng = np.random.default_rng(seed)
    hours = np.arange(shape[1]) * 2 * np.pi / 24
    cycles = np.stack([np.sin(hours), np.cos(2 * hours), np.ones(shape[1])])
    X = rng.normal(1, 0.5, (shape[0], 3)) @ cycles + 0.1 * rng.standard_t(3, shape)
    X[rng.random(shape) < 0.1] = np.nan
    return X, rng


def test_clean_heavy_tails_are_hardly_listed():
    X, _ = heavy_tailed()
    model = SelfPacedMF(random_state=0).fit(X)
    levels = model.assessment_.levels()
    assert (levels > 0).mean() <= 0.02
    assert len(model.outliers_) == (levels == 2).sum()


@pytest.mark.parametrize(("size", "recall"), [((5, 15), 0.99), ((2, 4), 0.95)])
def test_planted_errors_are_found(size, recall):
    X, rng = heavy_tailed(1)
    wrong = (rng.random(X.shape) < 0.05) & ~np.isnan(X)
    X[wrong] += rng.choice([-1, 1], wrong.sum()) * rng.uniform(*size, wrong.sum()) * np.nanstd(X)
    model = SelfPacedMF(random_state=0).fit(X)
    found = wrong[model.outliers_["row"], model.outliers_["column"]]
    assert found.mean() >= 0.85
    assert found.sum() >= recall * wrong.sum()
    np.testing.assert_array_equal(model.sparse_ != 0, model.sparse_.astype(bool))
    assert np.count_nonzero(model.sparse_) == len(model.outliers_)


def test_normal_noise_keeps_a_narrow_core():
    """Errors of six standard deviations are found if the noise is normal."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 60)) + 0.1 * rng.normal(size=(100, 60))
    wrong = rng.random(X.shape) < 0.05
    X[wrong] += 0.6 * rng.choice([-1, 1], wrong.sum())
    model = SelfPacedMF(2, random_state=0).fit(X)
    found = wrong[model.outliers_["row"], model.outliers_["column"]]
    assert found.mean() > 0.95
    assert found.sum() > 0.8 * wrong.sum()


@pytest.mark.parametrize(("shape", "rank", "most"), [((6, 6), 2, 0.12), ((12, 12), 3, 0.03), ((15, 10), 2, 0.03)])
def test_few_entries_that_a_fit_could_not_predict_are_no_errors(shape, rank, most):
    rng = np.random.default_rng(1)
    listed = []
    for _ in range(4):
        X = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1])) + 0.1 * rng.normal(size=shape)
        listed.append(len(SelfPacedMF(random_state=0).fit(X).outliers_) / X.size)
        X[1, 1] += 20
        found = SelfPacedMF(random_state=0).fit(X).outliers_
        assert (found["row"][0], found["column"][0]) == (1, 1)
    assert np.mean(listed) <= most
