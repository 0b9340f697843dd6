import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfpaced.pacing import (
    CalibrationError,
    Fixed,
    Geometric,
    Graduated,
    LossSketch,
    Plateau,
    Quantile,
    Span,
    Stages,
    calibrate,
    half_loss,
    lam_at,
)
from selfpaced.regularizers import REGISTRY, Diversity, GroupRegularizer, from_loss, get, relative
from selfpaced.solver import Stage, stop_reason

ELEMENTWISE = [name for name, rule in REGISTRY.items() if not issubclass(rule, GroupRegularizer)]
SMOOTH = [name for name in ELEMENTWISE if name != "hard"]


def sample(n=400, seed=0, scale=1.0):
    return np.random.default_rng(seed).exponential(scale, n)


# logarithmic and channel cannot be opened or closed at will: each has a range of reachable means
FRACTIONS = {"logarithmic": 0.15, "channel": 0.7, "logistic": 0.8}


@pytest.mark.parametrize("name", SMOOTH)
def test_the_mean_relative_weight_is_the_fraction(name):
    rule, losses, fraction = get(name), sample(), FRACTIONS.get(name, 0.5)
    lam = calibrate(rule, losses, fraction)
    assert rule.relative_weight(losses, lam).mean() == pytest.approx(fraction, abs=1e-9)


