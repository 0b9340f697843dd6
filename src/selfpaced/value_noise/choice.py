"""Whether a paced model stands in view of the verdict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .base import Array

__all__ = ["nearest"]


def nearest(
    paced: Sequence[Array], plain: Array, trusted: np.ndarray, sample_weight: Array | None = None
) -> int | None:
    """Which of the models is nearest to the rows that are trusted; None where that is the plain one.

    It must be nearer than the plain one both by the size of residuals and by their square: a model that gives up the
    far end of a skewed target wins by size alone, one that follows a few far values by squares alone.

    Parameters
    ----------
    paced : sequence of ndarray of shape (n,)
        Residuals of unseen rows, of each model.
    plain : ndarray of shape (n,)
        Those of the plain model.
    trusted : ndarray of bool of shape (n,)
        Rows that count.
    sample_weight : ndarray of shape (n,), optional
        Counts of the rows.

    Returns
    -------
    int or None

    Examples
    --------
    >>> plain, trusted = np.array([1.0, 2.0, 3.0]), np.array([True, True, False])
    >>> nearest([np.array([0.0, 1.0, 9.0])], plain, trusted), nearest([np.array([0.0, 2.3, 9.0])], plain, trusted)
    (0, None)
    """
    if not trusted.any():
        return None
    weight = None if sample_weight is None else sample_weight[trusted]

    def distances(residuals: Array) -> tuple[float, float]:
        size = np.abs(residuals[trusted])
        return float(np.average(size, weights=weight)), float(np.average(size * size, weights=weight))

    reached, limit = [distances(residuals) for residuals in paced], distances(plain)
    better = [number for number, found in enumerate(reached) if found[0] < limit[0] and found[1] < limit[1]]
    return min(better, key=lambda number: reached[number][1], default=None)
