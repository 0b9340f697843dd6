"""Folds side by side and dealt several times, coarse tables, and how stable suspects are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import rosen, rosen_der

from selfpaced import SelfPacedLogisticRegression, label_issues, suspects
from selfpaced.datasets import flip_symmetric
from selfpaced.engines import MemoryTable
from selfpaced.linear.folds import draw, lay_out
from selfpaced.linear.minimize import Metric, minimize, minimize_all
from selfpaced.linear.objective import Latent
from selfpaced.linear.stack import Stack
from selfpaced.regularizers import get


def passengers(noise):
    """2,201 rows of three coarse columns, as of a ship's passengers, and labels wrong at random."""
    rng = np.random.default_rng(0)
    rank, male = rng.choice(4, 2201, p=(0.15, 0.13, 0.32, 0.4)), rng.random(2201) < 0.79
    chance = np.where(male, np.array([0.34, 0.14, 0.17, 0.22])[rank], np.array([0.97, 0.88, 0.46, 0.87])[rank])
    y = (rng.random(2201) < chance).astype(int)
    return np.column_stack([np.eye(4)[rank], male]), *flip_symmetric(y, noise, random_state=1)


def folds_of(X, y, n_classes=2, weight=None, deals=1, rows=1):
    table = MemoryTable(X, y, weight)
    return lay_out(table, draw(table, n_classes, seed=0), n_classes, deals, rows)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("latent", [Latent(), Latent(get("welsch"), 1.0), Latent(get("cauchy"), np.array([1.0, 2, 3]))])
def test_folds_side_by_side_are_the_folds_one_by_one(n_classes, form, latent):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, n_classes, 60)
    weight = rng.integers(1, 4, 60).astype(float)
    layout = folds_of(form(X), y, n_classes, weight)
    outside = np.stack([layout.outside(k) for k in range(5)])
    stack = Stack(layout.X, layout.codes, n_classes, outside, 0.1, True, latent)
    size = (1 if n_classes == 2 else n_classes) * 5
    points, which = rng.standard_normal((3, size)), np.array([4, 0, 2])
    values, grads = stack(points, which)
    for point, fold, value, grad in zip(points, which, values, grads, strict=True):
        expected, slope = layout.training(fold, ridge=0.1).at(latent)(point)
        assert value == pytest.approx(expected)
        np.testing.assert_allclose(grad, slope, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("latent", [Latent(), Latent(get("welsch"), 1.0), Latent(get("welsch"), np.array([1.0, 2, 3]))])
def test_folds_of_many_rows_are_those_of_double_precision_but_for_rounding(n_classes, latent):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 4)), rng.integers(0, n_classes, 3000)
    X[0] *= 100  # a row so far out that single precision has no exponential of its score
    layout = folds_of(X, y, n_classes)
    outside = np.stack([layout.outside(k) for k in range(5)])
    stack = Stack(layout.X, layout.codes, n_classes, outside, 0.1, True, latent)
    points = rng.standard_normal((5, (1 if n_classes == 2 else n_classes) * 5))
    values, grads = stack(points, np.arange(5))
    for fold, (point, value, grad) in enumerate(zip(points, values, grads, strict=True)):
        expected, slope = layout.training(fold, ridge=0.1).at(latent)(point)
        assert value == pytest.approx(expected, rel=1e-7)
        np.testing.assert_allclose(grad, slope, atol=1e-6)
        assert np.abs(grad - slope).max() > 0  # it is single precision


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


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_every_deal_holds_every_row_out_once(form):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 3)), rng.integers(0, 2, 120)
    layout = folds_of(form(X), y, deals=3)
    assert len(layout.deals) == 3
    for folds in layout.deals:
        assert np.bincount(folds).tolist() == [24] * 5
        assert not np.array_equal(folds, layout.fold) or folds is layout.fold
    params = [np.array([k, 0.0, 0.0, 100.0 * k]) for k in range(15)]
    scores = layout.held_out_scores(params)
    held = layout.held_out(np.arange(120))
    first = np.asarray(layout.X[held][:, [0]].todense() if sparse.issparse(layout.X) else layout.X[held][:, [0]])
    for turn, folds in enumerate(layout.deals):
        k = (5 * turn + folds[held])[:, None]
        np.testing.assert_allclose(scores[turn], k * first + 100.0 * k)


def test_copies_in_a_coarse_table_are_spread_over_the_folds():
    X, y, _ = passengers(0.2)
    layout = folds_of(X, y)
    weight = layout.sample_weight
    assert weight.sum() == 2201
    assert layout.n < 100
    sizes = [weight[layout.rows(k)].sum() for k in range(5)]
    assert max(sizes) - min(sizes) <= 2
    _, cells, counts = np.unique(layout.X, axis=0, return_inverse=True, return_counts=True)
    cells = cells.ravel()
    np.testing.assert_array_equal(layout.copies, np.bincount(cells, weight)[cells])
    assert counts.max() == 10  # two labels in five folds


