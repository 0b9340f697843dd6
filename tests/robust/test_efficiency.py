"""How far a rule may open: the constants of the literature, every rule, any scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from selfpaced.regularizers import REGISTRY, Regularizer, from_loss, get
from selfpaced.robust import efficiency, efficient_lam, efficient_pace

ELEMENTWISE = [name for name, rule in REGISTRY.items() if issubclass(rule, Regularizer)]


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
