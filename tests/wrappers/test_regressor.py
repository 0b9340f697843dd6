"""SelfPacedRegressor: any regressor, outliers found, clean data left alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor, StackingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from selfpaced import SelfPacedRegressor, suspects
from selfpaced.pacing import Geometric, Stages
from selfpaced.regularizers import REGISTRY, Diversity, Regularizer, from_loss

ELEMENTWISE = [name for name, rule in REGISTRY.items() if issubclass(rule, Regularizer)]


def waves(seed: int = 0, n: int = 300, share: float = 0.2):
    """A smooth function with unit-free noise; a share of the targets far above it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    truth = 3 * np.sin(X[:, 0]) + X[:, 1]
    y = truth + 0.2 * rng.normal(size=n)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.permutation(n)[: round(share * n)]] = True
    y[wrong] += rng.uniform(8, 16, size=wrong.sum())
    return X, y, truth, wrong


def rmse(model, X, truth) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - truth) ** 2)))


@parametrize_with_checks([SelfPacedRegressor(Ridge())])
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeRegressor(min_samples_leaf=8, random_state=0),
        RandomForestRegressor(15, min_samples_leaf=3, random_state=0),
        HistGradientBoostingRegressor(max_iter=25, min_samples_leaf=8, early_stopping=False),
        make_pipeline(StandardScaler(), SVR(C=10)),
        KNeighborsRegressor(7),
        make_pipeline(StandardScaler(), KNeighborsRegressor(7)),
        TransformedTargetRegressor(DecisionTreeRegressor(min_samples_leaf=8, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_outliers_do_not_spoil_any_model(estimator) -> None:
    X, y, truth, wrong = waves()
    model = SelfPacedRegressor(estimator, keep_plain=True, random_state=0).fit(X, y)
    assert rmse(model, X, truth) < 0.55
    assert rmse(model, X, truth) < 0.7 * rmse(model.plain_, X, truth)
    assert model.sample_weight_[wrong].mean() < 0.2
    assert (model.sample_weight_[~wrong] > 0.1).mean() > 0.95
    assert model.noise_rate_interval_[0] <= 0.2 <= model.noise_rate_interval_[1]
    assert np.isfinite(model.lam_)


def test_xgboost_and_lightgbm() -> None:
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    X, y, truth, wrong = waves(1)
    for estimator in (
        xgboost.XGBRegressor(n_estimators=25, max_depth=3, n_jobs=1),
        lightgbm.LGBMRegressor(n_estimators=25, n_jobs=1, verbose=-1),
    ):
        model = SelfPacedRegressor(estimator, keep_plain=True).fit(X, y)
        assert model.sample_weight_[wrong].mean() < 0.3  # absolute error protects from the rest
        assert rmse(model, X, truth) < 0.6 * rmse(model.plain_, X, truth)


def test_forty_percent_one_sided_outliers_in_boosting() -> None:
    rng = np.random.default_rng(2)
    X, truth = make_friedman1(600, noise=0, random_state=2)
    y = truth + rng.normal(size=600)
    wrong = rng.permutation(600)[:240]
    y[wrong] += 4 * truth.std() * (1 + rng.random(240))
    test, expected = make_friedman1(500, noise=0, random_state=3)
    model = SelfPacedRegressor(HistGradientBoostingRegressor(max_iter=25, early_stopping=False), "hard").fit(X, y)
    assert rmse(model, test, expected) < 2.5
    assert rmse(model.plain_, test, expected) > 8
    assert model.noise_rate_ == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("estimator", [DecisionTreeRegressor(min_samples_leaf=5, random_state=0), Ridge()])
def test_clean_data_keep_the_plain_model(estimator) -> None:
    for seed in range(4):
        X, y, _, _ = waves(seed, share=0)
        model = SelfPacedRegressor(estimator).fit(X, y)
        assert model.estimator_ is model.plain_
        assert np.isinf(model.lam_)
        assert (model.sample_weight_ == 1).all()
        np.testing.assert_array_equal(model.predict(X), clone(estimator).fit(X, y).predict(X))
        assert "plain model is used" in model.termination_


@pytest.mark.parametrize("kind", ["skewed", "uneven"])
def test_targets_that_are_skewed_or_scatter_unevenly_are_not_called_wrong(kind: str) -> None:
    """Reference models give location and a spread that differs from row to row; gross values are told from both."""
    X, truth = make_friedman1(500, noise=0.0, random_state=0)
    rng, truth = np.random.default_rng(0), (truth - truth.mean()) / truth.std()
    y = truth + (0.3 if kind == "skewed" else 0.1 + 0.6 * X[:, 5]) * rng.standard_normal(500)
    y = np.exp(1.2 * y) if kind == "skewed" else y
    boosting = HistGradientBoostingRegressor(max_iter=60, random_state=0)
    clean = SelfPacedRegressor(boosting, random_state=0).fit(X, y)
    assert clean.tuned_params_ == {"loss": "absolute_error"}
    assert "loss='absolute_error'" in clean.termination_
    assert (clean.sample_weight_ == 1).all()
    assert clean.noise_rate_interval_[0] == 0.0
    assert not (clean.assessment_.wrong > 0.5).any()
    wrong = rng.random(500) < 0.1
    dirty = SelfPacedRegressor(boosting, keep_plain=True, random_state=0).fit(X, np.where(wrong, 10 * y, y))
    suspected = dirty.assessment_.wrong > 0.5
    assert np.sum(suspected & wrong) > 0.5 * wrong.sum()
    assert np.sum(suspected & ~wrong) <= 5
    assert np.abs(dirty.predict(X) - y).mean() < 0.7 * np.abs(dirty.plain_.predict(X) - y).mean()


@pytest.mark.parametrize("seed", [3, 8])
def test_a_bend_that_boosting_misses_at_its_ends_is_not_called_wrong(seed: int) -> None:
    """Trees that correct the reference would follow the far ends of the cubic in some folds only."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 6))
    y = X[:, 0] ** 3 + X[:, 1] + 0.3 * rng.standard_normal(400)
    model = SelfPacedRegressor(HistGradientBoostingRegressor(max_iter=50)).fit(X, y)
    assert not np.any(model.assessment_.levels() == 2)


def far_corner(seed: int = 0, n: int = 400):
    """A smooth function that is twelve higher in one corner of two features, which holds 4 % of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    corner = (X[:, 4] > 0.8) & (X[:, 5] > 0.8)
    curve = 2 * X[:, 0] + 2 * np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3]
    return X, curve + 12.0 * corner + rng.normal(size=n), corner


@pytest.mark.parametrize(
    "model", [HistGradientBoostingRegressor(random_state=0), RandomForestRegressor(50, random_state=0)]
)
def test_far_values_are_errors_only_if_rows_like_them_are_not_far(model) -> None:
    X, y, corner = far_corner()
    found = SelfPacedRegressor(model).fit(X, y)
    assert found.noise_rate_ == 0.0 == found.noise_rate_interval_[0]
    assert not (found.assessment_.levels() == 2).any()
    assert not (found.assess(*far_corner(1)[:2]).levels() == 2).any()
    assert "so are most rows like them" in found.termination_
    assert (found.sample_weight_ == 1).all()

    moved = np.random.default_rng(99).permutation(corner)  # as many rows, anywhere
    wrong = SelfPacedRegressor(model).fit(X, y - 12.0 * corner + 12.0 * moved)
    np.testing.assert_array_equal(wrong.assessment_.levels() == 2, moved)


@pytest.mark.parametrize("kind", ["nothing bought", "placeholder"])
def test_zeros_among_positive_values_are_no_errors(kind: str) -> None:
    """A logarithm has no place for them; a placeholder is far out on the scale of the target, too."""
    rng = np.random.default_rng([11, 77])
    X, z = rng.normal(size=(1500, 6)), rng.normal(size=1500)
    none = rng.random(1500) < 0.12
    y = np.exp(X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] / 2 + z / 2)
    y[none] = 0.0 if kind == "nothing bought" else -999.0
    model = SelfPacedRegressor(HistGradientBoostingRegressor(random_state=0)).fit(X, y)
    likely = model.assessment_.levels() == 2
    if kind == "nothing bought":
        assert not likely.any()
        assert not (model.assess(X, y).levels() == 2).any()
    else:
        assert (none & ~likely).sum() == 0
        assert (likely & ~none).mean() < 0.02


