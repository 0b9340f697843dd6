"""The rules against code we did not write: SciPy, statsmodels, and search."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize_scalar

from selfpaced.regularizers import (
    Barron,
    Diversity,
    GroupSqrt,
    Logarithmic,
    MixtureJiang,
    MixtureZhao,
    TruncatedQuadratic,
    get,
    quadratic,
    relative,
)

Z = np.geomspace(1e-6, 1e4, 60)


def scipy_rho(name, z):
    """SciPy's rho(z), read off its own cost: one residual sqrt(z), no freedom to move it."""

    def cost(value):
        fit = least_squares(lambda x: np.array([math.sqrt(value) + 0 * x[0]]), [0.0], loss=name, max_nfev=1)
        return 2 * fit.cost

    return np.array([cost(value) for value in z])


@pytest.mark.parametrize(("name", "ours", "factor"), [("huber", "huber", 2), ("cauchy", "cauchy", 1)])
def test_scipy_losses(name, ours, factor):
    for lam in (0.3, 1.0, 4.0):
        latent = factor * get(ours).latent(Z * lam**2, lam) / lam**2
        np.testing.assert_allclose(latent, scipy_rho(name, Z), rtol=1e-9)


def test_scipy_soft_l1_is_l1l2():
    for lam in (0.3, 1.0, 4.0):
        latent = 2 * get("l1l2").latent(Z * lam, lam) / math.sqrt(lam)
        np.testing.assert_allclose(latent, scipy_rho("soft_l1", Z), rtol=1e-7)


def test_statsmodels_norms():
    norms = pytest.importorskip("statsmodels.robust.norms", reason="statsmodels is not installed")
    t = np.concatenate([-Z[::3], Z])
    for c in (0.5, 2.0):
        huber, tukey = quadratic(get("huber")), quadratic(get("tukey"))
        np.testing.assert_allclose(huber.latent(t, c), norms.HuberT(t=c).rho(t), rtol=1e-9)
        np.testing.assert_allclose(huber.weight(t, c), norms.HuberT(t=c).weights(t), rtol=1e-9)
        np.testing.assert_allclose(tukey.weight(t, c) / 2, norms.TukeyBiweight(c=c).weights(t), atol=1e-12)
        np.testing.assert_allclose(tukey.latent(t, c) / 2, norms.TukeyBiweight(c=c).rho(t), rtol=1e-9, atol=1e-12)
        trimmed = relative(get("hard")).weight(t**2, c**2)
        inside = np.abs(np.abs(t) - c) > 1e-9
        np.testing.assert_allclose(trimmed[inside], norms.TrimmedMean(c=c).weights(t)[inside])


def test_barron_contains_its_special_cases():
    loss = np.geomspace(1e-3, 1e3, 40)
    np.testing.assert_allclose(Barron(0.0).latent(loss, 1.3), get("cauchy").latent(loss, 1.3))
    np.testing.assert_allclose(Barron(-math.inf).latent(loss, 1.3), get("welsch").latent(loss, 1.3))
    np.testing.assert_allclose(Barron(-1e7).weight(loss, 1.3), get("welsch").weight(loss, 1.3), atol=1e-6)
    np.testing.assert_allclose(Barron(1e-9).dual([0.2, 0.7], 2.0), get("cauchy").dual([0.2, 0.7], 2.0), rtol=1e-6)
    # at alpha = 1 it is L1-L2 with vmax = 1 and lam^2/2 in the place of lam
    np.testing.assert_allclose(Barron(1.0).weight(loss, 1.3), relative(get("l1l2")).weight(loss, 1.3**2 / 2))
    np.testing.assert_allclose(Barron(-2.0).weight(loss, 1.0), get("geman-mcclure").weight(loss, math.sqrt(2.0)))


def test_sharp_truncation_is_hard_selection():
    loss = np.linspace(0, 3, 50)
    np.testing.assert_allclose(TruncatedQuadratic(math.inf).latent(loss, 1.2), get("hard").latent(loss, 1.2**2))


# The penalties as the appendix of the paper prints them, minimised by search over v in [0, 1].
def g_linear(lam, v):
    return lam * (v**2 - 2 * v) / 2


def g_logarithmic(lam, v):
    z = 1 - lam
    return z * v - z**v / math.log(z)


def g_mixture_jiang(lam, v, ratio=0.5):
    zeta = lam * ratio * lam / (lam - ratio * lam)
    return -zeta * math.log(v + zeta / lam)


def g_mixture_zhao(lam, v, gamma=0.7):
    return lam * gamma**2 / (lam * v + gamma)


def g_logistic(lam, v):
    rest = 1 + math.exp(-lam) - v
    return rest * math.log(rest) + (v * math.log(v) if v > 0 else 0.0) - lam * v


