"""Cluster the digits once by one method."""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from selfpaced_experiments.data import load_mfeat
from selfpaced_experiments.metrics import clustering_scores
from selfpaced_experiments.paper import METRICS, RULES

__all__ = ["RULE_NAMES", "run"]

#: Rows of the paper's table that are self-paced, with the library's name of the rule.
RULE_NAMES = {label: name for name, label in RULES.items()} | {"MSPL": "mspl"}


@functools.lru_cache(maxsize=1)
def _data(data_dir: str | None) -> Bunch:
    return load_mfeat(data_dir=data_dir)


def run(*, method: str, scaling: str, seed: int, data_dir: str | None) -> dict[str, Any]:
    """The five measures of one run; labels are used for nothing but measuring."""
    data = _data(data_dir)
    start = time.process_time()
    labels = _labels(method, scaling, seed, data.views)
    seconds = time.process_time() - start
    scores = clustering_scores(data.target, labels)
    return {"scores": dict(zip(METRICS, scores.values(), strict=True)), "seconds": seconds}


def _labels(method: str, scaling: str, seed: int, views: dict[str, NDArray[np.float64]]) -> NDArray[np.int32]:
    from selfpaced import SelfPacedMultiViewKMeans
    from selfpaced_experiments.baselines import concatenated_kmeans, per_view_kmeans

    if method.lower() in views:
        alone = {method: views[method.lower()]}
        return per_view_kmeans(alone, 10, scaling=scaling, n_init=1, random_state=seed)[method]
    if method == "Con-MC":
        return concatenated_kmeans(views, 10, scaling=scaling, n_init=1, random_state=seed)
    if method == "KMeans(n_init=10)":
        return concatenated_kmeans(views, 10, scaling=scaling, n_init=10, random_state=seed)
    if method == "SpectralClustering":
        return _spectral(views, scaling, seed)
    options: dict[str, Any] = {"view_scaling": scaling, "random_state": seed}
    if method == 'embedding="spectral"':
        model = SelfPacedMultiViewKMeans(10, embedding="spectral", **options)
    elif method.endswith(", one start"):
        rule = RULE_NAMES[method.removesuffix(", one start")]
        model = SelfPacedMultiViewKMeans(10, regularizer=rule, n_init=1, n_keep=1, **options)
    else:
        model = SelfPacedMultiViewKMeans(10, regularizer=RULE_NAMES[method], **options)
    return np.asarray(model.fit(views).labels_)


def _spectral(views: dict[str, NDArray[np.float64]], scaling: str, seed: int) -> NDArray[np.int32]:
    from sklearn.cluster import SpectralClustering

    from selfpaced_experiments.baselines import scale_views

    table = np.hstack(list(scale_views(views, scaling).values()))
    return np.asarray(SpectralClustering(10, affinity="nearest_neighbors", random_state=seed).fit_predict(table))
