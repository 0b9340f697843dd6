"""What a fitted model is made of, and the indexes of neighbours in it: built again from the rows that a file holds.

Compiled code reads an index and believes what it says, so none is taken from a file. The same rows give the same index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np


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


def _indexed(model: Any) -> Iterator[Any]:
    """The nearest-neighbour models inside an object that look rows up in a tree."""
    for value, _ in inside(model):
        own = getattr(value, "__dict__", {})
        if type(value).__module__.startswith("sklearn.") and own.get("_fit_method") in ("kd_tree", "ball_tree"):
            yield value


@contextmanager
def without_indexes(model: Any) -> Iterator[None]:
    """A model whose neighbours have no index meanwhile."""
    found = [(value, value._tree) for value in _indexed(model)]
    try:
        for value, _ in found:
            value._tree = None
        yield
    finally:
        for value, tree in found:
            value._tree = tree


def build_indexes(model: Any) -> None:
    """Build the indexes that a file left out."""
    from sklearn.neighbors import BallTree, KDTree

    kinds = {"kd_tree": KDTree, "ball_tree": BallTree}
    for value in _indexed(model):
        if value._tree is None:
            tree, given = kinds[value._fit_method], value.effective_metric_params_
            value._tree = tree(value._fit_X, value.leaf_size, metric=value.effective_metric_, **given)
