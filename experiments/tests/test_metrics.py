"""Clustering measures against brute force over permutations and pairs."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from selfpaced_experiments import metrics


def labelings(seed: int, n: int = 24, classes: int = 4, clusters: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(classes, size=n), rng.integers(clusters, size=n)


@pytest.mark.parametrize("clusters", [2, 4, 6])
def test_accuracy_is_the_best_naming(clusters: int) -> None:
    y, p = labelings(0, clusters=clusters)
    names = [*range(4), *[-1] * max(0, clusters - 4)]  # -1 names a cluster that no class takes
    best = max(np.mean(np.array(naming)[p] == y) for naming in permutations(names, clusters))
    assert metrics.clustering_accuracy(y, p) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_by_enumeration(seed: int) -> None:
    y, p = labelings(seed)
    together = np.array([(y[i] == y[j], p[i] == p[j]) for i, j in combinations(range(len(y)), 2)])
    both = (together[:, 0] & together[:, 1]).sum()
    precision, recall = both / together[:, 1].sum(), both / together[:, 0].sum()
    assert metrics.pairwise_f(y, p) == pytest.approx(2 * precision * recall / (precision + recall))


def test_purity_and_singletons_by_hand() -> None:
    assert metrics.purity(list("aabbbc"), [0, 0, 0, 1, 1, 1]) == pytest.approx(4 / 6)
    assert metrics.pairwise_f([0, 0, 0], [0, 1, 2]) == 0.0
    assert metrics.pairwise_f([0, 1, 2], [0, 1, 2]) == 1.0


def test_measures_ignore_names_and_are_one_for_a_match() -> None:
    y, p = labelings(3)
    assert metrics.clustering_scores(y, np.array(["x", "q", "m"])[p]) == pytest.approx(metrics.clustering_scores(y, p))
    assert metrics.clustering_scores(y, 7 - y) == pytest.approx(dict.fromkeys(("ACC", "NMI", "AR", "F", "Purity"), 1.0))
