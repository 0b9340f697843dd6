"""Which rows of a Dask table are wrong, by predictions of models that have not seen them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..assessment import UNLIKELY, Assessment, Labels, Values, look_by_residuals, look_by_share
from ..label_noise import NoiseModel, fit_channel, logits_from_proba, one_rate_likelihood
from ..robust import residual_scale
from ..selection import Decision, Trial, plain_or_paced
from ..value_noise import EVEN_ODDS, WITHOUT, ValueAssessment, assess_values, nearest, numeric_features
from ..value_noise import Rows as ValueRows
from . import Block, one_sided

LEAST_WEIGHT = 1e-6  # numerical safety: a row of no weight at all is an error to some estimators


@dataclass(frozen=True, eq=False)
class LabelNoiseModel:
    """Labels, by the noise channel of a sample.

    Attributes
    ----------
    classes : ndarray
        The labels.
    channel : NoiseModel
        What probabilities of the classes make of them.
    reason : str
        Why nothing is to be weighed; empty where something is.
    lam : float
        The noise rate where rows are weighed by it, else ``inf``.
    look : float
        Evidence from which a row is worth a look.
    """

    classes: Any
    channel: NoiseModel
    reason: str = ""
    lam: float = np.inf
    look: float = np.inf

    @classmethod
    def of(cls, classes: Any, rows: Block, said: Any) -> LabelNoiseModel:
        """By what models said of rows that they had not seen."""
        channel = fit_channel(logits_from_proba(said), rows.y, sample_weight=rows.weight, noiseless=True)
        why = "" if channel.interval[0] > 0 else "held-out labels do not plainly show that any are wrong"
        diagnosis = Labels(classes, rows.y, logits_from_proba(said), channel)
        share = float(np.average(diagnosis.support < UNLIKELY, weights=rows.weight))
        return cls(classes, channel, why, look=look_by_share(diagnosis.evidence, share))

    @classmethod
    def silent(cls, classes: Any, mass: Any) -> LabelNoiseModel:
        """If a half has no row of a label, nothing is estimated."""
        unknown = replace(NoiseModel.identity(len(classes)), noise_rate=np.nan)
        return cls(classes, unknown, one_sided(classes, mass))

    @property
    def rate(self) -> tuple[float, tuple[float, float]]:
        """Share of wrong labels, and its interval."""
        return self.channel.noise_rate, self.channel.interval

    def weighing(self) -> LabelNoiseModel:
        """The same, by which rows are weighed."""
        return replace(self, lam=self.channel.noise_rate)

    def without_rows(self) -> LabelNoiseModel:
        """As others need it: nothing here is about rows of the sample."""
        return self

    def choose(self, rows: Block, plain: Any, paced: Any) -> tuple[list[Trial], Decision]:
        """By the likelihood of unseen labels, seen through noise."""
        logits = [logits_from_proba(plain), logits_from_proba(paced)]
        scores = one_rate_likelihood(logits, rows.y, rows.weight)
        return plain_or_paced(scores[0], scores[1], self.lam, rows.weight)

    def assessed(self, block: Block, said: Any) -> Assessment:
        """The assessment of rows."""
        diagnosis = Labels(self.classes, block.y, logits_from_proba(said), self.channel)
        losses = -np.log(np.maximum(diagnosis.support, np.finfo(float).tiny))
        return Assessment(
            "labels",
            diagnosis,
            losses,
            self.lam,
            held_out=True,
            given_weight=_weight(diagnosis, self.lam),
            look=self.look,
        )


@dataclass(frozen=True, eq=False)
class ValueNoiseModel:
    """Values, by the assessment of a sample.

    Attributes
    ----------
    assessment : ValueAssessment
        Which values are wrong, and which only beyond the model.
    reason : str
        Why nothing is to be weighed; empty where something is.
    lam : float
        The probability of being wrong above which a value mostly is, where rows are weighed by it; else ``inf``.
    look : float
        Size of a residual from which a row is worth a look.
    """

    assessment: ValueAssessment
    reason: str = ""
    lam: float = np.inf
    look: float = np.inf

    @classmethod
    def of(cls, classes: None, rows: Block, said: Any) -> ValueNoiseModel:  # noqa: ARG003
        """By what models said of rows that they had not seen."""
        sigma = residual_scale(rows.y - said, rows.weight).sigma
        features = numeric_features(rows.X)
        found = assess_values(rows.y, (said,), sigma, features=features, sample_weight=rows.weight)
        words = ("no value is beyond every explanation", found.sentence)
        why = "" if np.any(found.wrong > EVEN_ODDS) else "; ".join(part for part in words if part)
        return cls(found, why, look=look_by_residuals(rows.y - said))

    @classmethod
    def silent(cls, classes: None, mass: Any) -> ValueNoiseModel:  # noqa: ARG003
        """Where nobody can be asked."""
        raise ValueError("the table must have rows to assess by, got so few that all are in one of two halves")

    @property
    def rate(self) -> tuple[float, tuple[float, float]]:
        """Share of wrong values, and its interval."""
        return self.assessment.rate, self.assessment.interval

    def weighing(self) -> ValueNoiseModel:
        """The same, by which rows are weighed."""
        return replace(self, lam=EVEN_ODDS)

    def without_rows(self) -> ValueNoiseModel:
        """As others need it who assess rows by it: without those of the sample."""
        return replace(self, assessment=replace(self.assessment, wrong=self.assessment.wrong[:0], lost=None))

    def choose(self, rows: Block, plain: Any, paced: Any) -> tuple[list[Trial], Decision]:
        """By the residuals of unseen rows that are right."""
        before, after = rows.y - plain, rows.y - paced
        trusted = self.assessment.trusted
        trials = [Trial(np.inf, "plain", -np.abs(before) * trusted), Trial(self.lam, WITHOUT, -np.abs(after) * trusted)]
        if nearest([after], before, self.assessment, rows.weight) is None:
            return trials, Decision(0, "the model without gross rows is not better on the others")
        share = float(np.average(~trusted, weights=rows.weight))
        return trials, Decision(1, f"{share:.1%} of the rows are grossly wrong, and it is better on the others")

    def assessed(self, block: Block, said: Any) -> Assessment:
        """The assessment of rows."""
        features = numeric_features(block.X) if self.assessment.asked else None
        wrong = self.assessment.probability(ValueRows(block.y, (said,), features))
        diagnosis = Values(block.y, said, wrong, self.assessment.misfit, self.assessment.sentence)
        weight = _weight(diagnosis, self.lam)
        losses = np.square(block.y - said)
        return Assessment("values", diagnosis, losses, self.lam, held_out=True, given_weight=weight, look=self.look)


def _weight(diagnosis: Labels | Values, lam: float) -> Any:
    """How probably rows are right; 1 where nothing is weighed."""
    return np.ones(len(diagnosis.wrong)) if np.isinf(lam) else np.maximum(1.0 - diagnosis.wrong, LEAST_WEIGHT)


__all__ = ["LabelNoiseModel", "ValueNoiseModel"]
