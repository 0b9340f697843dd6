"""The driver of the path, apart from any estimator; `alternate` has tests of its own."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from selfpaced import (
    SelfPacedClassifier,
    SelfPacedLinearRegression,
    SelfPacedLogisticRegression,
    SelfPacedMF,
    SelfPacedMultiViewKMeans,
    SelfPacedRegressor,
)
from selfpaced.pacing import Fixed, Geometric, Ladder, Span, Stages, half_loss
from selfpaced.parameters import check_pace
from selfpaced.regularizers import get
from selfpaced.solver import DeadEnd, State, walk


def known(stages):
    """Stages without their objectives: these are nan here, which from Python 3.13 on makes records differ."""
    return [replace(stage, objective=0.0) for stage in stages]


DATA = np.r_[np.linspace(-1, 1, 20), 30.0, 31.0]


def start(mean=1.0):
    return State(mean, (DATA - mean) ** 2)


def trimmed(lam, state):
    inside = state.losses < lam
    if not inside.any():
        raise DeadEnd(f"nothing is within {lam:.3g}")
    mean = float(DATA[inside].mean())
    return State(mean, (DATA - mean) ** 2, inner=1)


def test_stages_follow_the_pace_and_are_recorded():
    solution = walk(trimmed, "hard", Ladder((0.5, 1.0, 2.0)), start())
    assert [stage.lam for stage in solution.stages] == [0.5, 1.0, 2.0]
    assert all(stage.cost > 0 for stage in solution.stages)
    last = solution.stages[-1]
    assert last.mean_weight == pytest.approx(np.mean(solution.losses < 2.0))
    assert solution.weights.tolist() == (solution.losses < 2.0).astype(float).tolist()
    assert solution.status == "Stopped after 3 stages at lam = 2: the pace came to its end."


def test_a_stop_of_the_pacing_ends_the_walk():
    solution = walk(trimmed, "hard", Geometric(mu=1.5, lam=0.5, stop=Stages(2)), start())
    assert len(solution.stages) == 2
    assert "all 2 stages are done" in solution.status
    further = walk(trimmed, "hard", Geometric(mu=1.5, lam=0.5, stop=Stages(4)), start(), stop=Stages(3))
    assert len(further.stages) == 3


def test_a_solution_knows_what_ended_it():
    def ends(step=trimmed, **options):
        return walk(step, "hard", Ladder((0.5, 1.0)), start(), **options).end

    def interrupted(lam, state):
        raise KeyboardInterrupt

    def nowhere(lam, state):
        raise DeadEnd("nothing there")

    stopped = walk(trimmed, "hard", Geometric(mu=1.5, lam=0.5, stop=Stages(1)), start(), stop=Stages(1))
    assert stopped.end == "stop"
    assert stopped.reason in stopped.status
    assert ends() == "pace"
    assert ends(stop=Stages(1)) == "limit"
    assert ends(callback=lambda stage, solution: True) == "callback"
    assert ends(step=nowhere) == "dead end"
    assert ends(step=interrupted) == "interrupt"


def test_the_callback_sees_stage_and_solution_and_may_end_the_walk():
    seen = []

    def callback(stage, solution):
        seen.append((stage.lam, solution.model, solution.lam))
        return len(seen) == 2

    solution = walk(trimmed, "hard", Ladder((0.5, 1.0, 2.0)), start(), callback=callback)
    assert [lam for lam, _, _ in seen] == [0.5, 1.0]
    assert seen[-1][1] == solution.model
    assert seen[-1][0] == seen[-1][2]
    assert "the callback ended the path" in solution.status


def test_a_dead_end_keeps_the_state_before():
    solution = walk(trimmed, "hard", Ladder((2.0, 1e-9)), start())
    assert len(solution.stages) == 1
    assert "nothing is within 1e-09; the model of the stage before is kept" in solution.status
    assert solution.model == walk(trimmed, "hard", Fixed(2.0), start()).model


def test_a_dead_end_may_lead_back_to_the_start():
    def spoilt(lam, state):
        if lam > 1:
            raise DeadEnd("everything faded", back_to_start=True)
        return trimmed(lam, state)

    solution = walk(spoilt, "hard", Ladder((0.5, 1.0, 2.0)), start(1.0))
    assert (solution.model, solution.stages, solution.lam) == (1.0, (), math.inf)
    assert "everything faded; the initial model is kept" in solution.status


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_interrupt_keeps_the_last_complete_state(at):
    calls = []

    def interrupted(lam, state):
        calls.append(lam)
        if len(calls) == at + 1:
            raise KeyboardInterrupt
        return trimmed(lam, state)

    solution = walk(interrupted, "hard", Ladder((0.5, 1.0, 2.0)), start())
    assert solution.interrupted
    assert len(solution.stages) == at
    assert "interrupted from outside" in solution.status
    whole = walk(trimmed, "hard", Ladder((0.5, 1.0, 2.0)), start())
    assert known(solution.stages) == known(whole.stages[:at])
    resumed = walk(trimmed, "hard", Ladder((0.5, 1.0, 2.0)), start(), resume=solution)
    assert resumed.model == whole.model
    assert known(resumed.stages) == known(whole.stages)


def test_an_interrupt_before_there_is_a_model_goes_through():
    def never():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        walk(trimmed, "hard", Fixed(1.0), never)


def test_weights_that_a_step_brings_are_the_ones_recorded():
    def step(lam, state):
        return State(state.model, state.losses, weights=np.full(DATA.size, 0.25))

    solution = walk(step, "welsch", Fixed(1.0), start())
    assert solution.stages[0].mean_weight == 0.25
    assert solution.weights.tolist() == [0.25] * DATA.size


def test_sample_weights_count_in_the_record():
    prior = (DATA < 2).astype(float)
    solution = walk(trimmed, "hard", Fixed(2.0), start(), sample_weight=prior)
    assert solution.stages[0].mean_weight == 1.0


@pytest.mark.parametrize("name", ["welsch", "hard", "l1l2", "huber", "logistic"])
def test_a_span_runs_from_multiple_to_multiple_of_the_median(name):
    rule = get(name)
    losses = np.linspace(0.5, 7.5, 15)
    pacing = Span(1.0, 2.0, 4)
    lams = [pacing.first(losses, rule)]
    while (following := pacing.advance(len(lams), lams[-1], losses, rule)) is not None:
        lams.append(following)
    assert len(lams) == 4
    np.testing.assert_allclose([half_loss(rule, lam) for lam in lams], 4.0 * np.geomspace(1, 2, 4), rtol=1e-8)
    np.testing.assert_allclose(lams, pacing.lams(4.0, rule), rtol=1e-8)


@pytest.mark.parametrize("pace", ["auto", "paper", 1, 2.5, math.inf, Fixed(1.0)])
def test_a_pace_is_one_of_four_things(pace):
    assert check_pace(pace) == pace


@pytest.mark.parametrize("pace", ["fast", 0, -1.0, True, None, math.nan, [1.0]])
def test_anything_else_is_no_pace(pace):
    with pytest.raises(ValueError, match="pace must be 'auto', 'paper', a positive number"):
        check_pace(pace)


def test_empty_ladders_and_spans_are_refused():
    with pytest.raises(ValueError, match="at least one pace"):
        Ladder(())
    with pytest.raises(ValueError, match="start and end"):
        Span(0.0, 1.0)
    with pytest.raises(ValueError, match="stages"):
        Span(stages=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "walks"),
    [
        (SelfPacedMF(2, random_state=0), True),
        (SelfPacedMultiViewKMeans(2, n_init=2, random_state=0), True),
        (SelfPacedRegressor(Ridge()), True),
        (SelfPacedLinearRegression(pace="paper"), True),
        (SelfPacedLogisticRegression(pace="paper"), True),
        (SelfPacedClassifier(DecisionTreeClassifier(random_state=0), pace=0.7), True),
        (SelfPacedLogisticRegression(), False),
        (SelfPacedClassifier(DecisionTreeClassifier(random_state=0)), False),
        (SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=5, random_state=0)), False),
        (SelfPacedLinearRegression(), False),
    ],
    ids=str,
)
def test_fits_walk_as_the_page_of_the_architecture_says(model, walks):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    values = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=120) + 10.0 * (np.arange(120) < 12)
    labels = (X[:, 0] > 0) ^ (np.arange(120) < 15)
    matrix = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20))
    entered = []

    def look(frame, event, argument):
        if event == "call" and frame.f_code is walk.__code__:
            entered.append(frame)

    kind = type(model).__name__
    data = (X, labels) if "Class" in kind or "Logistic" in kind else (X, values) if "Regress" in kind else (X,)
    sys.setprofile(look)
    try:
        model.fit(*((matrix,) if isinstance(model, SelfPacedMF) else data))
    finally:
        sys.setprofile(None)
    assert bool(entered) == walks
