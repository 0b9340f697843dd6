"""The default of SelfPacedClassifier: reference models, the posterior, and how each kind of model is fitted to it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from selfpaced import SelfPacedClassifier, soft_label_rows, suspects
from selfpaced.label_noise import NoiseModel

TREE = DecisionTreeClassifier(random_state=0)


def moons(n: int = 300, rate: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = make_moons(n, noise=0.15, random_state=seed)
    return X, y, np.where(np.random.default_rng(seed).random(n) < rate, 1 - y, y)


@pytest.fixture(scope="module")
def tree() -> SelfPacedClassifier:
    X, _, noisy = moons()
    return SelfPacedClassifier(TREE).fit(X, noisy)


# ---------------------------------------------------------------------------------------------- the posterior


def test_posterior_and_suspicion_agree(tree: SelfPacedClassifier) -> None:
    X, _, noisy = moons()
    np.testing.assert_allclose(tree.sample_posterior_.sum(axis=1), 1.0)
    given = tree.sample_posterior_[np.arange(len(noisy)), noisy]
    np.testing.assert_allclose(tree.sample_noise_, 1.0 - given, atol=1e-12)
    assert np.corrcoef(tree.sample_noise_, 1.0 - tree.sample_weight_)[0, 1] > 0.95
    np.testing.assert_array_equal(tree.assess(X, noisy).weight, tree.sample_weight_)
    table = suspects(tree, X, noisy, all_rows=True)
    assert table["noise_probability"].is_monotonic_decreasing
    np.testing.assert_allclose(table.sort_values("row")["noise_probability"], tree.sample_noise_)


def test_both_levels_of_suspects_are_listed() -> None:
    X, y, noisy = moons(600)
    model = SelfPacedClassifier(TREE).fit(X, noisy)
    levels, wrong = model.assessment_.levels(), noisy != y
    assert set(np.unique(levels)) == {0, 1, 2}
    look = model.sample_proba_[np.arange(600), noisy] < 0.4
    assert np.mean((levels > 0) == look) > 0.98  # rows whose given label is less probable than 0.4
    assert np.sum((levels > 0) & wrong) > 0.8 * wrong.sum()


def test_labels_that_a_person_has_confirmed_are_not_softened(tree: SelfPacedClassifier) -> None:
    X, _, noisy = moons()
    flagged = tree.sample_noise_ > 0.5
    fitted = SelfPacedClassifier(TREE).fit(X, noisy, trusted=flagged)
    assert flagged.any()
    np.testing.assert_array_equal(fitted.sample_posterior_[flagged], np.eye(2)[noisy[flagged]])
    assert (fitted.sample_weight_[flagged] == 1.0).all()
    assert not set(np.flatnonzero(flagged)) & set(suspects(fitted, X, noisy)["row"])


def test_the_pace_is_the_loss_at_even_odds(tree: SelfPacedClassifier) -> None:
    even = NoiseModel.identity(2)
    rate = tree.noise_rate_
    odds = np.array([[0.0, np.log(np.expm1(tree.lam_))]])  # a rival of this loss
    both_ways = NoiseModel(1.0, even.bias, np.array([[1 - rate, rate], [rate, 1 - rate]]), rate, (0, 1), (1.0,))
    np.testing.assert_allclose(both_ways.posterior(odds, [0]), 0.5)


def test_new_rows_are_weighed_by_the_same_channel(tree: SelfPacedClassifier) -> None:
    X, y, noisy = moons(seed=1)
    assessed = tree.assess(X, noisy)
    np.testing.assert_allclose(assessed.weight, 1.0 - assessed.wrong)
    assert assessed.wrong[noisy != y].mean() > assessed.wrong[noisy == y].mean() + 0.3


def test_the_path_has_the_plain_model_and_the_soft_fit(tree: SelfPacedClassifier) -> None:
    assert [one.label for one in tree.path_] == ["plain", "the fit to soft labels"]
    assert tree.path_[1].chosen
    assert tree.path_[1].mean_weight == pytest.approx(tree.sample_weight_.mean())
    assert not hasattr(tree, "plain_")


# -------------------------------------------------------------------------------------------------- reference models


@pytest.mark.parametrize(
    ("references", "names"),
    [
        ("self", ["the model itself"]),
        (GaussianNB(), ["GaussianNB"]),
        ([GaussianNB(), "self"], ["GaussianNB", "the model itself"]),
    ],
    ids=["self", "one", "several"],
)
def test_reference_models_of_your_own(references: Any, names: list[str]) -> None:
    X, y, noisy = moons()
    fitted = SelfPacedClassifier(KNeighborsClassifier(1), reference_models=references, keep_plain=True).fit(X, noisy)
    assert list(fitted.reference_weights_) == names
    assert sum(fitted.reference_weights_.values()) == pytest.approx(1.0)
    assert fitted.score(X, y) > fitted.plain_.score(X, y)


class Counting(DecisionTreeClassifier):
    """Counts its fits."""

    fits = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        type(self).fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.xdist_group("jobs")  # starts processes of its own
def test_a_model_is_fitted_once_whatever_the_number_of_jobs() -> None:
    X, _, noisy = moons(600)
    Counting.fits = 0
    model = SelfPacedClassifier(Counting(random_state=0)).fit(X, noisy)
    assert Counting.fits == 1
    others = SelfPacedClassifier(Counting(random_state=0), n_jobs=2).fit(X, noisy)
    np.testing.assert_array_equal(others.sample_proba_, model.sample_proba_)


def test_known_models_are_regularised_and_say_so() -> None:
    X, _, noisy = moons(400, 0.3)
    forest = RandomForestClassifier(30, random_state=0)
    model = SelfPacedClassifier(forest).fit(X, noisy)
    assert model.tuned_params_ == {"min_samples_leaf": 5}
    assert model.estimator_.min_samples_leaf == 5
    assert "min_samples_leaf=5" in model.termination_
    piped = SelfPacedClassifier(make_pipeline(StandardScaler(), forest)).fit(X, noisy)
    assert piped.tuned_params_ == {"randomforestclassifier__min_samples_leaf": 5}
    for left in (
        SelfPacedClassifier(forest, tune=False),
        SelfPacedClassifier(RandomForestClassifier(30, min_samples_leaf=2, random_state=0)),
    ):
        left.fit(X, noisy)
        assert left.tuned_params_ == {}
        assert left.estimator_.min_samples_leaf == left.estimator.min_samples_leaf
    assert forest.min_samples_leaf == 1


def test_models_of_many_rows_are_not_regularised() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 2))
    y = ((12 * X[:, 0]).astype(int) + (12 * X[:, 1]).astype(int)) % 2  # a chessboard needs many small leaves
    model = SelfPacedClassifier(HistGradientBoostingClassifier(random_state=0)).fit(X, y)
    assert model.tuned_params_ == {}


def test_reference_models_and_paces_of_your_own_exclude_each_other() -> None:
    X, _, noisy = moons(100)
    with pytest.raises(ValueError, match="reference_models must be 'auto' if pace, regularizer or cross_fit are given"):
        SelfPacedClassifier(TREE, reference_models="self", pace="paper").fit(X, noisy)
    with pytest.raises(ValueError, match="must be 'auto', 'self', a classifier or a list"):
        SelfPacedClassifier(TREE, reference_models="others").fit(X, noisy)


def test_groups_are_assessed_by_other_groups() -> None:
    """Copies with some noise, all with the same wrong label: only a reference that holds groups out can doubt them."""
    rng = np.random.default_rng(0)
    X, y, _ = moons(60)
    wrong = rng.random(60) < 0.2
    rows = np.repeat(np.arange(60), 8)
    near = X[rows] + rng.normal(0, 0.01, size=(480, 2))
    noisy = np.where(wrong, 1 - y, y)[rows]
    fits = [SelfPacedClassifier(KNeighborsClassifier(3)).fit(near, noisy, groups=groups) for groups in (None, rows)]
    doubts = [fitted.sample_noise_[wrong[rows]].mean() for fitted in fits]
    assert doubts[0] < 0.3 < 0.5 < doubts[1]


def test_frames_with_gaps_and_categories_are_assessed_by_forests() -> None:
    X, y, noisy = moons()
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": pd.Categorical(np.where(X[:, 1] > 0, "u", "v"))})
    frame.loc[::9, "a"] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype")
    fitted = SelfPacedClassifier(boosting).fit(frame, noisy)
    assert "forest" in fitted.reference_weights_
    assert fitted.score(frame, y) > 0.85 > np.mean(noisy == y)


def test_wide_sparse_rows_are_assessed_by_the_regression_and_texts_by_the_model() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    texts = [" ".join(f"w{t}" for t in rng.integers(0, 40, 12) + 20 * label) for label in y]
    noisy = np.where(rng.random(300) < 0.2, 1 - y, y)
    counts = sparse.hstack([CountVectorizer().fit_transform(texts), sparse.random(300, 300, 0.01, random_state=0)])
    fitted = SelfPacedClassifier(MultinomialNB(alpha=0.01)).fit(counts.tocsr(), noisy)
    assert "logistic regression" in fitted.reference_weights_
    assert "forest" not in fitted.reference_weights_
    own = SelfPacedClassifier(make_pipeline(CountVectorizer(), MultinomialNB())).fit(texts, noisy)
    assert list(own.reference_weights_) == ["the model itself"]
    assert own.score(texts, y) > 0.95


# ----------------------------------------------------------------------------------------------- rare labels


def with_rare_label(noisy: np.ndarray, row: int = 7) -> np.ndarray:
    given = np.array(["cat", "dog"], dtype=object)[noisy]
    given[row] = "cta"
    return given


@pytest.mark.parametrize("model", [TREE, KNeighborsClassifier(3), LinearSVC()], ids=lambda v: type(v).__name__)
def test_a_label_of_one_row_is_a_class_and_does_not_hide_noise(model: Any) -> None:
    X, _, noisy = moons()
    fitted = SelfPacedClassifier(model).fit(X, with_rare_label(noisy))
    assert fitted.classes_.tolist() == ["cat", "cta", "dog"]
    assert fitted.predict_proba(X).shape == (300, 3)
    assert fitted.noise_rate_ > 0.1
    assert np.isin(fitted.predict(X), ["cat", "dog"]).mean() > 0.95


@pytest.mark.parametrize("rare", [3, 10])
def test_a_rare_class_does_not_hide_noise_among_the_others(rare: int) -> None:
    X, _, noisy = moons(500)
    noisy = np.where(np.arange(500) < rare, 2, noisy)
    model = SelfPacedClassifier(TREE).fit(X, noisy)
    assert model.noise_rate_ > 0.05
    assert "soft labels was chosen" in model.termination_
    assert 2 in model.estimator_.classes_


class FromZero(DecisionTreeClassifier):
    """Takes labels 0 .. n_classes - 1 alone, as some libraries do."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        if not np.array_equal(np.unique(y), np.arange(np.unique(y).size)):
            raise ValueError("labels from 0 on")
        return super().fit(X, y, sample_weight)


