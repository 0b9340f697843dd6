"""The label is wrong, or the model: cases that a channel of few rates alone gets wrong."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import scale

from selfpaced import SelfPacedLogisticRegression, label_issues
from selfpaced.datasets import flip_symmetric
from selfpaced.inspection import suspected
from selfpaced.label_noise import fit_channel
from selfpaced.linear import witness as second


def three_classes(seed, apart=3.0, n=1200):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4))
    X[:, :3] += apart * np.eye(3)[y]
    return X, y, rng


@pytest.mark.parametrize("seed", [0, 1])
def test_a_class_taken_for_one_other_is_given_back(seed):
    X, y, rng = three_classes(seed)
    given = np.where((y == 0) & (rng.random(len(y)) < 0.4), 1, y)
    model = SelfPacedLogisticRegression().fit(X, given)
    assert model.score(X, y) > model.plain_.score(X, y) + 0.05
    assert model.channel_.transition[0, 1] > 0.15
    assert np.all(model.channel_.transition[[0, 1, 1, 2, 2], [2, 0, 2, 0, 1]] < 0.05)
    assert "Decisions were shifted" in model.termination_


@pytest.mark.parametrize("apart", [1.0, 3.0])
def test_classes_that_only_overlap_are_not_taken_for_one_another(apart):
    X, y, _ = three_classes(2, apart)
    model = SelfPacedLogisticRegression().fit(X, y)
    assert model.noise_rate_interval_[0] == 0.0
    assert model.noise_rate_ < 0.03
    assert model.score(X, y) >= model.plain_.score(X, y) - 0.01


def test_one_rate_for_all_is_not_read_as_one_class_into_another():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 3000)
    logits = 3.0 * np.eye(4)[y] + rng.normal(size=(3000, 4))
    given, _ = flip_symmetric(y, 0.2, random_state=1)
    channel = fit_channel(logits, given, noiseless=True)
    assert abs(channel.noise_rate - 0.2) < 0.05
    off = channel.transition[~np.eye(4, dtype=bool)]
    assert off.max() < 3 * off.min()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mixed_cells_of_a_coarse_table_are_not_called_wrong(seed):
    rng = np.random.default_rng(seed)
    rank, male = rng.choice(4, 2200, p=(0.15, 0.13, 0.32, 0.4)), rng.random(2200) < 0.79
    adult = rng.random(2200) < 0.95
    chance = np.where(male, np.array([0.34, 0.14, 0.17, 0.22])[rank], np.array([0.97, 0.88, 0.46, 0.87])[rank])
    y = (rng.random(2200) < np.where(adult, chance, np.maximum(chance, 0.55))).astype(int)
    X = scale(np.column_stack([np.eye(4)[rank], adult, male]))
    model = SelfPacedLogisticRegression().fit(X, y)
    assert model.noise_rate_interval_[0] == 0.0
    assert model.noise_rate_ < 0.1
    assert np.mean(label_issues(model, X, y)["is_label_issue"]) < 0.01


def documents(seed, n=500, words=800):
    """Counts of words of three topics, and the labels of a rule that three keywords and three common words make."""
    rng = np.random.default_rng(seed)
    usual = 1 / np.arange(5, words + 5)
    frequency = usual * np.exp(rng.normal(size=(3, words)))
    frequency /= frequency.sum(axis=1, keepdims=True)
    y = rng.integers(0, 3, n)
    counts = np.stack([np.bincount(rng.choice(words, 40, p=frequency[t]), minlength=words) for t in y])
    hits = np.empty((n, 3))
    for topic in range(3):
        own = 20 + np.argsort(-frequency[topic, 20:300] / usual[20:300])[:3]
        hits[:, topic] = counts[:, np.r_[own, rng.choice(np.arange(20, 120), 3, replace=False)]].sum(axis=1)
    X = np.sqrt(counts) / np.linalg.norm(np.sqrt(counts), axis=1, keepdims=True)
    return X, y, np.where(hits.any(axis=1), hits.argmax(axis=1), 0), rng


@pytest.mark.parametrize("seed", [0, 1])
def test_labels_that_a_rule_gave_are_flagged_where_the_fit_contradicts_them(seed):
    X, y, given, _ = documents(seed)
    wrong = given != y
    assert 0.15 < wrong.mean() < 0.6
    model = SelfPacedLogisticRegression().fit(X, given)
    flagged = np.asarray(label_issues(model, X, given)["is_label_issue"])
    assert flagged.mean() > 0.05
    assert wrong[flagged].mean() > 0.9
    assert model.noise_rate_ > 0.01
    assert "contradicts them" in model.termination_
    stability = model.judgement_.stability
    assert stability[flagged].mean() > 0.3 > 0.05 > stability[~flagged].mean()


def test_clean_documents_and_labels_at_random_are_not_flagged():
    X, y, _, rng = documents(0)
    for labels in (y, rng.permutation(y)):
        model = SelfPacedLogisticRegression().fit(X, labels)
        assert np.mean(label_issues(model, X, labels)["is_label_issue"]) < 0.01
        assert model.noise_rate_interval_[0] == 0.0


@pytest.mark.parametrize(("n", "features", "seed"), [(150, 200, 0), (400, 400, 1), (400, 600, 2)])
def test_many_features_that_say_little_do_not_make_overlap_wrong(n, features, seed):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, 5))
    X = factors @ rng.standard_normal((5, features)) + 0.3 * rng.standard_normal((n, features))
    y = rng.random(n) < 1 / (1 + np.exp(-2 * factors[:, 0]))
    model = SelfPacedLogisticRegression(max_iter=1000).fit(X, y)
    assert not np.any(label_issues(model, X, y)["is_label_issue"])
    assert model.noise_rate_interval_[0] == 0.0


def test_rows_that_the_model_has_not_seen_are_not_judged_as_if_it_had():
    X, _, given, _ = documents(0)
    model = SelfPacedLogisticRegression().fit(X, given)
    seen, unseen = model.judge(X, given), model.judge(X[::-1].copy(), given[::-1])
    assert seen.wrong.max() > 0.5 > unseen.wrong.max()
    opinion, rows = model.judgement_.opinion, np.arange(len(given))
    posterior = opinion.noise.posterior(opinion.logits, opinion.codes)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    np.testing.assert_allclose(1 - posterior[rows, opinion.codes], seen.wrong, atol=1e-12)


def bowl(n, seed, noise=0.0):
    """A border that no line follows, and labels wrong at random."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    z = 4 * (X[:, 0] + 0.8 * (X[:, 1] ** 2 - 1) + 0.8 * X[:, 2] * X[:, 3])
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return X, np.where(rng.random(n) < noise, 1 - y, y)


