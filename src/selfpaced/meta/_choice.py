"""Which of the candidates a self-paced classifier keeps, from noisy labels alone, and why in words."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..channel import Channel, confident_error
from ..pacing import Fixed, Geometric, Pacing, Plateau, Stages, lam_at
from ..path import Candidate, weight_histogram
from ..solver import Solution, Stage, alternate
from ._common import decide_cross_fit
from ._problem import LN2, ClassifierProblem, View, paired_error, scaled_channel

__all__ = ["Outcome", "run"]

CLEAN = 0.03  # noisy error of the surest third below which nothing is to be gained
DOUBT = 0.1  # ... below which a candidate has to be better by more than one standard error
HEAVY = 0.25  # noise rate above which a second round pays
FLOOR = 0.5 * LN2  # smallest half-weight loss of the paper's start, in nats
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
    channel: Channel
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


@dataclass(eq=False)
class Collector:
    """Listens to the alternation and keeps every stage as a candidate."""

    name: str
    until: int | None = None
    tried: list[Tried] = field(default_factory=list)

    def __call__(self, stage: Stage, state: Solution[View]) -> bool:
        label = f"{self.name} {len(self.tried) + 1}"
        self.tried.append(Tried(stage.lam, state.model, np.asarray(state.weights), label))
        return self.until is not None and len(self.tried) >= self.until


def run(problem: ClassifierProblem, rule: Any, pace: Any, cross_fit: Any, seen: np.ndarray) -> Outcome:
    """Everything after the plain fit: views, rounds, choice, the final fit.

    Parameters
    ----------
    problem : ClassifierProblem
        The data and the wrapped estimator.
    rule : Regularizer
        With relative weights.
    pace : "auto", "paper", float or Pacing
    cross_fit : bool or "auto"
    seen : ndarray of shape (n_samples, n_classes)
        The plain model's output on its own rows.

    Returns
    -------
    Outcome
    """
    if not problem.repeats:
        return _unjudged(problem, pace)
    try:
        with problem.progress.stage("plain cross-fit"):
            plain = problem.plain(seen)
    except KeyboardInterrupt:
        return _unjudged(problem, pace, interrupted=True)
    wrong = (seen.argmax(axis=1) != problem.codes).astype(float)
    cross, how = decide_cross_fit(cross_fit, wrong, 1.0 - plain.correct, unit="error")
    plain = problem.recast(plain, cross)
    if not problem.route.takes_weights:
        how += f"; rows are selected instead of weighted, because {problem.route.reason}"
    overall, by_class = confident_error(plain.unseen, problem.codes, problem.prior)
    if isinstance(pace, str) and pace == "auto" and by_class < CLEAN:
        why = f"only {by_class:.1%} of the surest labels disagree, which is no sign of noise"
        outcome = _keep(problem, plain, [], None, f"the plain model was kept: {why}; {how}")
        return replace(outcome, channel=_noiseless(problem, plain))
    tried, interrupted = _walk(problem, rule, pace, plain)
    chosen, why = _choose(problem, plain, tried, pace, overall)
    return _keep(problem, plain, tried, chosen, f"{why}; {how}", interrupted)


def _noiseless(problem: ClassifierProblem, plain: View) -> Channel:
    """Without noise the model's own probabilities stand; scores without probabilities need a scale."""
    identity = Channel.identity(problem.labels.size)
    if problem.kind == "predict_proba":
        return identity
    return scaled_channel(identity, plain.unseen, problem.codes, problem.prior)


def _walk(problem: ClassifierProblem, rule: Any, pace: Any, plain: View) -> tuple[list[Tried], bool]:
    """Alternate along the pace and collect the candidates."""
    inner, until, name = 1, None, rule.name
    if isinstance(pace, str) and pace == "auto":
        pacing: Pacing = Rounds(lam_at(rule, LN2), 2)
        until = 2 if plain.channel.noise_rate >= HEAVY else 1
        name += " round"
    elif isinstance(pace, str):
        pacing, name = Geometric(floor=FLOOR, stop=(Plateau(), Stages(60))), name + " stage"
    elif isinstance(pace, Real):
        pacing, inner, name = Fixed(float(pace)), HALF_QUADRATIC, name + " fixed"
    else:
        pacing, name = pace, name + " stage"
    collector = Collector(name, until)
    solution = alternate(
        problem, rule, pacing, inner=inner, tolerance=1e-4, sample_weight=problem.prior, initial=plain,
        callback=collector,
    )  # fmt: skip
    return collector.tried, solution.interrupted


def _choose(
    problem: ClassifierProblem, plain: View, tried: list[Tried], pace: Any, doubt: float
) -> tuple[Tried | None, str]:
    """The candidate to keep (None: the plain model), and why."""
    if not tried:
        return None, "the plain model was kept: no candidate could be completed"
    if not isinstance(pace, str):
        return tried[-1], f"{tried[-1].label} at lam = {tried[-1].lam:.4g} was kept, as the pace asked"
    base = problem.score(plain)
    scores = [problem.score(one.view) for one in tried]
    best = int(np.argmax([score.mean() for score in scores]))
    gain = scores[best] - base
    error = paired_error(gain)
    need = error if doubt < DOUBT else 0.0
    figures = f"{scores[best].mean():.3f} against {base.mean():.3f} of the plain model (+- {error:.3f})"
    if gain.mean() > need:
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
    if interrupted and model is not None:
        why = f"interrupted, the best of the candidates so far is kept; {why}"
    channel = scaled_channel(plain.channel, view.unseen, problem.codes, problem.prior)
    first = problem.first if problem.first is not None else channel
    return Outcome(
        model=model, lam=lam, weight=weight, losses=view.losses, proba=channel.proba(view.unseen),
        noise=(plain.channel if view is plain else channel).noise_probability(view.unseen, problem.codes),
        channel=channel, rate=first.noise_rate, interval=first.interval,
        path=_path(problem, plain, tried, chosen if model is not None else None),
        termination=why[:1].upper() + why[1:] + ".", interrupted=interrupted,
    )  # fmt: skip


def _path(problem: ClassifierProblem, plain: View, tried: list[Tried], chosen: Tried | None) -> tuple[Candidate, ...]:
    def candidate(lam: float, view: View, weight: np.ndarray, label: str, taken: bool) -> Candidate:
        score = problem.score(view)
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
        channel=Channel.identity(k), rate=0.0, interval=(0.0, 1.0),
        path=(only,),
        termination=f"The plain model was kept: {why}.", interrupted=interrupted,
    )  # fmt: skip
