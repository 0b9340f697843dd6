"""Whether a paced model stands in view of the verdict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..selection import mean_and_error
from .base import Array
from .verdict import Verdict

__all__ = ["nearest"]

DOUBTED = 1.0  # standard errors that a gain must have where nothing gross was found: benchmarks/values.py


def nearest(paced: Sequence[Array], plain: Array, verdict: Verdict, sample_weight: Array | None = None) -> int | None:
    """Which of the models is nearest to the rows that can be told; None where that is the plain one.

    It must be nearer than the plain one both by the size of residuals and by their square: a model that gives up the
    far end of a skewed target wins by size alone, one that follows a few far values by squares alone. Rows that are
    wrong, or far from every explanation (the tails of Cauchy's errors), do not count. Where no gross
    errors were found, it must be so beyond a standard error: there was little to gain.

    Parameters
    ----------
    paced : sequence of ndarray of shape (n,)
        Residuals of unseen rows, of each model.
    plain : ndarray of shape (n,)
        Those of the plain model.
    verdict : Verdict
        Which rows count.
    sample_weight : ndarray of shape (n,), optional
        Counts of the rows.

    Returns
    -------
    int or None

    Examples
    --------
    >>> plain, nothing = np.array([1.0, 2.0, 3.0]), Verdict(np.array([0.0, 0.0, 1.0]), 0.0, (0.0, 0.0), sigma=1.0)
    >>> nearest([np.array([0.0, 1.0, 9.0])], plain, nothing), nearest([np.array([0.0, 2.3, 9.0])], plain, nothing)
    (0, None)
    """
    trusted = verdict.comparable
    if trusted.sum() < 2:
        return None
    weight = None if sample_weight is None else sample_weight[trusted]
    errors = 0.0 if verdict.found else DOUBTED
    squares: dict[int, float] = {}
    for number, residuals in enumerate(paced):
        before, after = np.abs(plain[trusted]), np.abs(residuals[trusted])
        gains = [mean_and_error(before**power - after**power, weight) for power in (1, 2)]
        if all(gain.mean > errors * gain.error for gain in gains):
            squares[number] = gains[1].mean
    return max(squares, key=squares.__getitem__, default=None)
