"""Folds by content: copies, coarse tables, rare labels, repetitions, and how stable suspects are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from selfpaced import SelfPacedLogisticRegression, label_issues, suspects
from selfpaced.datasets import flip_symmetric
from selfpaced.engines import MemoryTable
from selfpaced.linear import _folds
from selfpaced.linear._folds import N_FOLDS, draw, lay_out


def passengers(noise):
    """2,201 rows of three coarse columns, as of a ship's passengers, and labels wrong at random."""
    rng = np.random.default_rng(0)
    rank, male = rng.choice(4, 2201, p=(0.15, 0.13, 0.32, 0.4)), rng.random(2201) < 0.79
    chance = np.where(male, np.array([0.34, 0.14, 0.17, 0.22])[rank], np.array([0.97, 0.88, 0.46, 0.87])[rank])
    y = (rng.random(2201) < chance).astype(int)
    return np.column_stack([np.eye(4)[rank], male]), *flip_symmetric(y, noise, random_state=1)


def folds_of(X, y, n_classes=2, weight=None, seed=0):
    table = MemoryTable(X, y, weight)
    return lay_out(table, draw(table, n_classes, seed=seed), n_classes)


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def fold_by_row(folds):
    """Fold of each row in the first repetition, by its content."""
    return {tuple(row): fold for row, fold in zip(dense(folds.X), folds.folds[0], strict=True)}


def jaccard(one, other):
    return len(one & other) / max(len(one | other), 1)


# --------------------------------------------------------------------------------------------------- folds


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_equal_rows_share_a_fold_and_are_held_out_once_in_each_repetition(form):
    rng = np.random.default_rng(0)
    base = rng.standard_normal((150, 3))
    X = np.vstack([base, base[:50]])
    y = np.r_[rng.integers(0, 2, 150), rng.integers(0, 2, 50)]
    rows = folds_of(form(X), y)
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    assert rows.n_validated == N_FOLDS
    assert weight.sum() == 200
    assert len(rows.folds) > 1
    assert not np.array_equal(rows.folds[0], rows.folds[1])
    for repetition, folds in enumerate(rows.folds):
        training = rows.training_weight[repetition * N_FOLDS : (repetition + 1) * N_FOLDS]
        np.testing.assert_array_equal((training == 0).sum(axis=0), 1)
        for fold in range(N_FOLDS):
            inside = {tuple(row) for row in dense(rows.X)[folds == fold]}
            assert not inside & {tuple(row) for row in dense(rows.X)[training[fold] > 0]}
            np.testing.assert_allclose(training[fold], weight / weight.mean() * (folds != fold))


def test_held_out_scores_are_those_of_the_fit_outside_the_fold():
    rng = np.random.default_rng(0)
    rows = folds_of(rng.standard_normal((120, 3)), rng.integers(0, 2, 120))
    fits = np.arange(len(rows.training_weight))
    scores = rows.held_out(np.broadcast_to(fits[:, None, None], (len(fits), 1, rows.n)))
    for repetition, folds in enumerate(rows.folds):
        np.testing.assert_array_equal(scores[repetition][:, 0], N_FOLDS * repetition + folds[rows.held])
        assert not rows.training_weight[scores[repetition][:, 0], rows.held].any()


def test_a_row_keeps_its_fold_when_other_rows_are_deleted():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 3)), rng.integers(0, 2, 500)
    whole, part = fold_by_row(folds_of(X, y)), fold_by_row(folds_of(X[130:], y[130:]))
    assert len(part) == 370
    assert all(whole[row] == fold for row, fold in part.items())
    order = rng.permutation(500)
    assert fold_by_row(folds_of(X[order], y[order])) == whole
    assert fold_by_row(folds_of(X, y, seed=1)) != whole  # another seed, other folds


def test_a_sample_of_many_rows_is_one_of_their_content(monkeypatch):
    monkeypatch.setattr(_folds, "MANY", 100)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 1)), rng.integers(0, 2, 400)
    order = np.r_[rng.permutation(400), 7, 7]
    one, other = folds_of(X, y), folds_of(X[order], y[order])
    assert one.n == 100
    assert one.sampled
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.folds, other.folds)


def test_too_little_to_hold_out():
    assert folds_of(np.arange(8.0)[:, None], np.arange(8) % 2) is None
    assert folds_of(np.arange(40.0)[:, None], np.r_[np.zeros(39, int), 1]) is None


