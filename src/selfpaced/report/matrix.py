"""A factorized matrix from afar: observed entries in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..assessment import Assessment
from .data import Grid

Floats = NDArray[np.float64]
BLOCKS = 50  # display: squares to a side of the picture of a matrix


def grid_of(assessment: Assessment, blocks: int = BLOCKS) -> Grid:
    """At most ``blocks`` x ``blocks`` cells with the mean weight and mean absolute residual in each."""
    places = assessment.places
    assert places is not None
    n, m = places.shape
    high, wide = min(n, blocks), min(m, blocks)
    block = (places.rows.astype(np.int64) * high // n) * wide + places.columns.astype(np.int64) * wide // m
    seen = np.bincount(block, minlength=high * wide)
    weight = _means(block, assessment.weight, seen, (high, wide))
    residual = _means(block, np.abs(assessment.diagnosis.support), seen, (high, wide))
    return Grid(
        row_starts=tuple(int(-(-i * n // high)) for i in range(high)),
        column_starts=tuple(int(-(-j * m // wide)) for j in range(wide)),
        residual=residual,
        weight=weight,
        shape=places.shape,
    )


def _means(block: Any, values: Floats, seen: Any, shape: tuple[int, int]) -> tuple[tuple[float | None, ...], ...]:
    totals = np.bincount(block, weights=values, minlength=seen.size)
    means = [None if k == 0 else float(f"{total / k:.4g}") for total, k in zip(totals, seen, strict=True)]
    return tuple(tuple(means[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0]))
