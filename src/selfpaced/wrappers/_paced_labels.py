"""The paced fit of a classifier, as in the paper: its own losses give the weights, and it is fitted again with them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from ..fitting import Interruptible, warn_unpaced
from ..folds import Split
from ..label_noise import NoiseModel, confident_error, fit_channel
from ..pacing import CalibrationError, Fixed, Geometric, Ladder, Pacing, Plateau, Stages, lam_at
from ..selection import Decision, Trial, end_of_pace, gap, mean_and_error
from ..solver import Solution, Stage, alternate
from ._cases import Array
from ._default_labels import MIN_ROWS, unassessed
from ._routing import TooFewRows, rows_left
from ._soft_labels import Fitted, Reading, as_logits, output_kind, read_output, rival_loss
from ._wrapper import Found, Task, decide_cross_fit

__all__ = ["fit_paced_labels"]

# a choice, made on development data.
KEPT_PER_CLASS = 3  # the easiest rows of a class that would vanish from a fit
HEAVY_NOISE = 0.25  # noise rate above which later rounds are not averaged with the plain models
CLEAN_ERROR = 0.03  # error of the most confident third below which nothing can be gained
OVERLAP_RATE = 0.05  # noise rate below which disagreement is taken for overlap of classes
MEMORY = 0.2  # share of its error on unseen rows that a model which memorises does not make on seen ones
IN_SAMPLE_ROUNDS = 3  # rounds of a model of little capacity: they are cheap

REPEATED_HALVES = ((5_000, 4), (20_000, 2))  # cost: rows up to which splits into halves are repeated, and how often

LN2 = float(np.log(2.0))  # theory: the loss of a guess between two classes
PAPER_FLOOR = 0.5 * LN2  # smallest half-weight loss of the paper's start: a choice
HALF_QUADRATIC = 5  # cost: rounds at a fixed pace
TOLERANCE = 1e-4  # numerical safety: of the latent objective, if a pace has more than one round
TIED = 1e-9  # numerical safety: a label as probable as its rival is included whatever the rounding


@dataclass(frozen=True, eq=False)
class PacedLabels:
    """Weighted fits of a classifier on fixed data: a `Problem` of the core whose model is a `Reading`.

    Attributes
    ----------
    task : Task
        Rows and estimator; ``y`` holds the labels as the estimator takes them.
    labels : ndarray
        The distinct ones of these.
    kind : str
        The output read from models.
    repeats : sequence of folds
        Complete sets of folds; predictions are averaged over them.
    balanced : bool
        Whether losses are measured in a unit of their class.
    cross : bool
        Whether losses come from models that have not seen the row.
    first : NoiseModel or None
        The calibration of the plain models, on which all later ones are based.
    before : ndarray or None
        Clean logits of the plain models, if later ones are averaged with them.
    """

    task: Task
    labels: Array
    kind: str
    repeats: Sequence[Sequence[Split]]
    balanced: bool = True
    cross: bool = True
    first: NoiseModel | None = None
    before: Array | None = None

    @property
    def codes(self) -> Array:
        """Given labels as positions."""
        return np.asarray(self.task.codes)

    def plain(self, model: Any, cross_fit: Any) -> tuple[PacedLabels, Reading, str]:
        """Return the problem, the reading of unweighted models, and whether losses are cross-fitted, in words."""
        seen = self.read(model, self.task.X)
        unseen, correct = self.unseen(self.task.prior)
        channel = fit_channel(unseen, self.codes, sample_weight=self.task.prior)
        wrong = (seen.argmax(axis=1) != self.codes).astype(float)
        cross, how = decide_cross_fit(cross_fit, wrong, 1.0 - correct, self.task.prior, unit="error", share=MEMORY)
        clean = _calibrated(unseen if cross else as_logits(seen, self.kind), channel)
        before = clean if cross and channel.noise_rate < HEAVY_NOISE else None
        reading = Reading(clean, self._losses(clean), channel, unseen, correct, model)
        return replace(self, cross=cross, first=channel, before=before), reading, how

    # ------------------------------------------------------------------------------------- a Problem of the core

    def fit(self, weights: Any, previous: Reading | None) -> Reading:
        """Return the reading of models fitted with these weights."""
        weights = self.with_every_class(np.asarray(weights, dtype=float), previous)
        number = 1 if previous is None else previous.number + 1
        with rows_left():
            return self._cross_fitted(weights, number) if self.cross else self._in_sample(weights, number)

    def losses(self, model: Reading) -> Array:
        """Return the loss of every row, in the unit of its class."""
        losses = np.asarray(model.losses / self.class_units(model.losses)[self.codes])
        return losses if self.task.trusted is None else np.where(self.task.trusted, 0.0, losses)

    def penalty(self, model: Reading) -> float:  # noqa: ARG002
        """Return 0: the penalty of the wrapped estimator is not known."""
        return 0.0

    def _cross_fitted(self, weights: Array, number: int) -> Reading:
        with self.task.progress.stage(f"cross-fitted round {number}"):
            unseen, correct = self.unseen(weights)
        channel = self._rescaled(unseen)
        clean = _calibrated(unseen, channel)
        clean = clean if self.before is None else 0.5 * (clean + self.before)
        return Reading(clean, self._losses(clean), channel, unseen, correct, None, number)

    def _in_sample(self, weights: Array, number: int) -> Reading:
        with self.task.progress.stage(f"in-sample round {number}"):
            model = self.task.fit(weights)
        logits = as_logits(self.read(model, self.task.X), self.kind)
        channel = self._rescaled(logits)
        clean = _calibrated(logits, channel)
        return Reading(clean, self._losses(clean), channel, model=model, number=number)

    # ------------------------------------------------------------------------------------------------- models

    @property
    def read(self) -> Callable[[Any, Any], Array]:
        """The function that reads a fitted model's output."""
        return partial(read_output, kind=self.kind, labels=self.labels)

    def _rescaled(self, logits: Array) -> NoiseModel:
        if self.first is None:
            raise RuntimeError("the plain models are fitted first")
        return scaled_channel(self.first, logits, self.codes, self.task.prior)

    def unseen(self, weight: Array | None) -> tuple[Array, Array]:
        """Return logits of unseen rows and shares of correct predictions, averaged over the repeats."""
        total, tested = np.zeros((len(self.codes), self.labels.size)), np.zeros(len(self.codes))
        correct = np.zeros(len(self.codes))
        for folds in self.repeats:
            out = self.task.cross_fit(weight, folds, self.read)
            rows = np.flatnonzero(~np.isnan(out[:, 0]))
            total[rows] += out[rows]
            correct[rows] += out[rows].argmax(axis=1) == self.codes[rows]
            tested[rows] += 1.0
        never = tested == 0.0  # the only row of its class keeps its label
        total[never, self.codes[never]] = 1.0
        correct[never] = 1.0
        share = np.maximum(tested, 1.0)
        return as_logits(total / share[:, None], self.kind), correct / share

    # --------------------------------------------------------------------------------------- losses and scores

    def _losses(self, clean: Array) -> Array:
        return rival_loss(NoiseModel.identity(self.labels.size).proba(clean), self.codes)

    def class_units(self, losses: Array) -> Array:
        """Return the unit of every class: at least half the rows of every class stay within log 2 of it."""
        medians = np.zeros(self.labels.size)
        if self.balanced:
            mass = np.ones(len(losses)) if self.task.prior is None else self.task.prior
            for c in np.unique(self.codes[mass > 0.0]):
                rows = (self.codes == c) & (mass > 0.0)
                medians[c] = np.quantile(losses[rows], 0.5, method="inverted_cdf", weights=mass[rows])
        return np.maximum(medians / LN2, 1.0)

    def score(self, correct: Array) -> Array:
        """Return what averages (by sample weights) to the mean of accuracy and balanced accuracy on given labels."""
        mass = np.ones(len(self.codes)) if self.task.prior is None else self.task.prior
        per_class = np.bincount(self.codes, mass, minlength=self.labels.size)
        lift = mass.sum() / (self.labels.size * np.maximum(per_class, 1e-300))
        return np.asarray(correct * (0.5 + 0.5 * lift[self.codes]))

    def trial(self, lam: float, label: str, reading: Reading, weight: Array, cost: float = 0.0) -> Trial:
        """Return a candidate."""
        score = None if reading.correct is None else self.score(reading.correct)
        return Trial(lam, label, score, np.clip(weight, 0.0, 1.0), cost, reading)

    def with_every_class(self, weights: Array, previous: Reading | None) -> Array:
        """Give the easiest rows of a class that would vanish from the fit their full weight."""
        mass = np.bincount(self.codes, weights, minlength=self.labels.size)
        starved = np.flatnonzero(mass < 1e-3 * max(weights.max(initial=0.0), 1e-300))
        weights = weights.copy() if starved.size else weights
        full = np.ones_like(weights) if self.task.prior is None else self.task.prior
        for c in starved:
            rows = np.flatnonzero((self.codes == c) & (full > 0.0))
            if previous is not None:  # as many losses, not rows: copies come along
                easy = np.unique(previous.losses[rows])[:KEPT_PER_CLASS]
                rows = rows[previous.losses[rows] <= easy[-1]]
            weights[rows] = full[rows]
        return weights


