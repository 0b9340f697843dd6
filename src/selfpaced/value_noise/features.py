"""Numbers that the assessment can learn from, out of whatever a model was given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["numeric_features"]

Array = NDArray[np.floating[Any]]
COLUMNS = 200  # cost: features up to which they are all looked at; beyond, the model's own predictions have to do


def numeric_features(X: Any) -> Array | None:
    """A table of numbers (text and categories as codes), or None where X is too wide or no table.

    >>> numeric_features([[1, 2], [3, 4]]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    >>> numeric_features(np.array([["a", 1.5], ["b", 2.5]], dtype=object)).tolist()
    [[0.0, 1.5], [1.0, 2.5]]
    """
    shape = np.shape(X)
    if len(shape) != 2 or not 0 < shape[1] <= COLUMNS:
        return None
    if sparse.issparse(X):
        return np.asarray(X.toarray(), dtype=float)
    if hasattr(X, "iloc"):
        return np.column_stack([_column(X.iloc[:, j]) for j in range(shape[1])])
    table = np.asarray(X)
    if table.dtype.kind in "fiub":
        return np.asarray(table, dtype=float)
    return np.column_stack([_column(table[:, j]) for j in range(shape[1])])


def _column(values: Any) -> Array:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        codes: Array = np.unique(np.asarray(values).astype(str), return_inverse=True)[1].astype(float)
        return codes
    return np.where(np.isinf(numbers), np.nan, numbers)
