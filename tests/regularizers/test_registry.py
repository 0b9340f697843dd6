"""Every registered elementwise rule x every property a self-paced regularizer has."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfpaced import regularizers
from selfpaced.regularizers import (
    REGISTRY,
    Barron,
    GroupRegularizer,
    MixtureJiang,
    MixtureZhao,
    TruncatedQuadratic,
    from_loss,
    get,
    quadratic,
    relative,
)


def log_phi(loss, lam):
    return lam**2 * np.log1p(loss / lam**2)


RULES = [get(name) for name, rule in REGISTRY.items() if not issubclass(rule, GroupRegularizer)]
RULES += [Barron(alpha=1.0), Barron(alpha=0.0), Barron(alpha=-math.inf), MixtureZhao(gamma=0.7)]
RULES += [MixtureJiang(ratio=0.1), TruncatedQuadratic(sharpness=0.2), TruncatedQuadratic(sharpness=math.inf)]
RULES += [relative(get("huber")), relative(get("l1l2")), from_loss(log_phi)]
EXACT = [rule for rule in RULES if not isinstance(rule, regularizers.FromLoss)]
JUMPS = {"hard"}  # rules whose weight is discontinuous


def label(rule):
    return rule.name if isinstance(rule, regularizers.FromLoss) else repr(rule)  # no addresses in test names


each_rule = pytest.mark.parametrize("rule", RULES, ids=label)
losses = st.floats(0, 1e6, allow_subnormal=False)


def pace(rule, unit):
    """A pace of the rule's own range, from a number in (0, 1)."""
    low, high = rule.pace_range
    return low + (high - low) * unit if math.isfinite(high) else 10 ** (4 * unit - 2)


units = st.floats(0.02, 0.98)


@each_rule
@given(loss=losses, unit=units)
@settings(max_examples=20, deadline=None)
def test_fenchel_equality_at_the_weight(rule, loss, unit):
    lam = pace(rule, unit)
    weight = rule.weight(loss, lam)
    reached = weight * loss + rule.dual(weight, lam)
    if math.isfinite(reached):
        assert reached == pytest.approx(rule.latent(loss, lam), rel=1e-6, abs=1e-9)
    else:  # only where the weight itself has vanished
        assert weight < 1e-150


@each_rule
@given(loss=losses, unit=units, share=st.one_of(st.just(0.0), st.floats(1e-100, 1.5)))
@settings(max_examples=20, deadline=None)
def test_no_other_weight_does_better(rule, loss, unit, share):
    lam = pace(rule, unit)
    other = share * rule.max_weight(lam)
    assert rule.latent(loss, lam) <= (other * loss + rule.dual(other, lam)) * (1 + 1e-6) + 1e-9


@each_rule
@given(loss=st.floats(1e-4, 1e4), unit=units)
@settings(max_examples=20, deadline=None)
def test_weight_is_the_slope_of_the_latent_loss(rule, loss, unit):
    lam = pace(rule, unit)
    step = 1e-6 * loss
    low, high = rule.weight(loss + step, lam), rule.weight(loss - step, lam)
    if high - low > 1e-3:
        return  # a jump of the weight lies between: the slope is not defined
    slope = (rule.latent(loss + step, lam) - rule.latent(loss - step, lam)) / (2 * step)
    rounding = 1e-15 * rule.latent(loss, lam) / step
    assert slope == pytest.approx(rule.weight(loss, lam), rel=1e-4, abs=1e-6 + 4 * rounding)


@each_rule
@given(loss=losses, more=losses, unit=units)
@settings(max_examples=20, deadline=None)
def test_weight_falls_with_the_loss(rule, loss, more, unit):
    lam = pace(rule, unit)
    assert rule.weight(loss + more, lam) <= rule.weight(loss, lam) * (1 + 1e-9)


@each_rule
@given(loss=losses, unit=units, other=units)
@settings(max_examples=20, deadline=None)
def test_weight_is_monotone_in_the_pace_by_its_direction(rule, loss, unit, other):
    closed, opened = sorted((unit, other), key=lambda u: rule.opens * pace(rule, u))
    assert rule.weight(loss, pace(rule, closed)) <= rule.weight(loss, pace(rule, opened)) * (1 + 1e-7) + 1e-12
    closed, opened = sorted((unit, other), key=lambda u: rule.relative_opens * pace(rule, u))
    less, more = (rule.relative_weight(loss, pace(rule, u)) for u in (closed, opened))
    assert less <= more * (1 + 1e-7) + 1e-12


