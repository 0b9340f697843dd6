"""Numbers near the ends of their range: a result, or one sentence that says what is too large or too small."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

from selfpaced import (
    PRMF,
    SelfPacedClassifier,
    SelfPacedLinearRegression,
    SelfPacedLogisticRegression,
    SelfPacedMF,
    SelfPacedMultiViewKMeans,
    SelfPacedRegressor,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
SCORE = X @ [1.0, -2.0, 0.5]
LABELS = np.where(RNG.random(120) < 0.15, SCORE <= 0, SCORE > 0).astype(int)
VALUES = SCORE + 0.1 * RNG.normal(size=120) + 10.0 * (np.arange(120) < 15)
MATRIX = np.outer(X[:30, 0], X[:20, 1]) + 0.1 * RNG.normal(size=(30, 20))
WEIGHT = RNG.random(120) + 0.1
EXTREMES = [1e300, 1e200, 1e155, 1e-162, 1e-200, 1e-300, 1e-310]

MODELS = {
    "logistic": (SelfPacedLogisticRegression(), LABELS),
    "linear": (SelfPacedLinearRegression(), VALUES),
    "k-means": (SelfPacedMultiViewKMeans(2, random_state=0), None),
}
WEIGHED = {
    **MODELS,
    "classifier": (SelfPacedClassifier(LogisticRegression()), LABELS),
    "regressor": (SelfPacedRegressor(Ridge()), VALUES),
}


def refused(name: str, model: Any, *data: Any, **given: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            ValueError, match=rf"^{name} must have a largest absolute value between .*: change its unit"
        ):
            clone(model).fit(*data, **given)


@pytest.mark.parametrize("factor", EXTREMES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", MODELS)
def test_features_too_large_or_too_small_are_refused(name: str, form: Any, factor: float) -> None:
    model, y = MODELS[name]
    refused("view 0" if name == "k-means" else "X", model, form(X * factor), y)


@pytest.mark.parametrize("factor", EXTREMES)
def test_values_too_large_or_too_small_are_refused(factor: float) -> None:
    refused("y", SelfPacedLinearRegression(), X, VALUES * factor)
    refused("y", SelfPacedRegressor(Ridge()), X, VALUES * factor)
    refused("X", SelfPacedMF(2, random_state=0), MATRIX * factor)
    refused("X", PRMF(2, random_state=0), sparse.csr_matrix(MATRIX * factor))


@pytest.mark.parametrize("factor", EXTREMES)
@pytest.mark.parametrize("name", WEIGHED)
def test_weights_too_large_or_too_small_are_refused(name: str, factor: float) -> None:
    model, y = WEIGHED[name]
    refused("sample_weight", model, X, y, sample_weight=WEIGHT * factor)


@pytest.mark.parametrize("factor", [1e-90, 1e90])
def test_what_is_within_gives_the_same_answer(factor: float) -> None:
    linear = SelfPacedLinearRegression().fit(X, VALUES)
    for scaled in (
        SelfPacedLinearRegression().fit(X * factor, VALUES).predict(X * factor),
        SelfPacedLinearRegression().fit(X, VALUES * factor).predict(X) / factor,
    ):
        np.testing.assert_allclose(scaled, linear.predict(X), rtol=1e-5)
    labels = SelfPacedMultiViewKMeans(2, random_state=0).fit(X * factor).labels_
    np.testing.assert_array_equal(labels, SelfPacedMultiViewKMeans(2, random_state=0).fit(X).labels_)
    weighted = SelfPacedLinearRegression().fit(X, VALUES, sample_weight=WEIGHT * factor)
    np.testing.assert_allclose(
        weighted.predict(X), SelfPacedLinearRegression().fit(X, VALUES, sample_weight=WEIGHT).predict(X), rtol=1e-6
    )


def test_features_without_a_penalty_need_a_size() -> None:
    refused("X", SelfPacedLogisticRegression(penalty=None), 1e-50 * X, LABELS)


@pytest.mark.parametrize("pace", [1e-6, 1e3, 1e6, 1e12, float("inf")])
@pytest.mark.parametrize("rule", ["welsch", "hard", "tukey"])
def test_any_pace_gives_a_model(rule: str, pace: float) -> None:
    model = SelfPacedLogisticRegression(rule, pace=pace).fit(X, LABELS)
    assert np.isfinite(model.predict_proba(X)).all()
    if pace >= 1e3:
        np.testing.assert_allclose(model.coef_, model.plain_.coef_, rtol=1e-3)
