"""Which of the candidates a self-paced classifier keeps, from noisy labels alone, and why in words."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from ..label_noise import NoiseChannel, confident_error
from ..pacing import CalibrationError, Fixed, Geometric, Pacing, Plateau, Stages, lam_at
from ..path import Candidate, weight_histogram
from ..solver import Solution, Stage, alternate
from .common import decide_cross_fit
from .problem import HEAVY, LN2, ClassifierProblem, View, paired_error, scaled_channel
from .routing import take_rows

__all__ = ["Outcome", "run"]

CLEAN = 0.03  # noisy error of the surest third below which nothing is to be gained
LEAST = 0.05  # noise rate below which what looks wrong is taken for overlap of the classes
MEMORY = 0.2  # share of its error on unseen rows that a model which memorises does not make on seen ones
FLOOR = 0.5 * LN2  # smallest half-weight loss of the paper's start, in nats
IN_SAMPLE = 3  # rounds of a model of little capacity: they are cheap
HALF_QUADRATIC = 5  # rounds at a fixed pace


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a fit has found; `model` is None where the plain model was kept."""

    model: Any
    lam: float
    weight: np.ndarray
    losses: np.ndarray
    proba: np.ndarray
    noise: np.ndarray
    channel: NoiseChannel
    rate: float
    interval: tuple[float, float]
    path: tuple[Candidate, ...]
    termination: str
    interrupted: bool = False


@dataclass(frozen=True)
class Rounds(Pacing):
    """The same pace for a few rounds."""

    lam: float
    rounds: int

    def first(self, losses: Any, regularizer: Any, sample_weight: Any = None) -> float:  # noqa: ARG002
        """The pace."""
        return self.lam

    def advance(self, stage: int, lam: float, losses: Any, regularizer: Any, sample_weight: Any = None) -> Any:  # noqa: ARG002
        """The same pace until the rounds are done."""
        return lam if stage < self.rounds else None


@dataclass(eq=False)
class Tried:
    """A candidate with all that is needed to keep it."""

    lam: float
    view: View
    weight: np.ndarray
    label: str
    base: np.ndarray | None = None  # the plain models' correctness in the same folds, where it is not the plain view's


@dataclass(eq=False)
class Collector:
    """Listens to the alternation and keeps every stage as a candidate."""

    name: str
    tried: list[Tried] = field(default_factory=list)

    def __call__(self, stage: Stage, state: Solution[View]) -> None:
        label = f"{self.name} {len(self.tried) + 1}"
        self.tried.append(Tried(stage.lam, state.model, np.asarray(state.weights), label))


def run(problem: ClassifierProblem, rule: Any, pace: Any, cross_fit: Any, model: Any) -> Outcome:
    """Everything after the plain fit: views, rounds, choice, the final fit.

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
    Outcome
    """
    if not problem.repeats:
        return _unjudged(problem, pace)
    seen = problem.read()(model, problem.X)
    try:
        with problem.progress.stage("plain cross-fit"):
            plain = problem.plain(seen, model)
    except KeyboardInterrupt:
        return _unjudged(problem, pace, interrupted=True)
    wrong = (seen.argmax(axis=1) != problem.codes).astype(float)
    cross, how = decide_cross_fit(cross_fit, wrong, 1.0 - plain.correct, unit="error", share=MEMORY)
    plain = problem.recast(plain, cross)
    if not problem.route.takes_weights:
        how += f"; rows are selected instead of weighted, because {problem.route.reason}"
    _, by_class = confident_error(plain.unseen, problem.codes, problem.prior)
    if isinstance(pace, str) and pace == "auto":
        why = _no_noise(by_class, plain.channel.noise_rate, cross)
        if why:
            outcome = _keep(problem, plain, [], None, f"the plain model was kept: {why}; {how}")
            return replace(outcome, channel=_noiseless(problem, plain))
    tried, interrupted = _walk(problem, rule, pace, plain)
    chosen, why = _choose(problem, plain, tried, pace)
    return _keep(problem, plain, tried, chosen, f"{why}; {how}", interrupted)


def _no_noise(by_class: float, rate: float, cross: bool) -> str:
    """Why there is nothing to repair; empty where there may be."""
    if by_class < CLEAN:
        return f"only {by_class:.1%} of the surest labels disagree, which is no sign of noise"
    # Cross-fitted weights have seen the labels they are judged by (through their neighbours), so where classes
    # overlap they look better than they are; the channel, fitted before there were weights, tells the two apart.
    if cross and rate < LEAST:
        return f"overlapping classes explain the labels, with a noise rate of {rate:.1%}"
    return ""


