"""What goes in: frames, sparse and text, float32, groups, weights, routing, and bad input."""

from __future__ import annotations

from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.ensemble import StackingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from selfpaced import SelfPacedClassifier
from selfpaced.regularizers import Diversity


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, ((X[:, 0] > 0) ^ (rng.random(200) < 0.15)).astype(int)


def tree(**options: Any) -> SelfPacedClassifier:
    return SelfPacedClassifier(DecisionTreeClassifier(random_state=0), **options)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_reach_the_model_with_their_columns(data: Any, frame: Any) -> None:
    X, y = data
    table = frame({"a": X[:, 0], "b": X[:, 1], "kind": np.where(X[:, 2] > 0, "u", "v")})
    pipe = make_pipeline(
        make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["kind"])),
        DecisionTreeClassifier(random_state=0),
    )
    fitted = SelfPacedClassifier(pipe).fit(table, np.array(["no", "yes"])[y])
    assert fitted.feature_names_in_.tolist() == ["a", "b", "kind"]
    assert fitted.n_features_in_ == 3
    assert set(fitted.predict(table)) == {"no", "yes"}


def test_a_stack_without_a_final_estimator_is_wrapped(data: Any) -> None:
    X, y = data
    stack = StackingClassifier([("line", LogisticRegression()), ("tree", DecisionTreeClassifier(random_state=0))])
    fitted = SelfPacedClassifier(stack).fit(X, y)
    assert "StackingClassifier holds rows out by itself" in fitted.termination_
    assert fitted.score(X, y) > 0.8


@pytest.mark.parametrize("pace", ["auto", 1.0])
@pytest.mark.parametrize("n_classes", [101, 200])
def test_labels_of_almost_as_many_classes_as_rows_are_not_assessed(data: Any, n_classes: int, pace: Any) -> None:
    X, _ = data
    with catch_warnings():
        simplefilter("ignore")
        fitted = tree(pace=pace).fit(X, np.arange(200) % n_classes)
    assert f"200 rows of {n_classes} classes are too few to estimate noise" in fitted.termination_
    assert np.isnan(fitted.noise_rate_)


def test_set_output_inside_a_pipeline(data: Any) -> None:
    X, y = data
    pipe = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)).set_output(transform="pandas")
    fitted = SelfPacedClassifier(pipe).fit(pd.DataFrame(X, columns=list("abc")), y)
    assert fitted.estimator_[-1].feature_names_in_.tolist() == list("abc")


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_equals_dense(data: Any, container: Any) -> None:
    X, y = data
    dense, thin = tree().fit(X, y), tree().fit(container(X), y)
    np.testing.assert_allclose(thin.sample_noise_, dense.sample_noise_, atol=1e-9)


def test_texts(data: Any) -> None:
    _, y = data
    texts = [("good fine " if label else "bad poor ") + f"word{i % 7}" for i, label in enumerate(y)]
    fitted = SelfPacedClassifier(make_pipeline(CountVectorizer(), MultinomialNB())).fit(texts, y)
    assert fitted.score(texts, y) == 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_float32_is_kept(data: Any) -> None:
    X, y = data
    model = MLPClassifier((4,), max_iter=5, random_state=0)
    fitted = SelfPacedClassifier(model).fit(X.astype(np.float32), y)
    assert fitted.estimator_.coefs_[0].dtype == np.float32
    assert fitted.predict_proba(X.astype(np.float32)).dtype == np.float32


