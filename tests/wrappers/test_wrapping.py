"""Seeds and threads of the wrapped models, and whether losses are cross-fitted."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from selfpaced import SelfPacedClassifier, SelfPacedRegressor, SuspectFilter


def test_seeds_are_set_only_where_unset() -> None:
    X, _, noisy = moons(60)
    pipe = make_pipeline(StandardScaler(), RandomForestClassifier(3))
    first, second = (SelfPacedClassifier(pipe).fit(X, noisy).estimator_[-1].random_state for _ in range(2))
    assert isinstance(first, int)
    assert first == second
    assert pipe[-1].random_state is None
    assert SelfPacedClassifier(RandomForestClassifier(3, random_state=5)).fit(X, noisy).estimator_.random_state == 5


class Threads(DummyClassifier):
    """Remembers how many threads OpenMP had in its fits."""

    seen: list[int] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        self.seen += [library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"]
        return super().fit(X, y, sample_weight)


def test_small_fits_do_not_wait_for_threads(monkeypatch: Any) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    X = np.random.default_rng(0).normal(size=(60, 2))
    Threads.seen.clear()
    with threadpool_limits(2, user_api="openmp"):
        SelfPacedClassifier(Threads()).fit(X, X[:, 0] > 0)
        after = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"}
    assert set(Threads.seen) == {1}
    assert after == {2}


# ------------------------------------------------------------------------------------------------------------ defaults


def moons(n: int = 300, rate: float = 0.2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = make_moons(n, noise=0.15, random_state=0)
    return X, y, np.where(np.random.default_rng(0).random(n) < rate, 1 - y, y)


def test_without_an_estimator_histogram_boosting_is_wrapped() -> None:
    X, y, noisy = moons()
    classifier = SelfPacedClassifier().fit(X, noisy)
    assert isinstance(classifier.estimator_, HistGradientBoostingClassifier)
    assert classifier.score(X, y) > 0.9
    regressor = SelfPacedRegressor().fit(X, X[:, 0])
    assert isinstance(regressor.estimator_, HistGradientBoostingRegressor)
    assert regressor.tuned_params_ == {"loss": "absolute_error"}
    assert regressor.get_params()["estimator"] is None


def test_leaves_of_a_forest_of_values_are_larger_unless_the_user_has_set_them() -> None:
    X, _, _ = moons(200)
    model = SelfPacedRegressor(RandomForestRegressor(10)).fit(X, X[:, 0])
    assert model.tuned_params_ == {"min_samples_leaf": 2}
    assert model.estimator_.min_samples_leaf == 2
    assert "min_samples_leaf=2" in model.termination_
    for left in (
        SelfPacedRegressor(RandomForestRegressor(10), tune=False),
        SelfPacedRegressor(RandomForestRegressor(10, min_samples_leaf=3)),
    ):
        left.fit(X, X[:, 0])
        assert left.tuned_params_ == {}
        assert left.estimator_.min_samples_leaf == left.estimator.min_samples_leaf


@pytest.mark.parametrize(
    "model", [SelfPacedClassifier(RandomForestClassifier(5)), SelfPacedRegressor(RandomForestRegressor(5))]
)
def test_no_random_state_repeats(model: Any) -> None:
    X, _, noisy = moons(200)
    np.testing.assert_array_equal(clone(model).fit(X, noisy).predict(X), clone(model).fit(X, noisy).predict(X))


# ----------------------------------------------------------------------------------------------------- missing labels


@pytest.mark.parametrize("missing", [np.nan, None])
def test_rows_without_a_label_are_left_out_and_predicted(missing: Any) -> None:
    X, y, noisy = moons()
    given = noisy.astype(float) if missing is not None else np.array(["no", "yes"], dtype=object)[noisy]
    given[::10] = missing
    model = SelfPacedClassifier(RandomForestClassifier(20, random_state=0)).fit(X, given, sample_weight=np.ones(300))
    assert "30 rows without a label were left out" in model.termination_
    np.testing.assert_array_equal(np.flatnonzero(~model.labelled_), np.arange(0, 300, 10))
    assert model.sample_weight_.shape == (270,)
    truth = y if missing is not None else np.array(["no", "yes"])[y]
    assert np.mean(model.predict(X[::10]) == truth[::10]) > 0.85
    assert SelfPacedClassifier(GaussianNB()).fit(X, noisy).labelled_ is None
    with pytest.raises(ValueError, match="at least one label"):
        SelfPacedClassifier(GaussianNB()).fit(X, np.full(300, np.nan))


def test_several_targets_need_one_model_each() -> None:
    X, y, _ = moons(100)
    both = np.stack([y, 1 - y], axis=1)
    with pytest.raises(ValueError, match="MultiOutputClassifier"):
        SelfPacedClassifier(GaussianNB()).fit(X, both)
    model = MultiOutputClassifier(SelfPacedClassifier(GaussianNB())).fit(X, both)
    assert model.predict(X).shape == (100, 2)


# ------------------------------------------------------------------------------------------------------------- filters


def test_a_filter_without_an_estimator_is_a_sampler() -> None:
    X, y, noisy = moons()
    frame = pd.DataFrame(X, columns=["a", "b"])
    sampler = SuspectFilter(SelfPacedClassifier(RandomForestClassifier(20, random_state=0)))
    left, labels = sampler.fit_resample(frame, pd.Series(noisy))
    assert isinstance(left, pd.DataFrame)
    np.testing.assert_array_equal(left.index, sampler.sample_indices_)
    assert len(left) == len(labels) == sampler.kept_.sum() < 300
    assert np.mean(labels == y[sampler.sample_indices_]) > 0.9 > np.mean(noisy == y)
    assert not hasattr(sampler, "predict")
    with pytest.raises(ValueError, match="use fit_resample"):
        sampler.fit(frame, noisy)


# ------------------------------------------------------------------------------------------------------ rare groups


def test_rare_clean_groups_are_kept() -> None:
    """Groups of ten rows that contradict the rule of the others, without a wrong label among them."""
    rng = np.random.default_rng(0)
    centres, label = 4 * rng.standard_normal((18, 6)), rng.integers(0, 2, 18)

    def rows(each: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        group = np.repeat(np.arange(18), each)
        X = np.vstack([rng.standard_normal((n, 6)), centres[group] + 0.3 * rng.standard_normal((18 * each, 6))])
        return X, np.r_[X[:n, 0] + X[:n, 1] > 0, label[group]].astype(int)

    X, y = rows(10, 420)
    X_test, y_test = rows(50, 10)
    model = SelfPacedClassifier(HistGradientBoostingClassifier(random_state=0), keep_plain=True).fit(X, y)
    assert model.score(X_test, y_test) > model.plain_.score(X_test, y_test) - 0.03
