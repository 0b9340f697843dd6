"""The table of suspects: ranking, columns, training rows against new rows, cleanlab's form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from selfpaced import (
    SelfPacedClassifier,
    SelfPacedLinearRegression,
    SelfPacedLogisticRegression,
    SelfPacedRegressor,
    SuspectFilter,
    suspects,
)
from selfpaced.inspection import label_issues

LABELS = ["row", "level", "given", "expected", "weight", "noise_probability", "probability_if_noisy", "label_quality"]
VALUES = ["row", "level", "given", "expected", "residual", "weight", "noise_probability", "label_quality"]


def made_labels(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    flipped = rng.random(n) < 0.15
    y = np.where((X[:, 0] + X[:, 1] > 0) ^ flipped, "yes", "no")
    return X, y, flipped


@pytest.fixture(scope="module")
def labels() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return made_labels(300)


@pytest.fixture(scope="module")
def values() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    wrong = rng.random(200) < 0.1
    return X, X @ [1.0, -2.0] + 0.1 * rng.normal(size=200) + 8.0 * wrong, wrong


@pytest.mark.parametrize(
    "model",
    [SelfPacedLogisticRegression(), SelfPacedClassifier(DecisionTreeClassifier(random_state=0))],
    ids=lambda m: type(m).__name__,
)
def test_classifiers(labels: Any, model: Any) -> None:
    X, y, flipped = labels
    model.fit(X, y)
    table = suspects(model, X, y, all_rows=True)
    assert isinstance(table, pd.DataFrame)
    several_fits = isinstance(model, SelfPacedLogisticRegression)
    assert list(table.columns) == [*LABELS, *["stability"] * several_fits]
    assert sorted(table["row"]) == list(range(300))
    assert table["noise_probability"].is_monotonic_decreasing
    np.testing.assert_allclose(table["label_quality"], 1 - table["noise_probability"])
    order = table.sort_values("row")
    np.testing.assert_allclose(order["weight"], model.sample_weight_)
    assert average_precision_score(flipped, order["noise_probability"]) > 0.7
    assert (order["given"].to_numpy() == y).all()
    worst = table.head(10)
    assert (worst["expected"] != worst["given"]).all()
    assert len(suspects(model, X, y, n=5)) == 5


@pytest.mark.parametrize(
    "model",
    [SelfPacedLogisticRegression(), SelfPacedClassifier(DecisionTreeClassifier(max_depth=5, random_state=0))],
    ids=lambda m: type(m).__name__,
)
def test_two_levels(model: Any) -> None:
    X, y, flipped = made_labels(1000)
    model.fit(X, y)
    table, ranking = suspects(model, X, y), suspects(model, X, y, all_rows=True)
    assert set(table["level"]) == {"likely error", "worth a look"}
    assert table["level"].is_monotonic_increasing  # likely errors first
    likely = table[table["level"] == "likely error"]
    assert (likely["noise_probability"] > 0.5).all()
    assert flipped[likely["row"]].mean() > 0.7
    assert (table["given"] != table["expected"]).all()
    levels = ranking.set_index("row")["level"]
    assert levels[table["row"]].tolist() == table["level"].tolist()
    assert (levels.drop(table["row"]) == "").all()
    names = np.array(["", "worth a look", "likely error"])
    assert (levels.sort_index() == names[model.assessment_.levels()]).all()
    issues = label_issues(model, X, y)
    assert issues["level"].tolist() == levels.sort_index().tolist()
    assert (issues["is_label_issue"] == (issues["level"] == "likely error")).all()
    for level, rows in table.groupby("level"):
        column = "noise_probability" if level == "likely error" else "probability_if_noisy"
        assert rows[column].is_monotonic_decreasing


def test_training_rows_are_assessed_by_models_that_had_not_seen_them(labels: Any) -> None:
    X, y, flipped = labels
    model = SelfPacedClassifier(DecisionTreeClassifier(random_state=0), pace=100.0).fit(X, y)
    assert (model.sample_weight_ == 1).all()  # the model memorises every wrong label ...
    table = suspects(model, X, y, all_rows=True).sort_values("row")
    assert average_precision_score(flipped, table["noise_probability"]) > 0.5  # ... and yet they are found
    again = suspects(model, X[:100], y[:100], all_rows=True)
    assert len(again) == 100


@pytest.mark.parametrize(
    "model", [SelfPacedLinearRegression(), SelfPacedRegressor(KNeighborsRegressor(3))], ids=lambda m: type(m).__name__
)
def test_regressors(values: Any, model: Any) -> None:
    X, y, wrong = values
    table = suspects(model.fit(X, y), X, y, all_rows=True)
    assert list(table.columns) == VALUES
    assert set(table["row"][: wrong.sum()]) == set(np.flatnonzero(wrong))
    np.testing.assert_allclose(table["given"] - table["expected"], table["residual"], atol=1e-8)
    assert table["noise_probability"][0] > 0.99
    assert table["noise_probability"].iloc[-1] < 0.05
    listed = suspects(model, X, y)
    assert set(np.flatnonzero(wrong)) <= set(listed["row"][listed["level"] == "likely error"])
    with pytest.raises(ValueError, match="y must be num"):
        suspects(model, X, np.repeat("a", 200))


def test_pipelines_and_searches_are_looked_through(labels: Any) -> None:
    X, y, _ = labels
    pipe = make_pipeline(StandardScaler(), SelfPacedLogisticRegression()).fit(X, y)
    direct = SelfPacedLogisticRegression().fit(StandardScaler().fit_transform(X), y)
    expected = suspects(direct, StandardScaler().fit_transform(X), y)
    pd.testing.assert_frame_equal(suspects(pipe, X, y), expected)
    search = GridSearchCV(SelfPacedLogisticRegression(), {"C": [1.0]}, cv=2).fit(X, y)
    assert len(suspects(search, X, y, all_rows=True)) == 300


def test_bad_input(labels: Any) -> None:
    X, y, _ = labels
    model = SelfPacedLogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="labels seen in fit"):
        suspects(model, X, np.repeat("maybe", 300))
    with pytest.raises(ValueError, match="n must be an integer"):
        suspects(model, X, y, n=-1)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[300, 5\]"):
        label_issues(model, X, y[:5])
    with pytest.raises(TypeError, match="SelfPacedClassifier"):
        suspects(LogisticRegression().fit(X, y), X, y)


def test_cleanlab_takes_the_table() -> None:
    classification = pytest.importorskip("cleanlab.classification", reason="cleanlab is not installed")
    X, y, flipped = made_labels(600)
    codes = (y == "yes").astype(int)
    issues = label_issues(SelfPacedLogisticRegression().fit(X, codes), X, codes)
    columns = ["is_label_issue", "label_quality", "given_label", "predicted_label", "level", "stability"]
    assert list(issues.columns) == columns
    assert np.mean(issues["is_label_issue"].to_numpy() == flipped) > 0.9
    model = classification.CleanLearning(LogisticRegression(), seed=0).fit(X, codes, label_issues=issues)
    assert np.mean(model.predict(X) == (codes ^ flipped)) > 0.95


@pytest.mark.parametrize("how", ["drop", "weight"])
def test_filter_fits_what_is_left(how: str) -> None:
    X, y, flipped = made_labels(600)
    clean = np.where((y == "yes") ^ flipped, "yes", "no")
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    model = make_pipeline(StandardScaler(), SuspectFilter(SelfPacedLogisticRegression(), tree, how=how)).fit(X, y)
    assert model.score(X, clean) > DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y).score(X, clean)
    assert np.mean(model[-1].kept_ == ~flipped) > 0.9
    assert model[-1].classes_.tolist() == ["no", "yes"]


def test_filter_bad_parameters(labels: Any) -> None:
    X, y, _ = labels
    detector, tree = SelfPacedLogisticRegression(), DecisionTreeClassifier()
    with pytest.raises(ValueError, match="how must be"):
        SuspectFilter(detector, tree, how="mark").fit(X, y)
    with pytest.raises(ValueError, match="threshold must be"):
        SuspectFilter(detector, tree, threshold=2).fit(X, y)


def test_the_index_of_a_data_frame_is_kept():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), index=[f"id{k}" for k in range(60)], columns=["a", "b"])
    y = X.to_numpy() @ [1.0, 2.0] + 0.1 * rng.normal(size=60)
    y[7] += 20
    table = suspects(SelfPacedLinearRegression().fit(X, y), X, y)
    assert table.index[0] == "id7"
    assert table["row"].iloc[0] == 7
    assert X.loc[table.index[:3]].equals(X.iloc[table["row"].to_numpy()[:3]])


def test_advice_names_what_to_ask_instead():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.exp(X[:, 0] + 0.1 * rng.normal(size=80))
    model = TransformedTargetRegressor(SelfPacedLinearRegression(), func=np.log, inverse_func=np.exp).fit(X, y)
    with pytest.raises(TypeError, match=r"its regressor, SelfPacedLinearRegression, is fitted to a transformed target"):
        suspects(model, X, y)
    table = suspects(model.regressor_, X, model.transformer_.transform(y.reshape(-1, 1)).ravel())
    assert set(table["row"]) <= set(range(80))
    with pytest.raises(TypeError, match=r"wrap it: SelfPacedRegressor\(KNeighborsRegressor\(\)\)"):
        suspects(KNeighborsRegressor().fit(X, y), X, y)


def test_label_issues_keep_the_index_and_take_a_threshold(labels: Any) -> None:
    X, y, flipped = labels
    frame = pd.DataFrame(X, index=[f"id{k}" for k in range(300)], columns=["a", "b", "c"])
    model = SelfPacedLogisticRegression().fit(frame, y)
    issues = label_issues(model, frame, y)
    assert issues.index.equals(frame.index)
    assert flipped[issues["is_label_issue"]].mean() > 0.8
    few, many = (label_issues(model, frame, y, threshold)["is_label_issue"] for threshold in (0.95, 0.2))
    assert few.sum() < issues["is_label_issue"].sum() < many.sum()
    assert (issues["label_quality"][few] < 0.05 + 1e-12).all()


@pytest.mark.parametrize("model", [SelfPacedLinearRegression(), SelfPacedRegressor(KNeighborsRegressor())])
def test_fit_and_suspects_take_the_same_values(values: Any, model: Any) -> None:
    X, y, _ = values
    expected = suspects(model.fit(X, y), X, y)
    objects = y.astype(object)
    pd.testing.assert_frame_equal(suspects(model.fit(X, objects), X, objects), expected)
    for refused in (pd.date_range("2020", periods=200), y.astype("m8[s]"), np.column_stack([y, y]), y.astype(str)):
        with pytest.raises(ValueError, match="y must"):
            model.fit(X, refused)
        with pytest.raises(ValueError, match="y must"):
            suspects(model, X, refused)


@pytest.mark.parametrize("model", [SelfPacedLogisticRegression(), SelfPacedClassifier(LogisticRegression())])
def test_labels_that_are_none_are_refused_by_name(labels: Any, model: Any) -> None:
    X, y, _ = labels
    model.fit(X, y)
    for refused, words in [
        (np.column_stack([y, y]), "^y "),
        (np.array([2**70 if label == "yes" else 1 for label in y], dtype=object), "64 bits"),
        ([2**70 if label == "yes" else 1 for label in y], "64 bits"),
        (np.array(["1" if label == "yes" else 1 for label in y], dtype=object), r"1 \(int\) and '1' \(str\)"),
        (np.array([1 if label == "yes" else 0 for label in y], dtype=object), "y.astype"),
    ]:
        with pytest.raises(ValueError, match=words):
            type(model)(**model.get_params(deep=False)).fit(X, refused)
        with pytest.raises((ValueError, TypeError)):
            suspects(model, X, refused)
