"""Every parameter of every estimator has a rule, and what breaks it is refused by name before the fit begins."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import selfpaced
from selfpaced import SelfPacedClassifier, SelfPacedLinearRegression, SelfPacedLogisticRegression, SelfPacedRegressor
from selfpaced.parameters import RULES
from selfpaced.registry import ESTIMATORS

NAMES = [*ESTIMATORS, "SuspectFilter"]
NEEDED = {
    "SelfPacedClassifier": {"estimator": LogisticRegression()},
    "SelfPacedRegressor": {"estimator": Ridge()},
    "SuspectFilter": {"detector": SelfPacedLogisticRegression(), "estimator": LogisticRegression()},
}
JUNK: list[Any] = [
    object(), [], {}, set(), "nonsense", "False", b"auto", float("nan"), float("inf"), -1, -0.5, 1.5, 10**12, True,
    None, np.zeros(3), np.array("auto"), 1j, lambda: 3, LogisticRegression, KMeans(), pd.Timestamp("2020"),
]  # fmt: skip

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


def parameters(name: str) -> list[str]:
    return [key for key in inspect.signature(getattr(selfpaced, name).__init__).parameters if key != "self"]


def allowed(rule: Any, value: Any) -> bool:
    try:
        return bool(rule.holds(value))
    except (ValueError, TypeError):
        return False


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_rule(name: str) -> None:
    own = getattr(getattr(selfpaced, name), "_parameter_rules", {})
    assert set(parameters(name)) <= {*own, *RULES}
    assert set(own) <= set(parameters(name))


def test_no_rule_is_left_over() -> None:
    assert set(RULES) == {key for name in NAMES for key in parameters(name)}


@pytest.mark.parametrize(("name", "key"), [(name, key) for name in NAMES for key in parameters(name)])
def test_what_breaks_a_rule_is_refused_by_name(name: str, key: str) -> None:
    kind = getattr(selfpaced, name)
    rule = getattr(kind, "_parameter_rules", {}).get(key, RULES[key])
    broken = [value for value in JUNK if not allowed(rule, value)]
    assert len(broken) > len(JUNK) // 2
    for value in broken:
        model = kind(**{**NEEDED.get(name, {}), key: value})
        with pytest.raises((ValueError, TypeError), match=rf"^{key} must be ") as caught:
            model.fit(X, Y)
        assert "got" in str(caught.value)
        assert not [key for key in vars(model) if key.endswith("_")]


@pytest.mark.parametrize("name", NAMES)
def test_the_defaults_keep_the_rules(name: str) -> None:
    kind = getattr(selfpaced, name)
    for key, value in kind(**NEEDED.get(name, {})).get_params(deep=False).items():
        assert allowed(getattr(kind, "_parameter_rules", {}).get(key, RULES[key]), value), key


class Stranger(BaseEstimator):
    """A model that says nothing of what it is."""

    def fit(self, X: Any, y: Any) -> Stranger:
        self.majority_ = np.unique(y)[0]
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.full(len(X), self.majority_)


@pytest.mark.parametrize("wrong", [Ridge(), make_pipeline(Ridge()), LogisticRegression, StandardScaler()])
def test_a_classifier_must_be_one(wrong: Any) -> None:
    with pytest.raises(ValueError, match="estimator must be a classifier or None, got "):
        SelfPacedClassifier(wrong).fit(X, Y)


@pytest.mark.parametrize(
    "wrong", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression()), "ridge"]
)
def test_a_regressor_must_be_one(wrong: Any) -> None:
    with pytest.raises(ValueError, match="estimator must be a regressor or None, got "):
        SelfPacedRegressor(wrong).fit(X, Y)


def test_a_model_that_says_nothing_is_believed() -> None:
    assert SelfPacedClassifier(Stranger()).fit(X, Y).predict(X).shape == (60,)
    assert SelfPacedRegressor(Stranger()).fit(X, X[:, 0]).predict(X).shape == (60,)


@pytest.mark.parametrize("model", [SelfPacedLogisticRegression(), SelfPacedLinearRegression()])
def test_a_column_of_dates_is_refused(model: Any) -> None:
    dates = pd.DataFrame({"a": X[:, 0], "day": pd.date_range("2020", periods=60)})
    with pytest.raises((ValueError, TypeError), match=r"got dates in the columns \['day'\]"):
        model.fit(dates, Y)
