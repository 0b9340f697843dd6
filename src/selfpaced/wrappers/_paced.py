"""The paced fit of any model, as in the paper: its own losses give the weights, and it is fitted again with them."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from ..fingerprint import N_FOLDS
from ..fitting import warn_unpaced
from ..folds import Split
from ..label_noise import NoiseModel, fit_channel
from ..pacing import CalibrationError, Fixed, Geometric, Ladder, Pacing, Plateau, Stages, lam_at
from ..regularizers import Regularizer
from ..robust import (
    EfficientPace,
    EfficientStop,
    ResidualRule,
    efficient_pace,
    largest_sigma,
    shorth,
    tukey_loss,
    weighted_quantile,
)
from ..selection import CLEARLY_BETTER, Decision, Trial, end_of_pace, gap, mean_and_error
from ..solver import Solution, Stage, alternate
from ..value_noise import assess_values
from ._default_labels import OVERLAP_RATE, too_few, unassessed
from ._routing import Array, TooFewRows, rows_left
from ._soft_labels import Reading, as_logits, fit_soft, fitted_scale, output_kind, read_output, rival_loss
from ._wrapper import Found, Task

__all__ = [
    "MIN_VALUES",
    "Round",
    "assessed",
    "fit_paced_labels",
    "fit_paced_values",
    "memorises",
    "predict",
    "sigma_of",
]

# a choice, made on development data.
MIN_VALUES = 20  # fewer rows are not split into folds
MEMORY = 0.2  # share of its error on unseen rows that a classifier which memorises does not make on seen ones
LEAST_GAP = 0.05  # the same of a regressor: difference of absolute residuals, in sigma
KEPT_PER_CLASS = 3  # the easiest rows of a class that would vanish from a fit
LOSS_GAIN = 0.01  # leaving out rows of large residuals alone lowers the loss of clean rows by a little less than this
ROUNDS = 3  # cost: rounds at the automatic pace
LN2 = math.log(2.0)  # theory: the loss of a guess between two classes


@dataclass(frozen=True, eq=False)
class Paced(ABC):
    """Weighted fits on fixed data: a `Problem` of the core whose model is what models say about the rows."""

    task: Task
    plain: Any  # fitted to all rows
    folds: Sequence[Split]
    cross: bool = True  # whether losses come from models that have not seen the row
    rounds: Iterator[int] = field(default_factory=lambda: count(1))

    least_gain = 0.0  # of the score
    gain_errors = 1.0  # in standard errors

    @abstractmethod
    def read(self, model: Any, X: Any) -> Array:
        """Return what a model says about rows."""

    @abstractmethod
    def reading(self, output: Array) -> Any:
        """Return losses, and what they follow from."""

    @abstractmethod
    def errors(self, seen: Array, unseen: Array) -> tuple[Array, Array, str]:
        """Return the errors of two outputs, and what they are."""

    @abstractmethod
    def scores(self, outputs: Sequence[Array]) -> list[Array]:
        """Return the scores of outputs for unseen rows: higher is better."""

    @abstractmethod
    def pacing(self, rule: Regularizer, pace: str) -> Pacing:
        """Return the automatic pace or the paper's."""

    @abstractmethod
    def found(self, model: Any, trials: list[Trial], decision: Decision, interrupted: bool = False) -> Found:
        """Return the result."""

    def calibrated(self, unseen: Array) -> tuple[Self, str]:  # noqa: ARG002
        """Return the problem with what the plain models of unseen rows tell, and why nothing can be gained, if so."""
        return self, ""

    def start(self, first: Any, pace: Any) -> Any:  # noqa: ARG002
        """Return what the pace starts from."""
        return first

    def filled(self, weights: Array, previous: Any) -> Array:  # noqa: ARG002
        """Return weights that a model can be fitted with."""
        return weights

    def output(self, weights: Array, cross: bool) -> Array:
        """Return what models fitted with these weights say about every row."""
        with self.task.progress.stage(f"round {next(self.rounds)}"), rows_left():
            if cross:
                return self.task.cross_fit(weights, self.folds, self.read)
            return self.read(self.task.fit(weights), self.task.X)

    # ---------------------------------------------------------------------------------------- a Problem of the core

    def fit(self, weights: Any, previous: Any) -> Any:
        """Return the reading of models fitted with these weights."""
        return self.reading(self.output(self.filled(np.asarray(weights, dtype=float), previous), self.cross))

    def losses(self, model: Any) -> Array:
        """Return the loss of every row; confirmed rows have none."""
        return np.asarray(model.losses if self.task.trusted is None else np.where(self.task.trusted, 0.0, model.losses))

    def penalty(self, model: Any) -> float:  # noqa: ARG002
        """Return 0: the penalty of the wrapped estimator is not known."""
        return 0.0


