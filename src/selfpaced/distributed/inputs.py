"""Dask collections and tables in batches where arrays are expected: recognised without importing what handles them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from ..fitting import is_dask
from .table import Table

Method = TypeVar("Method", bound=Callable[..., Any])


def on_dask(X: Any) -> bool:
    """Whether it is a Dask collection, or a table of one."""
    return is_dask(X) or (isinstance(X, Table) and hasattr(X, "parts"))


def is_source(X: Any) -> bool:
    """Whether rows come in batches, and not all at once."""
    lazy = type(X).__module__.startswith("polars") and type(X).__name__ == "LazyFrame"
    return lazy or is_dataset(X) or isinstance(X, Iterator | str | Path)


def is_dataset(X: Any) -> bool:
    """Whether it is a dataset of pyarrow."""
    return hasattr(X, "to_batches") and hasattr(X, "scanner") and hasattr(X, "schema")


def from_dask(X: Any, y: Any, sample_weight: Any, groups: Any = None, *, labels: bool) -> Any:
    """Dask collections as a table of blocks that stay where they are."""
    from .dask_table import table

    return table(X, y, sample_weight, groups=groups, labels=labels)


def lazy_for_dask(method: Method) -> Method:
    """Let a method return a lazy Dask array, one line per row, if X is a Dask collection."""

    @wraps(method)
    def either(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        from .dask_results import lazily

        return lazily(self, method.__name__, X, *args, **kwargs)

    return either  # type: ignore[return-value]


class ScoreMixin:
    """Accuracy or R^2 of rows in Dask collections, by sums over their blocks; of others as in scikit-learn."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on given labels, or the coefficient of determination of values.

        Rows of a Dask collection stay where they are, and those without a label are left out.
        """
        if is_dask(X):
            from .dask_results import score

            return score(self, X, y, sample_weight)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]
