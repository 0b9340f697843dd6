"""summary(): the sandwich by hand and by statsmodels, coverage, and what is printed."""

from __future__ import annotations

import re

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import sparse

from selfpaced import SelfPacedLinearRegression
from selfpaced.linear._least_squares import DENSE_GRAM


def rows(seed: int = 0, n: int = 120, share: float = 0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = 1 + X @ [2.0, 0.0, -1.0] + rng.normal(size=n)
    y[: round(share * n)] += 20
    return X, y


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_plain_fit_has_the_standard_errors_of_hc3(fit_intercept: bool) -> None:
    X, y = rows(share=0)
    model = SelfPacedLinearRegression(pace=np.inf, fit_intercept=fit_intercept).fit(X, y)
    found = model.summary()
    reference = sm.OLS(y, sm.add_constant(X) if fit_intercept else X).fit(cov_type="HC3", use_t=True)
    np.testing.assert_allclose(found.estimate, reference.params, rtol=1e-8)
    np.testing.assert_allclose(found.error, reference.bse, rtol=1e-8)
    np.testing.assert_allclose(found.p_value, reference.pvalues, rtol=1e-6)
    np.testing.assert_allclose(np.column_stack([found.low, found.high]), reference.conf_int(), rtol=1e-7)
    if fit_intercept:
        assert found.r2 == pytest.approx(reference.rsquared, rel=1e-8)


def test_hard_weights_give_the_errors_of_the_kept_rows() -> None:
    X, y = rows(n=400)
    model = SelfPacedLinearRegression().fit(X, y)
    kept = np.arange(400) >= 80
    clean = sm.OLS(y[kept], sm.add_constant(X[kept])).fit(cov_type="HC3")
    np.testing.assert_allclose(model.summary().error, clean.bse, rtol=0.15)
    assert model.summary().r2 == pytest.approx(clean.rsquared, abs=0.05)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_intervals_cover(share: float) -> None:
    hits = []
    for seed in range(25):
        X, y = rows(seed, n=50, share=share)
        found = SelfPacedLinearRegression().fit(X, y).summary()
        hits.append((found.low < [1, 2, 0, -1]) & (found.high > [1, 2, 0, -1]))
    assert 0.88 < np.mean(hits) < 1  # 100 intervals of 95 %; benchmarks/regression.py has more


def test_errors_may_differ_in_spread() -> None:
    rng = np.random.default_rng(2)
    hits = []
    for _ in range(16):
        x = rng.normal(size=120)
        y = 2 * x + np.abs(x) * rng.normal(size=120)
        found = SelfPacedLinearRegression(pace=np.inf).fit(x[:, None], y).summary()
        hits.append(found.low[1] < 2 < found.high[1])
    assert np.mean(hits) >= 0.875  # least squares' own intervals on these draws: 0.7


def test_weights_count_rows() -> None:
    X, y = rows(3)
    counts = np.random.default_rng(0).integers(1, 4, size=len(y))
    weighted = SelfPacedLinearRegression().fit(X, y, sample_weight=counts).summary()
    repeated = SelfPacedLinearRegression().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).summary()
    np.testing.assert_allclose(weighted.error, repeated.error, rtol=1e-5)
    assert weighted.dof == pytest.approx(repeated.dof, rel=1e-6)
    weight = counts / counts.sum()
    scaled = SelfPacedLinearRegression(pace=np.inf).fit(X, y, sample_weight=weight).summary()
    other = SelfPacedLinearRegression(pace=np.inf).fit(X, y, sample_weight=7 * weight).summary()
    np.testing.assert_allclose(scaled.error, other.error, rtol=1e-8)


def test_sparse_dependent_and_single_precision() -> None:
    X, y = rows(4)
    found = SelfPacedLinearRegression().fit(X, y).summary()
    thin = SelfPacedLinearRegression().fit(sparse.csr_array(X), y).summary()
    np.testing.assert_allclose(thin.error, found.error, rtol=1e-4)
    single = SelfPacedLinearRegression().fit(X.astype(np.float32), y.astype(np.float32)).summary()
    np.testing.assert_allclose(single.error, found.error, rtol=1e-2)
    doubled = SelfPacedLinearRegression().fit(np.column_stack([X, X[:, 0]]), y).summary()
    # each twin has half of the coefficient, and half of its error
    np.testing.assert_allclose(doubled.error[[1, 4]], found.error[1] / 2, rtol=1e-3)


def test_a_row_alone_in_its_column_has_an_error() -> None:
    X, y = rows(5)
    X = np.column_stack([X, np.arange(120) == 100])
    found = SelfPacedLinearRegression().fit(X, y).summary()
    assert found.error[4] == pytest.approx(1, abs=0.4)