def _fit_paced(problem: Paced, rule: Regularizer, pace: Any, cross_fit: Any) -> Found:
    """Follow a pace, compare its end with the plain model, and fit the better one to all rows."""
    task, ones = problem.task, np.ones(len(problem.task.y))
    seen = problem.read(problem.plain, task.X)
    trials = [Trial(math.inf, "plain", None, ones, 0.0, problem.reading(seen))]
    try:
        with task.progress.stage("plain cross-fit"):
            unseen = task.cross_fit(task.prior, problem.folds, problem.read)
        cross, how = memorises(cross_fit, *problem.errors(seen, unseen), task)
        if not task.route.takes_weights:
            how += f"; rows are selected instead of weighted, because {task.route.reason}"
        problem, why = replace(problem, cross=cross).calibrated(unseen)
        trials = [replace(trials[0], fit=problem.reading(unseen if cross else seen))]
        if why and pace == "auto":
            return problem.found(None, trials, Decision(0, f"{why}; {how}"))
        try:
            solution = _walk(problem, rule, pace, trials)
            trials, decision = _chosen(problem, trials, pace, unseen, solution)
            if not (isinstance(pace, str) or decision.index or solution.interrupted):
                warn_unpaced(decision.reason)
            decision, model = replace(decision, reason=f"{decision.reason}; {how}"), None
            if decision.index:
                weights = problem.filled(
                    task.total(np.asarray(trials[decision.index].weight)), trials[decision.index].fit
                )
                with task.progress.stage("final fit"), rows_left():
                    model = task.fit(weights)
        except TooFewRows as error:
            return problem.found(None, trials[:1], Decision(0, f"{error}; {how}"))
        return problem.found(model, trials, decision, solution.interrupted)
    except KeyboardInterrupt:  # the plain model is complete
        return problem.found(None, trials[:1], Decision(0, "no candidate could be completed"), True)


def memorises(setting: bool | str, seen: Array, unseen: Array, unit: str, task: Task) -> tuple[bool, str]:
    """Return whether losses are cross-fitted, and why.

    A model that fits the rows it has seen clearly better than other rows memorises their noise: its training losses do
    not tell which rows are wrong.
    """
    if setting is True or setting is False:
        return setting, f"{'cross-fitted' if setting else 'in-sample'} losses as asked (cross_fit={setting})"
    difference = mean_and_error(unseen - seen, task.prior)
    before, after = (float(np.average(errors, weights=task.prior)) for errors in (seen, unseen))
    words = f"{unit} of {before:.3g} on seen and {after:.3g} on unseen rows"
    least = LEAST_GAP if task.codes is None else MEMORY * after
    if difference.mean > max(least, CLEARLY_BETTER * difference.error):
        return True, f"cross-fitted losses, because the model memorises ({words})"
    return False, f"in-sample losses, because the model has little capacity to memorise ({words})"


def _walk(problem: Paced, rule: Regularizer, pace: Any, trials: list[Trial]) -> Solution[Any]:
    """Alternate between weights and weighted fits along the pace, and append a candidate for each stage."""
    pacing, name = pace, rule.name or "custom"
    if isinstance(pace, str):
        pacing = problem.pacing(rule, pace)
    elif isinstance(pace, float):
        pacing = Fixed(pace)

    def keep(stage: Stage, state: Solution[Any]) -> None:
        weight = np.clip(state.weights, 0.0, 1.0)
        trials.append(Trial(stage.lam, f"{name} round {len(trials)}", None, weight, stage.cost, state.model))

    return alternate(
        problem, rule, pacing, inner=5 if isinstance(pace, float) else 1, tolerance=1e-4,
        sample_weight=problem.task.prior, initial=problem.start(trials[0].fit, pace), callback=keep,
    )  # fmt: skip


