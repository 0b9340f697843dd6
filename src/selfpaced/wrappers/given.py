"""Labels as they are given to a wrapped classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ..arguments import check_label_array, speaking_of
from .cases import Array

__all__ = ["GivenLabels", "codes_of", "given_labels"]


@dataclass(frozen=True, eq=False)
class GivenLabels:
    """Labels as given, the distinct ones, and the place of each among them."""

    y: Array
    classes: Array
    codes: NDArray[np.intp]


def given_labels(y: Any) -> GivenLabels:
    """Labels of classes, checked."""
    if y is None:
        raise ValueError("This SelfPacedClassifier estimator requires y to be passed, but the target y is None.")
    with speaking_of("y", "labels, one for each row"):
        y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_label_array(y)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return GivenLabels(y, classes, codes)


def codes_of(given: Array, classes: Array) -> Array:
    """Labels as positions in ``classes``."""
    check_label_array(given)
    codes = np.searchsorted(classes, given)
    known = codes < classes.size
    known[known] = classes[codes[known]] == given[known]
    if not known.all():
        raise ValueError(f"y must hold labels seen in fit {classes.tolist()!r}, got {given[~known][0]!r}")
    return np.asarray(codes)
