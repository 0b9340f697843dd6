"""Robust scales: consistency at the normal, breakdown, weights as counts, efficiency constants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm
from statsmodels.robust import norms as sm_norms
from statsmodels.robust.scale import mad as sm_mad

from selfpaced.regularizers import REGISTRY, Regularizer, from_loss, get
from selfpaced.scale import (
    BIWEIGHT,
    effective_size,
    efficiency,
    efficient_lam,
    efficient_pace,
    m_scale,
    madn,
    outlier_share,
    residual_scale,
    shorth,
    truncated_sigma,
    weighted_quantile,
)

NORMAL = norm.ppf((np.arange(2001) + 0.5) / 2001)
ELEMENTWISE = [name for name, rule in REGISTRY.items() if issubclass(rule, Regularizer)]


@pytest.mark.parametrize("scale", [madn, m_scale, truncated_sigma, lambda r: residual_scale(r).sigma])
def test_consistent_at_the_normal_and_equivariant(scale) -> None:
    assert scale(NORMAL) == pytest.approx(1, abs=0.03)
    assert scale(-7 * NORMAL) == pytest.approx(7 * scale(NORMAL), rel=1e-6)


def test_madn_equals_statsmodels() -> None:
    assert madn(NORMAL) == pytest.approx(sm_mad(NORMAL, center=0), rel=1e-9)


def test_m_scale_solves_its_equation() -> None:
    residuals = np.random.default_rng(0).standard_t(2, size=301)
    scale = m_scale(residuals, dof=5)
    tukey = sm_norms.TukeyBiweight(c=BIWEIGHT)
    rho = tukey.rho(residuals / scale) / (BIWEIGHT**2 / 6)
    assert rho.mean() == pytest.approx(0.5 * (1 - 5 / 301), rel=1e-6)


def test_forty_percent_far_outliers_do_not_move_the_truncated_sigma() -> None:
    values = np.concatenate([NORMAL[::2], np.full(667, 30.0)])
    assert truncated_sigma(values) == pytest.approx(1, abs=0.03)
    assert m_scale(values) > 2
    assert madn(values) > 1.8


@pytest.mark.parametrize("scale", [madn, m_scale, truncated_sigma, shorth])
def test_weights_are_counts(scale) -> None:
    rng = np.random.default_rng(1)
    values, counts = rng.normal(size=60), rng.integers(0, 4, size=60).astype(float)
    repeated = np.repeat(values, counts.astype(int))
    assert scale(values, counts) == pytest.approx(scale(repeated), rel=1e-9)


def test_weighted_quantile_is_the_repeated_one() -> None:
    rng = np.random.default_rng(2)
    values, counts = rng.normal(size=50), rng.integers(0, 4, size=50)
    repeated = np.repeat(values, counts)
    for q in (0.01, 0.3, 0.5, 0.77, 1.0):
        expected = np.quantile(repeated, q, method="inverted_cdf")
        assert weighted_quantile(values, q, counts.astype(float)) == expected
        assert weighted_quantile(repeated, q) == expected


def test_scales_of_exact_fits_are_zero() -> None:
    residuals = np.zeros(20)
    residuals[:5] = 3.0
    assert truncated_sigma(residuals) == 0
    assert m_scale(residuals) == 0
    assert residual_scale(residuals).sigma == 0


def test_shorth_ignores_a_one_sided_minority() -> None:
    values = np.concatenate([NORMAL, np.full(1300, 9.0)])
    assert abs(shorth(values)) < 0.1
    assert abs(np.median(values)) > 0.4


def test_effective_size() -> None:
    assert effective_size(None, 7) == 7
    assert effective_size(np.array([1.0, 2.0, 3.0]), 3) == 6
    assert effective_size(np.full(5, 0.2), 5) == pytest.approx(5)


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("hard", 2.796),
        ("tukey", 4.685),
        ("welsch", 2.985),
        ("geman-mcclure", 3.787),
        ("mixture-zhao", 3.905),
        ("cauchy", 2.385),
        ("huber", 1.345),
    ],
)
def test_efficiency_constants_of_the_literature(name: str, constant: float) -> None:
    lam = efficient_lam(get(name))
    cut = math.sqrt(lam) if get(name).power == 1 else lam
    assert cut == pytest.approx(constant, abs=3e-3)


def test_efficiency_is_the_ratio_of_variances() -> None:
    rule, lam = get("welsch"), 2.0

    def expect(value) -> float:
        return integrate.quad(lambda x: value(x) * norm.pdf(x), -9, 9)[0]

    weight = lambda x: np.exp(-(x**2) / lam**2)  # noqa: E731
    slope = expect(lambda x: (1 - 2 * x**2 / lam**2) * weight(x))
    assert efficiency(rule, lam) == pytest.approx(slope**2 / expect(lambda x: (x * weight(x)) ** 2), rel=1e-4)


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("sigma", [0.02, 1.0, 300.0])
def test_every_rule_has_an_efficient_pace_at_any_scale(name: str, sigma: float) -> None:
    rule = get(name)
    lam, unit = efficient_pace(rule, sigma)
    assert efficiency(rule, lam, sigma / math.sqrt(unit)) == pytest.approx(0.95, abs=5e-3)
    far = rule.relative_weight(np.array([(30 * sigma) ** 2 / unit]), lam)
    assert far[0] < 0.3


def test_a_loss_of_ones_own_has_an_efficient_pace() -> None:
    rule = from_loss(lambda loss, lam: lam * np.log1p(loss / lam))
    lam, unit = efficient_pace(rule, 2.0)
    assert math.sqrt(lam * unit) == pytest.approx(2 * 2.385, abs=0.01)


def test_a_rule_that_lets_everything_in_is_refused() -> None:
    rule = from_loss(lambda loss, lam: loss + 0 * lam)
    with pytest.raises(ValueError, match="lets every residual in"):
        efficient_lam(rule)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_outlier_share_covers_the_truth(share: float) -> None:
    covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        residuals = rng.normal(size=300)
        residuals[: round(300 * share)] += 12
        found = outlier_share(residuals, residual_scale(residuals).sigma)
        assert found.low <= found.estimate <= found.high
        assert abs(found.estimate - share) < 0.08
        covered += found.low <= share <= found.high
    assert covered >= 54