def test_a_model_that_counts_its_labels_gets_them_from_zero() -> None:
    X, _, noisy = moons()
    fitted = SelfPacedClassifier(FromZero(max_depth=4, random_state=0)).fit(X, with_rare_label(noisy))
    assert fitted.predict_proba(X).shape == (300, 3)
    np.testing.assert_array_equal(fitted.classes_[fitted.predict_proba(X).argmax(axis=1)], fitted.predict(X))


# ------------------------------------------------------------------------------------------- how it is fitted


def test_soft_label_rows_give_the_expected_loss() -> None:
    rng = np.random.default_rng(0)
    X, q = rng.normal(size=(200, 3)), rng.beta(0.3, 0.3, size=200)
    soft = np.stack([1 - q, q], axis=1)
    rows, y, weight = soft_label_rows(X, soft)
    kept = np.where(soft < 0.02, 0, soft)
    kept /= kept.sum(axis=1, keepdims=True)
    theirs = GaussianNB().fit(np.vstack([X, X]), np.repeat([0, 1], 200), sample_weight=kept.T.ravel())
    ours = GaussianNB().fit(rows, y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-4)
    np.testing.assert_allclose(np.bincount(np.unique(rows[:, 0], return_inverse=True)[1], weight), 1.0)
    frame, named, _ = soft_label_rows(pd.DataFrame(X), soft, classes=["a", "b"])
    assert isinstance(frame, pd.DataFrame)
    assert set(named) == {"a", "b"}


