"""Any estimator of Spark ML that takes weights, wrapped: what its held-out predictions cannot explain counts less."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np
from pyspark.ml import Estimator, Model
from pyspark.ml.param import TypeConverters
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql import functions as F

from ..assessment import LEVELS, SUSPECT
from ..path import Candidate
from ..selection import Decision, Trial, path_of, plain_or_paced, sentence
from .spark_noise_models import Settled, reading
from .spark_parameters import TableParams, parameter, require_java

SAMPLE = 20_000  # cost: held-out rows that are read and compared here
FOLD, WEIGHT = "_selfpaced_fold", "_selfpaced_weight"


class _WrapperParams(TableParams):
    estimator = parameter("estimator", "an estimator of Spark ML with a weightCol")
    regularizer = parameter("regularizer", "name of the rule for values and distances", TypeConverters.toString)
    seed = parameter("seed", "splits the rows into halves", TypeConverters.toInt)
    _defaults = {
        "regularizer": "tukey", "seed": 0, "selfPacedWeightCol": "selfPacedWeight",
        "noiseProbabilityCol": "noiseProbability", "expectedCol": "expected",
        "levelCol": "level",
    }  # fmt: skip

    def _folded(self, frame: Any) -> Any:
        """Rows with their fold: by their id, wherever they lie."""
        return frame.withColumn(FOLD, F.pmod(F.xxhash64(F.lit(self.getOrDefault("seed")), F.col(self._id())), F.lit(2)))

    def _id(self) -> str:
        name = self.optional("idCol")
        if name is None:
            raise ValueError("idCol must name a column that tells rows apart: it decides the half of a row")
        return str(name)

    def _by_the_other(self, models: Any, folded: Any, made: Any, folds: tuple[int, ...] = (0, 1)) -> Any:
        """``made(model, predictions)`` of every row, or those of one fold, by the model that has not seen it."""
        parts = [
            made(models[1 - fold], models[1 - fold].transform(folded.where(F.col(FOLD) == fold))) for fold in folds
        ]
        return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])

    def _assessing(self, read: Any, settled: Settled, plain: bool) -> Any:
        """Adds what is thought of rows to predictions."""
        kinds = ("selfPacedWeightCol", "noiseProbabilityCol", "expectedCol", "levelCol")
        names = [self.getOrDefault(name) for name in kinds]

        def made(model: Any, predicted: Any) -> Any:
            weight, wrong, expected = read.columns(model, settled)
            weight = F.lit(1.0) if plain else weight
            wrong = F.lit(0.0) if settled.reason else wrong
            none, look, likely = LEVELS.tolist()
            level = F.when((wrong > SUSPECT) & read.differs(), likely).when(read.look(model, settled), look)
            columns = (weight, wrong, expected, level.otherwise(none))
            return predicted.withColumns(dict(zip(names, columns, strict=True)))

        return made


class CrossFitModel(_WrapperParams, Model, MLWritable, MLReadable):
    """A fitted :class:`CrossFit`.

    ``transform`` adds what the wrapped model adds and, where the frame has its labels or values, the weight that a row
    has at the pace of the fit, the probability that it is wrong, and what is expected. A model that remembers its rows
    finds little wrong with them: ask `unseen` about the rows of the fit.

    Attributes
    ----------
    fitted : Model
        The wrapped estimator's model of all rows.
    folds : list of Model
        Those of both halves of the rows.
    settled : Settled
        Pace, share of wrong rows, and the numbers that weights are made of.
    path : tuple of Candidate
        The plain and the paced model, with their scores on unseen rows.
    termination : str
        What was kept, and why.
    """

    def __init__(
        self, fitted: Any, folds: list[Any], settled: Settled, plain: bool, termination: str, path: Any = ()
    ) -> None:
        super().__init__()
        self._setDefault(**self._defaults)
        self.fitted, self.folds, self.settled = fitted, folds, settled
        self.plain, self.termination, self.path = plain, termination, path

    @property
    def noiseRate(self) -> float:
        """Estimated share of wrong rows; NaN if it cannot be estimated."""
        return 0.0 if self.settled.reason and not math.isnan(self.settled.rate) else self.settled.rate

    def _transform(self, dataset: Any) -> Any:
        read, predicted = reading(self.getOrDefault("estimator")), self.fitted.transform(dataset)
        if read.kind != "samples" and read.label not in dataset.columns:
            return predicted
        return self._assessing(read, self.settled, self.plain)(self.fitted, predicted)

    def unseen(self, dataset: Any) -> Any:
        """Rows of the fit, known by their ids, each assessed by a model that had not seen it."""
        read = reading(self.getOrDefault("estimator"))
        made = self._assessing(read, self.settled, self.plain)
        return self._by_the_other(self.folds, self._folded(dataset), made).drop(FOLD)

    def write(self) -> Any:
        """What writes the model; ``save(path)`` calls it."""
        return _WrapperWriter(self)

    @classmethod
    def read(cls) -> Any:
        """What reads a model; ``load(path)`` calls it."""
        return _WrapperReader(cls)


class CrossFit(_WrapperParams, Estimator, MLWritable, MLReadable):
    """Fit any estimator of Spark ML that has a ``weightCol``, with less weight for rows that it cannot explain.

    Takes classifiers with probabilities, regressors and k-means. Rows are split into two halves by a hash of their id.
    A model of each half predicts the other half. A sample of these predictions gives the noise model (label noise,
    gross errors in values, or large distances) and the pace. Weighted models of both halves are compared with the
    plain ones on rows they have not seen, and the better kind is fitted to all rows. The cost is three plain fits, or
    two if nothing is found to be wrong. Weights are column expressions of (frame, model, pace).

    This is not the algorithm of :class:`selfpaced.SelfPacedClassifier`, which fits soft labels.

    Parameters
    ----------
    estimator : Estimator
        What is wrapped; its columns and its ``weightCol`` stay in force.
    idCol : str
        A column that tells rows apart.
    regularizer : str, default="tukey"
        The rule that weighs values and distances; labels are weighed by the probability that they are right.
    seed : int, default=0
        Splits the rows into halves.
    selfPacedWeightCol, noiseProbabilityCol, expectedCol, levelCol : str
        Columns that the model adds. A level is "likely error", "worth a look" or empty.
    """

    def __init__(self, **params: Any) -> None:
        require_java()
        super().__init__()
        self._setDefault(**self._defaults)
        self.setParams(**params)

    def _fit(self, dataset: Any) -> CrossFitModel:
        inner = self.getOrDefault("estimator")
        read, folded = reading(inner), self._folded(dataset)
        settled = read.one_sided(*self._mass(inner, read, folded))
        if settled is not None:
            model = inner.fit(dataset)
            return self._found(model, [model, model], settled, [Trial(math.inf, "plain")], Decision(0, settled.reason))
        plain = [inner.fit(_half(folded.where(F.col(FOLD) == fold))) for fold in (0, 1)]
        before = read.read(self._sample(inner, read, plain, folded))
        settled = read.settle(before, self.getOrDefault("regularizer"))
        if settled.reason:
            trials, decision, folds = [Trial(math.inf, "plain")], Decision(0, settled.reason), plain
        else:
            given = self._weighing(inner)  # one half at a time: that of both would have the tasks of both
            folds = [given.fit(_half(self._weighted(inner, read, plain, folded, settled, (fold,)))) for fold in (0, 1)]
            after = read.read(self._sample(inner, read, folds, folded))
            plain_score, paced_score = read.scores(before, after, settled)
            trials, decision = plain_or_paced(plain_score, paced_score, settled.lam, before.weight)
        if decision.index:
            model = self._weighing(inner).fit(self._weighted(inner, read, folds, folded, settled))
        else:
            model, folds = inner.fit(dataset), plain
        return self._found(model, folds, settled, trials, decision, before.weight)

    def _found(
        self, model: Any, folds: list[Any], settled: Settled, trials: list[Trial], decision: Decision,
        sample_weight: Any = None,
    ) -> CrossFitModel:  # fmt: skip
        path = path_of(trials, decision, sample_weight)
        found = CrossFitModel(model, folds, settled, not decision.index, sentence(trials, decision), path)
        found._resetUid(self.uid)
        copied: CrossFitModel = self._copyValues(found)
        return copied

    def _mass(self, inner: Any, read: Any, folded: Any) -> tuple[list[Any], Any]:
        """The labels (one, of values and distances), and the weight of each in both halves."""
        weight = _given_weight(inner)
        groups = folded.groupBy(F.col(FOLD).alias("fold"), read.group().alias("label"))
        found = groups.agg(F.sum(weight).alias("mass")).collect()
        if any(row["label"] is None or math.isnan(row["label"]) for row in found):
            raise ValueError("labelCol must not have gaps, got rows without a label")
        labels = sorted({row["label"] for row in found})
        mass = np.zeros((2, len(labels)))
        for row in found:
            mass[int(row["fold"]), labels.index(row["label"])] = row["mass"]
        return labels, mass

    def _sample(self, inner: Any, read: Any, models: Any, folded: Any) -> list[Any]:
        """Predictions of unseen rows: the same rows for any models."""
        order = F.xxhash64(F.lit(self.getOrDefault("seed") + 1), F.col(self._id()))

        def made(model: Any, predicted: Any) -> Any:
            seen = {"order": order, "weight": _given_weight(inner), **read.seen(model)}
            return predicted.select(*[own.alias(name) for name, own in seen.items()])

        found: list[Any] = self._by_the_other(models, folded, made).orderBy("order").limit(SAMPLE).collect()
        return found

    def _weighted(
        self, inner: Any, read: Any, models: Any, folded: Any, settled: Settled, folds: tuple[int, ...] = (0, 1)
    ) -> Any:
        """The frame with weights by models that have not seen the rows: made from the frame, and from no weights."""
        prior = _given_weight(inner)

        def made(model: Any, predicted: Any) -> Any:
            weight = read.columns(model, settled)[0] * prior
            return predicted.select(*folded.columns, weight.alias(WEIGHT))

        return self._by_the_other(models, folded, made, folds)

    def _weighing(self, inner: Any) -> Any:
        return inner.copy({inner.getParam("weightCol"): WEIGHT})

    def write(self) -> Any:
        """What writes the estimator; ``save(path)`` calls it."""
        return _WrapperWriter(self)

    @classmethod
    def read(cls) -> Any:
        """What reads an estimator; ``load(path)`` calls it."""
        return _WrapperReader(cls)


def _given_weight(inner: Any) -> Any:
    """The column of the user's weights; 1 without one."""
    named = inner.isDefined("weightCol") and inner.getWeightCol()
    return F.col(inner.getWeightCol()).cast("double") if named else F.lit(1.0)


