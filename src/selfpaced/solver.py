"""Algorithm 1 of the paper: alternate between weights and model while the pace opens."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .pacing import Pacing, stop_reason
from .regularizers import GroupRegularizer, get

Model = TypeVar("Model")
Floats = NDArray[np.floating[Any]]
logger = logging.getLogger(__name__)


class Problem(Protocol[Model]):
    """What is to be learned: a weighted fit and the losses of a model; lam is never seen."""

    def fit(self, weights: Any, previous: Model | None) -> Model:
        """The model that minimises sum(weights * losses) + penalty, warm-started from ``previous``.

        ``weights`` is None for the plain, unweighted first fit, ``previous`` is None where there is no model yet.
        """
        ...

    def losses(self, model: Model) -> Any:
        """The loss >= 0 of every sample (an array of any shape)."""
        ...

    def penalty(self, model: Model) -> float:
        """The model's own regularization term, 0 if it has none."""
        ...


@dataclass(frozen=True)
class Stage:
    """One pace, alternated to convergence.

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
    share : float
        Share of samples with at least half the maximal weight.
    rise : float
        The largest relative rise of the latent objective between two fits: 0 if every fit did its duty.
    """

    lam: float
    inner: int
    objective: float
    mean_weight: float
    share: float
    rise: float = 0.0


