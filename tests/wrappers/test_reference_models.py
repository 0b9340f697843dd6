"""The wrappers' assessment of rows: those of the fit are known by their content, others are assessed by the same
loss."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from selfpaced import SelfPacedClassifier, SelfPacedRegressor, SuspectFilter, label_issues, suspects
from selfpaced.pacing import Quantile

TREE = DecisionTreeClassifier(random_state=0)
LEAFY = DecisionTreeRegressor(min_samples_leaf=8, random_state=0)


def moons(n: int = 300, rate: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_moons(n, noise=0.15, random_state=seed)
    return X, np.where(np.random.default_rng(seed).random(n) < rate, 1 - y, y)


def clouds(n: int = 900, seed: int = 0, shares: tuple[float, ...] = (0.1, 0.3, 0.3, 0.3)) -> tuple[Any, Any, Any]:
    """Overlapping classes, the first of them rare, and a fifth of wrong labels."""
    rng = np.random.default_rng(seed)
    y = rng.choice(4, size=n, p=shares)
    X = rng.normal(size=(n, 2)) + 1.5 * np.stack([np.cos(y * 1.57), np.sin(y * 1.57)], axis=1)
    return X, y, np.where(rng.random(n) < 0.2, rng.integers(0, 4, n), y)


def waves(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    y = 3 * X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n)
    y[: n // 5] += 12
    return X, y


# ------------------------------------------------------------------------------------- rows of the fit, and others


@pytest.mark.parametrize(
    ("model", "data"),
    [(SelfPacedClassifier(TREE), moons()), (SelfPacedRegressor(LEAFY), waves())],
    ids=["classifier", "regressor"],
)
def test_other_rows_with_the_same_y_are_not_taken_for_the_training_rows(model: Any, data: Any) -> None:
    X, y = data
    fitted = model.fit(X, y)
    other = X[np.random.default_rng(1).permutation(len(X))]
    assert fitted.assess(X.copy(), y.copy()) is fitted.assessment_
    new = fitted.assess(other, y)
    assert not new.held_out
    expected = fitted.predict(other)
    np.testing.assert_allclose(new.diagnosis.expected, expected)
    np.testing.assert_allclose(suspects(fitted, other, y, all_rows=True).sort_values("row")["expected"], expected)
    np.testing.assert_allclose(label_issues(fitted, other, y)["predicted_label"], expected)


@pytest.mark.parametrize(
    "model",
    [
        SelfPacedClassifier(TREE),
        SelfPacedClassifier(TREE, "hard"),
        SelfPacedClassifier(RandomForestClassifier(10, random_state=0), "welsch"),
        SelfPacedClassifier(GaussianNB(), pace=Quantile(0.6, 0.8, stages=2)),
        SelfPacedClassifier(TREE, "cauchy", pace=0.8),
        SelfPacedClassifier(TREE, pace="paper"),
        SelfPacedClassifier(KNeighborsClassifier(1), pace=Quantile(0.6, 0.8, stages=2)),
    ],
    ids=["auto", "hard", "welsch", "in-sample", "lam", "paper", "rows"],
)
def test_the_assessment_of_training_labels_is_what_the_fit_says(model: Any) -> None:
    X, _, noisy = clouds(shares=(0.25,) * 4)
    fitted = model.fit(X, noisy)
    assessment = fitted.assess(X, noisy)
    assert np.isfinite(fitted.lam_)
    np.testing.assert_allclose(assessment.weight, fitted.sample_weight_, atol=1e-12)
    np.testing.assert_array_equal(assessment.wrong, fitted.sample_noise_)
    np.testing.assert_array_equal(assessment.diagnosis.given, noisy)
    np.testing.assert_allclose(assessment.losses, fitted.sample_loss_)
    assert assessment.held_out == ("in-sample" not in fitted.termination_)


@pytest.mark.parametrize(
    "model",
    [
        SelfPacedRegressor(LEAFY, "hard"),
        SelfPacedRegressor(Ridge(), "logistic"),
        SelfPacedRegressor(Ridge(), "welsch", pace="paper"),
        SelfPacedRegressor(LEAFY, "cauchy", pace=2.0),
    ],
    ids=["auto", "logistic", "paper", "lam"],
)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_assessment_of_training_values_is_what_the_fit_says(model: Any, scale: float) -> None:
    X, y = waves()
    fitted = model.fit(X, scale * y)
    assessment = fitted.assess(X, scale * y)
    np.testing.assert_allclose(assessment.weight, fitted.sample_weight_, atol=1e-12)
    np.testing.assert_allclose(assessment.losses * fitted.loss_unit_, fitted.sample_loss_)
    np.testing.assert_allclose(assessment.diagnosis.support, fitted.sample_residual_, atol=1e-9 * scale)
    assert assessment.held_out == ("cross-fitted" in fitted.termination_)


@pytest.mark.parametrize("case", ["frame", "sparse", "texts", "lists"])
def test_rows_in_any_container_are_known_again(case: str) -> None:
    X, y = moons(200)
    names = np.array(["no", "yes"])[y]
    model: Any = TREE
    rows: Any = X
    if case == "frame":
        rows = pd.DataFrame({"a": X[:, 0], "kind": pd.Categorical(np.where(X[:, 1] > 0, "u", "v"))})
        model = make_pipeline(make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough"), TREE)
    elif case == "sparse":
        rows = sparse.csc_matrix(X)
    elif case == "texts":
        rows = [f"word{int(X[i, 0] > 0)} {'good' if y[i] else 'bad'} w{i % 7}" for i in range(200)]
        model = make_pipeline(CountVectorizer(), MultinomialNB())
    else:
        rows = X.tolist()
    fitted = SelfPacedClassifier(model).fit(rows, names.tolist())
    again = rows.copy()
    assert fitted.assess(again, pd.Series(names)) is fitted.assessment_
    fewer = again[:150] if case != "frame" else again.iloc[:150]
    assert len(fitted.assess(fewer, names[:150]).wrong) == 150


def test_bad_labels_and_missing_ones_are_named() -> None:
    X, y = moons(100)
    fitted = SelfPacedClassifier(TREE).fit(X, y)
    with pytest.raises(ValueError, match=r"labels seen in fit \[0, 1\], got .*7"):
        fitted.assess(X[:2], [0, 7])
    with pytest.raises(ValueError, match="y must hold the labels to be assessed, got None"):
        fitted.assess(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.assess(X, y[:-1])


# ------------------------------------------------------------------------------------------- weights of new rows


def test_a_new_label_that_is_the_most_probable_has_full_weight() -> None:
    X, _, noisy = clouds(shares=(0.25,) * 4)
    fitted = SelfPacedClassifier(GaussianNB(), pace=float(np.log(2.0) * (1 + 1e-9))).fit(X, noisy)
    X_new, y_new, _ = clouds(seed=1, shares=(0.25,) * 4)
    proba = fitted.predict_proba(X_new)
    likely = proba.argmax(axis=1) == y_new
    unsure = likely & (proba.max(axis=1) < 0.5)
    assert unsure.sum() > 20  # by the log-loss they would be beyond log 2
    table = suspects(fitted, X_new, y_new, all_rows=True).sort_values("row")
    np.testing.assert_array_equal(table["weight"], likely.astype(float))


@pytest.mark.parametrize("rule", ["hard", "welsch"])
def test_rows_that_were_fitted_in_sample_are_assessed_alike_when_they_come_as_new(rule: str) -> None:
    X, _, noisy = clouds(shares=(0.06, 0.06, 0.44, 0.44))
    fitted = SelfPacedClassifier(GaussianNB(), rule, pace=0.7).fit(X, noisy)
    assert "in-sample" in fitted.termination_
    new = fitted.assess(X[:-1], noisy[:-1])
    assert np.mean(np.abs(new.weight - fitted.sample_weight_[:-1])) < 0.03
    X, y = waves()
    for scale in (1.0, 1e4):
        model = SelfPacedRegressor(Ridge(), "logistic" if rule == "hard" else rule).fit(X, scale * y)
        new = model.assess(X[:-1], scale * y[:-1])
        np.testing.assert_allclose(new.weight, model.sample_weight_[:-1], atol=0.02)


# ----------------------------------------------------------------------------------------- what was compared


@pytest.mark.parametrize("model", [GaussianNB(), TREE], ids=["in-sample", "cross-fitted"])
def test_the_scores_of_the_path_are_those_that_were_compared(model: Any) -> None:
    X, _, noisy = clouds(600)
    fitted = SelfPacedClassifier(model, "hard").fit(X, noisy)
    gain, error = map(
        float, re.search(r"(?:higher by|difference) (-?[\d.]+) \+- ([\d.]+)", fitted.termination_).groups()
    )
    scores = [one.score for one in fitted.path_]
    assert np.nanmax(scores[1:]) - scores[0] == pytest.approx(gain, abs=1.1e-3)
    assert 0 < error < 0.1


@pytest.mark.parametrize("model", [Ridge(), LEAFY], ids=["in-sample", "cross-fitted"])
@pytest.mark.parametrize("outliers", [True, False])
def test_the_gain_of_a_regressor_is_the_difference_on_its_path(model: Any, outliers: bool) -> None:
    X, y = waves()
    y = y if outliers else y - 12 * (np.arange(len(y)) < len(y) // 5)
    fitted = SelfPacedRegressor(model, "hard").fit(X, y)
    gain = float(re.search(r"(?:is higher by|score difference) (-?[\d.]+) ", fitted.termination_).group(1))
    scores = [one.score for one in fitted.path_]
    assert np.nanmax(scores[1:]) - scores[0] == pytest.approx(gain, abs=1.1e-3)
    assert (fitted.estimator_ is not fitted.plain_) == outliers


# ------------------------------------------------------------------------------------------------- the filter


def test_a_filter_is_looked_through_to_its_detector() -> None:
    X, y = moons()
    reference = make_pipeline(StandardScaler(), SelfPacedClassifier(TREE))
    fitted = SuspectFilter(reference, KNeighborsClassifier()).fit(X, y)
    table = suspects(fitted, X, y, all_rows=True)
    pd.testing.assert_frame_equal(table, suspects(fitted.detector_, X, y, all_rows=True))
    np.testing.assert_array_equal(table.sort_values("row")["noise_probability"], fitted.noise_probability_)
    np.testing.assert_array_equal(fitted.noise_probability_, fitted.detector_[-1].sample_noise_)
    assert len(suspects(fitted, X[:50], y[:50], all_rows=True)) == 50
    with pytest.raises(ValueError, match="not fitted"):
        suspects(SuspectFilter(reference, KNeighborsClassifier()), X, y)
