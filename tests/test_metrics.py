"""Clustering measures against brute force over permutations and pairs."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from selfpaced import metrics

MEASURES = [
    metrics.clustering_accuracy,
    metrics.normalized_mutual_info,
    metrics.adjusted_rand,
    metrics.pairwise_f,
    metrics.purity,
]


def labelings(seed: int, n: int = 24, classes: int = 4, clusters: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(classes, size=n), rng.integers(clusters, size=n)


@pytest.mark.parametrize("clusters", [2, 4, 6])
@pytest.mark.parametrize("seed", range(5))
def test_accuracy_is_the_best_naming(seed: int, clusters: int) -> None:
    y, p = labelings(seed, clusters=clusters)
    # -1 names a cluster that no class takes: with more clusters than classes somebody is left over.
    names = [*range(4), *[-1] * max(0, clusters - 4)]
    best = max(np.mean(np.array(naming)[p] == y) for naming in permutations(names, clusters))
    assert metrics.clustering_accuracy(y, p) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(5))
def test_pair_counts_by_enumeration(seed: int) -> None:
    y, p = labelings(seed)
    together = np.array([(y[i] == y[j], p[i] == p[j]) for i, j in combinations(range(len(y)), 2)])
    both = (together[:, 0] & together[:, 1]).sum()
    precision, recall = both / together[:, 1].sum(), both / together[:, 0].sum()
    assert metrics.pairwise_precision_recall(y, p) == pytest.approx((precision, recall))
    assert metrics.pairwise_f(y, p) == pytest.approx(2 * precision * recall / (precision + recall))
    expected = together[:, 0].sum() * together[:, 1].sum() / len(together)
    ceiling = together.sum() / 2
    assert metrics.adjusted_rand(y, p) == pytest.approx((both - expected) / (ceiling - expected))


@pytest.mark.parametrize("average", ["arithmetic", "geometric", "min", "max"])
def test_mutual_information_by_definition(average: str) -> None:
    y, p = labelings(0)

    def entropy(*columns: np.ndarray) -> float:
        counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)[1] / len(y)
        return float(-(counts * np.log(counts)).sum())

    information = entropy(y) + entropy(p) - entropy(y, p)
    mean = {"arithmetic": lambda a, b: (a + b) / 2, "geometric": lambda a, b: (a * b) ** 0.5, "min": min, "max": max}
    expected = information / mean[average](entropy(y), entropy(p))
    assert metrics.normalized_mutual_info(y, p, average) == pytest.approx(expected)


def test_purity_by_hand() -> None:
    assert metrics.purity(list("aabbbc"), [0, 0, 0, 1, 1, 1]) == pytest.approx(4 / 6)


@pytest.mark.parametrize("measure", MEASURES)
def test_invariant_to_names_and_one_for_a_match(measure) -> None:
    y, p = labelings(3)
    renamed = np.array(["x", "q", "m"])[p]
    assert measure(y, renamed) == pytest.approx(measure(y, p))
    assert measure(y, y) == pytest.approx(1)
    assert measure(y, 7 - y) == pytest.approx(1)


def test_singletons_have_no_pairs_to_get_wrong() -> None:
    assert metrics.pairwise_precision_recall([0, 0, 0], [0, 1, 2]) == (1.0, 0.0)
    assert metrics.pairwise_f([0, 0, 0], [0, 1, 2]) == 0.0
    assert metrics.pairwise_f([0, 1, 2], [0, 1, 2]) == 1.0


@pytest.mark.parametrize("measure", MEASURES)
def test_bad_input(measure) -> None:
    with pytest.raises(ValueError, match="of one length"):
        measure([0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match="at least one sample"):
        measure([], [])


def test_scores_hold_every_measure() -> None:
    y, p = labelings(1)
    scores = metrics.clustering_scores(y, p)
    assert list(scores) == ["ACC", "NMI", "AR", "F", "Purity"]
    assert list(scores.values()) == [measure(y, p) for measure in MEASURES]
