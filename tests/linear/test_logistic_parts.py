"""The parts of the linear path: objective, minimiser, folds, decision."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime, rosen, rosen_der

from selfpaced import SelfPacedLogisticRegression
from selfpaced.engines import MemoryTable
from selfpaced.linear import folds as linear_folds
from selfpaced.linear.descent import FoldModel
from selfpaced.linear.folds import draw, lay_out
from selfpaced.linear.minimize import Metric, minimize
from selfpaced.linear.objective import Latent, Objective, _power, loss_of_scores
from selfpaced.linear.selection import CLEAN, HALF_LOSSES, blend, decide, paces
from selfpaced.regularizers import get
from selfpaced.selection import Trial, behind


def problem(k, seed=0, n=60, d=4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.integers(0, k, n), rng.random(n) + 0.1


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", [None, "welsch", "cauchy", "l1l2"])
@pytest.mark.parametrize("by_class", [False, True])
def test_gradient_is_that_of_the_value(k, name, by_class):
    X, y, weight = problem(k)
    objective = Objective([X[:25], X[25:]], y, k, sample_weight=weight, ridge=0.1)
    lam = np.linspace(0.7, 1.5, k) if by_class else 1.1
    objective = objective.at(Latent() if name is None else Latent(get(name), lam))
    x = np.random.default_rng(1).standard_normal(objective.size)
    value, grad = objective(x)
    np.testing.assert_allclose(grad, approx_fprime(x, lambda p: objective(p)[0], 1e-7), atol=1e-5)
    rows = objective.latent.of_loss(objective.losses(x), y)[0] if name else objective.losses(x)
    coef = x.reshape(objective.n_outputs, -1)[:, :-1]
    assert value == pytest.approx(np.average(rows, weights=weight) + 0.05 * np.sum(coef**2))


def test_blocks_change_nothing(monkeypatch):
    X, y, weight = problem(3, n=500)
    whole = Objective([X], y, 3, sample_weight=weight, ridge=0.1)
    x = np.random.default_rng(1).standard_normal(whole.size)
    expected = whole(x)
    monkeypatch.setattr("selfpaced.linear.objective.BLOCK_BYTES", 4096)
    assert len(list(whole.blocks())) > 3
    value, grad = whole(x)
    assert value == pytest.approx(expected[0])
    np.testing.assert_allclose(grad, expected[1])


def test_sparse_objective_equals_dense():
    X, y, _ = problem(2)
    dense, csr = Objective([X], y, 2, ridge=0.1), Objective([sparse.csr_matrix(X)], y, 2, ridge=0.1)
    x = np.random.default_rng(1).standard_normal(dense.size)
    np.testing.assert_allclose(dense(x)[1], csr(x)[1])
    np.testing.assert_allclose(dense.standardized().apply(x), Objective([X], y, 2, ridge=0.1).standardized().apply(x))


def test_curvature_is_the_inverse_hessian_of_the_plain_loss():
    X, y, weight = problem(2)
    objective = Objective([X], y, 2, sample_weight=weight, ridge=0.1)
    at = 0.3 * np.random.default_rng(1).standard_normal(objective.size)
    hessian = np.array([approx_fprime(at, lambda p, i=i: objective(p)[1][i], 1e-6) for i in range(objective.size)])
    probe = np.arange(1.0, objective.size + 1)
    np.testing.assert_allclose(hessian @ objective.curvature(at).apply(probe), probe, rtol=1e-3)


@pytest.mark.parametrize("exponent", [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 0.37])
def test_powers(exponent):
    p = np.linspace(0, 1, 50)
    np.testing.assert_allclose(_power(p, np.float64(exponent)), p**exponent)


def test_extreme_scores_have_finite_losses():
    losses = loss_of_scores(np.array([[800.0], [-800.0]]), np.array([0, 0]))
    np.testing.assert_allclose(losses, [800.0, 0.0])
    objective = Objective([np.array([[1e4], [-1e4]])], np.array([0, 1]), 2)
    for latent in (Latent(), Latent(get("welsch"), 1.0)):
        assert np.isfinite(objective.at(latent)(np.array([10.0, 0.0]))[1]).all()


def test_minimize_finds_a_hard_minimum():
    metric = Metric(lambda g: g.copy(), curvature=False)
    found = minimize(lambda x: (rosen(x), rosen_der(x)), np.full(4, -1.2), metric=metric, max_iter=500, tol=1e-8)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)
    assert found.converged
    short = minimize(lambda x: (rosen(x), rosen_der(x)), np.full(4, -1.2), metric=metric, max_iter=3, tol=1e-8)
    assert not short.converged
    assert short.value < rosen(np.full(4, -1.2))


def folds_of(X, y):
    table = MemoryTable(X, y)
    return lay_out(table, draw(table, 2, seed=0), 2)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_folds_are_stratified_and_keep_equal_rows_together(form):
    rng = np.random.default_rng(0)
    base = rng.standard_normal((150, 3))
    X = np.vstack([base, base[:50]])
    y = np.r_[rng.integers(0, 2, 150), rng.integers(0, 2, 50)]
    folds = folds_of(form(X), y)
    assert folds.n_validated == 5
    held = np.concatenate([np.arange(folds.n)[folds.rows(k)] for k in range(5)])
    assert len(np.unique(held)) == len(held)
    dense = folds.X.toarray() if sparse.issparse(folds.X) else folds.X
    weight = np.ones(folds.n) if folds.sample_weight is None else folds.sample_weight
    assert weight.sum() == 200
    for k in range(5):
        inside = {tuple(r) for r in dense[folds.rows(k)]}
        training = folds.training(k)
        rows = np.vstack([p.toarray() if sparse.issparse(p) else p for p in training.parts])
        used = np.ones(len(rows)) if training.sample_weight is None else training.sample_weight
        assert not inside & {tuple(r) for r in rows[used > 0]}
        assert training.total == pytest.approx(200 - weight[folds.rows(k)].sum())
        assert abs(folds.codes[folds.rows(k)].mean() - y.mean()) < 0.15


def test_of_many_rows_those_decide_whose_content_says_so(monkeypatch):
    monkeypatch.setattr(linear_folds, "MANY", 100)
    monkeypatch.setattr(linear_folds, "ENOUGH", 50)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 1)), rng.integers(0, 2, 400)
    order = np.r_[rng.permutation(400), 7, 7]
    one = folds_of(X, y)
    other = folds_of(X[order], y[order])
    assert one.n == 50
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.fold, other.fold)


def test_too_little_to_hold_out():
    X = np.arange(8.0)[:, None]
    assert folds_of(X, np.arange(8) % 2) is None
    X = np.arange(40.0)[:, None]
    assert folds_of(X, np.r_[np.zeros(39, int), 1]) is None


def evidence(*accuracies, n=2000, seed=0):
    """How far nested candidates are behind; their rows are right or wrong as those of similar models."""
    u = np.random.default_rng(seed).random(n)
    return behind([Trial(np.inf, f"{a}", (u < a).astype(float)) for a in accuracies])


def test_the_decision_follows_the_evidence():
    clear = evidence(0.70, 0.75, 0.75, 0.72)
    assert decide(clear, rho=0.05).index in (1, 2)
    assert decide(clear, rho=0.45).index == 1
    tie = evidence(0.70, 0.70, 0.70)
    assert decide(tie, rho=0.2).index == 0  # doubt favours the plain model
    assert decide(tie, rho=0.45).index == 1  # except under much noise
    assert decide(evidence(0.70, 0.6, 0.6), rho=0.45).index == 0
    wide = evidence(0.70, 0.749, 0.75)
    assert decide(wide, rho=0.1).index == 2  # little margin: the best
    assert decide(wide, rho=0.39).index == 1 if wide[1] <= 0.9 else 2
    assert decide(np.zeros(1), 0.3).index == 0
    assert 0 < CLEAN < 0.1


def test_paces_mean_the_same_for_every_rule():
    for name in ("welsch", "cauchy", "hard", "l1l2"):
        latents = paces(get(name), None)
        assert len(latents) == len(HALF_LOSSES)
        for latent, half in zip(latents.values(), HALF_LOSSES, strict=True):
            weight = latent.weight(np.array([0.99 * half, 1.01 * half]), np.zeros(2, int))
            assert weight[0] >= 0.5 >= weight[1]
    assert paces(get("logarithmic"), None)
    scaled = next(iter(paces(get("welsch"), np.array([1.0, 4.0])).values()))
    np.testing.assert_allclose(scaled.lam[1], 2 * scaled.lam[0])


def test_a_blend_is_an_average_at_equal_scale():
    models = [
        FoldModel(Latent(get("welsch"), lam), 1.0, [np.array([size, 0.0])], size * np.array([[[1.0], [-1.0], [1.0]]]))
        for lam, size in ((np.inf, 9.0), (1.0, 1.0), (2.0, 3.0))
    ]
    mixed = blend(models, 1, np.array([0.2, 0.5, 0.3]))
    np.testing.assert_allclose(mixed.params[0], [1.0, 0.0])
    np.testing.assert_allclose(mixed.scores, models[1].scores)
    assert mixed.latent is models[1].latent


def test_of_many_rows_suspects_are_as_sure_as_the_full_fit():
    """The channel is made of a fold's scores; those of the full fit are three times as large here."""
    rng, d, n = np.random.default_rng(0), 20, 200_000
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    coef, sizes = rng.standard_normal(d), np.geomspace(1, 0.1, d)
    spread = np.sqrt(((sizes[:, None] * rotation) ** 2).sum(axis=0) * 5 / 3)
    X = (rng.standard_t(5.0, (n, d)) * sizes) @ rotation / spread
    clean = 1 / (1 + np.exp(-X @ coef * 4 / 3))
    y = (rng.random(n) < clean) ^ (rng.random(n) < 0.2)
    given = np.where(y, clean, 1 - clean)
    known = 0.2 * (1 - given) / (0.2 * (1 - given) + 0.8 * given)  # by what the labels were drawn with
    model = SelfPacedLogisticRegression(random_state=1).fit(X, y)
    assert (model.judgement_.wrong >= 0.5).sum() == pytest.approx((known >= 0.5).sum(), rel=0.15)
