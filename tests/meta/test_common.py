"""Folds, seeds, the in-sample decision, user weights, progress."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selfpaced.meta.common import Progress, check_weight, decide_cross_fit, make_folds, seeded
from selfpaced.meta.routing import WeightRoute


def coverage(folds: Any, n: int) -> np.ndarray:
    count = np.zeros(n, dtype=int)
    for train, test in folds:
        assert not set(train) & set(test)
        count[test] += 1
    return count


def test_folds_are_stratified_and_test_every_row_once() -> None:
    codes = np.repeat([0, 1, 2], [60, 30, 10])
    folds = make_folds(np.zeros((100, 1)), codes, cv=5, random_state=0)
    assert (coverage(folds, 100) == 1).all()
    for _, test in folds:
        np.testing.assert_array_equal(np.bincount(codes[test]), [12, 6, 2])


def test_the_only_row_of_a_class_is_always_trained_on() -> None:
    codes = np.r_[np.zeros(9, int), np.ones(10, int), 2]
    folds = make_folds(np.zeros((20, 1)), codes, cv=2, random_state=0)
    assert coverage(folds, 20)[-1] == 0
    assert all(19 in train for train, _ in folds)


def test_groups_stay_together_and_classes_are_spread() -> None:
    rng = np.random.default_rng(0)
    groups, codes = rng.integers(0, 20, 300), rng.integers(0, 2, 300)
    folds = make_folds(np.zeros((300, 1)), codes, cv=4, groups=groups, random_state=0)
    assert len(folds) == 4
    assert (coverage(folds, 300) == 1).all()
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
        assert 0.15 < len(test) / 300 < 0.35


def test_one_group_cannot_be_split() -> None:
    with pytest.raises(ValueError, match="at least 2 distinct"):
        make_folds(np.zeros((10, 1)), None, cv=2, groups=np.zeros(10))


def test_splitters_are_used_as_they_are() -> None:
    X, groups = np.zeros((12, 1)), np.repeat([0, 1, 2], 4)
    np.testing.assert_array_equal(make_folds(X, None, cv=KFold(3))[0][1], np.arange(4))
    assert len(make_folds(X, None, cv=GroupKFold(3), groups=groups)) == 3
    with pytest.raises(ValueError, match="every row exactly once"):
        make_folds(X, None, cv=ShuffleSplit(2, random_state=0))
    with pytest.raises(ValueError, match="cv must be an integer >= 2"):
        make_folds(X, None, cv=1)


def test_seeds_are_set_only_where_unset_and_asked_for() -> None:
    pipe = make_pipeline(StandardScaler(), RandomForestClassifier())
    assert seeded(pipe, None)[-1].random_state is None
    assert seeded(pipe, 0)[-1].random_state == seeded(pipe, 0)[-1].random_state
    assert isinstance(seeded(pipe, 0)[-1].random_state, int)
    assert pipe[-1].random_state is None
    assert seeded(RandomForestClassifier(random_state=5), 0).random_state == 5


def test_the_gap_between_seen_and_unseen_rows_decides() -> None:
    rng = np.random.default_rng(0)
    unseen = (rng.random(500) < 0.3).astype(float)
    assert decide_cross_fit("auto", np.zeros(500), unseen, unit="error")[0]
    cross, why = decide_cross_fit("auto", unseen, unseen, unit="error")
    assert not cross
    assert "in-sample" in why
    assert decide_cross_fit(True, unseen, unseen, unit="error")[0]
    assert not decide_cross_fit(False, np.zeros(500), unseen, unit="error")[0]
    with pytest.raises(ValueError, match="cross_fit must be"):
        decide_cross_fit("yes", unseen, unseen, unit="error")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones((3, 1)), "1D array"),
        (np.ones(4), "one entry per row"),
        ([1, -1, 1], "finite and >= 0"),
        ([1, np.nan, 1], "finite and >= 0"),
        ([0, 0, 0], "zero for every row"),
    ],
)
def test_bad_user_weights(weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_weight(weight, 3, WeightRoute("sample_weight", ""))


def test_user_weights_a_model_cannot_honour_are_an_error() -> None:
    rows = WeightRoute(None, "KNeighborsClassifier.fit takes no sample_weight")
    with pytest.raises(ValueError, match="takes no sample_weight, and weights are never dropped"):
        check_weight([0.5, 1.0, 1.0], 3, rows)
    assert check_weight(np.ones(3), 3, rows) is None
    np.testing.assert_array_equal(check_weight([0, 2, 1], 3, rows), [0.0, 2.0, 1.0])


def test_verbose_lines_reach_stderr_and_logging_is_restored(capsys: Any) -> None:
    class Owner:
        verbose = 1

    logger = logging.getLogger("selfpaced")
    before = (logger.level, list(logger.handlers))
    with Progress(Owner()).running() as progress, progress.stage("round 1"):
        pass
    assert "Owner: round 1" in capsys.readouterr().err
    assert (logger.level, list(logger.handlers)) == before
