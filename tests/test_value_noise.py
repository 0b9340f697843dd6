"""Gross errors in values, told from misfit."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

from selfpaced import SelfPacedLinearRegression, SelfPacedRegressor
from selfpaced.persistence import load, save
from selfpaced.value_noise import Rows, Verdict, assess_values, nearest, numeric_features
from selfpaced.value_noise.explanation import best_explanation
from selfpaced.value_noise.likelihood import Likelihood, log_parts
from selfpaced.value_noise.line import RobustLine
from selfpaced.value_noise.mixture import fit_mixture, nearer
from selfpaced.value_noise.pattern import strewn
from selfpaced.value_noise.scales import TargetScale, target_scales, yeo_johnson


def prices(n=1200, seed=0):
    """As diamonds': the logarithm of the price goes with that of the weight."""
    rng = np.random.default_rng(seed)
    carat = np.exp(rng.normal(-0.4, 0.55, n))
    return np.c_[carat, rng.normal(size=n)], np.exp(8 + 1.7 * np.log(carat) + 0.15 * rng.normal(size=n))


def uneven(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(n, 2))
    return X, 3 + 2 * X[:, 0] + (0.2 + 0.4 * X[:, 0]) * rng.normal(size=n)


# ---------------------------------------------------------------------------------------------- the regression


@pytest.mark.parametrize("data", [prices, uneven])
def test_misfit_is_not_dirt(data):
    X, y = data()
    model = SelfPacedLinearRegression().fit(X, y)
    assert model.noise_rate_ <= 0.02
    assert model.noise_rate_interval_[0] == 0
    trusted = np.sqrt(np.mean((y - model.predict(X)) ** 2)), np.sqrt(np.mean((y - model.plain_.predict(X)) ** 2))
    assert trusted[0] <= 1.03 * trusted[1]


def test_the_sentence_tells_of_misfit():
    model = SelfPacedLinearRegression().fit(*prices())
    assert model.verdict_.misfit > 0.05
    assert "beyond this model, but no errors" in model.verdict_.sentence
    assert model.assessment_.diagnosis.misfit_words == model.verdict_.sentence
    assert model.verdict_.sentence in model.termination_ or not np.isinf(model.lam_)


@pytest.mark.parametrize("share", [0.03, 0.1])
def test_errors_among_misfit_are_found(share):
    X, y = prices()
    bad = np.random.default_rng(1).random(len(y)) < share
    model = SelfPacedLinearRegression().fit(X, np.where(bad, 10 * y, y))
    found = model.assessment_.wrong > 0.5
    assert (found & bad).sum() >= 0.8 * found.sum()
    assert (found & bad).sum() >= 0.8 * bad.sum()
    low, high = model.noise_rate_interval_
    assert low <= bad.mean() <= high
    errors = [np.mean((y - one.predict(X)) ** 2) for one in (model, model.plain_)]
    assert errors[0] < 0.95 * errors[1]


def test_rows_left_out_have_no_weight():
    X, y = prices()
    bad = np.random.default_rng(1).random(len(y)) < 0.1
    model = SelfPacedLinearRegression().fit(X, np.where(bad, 10 * y, y))
    assert model.verdict_.applied
    np.testing.assert_array_equal(model.sample_weight_, model.assessment_.wrong < 0.5)
    assert "grossly wrong" in model.termination_
    new = model.assess(X[bad][:50], 10 * y[bad][:50])
    np.testing.assert_array_equal(new.weight, new.wrong < 0.5)
    assert np.mean(new.wrong > 0.5) > 0.8
    assert np.mean(model.assess(X[~bad][:50], y[~bad][:50] * 1.001).wrong > 0.5) < 0.1


def test_outliers_of_a_good_model_need_no_other_explanation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=300)
    y[:60] += 12
    model = SelfPacedLinearRegression().fit(X, y)
    assert not model.verdict_.asked
    assert model.noise_rate_ == pytest.approx(0.2, abs=0.03)


def test_a_given_pace_is_assessed_but_kept():
    X, y = prices(600)
    model = SelfPacedLinearRegression(pace=300.0).fit(X, y)
    assert model.verdict_.asked
    assert model.noise_rate_ <= 0.02
    assert model.lam_ == 300.0


def test_rows_without_weight_are_assessed_too():
    X, y = prices(600)
    y[:3] *= 30
    weight = np.ones(600)
    weight[:3] = 0
    model = SelfPacedLinearRegression().fit(X, y, weight)
    assert model.verdict_.wrong.shape == (597,)
    assert model.assessment_.wrong.shape == (600,)


# ------------------------------------------------------------------------------------------------ the assessment


