"""The path: one driver for every paced fit, and Algorithm 1 of the paper.

:func:`walk` sets the pace, asks a step for the model at that pace, keeps the record and knows when to end.
:func:`alternate` is the walk whose step alternates between weights and weighted fits. Other ways
to the same points, such as minimising the latent loss directly, are other steps of the same walk.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .pacing import Pacing, StageLike, Stages
from .regularizers import GroupRegularizer, get

Model = TypeVar("Model")
Floats = NDArray[np.floating[Any]]
logger = logging.getLogger(__name__)


# ------------------------------------------------------------------------------------------------- contracts


@dataclass(frozen=True, eq=False)
class State(Generic[Model]):
    """An intermediate model, with what the pace needs to know of it.

    Attributes
    ----------
    model : object
        What the step needs to continue from here.
    losses : ndarray
        The losses that set the pace, as the rule sees them (in its unit; a sample of them will do).
    weights : ndarray, optional
        The weights at the pace of this state; without them they are the rule's for ``losses``.
    inner : int
        How many weighted fits it took; 0 for a model that is given.
    objective : float
        The latent objective, ``nan`` where it was not computed.
    rise : float
        The largest relative rise of the latent objective on the way: 0 if it never rose.
    """

    model: Model
    losses: Floats
    weights: Floats | None = None
    inner: int = 0
    objective: float = math.nan
    rise: float = 0.0


class Step(Protocol[Model]):
    """One step of a path: return the state at ``lam`` from the previous one, which is not changed.

    A step that finds nothing to learn from raises :class:`DeadEnd`.
    """

    def __call__(self, lam: float, state: State[Model]) -> State[Model]:
        """The model at this pace, started from the one before."""
        ...


class DeadEnd(Exception):
    """A pace at which nothing can be learned: the walk ends and keeps the state before it.

    Parameters
    ----------
    reason : str
        Why, for the closing sentence.
    back_to_start : bool
        Whether the states before are spoilt too, so that only the initial one is worth keeping.
    """

    def __init__(self, reason: str, *, back_to_start: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.back_to_start = reason, back_to_start


@dataclass(frozen=True)
class Stage:
    """The record of one pace.

    Attributes
    ----------
    lam : float
        The pace.
    inner : int
        How many weighted fits it took.
    objective : float
        The latent objective sum phi(lam, loss) + penalty at its end.
    mean_weight : float
        Mean weight relative to the maximum.
    rise : float
        The largest relative rise of the latent objective between two fits: 0 if it never rose.
    cost : float
        Seconds.
    """

    lam: float
    inner: int
    objective: float
    mean_weight: float
    rise: float = 0.0
    cost: float = field(default=0.0, compare=False)


#: What ends a walk: a stop of the pacing, a further stop, the last pace, the callback, a step that found nothing to
#: learn from, Ctrl-C.
End = Literal["stop", "limit", "pace", "callback", "dead end", "interrupt"]


@dataclass(frozen=True, eq=False)
class Solution(Generic[Model]):
    """The end of a walk: the model, its weights and losses, every stage, and why it stopped.

    ``status`` is a sentence with the ``reason`` in it; ``end`` is what programs should ask for.
    """

    model: Model
    weights: Floats
    losses: Floats
    stages: tuple[Stage, ...]
    status: str
    end: End = "stop"
    reason: str = ""

    @property
    def lam(self) -> float:
        """The last pace; ``inf`` if not even one stage was completed."""
        return self.stages[-1].lam if self.stages else math.inf

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.end == "interrupt"

    def uninterrupted(self) -> Solution[Model]:
        """This solution; raise KeyboardInterrupt if Ctrl-C ended the walk."""
        if self.interrupted:
            raise KeyboardInterrupt
        return self


#: Called as ``callback(stage, solution)`` after every stage; a true answer ends the path.
Callback = Callable[[Stage, Solution[Any]], Any]


# ------------------------------------------------------------------------------------------------------ walk


def walk(
    step: Step[Model],
    regularizer: Any,
    pacing: Pacing,
    initial: State[Model] | Callable[[], State[Model]],
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    stop: Any = (),
    callback: Callback | None = None,
    resume: Solution[Model] | None = None,
) -> Solution[Model]:
    """Follow a pace from its start to its stop, one step per stage.

    Parameters
    ----------
    step : Step
        ``step(lam, state)`` gives the next state.
    regularizer : name or Regularizer
        The rule whose pace it is. A group rule needs ``groups``.
    pacing : Pacing
        Start, growth and stop of lam.
    initial : State, or callable that makes one
        Start of the path; its losses set the first pace.
    sample_weight : array-like, optional
        Weights of the losses in means and quantiles.
    groups : array-like, optional
        Group labels for the rules that need them.
    stop : callable or tuple of them, optional
        Further stops, asked after those of the pacing.
    callback : callable, optional
        Called as ``callback(stage, solution)`` after every stage; a true answer ends the path.
    resume : Solution, optional
        Continue where this one ended, to the same result as an uninterrupted walk.

    Returns
    -------
    Solution
        On Ctrl-C, the last complete stage; before there is any state, the interrupt goes through.

    Examples
    --------
    The mean of the values within lam of the mean before, while lam grows:

    >>> import numpy as np
    >>> from selfpaced.pacing import Geometric, Stages
    >>> data = np.array([1.0, 1.2, 0.8, 9.0])
    >>> def step(lam, state):
    ...     mean = data[state.losses < lam].mean()
    ...     return State(mean, (data - mean) ** 2)
    >>> start = State(1.5, (data - 1.5) ** 2)
    >>> solution = walk(step, "hard", Geometric(mu=2, lam=0.6, stop=Stages(3)), start)
    >>> float(solution.model), [stage.lam for stage in solution.stages]
    (1.0, [0.6, 1.2, 2.4])
    """
    rule = bound(get(regularizer), groups)
    state: State[Model] | None = None
    stages: tuple[Stage, ...] = ()
    if resume is not None:
        initial, stages = State(resume.model, resume.losses, resume.weights), resume.stages
    try:
        state = first = initial() if callable(initial) else initial
        prior = prior_of(sample_weight, state.losses)
        while True:
            lam = _next_lam(state, stages, rule, pacing, prior)
            if lam is None:
                return _ended(state, stages, rule, "the pace came to its end", "pace")
            began = time.perf_counter()
            following = step(lam, state)
            stage = _record(following, rule, lam, prior, time.perf_counter() - began)
            logger.info("stage %d: lam %.4g, mean weight %.3f", len(stages), lam, stage.mean_weight)
            state, stages = following, (*stages, stage)
            if callback is not None and callback(stage, _ended(state, stages, rule, "running")):
                return _ended(state, stages, rule, "the callback ended the path", "callback")
            reason = stop_reason(pacing.stop, stages, state.losses, rule)
            if reason is not None:
                return _ended(state, stages, rule, reason)
            limit = stop_reason(stop, stages, state.losses, rule)
            if limit is not None:
                return _ended(state, stages, rule, limit, "limit")
    except DeadEnd as end:
        assert state is not None
        if end.back_to_start:
            return _ended(first, (), rule, f"{end.reason}; the initial model is kept", "dead end")
        kept = "the model of the stage before is kept" if stages else "the initial model is kept"
        return _ended(state, stages, rule, f"{end.reason}; {kept}", "dead end")
    except KeyboardInterrupt:
        if state is None:
            raise  # there is no model yet
        return _ended(state, stages, rule, "interrupted from outside", "interrupt")


def stop_reason(stop: Any, stages: Sequence[StageLike], losses: Any, regularizer: Any) -> str | None:
    """The first reason that one of the stops gives, as a sentence; a number is a number of stages."""
    for rule in stop if isinstance(stop, tuple) else (stop,):
        said = (Stages(rule) if isinstance(rule, int) else rule)(stages, losses, regularizer)
        if said:
            return said if isinstance(said, str) else "the stop rule ended the path"
    return None


def bound(rule: Any, groups: ArrayLike | None) -> Any:
    """The rule with its groups filled in, where it is one that needs them."""
    if isinstance(rule, GroupRegularizer):
        if groups is None:
            raise ValueError(f"the rule {rule.name!r} needs groups: pass groups=, one label per sample")
        return rule.bind(groups)
    if groups is not None:
        raise ValueError(f"the rule {rule.name!r} is elementwise and takes no groups")
    return rule


def prior_of(sample_weight: ArrayLike | None, losses: Floats) -> Floats | None:
    """Sample weights, checked against the losses they belong to."""
    if sample_weight is None:
        return None
    prior = np.asarray(sample_weight, dtype=losses.dtype)
    if prior.shape != losses.shape:
        raise ValueError(f"sample_weight must have the shape of the losses {losses.shape}, got {prior.shape}")
    if not (np.isfinite(prior).all() and (prior >= 0).all()):
        raise ValueError("sample_weight must be finite and >= 0")
    if not prior.sum() > 0:
        raise ValueError("sample_weight must not be zero everywhere")
    return prior


def _next_lam(
    state: State[Any], stages: tuple[Stage, ...], rule: Any, pacing: Pacing, prior: Floats | None
) -> float | None:
    if not stages:
        return pacing.first(state.losses, rule, prior)
    return pacing.advance(len(stages), stages[-1].lam, state.losses, rule, prior)


def _record(state: State[Any], rule: Any, lam: float, prior: Floats | None, cost: float) -> Stage:
    relative = (
        rule.relative_weight(state.losses, lam) if state.weights is None else state.weights / rule.max_weight(lam)
    )
    return Stage(
        lam=float(lam),
        inner=state.inner,
        objective=state.objective,
        mean_weight=float(np.average(relative, weights=prior)),
        rise=state.rise,
        cost=cost,
    )


def _ended(
    state: State[Model], stages: tuple[Stage, ...], rule: Any, reason: str, end: End = "stop"
) -> Solution[Model]:
    weights = state.weights
    if weights is None:
        weights = rule.weight(state.losses, stages[-1].lam) if stages else np.ones_like(state.losses)
    return Solution(state.model, weights, state.losses, stages, _sentence(stages, reason), end, reason)


def _sentence(stages: tuple[Stage, ...], reason: str) -> str:
    count = len(stages)
    head = f"Stopped after {count} stage{'s' * (count != 1)}"
    head += f" at lam = {stages[-1].lam:.4g}: {reason}." if count else f": {reason}."
    worst = max((stage.rise for stage in stages), default=0.0)
    if worst > 0:
        where = next(index for index, stage in enumerate(stages) if stage.rise == worst)
        head += (
            f" The latent objective rose by {worst:.2g}, relative to its size, in stage {where}: the weighted fits are "
            "not exact, or it is not convex."
        )
    return head


# ------------------------------------------------------------------------------------------ Algorithm 1


class Problem(Protocol[Model]):
    """A learning problem: a weighted fit, and the losses of a model. It never sees lam."""

    def fit(self, weights: Any, previous: Model | None) -> Model:
        """The model that minimises sum(weights * losses) + penalty, warm-started from ``previous``.

        ``weights`` is None for the plain, unweighted first fit, ``previous`` is None if there is no model yet.
        """
        ...

    def losses(self, model: Model) -> Any:
        """The loss >= 0 of every sample (an array of any shape)."""
        ...

    def penalty(self, model: Model) -> float:
        """The model's own regularization term, 0 if it has none."""
        ...


