"""Grouped rows: the interval counts what is independent."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict

from selfpaced import audit_labels
from selfpaced.label_noise import design_effect

DRAWS = 20


def patients(seed, rate, whose="patient", n=300, visits=6):
    """Held-out probabilities of visits, whose label is the patient's or their own; of some patients all are wrong."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=8)
    base = rng.normal(size=(n, 8))
    X = 0.8 * np.repeat(base, visits, axis=0) + 0.6 * rng.normal(size=(n * visits, 8))
    known = np.repeat(base, visits, axis=0) if whose == "patient" else X
    true = np.repeat(rng.random(n), visits) if whose == "patient" else rng.random(n * visits)
    true = true < 1 / (1 + np.exp(-4 * known @ coef / np.linalg.norm(coef)))
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.permutation(n)[: round(rate * n)]] = True
    labels, groups = true ^ np.repeat(wrong, visits), np.repeat(np.arange(n), visits)
    folds, model = GroupKFold(5), LogisticRegression()
    probs = cross_val_predict(model, X, labels, groups=groups, cv=folds, method="predict_proba")
    return labels, probs, groups, np.repeat(wrong, visits)


@pytest.mark.parametrize("whose", ["patient", "visit"])
def test_intervals_of_patients_cover_the_true_rate(whose):
    covered, clean = [], []
    for seed in range(DRAWS):
        labels, probs, groups, wrong = patients(seed, 0.15, whose)
        audit = audit_labels(labels, probs, groups=groups)
        low, high = audit.noise_rate_interval
        covered.append(low <= wrong.mean() <= high)
        assert audit.size == 300 if whose == "patient" else 300 <= audit.size < 1800
        if seed < 5:
            labels, probs, groups, _ = patients(seed, 0.0, whose)
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


def test_rows_of_a_group_with_one_label_share_their_posterior():
    labels, probs, groups, wrong = patients(0, 0.15)
    audit = audit_labels(labels, probs, groups=groups)
    posterior = audit.assessment.wrong.reshape(300, 6)
    assert np.ptp(posterior, axis=1).max() < 1e-9
    alone = audit_labels(labels, probs)
    right = [2 * (listed & wrong).sum() / (listed.sum() + wrong.sum()) for listed in map(_listed, (audit, alone))]
    assert right[0] > right[1] + 0.05


def _listed(audit):
    return audit.assessment.levels() > 0


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