def test_a_stack_without_a_final_estimator_is_wrapped() -> None:
    X, y = make_friedman1(100, random_state=0)
    stack = StackingRegressor([("line", Ridge()), ("tree", DecisionTreeRegressor(random_state=0))])
    assert SelfPacedRegressor(stack).fit(X, y).score(X, y) > 0.6


def test_cross_fit_is_decided_by_capacity_and_said() -> None:
    X, y, truth, _ = waves(3)
    deep = SelfPacedRegressor(DecisionTreeRegressor(random_state=0), "hard").fit(X, y)
    assert "cross-fitted losses, because the model memorises" in deep.termination_
    flat = SelfPacedRegressor(LinearRegression()).fit(X, y)
    assert "in-sample losses, because the model has little capacity" in flat.termination_
    np.testing.assert_allclose(flat.sample_residual_, y - flat.predict(X), atol=0.05)
    forced = SelfPacedRegressor(LinearRegression(), cross_fit=True).fit(X, y)
    assert "as asked" in forced.termination_
    cheap = SelfPacedRegressor(DecisionTreeRegressor(max_depth=3, random_state=0), cross_fit=False).fit(X, y)
    assert "in-sample losses as asked" in cheap.termination_
    assert rmse(cheap, X, truth) < rmse(cheap.plain_, X, truth)


