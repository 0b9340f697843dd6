"""Rows of unusual features, and rows that alone determine a coefficient."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from selfpaced import SelfPacedLinearRegression, suspects


def stretched(seed: int, factor: float = 10.0):
    """Positive features of 30 among 600 rows are too large; the spread of the values grows with the first feature."""
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(600, 3))) + 0.5
    y = 3 + X @ [2.0, 1.0, 0.5] + 0.3 * X[:, 0] * rng.normal(size=600)
    X[:30] *= factor
    return X, y


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_stretched_features_do_not_win(seed: int) -> None:
    X, y = stretched(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = SelfPacedLinearRegression().fit(X, y)
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_], [3.0, 2.0, 1.0, 0.5], atol=0.3)


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_a_relation_that_saturates_is_not_a_wrong_feature(seed: int) -> None:
    """Large features with values on one side are right, however far they are from the line of the others."""
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(400, 2)))
    y = 3 * np.minimum(X[:, 0], 2) + X[:, 1] + 0.5 * rng.normal(size=400)
    model = SelfPacedLinearRegression().fit(X, y)
    assert np.mean((y - model.predict(X)) ** 2) < 1.2 * np.mean((y - model.plain_.predict(X)) ** 2)


def reference(seed: int, noise: str, n: int = 120):
    """Levels of a category without the column of the first one, which the last row alone has."""
    rng = np.random.default_rng(seed)
    level = np.r_[rng.integers(1, 5, n - 1), 0]
    X = np.c_[(level[:, None] == np.arange(1, 5)).astype(float), rng.normal(size=(n, 2))]
    y = np.array([6.0, 0.0, 1.0, 2.0, 3.0])[level] + X[:, 4] - X[:, 5] + rng.normal(size=n)
    bad = rng.choice(n - 1, n // 20, replace=False)
    if noise == "values":
        y[bad] *= 10
    elif noise == "features":
        X[bad] *= 10
    return X, y


@pytest.mark.filterwarnings("ignore:.*coefficients are unstable")  # a row of wrong features may be far off
@pytest.mark.parametrize("noise", ["none", "values", "features"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_only_row_of_a_level_keeps_its_weight(noise: str, dtype: type) -> None:
    for seed in range(8 if dtype is np.float64 else 2):
        X, y = reference(seed, noise)
        model = SelfPacedLinearRegression().fit(X.astype(dtype), y)
        # rows of wrong features may have a say in that level, too
        assert model.sample_weight_[-1] > (0.4 if noise == "features" else 0.999), seed
        if noise != "features":
            assert model.predict(X[-1:].astype(dtype))[0] == pytest.approx(y[-1], abs=1e-2), seed
        assert np.abs(model.coef_).max() < 12, seed


def nearly_constant(seed: int, spread: float):
    """A column that hardly varies, but for the rows whose features are ten times too large."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=(200, 2)), 1 + spread * rng.normal(size=200)]
    y = X[:, :2] @ [1.0, 2.0] + rng.normal(size=200)
    X[rng.choice(200, 10, replace=False)] *= 10
    return X, y


@pytest.mark.parametrize("spread", [1e-2, 1e-4, 1e-5, 1e-7])
def test_wild_coefficients_are_told(spread: float) -> None:
    wild = 0
    for seed in range(4):
        X, y = nearly_constant(seed, spread)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = SelfPacedLinearRegression().fit(X, y)
        chosen = next(candidate for candidate in model.path_ if candidate.chosen)
        assert model.path_[0].far_off == 0
        assert any("coefficients are unstable" in str(one.message) for one in told) == (chosen.far_off > 0)
        if np.abs(model.coef_).max() > 30:
            assert chosen.far_off == 10
            wild += 1
    assert wild > 0 or spread == 1e-2


@pytest.mark.parametrize("factor", [3.0, 10.0, 100.0, 1000.0])
def test_no_trusted_row_is_predicted_absurdly_in_silence(factor: float) -> None:
    for seed in range(2):
        X, y = stretched(seed, factor)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = SelfPacedLinearRegression().fit(X, y)
        off = np.abs(y - model.predict(X))[model.assessment_.wrong <= 0.5]
        worst = np.abs(y - model.plain_.predict(X)).max()
        assert off.max() <= 10 * worst * (1 + 1e-9) or any("unstable" in str(one.message) for one in told)


def test_outliers_that_a_fit_knows_are_no_reason_to_warn() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=200)
    X[:10] *= 100
    model = SelfPacedLinearRegression().fit(X, y)  # warnings are errors in tests
    np.testing.assert_allclose(model.coef_, [1.0, 2.0, 3.0], atol=0.3)
    assert model.sample_weight_[:10].max() < 0.1


@pytest.mark.parametrize("step", [0.0, 0.01])
@pytest.mark.parametrize("noise", [0.05, 0.3])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_rows_that_tell_a_mostly_constant_feature_are_kept(alpha: float, noise: float, step: float) -> None:
    """Three of ten features are constant for most of the rows, so 23 % of the rows tell their coefficients."""
    rng = np.random.default_rng(0)
    often = rng.normal(0.0, 0.35, (1300, 7))
    seldom = np.where(rng.random((1300, 3)) < 0.08, -0.67 - rng.exponential(size=(1300, 3)), 0.0)
    y = often.sum(axis=1) + seldom.sum(axis=1) + noise * rng.normal(size=1300)
    X = np.c_[often, seldom]
    X[:3] -= 20  # rows of wrong features
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if step:
        y = np.round(y / step) * step
    model = SelfPacedLinearRegression(alpha=alpha).fit(X, y)
    assert np.quantile(np.abs(y - model.predict(X))[3:], 0.95) < 3 * max(noise, step / 2)
    found = suspects(model, X, y)
    assert set(found["row"][found["level"] == "likely error"]) <= {0, 1, 2}


@pytest.mark.parametrize("seed", range(4))
def test_a_total_of_rounded_parts_has_no_likely_errors(seed: int) -> None:
    """Half of the rows fit exactly and the others are a step or two off: no residual is below rounding."""
    rng = np.random.default_rng(seed)
    exact = rng.normal(7.5, 0.35, (1000, 5))
    parts, total = np.round(exact, 2), np.round(exact.sum(axis=1), 2)
    parts[0] = 0.0  # one wrong row
    model = SelfPacedLinearRegression().fit(parts, total)
    np.testing.assert_allclose(model.coef_, 1.0, atol=0.01)
    assert not len(suspects(model, parts, total).query("level == 'likely error' and row > 0"))
