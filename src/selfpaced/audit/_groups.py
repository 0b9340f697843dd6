"""Groups with one label each: their rows are assessed together, and evidence counts groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..selection import effective_size

__all__ = ["group_weights", "one_label_each", "pooled"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def one_label_each(groups: Codes, codes: Codes) -> bool:
    """Whether the label belongs to the group: all rows of every group have the same one.

    >>> one_label_each(np.array([0, 0, 1]), np.array([2, 2, 1])), one_label_each(np.array([0, 0]), np.array([0, 1]))
    (True, False)
    """
    pairs = len(np.unique(np.column_stack([groups, codes]), axis=0))
    return pairs == len(np.unique(groups))


def pooled(probs: Any, groups: Codes) -> Floats:
    """The geometric mean of the probabilities of a group, for each of its rows.

    >>> pooled(np.array([[0.9, 0.1], [0.1, 0.9], [0.2, 0.8]]), np.array([0, 0, 1])).round(2).tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]]
    """
    positive = probs[probs > 0]
    logs = np.log(np.maximum(probs, 0.5 * positive.min()))
    sums = np.zeros((int(groups.max()) + 1, probs.shape[1]))
    np.add.at(sums, groups, logs)
    means = (sums / np.maximum(np.bincount(groups), 1)[:, None])[groups]
    out = np.exp(means - means.max(axis=1, keepdims=True))
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def group_weights(groups: Codes, weight: Floats | None) -> tuple[Floats, float]:
    """Weights of rows that sum to one for each group, or to the mean weight of its rows, and the number of groups."""
    mass = np.ones(len(groups)) if weight is None else weight
    rows = np.bincount(groups)
    means = np.bincount(groups, mass) / np.maximum(rows, 1)
    there = means[rows > 0]
    return np.asarray(mass / rows[groups]), effective_size(None if weight is None else there, len(there))
