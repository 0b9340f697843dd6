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

from selfpaced import SelfPacedClassifier, SuspectFilter, soft_label_rows


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted with."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, extra: Any = None) -> Recorder:
        self.X_, self.y_, self.weight_, self.extra_ = X, y, sample_weight, extra
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.repeat(self.classes_[0], len(X))


class Weightless(Recorder):
    def fit(self, X: Any, y: Any) -> Weightless:  # type: ignore[override]
        return super().fit(X, y)


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(60, 3))
    return X, ((X[:, 0] > 0) ^ (np.arange(60) % 5 == 0)).astype(int)  # one label in five is wrong


ESTIMATORS = [  # and whether they take weights
    (SVC(), True),
    (KNeighborsClassifier(), False),
    (make_pipeline(StandardScaler(), SVC()), True),
    (make_pipeline(StandardScaler(), KNeighborsClassifier()), False),
    (make_pipeline(make_pipeline(StandardScaler(), SVC())), True),
    (GridSearchCV(make_pipeline(SVC()), {"svc__C": [1, 2]}, cv=2), True),
    (CalibratedClassifierCV(SVC(), cv=2), True),
    (CalibratedClassifierCV(KNeighborsClassifier(), cv=2), False),
    (VotingClassifier([("a", SVC()), ("b", LogisticRegression())]), True),
    (VotingClassifier([("a", SVC()), ("b", KNeighborsClassifier())]), False),
    (StackingClassifier([("a", LogisticRegression())], LogisticRegression(), cv=2), True),
    (AdaBoostClassifier(n_estimators=2), True),
]


@pytest.mark.parametrize("routing", [False, True], ids=["names", "routing"])
@pytest.mark.parametrize(("estimator", "takes_weights"), ESTIMATORS, ids=lambda value: type(value).__name__)
def test_known_estimators_get_weights_or_drawn_labels(
    data: Any, estimator: Any, takes_weights: bool, routing: bool
) -> None:
    X, y = data
    with config_context(enable_metadata_routing=routing):
        model = SelfPacedClassifier(estimator).fit(X, y)
        assert ("drawn labels" not in model.termination_) == takes_weights
        assert len(model.predict(X)) == 60


def test_weights_arrive_in_the_last_step(data: Any) -> None:
    X, y = data
    pipe = Pipeline([("scale", StandardScaler()), ("model", Recorder())])
    model = SelfPacedClassifier(pipe).fit(X, y)
    last, (_, labels, weight) = model.estimator_[-1], soft_label_rows(X, np.eye(2)[y])
    assert len(labels) == len(weight) == 60 < len(last.y_)
    assert last.weight_.sum() == pytest.approx(60)


def test_routing_uses_the_request_of_the_last_step(data: Any) -> None:
    X, y = data
    with config_context(enable_metadata_routing=True):
        refusing = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(refusing, Recorder().set_fit_request(sample_weight=True))
        model = SelfPacedClassifier(pipe).fit(X, y)
        assert model.estimator_[-1].weight_.sum() == pytest.approx(60)


def test_routing_a_refusal_draws_labels(data: Any) -> None:
    X, y = data
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), Recorder().set_fit_request(sample_weight=False))
        model = SelfPacedClassifier(pipe).fit(X, y)
        assert "Recorder refuses sample_weight" in model.termination_
        assert all(one[-1].weight_ is None for one in model.estimator_.models_)


def test_routing_with_further_metadata_and_no_request_is_an_error(data: Any) -> None:
    X, y = data
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(Recorder().set_fit_request(extra=True))
        with pytest.raises(ValueError, match="set_fit_request"):
            SelfPacedClassifier(pipe).fit(X, y, extra=1)


def test_uniform_weights_are_not_passed_and_zeros_leave_rows_out(data: Any) -> None:
    X, y = data
    detector = SelfPacedClassifier(LogisticRegression())
    assert SuspectFilter(detector, Recorder()).fit(X, y).estimator_.weight_ is None
    weight = np.r_[np.zeros(5), np.full(55, 2.0), np.ones(0)]
    weight[-1] = 1.0
    fitted = SuspectFilter(detector, Recorder()).fit(X, y, sample_weight=weight).estimator_
    np.testing.assert_array_equal(fitted.X_, X[5:])
    np.testing.assert_array_equal(fitted.weight_, weight[5:])


def test_row_parameters_are_cut_along(data: Any) -> None:
    X, y = data
    weight = np.r_[np.zeros(5), np.ones(54), 2.0]
    model = SelfPacedClassifier(Recorder()).fit(X, y, sample_weight=weight, extra=np.arange(60))
    np.testing.assert_array_equal(model.estimator_.X_, X[model.estimator_.extra_])
    assert model.estimator_.extra_.min() == 5


def test_whole_numbers_repeat_rows_where_weights_are_not_taken(data: Any) -> None:
    X, y = data
    counts = np.arange(60) % 3
    model = SelfPacedClassifier(Weightless()).fit(X, y, sample_weight=counts)
    for one in model.estimator_.models_:
        assert len(one.y_) == counts.sum()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix, pd.DataFrame, pl.DataFrame, list])
def test_rows_of_any_container(make: Any) -> None:
    values = np.arange(6.0).reshape(3, 2)
    part, labels, _ = soft_label_rows(make(values), [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    dense = part.toarray() if sparse.issparse(part) else np.asarray(part)
    np.testing.assert_array_equal(dense, values[[0, 1, 1, 2]])
    assert labels.tolist() == [0, 0, 1, 1]


def test_user_weights_a_model_cannot_honour_are_an_error(data: Any) -> None:
    X, y = data
    with pytest.raises(ValueError, match="takes no sample_weight, and weights are never dropped"):
        SelfPacedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=np.linspace(0.5, 1.0, 60))
    with pytest.raises(ValueError, match="zero for every row|positive"):
        SelfPacedClassifier(Recorder()).fit(X, y, sample_weight=np.zeros(60))


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
