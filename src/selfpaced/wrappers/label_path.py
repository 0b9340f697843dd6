"""The path of a self-paced classifier: rounds of weighted fits, and which of them is kept, from noisy labels alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from ..fitting import Interruptible, interrupted_sentence, warn_unpaced
from ..label_noise import NoiseModel, confident_error
from ..pacing import CalibrationError, Fixed, Geometric, Ladder, Pacing, Plateau, Stages, lam_at
from ..selection import Decision, Trial, end_of_pace, gap, mean_and_error, sentence
from ..solver import Solution, Stage, alternate
from .crossfit import decide_cross_fit
from .labels import HEAVY, LN2, Array, ClassifierProblem, Reading, scaled_channel
from .routing import TooFewRows, take_rows

__all__ = ["LabelFit", "run"]

# a choice, made on development data.
CLEAN = 0.03  # noisy error of the surest third below which nothing is to be gained
LEAST = 0.05  # noise rate below which what looks wrong is taken for overlap of the classes
MEMORY = 0.2  # share of its error on unseen rows that a model which memorises does not make on seen ones
IN_SAMPLE = 3  # rounds of a model of little capacity: they are cheap

FLOOR = 0.5 * LN2  # smallest half-weight loss of the paper's start, in nats: a choice
HALF_QUADRATIC = 5  # cost: rounds at a fixed pace
TOLERANCE = 1e-4  # numerical safety: of the latent objective, where a pace has more than one round
TIED = 1e-9  # numerical safety: as many votes for a label as for its rival take it in, whatever rounding says


@dataclass(frozen=True, eq=False)
class LabelFit:
    """What a fit has found.

    Attributes
    ----------
    model : classifier or None
        None where the plain model was kept.
    trials : sequence of Trial
        The plain model and every candidate; ``fit`` of a trial is its `Reading`.
    decision : Decision
        Which of them was kept.
    channel : NoiseModel
        From the kept model's raw logits to clean probabilities.
    reference : NoiseModel
        From the clean logits of the kept reading to clean probabilities.
    cross : bool
        Whether the reading is that of models which had not seen the row.
    interrupted : bool
        Whether it ended early.
    """

    model: Any
    trials: Sequence[Trial]
    decision: Decision
    channel: NoiseModel
    reference: NoiseModel
    cross: bool = False
    interrupted: bool = False

    @property
    def kept(self) -> Trial:
        """The candidate that was kept."""
        return self.trials[self.decision.index]

    @property
    def termination(self) -> str:
        """What was kept and why."""
        if self.interrupted:
            return interrupted_sentence("the plain model" if self.model is None else self.kept.label)
        return sentence(self.trials, self.decision)


@dataclass(frozen=True)
class Schedule:
    """How to follow a pace: the pacing, fits per stage, and what candidates are called."""

    pacing: Pacing
    name: str
    inner: int = 1

    def walk(self, problem: ClassifierProblem, rule: Any, initial: Reading, callback: Any) -> Solution[Reading]:
        """Alternate between weights and weighted fits along the pace."""
        return alternate(
            problem, rule, self.pacing, inner=self.inner, tolerance=TOLERANCE, sample_weight=problem.prior,
            initial=initial, callback=callback,
        )  # fmt: skip


def run(problem: ClassifierProblem, rule: Any, pace: Any, cross_fit: Any, model: Any) -> LabelFit:
    """Everything after the plain fit: readings, rounds, choice, the final fit.

    Parameters
    ----------
    problem : ClassifierProblem
        The data and the wrapped estimator.
    rule : Regularizer
        With relative weights.
    pace : "auto", "paper", float or Pacing
    cross_fit : bool or "auto"
    model : classifier
        The plain model, fitted on all rows.

    Returns
    -------
    LabelFit
    """
    if not problem.repeats:
        return _too_small(problem, pace)
    try:
        seen = problem.read()(model, problem.X)
        with problem.stage("plain cross-fit"):
            plain = problem.plain(seen, model)
        wrong = (seen.argmax(axis=1) != problem.codes).astype(float)
        unseen = 1.0 - _known(plain.correct)
        cross, how = decide_cross_fit(cross_fit, wrong, unseen, problem.prior, unit="error", share=MEMORY)
        problem, plain = problem.settled(plain, cross)
        if not problem.route.takes_weights:
            how += f"; rows are selected instead of weighted, because {problem.route.reason}"
        return _paced(problem, rule, pace, plain, how)
    except KeyboardInterrupt:  # the plain model is complete
        return replace(_unassessed(problem, "no candidate could be completed"), interrupted=True)


def _paced(problem: ClassifierProblem, rule: Any, pace: Any, plain: Reading, how: str) -> LabelFit:
    """Walk along the pace and keep one of the candidates."""
    first = _trial(problem, math.inf, "plain", plain, np.ones(len(problem.codes)), plain.cost)
    try:
        why = _no_noise(problem, plain) if pace == "auto" else ""
        if why:
            return _kept(problem, [first], Decision(0, f"{why}; {how}"), channel=_noiseless(problem, plain))
        try:
            trials, interrupted = _trials(problem, rule, pace, first)
        except TooFewRows as error:
            return _kept(problem, [first], Decision(0, f"{error}; {how}"))
        decision = _decide(trials, pace, problem.prior)
        if not (isinstance(pace, str) or decision.index or interrupted):
            warn_unpaced(decision.reason)
        return _kept(problem, trials, replace(decision, reason=f"{decision.reason}; {how}"), interrupted)
    except KeyboardInterrupt:
        return _kept(problem, [first], Decision(0, "no candidate could be completed"), interrupted=True)


def _known(values: Array | None) -> Array:
    assert values is not None, "readings of unseen rows have them"
    return values


def _no_noise(problem: ClassifierProblem, plain: Reading) -> str:
    """Why there is nothing to repair; empty where there may be."""
    _, by_class = confident_error(_known(plain.unseen), problem.codes, problem.prior)
    rate = plain.channel.noise_rate
    if by_class < CLEAN:
        return f"only {by_class:.1%} of the surest labels disagree, which is no sign of noise"
    # Cross-fitted weights have seen the labels they are assessed by (through their neighbours), so where classes
    # overlap they look better than they are; the channel, fitted before there were weights, tells the two apart.
    if problem.cross and rate < LEAST:
        return f"overlapping classes explain the labels, with a noise rate of {rate:.1%}"
    return ""


def _noiseless(problem: ClassifierProblem, plain: Reading) -> NoiseModel:
    """Without noise the model's own probabilities stand; scores without probabilities need a scale."""
    identity = NoiseModel.identity(problem.labels.size)
    if problem.kind == "predict_proba":
        return identity
    return scaled_channel(identity, _known(plain.unseen), problem.codes, problem.prior)


