"""Rows of a Spark frame as a table."""

from __future__ import annotations

import logging
import math
import pickle
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from pyspark import StorageLevel
from pyspark.errors import PythonException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from .blocks import CountedPasses, Facts, classes_of, joined, starts_of
from .spark_packing import PACKED, RESULT, Place, Shape, gather, merge, pack, pick, run
from .table import Block, Rows

ONE_PLACE_ROWS = 50_000  # cost: up to which rows lie in one place, in the order of their ids, as they would in memory
FEW_PARTS = 64  # cost: partitions whose answers come here one by one; more are added up first


logger = logging.getLogger(__name__)


class SparkTable(CountedPasses, AbstractContextManager["SparkTable"]):
    """A table whose blocks lie packed in the cache of a Spark session; use it in a ``with`` statement, or close it.

    Parameters
    ----------
    frame : pyspark DataFrame
        The rows.
    features : str or sequence of str
        A column of vectors or arrays, or columns of numbers.
    target : str
        The column of labels or values, numbers both.
    weight : str, optional
        The column of weights.
    id : str, optional
        A column with a different value in each row. With it, the model does not depend on partitions and order;
        without, it is repeatable for the same partitions in the same order only.
    labels : bool, default=True
        Whether the target holds labels, and not values.
    block_bytes : int, default=2**25
        Bytes of the features of a block, at least: few calls, and several blocks fit into the memory of an executor.

    Attributes
    ----------
    n_unlabelled : int
        Rows whose label is null or NaN, which are left out.
    """

    n_unlabelled = 0

    def __init__(
        self,
        frame: Any,
        features: str | Sequence[str],
        target: str,
        weight: str | None = None,
        id: str | None = None,
        *,
        labels: bool = True,
        block_bytes: int = 2**25,
    ) -> None:
        if not hasattr(frame, "mapInArrow"):
            raise TypeError(f"frame must be a data frame of Spark, got {type(frame).__module__}.{type(frame).__name__}")
        self.names = None if isinstance(features, str) else [str(name) for name in features]
        self._labels, self._dtype = labels, single_or_double(frame, features)
        chosen = [
            feature_column(frame, features).alias("features"),
            number(frame, target, "target").alias("y"),
            (F.lit(None).cast("double") if weight is None else number(frame, weight, "weight")).alias("weight"),
        ]
        schema = PACKED
        if id is not None:
            chosen.append(field(frame, id, "id").alias("id"))
            schema += f", ids array<{frame.schema[id].dataType.simpleString()}>"
        self._numbered = id is not None and isinstance(frame.schema[id].dataType, T.IntegralType)
        rows = frame.select(*chosen)
        rows = rows if id is None else rows.sortWithinPartitions("id")  # a block that is made again is the same
        self._keep(rows.mapInArrow(partial(pack, labels=labels, least=block_bytes), schema))
        if self.n_unlabelled:
            n = self.n + self.n_unlabelled
            logger.warning("%d of %d rows have no label and are left out", self.n_unlabelled, n)
        if self.n <= ONE_PLACE_ROWS and len(self.places) > 1:
            packed, few = self.packed, partial(gather, shape=self._shape(None), labels=labels, most=block_bytes)
            self._keep(packed.coalesce(1).mapInArrow(few, schema))
            packed.unpersist()
        self.starts = starts_of(self.sizes)

    def _keep(self, packed: Any) -> None:
        """Make and cache the blocks, and collect what is known of each."""
        self.packed = packed.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        try:
            rows = self.packed[["part", "piece", "n", "without", "facts"]].collect()
            known: dict[Place, Facts] = {(row.part, row.piece): pickle.loads(row.facts) for row in rows if row.n}
            self.places = sorted(known)
            self._check(known)
        except BaseException as error:
            self.close()
            told = re.search("ValueError: (.*)", str(error)) if isinstance(error, PythonException) else None
            if told is None:
                raise
            raise ValueError(told[1]) from None  # what an executor has said, without its traceback
        facts = [known[place] for place in self.places]
        self.sizes = np.array([own.n for own in facts], dtype=np.intp)
        self.n_unlabelled += sum(row.without for row in rows)
        self.n, self.n_features, self.dtype = int(self.sizes.sum()), facts[0].n_features, np.dtype(self._dtype)
        self.classes, self.mass = classes_of(facts, self._labels)

    def _check(self, known: dict[Place, Facts]) -> None:
        if not known:
            raise ValueError("the table has no rows")
        for (part, piece), facts in sorted(known.items()):
            if facts.fault:
                raise ValueError(
                    f"the table must hold numbers only, got {facts.fault} of block {piece} of partition {part}"
                )
        widths = {facts.n_features for facts in known.values()}
        if len(widths) > 1:
            raise ValueError(f"features must have one length, got {sorted(widths)!r}")

    def _shape(self, classes: Any) -> Shape:
        return Shape(self.n_features, self._dtype, classes)

    def _asked(self, columns: list[str], ask: Callable[..., Any]) -> Any:
        """A frame of what partitions answer."""
        return self.packed[["part", "piece", "n", *columns]].mapInArrow(ask, RESULT)

    def _merged(self, answers: Any) -> Any:
        """Of many partitions, sums of neighbours, as many as the square root.

        A sample of a partition has 2 MB, a matrix of 1,000 features 8 MB, and Spark brings 1 GB for a job and no more
        (``spark.driver.maxResultSize``).
        """
        n_parts = self.places[-1][0] + 1
        if n_parts <= FEW_PARTS:
            return answers
        step = math.isqrt(n_parts - 1) + 1
        near = (F.col("part") / F.lit(step)).cast("int")
        return answers.repartition(step, near).mapInArrow(partial(merge, step=step), RESULT)

    def _sum(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        ask = partial(run, shape=self._shape(self.classes), function=function, args=args)
        return sum(_collected(self._merged(self._asked(["X", "y", "weight"], ask))))

    def take(self, rows: Rows) -> Block:
        """Return these rows, by ascending numbers, in memory."""
        return joined([block for _, block, _ in self._picked(rows, [])])

    def numbers(self, rows: Rows) -> Rows:
        """What these rows are called: by their ids where these are whole numbers, else by their place here."""
        if not self._numbered:
            return rows
        order = np.argsort(rows)
        found = np.empty(len(rows), dtype=np.int64)
        found[order] = np.concatenate([ids for _, _, ids in self._picked(rows[order], ["ids"])])
        return found.astype(np.intp)

    def _picked(self, rows: Rows, more: list[str]) -> list[Any]:
        wanted = {place: own for place, own in zip(self.places, self._wanted(rows), strict=True) if len(own)}
        ask = partial(pick, shape=self._shape(self.classes), wanted=wanted)
        found = [one for answer in _collected(self._asked(["X", "y", "weight", *more], ask)) for one in answer]
        return sorted(found, key=lambda one: one[0])

    def close(self) -> None:
        """Give the cache back."""
        self.packed.unpersist()

    def __exit__(self, *error: object) -> None:
        self.close()


def _collected(answers: Any) -> list[Any]:
    """Return the answers, in the order of the partitions."""
    return [pickle.loads(row.result) for row in sorted(answers.collect(), key=lambda row: row.part)]


# ---------------------------------------------------------------------------------------------------------- columns


def field(frame: Any, name: str, role: str) -> Any:
    """A column that must be there."""
    if name not in frame.columns:
        raise ValueError(f"{role} must name a column, one of {frame.columns!r}, got {name!r}")
    return F.col(f"`{name}`")


def number(frame: Any, name: str, role: str) -> Any:
    """A column of numbers, in double precision."""
    found, kind = field(frame, name, role), frame.schema[name].dataType
    if not isinstance(kind, T.NumericType | T.BooleanType):
        hint = ": index it first (pyspark.ml.feature.StringIndexer)" if role == "target" else ""
        raise ValueError(f"{role} must be numbers, got {kind.simpleString()} in column {name!r}{hint}")
    return found.cast("double")


def single_or_double(frame: Any, features: str | Sequence[str]) -> str:
    """The type of the features: single precision where all of them are."""
    if isinstance(features, str):
        kind = getattr(frame.schema[features].dataType, "elementType", None) if features in frame.columns else None
        return "f4" if isinstance(kind, T.FloatType) else "f8"
    kinds = [frame.schema[name].dataType for name in features if name in frame.columns]
    return "f4" if kinds and all(isinstance(kind, T.FloatType) for kind in kinds) else "f8"


def feature_column(frame: Any, features: str | Sequence[str]) -> Any:
    """The features of a row as an array of numbers."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.ml.linalg import VectorUDT

    kind = "float" if single_or_double(frame, features) == "f4" else "double"
    if not isinstance(features, str):
        if not features:
            raise ValueError("featuresCol must name columns, got none")
        return F.array(*[number(frame, name, "featuresCol").cast(kind) for name in features])
    found, given = field(frame, features, "featuresCol"), frame.schema[features].dataType
    if isinstance(given, VectorUDT):
        return vector_to_array(found)
    if isinstance(given, T.ArrayType) and isinstance(given.elementType, T.NumericType):
        return found.cast(f"array<{kind}>")
    if isinstance(given, T.NumericType):
        return F.array(found.cast(kind))
    raise ValueError(
        f"featuresCol must be a column of vectors or arrays, or a list of columns of numbers, got "
        f"{given.simpleString()} in column {features!r}"
    )