def test_in_sample_rounds_settle_on_the_clean_fit() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=400)
    wrong = np.arange(120)
    y[wrong] += 20
    model = SelfPacedRegressor(LinearRegression()).fit(X, y)
    reference = LinearRegression().fit(X[120:], y[120:])
    np.testing.assert_allclose(model.estimator_.coef_, reference.coef_, atol=0.05)
    assert model.estimator_.intercept_ == pytest.approx(reference.intercept_, abs=0.05)
    assert model.sample_weight_[wrong].max() == 0


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_rule(name: str) -> None:
    X, y, truth, wrong = waves(5)
    model = SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=8, random_state=0), name).fit(X, y)
    assert rmse(model, X, truth) < 0.75 * rmse(model.plain_, X, truth)
    assert model.sample_weight_[wrong].max() < np.median(model.sample_weight_[~wrong])


def test_a_rule_of_ones_own() -> None:
    X, y, truth, _ = waves(6)
    rule = from_loss(lambda loss, lam: lam * np.log1p(loss / lam))
    model = SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=8, random_state=0), rule).fit(X, y)
    assert rmse(model, X, truth) < 0.6 * rmse(model.plain_, X, truth)


@pytest.mark.parametrize("pace", ["paper", 1.5, Geometric(mu=1.3, stop=Stages(4))])
def test_other_paces(pace) -> None:
    X, y, truth, wrong = waves(7, n=200, share=0.15)
    model = SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=8, random_state=0), pace=pace, cv=3).fit(X, y)
    assert rmse(model, X, truth) < 0.7 * rmse(model.plain_, X, truth)
    assert np.median(model.sample_weight_[wrong]) < 0.1
    assert model.path_[0].label == "plain"
    assert model.lam_ == next(candidate.lam for candidate in model.path_ if candidate.chosen)


def test_models_without_weights_select_rows_and_say_so() -> None:
    X, y, _, _ = waves(8)
    model = SelfPacedRegressor(KNeighborsRegressor(5), "hard").fit(X, y)
    assert "rows are selected instead of weighted" in model.termination_
    kept = model.sample_weight_ >= 0.5
    np.testing.assert_array_equal(model.predict(X), KNeighborsRegressor(5).fit(X[kept], y[kept]).predict(X))