# ---------------------------------------------------------------------------------------------- candidates


def _trial(problem: ClassifierProblem, lam: float, label: str, reading: Reading, weight: Array, cost: float) -> Trial:
    return Trial(lam, label, problem.score(reading.correct), np.clip(weight, 0.0, 1.0), cost, reading)


def _trials(problem: ClassifierProblem, rule: Any, pace: Any, first: Trial) -> tuple[list[Trial], bool]:
    """The plain candidate and one per stage of the pace, and whether the walk was interrupted."""
    schedule, trials = _schedule(problem, rule, pace, first.fit), [first]

    def keep(stage: Stage, state: Solution[Reading]) -> None:
        label = f"{schedule.name} {len(trials)}"
        trials.append(_trial(problem, stage.lam, label, state.model, state.weights, stage.cost))

    interrupted = schedule.walk(problem, rule, first.fit, keep).interrupted
    if problem.cross or interrupted or len(trials) == 1:
        return trials, interrupted
    with Interruptible() as guard, problem.stage("assessing on unseen rows"):
        trials = _assessed(problem, rule, schedule, trials)
    return trials, guard.interrupted


def _schedule(problem: ClassifierProblem, rule: Any, pace: Any, plain: Reading) -> Schedule:
    if pace == "auto":
        rounds = 1 if problem.cross and plain.channel.noise_rate < HEAVY else 2 if problem.cross else IN_SAMPLE
        return Schedule(Ladder((_even_pace(rule),) * rounds), f"{rule.name} round")
    if pace == "paper":
        return Schedule(Geometric(floor=FLOOR, stop=(Plateau(), Stages(60))), f"{rule.name} stage")
    if isinstance(pace, float):
        return Schedule(Fixed(pace), f"{rule.name} fixed", HALF_QUADRATIC)
    return Schedule(pace, f"{rule.name} stage")


def _even_pace(rule: Any) -> float:
    """The pace of half weight where a label and its rival are equally probable, or as near as the rule allows."""
    for factor in (1.0, 2.0, 4.0, 0.5, 0.25, 0.125):
        try:
            return lam_at(rule, factor * LN2 * (1.0 + TIED))
        except CalibrationError as error:  # a rule that is not free of scale may not fall to 1/2 there
            reason = error
    raise reason


