"""Models of Spark frames, for tables that lie on a Spark cluster: estimators of Spark ML.

`SelfPacedLogisticRegression` and `SelfPacedLinearRegression` are those of this library, fitted to rows where they lie;
`CrossFit` wraps any estimator of Spark ML that takes weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    from pyspark.ml import Estimator, Model
except ImportError as error:
    raise ImportError('selfpaced.spark needs pyspark: pip install "selfpaced[spark]", and Java 17 or newer') from error

from pyspark.ml.linalg import DenseMatrix, DenseVector, Vectors
from pyspark.ml.param import TypeConverters

from . import linear
from .distributed.spark_columns import linear_columns
from .distributed.spark_crossfit import CrossFit, CrossFitModel
from .distributed.spark_parameters import TableParams, parameter, read_object, require_java, write_object
from .distributed.spark_table import SparkTable


class _LinearParams(TableParams):
    """What both regressions share."""

    regularizer = parameter("regularizer", "name of a rule of selfpaced.regularizers, or a rule")
    pace = parameter("pace", '"auto", "paper", a number (a fixed lam), or a Pacing')
    fitIntercept = parameter("fitIntercept", "whether to fit an intercept", TypeConverters.toBoolean)
    maxIter = parameter("maxIter", "largest number of iterations of a full fit", TypeConverters.toInt)
    tol = parameter("tol", "when a fit has converged", TypeConverters.toFloat)
    seed = parameter("seed", "splits folds and draws samples", TypeConverters.toInt)
    _shared = {"fitIntercept": "fit_intercept", "maxIter": "max_iter", "seed": "random_state"}


class _LinearEstimator(_LinearParams, Estimator):
    """A fit of one of this library's linear models to packed blocks."""

    _inner: Any
    _model: Any
    _labels: bool
    _defaults: dict[str, Any]

    def __init__(self, **params: Any) -> None:
        require_java()
        super().__init__()
        self._setDefault(**self._defaults)
        self.setParams(**params)

    def _fit(self, dataset: Any) -> Any:
        options = {self._shared.get(name, name): self.getOrDefault(name) for name in self._own_parameters()}
        options = {name: None if value == "none" else value for name, value in options.items()}
        columns = self.getFeaturesCol(), self.getLabelCol(), self.optional("weightCol"), self.optional("idCol")
        with SparkTable(dataset, *columns, labels=self._labels) as table:
            fitted = self._inner(**options).fit(table)
        model = self._model(fitted)
        model._resetUid(self.uid)
        return self._copyValues(model)

    def _own_parameters(self) -> list[str]:
        return [name for name in self._defaults if not name.endswith("Col")]


class _LinearModel(_LinearParams, Model):
    """A fitted model; ``fitted`` is the estimator of this library, whose assessment is that of a sample of the rows."""

    _defaults: dict[str, Any]

    def __init__(self, fitted: Any) -> None:
        super().__init__()
        self._setDefault(**self._defaults)
        self.fitted = fitted

    @property
    def numFeatures(self) -> int:
        """Number of features."""
        return int(self.fitted.n_features_in_)

    @property
    def noiseRate(self) -> float:
        """Estimated share of wrong labels or values."""
        return float(self.fitted.noise_rate_)

    @property
    def path(self) -> Any:
        """The candidates, with their scores on unseen rows."""
        return self.fitted.path_

    @property
    def termination(self) -> str:
        """What was chosen, and why."""
        return str(self.fitted.termination_)

    def _transform(self, dataset: Any) -> Any:
        return linear_columns(self, dataset)

    def _save_parts(self, session: Any, path: str) -> Any:
        described = super()._save_parts(session, path)
        write_object(session, f"{path}/model", self.fitted)
        return described

    @classmethod
    def _load_parts(cls, session: Any, path: str) -> Any:
        return cls(read_object(session, f"{path}/model"))


class _LogisticParams(_LinearParams):
    C = parameter("C", 'inverse strength of the penalty, or "auto"')
    penalty = parameter("penalty", '"l2" or "none"', TypeConverters.toString)
    balance = parameter("balance", "how far predictions lean towards rare classes", TypeConverters.toFloat)
    probabilityCol = parameter("probabilityCol", "column of probabilities of clean labels", TypeConverters.toString)
    rawPredictionCol = parameter("rawPredictionCol", "column of scores", TypeConverters.toString)
    _defaults = {
        "regularizer": "welsch", "pace": "auto", "C": "auto", "penalty": "l2", "fitIntercept": True, "balance": 0.0,
        "tol": 1e-4, "maxIter": 200, "seed": 0, "probabilityCol": "probability", "rawPredictionCol": "rawPrediction",
    }  # fmt: skip


