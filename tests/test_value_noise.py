"""Gross errors in values, told from misfit."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import HuberRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from selfpaced import SelfPacedLinearRegression, SelfPacedRegressor
from selfpaced.persistence import load, save
from selfpaced.robust import second_heap
from selfpaced.value_noise import ValueAssessment, assess_values, nearest, numeric_features


def prices(n=1200, seed=0):
    """As diamonds': the logarithm of the price goes with that of the weight."""
    rng = np.random.default_rng(seed)
    carat = np.exp(rng.normal(-0.4, 0.55, n))
    return np.c_[carat, rng.normal(size=n)], np.exp(8 + 1.7 * np.log(carat) + 0.15 * rng.normal(size=n))


def line_of(X, y):
    """Predictions of a robust line."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return HuberRegressor(max_iter=1000).fit(Z, y).predict(Z)


def uneven(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(n, 2))
    return X, 3 + 2 * X[:, 0] + (0.2 + 0.4 * X[:, 0]) * rng.normal(size=n)


# ---------------------------------------------------------------------------------------------- the regression


@pytest.mark.parametrize("data", [prices, uneven])
def test_misfit_is_not_called_gross_errors(data):
    X, y = data()
    model = SelfPacedLinearRegression().fit(X, y)
    assert model.noise_rate_ <= 0.02
    assert model.noise_rate_interval_[0] == 0
    trusted = np.sqrt(np.mean((y - model.predict(X)) ** 2)), np.sqrt(np.mean((y - model.plain_.predict(X)) ** 2))
    assert trusted[0] <= 1.03 * trusted[1]


def test_the_sentence_tells_of_misfit():
    model = SelfPacedLinearRegression().fit(*prices())
    assert model.misfit_check_.misfit > 0.05
    assert "far from this model but plausible with" in model.misfit_check_.sentence
    assert model.assessment_.diagnosis.misfit_words == model.misfit_check_.sentence
    assert model.misfit_check_.sentence in model.termination_ or not np.isinf(model.lam_)


def misfitted(kind, seed, n=800):
    """Clean values that a line does not fit, and groups."""
    rng = np.random.default_rng(seed)
    X, noise, groups = rng.normal(size=(n, 5)), rng.normal(size=n), rng.integers(0, 80, n)
    values = {
        "bend": 4 * np.abs(X[:, 0]) + noise,
        "square": 5 + 2 * X[:, 0] ** 2 + X[:, 1] + noise,
        "groups": X[:, 0] + 2 * rng.normal(size=80)[groups] + noise,
        "no signal": noise,
    }
    return X, values[kind], groups if kind == "groups" else None


@pytest.mark.parametrize("kind", ["bend", "square", "groups", "no signal"])
def test_a_relation_that_is_no_line_has_no_likely_errors(kind):
    for seed in (100, 109, 116):
        X, y, groups = misfitted(kind, seed)
        model = SelfPacedLinearRegression().fit(X, y, groups=groups)
        assert not np.any(model.assessment_.levels() == 2)
        assert model.noise_rate_interval_[0] == 0


@pytest.mark.parametrize("errors", [0.01, 0.05])
def test_errors_in_a_relation_that_bends_are_found(errors):
    X, y, _ = misfitted("bend", 100)
    bad = np.random.default_rng(1).random(len(y)) < errors
    found = SelfPacedLinearRegression().fit(X, np.where(bad, 10 * (10 + y), 10 + y)).assessment_.levels() == 2
    assert np.array_equal(found, bad)


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


def test_outliers_of_a_good_model_are_gross_errors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=300)
    y[:60] += 12
    model = SelfPacedLinearRegression().fit(X, y)
    assert model.noise_rate_ == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("share", [0.3, 0.4])
def test_many_values_moved_by_a_little_are_found(share):
    for seed in (0, 1, 3, 4):
        rng = np.random.default_rng([seed, 77])
        X, bad = rng.normal(size=(500, 3)), np.arange(500) < share * 500
        y = 10 + X @ [2.0, 1.0, 0.5] + rng.normal(size=500) + 5 * bad
        model = SelfPacedLinearRegression().fit(X, y)
        low, high = model.noise_rate_interval_
        assert low <= share <= high
        found = model.assessment_.wrong > 0.5
        assert (found & bad).sum() >= 0.85 * max(found.sum(), bad.sum())
        assert np.abs(model.predict(X) - y + 5 * bad).mean() < 1.05 * np.abs(y - 5 * bad - 10 - X @ [2, 1, 0.5]).mean()


def test_a_given_pace_is_assessed_but_kept():
    X, y = prices(600)
    model = SelfPacedLinearRegression(pace=300.0).fit(X, y)
    assert model.misfit_check_.references
    assert model.noise_rate_ <= 0.02
    assert model.lam_ == 300.0


def test_rows_without_weight_are_assessed_too():
    X, y = prices(600)
    y[:3] *= 30
    weight = np.ones(600)
    weight[:3] = 0
    model = SelfPacedLinearRegression().fit(X, y, weight)
    assert model.misfit_check_.wrong.shape == (597,)
    assert model.assessment_.wrong.shape == (600,)


# ------------------------------------------------------------------------------------------------ the assessment


def test_a_repeated_value_is_not_assessed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    y = np.where(rng.random(800) < 0.5, 0.0, np.exp(1 + X[:, 0] + 0.3 * rng.normal(size=800)))
    guess = np.full(800, 2.0)
    found = assess_values(y, guess, 1.0, X=X)
    assert found.atom == 0.0
    assert found.wrong[y == 0].max() == 0
    assert found.probability(np.zeros(5), guess[:5], X[:5]).max() == 0


def test_few_rows_are_left_to_the_model():
    X, y = prices(50)
    found = assess_values(y, np.full(50, np.median(y)), 100.0, X=X)
    assert not found.references
    assert found.rate > 0.1


def test_large_tables_are_assessed_by_a_sample():
    X, y = prices(9000)
    bad = np.random.default_rng(1).random(len(y)) < 0.05
    given = np.where(bad, 10 * y, y)
    line = line_of(X, given)
    found = assess_values(given, line, np.median(np.abs(given - line)), X=X)
    assert np.mean(found.wrong[bad] > 0.5) > 0.8
    assert np.mean(found.wrong[~bad] > 0.5) < 0.01


def test_assessing_without_features_uses_what_the_model_expects():
    X, y = prices()
    line = line_of(X, y)
    found = assess_values(y, line, np.median(np.abs(y - line)))
    assert found.references
    assert found.rate <= 0.02


def test_groups_are_explained_by_others():
    X, y = prices(400)
    groups = np.arange(400) // 100
    line = line_of(X, y)
    assert assess_values(y, line, np.median(np.abs(y - line)), X=X, groups=groups).rate <= 0.02


# ------------------------------------------------------------------------------------------------- its parts


def noisy(noise, n=500, seed=0):
    """A line with errors of a given distribution."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 10 + X @ [2.0, 1.0, 0.5] + noise.rvs(size=n, random_state=rng)


