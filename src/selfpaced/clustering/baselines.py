"""What people would pick instead: k-means on every view, and on all of them side by side (Con-MC)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from .views import check_lengths, check_view, fit_scaler, missing_rows, named

__all__ = ["concatenated_kmeans", "per_view_kmeans", "scale_views"]


def scale_views(views: Any, scaling: str = "zscore") -> dict[Hashable, Any]:
    """The views of a list or dict under one of the scalings of :class:`SelfPacedMultiViewKMeans`.

    Examples
    --------
    >>> scaled = scale_views({"a": [[0.0], [2.0]], "b": [[1.0, 1.0], [5.0, 1.0]]})
    >>> scaled["a"].ravel().tolist(), scaled["b"].tolist()
    ([-1.0, 1.0], [[-1.0, 0.0], [1.0, 0.0]])
    """
    blocks = {name: check_view(name, block) for name, block in named(views).items()}
    check_lengths(blocks)
    scaled = {}
    for name, block in blocks.items():
        missing = missing_rows(name, block)
        if missing.any():
            raise ValueError(f"view {name!r} must be complete for a baseline, got {missing.sum()} missing rows")
        scaled[name] = fit_scaler(name, block, scaling, missing, None).apply(block, None)
    return scaled


def per_view_kmeans(
    views: Any, n_clusters: int, *, scaling: str = "unit-row", n_init: int = 1, random_state: Any = None
) -> dict[Hashable, NDArray[np.int32]]:
    """Labels of a k-means on each view alone; the defaults are the paper's (unit rows, one start).

    Examples
    --------
    >>> per_view_kmeans([[[0.0], [0.1], [5.0]]], 2, scaling="zscore", random_state=0)[0].tolist()[2] in (0, 1)
    True
    """
    return {
        name: KMeans(n_clusters, n_init=n_init, random_state=random_state).fit_predict(view)
        for name, view in scale_views(views, scaling).items()
    }


def concatenated_kmeans(
    views: Any, n_clusters: int, *, scaling: str = "unit-row", n_init: int = 1, random_state: Any = None
) -> NDArray[np.int32]:
    """Labels of a k-means on all views side by side, the paper's Con-MC; its defaults as well."""
    scaled = list(scale_views(views, scaling).values())
    table = sp.csr_matrix(sp.hstack(scaled)) if any(map(sp.issparse, scaled)) else np.hstack(scaled)
    return np.asarray(KMeans(n_clusters, n_init=n_init, random_state=random_state).fit_predict(table))
