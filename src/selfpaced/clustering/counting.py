"""How many clusters: as many as two halves of the samples find alike.

Each half is clustered on its own and labels the other half too. How far the two labellings of a sample agree, by the
adjusted Rand index, tells which numbers of clusters the data hold to; what they have in common, the adjusted mutual
information in nats, grows while real clusters are told apart and stands still when one is split at random.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from .kernels import Views, sweep
from .paced import Plan, fit_paced

Labels = NDArray[np.int32]

# Measured by benchmarks/clustering.py (count).
ALIKE = 0.8  # agreement of the halves from which a number is a candidate
ENOUGH = 0.9  # of the largest worth among the candidates: agreement times what is in common

SPLITS = 3  # cost: pairs of halves
RESTARTS = 4  # cost: of every half and number
SAMPLES = 2000  # cost: most that take part
MOST = 20  # a choice: the largest number that "auto" tries
MEMBERS = 10  # a choice: samples per cluster below which a number is not tried


@dataclass(frozen=True)
class Count:
    """A number of clusters and why it was taken."""

    n_clusters: int
    agreement: dict[int, float]

    @property
    def reason(self) -> str:
        """For the closing sentence; empty if the number was given."""
        if not self.agreement:
            return ""
        tried = f"of {min(self.agreement)} to {max(self.agreement)}"
        if self.n_clusters == 1:
            best = max(self.agreement, key=self.agreement.__getitem__)
            return (
                f"1 cluster, because halves of the samples agree on no number {tried} "
                f"(at best {self.agreement[best]:.2f}, for {best}); "
            )
        alike = self.agreement[self.n_clusters]
        return f"{self.n_clusters} clusters {tried}, on which halves of the samples agree by {alike:.2f}; "


def numbers(n_clusters: Any) -> tuple[int, ...]:
    """The numbers of clusters that the parameter asks for; empty for "auto"."""
    rule = "n_clusters must be an integer >= 1, 'auto' or a range of integers >= 2"
    if isinstance(n_clusters, str):
        if n_clusters != "auto":
            raise ValueError(f"{rule}, got {n_clusters!r}")
        return ()
    given = isinstance(n_clusters, Iterable) and getattr(n_clusters, "ndim", 1) > 0
    tried = tuple(n_clusters) if given else (n_clusters,)
    least = 2 if given else 1
    if not tried or not all(isinstance(k, int | np.integer) and not isinstance(k, bool) and k >= least for k in tried):
        raise ValueError(f"{rule}, got {n_clusters!r}")
    return tuple(sorted({int(k) for k in tried}))


def count_clusters(data: Views, tried: tuple[int, ...], plan: Plan, rng: np.random.Generator) -> Count:
    """The number of clusters by the agreement of halves; ``tried`` empty means 2 to as many as the samples allow."""
    few = data if data.n <= SAMPLES else data.take(np.sort(rng.choice(data.n, SAMPLES, replace=False)))
    tried = tried or tuple(range(2, max(2, min(MOST, few.n // MEMBERS)) + 1))
    if few.n < 4 * max(tried):
        raise ValueError(f"n_clusters must be at most a quarter of the {few.n} samples to be chosen, got {max(tried)}")
    quick = replace(plan, restarts=min(plan.restarts, RESTARTS), keep=min(plan.keep, 2))
    orders = [rng.permutation(few.n) for _ in range(SPLITS)]
    halves = [(few.take(np.sort(order[: few.n // 2])), few.take(np.sort(order[few.n // 2 :]))) for order in orders]
    found = {k: np.mean([_agreement(pair, k, quick, rng) for pair in halves], axis=0) for k in tried}
    agreement = {k: float(alike) for k, (alike, _) in found.items()}
    worth = {k: float(alike * common) for k, (alike, common) in found.items() if alike >= ALIKE}
    if not worth:
        return Count(1, agreement)
    return Count(min(k for k in worth if worth[k] >= ENOUGH * max(worth.values())), agreement)


def _agreement(pair: tuple[Views, Views], k: int, plan: Plan, rng: np.random.Generator) -> tuple[float, float]:
    """Rand index and common information of what two halves say, mean of both directions."""
    models = [fit_paced(half, k, plan, rng) for half in pair]
    if any(model.interrupted for model in models):
        raise KeyboardInterrupt  # a part of a path shows no agreement
    alike, common = [], []
    for model, other, half in zip(models, reversed(models), reversed(pair), strict=True):
        said = sweep(half, half.norms(), [c[None] for c in model.centers], model.cost, update=False).labels[0]
        alike.append(adjusted_rand_score(other.labels, said))
        entropy = (_entropy(other.labels) + _entropy(said)) / 2
        common.append(entropy * adjusted_mutual_info_score(other.labels, said))
    return float(np.mean(alike)), float(np.mean(common))


def _entropy(labels: Labels) -> float:
    share = np.bincount(labels) / len(labels)
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())
