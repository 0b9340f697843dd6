"""Baselines of the clustering tables: k-means on every view, and on all of them side by side (Con-MC)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

__all__ = ["concatenated_kmeans", "per_view_kmeans", "scale_views"]

Floats = NDArray[np.floating[Any]]


def scale_views(views: Any, scaling: str = "zscore") -> dict[Hashable, Floats]:
    """Scale the complete dense views of a list or dict as ``SelfPacedMultiViewKMeans(view_scaling=scaling)`` does.

    Examples
    --------
    >>> scaled = scale_views({"a": [[0.0], [2.0]], "b": [[1.0, 1.0], [5.0, 1.0]]})
    >>> scaled["a"].ravel().tolist(), scaled["b"].tolist()
    ([-1.0, 1.0], [[-1.0, 0.0], [1.0, 0.0]])
    """
    given = dict(views) if isinstance(views, Mapping) else dict(enumerate(views))
    return {name: _scaled(np.asarray(view, dtype=np.float64), scaling) for name, view in given.items()}


def _scaled(view: Floats, scaling: str) -> Floats:
    if scaling == "unit-row":
        return np.asarray(normalize(view), dtype=np.float32)
    if scaling != "zscore":
        raise ValueError(f"scaling must be 'zscore' or 'unit-row', got {scaling!r}")
    spread = view.std(axis=0)
    varies = spread > 10 * np.finfo(np.float64).eps * np.abs(view.mean(axis=0))
    scale = np.where(varies, spread * np.sqrt(varies.sum()), 1.0)
    return np.asarray((view - view.mean(axis=0)) / scale, dtype=np.float32)


def per_view_kmeans(
    views: Any, n_clusters: int, *, scaling: str = "unit-row", n_init: int = 1, random_state: Any = None
) -> dict[Hashable, NDArray[np.int32]]:
    """Labels of a k-means on each view alone; the defaults are the paper's (unit rows, one start)."""
    return {
        name: KMeans(n_clusters, n_init=n_init, random_state=random_state).fit_predict(view)
        for name, view in scale_views(views, scaling).items()
    }


def concatenated_kmeans(
    views: Any, n_clusters: int, *, scaling: str = "unit-row", n_init: int = 1, random_state: Any = None
) -> NDArray[np.int32]:
    """Labels of a k-means on all views side by side, the paper's Con-MC; the defaults are the paper's."""
    table = np.hstack(list(scale_views(views, scaling).values()))
    return np.asarray(KMeans(n_clusters, n_init=n_init, random_state=random_state).fit_predict(table))
