"""What a model says of the rows of a Dask table, as Dask collections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from ..engines import Block
from ..judgement import Judgement, Judging, without_rows
from .table import DaskTable


def weights(model: Judging, table: DaskTable) -> Any:
    """The weight of every row at the pace of the fit, as a Dask array in the blocks of the table."""
    return table.map(_weights, without_rows(model))


def losses(model: Judging, table: DaskTable) -> Any:
    """The loss of every row, as a Dask array in the blocks of the table."""
    return table.map(_losses, without_rows(model))


def suspects(model: Judging, table: DaskTable, *, threshold: float = 0.5) -> Any:
    """Rows at least this likely to be wrong, as a Dask DataFrame in the order of the rows.

    Parameters
    ----------
    model : fitted estimator
        Of this table, or of another with the same columns.
    table : DaskTable
        The rows.
    threshold : float, default=0.5
        Probability of being wrong from which on a row is listed; 0 lists all.

    Returns
    -------
    dask DataFrame
        With the columns of :func:`selfpaced.suspects`; ``row`` counts the rows of the table.
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be between 0 and 1, got {threshold!r}")
    bare, judge = without_rows(model), dask.delayed(_suspects, pure=False, traverse=False)
    pieces = [
        judge(part, bare, int(first), threshold)
        for part, first, n in zip(table.parts, table.starts, table.sizes, strict=True)
        if n
    ]
    return dd.from_delayed(pieces, meta=_suspects(table.take(np.arange(1)), bare, 0, 0.0).iloc[:0])


def _judged(block: Block, model: Judging) -> Judgement:
    return model._judge(block.X, block.y)


def _weights(block: Block, model: Judging) -> Any:
    return _judged(block, model).weight


def _losses(block: Block, model: Judging) -> Any:
    return _judged(block, model).losses


def _suspects(block: Block, model: Judging, first: int, threshold: float) -> pd.DataFrame:
    judged = replace(_judged(block, model), numbers=first + np.arange(len(block.y)))
    return pd.DataFrame(judged.table(np.flatnonzero(judged.wrong >= threshold)))


__all__ = ["losses", "suspects", "weights"]
