"""Classes that overlap: a model that memorises is made smoother, and no label is called wrong."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier

from selfpaced import SelfPacedClassifier


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


def test_a_tree_follows_better_reference_models_though_no_label_is_wrong() -> None:
    (X, y), (X_test, y_test) = line(0), line(1, 4000)
    model = SelfPacedClassifier(DecisionTreeClassifier(random_state=0), keep_plain=True).fit(X, y)
    ours, plain = (log_loss(y_test, one.predict_proba(X_test)) for one in (model, model.plain_))
    assert ours < 0.8 * plain
    assert model.score(X_test, y_test) > model.plain_.score(X_test, y_test)
    assert model.noise_rate_interval_[0] == 0.0
    assert not np.any(model.sample_noise_ >= 0.5)


def test_a_model_as_good_as_the_reference_models_changes_little() -> None:
    (X, y), (X_test, y_test) = line(0), line(1, 4000)
    model = SelfPacedClassifier(LogisticRegression(), keep_plain=True).fit(X, y)
    assert np.mean(model.predict(X_test) == model.plain_.predict(X_test)) > 0.97
    assert model.score(X_test, y_test) > model.plain_.score(X_test, y_test) - 0.01


def test_products_of_features_are_not_called_noise() -> None:
    X, y = product(1)
    model = SelfPacedClassifier(RandomForestClassifier(50, random_state=0)).fit(X, y)
    assert model.noise_rate_interval_[0] == 0.0
    assert not np.any(model.sample_noise_ >= 0.5)


def test_labels_of_both_classes_are_ranked_by_the_reference_models() -> None:
    """A rate of 0 for one class would rank all its labels behind those of the other."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    y = (X[:, 0] > 0).astype(int)
    wrong = (y == 1) & (rng.random(500) < 0.3)
    wrong[np.flatnonzero((y == 0) & (X[:, 0] < -1.5))[:3]] = True
    model = SelfPacedClassifier(RandomForestClassifier(50, random_state=0)).fit(X, np.where(wrong, 1 - y, y))
    rare = np.flatnonzero(wrong & (y == 0))
    assert np.median(model.assessment_.evidence[rare]) > np.quantile(model.assessment_.evidence[~wrong], 0.95)
