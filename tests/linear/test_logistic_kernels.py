"""The numerical parts of logistic regression: loss, minimiser, batched fold fits, candidates."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime, rosen, rosen_der

from selfpaced.engines import MemoryTable
from selfpaced.linear import _loss, _paper
from selfpaced.linear._candidates import HALF_LOSSES, _blend, paces
from selfpaced.linear._fold_fits import FoldFits, FoldModel, Spec, _Batch
from selfpaced.linear._folds import draw, lay_out
from selfpaced.linear._lbfgs import Metric, minimize, minimize_all
from selfpaced.linear._loss import Latent, Objective, _power, loss_of_scores
from selfpaced.linear._misfit import bends
from selfpaced.linear._paper import LogisticProblem, decide
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
    monkeypatch.setattr(_loss, "BLOCK_BYTES", 4096)
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


def test_several_minima_are_found_as_each_alone():
    def at_once(points, which):
        return np.array([rosen(p - k) for p, k in zip(points, which, strict=True)]), np.array(
            [rosen_der(p - k) for p, k in zip(points, which, strict=True)]
        )

    metric = Metric(lambda g: g, curvature=False)
    starts = np.random.default_rng(0).standard_normal((3, 4))
    found = minimize_all(at_once, starts, metric=metric, max_iter=500, tol=1e-8)
    assert len({one.n_iter for one in found}) > 1  # each ends when it is done
    for k, (one, start) in enumerate(zip(found, starts, strict=True)):
        alone = minimize(lambda x, k=k: (rosen(x - k), rosen_der(x - k)), start, metric=metric, max_iter=500, tol=1e-8)
        assert one.converged
        np.testing.assert_allclose(one.x, 1.0 + k, atol=1e-6)
        assert (one.n_iter, one.n_evaluations) == (alone.n_iter, alone.n_evaluations)


def fold_fits(X, y, n_classes, weight=None, fit_intercept=True):
    table = MemoryTable(X, y, weight)
    rows = lay_out(table, draw(table, n_classes, seed=0), n_classes, repeat=False)
    return FoldFits(rows, float(rows.training_weight.max(axis=0).sum()), fit_intercept)


def outside(fits, fold, C, latent):
    """The objective outside one fold, in double precision and in the parameters themselves."""
    rows = fits.rows
    weight = rows.training_weight[fold]
    own = Objective([rows.X], rows.codes, rows.n_classes, sample_weight=weight, fit_intercept=fits.fit_intercept)
    return own.penalised(fits.ridge(C)).at(latent)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("latent", [Latent(), Latent(get("welsch"), 1.0), Latent(get("cauchy"), np.array([1.0, 2, 3]))])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_batch_of_fold_fits_has_the_losses_of_each_alone(n_classes, form, latent, fit_intercept):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)) + np.arange(4), rng.integers(0, n_classes, 60)
    fits = fold_fits(form(X), y, n_classes, rng.integers(1, 4, 60).astype(float), fit_intercept)
    candidates = [Spec(Latent(), 1.0), Spec(latent, 0.3)]
    batch, which = _Batch(fits, candidates), np.array([0, 4, 5, 7])
    points = rng.standard_normal((4, fits.n_outputs * 5))
    values, gradients = batch(points, which)
    jacobian = fits.coordinates.outward(np.eye(5))  # parameters are linear in the points
    for k, point, value, gradient in zip(which, points, values, gradients, strict=True):
        params = fits.coordinates.outward(point.reshape(-1, 5))
        own = outside(fits, k % 5, candidates[k // 5].C, candidates[k // 5].latent)
        expected, slope = own(params.ravel())
        assert value == pytest.approx(expected, rel=1e-5)
        np.testing.assert_allclose(gradient.reshape(-1, 5), slope.reshape(-1, 5) @ jacobian.T, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_far_out_does_no_harm_to_a_batch(n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 4)), rng.integers(0, n_classes, 3000)
    X[0] *= 1e4  # single precision has no exponential of its score
    fits = fold_fits(X, y, n_classes)
    points = 30 * rng.standard_normal((5, fits.n_outputs * 5))
    for found in _Batch(fits, [Spec(Latent(), 1.0)])(points, np.arange(5)):
        assert np.isfinite(found).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("latent", [Latent(), Latent(get("welsch"), 1.5)])
def test_fold_fits_are_the_minima_outside_each_fold(n_classes, latent):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) * [1.0, 100.0, 0.01] + [0.0, 50.0, 0.0]
    scores = X / [1.0, 100.0, 0.01] @ rng.standard_normal((3, n_classes)) + rng.gumbel(size=(300, n_classes))
    fits = fold_fits(X, scores.argmax(axis=1), n_classes)
    model = fits.fit([Spec(latent, 1e6)], 200)[0]
    for fold, params in enumerate(model.params):
        own = outside(fits, fold, 1e6, latent)
        best = minimize(own, params, metric=own.standardized(), max_iter=500, tol=1e-8)
        assert own(params)[0] - best.value < 1e-4
        held = fits.rows.folds[0][fits.rows.held] == fold
        np.testing.assert_allclose(model.scores[held], own.scores(params)[fits.rows.held][held], rtol=1e-3, atol=1e-3)


def test_a_weighted_fit_that_is_interrupted_leaves_the_weights_alone(monkeypatch):
    rng = np.random.default_rng(0)
    weight = rng.random(50) + 0.5
    objective = Objective([rng.standard_normal((50, 3))], np.arange(50) % 2, 2, sample_weight=weight)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(_paper, "minimize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        LogisticProblem(objective, Metric(lambda g: g.copy(), curvature=False), 1e-4, 50).fit(np.zeros(50), None)
    assert objective.sample_weight is weight


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
        FoldModel(Latent(get("welsch"), lam), 1.0, np.array([[size, 0.0]]), size * np.array([[[1.0], [-1.0], [1.0]]]))
        for lam, size in ((np.inf, 9.0), (1.0, 1.0), (2.0, 3.0))
    ]
    mixed = _blend(models, 1, np.array([0.2, 0.5, 0.3]))
    np.testing.assert_allclose(mixed.params[0], [1.0, 0.0])
    np.testing.assert_allclose(mixed.scores, models[1].scores)
    assert mixed.latent is models[1].latent


def test_features_of_the_reference_model_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((900, 2)), np.exp(rng.standard_normal((900, 2)))])
    order = rng.permutation(900)
    np.testing.assert_allclose(bends(X[order], None), bends(X, None)[order], atol=1e-3)


def test_ranks_of_a_skewed_column_are_those_of_its_logarithm():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((4000, 1))
    skewed, even = bends(np.exp(2 * Z), None), bends(Z, None)
    assert skewed.shape[1] == even.shape[1] + 1
    assert np.corrcoef(skewed[:, 2], Z[:, 0])[0, 1] > 0.99
