"""Folds: every row is held out once, with its copies; classes are spread, groups stay together, order is nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

from selfpaced.fingerprint import hash_folds, row_keys
from selfpaced.folds import make_folds, n_units


def some_keys(n: int, seed: int = 0) -> np.ndarray:
    return row_keys(np.random.default_rng(seed).standard_normal((n, 2)))


def fold_of(folds: Any, n: int) -> np.ndarray:
    fold = np.full(n, -1)
    for k, (_, test) in enumerate(folds):
        fold[test] = k
    return fold


def coverage(folds: Any, n: int) -> np.ndarray:
    count = np.zeros(n, dtype=int)
    for train, test in folds:
        assert not set(train) & set(test)
        count[test] += 1
    return count


def test_folds_are_stratified_and_test_every_row_once() -> None:
    codes = np.repeat([0, 1, 2], [60, 30, 10])
    folds = make_folds(some_keys(100), codes, cv=5, random_state=0)
    assert (coverage(folds, 100) == 1).all()
    for _, test in folds:
        np.testing.assert_array_equal(np.bincount(codes[test]), [12, 6, 2])


def test_the_only_row_of_a_class_is_always_trained_on() -> None:
    codes = np.r_[np.zeros(9, int), np.ones(10, int), 2]
    folds = make_folds(some_keys(20), codes, cv=2, random_state=0)
    assert coverage(folds, 20)[-1] == 0
    assert all(19 in train for train, _ in folds)


def test_groups_stay_together_and_classes_are_spread() -> None:
    rng = np.random.default_rng(0)
    groups, codes = rng.integers(0, 20, 300), rng.integers(0, 2, 300)
    folds = make_folds(some_keys(300), codes, cv=4, groups=groups, random_state=0)
    assert len(folds) == 4
    assert (coverage(folds, 300) == 1).all()
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
        assert 0.15 < len(test) / 300 < 0.35


def test_one_group_cannot_be_split() -> None:
    with pytest.raises(ValueError, match="at least 2 distinct"):
        make_folds(some_keys(10), None, cv=2, groups=np.zeros(10))


def test_splitters_are_used_as_they_are() -> None:
    X, groups = np.zeros((12, 1)), np.repeat([0, 1, 2], 4)
    np.testing.assert_array_equal(make_folds(some_keys(12), None, cv=KFold(3), X=X)[0][1], np.arange(4))
    assert len(make_folds(some_keys(12), None, cv=GroupKFold(3), groups=groups, X=X)) == 3
    with pytest.raises(ValueError, match="every row exactly once"):
        make_folds(some_keys(12), None, cv=ShuffleSplit(2, random_state=0), X=X)
    with pytest.raises(ValueError, match="cv must be an integer >= 2"):
        make_folds(some_keys(12), None, cv=1)


def test_the_order_of_rows_does_not_matter_and_the_seed_does() -> None:
    keys, codes = some_keys(90), np.arange(90) % 3
    order = np.random.default_rng(1).permutation(90)
    one = make_folds(keys, codes, cv=4, random_state=0)
    other = make_folds(keys[order], codes[order], cv=4, random_state=0)
    for (train, test), (moved, held) in zip(one, other, strict=True):
        np.testing.assert_array_equal(train, order[moved])  # in the same order, too
        np.testing.assert_array_equal(test, order[held])
    assert (fold_of(one, 90) != fold_of(make_folds(keys, codes, cv=4, random_state=1), 90)).any()


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("stratified", [False, True])
def test_copies_share_the_fold_of_the_row_and_change_no_other(stratified: bool, grouped: bool) -> None:
    rng = np.random.default_rng(2)
    keys, codes, groups = some_keys(60), rng.integers(0, 3, 60), rng.integers(0, 12, 60)
    repeated = rng.permutation(np.repeat(np.arange(60), rng.integers(1, 5, 60)))

    def split(rows: np.ndarray) -> np.ndarray:
        strata = codes[rows] if stratified else None
        folds = make_folds(keys[rows], strata, cv=3, random_state=0, groups=groups[rows] if grouped else None)
        return fold_of(folds, len(rows))

    np.testing.assert_array_equal(split(repeated), split(np.arange(60))[repeated])


def test_a_class_of_one_row_and_its_copies_is_always_trained_on() -> None:
    rows = np.r_[np.arange(20), 19, 19]
    folds = make_folds(some_keys(20)[rows], np.where(rows == 19, 1, 0), cv=2, random_state=0)
    assert coverage(folds, 22).tolist() == [1] * 19 + [0] * 3


def test_a_table_of_few_distinct_rows_is_split_row_by_row() -> None:
    rng = np.random.default_rng(3)
    table, y = rng.integers(0, 3, (300, 1)), rng.integers(0, 2, 300)
    keys = row_keys(table)
    assert n_units(keys) == 300
    assert n_units(row_keys(rng.integers(0, 9, (300, 4)))) < 300
    folds = make_folds(keys, y, cv=5, random_state=0, y=y)
    for train, test in folds:
        assert set(table[train, 0]) == set(table[test, 0]) == {0, 1, 2}
    order = rng.permutation(300)
    moved = make_folds(keys[order], y[order], cv=5, random_state=0, y=y[order])
    for (_, test), (_, held) in zip(folds, moved, strict=True):  # equal rows are exchanged at most
        np.testing.assert_array_equal(np.c_[table, y][test], np.c_[table, y][order][held])


def test_a_hashed_fold_depends_on_the_row_alone() -> None:
    keys = some_keys(5000)
    fold = hash_folds(keys)
    kept = np.random.default_rng(1).permutation(5000)[:3000]
    np.testing.assert_array_equal(hash_folds(keys[kept]), fold[kept])
    assert np.all(np.abs(np.bincount(fold, minlength=5) - 1000) < 5 * np.sqrt(800))
    assert 0.15 < np.mean(hash_folds(keys, repetition=1) == fold) < 0.25
    assert set(hash_folds(keys, 3)) == {0, 1, 2}
