"""Ctrl-C at every fit of a wrapper is raised again; once there is a complete model, the wrapper keeps the best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from selfpaced import SelfPacedClassifier, SelfPacedRegressor, SuspectFilter
from selfpaced.pacing import Geometric, Quantile, Stages


class Counted:
    """Raises Ctrl-C in its n-th fit."""

    fits = 0
    at = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        Counted.fits += 1
        if Counted.fits == Counted.at:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)  # type: ignore[misc]


class Tree(Counted, DecisionTreeClassifier):
    pass


class Bayes(Counted, GaussianNB):
    pass


class Leafy(Counted, DecisionTreeRegressor):
    pass


class Line(Counted, LinearRegression):
    pass


def labels() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_moons(160, noise=0.2, random_state=0)
    return X, np.where(np.random.default_rng(0).random(160) < 0.3, 1 - y, y)


def values() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 2))
    y = 3 * X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=120)
    y[:30] += 12
    return X, y


CASES = {
    "soft labels": (SelfPacedClassifier(Tree(random_state=0), keep_plain=True), labels),
    "cross-fitted labels": (SelfPacedClassifier(Tree(random_state=0), "hard"), labels),
    "in-sample labels": (SelfPacedClassifier(Bayes(), "hard"), labels),
    "stages of labels": (SelfPacedClassifier(Tree(random_state=0), pace=Quantile(0.6, 0.8, stages=2)), labels),
    "in-sample stages": (SelfPacedClassifier(Bayes(), pace=Quantile(0.6, 0.8, stages=2)), labels),
    "cross-fitted values": (SelfPacedRegressor(Leafy(min_samples_leaf=5, random_state=0), "hard"), values),
    "default values": (SelfPacedRegressor(Leafy(min_samples_leaf=5, random_state=0), keep_plain=True), values),
    "in-sample values": (SelfPacedRegressor(Line(), "hard"), values),
    "paper": (SelfPacedRegressor(Line(), pace="paper"), values),
    "stages of values": (SelfPacedRegressor(Line(), pace=Geometric(mu=2.0, stop=Stages(3))), values),
}


def attempt(model: Any, data: Any, at: int) -> Any:
    """Fit with Ctrl-C in the given fit of the wrapped model; 0 is never."""
    Counted.fits, Counted.at = 0, at
    fitted = clone(model)
    if not at:
        return fitted.fit(*data)
    with pytest.raises(KeyboardInterrupt, match="is kept"):
        fitted.fit(*data)
    return fitted


@pytest.mark.parametrize("name", CASES)
def test_ctrl_c_in_any_fit(name: str) -> None:
    model, make = CASES[name]
    X, y = make()
    whole = attempt(model, (X, y), 0)
    kept = set()
    for at in range(2, Counted.fits + 1, max(1, Counted.fits // 8)):
        fitted = attempt(model, (X, y), at)
        chosen = next(one.label for one in fitted.path_ if one.chosen)
        kept.add(chosen)
        told = "the plain model" if chosen == "plain" else chosen
        assert fitted.termination_ == f"Interrupted from outside: {told} is kept."
        assert (chosen == "plain") == (fitted.estimator_ is fitted.plain_) == np.isinf(fitted.lam_)
        assert fitted.assess(X, y) is fitted.assessment_
        assert fitted.predict(X).shape == fitted.sample_weight_.shape == y.shape
        assert vars(fitted).keys() == vars(whole).keys()
    assert "plain" in kept
    assert len(kept) >= (2 if "stages" in name else 1), kept


@pytest.mark.parametrize("name", CASES)
def test_before_there_is_a_model_ctrl_c_goes_through(name: str) -> None:
    model, make = CASES[name]
    X, y = make()
    Counted.fits, Counted.at = 0, 1
    fresh = clone(model)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    with pytest.raises(ValueError, match="not fitted"):
        check_is_fitted(fresh)
    fitted = attempt(model, (X, y), 0)
    before = dict(vars(fitted))
    Counted.fits, Counted.at = 0, 1
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[:-10], y[:-10])
    assert vars(fitted) == before


def test_a_filter_that_is_broken_off_keeps_its_old_model() -> None:
    X, y = labels()
    fitted = SuspectFilter(SelfPacedClassifier(DecisionTreeClassifier(random_state=0)), Tree(random_state=0)).fit(X, y)
    before = dict(vars(fitted))
    Counted.fits, Counted.at = 0, 1
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[:-10], y[:-10])
    assert vars(fitted) == before
