"""Folds by content: copies, coarse tables, rare labels, repetitions, and how stable suspects are."""

from __future__ import annotations

import numpy as np
import pytest

from selfpaced import SelfPacedLogisticRegression, label_issues, suspects
from selfpaced.datasets import flip_symmetric


def passengers(noise):
    """2,201 rows of three coarse columns, as of a ship's passengers, and labels wrong at random."""
    rng = np.random.default_rng(0)
    rank, male = rng.choice(4, 2201, p=(0.15, 0.13, 0.32, 0.4)), rng.random(2201) < 0.79
    chance = np.where(male, np.array([0.34, 0.14, 0.17, 0.22])[rank], np.array([0.97, 0.88, 0.46, 0.87])[rank])
    y = (rng.random(2201) < chance).astype(int)
    return np.column_stack([np.eye(4)[rank], male]), *flip_symmetric(y, noise, random_state=1)


def jaccard(one, other):
    return len(one & other) / max(len(one | other), 1)


# ------------------------------------------------------------------------------------------- coarse tables


def test_a_coarse_table_in_counts_is_the_same_table():
    X, y, _ = passengers(0.2)
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    full = SelfPacedLogisticRegression().fit(X, y)
    short = SelfPacedLogisticRegression().fit(rows[:, :-1], rows[:, -1].astype(int), sample_weight=counts)
    np.testing.assert_allclose(short.predict_proba(rows[:, :-1]), full.predict_proba(rows[:, :-1]), atol=1e-3)
    np.testing.assert_allclose(short.noise_rate_interval_, full.noise_rate_interval_, atol=1e-3)
    assert short.noise_rate_if_any_ == pytest.approx(full.noise_rate_if_any_, abs=1e-3)


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


@pytest.mark.parametrize(("n", "seed"), [(300, 2), (1500, 0), (1500, 3)])
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
def test_the_number_of_listed_rows_hardly_depends_on_the_split(noise):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1300, 6))
    y = (rng.random(1300) < 1 / (1 + np.exp(-2.5 * (X[:, 0] + 0.5 * X[:, 1])))).astype(int)
    given = flip_symmetric(y, noise, random_state=1)[0] if noise else y
    counts = [
        int((SelfPacedLogisticRegression(random_state=seed).fit(X, given).assessment_.levels() > 0).sum())
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
def test_a_label_of_one_or_two_rows_is_a_class_and_changes_little_else(n_rare):
    X, y = three_wines()
    y[7 : 7 + n_rare] = "Barolo "
    model = SelfPacedLogisticRegression().fit(X, y)
    assert "Barolo " in set(model.classes_)
    others = np.arange(180) >= 7 + n_rare
    without = SelfPacedLogisticRegression().fit(X[others], y[others])
    assert np.mean(model.predict(X[others]) == without.predict(X[others])) > 0.97
    low, high = model.noise_rate_interval_
    assert low < without.noise_rate_if_any_ < high


def test_a_confirmed_label_of_one_row_is_no_suspect():
    X, y = three_wines()
    y[7] = "barolino"
    model = SelfPacedLogisticRegression().fit(X, y, trusted=np.arange(len(y)) == 7)
    assert model.assessment_.wrong[7] == 0.0
    assert 7 not in suspects(model)["row"].tolist()
    assert model.predict_proba(X)[7, list(model.classes_).index("barolino")] > 0


@pytest.mark.parametrize("tiny", [(1, 2, 1), (2, 2), (6,)])
def test_tiny_classes_do_not_hide_wrong_labels_between_large_ones(tiny):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 600)
    X = rng.standard_normal((600, 5))
    X[:, :3] += 2.5 * np.eye(3)[y]
    given, wrong = flip_symmetric(y, 0.06, random_state=2)
    given[: sum(tiny)] = np.repeat(3 + np.arange(len(tiny)), tiny)
    model = SelfPacedLogisticRegression().fit(X, given)
    likely = model.assessment_.levels() == 2
    assert likely.sum() > 15
    assert wrong[likely].mean() > 0.8
    assert not likely[: sum(tiny)].any()  # too few rows to be assessed
    assert 0.02 < model.noise_rate_ < 0.1