@pytest.mark.parametrize(("n", "d", "repetitions"), [(300, 3, 3), (8000, 3, 2), (9000, 10, 1), (12_000, 3, 2)])
def test_the_smaller_the_table_the_more_repetitions(n, d, repetitions):
    rng = np.random.default_rng(0)
    rows = folds_of(rng.standard_normal((n, d)), rng.integers(0, 2, n))
    assert len(rows.folds) == repetitions
    assert rows.sampled == (n > 10_000)


def test_wide_tables_of_many_rows_hold_out_fewer_folds():
    rng = np.random.default_rng(0)
    rows = folds_of(rng.standard_normal((10_500, 200)), rng.integers(0, 2, 10_500))
    assert rows.n_validated == 2
    assert len(rows.training_weight) == 2
    assert rows.n / 5 < len(rows.held) < rows.n / 2


# ------------------------------------------------------------------------------------------- coarse tables


def test_copies_in_a_coarse_table_are_spread_over_the_folds():
    X, y, _ = passengers(0.2)
    rows = folds_of(X, y)
    assert rows.coarse
    assert rows.weight.sum() == 2201
    assert rows.n < 100
    sizes = np.bincount(rows.folds[0], rows.weight)
    assert np.ptp(sizes) <= 2
    _, cells, counts = np.unique(rows.X, axis=0, return_inverse=True, return_counts=True)
    cells = cells.ravel()
    np.testing.assert_array_equal(rows.copies, np.bincount(cells, rows.weight)[cells])
    assert counts.max() == 10  # two labels in five folds


def test_a_coarse_table_in_counts_is_the_same_table():
    X, y, _ = passengers(0.2)
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    full = SelfPacedLogisticRegression().fit(X, y)
    short = SelfPacedLogisticRegression().fit(rows[:, :-1], rows[:, -1].astype(int), sample_weight=counts)
    np.testing.assert_allclose(short.predict_proba(rows[:, :-1]), full.predict_proba(rows[:, :-1]), atol=1e-3)
    np.testing.assert_allclose(short.noise_rate_interval_, full.noise_rate_interval_, atol=1e-3)
    assert short.noise_rate_if_any_ == pytest.approx(full.noise_rate_if_any_, abs=1e-3)


def test_rows_that_are_weighted_alike_are_not_a_coarse_table():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.integers(0, 2, 60)
    for rows in (
        folds_of(X, y, weight=np.full(60, 10.0)),
        folds_of(np.repeat(X, 10, 0), np.repeat(y, 10)),
    ):
        assert not rows.coarse
        assert rows.n == 60


def test_mixed_cells_of_a_coarse_table_are_worth_a_look_and_no_likely_errors():
    X, y, flipped = passengers(0.2)
    models = [SelfPacedLogisticRegression(random_state=seed).fit(X, y) for seed in range(3)]
    for model in models:
        table = suspects(model)
        assert model.noise_rate_interval_[0] == 0.0
        assert np.isnan(model.noise_rate_)
        assert set(table["level"]) == {"worth a look"}  # wrong labels, or mixed cells: nothing tells which
        assert flipped[table["row"][:200]].mean() > 2 * flipped.mean()
        assert model.noise_rate_if_any_ == pytest.approx(models[0].noise_rate_if_any_, abs=0.01)


# ---------------------------------------------------------------------------------------------- stability


def test_suspects_say_how_stable_they_are():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 3))
    y, _ = flip_symmetric((X[:, 0] + 0.3 * rng.standard_normal(400) > 0).astype(int), 0.15, random_state=0)
    model = SelfPacedLogisticRegression().fit(X, y)
    table = suspects(model, all_rows=True)
    assert table["stability"].between(0, 1).all()
    found = table["noise_probability"] > 0.5
    assert table["stability"][found].mean() > 0.9 > 0.1 > table["stability"][~found].mean()
    assert table["stability"].between(0.01, 0.99).any()
    np.testing.assert_array_equal(label_issues(model, X, y)["stability"][table["row"]], table["stability"])
    assert "stability" not in suspects(model, X[:50], y[:50])  # one model alone assesses new rows


def test_rows_of_no_weight_have_no_stability():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 2))
    y, weight = (X[:, 0] > 0).astype(int), np.r_[np.zeros(5), np.ones(195)]
    stability = SelfPacedLogisticRegression().fit(X, y, sample_weight=weight).assessment_.stability
    assert np.isnan(stability[:5]).all()
    assert np.isfinite(stability[5:]).all()