def _half(frame: Any) -> Any:
    """Half of the rows in half of the partitions, if every core still has one: a task costs as much as many rows."""
    count, cores = frame.rdd.getNumPartitions(), frame.sparkSession.sparkContext.defaultParallelism
    return frame.coalesce((count + 1) // 2) if count >= 2 * cores else frame


# ---------------------------------------------------------------------------------------------------------- saving


class _WrapperWriter(MLWriter):
    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:
        own, facts = self.instance.copy(), None
        inner = own.getOrDefault("estimator")
        own.clear(own.estimator)
        if isinstance(own, CrossFitModel):
            facts = {"settled": asdict(own.settled), "plain": own.plain, "termination": own.termination}
            facts["path"] = [asdict(candidate) for candidate in own.path]
            for name, model in (("model", own.fitted), ("fold0", own.folds[0]), ("fold1", own.folds[1])):
                model.save(f"{path}/{name}")
        inner.save(f"{path}/estimator")
        DefaultParamsWriter.saveMetadata(own, path, self.sparkSession, extraMetadata={"selfpaced": json.dumps(facts)})


class _WrapperReader(MLReader):
    def __init__(self, cls: Any) -> None:
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        facts = json.loads(metadata["selfpaced"])
        if facts is None:
            found = self.cls()
        else:
            parts = [self._part(f"{path}/{name}") for name in ("model", "fold0", "fold1")]
            settled = Settled(**facts["settled"])
            steps = tuple(Candidate(**{**step, "histogram": tuple(step["histogram"])}) for step in facts["path"])
            found = self.cls(parts[0], parts[1:], settled, facts["plain"], facts["termination"], steps)
        found._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(found, metadata)
        found.setParams(estimator=self._part(f"{path}/estimator"))
        return found

    def _part(self, path: str) -> Any:
        return DefaultParamsReader.loadParamsInstance(path, self.sparkSession)


__all__ = ["CrossFit", "CrossFitModel"]
