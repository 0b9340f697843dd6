"""What a model says of the rows of a Dask table, as Dask collections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

from ..assessment import Assessment, AssessmentMixin, without_rows
from ..engines import Block
from .table import DaskTable
from .wrapping import SelfPacedClassifier, SelfPacedRegressor

Model = AssessmentMixin | SelfPacedClassifier | SelfPacedRegressor


def weights(model: Model, table: DaskTable) -> Any:
    """The weight of every row at the pace of the fit, as a Dask array in the blocks of the table."""
    return _column(model, table, "weight")


def losses(model: Model, table: DaskTable) -> Any:
    """The loss of every row, as a Dask array in the blocks of the table."""
    return _column(model, table, "losses")


def suspects(model: Model, table: DaskTable, *, threshold: float = 0.5) -> Any:
    """Return the likely errors and the rows worth a look, as a Dask DataFrame in the order of the rows.

    Parameters
    ----------
    model : fitted estimator
        Of this table, or of another with the same columns.
    table : DaskTable
        The rows.
    threshold : float, default=0.5
        Rows whose probability of being wrong is above it are likely errors.

    Returns
    -------
    dask DataFrame
        With the columns of :func:`selfpaced.suspects`; ``row`` counts the rows of the table.
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be between 0 and 1, got {threshold!r}")
    found, example = _assessments(model, table)
    listed = dask.delayed(_suspects, pure=False, traverse=False)
    pieces = [
        listed(assessed, int(first), threshold)
        for assessed, first in zip(found, table.starts, strict=True)
        if assessed is not None
    ]
    return dd.from_delayed(pieces, meta=_suspects(example, 0, 0.0).iloc[:0])


def _assessments(model: Model, table: DaskTable) -> tuple[list[Any], Assessment]:
    """One delayed assessment for every block, None for those without rows; and one of the first row, made here."""
    if not isinstance(model, AssessmentMixin):
        return model.assessments(table), model.assessment_of_one(table)
    bare, assess = without_rows(model), dask.delayed(_assessed, pure=False, traverse=False)
    found = [assess(part, bare) if n else None for part, n in zip(table.parts, table.sizes, strict=True)]
    return found, _assessed(table.take(np.arange(1)), bare)


def _column(model: Model, table: DaskTable, name: str) -> Any:
    found, example = _assessments(model, table)
    kind = np.asarray(getattr(example, name)).dtype
    return da.concatenate(
        [
            da.from_delayed(getattr(assessed, name), (int(n),), dtype=kind)
            for assessed, n in zip(found, table.sizes, strict=True)
            if assessed is not None
        ]
    )


def _assessed(block: Block, model: AssessmentMixin) -> Assessment:
    return model._assess(block.X, block.y)


def _suspects(assessed: Assessment, first: int, threshold: float) -> pd.DataFrame:
    numbered = replace(assessed, numbers=first + np.arange(len(assessed.wrong)))
    return pd.DataFrame(numbered.table(np.flatnonzero(levels := numbered.levels(threshold)), levels))


__all__ = ["losses", "suspects", "weights"]
