"""Models of Spark as folders: parameters as Spark ML writes them, the fitted model as a skops file in a frame."""

from __future__ import annotations

import io
from typing import Any

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter

from .. import persistence

FILE = "model"


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
        content = io.BytesIO()
        persistence.save(self.model.fitted, content)
        DefaultParamsWriter.saveMetadata(self.model, path, self.sparkSession)
        frame = self.sparkSession.createDataFrame([(bytearray(content.getvalue()),)], "content binary")
        frame.coalesce(1).write.parquet(f"{path}/{FILE}")


class _Reader(MLReader):
    def __init__(self, cls: Any) -> None:
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        content = self.sparkSession.read.parquet(f"{path}/{FILE}").first()["content"]
        model = self.cls(persistence.load(bytes(content)))
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


__all__ = ["Saved", "check_saveable"]
