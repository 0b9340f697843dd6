"""Indexes of nearest-neighbour models: left out of a file, and built again from the rows that it holds.

Compiled code reads an index and believes what it says, so none is taken from a file. The same rows give the same index.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .walking import inside

__all__ = ["build_indexes", "without_indexes"]


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
