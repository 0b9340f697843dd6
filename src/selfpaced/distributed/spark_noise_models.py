"""What a Spark model says of rows it has not seen: labels, values or distances, read from a sample and as columns.

A reading looks at a sample of rows with the predictions of models that had not seen them, and settles on a pace, or on
none. What it has settled on turns predictions of any frame into columns: weight, probability of being wrong, expected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from pyspark.ml.functions import vector_to_array
from pyspark.sql import functions as F

from ..assessment import UNLIKELY, look_by_residuals
from ..label_noise import fit_channel, logits_from_proba, one_rate_likelihood
from ..regularizers import get
from ..robust import efficient_rule, madn, outlier_share, residual_scale, tukey_loss, weighted_quantile
from ..robust.rules import TUKEY
from ..value_noise import EVEN_ODDS, assess_values
from . import one_sided
from .spark_expressions import outlier_column, right_label_column, weight_column

LEAST_WEIGHT = 1e-6  # numerical safety: a row of no weight at all is an error to some estimators


@dataclass(frozen=True)
class Settled:
    """What a reading has settled on: numbers that JSON keeps.

    Attributes
    ----------
    lam : float
        The pace: the noise rate of labels, else that of the rule.
    rate : float
        Share of rows that are wrong.
    reason : str
        Why nothing is to be paced; empty where something is.
    numbers : dict
        What the columns are made of.
    """

    lam: float
    rate: float
    reason: str
    numbers: dict[str, Any]


class Sample(NamedTuple):
    """Labels, values or distances of rows, what models that had not seen them predict, and the weights if any."""

    given: Any
    said: Any
    weight: Any = None


def _weight(rows: list[Any]) -> Any:
    """The user's weights of a sample; None if all are 1."""
    weight = np.array([row.weight for row in rows], dtype=float)
    return None if np.all(weight == 1.0) else weight


class LabelReading:
    """Labels and probabilities of a classifier."""

    kind = "labels"

    def __init__(self, estimator: Any) -> None:
        self.label, self.probability = estimator.getLabelCol(), estimator.getProbabilityCol()
        self.prediction = estimator.getPredictionCol()

    def group(self) -> Any:
        """What each half must have rows of: every label."""
        return F.col(self.label).cast("double")

    def one_sided(self, labels: list[Any], mass: Any) -> Settled | None:
        """What is settled if a half has no row of a label: nothing; None if both have all."""
        reason, k = one_sided(labels, mass), int(max(labels)) + 1
        numbers = {"scale": 1.0, "bias": [0.0] * k, "transition": np.eye(k).tolist()}
        return Settled(math.inf, math.nan, reason, numbers) if reason else None

    def seen(self, model: Any) -> dict[str, Any]:  # noqa: ARG002
        """The columns of a frame with predictions that a sample needs."""
        return {"given": F.col(self.label).cast("double"), "said": vector_to_array(F.col(self.probability))}

    def read(self, rows: list[Any]) -> Sample:
        """A sample as labels and logits."""
        codes = np.array([row.given for row in rows]).astype(int)
        return Sample(codes, logits_from_proba([row.said for row in rows]), _weight(rows))

    def settle(self, sample: Sample, rule: str) -> Settled:
        """The noise channel of the sample."""
        channel = fit_channel(sample.said, sample.given, sample_weight=sample.weight, noiseless=True)
        numbers = {"scale": channel.scale, "bias": channel.bias.tolist(), "transition": channel.transition.tolist()}
        why = "" if channel.interval[0] > 0 else "held-out labels do not plainly show that any are wrong"
        return Settled(channel.noise_rate, channel.noise_rate, why, {**numbers, "regularizer": rule})

    def scores(self, plain: Sample, paced: Sample, settled: Settled) -> tuple[Any, Any]:  # noqa: ARG002
        """What speaks for each of two models, row by row: the likelihood of labels seen through noise."""
        both = one_rate_likelihood([plain.said, paced.said], plain.given, plain.weight)
        return both[0], both[1]

    def columns(self, model: Any, settled: Settled) -> tuple[Any, Any, Any]:  # noqa: ARG002
        """Weight, probability of being wrong, and what is expected."""
        said, label, found = vector_to_array(F.col(self.probability)), F.col(self.label).cast("double"), settled.numbers
        right = right_label_column(said, label, found["scale"], found["bias"], found["transition"])
        return F.greatest(right, F.lit(LEAST_WEIGHT)), 1.0 - right, F.col(self.prediction)

    def look(self, model: Any, settled: Settled) -> Any:  # noqa: ARG002
        """Whether a row is worth a look."""
        label = F.col(self.label).cast("double")
        given = F.get(vector_to_array(F.col(self.probability)), label.cast("int"))
        return (given < UNLIKELY) & self.differs()

    def differs(self) -> Any:
        """Whether another label than the given one is expected."""
        return F.col(self.prediction) != F.col(self.label).cast("double")