@dataclass(frozen=True, eq=False)
class Solution(Generic[Model]):
    """Where the alternation ended: the model, its weights and losses, every stage, and why it stopped."""

    model: Model
    weights: Floats
    losses: Floats
    stages: tuple[Stage, ...]
    status: str
    interrupted: bool = False

    @property
    def lam(self) -> float:
        """The last pace; ``inf`` if not even one stage was completed."""
        return self.stages[-1].lam if self.stages else math.inf


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
    callback: Callable[[Stage, Solution[Model]], Any] | None = None,
    resume: Solution[Model] | None = None,
) -> Solution[Model]:
    """Self-paced learning (Algorithm 1 of Fan et al., 2017).

    Parameters
    ----------
    problem : Problem
        Anything with ``fit(weights, previous)``, ``losses(model)`` and ``penalty(model)``.
    regularizer : name or Regularizer
        A group rule needs ``groups``.
    pacing : Pacing
        Start, growth and stop of lam.
    inner : int
        The largest number of weighted fits per stage.
    tolerance : float
        A stage ends when the latent objective falls by less than this share.
    sample_weight : array-like, optional
        Multiplies the weights; repeating a sample equals weighting it.
    groups : array-like, optional
        Group labels for the rules that need them.
    initial : optional
        A model to start from; a plain fit by default.
    callback : callable, optional
        Called as ``callback(stage, solution)`` after every stage; a true answer ends the path.
    resume : Solution, optional
        Continue where this one ended, to the same result as an uninterrupted run.

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
    rule = _bound(get(regularizer), groups)
    if int(inner) != inner or inner < 1:
        raise ValueError(f"inner must be an integer >= 1, got {inner!r}")
    state = resume
    try:
        state = state if state is not None else _initial(problem, initial, sample_weight)
        prior = _prior(sample_weight, state.losses)
        while True:
            lam = _next_lam(state, rule, pacing, prior)
            if lam is None:
                return _ended(state, "the pace came to its end")
            state, reason = _stage(problem, rule, lam, state, prior, inner, tolerance)
            if reason is None and callback is not None and callback(state.stages[-1], state):
                reason = "the callback ended the path"
            if reason is None:
                reason = stop_reason(pacing.stop, state.stages, state.losses, rule)
            if reason is not None:
                return _ended(state, reason)
    except KeyboardInterrupt:
        if state is None:
            raise  # there is no model yet
        return replace(_ended(state, "interrupted from outside"), interrupted=True)


def latent_objective(
    problem: Problem[Model], regularizer: Any, lam: float, model: Model, sample_weight: Any = None
) -> float:
    """sum phi(lam, loss) + penalty: what the alternation at this lam is really minimising."""
    losses = np.asarray(problem.losses(model))
    return _objective(problem, regularizer, lam, model, losses, _prior(sample_weight, losses))


def _bound(rule: Any, groups: ArrayLike | None) -> Any:
    if isinstance(rule, GroupRegularizer):
        if groups is None:
            raise ValueError(f"the rule {rule.name!r} needs groups: pass groups=, one label per sample")
        return rule.bind(groups)
    if groups is not None:
        raise ValueError(f"the rule {rule.name!r} is elementwise and takes no groups")
    return rule


def _initial(problem: Problem[Model], initial: Model | None, sample_weight: Any) -> Solution[Model]:
    if initial is None:
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        try:
            initial = problem.fit(weights, None)
        except (TypeError, AttributeError, IndexError) as error:
            if weights is not None:
                raise
            raise TypeError(
                f"{type(problem).__name__}.fit(None, None) failed ({error}): it is called for the plain model "
                "first; let fit take weights=None, or pass initial= or sample_weight=numpy.ones(n)"
            ) from error
    losses = np.asarray(problem.losses(initial))
    return Solution(initial, np.ones_like(losses), losses, (), "not started")


def _prior(sample_weight: ArrayLike | None, losses: Floats) -> Floats | None:
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


def _next_lam(state: Solution[Any], rule: Any, pacing: Pacing, prior: Floats | None) -> float | None:
    if not state.stages:
        return pacing.first(state.losses, rule, prior)
    return pacing.advance(len(state.stages), state.lam, state.losses, rule, prior)


def _stage(
    problem: Problem[Model],
    rule: Any,
    lam: float,
    state: Solution[Model],
    prior: Floats | None,
    inner: int,
    tolerance: float,
) -> tuple[Solution[Model], str | None]:
    model, losses = state.model, state.losses
    objective = _objective(problem, rule, lam, model, losses, prior)
    rise = 0.0
    for fits in range(1, inner + 1):  # noqa: B007
        weights = rule.weight(losses, lam)
        total = weights if prior is None else weights * prior
        if not total.sum() > 0:
            kept = "the model of the stage before is kept" if state.stages else "the initial model is kept"
            return (
                state,
                f"at lam = {lam:.4g} every weight is zero (start at a larger fraction or set a floor); {kept}",
            )
        model = problem.fit(total, model)
        losses = np.asarray(problem.losses(model))
        before, objective = objective, _objective(problem, rule, lam, model, losses, prior)
        scale = max(abs(before), abs(objective), 1e-300)
        rise = max(rise, (objective - before) / scale)
        if not before - objective > tolerance * scale:
            break
    weights = rule.weight(losses, lam)
    relative = rule.relative_weight(losses, lam)
    stage = Stage(
        lam=float(lam),
        inner=fits,
        objective=objective,
        mean_weight=float(np.average(relative, weights=prior)),
        share=float(np.average(relative >= 0.5, weights=prior)),
        rise=rise if rise > 1e-10 else 0.0,
    )
    logger.info("stage %d: lam %.4g, %d fits, mean weight %.3f", len(state.stages), lam, fits, stage.mean_weight)
    return Solution(model, weights, losses, (*state.stages, stage), "running"), None


def _objective(
    problem: Problem[Model], rule: Any, lam: float, model: Model, losses: Floats, prior: Floats | None
) -> float:
    latent = rule.latent(losses, lam)
    if prior is not None:
        if latent.shape != prior.shape:
            raise ValueError("sample_weight cannot be combined with a group rule: its penalty is per group")
        latent = np.where(prior > 0, latent * prior, 0.0)
    return float(np.sum(latent, dtype=np.float64)) + float(problem.penalty(model))


def _ended(state: Solution[Model], reason: str) -> Solution[Model]:
    count = len(state.stages)
    head = f"Stopped after {count} stage{'s' * (count != 1)}"
    head += f" at lam = {state.lam:.4g}: {reason}." if count else f": {reason}."
    worst = max((stage.rise for stage in state.stages), default=0.0)
    if worst > 0:
        where = next(index for index, stage in enumerate(state.stages) if stage.rise == worst)
        head += (
            f" The latent objective rose by {worst:.2g} of itself in stage {where}: the weighted fits are "
            "not exact, or it is not convex."
        )
    return replace(state, status=head)


__all__ = ["Problem", "Solution", "Stage", "alternate", "latent_objective"]
