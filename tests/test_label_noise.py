"""The noise channel: recovery of rate, scale and transition; coherence of what it says."""

import pickle

import numpy as np
import pytest

from selfpaced.datasets import flip_class_conditional
from selfpaced.label_noise import ChannelModels, NoiseModel, confident_error, fit_channel, logits_from_proba, symmetric


def binary(n, rates, seed, scale=3.0):
    rng = np.random.default_rng(seed)
    z = scale * rng.standard_normal(n) + 0.5
    clean = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    flipped = rng.random(n) < np.asarray(rates)[clean]
    return z, clean, np.where(flipped, 1 - clean, clean), flipped


def multiclass(n, k, rate, seed):
    rng = np.random.default_rng(seed)
    z = 3.0 * rng.standard_normal((n, k))
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    clean = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    flipped = rng.random(n) < rate
    return z, clean, np.where(flipped, (clean + rng.integers(1, k, n)) % k, clean), flipped


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.2, 0.4])
def test_binary_rate_and_scale_are_recovered(rate):
    z, _, noisy, _ = binary(4000, (rate, rate), seed=1)
    channel = fit_channel(0.3 * z, noisy)
    assert channel.noise_rate == pytest.approx(rate, abs=0.04)
    assert channel.interval[0] <= rate <= channel.interval[1] + 1e-9
    assert channel.scale * 0.3 == pytest.approx(1.0, rel=0.25)


def test_interval_covers_about_as_often_as_it_says():
    covered = 0
    for seed in range(20):
        _, _, noisy, flipped = data = binary(1000, (0.25, 0.25), seed=100 + seed)
        low, high = fit_channel(data[0], noisy).interval
        covered += low <= flipped.mean() <= high
        assert high - low < 0.3
    assert covered >= 16


def test_the_interval_begins_near_0_if_noise_is_barely_significant():
    seen = 0
    for seed in range(80):
        z, _, noisy, _ = binary(300, (0.2, 0.2), seed=seed, scale=2.0)
        models = ChannelModels.of(z, noisy)
        if 2.0 < models.gain < 3.0:  # a likelihood ratio of 2 to 2.4 standard errors
            model, seen = models.assessed(), seen + 1
            assert 0.0 <= model.interval[0] < 0.25 * model.rate_if_any
    assert seen >= 5


def test_class_conditional_noise_is_told_from_symmetric_noise():
    z, _, noisy, _ = binary(8000, (0.02, 0.35), seed=3)
    channel = fit_channel(z, noisy)
    assert channel.transition[1, 0] == pytest.approx(0.35, abs=0.06)
    assert channel.transition[0, 1] == pytest.approx(0.02, abs=0.04)
    assert channel.model_weights[2] > 0.9
    assert fit_channel(z, binary(8000, (0.2, 0.2), seed=3)[2]).model_weights[2] < 0.9


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_multiclass_rate_is_recovered(rate):
    z, _, noisy, _ = multiclass(2000, 5, rate, seed=5)
    channel = fit_channel(0.5 * z, noisy)
    assert channel.noise_rate == pytest.approx(rate, abs=0.04)
    assert channel.scale == pytest.approx(2.0, rel=0.2)
    assert channel.interval[0] <= rate <= channel.interval[1]


def test_clean_log_loss_falls():
    z, clean, noisy, _ = binary(4000, (0.3, 0.3), seed=7)
    channel = fit_channel(3.0 * z, noisy)

    def log_loss(p):
        return -np.log(np.clip(p[np.arange(len(clean)), clean], 1e-12, 1)).mean()

    raw = 1 / (1 + np.exp(-3.0 * z))
    assert log_loss(channel.proba(3.0 * z)) < log_loss(np.stack([1 - raw, raw], axis=1)) - 0.1
    # the best calibrated probabilities there are: those the labels were drawn from
    best = 1 / (1 + np.exp(-z))
    assert log_loss(channel.proba(3.0 * z)) < log_loss(np.stack([1 - best, best], axis=1)) + 0.01


