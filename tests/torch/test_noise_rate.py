"""The curve of agreement against confidence tells wrong labels from overlap."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from selfpaced.torch.noise_rate import BIN_WIDTH, LOGIT_BINS, fit_agreement

ODDS = (np.arange(LOGIT_BINS) + 0.5) * BIN_WIDTH


def simulated(rate, n_classes, slope=1.0, rows=4000, seed=0):
    """Counts of a network whose doubt has this slope, with this share of labels drawn from the other classes."""
    rng = np.random.default_rng(seed)
    odds = rng.gamma(2.0, 1.5, rows)
    right = rng.random(rows) < 1 / (1 + np.exp(-slope * odds))
    wrong_label = rng.random(rows) < rate
    # a wrong label agrees with a wrong prediction with chance 1 / (K - 1)
    agrees = np.where(wrong_label, ~right & (rng.random(rows) < 1 / (n_classes - 1)), right)
    place = np.minimum((odds / BIN_WIDTH).astype(int), LOGIT_BINS - 1)
    return np.stack(
        [np.bincount(place[~agrees], minlength=LOGIT_BINS), np.bincount(place[agrees], minlength=LOGIT_BINS)]
    )


@pytest.mark.parametrize(
    ("rate", "n_classes"), [(0.1, 2), (0.2, 2), (0.1, 3), (0.4, 3), (0.1, 10), (0.2, 10), (0.4, 10), (0.4, 100)]
)
def test_the_rate_is_found(rate, n_classes):
    curve = fit_agreement(simulated(rate, n_classes, slope=2.0), n_classes)
    assert curve.lower <= rate <= curve.upper or abs(curve.rate - rate) < 0.03
    assert curve.lower > 0.5 * rate


@pytest.mark.parametrize("slope", [0.3, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_overlap_is_no_noise(slope, n_classes):
    counts = simulated(0.0, n_classes, slope)
    assert counts[0].sum() > 100  # there is something to explain
    assert fit_agreement(counts, n_classes).lower <= 0.01


def test_few_rows_say_little():
    wide, narrow = (fit_agreement(simulated(0.2, 10, rows=rows), 10) for rows in (100, 10_000))
    assert wide.upper - wide.lower > 3 * (narrow.upper - narrow.lower)


def test_no_rows_bound_nothing():
    curve = fit_agreement(np.zeros((2, LOGIT_BINS)), 3)
    assert (curve.lower, curve.upper) == (0.0, 0.7)


def test_the_curve_is_the_fitted_one():
    counts = simulated(0.2, 10, rows=20_000)
    seen = counts.sum(0) > 400
    observed = counts[1][seen] / counts.sum(0)[seen]
    np.testing.assert_allclose(fit_agreement(counts, 10).curve(ODDS[seen]), observed, atol=0.06)