def test_suspects_among_many_rows_have_a_stability_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((25_000, 4))
    y, wrong = flip_symmetric((X[:, 0] + 0.3 * rng.standard_normal(25_000) > 0).astype(int), 0.1, random_state=1)
    stability = SelfPacedLogisticRegression().fit(X, y).assessment_.stability
    assert stability[wrong].mean() > 0.5 > 0.1 > stability[~wrong].mean()


def plain_noise(n, seed):
    """A linear border of some width, and a fifth of the labels wrong at random."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = (X @ [2.0, -1, 1, 0] + 0.5 * rng.standard_normal(n) > 0).astype(int)
    return X, *flip_symmetric(y, 0.2, random_state=1)


@pytest.mark.parametrize(("n", "seed"), [(300, 0), (300, 2), (1500, 0), (1500, 3)])
def test_likely_errors_hardly_depend_on_the_split_or_on_a_few_rows(n, seed):
    X, y, _ = plain_noise(n, seed)

    def likely(rows, seed):
        model = SelfPacedLogisticRegression(random_state=seed).fit(X[rows], y[rows])
        return set(rows[model.assessment_.levels() == 2].tolist())

    everything = np.arange(n)
    found = likely(everything, None)
    assert 0.1 * n < len(found) < 0.25 * n
    for seed in range(1, 5):
        assert jaccard(found, likely(everything, seed)) >= 0.8
        kept = np.flatnonzero(np.random.default_rng(seed).random(n) >= 0.03)
        assert jaccard(found & set(kept.tolist()), likely(kept, None)) >= 0.8


def test_a_worse_reference_model_does_not_hide_plain_noise():
    X, y, wrong = plain_noise(600, 1)
    for seed in range(5):
        likely = SelfPacedLogisticRegression(random_state=seed).fit(X, y).assessment_.levels() == 2
        assert wrong[likely].mean() > 0.8
        assert likely.sum() > 60


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_number_of_likely_errors_hardly_depends_on_the_split(noise):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1300, 6))
    y = (rng.random(1300) < 1 / (1 + np.exp(-2.5 * (X[:, 0] + 0.5 * X[:, 1])))).astype(int)
    given = flip_symmetric(y, noise, random_state=1)[0] if noise else y
    counts = [
        label_issues(SelfPacedLogisticRegression(random_state=seed).fit(X, given), X, given)["is_label_issue"].sum()
        for seed in range(5)
    ]
    assert max(counts) - min(counts) <= 0.1 * max(counts) + 5


# --------------------------------------------------------------------------------------------- rare labels


def three_wines():
    rng = np.random.default_rng(3)
    codes = np.arange(180) % 3
    X = rng.standard_normal((180, 4)) + 3 * np.eye(3, 4)[codes]
    noisy, _ = flip_symmetric(codes, 0.1, random_state=0)
    return X, np.array(["barbera", "barolo", "gamay"], dtype=object)[noisy]


@pytest.mark.parametrize("n_rare", [1, 2])
def test_a_label_of_one_or_two_rows_is_a_class_that_is_never_held_out(n_rare):
    X, y = three_wines()
    y[7 : 7 + n_rare] = "Barolo "
    model = SelfPacedLogisticRegression().fit(X, y)
    assert "Barolo " in set(model.classes_)
    others = np.arange(180) >= 7 + n_rare
    without = SelfPacedLogisticRegression().fit(X[others], y[others])
    assert np.mean(model.predict(X[others]) == without.predict(X[others])) > 0.97
    low, high = model.noise_rate_interval_
    assert low < without.noise_rate_if_any_ < high
    codes = np.unique(y, return_inverse=True)[1]
    rows = folds_of(X, codes, n_classes=4)
    assert n_rare == (rows.folds[0] == N_FOLDS).sum()
    np.testing.assert_array_equal(rows.training_weight[:, rows.folds[0] == N_FOLDS], 1.0)


def test_a_confirmed_label_of_one_row_is_no_suspect():
    X, y = three_wines()
    y[7] = "barolino"
    model = SelfPacedLogisticRegression().fit(X, y, trusted=np.arange(len(y)) == 7)
    assert model.assessment_.wrong[7] == 0.0
    assert 7 not in suspects(model)["row"].tolist()
    assert model.predict_proba(X)[7, list(model.classes_).index("barolino")] > 0