EXPLICIT = [
    (get("hard"), lambda lam, v: -lam * v, 1.3),
    (get("linear"), g_linear, 1.3),
    (Logarithmic(), g_logarithmic, 0.45),
    (Logarithmic(), g_logarithmic, 0.9),
    (MixtureJiang(ratio=0.5), g_mixture_jiang, 1.3),
    (MixtureZhao(gamma=0.7), g_mixture_zhao, 1.3),
    (get("logistic"), g_logistic, 1.3),
]


@pytest.mark.parametrize(("rule", "penalty", "lam"), EXPLICIT, ids=lambda value: getattr(value, "name", None))
def test_explicit_rules_minimise_the_printed_penalty(rule, penalty, lam):
    for loss in np.linspace(0.01, 3, 25):
        found = minimize_scalar(
            lambda v, loss=loss: v * loss + penalty(lam, v), bounds=(0, 1), options={"xatol": 1e-10}, method="bounded"
        )
        best = min([found.x, 0.0, 1.0], key=lambda v, loss=loss: v * loss + penalty(lam, v))
        weight = float(rule.weight(loss, lam))
        assert weight == pytest.approx(best, abs=2e-5)
        # the dual is the penalty, shifted to vanish at full weight
        assert rule.dual(weight, lam) == pytest.approx(penalty(lam, weight) - penalty(lam, 1.0), abs=1e-9)


def random_groups(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8))
    losses = rng.exponential(1.5, size)
    if seed % 3 == 0:
        losses = np.round(losses, 1)  # ties
    return losses, rng.integers(0, 3, size), float(rng.uniform(0.1, 2)), float(rng.uniform(0.1, 3))


@pytest.mark.parametrize("seed", range(60))
def test_diversity_against_all_selections(seed):
    losses, groups, lam, gamma = random_groups(seed)

    def objective(v):
        bonus = sum(math.sqrt(v[groups == group].sum()) for group in np.unique(groups))
        return v @ losses - lam * v.sum() - gamma * bonus

    weight = Diversity(gamma=gamma).weight(losses, lam, groups)
    best = min(objective(np.array(v, float)) for v in itertools.product((0, 1), repeat=losses.size))
    assert set(weight) <= {0.0, 1.0}
    assert objective(weight) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_group_sqrt_against_a_search_over_totals(seed):
    """Given its total, a group takes its easiest samples first: so a search over totals is exhaustive."""
    losses, groups, lam, gamma = random_groups(seed)
    weight = GroupSqrt(gamma=gamma).weight(losses, lam, groups)
    for group in np.unique(groups):
        ordered = np.sort(losses[groups == group])

        def objective(total, ordered=ordered):
            taken = np.clip(total - np.arange(ordered.size), 0, 1)
            return float(taken @ ordered) - lam * total - gamma * math.sqrt(total)

        mine = weight[groups == group]
        reached = float(mine @ losses[groups == group]) - lam * mine.sum() - gamma * math.sqrt(mine.sum())
        best = min(objective(total) for total in np.linspace(0, ordered.size, 4001))
        assert reached <= best + 1e-9
        ties = [mine[losses[groups == group] == value] for value in np.unique(ordered)]
        assert all(np.ptp(tie) < 1e-12 for tie in ties)


def test_group_rules_take_something_from_every_group():
    losses = np.array([0.1, 0.2, 0.3, 1.5, 1.6])
    groups = ["easy", "easy", "easy", "hard", "hard"]
    assert get("hard").weight(losses, 1.0)[3:].sum() == 0
    for rule in (Diversity(gamma=1.0), GroupSqrt(gamma=1.5)):
        assert rule.weight(losses, 1.0, groups)[3] > 0.5


def test_group_rules_fenchel_and_binding():
    rng = np.random.default_rng(1)
    losses, groups = rng.exponential(size=30), rng.integers(0, 4, 30)
    for rule in (Diversity(gamma=0.8), GroupSqrt(gamma=0.8)):
        weight = rule.weight(losses, 0.7, groups)
        taken = np.array([(weight * losses)[groups == group].sum() for group in range(4)])
        np.testing.assert_allclose(rule.latent(losses, 0.7, groups), taken + rule.dual(weight, 0.7, groups))
        np.testing.assert_array_equal(rule.bind(groups).weight(losses, 0.7), weight)
        assert rule.latent(np.zeros(30), 0.7, groups).sum() == pytest.approx(0)
        assert not np.isnan(rule.latent(np.full(30, np.inf), 0.7, groups)).any()


def test_group_rules_name_what_is_wrong():
    rule = Diversity()
    with pytest.raises(ValueError, match="one label per loss: got 1 for 2"):
        rule.weight([1.0, 2.0], 1.0, [0])
    with pytest.raises(ValueError, match="got -1"):
        rule.weight([1.0, -1.0], 1.0, [0, 0])
    with pytest.raises(ValueError, match="lam must be"):
        rule.weight([1.0], 0.0, [0])