def test_a_coarse_table_in_counts_is_the_same_table():
    X, y, _ = passengers(0.2)
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    full = SelfPacedLogisticRegression().fit(X, y)
    short = SelfPacedLogisticRegression().fit(rows[:, :-1], rows[:, -1].astype(int), sample_weight=counts)
    np.testing.assert_allclose(short.predict_proba(rows[:, :-1]), full.predict_proba(rows[:, :-1]), atol=1e-3)
    assert short.noise_rate_ == pytest.approx(full.noise_rate_, abs=1e-3)


def test_rows_that_are_weighted_alike_are_not_a_coarse_table():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.integers(0, 2, 60)
    for folds in (
        folds_of(X, y, weight=np.full(60, 10.0)),
        folds_of(np.repeat(X, 10, 0), np.repeat(y, 10)),
    ):
        assert folds.n == 60  # no copy vouches for its own label


def test_a_coarse_table_says_the_same_whichever_way_folds_are_dealt():
    X, y, flipped = passengers(0.2)
    models = [SelfPacedLogisticRegression(random_state=seed).fit(X, y) for seed in range(3)]
    for model in models:
        table = suspects(model)
        assert model.noise_rate_interval_[0] == 0.0
        assert not (table["noise_probability"] >= 0.5).any()  # wrong labels, or mixed cells: nothing tells which
        assert flipped[table["row"][:200]].mean() > 2 * flipped.mean()
        assert model.noise_rate_ == pytest.approx(models[0].noise_rate_, abs=0.01)


def test_suspects_say_how_stable_they_are():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 3))
    y, _ = flip_symmetric((X[:, 0] + 0.3 * rng.standard_normal(400) > 0).astype(int), 0.15, random_state=0)
    model = SelfPacedLogisticRegression().fit(X, y)
    table = suspects(model)
    assert table["stability"].between(0, 1).all()
    found = table["noise_probability"] > 0.5
    assert table["stability"][found].mean() > 0.9 > 0.1 > table["stability"][~found].mean()
    assert table["stability"].between(0.01, 0.99).any()
    np.testing.assert_array_equal(label_issues(model, X, y)["stability"][table["row"]], table["stability"])
    assert "stability" not in suspects(model, X[:50], y[:50])  # one model alone judges new rows


def test_rows_of_no_weight_have_no_stability():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 2))
    y, weight = (X[:, 0] > 0).astype(int), np.r_[np.zeros(5), np.ones(195)]
    stability = SelfPacedLogisticRegression().fit(X, y, sample_weight=weight).judgement_.stability
    assert np.isnan(stability[:5]).all()
    assert np.isfinite(stability[5:]).all()


def test_a_label_that_one_row_has_is_a_slip():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)) + 4 * (np.arange(300) % 2)[:, None]
    y = np.where(np.arange(300) % 2, "cat", "dog").astype(object)
    y[4] = "dgo"
    model = SelfPacedLogisticRegression().fit(X, y)
    worst = suspects(model, n=1)
    assert (worst["row"][0], worst["given"][0], worst["expected"][0]) == (4, "dgo", "dog")
    assert worst["noise_probability"][0] > 0.5
    again = model.judge(X[4:5], y[4:5])
    assert again.wrong[0] > 0.5
    few = SelfPacedLogisticRegression().fit(X[:12], y[:12])  # here every class is small
    assert few.judgement_.wrong[4] < 0.9


