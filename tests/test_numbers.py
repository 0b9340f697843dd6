"""Numbers near the ends of their range: the same result by powers of two, or one sentence.

Refused is what stands beside a number of the same unit: a ridge, a pace, a wrapped model's own settings.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import adjusted_rand_score

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

WRAPPED = {
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


@pytest.mark.parametrize("factor", [1e200, 1e155, 1e-162, 1e-290])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_column_of_numbers_too_large_is_refused_and_one_too_small_counts_for_nothing(
    form: Any, factor: float
) -> None:
    odd = form(X * np.array([1.0, factor, 1.0]))
    for model, y in ((SelfPacedLinearRegression(), VALUES), (SelfPacedLogisticRegression(), LABELS)):
        if factor > 1:
            refused("X", model, odd, y)
        else:
            assert np.isfinite(clone(model).fit(odd, y).predict(odd)).all()


@pytest.mark.parametrize("factor", EXTREMES)
def test_weights_of_any_size_give_the_same_answer(factor: float) -> None:
    power = 2.0 ** np.round(np.log2(factor))
    for model, y in ((SelfPacedLinearRegression(), VALUES), (SelfPacedLogisticRegression(penalty=None), LABELS)):
        usual, odd = (clone(model).fit(X, y, sample_weight=weight) for weight in (WEIGHT, WEIGHT * power))
        np.testing.assert_allclose(odd.coef_, usual.coef_, rtol=1e-9)
    labels = [
        SelfPacedMultiViewKMeans(2, random_state=0).fit(X, sample_weight=w).labels_ for w in (WEIGHT, WEIGHT * power)
    ]
    np.testing.assert_array_equal(*labels)
    assert SelfPacedLogisticRegression().fit(X, LABELS, sample_weight=WEIGHT * factor).score(X, SCORE > 0) > 0.9


@pytest.mark.parametrize("factor", EXTREMES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_features_beside_a_number_of_their_unit_are_refused(form: Any, factor: float) -> None:
    refused("X", SelfPacedLinearRegression(), form(X * factor), VALUES)
    refused("X", SelfPacedLogisticRegression(C=1.0), form(X * factor), LABELS)
    refused("view 0", SelfPacedMultiViewKMeans(2, random_state=0), form(X * factor))


@pytest.mark.parametrize("factor", EXTREMES)
def test_values_beside_a_number_of_their_unit_are_refused(factor: float) -> None:
    refused("y", SelfPacedLinearRegression(), X, VALUES * factor)
    refused("y", SelfPacedRegressor(Ridge()), X, VALUES * factor)
    refused("X", SelfPacedMF(2, random_state=0), MATRIX * factor)
    refused("X", PRMF(2, random_state=0), sparse.csr_matrix(MATRIX * factor))


@pytest.mark.parametrize("factor", [factor for factor in EXTREMES if factor >= 1e-300])  # below, digits are lost
@pytest.mark.parametrize("name", WRAPPED)
def test_wrappers_take_weights_in_any_unit(name: str, factor: float) -> None:
    model, y = WRAPPED[name]
    before = model.fit(X, y, sample_weight=WEIGHT).noise_rate_
    assert model.fit(X, y, sample_weight=WEIGHT * factor).noise_rate_ == pytest.approx(before, rel=1e-6)


@pytest.mark.parametrize("factor", EXTREMES)
def test_weights_beside_a_number_of_their_unit_are_refused(factor: float) -> None:
    refused("sample_weight", SelfPacedLinearRegression(alpha=1.0), X, VALUES, sample_weight=WEIGHT * factor)
    refused("sample_weight", SelfPacedLogisticRegression(C=1.0), X, LABELS, sample_weight=WEIGHT * factor)


@pytest.mark.parametrize("factor", [1e-90, 1e90])
def test_what_is_within_gives_the_same_answer(factor: float) -> None:
    linear = SelfPacedLinearRegression().fit(X, VALUES)
    for scaled in (
        SelfPacedLinearRegression().fit(X * factor, VALUES).predict(X * factor),
        SelfPacedLinearRegression().fit(X, VALUES * factor).predict(X) / factor,
    ):
        np.testing.assert_allclose(scaled, linear.predict(X), rtol=1e-5)
    clusters = X + 8.0 * (np.arange(len(X)) % 2)[:, None]
    labels = SelfPacedMultiViewKMeans(2, random_state=0).fit(clusters * factor).labels_
    assert adjusted_rand_score(labels, SelfPacedMultiViewKMeans(2, random_state=0).fit(clusters).labels_) == 1
    weighted = SelfPacedLinearRegression().fit(X, VALUES, sample_weight=WEIGHT * factor)
    np.testing.assert_allclose(
        weighted.predict(X), SelfPacedLinearRegression().fit(X, VALUES, sample_weight=WEIGHT).predict(X), rtol=1e-6
    )


@pytest.mark.parametrize("pace", [1e-6, 1e3, 1e6, 1e12, float("inf")])
@pytest.mark.parametrize("rule", ["welsch", "hard", "tukey"])
def test_any_pace_gives_a_model(rule: str, pace: float) -> None:
    model = SelfPacedLogisticRegression(rule, pace=pace).fit(X, LABELS)
    assert np.isfinite(model.predict_proba(X)).all()
    if pace >= 1e3:
        np.testing.assert_allclose(model.coef_, model.plain_.coef_, rtol=1e-3)
