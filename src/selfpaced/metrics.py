r"""External measures of a clustering: how well found labels match known ones.

All of them are computed from the contingency table :math:`n_{ij}` = number of samples of true class *i* in
found cluster *j*, with row sums :math:`a_i`, column sums :math:`b_j` and total *n*. Every measure is invariant
to renaming the labels on either side, is 1 for a perfect match, and takes labels of any hashable, sortable kind.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from .arguments import labels

__all__ = [
    "adjusted_rand",
    "clustering_accuracy",
    "clustering_scores",
    "normalized_mutual_info",
    "pairwise_f",
    "pairwise_precision_recall",
    "purity",
]


def _checked(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two labelings of the same samples, as positions among their labels."""
    true, found = labels("y_true", y_true)[2], labels("y_pred", y_pred)[2]
    if true.size != found.size:
        raise ValueError(f"y_true and y_pred must be of one length, got {true.size} and {found.size}")
    if true.size == 0:
        raise ValueError("y_true and y_pred must hold at least one sample, got none")
    return true, found


def _table(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.int64]:
    """Contingency table of two labelings, rows true classes, columns found clusters."""
    return np.asarray(contingency_matrix(*_checked(y_true, y_pred)), dtype=np.int64)


def clustering_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    r"""Share of samples classified correctly under the best one-to-one naming of clusters (ACC).

    .. math:: \mathrm{ACC} = \frac{1}{n} \max_{\pi} \sum_i n_{i, \pi(i)}

    over injective maps :math:`\pi` from the smaller side to the larger, found by the Hungarian method. With more
    clusters than classes the left-over clusters count as errors.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    >>> clustering_accuracy([0, 0, 1, 1], [0, 0, 1, 2])
    0.75
    """
    table = _table(y_true, y_pred)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def normalized_mutual_info(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    average: Literal["arithmetic", "geometric", "min", "max"] = "arithmetic",
) -> float:
    r"""Mutual information of the two labelings over a mean of their entropies (NMI).

    .. math:: \mathrm{NMI} = \frac{I(Y; P)}{M(H(Y), H(P))}, \qquad
        I = \sum_{ij} \frac{n_{ij}}{n} \log \frac{n\, n_{ij}}{a_i b_j}

    with M the arithmetic mean by default. Older papers use the geometric one (``"geometric"``, the square root of
    the product); on balanced labelings the two differ in the fourth digit.

    Examples
    --------
    >>> round(normalized_mutual_info([0, 0, 1, 1], [0, 0, 1, 2]), 3)
    0.8
    """
    return float(normalized_mutual_info_score(*_checked(y_true, y_pred), average_method=average))


def adjusted_rand(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    r"""Rand index corrected for chance (Hubert and Arabie 1985, AR or ARI).

    .. math:: \mathrm{ARI} = \frac{S - E}{(A + B)/2 - E}, \quad
        S = \sum_{ij} \tbinom{n_{ij}}{2},\; A = \sum_i \tbinom{a_i}{2},\; B = \sum_j \tbinom{b_j}{2},\;
        E = A B / \tbinom{n}{2}

    Expected 0 for independent labelings; it can be negative.

    Examples
    --------
    >>> round(adjusted_rand([0, 0, 1, 1], [0, 0, 1, 2]), 3)
    0.571
    """
    return float(adjusted_rand_score(*_checked(y_true, y_pred)))


def pairwise_precision_recall(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[float, float]:
    r"""Precision and recall over pairs of samples: is a pair put together also together in truth, and back.

    With S, A, B as in :func:`adjusted_rand`: precision S / B, recall S / A. A side without any pair (every
    sample alone) has nothing to get wrong and counts as 1.

    Examples
    --------
    >>> pairwise_precision_recall([0, 0, 1, 1], [0, 0, 1, 2])
    (1.0, 0.5)
    """
    (_, only_found), (only_true, both) = pair_confusion_matrix(*_checked(y_true, y_pred)).tolist()
    precision = both / (both + only_found) if both + only_found else 1.0
    recall = both / (both + only_true) if both + only_true else 1.0
    return precision, recall


def pairwise_f(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    r"""Harmonic mean of pairwise precision and recall (F-score): 2PR / (P + R).

    Examples
    --------
    >>> round(pairwise_f([0, 0, 1, 1], [0, 0, 1, 2]), 3)
    0.667
    """
    precision, recall = pairwise_precision_recall(y_true, y_pred)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def purity(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    r"""Share of samples that belong to the commonest class of their cluster.

    .. math:: \mathrm{purity} = \frac{1}{n} \sum_j \max_i n_{ij}

    It never falls when a cluster is split: read it only at a fixed number of clusters.

    Examples
    --------
    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    table = _table(y_true, y_pred)
    return float(table.max(axis=0).sum() / table.sum())


def clustering_scores(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """All five measures at once, in the order of the usual tables: ACC, NMI, AR, F, Purity.

    Examples
    --------
    >>> {name: round(value, 2) for name, value in clustering_scores([0, 0, 1, 1], [0, 0, 1, 2]).items()}
    {'ACC': 0.75, 'NMI': 0.8, 'AR': 0.57, 'F': 0.67, 'Purity': 1.0}
    """
    return {
        "ACC": clustering_accuracy(y_true, y_pred),
        "NMI": normalized_mutual_info(y_true, y_pred),
        "AR": adjusted_rand(y_true, y_pred),
        "F": pairwise_f(y_true, y_pred),
        "Purity": purity(y_true, y_pred),
    }
