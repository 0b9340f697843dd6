"""Ctrl-C at the k-th call of a function, as a test sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Interrupting:
    """Calls a function until the k-th time, where it raises KeyboardInterrupt instead; counts calls."""

    def __init__(self, function: Callable[..., Any], k: float) -> None:
        self.function, self.k, self.calls = function, k, 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls == self.k:
            raise KeyboardInterrupt
        return self.function(*args, **options)