def _calibrated(logits: Array, channel: NoiseModel) -> Array:
    clean = channel.scale * logits + channel.bias
    return np.asarray(clean - clean.mean(axis=1, keepdims=True))


def scaled_channel(channel: NoiseModel, logits: Array, codes: Array, weight: Any = None) -> NoiseModel:
    """Return a noise model with another scale, for the logits of another model.

    Weights derived from a first round have seen every label, so a later round agrees with the labels more than it
    should, and its own noise rate would be too small. The transition matrix of the first round is kept. The bias is
    dropped, so that predicted labels stay the model's own.
    """
    centred = logits - logits.mean(axis=1, keepdims=True)
    mass = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=float)
    spread = float(np.average(np.abs(centred).mean(axis=1), weights=mass))
    if spread == 0.0:
        return channel.without_bias()
    seen = channel.transition[:, codes].T

    def cost(log_scale: float) -> float:
        z = np.exp(log_scale) / spread * centred
        p = np.exp(z - z.max(axis=1, keepdims=True))
        q = (p * seen).sum(axis=1) / p.sum(axis=1)
        return float(-(mass @ np.log(np.maximum(q, 1e-12))) + 0.5 * (log_scale - LN2) ** 2)

    best = minimize_scalar(cost, bounds=(-4.0, 5.0), method="bounded", options={"xatol": 1e-3})
    return replace(channel, scale=float(np.exp(best.x)) / spread, bias=np.zeros_like(channel.bias))