def _noiseless(problem: ClassifierProblem, plain: View) -> NoiseChannel:
    """Without noise the model's own probabilities stand; scores without probabilities need a scale."""
    identity = NoiseChannel.identity(problem.labels.size)
    if problem.kind == "predict_proba":
        return identity
    return scaled_channel(identity, plain.unseen, problem.codes, problem.prior)


def _walk(problem: ClassifierProblem, rule: Any, pace: Any, plain: View) -> tuple[list[Tried], bool]:
    """Alternate along the pace and collect the candidates."""
    inner, name = 1, rule.name
    if isinstance(pace, str) and pace == "auto":
        rounds = 1 if problem.cross and plain.channel.noise_rate < HEAVY else 2 if problem.cross else IN_SAMPLE
        pacing: Pacing = Rounds(_even_pace(rule), rounds)
        name += " round"
    elif isinstance(pace, str):
        pacing, name = Geometric(floor=FLOOR, stop=(Plateau(), Stages(60))), name + " stage"
    elif isinstance(pace, Real):
        pacing, inner, name = Fixed(float(pace)), HALF_QUADRATIC, name + " fixed"
    else:
        pacing, name = pace, name + " stage"
    collector = Collector(name)
    options = {"inner": inner, "tolerance": 1e-4}
    solution = alternate(
        problem, rule, pacing, sample_weight=problem.prior, initial=plain, callback=collector, **options
    )
    if problem.cross or not collector.tried:
        return collector.tried, solution.interrupted
    try:
        with problem.progress.stage("judging on unseen rows"):
            return _judged(problem, rule, pacing, options, collector.tried), solution.interrupted
    except KeyboardInterrupt:
        return [], True


def _even_pace(rule: Any) -> float:
    """The pace of half weight where a label and its rival are equally probable, or as near as the rule allows."""
    for factor in (1.0, 2.0, 4.0, 0.5, 0.25, 0.125):
        try:
            return lam_at(rule, factor * LN2)
        except CalibrationError as error:  # a rule that is not free of scale may not fall to 1/2 there
            reason = error
    raise reason


def _judged(
    problem: ClassifierProblem, rule: Any, pacing: Pacing, options: dict[str, Any], tried: list[Tried]
) -> list[Tried]:
    """In-sample candidates with evidence: the whole procedure is repeated on a part of the rows, judged on the rest."""
    folds, stages = problem.repeats[0], len(tried) + 1
    chains = Parallel(n_jobs=problem.n_jobs)(
        delayed(_chain)(problem.subset(train), rule, pacing, options, take_rows(problem.X, test), stages)
        for train, test in folds
    )
    n, k = len(problem.codes), problem.labels.size
    evidence = []
    for stage in range(stages):
        total, correct, tested = np.zeros((n, k)), np.zeros(n), np.zeros(n)
        for (_, test), chain in zip(folds, chains, strict=True):
            total[test], tested[test] = chain[stage], 1.0
            correct[test] = chain[stage].argmax(axis=1) == problem.codes[test]
        evidence.append(problem.settle(total, correct, tested))
    for one, (unseen, correct) in zip(tried, evidence[1:], strict=True):
        one.view, one.base = replace(one.view, unseen=unseen, correct=correct), evidence[0][1]
    return tried


def _chain(
    part: ClassifierProblem, rule: Any, pacing: Pacing, options: dict[str, Any], X: Any, stages: int
) -> list[np.ndarray]:
    """Outputs on unseen rows of the plain model of a part and of every stage of its path."""
    read, start = part.read(), part.initial()
    outputs = [read(start.model, X)]

    def listen(stage: Stage, state: Solution[View]) -> bool:  # noqa: ARG001
        outputs.append(read(state.model.model, X))
        return len(outputs) >= stages

    alternate(part, rule, pacing, sample_weight=part.prior, initial=start, callback=listen, **options)
    return outputs + outputs[-1:] * (stages - len(outputs))


