"""Cross-fitting in two halves: the noise models that Dask and Spark share, and the steps of a fit.

A model of each half predicts the other half. A sample of these predictions gives the noise model, weighted models of
both halves are compared with the plain ones on rows they have not seen, and the better kind is fitted to all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..assessment import UNLIKELY, Assessment, Labels, Values, look_by_residuals, look_by_share
from ..formatting import percent
from ..label_noise import NoiseModel, fit_channel, logits_from_proba, one_rate_likelihood
from ..robust import residual_scale
from ..selection import Candidate, Decision, Trial, path_of, plain_or_paced, sentence
from ..value_noise import EVEN_ODDS, ValueAssessment, assess_values, nearest
from .table import Block

SAMPLE = 20_000  # cost: rows in memory by which models are assessed and compared
LEAST_WEIGHT = 1e-6  # numerical safety: a row of no weight at all is an error to some estimators


@dataclass(frozen=True, eq=False)
class LabelNoiseModel:
    """Label noise, estimated on a sample of rows that the models had not seen."""

    classes: Any
    channel: NoiseModel  # the noise transition matrix, and the calibration of the predicted probabilities
    reason: str = ""  # why no rows are weighted; empty if they are
    lam: float = math.inf  # the noise rate if rows are weighted by it
    look: float = math.inf  # evidence from which a row is worth a look

    @classmethod
    def of(cls, classes: Any, rows: Block, said: Any) -> LabelNoiseModel:
        """Estimate it from predictions of unseen rows."""
        channel = fit_channel(logits_from_proba(said), rows.y, sample_weight=rows.weight, noiseless=True)
        why = "" if channel.interval[0] > 0 else "no label noise detected in held-out labels"
        diagnosis = Labels(classes, rows.y, logits_from_proba(said), channel)
        share = float(np.average(diagnosis.support < UNLIKELY, weights=rows.weight))
        return cls(classes, channel, why, look=look_by_share(diagnosis.evidence, share))

    @classmethod
    def silent(cls, classes: Sequence[Any], mass: Any) -> LabelNoiseModel:
        """If a half has no row of a label, its model knows nothing of it, and nothing is estimated."""
        rare = np.asarray(classes[int(np.argmin(np.asarray(mass).min(axis=0)))]).item()
        why = f"all rows of the label {rare!r} are in one half of the table: correct or remove them, or add others"
        return cls(classes, replace(NoiseModel.identity(len(classes)), noise_rate=math.nan), f"{why} of it")

    @property
    def rate(self) -> tuple[float, tuple[float, float]]:
        """Share of wrong labels, and its interval."""
        return self.channel.noise_rate, self.channel.interval

    def weighing(self) -> LabelNoiseModel:
        """The same, by which rows are weighted."""
        return replace(self, lam=self.channel.noise_rate)

    def without_rows(self) -> LabelNoiseModel:
        """The part that assesses other rows."""
        return self

    def choose(self, rows: Block, plain: Any, paced: Any) -> tuple[list[Trial], Decision]:
        """Compare two models by the likelihood of unseen labels under label noise."""
        logits = [logits_from_proba(plain), logits_from_proba(paced)]
        scores = one_rate_likelihood(logits, rows.y, rows.weight)
        return plain_or_paced(scores[0], scores[1], self.lam, rows.weight)

    def assessed(self, block: Block, said: Any) -> Assessment:
        """The assessment of rows by predictions of them."""
        diagnosis = Labels(self.classes, block.y, logits_from_proba(said), self.channel)
        losses = -np.log(np.maximum(diagnosis.support, np.finfo(float).tiny))
        return _assessment("labels", self, diagnosis, losses)


@dataclass(frozen=True, eq=False)
class ValueNoiseModel:
    """Gross errors in values, estimated on a sample of rows that the models had not seen."""

    assessment: ValueAssessment  # which values are wrong, and which only beyond the model
    reason: str = ""  # why no rows are weighted; empty if they are
    lam: float = math.inf  # if rows are weighted, 0.5: above it a value is more likely wrong than right
    look: float = math.inf  # size of a residual from which a row is worth a look

    @classmethod
    def of(cls, classes: None, rows: Block, said: Any) -> ValueNoiseModel:  # noqa: ARG003
        """Estimate it from predictions of unseen rows; without features (X is None), from the predictions alone."""
        residuals = rows.y - said
        sigma = residual_scale(residuals, rows.weight)
        found = assess_values(rows.y, said, sigma, X=rows.X, sample_weight=rows.weight)
        words = ("no gross errors detected", found.sentence)
        why = "" if np.any(found.wrong > EVEN_ODDS) else "; ".join(part for part in words if part)
        return cls(found, why, look=look_by_residuals(residuals))

    @classmethod
    def silent(cls, classes: None, mass: Any) -> ValueNoiseModel:  # noqa: ARG003
        """Refuse a table whose rows are all in one half."""
        raise ValueError("the table must have rows in both halves, got so few that all are in one of them")

    @property
    def rate(self) -> tuple[float, tuple[float, float]]:
        """Share of wrong values, and its interval."""
        return self.assessment.rate, self.assessment.interval

    def weighing(self) -> ValueNoiseModel:
        """The same, by which rows are weighted."""
        return replace(self, lam=EVEN_ODDS)

    def without_rows(self) -> ValueNoiseModel:
        """The part that assesses other rows."""
        return replace(self, assessment=replace(self.assessment, wrong=self.assessment.wrong[:0], lost=None))

    def choose(self, rows: Block, plain: Any, paced: Any) -> tuple[list[Trial], Decision]:
        """Compare two models by the residuals of unseen rows that are right."""
        before, after = rows.y - plain, rows.y - paced
        trusted = self.assessment.trusted
        trials = [Trial(math.inf, "plain", -np.abs(before) * trusted)]
        trials.append(Trial(self.lam, "the model without gross errors", -np.abs(after) * trusted))
        if nearest([after], before, self.assessment, rows.weight) is None:
            return trials, Decision(0, "without gross errors, the model does not predict the other rows better")
        share = float(np.average(~trusted, weights=rows.weight))
        grossly = f"{percent(share, 1)} of the rows are grossly wrong"
        return trials, Decision(1, f"{grossly}, and it predicts the others better")

    def assessed(self, block: Block, said: Any) -> Assessment:
        """The assessment of rows by predictions of them."""
        wrong = self.assessment.probability(block.y, said, block.X)
        diagnosis = Values(block.y, said, wrong, self.assessment.misfit, self.assessment.sentence)
        return _assessment("values", self, diagnosis, np.square(block.y - said))


def _assessment(kind: Any, model: Any, diagnosis: Labels | Values, losses: Any) -> Assessment:
    """Rows count as probably as they are right; by 1 if no rows are weighted."""
    right = 1.0 - diagnosis.wrong
    weight = np.ones(len(losses)) if math.isinf(model.lam) else np.maximum(right, LEAST_WEIGHT)
    return Assessment(kind, diagnosis, losses, model.lam, held_out=True, given_weight=weight, look=model.look)


class Outcome(NamedTuple):
    """What a cross-fit has decided: models of both halves (None if there are none), noise model, and the record."""

    models: Any
    noise_model: Any
    path: tuple[Candidate, ...]
    termination: str

    @property
    def weighted(self) -> bool:
        """Whether the weighted model was chosen."""
        return not math.isinf(self.noise_model.lam)


def cross_fit(
    kind: Any,
    classes: Any,
    mass: Any,
    fitted: Callable[..., Any],
    predicted: Callable[[Any], tuple[Block, Any]],
) -> Outcome:
    """Decide between the plain and the weighted model, for a kind of noise model.

    ``mass`` is the weight of each class in both halves. ``fitted`` gives models of both halves: plain ones without
    arguments, weighted ones for (models, noise model). ``predicted`` gives the sample, and what the models of the other
    half predict of it.
    """
    if not np.all(mass):
        silent = kind.silent(classes, mass)
        return _decided(None, silent, [Trial(math.inf, "plain")], Decision(0, silent.reason))
    models = fitted()
    rows, before = predicted(models)
    noise_model = kind.of(classes, rows, before)
    if noise_model.reason:
        return _decided(models, noise_model, [Trial(math.inf, "plain")], Decision(0, noise_model.reason), rows.weight)
    paced = noise_model.weighing()
    weighted = fitted(models, paced)
    after = predicted(weighted)[1]
    trials, decision = paced.choose(rows, before, after)
    kept = (weighted, kind.of(classes, rows, after).weighing()) if decision.index else (models, noise_model)
    return _decided(*kept, trials, decision, rows.weight)


def _decided(models: Any, noise_model: Any, trials: list[Trial], decision: Decision, weight: Any = None) -> Outcome:
    return Outcome(models, noise_model, path_of(trials, decision, weight), sentence(trials, decision))