@given(n=st.integers(1, 60), fraction=st.floats(0.01, 0.99), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_hard_takes_the_share_of_samples(n, fraction, seed):
    losses = sample(n, seed)
    inside = get("hard").weight(losses, calibrate("hard", losses, fraction)).sum()
    assert inside == math.ceil(fraction * n * (1 - 1e-12))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_repeating_equals_weighting(name):
    losses, counts = sample(50), np.random.default_rng(1).integers(0, 4, 50)
    fraction = FRACTIONS.get(name, 0.5)
    repeated = calibrate(name, np.repeat(losses, counts), fraction)
    assert calibrate(name, losses, fraction, sample_weight=counts) == pytest.approx(repeated, rel=1e-9)


def test_scale_free_rules_follow_the_unit_of_the_losses():
    for name in ELEMENTWISE:
        power = get(name).power
        if power is None:
            continue
        small, large = calibrate(name, sample()), calibrate(name, 1e6 * sample())
        assert large / small == pytest.approx(1e6 ** (1 / power), rel=1e-6)


def test_infeasible_targets_say_why():
    with pytest.raises(CalibrationError, match=r"60\.0 % of the samples have no loss.*set floor"):
        calibrate("welsch", [0, 0, 0, 1, 1], 0.5)
    with pytest.raises(CalibrationError, match=r"60\.0 % of the samples have no loss"):
        calibrate("hard", [0, 0, 0, 1, 1], 0.5)
    with pytest.raises(CalibrationError, match=r"60\.0 % of the losses are infinite"):
        calibrate("cauchy", [np.inf, np.inf, np.inf, 1, 1], 0.5)
    with pytest.raises(CalibrationError, match="infinite"):
        calibrate("hard", [np.inf, np.inf, np.inf, 1, 1], 0.5)
    with pytest.raises(CalibrationError, match="small in the unit of 'logistic'"):
        calibrate("logistic", 0.01 * sample(), 0.5)
    with pytest.raises(CalibrationError, match="large in the unit of 'logarithmic'"):
        calibrate("logarithmic", 100 * sample(), 0.5)
    with pytest.raises(CalibrationError, match="no losses"):
        calibrate("cauchy", [])
    with pytest.raises(CalibrationError, match="every sample weight is 0"):
        calibrate("cauchy", [1.0, 2.0], sample_weight=[0, 0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fraction": 0.0}, r"fraction must be in \(0, 1\), got 0.0"),
        ({"fraction": 1.0}, r"fraction must be in \(0, 1\), got 1.0"),
        ({"floor": -1.0}, "floor must be a finite number >= 0, got -1.0"),
        ({"losses": [1.0, -2.0]}, "loss must be >= 0 and not NaN, got -2.0"),
        ({"losses": [1.0, np.nan]}, "loss must be >= 0 and not NaN, got nan"),
        ({"sample_weight": [1.0]}, "one value per loss: got 1 for 2"),
        ({"sample_weight": [1.0, -1.0]}, "finite and >= 0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        calibrate("welsch", **{"losses": [1.0, 2.0], **arguments})


@pytest.mark.parametrize("name", ["welsch", "hard", "mixture", "l1l2", "huber"])
def test_a_floor_keeps_clean_data_from_starting_at_nothing(name):
    clean = 1e-9 * sample()
    assert half_loss(name, calibrate(name, clean)) < 1e-8
    assert half_loss(name, calibrate(name, clean, floor=0.5)) == pytest.approx(0.5, rel=1e-6)
    assert half_loss(name, calibrate(name, np.zeros(9), floor=0.5)) == pytest.approx(0.5, rel=1e-6)
    dirty = sample(scale=100)
    assert calibrate(name, dirty, floor=0.5) == calibrate(name, dirty)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_lam_at_and_half_loss_are_inverse(name):
    loss = {"logarithmic": 0.15, "logistic": 2.0}.get(name, 3.0)
    lam = lam_at(name, loss)
    assert half_loss(name, lam) == pytest.approx(loss, rel=1e-6)


def test_group_rules_calibrate_when_bound():
    losses, groups = sample(60), np.arange(60) % 3
    rule = Diversity(gamma=0.1).bind(groups)
    lam = calibrate(rule, losses, 0.5)
    assert rule.weight(losses, lam).mean() == pytest.approx(0.5, abs=0.05)


def test_user_losses_calibrate():
    rule = from_loss(lambda loss, lam: np.log1p(lam * loss) / lam)
    assert rule.opens == -1
    lam = calibrate(rule, sample(), 0.5)
    assert rule.relative_weight(sample(), lam).mean() == pytest.approx(0.5, abs=1e-9)


# ------------------------------------------------------------------------------------------------- sketch


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_sketch_calibrates_from_parts_within_a_percent(name):
    losses = sample(5000)
    fraction = FRACTIONS.get(name, 0.5)
    parts = sum(LossSketch.of(part) for part in np.array_split(losses, 7))
    exact, sketched = calibrate(name, losses, fraction), calibrate(name, parts, fraction)
    power = get(name).power or 1
    assert sketched == pytest.approx(exact, rel=0.0125 / power)


def test_sketches_merge_bit_for_bit_in_any_order():
    losses, weight = sample(1000), np.random.default_rng(3).uniform(0, 5, 1000)
    whole = LossSketch.of(losses, weight)
    order = np.random.default_rng(4).permutation(1000)
    parts = [LossSketch.of(losses[rows], weight[rows]) for rows in np.array_split(order, 13)]
    assert sum(parts) == whole
    assert sum(reversed(parts)) == whole
    assert whole.total == pytest.approx(weight.sum(), rel=1e-4)
    assert pickle.loads(pickle.dumps(whole)) == whole


@given(st.lists(st.floats(1e-15, 1e15), min_size=1, max_size=50), st.floats(0.0, 1.0))
@settings(max_examples=100, deadline=None)
def test_sketch_quantiles_are_within_a_percent(losses, q):
    exact = float(np.quantile(losses, q, method="inverted_cdf"))
    assert LossSketch.of(losses).quantile(q) == pytest.approx(exact, rel=0.01)


def test_sketch_edges():
    sketch = LossSketch.of([0.0, np.inf, 1.0])
    assert sketch.quantile(0.0) == 0.0
    assert sketch.quantile(1.0) == math.inf
    assert LossSketch.of([]).total == 0
    with pytest.raises(ValueError, match="an empty sketch"):
        LossSketch.of([]).quantile(0.5)
    with pytest.raises(ValueError, match="got -1.0"):
        LossSketch.of([-1.0])
    with pytest.raises(ValueError, match="one value per loss"):
        LossSketch.of([1.0], [1.0, 2.0])
    with pytest.raises(CalibrationError, match="no losses"):
        calibrate("welsch", LossSketch.of([]))
    with pytest.raises(ValueError, match="carries its own"):
        calibrate("welsch", sketch, sample_weight=[1, 1, 1])


# -------------------------------------------------------------------------------------------------- paces


def test_geometric_opens_every_rule():
    losses = sample()
    for name in ELEMENTWISE:
        for rule in (get(name), relative(get(name))):
            pacing = Geometric(mu=1.2, fraction=FRACTIONS.get(name, 0.5))
            first = pacing.first(losses, rule)
            second = pacing.advance(1, first, losses, rule)
            if second is None:
                assert name in ("logarithmic", "channel")
                continue
            assert rule.weight(losses, second).sum() >= rule.weight(losses, first).sum()


def test_geometric_takes_l1l2_down_and_its_normalised_form_up():
    losses, pacing = sample(), Geometric(mu=1.5)
    raw, normal = get("l1l2"), relative(get("l1l2"))
    assert pacing.advance(1, 1.0, losses, raw) == pytest.approx(1 / 1.5)
    assert pacing.advance(1, 1.0, losses, normal) == pytest.approx(1.5)


def test_geometric_ends_at_the_border_of_the_range():
    assert Geometric(mu=2.0).advance(1, 0.5, None, get("logarithmic")) is None


def test_quantile_reads_lam_from_the_losses():
    losses, pacing = sample(1000), Quantile(start=0.5, end=0.9, stages=5)
    assert half_loss("welsch", pacing.first(losses, get("welsch"))) == pytest.approx(np.median(losses), rel=0.01)
    last = pacing.advance(4, 1.0, losses, get("welsch"))
    assert half_loss("welsch", last) == pytest.approx(np.quantile(losses, 0.9), rel=0.01)
    assert pacing.advance(5, 1.0, losses, get("welsch")) is None
    assert pacing.advance(4, 1.0, 2 * losses, get("welsch")) > last


def test_graduated_closes_to_the_bound():
    losses, pacing, rule = sample(), Graduated(bound=0.3, factor=1.5), get("tls")
    lam = pacing.first(losses, rule)
    assert rule.weight(losses, lam).min() > 0.85
    path = [lam]
    while (lam := pacing.advance(len(path), lam, losses, rule)) is not None:
        path.append(lam)
    assert all(a > b for a, b in itertools.pairwise(path))
    assert half_loss(rule, path[-1]) == pytest.approx(0.3, rel=1e-6)
    by_function = Graduated(bound=lambda losses: np.median(losses))
    assert by_function.first(losses, rule) == pytest.approx(pacing.first(losses, rule))


def test_fixed_is_one_stage():
    assert Fixed(2.0).first(None, None) == 2.0
    assert Fixed(2.0).advance(1, 2.0, None, None) is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Geometric(mu=1.0), "mu must be > 1, got 1.0"),
        (lambda: Quantile(start=0.0), "quantiles must be in"),
        (lambda: Quantile(stages=0), "stages must be an integer >= 1, got 0"),
        (lambda: Graduated(bound=1.0, factor=0.5), "factor must be > 1, got 0.5"),
        (lambda: Stages(0), "count must be an integer >= 1, got 0"),
        (lambda: Graduated(bound=-1.0).first([1.0], get("tls")), "bound must be a positive loss, got -1.0"),
    ],
)
def test_paces_validate(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def stage(lam=1.0, mean_weight=0.5):
    return Stage(lam=lam, inner=1, objective=0.0, mean_weight=mean_weight)


def test_stops():
    losses, rule = sample(), get("welsch")
    assert Stages(2)([stage()], losses, rule) is None
    assert "2 stages" in Stages(2)([stage()] * 2, losses, rule)
    assert Plateau(patience=2)([stage()] * 2, losses, rule) is None
    assert "0.500" in Plateau(patience=2)([stage()] * 3, losses, rule)
    assert Plateau(patience=1)([stage(), stage(mean_weight=0.6)], losses, rule) is None
    assert stop_reason((Stages(9), lambda *_: True), [stage()], losses, rule) == "the stop rule ended the path"
    assert stop_reason((), [stage()], losses, rule) is None
    assert stop_reason(3, [stage()] * 3, losses, rule) == "all 3 stages are done"


def test_paces_pickle():
    for pacing in (Geometric(), Quantile(), Fixed(1.0), Graduated(bound=1.0)):
        assert pickle.loads(pickle.dumps(pacing)) == pacing


def test_a_span_is_not_set_by_rows_that_are_fitted_exactly():
    rule = get("hard")
    assert Span().first([0.0, 0.0, 3.0], rule) == Span().first([3.0], rule)
    assert Span().first([0.0, 2.0], rule, [1.0, 0.0]) == Span().first([1.0], rule)
