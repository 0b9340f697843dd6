"""What a model says of the rows of a Spark frame, as columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from ..assessment import LEVELS, without_rows
from .spark_packing import as_lists
from .spark_table import feature_column, number

DIAGNOSIS = "_selfpaced_diagnosis"  # convention: a column that is there while the others are made of it

# Parameters that name columns, and what is in them.
THOUGHTS = {
    "selfPacedWeightCol": "weight",
    "noiseProbabilityCol": "wrong",
    "expectedCol": "expected",
    "levelCol": "level",
}


def label_columns(model: Any, frame: Any) -> Any:
    """Scores, probabilities, prediction and, where there are labels, what is thought of them."""
    from pyspark.ml.functions import array_to_vector

    said = F.col(DIAGNOSIS)
    columns = {
        model.getOrDefault("rawPredictionCol"): array_to_vector(said["scores"]),
        model.getOrDefault("probabilityCol"): array_to_vector(said["probability"]),
        model.getPredictionCol(): said["prediction"],
    }
    kind = "scores array<double>, probability array<double>, prediction double"
    return _with_diagnosis(model, frame, _of_labels, kind, columns)


def value_columns(model: Any, frame: Any) -> Any:
    """The prediction and, where there are values, what is thought of them."""
    columns = {model.getPredictionCol(): F.col(DIAGNOSIS)["prediction"]}
    return _with_diagnosis(model, frame, _of_values, "prediction double", columns)


def _with_diagnosis(
    model: Any, frame: Any, diagnosis: Callable[[Any, Any, Any], dict[str, Any]], kind: str, columns: dict[str, Any]
) -> Any:
    label, lean = model.getLabelCol(), _lean(model.fitted)
    assessed = label in frame.columns
    given = number(frame, label, "labelCol") if assessed else F.lit(None).cast("double")
    if assessed:
        columns |= {model.getOrDefault(name): F.col(DIAGNOSIS)[part] for name, part in THOUGHTS.items()}
    taken = [name for name in columns if name in frame.columns]
    if taken:
        raise ValueError(f"columns that transform adds must be new, got {taken!r}: name others")

    def said(features: pa.Array, target: pa.Array) -> pa.Array:
        X = features.flatten().to_numpy(zero_copy_only=False).reshape(len(features), -1)
        found = diagnosis(lean, X, target.to_numpy(zero_copy_only=False))
        arrays = [as_lists(part) if part.ndim > 1 else pa.array(part, from_pandas=True) for part in found.values()]
        return pa.StructArray.from_arrays(arrays, names=list(found))

    ask = F.arrow_udf(said, f"{kind}, weight double, wrong double, expected double, level string")
    whole = frame.withColumn(DIAGNOSIS, ask(feature_column(frame, model.getFeaturesCol()), given))
    return whole.withColumns(columns).drop(DIAGNOSIS)


def _lean(fitted: Any) -> Any:
    """The model as executors need it: they give it rows without names."""
    other: Any = without_rows(fitted)
    if hasattr(other, "feature_names_in_"):
        del other.feature_names_in_
    return other


# ------------------------------------------------------------------------------------------------ on the executors


def _of_labels(model: Any, X: Any, given: Any) -> dict[str, Any]:
    scores = model.decision_function(X)
    both = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    known = np.isin(given, model.classes_)
    return {
        "scores": both.astype(float),
        "probability": model.noise_model_.proba(scores).astype(float),
        "prediction": model.predict(X).astype(float),
        **_thoughts(model, X, given, known),
    }


def _of_values(model: Any, X: Any, given: Any) -> dict[str, Any]:
    return {"prediction": model.predict(X).astype(float), **_thoughts(model, X, given, np.isfinite(given))}


def _thoughts(model: Any, X: Any, given: Any, known: Any) -> dict[str, Any]:
    """Weight, probability of an error, what is expected, and level, of rows that can be assessed; gaps for others."""
    found = {name: np.full(len(given), None if name == "level" else np.nan) for name in THOUGHTS.values()}
    if known.any():
        assessed = model.assess(X[known], given[known])
        for name, values in (
            ("weight", assessed.weight),
            ("wrong", assessed.wrong),
            ("expected", assessed.diagnosis.expected),
            ("level", LEVELS[assessed.levels()]),
        ):
            found[name][known] = values
    return found


__all__ = ["label_columns", "value_columns"]
