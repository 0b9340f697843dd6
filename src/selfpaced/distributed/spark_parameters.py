"""Parameters as Spark ML has them, and models as folders: what estimators and models on Spark share."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path
from typing import Any, TypeVar

from pyspark import SparkContext
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol
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


def write_object(session: Any, path: str, value: Any) -> None:
    """Write a fitted model, or what it is made of, as a skops file in a frame."""
    content = io.BytesIO()
    persistence.save(value, content)
    frame = session.createDataFrame([(bytearray(content.getvalue()),)], "content binary")
    frame.coalesce(1).write.parquet(path)


def read_object(session: Any, path: str) -> Any:
    """Read what `write_object` has written."""
    return persistence.load(bytes(session.read.parquet(path).first()["content"]))


class _Writer(MLWriter):
    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:
        described = self.instance._save_parts(self.sparkSession, path)
        DefaultParamsWriter.saveMetadata(described, path, self.sparkSession)


class _Reader(MLReader):
    def __init__(self, cls: Any) -> None:
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        found = self.cls._load_parts(self.sparkSession, path)
        found._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(found, metadata)
        return found


class TableParams(HasFeaturesCol, HasLabelCol, HasWeightCol, HasPredictionCol, MLWritable, MLReadable):
    """Columns that are read and written, and how parameters are set and got."""

    featuresCol = parameter("featuresCol", "column of vectors or arrays, or list of columns of numbers", _columns)
    idCol = parameter("idCol", "column with a different value in each row", TypeConverters.toString)
    selfPacedWeightCol = parameter("selfPacedWeightCol", "column of the weights in the fit", TypeConverters.toString)
    noiseProbabilityCol = parameter(
        "noiseProbabilityCol", "column of the probability that the label or value is wrong", TypeConverters.toString
    )
    expectedCol = parameter("expectedCol", "column of the label or value that is expected", TypeConverters.toString)
    levelCol = parameter("levelCol", "column of the level of a row as a suspect", TypeConverters.toString)

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(
            selfPacedWeightCol="selfPacedWeight", noiseProbabilityCol="noiseProbability", expectedCol="expected",
            levelCol="level",
        )  # fmt: skip

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
        """Set the column with a different value in each row."""
        return self.setParams(idCol=value)

    def setPredictionCol(self: Self, value: str) -> Self:
        """Set the column of predictions."""
        return self.setParams(predictionCol=value)

    # ------------------------------------------------------------------ a folder of parameters and parts

    def _save_parts(self, session: Any, path: str) -> Any:  # noqa: ARG002
        """Parameters are saved as JSON: names and numbers."""
        for param, value in self.extractParamMap().items():
            if not isinstance(value, str | int | float | list | dict | None):
                raise ValueError(f"{param.name} must be a name or a number to be saved, got {value!r}")
        return self

    @classmethod
    def _load_parts(cls, session: Any, path: str) -> Any:  # noqa: ARG003
        return cls()

    def write(self) -> Any:
        """What writes it; ``save(path)`` calls it."""
        return _Writer(self)

    @classmethod
    def read(cls) -> Any:
        """What reads it; ``load(path)`` calls it."""
        return _Reader(cls)