def test_a_repeated_value_is_not_assessed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    y = np.where(rng.random(800) < 0.5, 0.0, np.exp(1 + X[:, 0] + 0.3 * rng.normal(size=800)))
    guess = np.full(800, 2.0)
    verdict = assess_values(y, (guess,), 1.0, features=X)
    assert verdict.atom == 0.0
    assert verdict.wrong[y == 0].max() == 0
    rows = Rows(np.zeros(5), (guess[:5],), X[:5])
    assert verdict.probability(rows).max() == 0


def test_few_rows_are_left_to_the_model():
    X, y = prices(50)
    verdict = assess_values(y, (np.full(50, np.median(y)),), 100.0, features=X)
    assert not verdict.asked
    assert verdict.rate > 0.1


def test_large_tables_are_assessed_by_a_sample():
    X, y = prices(9000)
    bad = np.random.default_rng(1).random(len(y)) < 0.05
    given = np.where(bad, 10 * y, y)
    line = RobustLine().fit(X, given).predict(X)
    verdict = assess_values(given, (line,), np.median(np.abs(given - line)), features=X)
    assert np.mean(verdict.wrong[bad] > 0.5) > 0.8
    assert np.mean(verdict.wrong[~bad] > 0.5) < 0.01


def test_assessing_without_features_uses_what_the_model_expects():
    X, y = prices()
    line = RobustLine().fit(X, y).predict(X)
    verdict = assess_values(y, (line,), np.median(np.abs(y - line)))
    assert verdict.asked
    assert verdict.rate <= 0.02


def test_groups_are_explained_by_others():
    X, y = prices(400)
    groups = np.arange(400) // 100
    line = RobustLine().fit(X, y).predict(X)
    assert assess_values(y, (line,), np.median(np.abs(y - line)), features=X, groups=groups).rate <= 0.02


# ------------------------------------------------------------------------------------------------- its parts


def test_power_agrees_with_scikit_learn():
    u = np.random.default_rng(0).normal(size=100)
    for power in (0.0, 0.5, 1.0, 2.0):
        transformer = PowerTransformer(standardize=False).fit(u[:, None])
        transformer.lambdas_ = np.array([power])
        np.testing.assert_allclose(yeo_johnson(u, power), transformer.transform(u[:, None])[:, 0], rtol=1e-9)


@pytest.mark.parametrize("scale", [TargetScale(), TargetScale("log", least=0.1), TargetScale("power", 0.3, 2.0)])
def test_slopes_are_derivatives(scale):
    y = np.array([0.5, 1.0, 4.0])
    slope = (scale.forward(y + 1e-6) - scale.forward(y - 1e-6)) / 2e-6
    np.testing.assert_allclose(scale.log_slope(y), np.log(slope), rtol=1e-6, atol=1e-6)


def test_scales_that_are_tried():
    rng = np.random.default_rng(0)
    assert [scale.name for scale in target_scales(rng.normal(size=500))] == ["none"]
    assert "log" in [scale.name for scale in target_scales(np.exp(rng.normal(size=500)))]
    assert [scale.name for scale in target_scales(np.zeros(50))] == ["none"]


def test_the_core_is_a_density():
    z = np.linspace(-4000, 4000, 4_000_001)
    core, gross = log_parts(np.array([0.2, 0.1, -0.3, 1.0, 2.0, -3.0, 6.0, 0.5, 1.2, 2.5]), z)
    for part in (core, gross):
        assert np.trapezoid(np.exp(part), z) == pytest.approx(1, abs=2e-3)


def test_slopes_of_the_likelihood_are_derivatives():
    points, counts = np.linspace(-6, 9, 40), np.linspace(1, 3, 40)
    likelihood = Likelihood(points, counts)
    at = np.array([
        [0.2, 0.1, -0.3, 1.0, 0.5, -3.0, 6.0, 0.5, 1.1, 2.0], [0.05, -0.4, 0.2, -1.0, 2.0, -1.0, -5.0, 1.5, 2.8, 1.4]
    ])  # fmt: skip
    slopes = likelihood.slopes(at) @ counts
    for j in range(10):
        step = 1e-6 * np.eye(10)[j]
        numeric = (likelihood.nats(at + step) - likelihood.nats(at - step)) / 2e-6
        np.testing.assert_allclose(slopes[:, j], numeric, rtol=1e-5, atol=1e-5)