def test_groups_are_never_split(data: Any) -> None:
    X, y = data
    seen: list[set[Any]] = []

    class Spy(DecisionTreeClassifier):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
            seen.append(set(X[:, -1]))
            return super().fit(X, y, sample_weight)

    groups = np.repeat(np.arange(20), 10)
    SelfPacedClassifier(Spy(random_state=0), "hard").fit(np.c_[X, groups], y, groups=groups)
    halves = seen[1:9]
    assert all(not (halves[i] & halves[i + 1]) for i in range(0, 8, 2))
    seen.clear()
    SelfPacedClassifier(Spy(random_state=0), reference_models="self").fit(np.c_[X, groups], y, groups=groups)
    assert not seen[0] & seen[1]
    fitted = tree(cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert len(fitted.path_) >= 1


def test_sample_weight_multiplies_and_zero_leaves_out(data: Any) -> None:
    X, y = data
    weight = np.ones(200)
    weight[:20] = 0.0
    with_zeros = tree(pace=0.7, cv=KFold(2)).fit(X, y, sample_weight=weight)
    assert with_zeros.plain_.tree_.n_node_samples[0] == 180
    assert with_zeros.sample_weight_.shape == (200,)
    neighbours = SelfPacedClassifier(KNeighborsClassifier(3), keep_plain=True)
    assert neighbours.fit(X, y, sample_weight=1 + (weight == 0)).plain_.n_samples_fit_ == 220
    assert neighbours.fit(X, y, sample_weight=np.full(200, 2.0)).plain_.n_samples_fit_ == 200


def test_metadata_routing_of_weights_and_groups_through_a_search(data: Any) -> None:
    X, y = data
    got: list[Any] = []

    class Spy(LogisticRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
            got.append(sample_weight)
            return super().fit(X, y, sample_weight)

    with config_context(enable_metadata_routing=True):
        model = SelfPacedClassifier(make_pipeline(StandardScaler(), Spy()))
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        weight = np.linspace(0.5, 1.5, 200)
        result = cross_validate(
            model, X, y, cv=GroupKFold(2), params={"sample_weight": weight, "groups": np.arange(200) % 10},
            error_score="raise",
        )  # fmt: skip
    assert len(result["test_score"]) == 2
    assert all(weights is not None for weights in got)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_folds_of_the_wrapper_in_a_search_with_metadata_routing(data: Any, routing: bool) -> None:
    X, y = data
    groups, shared = np.repeat(np.arange(20), 10), []

    class Spy(LogisticRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
            self.seen_ = np.unique(X[:, -1])
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X: Any) -> Any:
            shared.append(np.isin(X[:, -1], self.seen_).any())
            return super().predict_proba(X)

    with config_context(enable_metadata_routing=routing):
        model = SelfPacedClassifier(Spy(), reference_models="self")
        search = GridSearchCV(model, {"estimator__C": [1.0]}, cv=GroupKFold(2), error_score="raise", refit=False)
        search.fit(np.c_[X, groups], y, groups=groups)
    assert any(shared) is not routing


def test_further_fit_parameters_are_passed_on_and_cut(data: Any) -> None:
    X, y = data
    lengths: list[tuple[int, int]] = []

    class Spy(DecisionTreeClassifier):
        def fit(self, X: Any, y: Any, sample_weight: Any = None, extra: Any = None) -> Any:  # type: ignore[override]
            lengths.append((len(X), len(extra)))
            return super().fit(X, y, sample_weight)

    SelfPacedClassifier(Spy(random_state=0), "hard").fit(X, y, extra=np.arange(200))
    assert all(a == b for a, b in lengths)
    assert min(lengths)[0] < 200


# --------------------------------------------------------------------------------------------------- bad input


def test_one_class_is_the_wrapped_model_s_own_answer() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match="class"):
        SelfPacedClassifier(LogisticRegression()).fit(X, np.ones(60))
    fitted = tree().fit(X, np.ones(60))
    assert "only one class" in fitted.termination_


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinite_features_are_named_by_the_model(data: Any, bad: float) -> None:
    X, y = data
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        SelfPacedClassifier(LogisticRegression()).fit(X, y)


def test_bad_weights_and_parameters(data: Any) -> None:
    X, y = data
    with pytest.raises(ValueError, match="zero for every row"):
        tree().fit(X, y, sample_weight=np.zeros(200))
    with pytest.raises(ValueError, match="never dropped silently"):
        SelfPacedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=np.linspace(0.1, 1, 200))
    for options, message in [
        ({"pace": "fast"}, "pace must be"),
        ({"pace": -1.0}, "pace must be"),
        ({"cross_fit": "maybe"}, "cross_fit must be"),
        ({"cv": 1}, "cv must be"),
        ({"regularizer": "nosuch"}, "regularizer must be one of"),
        ({"regularizer": Diversity()}, "elementwise"),
    ]:
        with pytest.raises(ValueError, match=message):
            tree(**options).fit(X, y)


def test_too_few_rows_give_the_plain_model_and_say_so(data: Any) -> None:
    X, y = data
    fitted = tree().fit(X[:12], y[:12])
    assert "too few" in fitted.termination_
    assert fitted.estimator_ is fitted.plain_
    assert fitted.noise_rate_interval_ == (0.0, 1.0)
    with pytest.warns(match="too few"):
        tree(pace=0.5).fit(X[:12], y[:12])


def test_a_class_with_one_member_survives(data: Any) -> None:
    X, y = data
    y = y.copy()
    y[17] = 2
    fitted = tree().fit(X, y)
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.predict_proba(X).shape == (200, 3)
    confirmed = tree().fit(X, y, trusted=np.arange(200) == 17)
    assert confirmed.sample_weight_[17] == 1.0
    assert confirmed.predict(X)[17] == 2


def test_constant_features_duplicates_and_separable_data() -> None:
    constant = tree().fit(np.zeros((80, 2)), np.arange(80) % 2)
    assert len(constant.predict(np.zeros((3, 2)))) == 3
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(20, 2)), 5, axis=0)
    y = (X[:, 0] > 0).astype(int)
    duplicated = tree().fit(X, y)
    assert duplicated.score(X, y) == 1.0
    X = np.c_[y * 10.0 + rng.normal(size=100), X]
    assert SelfPacedClassifier(GaussianNB()).fit(X, y).score(X, y) == 1.0


class Lost(GaussianNB):
    """Divides 0 by 0 far from every class."""

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.where(np.asarray(X)[:, :1] > 100.0, np.nan, super().predict_proba(X))


def test_probabilities_that_are_none_are_even(data: Any) -> None:
    X, y = data[0], data[1]
    model = SelfPacedClassifier(Lost()).fit(X, y)
    far = np.array(X[:2])
    far[1, 0] = 1000.0
    found = model.predict_proba(far)
    np.testing.assert_array_equal(found[1], np.full(len(model.classes_), 1.0 / len(model.classes_)))
    np.testing.assert_array_equal(found[0], model.estimator_.predict_proba(far)[0])
