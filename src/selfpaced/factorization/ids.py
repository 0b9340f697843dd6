"""Labels of rows and columns: ids of a long frame, or the index and columns of a wide one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Ids:
    """The labels of one side of a matrix in order, each once.

    >>> users = Ids(np.array(["ann", "bob"]))
    >>> users.positions(["bob", "eve"]).tolist()
    [1, -1]
    """

    labels: Array

    def positions(self, given: Any) -> NDArray[np.intp]:
        """Where labels stand; -1 for unknown ones."""
        labels, flat = self.labels, np.asarray(given)
        if labels.dtype.kind in "mM":  # dates in another unit are the same dates
            try:
                labels, flat = labels.astype(np.int64), flat.astype(labels.dtype).astype(np.int64)
            except ValueError:
                return np.full(flat.shape, -1, dtype=np.intp)
        at = {label: k for k, label in enumerate(labels.tolist())}
        found = [at.get(label, -1) for label in flat.ravel().tolist()]
        return np.array(found, dtype=np.intp).reshape(flat.shape)


def tidy(labels: Any) -> Array:
    """Labels as an array that can be saved: text as text, not as objects."""
    array = np.asarray(labels)
    if array.dtype == object and all(isinstance(label, str) for label in array):
        array = array.astype(str)
    return array


def coded(values: Any, name: str) -> tuple[Array, NDArray[np.intp]]:
    """Distinct ids in order, and which of them each value is."""
    array = tidy(values)
    missing = array.dtype.kind == "f" and bool(np.isnan(array).any())
    if missing or (array.dtype == object and any(value is None or value != value for value in array)):
        raise ValueError(f"{name} must name a row or column in every line, got missing ids")
    try:
        labels, codes = np.unique(array, return_inverse=True)
    except TypeError:  # ids of several types have no order
        place: dict[Any, int] = {}
        codes = np.array([place.setdefault(value, len(place)) for value in array.tolist()], dtype=np.intp)
        labels = np.empty(len(place), dtype=object)
        labels[:] = list(place)
    return labels, codes


def labels_of(labels: Any) -> Array | None:
    """Labels of a frame's side; None where they are only counted, or not distinct."""
    if labels is None:
        return None
    array = tidy(labels)
    counted = array.dtype.kind in "iu" and np.array_equal(array, np.arange(array.size))
    return None if counted or len(set(array.tolist())) < array.size else array


def check_positions(given: Any, size: int, name: str, unknown: bool = False) -> NDArray[np.intp]:
    """Positions as integers from 0; those beyond the end are -1 if ``unknown`` ones are allowed."""
    at = np.asarray(given)
    if at.dtype.kind not in "iu" or (at.size and at.min() < 0):
        raise ValueError(f"{name} must be integers >= 0, got {given!r}")
    if not unknown and at.size and at.max() >= size:
        raise ValueError(f"{name} must be below {size}, got {int(at.max())}")
    return np.where(at < size, at, -1).astype(np.intp)