@each_rule
@given(loss=losses, unit=units)
@settings(max_examples=20, deadline=None)
def test_bounds(rule, loss, unit):
    lam = pace(rule, unit)
    assert 0 <= rule.weight(loss, lam) <= rule.max_weight(lam) * (1 + 1e-12)
    assert 0 <= rule.relative_weight(loss, lam) <= 1 + 1e-12
    assert 0 <= rule.latent(loss, lam) <= loss * rule.max_weight(lam) * (1 + 1e-12)
    assert rule.dual(rule.max_weight(lam), lam) == pytest.approx(0, abs=1e-9)


@each_rule
def test_zero_loss_has_zero_latent_loss_and_full_weight(rule):
    for unit in (0.05, 0.5, 0.95):
        lam = pace(rule, unit)
        assert rule.latent(0.0, lam) == 0
        assert rule.relative_weight(0.0, lam) == pytest.approx(1)


@each_rule
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_extremes_give_no_nan_and_no_warning(rule, dtype):
    largest = 3e38 if dtype == np.float32 else 1e300
    edges = np.array([0.0, 1e-30, 1.0, largest, np.inf], dtype=dtype)
    _, high = rule.lam_range
    lams = [1e-300, 1e-30, 1e-3, 0.3, 1.0, 1e3, 1e30, 1e300, np.inf] if high == np.inf else [1e-300, 1e-9, 0.3, 0.49]
    if isinstance(rule, regularizers.FromLoss):
        lams = lams[2:6]  # a user's own formula answers for its own overflow
    for lam in lams:
        weight = rule.weight(edges, lam)
        for values in (weight, rule.latent(edges, lam), rule.relative_weight(edges, lam)):
            assert not np.isnan(values).any()
        duals = rule.dual(np.array([0.0, 0.25, 1.0, 7.0], dtype=dtype), lam)
        assert not np.isnan(duals).any()
        assert not np.isnan(rule.dual(weight, lam)).any()


@pytest.mark.parametrize("rule", EXACT, ids=repr)
def test_a_huge_pace_is_the_plain_model(rule):
    if rule.lam_range[1] < np.inf or rule == MixtureZhao(gamma=0.7):
        pytest.skip("this rule has no plain model at infinity: its pace is bounded, or a fixed gamma limits the weight")
    loss = np.array([0.0, 0.1, 5.0])
    np.testing.assert_allclose(rule.relative_weight(loss, np.inf), 1)
    np.testing.assert_allclose(rule.latent(loss, 1e300) / rule.max_weight(1e300), loss, rtol=1e-9)


@each_rule
def test_shapes_and_dtypes_are_kept(rule):
    lam = pace(rule, 0.5)
    for shape in [(), (0,), (3,), (2, 3), (2, 1, 4)]:
        for dtype in (np.float32, np.float64):
            loss = np.linspace(0, 2, int(np.prod(shape)), dtype=dtype).reshape(shape)
            for values in (rule.latent(loss, lam), rule.weight(loss, lam), rule.relative_weight(loss, lam)):
                assert values.shape == shape
                assert values.dtype == dtype
            assert rule.dual(rule.weight(loss, lam), lam).dtype == dtype
    assert isinstance(rule.weight(1.0, lam), float)
    assert rule.weight([0, 1], lam).dtype == np.float64


@each_rule
def test_large_arrays_equal_small_ones(rule):
    """Blocks are an implementation detail: the result does not depend on them."""
    loss = np.random.default_rng(0).exponential(size=(2, 40_000))
    lam = pace(rule, 0.5)
    np.testing.assert_array_equal(rule.weight(loss, lam)[:, ::4000], rule.weight(loss[:, ::4000], lam))
    np.testing.assert_array_equal(rule.latent(loss.T, lam), rule.latent(loss, lam).T)


@pytest.mark.parametrize("rule", EXACT, ids=repr)
def test_a_pace_per_sample(rule):
    loss = np.array([0.1, 0.2, 3.0])
    lams = np.array([pace(rule, unit) for unit in (0.2, 0.5, 0.8)])
    expected = [float(rule.weight(a, b)) for a, b in zip(loss, lams, strict=True)]
    np.testing.assert_allclose(rule.weight(loss, lams), expected)
    expected = [float(rule.latent(a, b)) for a, b in zip(loss, lams, strict=True)]
    np.testing.assert_allclose(rule.latent(loss, lams), expected)


@each_rule
def test_pickle_equality_and_repr(rule):
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert hash(rule) == hash(pickle.loads(pickle.dumps(rule)))
    if not isinstance(rule, regularizers.FromLoss):
        assert eval(repr(rule), {**vars(regularizers), "inf": math.inf}) == rule


