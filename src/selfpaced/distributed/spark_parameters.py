"""Parameters that the estimators and models of this room share, as Spark ML has them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, TypeVar

from pyspark import SparkContext
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.sql.utils import is_remote

Self = TypeVar("Self", bound="TableParams")


def require_java() -> None:
    """Say what to install where no Java is found and none is running yet; Spark itself would only fail to start."""
    if SparkContext._gateway is not None or is_remote() or shutil.which("java"):
        return
    home = os.environ.get("JAVA_HOME")
    if home is None or not (Path(home) / "bin" / "java").exists():
        raise RuntimeError(
            "Spark needs Java 17 or newer, and none was found: install a runtime (on Debian "
            "`apt-get install openjdk-17-jre-headless`) or set JAVA_HOME"
        )


def parameter(name: str, doc: str, kind: Any = None) -> Any:
    """A parameter of a class; its instances get their own."""
    return Param(Params._dummy(), name, doc, kind or TypeConverters.identity)


def _columns(value: Any) -> Any:
    return value if isinstance(value, str) else TypeConverters.toListString(value)


class TableParams(Params):
    """Columns that are read and written, and how parameters are set and got."""

    featuresCol = parameter("featuresCol", "column of vectors or arrays, or list of columns of numbers", _columns)
    labelCol = parameter("labelCol", "column of labels or values, numbers both", TypeConverters.toString)
    weightCol = parameter("weightCol", "column of weights", TypeConverters.toString)
    idCol = parameter("idCol", "column that tells rows apart, whatever their order", TypeConverters.toString)
    predictionCol = parameter("predictionCol", "column of predictions", TypeConverters.toString)
    selfPacedWeightCol = parameter(
        "selfPacedWeightCol", "column of the weights that rows have in the fit", TypeConverters.toString
    )
    noiseProbabilityCol = parameter(
        "noiseProbabilityCol",
        "column of the probability that the given label or value is wrong",
        TypeConverters.toString,
    )
    expectedCol = parameter(
        "expectedCol", "column of the label or value that is expected instead", TypeConverters.toString
    )
    levelCol = parameter("levelCol", "column of the level of a row as a suspect", TypeConverters.toString)
    _columns_by_default = {
        "featuresCol": "features",
        "labelCol": "label",
        "predictionCol": "prediction",
        "selfPacedWeightCol": "selfPacedWeight",
        "noiseProbabilityCol": "noiseProbability",
        "expectedCol": "expected",
        "levelCol": "level",
    }

    def setParams(self: Self, **values: Any) -> Self:
        """Set parameters by name."""
        for name in values:
            if not self.hasParam(name):
                known = ", ".join(sorted(param.name for param in self.params))
                raise ValueError(f"parameters must be among {known}, got {name!r}")
        self._set(**values)
        return self

    def optional(self, name: str) -> Any:
        """The value of a parameter, None where it is not set."""
        param = self.getParam(name)
        return self.getOrDefault(param) if self.isDefined(param) else None

    def setFeaturesCol(self: Self, value: Any) -> Self:
        """Set the column or columns of features."""
        return self.setParams(featuresCol=value)

    def setLabelCol(self: Self, value: str) -> Self:
        """Set the column of labels or values."""
        return self.setParams(labelCol=value)

    def setWeightCol(self: Self, value: str) -> Self:
        """Set the column of weights."""
        return self.setParams(weightCol=value)

    def setIdCol(self: Self, value: str) -> Self:
        """Set the column that tells rows apart."""
        return self.setParams(idCol=value)

    def setPredictionCol(self: Self, value: str) -> Self:
        """Set the column of predictions."""
        return self.setParams(predictionCol=value)

    def getFeaturesCol(self) -> Any:
        """The column or columns of features."""
        return self.getOrDefault(self.featuresCol)

    def getLabelCol(self) -> Any:
        """The column of labels or values."""
        return self.getOrDefault(self.labelCol)

    def getPredictionCol(self) -> Any:
        """The column of predictions."""
        return self.getOrDefault(self.predictionCol)


__all__ = ["TableParams", "parameter", "require_java"]