def test_the_search_stays_within_bounds_and_holds_what_is_held():
    z = np.random.default_rng(0).standard_t(3, size=400)
    likelihood = Likelihood(z, np.ones(400))
    starts = np.tile([0.0, 0.0, 0.0, 1.0, 1.0, -3.0, 0.0, 2.0, 2.0, 2.0], (3, 1))
    low, high = starts - 0.1, starts + 0.1
    low[:, 0] = high[:, 0] = [0.0, 0.05, 0.1]
    found, nats = likelihood.largest(starts, low, high)
    assert np.all((low <= found) & (found <= high))
    assert np.all(nats >= likelihood.nats(np.clip(starts, low, high)))
    np.testing.assert_array_equal(found[:, 0], [0.0, 0.05, 0.1])


@pytest.mark.parametrize("noise", [stats.norm, stats.t(2.5), stats.skewnorm(8), stats.laplace, stats.expon])
def test_heavy_and_uneven_tails_are_no_gross_part(noise):
    z = noise.rvs(size=3000, random_state=0)
    assert not fit_mixture((z - np.median(z)) / stats.median_abs_deviation(z, scale="normal")).found


def test_a_core_with_a_bend_of_two_is_students():
    parameters = np.array([0.0, 0.0, 0.0, np.log(2.5), np.log(2.5), -3.0, 6.0, 0.5, 2.0, 2.0])
    z = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(log_parts(parameters, z)[0], stats.t(4).logpdf(z), rtol=1e-12)


def test_far_residuals_count_by_their_logarithm():
    z = np.array([-3.0, 9.0, 10.0, 100.0, 1e9])
    np.testing.assert_allclose(nearer(z), [-3.0, 9.0, 10.0, 10 * (1 + np.log(10)), 40.0])


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_errors_that_are_not_normal_are_no_mistakes(noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    model = SelfPacedLinearRegression().fit(X, X @ [3.0, 2.0, 1.0] + getattr(rng, noise)(size=800))
    assert model.verdict_.asked
    assert model.noise_rate_ == 0
    assert model.noise_rate_interval_[1] > 0.01


def test_the_interval_is_wide_where_mistakes_would_not_show():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    noise = rng.standard_t(3, size=900)
    high = []
    for signal in (0.5, 20.0):  # the second model would show every value that belongs to another row
        y = signal * X[:, 0] + noise
        high.append(assess_values(y, (signal * X[:, 0],), 1.0, features=X).interval[1])
    assert high[0] > 2 * high[1]


def test_few_outliers_of_few_rows_show_no_pattern():
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(300, 2)), rng.normal(size=300)
    z[:4] = 5.0
    assert assess_values(z, (np.zeros(300),), 1.0, features=X).asked
    z[:20] = 9.0
    assert not assess_values(z, (np.zeros(300),), 1.0, features=X).asked


def test_zeros_in_most_rows_do_not_hide_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = np.where(rng.random(1500) < 0.65, 0.0, np.exp(2 + X[:, 0] + 0.3 * rng.normal(size=1500)))
    bad = (rng.random(1500) < 0.05) & (y > 0)
    model = SelfPacedLinearRegression().fit(X, np.where(bad, 20 * y, y))
    found = model.assessment_.wrong > 0.5
    assert (found & bad).sum() >= 0.8 * max(found.sum(), bad.sum())


def test_farther_out_is_never_less_gross():
    rng = np.random.default_rng(0)
    mixture = fit_mixture(np.r_[rng.normal(size=900), rng.normal(8, 1, size=100)])
    grid = np.linspace(0.5, 60, 300)
    assert np.all(np.diff(mixture.gross(grid)) >= 0)
    assert mixture.gross(np.array([0.0]))[0] == 0
    assert mixture.interval[0] < 0.1 < mixture.interval[1]


def test_counts_are_rows():
    rng = np.random.default_rng(0)
    z = np.r_[rng.normal(size=300), rng.normal(9, 1, size=30)]
    twice, weighted = fit_mixture(np.r_[z, z]), fit_mixture(z, np.full(330, 2.0))
    np.testing.assert_allclose(twice.gain, weighted.gain, rtol=1e-4)


def test_what_is_strewn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2))
    z = rng.normal(size=500)
    z[:50] += 12
    assert strewn(z, x)
    assert not strewn(z * (1 + np.abs(x[:, 0])), x)  # the size of good residuals depends on a feature
    region = np.where(x[:, 0] > 1, 12.0, 0.0) + rng.normal(size=500)
    assert not strewn(region, x)
    assert not strewn(rng.standard_t(1.5, size=500), x)
    far = x.copy()
    far[:50] = 6 + 0.1 * rng.normal(size=(50, 2))  # leverage points
    assert strewn(z, far)


