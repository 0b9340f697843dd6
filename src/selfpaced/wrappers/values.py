"""A wrapped regressor as a Problem of the core: weighted (cross-)fits in, residuals of every row out."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fitting import Progress, trusting
from ..folds import Split, n_units, row_keys
from ..robust import ResidualRule, largest_sigma
from .crossfit import cross_fit
from .routing import WeightRoute, fit_weighted, rows_left

__all__ = ["RegressorProblem", "Residuals", "Round"]

Array = NDArray[Any]


def _predict(model: Any, X: Any) -> Array:
    return np.asarray(model.predict(X), dtype=float).reshape(-1)


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals by which rows are assessed.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
        Given less predicted values.
    model : regressor or None
        The model of all rows, where they are in-sample.
    number : int
        How many rounds of weighted fits led here.
    cost : float
        Seconds.
    """

    values: Array
    model: Any = None
    number: int = 0
    cost: float = 0.0


@dataclass(frozen=True, eq=False)
class Round:
    """Weights, the rule that made them, and the residuals that they are assessed by."""

    weights: Array
    residuals: Residuals
    rule: ResidualRule


@dataclass(frozen=True, eq=False)
class RegressorProblem:
    """Weighted fits of a regressor on fixed data; a `Problem` whose model is its `Residuals`.

    Parameters
    ----------
    estimator : regressor
        Cloned for every fit.
    X, y
        Rows and targets.
    route : WeightRoute
        How weights reach the estimator.
    folds : sequence of (train, test)
        Of a cross-fit.
    cross : bool
        Whether residuals come from models that have not seen the row.
    unit : float
        The unit of squared residuals in which the rule sees them.
    groups : array-like or None
        Rows of one group are assessed by others.
    seed : int
        Of the reference.
    trusted : ndarray of bool or None
        Rows that a person has confirmed: they have full weight in every fit.
    """

    estimator: Any
    X: Any
    y: Array
    route: WeightRoute
    folds: Sequence[Split]
    prior: Array | None
    fit_params: Mapping[str, Any]
    n_jobs: int | None
    progress: Progress
    cross: bool = True
    unit: float = 1.0
    groups: Any = None
    seed: int = 0
    trusted: Array | None = None

    @property
    def n_units(self) -> int:
        """Rows that can be held out apart from each other: copies and rows without weight do not count."""
        return n_units(row_keys(self.X), None if self.prior is None else self.prior == 0.0)

    def fit(self, weights: Array | None, previous: Residuals | None) -> Residuals:
        """One round of cross-fitting, or one fit in-sample; ``weights`` contain the sample weights already."""
        number = 1 if previous is None else previous.number + 1
        with self.progress.stage(f"round {number}"), rows_left():
            return self.unseen(weights, number) if self.cross else self.seen(weights, number)

    def unseen(self, weights: Array | None, number: int = 0) -> Residuals:
        """Residuals of every row by a model that was not fitted on it."""
        began = time.perf_counter()
        predicted = cross_fit(
            self.estimator, self.X, self.y, self.folds, _predict,
            weight=weights, route=self.route, counts=self.prior, fit_params=self.fit_params, n_jobs=self.n_jobs,
        )  # fmt: skip
        return Residuals(self.y - predicted, None, number, time.perf_counter() - began)

    def seen(self, weights: Array | None, number: int = 0) -> Residuals:
        """Residuals of the model of all rows."""
        began = time.perf_counter()
        model = self.full_fit(weights)
        return Residuals(self.y - _predict(model, self.X), model, number, time.perf_counter() - began)

    def full_fit(self, weights: Array | None) -> Any:
        """The model of all rows with these weights."""
        return fit_weighted(
            self.estimator, self.X, self.y, weights, self.route, counts=self.prior, fit_params=self.fit_params
        )

    def losses(self, model: Residuals) -> Array:
        """Squared residuals in the rule's unit."""
        return np.asarray(np.square(model.values) / self.unit)

    def penalty(self, model: Residuals) -> float:  # noqa: ARG002
        """The wrapped model keeps its penalty to itself."""
        return 0.0

    def total(self, weights: Array) -> Array:
        """Weights times the user's own, with full weight for what a person has confirmed."""
        weights = trusting(weights, self.trusted)
        return weights if self.prior is None else np.asarray(weights * self.prior)

    def sigma(self, values: Array) -> float:
        """Sigma of the good residuals, never zero."""
        return max(largest_sigma(values, self.prior, dof=1).sigma, self.floor)

    @property
    def floor(self) -> float:
        """The size below which residuals are rounding."""
        eps = np.finfo(self.y.dtype if self.y.dtype.kind == "f" else np.float64).eps
        return 1e2 * float(eps) * math.sqrt(float(np.mean(np.square(self.y, dtype=float)))) + 1e-140
