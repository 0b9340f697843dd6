"""Features: a second model, reasons, near-duplicates."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from selfpaced import audit_labels


@pytest.fixture(scope="module")
def ring():
    """Clean labels that a line cannot fit: inside or outside of a circle, and a shift that lets the line predict."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    inside = (X**2).sum(axis=1) < 1.4
    y = np.where(X[:, 0] > 0.8, True, inside)
    return X, y, cross_val_predict(LogisticRegression(), X, y, method="predict_proba")


def test_neighbours_tell_misfit_from_noise(ring):
    X, y, probs = ring
    blind, seeing = audit_labels(y, probs), audit_labels(y, probs, features=X)
    assert "cannot be checked" in blind.summary()
    assert "cannot be checked" not in seeing.summary()
    assert seeing.noise_rate_interval[0] == 0
    assert (seeing.suspects()["level"] == "likely error").sum() <= (blind.suspects()["level"] == "likely error").sum()


def test_neighbours_sharpen_the_list_of_a_model_that_misfits(ring):
    X, y, _ = ring
    wrong = np.random.default_rng(1).random(len(y)) < 0.15
    probs = cross_val_predict(LogisticRegression(), X, y ^ wrong, method="predict_proba")
    scores = []
    for features in (None, X):
        audit = audit_labels(y ^ wrong, probs, features=features)
        listed = np.zeros(len(y), dtype=bool)
        listed[audit.suspects()["row"]] = True
        scores.append(2 * (listed & wrong).sum() / (listed.sum() + wrong.sum()))
    assert scores[1] > scores[0] + 0.1
    assert "the model, which misfits" in audit.summary()
    assert audit.calibrated_probs.shape == (len(y), 2)


def test_features_of_a_model_that_fits_change_little(binary):
    margin = np.log(binary.probs[:, [1]] / binary.probs[:, [0]])
    alone, checked = (audit_labels(binary.codes, binary.probs, features=f) for f in (None, margin))
    assert checked.noise_rate_interval == pytest.approx(alone.noise_rate_interval, abs=0.01)


def test_reasons_name_the_nearest_confident_rows(binary):
    margin = np.log(binary.probs[:, [1]] / binary.probs[:, [0]])
    found = audit_labels(np.array(["no", "yes"])[binary.codes], binary.probs, features=margin).suspects(5)
    for row, expected, why in zip(found["row"], found["expected"], found["why"], strict=True):
        assert f"of the 5 nearest confident rows are '{expected}'" in why
        named = [int(text) for text in why.split("rows ")[-1].strip(")").split(", ")]
        assert row not in named
        assert np.abs(margin[named] - margin[row]).max() < 5


def test_near_duplicates_with_different_labels():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 6))
    y = (X[:, 0] > 0).astype(int)
    X, y = np.vstack([X, X[:2] + 1e-6, X[2] + 1e-6]), np.r_[y, 1 - y[:2], y[2]]
    p = 1 / (1 + np.exp(-3 * X[:, 0] + rng.normal(size=len(X))))
    pairs = audit_labels(y, p, features=X).near_duplicates()
    assert sorted(zip(pairs["row"], pairs["other"], strict=True)) == [(0, 200), (1, 201)]
    assert (pairs["given"] != pairs["other_given"]).all()
    assert "2 pairs of near-duplicates" in audit_labels(y, p, features=X).summary()
    with pytest.raises(ValueError, match="features="):
        audit_labels(y, p).near_duplicates()


def test_rows_of_a_group_are_no_neighbours():
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(60), 5)
    X = np.repeat(rng.normal(size=(60, 4)), 5, axis=0) + 1e-3 * rng.normal(size=(300, 4))
    y = np.repeat(rng.integers(0, 2, 60), 5)  # no relation to X at all
    p = np.clip(0.5 + 0.2 * rng.normal(size=300), 0.05, 0.95)
    low, _ = audit_labels(y, p, features=X, groups=groups).noise_rate_interval
    assert low == 0
    found = audit_labels(y, p, features=X, groups=groups).suspects(all_rows=True)
    assert (found["noise_probability"] <= 0.5).all()
