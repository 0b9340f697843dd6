"""The library's own classifiers, apart from their peers so that a change leaves those answers cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from selfpaced_experiments.paper import RULES

__all__ = ["LINEAR"]


def _rule(name: str) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from selfpaced import SelfPacedLogisticRegression

        return SelfPacedLogisticRegression(regularizer=name, pace="paper", C=1.0, random_state=seed)

    return make


def _default(seed: int) -> Any:
    from selfpaced import SelfPacedLogisticRegression

    return SelfPacedLogisticRegression(random_state=seed)


LINEAR: dict[str, Callable[[int], Any]] = {
    **{label: _rule(name) for name, label in RULES.items()},
    "SelfPacedLogisticRegression()": _default,
}
