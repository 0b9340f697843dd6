"""Self-paced logistic regression: agreement with scikit-learn where it must be plain, robustness where not."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize as scipy_minimize
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from selfpaced import SelfPacedLogisticRegression
from selfpaced.pacing import Geometric, Stages, lam_at
from selfpaced.regularizers import REGISTRY, GroupRegularizer, from_loss, get, relative
from selfpaced.selection import Candidate

ELEMENTWISE = sorted(name for name, rule in REGISTRY.items() if not issubclass(rule, GroupRegularizer))


@pytest.fixture(scope="module")
def breast():
    X, y = load_breast_cancer(return_X_y=True)
    flipped = np.random.default_rng(3).random(len(y)) < 0.2
    return scale(X), y, np.where(flipped, 1 - y, y), flipped


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(1)
    flipped = rng.random(len(y)) < 0.2
    return scale(X), y, np.where(flipped, (y + rng.integers(1, 3, len(y))) % 3, y)


@pytest.fixture(scope="module")
def fitted(breast):
    X, _, noisy, _ = breast
    return SelfPacedLogisticRegression().fit(X, noisy)


# ------------------------------------------------------------------------------------------ the point of it


def test_beats_the_plain_model_under_noise(breast, fitted):
    X, y, noisy, flipped = breast
    assert fitted.score(X, y) > 0.97
    assert fitted.score(X, y) > LogisticRegression().fit(X, noisy).score(X, y) + 0.01
    low, high = fitted.noise_rate_interval_
    assert low < flipped.mean() < high
    assert fitted.noise_rate_ == pytest.approx(flipped.mean(), abs=0.04)


def test_one_penalty_leaves_the_rest_to_the_pace(breast):
    X, y, noisy, flipped = breast
    model = SelfPacedLogisticRegression(C=1.0).fit(X, noisy)
    assert model.C_ == 1.0
    assert model.score(X, y) > model.plain_.score(X, y) + 0.01
    assert np.isfinite(model.lam_)
    assert model.sample_weight_[flipped].mean() < 0.4 < 0.8 < model.sample_weight_[~flipped].mean()
    assert {c.label.split(", ")[0] for c in model.path_} == {c.label for c in model.path_}


def test_multinomial_beats_the_plain_model_under_noise(iris):
    X, y, noisy = iris
    model = SelfPacedLogisticRegression(C=1.0).fit(X, noisy)
    assert model.score(X, y) >= max(0.9, model.plain_.score(X, y) + 0.02)
    assert model.coef_.shape == (3, 4)


def test_clean_labels_keep_the_plain_model(breast):
    X, y, _, _ = breast
    model = SelfPacedLogisticRegression(C=1.0).fit(X, y)
    assert model.lam_ == np.inf
    np.testing.assert_array_equal(model.sample_weight_, 1.0)
    np.testing.assert_array_equal(model.coef_, model.plain_.coef_)
    assert model.noise_rate_interval_[0] == 0
    assert model.noise_rate_interval_[1] < 0.05
    assert model.noise_rate_if_any_ < 0.02
    assert abs(model.score(X, y) - LogisticRegression().fit(X, y).score(X, y)) < 0.005


def test_the_penalty_is_chosen_where_rows_are_few(breast):
    X, y, _, _ = breast
    clean = SelfPacedLogisticRegression().fit(X, y)
    assert [c.label for c in clean.path_] == ["plain", "plain, C=0.1", "plain, C=0.01"]
    assert clean.C_ in (0.1, 1.0)
    assert clean.lam_ == np.inf
    assert clean.plain_.C == clean.C_
    chosen = LogisticRegression(C=clean.C_, tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(clean.plain_.coef_, chosen.coef_, atol=0.03)
    # one feature and many rows: nothing to penalise
    plenty = SelfPacedLogisticRegression().fit(X[:, :2], y)
    assert plenty.C_ == 1.0
    assert plenty.path_[0].label == "plain"
    assert not any("C=" in c.label for c in plenty.path_)


def test_probabilities_are_calibrated_for_clean_labels(breast, fitted):
    X, y, _, _ = breast

    def log_loss(model):
        return -np.log(np.clip(model.predict_proba(X)[np.arange(len(y)), y], 1e-12, 1)).mean()

    assert log_loss(fitted) < 0.6 * log_loss(fitted.plain_)
    proba = fitted.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.classes_[proba.argmax(axis=1)], fitted.predict(X))
    np.testing.assert_array_equal(fitted.predict(X), fitted.decision_function(X) > 0)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), proba)


def test_class_conditional_noise_moves_the_decision():
    X, y = make_blobs(3000, centers=[[-1, 0], [1, 0]], cluster_std=0.9, random_state=0)
    flipped = np.random.default_rng(0).random(len(y)) < np.where(y == 1, 0.4, 0.0)
    model = SelfPacedLogisticRegression().fit(X, np.where(flipped, 0, y))
    assert model.score(X, y) > model.plain_.score(X, y) + 0.05
    changed = model.noise_model_.transition  # an average with the model of no noise
    assert changed[1, 0] > 10 * changed[0, 1]
    assert model.noise_rate_if_any_ == pytest.approx(flipped.mean(), abs=0.03)
    assert model.noise_rate_interval_[1] > flipped.mean()


@pytest.mark.parametrize("shift", ["auto", True, False])
def test_the_shift_of_decisions_can_be_switched_off(shift):
    X, y = make_blobs(3000, centers=[[-1, 0], [1, 0]], cluster_std=0.9, random_state=0)
    flipped = np.random.default_rng(0).random(len(y)) < np.where(y == 1, 0.4, 0.0)
    model = SelfPacedLogisticRegression(shift=shift).fit(X, np.where(flipped, 0, y))
    assert np.array_equal(model.intercept_, model.raw_intercept_) == (shift is False)
    with pytest.raises(ValueError, match="shift must be"):
        SelfPacedLogisticRegression(shift="much").fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_rate_is_told_only_where_it_is_known(n_classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 3))
    scores = X @ rng.standard_normal((3, n_classes))
    clean = scores.argmax(axis=1)
    apart = X + 4 * np.eye(3)[clean]
    wrong = rng.random(1500) < 0.2
    noisy = np.where(wrong, (clean + rng.integers(1, n_classes, 1500)) % n_classes, clean)
    overlapping = (0.5 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    given, mixed = (SelfPacedLogisticRegression().fit(X, y) for y in (noisy, overlapping))
    separated = SelfPacedLogisticRegression().fit(apart, clean)
    assert separated.noise_rate_ == 0.0
    assert separated.noise_rate_interval_[1] <= 0.03
    assert given.noise_rate_ == pytest.approx(0.2, abs=0.04)
    assert given.noise_rate_interval_[0] > 0.1
    assert np.isnan(mixed.noise_rate_)
    assert mixed.noise_rate_interval_[0] == 0.0 < mixed.noise_rate_if_any_ < mixed.noise_rate_interval_[1]


def test_a_rare_class_is_not_starved():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.08).astype(int)
    X = rng.standard_normal((4000, 5)) + 1.5 * y[:, None] * np.array([1, 1, 1, 0, 0])
    flipped = rng.random(4000) < 0.2
    model = SelfPacedLogisticRegression().fit(X, np.where(flipped, 1 - y, y))
    recall = np.mean(model.predict(X)[y == 1] == 1)
    assert recall > max(0.3, np.mean(model.plain_.predict(X)[y == 1] == 1) - 0.02)
    if np.isfinite(model.lam_):
        assert model.lam_by_class_[1] > model.lam_by_class_[0] == model.lam_


def test_balance_leans_towards_the_rare_class_and_leaves_probabilities(breast):
    rng = np.random.default_rng(0)
    y = (rng.random(1500) < 0.15).astype(int)
    X = rng.standard_normal((1500, 4)) + 1.2 * y[:, None] * np.array([1, 1, 0, 0])
    plain, half, full = (SelfPacedLogisticRegression(balance=b).fit(X, y) for b in (0.0, 0.5, 1.0))
    recalls = [float(np.mean(m.predict(X)[y == 1])) for m in (plain, half, full)]
    assert recalls[0] + 0.05 < recalls[1] < recalls[2] - 0.05
    np.testing.assert_array_equal(full.predict_proba(X), plain.predict_proba(X))
    assert full.clean_share_[1] == pytest.approx(0.15, abs=0.05)
    # at 1 the border is where both classes are as probable as they are frequent
    border = full.predict_proba(X)[:, 1] > full.clean_share_[1]
    np.testing.assert_array_equal(full.predict(X), border)
    with pytest.raises(ValueError, match="balance must be in"):
        SelfPacedLogisticRegression(balance=2.0).fit(*breast[:2])


@pytest.mark.parametrize("make", ["random", "drawn"])
def test_an_interval_without_noise_holds_nothing(make):
    holds = 0
    for seed in range(100, 112):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 5))
        logit = 0.0 if make == "random" else X @ np.array([1.0, -0.7, 0.5, 0.0, 0.0])
        y = (rng.random(300) < 1 / (1 + np.exp(-logit))).astype(int)
        holds += SelfPacedLogisticRegression(random_state=seed).fit(X, y).noise_rate_interval_[0] == 0
    assert holds >= 11


def test_what_a_flexible_model_explains_is_misfit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 3))
    y = ((X[:, 0] > 0.3) ^ (np.abs(X[:, 1]) > 1.5)).astype(int)  # no label is wrong
    model = SelfPacedLogisticRegression().fit(X, y)
    assert model.misfit_check_ == "quadratic"
    assert np.isnan(model.noise_rate_)
    assert model.noise_rate_interval_[0] == 0
    assert not (model.assessment_.levels() == 2).any()
    # the same rows with bends the model knows
    known = SelfPacedLogisticRegression().fit(np.column_stack([X, X**2]), y)
    assert known.score(np.column_stack([X, X**2]), y) > model.score(X, y)


# --------------------------------------------------------------------------------------- against the oracles


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"C": 0.05}, {"fit_intercept": False}, {"class_weight": "balanced"}])
def test_plain_model_equals_scikit_learn(iris, n_classes, options):
    X, y, _ = iris
    kept = y < n_classes
    X, y = X[kept], np.where(y[kept] == 1, 1, 2 * (y[kept] // 2))
    ours = SelfPacedLogisticRegression(tol=1e-9, **{"C": 1.0, **options}).fit(X, y).plain_
    theirs = LogisticRegression(tol=1e-9, max_iter=5000, **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("name", ["welsch", "cauchy", "l1l2", "geman-mcclure", "huber"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fixed_pace_is_a_minimum_of_the_latent_loss(iris, name, n_classes):
    X, y, noisy = iris
    kept = (y < n_classes) & (noisy < n_classes)
    X, noisy = X[kept], noisy[kept]
    rule = relative(get(name))
    model = SelfPacedLogisticRegression(name, pace=1.2, C=1.0, tol=1e-9, max_iter=2000).fit(X, noisy)

    def objective(x):
        params = x.reshape(-1, X.shape[1] + 1)
        z = X @ params[:, :-1].T + params[:, -1]
        z = np.hstack([np.zeros_like(z), z]) if n_classes == 2 else z
        z = z - z.max(axis=1, keepdims=True)
        loss = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), noisy]
        return rule.latent(loss, 1.2).sum() + 0.5 * (params[:, :-1] ** 2).sum()

    start = np.column_stack([model.coef_, model.raw_intercept_]).ravel()
    found = scipy_minimize(objective, start, method="BFGS", options={"gtol": 1e-7})
    assert objective(start) <= found.fun + 1e-6 * abs(found.fun)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_rule_fits_at_every_kind_of_pace(iris, name):
    X, y, noisy = iris
    two = noisy < 2
    start = 0.5 if name == "logarithmic" else lam_at(relative(get(name)), 1.5)
    for pace in ("auto", Geometric(mu=1.1, lam=start, stop=Stages(4))):
        model = SelfPacedLogisticRegression(name, pace=pace).fit(X[two], noisy[two])
        assert ((model.sample_weight_ >= 0) & (model.sample_weight_ <= 1)).all()
        assert np.isfinite(model.coef_).all()
        assert model.score(X[y < 2], y[y < 2]) > 0.9


def test_own_losses_work(iris):
    X, _, noisy = iris
    rule = from_loss(lambda loss, lam: lam * (1 - np.exp(-loss / lam)), name="own")
    own = SelfPacedLogisticRegression(rule, pace=1.0).fit(X, noisy)
    welsch = SelfPacedLogisticRegression("welsch", pace=1.0).fit(X, noisy)
    np.testing.assert_allclose(own.sample_weight_, welsch.sample_weight_, atol=0.02)


def test_infinite_pace_is_the_plain_model(breast):
    X, _, noisy, _ = breast
    model = SelfPacedLogisticRegression(pace=np.inf).fit(X, noisy)
    np.testing.assert_allclose(model.coef_, model.plain_.coef_, atol=0.05)
    np.testing.assert_array_equal(model.sample_weight_, 1.0)


@pytest.mark.parametrize("name", ["hard", "welsch", "logistic"])
def test_the_papers_schedule(breast, name):
    X, y, noisy, _ = breast
    model = SelfPacedLogisticRegression(name, pace="paper").fit(X, noisy)
    assert model.score(X, y) > model.plain_.score(X, y) + 0.005
    assert len(model.path_) > 10
    lams = [c.lam for c in model.path_[1:]]
    np.testing.assert_allclose(np.diff(np.log(lams)), np.log(1.05), rtol=1e-6)
    assert sum(c.chosen for c in model.path_) == 1


@pytest.mark.parametrize("size", [1e-4, 1e3])
@pytest.mark.parametrize("rule", ["welsch", "hard"])
def test_a_schedule_has_the_unit_of_the_features(size, rule):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    noisy = (X @ [2.0, -1.0, 0.5] + 0.5 * rng.standard_normal(400) > 0) ^ (rng.random(400) < 0.15)
    pace = Geometric(mu=1.05, fraction=0.5, floor=0.3, stop=Stages(5))
    one = SelfPacedLogisticRegression(rule, pace=pace, C=1.0).fit(X, noisy)
    other = SelfPacedLogisticRegression(rule, pace=pace, C=size**-2.0).fit(size * X, noisy)
    assert np.isfinite(one.lam_)
    assert other.lam_ == pytest.approx(one.lam_, rel=1e-2)
    np.testing.assert_allclose(size * other.coef_, one.coef_, rtol=1e-2)


def test_the_papers_schedule_takes_the_default_penalty(breast):
    X, _, noisy, _ = breast
    auto, given = (SelfPacedLogisticRegression(pace="paper", C=C).fit(X, noisy) for C in ("auto", 1.0))
    assert auto.C_ == given.C_ == 1.0
    np.testing.assert_array_equal(auto.coef_, given.coef_)


# ----------------------------------------------------------------------------------------------- data forms


def test_sparse_and_dense_agree(breast):
    X, _, noisy, _ = breast
    dense = SelfPacedLogisticRegression().fit(X, noisy)
    csr = SelfPacedLogisticRegression().fit(sparse.csr_array(X), noisy)
    assert dense.lam_ == csr.lam_
    np.testing.assert_allclose(dense.predict_proba(X), csr.predict_proba(sparse.csr_matrix(X)), atol=0.02)
    for layout in (sparse.csc_matrix, sparse.coo_matrix):
        np.testing.assert_array_equal(csr.predict(X), csr.predict(layout(X)))


def test_float32_is_kept(breast, fitted):
    X, _, noisy, _ = breast
    model = SelfPacedLogisticRegression().fit(X.astype(np.float32), noisy)
    assert model.coef_.dtype == model.intercept_.dtype == model.plain_.coef_.dtype == np.float32
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32
    assert np.mean(model.predict(X) == fitted.predict(X)) > 0.98


def test_string_labels(breast, fitted):
    X, _, noisy, _ = breast
    names = np.array(["benign", "malignant"])
    model = SelfPacedLogisticRegression().fit(X, names[noisy])
    np.testing.assert_array_equal(model.predict(X), names[fitted.predict(X)])
    np.testing.assert_allclose(model.coef_, fitted.coef_)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_feature_names(breast, fitted, library):
    frames = pytest.importorskip(library)
    X, _, noisy, _ = breast
    columns = [f"f{i}" for i in range(X.shape[1])]
    frame = frames.DataFrame(dict(zip(columns, X.T, strict=True)))
    model = SelfPacedLogisticRegression().fit(frame, noisy)
    assert list(model.feature_names_in_) == list(model.plain_.feature_names_in_) == columns
    np.testing.assert_allclose(model.decision_function(frame), fitted.decision_function(X), atol=1e-6)
    model.plain_.predict(frame)


@pytest.mark.parametrize("pace", ["auto", 1.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weighting_a_row_equals_repeating_it(iris, pace, n_classes):
    X, _, noisy = iris
    kept = noisy < n_classes
    X, noisy = X[kept], noisy[kept]
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    options = {"pace": pace, "tol": 1e-8, "max_iter": 2000}
    weighted = SelfPacedLogisticRegression(**options).fit(X, noisy, sample_weight=counts)
    repeated = SelfPacedLogisticRegression(**options).fit(np.repeat(X, counts, 0), np.repeat(noisy, counts))
    assert weighted.lam_ == pytest.approx(repeated.lam_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(weighted.plain_.coef_, repeated.plain_.coef_, rtol=1e-4, atol=1e-5)
    assert len(weighted.sample_weight_) == len(X)


@pytest.mark.parametrize("factor", [0.1, 0.7, 64.0, 1e4])
def test_the_unit_of_weights_hardly_matters_where_rows_are_many(factor):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 3))
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(1500) > 0) ^ (rng.random(1500) < 0.15)
    weight = rng.random(1500) + 0.5
    one, other = (SelfPacedLogisticRegression().fit(X, y, sample_weight=f * weight) for f in (1.0, factor))
    assert np.mean(other.predict(X) == one.predict(X)) > 0.99  # the penalty has the unit of the weights
    assert other.noise_rate_ == pytest.approx(one.noise_rate_, abs=0.005)
    assert other.noise_rate_interval_ == pytest.approx(one.noise_rate_interval_, abs=0.01)
    assert np.mean(other.assessment_.levels() == one.assessment_.levels()) > 0.98


def test_without_a_penalty_the_unit_of_weights_does_not_matter():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(400) > 0) ^ (rng.random(400) < 0.15)
    weight = rng.random(400) + 0.5
    one, other = (
        SelfPacedLogisticRegression(penalty=None).fit(X, y, sample_weight=factor * weight) for factor in (1.0, 32.0)
    )
    np.testing.assert_array_equal(other.predict(X), one.predict(X))
    np.testing.assert_array_equal(other.assessment_.levels(), one.assessment_.levels())
    assert other.noise_rate_if_any_ == pytest.approx(one.noise_rate_if_any_, rel=1e-4)


def test_weight_zero_equals_absent(breast):
    X, _, noisy, _ = breast
    weight = (np.random.default_rng(0).random(len(X)) < 0.8).astype(float)
    kept = weight > 0
    weighted = SelfPacedLogisticRegression().fit(X, noisy, sample_weight=weight)
    absent = SelfPacedLogisticRegression().fit(X[kept], noisy[kept])
    np.testing.assert_array_equal(weighted.coef_, absent.coef_)
    assert weighted.noise_rate_interval_ == absent.noise_rate_interval_
    np.testing.assert_allclose(weighted.assessment_.wrong[kept], absent.assessment_.wrong, rtol=1e-12)
    np.testing.assert_array_equal(weighted.assessment_.levels()[kept], absent.assessment_.levels())


@pytest.mark.parametrize("seed", range(3))
def test_a_class_of_small_weights_is_not_given_up(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [300, 300, 200])
    X = rng.standard_normal((800, 3)) + 6 * np.eye(3)[y]
    weight = np.where(y == 2, 0.01, 1.0)
    model = SelfPacedLogisticRegression().fit(X, y, sample_weight=weight)
    assert np.mean(model.predict(X)[y == 2] == 2) > 0.9
    assert not (model.assessment_.levels() == 2)[y == 2].any()


def test_class_weight_equals_sample_weight(breast):
    X, _, noisy, _ = breast
    by_class = SelfPacedLogisticRegression(class_weight={0: 3.0, 1: 1.0}, pace=1.0).fit(X, noisy)
    by_row = SelfPacedLogisticRegression(pace=1.0).fit(X, noisy, sample_weight=np.where(noisy == 0, 3.0, 1.0))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_)
    balanced = SelfPacedLogisticRegression(class_weight="balanced").fit(X, noisy)
    assert balanced.predict(X).mean() < SelfPacedLogisticRegression().fit(X, noisy).predict(X).mean() + 1e-9


def test_many_rows_are_decided_by_a_sample():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (30000, 6))
    y = (X @ np.array([2.0, -1, 1, 0, 0, 0]) > 0).astype(int)
    flipped = rng.random(30000) < 0.25
    model = SelfPacedLogisticRegression().fit(X, np.where(flipped, 1 - y, y))
    assert np.isfinite(model.lam_)
    assert model.score(X, y) > model.plain_.score(X, y)
    assert model.noise_rate_ == pytest.approx(0.25, abs=0.03)
    assert len(model.sample_weight_) == 30000


# ------------------------------------------------------------------------------------------------ life cycle


def test_clone_pickle_repeat(breast, fitted):
    X, _, noisy, _ = breast
    again = clone(fitted).fit(X, noisy)
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))
    assert copy.path_ == fitted.path_


def test_warm_start_starts_warm(breast):
    X, _, noisy, _ = breast
    model = SelfPacedLogisticRegression(pace=np.inf, C=1.0, warm_start=True, tol=1e-6).fit(X, noisy)
    first = model.n_iter_[0]
    coef = model.coef_.copy()
    model.fit(X, noisy)
    assert model.n_iter_[0] < first
    np.testing.assert_allclose(model.coef_, coef, atol=1e-3)
    model.fit(X[:, :5], noisy)  # another shape starts cold
    assert model.coef_.shape == (1, 5)


def test_metadata_is_routed(breast):
    X, _, noisy, _ = breast
    weight = np.random.default_rng(0).integers(1, 3, len(X)).astype(float)
    with config_context(enable_metadata_routing=True):
        model = SelfPacedLogisticRegression(pace=1.0).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        piped = make_pipeline(scaler, model).fit(X, noisy, sample_weight=weight)
        scores = cross_validate(model, X, noisy, cv=3, params={"sample_weight": weight})
    direct = SelfPacedLogisticRegression(pace=1.0).fit(StandardScaler().fit_transform(X), noisy, weight)
    np.testing.assert_allclose(piped[-1].coef_, direct.coef_)
    assert np.isfinite(scores["test_score"]).all()


def test_parameters_can_be_searched(breast):
    X, _, noisy, _ = breast
    search = GridSearchCV(SelfPacedLogisticRegression(), {"pace": [1.0, "auto"]}, cv=2).fit(X, noisy)
    assert search.best_score_ > 0.7


def test_path_and_attributes_say_what_happened(fitted):
    assert all(isinstance(c, Candidate) for c in fitted.path_)
    assert fitted.path_[0].label == "plain"
    assert fitted.path_[0].lam == np.inf
    chosen = [c for c in fitted.path_ if c.chosen]
    assert len(chosen) == 1
    assert chosen[0].lam == fitted.lam_
    assert all(c.spread > 0 and 0 < c.mean_weight <= 1 and c.cost > 0 for c in fitted.path_)
    assert chosen[0].label in fitted.termination_
    rule = relative(get("welsch"))
    np.testing.assert_allclose(fitted.sample_weight_, rule.weight(fitted.sample_loss_, fitted.lam_))
    assert (fitted.sample_loss_ >= 0).all()


@pytest.mark.parametrize("pace", [0.8, np.inf, Geometric(stop=Stages(3))])
def test_a_given_pace_is_not_said_to_have_been_chosen(breast, pace):
    X, _, noisy, _ = breast
    model = SelfPacedLogisticRegression(pace=pace).fit(X, noisy)
    assert "the given pace" in model.termination_
    assert "No noise" not in model.termination_


def test_progress_is_told(breast, caplog):
    X, _, noisy, _ = breast
    with caplog.at_level("INFO", logger="selfpaced"):
        SelfPacedLogisticRegression(verbose=1).fit(X, noisy)
    assert any("plain fit" in r.message for r in caplog.records)
    callback = pytest.importorskip("sklearn.callback")

    class Listener(callback.FitCallback):
        def __init__(self):
            self.tasks = []

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context, **kwargs): ...

        def on_fit_task_end(self, estimator, context, **kwargs):
            self.tasks.append(context.task_name)

    listener = Listener()
    SelfPacedLogisticRegression().set_callbacks(listener).fit(X, noisy)
    assert "plain fit" in listener.tasks
    assert listener.tasks[-1] == "fit"


def test_no_convergence_is_a_warning_and_a_model(breast):
    X, y, noisy, _ = breast
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = SelfPacedLogisticRegression(max_iter=2, tol=1e-10).fit(X, noisy)
    assert model.score(X, y) > 0.85


def test_nothing_is_warned_about_on_ordinary_data(breast):
    X, _, noisy, _ = breast
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SelfPacedLogisticRegression().fit(X, noisy).predict(X)
