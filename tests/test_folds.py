"""Folds: every row is held out once, classes are spread, groups stay together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

from selfpaced.folds import make_folds


def coverage(folds: Any, n: int) -> np.ndarray:
    count = np.zeros(n, dtype=int)
    for train, test in folds:
        assert not set(train) & set(test)
        count[test] += 1
    return count


def test_folds_are_stratified_and_test_every_row_once() -> None:
    codes = np.repeat([0, 1, 2], [60, 30, 10])
    folds = make_folds(100, codes, cv=5, random_state=0)
    assert (coverage(folds, 100) == 1).all()
    for _, test in folds:
        np.testing.assert_array_equal(np.bincount(codes[test]), [12, 6, 2])


def test_the_only_row_of_a_class_is_always_trained_on() -> None:
    codes = np.r_[np.zeros(9, int), np.ones(10, int), 2]
    folds = make_folds(20, codes, cv=2, random_state=0)
    assert coverage(folds, 20)[-1] == 0
    assert all(19 in train for train, _ in folds)


def test_groups_stay_together_and_classes_are_spread() -> None:
    rng = np.random.default_rng(0)
    groups, codes = rng.integers(0, 20, 300), rng.integers(0, 2, 300)
    folds = make_folds(300, codes, cv=4, groups=groups, random_state=0)
    assert len(folds) == 4
    assert (coverage(folds, 300) == 1).all()
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
        assert 0.15 < len(test) / 300 < 0.35


def test_one_group_cannot_be_split() -> None:
    with pytest.raises(ValueError, match="at least 2 distinct"):
        make_folds(10, None, cv=2, groups=np.zeros(10))


def test_splitters_are_used_as_they_are() -> None:
    X, groups = np.zeros((12, 1)), np.repeat([0, 1, 2], 4)
    np.testing.assert_array_equal(make_folds(12, None, cv=KFold(3), X=X)[0][1], np.arange(4))
    assert len(make_folds(12, None, cv=GroupKFold(3), groups=groups, X=X)) == 3
    with pytest.raises(ValueError, match="every row exactly once"):
        make_folds(12, None, cv=ShuffleSplit(2, random_state=0), X=X)
    with pytest.raises(ValueError, match="cv must be an integer >= 2"):
        make_folds(12, None, cv=1)