def three_wines():
    rng = np.random.default_rng(3)
    codes = np.arange(180) % 3
    X = rng.standard_normal((180, 4)) + 3 * np.eye(3, 4)[codes]
    noisy, _ = flip_symmetric(codes, 0.1, random_state=0)
    return X, np.array(["barbera", "barolo", "gamay"], dtype=object)[noisy]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_slip_changes_nothing_for_the_others(n_classes):
    X, y = three_wines()
    some = y != "gamay" if n_classes == 2 else np.ones(len(y), dtype=bool)
    X, y = X[some], y[some]
    others = np.arange(len(y)) != 7
    with_slip = y.copy()
    with_slip[7] = "Barolo "
    model = SelfPacedLogisticRegression().fit(X, with_slip)
    without = SelfPacedLogisticRegression().fit(X[others], y[others])
    assert model.noise_rate_ == without.noise_rate_ > 0.02
    assert model.noise_rate_interval_ == without.noise_rate_interval_
    assert model.termination_ == without.termination_
    learned = model.classes_ != "Barolo "
    np.testing.assert_allclose(model.predict_proba(X)[:, learned], without.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(model.judgement_.wrong[others], without.judgement_.wrong, atol=1e-12)
    np.testing.assert_allclose(model.sample_weight_[others], without.sample_weight_, atol=1e-12)
    assert "Barolo " not in set(model.predict(X))
    assert "Barolo " not in set(model.plain_.predict(X))
    assert model.judgement_.wrong[7] == 0.9
    assert model.judgement_.stability[7] == 1.0


def test_a_confirmed_label_of_one_row_is_a_class():
    X, y = three_wines()
    y[7] = "barolino"
    trusted = np.arange(len(y)) == 7
    model = SelfPacedLogisticRegression().fit(X, y, trusted=trusted)
    assert model.judgement_.wrong[7] == 0.0
    assert model.predict_proba(X)[7, list(model.classes_).index("barolino")] > 1e-6


def test_a_slip_is_set_aside_in_tables_of_blocks_too():
    X, y = three_wines()
    y[7] = "Barolo "
    classes, codes = np.unique(y, return_inverse=True)
    model = SelfPacedLogisticRegression().fit(X, y)
    blocks = SelfPacedLogisticRegression().fit(MemoryTable(X, codes, classes=classes, n_blocks=3))
    np.testing.assert_allclose(blocks.predict_proba(X), model.predict_proba(X), atol=1e-10)
    assert blocks.noise_rate_ == pytest.approx(model.noise_rate_, abs=1e-10)
    assert blocks.judge(X[7:8], y[7:8]).wrong[0] == 0.9


@pytest.mark.parametrize(("n", "deals", "validated", "alone"), [
    (300, 8, 5, False), (1500, 6, 5, False), (4000, 2, 5, False), (9000, 1, 5, False), (12_000, 1, 5, True),
])  # fmt: skip
def test_the_fewer_rows_the_more_deals(n, deals, validated, alone):
    rng = np.random.default_rng(0)
    layout = folds_of(rng.standard_normal((n, 3)), rng.integers(0, 2, n), deals=8)
    assert (len(layout.deals), layout.n_validated, layout.alone) == (deals, validated, alone)


def test_wide_tables_of_many_rows_hold_out_fewer_folds():
    rng = np.random.default_rng(0)
    layout = folds_of(rng.standard_normal((10_500, 40)), rng.integers(0, 2, 10_500), deals=8)
    assert (layout.n_validated, layout.alone) == (2, True)


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_suspects_hardly_depend_on_the_deal(noise):
    """Weak classes beside a column that bends: the count of suspects once went from none to a third of the rows."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1300, 6))
    y = (rng.random(1300) < 1 / (1 + np.exp(-2.5 * (X[:, 0] + 0.5 * X[:, 1])))).astype(int)
    given = flip_symmetric(y, noise, random_state=1)[0] if noise else y
    counts = [
        label_issues(SelfPacedLogisticRegression(random_state=seed).fit(X, given), X, given)["is_label_issue"].sum()
        for seed in range(5)
    ]
    assert max(counts) - min(counts) <= 0.1 * max(counts) + 5


def overlapping(noise):
    """1,300 rows whose classes overlap so far that noise is hardly told from it."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((1300, 5))
    y = (rng.random(1300) < 1 / (1 + np.exp(-1.5 * X[:, 0]))).astype(int)
    return X, flip_symmetric(y, noise, random_state=1)[0]


@pytest.mark.parametrize(("weak", "rounds"), [(True, 2), (False, 1)])
def test_rows_are_dealt_more_often_where_suspects_hang_on_it(weak, rounds, caplog):
    X, y = overlapping(0.1)
    if not weak:
        y = flip_symmetric((X[:, 0] > 0).astype(int), 0.1, random_state=1)[0]
    with caplog.at_level("DEBUG", logger="selfpaced"):
        SelfPacedLogisticRegression().fit(X, y)
    assert sum("second witness" in line for line in caplog.messages) == rounds


def test_further_deals_begin_with_the_first_ones():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1300, 3)), rng.integers(0, 2, 1300)
    few, many = folds_of(X, y, deals=8), folds_of(X, y, deals=64, rows=16)
    assert (len(few.deals), len(many.deals)) == (7, 64)
    for one, same in zip(few.deals, many.deals, strict=False):
        np.testing.assert_array_equal(one, same)


def test_suspects_among_many_rows_have_a_stability_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((25_000, 4))
    y, wrong = flip_symmetric((X[:, 0] + 0.3 * rng.standard_normal(25_000) > 0).astype(int), 0.1, random_state=1)
    stability = SelfPacedLogisticRegression().fit(X, y).judgement_.stability
    assert stability[wrong].mean() > 0.5 > 0.1 > stability[~wrong].mean()
