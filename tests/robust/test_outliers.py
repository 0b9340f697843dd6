"""The share of outliers, and the probability of being one."""

from __future__ import annotations

import numpy as np
import pytest

from selfpaced.robust import outlier_probability, outlier_share, residual_scale


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_outlier_share_covers_the_truth(share: float) -> None:
    covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        residuals = rng.normal(size=300)
        residuals[: round(300 * share)] += 12
        found = outlier_share(residuals, residual_scale(residuals))
        assert found.low <= found.estimate <= found.high
        assert abs(found.estimate - share) < 0.08
        covered += found.low <= share <= found.high
    assert covered >= 54


def test_the_probabilities_sum_to_the_number_of_outliers() -> None:
    rng = np.random.default_rng(0)
    residuals = np.concatenate([rng.normal(size=700), rng.uniform(-40, 40, size=300)])
    probability = outlier_probability(residuals, sigma=1.0, share=0.3)
    assert probability.sum() == pytest.approx(300, rel=0.05)
    assert (np.diff(probability[np.argsort(np.abs(residuals))]) >= 0).all()


def test_without_errors_whatever_is_not_zero_is_an_outlier() -> None:
    assert outlier_probability(np.array([0.0, 1e-12, -2.0]), sigma=0.0, share=0.1).tolist() == [0.0, 0.0, 1.0]