def test_posterior_finds_the_flipped_labels():
    z, _, noisy, flipped = binary(2000, (0.2, 0.2), seed=9)
    channel = fit_channel(z, noisy)
    posterior = channel.noise_probability(z, noisy)
    assert posterior.min() >= 0
    assert posterior.max() <= 1
    assert posterior.mean() == pytest.approx(channel.noise_rate, abs=0.02)
    assert posterior[flipped].mean() > 0.5 > posterior[~flipped].mean()


def test_probabilities_are_coherent():
    z, _, noisy, _ = multiclass(500, 4, 0.2, seed=2)
    channel = fit_channel(z, noisy)
    proba = channel.proba(z)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(channel.transition.sum(axis=1), 1)
    np.testing.assert_allclose(channel.given_proba(z).sum(axis=1), 1)
    np.testing.assert_array_equal(channel.decide(z), proba.argmax(axis=1))
    shifted = channel.without_bias()
    np.testing.assert_allclose(shifted.proba(z + channel.bias / channel.scale), proba)


def test_margin_and_two_columns_are_the_same():
    z, _, noisy, _ = binary(300, (0.1, 0.1), seed=4)
    one, two = fit_channel(z, noisy), fit_channel(np.stack([-z / 2, z / 2], axis=1), noisy)
    assert one.noise_rate == pytest.approx(two.noise_rate, abs=1e-9)
    np.testing.assert_allclose(one.proba(z), two.proba(np.stack([-z / 2, z / 2], axis=1)), atol=1e-9)
    np.testing.assert_array_equal(one.decide(z), one.proba(z).argmax(axis=1))


def test_weighting_a_row_equals_repeating_it():
    z, _, noisy, _ = binary(400, (0.2, 0.2), seed=6)
    weight = np.random.default_rng(0).integers(1, 4, len(z))
    weighted = fit_channel(z, noisy, sample_weight=weight)
    repeated = fit_channel(np.repeat(z, weight), np.repeat(noisy, weight))
    assert weighted.scale == pytest.approx(repeated.scale)
    assert weighted.noise_rate == pytest.approx(repeated.noise_rate)
    # weights that are no counts are relative: only their proportions matter
    np.testing.assert_allclose(
        fit_channel(z, noisy, sample_weight=np.full(len(z), 0.7)).proba(z), fit_channel(z, noisy).proba(z)
    )


def test_equally_sure_rows_count_together_wherever_they_stand():
    margin, y = np.repeat([1.0, -1.0], 15), np.repeat([1, 0, 0], 10)
    order = np.random.default_rng(0).permutation(30)
    assert confident_error(margin, y) == confident_error(margin[order], y[order])


def test_without_shift_decisions_stay():
    z, _, noisy, _ = binary(2000, (0.0, 0.4), seed=8)
    logits = z - 2.0  # a model that calls too few rows class 1
    channel = fit_channel(logits, noisy, shift=False)
    np.testing.assert_array_equal(channel.bias, 0)
    np.testing.assert_array_equal(channel.decide(logits), logits > 0)
    assert np.mean(fit_channel(logits, noisy).decide(logits) != (z > 0)) < 0.05 < np.mean((logits > 0) != (z > 0))


def test_without_shift_decisions_stay_in_many_classes():
    z, _, noisy, _ = multiclass(3000, 4, 0.0, seed=8)
    noisy = np.where((noisy == 2) & (np.random.default_rng(0).random(3000) < 0.4), 0, noisy)
    logits = z + np.array([0.0, 0.0, 0.0, 1.5])
    free, still = fit_channel(logits, noisy), fit_channel(logits, noisy, shift=False)
    assert np.ptp(free.bias) > 0.5
    np.testing.assert_array_equal(still.bias, 0)
    np.testing.assert_array_equal(still.decide(logits), logits.argmax(axis=1))
    off = still.transition[~np.eye(4, dtype=bool)]
    np.testing.assert_allclose(off, off[0])  # rates per class would ask for a shift


