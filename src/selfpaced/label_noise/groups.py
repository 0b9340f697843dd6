"""Grouped rows: how many independent rows they are worth when a label-noise model is fitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .model import Array, NoiseModel, as_matrix, softmax, symmetric

__all__ = ["design_effect", "rate_scores"]

LEAST_RATE = 0.01  # numerical safety: scores at a rate of 0 are infinite


def design_effect(scores: Array, groups: ArrayLike, weight: Array | None = None) -> float:
    """Variance of the last parameter over what it would be if rows were independent (cluster-robust sandwich).

    Rows of a group often share their errors: six visits of a patient with the wrong diagnosis are one error, not six.
    The number of rows divided by this factor is the number of independent rows.

    Parameters
    ----------
    scores : ndarray of shape (n, n_parameters)
        Derivatives of the log-likelihood of each row.
    groups : array-like of shape (n,)
        Group of each row.
    weight : ndarray of shape (n,), optional
        Sample weights.

    Returns
    -------
    float
        At least 1.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).normal(size=(400, 1))
    >>> alone = design_effect(scores, np.arange(400))
    >>> copies = design_effect(np.repeat(scores, 6, axis=0), np.repeat(np.arange(400), 6))
    >>> round(alone, 1), round(copies, 1)
    (1.0, 6.0)
    """
    mass = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=float)
    centred = mass[:, None] * (scores - np.average(scores, axis=0, weights=mass))
    _, code = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(code.max()) + 1
    sums = np.zeros((n_groups, scores.shape[1]))
    np.add.at(sums, code, centred)
    inverse = np.linalg.pinv(centred.T @ centred)
    robust = inverse @ (sums.T @ sums) @ inverse * (n_groups / max(n_groups - 1, 1))
    return float(max(robust[-1, -1] / max(inverse[-1, -1], np.finfo(float).tiny), 1.0))


def rate_scores(model: NoiseModel, logits: ArrayLike, y: ArrayLike) -> Array:
    """Derivatives of each label's log-likelihood in the log scale and in one noise rate, shape (n, 2)."""
    z, codes = as_matrix(logits), np.asarray(y, dtype=np.intp)
    n_classes = z.shape[1]
    rate = max(float(np.nan_to_num(model.rate_if_any)), LEAST_RATE)
    scale = model.scale if model.suspicion is None else model.suspicion.scale
    clean = softmax(scale * (z + model.bias / model.scale))
    own = clean[np.arange(len(codes)), codes]
    joint = clean * symmetric(rate, n_classes)[:, codes].T
    given = joint.sum(axis=1)
    by_scale = scale * ((joint / given[:, None] - clean) * z).sum(axis=1)
    by_rate = ((1.0 - own) / (n_classes - 1) - own) / given
    return np.stack([by_scale, by_rate], axis=1)
