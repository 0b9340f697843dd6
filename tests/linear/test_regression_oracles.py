"""Fits at a fixed pace against independent programs: statsmodels' RLM and SciPy's least_squares."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import least_squares
from sklearn.linear_model import LinearRegression, Ridge

from selfpaced import SelfPacedLinearRegression
from selfpaced.linear._least_squares import build

NORMS = sm.robust.norms


def data(seed: int = 1, n: int = 300, p: int = 4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X @ rng.normal(size=p) + 1 + rng.normal(size=n)
    y[: n // 5] += 10 * rng.normal(size=n // 5)
    return X, y


@pytest.mark.parametrize(
    ("rule", "lam", "norm"),
    [
        ("huber", 1.7, NORMS.HuberT(1.7)),
        ("tukey", 5.1, NORMS.TukeyBiweight(5.1)),
        ("hard", 5.1**2, NORMS.TrimmedMean(5.1)),
    ],
)
def test_equals_statsmodels_rlm_at_a_fixed_scale(rule, lam, norm) -> None:
    X, y = data()
    ours = SelfPacedLinearRegression(regularizer=rule, pace=lam, start="plain", tol=1e-13, max_iter=2000).fit(X, y)
    plain = sm.OLS(y, sm.add_constant(X)).fit().params
    model = sm.RLM(y, sm.add_constant(X), M=norm)
    theirs = model.fit(
        start_params=plain, start_scale=1.0, update_scale=False, tol=1e-14, maxiter=5000, conv="coefs"
    ).params
    np.testing.assert_allclose(np.r_[ours.intercept_, ours.coef_], theirs, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(("rule", "loss"), [("huber", "huber"), ("cauchy", "cauchy"), ("l1l2", "soft_l1")])
def test_equals_scipy_least_squares(rule: str, loss: str) -> None:
    X, y = data(2)
    scale = 1.3
    lam = scale**2 if rule == "l1l2" else scale
    ours = SelfPacedLinearRegression(regularizer=rule, pace=lam, start="plain", tol=1e-13, max_iter=2000).fit(X, y)
    design = sm.add_constant(X)
    theirs = least_squares(
        lambda b: design @ b - y,
        np.linalg.lstsq(design, y, rcond=None)[0],
        jac=lambda b: design,
        loss=loss,
        f_scale=scale,
        ftol=1e-15,
        xtol=1e-15,
        gtol=1e-15,
        max_nfev=5000,
    ).x
    np.testing.assert_allclose(np.r_[ours.intercept_, ours.coef_], theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rule", ["welsch", "geman-mcclure", "cauchy", "tukey"])
@pytest.mark.parametrize("alpha", [0.0, 20.0])
def test_the_gradient_of_the_latent_loss_vanishes(rule: str, alpha: float) -> None:
    X, y = data(3)
    model = SelfPacedLinearRegression(alpha=alpha, regularizer=rule, pace=4.0, tol=1e-13, max_iter=2000).fit(X, y)
    residuals = y - model.predict(X)
    slope = X.T @ (model.sample_weight_ * residuals) - alpha * model.coef_
    np.testing.assert_allclose(slope, 0, atol=1e-7)
    assert abs(model.sample_weight_ @ residuals) < 1e-7


def test_the_better_of_two_starts_wins() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 2))
    y = X @ [1.0, 2.0] + 0.1 * rng.normal(size=200)
    y[:80] += 10
    fixed = SelfPacedLinearRegression(regularizer="tukey", pace=0.5).fit(X, y)
    np.testing.assert_allclose(fixed.coef_, [1, 2], atol=0.05)
    assert fixed.sample_weight_[:80].max() == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("shape", [(60, 5), (8, 20)])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_squares_equal_scikit_learn(weighted: bool, alpha: float, shape, fit_intercept: bool) -> None:
    rng = np.random.default_rng(5)
    X, y = 3 * rng.normal(size=shape) + 100, rng.normal(size=shape[0]) + 7
    weight = rng.uniform(0.2, 2, size=shape[0]) if weighted else None
    squares = build(X, y, alpha=alpha, fit_intercept=fit_intercept, sample_weight=weight)
    coef, intercept = squares.at.coefficients(squares.solve())
    reference = Ridge(alpha=alpha, fit_intercept=fit_intercept, solver="svd") if alpha else LinearRegression()
    reference.set_params(fit_intercept=fit_intercept).fit(X, y, sample_weight=weight)
    if alpha or shape[0] > shape[1]:
        np.testing.assert_allclose(coef, reference.coef_, rtol=1e-6, atol=1e-9)
        assert intercept == pytest.approx(reference.intercept_, rel=1e-6, abs=1e-8)
    np.testing.assert_allclose(X @ coef + intercept, reference.predict(X), rtol=1e-7, atol=1e-8)


def test_badly_conditioned_features_are_fitted_as_by_scikit_learn() -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(0, 1, size=400)
    X = np.column_stack([x**k for k in range(1, 9)])
    y = np.sin(6 * x) + 0.01 * rng.normal(size=400)
    squares = build(X, y)
    coef, intercept = squares.at.coefficients(squares.solve())
    np.testing.assert_allclose(X @ coef + intercept, LinearRegression().fit(X, y).predict(X), atol=1e-6)