def test_the_table_is_printed_and_framed() -> None:
    import pandas as pd

    X, y = rows(6)
    model = SelfPacedLinearRegression().fit(pd.DataFrame(X, columns=["age", "dose", "days"]), y)
    text = str(model.summary(level=0.9))
    assert re.search(r"^intercept +\S+ +\S+ +\S+ +< 0\.0001 +\S+ to \S+$", text, flags=re.M)
    assert "90 % interval" in text
    assert "robust R2" in text
    assert model.termination_ in text
    frame = model.summary().frame()
    assert frame["name"].tolist() == ["intercept", "age", "dose", "days"]
    assert (frame["low"] < frame["estimate"]).all()
    assert (frame["high"] - frame["low"]).to_numpy() == pytest.approx(2 * 1.98 * frame["error"].to_numpy(), rel=0.02)


def test_what_cannot_be_summarised_says_so() -> None:
    X, y = rows(7)
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 95"):
        SelfPacedLinearRegression().fit(X, y).summary(95)
    wide = sparse.random_array((60, DENSE_GRAM + 1), density=0.01, rng=np.random.default_rng(0), format="csr")
    model = SelfPacedLinearRegression(alpha=1.0, pace=np.inf).fit(wide, np.arange(60.0))
    assert model.inference_ is None
    with pytest.raises(ValueError, match="not computed for 2001 sparse columns"):
        model.summary()


def test_uneven_errors_are_covered_and_the_choice_of_covariance_is_checked() -> None:
    hits = []
    for seed in range(30):
        rng = np.random.default_rng([seed, 6])
        X = rng.normal(size=(200, 2))
        y = X @ [2.0, 1.0] + np.exp(0.8 * X[:, 0]) * rng.normal(size=200)
        found = SelfPacedLinearRegression().fit(X, y).summary()
        hits.append((found.low[1:] < [2, 1]) & (found.high[1:] > [2, 1]))
    assert np.mean(hits) >= 0.88  # 60 intervals of 95 %; benchmarks/regression.py spread has more
    model = SelfPacedLinearRegression().fit(X, y)
    assert "HC3" in str(model.summary())
    assert "even spread" in str(model.summary(cov="even"))
    with pytest.raises(ValueError, match="cov must be 'HC3' or 'even', got 'HC1'"):
        model.summary(cov="HC1")


def test_the_summary_says_what_the_coefficients_are_of() -> None:
    X, y = rows()
    assert "centre of the bulk of the values, not of their mean" in str(SelfPacedLinearRegression().fit(X, y).summary())
    assert "Coefficients of the mean" in str(SelfPacedLinearRegression(pace=np.inf).fit(X, y).summary())


def grouped(seed: int):
    """Forty groups of five rows with effects of their own; the first feature is one of the group."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(40), 5)
    X = np.column_stack([rng.normal(size=40)[groups], rng.normal(size=200)])
    return X, X @ [1.0, 1.0] + rng.normal(size=40)[groups] + 0.5 * rng.normal(size=200), groups


def test_groups_cluster_the_standard_errors() -> None:
    X, y, groups = grouped(0)
    model = SelfPacedLinearRegression(pace=np.inf).fit(X, y, groups=groups)
    reference = sm.OLS(y, sm.add_constant(X)).fit(cov_type="cluster", cov_kwds={"groups": groups})
    np.testing.assert_allclose(model.summary().error, reference.bse, rtol=0.05)
    assert model.summary().dof == 39
    assert "clustered by 40 groups" in str(model.summary())
    names = np.array([f"site {g}" for g in groups])
    again = SelfPacedLinearRegression(pace=np.inf).fit(X, y, groups=names)
    np.testing.assert_allclose(again.summary().error, model.summary().error)
    hits = {False: 0, True: 0}
    for seed in range(15):
        X, y, groups = grouped(seed)
        for known in hits:
            found = SelfPacedLinearRegression().fit(X, y, groups=groups if known else None).summary()
            hits[known] += found.low[1] < 1 < found.high[1]
    assert hits[True] >= 13 > hits[False]


@pytest.mark.parametrize(
    ("groups", "match"), [(np.zeros(120), "two different values"), (np.arange(5), "one value per")]
)
def test_bad_groups_are_refused(groups, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        SelfPacedLinearRegression().fit(*rows(), groups=groups)


@pytest.mark.parametrize("noise", ["normal", "exponential"])
def test_prediction_intervals_hold_new_values(noise: str) -> None:
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(300, 2)), rng.normal(size=(3000, 2))
    y, later = (Z @ [1.0, 2.0] + getattr(rng, noise)(size=len(Z)) for Z in (X, new))
    y[:30] += 40
    model = SelfPacedLinearRegression().fit(X, y)
    bounds = model.predict(new, interval=0.9)
    np.testing.assert_array_equal(bounds[:, 0], model.predict(new))
    assert 0.86 < np.mean((bounds[:, 1] < later) & (later < bounds[:, 2])) < 0.95
    with pytest.raises(ValueError, match="interval must be between 0 and 1, got 95"):
        model.predict(new, interval=95)
