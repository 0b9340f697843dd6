"""SelfPacedClassifier: what it promises on noisy and on clean labels, and for every kind of model."""

from __future__ import annotations

import pickle
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import average_precision_score, balanced_accuracy_score, log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from selfpaced import SelfPacedClassifier
from selfpaced.pacing import Geometric, Quantile, Stages
from selfpaced.regularizers import REGISTRY, GroupRegularizer
from selfpaced.selection import Candidate

Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def moons(n: int = 400, rate: float = 0.2, seed: int = 0) -> Data:
    X, y = make_moons(n, noise=0.1, random_state=seed)
    rng = np.random.default_rng(seed)
    flipped = np.zeros(n, dtype=bool)
    flipped[rng.choice(n, int(rate * n), replace=False)] = True
    return X, y, np.where(flipped, 1 - y, y), flipped


def blobs(n: int = 600, classes: int = 4, rate: float = 0.2, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, 2)) + 4 * np.stack([np.cos(y * 1.57), np.sin(y * 1.57)], axis=1)
    flipped = np.zeros(n, dtype=bool)
    flipped[rng.choice(n, int(rate * n), replace=False)] = True
    return X, y, np.where(flipped, (y + rng.integers(1, classes, n)) % classes, y), flipped


@pytest.fixture(scope="module")
def tree() -> SelfPacedClassifier:
    X, _, noisy, _ = moons()
    return SelfPacedClassifier(DecisionTreeClassifier(random_state=0), "hard").fit(X, noisy)


# ------------------------------------------------------------------------------------------------ the promise

