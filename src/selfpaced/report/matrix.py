"""A factorized matrix from afar: observed entries in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import Grid

Floats = NDArray[np.float64]
BLOCKS = 50  # display: squares to a side of the picture of a matrix


@dataclass(frozen=True, eq=False)
class Entries:
    """Observed entries: position, weight and, where it is known, absolute residual."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    weight: Floats
    residual: Floats | None
    shape: tuple[int, int]


def observed_values(table: Any) -> Floats:
    """Weights or losses of the observed entries, in any of the layouts an input may have."""
    values = _flat(table)
    return values[~np.isnan(values)]


def entries_of(model: Any, X: Any) -> Entries | None:
    """The observed entries, from ``entry_weight_`` and ``sample_loss_`` in the layout of the input.

    Triplets have no layout of their own: they need ``X`` for their positions, and give None without it.
    """
    weight, loss = _flat(model.entry_weight_), getattr(model, "sample_loss_", None)
    place = _places(model, X)
    if place is None:
        return None
    rows, columns, shape = place
    observed = ~np.isnan(weight)
    residual = None if loss is None else _flat(loss)[observed]
    return Entries(rows[observed], columns[observed], weight[observed], residual, shape)


def _flat(values: Any) -> Floats:
    if hasattr(values, "tocoo"):
        return np.asarray(values.tocoo().data, dtype=np.float64)
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values, dtype=np.float64).ravel()


def _places(model: Any, X: Any) -> tuple[Any, Any, tuple[int, int]] | None:
    """Row and column of everything that the flat weights hold."""
    weight = model.entry_weight_
    if hasattr(weight, "tocoo"):
        coo = weight.tocoo()
        return coo.row.astype(np.int64), coo.col.astype(np.int64), (int(coo.shape[0]), int(coo.shape[1]))
    shape = np.shape(weight)
    if len(shape) == 2:
        rows, columns = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
        return rows, columns, (int(shape[0]), int(shape[1]))
    if isinstance(X, tuple) and len(X) == 3 and len(X[0]) == shape[0]:
        rows, columns = (np.asarray(part, dtype=np.int64) for part in X[:2])
        if hasattr(model, "row_factors_"):
            return rows, columns, (model.row_factors_.shape[0], model.components_.shape[1])
        return rows, columns, (int(rows.max()) + 1, int(columns.max()) + 1)
    return None


def grid_of(entries: Entries, blocks: int = BLOCKS) -> Grid:
    """At most ``blocks`` x ``blocks`` cells with the mean weight and mean absolute residual in each."""
    (n, m), high, wide = entries.shape, min(entries.shape[0], blocks), min(entries.shape[1], blocks)
    block = (entries.rows * high // n) * wide + entries.columns * wide // m
    seen = np.bincount(block, minlength=high * wide)
    weight = _means(block, entries.weight, seen, (high, wide))
    residual = weight if entries.residual is None else _means(block, entries.residual, seen, (high, wide))
    return Grid(
        row_starts=tuple(int(-(-i * n // high)) for i in range(high)),
        column_starts=tuple(int(-(-j * m // wide)) for j in range(wide)),
        residual=() if entries.residual is None else residual,
        weight=weight,
        shape=entries.shape,
    )


def _means(block: Any, values: Floats, seen: Any, shape: tuple[int, int]) -> tuple[tuple[float | None, ...], ...]:
    totals = np.bincount(block, weights=values, minlength=seen.size)
    means = [None if k == 0 else float(f"{total / k:.4g}") for total, k in zip(totals, seen, strict=True)]
    return tuple(tuple(means[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0]))
