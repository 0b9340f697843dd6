"""What a fitted model is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["inside"]


def inside(model: Any) -> Iterator[tuple[Any, int]]:
    """The model and every object inside it, each once, with the number of features that its owner takes."""
    seen: set[int] = set()
    waiting = [(model, 0)]
    while waiting:
        value, width = waiting.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
            continue
        seen.add(id(value))
        yield value, width
        own = vars(value) if hasattr(value, "__dict__") else {}
        if isinstance(value, Mapping):
            children: Iterable[Any] = value.values()
        elif isinstance(value, list | tuple | set):
            children = value
        elif isinstance(value, np.ndarray):
            children = value.ravel() if value.dtype == object else ()
        else:
            children = own.values()
        waiting.extend((child, int(own.get("n_features_in_", width))) for child in list(children))
