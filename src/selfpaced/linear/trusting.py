"""The chosen model once more, with full weight for the rows that a person has confirmed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fitting import trusting
from .robust import RegressionFit

__all__ = ["trusting_regression"]

Mask = NDArray[np.bool_]


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