@each_rule
@pytest.mark.parametrize("bad", [-1.0, math.nan, [0.5, -1e-9]])
def test_a_bad_loss_is_named(rule, bad):
    value = bad[-1] if isinstance(bad, list) else bad
    with pytest.raises(ValueError, match=rf"loss must be >= 0 and not NaN, got {value!r}"):
        rule.weight(bad, pace(rule, 0.5))
    with pytest.raises(ValueError, match="loss must be"):
        rule.latent(bad, pace(rule, 0.5))
    with pytest.raises(ValueError, match="weight must be"):
        rule.dual(bad, pace(rule, 0.5))


@each_rule
@pytest.mark.parametrize("lam", [0.0, -1.0, math.nan, [1e-3, -1.0]])
def test_a_bad_pace_is_named(rule, lam):
    with pytest.raises(ValueError, match=r"lam must be in \(0, "):
        rule.weight([1.0, 2.0], lam)


def test_a_bad_loss_deep_in_a_large_array_is_located():
    loss = np.ones(100_000)
    loss[77_777] = -3
    with pytest.raises(ValueError, match=r"got -3\.0 at position 77777"):
        get("welsch").weight(loss, 1.0)


def test_text_is_refused():
    with pytest.raises(TypeError, match="expected real numbers"):
        get("welsch").weight(np.array(["a"]), 1.0)


@pytest.mark.parametrize("lam", [1.0, 2.0, math.inf])
def test_logarithmic_is_defined_below_one(lam):
    with pytest.raises(ValueError, match=rf"lam must be in \(0, 1\), got {lam!r}"):
        get("logarithmic").weight(0.5, lam)


def test_names():
    names = "huber cauchy l1l2 welsch geman-mcclure tukey barron tls hard linear logarithmic mixture-jiang"
    names += " mixture-zhao logistic diversity group-sqrt channel"
    assert set(REGISTRY) >= set(names.split())
    assert get("mixture") == get("mixture-zhao")
    rule = get("tukey")
    assert get(rule) is rule
    with pytest.raises(ValueError, match="did you mean 'welsch'"):
        get("welch")
    with pytest.raises(TypeError, match="a name or an instance"):
        get(3)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_rule_says_how_it_reads(name):
    formula = REGISTRY[name].formula
    assert all((formula.latent, formula.weight, formula.dual, formula.reference))
    assert REGISTRY[name].__doc__


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Barron(alpha=2.0), "alpha must be < 2"),
        (lambda: MixtureJiang(ratio=1.0), r"ratio must be in \(0, 1\), got 1.0"),
        (lambda: MixtureZhao(gamma=-1.0), "gamma must be a positive number or None, got -1.0"),
        (lambda: TruncatedQuadratic(sharpness=0.0), "sharpness must be > 0, got 0.0"),
        (lambda: regularizers.Channel(n_classes=1), "n_classes must be an integer >= 2, got 1"),
        (lambda: regularizers.Diversity(gamma=0.0), "gamma must be a positive number, got 0.0"),
    ],
)
def test_shape_constants_are_validated(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_l1l2_turns_round_when_normalised():
    raw, normal = get("l1l2"), relative(get("l1l2"))
    assert (raw.opens, normal.opens) == (-1, 1)
    assert raw.weight(1.0, 0.1) > raw.weight(1.0, 10.0)
    assert normal.weight(1.0, 0.1) < normal.weight(1.0, 10.0)
    assert relative(get("welsch")) is get("welsch") or relative(get("welsch")) == get("welsch")


@pytest.mark.parametrize("rule", EXACT, ids=repr)
def test_both_definitions_agree(rule):
    """The appendix: phi2(sqrt l) = phi(l), the weight is half of sigma2, and phi2 = min p t^2/2 + psi2."""
    lam, residual = pace(rule, 0.4), np.linspace(-3, 3, 13)
    view = quadratic(rule)
    np.testing.assert_allclose(view.latent(residual, lam), rule.latent(residual**2, lam))
    np.testing.assert_allclose(view.weight(residual, lam) / 2, rule.weight(residual**2, lam))
    reached = view.weight(residual, lam) * residual**2 / 2 + view.dual(view.weight(residual, lam), lam)
    np.testing.assert_allclose(reached, view.latent(residual, lam), rtol=1e-6, atol=1e-9)


def test_channel_is_the_logistic_rule_with_the_noise_rate_as_its_pace():
    rate, n_classes = 0.2, 4
    lam = math.log((n_classes - 1) * (1 - rate) / rate - 1)
    loss = np.linspace(0, 8, 30)
    channel = regularizers.Channel(n_classes=n_classes).relative_weight(loss, rate)
    np.testing.assert_allclose(channel, get("logistic").weight(loss, lam), rtol=1e-10)