class ValueReading:
    """Values and predictions of a regressor."""

    kind = "values"

    def __init__(self, estimator: Any) -> None:
        self.label, self.prediction = estimator.getLabelCol(), estimator.getPredictionCol()

    def group(self) -> Any:
        """What each half must have rows of: any."""
        return F.lit(0.0)

    def one_sided(self, labels: list[Any], mass: Any) -> Settled | None:
        """Refuse a table whose rows are all in one half."""
        if not labels or not mass.all():
            raise ValueError("the table must have rows to assess by, got so few that all are in one of two halves")
        return None

    def seen(self, model: Any) -> dict[str, Any]:  # noqa: ARG002
        """The columns of a frame with predictions that a sample needs."""
        return {"given": F.col(self.label).cast("double"), "said": F.col(self.prediction)}

    def read(self, rows: list[Any]) -> Sample:
        """A sample as values and predictions."""
        return Sample(np.array([row.given for row in rows]), np.array([row.said for row in rows]), _weight(rows))

    def settle(self, sample: Sample, rule: str) -> Settled:
        """The scale of the residuals, and whether the assessment of values calls any of them wrong."""
        given, said, weight = sample
        sigma = residual_scale(given - said, weight).sigma
        found = assess_values(given, (said,), sigma, sample_weight=weight)
        why = "" if np.any(found.wrong > EVEN_ODDS) else "no value is beyond every explanation"
        return _settled(given - said, sigma, found.rate, why, rule, 0.0)

    def scores(self, plain: Sample, paced: Sample, settled: Settled) -> tuple[Any, Any]:  # noqa: ARG002
        """What speaks for each of two models, row by row: minus Tukey's loss."""
        sigma = residual_scale(paced.given - paced.said, paced.weight).sigma
        return -tukey_loss(plain.given - plain.said, sigma), -tukey_loss(paced.given - paced.said, sigma)

    def residual(self, model: Any, settled: Settled) -> Any:  # noqa: ARG002
        """The residual of a row."""
        return F.col(self.label).cast("double") - F.col(self.prediction)

    def columns(self, model: Any, settled: Settled) -> tuple[Any, Any, Any]:
        """Weight, probability of being wrong, and what is expected."""
        found, residual = settled.numbers, self.residual(model, settled)
        weight = weight_column(get(found["regularizer"]), settled.lam, residual * residual / found["unit"])
        share = max(settled.rate, found["least"])
        wrong = outlier_column(residual, found["sigma"], share, found["reach"])
        return F.greatest(weight, F.lit(LEAST_WEIGHT)), wrong, F.col(self.prediction)

    def look(self, model: Any, settled: Settled) -> Any:
        """Whether a row is worth a look."""
        return F.abs(self.residual(model, settled)) >= settled.numbers["look"]

    def differs(self) -> Any:
        """Whether another value than the given one is expected."""
        return F.lit(True)


class DistanceReading(ValueReading):
    """Distances of rows to the centres of their clusters: beyond the usual, they are read like residuals."""

    kind = "samples"

    def __init__(self, estimator: Any) -> None:
        self.features, self.prediction = estimator.getFeaturesCol(), estimator.getPredictionCol()

    def seen(self, model: Any) -> dict[str, Any]:
        """The columns of a frame with predictions that a sample needs."""
        return {"given": self._distance(model), "said": F.lit(0.0)}

    def _distance(self, model: Any) -> Any:
        centres = F.array(*[F.array(*[F.lit(float(x)) for x in centre]) for centre in model.clusterCenters()])
        own = F.get(centres, F.col(self.prediction).cast("int"))
        squares = F.zip_with(vector_to_array(F.col(self.features)), own, lambda x, c: (x - c) * (x - c))
        return F.sqrt(F.aggregate(squares, F.lit(0.0), lambda total, square: total + square))

    def settle(self, sample: Sample, rule: str) -> Settled:
        """The usual distance and its spread, and whether any are far beyond."""
        distance, _, weight = sample
        center = float(np.median(distance)) if weight is None else weighted_quantile(distance, 0.5, weight)
        sigma = float(madn(distance - center, weight))
        excess = np.maximum(distance - center, 0.0)
        share = outlier_share(excess, sigma, weight)
        why = "" if share.low > 0 else "no row is far from every centre"
        return _settled(excess, sigma, share.estimate, why, rule, center)

    def scores(self, plain: Sample, paced: Sample, settled: Settled) -> tuple[Any, Any]:
        """What speaks for each of two models, row by row: minus the squared distance, those far out being alike."""
        far = settled.numbers["center"] + TUKEY * settled.numbers["sigma"]
        plain_score, paced_score = (-np.square(np.minimum(sample.given / far, 1.0)) for sample in (plain, paced))
        return plain_score, paced_score

    def residual(self, model: Any, settled: Settled) -> Any:
        """By how much a row is farther from its centre than usual."""
        return F.greatest(self._distance(model) - settled.numbers["center"], F.lit(0.0))

    def columns(self, model: Any, settled: Settled) -> tuple[Any, Any, Any]:
        """Weight, probability of being wrong, and the cluster."""
        weight, wrong, cluster = super().columns(model, settled)
        return weight, wrong, cluster.cast("double")


def _settled(residuals: Any, sigma: float, rate: float, why: str, rule: str, center: float) -> Settled:
    used, lam = efficient_rule(get(rule), sigma) if sigma > 0 else (None, math.inf)
    numbers = {
        "regularizer": rule, "unit": 1.0 if used is None else used.unit, "sigma": float(sigma), "center": center,
        "reach": float(np.abs(residuals).max(initial=0.0)), "least": 1.0 / max(len(residuals), 2),
        "look": min(look_by_residuals(residuals), np.finfo(float).max),
    }  # fmt: skip
    return Settled(float(lam), float(rate), why if sigma > 0 else "the rows are fitted exactly", numbers)


def reading(estimator: Any) -> Any:
    """What an estimator's predictions are read as."""
    if not estimator.hasParam("weightCol"):
        raise ValueError(f"estimator must have a weightCol, got {type(estimator).__name__}")
    if not estimator.hasParam("labelCol"):
        return DistanceReading(estimator)
    if estimator.hasParam("probabilityCol"):
        return LabelReading(estimator)
    if estimator.hasParam("rawPredictionCol"):
        raise ValueError(f"estimator must tell probabilities of labels, got {type(estimator).__name__}")
    return ValueReading(estimator)


__all__ = ["Settled", "reading"]
