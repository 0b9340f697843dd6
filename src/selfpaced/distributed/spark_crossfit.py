"""Any estimator of Spark ML that takes weights, cross-fitted: what held-out predictions cannot explain counts less."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np
from pyspark.ml import Estimator, Model
from pyspark.ml.functions import vector_to_array
from pyspark.ml.param import TypeConverters
from pyspark.ml.util import DefaultParamsReader
from pyspark.sql import functions as F

from ..assessment import Assessment
from .crossfit import SAMPLE, LabelNoiseModel, Outcome, ValueNoiseModel, cross_fit
from .spark_columns import ask, diagnosed, diagnosis_columns
from .spark_parameters import TableParams, parameter, read_object, require_java, write_object
from .spark_table import field
from .table import Block

logger = logging.getLogger(__name__)

FOLD, WEIGHT = "_selfpaced_fold", "_selfpaced_weight"


class Predictions(NamedTuple):
    """How the predictions of a wrapped estimator are read: as probabilities of labels, or as values."""

    labels: bool
    estimator: Any

    @classmethod
    def of(cls, estimator: Any) -> Predictions:
        """By the parameters that the estimator has."""
        if not isinstance(estimator, Estimator):
            raise TypeError(f"estimator must be an estimator of Spark ML, got {estimator!r}")
        for name in ("weightCol", "labelCol"):
            if not estimator.hasParam(name):
                raise ValueError(f"estimator must have a {name}, got {type(estimator).__name__}")
        labels = estimator.hasParam("probabilityCol")
        if estimator.hasParam("rawPredictionCol") and not labels:
            raise ValueError(f"estimator must predict probabilities of labels, got {type(estimator).__name__}")
        return cls(labels, estimator)

    @property
    def given(self) -> Any:
        """The column of given labels or values."""
        return F.col(self.estimator.getLabelCol()).cast("double")

    @property
    def known(self) -> Any:
        """The column of whether a row has a label or value."""
        return self.given.isNotNull() & ~F.isnan(self.given)

    @property
    def said(self) -> Any:
        """The predictions of a row as a list."""
        if self.labels:
            return vector_to_array(F.col(self.estimator.getProbabilityCol()))
        return F.array(F.col(self.estimator.getPredictionCol()).cast("double"))

    @property
    def weight(self) -> Any:
        """The column of the user's weights; 1 without one."""
        inner = self.estimator
        named = inner.isDefined("weightCol") and inner.getWeightCol()
        return F.col(inner.getWeightCol()).cast("double") if named else F.lit(1.0)

    def block(self, rows: list[Any]) -> tuple[Block, Any]:
        """A sample in memory as a block without features, and the predictions of its rows."""
        given, said = np.array([row.given for row in rows]), np.array([row.said for row in rows], dtype=float)
        weight = np.array([row.weight for row in rows], dtype=float)
        y = given.astype(np.intp if self.labels else float)
        return Block(None, y, None if np.all(weight == 1.0) else weight), said if self.labels else said[:, 0]

    def diagnosis(self, noise_model: Any) -> Any:
        """The column of the assessment of each row."""
        lean, labels = noise_model.without_rows(), self.labels

        def about(said: Any, given: Any) -> dict[str, Any]:
            known = np.isin(given, lean.classes) if labels else np.isfinite(given)

            def assess(rows: Any) -> Assessment:
                y, own = (given[rows].astype(np.intp), said[rows]) if labels else (given[rows], said[rows, 0])
                found: Assessment = lean.assessed(Block(None, y), own)
                return found

            return diagnosed(given, known, assess)

        return ask(about, self.said, self.given)


class _WrapperParams(TableParams):
    estimator = parameter("estimator", "an estimator of Spark ML with a weightCol")
    seed = parameter("seed", "splits the rows into halves", TypeConverters.toInt)

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(seed=0)

    def _folded(self, frame: Any) -> Any:
        """Rows with their fold: by their id, wherever they lie."""
        return frame.withColumn(FOLD, F.pmod(self._hashed(0), F.lit(2)))

    def _hashed(self, more: int) -> Any:
        name = self.optional("idCol")
        if name is None:
            raise ValueError("idCol must name a column with a different value in each row: it decides the halves")
        return F.xxhash64(F.lit(self.getOrDefault("seed") + more), F.col(str(name)))

    def _by_the_other(self, models: Any, folded: Any, made: Any, folds: tuple[int, ...] = (0, 1)) -> Any:
        """``made(predictions)`` of every row, or those of one fold, by the model that has not seen it."""
        parts = [made(models[1 - fold].transform(folded.where(F.col(FOLD) == fold))) for fold in folds]
        return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])

    def _save_parts(self, session: Any, path: str) -> Any:  # noqa: ARG002
        own = self.copy()
        own.getOrDefault("estimator").save(f"{path}/estimator")
        own.clear(own.estimator)
        return own

    @classmethod
    def _load_parts(cls, session: Any, path: str) -> Any:
        return cls().setParams(estimator=_part(session, f"{path}/estimator"))