@pytest.mark.parametrize("n", [4000, 25_000])
def test_a_border_that_bends_is_not_dirt_in_many_rows_either(n):
    X, y = bowl(n, 0)
    model = SelfPacedLogisticRegression().fit(X, y)
    assert model.noise_witness_ == "quadratic"
    assert model.noise_rate_interval_[0] == 0.0
    assert model.judge(X, y).wrong.max() < 0.5
    X, y = bowl(n, 0, noise=0.2)
    low, high = SelfPacedLogisticRegression().fit(X, y).noise_rate_interval_
    assert 0.05 < low < 0.2 < high


def test_labels_are_doubted_as_far_as_both_witnesses_doubt_them():
    rng = np.random.default_rng(0)
    z = 3 * rng.standard_normal(3000)
    y = (rng.random(3000) < 1 / (1 + np.exp(-z))).astype(int)
    noisy = fit_channel(z, np.where(rng.random(3000) < 0.2, 1 - y, y), noiseless=True)
    clean, nothing = fit_channel(z, y, noiseless=True), np.zeros(0)
    assert noisy.suspicion.share > 0.9 > 0.5 > clean.suspicion.share

    def share(witness, ahead):
        return second.Testimony(witness, ahead, nothing, nothing > 0, 0.0).doubted(noisy).suspicion.share

    shares = [share(clean, ahead) for ahead in (-3.0, 0.0, 1.0, 3.0)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.9 * noisy.suspicion.share
    assert shares[1] == pytest.approx((noisy.suspicion.share + clean.suspicion.share) / 2)
    assert shares[3] < 0.5
    # One that sees noise itself, however far ahead, takes nothing away; one that sees more adds nothing.
    assert share(noisy, 5.0) == noisy.suspicion.share
    assert (
        second.Testimony(noisy, 5.0, nothing, nothing > 0, 0.0).doubted(clean).suspicion.share == clean.suspicion.share
    )
    # A rate that a wrong link alone may feign is not plain noise.
    feigned = replace(noisy, interval=(0.003, 0.2))
    assert 0.5 < share(feigned, 5.0) < 0.6


@pytest.mark.parametrize("n", [3000, 12_000])
def test_labels_that_go_by_the_logarithm_of_a_column_are_not_dirt(n):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, 4))
    y = (rng.random(n) < 1 / (1 + np.exp(1 - 2 * Z[:, 0]))).astype(int)
    model = SelfPacedLogisticRegression().fit(np.exp(1.5 * Z), y)
    assert model.noise_rate_interval_[0] == 0
    assert not suspected(model.judgement_).any()


def test_the_second_witness_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((900, 2)), np.exp(rng.standard_normal((900, 2)))])
    order = rng.permutation(900)
    np.testing.assert_allclose(second.bends(X[order], None), second.bends(X, None)[order], atol=1e-3)


def test_ranks_of_a_skewed_column_are_those_of_its_logarithm():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((4000, 1))
    skewed, even = second.bends(np.exp(2 * Z), None), second.bends(Z, None)
    assert skewed.shape[1] == even.shape[1] + 1
    assert np.corrcoef(skewed[:, 2], Z[:, 0])[0, 1] > 0.99


@pytest.mark.parametrize(("slope", "sure"), [(1.5, False), (8.0, True)])
def test_a_shift_is_told_as_sure_as_the_noise_is(slope, sure):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 3))
    y = (rng.random(600) < 1 / (1 + np.exp(-slope * X[:, 0]))).astype(int)
    model = SelfPacedLogisticRegression().fit(X, np.where((y == 1) & (rng.random(600) < 0.3), 0, y))
    assert (model.noise_rate_interval_[0] > 0) == sure
    assert f"because classes {'are not' if sure else 'may not be'} wrong alike." in model.termination_
