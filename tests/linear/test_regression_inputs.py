"""Bad input to SelfPacedLinearRegression: a clear error or a sane model."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

from selfpaced import SelfPacedLinearRegression
from selfpaced.regularizers import Diversity


@pytest.fixture
def lines():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, X @ [1.0, 2.0, 3.0] + 5 + rng.normal(size=80)


def test_an_exact_fit_with_outliers(lines) -> None:
    X, _ = lines
    y = X @ [1.0, 2.0, 3.0] + 5
    y[:30] += np.random.default_rng(1).uniform(1, 9, size=30)
    model = SelfPacedLinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, [1, 2, 3], atol=1e-9)
    assert 0 < model.scale_ < 1e-9  # the size of rounding
    assert (model.sample_weight_[:30] == 0).all()
    assert (model.sample_weight_[30:] > 0).all()
    assert "exactly" in model.termination_
    assert model.noise_rate_ == pytest.approx(30 / 80, abs=0.02)


def test_an_exact_fit_of_every_row(lines) -> None:
    X, _ = lines
    model = SelfPacedLinearRegression().fit(X, X @ [1.0, 2.0, 3.0] + 5)
    np.testing.assert_allclose(model.coef_, [1, 2, 3])
    assert np.isinf(model.lam_)
    assert model.noise_rate_ == 0


def test_a_constant_target(lines) -> None:
    model = SelfPacedLinearRegression().fit(lines[0], np.full(80, 4.0))
    np.testing.assert_allclose(model.coef_, 0, atol=1e-12)
    assert model.intercept_ == pytest.approx(4)


def test_a_mostly_constant_target(lines) -> None:
    y = np.zeros(80)
    y[:20] = np.arange(20)
    model = SelfPacedLinearRegression().fit(lines[0], y)
    np.testing.assert_array_equal(model.coef_, model.plain_.coef_)  # once all zero, with 20 outliers and no noise
    assert model.scale_ > 1
    assert "76 % of the rows have the value 0" in model.termination_


def test_constant_and_duplicated_features(lines) -> None:
    X, y = lines
    y = y.copy()
    y[:20] += 30
    wide = np.column_stack([X, np.full(80, 7.3), X[:, 0], 2 * X[:, 1]])
    model = SelfPacedLinearRegression().fit(wide, y)
    narrow = SelfPacedLinearRegression().fit(X, y)
    assert model.coef_[3] == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(model.predict(wide), narrow.predict(X), rtol=1e-3)
    only = SelfPacedLinearRegression().fit(np.full((80, 1), 3.0), y)
    assert abs(only.predict([[3.0]])[0] - np.median(y[20:])) < 1.5


def test_duplicated_rows(lines) -> None:
    X, y = lines
    y = y.copy()
    y[:16] += 25
    once = SelfPacedLinearRegression().fit(X, y)
    thrice = SelfPacedLinearRegression().fit(np.tile(X, (3, 1)), np.tile(y, 3))
    np.testing.assert_allclose(once.coef_, thrice.coef_, atol=0.1)
    same = SelfPacedLinearRegression().fit(np.ones((50, 2)), np.arange(50.0))
    assert same.predict([[1.0, 1.0]])[0] == pytest.approx(24.5, abs=2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_inf_are_refused(lines, bad: float) -> None:
    X, y = lines
    with pytest.raises(ValueError, match="NaN|infinity"):
        SelfPacedLinearRegression().fit(np.where(np.arange(80)[:, None] == 3, bad, X), y)
    with pytest.raises(ValueError, match="NaN|infinity"):
        SelfPacedLinearRegression().fit(X, np.where(np.arange(80) == 3, bad, y))


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (np.zeros(80), "not be zero for every row"),
        (np.full(80, -1.0), "must be >= 0"),
        (np.full(80, np.nan), "must be finite"),
        (np.ones(79), "one value per row"),
    ],
)
def test_bad_weights_are_refused(lines, weight, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        SelfPacedLinearRegression().fit(*lines, sample_weight=weight)


@pytest.mark.parametrize("dtype", [str, object])
def test_text_targets_are_refused(lines, dtype) -> None:
    with pytest.raises(ValueError, match="y must be numbers"):
        SelfPacedLinearRegression().fit(lines[0], np.array(["low", "high"] * 40, dtype=dtype))


def test_several_targets_are_refused(lines) -> None:
    X, y = lines
    with pytest.raises(ValueError, match="one model per target"):
        SelfPacedLinearRegression().fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_too_few_rows_for_a_search_give_the_plain_fit(n: int) -> None:
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 4)), rng.normal(size=n)
    with pytest.warns(UserWarning, match=f"{n} rows for .* coefficients"):
        model = SelfPacedLinearRegression().fit(X, y)
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), atol=1e-9)
    assert np.isinf(model.lam_)
    assert "rows" in model.termination_


def test_more_features_than_rows_with_a_ridge() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 200))
    coef = np.zeros(200)
    coef[:3] = 8
    y = X @ coef + rng.normal(size=120)
    y[:18] += 150
    model = SelfPacedLinearRegression(alpha=400.0).fit(X, y)
    assert model.sample_weight_[:18].max() < 0.2
    test = rng.normal(size=(500, 200))
    paced, plain = (np.mean((m.predict(test) - test @ coef) ** 2) for m in (model, model.plain_))
    assert paced < 0.6 * plain


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"alpha": -1}, "alpha must be"),
        ({"alpha": np.inf}, "alpha must be"),
        ({"pace": "fast"}, "pace must be"),
        ({"pace": -2.0}, "pace must be"),
        ({"pace": True}, "pace must be"),
        ({"efficiency": 1.0}, "efficiency must be"),
        ({"start": "random"}, "start must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": 0}, "tol must be"),
        ({"regularizer": "tukkey"}, "did you mean 'tukey'"),
        ({"regularizer": Diversity(gamma=1.0)}, "groups of samples"),
    ],
)
def test_bad_parameters_name_rule_and_value(lines, params, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        SelfPacedLinearRegression(**params).fit(*lines)


def test_no_convergence_is_a_warning_with_the_last_fit(lines) -> None:
    X, y = lines
    y = np.where(np.arange(80) < 20, y + 20, y)
    with pytest.warns(ConvergenceWarning, match="did not settle in 1 weighted fit"):
        model = SelfPacedLinearRegression(max_iter=1, tol=1e-14).fit(X, y)
    assert model.sample_weight_[:20].max() == 0


@pytest.mark.parametrize("kind", ["t3", "skewed", "counts", "bend", "outliers", "leverage"])
def test_default_settings_settle(kind: str) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 3))
        y = X @ [2.0, 1.0, 0.5] + {"t3": rng.standard_t(3, size=300), "skewed": rng.lognormal(size=300)}.get(
            kind, rng.normal(size=300)
        )
        if kind == "counts":
            y = rng.poisson(np.exp(1 + X[:, 0])).astype(float)
        elif kind == "bend":
            y = 4 * np.abs(X[:, 0]) + rng.normal(size=300)
        elif kind == "outliers":
            y[:60] += 8
        elif kind == "leverage":
            X[:15] *= 10
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            SelfPacedLinearRegression().fit(X, y)


def test_verbose_logs_what_was_chosen(lines, caplog) -> None:
    with caplog.at_level(logging.INFO, logger="selfpaced"):
        model = SelfPacedLinearRegression(verbose=1).fit(*lines)
    assert model.termination_ in caplog.text


def test_callbacks_hear_of_the_stages(lines) -> None:
    pytest.importorskip("sklearn.callback")
    seen = []

    class Listener:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, *args, **kwargs):
            seen.append("begin")

        def on_fit_task_end(self, *args, **kwargs):
            seen.append("end")

    SelfPacedLinearRegression().set_callbacks(Listener()).fit(*lines)
    assert seen.count("begin") == seen.count("end") >= 3
