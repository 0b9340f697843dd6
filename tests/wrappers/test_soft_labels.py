"""The default of SelfPacedClassifier: who references, what the posterior says, how each kind of model is fitted to
it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from selfpaced import SelfPacedClassifier, suspects
from selfpaced.fitting import Progress
from selfpaced.label_noise import NoiseModel
from selfpaced.wrappers.cases import cases_of, numeric_table
from selfpaced.wrappers.posterior import with_totals
from selfpaced.wrappers.reference_models import BaggedReference, bagged
from selfpaced.wrappers.routing import weight_route
from selfpaced.wrappers.soft_labels import COPIES, MeanOfModels, SoftFit
from selfpaced.wrappers.soft_path import SoftProblem

TREE = DecisionTreeClassifier(random_state=0)


def moons(n: int = 300, rate: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = make_moons(n, noise=0.15, random_state=seed)
    return X, y, np.where(np.random.default_rng(seed).random(n) < rate, 1 - y, y)


@pytest.fixture(scope="module")
def tree() -> SelfPacedClassifier:
    X, _, noisy = moons()
    return SelfPacedClassifier(TREE).fit(X, noisy)


# ---------------------------------------------------------------------------------------------- the posterior


def test_posterior_suspicion_and_weight_are_one_but_for_the_doubt_that_there_is_noise(
    tree: SelfPacedClassifier,
) -> None:
    X, _, noisy = moons()
    np.testing.assert_allclose(tree.sample_posterior_.sum(axis=1), 1.0)
    given = tree.sample_posterior_[np.arange(len(noisy)), noisy]
    np.testing.assert_allclose(tree.sample_noise_, 1.0 - given, atol=1e-12)
    share = tree.noise_model_.suspicion.share
    assert 0.9 < share < 1.0
    np.testing.assert_allclose(tree.sample_noise_, share * (1.0 - tree.sample_weight_), atol=1e-12)
    np.testing.assert_array_equal(tree.assess(X, noisy).weight, tree.sample_weight_)
    table = suspects(tree, X, noisy, all_rows=True)
    assert table["noise_probability"].is_monotonic_decreasing
    np.testing.assert_allclose(table.sort_values("row")["noise_probability"], tree.sample_noise_)


def test_labels_that_a_person_has_confirmed_are_not_softened(tree: SelfPacedClassifier) -> None:
    X, _, noisy = moons()
    doubted = tree.sample_noise_ > 0.5
    fitted = SelfPacedClassifier(TREE).fit(X, noisy, trusted=doubted)
    assert doubted.any()
    np.testing.assert_array_equal(fitted.sample_posterior_[doubted], np.eye(2)[noisy[doubted]])
    assert (fitted.sample_weight_[doubted] == 1.0).all()
    assert not set(np.flatnonzero(doubted)) & set(suspects(fitted, X, noisy)["row"])


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


def test_totals_are_met() -> None:
    rng = np.random.default_rng(0)
    clean, codes = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    transition = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    totals = np.array([0.5, 0.3, 0.2])
    moved = with_totals(clean, transition, codes, np.ones(200), totals)
    posterior = NoiseModel(1.0, np.zeros(3), transition, 0.2, (0, 1), (1.0,)).posterior(np.log(moved), codes)
    np.testing.assert_allclose(posterior.mean(axis=0), totals, atol=1e-3)


# -------------------------------------------------------------------------------------------------- who references


@pytest.mark.parametrize(
    ("references", "names"),
    [
        ("self", ["the model itself"]),
        (GaussianNB(), ["GaussianNB"]),
        ([GaussianNB(), "self"], ["GaussianNB", "the model itself"]),
    ],
    ids=["self", "one", "several"],
)
def test_references_of_your_own(references: Any, names: list[str]) -> None:
    X, y, noisy = moons()
    fitted = SelfPacedClassifier(KNeighborsClassifier(1), reference_models=references, keep_plain=True).fit(X, noisy)
    assert list(fitted.reference_weights_) == names
    assert sum(fitted.reference_weights_.values()) == pytest.approx(1.0)
    assert fitted.score(X, y) > fitted.plain_.score(X, y)


def test_a_model_that_is_clearly_the_better_assess_joins() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 40, size=(400, 6))
    y = (np.sin(X[:, 0]) > 0).astype(int)  # neither a line nor leaves of five see waves
    noisy = np.where(rng.random(400) < 0.15, 1 - y, y)
    waves = make_pipeline(FunctionTransformer(np.sin), LogisticRegression())
    fitted = SelfPacedClassifier(waves).fit(X, noisy)
    assert fitted.reference_weights_["the model itself"] > 0.5
    assert "the model itself" not in SelfPacedClassifier(GaussianNB()).fit(X, noisy).reference_weights_


def test_a_model_far_behind_the_references_is_asked_about_half_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, noisy = moons(1200)
    fits: list[int] = []
    monkeypatch.setattr(SoftFit, "_fit", lambda self, *a, _fit=SoftFit._fit: fits.append(1) or _fit(self, *a))
    behind = SelfPacedClassifier(TREE, random_state=0).fit(X, noisy)
    assert len(fits) == 2  # one half, and the fit to soft labels
    assert all(np.isfinite([one.score, one.spread]).all() for one in behind.path_)
    weighted = SelfPacedClassifier(TREE, random_state=0).fit(X, noisy, sample_weight=np.full(len(noisy), 2.0))
    assert weighted.path_[0].score == pytest.approx(behind.path_[0].score)
    fits.clear()
    others = SelfPacedClassifier(TREE, random_state=0, n_jobs=2).fit(X, noisy)
    assert [one.score for one in others.path_] == [one.score for one in behind.path_]
    fits.clear()
    SelfPacedClassifier(KNeighborsClassifier(15), random_state=0).fit(X, noisy)
    assert len(fits) > 2  # about as good as the references: both halves


def test_a_forest_votes_out_of_its_own_bags() -> None:
    X, _, noisy = moons()
    forest = RandomForestClassifier(60, random_state=0)
    problem = SoftProblem(X, soft_fit(forest, noisy, X), Progress(None))
    cases = problem.cases()
    assert problem.spares(cases)
    plain = problem.plain()
    own = problem.references(cases, plain)[1]
    assert isinstance(own, BaggedReference)
    np.testing.assert_array_equal(own.votes(cases.hard)[cases.of_row], plain.model.oob_decision_function_)
    soft = 0.9 * cases.hard + 0.05
    np.testing.assert_array_equal(own.votes(soft), own.halves.votes(soft))  # copies would be in and out of a bag
    fitted = SelfPacedClassifier(forest).fit(X, noisy)
    np.testing.assert_array_equal(fitted.plain_.predict_proba(X), clone(forest).fit(X, noisy).predict_proba(X))
    assert fitted.plain_.oob_score is False
    for other in (RandomForestClassifier(5), RandomForestClassifier(60, bootstrap=False), TREE):
        assert bagged(other) is None
    twice = np.vstack([X, X[:5]])
    copies = SoftProblem(twice, soft_fit(forest, np.r_[noisy, noisy[:5]], twice), Progress(None))
    assert not copies.spares(copies.cases())


def test_candidates_are_scored_on_unseen_rows(tree: SelfPacedClassifier) -> None:
    plain, soft = tree.path_
    assert plain.score < soft.score < -0.5  # a tree of single rows foretells noisy labels worse than its references do
    assert 0.0 < soft.spread < 0.1


def test_references_and_paces_of_your_own_exclude_each_other() -> None:
    X, _, noisy = moons(100)
    with pytest.raises(ValueError, match="reference_models must be 'auto' if pace, regularizer or cross_fit are given"):
        SelfPacedClassifier(TREE, reference_models="self", pace="paper").fit(X, noisy)
    with pytest.raises(ValueError, match="reference_models must be 'auto', 'self', a classifier or a list"):
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


def test_tables_of_all_kinds() -> None:
    frame = pd.DataFrame({"a": [1.0, None, 3.0] * 20, "b": ["x", "y", "y"] * 20, "c": pd.Categorical([1, 2, 3] * 20)})
    table = numeric_table(frame)
    assert table.shape == (60, 1 + 1 + 2 + 3)
    assert np.isfinite(table).all()
    assert numeric_table(sparse.random(50, 400, 0.05, format="csc", random_state=0)).format == "csr"
    assert numeric_table(frame.assign(d=[f"a sentence of some words, number {i}" for i in range(60)])) is None
    assert numeric_table(np.zeros((4, 3, 2))) is None
    np.testing.assert_array_equal(numeric_table(frame[["a"]].to_numpy()), numeric_table(frame[["a"]]))


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
    assert model.noise_rate_ > 0.1
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


def soft_fit(estimator: Any, noisy: np.ndarray, X: Any, **options: Any) -> SoftFit:
    keys = cases_of(X, noisy, 2)
    return SoftFit(estimator, weight_route(estimator), np.arange(2), noisy, keys.keys[keys.of_row], **options)


def drawn_posterior(n: int = 300, seed: int = 0) -> np.ndarray:
    q = np.random.default_rng(seed).beta(0.3, 0.3, size=n)
    return np.stack([1 - q, q], axis=1)


def test_each_row_comes_once_for_every_class_it_may_belong_to() -> None:
    X, _, noisy = moons()
    soft = drawn_posterior().round(6)
    ours = soft_fit(GaussianNB(), noisy, X, prior=np.arange(1.0, 301)).fit(X, soft).model
    kept = np.where(soft < 0.02, 0, soft)
    kept /= kept.sum(axis=1, keepdims=True)
    weight = (kept * np.arange(1.0, 301)[:, None]).T.ravel()
    theirs = GaussianNB().fit(np.vstack([X, X]), np.repeat([0, 1], 300), sample_weight=weight)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-8)


def test_the_last_bits_of_probabilities_do_not_matter() -> None:
    """Sums are rounded differently by every processor, and a tree decides ties by the last bit."""
    X, _, noisy = moons()
    X = np.hstack([X, X[:, ::-1]]).round(1)  # splits that are equally good
    soft = drawn_posterior().round(3)
    nearly = soft * (1 + 1e-12 * np.random.default_rng(0).standard_normal(soft.shape))
    trees = [soft_fit(TREE, noisy, X).fit(X, each).model.tree_ for each in (soft, nearly)]
    np.testing.assert_array_equal(trees[0].feature, trees[1].feature)
    np.testing.assert_array_equal(trees[0].value, trees[1].value)


def test_balanced_class_weights_are_those_of_the_soft_labels() -> None:
    rng = np.random.default_rng(0)
    X, _, noisy = moons()
    soft = drawn_posterior()
    soft = np.where(rng.random(300)[:, None] < 0.7, [[0.9, 0.1]], soft)  # counted as rows, both classes are equal
    ours = soft_fit(LogisticRegression(class_weight="balanced"), noisy, X).fit(X, soft).model
    weight = soft * (300 / (2 * soft.sum(axis=0)))
    theirs = LogisticRegression().fit(np.vstack([X, X]), np.repeat([0, 1], 300), sample_weight=weight.T.ravel())
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.02)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=0.05)
    fitted = SelfPacedClassifier(RandomForestClassifier(10, class_weight="balanced", random_state=0)).fit(X, noisy)
    assert set(fitted.estimator_.class_weight) == {0, 1}


class Grouped(GroupKFold):
    """Tells whether copies of a row were ever on both sides."""

    shared = 0

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        for train, test in super().split(X, y, groups):
            key = {tuple(row) for row in X[train]} & {tuple(row) for row in X[test]}
            type(self).shared += len(key)
            yield train, test


def test_copies_stay_together_in_folds_of_the_model_s_own() -> None:
    X, _, noisy = moons(200)
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4]}, cv=Grouped(3))
    fitted = SelfPacedClassifier(search).fit(X, noisy)
    assert "each row once for every class" in fitted.termination_
    assert Grouped.shared == 0
    alone = SelfPacedClassifier(GridSearchCV(TREE, {"max_depth": [2, 4]}, cv=3)).fit(X, noisy)
    assert "given labels are weighted, because GridSearchCV holds rows out by itself" in alone.termination_


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
    X, _, noisy = moons(100)
    assert soft_fit(model, noisy, X).way == way


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
    soft = drawn_posterior()
    fit = soft_fit(KNeighborsClassifier(1), noisy, X)
    mean = fit.fit(X, soft).model
    assert isinstance(mean, MeanOfModels)
    share = np.mean([model.predict(X) for model in mean.models_], axis=0)  # 1-NN repeats the label it was given
    np.testing.assert_allclose(share, soft[:, 1], atol=1.0 / COPIES)
    assert abs(share.mean() - soft[:, 1].mean()) < 0.02
    np.testing.assert_allclose(mean.predict_proba(X)[:, 1], share)
    certain = fit.fit(X, np.eye(2)[noisy]).model
    assert isinstance(certain, KNeighborsClassifier)


def test_ctrl_c_goes_through_where_there_is_no_model_yet(monkeypatch: Any) -> None:
    X, _, noisy = moons(100)

    def interrupt(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("selfpaced.wrappers.soft_path.posterior_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        SelfPacedClassifier(TREE).fit(X, noisy)
    fitted = SelfPacedClassifier(TREE, keep_plain=True)
    with pytest.raises(KeyboardInterrupt, match="the plain model is kept"):
        fitted.fit(X, noisy)
    assert fitted.estimator_ is fitted.plain_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_at_random_are_not_called_wrong(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1200, 5)), rng.integers(0, n_classes, 1200)
    model = SelfPacedClassifier(RandomForestClassifier(20, random_state=0), keep_plain=True).fit(X[:600], y[:600])
    assert np.isnan(model.noise_rate_)
    assert model.noise_rate_interval_[0] == 0.0 < 0.3 < model.noise_rate_interval_[1]
    assert not (model.assessment_.wrong >= 0.5).any()
    assert "nobody can say how many are wrong" in model.termination_
    ours, plain = (log_loss(y[600:], one.predict_proba(X[600:])) for one in (model, model.plain_))
    assert ours < plain  # who learns from doubtful labels is less sure


@pytest.mark.parametrize("seed", range(4))
def test_classes_that_overlap_are_not_called_wrong(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 6))
    y = (rng.random(600) < 1 / (1 + np.exp(-1.5 * X[:, 0] * X[:, 1] - X[:, 2]))).astype(int)
    model = SelfPacedClassifier(RandomForestClassifier(20, random_state=0)).fit(X, y)
    assert model.noise_rate_interval_[0] == 0.0
    assert np.sum(model.assessment_.wrong >= 0.5) <= 6  # of 150 that are on the less probable side


def test_forty_percent_of_wrong_labels_are_learned_around_though_nobody_can_say_so() -> None:
    """Votes foretell such labels hardly better than none at all: no claim, but the fit goes by the references."""
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