# ------------------------------------------------------------------------------------------------------------ the path


@dataclass(frozen=True)
class Schedule:
    """How a pace is followed: the pacing, the name of its candidates, and fits per stage."""

    pacing: Pacing
    name: str
    inner: int = 1

    def walk(self, problem: PacedLabels, rule: Any, initial: Reading, callback: Any) -> Solution[Reading]:
        """Alternate between weights and weighted fits along the pace."""
        return alternate(
            problem, rule, self.pacing, inner=self.inner, tolerance=TOLERANCE, sample_weight=problem.task.prior,
            initial=initial, callback=callback,
        )  # fmt: skip


def fit_paced_labels(task: Task, rule: Any, pace: Any, cross_fit: Any, plain: Fitted) -> Found:
    """Fit a classifier along a pace.

    Parameters
    ----------
    task : Task
        Rows and estimator.
    rule : Regularizer
        With relative weights.
    pace : "auto", "paper", float or Pacing
    cross_fit : bool or "auto"
    plain : Fitted
        The plain model, fitted on all rows.

    Returns
    -------
    Found
    """
    task = replace(task, y=plain.labels[task.codes])
    n, k = task.n_units, plain.labels.size
    repeats = [] if n < MIN_ROWS or k < 2 else _repeats(task, n)
    if not repeats:
        why = "there is only one class" if k < 2 else f"{n} rows of {k} classes are too few to estimate noise"
        found = unassessed(task, plain, why)
        if pace != "auto" and k >= 2:
            warnings.warn(found.termination, ConvergenceWarning, stacklevel=5)
        return found
    problem = PacedLabels(task, plain.labels, output_kind(plain.model), repeats, pace == "auto")
    try:
        with task.progress.stage("plain cross-fit"):
            problem, reading, how = problem.plain(plain.model, cross_fit)
    except KeyboardInterrupt:  # the plain model is complete
        return replace(unassessed(task, plain, "no candidate could be completed"), interrupted=True)
    if not task.route.takes_weights:
        how += f"; rows are selected instead of weighted, because {task.route.reason}"
    return _paced(problem, rule, pace, plain, reading, how)


