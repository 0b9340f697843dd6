"""The fitted parameters are minima of the objective in the class's docstring, for any rule, labels and storage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import logsumexp

from selfpaced import SelfPacedLogisticRegression
from selfpaced.regularizers import get

RULES = [("welsch", 1.5), ("cauchy", 1.5), ("welsch", np.inf)]


def table(n_classes, n=150):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3)) * [1.0, 10.0, 0.1]
    scores = X @ (rng.standard_normal((3, n_classes)) / np.array([[1.0], [10.0], [0.1]]))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return X, np.where(rng.random(n) < 0.1, (y + 1) % n_classes, y), rng.integers(1, 4, n).astype(float)


def objective(params, X, y, weight, rule, lam, C):
    """C times the sum of latent losses, and half the squared norm of the coefficients."""
    params = params.reshape(-1, X.shape[1] + 1)
    scores = X @ params[:, :-1].T + params[:, -1]
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]
    latent = losses if np.isinf(lam) else get(rule).latent(losses, lam)
    return C * float(weight @ latent) + 0.5 * float(np.square(params[:, :-1]).sum())


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("rule", "lam"), RULES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_fit_at_a_given_pace_is_a_minimum(n_classes, rule, lam, form):
    X, y, weight = table(n_classes)
    model = SelfPacedLogisticRegression(rule, pace=lam, C=0.5, tol=1e-7, max_iter=2000)
    model.fit(form(X), y, sample_weight=weight)
    params = np.column_stack([model.coef_, model.raw_intercept_]).ravel()
    slope = approx_fprime(params, lambda p: objective(p, X, y, weight, rule, lam, 0.5), 1e-6)
    np.testing.assert_allclose(slope / weight.sum(), 0.0, atol=2e-5)


def test_many_rows_are_fitted_in_blocks_to_the_same_minimum():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 8))  # several blocks of the processor's cache
    y = (X[:, 0] + rng.logistic(size=60_000) > 0).astype(int)
    once = SelfPacedLogisticRegression(pace=2.0, C=1.0, tol=1e-6).fit(X, y)
    moved = SelfPacedLogisticRegression(pace=2.0, C=1.0, tol=1e-6).fit(X[::-1], y[::-1])
    np.testing.assert_allclose(moved.coef_, once.coef_, atol=1e-4)
    np.testing.assert_allclose(once.sample_weight_, moved.sample_weight_[::-1], atol=1e-4)


@pytest.mark.parametrize("rule", ["welsch", "cauchy", "l1l2"])
def test_paces_mean_the_same_for_every_rule(rule):
    """Losses of half the full weight are the same, whatever the rule."""
    X, y, _ = table(2, 400)
    noisy = np.where(np.random.default_rng(1).random(400) < 0.3, 1 - y, y)
    half = {}
    for name in (rule, "welsch"):
        path = SelfPacedLogisticRegression(name).fit(X, noisy).path_
        lams = sorted({candidate.lam for candidate in path if np.isfinite(candidate.lam)})
        losses = np.linspace(0.01, 3.0, 3000)
        half[name] = [losses[np.argmin(np.abs(get(name).relative_weight(losses, lam) - 0.5))] for lam in lams]
    np.testing.assert_allclose(half[rule], half["welsch"], atol=0.02)


def test_absurd_values_leave_finite_losses():
    X, y, _ = table(2)
    X[0] = 1e6
    model = SelfPacedLogisticRegression().fit(X, y)
    assert np.isfinite(model.sample_loss_).all()
    assert model.score(X[1:], y[1:]) > 0.6
