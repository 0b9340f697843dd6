"""Paths measured by the scale of the residuals."""

from __future__ import annotations

import numpy as np
import pytest

from selfpaced.pacing import half_loss
from selfpaced.regularizers import from_loss, get, relative
from selfpaced.robust import Opening, ScaleStop
from selfpaced.solver import Stage

PACED = ["hard", "mixture", "huber", "l1l2", "cauchy", "welsch", "tukey", "geman-mcclure", "linear"]


@pytest.mark.parametrize("name", PACED)
def test_opening_means_the_same_for_every_rule(name):
    rule = relative(get(name))
    losses = np.random.default_rng(1).exponential(size=2000)
    lam = Opening().first(losses, rule)
    assert np.mean(rule.relative_weight(losses, lam)) == pytest.approx(0.5, abs=2e-3)
    following = Opening(growth=2.0).advance(1, lam, losses, rule)
    assert half_loss(rule, following) == pytest.approx(2 * half_loss(rule, lam), rel=1e-6)


def test_opening_serves_a_users_loss():
    rule = from_loss(lambda loss, lam: lam * np.log1p(loss / lam))
    losses = np.random.default_rng(1).exponential(size=500)
    lam = Opening().first(losses, rule)
    assert Opening().advance(1, lam, losses, rule) > lam


def test_opening_with_losses_that_are_mostly_zero_still_starts():
    losses = np.concatenate([np.zeros(80), np.ones(20)])
    assert Opening().first(losses, get("welsch")) > 0


def test_scale_stop_compares_half_loss_and_noise():
    losses = np.abs(np.random.default_rng(0).standard_normal(4000))
    stage = [Stage(6.0, 1, 0.0, 0.5, 0.5)]
    assert ScaleStop(5.5)(stage, losses, get("hard")) is not None
    assert ScaleStop(6.5)(stage, losses, get("hard")) is None


def test_wrong_growth_is_refused():
    with pytest.raises(ValueError, match=r"growth must be > 1, got 1\.0"):
        Opening(growth=1.0)
