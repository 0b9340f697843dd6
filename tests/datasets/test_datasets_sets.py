"""The synthetic sets, and the makers of noise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from selfpaced.datasets import (
    flip_class_conditional,
    flip_in_region,
    flip_near_border,
    flip_symmetric,
    make_low_rank,
    make_multiview_digits,
    outliers_leverage,
    outliers_one_sided,
)


def test_low_rank_is_the_paper_s_recipe():
    made = make_low_rank(random_state=3)
    assert np.linalg.matrix_rank(made.truth) == 4
    assert np.isnan(made.data).sum() == 4000
    assert made.outlier.sum() == made.outlier_mask.sum() == 2000
    np.testing.assert_array_equal(made.data[made.rows, made.columns], made.observed)
    error = made.observed - made.truth[made.rows, made.columns]
    np.testing.assert_allclose(error[~made.outlier].std(), 0.1, rtol=0.05)
    np.testing.assert_allclose(error[made.outlier].std(), 20 / np.sqrt(3), rtol=0.05)
    assert np.abs(error[made.outlier]).max() <= 20
    again = make_low_rank(random_state=3)
    np.testing.assert_array_equal(again.observed, made.observed)
    assert not np.array_equal(make_low_rank(random_state=4).observed, made.observed)


@pytest.mark.parametrize("kwargs", [{"rank": 0}, {"missing": 0.7, "outliers": 0.5}, {"missing": -0.1}])
def test_low_rank_refuses_nonsense(kwargs):
    with pytest.raises(ValueError, match="got"):
        make_low_rank(**kwargs)


def test_each_view_of_the_digits_tells_digits_apart():
    bunch = make_multiview_digits()
    assert bunch.data.shape == (1797, 166)
    assert list(bunch.views) == [
        "pixels",
        "fourier",
        "profiles",
        "moments",
    ]
    model = LogisticRegression(max_iter=200, tol=1e-2)
    for view in bunch.views.values():
        assert np.isfinite(view).all()
        X = (view - view.mean(0)) / np.maximum(view.std(0), 1e-12)
        score = clone(model).fit(X[:1000], bunch.target[:1000]).score(X[1000:], bunch.target[1000:])
        assert score > 0.5, "a view must carry the digit (chance is 0.1)"


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.35, 1.0])
@pytest.mark.parametrize("labels", [[0, 1], ["a", "b", "c"]])
def test_symmetric_noise_is_exact_and_evenly_spread(rate, labels):
    y = np.repeat(labels, 600)
    noisy, flipped = flip_symmetric(y, rate, random_state=1)
    np.testing.assert_array_equal(noisy != y, flipped)
    assert flipped.sum() == round(rate * y.size)
    assert noisy.dtype == y.dtype
    if rate == 1.0 and len(labels) == 3:
        assert abs((noisy[y == "a"] == "b").mean() - 0.5) < 0.08


def test_class_conditional_noise_keeps_each_class_s_rate():
    y = np.repeat([0, 1, 2], [500, 300, 200])
    noisy, flipped = flip_class_conditional(y, {0: 0.3, 2: 0.1}, random_state=0)
    np.testing.assert_array_equal(noisy != y, flipped)
    assert [int(flipped[y == k].sum()) for k in range(3)] == [150, 0, 20]
    by_order, _ = flip_class_conditional(y, [0.3, 0.0, 0.1], random_state=0)
    np.testing.assert_array_equal(by_order, noisy)


@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
def test_noise_near_the_border_is_exact_and_goes_to_the_neighbour(rate):
    """Three classes on a line: wrong labels lie between neighbours, and never jump from one end to the other."""
    x = np.linspace(0, 3, 1200)
    y = np.array(["left", "middle", "right"])[np.minimum(x.astype(int), 2)]
    noisy, flipped = flip_near_border(x[:, None], y, rate, random_state=3)
    np.testing.assert_array_equal(noisy != y, flipped)
    assert flipped.sum() == round(rate * y.size)
    ends = flipped & (y != "middle")
    assert set(noisy[ends]) <= {"middle"}
    if rate == 0.2:
        far = np.minimum(np.abs(x - 1), np.abs(x - 2))
        assert flipped[far < 0.1].mean() > 2.5 * flipped[far > 0.4].mean()


def test_noise_near_the_border_does_not_depend_on_the_unit():
    x = np.linspace(-3, 3, 3000)
    _, flipped = flip_near_border(x[:, None], x > 0, 0.2, random_state=0)
    again, _ = flip_near_border(100 * x[:, None] + 7, x > 0, 0.2, random_state=0)
    np.testing.assert_array_equal(again != (x > 0), flipped)


def test_labels_change_in_one_region_only():
    X = np.random.default_rng(0).standard_normal((2000, 2))
    y = np.arange(2000) % 3
    noisy, flipped = flip_in_region(X, y, 0.5, share=0.3, random_state=1)
    assert flipped.sum() == pytest.approx(300, abs=60)
    np.testing.assert_array_equal(noisy != y, flipped)
    # a linear function of the features tells the region apart
    inside = X[flipped].mean(axis=0)
    assert (X[flipped] @ inside).min() > np.quantile(X @ inside, 0.5)
    assert not flip_in_region(X, y, 0.5, share=0.0, random_state=1)[1].any()


def test_outliers_move_exactly_their_share():
    y = np.random.default_rng(0).standard_normal(500)
    noisy, outlier = outliers_one_sided(y, 0.2, random_state=5)
    np.testing.assert_array_equal(noisy != y, outlier)
    assert outlier.sum() == 100
    assert ((noisy - y)[outlier] / y.std()).min() >= 10 - 1e-9


def test_leverage_outliers_sit_far_out_and_together():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 3)), rng.standard_normal(300)
    made = outliers_leverage(X, y, 0.1, random_state=0)
    assert made.outlier.sum() == 30
    np.testing.assert_array_equal(made.data[~made.outlier], X[~made.outlier])
    np.testing.assert_array_equal(made.target[~made.outlier], y[~made.outlier])
    assert made.data[made.outlier, 0].min() > 4
    assert made.data[made.outlier].std(axis=0).max() < 0.3
    assert made.target[made.outlier].min() > 8


@pytest.mark.parametrize("maker", [flip_symmetric, outliers_one_sided])
def test_the_seed_decides_and_the_input_is_untouched(maker):
    y = np.arange(40) % 2
    kept = y.copy()
    first, again, other = (maker(y, 0.3, random_state=seed)[1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_array_equal(y, kept)


@pytest.mark.parametrize(
    "call",
    [
        lambda: flip_symmetric([0, 1], 1.5),
        lambda: flip_symmetric([0, 0], 0.5),
        lambda: flip_symmetric([[0, 1]], 0.5),
        lambda: flip_class_conditional([0, 1], [0.1]),
        lambda: flip_class_conditional([0, 1], {7: 0.1}),
        lambda: flip_near_border([[1.0]], [0, 1], 0.1),
        lambda: flip_in_region([[1.0]], [0, 1], 0.1),
        lambda: flip_in_region([[1.0], [2.0]], [0, 1], 0.1, share=2.0),
        lambda: flip_near_border([[1.0], [2.0]], [0, 1], 1.1),
        lambda: outliers_one_sided([1.0], -0.1),
        lambda: outliers_one_sided([[1.0]], 0.1),
        lambda: outliers_leverage([[1.0]], [1.0, 2.0], 0.5),
    ],
)
def test_nonsense_is_refused_with_the_value(call):
    with pytest.raises(ValueError, match=r"got|hold"):
        call()
