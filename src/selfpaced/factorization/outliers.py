"""What is read off fitted factors: means, weights, outliers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .engine import WeightedSolve
from .entries import Floats, Side


def about_the_usual(level: Floats, cold: Any) -> tuple[Floats, float]:
    """Means as differences from their median, zero where there is no entry; and the median."""
    usual = float(np.median(np.delete(level, cold)))
    level = np.asarray(level - level.dtype.type(usual))
    level[cold] = 0.0
    return level, usual


def entry_weights(step: WeightedSolve, side: Side, residuals: Floats) -> Floats:
    """Relative weights of all entries, in pieces: a rule may need several temporaries."""
    if step.grouped:
        return step.relative_weight(residuals, side.row_of())
    weights = np.empty_like(residuals)
    for start, stop in side.blocks():
        part = slice(side.indptr[start], side.indptr[stop])
        weights[part] = step.relative_weight(residuals[part])
    return weights


def line_means(weights: Floats, line: Any, size: int) -> Floats:
    """The mean weight of every row or column; NaN where there is no entry."""
    count = np.bincount(line, minlength=size)
    total = np.bincount(line, weights, minlength=size)
    return np.asarray(np.divide(total, count, out=np.full(size, np.nan), where=count > 0))


def outlier_table(side: Side, residuals: Floats, weights: Floats, beyond: float, labels: tuple[Any, Any]) -> Any:
    """The entries farther off than ``beyond``, most suspicious first, by their labels if there are any."""
    far = residuals > beyond
    far |= residuals < -beyond
    found = np.flatnonzero(far).astype(np.int32 if far.size < 2**31 else np.int64)
    del far
    size = residuals[found]
    found = found[np.argsort(np.negative(np.abs(size, out=size), out=size))]
    del size
    real = residuals.dtype
    places = [np.int32 if given is None else given.dtype for given in labels]
    kinds = [("row", places[0]), ("column", places[1]), ("value", real), ("expected", real), ("weight", real)]
    out = np.empty(found.size, dtype=kinds)
    for low in range(0, found.size, 1 << 13):  # in pieces, because there may be as many outliers as entries
        part = found[low : low + (1 << 13)]
        rows = np.searchsorted(side.indptr, part, side="right") - 1
        named = (
            at if given is None else given[at] for at, given in zip((rows, side.indices[part]), labels, strict=True)
        )
        fields = (*named, side.values[part], side.values[part] - residuals[part], weights[part])
        for name, field in zip(out.dtype.names or (), fields, strict=True):
            out[name][low : low + (1 << 13)] = field
    return out
