"""Suspects of a table that is not in memory, streamed to a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..assessment import AssessmentMixin
from .scratch import ScratchTable
from .table import Array


def write_suspects(
    model: AssessmentMixin,
    table: ScratchTable,
    path: str | os.PathLike[str],
    *,
    threshold: float = 0.5,
    numbers: Callable[[Array], Array] | None = None,
) -> NDArray[np.intp]:
    """Assess every row of a table and write those of both levels to a Parquet file, in the order of the rows.

    Parameters
    ----------
    model : fitted estimator
        Of the table, or of another with the same columns.
    table : ScratchTable
        The rows.
    path : path-like
        The file; it appears when it is complete.
    threshold : float, default=0.5
        Rows whose probability of being wrong is above it are likely errors; rows worth a look are written too. 0 writes
        all rows, with their weights.

    numbers : callable, optional
        Takes the numbers of rows in the table to those that are written.

    Returns
    -------
    ndarray of int
        Number of rows of each level: not listed, worth a look, likely errors.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError('writing Parquet needs pyarrow: pip install "selfpaced[io]"') from error
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be between 0 and 1, got {threshold!r}")
    target, first, counts, writer = Path(path), 0, np.zeros(3, dtype=np.intp), None
    part = target.with_name(f".{target.name}.part")
    try:
        for block in table.blocks():
            own = first + np.arange(len(block.y))
            assessed: Any = replace(model._assess(block.X, block.y), numbers=own if numbers is None else numbers(own))
            levels = assessed.levels(threshold)
            rows = np.arange(len(own)) if threshold == 0 else np.flatnonzero(levels)
            columns = pa.table({name: np.asarray(values) for name, values in assessed.table(rows, levels).items()})
            writer = parquet.ParquetWriter(part, columns.schema) if writer is None else writer
            writer.write_table(columns.cast(writer.schema))
            first, counts = first + len(block.y), counts + np.bincount(levels, minlength=3)
        if writer is not None:
            writer.close()
            os.replace(part, target)
    finally:
        if writer is not None:
            writer.close()
        part.unlink(missing_ok=True)
    return counts


__all__ = ["write_suspects"]