def _assessed(problem: ClassifierProblem, rule: Any, schedule: Schedule, trials: list[Trial]) -> list[Trial]:
    """In-sample candidates with evidence: the whole procedure is repeated on a part of the rows, assessed on the
    rest."""
    folds, n, k = problem.repeats[0], len(problem.codes), problem.labels.size
    chains = Parallel(n_jobs=problem.n_jobs)(
        delayed(_chain)(problem.subset(train), rule, schedule, take_rows(problem.X, test), len(trials))
        for train, test in folds
    )
    assessed = []
    for number, trial in enumerate(trials):
        total, correct, tested = np.zeros((n, k)), np.zeros(n), np.zeros(n)
        for (_, test), chain in zip(folds, chains, strict=True):
            total[test], tested[test] = chain[number], 1.0
            correct[test] = chain[number].argmax(axis=1) == problem.codes[test]
        unseen, correct = problem.averaged(total, correct, tested)
        # the plain model is compared with the others on these folds; its calibration stays that of all of them
        reading = trial.fit if number == 0 else replace(trial.fit, unseen=unseen, correct=correct)
        assessed.append(replace(trial, scores=problem.score(correct), fit=reading))
    return assessed


def _chain(part: ClassifierProblem, rule: Any, schedule: Schedule, X: Any, count: int) -> list[Array]:
    """Outputs on unseen rows of the plain model of a part and of every stage of its path."""
    read, start = part.read(), part.initial()
    outputs = [read(start.model, X)]

    def listen(stage: Stage, state: Solution[Reading]) -> bool:  # noqa: ARG001
        outputs.append(read(state.model.model, X))
        return len(outputs) >= count

    if schedule.walk(part, rule, start, listen).interrupted:
        raise KeyboardInterrupt  # half a chain is no evidence
    return outputs + outputs[-1:] * (count - len(outputs))


# -------------------------------------------------------------------------------------------------- choice


def _decide(trials: list[Trial], pace: Any, prior: Array | None) -> Decision:
    """The candidate to keep, and why."""
    last = len(trials) - 1
    if not last:
        return Decision(0, "no candidate could be completed")
    if not isinstance(pace, str):
        return end_of_pace(trials, f"the pace ended there, at lam = {trials[last].lam:.4g}")
    if trials[last].scores is None:
        return Decision(0, "no candidate was assessed on unseen rows")
    scores = [mean_and_error(_known(trial.scores), prior).mean for trial in trials]
    best = 1 + int(np.argmax(scores[1:]))
    gain = gap(trials[best], trials[0], prior)
    figures = f"{scores[best]:.3f} against {scores[0]:.3f} of the plain model (+- {gain.error:.3f})"
    if gain.mean > gain.error:
        return Decision(best, f"{figures} on the noisy labels of unseen rows")
    return Decision(0, f"the best candidate has {figures} on the noisy labels of unseen rows")


def _kept(
    problem: ClassifierProblem, trials: list[Trial], decision: Decision, interrupted: bool = False,
    channel: NoiseModel | None = None,
) -> LabelFit:  # fmt: skip
    """Fit the chosen model on all rows and put everything together."""
    plain, trial, model = trials[0].fit, trials[decision.index], None
    if decision.index:
        total = trial.weight if problem.prior is None else trial.weight * problem.prior
        with Interruptible(), problem.stage("final fit"):
            model = problem.full_fit(problem.with_every_class(_known(total), trial.fit))
        if model is None:
            decision, interrupted = Decision(0, "the final fit was not completed"), True
    kept = trials[decision.index].fit
    if channel is None:
        unseen = kept.unseen
        channel = (
            kept.channel if unseen is None else scaled_channel(plain.channel, unseen, problem.codes, problem.prior)
        )
    reference = replace(plain.channel, scale=1.0, bias=np.zeros_like(plain.channel.bias))
    return LabelFit(model, trials, decision, channel, reference, problem.cross, interrupted)


def _too_small(problem: ClassifierProblem, pace: Any) -> LabelFit:
    n, k = problem.n_units, problem.labels.size
    why = "there is only one class" if k < 2 else f"{n} rows of {k} classes are too few to assess noise on unseen rows"
    found = _unassessed(problem, why)
    if pace != "auto" and k >= 2:
        warnings.warn(found.termination, ConvergenceWarning, stacklevel=5)
    return found


def _unassessed(problem: ClassifierProblem, why: str) -> LabelFit:
    """The plain model, where there is too little data (or time) to assess anything else."""
    n, k = len(problem.codes), problem.labels.size
    identity = NoiseModel.identity(k)
    reading = Reading(np.zeros((n, k)), None, None, identity, np.zeros(n))
    only = Trial(math.inf, "plain", None, np.ones(n), fit=reading)
    return LabelFit(None, [only], Decision(0, why), identity, identity)