class SelfPacedLogisticRegressionModel(_LogisticParams, _LinearModel):
    """A fitted :class:`SelfPacedLogisticRegression`.

    ``transform`` adds prediction, scores and probabilities of the clean label and, if the frame has the column of
    labels, the weight of the row in the fit, the probability that its label is wrong, and the label that is expected
    (null if the label is null or was not seen in the fit).

    Attributes
    ----------
    fitted : selfpaced.SelfPacedLogisticRegression
        The model of this library: path, termination, noise rate; its assessment is that of a sample of the rows.
    """

    @property
    def numClasses(self) -> int:
        """Number of classes."""
        return len(self.fitted.classes_)

    @property
    def coefficients(self) -> DenseVector:
        """Coefficients, of two classes."""
        if self.numClasses > 2:
            raise ValueError(f"coefficients must be those of 2 classes, got {self.numClasses}: use coefficientMatrix")
        return Vectors.dense(self.fitted.coef_[0].astype(float))

    @property
    def intercept(self) -> float:
        """The intercept, of two classes."""
        if self.numClasses > 2:
            raise ValueError(f"intercept must be that of 2 classes, got {self.numClasses}: use interceptVector")
        return float(self.fitted.intercept_[0])

    @property
    def coefficientMatrix(self) -> DenseMatrix:
        """Coefficients: one line, or one for each of more than two classes."""
        coef = np.asarray(self.fitted.coef_, dtype=float)
        return DenseMatrix(*coef.shape, coef.ravel(order="F").tolist())

    @property
    def interceptVector(self) -> DenseVector:
        """Intercepts, as many as lines of ``coefficientMatrix``."""
        return Vectors.dense(np.asarray(self.fitted.intercept_, dtype=float))


class SelfPacedLogisticRegression(_LogisticParams, _LinearEstimator):
    """:class:`selfpaced.SelfPacedLogisticRegression` on a Spark frame: the same model, as an estimator of Spark ML.

    The rows are packed once into blocks that Spark caches; every pass is one sum over them on the executors, where this
    library has to be installed too. A sample by content decides, as in memory, if
    there are more than 10,000 distinct rows.

    Parameters
    ----------
    featuresCol : str or list of str, default="features"
        A column of vectors or arrays, or columns of numbers.
    labelCol : str, default="label"
        Labels, any whole numbers.
    weightCol : str, optional
        Weights of the rows.
    idCol : str, optional
        A column with a different value in each row. With it, a fit does not depend on partitions and order; without,
        it is repeatable for the same partitions in the same order only.
    predictionCol, probabilityCol, rawPredictionCol : str
        Columns that ``transform`` adds, as in Spark ML; probabilities are those of clean labels, in the order of the
        labels.
    selfPacedWeightCol, noiseProbabilityCol, expectedCol, levelCol : str
        Columns that ``transform`` adds if the frame has the column of labels.
    regularizer, pace, C, penalty, fitIntercept, balance, tol, maxIter, seed
        As in :class:`selfpaced.SelfPacedLogisticRegression`; ``penalty="none"`` is no penalty.

    Examples
    --------
    A guide is on the page "On Spark"; with a session ``spark`` and a frame of columns ``a``, ``b`` and ``label``::

        model = SelfPacedLogisticRegression(featuresCol=["a", "b"]).fit(frame)
        model.transform(frame).where("noiseProbability > 0.5")
    """

    _inner, _model, _labels = linear.SelfPacedLogisticRegression, SelfPacedLogisticRegressionModel, True


class _RegressionParams(_LinearParams):
    alpha = parameter("alpha", "ridge penalty", TypeConverters.toFloat)
    efficiency = parameter(
        "efficiency", "precision on clean normal errors at which the pace stops", TypeConverters.toFloat
    )
    start = parameter("start", '"auto", "robust" or "plain"', TypeConverters.toString)
    _defaults = {
        "alpha": 0.0, "regularizer": "huber", "pace": "auto", "efficiency": 0.95, "start": "auto", "fitIntercept": True,
        "maxIter": 200, "tol": 1e-7, "seed": 0,
    }  # fmt: skip


class SelfPacedLinearRegressionModel(_RegressionParams, _LinearModel):
    """A fitted :class:`SelfPacedLinearRegression`.

    ``transform`` adds the prediction and, if the frame has the column of values, the weight of the row in the fit,
    the probability that its value is wrong, and the value that is expected (null if the value is null).

    Attributes
    ----------
    fitted : selfpaced.SelfPacedLinearRegression
        The model of this library: path, termination, summary; its assessment is that of a sample of the rows.
    """

    @property
    def coefficients(self) -> DenseVector:
        """Coefficients."""
        return Vectors.dense(self.fitted.coef_.astype(float))

    @property
    def intercept(self) -> float:
        """The intercept."""
        return float(self.fitted.intercept_)


class SelfPacedLinearRegression(_RegressionParams, _LinearEstimator):
    """:class:`selfpaced.SelfPacedLinearRegression` on a Spark frame: the same model, as an estimator of Spark ML.

    With more than 50,000 rows, a sample by content sets the pace and assesses the values, as in memory; all rows are
    fitted. See :class:`SelfPacedLogisticRegression` for the place of the rows.

    Parameters
    ----------
    featuresCol, labelCol, weightCol, idCol, predictionCol
        As in :class:`SelfPacedLogisticRegression`; ``labelCol`` holds values.
    selfPacedWeightCol, noiseProbabilityCol, expectedCol, levelCol
        As in :class:`SelfPacedLogisticRegression`.
    alpha, regularizer, pace, efficiency, start, fitIntercept, maxIter, tol, seed
        As in :class:`selfpaced.SelfPacedLinearRegression`.
    """

    _inner, _model, _labels = linear.SelfPacedLinearRegression, SelfPacedLinearRegressionModel, False


__all__ = [
    "CrossFit",
    "CrossFitModel",
    "SelfPacedLinearRegression",
    "SelfPacedLinearRegressionModel",
    "SelfPacedLogisticRegression",
    "SelfPacedLogisticRegressionModel",
    "SparkTable",
]