@pytest.mark.parametrize(
    ("probs", "match"),
    [(np.ones((3, 2)), "sum to 1"), (np.ones(3), r"shape \(3, n_classes\)"), (np.ones((2, 1)), "shape")],
)
def test_bad_probabilities_are_refused(probs: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        soft_label_rows(np.zeros((3, 1)), probs)


def test_balanced_class_weights_are_those_of_the_soft_labels() -> None:
    X, _, noisy = moons()
    fitted = SelfPacedClassifier(RandomForestClassifier(10, class_weight="balanced", random_state=0)).fit(X, noisy)
    assert set(fitted.estimator_.class_weight) == {0, 1}


def test_a_search_keeps_the_given_labels() -> None:
    X, _, noisy = moons(200)
    alone = SelfPacedClassifier(GridSearchCV(TREE, {"max_depth": [2, 4]}, cv=3)).fit(X, noisy)
    why = "rows keep their given labels and are weighted, because GridSearchCV holds rows out by itself"
    assert why in alone.termination_


class Sized(HistGradientBoostingClassifier):
    sizes: list[int] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        self.sizes.append(len(X))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("model", "way"),
    [
        (
            LogisticRegressionCV(cv=3, Cs=2, use_legacy_attributes=False, scoring="accuracy", l1_ratios=(0.0,)),
            "weighted",
        ),
        (GradientBoostingClassifier(n_iter_no_change=3), "weighted"),
        (GradientBoostingClassifier(), "repeated"),
        (HistGradientBoostingClassifier(early_stopping=True), "weighted"),
        (HistGradientBoostingClassifier(), "repeated"),
        (make_pipeline(StandardScaler(), HistGradientBoostingClassifier(early_stopping=True)), "weighted"),
        (KNeighborsClassifier(), "drawn"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_models_that_hold_rows_out_see_every_row_once(model: Any, way: str) -> None:
    X, _, noisy = moons(200, 0.3)
    words = {"weighted": "holds rows out by itself", "repeated": "each row is repeated", "drawn": "drawn labels"}
    assert words[way] in SelfPacedClassifier(model).fit(X, noisy).termination_


def test_early_stopping_is_not_fed_copies() -> None:
    X, _, noisy = moons()
    Sized.sizes.clear()
    fitted = SelfPacedClassifier(Sized(max_iter=10, early_stopping=True, random_state=0)).fit(X, noisy)
    assert max(Sized.sizes) == 300
    assert "holds rows out by itself" in fitted.termination_
    SelfPacedClassifier(Sized(max_iter=10, random_state=0)).fit(X, noisy)
    assert max(Sized.sizes) > 300


def test_without_weights_labels_are_drawn_as_often_as_they_are_probable() -> None:
    X, _, noisy = moons()
    fitted = SelfPacedClassifier(KNeighborsClassifier(1)).fit(X, noisy)
    mean = fitted.estimator_
    share = np.mean([model.predict(X) for model in mean.models_], axis=0)  # 1-NN repeats the label it was given
    np.testing.assert_allclose(mean.predict_proba(X)[:, 1], share)
    given = np.mean([model.predict(X) == noisy for model in mean.models_], axis=0)
    np.testing.assert_allclose(given, fitted.sample_weight_, atol=0.2)
    assert abs(given.mean() - fitted.sample_weight_.mean()) < 0.02


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_at_random_are_not_called_wrong(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1200, 5)), rng.integers(0, n_classes, 1200)
    model = SelfPacedClassifier(RandomForestClassifier(20, random_state=0), keep_plain=True).fit(X[:600], y[:600])
    assert np.isnan(model.noise_rate_)
    assert model.noise_rate_interval_[0] == 0.0 < 0.3 < model.noise_rate_interval_[1]
    assert not (model.assessment_.wrong >= 0.5).any()
    assert "say too little about the labels" in model.termination_
    ours, plain = (log_loss(y[600:], one.predict_proba(X[600:])) for one in (model, model.plain_))
    assert ours < plain + 0.1


@pytest.mark.parametrize("seed", range(4))
def test_classes_that_overlap_are_not_called_wrong(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 6))
    y = (rng.random(600) < 1 / (1 + np.exp(-1.5 * X[:, 0] * X[:, 1] - X[:, 2]))).astype(int)
    model = SelfPacedClassifier(RandomForestClassifier(20, random_state=0)).fit(X, y)
    assert model.noise_rate_interval_[0] == 0.0
    assert np.sum(model.assessment_.wrong >= 0.5) <= 6  # of 150 that are on the less probable side


def test_forty_percent_of_wrong_labels_are_learned_around_without_a_claim() -> None:
    """Held-out predictions of such labels are weak evidence: no claim, but the fit follows the reference models."""
    X, y, noisy = moons(200, 0.4, seed=3)
    model = SelfPacedClassifier(TREE, keep_plain=True).fit(X, noisy)
    assert model.noise_rate_interval_[0] == 0.0
    assert model.score(X, y) > model.plain_.score(X, y) + 0.1


# ---------------------------------------------------------------------------------------- nothing to be said


@pytest.mark.parametrize("classes", [2, 60])
def test_the_noise_rate_of_labels_at_random_is_unknown(classes: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), np.arange(600) % classes
    model = SelfPacedClassifier(LogisticRegression()).fit(X, y)
    assert np.isnan(model.noise_rate_)
    low, high = model.noise_rate_interval_
    assert low == 0.0
    assert 0.5 < high <= 1.0
    assert not (model.sample_noise_ > 0.5).any()


@pytest.mark.parametrize("pace", ["auto", 0.7])
def test_the_noise_rate_of_too_few_rows_is_unknown(pace: Any) -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SelfPacedClassifier(LogisticRegression(), pace=pace).fit(X, X[:, 0] > 0)
    assert np.isnan(model.noise_rate_)
    assert model.noise_rate_interval_ == (0.0, 1.0)


def test_of_very_many_classes_each_row_keeps_one() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 2)), np.arange(1000) % 200
    model = SelfPacedClassifier(GaussianNB(), reference_models=GaussianNB()).fit(
        X, y
    )  # each is less probable than 1 in 50
    assert np.isfinite(model.predict_proba(X)).all()
