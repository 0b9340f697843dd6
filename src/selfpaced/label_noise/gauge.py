"""A noise gauge that needs no fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..selection import effective_size
from .base import Array
from .channel import as_matrix


def confident_error(
    logits: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, share: float = 1 / 3
) -> tuple[float, float]:
    """Noisy error of the most confident predictions: a noise gauge that needs no fit.

    Where a model is sure, its own mistakes are rare, so what disagrees there is mostly label noise.

    Parameters
    ----------
    logits : array-like of shape (n,), (n, 1) or (n, n_classes)
        Out-of-fold logits (binary: the margin of the second class, or two columns).
    y : array-like of shape (n,)
        Given labels as codes.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    share : float
        Share of rows that counts as confident.

    Returns
    -------
    overall, by_class : float
        The error over all confident rows, and its mean over the predicted classes (one third of each).

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced.label_noise import confident_error
    >>> margin = np.r_[np.linspace(-3, -1, 30), np.linspace(1, 3, 30)]
    >>> y = (margin > 0).astype(int)
    >>> y[0] = 1
    >>> round(confident_error(margin, y)[0], 2)
    0.05
    """
    z = as_matrix(logits)
    codes = np.asarray(y, dtype=np.intp)
    weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    top = np.partition(z, z.shape[1] - 2, axis=1)
    gap = top[:, -1] - top[:, -2]
    predicted = z.argmax(axis=1)
    wrong = (predicted != codes) * weight
    overall = _error_of_surest(gap, wrong, weight, share)
    errors = [
        _error_of_surest(gap[rows], wrong[rows], weight[rows], share)
        for rows in (np.flatnonzero(predicted == c) for c in range(z.shape[1]))
        if len(rows) and effective_size(weight[rows], len(rows)) >= 10
    ]
    return overall, float(np.mean(errors)) if errors else 0.5


def _error_of_surest(gap: Array, wrong: Array, weight: Array, share: float) -> float:
    """The error of the surest share; of rows that are equally sure at its edge, each counts in part."""
    order = np.argsort(-gap, kind="stable")
    total = np.cumsum(weight[order])
    wanted = share * float(total[-1])
    least = gap[order[min(int(np.searchsorted(total, wanted)), len(order) - 1)]]
    above, edge = gap > least, gap == least
    part = (wanted - float(weight[above].sum())) / max(float(weight[edge].sum()), np.finfo(float).tiny)
    return float((wrong[above].sum() + part * wrong[edge].sum()) / max(wanted, np.finfo(float).tiny))