MODELS = [
    RandomForestClassifier(20, random_state=0),
    KNeighborsClassifier(1),
    make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_models_that_memorise_are_repaired(model: Any) -> None:
    X, _, noisy, flipped = moons()
    fitted = SelfPacedClassifier(model, keep_plain=True).fit(X, noisy)
    X_new, y_new, _, _ = moons(seed=1)
    assert fitted.score(X_new, y_new) > fitted.plain_.score(X_new, y_new) + 0.03
    assert fitted.score(X_new, y_new) > 0.9
    assert average_precision_score(flipped, fitted.sample_noise_) > 0.75  # .73 to .91 over eight splits
    assert "soft labels was chosen" in fitted.termination_
    assert abs(fitted.noise_rate_ - 0.2) < 0.1
    assert 0 <= fitted.noise_rate_interval_[0] < fitted.noise_rate_ < fitted.noise_rate_interval_[1] <= 1


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_clean_labels_cost_little_accuracy(model: Any) -> None:
    X, y, _, _ = moons(rate=0.0)
    X_test, y_test, _, _ = moons(rate=0.0, seed=1)
    fitted = SelfPacedClassifier(model, keep_plain=True).fit(X, y)
    assert fitted.score(X_test, y_test) > fitted.plain_.score(X_test, y_test) - 0.002
    assert not np.any(fitted.assessment_.levels() == 2)
    assert "no label noise detected" in fitted.termination_


def test_a_model_of_little_capacity_takes_in_sample_losses() -> None:
    X, y, noisy, _ = blobs(classes=2)
    fitted = SelfPacedClassifier(GaussianNB(), "hard").fit(X, noisy)
    assert "in-sample" in fitted.termination_
    assert fitted.score(X, y) >= fitted.plain_.score(X, y)


def test_probabilities_are_those_of_clean_labels() -> None:
    X, _, noisy, _ = moons()
    X_new, y_new, _, _ = moons(seed=1)
    fitted = SelfPacedClassifier(RandomForestClassifier(20, random_state=0), keep_plain=True).fit(X, noisy)
    plain = log_loss(y_new, np.clip(fitted.plain_.predict_proba(X_new), 1e-3, 1 - 1e-3))
    assert log_loss(y_new, fitted.predict_proba(X_new)) < 0.6 * plain
    np.testing.assert_array_equal(fitted.predict_proba(X_new).argmax(axis=1), fitted.predict(X_new))


def test_boosting() -> None:
    X, y, noisy, flipped = moons(300)
    boosting = HistGradientBoostingClassifier(max_iter=15, min_samples_leaf=2)
    fitted = SelfPacedClassifier(boosting, keep_plain=True).fit(X, noisy)
    assert fitted.score(X, y) > fitted.plain_.score(X, y)
    assert average_precision_score(flipped, fitted.sample_noise_) > 0.8


def test_many_classes() -> None:
    X, y, noisy, flipped = blobs()
    fitted = SelfPacedClassifier(DecisionTreeClassifier(random_state=0), keep_plain=True).fit(X, noisy)
    assert fitted.score(X, y) > 0.97 > 0.85 > fitted.plain_.score(X, y)
    assert average_precision_score(flipped, fitted.sample_noise_) > 0.9


def test_class_conditional_noise() -> None:
    X, y = make_moons(600, noise=0.1, random_state=0)
    noisy = np.where((y == 0) & (np.random.default_rng(0).random(600) < 0.35), 1, y)
    fitted = SelfPacedClassifier(DecisionTreeClassifier(random_state=0), keep_plain=True).fit(X, noisy)
    X_new, y_new = make_moons(600, noise=0.1, random_state=1)
    assert fitted.score(X_new, y_new) > fitted.plain_.score(X_new, y_new) + 0.05


def test_no_class_is_starved() -> None:
    rng = np.random.default_rng(0)
    y = (np.arange(800) < 80).astype(int)
    X = rng.normal(size=(800, 3)) + 2.5 * y[:, None]
    noisy = np.where(rng.random(800) < 0.1, 1 - y, y)
    fitted = SelfPacedClassifier(RandomForestClassifier(20, random_state=0), keep_plain=True).fit(X, noisy)
    y_new = (np.arange(800) < 80).astype(int)
    X_new = rng.normal(size=(800, 3)) + 2.5 * y_new[:, None]
    paced, plain = (balanced_accuracy_score(y_new, m.predict(X_new)) for m in (fitted, fitted.plain_))
    assert paced >= plain - 0.01
    assert np.bincount(noisy, fitted.sample_weight_)[1] >= 0.4 * np.sum(noisy == 1)


# ----------------------------------------------------------------------------------------------- any estimator


def test_weights_not_taken_means_rows_selected_and_said() -> None:
    X, _, noisy, _ = moons()
    fitted = SelfPacedClassifier(KNeighborsClassifier(1), "hard").fit(X, noisy)
    assert "rows are selected instead of weighted, because KNeighborsClassifier.fit takes" in fitted.termination_
    assert fitted.estimator_.n_samples_fit_ == np.sum(fitted.sample_weight_ >= 0.5)


@pytest.mark.parametrize("model", [SVC(gamma=50.0), RidgeClassifier()], ids=lambda m: type(m).__name__)
def test_models_without_probabilities(model: Any) -> None:
    X, y, noisy, _ = moons()
    fitted = SelfPacedClassifier(model, keep_plain=True).fit(X, noisy)
    assert fitted.score(X, y) >= fitted.plain_.score(X, y) - 0.01
    proba = fitted.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(proba.argmax(axis=1), fitted.predict(X))
    np.testing.assert_array_equal(fitted.decision_function(X), fitted.estimator_.decision_function(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_neural_network() -> None:
    X, y, noisy, _ = moons(300)
    network = MLPClassifier((30,), solver="lbfgs", max_iter=60, random_state=0)
    fitted = SelfPacedClassifier(network, keep_plain=True).fit(X, noisy)
    assert fitted.score(X, y) >= fitted.plain_.score(X, y) - 0.02


@pytest.mark.parametrize(("package", "name"), [("xgboost", "XGBClassifier"), ("lightgbm", "LGBMClassifier")])
def test_boosting_libraries_with_string_labels(package: str, name: str) -> None:
    library = pytest.importorskip(package, reason=f"{package} is not installed")
    quiet = {"verbose": -1} if package == "lightgbm" else {"verbosity": 0}
    model = getattr(library, name)(n_estimators=20, n_jobs=1, random_state=0, **quiet)
    X, y, noisy, _ = moons()
    names = np.array(["no", "yes"])
    fitted = SelfPacedClassifier(model).fit(X, names[noisy])
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert set(fitted.predict(X)) == {"no", "yes"}
    assert fitted.score(X, names[y]) > 0.9
    assert clone(fitted).fit(X, names[noisy]).score(X, names[y]) == fitted.score(X, names[y])


class Stubborn(ClassifierMixin, BaseEstimator):
    """Only predicts, and only labels 0 and 1."""

    def fit(self, X: Any, y: Any) -> Stubborn:
        if not np.array_equal(np.unique(y), [0, 1]):
            raise ValueError("labels must be 0 and 1")
        self.classes_, self.inner_ = np.unique(y), DecisionTreeClassifier(random_state=0).fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.inner_.predict(X)


def test_labels_are_encoded_for_models_that_need_it() -> None:
    X, y, noisy, _ = moons()
    assert not hasattr(SelfPacedClassifier(Stubborn()), "predict_proba")
    names = np.array(["left", "right"])
    fitted = SelfPacedClassifier(Stubborn()).fit(X, names[noisy])
    assert fitted.score(X, names[y]) > 0.9
    with pytest.raises(ValueError, match="labels must be 0 and 1"):
        SelfPacedClassifier(Stubborn()).fit(X, np.where(X[:, 0] > 1, 2, noisy))


# ------------------------------------------------------------------------------------------------------- pace


def test_path_holds_every_candidate(tree: SelfPacedClassifier) -> None:
    assert all(isinstance(one, Candidate) for one in tree.path_)
    assert [one.label for one in tree.path_] == ["plain", "hard round 1", "hard round 2", "hard round 3"]
    (chosen,) = [one for one in tree.path_ if one.chosen]
    assert chosen.lam == tree.lam_
    assert chosen.score == max(one.score for one in tree.path_)
    assert chosen.spread > 0
    assert chosen.mean_weight == pytest.approx(tree.sample_weight_.mean())


def test_the_paper_s_schedule_stops_before_it_is_plain_again() -> None:
    X, y, noisy, _ = blobs(300, classes=2)
    fitted = SelfPacedClassifier(GaussianNB(), pace="paper").fit(X, noisy)
    lams = [one.lam for one in fitted.path_[1:]]
    assert len(lams) >= 4
    np.testing.assert_allclose(np.diff(np.log(lams)), np.log(1.05), rtol=1e-6)
    assert fitted.score(X, y) >= fitted.plain_.score(X, y)


def test_a_number_is_a_fixed_pace_and_a_pacing_is_followed_to_its_end() -> None:
    X, _, noisy, _ = moons(200)
    model = DecisionTreeClassifier(max_depth=3, random_state=0)
    fixed = SelfPacedClassifier(model, "welsch", pace=0.8).fit(X, noisy)
    assert fixed.lam_ == 0.8
    np.testing.assert_allclose(fixed.sample_weight_, np.exp(-fixed.sample_loss_ / 0.64), rtol=1e-6)
    walked = SelfPacedClassifier(model, pace=Geometric(mu=1.3, floor=0.3, stop=Stages(3))).fit(X, noisy)
    assert len(walked.path_) == 4
    assert walked.path_[-1].chosen
    quantile = SelfPacedClassifier(model, pace=Quantile(0.6, 0.8, stages=2)).fit(X, noisy)
    assert quantile.sample_weight_.mean() == pytest.approx(0.8, abs=0.15)


@pytest.mark.parametrize("name", [name for name, rule in REGISTRY.items() if not issubclass(rule, GroupRegularizer)])
def test_every_elementwise_rule(name: str) -> None:
    X, y, noisy, _ = blobs(200, classes=2)
    fitted = SelfPacedClassifier(GaussianNB(), name).fit(X, noisy)
    assert fitted.score(X, y) > 0.9
    assert ((fitted.sample_weight_ >= 0) & (fitted.sample_weight_ <= 1)).all()


@pytest.mark.parametrize("cross_fit", [True, False])
def test_cross_fit_can_be_set(cross_fit: bool) -> None:
    X, _, noisy, _ = moons(200)
    fitted = SelfPacedClassifier(DecisionTreeClassifier(random_state=0), cross_fit=cross_fit).fit(X, noisy)
    assert f"as asked (cross_fit={cross_fit})" in fitted.termination_


# -------------------------------------------------------------------------------------------------- the object


def test_clone_pickle_and_repeatability(tree: SelfPacedClassifier) -> None:
    X, _, noisy, _ = moons()
    again = clone(tree).fit(X, noisy)
    np.testing.assert_array_equal(again.sample_noise_, tree.sample_noise_)
    restored = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(restored.predict_proba(X), tree.predict_proba(X))
    assert restored.termination_ == tree.termination_


def test_random_state_seeds_the_models_and_the_folds() -> None:
    X, _, noisy, _ = moons(200)
    model = RandomForestClassifier(5)
    fits = [SelfPacedClassifier(model, random_state=s).fit(X, noisy).sample_noise_ for s in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])


@pytest.mark.xdist_group("jobs")  # starts processes of its own
def test_n_jobs_changes_nothing() -> None:
    X, _, noisy, _ = moons(120)
    alone = SelfPacedClassifier(DecisionTreeClassifier(random_state=0)).fit(X, noisy)
    with joblib.parallel_config(backend="threading"):
        both = SelfPacedClassifier(DecisionTreeClassifier(random_state=0), n_jobs=2).fit(X, noisy)
    np.testing.assert_array_equal(alone.sample_noise_, both.sample_noise_)


class Interrupting(DecisionTreeClassifier):
    """Raises Ctrl-C in its n-th fit."""

    fits = 0
    at = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        type(self).fits += 1
        if type(self).fits == type(self).at:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(("at", "kept"), [(3, "plain"), (12, "plain"), (18, "hard round 1")])
def test_ctrl_c_keeps_what_there_is(at: int, kept: str) -> None:
    X, _, noisy, _ = moons(300)
    Interrupting.fits, Interrupting.at = 0, at
    fitted = SelfPacedClassifier(Interrupting(random_state=0), "hard")
    with pytest.raises(KeyboardInterrupt, match="kept"):
        fitted.fit(X, noisy)
    assert next(one.label for one in fitted.path_ if one.chosen) == kept
    assert len(fitted.predict(X)) == 300


def test_ctrl_c_on_a_path_keeps_the_best_stage_so_far() -> None:
    X, _, noisy, _ = moons(200)
    Interrupting.fits, Interrupting.at = 0, 1 + 8 + 8 + 8 + 3
    fitted = SelfPacedClassifier(Interrupting(random_state=0), pace=Quantile(0.6, 0.8, stages=5))
    with pytest.raises(KeyboardInterrupt, match="hard round . is kept"):
        fitted.fit(X, noisy)
    last = max(number for number, one in enumerate(fitted.path_) if one.mean_weight > 0)
    assert [one.chosen for one in fitted.path_] == [number == last for number in range(3)]


def test_ctrl_c_before_any_model_is_passed_on() -> None:
    X, _, noisy, _ = moons(200)
    Interrupting.fits, Interrupting.at = 0, 1
    with pytest.raises(KeyboardInterrupt):
        SelfPacedClassifier(Interrupting()).fit(X, noisy)


def test_callbacks_of_scikit_learn_hear_every_stage() -> None:
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")

    class Listener:
        def __init__(self) -> None:
            self.events: list[str] = []

        def setup(self, estimator: Any, context: Any) -> None:
            self.events.append("setup")

        def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
            self.events.append(context.task_name)

        def on_fit_task_end(self, estimator: Any, context: Any) -> None: ...

        def teardown(self, estimator: Any, context: Any) -> None:
            self.events.append("teardown")

    X, _, noisy, _ = moons(300)
    listener = Listener()
    SelfPacedClassifier(DecisionTreeClassifier(random_state=0)).set_callbacks(listener).fit(X, noisy)
    assert listener.events == ["setup", "fit", "reference models", "final fit", "teardown"]
    listener.events.clear()
    SelfPacedClassifier(DecisionTreeClassifier(random_state=0), "hard").set_callbacks(listener).fit(X, noisy)
    rounds = ["round 1", "round 2", "round 3"]
    assert listener.events == ["setup", "fit", "plain fit", "plain cross-fit", *rounds, "final fit", "teardown"]


def test_verbose_tells_the_rounds(capsys: Any) -> None:
    X, _, noisy, _ = moons(200)
    SelfPacedClassifier(DecisionTreeClassifier(random_state=0), verbose=1).fit(X, noisy)
    assert "SelfPacedClassifier: reference models" in capsys.readouterr().err
    SelfPacedClassifier(DecisionTreeClassifier(random_state=0), "hard", verbose=1).fit(X, noisy)
    assert "SelfPacedClassifier: round 1" in capsys.readouterr().err


def test_logistic_regression_in_a_pipeline_keeps_its_meaning_of_c() -> None:
    X, _, noisy, _ = blobs(300, classes=2)
    pipe = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    fitted = SelfPacedClassifier(pipe, "welsch", pace=1.0).fit(X, noisy)
    direct = clone(pipe).fit(X, noisy, logisticregression__sample_weight=fitted.sample_weight_)
    np.testing.assert_allclose(fitted.estimator_[-1].coef_, direct[-1].coef_, rtol=1e-6)