def _part(session: Any, path: str) -> Any:
    return DefaultParamsReader.loadParamsInstance(path, session)


class CrossFitModel(_WrapperParams, Model):
    """A fitted :class:`CrossFit`.

    ``transform`` adds what the wrapped model adds and, if the frame has labels or values, the weight of a row, the
    probability that it is wrong, what is expected, and its level. A model that remembers its rows finds little wrong
    with them: ask `unseen` about the rows of the fit.

    Attributes
    ----------
    fitted : Model
        The wrapped estimator's model of all rows.
    folds : list of Model
        Those of both halves of the rows.
    noiseModel : LabelNoiseModel or ValueNoiseModel
        The noise model, and whether rows were weighted by it.
    path : tuple of Candidate
        The plain and the weighted model, with their scores on unseen rows.
    termination : str
        What was kept, and why.
    """

    def __init__(self, fitted: Any, found: Outcome) -> None:
        super().__init__()
        self.fitted, self.folds = fitted, [fitted] * 2 if found.models is None else found.models
        self.noiseModel, self.path, self.termination = found.noise_model, found.path, found.termination

    @property
    def noiseRate(self) -> float:
        """Estimated share of wrong rows; NaN if it cannot be estimated."""
        return float(self.noiseModel.rate[0])

    @property
    def noiseRateInterval(self) -> tuple[float, float]:
        """Interval of the noise rate, of about 95 %."""
        low, high = self.noiseModel.rate[1]
        return float(low), float(high)

    def _assessed(self, predicted: Any) -> Any:
        said = Predictions.of(self.getOrDefault("estimator")).diagnosis(self.noiseModel)
        return predicted.withColumns(diagnosis_columns(self, said))

    def _transform(self, dataset: Any) -> Any:
        predicted = self.fitted.transform(dataset)
        labelled = self.getOrDefault("estimator").getLabelCol() in dataset.columns
        return self._assessed(predicted) if labelled else predicted

    def unseen(self, dataset: Any) -> Any:
        """Rows of the fit, known by their ids, each assessed by a model that had not seen it."""
        return self._by_the_other(self.folds, self._folded(dataset), self._assessed).drop(FOLD)

    def _save_parts(self, session: Any, path: str) -> Any:
        for name, model in (("model", self.fitted), ("fold0", self.folds[0]), ("fold1", self.folds[1])):
            model.save(f"{path}/{name}")
        write_object(session, f"{path}/outcome", [self.noiseModel.without_rows(), self.path, self.termination])
        return super()._save_parts(session, path)

    @classmethod
    def _load_parts(cls, session: Any, path: str) -> Any:
        model, *folds = (_part(session, f"{path}/{name}") for name in ("model", "fold0", "fold1"))
        found = cls(model, Outcome(folds, *read_object(session, f"{path}/outcome")))
        return found.setParams(estimator=_part(session, f"{path}/estimator"))


