"""Faults that logistic regression once had."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from selfpaced import SelfPacedLogisticRegression


@pytest.fixture(scope="module")
def three():
    """Three classes of which the last is often recorded as any other."""
    X, y = make_blobs(1200, centers=[[-2, 0], [2, 0], [0, 2.5]], random_state=0)
    rng = np.random.default_rng(0)
    return X, np.where((y == 2) & (rng.random(1200) < 0.4), rng.integers(0, 2, 1200), y)


def test_no_intercept_means_none_in_three_classes_too(three):
    X, y = three
    free = SelfPacedLogisticRegression().fit(X, y)
    assert np.abs(free.intercept_ - free.raw_intercept_).max() > 0.01  # here the channel asks for a shift
    model = SelfPacedLogisticRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_array_equal(model.intercept_, 0.0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", [np.float64, np.float32])
def test_the_rows_of_the_fit_weigh_the_same_as_new_ones(n_classes, form):
    rng = np.random.default_rng(1)
    y = rng.choice(n_classes, 600, p=[0.9, 0.1] if n_classes == 2 else [0.6, 0.3, 0.1])
    X = (rng.standard_normal((600, 4)) + 2.0 * np.eye(n_classes, 4)[y]).astype(form)
    wrong = rng.random(600) < 0.2
    names = np.array(["a", "b", "c"])[np.where(wrong, (y + rng.integers(1, n_classes, 600)) % n_classes, y)]
    model = SelfPacedLogisticRegression(C=1.0, random_state=0).fit(X, names)
    assert np.isfinite(model.lam_)
    assert np.ptp(model.lam_by_class_) > 0.1  # the paces differ: this is what was ignored
    known = model.assess(X, names)
    new = model.assess(np.vstack([X, X[:1]]), np.append(names, names[0]))
    assert known is model.assessment_
    np.testing.assert_array_equal(known.weight, model.sample_weight_)
    tolerance = 1e-9 if form is np.float64 else 1e-4
    np.testing.assert_allclose(new.weight[:-1], known.weight, atol=tolerance)
    np.testing.assert_allclose(new.losses[:-1], model.sample_loss_, atol=100 * tolerance)
    np.testing.assert_allclose(new.wrong[:-1], known.wrong, atol=100 * tolerance)
    np.testing.assert_array_equal(new.diagnosis.expected, model.predict(np.vstack([X, X[:1]])))
    np.testing.assert_allclose(new.diagnosis.proba[:-1], model.predict_proba(X), atol=100 * tolerance)


def test_the_assessment_knows_only_labels_of_the_fit(three):
    X, y = three
    model = SelfPacedLogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"labels seen in fit \[0, 1, 2\], got .*7"):
        model.assess(X[:2], [0, 7])


@pytest.mark.parametrize("size", [1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_small_features_without_a_penalty(size, n_classes):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 6))
    y = (X @ rng.standard_normal((6, n_classes)) + 0.5 * rng.standard_normal((600, n_classes))).argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = SelfPacedLogisticRegression(penalty=None).fit(size * X, y)
    theirs = LogisticRegression(C=np.inf, tol=1e-8, max_iter=5000).fit(X, y)
    # once 0.50 off: the tolerance was that of features of unit size
    np.testing.assert_allclose(model.plain_.predict_proba(size * X), theirs.predict_proba(X), atol=2e-3)
    assert model.score(size * X, y) == pytest.approx(theirs.score(X, y), abs=0.01)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8, np.int64, np.uint64])
def test_labels_far_apart_for_their_type(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 2))
    ends = np.iinfo(np.int8 if kind == np.int8 else kind)
    low, high = (ends.min + 1, ends.max - 1) if ends.bits == 8 else (ends.max - 200, ends.max - 1)
    y = np.where(X[:, 0] > 0, kind(high), kind(low)).astype(kind)
    model = SelfPacedLogisticRegression().fit(X, y)
    assert model.classes_.tolist() == [low, high]
    assert model.score(X, y) > 0.95


def test_one_absurd_cell_does_no_harm():
    ours, theirs = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        coef = 2 * rng.standard_normal(3)
        X = rng.standard_normal((2060, 3))
        y = (X @ coef > 0).astype(int)
        train, test = slice(60), slice(60, None)
        X[7, 1] = 1e8
        ours.append(SelfPacedLogisticRegression().fit(X[train], y[train]).score(X[test], y[test]))
        theirs.append(LogisticRegression().fit(X[train], y[train]).score(X[test], y[test]))
    assert np.mean(ours) >= np.mean(theirs) - 0.05


@pytest.mark.parametrize("size", [1e2, 1e4, 1e8])
def test_an_absurd_cell_among_several_classes(size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = (X @ rng.standard_normal((3, 3)) + 0.3 * rng.gumbel(size=(300, 3))).argmax(axis=1)
    X[7, 1] = size
    model = SelfPacedLogisticRegression(max_iter=1000).fit(X, y)  # any warning is an error
    assert model.score(X, y) > model.plain_.score(X, y) - 0.05
