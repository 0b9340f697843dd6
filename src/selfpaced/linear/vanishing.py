"""Classes that vanish along a given pace: rows of one class alone fit best, and the others never come back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fitting import warn_unpaced
from ..solver import Solution

__all__ = ["ClassWatch"]

LOST = 1e-3  # a choice: share of the weight of the best kept class below which a class is lost


@dataclass(eq=False)
class ClassWatch:
    """Looks on while a pace is walked, for the last stage at which every class had some weight.

    Parameters
    ----------
    codes : ndarray of int
        Classes of the rows whose weights it is shown.

    Examples
    --------
    >>> watch = ClassWatch(np.array([0, 0, 1]))
    >>> watch.complete(np.array([1.0, 0.5, 0.1])), watch.complete(np.array([1.0, 0.5, 0.0]))
    (True, False)
    """

    codes: NDArray[np.signedinteger[Any]]
    last: Solution[Any] | None = field(default=None, init=False)

    def complete(self, weights: Any) -> bool:
        """Whether no class is lost."""
        mean = np.bincount(self.codes, weights) / np.maximum(np.bincount(self.codes), 1)
        return bool(mean.min() > LOST * mean.max())

    def see(self, solution: Solution[Any]) -> None:
        """One more stage."""
        if self.complete(solution.weights):
            self.last = solution

    def end(self, solution: Solution[Any]) -> Solution[Any]:
        """The end of the walk, or what is kept instead because a class was lost there."""
        if not solution.stages or solution.interrupted or self.complete(solution.weights):
            return solution
        reason = f"at lam = {solution.lam:.4g} a class is left without weight (start at a larger lam or fraction)"
        if self.last is not None:
            count = len(self.last.stages)
            return replace(self.last, status=f"Stage {count} was kept: {reason}.", end="dead end")
        warn_unpaced(reason)
        return replace(solution, stages=(), status=f"The plain model was kept: {reason}.", end="dead end")
