r"""The five measures of the paper's clustering tables, beside those of scikit-learn.

All are computed from the contingency table :math:`n_{ij}` = number of samples of true class *i* in found cluster *j*.
They do not depend on the names of classes and clusters, and are 1 for a perfect match.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

__all__ = ["clustering_accuracy", "clustering_scores", "pairwise_f", "purity"]


def _table(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[Any]:
    """Contingency table: rows are true classes, columns are found clusters."""
    return np.asarray(contingency_matrix(y_true, y_pred))


def clustering_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    r"""Share of samples classified correctly under the best one-to-one naming of clusters (ACC).

    .. math:: \mathrm{ACC} = \frac{1}{n} \max_{\pi} \sum_i n_{i, \pi(i)}

    over injective maps :math:`\pi` from the smaller side to the larger. With more clusters than classes, the samples
    of the left-over clusters count as errors.

    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 0]), clustering_accuracy([0, 0, 1, 1], [0, 0, 1, 2])
    (1.0, 0.75)
    """
    table = _table(y_true, y_pred)
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / table.sum())


def pairwise_f(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Harmonic mean of precision and recall over pairs of samples that are in one cluster (F-score).

    >>> round(pairwise_f([0, 0, 1, 1], [0, 0, 1, 2]), 3)
    0.667
    """
    (_, only_found), (only_true, both) = pair_confusion_matrix(y_true, y_pred).tolist()
    pairs = 2 * both + only_found + only_true
    return 2 * both / pairs if pairs else 1.0  # no pair on either side: nothing is wrong


def purity(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    r"""Share of samples that belong to the commonest class of their cluster.

    It never falls when a cluster is split: compare it only at a fixed number of clusters.

    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    table = _table(y_true, y_pred)
    return float(table.max(axis=0).sum() / table.sum())


def clustering_scores(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """All five measures in the order of the paper's tables.

    >>> {name: round(value, 2) for name, value in clustering_scores([0, 0, 1, 1], [0, 0, 1, 2]).items()}
    {'ACC': 0.75, 'NMI': 0.8, 'AR': 0.57, 'F': 0.67, 'Purity': 1.0}
    """
    return {
        "ACC": clustering_accuracy(y_true, y_pred),
        "NMI": float(normalized_mutual_info_score(y_true, y_pred)),
        "AR": float(adjusted_rand_score(y_true, y_pred)),
        "F": pairwise_f(y_true, y_pred),
        "Purity": purity(y_true, y_pred),
    }
