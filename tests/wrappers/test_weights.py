"""What sample weights mean: frequencies, up to a common factor."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from selfpaced import SelfPacedClassifier, SelfPacedLinearRegression, SelfPacedMF, SelfPacedRegressor

N = 200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
VALUES = X @ [1.0, 2.0, 3.0] + np.exp(X[:, 0]) + 0.3 * RNG.normal(size=N)
VALUES[: N // 8] += 8
LABELS = np.where(X[:, 0] + X[:, 1] + 0.5 * RNG.normal(size=N) > 0, "yes", "no")
LABELS[: N // 8] = np.where(LABELS[: N // 8] == "yes", "no", "yes")
COUNTS = RNG.integers(0, 4, size=N)

# (estimator, target); each promises all three equalities exactly, unless said below
MODELS: dict[str, tuple[Any, Any]] = {
    "classifier, bayes": (SelfPacedClassifier(GaussianNB()), LABELS),
    "classifier, logistic": (SelfPacedClassifier(LogisticRegression()), LABELS),
    "classifier, neighbours": (SelfPacedClassifier(KNeighborsClassifier()), LABELS),
    "classifier, own pace": (SelfPacedClassifier(DecisionTreeClassifier(random_state=0), pace=0.7), LABELS),
    "regressor, ridge": (SelfPacedRegressor(Ridge()), VALUES),
    "regressor, neighbours": (SelfPacedRegressor(KNeighborsRegressor()), VALUES),
    "regressor, own pace": (SelfPacedRegressor(Ridge(), "welsch", pace=0.7), VALUES),
    "linear regression": (SelfPacedLinearRegression(), VALUES),
    "linear regression, ridge": (SelfPacedLinearRegression(alpha=1.0), VALUES),
}
# the leaves of a tree count rows, not weights: a row twice is not that row with weight 2
UNEQUAL = {"regressor, tree": (SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=5, random_state=0)), VALUES)}
TAKES_WEIGHTS = [name for name in MODELS if "neighbours" not in name and name != "linear regression, ridge"]


def fitted(name: str, rows: Any = slice(None), **kwargs: Any) -> Any:
    model, y = (MODELS | UNEQUAL)[name]
    return type(model)(**model.get_params(deep=False)).fit(X[rows], y[rows], **kwargs)


@cache
def plain(name: str) -> Any:
    """The model without weights."""
    return fitted(name)


@cache
def counted(name: str) -> Any:
    """The model whose rows have whole weights."""
    return fitted(name, sample_weight=COUNTS)


def same(one: Any, other: Any, **tolerance: Any) -> None:
    tolerance = tolerance or {"rtol": 2e-4, "atol": 1e-7}
    rates = {"rtol": max(2e-3, tolerance["rtol"]), "atol": tolerance.get("atol", 0.0)}  # estimated on a sample
    np.testing.assert_allclose(one.noise_rate_, other.noise_rate_, **rates)
    np.testing.assert_allclose(one.noise_rate_interval_, other.noise_rate_interval_, **rates)
    np.testing.assert_allclose(one.lam_, other.lam_, **tolerance)
    if hasattr(one, "classes_"):
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
    else:
        np.testing.assert_allclose(one.predict(X), other.predict(X), **tolerance)


@pytest.mark.parametrize("name", [*TAKES_WEIGHTS, *UNEQUAL])
def test_weights_that_sum_to_one_are_no_weights(name: str) -> None:
    same(fitted(name, sample_weight=np.full(N, 1 / N)), plain(name))


@pytest.mark.parametrize("name", [*MODELS, *UNEQUAL])
def test_equal_weights_say_nothing(name: str) -> None:
    if name != "linear regression, ridge":  # its penalty is in the unit of the weights
        same(fitted(name, sample_weight=2.0), plain(name))


@pytest.mark.parametrize("name", [*TAKES_WEIGHTS, *UNEQUAL])
def test_a_constant_factor_changes_nothing(name: str) -> None:
    weight = np.random.default_rng(1).uniform(0.1, 1, size=N)
    same(fitted(name, sample_weight=3.7e-30 * weight), fitted(name, sample_weight=weight))


def test_a_constant_factor_on_weights_and_penalty_changes_nothing() -> None:
    weight = np.random.default_rng(1).uniform(0.1, 1, size=N)
    first = SelfPacedLinearRegression(alpha=1.0).fit(X, VALUES, sample_weight=weight)
    same(SelfPacedLinearRegression(alpha=0.01).fit(X, VALUES, sample_weight=0.01 * weight), first)


@pytest.mark.parametrize("name", MODELS)
def test_a_common_divisor_of_counts_changes_nothing(name: str) -> None:
    if name != "linear regression, ridge":
        same(fitted(name, sample_weight=3 * COUNTS), counted(name))


@pytest.mark.parametrize("name", MODELS)
def test_a_row_of_weight_two_is_that_row_twice(name: str) -> None:
    same(counted(name), fitted(name, rows=np.repeat(np.arange(N), COUNTS)))


def test_a_tree_counts_rows_of_its_leaves_and_rates_stay_near() -> None:
    one = counted("regressor, tree")
    other = fitted("regressor, tree", rows=np.repeat(np.arange(N), COUNTS))
    assert one.noise_rate_ == pytest.approx(other.noise_rate_, abs=0.02)


@pytest.mark.parametrize("name", [*MODELS, *UNEQUAL])
def test_a_row_of_weight_zero_is_absent(name: str) -> None:
    weight = np.where(np.arange(N) % 5 == 0, 0.0, 1.0)
    one, other = fitted(name, sample_weight=weight), fitted(name, rows=weight > 0)
    same(one, other)
    assert len(one.sample_weight_) == N  # and it is assessed all the same


@pytest.mark.parametrize("name", [*TAKES_WEIGHTS, *UNEQUAL])
def test_a_row_of_hardly_any_weight_is_nearly_absent(name: str) -> None:
    weight = np.where(np.arange(N) % 5 == 0, 1e-9, 1.0)
    assert fitted(name, sample_weight=weight).noise_rate_ == pytest.approx(
        fitted(name, rows=weight > 0.5).noise_rate_, abs=0.05
    )


@pytest.mark.parametrize(
    "model", [SelfPacedClassifier(KNeighborsClassifier()), SelfPacedRegressor(KNeighborsRegressor())]
)
def test_weights_that_would_be_too_many_rows_are_refused(model: Any) -> None:
    y = LABELS if isinstance(model, SelfPacedClassifier) else VALUES
    assert model.fit(X, y, sample_weight=np.full(N, 1e12)) is model
    with pytest.raises(ValueError, match="sample_weight must sum to at most"):
        model.fit(X, y, sample_weight=np.where(np.arange(N) == 0, 1.0, 1e12))
    with pytest.raises(ValueError, match="sample_weight must sum to at most"):
        model.fit(X, y, sample_weight=np.where(np.arange(N) == 0, 1.0, 1e6))


def test_a_factorization_goes_by_relative_weights() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30)) + 0.1 * rng.normal(size=(40, 30))
    table[rng.random(table.shape) < 0.05] += 20
    weight = rng.uniform(0.1, 1, size=table.shape)

    def rebuilt(values: Any, sample_weight: Any) -> Any:
        return SelfPacedMF(2, random_state=0).fit(values, sample_weight=sample_weight).reconstruct()

    np.testing.assert_allclose(rebuilt(table, weight / 1000), rebuilt(table, weight), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(rebuilt(table, np.full(table.shape, 2.0)), rebuilt(table, None), rtol=1e-5, atol=1e-6)
    gone = rng.random(table.shape) < 0.2
    absent = rebuilt(np.where(gone, np.nan, table), None)
    np.testing.assert_allclose(rebuilt(table, np.where(gone, 0.0, 1.0)), absent, rtol=1e-5, atol=1e-6)
