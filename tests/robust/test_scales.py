"""Robust scales: consistency at the normal, breakdown, weights as counts."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.robust import norms as sm_norms
from statsmodels.robust.scale import mad as sm_mad

import selfpaced
from selfpaced.robust import (
    effective_size,
    m_scale,
    madn,
    noise_scale,
    residual_scale,
    shorth,
    truncated_sigma,
    weighted_quantile,
)
from selfpaced.robust.scales import BIWEIGHT, MAD_TO_SIGMA

NORMAL = norm.ppf((np.arange(2001) + 0.5) / 2001)


@pytest.mark.parametrize("scale", [madn, m_scale, truncated_sigma, residual_scale])
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
    assert residual_scale(residuals) == 0


def test_shorth_ignores_a_one_sided_minority() -> None:
    values = np.concatenate([NORMAL, np.full(1300, 9.0)])
    assert abs(shorth(values)) < 0.1
    assert abs(np.median(values)) > 0.4


def test_effective_size() -> None:
    assert effective_size(None, 7) == 7
    assert effective_size(np.array([1.0, 2.0, 3.0]), 3) == 6
    assert effective_size(np.full(5, 0.2), 5) == pytest.approx(5)
    assert effective_size(np.full(5, 2.0), 5) == effective_size(np.full(5, 2.0000001), 5) == 5
    assert effective_size(np.array([2.0, 4.0, 0.0]), 3) == 3
    weight = np.array([0.3, 0.7, 0.9])
    assert effective_size(3.7 * weight, 3) == pytest.approx(effective_size(weight, 3))
    assert 2 < effective_size(weight, 3) < 3


def test_noise_scale_ignores_forty_percent_outliers() -> None:
    rng = np.random.default_rng(0)
    noise = 0.1 * rng.standard_normal(6000)
    assert noise_scale(noise) == pytest.approx(0.1, rel=0.03)
    assert noise_scale(np.concatenate([noise, rng.uniform(-20, 20, 4000)])) == pytest.approx(0.1, rel=0.15)
    assert noise_scale(np.zeros(5), floor=1e-9) == 1e-9


def test_the_factor_of_the_median_is_written_once() -> None:
    assert pytest.approx(1 / norm.ppf(0.75), rel=1e-15) == MAD_TO_SIGMA
    sources = sorted(Path(selfpaced.__file__).parent.rglob("*.py"))
    written = [path.name for path in sources if re.search(r"1\.482\d|0\.674\d", path.read_text(encoding="utf-8"))]
    assert written == ["scales.py"]


@pytest.mark.parametrize(("outliers", "size"), [(0.0, 0.0), (0.2, 10.0), (0.4, 10.0), (0.4, 50.0)])
def test_sigma_of_a_fit_is_not_biased(outliers: float, size: float) -> None:
    rng = np.random.default_rng(5)
    found = []
    for _ in range(60):
        X = np.column_stack([np.ones(100), rng.normal(size=(100, 4))])
        y, bad = rng.normal(size=100), round(100 * outliers)
        y[:bad] += size
        fit = np.linalg.lstsq(X[bad:], y[bad:])[0]
        found.append(residual_scale(y - X @ fit, dof=5))
    assert np.mean(found) == pytest.approx(1, abs=0.05)  # once up to 1.28


def test_outliers_on_both_sides_of_the_cut_are_taken_out() -> None:
    rng = np.random.default_rng(6)
    values = np.concatenate([rng.normal(size=6000), 20 * rng.normal(size=4000)])
    assert residual_scale(values) == pytest.approx(1, abs=0.02)
    assert truncated_sigma(values) > 1.05
