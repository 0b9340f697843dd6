"""Predictions and suspects of rows in Dask collections, as Dask collections."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from ..assessment import Assessment, AssessmentMixin, without_rows
from .blocks import places_among
from .dask_table import DaskTable, columns_of, is_frame, table
from .table import Block, Rows, Sums

Listing = Callable[[Assessment], pd.DataFrame]


def table_frame(model: Any, table: DaskTable, listing: Listing) -> Any:
    """Rows of a table in the form of ``listing``, as a Dask DataFrame."""
    found, example = _assessments(model, table)
    numbered = dask.delayed(_numbered, pure=False, traverse=False)
    numbers = table.starts.tolist() if table.places is None else table.places
    pieces = [numbered(own, first, listing) for own, first in zip(found, numbers, strict=True) if own is not None]
    return dd.from_delayed(pieces, meta=_numbered(example, 0, listing).iloc[:0])


def collection_frame(model: Any, X: Any, y: Any, listing: Listing) -> Any:
    """Rows of a table in the form of ``listing``, or of collections, which are read to number them, and then again."""
    if isinstance(X, DaskTable):
        if y is not None:
            raise ValueError("y must be None if X is a table, which holds it")
        return table_frame(model, X, listing)
    X = columns_of(model, X, y)
    wrapped, labels = hasattr(model, "assessments"), hasattr(model, "classes_")
    return table_frame(model, table(X, y, labels=labels, persist=False, gaps=wrapped), listing)


def score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Accuracy, or the coefficient of determination of values."""
    labels, bare = hasattr(model, "classes_"), without_rows(model)
    rows = table(columns_of(model, X, y, sample_weight), y, sample_weight, labels=labels, persist=False)
    if labels:
        total, right = rows.reduce(_right, bare, rows.classes)
        return float(right / total)
    total, summed = rows.reduce(_squares, bare, 0.0)[:2]
    _, _, spread, errors = rows.reduce(_squares, bare, summed / total)
    return float(1 - errors / spread) if spread > 0 else float(errors == 0)


def _right(block: Block, model: Any, classes: Any) -> Sums:
    weight = np.ones(len(block.y)) if block.weight is None else block.weight
    same = _asked(block.X, model, "predict", (), {}) == classes[block.y]
    return Sums((float(weight.sum()), float(weight @ same)))


def _squares(block: Block, model: Any, centre: float) -> Sums:
    """Sums of weights and values, of squared values around the centre, and of squared errors."""
    weight = np.ones(len(block.y)) if block.weight is None else block.weight
    errors = block.y - _asked(block.X, model, "predict", (), {})
    parts = (np.ones(len(weight)), block.y, (block.y - centre) ** 2, errors**2)
    return Sums(float(weight @ part) for part in parts)


def lazily(model: Any, method: str, X: Any, *args: Any, **kwargs: Any) -> Any:
    """What a method gives for every row of a Dask collection, as a Dask array that nothing has computed yet."""
    X = columns_of(model, X)
    X = X.to_dask_array() if is_frame(X) else X
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


def _numbered(assessed: Assessment, numbers: Any, listing: Listing) -> pd.DataFrame:
    """The listing of a block whose first row, or all of whose rows, are numbered so."""
    own = numbers if np.ndim(numbers) else numbers + np.arange(len(assessed.wrong))
    return listing(replace(assessed, numbers=own))


def _assessments(model: Any, table: DaskTable) -> tuple[list[Any], Assessment]:
    """One delayed assessment for every block, None for those without rows; and one of the first row, made here."""
    asked = getattr(model, "n_features_in_", table.n_features)
    if asked != table.n_features:
        raise ValueError(f"X must have {asked} features, as those of the fit, got {table.n_features}")
    places = places_among(table.classes, getattr(model, "classes_", None))
    if places is not None:
        recode = dask.delayed(_recoded, pure=False, traverse=False)
        table = copy(table)
        table.parts = [recode(part, places) for part in table.parts]
    if hasattr(model, "assessments"):
        return model.assessments(table), model.assessment_of_one(table)
    bare = without_rows(model) if isinstance(model, AssessmentMixin) else model
    assess = dask.delayed(_of_codes, pure=False, traverse=False)
    found = [assess(part, bare) if n else None for part, n in zip(table.parts, table.sizes, strict=True)]
    return found, _of_codes(table.take(np.arange(1)), bare)


def _recoded(block: Block, places: Rows) -> Block:
    return block._replace(y=places[block.y])


def _of_codes(block: Block, model: Any) -> Assessment:
    found: Assessment = model._assess(block.X, block.y)
    return found