class CrossFit(_WrapperParams, Estimator):
    """Fit any estimator of Spark ML that has a ``weightCol``, with less weight for rows that it cannot explain.

    Takes classifiers with probabilities and regressors. Rows are split into two halves by a hash of their id. A model
    of each half predicts the other half. A sample of these predictions gives the noise model (label noise, or gross
    errors in values). Weighted models of both halves are compared with the plain ones on
    rows they have not seen, and the better kind is fitted to all rows. The cost is three plain fits, or two if nothing
    is found to be wrong. The noise model is the one of :class:`selfpaced.dask.CrossFitClassifier` and
    :class:`selfpaced.dask.CrossFitRegressor`; this library has to be installed on the executors.

    This is not the algorithm of :class:`selfpaced.SelfPacedClassifier`, which fits soft labels.

    Parameters
    ----------
    estimator : Estimator
        What is wrapped; its columns and its ``weightCol`` stay in force.
    idCol : str
        A column with a different value in each row.
    seed : int, default=0
        Splits the rows into halves.
    selfPacedWeightCol, noiseProbabilityCol, expectedCol, levelCol : str
        Columns that the model adds. A level is "likely error", "worth a look" or empty.
    """

    def __init__(self, **params: Any) -> None:
        require_java()
        super().__init__()
        self.setParams(**params)

    def _fit(self, dataset: Any) -> CrossFitModel:
        inner = self.optional("estimator")
        read = Predictions.of(inner)
        for name, role in ((inner.getLabelCol(), "labelCol"), (self.optional("idCol"), "idCol")):
            if name is not None:
                field(dataset, name, role)
        mass, without = self._mass(read, self._folded(dataset))
        dataset = dataset.where(read.known) if without else dataset
        folded = self._folded(dataset)
        weighing = inner.copy({inner.getParam("weightCol"): WEIGHT})

        def fitted(models: Any = None, noise_model: Any = None) -> list[Any]:
            if models is None:
                return [inner.fit(_half(folded.where(F.col(FOLD) == fold))) for fold in (0, 1)]
            # one half at a time: that of both would have the tasks of both
            parts = [self._weighted(read, folded, models, noise_model, (fold,)) for fold in (0, 1)]
            return [weighing.fit(_half(part)) for part in parts]

        def predicted(models: Any) -> tuple[Block, Any]:
            return read.block(self._sample(read, models, folded))

        classes = np.arange(float(mass.shape[1])) if read.labels else None
        kind = LabelNoiseModel if read.labels else ValueNoiseModel
        found = cross_fit(kind, classes, mass, fitted, predicted)
        if found.weighted:
            model = weighing.fit(self._weighted(read, folded, found.models, found.noise_model))
        else:
            model = inner.fit(dataset)
        made = CrossFitModel(model, found)
        made._resetUid(self.uid)
        copied: CrossFitModel = self._copyValues(made)
        return copied

    def _mass(self, read: Predictions, folded: Any) -> tuple[Any, int]:
        """The weight of every label from 0 on (of values, of all) in both halves, and how many rows have none."""
        group = F.when(read.known, read.given if read.labels else F.lit(0.0))
        groups = folded.groupBy(F.col(FOLD).alias("fold"), group.alias("label"))
        rows = groups.agg(F.sum(read.weight).alias("mass"), F.count(F.lit(1)).alias("rows")).collect()
        found, without = [row for row in rows if row["label"] is not None], 0
        if len(found) < len(rows):
            n, without = sum(row["rows"] for row in rows), sum(row["rows"] for row in rows if row["label"] is None)
            if not read.labels or not found:
                raise ValueError(
                    f"labelCol must hold {'labels' if read.labels else 'values'}, got {without} rows without"
                )
            logger.warning("%d of %d rows have no label and are left out", without, n)
        labels = [int(row["label"]) for row in found]
        mass = np.ones((2, max(labels, default=0) + 1))  # labels that no row has do not count as absent from one half
        mass[:, labels] = 0.0
        for row, label in zip(found, labels, strict=True):
            mass[int(row["fold"]), label] = row["mass"]
        return mass, without

    def _sample(self, read: Predictions, models: Any, folded: Any) -> list[Any]:
        """Predictions of unseen rows: the same rows for any models."""

        def made(predicted: Any) -> Any:
            seen = {"order": self._hashed(1), "weight": read.weight, "given": read.given, "said": read.said}
            return predicted.select(*[own.alias(name) for name, own in seen.items()])

        found: list[Any] = self._by_the_other(models, folded, made).orderBy("order").limit(SAMPLE).collect()
        return found

    def _weighted(
        self, read: Predictions, folded: Any, models: Any, noise_model: Any, folds: tuple[int, ...] = (0, 1)
    ) -> Any:
        """The frame with weights by models that have not seen the rows: made from the frame, and from no weights."""

        def made(predicted: Any) -> Any:
            weight = read.diagnosis(noise_model)["weight"] * read.weight
            return predicted.select(*folded.columns, weight.alias(WEIGHT))

        return self._by_the_other(models, folded, made, folds)


def _half(frame: Any) -> Any:
    """Half of the rows in half of the partitions, if every core still has one: a task costs as much as many rows."""
    count, cores = frame.rdd.getNumPartitions(), frame.sparkSession.sparkContext.defaultParallelism
    return frame.coalesce((count + 1) // 2) if count >= 2 * cores else frame
