"""Models of Spark frames, for tables that lie on a Spark cluster: estimators of Spark ML.

`SelfPacedLogisticRegression` and `SelfPacedLinearRegression` are those of this library, fitted to rows where they lie;
`CrossFit` wraps any estimator of Spark ML that takes weights.
"""

try:
    import pyspark.sql  # noqa: F401
except ImportError as error:
    raise ImportError('selfpaced.spark needs pyspark: pip install "selfpaced[spark]", and Java 17 or newer') from error

from .linear import (
    SelfPacedLinearRegression,
    SelfPacedLinearRegressionModel,
    SelfPacedLogisticRegression,
    SelfPacedLogisticRegressionModel,
)
from .table import SparkTable
from .wrapping import CrossFit, CrossFitModel

__all__ = [
    "CrossFit",
    "CrossFitModel",
    "SelfPacedLinearRegression",
    "SelfPacedLinearRegressionModel",
    "SelfPacedLogisticRegression",
    "SelfPacedLogisticRegressionModel",
    "SparkTable",
]
