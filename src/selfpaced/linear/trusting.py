"""The chosen model once more, with full weight for the rows that a person has confirmed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fitting import trusting
from .minimize import minimize
from .objective import Vector
from .robust import RegressionFit
from .training import LogisticFit, Trainer

__all__ = ["trusting_logistic", "trusting_regression"]

Mask = NDArray[np.bool_]


def trusting_logistic(trainer: Trainer, fit: LogisticFit, trusted: Mask) -> LogisticFit:
    """A logistic fit, moved as far as confirmed rows of full weight move a fit with its weights.

    The model may be an average over folds and no minimum of anything, so it is moved, and not fitted again.
    """
    if fit.latent.plain:
        return fit
    trainer = trainer.at(fit.C)
    objective = trainer.in_memory
    prior, weight = objective.sample_weight, fit.latent.weight(objective.losses(fit.params), objective.codes)

    def weighted(weights: Vector) -> Vector:
        total = weights if prior is None else weights * prior
        tol = trainer.settings.tol * trainer.geometry.unit
        steps = trainer.settings.max_iter
        return minimize(objective.weighted(total), fit.params, metric=trainer.metric, max_iter=steps, tol=tol).x

    params = fit.params + weighted(trusting(weight, trusted)) - weighted(weight)
    return replace(fit, params=params)


def trusting_regression(fit: RegressionFit, trusted: Mask) -> RegressionFit:
    """A linear fit with the weights of the chosen one, and full weight for confirmed rows."""
    if fit.trial.plain:
        return fit
    weights: Any = trusting(fit.trial.weight, trusted)
    b = fit.squares.solve(weights)
    attempt = replace(fit.best, b=b, residuals=fit.squares.residuals(b))
    trials = list(fit.trials)
    trials[fit.decision.index] = replace(fit.trial, weight=weights, fit=attempt)
    return replace(fit, trials=tuple(trials))
