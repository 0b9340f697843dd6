"""Faults that linear regression once had: claims of exact fits, models without a row, rows assessed in another unit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from selfpaced import SelfPacedLinearRegression
from selfpaced.robust import truncated_sigma


@pytest.mark.parametrize("level", [-5.0, 5.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_target_far_from_zero_without_an_intercept(level: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3))
    X -= X.mean(axis=0)
    y = level + 0.1 * rng.normal(size=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SelfPacedLinearRegression(fit_intercept=False).fit(X, y)
    assert "exactly" not in model.termination_
    assert "intercept may be missing" in model.termination_
    np.testing.assert_array_equal(model.coef_, model.plain_.coef_)
    np.testing.assert_array_equal(model.sample_weight_, 1.0)
    assert model.noise_rate_ == 0
    assert model.scale_ == pytest.approx(5, abs=0.2)
    assert len(model.path_) == 2  # the paced fit was tried


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("rest", ["unrelated", "linear", "bent"])
@pytest.mark.parametrize("zeros", [0.6, 0.7, 0.9])
def test_a_target_of_many_zeros(fit_intercept: bool, rest: str, zeros: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    line = X @ [1.0, 2.0, 3.0]
    other = {"unrelated": rng.uniform(3, 8, size=300), "linear": line + 5, "bent": np.maximum(line, 0) + 0.1}[rest]
    y = np.where(rng.random(300) < zeros, 0.0, other)
    model = SelfPacedLinearRegression(fit_intercept=fit_intercept).fit(X, y)
    assert model.score(X, y) == pytest.approx(model.plain_.score(X, y))  # once down to -0.65
    assert "of the rows have the value 0" in model.termination_
    assert "exactly" not in model.termination_  # once "70 % of the rows are fitted exactly", with a scale of 0
    assert model.scale_ > 0.1
    plain, *others = model.path_
    assert plain.chosen
    assert others


def test_a_half_that_is_fitted_exactly_is_no_majority() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 2))
    y = X @ [1.0, 2.0] + np.where(np.arange(200) < 106, 0.0, rng.normal(size=200))
    model = SelfPacedLinearRegression().fit(X, y)
    assert "exactly" not in model.termination_
    assert model.scale_ > 0.1  # once 0, and every row with noise an outlier
    assert model.noise_rate_ < 0.1


def test_residuals_far_from_zero_have_a_scale() -> None:
    residuals = 5 + 0.1 * np.random.default_rng(0).normal(size=200)
    assert truncated_sigma(residuals) > 1  # once 0, which is an exact fit


def test_a_pace_that_leaves_no_row_keeps_the_plain_model() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=60)
    with pytest.warns(UserWarning, match="no row has any weight"):
        model = SelfPacedLinearRegression(regularizer="tukey", pace=1e-9).fit(X, y)
    np.testing.assert_array_equal(model.coef_, model.plain_.coef_)
    np.testing.assert_array_equal(model.sample_weight_, 1.0)


@pytest.mark.parametrize("regularizer", ["tukey", "logistic"])
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_the_rows_of_the_fit_weigh_the_same_as_new_ones(regularizer: str, size: float) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 3))
    y = size * (X @ [1.0, 2.0, 3.0] + rng.normal(size=200) + 15 * (np.arange(200) < 50))
    model = SelfPacedLinearRegression(regularizer=regularizer).fit(X, y)
    known, new = model.assess(X, y), model.assess(np.vstack([X, X[:1]]), np.append(y, y[0]))
    assert known is model.assessment_
    np.testing.assert_array_equal(known.weight, model.sample_weight_)
    np.testing.assert_allclose(new.weight[:-1], known.weight, atol=1e-9)
    np.testing.assert_allclose(new.losses[:-1] * model.loss_unit_, model.sample_loss_, rtol=1e-6, atol=1e-12 * size)
    assert known.wrong[:50].min() > 0.9 > 0.1 > np.median(known.wrong[50:])
    assert set(known.ranking(50)) == set(range(50))
    with pytest.raises(ValueError, match="y must be numbers"):
        model.assess(X, np.full(200, "high"))


@pytest.mark.parametrize("rows", [3_000, 60_000])
@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 3e5), (np.float64, 3e5), (np.float64, 1.7e12)])
def test_columns_that_depend_on_each_other_beside_a_large_one(rows, dtype, large):
    """Dummies of every level beside a price or a time: the price is no reason to drop the others."""
    rng = np.random.default_rng(0)
    level = np.eye(5)[rng.integers(0, 5, rows)]
    X = np.column_stack([large * (1 + 0.3 * rng.standard_normal(rows)), level, 0.01 * rng.standard_normal(rows)])
    y = level @ (2.0 * np.arange(5)) + 300 * X[:, 6] + 0.5 * rng.standard_normal(rows)
    model = SelfPacedLinearRegression().fit(X.astype(dtype), y)
    assert model.score(X.astype(dtype), y) > 0.97
    np.testing.assert_allclose(np.diff(model.coef_[1:6]), 2.0, atol=0.15)
