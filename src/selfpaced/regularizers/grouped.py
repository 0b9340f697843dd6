"""Rules that look at a whole group of samples, so that no group (class, cluster, scene) is left out.

They are not elementwise: ``weight``, ``latent`` and ``dual`` take the group labels, and the latter two return one
value per group. ``bind(groups)`` gives the two-argument interface that calibration and solver expect.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .base import Formula

Floats = NDArray[np.floating[Any]]


class GroupRegularizer(ABC):
    """A rule with the penalty -lam sum(v) - gamma * (a bonus for every group that takes part).

    ``latent`` and ``dual`` are shifted so that a group taken whole, without loss, has the value 0.
    """

    name: str = ""
    opens: int = 1
    lam_range: tuple[float, float] = (0.0, math.inf)
    formula: Formula
    gamma: float

    def __post_init__(self) -> None:
        if not 0 < self.gamma < math.inf:
            raise ValueError(f"gamma must be a positive number, got {self.gamma!r}")

    @property
    def relative_opens(self) -> int:
        return self.opens

    @property
    def power(self) -> int | None:
        return None

    @abstractmethod
    def _group_weight(self, ordered: Floats, lam: float) -> Floats:
        """Weights of one group whose losses are sorted ascending."""

    def weight(self, loss: ArrayLike, lam: float, groups: ArrayLike) -> Floats:
        """The weights that minimise v * loss - lam v - gamma * bonus over all samples of each group."""
        losses, members = self._validated(loss, lam, groups, "loss")
        weights = np.empty_like(losses)
        for rows in members:
            order = rows[np.argsort(losses[rows], kind="stable")]
            weights[order] = self._group_weight(losses[order], lam)
        return weights.reshape(np.shape(loss))

    def latent(self, loss: ArrayLike, lam: float, groups: ArrayLike) -> Floats:
        """The minimal objective of every group, in the order of ``numpy.unique(groups)``."""
        losses, members = self._validated(loss, lam, groups, "loss")
        weights = np.ravel(self.weight(loss, lam, groups))
        taken = np.where(weights > 0, losses, 0.0) * weights  # an infinite loss without weight costs nothing
        return np.array([taken[rows].sum() for rows in members]) + self.dual(weights, lam, np.ravel(groups))

    def dual(self, weight: ArrayLike, lam: float, groups: ArrayLike) -> Floats:
        """lam sum(1 - v) + gamma (sqrt(n) - sqrt(sum v)) for every group."""
        weights, members = self._validated(weight, lam, groups, "weight")
        return np.array([self._group_dual(weights[rows], lam) for rows in members])

    def _group_dual(self, weights: Floats, lam: float) -> float:
        n, total = weights.size, float(weights.sum())
        return lam * (n - total) + self.gamma * (math.sqrt(n) - math.sqrt(total))

    def max_weight(self, lam: float) -> float:  # noqa: ARG002
        return 1.0

    def _max_weight(self, lam: Any) -> float:  # noqa: ARG002
        return 1.0

    def bind(self, groups: ArrayLike) -> BoundGroups:
        """The same rule for these groups, with the interface of an elementwise one."""
        labels = np.asarray(groups)
        if labels.ndim != 1:
            raise ValueError(f"groups must be one-dimensional, got shape {labels.shape}")
        return BoundGroups(self, labels)

    def _validated(
        self, values: ArrayLike, lam: float, groups: ArrayLike, what: str
    ) -> tuple[Floats, list[NDArray[np.intp]]]:
        array = np.asarray(values)
        flat = np.ravel(array if array.dtype.kind == "f" else array.astype(np.float64))
        labels = np.ravel(np.asarray(groups))
        if labels.shape != flat.shape:
            raise ValueError(f"groups must have one label per {what}: got {labels.size} for {flat.size}")
        if flat.size and not flat.min() >= 0:
            index = int(np.argmin(flat >= 0))
            raise ValueError(f"every {what} must be >= 0 and not NaN, got {float(flat[index])!r} at position {index}")
        if not 0 < lam < math.inf:
            raise ValueError(f"lam must be in (0, inf), got {lam!r}")
        _, codes = np.unique(labels, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        return flat, np.split(order, np.cumsum(np.bincount(codes))[:-1]) if flat.size else []


@dataclass(frozen=True)
class Diversity(GroupRegularizer):
    """Hard selection with a bonus for variety: the i-th easiest of a group needs less the smaller i is.

    The threshold is lam + gamma / (sqrt(i) + sqrt(i - 1)); the paper prints a minus sign there, which does not
    minimise the rule's own objective.

    >>> Diversity(gamma=1.0).weight([0.9, 1.4, 5.0], lam=1.0, groups=["a", "a", "b"]).tolist()
    [1.0, 1.0, 0.0]
    """

    gamma: float = 1.0

    name = "diversity"
    formula = Formula(
        "min over weights 0 or 1 of sum(v l) + dual, per group",
        "1 if l_i <= lam + gamma / (sqrt(i) + sqrt(i - 1)), i the rank in the group",
        "lam sum(1 - v) + gamma (sqrt(n) - ||v||_2), per group, v in {0, 1}",
        "Jiang et al. 2014b",
    )

    def threshold(self, rank: Any, lam: float) -> Any:
        """The largest loss with which the sample of this rank (1, 2, ...) in its group is taken."""
        return lam + self.gamma / (np.sqrt(rank) + np.sqrt(rank - 1))

    def _group_weight(self, ordered: Floats, lam: float) -> Floats:
        rank = np.arange(1, ordered.size + 1)
        inside: Floats = (ordered <= self.threshold(rank, lam)).astype(ordered.dtype)
        return inside


@dataclass(frozen=True)
class GroupSqrt(GroupRegularizer):
    """Soft selection with a bonus for variety: the sample at the border of a group gets a part.

    >>> GroupSqrt(gamma=1.0).weight([1.2, 1.4, 5.0], lam=1.0, groups=[0, 0, 1]).round(4).tolist()
    [1.0, 0.5625, 0.0156]
    """

    gamma: float = 1.0

    name = "group-sqrt"
    formula = Formula(
        "min over [0, 1] weights of sum(v l) + dual, per group",
        "1 if l_i < lam + gamma/(2 sqrt(i)); the first that fails clip((gamma/(2 (l_i - lam)))^2 - (i - 1), 0, 1), "
        "shared among its ties",
        "lam sum(1 - v) + gamma (sqrt(n) - sqrt(sum v)), per group",
        "Zhang et al. 2015",
    )

    def _group_weight(self, ordered: Floats, lam: float) -> Floats:
        weights = np.zeros_like(ordered)
        rank = np.arange(1, ordered.size + 1)
        inside = ordered < lam + self.gamma / (2 * np.sqrt(rank))
        first = int(np.argmin(inside)) if not inside.all() else ordered.size
        if first == ordered.size:
            return np.ones_like(ordered)
        # Ties share equally, also with members that already passed: their sum is all the objective sees.
        tied = ordered == ordered[first]
        start = int(np.argmax(tied))
        weights[:start] = 1
        total = (self.gamma / (2 * (float(ordered[first]) - lam))) ** 2 - start
        weights[tied] = min(max(total / int(tied.sum()), 0.0), 1.0)
        return weights


@dataclass(frozen=True, eq=False)
class BoundGroups:
    """A group rule with its groups filled in; made by :meth:`GroupRegularizer.bind`."""

    rule: GroupRegularizer
    groups: NDArray[Any]

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def opens(self) -> int:
        return self.rule.opens

    @property
    def relative_opens(self) -> int:
        return self.rule.opens

    @property
    def power(self) -> int | None:
        return None

    @property
    def lam_range(self) -> tuple[float, float]:
        return self.rule.lam_range

    @property
    def pace_range(self) -> tuple[float, float]:
        return self.rule.lam_range

    def weight(self, loss: ArrayLike, lam: float) -> Floats:
        return self.rule.weight(loss, lam, self.groups)

    def relative_weight(self, loss: ArrayLike, lam: float) -> Floats:
        return self.weight(loss, lam)

    def latent(self, loss: ArrayLike, lam: float) -> Floats:
        return self.rule.latent(loss, lam, self.groups)

    def dual(self, weight: ArrayLike, lam: float) -> Floats:
        return self.rule.dual(weight, lam, self.groups)

    def max_weight(self, lam: float) -> float:
        return self.rule.max_weight(lam)