def _chosen(
    problem: Paced, trials: list[Trial], pace: Any, unseen: Array, solution: Solution[Any]
) -> tuple[list[Trial], Decision]:
    """Return the candidates with scores on unseen rows, and the one to choose."""
    status = solution.status[:1].lower() + solution.status[1:].rstrip(".")
    if len(trials) == 1 or not isinstance(pace, str):
        return trials, end_of_pace(trials, status)
    outputs, prior = [unseen, *(trial.fit.output for trial in trials[1:])], problem.task.prior
    compared = list(range(len(trials)))
    if not problem.cross:  # each comparison costs a cross-fit
        weights = problem.filled(problem.task.total(np.asarray(trials[-1].weight)), trials[-1].fit)
        outputs, compared = [unseen, problem.output(weights, True)], [0, len(trials) - 1]
    for place, scores in zip(compared, problem.scores(outputs), strict=True):
        trials[place] = replace(trials[place], scores=scores)
    means = [mean_and_error(np.asarray(trials[place].scores), prior).mean for place in compared]
    best = compared[1 + int(np.argmax(means[1:]))]
    gain = gap(trials[best], trials[0], prior)
    ended = f"; {status}" if pace == "paper" else ""
    if gain.mean > max(problem.gain_errors * gain.error, problem.least_gain):
        return trials, Decision(best, f"its score on unseen rows is higher by {gain}{ended}")
    reason = f"{trials[best].label} is not clearly better on unseen rows (score difference {gain})"
    return trials, Decision(0, f"{reason}{ended}")


# -------------------------------------------------------------------------------------------------------------- labels


@dataclass(frozen=True, eq=False)
class PacedLabels(Paced):
    """Weighted fits of a classifier."""

    labels: Any = None  # the classes as the model knows them
    first: NoiseModel | None = None  # the calibration of the plain models, on which all later ones are based

    @property
    def kind(self) -> str:
        """The output that is read from models."""
        return output_kind(self.plain)

    def read(self, model: Any, X: Any) -> Array:
        """Return one column per class."""
        return read_output(model, X, kind=self.kind, labels=self.labels)

    def reading(self, output: Array) -> Reading:
        """Return calibrated logits and their losses."""
        logits, codes = as_logits(output, self.kind), self.task.codes
        if self.first is None:
            channel = fit_channel(logits, codes, sample_weight=self.task.prior)
        else:
            channel = self._scaled(self.first, logits)
        clean = channel.scale * logits + channel.bias
        clean -= clean.mean(axis=1, keepdims=True)
        return Reading(clean, rival_loss(softmax(clean, axis=1), codes), channel, output)

    def calibrated(self, unseen: Array) -> tuple[Self, str]:
        """Return the problem with the noise model of unseen rows, and whether it detects no noise.

        Cross-fitted weights have seen the labels they are compared by (through their neighbours), so they look better
        than they are if classes overlap; the noise model, fitted before there were weights, tells the two apart.
        """
        first = self.reading(unseen).channel
        quiet = self.cross and first.noise_rate < OVERLAP_RATE
        why = f"no label noise detected (rate {100 * first.noise_rate:.1f} %)" if quiet else ""
        return replace(self, first=first), why

    def _scaled(self, channel: NoiseModel, logits: Array) -> NoiseModel:
        """Return a noise model with another scale, for the logits of another model.

        Weights derived from a first round have seen every label, so a later round agrees with the labels more than it
        should, and its own noise rate would be too small. The transition matrix of the first round is kept. The bias is
        dropped, so that predicted labels stay the model's own.
        """
        seen = channel.transition[:, self.task.codes].T

        def cost(z: Array) -> Array:
            return np.asarray(-np.log(np.maximum((softmax(z, axis=1) * seen).sum(axis=1), 1e-12)))

        scale = fitted_scale(logits, self.task.weight, cost)
        return replace(channel, scale=scale, bias=np.zeros_like(channel.bias))

    def errors(self, seen: Array, unseen: Array) -> tuple[Array, Array, str]:
        """Return which labels are not predicted."""
        one, other = (1.0 - self._correct(output) for output in (seen, unseen))
        return one, other, "error"

    def _correct(self, output: Array) -> Array:
        return np.asarray(output.argmax(axis=1) == self.task.codes, dtype=float)

    def scores(self, outputs: Sequence[Array]) -> list[Array]:
        """Return what averages to the mean of accuracy and balanced accuracy on given labels."""
        mass, codes = self.task.weight, self.task.codes
        lift = mass.sum() / (self.labels.size * np.maximum(np.bincount(codes, mass, minlength=self.labels.size), 1e-9))
        return [np.asarray(self._correct(output) * (0.5 + 0.5 * lift[codes])) for output in outputs]

    def pacing(self, rule: Regularizer, pace: str) -> Pacing:
        """Return the pace at which a label as probable as its rival has half weight, or the paper's."""
        if pace == "paper":
            return Geometric(floor=0.5 * LN2, stop=(Plateau(), Stages(60)))
        return Ladder((_even_pace(rule),) * ROUNDS)

    def filled(self, weights: Array, previous: Any) -> Array:
        """Give the easiest rows of a class that would vanish from the fit their full weight."""
        codes, full = self.task.codes, self.task.weight
        mass = np.bincount(codes, weights, minlength=self.labels.size)
        weights = weights.copy()
        for c in np.flatnonzero(mass < 1e-3 * weights.max(initial=0.0)):
            rows = np.flatnonzero((codes == c) & (full > 0.0))
            easy = np.unique(previous.losses[rows])[:KEPT_PER_CLASS]  # as many losses, not rows: copies come along
            rows = rows[previous.losses[rows] <= easy.max(initial=0.0)]
            weights[rows] = full[rows]
        return weights

    def found(self, model: Any, trials: list[Trial], decision: Decision, interrupted: bool = False) -> Found:
        """Return the result, with the noise model of the chosen model's output."""
        channel, noise = trials[0].fit.channel, trials[decision.index].fit.channel
        if not decision.index and channel.noise_rate < OVERLAP_RATE:  # the model's own probabilities
            noise = NoiseModel.identity(self.labels.size)
            if self.kind == "decision_function":
                noise = self._scaled(noise, as_logits(trials[0].fit.output, self.kind))
        reference = replace(channel, scale=1.0, bias=np.zeros_like(channel.bias))
        chosen = self.plain if model is None else model
        return Found(chosen, self.plain, trials, decision, self.cross, interrupted, self.labels, noise, reference)


