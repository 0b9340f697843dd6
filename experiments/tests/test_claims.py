"""Outcomes follow from figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from selfpaced_experiments.claims import assess
from selfpaced_experiments.outcomes import Tally, compare
from selfpaced_experiments.results import Measure, Row, Score

UP, DOWN = Measure("x", True), Measure("x", False)


def _row(*by_seed):
    return Row("m", "paper", scores={"x": Score.of({seed: [value] for seed, value in enumerate(by_seed)})})


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ((2.0, 2.1, 1.9), (1.0, 1.1, 0.9), Tally(1, 0, 0)),
        ((1.0, 2.0, 3.0), (1.1, 1.9, 3.05), Tally(0, 1, 0)),
        ((1.0, 1.0, 1.0), (2.0, 2.1, 2.2), Tally(0, 0, 1)),
        ((1.0,), (1.0,), Tally(0, 1, 0)),
        ((1.1,), (1.0,), Tally(1, 0, 0)),
    ],
)
def test_compare_is_paired_by_seed(mine, theirs, expected):
    assert compare(_row(*mine), _row(*theirs), [UP]) == expected
    mirrored = Tally(expected.lost, expected.tied, expected.won)
    assert compare(_row(*mine), _row(*theirs), [DOWN]) == mirrored


def test_only_common_seeds_are_compared():
    mine = Row("m", "paper", scores={"x": Score.of({0: [1.0], 2: [5.0], 4: [6.0]})})
    theirs = Row("m", "paper", scores={"x": Score.of({1: [100.0], 2: [4.0], 4: [5.0]})})
    assert compare(mine, theirs, [UP]) == Tally(1, 0, 0)
    assert compare(mine, Row("m", "paper", scores={"x": Score.of({9: [1.0]})}), [UP]) == Tally()


def _outcomes(results):
    return {claim.key: claim.outcome for claim in assess(results).claims}


def test_outcomes_of_the_made_up_results(results):
    found = _outcomes(results)
    assert found["better-on-clean"] == "not confirmed"
    assert found["robust-to-noise"] == "confirmed"
    assert found["implicit-beats-hard"] == "confirmed"
    assert found["path-beats-half-quadratic"] == "under conditions"
    assert found["theory"] == "confirmed"


def test_outcomes_turn_with_the_figures(results):
    series = dict(results.figures[0].series)
    series["self-paced path"] = {"mean": (0.01, 0.01, 0.01), "std": (0.0, 0.0, 0.0)}
    better = replace(results, figures=(replace(results.figures[0], series=series),))
    assert _outcomes(better)["path-beats-half-quadratic"] == "confirmed"
    series["self-paced path"] = {"mean": (5.0, 5.0, 5.0), "std": (0.0, 0.0, 0.0)}
    worse = replace(results, figures=(replace(results.figures[0], series=series),))
    assert _outcomes(worse)["path-beats-half-quadratic"] == "not confirmed"


def test_what_was_not_measured_is_not_assessed(results):
    alone = replace(results, tables=(), figures=())
    assert set(_outcomes(alone)) == {"theory"}
