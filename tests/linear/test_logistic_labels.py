"""Labels and columns are looked at fast, and seen as they are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from selfpaced import SelfPacedLogisticRegression
from selfpaced.linear.units import Units


@pytest.mark.parametrize(
    "y",
    [
        np.array([3, 1, 1, 3, 7, 7, 7, 1, 3, 3, 1, 1, 1, 1]),
        np.array([-2, -1, -2, -1, -2, -2]),
        np.array([0, 255, 0, 255, 1], dtype=np.uint8),
        np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0, 0]),
        np.array([2**64 - 1, 2**64 - 2, 2**64 - 1, 2**64 - 2], dtype=np.uint64),
        np.array([True, False, True]),
        np.array(["b", "a", "b"]),
    ],
)
def test_labels_are_encoded_as_numpy_does(y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # as many classes as rows: perhaps a regression
        model = SelfPacedLogisticRegression(pace=np.inf).fit(20.0 * np.arange(len(y))[:, None] % 7, y)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert model.classes_.dtype == y.dtype
    np.testing.assert_array_equal(model.assessment_.diagnosis.given, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("place", [0, 1234, 4999])
def test_a_column_beyond_reach_is_seen_wherever_its_large_value_stands(dtype, place):
    X = np.random.default_rng(0).standard_normal((5000, 3)).astype(dtype)
    assert Units.of(X).columns is None
    large = 1e150 if dtype == np.float64 else 1e25
    X[place, 1] = large
    assert Units.of(X).columns.tolist() == [0, int(np.frexp(dtype(large))[1]), 0]


def test_a_column_of_small_numbers_is_seen_and_one_that_is_rarely_large_is_not_small():
    X = np.random.default_rng(0).standard_normal((5000, 3))
    X[:, 2] *= 1e-150
    assert Units.of(X).columns.tolist()[2] < -490
    X[4321, 2] = 1.0
    assert Units.of(X).columns is None
