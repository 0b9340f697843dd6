"""Weights reach the model, or rows are selected and it is said so; never are they dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from selfpaced import SelfPacedClassifier
from selfpaced.wrappers._routing import WeightRoute, fit_weighted, n_rows, routed_weight, take_rows, weight_route


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted with."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, extra: Any = None) -> Recorder:
        self.X_, self.y_, self.weight_, self.extra_ = X, y, sample_weight, extra
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.repeat(self.classes_[0], n_rows(X))


class Weightless(Recorder):
    def fit(self, X: Any, y: Any) -> Weightless:  # type: ignore[override]
        return super().fit(X, y)


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), np.repeat([0, 1], 20), rng.uniform(0.1, 1, 40)


KEYWORDS = [
    (SVC(), "sample_weight"),
    (KNeighborsClassifier(), None),
    (make_pipeline(StandardScaler(), SVC()), "svc__sample_weight"),
    (make_pipeline(StandardScaler(), KNeighborsClassifier()), None),
    (make_pipeline(make_pipeline(StandardScaler(), SVC())), "pipeline__svc__sample_weight"),
    (make_pipeline(StandardScaler(), "passthrough"), None),
    (GridSearchCV(make_pipeline(SVC()), {"svc__C": [1, 2]}, cv=2), "svc__sample_weight"),
    (CalibratedClassifierCV(SVC()), "sample_weight"),
    (CalibratedClassifierCV(KNeighborsClassifier()), None),
    (VotingClassifier([("a", SVC()), ("b", LogisticRegression())]), "sample_weight"),
    (VotingClassifier([("a", SVC()), ("b", KNeighborsClassifier())]), None),
    (StackingClassifier([("a", LogisticRegression())], cv=2), "sample_weight"),
    (AdaBoostClassifier(n_estimators=2), "sample_weight"),
]


@pytest.mark.parametrize("routing", [False, True], ids=["names", "routing"])
@pytest.mark.parametrize(("estimator", "keyword"), KEYWORDS, ids=lambda value: type(value).__name__)
def test_route_of_known_estimators_and_the_fit_works(data: Any, estimator: Any, keyword: Any, routing: bool) -> None:
    X, y, weight = data
    with config_context(enable_metadata_routing=routing):
        route = weight_route(estimator)
        assert route.keyword == keyword
        if "passthrough" not in route.reason:
            fitted = fit_weighted(estimator, X, y, weight, route)
            assert len(fitted.predict(X)) == 40


def test_weights_arrive_unchanged_in_the_last_step(data: Any) -> None:
    X, y, weight = data
    pipe = Pipeline([("scale", StandardScaler()), ("model", Recorder())])
    fitted = fit_weighted(pipe, X, y, weight, weight_route(pipe))
    np.testing.assert_array_equal(fitted[-1].weight_, weight)


def test_routing_uses_the_request_of_the_last_step(data: Any) -> None:
    X, y, weight = data
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), Recorder().set_fit_request(sample_weight=True)
        )
        route = weight_route(pipe)
        assert route == WeightRoute("sample_weight", route.reason, routed=True)
        np.testing.assert_array_equal(fit_weighted(pipe, X, y, weight, route)[-1].weight_, weight)


def test_routing_a_refusal_selects_rows(data: Any) -> None:
    X, y, weight = data
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), Recorder().set_fit_request(sample_weight=False))
        route = weight_route(pipe)
        assert not route.takes_weights
        assert "refuses" in route.reason
        fitted = fit_weighted(pipe, X, y, weight, route)
        assert fitted[-1].weight_ is None
        assert len(fitted[-1].y_) == np.sum(weight >= 0.5 * weight.max())


def test_routing_with_further_metadata_and_no_request_is_an_error(data: Any) -> None:
    X, y, weight = data
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(Recorder().set_fit_request(extra=True))
        with pytest.raises(ValueError, match="set_fit_request"):
            fit_weighted(pipe, X, y, weight, weight_route(pipe), fit_params={"extra": 1})


def test_uniform_weights_are_not_passed(data: Any) -> None:
    X, y, _ = data
    route = weight_route(Recorder())
    assert fit_weighted(Recorder(), X, y, np.ones(40), route).weight_ is None
    np.testing.assert_array_equal(fit_weighted(Recorder(), X, y, np.full(40, 2.0), route).weight_, np.full(40, 2.0))


def test_zero_weights_drop_rows_and_cut_row_parameters(data: Any) -> None:
    X, y, weight = data
    weight[:5] = 0.0
    fitted = fit_weighted(
        Recorder(), X, y, weight, weight_route(Recorder()), rows=np.arange(30), fit_params={"extra": np.arange(40)}
    )
    np.testing.assert_array_equal(fitted.X_, X[5:30])
    np.testing.assert_array_equal(fitted.weight_, weight[5:30])
    np.testing.assert_array_equal(fitted.extra_, np.arange(5, 30))


def test_no_positive_weight_is_an_error(data: Any) -> None:
    X, y, _ = data
    with pytest.raises(ValueError, match="zero for every row"):
        fit_weighted(Recorder(), X, y, np.zeros(40), weight_route(Recorder()))


def test_whole_numbers_repeat_rows_where_weights_are_not_taken(data: Any) -> None:
    X, y, _ = data
    counts = np.arange(40.0) % 3
    paced = np.where(np.arange(40) < 10, 0.4, 1.0)
    fitted = fit_weighted(Weightless(), X, y, counts * paced, weight_route(Weightless()), counts=counts)
    np.testing.assert_array_equal(fitted.X_, np.repeat(X[10:], (np.arange(40) % 3)[10:], axis=0))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix, pd.DataFrame, pl.DataFrame, list])
def test_rows_of_any_container_by_number_and_by_mask(make: Any) -> None:
    values = np.arange(12.0).reshape(6, 2)
    X = make(values)
    for index in (np.array([4, 1, 1]), np.array([True, False, True, False, False, True])):
        part = take_rows(X, index)
        dense = part.toarray() if sparse.issparse(part) else np.asarray(part)
        np.testing.assert_array_equal(dense, values[index])
        assert n_rows(part) == 3


def test_user_weights_a_model_cannot_honour_are_an_error() -> None:
    rows = WeightRoute(None, "KNeighborsClassifier.fit takes no sample_weight")
    with pytest.raises(ValueError, match="takes no sample_weight, and weights are never dropped"):
        routed_weight([0.5, 1.0, 1.0], 3, rows)
    assert routed_weight(np.ones(3), 3, rows) is None
    np.testing.assert_array_equal(routed_weight([0, 2, 1], 3, rows), [0.0, 2.0, 1.0])


# ------------------------------------------------------------------------------------------------- resampling


class Copies(BaseEstimator):
    """A sampler as those of imbalanced-learn: rows of the last class come twice."""

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        index = np.concatenate([np.arange(len(y)), np.flatnonzero(y == np.unique(y)[-1])])
        return X[index], y[index]


class Resampling(Pipeline):
    """A Pipeline that resamples in fit and passes samplers over in predict, as that of imbalanced-learn."""

    def fit(self, X: Any, y: Any, **params: Any) -> Resampling:
        for _, step in self.steps[:-1]:
            X, y = step.fit_resample(X, y)
        self.steps[-1][1].fit(X, y, **{key.partition("__")[2]: value for key, value in params.items()})
        return self

    def predict(self, X: Any) -> Any:
        return self.steps[-1][1].predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.steps[-1][1].predict_proba(X)


@pytest.mark.parametrize("routing", [False, True], ids=["names", "routing"])
def test_a_pipeline_that_resamples_gets_drawn_labels(routing: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    truth = (X[:, 0] > 0.5).astype(int)
    y = np.where(np.arange(200) < 30, 1 - truth, truth)
    with config_context(enable_metadata_routing=routing):
        model = SelfPacedClassifier(Resampling([("more", Copies()), ("model", LogisticRegression())])).fit(X, y)
        assert "'more' resamples the rows" in model.termination_
        assert model.score(X, truth) > 0.9
        counts = 1 + (np.arange(200) % 2)
        assert model.fit(X, y, sample_weight=counts) is model
        with pytest.raises(ValueError, match="'more' resamples the rows"):
            model.fit(X, y, sample_weight=rng.random(200))
