"""Algorithm 1 of the paper: the walk whose step alternates between weights and weighted fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..pacing import Pacing
from ..regularizers import get
from .walking import Callback, DeadEnd, Floats, Model, Solution, State, bound, prior_of, walk


class Problem(Protocol[Model]):
    """A learning problem: a weighted fit, and the losses of a model. It never sees lam."""

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


def latent_objective(
    problem: Problem[Model], regularizer: Any, lam: float, model: Model, sample_weight: Any = None
) -> float:
    """Return sum phi(lam, loss) + penalty, which the alternation at this lam minimises."""
    losses = np.asarray(problem.losses(model))
    return Alternation(problem, regularizer, prior_of(sample_weight, losses)).objective(lam, model, losses)


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


__all__ = ["Alternation", "Problem", "alternate", "latent_objective"]