@dataclass(frozen=True, eq=False)
class Alternation(Generic[Model]):
    """The paper's step: weights from losses, a fit with these weights, again until the latent objective settles."""

    problem: Problem[Model]
    rule: Any
    prior: Floats | None = None
    inner: int = 20
    tolerance: float = 1e-8

    def __call__(self, lam: float, state: State[Model]) -> State[Model]:
        """Alternate at one pace."""
        model, losses = state.model, state.losses
        objective = self.objective(lam, model, losses)
        rise = 0.0
        for fits in range(1, self.inner + 1):  # noqa: B007
            weights = self.rule.weight(losses, lam)
            total = weights if self.prior is None else weights * self.prior
            if not total.sum() > 0:
                raise DeadEnd(f"at lam = {lam:.4g} every weight is zero (start at a larger fraction or set a floor)")
            model = self.problem.fit(total, model)
            losses = np.asarray(self.problem.losses(model))
            before, objective = objective, self.objective(lam, model, losses)
            scale = max(abs(before), abs(objective), 1e-300)
            rise = max(rise, (objective - before) / scale)
            if not before - objective > self.tolerance * scale:
                break
        weights = self.rule.weight(losses, lam)
        return State(model, losses, weights, fits, objective, rise if rise > 1e-10 else 0.0)

    def objective(self, lam: float, model: Model, losses: Floats) -> float:
        """sum phi(lam, loss) + penalty."""
        latent = self.rule.latent(losses, lam)
        if self.prior is not None:
            if latent.shape != self.prior.shape:
                raise ValueError("sample_weight cannot be combined with a group rule: its penalty is per group")
            latent = np.where(self.prior > 0, latent * self.prior, 0.0)
        return float(np.sum(latent, dtype=np.float64)) + float(self.problem.penalty(model))


