"""Parameters as Spark ML has them, and models as folders: what estimators and models on Spark share."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path
from typing import Any, TypeVar

from pyspark import SparkContext
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql.utils import is_remote

from .. import persistence

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


# ---------------------------------------------------------------------------------------------------------- saving


def write_object(session: Any, path: str, value: Any) -> None:
    """Write a fitted model, or what it is made of, as a skops file in a frame."""
    content = io.BytesIO()
    persistence.save(value, content)
    frame = session.createDataFrame([(bytearray(content.getvalue()),)], "content binary")
    frame.coalesce(1).write.parquet(path)


def read_object(session: Any, path: str) -> Any:
    """Read what `write_object` has written."""
    return persistence.load(bytes(session.read.parquet(path).first()["content"]))


def check_saveable(instance: Any) -> None:
    """Parameters are saved as JSON: names and numbers."""
    for param, value in instance.extractParamMap().items():
        if not isinstance(value, str | int | float | list | dict | None):
            raise ValueError(f"{param.name} must be a name or a number to be saved, got {value!r}")


class _Writer(MLWriter):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def saveImpl(self, path: str) -> None:
        check_saveable(self.model)
        DefaultParamsWriter.saveMetadata(self.model, path, self.sparkSession)
        write_object(self.sparkSession, f"{path}/model", self.model.fitted)


class _Reader(MLReader):
    def __init__(self, cls: Any) -> None:
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        model = self.cls(read_object(self.sparkSession, f"{path}/model"))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


class Saved(MLWritable, MLReadable):
    """A model that holds a fitted estimator of this library as ``fitted``."""

    def write(self) -> Any:
        """What writes the model; ``save(path)`` calls it."""
        return _Writer(self)

    @classmethod
    def read(cls) -> Any:
        """What reads a model; ``load(path)`` calls it."""
        return _Reader(cls)


__all__ = ["Saved", "TableParams", "check_saveable", "parameter", "read_object", "require_java", "write_object"]
