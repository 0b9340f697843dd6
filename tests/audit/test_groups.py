"""Grouped rows: the interval counts what is independent."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict

from selfpaced import audit_labels
from selfpaced.label_noise import design_effect

DRAWS = 40


def patients(seed, rate, n=300, visits=6):
    """Held-out probabilities of visits; the label is the patient's, and some patients have the wrong one."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=8)
    base = rng.normal(size=(n, 8))
    X = 0.8 * np.repeat(base, visits, axis=0) + 0.6 * rng.normal(size=(n * visits, 8))
    true = rng.random(n) < 1 / (1 + np.exp(-4 * base @ coef / np.linalg.norm(coef)))
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.permutation(n)[: round(rate * n)]] = True
    labels, groups = np.repeat(true ^ wrong, visits), np.repeat(np.arange(n), visits)
    folds, model = GroupKFold(5), LogisticRegression()
    probs = cross_val_predict(model, X, labels, groups=groups, cv=folds, method="predict_proba")
    return labels, probs, groups, np.repeat(wrong, visits)


def test_intervals_of_patients_cover_the_true_rate():
    covered, clean = [], []
    for seed in range(DRAWS):
        labels, probs, groups, wrong = patients(seed, 0.15)
        low, high = audit_labels(labels, probs, groups=groups).noise_rate_interval
        covered.append(low <= wrong.mean() <= high)
        if seed < 10:
            labels, probs, groups, _ = patients(seed, 0.0)
            clean.append((audit_labels(labels, probs, groups=groups).suspects()["level"] == "likely error").mean())
    assert np.mean(covered) >= 0.9
    assert np.max(clean) == 0


def test_copies_of_rows_add_no_evidence(binary):
    alone = audit_labels(binary.codes, binary.probs)
    rows = np.repeat(np.arange(len(binary.codes)), 5)
    copied = audit_labels(binary.codes[rows], binary.probs[rows], groups=rows)
    assert copied.size == pytest.approx(len(binary.codes), rel=0.02)
    assert copied.noise_rate_interval == pytest.approx(alone.noise_rate_interval, abs=5e-3)
    counted = audit_labels(binary.codes[rows], binary.probs[rows])
    assert np.diff(counted.noise_rate_interval) < np.diff(copied.noise_rate_interval)


def test_groups_of_independent_rows_change_little(binary):
    groups = np.random.default_rng(0).permutation(len(binary.codes)) // 4
    alone, grouped = audit_labels(binary.codes, binary.probs), audit_labels(binary.codes, binary.probs, groups=groups)
    assert grouped.size > 0.7 * len(binary.codes)
    assert grouped.noise_rate == pytest.approx(alone.noise_rate, abs=0.01)
    assert "200 groups" in grouped.summary()


def test_the_design_effect_of_shared_scores_is_the_size_of_the_groups():
    scores = np.random.default_rng(1).normal(size=(300, 2))
    assert design_effect(np.repeat(scores, 4, axis=0), np.repeat(np.arange(300), 4)) == pytest.approx(4, rel=0.01)
    assert design_effect(scores, np.arange(300)) == pytest.approx(1, rel=0.01)
    halves = np.repeat(scores, 2, axis=0)
    weighted = design_effect(halves, np.repeat(np.arange(300), 2), np.full(600, 0.5))
    assert weighted == pytest.approx(2, rel=0.01)
