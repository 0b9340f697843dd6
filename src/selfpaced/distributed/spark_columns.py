"""Predictions and assessments of the rows of a Spark frame, as columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from ..assessment import LEVELS, Assessment, without_rows
from .spark_packing import as_lists
from .spark_table import feature_column, number

# Parameters that name columns, and what is in them.
DIAGNOSES = {
    "selfPacedWeightCol": "weight",
    "noiseProbabilityCol": "wrong",
    "expectedCol": "expected",
    "levelCol": "level",
}
KINDS = "weight double, wrong double, expected double, level string"


def ask(function: Callable[[Any, Any], dict[str, Any]], rows: Any, given: Any, kinds: str = "") -> Any:
    """A column of structures: what ``function`` gives for lists of numbers and given labels or values."""

    def said(rows: pa.Array, given: pa.Array) -> pa.Array:
        X = rows.flatten().to_numpy(zero_copy_only=False).reshape(len(rows), -1)
        found = function(X, given.to_numpy(zero_copy_only=False))
        arrays = [as_lists(part) if part.ndim > 1 else pa.array(part, from_pandas=True) for part in found.values()]
        return pa.StructArray.from_arrays(arrays, names=list(found))

    return F.arrow_udf(said, kinds + KINDS)(rows, given)


def diagnosed(given: Any, known: Any, assess: Callable[[Any], Assessment]) -> dict[str, Any]:
    """Weight, probability of an error, what is expected, and level of rows that can be assessed; gaps for others."""
    found = {name: np.full(len(given), None if name == "level" else np.nan) for name in DIAGNOSES.values()}
    if known.any():
        assessed = assess(known)
        found["weight"][known], found["wrong"][known] = assessed.weight, assessed.wrong
        found["expected"][known] = np.asarray(assessed.diagnosis.expected, dtype=float)
        found["level"][known] = LEVELS[assessed.levels()]
    return found


def linear_columns(model: Any, frame: Any) -> Any:
    """Predictions of a linear model and, if the frame has labels or values, their assessment."""
    from pyspark.ml.functions import array_to_vector

    label, lean = model.getLabelCol(), without_rows(model.fitted)
    if hasattr(lean, "feature_names_in_"):  # rows come without names
        del lean.feature_names_in_
    assessed, classes = label in frame.columns, hasattr(lean, "classes_")
    given = number(frame, label, "labelCol") if assessed else F.lit(None).cast("double")
    kinds = "scores array<double>, probability array<double>, prediction double, " if classes else "prediction double, "
    about = _of_labels if classes else _of_values
    rows = feature_column(frame, model.getFeaturesCol())
    said = ask(lambda X, given: about(lean, X, given), rows, given, kinds)
    columns = {}
    if classes:
        columns[model.getOrDefault("rawPredictionCol")] = array_to_vector(said["scores"])
        columns[model.getOrDefault("probabilityCol")] = array_to_vector(said["probability"])
    columns[model.getPredictionCol()] = said["prediction"]
    return with_new(frame, columns | (diagnosis_columns(model, said) if assessed else {}))


def diagnosis_columns(model: Any, said: Any) -> dict[str, Any]:
    """The parts of a diagnosis, by the names that a model has for them."""
    return {model.getOrDefault(name): said[part] for name, part in DIAGNOSES.items()}


def with_new(frame: Any, columns: dict[str, Any]) -> Any:
    """The frame with columns that it does not have yet."""
    taken = [name for name in columns if name in frame.columns]
    if taken:
        raise ValueError(f"columns that transform adds must be new, got {taken!r}: name others")
    return frame.withColumns(columns)


# ------------------------------------------------------------------------------------------------ on the executors


def _of_labels(model: Any, X: Any, given: Any) -> dict[str, Any]:
    scores = model.decision_function(X)
    both = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    return {
        "scores": both.astype(float),
        "probability": model.noise_model_.proba(scores).astype(float),
        "prediction": model.predict(X).astype(float),
        **diagnosed(given, np.isin(given, model.classes_), lambda known: model.assess(X[known], given[known])),
    }


def _of_values(model: Any, X: Any, given: Any) -> dict[str, Any]:
    found = diagnosed(given, np.isfinite(given), lambda known: model.assess(X[known], given[known]))
    return {"prediction": model.predict(X).astype(float), **found}
