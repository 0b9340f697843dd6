"""Rounds of a self-paced regressor: residuals of unseen rows, a robust scale, weights, and the choice."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..path import Candidate, weight_histogram
from ..residuals import ResidualRule, residual_scale, shorth, tukey_loss, weighted_quantile
from .common import Progress, Split, WeightRoute, cross_fit, fit_weighted

__all__ = ["RegressorProblem", "Tried", "View", "better", "easy_rows", "record", "sigma_of"]


def _predict(model: Any, X: Any) -> np.ndarray:
    return np.asarray(model.predict(X), dtype=float).reshape(-1)


@dataclass(frozen=True, eq=False)
class View:
    """Residuals by which rows are judged; the model of all rows where they are in-sample."""

    residuals: np.ndarray
    model: Any = None
    cost: float = 0.0


@dataclass(eq=False)
class RegressorProblem:
    """A wrapped regressor as a Problem of the core: a fit is a round of cross-fitting, or one fit in-sample."""

    estimator: Any
    X: Any
    y: np.ndarray
    route: WeightRoute
    folds: Sequence[Split]
    prior: np.ndarray | None
    fit_params: Mapping[str, Any]
    n_jobs: int | None
    progress: Progress
    cross: bool = True
    unit: float = 1.0
    rounds: int = 0

    def fit(self, weights: np.ndarray | None, previous: View | None = None) -> View:  # noqa: ARG002
        """One round; ``weights`` contain the sample weights already."""
        self.rounds += 1
        with self.progress.stage(f"round {self.rounds}"):
            return self.unseen(weights) if self.cross else self.seen(weights)

    def unseen(self, weights: np.ndarray | None) -> View:
        """Residuals of every row by a model that was not fitted on it."""
        began = time.perf_counter()
        predicted = cross_fit(
            self.estimator, self.X, self.y, self.folds, _predict,
            weight=weights, route=self.route, counts=self.prior, fit_params=self.fit_params, n_jobs=self.n_jobs,
        )  # fmt: skip
        return View(self.y - predicted, None, time.perf_counter() - began)

    def seen(self, weights: np.ndarray | None) -> View:
        """Residuals of the model of all rows."""
        began = time.perf_counter()
        model = self.full_fit(weights)
        return View(self.y - _predict(model, self.X), model, time.perf_counter() - began)

    def full_fit(self, weights: np.ndarray | None) -> Any:
        """The model of all rows with these weights."""
        return fit_weighted(
            self.estimator, self.X, self.y, weights, self.route, counts=self.prior, fit_params=self.fit_params
        )

    def losses(self, view: View) -> np.ndarray:
        """Squared residuals in the rule's unit."""
        return np.square(view.residuals) / self.unit

    def penalty(self, view: View) -> float:  # noqa: ARG002
        """The wrapped model keeps its penalty to itself."""
        return 0.0

    def total(self, weights: np.ndarray) -> np.ndarray:
        """Weights times the user's own."""
        return weights if self.prior is None else weights * self.prior

    @property
    def floor(self) -> float:
        """The size below which residuals are rounding."""
        eps = np.finfo(self.y.dtype if self.y.dtype.kind == "f" else np.float64).eps
        return 1e2 * float(eps) * math.sqrt(float(np.mean(np.square(self.y, dtype=float)))) + 1e-300


@dataclass(eq=False)
class Tried:
    """A candidate: weights, the residuals they led to, and the rule and pace that made them."""

    weights: np.ndarray
    view: View
    rule: ResidualRule
    lam: float
    label: str
    cost: float = 0.0
    scores: np.ndarray = field(default_factory=lambda: np.empty(0))


def sigma_of(problem: RegressorProblem, residuals: np.ndarray) -> float:
    """Sigma of the good residuals, never zero."""
    return max(residual_scale(residuals, problem.prior, dof=1).sigma, problem.floor)


def easy_rows(problem: RegressorProblem, residuals: np.ndarray) -> tuple[np.ndarray, float]:
    """The half of the rows to begin with, and their cut: around where most residuals are.

    Outliers on one side shift the plain model as a whole, so its residuals are centred by the shortest half. They also
    make them noisy: a scale may reach over the gap to the outliers here, which half of the rows never do.
    """
    size = np.abs(residuals - shorth(residuals, problem.prior))
    cut = weighted_quantile(size, 0.5, problem.prior)
    return (size <= cut).astype(float), cut


def better(problem: RegressorProblem, plain: np.ndarray, paced: np.ndarray, sigma: float) -> tuple[float, float]:
    """By how much the paced residuals have a smaller Tukey loss, and the standard error of that."""
    gain = tukey_loss(plain, sigma) - tukey_loss(paced, sigma)
    mean = float(np.average(gain, weights=problem.prior))
    return mean, float(np.sqrt(np.average(np.square(gain - mean), weights=problem.prior) / gain.size))


def record(
    problem: RegressorProblem, residuals: np.ndarray, sigma: float, weights: np.ndarray, **fields: Any
) -> Candidate:
    """A candidate for the path: the score is minus the mean Tukey loss at the common sigma."""
    loss = tukey_loss(residuals, sigma)
    mean = float(np.average(loss, weights=problem.prior))
    spread = float(np.sqrt(np.average(np.square(loss - mean), weights=problem.prior) / loss.size))
    return Candidate(
        score=-mean,
        spread=spread,
        mean_weight=float(np.average(weights, weights=problem.prior)),
        histogram=weight_histogram(weights),
        **fields,
    )