def test_degenerate_logits_give_the_identity():
    channel = fit_channel(np.zeros(10), np.arange(10) % 2)
    np.testing.assert_allclose(channel.proba(np.zeros(3)), 0.5)
    assert channel.noise_rate == 0.0
    assert NoiseModel.identity(3).n_classes == 3


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="same length"):
        fit_channel(np.zeros(3), [0, 1])
    with pytest.raises(ValueError, match="finite"):
        fit_channel([np.inf, 1.0], [0, 1])
    assert np.isfinite(logits_from_proba([[0.0, 1.0]])).all()


def test_confident_error_counts_only_the_sure():
    margin = np.r_[np.full(50, 5.0), np.full(50, 0.1)]
    y = np.ones(100, dtype=int)
    y[60:] = 0  # wrong only where the model is unsure
    assert confident_error(margin, y, share=0.5)[0] == 0
    y[:10] = 0
    assert confident_error(margin, y, share=0.5)[0] == pytest.approx(0.2)
    assert confident_error(margin, y, np.r_[np.zeros(10), np.ones(90)], share=0.5)[0] < 0.2


def test_channel_pickles():
    channel = fit_channel(*binary(300, (0.1, 0.1), seed=4)[::2][:2])
    copy = pickle.loads(pickle.dumps(channel))
    np.testing.assert_array_equal(copy.transition, channel.transition)


@pytest.mark.parametrize("columns", [1, 2])
def test_two_classes_are_assessed_by_their_posterior(columns):
    rng = np.random.default_rng(0)
    z = 3 * rng.standard_normal((2000, columns))
    margin = z[:, 0] if columns == 1 else z[:, 1] - z[:, 0]
    y, _ = flip_class_conditional((margin > 0.5).astype(int), [0.3, 0.05], random_state=0)
    channel = fit_channel(z, y, noiseless=True)
    assert np.any(channel.bias)
    expected = 1 - channel.posterior(z, y)[np.arange(2000), y]
    np.testing.assert_allclose(channel.noise_probability(z, y), expected, atol=1e-12)


def test_no_label_is_a_likely_error_unless_noise_is_established():
    z, y = np.array([300.0, -300.0, 300.0]), np.array([0, 1, 0])  # so sure that the probability is 1
    for low, likely in ((0.0, False), (0.01, True)):
        channel = NoiseModel(1.0, np.zeros(2), symmetric(0.1, 2), 0.1, (low, 0.2), (1.0,)).unless_established()
        assert np.all(channel.noise_probability(z, y) > 0.5) == likely
        np.testing.assert_allclose(channel.probability_if_noisy(z, y), 1.0)


@pytest.mark.parametrize("k", [2, 3])
def test_a_single_label_far_beyond_the_overlap_is_a_likely_error_without_noise(k):
    rng = np.random.default_rng(0)
    z = 4 * rng.standard_normal((1000, k))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    worst = int(np.argmax(z.max(axis=1) - z.min(axis=1)))
    y[worst] = z[worst].argmin()
    channel = fit_channel(z, y, noiseless=True).unless_established()
    assert channel.interval[0] == 0.0
    assert np.flatnonzero(channel.noise_probability(z, y) > 0.5).tolist() == [worst]


@pytest.mark.parametrize("k", [2, 4])
def test_the_rate_if_any_is_told_beside_the_rate(k):
    for rate in (0.0, 0.2):
        z, _, noisy, _ = binary(3000, (rate, rate), 5) if k == 2 else multiclass(3000, k, rate, 5)
        channel = fit_channel(z, noisy, noiseless=True)
        assert (channel.interval[0] > 0) == (rate > 0)
        assert channel.rate_if_any >= channel.noise_rate - 1e-9
        assert channel.rate_if_any == pytest.approx(rate, abs=0.04)