def test_sample_weight_reaches_the_model() -> None:
    X, y, _, _ = waves(9)
    weight = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    tree = DecisionTreeRegressor(min_samples_leaf=8, random_state=0)
    model = SelfPacedRegressor(tree).fit(X, y, sample_weight=weight)
    total = weight * model.sample_weight_
    kept = total > 0
    expected = clone(tree).fit(X[kept], y[kept], sample_weight=total[kept]).predict(X)
    np.testing.assert_allclose(model.predict(X), expected)
    with pytest.raises(ValueError, match="never dropped silently"):
        SelfPacedRegressor(KNeighborsRegressor()).fit(X, y, sample_weight=weight + 0.5)


def test_groups_are_not_split() -> None:
    X, y, _, _ = waves(10)
    groups = np.repeat(np.arange(60), 5)
    with config_context(enable_metadata_routing=True):
        model = SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=8), cv=GroupKFold(4), random_state=0)
        model.fit(X, y, groups=groups)
    assert np.isfinite(model.lam_)
    with pytest.raises(ValueError, match="at least 2 distinct"):
        SelfPacedRegressor(DecisionTreeRegressor()).fit(X, y, groups=np.zeros(300))


def test_inside_a_search_and_with_frames() -> None:
    import pandas as pd
    import polars as pl

    X, y, truth, _ = waves(11)
    grid = {"estimator__min_samples_leaf": [4, 16], "regularizer": ["tukey", "welsch"]}
    search = GridSearchCV(SelfPacedRegressor(DecisionTreeRegressor(random_state=0)), grid, cv=2).fit(X, y)
    assert rmse(search, X, truth) < 1
    for frame in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})):
        model = SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=8, random_state=0)).fit(frame, y)
        assert [*model.feature_names_in_] == ["a", "b"]
        assert model.n_features_in_ == 2
        assert model.predict(frame).shape == y.shape


@pytest.mark.xdist_group("jobs")  # starts processes of its own
def test_sparse_clone_pickle_and_repeatability() -> None:
    X, y, _, _ = waves(12)
    forest = SelfPacedRegressor(RandomForestRegressor(8, min_samples_leaf=4), random_state=3, n_jobs=2)
    with parallel_config(backend="threading"):
        one = clone(forest).fit(X, y)
    forest.set_params(n_jobs=None)
    other = clone(forest).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(one.predict(X), pickle.loads(pickle.dumps(one)).predict(X))
    np.testing.assert_allclose(one.sample_weight_, other.sample_weight_, atol=0.3)
    np.testing.assert_array_equal(one.predict(X), clone(forest).fit(X, y).predict(X))


def test_suspects_lists_the_outliers_first() -> None:
    X, y, _, wrong = waves(13)
    model = SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=8, random_state=0)).fit(X, y)
    table = suspects(model, X, y)
    assert set(table["row"][: wrong.sum()]) == set(np.flatnonzero(wrong))


def test_rows_that_are_excluded_beside_gross_errors_are_counted_apart() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(20, 180, (200, 2))
    y = 30 * X[:, 0] + rng.normal(0, 100, 200)
    y[5] *= 10
    y[77] /= 10
    y[::14] += rng.normal(0, 600, len(y[::14]))
    model = SelfPacedRegressor(RandomForestRegressor(30, random_state=0)).fit(X, y)
    gross, left_out = np.mean(model.assessment_.wrong > 0.5), np.mean(model.sample_weight_ == 0)
    assert gross < left_out
    assert f"{100 * gross:.1f} % of the values are grossly wrong" in model.termination_
    assert f"{100 * (left_out - gross):.1f} % more are far from this model" in model.termination_


