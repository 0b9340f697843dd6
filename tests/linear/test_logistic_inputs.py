"""Bad and strange input: a clear error or a sane model."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from selfpaced import SelfPacedLogisticRegression
from selfpaced.regularizers import GroupSqrt


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(120, centers=[[-2, 0], [2, 0]], random_state=0)
    y = y.copy()
    y[::10] = 1 - y[::10]
    return X, y


def test_one_class_is_an_error(blobs):
    X, _ = blobs
    with pytest.raises(ValueError, match="only one class"):
        SelfPacedLogisticRegression().fit(X, np.zeros(len(X)))


def test_one_class_left_by_the_weights_is_an_error(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="only one class"):
        SelfPacedLogisticRegression().fit(X, y, sample_weight=(y == 1).astype(float))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(120), "zero for every row"),
        (np.full(120, -1.0), ">= 0"),
        (np.full(120, np.nan), "NaN"),
        (np.ones(3), "shape"),
    ],
)
def test_bad_weights_are_errors(blobs, weight, message):
    with pytest.raises(ValueError, match=message):
        SelfPacedLogisticRegression().fit(*blobs, sample_weight=weight)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_features_are_errors(blobs, value):
    X, y = blobs
    X = X.copy()
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        SelfPacedLogisticRegression().fit(X, y)


def test_continuous_labels_are_errors(blobs):
    with pytest.raises(ValueError, match="continuous"):
        SelfPacedLogisticRegression().fit(blobs[0], np.linspace(0.1, 0.9, 120))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pace": "fast"}, "pace must be"),
        ({"pace": -1.0}, "pace must be"),
        ({"pace": True}, "pace must be"),
        ({"C": 0.0}, "C must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"penalty": "l1"}, "penalty must be"),
        ({"regularizer": "nonsense"}, "nonsense"),
        ({"regularizer": GroupSqrt()}, "elementwise"),
    ],
)
def test_bad_parameters_are_named(blobs, options, message):
    with pytest.raises(ValueError, match=message):
        SelfPacedLogisticRegression(**options).fit(*blobs)


@pytest.mark.parametrize("spread", [1e-12, 1e-8, 1e-4])
def test_features_that_hardly_vary_do_not_spoil_the_candidates(blobs, spread):
    """Texts of few words leave columns of rounding errors behind an SVD."""
    X, y = blobs
    narrow = spread * np.random.default_rng(0).normal(size=(len(X), 20))
    alone = SelfPacedLogisticRegression(pace=1.4, C=1.0).fit(X, y)
    beside = SelfPacedLogisticRegression(pace=1.4, C=1.0).fit(np.hstack([X, narrow]), y)
    for one, other in zip(alone.path_, beside.path_, strict=True):
        assert other.score == pytest.approx(one.score, abs=0.02)


def test_constant_features_do_no_harm(blobs):
    X, y = blobs
    plain = SelfPacedLogisticRegression(pace=1.0).fit(X, y)
    padded = SelfPacedLogisticRegression(pace=1.0).fit(np.column_stack([X, np.zeros(120), np.full(120, 7.0)]), y)
    assert np.isfinite(padded.coef_).all()
    np.testing.assert_allclose(padded.predict(np.column_stack([X, np.zeros(120), np.full(120, 7.0)])), plain.predict(X))
    only = SelfPacedLogisticRegression().fit(np.ones((120, 2)), y)
    np.testing.assert_allclose(only.predict_proba(np.ones((1, 2)))[0, 1], y.mean(), atol=0.05)


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_fewer_rows_than_folds_keep_the_plain_model(n):
    X, y = np.arange(float(n))[:, None], np.arange(n) % 2
    model = SelfPacedLogisticRegression().fit(X, y)
    assert model.lam_ == np.inf
    assert len(model.path_) == 1
    assert model.predict_proba(X).shape == (n, 2)
    assert np.isfinite(SelfPacedLogisticRegression(pace=1.0).fit(X, y).coef_).all()


def test_a_class_with_one_member(blobs):
    X, y = blobs
    X, y = np.vstack([X, [[50.0, 50.0]]]), np.append(y, 2)
    model = SelfPacedLogisticRegression().fit(X, y)
    assert list(model.classes_) == [0, 1, 2]
    assert len(model.path_) > 1  # the others are still held out and compared
    assert model.noise_rate_interval_ != (0.0, 1.0)
    alone = SelfPacedLogisticRegression().fit(X[y == 0], np.arange((y == 0).sum()) == 0)
    assert alone.lam_ == np.inf  # no label is left to hold out
    assert alone.noise_rate_interval_ == (0.0, 1.0)
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(alone.predict_proba(X)).all()


@pytest.mark.parametrize("penalty", ["l2", None])
def test_separable_data(penalty):
    X, y = make_blobs(60, centers=[[-9, 0], [9, 0]], random_state=0)
    model = SelfPacedLogisticRegression(penalty=penalty).fit(X, y)
    assert model.score(X, y) == 1.0
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict_proba(X)).all()


def test_duplicated_rows_do_not_leak_across_folds():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 40))  # enough features to remember labels
    y = (X[:, 0] > 0).astype(int)
    y[rng.random(80) < 0.3] ^= 1
    once = SelfPacedLogisticRegression(C=1.0).fit(X, y)
    twice = SelfPacedLogisticRegression(C=0.5).fit(np.vstack([X, X]), np.append(y, y))
    # the same held-out scores: a copy in the training part would make them look far better
    for a, b in zip(once.path_, twice.path_, strict=True):
        assert a.score == pytest.approx(b.score, abs=1e-5)  # both are fits of a few steps


def test_conflicting_duplicates():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.tile([0, 1], 20)
    model = SelfPacedLogisticRegression().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.5, atol=0.1)


def test_wild_scales():
    X, y = make_blobs(300, centers=[[-2, 0], [2, 0]], random_state=1)
    y = np.where(np.random.default_rng(0).random(300) < 0.15, 1 - y, y)
    reference = SelfPacedLogisticRegression(C=1e6).fit(X, y)
    scaled = SelfPacedLogisticRegression(C=1e6).fit(X * np.array([1e-4, 1e4]) + np.array([0.0, 1e6]), y)
    agree = reference.predict(X) == scaled.predict(X * np.array([1e-4, 1e4]) + np.array([0.0, 1e6]))
    assert agree.mean() > 0.97


def test_wrong_number_of_features_is_an_error(blobs):
    X, y = blobs
    model = SelfPacedLogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :1])