def test_an_uneven_spread_is_seen():
    X, y = uneven()
    line = RobustLine().fit(X, y).predict(X)
    parts = np.array_split(np.random.default_rng(0).permutation(len(y)), 5)
    folds = [(np.setdiff1d(np.arange(len(y)), part), np.sort(part)) for part in parts]
    found = best_explanation(Rows(y - 1e3, (line - 1e3,), X), folds)
    spread = np.corrcoef(found.spread, X[:, 0])[0, 1]
    assert spread > 0.8
    other = found.of(Rows(y - 1e3, (line - 1e3,), X))
    assert np.corrcoef(other.spread, found.spread)[0, 1] > 0.8


def test_nearest_asks_for_size_and_square():
    plain, rng = np.ones(40), np.random.default_rng(0)
    verdict = Verdict(np.r_[np.zeros(39), 1.0], 0.0, (0.0, 0.0), sigma=1.0)
    far = np.full(40, 0.1)
    far[:5] = 3.0
    assert nearest([far], plain, verdict) is None  # by size alone
    assert nearest([np.full(40, 0.9), np.full(40, 0.5)], plain, verdict) == 1
    assert nearest([], plain, verdict) is None
    assert nearest([np.zeros(40)], plain, Verdict(np.ones(40), 1.0, (0.0, 1.0), sigma=1.0)) is None
    hardly = np.where(rng.random(40) < 0.5, 0.5, 1.3)
    assert nearest([hardly], plain, verdict) is None  # within its error, and nothing gross was found


def test_features_of_any_table():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [np.inf, 0.0]})
    np.testing.assert_array_equal(numeric_features(frame), [[1, 0, np.nan], [2, 1, 0]])
    assert numeric_features(np.zeros((2, 3, 4))) is None
    assert numeric_features(np.zeros((2, 500))) is None
    assert numeric_features(["a", "b"]) is None


# ------------------------------------------------------------------------------------------- any regressor


def boosting():
    return HistGradientBoostingRegressor(max_iter=30, random_state=0)


def test_any_regressor_hears_the_assess():
    X, y = prices(800)
    model = SelfPacedRegressor(boosting()).fit(X, y)
    assert model.noise_rate_ <= 0.02
    assert np.isinf(model.lam_)
    bad = np.random.default_rng(1).random(len(y)) < 0.1
    model = SelfPacedRegressor(boosting()).fit(X, np.where(bad, 10 * y, y))
    found = model.assessment_.wrong > 0.5
    assert (found & bad).sum() >= 0.8 * max(found.sum(), bad.sum())
    assert np.mean((y - model.predict(X)) ** 2) < 0.5 * np.mean((y - model.plain_.predict(X)) ** 2)
    new = model.assess(X[bad][:30], 10 * y[bad][:30] + 1)
    assert np.mean(new.wrong > 0.5) > 0.8
    file = io.BytesIO()
    save(model, file)
    np.testing.assert_array_equal(load(file).assess(X[bad][:30], 10 * y[bad][:30] + 1).wrong, new.wrong)


def test_zeros_are_not_outliers_of_anything():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.where(rng.random(600) < 0.75, 0.0, np.exp(3 + X[:, 0] + 0.5 * rng.normal(size=600)))
    for model in (SelfPacedLinearRegression(), SelfPacedRegressor(boosting())):
        model.fit(X, y)
        assert model.noise_rate_ <= 0.02
        assert np.isinf(model.lam_)


def test_text_is_assessed_by_what_the_model_expects():
    X, y = prices(300)
    words = np.array([f"stone {carat:.2f}" for carat, _ in X], dtype=object)
    model = SelfPacedRegressor(make_pipeline(FunctionTransformer(_carats), RobustLine())).fit(words.tolist(), y)
    assert model.noise_rate_ <= 0.02


def _carats(words):
    return np.array([[float(word.split()[1])] for word in words])


def test_gross_values_far_out_are_found_whatever_their_size():
    rng = np.random.default_rng(0)
    z = np.r_[rng.normal(size=228), 90, 120, 180, 200, 310, 320, 340, 400, 450, 480, 490, 500]
    mixture = fit_mixture(z)
    assert mixture.found
    assert mixture.gross(z)[228:].min() > 0.9
    assert mixture.gross(z)[:228].max() < 0.5


def test_rows_are_assessed_each_by_itself():
    from selfpaced import SelfPacedLinearRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = X @ [1.0, 2.0] + 0.1 * rng.normal(size=500) + 20 * (rng.random(500) < 0.1)
    model = SelfPacedLinearRegression().fit(X, y)
    new = X + 0.01
    together = model.assess(new, y).wrong
    assert together.min() < 0.01 < 0.99 < together.max()
    alone = [model.assess(new[i : i + 1], y[i : i + 1]).wrong[0] for i in range(40)]
    np.testing.assert_allclose(alone, together[:40], rtol=1e-10)