def _even_pace(rule: Regularizer) -> float:
    """Return the pace of half weight if a label and its rival are equally probable, or as near as the rule allows."""
    for factor in (1.0, 2.0, 4.0, 0.5, 0.25, 0.125):
        try:
            return lam_at(rule, factor * LN2 * (1.0 + 1e-9))  # a label as probable as its rival is included
        except CalibrationError as error:  # a rule that is not free of scale may not fall to 1/2 there
            reason = error
    raise reason


def fit_paced_labels(task: Task, rule: Regularizer, pace: Any, cross_fit: Any) -> Found:
    """Fit a classifier along a pace: "auto", "paper", a number or a Pacing."""
    with task.progress.stage("plain fit"):
        plain = fit_soft(task, task.hard)
    if too_few(task):
        found = unassessed(task, plain)
        if pace != "auto" and len(task.classes) > 1:
            warnings.warn(found.termination, ConvergenceWarning, stacklevel=5)
        return found
    # half-trained models memorise less, and the mean over several splits tells more than the label of a leaf
    folds = task.splits(2) if task.folds else [half for number in range(4) for half in task.splits(2, number)]
    task = replace(task, y=plain.labels[task.codes])
    return _fit_paced(PacedLabels(task, plain.model, folds, labels=plain.labels), rule, pace, cross_fit)


# -------------------------------------------------------------------------------------------------------------- values


@dataclass(frozen=True, eq=False)
class Round:
    """Predictions, their residuals and losses, and the rule that they are weighted by."""

    output: Array
    residuals: Array
    rule: ResidualRule

    @property
    def losses(self) -> Array:
        """Squared residuals in the rule's unit."""
        return np.asarray(self.rule.losses(self.residuals))