SHAPES = {
    "normal": stats.norm(),
    "t": stats.t(2.5),
    "skewed": stats.skewnorm(8),
    "laplace": stats.laplace(),
    "exponential": stats.expon(),
    "lognormal": stats.lognorm(1.0),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_heavy_and_uneven_tails_are_no_gross_errors(shape):
    claims = [SelfPacedLinearRegression().fit(*noisy(SHAPES[shape], seed=seed)).noise_rate_ for seed in range(3)]
    assert sum(claim > 0 for claim in claims) <= (shape == "t")  # heavy tails may look like a few errors
    assert max(claims) <= 0.05


@pytest.mark.parametrize("shape", ["normal", "exponential", "lognormal"])
def test_a_fifth_of_the_values_is_not_explained_away(shape):
    X, y = noisy(SHAPES[shape])
    bad = np.random.default_rng(1).random(len(y)) < 0.2
    model = SelfPacedLinearRegression().fit(X, y + 5 * y.std() * bad)
    found = model.assessment_.wrong > 0.5
    assert (found & bad).sum() >= 0.9 * max(found.sum(), bad.sum())
    low, high = model.noise_rate_interval_
    assert low <= bad.mean() <= high
    assert str(model.misfit_check_).startswith("Gross errors: ")


def test_errors_of_one_size_form_a_second_heap():
    rng = np.random.default_rng(0)
    for clean in (rng.normal(size=900), rng.lognormal(size=900), rng.standard_t(2, size=900)):
        assert second_heap(clean) == np.inf
        assert 4 < second_heap(np.r_[clean, rng.normal(12, 1, size=90)]) < 13


@pytest.mark.parametrize("size", [9.0, 300.0])
def test_few_far_values_are_found_whatever_their_size(size):
    X, y = noisy(stats.t(4), n=600)
    y[:12] += size * np.linspace(1, 3, 12)
    wrong = SelfPacedLinearRegression().fit(X, y).assessment_.wrong
    assert (wrong[:12] > 0.5).mean() >= 0.75
    assert (wrong[12:] > 0.5).mean() <= 0.03


def test_farther_out_is_never_less_gross():
    X, y = noisy(stats.t(4))
    y[:50] += 25
    model = SelfPacedLinearRegression().fit(X, y)
    steps = np.linspace(0.5, 60, 100)
    wrong = model.assess(np.zeros((100, 3)), 10 + steps).wrong
    assert np.all(np.diff(wrong) >= -1e-12)
    assert wrong[0] < 0.01 < 0.99 < wrong[-1]


@pytest.mark.parametrize("size", [30, 100])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_the_interval_of_few_errors_is_short(size, count):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X.sum(axis=1) + rng.normal(size=400) + size * (np.arange(400) < count)
    low, high = SelfPacedLinearRegression().fit(X, y).noise_rate_interval_
    assert low <= count / 400 <= high < 0.06  # once 1


def test_no_finite_table_excludes_every_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X.sum(axis=1) + rng.normal(size=400) > 0).astype(float)
    assert SelfPacedLinearRegression().fit(X, y).noise_rate_interval_[1] > 1 / 400  # once 0


