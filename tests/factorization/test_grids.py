"""Values on a grid: stars are rounded and nothing is wrong with them; zeros and ones of low rank have flips."""

from __future__ import annotations

import numpy as np
import pytest

from selfpaced import SelfPacedMF
from selfpaced.factorization.engine import grid_of


def make_stars(seed, noise):
    rng = np.random.default_rng(seed)
    level = 3 + 0.5 * rng.standard_normal((60, 1)) + 0.3 * rng.standard_normal(40)
    truth = level + 0.6 * rng.standard_normal((60, 1)) * rng.standard_normal(40)
    stars = np.clip(np.rint(truth + noise * rng.standard_normal(truth.shape)), 1, 5)
    stars[rng.random(truth.shape) < 0.4] = np.nan
    return stars, truth


def make_flips(seed, kind, share=0.05):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 4, (100, 1)), rng.integers(0, 4, 100)
    truth = {"blocks": one == other, "rectangle": (one < 2) & (other < 2), "stripes": (one < 2) ^ (other < 2)}[kind]
    flipped = rng.random(truth.shape) < share
    given = np.where(rng.random(truth.shape) < 0.2, np.nan, truth ^ flipped)
    return given, flipped & ~np.isnan(given)


@pytest.mark.parametrize("noise", [0.1, 0.5])
@pytest.mark.parametrize("seed", [1, 6])
def test_stars_keep_the_scale_of_rounding(seed, noise):
    stars, truth = make_stars(seed, noise)
    model = SelfPacedMF(bounds=(1, 5), random_state=0).fit(stars)
    # rounding adds step^2 / 12 to the variance of the noise
    assert model.scale_ == pytest.approx(np.sqrt(noise**2 + 1 / 12), rel=0.2)
    assert len(model.outliers_) <= 0.005 * np.isfinite(stars).sum()
    assert np.sqrt(np.mean((model.predict(np.arange(60)[:, None], np.arange(40)) - np.clip(truth, 1, 5)) ** 2)) < 0.3


@pytest.mark.parametrize("kind", ["blocks", "rectangle", "stripes"])
@pytest.mark.parametrize("signs", [False, True])
def test_flips_of_zeros_and_ones_are_found(kind, signs):
    given, flipped = make_flips(4, kind)
    model = SelfPacedMF(random_state=0).fit(2 * given - 1 if signs else given)
    found = np.zeros(given.shape, bool)
    found[model.outliers_["row"], model.outliers_["column"]] = True
    np.testing.assert_array_equal(found, flipped)


def test_rare_ones_are_not_flips_of_zeros():
    rng = np.random.default_rng(0)
    chance = 0.02 + 0.5 * (rng.random((120, 1)) < 0.3) * (rng.random(80) < 0.3)
    given = (rng.random(chance.shape) < chance).astype(float)
    model = SelfPacedMF(1, center=None, random_state=0).fit(given)
    assert model.scale_ >= np.sqrt(1 / 12)
    assert len(model.outliers_) < 0.1 * given.sum()


def grain(values):
    grid = grid_of(np.asarray(values))
    return 0.0 if grid is None else grid.error * np.sqrt(12)


def test_grids_are_known():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(20_000)
    assert grain(rng.integers(1, 6, 500).astype(float)) == pytest.approx(1)
    assert grain(np.round(normal, 1)) == pytest.approx(0.1)
    assert grain(np.round(normal, 1).astype(np.float32)) == pytest.approx(0.1, rel=1e-3)
    assert grain(rng.integers(0, 256, 500) / 255) == pytest.approx(1 / 255)
    assert grain((rng.random(500) < 0.05).astype(float)) == pytest.approx(1)
    assert grain(np.where(rng.random(900) < 0.97, rng.integers(1, 6, 900), 9.3 * normal[:900])) == pytest.approx(1)


def test_what_lies_on_no_grid():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(20_000)
    salt = np.where(rng.random(9000) < 0.4, rng.integers(0, 2, 9000), normal[:9000])
    for values in (normal, normal.astype(np.float32), salt, np.ones(50), np.zeros(50), np.exp([0, 0, 1, 1, 3, 3, 4])):
        assert grid_of(np.asarray(values, getattr(values, "dtype", float))) is None
    grid = grid_of(np.array([0.0, 1.0, 0.0, 2.0, 1.0, 0.0]))
    assert grid.common.tolist() == [True, False, True, False, False, True]