def _repeats(task: Task, n: int) -> list[list[Split]]:
    """Return several splits into halves, or the user's folds."""
    count = next((count for most, count in REPEATED_HALVES if n <= most), 1) if task.automatic else 1
    found = [task.splits(2, repetition) for repetition in range(count)]
    return [folds for folds in found if folds]  # none if every class has one row alone


def _paced(problem: PacedLabels, rule: Any, pace: Any, plain: Fitted, reading: Reading, how: str) -> Found:
    """Follow the pace and choose one of the candidates."""
    first = problem.trial(math.inf, "plain", reading, np.ones(len(problem.codes)))
    try:
        why = _no_noise(problem, reading) if pace == "auto" else ""
        if why:
            return _finish(problem, plain, [first], Decision(0, f"{why}; {how}"), noise=_noiseless(problem, reading))
        try:
            trials, interrupted = _trials(problem, rule, pace, first)
        except TooFewRows as error:
            return _finish(problem, plain, [first], Decision(0, f"{error}; {how}"))
        decision = _decide(trials, pace, problem.task.prior)
        if not (isinstance(pace, str) or decision.index or interrupted):
            warn_unpaced(decision.reason)
        return _finish(problem, plain, trials, replace(decision, reason=f"{decision.reason}; {how}"), interrupted)
    except KeyboardInterrupt:
        return _finish(problem, plain, [first], Decision(0, "no candidate could be completed"), True)


def _no_noise(problem: PacedLabels, plain: Reading) -> str:
    """Return why nothing can be gained; empty if something may be."""
    _, by_class = confident_error(np.asarray(plain.unseen), problem.codes, problem.task.prior)
    rate = plain.channel.noise_rate
    if by_class < CLEAN_ERROR:
        return f"only {by_class:.1%} of the most confident predictions contradict the label"
    # Cross-fitted weights have seen the labels they are compared by (through their neighbours), so they look better
    # than they are if classes overlap; the noise model, fitted before there were weights, tells the two apart.
    if problem.cross and rate < OVERLAP_RATE:
        return f"no label noise detected (rate {rate:.1%})"
    return ""


def _noiseless(problem: PacedLabels, plain: Reading) -> NoiseModel:
    """Return the model's own probabilities; scores that are no probabilities need a scale."""
    identity = NoiseModel.identity(problem.labels.size)
    if problem.kind == "predict_proba" or plain.unseen is None:
        return identity
    return scaled_channel(identity, plain.unseen, problem.codes, problem.task.prior)


def _trials(problem: PacedLabels, rule: Any, pace: Any, first: Trial) -> tuple[list[Trial], bool]:
    """Return the plain candidate and one per stage of the pace, and whether the walk was interrupted."""
    schedule, trials = _schedule(problem, rule, pace, first.fit), [first]

    def keep(stage: Stage, state: Solution[Reading]) -> None:
        label = f"{schedule.name} {len(trials)}"
        trials.append(problem.trial(stage.lam, label, state.model, state.weights, stage.cost))

    interrupted = schedule.walk(problem, rule, first.fit, keep).interrupted
    if problem.cross or interrupted or len(trials) == 1:
        return trials, interrupted
    with Interruptible() as guard, problem.task.progress.stage("evaluation on unseen rows"):
        trials = _evaluated(problem, trials)
    return trials, guard.interrupted


