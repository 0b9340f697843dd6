"""What a model says of rows in Dask collections, as Dask collections: predictions, weights, suspects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

from ..assessment import SUSPECT, Assessment, AssessmentMixin, without_rows
from .dask_table import DaskTable, is_frame, labelled, paired
from .scratch import suspect_frame
from .table import Block, Rows

Listing = Callable[[Assessment], pd.DataFrame]


def weights(model: Any, table: DaskTable) -> Any:
    """The weight of every row at the pace of the fit, as a Dask array in the blocks of the table."""
    return _column(model, table, "weight")


def losses(model: Any, table: DaskTable) -> Any:
    """The loss of every row, as a Dask array in the blocks of the table."""
    return _column(model, table, "losses")


def suspects(model: Any, table: DaskTable, *, threshold: float = SUSPECT) -> Any:
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
    return table_frame(model, table, partial(suspect_frame, threshold=threshold))


def table_frame(model: Any, table: DaskTable, listing: Listing) -> Any:
    """Rows of a table in the form of ``listing``, without those that have no label, as a Dask DataFrame."""
    found, example = _assessments(model, table)
    numbered = dask.delayed(_numbered, pure=False, traverse=False)
    without = [None] * len(found) if table.without is None else table.without
    pieces = [
        numbered(assessed, int(first), listing, absent)
        for assessed, first, absent in zip(found, table.starts, without, strict=True)
        if assessed is not None
    ]
    return dd.from_delayed(pieces, meta=_numbered(example, 0, listing).iloc[:0])


def suspects_of(model: AssessmentMixin, X: Any, y: Any, *, all_rows: bool = False) -> Any:
    """Both levels, or all rows, of Dask collections: what :func:`selfpaced.suspects` returns for them."""
    return _frame(model, X, y, partial(suspect_frame, all_rows=all_rows))


def issues_of(model: AssessmentMixin, X: Any, y: Any, listing: Listing) -> Any:
    """Every row in the form of ``listing``: what :func:`selfpaced.label_issues` returns for Dask collections."""
    return _frame(model, X, y, listing)


def lazily(model: Any, method: str, X: Any, *args: Any, **kwargs: Any) -> Any:
    """What a method gives for every row of a Dask collection, as a Dask array that nothing has computed yet."""
    if is_frame(X):
        names = getattr(model, "feature_names_in_", None)
        X = (X if names is None else X[list(names)]).to_dask_array()
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    ask = partial(_asked, model=without_rows(model), method=method, args=args, kwargs=kwargs)
    shown = np.asarray(ask(np.zeros((1, X.shape[1]), dtype=X.dtype)))
    if shown.ndim == 1:
        return X.map_blocks(ask, drop_axis=1, dtype=shown.dtype, meta=shown[:0])
    return X.map_blocks(ask, chunks=(X.chunks[0], (shown.shape[1],)), dtype=shown.dtype, meta=shown[:0])


def _asked(X: Any, model: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not X.shape[0]:  # an empty partition
        return _asked(np.zeros((1, X.shape[1]), dtype=X.dtype), model, method, args, kwargs)[:0]
    names = getattr(model, "feature_names_in_", None)
    return np.asarray(getattr(model, method)(X if names is None else pd.DataFrame(X, columns=names), *args, **kwargs))


def _frame(model: AssessmentMixin, X: Any, y: Any, listing: Listing) -> Any:
    """One data frame over all blocks; rows are numbered by the sizes of the blocks before, when it is computed."""
    parts, _ = paired(X, y)
    bare, features = without_rows(model), len(X.columns) - isinstance(y, str) if is_frame(X) else X.shape[1]
    one = np.zeros((1, int(features)))
    given = bare.classes_[:1] if hasattr(bare, "classes_") else np.zeros(1)
    shown = listing(replace(_assessed(Block(one, given), bare), numbers=np.zeros(1, dtype=np.intp)))
    length, call = dask.delayed(_length, pure=False), dask.delayed(_block_frame, pure=False, traverse=False)
    pieces, first = [], dask.delayed(0)
    for part in parts:
        pieces.append(call(part, first, bare, listing, shown.iloc[:0]))
        first = first + length(part)
    return dd.from_delayed(pieces, meta=shown.iloc[:0])


# ----------------------------------------------------------------------------------------------- on the workers


def _length(part: tuple[Any, Any, Any]) -> int:
    return int(part[0].shape[0])


def _block_frame(part: Any, first: int, model: Any, listing: Listing, empty: pd.DataFrame) -> pd.DataFrame:
    classes = hasattr(model, "classes_")
    block, without = labelled(part) if classes else (Block(part[0], np.asarray(part[1])), np.empty(0, dtype=np.intp))
    if not len(block.y):
        return empty
    numbers = first + np.setdiff1d(np.arange(part[0].shape[0]), without)
    found = listing(replace(_assessed(block, model), numbers=numbers))
    return found.astype(empty.dtypes.to_dict())


def _assessed(block: Block, model: Any) -> Assessment:
    names = getattr(model, "feature_names_in_", None)
    X = block.X if names is None else pd.DataFrame(block.X, columns=names)
    found: Assessment = model.assess(X, block.y)
    return found


def _numbered(assessed: Assessment, first: int, listing: Listing, without: Rows | None = None) -> pd.DataFrame:
    found = listing(replace(assessed, numbers=first + np.arange(len(assessed.wrong))))
    return found if without is None else found[~found["row"].isin(first + without)]


# -------------------------------------------------------------------------------------------------- of tables


def _assessments(model: Any, table: DaskTable) -> tuple[list[Any], Assessment]:
    """One delayed assessment for every block, None for those without rows; and one of the first row, made here."""
    if hasattr(model, "assessments"):
        return model.assessments(table), model.assessment_of_one(table)
    bare = without_rows(model) if isinstance(model, AssessmentMixin) else model
    assess = dask.delayed(_of_codes, pure=False, traverse=False)
    found = [assess(part, bare) if n else None for part, n in zip(table.parts, table.sizes, strict=True)]
    return found, _of_codes(table.take(np.arange(1)), bare)


def _of_codes(block: Block, model: Any) -> Assessment:
    found: Assessment = model._assess(block.X, block.y)
    return found


def _column(model: Any, table: DaskTable, name: str) -> Any:
    found, example = _assessments(model, table)
    kind = np.asarray(getattr(example, name)).dtype
    return da.concatenate(
        [
            da.from_delayed(getattr(assessed, name), (int(n),), dtype=kind)
            for assessed, n in zip(found, table.sizes, strict=True)
            if assessed is not None
        ]
    )


__all__ = ["issues_of", "lazily", "losses", "suspects", "suspects_of", "table_frame", "weights"]
