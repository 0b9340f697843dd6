"""Labels are encoded as numpy does it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from selfpaced import SelfPacedLogisticRegression


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
