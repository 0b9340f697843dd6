"""Classes that overlap: a model that memorises is made smoother, and no label is called wrong for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier

from selfpaced import SelfPacedClassifier
from selfpaced.label_noise import NoiseModel
from selfpaced.wrappers import posterior


def drawn(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
    return (rng.random(len(logits)) < 1 / (1 + np.exp(-logits))).astype(int)


def line(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    return X, drawn(rng, 1.5 * X[:, 0] - X[:, 1])


def product(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, n, 2])
    X = rng.standard_normal((n, 6))
    return X, drawn(rng, 1.5 * X[:, 0] * X[:, 1] + X[:, 2])


def test_a_tree_learns_from_references_who_foretell_labels_better_though_none_is_wrong() -> None:
    (X, y), (X_test, y_test) = line(0), line(1, 4000)
    model = SelfPacedClassifier(DecisionTreeClassifier(random_state=0), keep_plain=True).fit(X, y)
    assert "which overlapping classes explain, but foretell labels of unseen rows better" in model.termination_
    ours, plain = (log_loss(y_test, one.predict_proba(X_test)) for one in (model, model.plain_))
    assert ours < 0.8 * plain
    assert model.score(X_test, y_test) > model.plain_.score(X_test, y_test)
    assert model.noise_rate_ < 0.05
    assert model.noise_rate_interval_[0] == 0.0
    assert not np.any(model.sample_noise_ >= 0.5)


def test_a_model_that_foretells_labels_as_well_as_the_references_is_kept() -> None:
    X, y = line(0)
    model = SelfPacedClassifier(LogisticRegression()).fit(X, y)
    assert model.termination_.endswith("which overlapping classes explain.")
    np.testing.assert_array_equal(model.sample_weight_, 1.0)
    np.testing.assert_array_equal(model.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X))


def test_what_one_assess_sees_alone_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = product(1)
    model = SelfPacedClassifier(RandomForestClassifier(50, random_state=0))
    assert model.fit(X, y).noise_rate_interval_[0] == 0.0
    assert not np.any(model.sample_noise_ >= 0.5)
    monkeypatch.setattr(posterior, "_all_see", lambda *_: True)
    assert model.fit(X, y).noise_rate_interval_[0] > 0.1


def test_labels_of_a_class_that_seems_never_mistaken_are_doubted_too() -> None:
    """A rate of 0 for one class would rank all its labels behind those of the other, whatever the references say."""
    one_sided = NoiseModel(1.0, np.zeros(3), np.eye(3), 0.0, (0.0, 0.3), (1.0,))
    one_sided.transition[2] = [0.3, 0.3, 0.4]
    for rate in (0.0, 0.2, 0.6):
        transition = posterior.doubted(replace(one_sided, noise_rate=rate))
        np.testing.assert_allclose(transition.sum(axis=1), 1.0)
        assert (transition > 0.0).all()
        assert (transition[2, :2] > transition[0, 1:]).all()  # what was estimated still counts
    least = posterior.doubted(one_sided)[0, 1]
    assert 0.0 < least < 0.01
    assert posterior.doubted(replace(one_sided, noise_rate=0.2))[0, 1] > least