def test_misfit_is_near_to_the_reference():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = X[:, 0] + rng.standard_t(2, size=500)
    found = assess_values(y, X[:, 0], 1.0, X=X)
    y[np.abs(y - X[:, 0]) > 8] *= 1e3
    far = assess_values(y, X[:, 0], 1.0, X=X)
    assert found.rate == 0
    assert far.misfit <= found.misfit  # far values are no misfit, whether they are called wrong or not


def test_a_share_that_rounds_to_nothing_is_not_printed_as_zero():
    assert repr(ValueAssessment(np.zeros(4), 1e-4, (0.0, 0.01), sigma=1.0)) == (
        "Gross errors: less than 0.1 % of the values (95 % interval 0.0 % to 1.0 %)."
    )


def test_the_check_prints_as_a_sentence():
    text = repr(SelfPacedLinearRegression().fit(*prices()).misfit_check_)
    assert text.startswith("No gross errors stand out (95 % interval 0.0 % to ")
    assert "logarithm of the target" in text
    assert "array" not in text


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_errors_that_are_not_normal_are_no_mistakes(noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    model = SelfPacedLinearRegression().fit(X, X @ [3.0, 2.0, 1.0] + getattr(rng, noise)(size=800))
    assert model.misfit_check_.references
    assert model.noise_rate_ == 0
    assert model.noise_rate_interval_[1] > 0.01


def test_the_interval_is_wide_where_mistakes_would_not_show():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    noise = rng.standard_t(3, size=900)
    high = []
    for signal in (0.5, 20.0):  # the second model would show every value that belongs to another row
        y = signal * X[:, 0] + noise
        high.append(assess_values(y, signal * X[:, 0], 1.0, X=X).interval[1])
    assert high[0] > 2 * high[1]


def test_zeros_in_most_rows_do_not_hide_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = np.where(rng.random(1500) < 0.65, 0.0, np.exp(2 + X[:, 0] + 0.3 * rng.normal(size=1500)))
    bad = (rng.random(1500) < 0.05) & (y > 0)
    model = SelfPacedLinearRegression().fit(X, np.where(bad, 20 * y, y))
    found = model.assessment_.wrong > 0.5
    assert (found & bad).sum() >= 0.8 * max(found.sum(), bad.sum())


@pytest.mark.parametrize("shape", [0.2, 0.3, 0.4])
def test_a_long_tail_is_no_heap_of_errors(shape):
    for seed in (9501, 9503):
        rng = np.random.default_rng([seed, 5])
        X = rng.normal(size=(600, 3))
        model = SelfPacedLinearRegression().fit(X, 5 + X @ [0.3, -0.3, 0.15] + rng.gamma(shape, size=600))
        assert model.noise_rate_ == 0
        assert not np.any(model.assessment_.levels() == 2)


def test_misfit_beside_a_second_heap_is_not_called_wrong():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.exp(1 + X[:, 0]) + 0.2 * rng.normal(size=600)  # bends
    bad = rng.permutation(600) < 120
    model = SelfPacedLinearRegression().fit(X, y + 40 * bad)
    found = model.assessment_.wrong > 0.5
    assert (found & bad).sum() >= 0.9 * max(found.sum(), bad.sum())
    low, high = model.noise_rate_interval_
    assert low <= 0.2 <= high


@pytest.mark.parametrize("zeros", [0.5, 0.75])
def test_errors_in_a_table_of_zeros_are_not_denied(zeros):
    for seed in range(2):
        rng = np.random.default_rng([seed, 77])
        X = rng.normal(size=(500, 3))
        y = np.where(rng.random(500) < zeros, 0.0, rng.poisson(np.exp(1.5 + 0.4 * X[:, 0])))
        bad = rng.permutation(500) < 100
        found = SelfPacedLinearRegression().fit(X, y + 5 * y.std() * bad).misfit_check_
        low, high = found.interval
        assert low <= 0.2 <= high
        if found.rate == 0:
            assert repr(found).startswith(("Possible gross errors", "Gross errors cannot be told"))


def test_nearest_asks_for_size_and_square():
    plain, rng = np.ones(40), np.random.default_rng(0)
    found = ValueAssessment(np.r_[np.zeros(39), 1.0], 0.0, (0.0, 0.0), sigma=1.0)
    far = np.full(40, 0.1)
    far[:5] = 3.0
    assert nearest([far], plain, found) is None  # by size alone
    assert nearest([np.full(40, 0.9), np.full(40, 0.5)], plain, found) == 1
    assert nearest([], plain, found) is None
    assert nearest([np.zeros(40)], plain, ValueAssessment(np.ones(40), 1.0, (0.0, 1.0), sigma=1.0)) is None
    hardly = np.where(rng.random(40) < 0.5, 0.5, 1.3)
    assert nearest([hardly], plain, found) is None  # within its error, and nothing gross was found


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


def test_any_regressor_leaves_out_only_what_is_grossly_wrong():
    X, y = prices(600)
    model = SelfPacedRegressor(boosting()).fit(X, y)
    assert model.noise_rate_ <= 0.02
    assert model.tuned_params_ == {"loss": "absolute_error"}  # not the plain model, though every row counts in full
    assert model.sample_weight_.min() == 1.0
    assert model.assessment_.wrong.max() <= model.lam_ == 0.5
    untuned = SelfPacedRegressor(boosting(), tune=False).fit(X, y)
    assert np.isinf(untuned.lam_)
    bad = np.random.default_rng(1).random(len(y)) < 0.1
    model = SelfPacedRegressor(boosting(), keep_plain=True).fit(X, np.where(bad, 10 * y, y))
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
    model = SelfPacedRegressor(make_pipeline(FunctionTransformer(_carats), HuberRegressor(max_iter=1000))).fit(
        words.tolist(), y
    )
    assert model.noise_rate_ <= 0.02


def _carats(words):
    return np.array([[float(word.split()[1])] for word in words])


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