def _choose(problem: ClassifierProblem, plain: View, tried: list[Tried], pace: Any) -> tuple[Tried | None, str]:
    """The candidate to keep (None: the plain model), and why."""
    if not tried:
        return None, "the plain model was kept: no candidate could be completed"
    if not isinstance(pace, str):
        return tried[-1], f"{tried[-1].label} at lam = {tried[-1].lam:.4g} was kept, as the pace asked"
    base = problem.score(plain.correct if tried[0].base is None else tried[0].base)
    scores = [problem.score(one.view.correct) for one in tried]
    best = int(np.argmax([score.mean() for score in scores]))
    gain = scores[best] - base
    error = paired_error(gain)
    figures = f"{scores[best].mean():.3f} against {base.mean():.3f} of the plain model (+- {error:.3f})"
    if gain.mean() > error:
        return tried[best], f"{tried[best].label} was chosen: {figures} on the noisy labels of unseen rows"
    return None, f"the plain model was kept: the best candidate has {figures} on the noisy labels of unseen rows"


def _keep(
    problem: ClassifierProblem, plain: View, tried: list[Tried], chosen: Tried | None, why: str,
    interrupted: bool = False,
) -> Outcome:  # fmt: skip
    """Fit the chosen model on all rows and put everything together."""
    view = plain if chosen is None else chosen.view
    model, weight, lam = None, np.ones(len(problem.codes)), math.inf
    if chosen is not None:
        weight, lam = np.clip(chosen.weight, 0.0, 1.0), chosen.lam
        total = weight if problem.prior is None else weight * problem.prior
        try:
            with problem.progress.stage("final fit"):
                model = problem.full_fit(problem.with_every_class(total, view))
        except KeyboardInterrupt:
            weight, lam, view, interrupted = np.ones(len(problem.codes)), math.inf, plain, True
            why = f"interrupted in the final fit, the plain model is kept; {why}"
    if interrupted and "interrupted" not in why:
        why = f"interrupted, the best so far is kept; {why}"
    channel = scaled_channel(plain.channel, view.unseen, problem.codes, problem.prior)
    calibrated = replace(plain.channel, scale=1.0, bias=np.zeros_like(plain.channel.bias))
    return Outcome(
        model=model, lam=lam, weight=weight, losses=view.losses, proba=calibrated.proba(view.clean),
        noise=calibrated.noise_probability(view.clean, problem.codes), channel=channel,
        rate=plain.channel.noise_rate, interval=plain.channel.interval,
        path=_path(problem, plain, tried, chosen if model is not None else None),
        termination=why[:1].upper() + why[1:] + ".", interrupted=interrupted,
    )  # fmt: skip


def _path(problem: ClassifierProblem, plain: View, tried: list[Tried], chosen: Tried | None) -> tuple[Candidate, ...]:
    def candidate(lam: float, view: View, weight: np.ndarray, label: str, taken: bool) -> Candidate:
        score = problem.score(view.correct)
        return Candidate(
            lam=lam, score=float(score.mean()), spread=paired_error(score), mean_weight=float(weight.mean()),
            cost=view.cost, chosen=taken, histogram=weight_histogram(weight), label=label,
        )  # fmt: skip

    ones = np.ones(len(problem.codes))
    path = [candidate(math.inf, plain, ones, "plain", chosen is None)]
    path += [candidate(one.lam, one.view, one.weight, one.label, one is chosen) for one in tried]
    return tuple(path)


def _unjudged(problem: ClassifierProblem, pace: Any, interrupted: bool = False) -> Outcome:
    """The plain model, where there is too little data (or time) to judge anything else."""
    n, k = len(problem.codes), problem.labels.size
    why = f"{n} rows of {k} classes are too few to judge noise on unseen rows"
    if interrupted:
        why = "interrupted before any candidate was completed"
    elif k < 2:
        why = "there is only one class"
    elif pace != "auto":
        warnings.warn(f"The plain model was kept: {why}.", ConvergenceWarning, stacklevel=5)
    proba = np.full((n, k), 1.0 / k)
    only = Candidate(math.inf, mean_weight=1.0, chosen=True, histogram=weight_histogram(np.ones(n)), label="plain")
    return Outcome(
        model=None, lam=math.inf, weight=np.ones(n), losses=np.zeros(n), proba=proba, noise=np.zeros(n),
        channel=NoiseChannel.identity(k), rate=0.0, interval=(0.0, 1.0),
        path=(only,),
        termination=f"The plain model was kept: {why}.", interrupted=interrupted,
    )  # fmt: skip