def _schedule(problem: PacedLabels, rule: Any, pace: Any, plain: Reading) -> Schedule:
    if isinstance(pace, str) and pace == "auto":
        rounds = (1 if plain.channel.noise_rate < HEAVY_NOISE else 2) if problem.cross else IN_SAMPLE_ROUNDS
        return Schedule(Ladder((_even_pace(rule),) * rounds), f"{rule.name} round")
    if isinstance(pace, str):
        return Schedule(Geometric(floor=PAPER_FLOOR, stop=(Plateau(), Stages(60))), f"{rule.name} stage")
    if isinstance(pace, float):
        return Schedule(Fixed(pace), f"{rule.name} fixed", HALF_QUADRATIC)
    return Schedule(pace, f"{rule.name} stage")


def _even_pace(rule: Any) -> float:
    """Return the pace of half weight if a label and its rival are equally probable, or as near as the rule allows."""
    for factor in (1.0, 2.0, 4.0, 0.5, 0.25, 0.125):
        try:
            return lam_at(rule, factor * LN2 * (1.0 + TIED))
        except CalibrationError as error:  # a rule that is not free of scale may not fall to 1/2 there
            reason = error
    raise reason


def _evaluated(problem: PacedLabels, trials: list[Trial]) -> list[Trial]:
    """Score in-sample candidates on unseen rows: fits with their weights to a part of the rows predict the rest."""
    scored = [trials[0]]
    for trial in trials[1:]:
        weights = problem.with_every_class(problem.task.total(np.asarray(trial.weight)), trial.fit)
        unseen, correct = problem.unseen(weights)
        scored.append(replace(trial, scores=problem.score(correct), fit=replace(trial.fit, unseen=unseen)))
    return scored


def _decide(trials: list[Trial], pace: Any, prior: Array | None) -> Decision:
    """Return the candidate to choose, and why."""
    last = len(trials) - 1
    if not last:
        return Decision(0, "no candidate could be completed")
    if not isinstance(pace, str):
        return end_of_pace(trials, f"the pace ended there, at lam = {trials[last].lam:.4g}")
    if any(trial.scores is None for trial in trials):
        return Decision(0, "no candidate was evaluated on unseen rows")
    scores = [mean_and_error(trial.scores, prior).mean for trial in trials if trial.scores is not None]
    best = 1 + int(np.argmax(scores[1:]))
    gain = gap(trials[best], trials[0], prior)
    figures = f"held-out accuracy on given labels {scores[best]:.3f}, plain model {scores[0]:.3f} (+- {gain.error:.3f})"
    return Decision(best if gain.mean > gain.error else 0, figures)


def _finish(
    problem: PacedLabels, plain: Fitted, trials: list[Trial], decision: Decision, interrupted: bool = False,
    noise: NoiseModel | None = None,
) -> Found:  # fmt: skip
    """Fit the chosen candidate on all rows."""
    task, channel, trial, model = problem.task, trials[0].fit.channel, trials[decision.index], None
    if decision.index:
        total = trial.weight if task.prior is None else trial.weight * task.prior
        with Interruptible(), task.progress.stage("final fit"):
            model = task.fit(problem.with_every_class(np.asarray(total), trial.fit))
        if model is None:
            decision, interrupted = Decision(0, "the final fit was not completed"), True
    chosen = trials[decision.index].fit
    if noise is None:
        unseen = chosen.unseen
        noise = chosen.channel if unseen is None else scaled_channel(channel, unseen, problem.codes, task.prior)
    units = np.ones(problem.labels.size) if decision.index == 0 else problem.class_units(chosen.losses)
    return Found(
        plain.model if model is None else model, plain.model, trials, decision, problem.cross, interrupted,
        plain.labels, noise, replace(channel, scale=1.0, bias=np.zeros_like(channel.bias)), {"class_unit_": units},
    )  # fmt: skip
