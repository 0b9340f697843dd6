"""SelfPacedLinearRegression: outliers are found, clean data lose nothing, every rule and pace works."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from selfpaced import SelfPacedLinearRegression
from selfpaced.pacing import Fixed, Geometric, Graduated, Quantile, Stages
from selfpaced.regularizers import REGISTRY, Huber, Regularizer, Tukey, from_loss

_spec = importlib.util.spec_from_file_location("classics", Path(__file__).with_name("classics.py"))
classics = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(classics)

ELEMENTWISE = [name for name, rule in REGISTRY.items() if issubclass(rule, Regularizer)]


def contaminated(seed: int = 0, n: int = 200, p: int = 4, share: float = 0.3, shift: float = 15.0):
    """Unit noise, a share of the targets shifted to one side; the true coefficients come last."""
    rng = np.random.default_rng(seed)
    X, coef = rng.normal(size=(n, p)), rng.normal(size=p)
    y = X @ coef + 2 + rng.normal(size=n)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.permutation(n)[: round(share * n)]] = True
    y[wrong] += shift
    return X, y, wrong, coef


def error(model, coef) -> float:
    """Distance to the truth in units of what clean least squares would have (intercept 2)."""
    n = model.sample_weight_.size
    squares = np.sum((model.coef_ - coef) ** 2) + (model.intercept_ - 2) ** 2
    return float(np.sqrt(squares * n / (coef.size + 1)))


@pytest.mark.filterwarnings("ignore:.* rows for .* coefficients:UserWarning")  # some checks have few rows
@parametrize_with_checks([SelfPacedLinearRegression()])
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.4])
@pytest.mark.parametrize("seed", [0, 1])
def test_outliers_do_not_move_the_fit(share: float, seed: int) -> None:
    X, y, wrong, coef = contaminated(seed, share=share)
    model = SelfPacedLinearRegression().fit(X, y)
    assert error(model, coef) < 2.2
    assert error_of_plain(model, coef) > 4
    assert (model.sample_weight_[wrong] == 0).all()
    assert (model.sample_weight_[~wrong] > 0).mean() > 0.97
    low, high = model.noise_rate_interval_
    assert low <= share <= high
    assert model.scale_ == pytest.approx(np.std((y - X @ coef)[~wrong]), rel=0.15)
    assert np.isfinite(model.lam_)


def error_of_plain(model, coef) -> float:
    n = model.sample_weight_.size
    squares = np.sum((model.plain_.coef_ - coef) ** 2) + (model.plain_.intercept_ - 2) ** 2
    return float(np.sqrt(squares * n / (coef.size + 1)))


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_bad_leverage_is_found(share: float) -> None:
    X, y, _, coef = contaminated(3, share=0)
    bad = np.arange(round(share * len(y)))
    rng = np.random.default_rng(4)
    X[bad] = 0.1 * rng.normal(size=(bad.size, X.shape[1])) + np.array([5.0, 0, 0, 0])
    y[bad] = X[bad] @ coef + 2 + 10 + 0.1 * rng.normal(size=bad.size)
    model = SelfPacedLinearRegression().fit(X, y)
    assert error(model, coef) < 2
    assert (model.sample_weight_[bad] == 0).all()


def test_clean_data_return_the_plain_fit() -> None:
    chosen = []
    for seed in range(10):
        X, y, _, _ = contaminated(seed, share=0)
        model = SelfPacedLinearRegression().fit(X, y)
        plain = LinearRegression().fit(X, y)
        np.testing.assert_allclose(model.plain_.predict(X), plain.predict(X), rtol=1e-9)
        chosen.append(np.isinf(model.lam_))
        if chosen[-1]:
            np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
            assert (model.sample_weight_ == 1).all()
            assert "plain" in model.termination_.lower()
    assert sum(chosen) >= 8


def test_one_gross_outlier_among_many_rows_is_flagged() -> None:
    X, y, _, _ = contaminated(5, n=5000, share=0)
    y[17] += 40
    model = SelfPacedLinearRegression().fit(X, y)
    assert model.sample_weight_[17] == 0


def test_heavy_tails_beat_least_squares() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -1, 2] + rng.standard_t(1, size=300)
    model = SelfPacedLinearRegression().fit(X, y)
    assert np.abs(model.coef_ - [1, -1, 2]).max() < 0.4
    assert np.isfinite(model.lam_)


@pytest.mark.parametrize("regularizer", ["tukey", "hard", "mixture"])
def test_classics(regularizer: str) -> None:
    loss = sm.datasets.stackloss.load_pandas()
    cases = {
        "hbk": (*classics.hbk(), [*range(1, 11)]),
        "stars": (*classics.stars(), [11, 20, 30, 34]),
        "stackloss": (loss.exog.to_numpy(), loss.endog.to_numpy(), [4, 21]),  # of 1, 3, 4, 21; 21 rows are few
    }
    for name, (X, y, outliers) in cases.items():
        model = SelfPacedLinearRegression(regularizer=regularizer).fit(X, y)
        assert [*(np.flatnonzero(model.sample_weight_ < 0.2) + 1)] == outliers, name


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_rule(name: str) -> None:
    X, y, wrong, coef = contaminated(1, share=0.25)
    model = SelfPacedLinearRegression(regularizer=name).fit(X, y)
    assert error(model, coef) < 2.5
    assert model.sample_weight_[wrong].max() < np.median(model.sample_weight_[~wrong])
    scaled = SelfPacedLinearRegression(regularizer=name).fit(X, 1e-3 * y)
    np.testing.assert_allclose(scaled.coef_, 1e-3 * model.coef_, rtol=0.05, atol=1e-4)


def test_a_rule_of_ones_own_equals_its_twin() -> None:
    X, y, _, _ = contaminated(2)
    own = from_loss(lambda loss, lam: lam**2 * np.log1p(loss / lam**2))
    mine = SelfPacedLinearRegression(regularizer=own, pace=2.0, start="robust", tol=1e-10).fit(X, y)
    twin = SelfPacedLinearRegression(regularizer="cauchy", pace=2.0, start="robust", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(mine.coef_, twin.coef_, rtol=1e-5)


@pytest.mark.parametrize("name", ["tukey", "welsch", "hard", "l1l2", "logistic", "huber"])
def test_the_papers_pace(name: str) -> None:
    X, y, wrong, coef = contaminated(7, share=0.15)
    model = SelfPacedLinearRegression(regularizer=name, pace="paper").fit(X, y)
    assert error(model, coef) < 0.6 * error_of_plain(model, coef)
    assert model.sample_weight_[wrong].max() < np.median(model.sample_weight_[~wrong])
    assert "efficient" in model.termination_


@pytest.mark.parametrize(
    "pace",
    [
        Geometric(mu=1.2, stop=Stages(8)),
        Quantile(0.5, 0.8, stages=6),
        Fixed(3.0),
        Graduated(bound=4.0, factor=1.5),
    ],
)
def test_any_pacing(pace) -> None:
    X, y, wrong, coef = contaminated(8, share=0.15)
    model = SelfPacedLinearRegression(regularizer="tukey", pace=pace, start="robust").fit(X, y)
    assert error(model, coef) < 3
    assert model.sample_weight_[wrong].max() < 0.1
    assert model.path_[0].label == "plain"


def test_ridge_is_honoured() -> None:
    X, y, wrong, _ = contaminated(9, share=0.2)
    for regularizer in ("hard", "huber", "l1l2"):
        model = SelfPacedLinearRegression(alpha=50.0, regularizer=regularizer).fit(X, y)
        reference = Ridge(alpha=50.0).fit(X, y, sample_weight=model.sample_weight_)
        np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-4)
        np.testing.assert_allclose(model.plain_.coef_, Ridge(alpha=50.0).fit(X, y).coef_, rtol=1e-9)
    clean = Ridge(alpha=50.0).fit(X[~wrong], y[~wrong])
    hard = SelfPacedLinearRegression(alpha=50.0, regularizer="hard").fit(X, y)
    np.testing.assert_allclose(hard.coef_, clean.coef_, atol=0.15)


def test_weights_and_coefficients_belong_together() -> None:
    X, y, _, _ = contaminated(10)
    model = SelfPacedLinearRegression(tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.sample_loss_, (y - model.predict(X)) ** 2, rtol=1e-9)
    kept = model.sample_weight_ > 0
    rule = Huber().relative_weight(model.sample_loss_[kept], model.lam_)
    assert 100 < kept.sum() < 200
    np.testing.assert_allclose(model.sample_weight_[kept], rule)
    reference = LinearRegression().fit(X, y, sample_weight=model.sample_weight_)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-8)


def test_sample_weight_counts_rows() -> None:
    X, y, _, _ = contaminated(11, n=120, share=0.3)
    counts = np.random.default_rng(0).integers(0, 4, size=120)
    weighted = SelfPacedLinearRegression().fit(X, y, sample_weight=counts)
    repeated = SelfPacedLinearRegression().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)
    assert weighted.lam_ == pytest.approx(repeated.lam_, rel=1e-6)
    assert weighted.noise_rate_ == pytest.approx(repeated.noise_rate_, abs=1e-9)
    assert weighted.sample_weight_.shape == (120,)


def test_the_scale_of_fractional_weights_does_not_matter() -> None:
    X, y, _, _ = contaminated(12)
    weight = np.random.default_rng(1).uniform(0.1, 1, size=len(y))
    one = SelfPacedLinearRegression().fit(X, y, sample_weight=weight)
    other = SelfPacedLinearRegression().fit(X, y, sample_weight=weight / weight.sum())
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6)


def test_sparse_equals_dense() -> None:
    X, y, _, _ = contaminated(13)
    X[np.abs(X) < 0.7] = 0
    for container in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array):
        for alpha in (0.0, 3.0):
            dense = SelfPacedLinearRegression(alpha=alpha).fit(X, y)
            thin = SelfPacedLinearRegression(alpha=alpha).fit(container(X), y)
            np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(thin.predict(container(X)), dense.predict(X), rtol=1e-3, atol=1e-3)


def test_wide_sparse_data_are_fitted_without_a_normal_matrix() -> None:
    rng = np.random.default_rng(14)
    X = sparse.random_array((6600, 2010), density=0.003, rng=rng, format="csr")
    coef = np.zeros(2010)
    coef[:50] = rng.normal(size=50) * 5
    y = X @ coef + 0.3 * rng.normal(size=6600)
    wrong = rng.permutation(6600)[:660]
    y[wrong] += 30
    model = SelfPacedLinearRegression(alpha=5.0, tol=1e-3).fit(X, y)
    assert np.median(model.sample_weight_[wrong]) == 0
    truth = X @ coef
    assert np.mean((model.predict(X) - truth) ** 2) < 0.2 * np.mean((model.plain_.predict(X) - truth) ** 2)


def test_large_data_start_on_a_subset() -> None:
    X, y, wrong, coef = contaminated(15, n=6000, p=6, share=0.4)
    model = SelfPacedLinearRegression(random_state=1).fit(X, y)
    assert error(model, coef) < 2
    assert (model.sample_weight_[wrong] == 0).all()
    again = SelfPacedLinearRegression(random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)


def test_float32_is_kept() -> None:
    X, y, _, _ = contaminated(16)
    model = SelfPacedLinearRegression().fit(X.astype(np.float32), y.astype(np.float32))
    double = SelfPacedLinearRegression().fit(X, y)
    for value in (model.coef_, model.sample_weight_, model.sample_loss_, model.predict(X.astype(np.float32))):
        assert value.dtype == np.float32
    np.testing.assert_allclose(model.coef_, double.coef_, rtol=2e-4)


def test_frames_give_feature_names() -> None:
    import pandas as pd
    import polars as pl

    X, y, _, _ = contaminated(17)
    names = ["a", "b", "c", "d"]
    expected = SelfPacedLinearRegression().fit(X, y).coef_
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(dict(zip(names, X.T, strict=True)))):
        model = SelfPacedLinearRegression().fit(frame, y)
        assert [*model.feature_names_in_] == names
        assert [*model.plain_.feature_names_in_] == names
        np.testing.assert_allclose(model.coef_, expected)
        np.testing.assert_allclose(model.predict(frame), X @ expected + model.intercept_)


def test_clone_and_pickle() -> None:
    X, y, _, _ = contaminated(18)
    model = clone(SelfPacedLinearRegression(regularizer=Tukey(), pace=Geometric(mu=1.1))).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert repr(copy.path_) == repr(model.path_)  # figures that are not known are NaN


def test_metadata_routing_reaches_it() -> None:
    from sklearn import config_context
    from sklearn.model_selection import GridSearchCV

    X, y, _, _ = contaminated(19)
    weight = np.random.default_rng(0).integers(1, 3, size=len(y))
    with config_context(enable_metadata_routing=True):
        model = SelfPacedLinearRegression().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"alpha": [0.0, 1.0]}, cv=3).fit(X, y, sample_weight=weight)
    direct = SelfPacedLinearRegression(**search.best_params_).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(search.best_estimator_.coef_, direct.coef_)


def test_the_path_tells_what_was_tried() -> None:
    X, y, _, _ = contaminated(20)
    model = SelfPacedLinearRegression().fit(X, y)
    plain, *others = model.path_
    assert np.isinf(plain.lam)
    assert plain.mean_weight == 1
    assert sum(candidate.chosen for candidate in model.path_) == 1
    best = next(candidate for candidate in others if candidate.chosen)
    assert best.score > plain.score + 3 * plain.spread
    assert best.lam == model.lam_
    assert best.mean_weight == pytest.approx(model.sample_weight_.mean(), rel=1e-6)
    assert all(candidate.cost >= 0 for candidate in model.path_)


def test_lower_efficiency_is_more_robust() -> None:
    X, y, _, _ = contaminated(21, share=0.3)
    cautious = SelfPacedLinearRegression(efficiency=0.7).fit(X, y)
    assert cautious.lam_ < SelfPacedLinearRegression().fit(X, y).lam_


def test_no_intercept() -> None:
    X, y, _, coef = contaminated(22, share=0.2)
    model = SelfPacedLinearRegression(fit_intercept=False).fit(X, y - 2)
    assert model.intercept_ == 0
    assert np.abs(model.coef_ - coef).max() < 0.4


@pytest.mark.parametrize("rule", ["hard", "tukey", "welsch", "huber"])
def test_every_rule_is_compared_with_the_plain_fit(rule) -> None:
    """On clean rows the plain fit is kept whatever the rule is called; with outliers it is not."""
    kept = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 3))
        y = X @ [1.0, 2.0, 3.0] + rng.normal(size=200)
        kept.append(SelfPacedLinearRegression(regularizer=rule).fit(X, y).path_[0].chosen)
    assert sum(kept) >= 9
    y[:20] += 15.0
    model = SelfPacedLinearRegression(regularizer=rule).fit(X, y)
    assert not model.path_[0].chosen
    np.testing.assert_allclose(model.coef_, [1.0, 2.0, 3.0], atol=0.3)
