"""Rows that a person has confirmed: full weight, no suspicion, and the same everywhere."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from selfpaced import (
    SelfPacedClassifier,
    SelfPacedLinearRegression,
    SelfPacedLogisticRegression,
    SelfPacedRegressor,
    SuspectFilter,
    label_issues,
    suspects,
)
from selfpaced.persistence import load, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
FLIPPED = RNG.random(300) < 0.15
LABELS = np.where((X[:, 0] + 0.5 * X[:, 1] > 0) ^ FLIPPED, "yes", "no")
VALUES = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=300) + 10 * FLIPPED
CASES = {
    "logistic": (SelfPacedLogisticRegression(), LABELS),
    "tree": (SelfPacedClassifier(DecisionTreeClassifier(max_depth=4, random_state=0)), LABELS),
    "linear": (SelfPacedLinearRegression(), VALUES),
    "ridge": (SelfPacedRegressor(Ridge()), VALUES),
}


def agreement(model, y):
    """How well a model agrees with each given label or value."""
    if y.dtype.kind == "f":
        return -np.abs(model.predict(X) - y)
    return model.predict_proba(X)[np.arange(len(y)), (y == "yes").astype(int)]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """A model without and one with the ten worst rows confirmed."""
    model, y = CASES[request.param]
    before = model.fit(X, y)
    worst = suspects(before, X, y)["row"].to_numpy()[:10]
    kept = before.sample_weight_.copy(), agreement(before, y)
    trusted = np.zeros(len(y), dtype=bool)
    trusted[worst] = True
    return model.fit(X, y, trusted=trusted), y, trusted, kept


def test_confirmed_rows_have_full_weight_and_are_not_listed(case):
    model, y, trusted, (weight, _) = case
    assert weight[trusted].max() < 0.5
    assert np.all(model.sample_weight_[trusted] == 1.0)
    assert np.all(model.assessment_.weight[trusted] == 1.0)
    assert not trusted[suspects(model, X, y)["row"]].any()
    assert len(suspects(model, X, y, all_rows=True)) == len(y) - 10
    assert not model.assessment_.levels()[trusted].any()
    assert np.all(label_issues(model, X, y)["label_quality"][trusted] == 1.0)


def test_the_model_moves_toward_confirmed_rows(case):
    model, y, trusted, (_, before) = case
    assert agreement(model, y)[trusted].mean() > before[trusted].mean()


@pytest.mark.parametrize("options", [{"penalty": None}, {"C": 1e4}], ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_confirmed_rows_do_not_turn_a_weakly_penalised_model_over(options, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    coef = 2 * rng.normal(size=3)
    y = X @ coef + 1.5 * rng.logistic(size=300) > 0
    trusted = rng.random(300) < 0.2
    without = SelfPacedLogisticRegression(**options).fit(X, y).score(X, y)
    confirmed = SelfPacedLogisticRegression(**options).fit(X, y, trusted=trusted).score(X, y)
    assert confirmed == pytest.approx(without, abs=0.1)


def test_what_was_confirmed_is_saved_with_the_model(case, tmp_path):
    model, y, trusted, _ = case
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert np.array_equal(again.assessment_.trusted, trusted)
    assert not trusted[suspects(again, X, y)["row"]].any()


def test_no_confirmed_rows_change_nothing():
    one = SelfPacedLinearRegression().fit(X, VALUES)
    other = SelfPacedLinearRegression().fit(X, VALUES, trusted=np.zeros(300, dtype=bool))
    assert np.array_equal(one.coef_, other.coef_)
    assert other.assessment_.trusted is None


@pytest.mark.parametrize("trusted", [[True, False], np.full(300, 2), np.ones((300, 1), dtype=bool)])
@pytest.mark.parametrize("name", CASES)
def test_anything_else_is_refused(name, trusted):
    model, y = CASES[name]
    with pytest.raises(ValueError, match="trusted must"):
        model.fit(X, y, trusted=trusted)


def test_rows_without_weight_may_be_confirmed():
    weight = np.ones(300)
    weight[:5] = 0.0
    trusted = np.arange(300) < 8
    for model, y in (CASES["logistic"], CASES["linear"]):
        model.fit(X, y, sample_weight=weight, trusted=trusted)
        assert np.all(model.sample_weight_[trusted] == 1.0)


def test_routed_like_weights():
    trusted = np.arange(300) < 20
    pipeline = make_pipeline(StandardScaler(), SelfPacedLogisticRegression())
    pipeline.fit(X, LABELS, selfpacedlogisticregression__trusted=trusted)
    assert pipeline[-1].assessment_.trusted.sum() == 20
    with config_context(enable_metadata_routing=True):
        model = SelfPacedLogisticRegression().set_fit_request(trusted=True)
        search = GridSearchCV(make_pipeline(StandardScaler(), model), {}, cv=2).fit(X, LABELS, trusted=trusted)
        assert search.best_estimator_[-1].assessment_.trusted.sum() == 20
        wrapped = SelfPacedClassifier(LogisticRegression()).set_fit_request(trusted=True)
        made = make_pipeline(StandardScaler(), wrapped).fit(X, LABELS, trusted=trusted)
        assert made[-1].assessment_.trusted.sum() == 20


def test_a_filter_leaves_no_confirmed_row_out():
    worst = suspects(SelfPacedLinearRegression().fit(X, VALUES), X, VALUES)["row"].to_numpy()[:10]
    trusted = np.isin(np.arange(300), worst)
    model = SuspectFilter(SelfPacedLinearRegression(), Ridge()).fit(X, VALUES, trusted=trusted)
    assert model.kept_[trusted].all()
    assert not model.kept_.all()