def test_the_path_tells_what_was_tried() -> None:
    X, y, _, _ = waves(14)
    model = SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=8, random_state=0), "hard").fit(X, y)
    plain, *others = model.path_
    assert np.isinf(plain.lam)
    chosen = next(candidate for candidate in others if candidate.chosen)
    assert chosen.score > plain.score + 3 * plain.spread
    assert chosen.mean_weight == pytest.approx(model.sample_weight_.mean())
    np.testing.assert_allclose(model.sample_loss_, model.sample_residual_**2)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (np.array(["low", "high"] * 150), "y must be numbers"),
        (np.array(["low", "high"] * 150, dtype=object), "y must be numbers"),
        (np.full(300, np.nan), "NaN"),
        (np.ones((300, 2)), "one model per target"),
    ],
)
def test_bad_targets_are_refused(y, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        SelfPacedRegressor(Ridge()).fit(waves()[0], y)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"pace": "fast"}, "pace must be"),
        ({"pace": -1.0}, "pace must be"),
        ({"cross_fit": "yes"}, "cross_fit must be"),
        ({"cv": 1}, "cv must be"),
        ({"efficiency": 0.0}, "efficiency must be"),
        ({"regularizer": Diversity(gamma=1.0)}, "elementwise"),
    ],
)
def test_bad_parameters_name_rule_and_value(params, match: str) -> None:
    X, y, _, _ = waves()
    with pytest.raises(ValueError, match=match):
        SelfPacedRegressor(Ridge(), **params).fit(X, y)


@pytest.mark.parametrize("n", [3, 10, 19])
def test_too_few_rows_keep_the_plain_model(n: int) -> None:
    X, y, _, _ = waves(15)
    model = SelfPacedRegressor(Ridge(), cv=10).fit(X[:n], y[:n])
    assert model.estimator_ is model.plain_
    assert f"{n} rows are too few" in model.termination_


def test_constant_targets_and_exact_fits() -> None:
    X, _, _, _ = waves(16)
    flat = SelfPacedRegressor(DecisionTreeRegressor()).fit(X, np.full(300, 2.5))
    np.testing.assert_allclose(flat.predict(X), 2.5)
    line = X @ [1.0, 2.0] + 3
    line[:60] += 7
    model = SelfPacedRegressor(LinearRegression()).fit(X, line)
    np.testing.assert_allclose(model.estimator_.coef_, [1, 2], atol=1e-6)
    assert model.sample_weight_[:60].max() == 0


def test_all_weights_zero_is_refused() -> None:
    X, y, _, _ = waves()
    with pytest.raises(ValueError, match="not be zero for every row"):
        SelfPacedRegressor(Ridge()).fit(X, y, sample_weight=np.zeros(300))


def test_verbose_reports_rounds(caplog) -> None:
    X, y, _, _ = waves(18)
    with caplog.at_level("INFO", logger="selfpaced"):
        SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=8), verbose=1).fit(X, y)
        assert "held-out predictions" in caplog.text
        SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=8), "hard", verbose=1).fit(X, y)
    assert "round 1" in caplog.text
    assert "final fit" in caplog.text


def test_callbacks_hear_of_the_rounds() -> None:
    callback = pytest.importorskip("sklearn.callback")
    if not hasattr(callback, "FitCallback"):
        pytest.skip("this scikit-learn has no public callbacks")
    X, y, _, _ = waves(19)
    seen = []

    class Listener:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, *args, **kwargs):
            seen.append("begin")

        def on_fit_task_end(self, *args, **kwargs):
            seen.append("end")

    model = SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=8, random_state=0))
    model.set_callbacks(Listener()).fit(X, y)
    assert seen.count("begin") == seen.count("end") >= 4


def test_mlp_pipeline_takes_weights_or_selects() -> None:
    X, y, truth, _ = waves(20)
    network = MLPRegressor(hidden_layer_sizes=(12,), solver="lbfgs", max_iter=150, random_state=0, tol=1e-2)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SelfPacedRegressor(make_pipeline(StandardScaler(), network), cv=3).fit(X, y)
    assert rmse(model, X, truth) < 0.6 * rmse(model.plain_, X, truth)