@dataclass(frozen=True, eq=False)
class PacedValues(Paced):
    """Weighted fits of a regressor."""

    rule: Any = None  # a Regularizer with relative weights
    unit: float = 1.0  # of squared residuals, in which the rule uses them
    efficiency: float = 0.95  # at which the automatic pace and the paper's stop

    least_gain = LOSS_GAIN
    gain_errors = CLEARLY_BETTER

    def read(self, model: Any, X: Any) -> Array:
        """Return predictions."""
        return predict(model, X)

    def reading(self, output: Array) -> Round:
        """Return residuals."""
        return Round(output, np.asarray(self.task.y - output), ResidualRule(self.rule, self.unit))

    def errors(self, seen: Array, unseen: Array) -> tuple[Array, Array, str]:
        """Return absolute residuals in sigma, at most 5."""
        residuals = [np.abs(self.task.y - output) for output in (seen, unseen)]
        sigma = sigma_of(self.task, residuals[1])
        one, other = (np.minimum(each / sigma, 5.0) for each in residuals)
        return one, other, "absolute residual in sigma"

    def scores(self, outputs: Sequence[Array]) -> list[Array]:
        """Return minus the Tukey loss of residuals, in the sigma of the last ones."""
        residuals = [self.task.y - output for output in outputs]
        sigma = sigma_of(self.task, residuals[-1])
        return [-tukey_loss(each, sigma) for each in residuals]

    def start(self, first: Round, pace: Any) -> Round:
        """Return the residuals of a fit to the easy half of the rows, if the pace is automatic."""
        if not isinstance(pace, str) or pace == "paper":
            return first
        # Outliers on one side shift the plain model, so its residuals are centred by the shortest half.
        size = np.abs(first.residuals - shorth(first.residuals, self.task.prior))
        easy = (size <= weighted_quantile(size, 0.5, self.task.prior)).astype(float)
        found: Round = self.fit(self.task.total(easy), first)
        return found

    def pacing(self, rule: Regularizer, pace: str) -> Pacing:  # noqa: ARG002
        """Return the pace that is efficient for the current residuals, or the paper's up to there."""
        floor = residual_floor(self.task) / math.sqrt(self.unit)
        if pace == "paper":
            stop = EfficientStop(self.efficiency, self.unit, 1.0, self.task.prior, floor * math.sqrt(self.unit))
            return Geometric(floor=floor**2 or 1e-300, stop=(stop, Stages(100)))
        rounds = ROUNDS if self.cross else 4 * ROUNDS  # in-sample rounds are cheap, and settle
        return EfficientPace(self.efficiency, dof=1, floor=floor, stop=Stages(rounds))

    def found(self, model: Any, trials: list[Trial], decision: Decision, interrupted: bool = False) -> Found:
        """Return the result, with an assessment of the values by the chosen residuals."""
        noise = None
        if not interrupted:
            with self.task.progress.stage("assessment of values"):
                noise = assessed(self.task, trials[decision.index].fit.output)
        chosen = self.plain if model is None else model
        return Found(chosen, self.plain, trials, decision, self.cross, interrupted, noise=noise)


def fit_paced_values(task: Task, rule: Regularizer, pace: Any, cross_fit: Any, efficiency: float) -> Found:
    """Fit a regressor along a pace: "auto", "paper", a number or a Pacing."""
    with task.progress.stage("plain fit"):
        plain = task.fit(task.prior)
    few = task.n_units < MIN_VALUES
    problem = PacedValues(task, plain, [] if few else task.splits(N_FOLDS), rule=rule, efficiency=efficiency)
    first = problem.reading(predict(plain, task.X))
    if few:
        trial = Trial(math.inf, "plain", None, np.ones(len(task.y)), 0.0, first)
        decision = Decision(0, f"{task.n_units} rows are too few to find outliers")
        return replace(problem, cross=False).found(None, [trial], decision)
    if not isinstance(pace, float):  # a rule that is not free of scale may need residuals in another unit
        problem = replace(problem, unit=efficient_pace(rule, sigma_of(task, first.residuals), efficiency)[1])
    return _fit_paced(problem, rule, pace, cross_fit)


def predict(model: Any, X: Any) -> Array:
    """Return predictions as one column of floats."""
    return np.asarray(model.predict(X), dtype=float).reshape(-1)


def residual_floor(task: Task) -> float:
    """Return the size below which residuals are rounding errors: a hundred units in the last place."""
    eps = np.finfo(task.y.dtype if task.y.dtype.kind == "f" else np.float64).eps
    return 100.0 * float(eps) * math.sqrt(float(np.mean(np.square(task.y, dtype=float)))) + 1e-140


def sigma_of(task: Task, residuals: Array) -> float:
    """Return the sigma of the good residuals, never zero."""
    return max(largest_sigma(residuals, task.prior, dof=1), residual_floor(task))


def assessed(task: Task, expected: Array, flexible: bool = False) -> Any:
    """Return the assessment of the values: which are grossly wrong, told from what the model misfits."""
    return assess_values(
        task.y, expected, sigma_of(task, task.y - expected), X=task.X,
        sample_weight=task.prior, groups=task.groups, flexible=flexible, random_state=task.seed,
    )  # fmt: skip