def alternate(
    problem: Problem[Model],
    regularizer: Any,
    pacing: Pacing,
    *,
    inner: int = 20,
    tolerance: float = 1e-8,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    initial: Model | None = None,
    callback: Callback | None = None,
    resume: Solution[Model] | None = None,
) -> Solution[Model]:
    """Self-paced learning (Algorithm 1 of Fan et al., 2017).

    Parameters
    ----------
    problem : Problem
        Anything with ``fit(weights, previous)``, ``losses(model)`` and ``penalty(model)``.
    regularizer, pacing, groups, callback, resume
        As in `walk`.
    inner : int
        The largest number of weighted fits per stage.
    tolerance : float
        A stage ends when the latent objective falls by less than this share.
    sample_weight : array-like, optional
        Multiplies the weights; repeating a sample equals weighting it.
    initial : optional
        A model to start from; a plain fit by default.

    Returns
    -------
    Solution
        On Ctrl-C, the last complete stage.

    Examples
    --------
    >>> import numpy as np
    >>> class Mean:
    ...     data = np.array([1.0, 1.1, 0.9, 1.0, 50.0])
    ...     def fit(self, weights, previous): return np.average(self.data, weights=weights)
    ...     def losses(self, model): return (self.data - model) ** 2
    ...     def penalty(self, model): return 0.0
    >>> from selfpaced.pacing import Fixed
    >>> solution = alternate(Mean(), "welsch", Fixed(1.0), initial=1.2)
    >>> round(float(solution.model), 6)
    1.0
    """
    _check_problem(problem)
    if int(inner) != inner or inner < 1:
        raise ValueError(f"inner must be an integer >= 1, got {inner!r}")
    rule = bound(get(regularizer), groups)
    prior = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)

    def start() -> State[Model]:
        model = _plain(problem, prior) if initial is None else initial
        return State(model, np.asarray(problem.losses(model)))

    return walk(
        Alternation(problem, rule, prior, inner, tolerance),
        regularizer,
        pacing,
        start,
        sample_weight=prior,
        groups=groups,
        callback=callback,
        resume=resume,
    )


def _check_problem(problem: Any) -> None:
    missing = [name for name in ("fit", "losses", "penalty") if not callable(getattr(problem, name, None))]
    if missing:
        raise TypeError(
            f"problem must have the methods fit(weights, previous), losses(model) and penalty(model), got "
            f"{type(problem).__name__} without {' and '.join(missing)}"
        )


def _plain(problem: Problem[Model], weights: Floats | None) -> Model:
    try:
        return problem.fit(weights, None)
    except (TypeError, AttributeError, IndexError) as error:
        if weights is not None:
            raise
        raise TypeError(
            f"{type(problem).__name__}.fit(None, None) failed ({error}): it is called for the plain model "
            "first; let fit take weights=None, or pass initial= or sample_weight=numpy.ones(n)"
        ) from error
