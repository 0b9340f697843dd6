"""Steps of the path that minimise the latent loss directly: outside every fold, and on all rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from ..fitting import Progress
from ..selection import Trial
from ..solver import State
from .folds import FoldLayout
from .minimize import Metric, minimize
from .objective import Codes, Latent, Objective, Vector, loss_of_scores

# Measured by benchmarks/constants.py linear.
STEPS = 10  # per pace and fold: enough to tell candidates apart
ROWS_PER_PARAMETER = 20  # above, fold fits may start from the fit of all rows without knowing what is held out
ROUGH = 2e-4  # gradient entry at which a fold fit ends


@dataclass(frozen=True, eq=False)
class FoldModel:
    """One model per fold, fitted without it, and what they say about what was held out.

    Attributes
    ----------
    latent : Latent
        The loss that was minimised.
    params : sequence of ndarray
        Parameters outside each fold.
    scores : ndarray of shape (n_held_out, n_outputs)
        Raw scores of the held-out rows, fold after fold.
    n_iter : int
        Iterations of the fold that took most.
    """

    latent: Latent
    params: Sequence[Vector]
    scores: Vector
    n_iter: int = 0

    @property
    def mean(self) -> Vector:
        """Mean of the fold fits."""
        return np.asarray(np.mean(self.params, axis=0))


class FoldFits:
    """Fits outside every fold, in one geometry and to one tolerance, and the evidence of what they hold out.

    Parameters
    ----------
    layout : FoldLayout
        The rows.
    options : dict
        ``ridge`` and ``fit_intercept`` of the objectives.
    plain : ndarray or None
        The plain fit of all the data, where fold fits may start from it.
    curvature, metric : Metric
        Geometries of the plain and of the paced fits, shared by all folds.
    unit : float
        Scale of gradient entries.
    n_jobs : int or None
        Folds fitted at the same time, in threads.
    progress : Progress
        Hears of every round of fits.
    """

    def __init__(
        self,
        layout: FoldLayout,
        *,
        options: dict[str, Any],
        plain: Vector | None,
        curvature: Metric,
        metric: Metric,
        unit: float,
        n_jobs: int | None,
        progress: Progress,
    ) -> None:
        self.layout, self.curvature, self.metric = layout, curvature, metric
        self.n_jobs, self.progress = n_jobs, progress
        self.tol = ROUGH * unit
        # A sample of few rows costs nothing beside the full fits that start where it ends: take it further.
        self.steps = 3 * STEPS if layout.n_total > 20 * layout.n else STEPS
        self.objectives = [layout.training(k, **options) for k in range(layout.n_validated)]
        parts = [layout.codes[layout.rows(k)] for k in range(layout.n_validated)]
        self.codes: Codes = np.concatenate(parts)
        self.n_held_out = [len(part) for part in parts]
        self.sample_weight: Vector | None = layout.held_out(layout.sample_weight)
        n, d, k = layout.n, layout.X.shape[1], layout.n_classes
        # With few rows per parameter the full fit still knows the held-out labels: start from nothing.
        self.warm = plain if plain is not None and n > ROWS_PER_PARAMETER * d * (k - 1) else None

    # ------------------------------------------------------------------------------------------------ fits

    def fit(self, latent: Latent, starts: Sequence[Vector], max_iter: int, label: str) -> FoldModel:
        """Fit outside every fold and score what was held out."""
        tasks = range(len(self.objectives))
        with self.progress.stage(f"folds, {label}"):
            if self.n_jobs in (None, 1) or len(tasks) == 1:
                results = [self._fold(k, latent, starts[k], max_iter) for k in tasks]
            else:
                run = Parallel(n_jobs=self.n_jobs, prefer="threads")
                results = run(delayed(self._fold)(k, latent, starts[k], max_iter) for k in tasks)
        params, scores, iterations = zip(*results, strict=True)
        return FoldModel(latent, params, np.concatenate(scores), max(iterations))

    def _fold(self, fold: int, latent: Latent, start: Vector, max_iter: int) -> tuple[Vector, Vector, int]:
        objective = self.objectives[fold].at(latent)
        metric = self.curvature if latent.plain else self.metric
        found = minimize(objective, start, metric=metric, max_iter=max_iter, tol=self.tol)
        return found.x, self.layout.scores(fold, found.x), found.n_iter

    def blank(self) -> FoldModel:
        """No coefficients, and the intercept of the class shares."""
        params, scores = [], []
        for fold, objective in enumerate(self.objectives):
            own = np.zeros((objective.n_outputs, objective.n_features + 1))
            if objective.fit_intercept:
                share = np.bincount(objective.codes, objective.sample_weight, minlength=objective.n_classes)
                logs = np.log(np.maximum(share / share.sum(), 1e-3))
                own[:, -1] = logs[1] - logs[0] if objective.n_outputs == 1 else logs - logs.mean()
            params.append(own.ravel())
            scores.append(np.full((self.n_held_out[fold], objective.n_outputs), own[:, -1]))
        return FoldModel(Latent(), params, np.concatenate(scores))

    @cached_property
    def plain(self) -> Trial:
        """The plain fold fits, made once."""
        began, n_folds = time.perf_counter(), len(self.objectives)
        zero = np.zeros(self.objectives[0].size)
        starts = [zero if self.warm is None else self.warm] * n_folds
        model = self.fit(Latent(), starts, max_iter=25 if self.warm is None else 12, label="plain")
        return self.trial(np.inf, "plain", model, None, time.perf_counter() - began)

    def start(self, latent: Latent) -> State[FoldModel]:
        """Where the path begins: at zero, from where the first step is a difference of class means.

        Not at the plain fit, which has already bent towards the wrong labels, unless the rule gives no weight to
        anything at zero.
        """
        k = self.layout.n_classes
        weight = latent.weight(np.full(k, np.log(k)), np.arange(k))
        model = self.blank() if weight.min() > 0.05 else self.plain.fit
        return State(model, loss_of_scores(model.scores, self.codes))

    # -------------------------------------------------------------------------------------------- evidence

    @cached_property
    def worth(self) -> Vector:
        """What a right prediction is worth: the mean of accuracy and balanced accuracy."""
        share = np.bincount(self.codes, self.sample_weight, minlength=self.layout.n_classes)
        share = share / share.sum()
        return np.asarray(0.5 + 0.5 / (len(share) * np.maximum(share, 1e-12))[self.codes])

    def trial(self, lam: float, label: str, model: FoldModel, weight: Vector | None, cost: float) -> Trial:
        """A candidate, scored by the noisy labels that were held out."""
        right = predicted(model.scores) == self.codes
        return Trial(lam, label, right * self.worth, weight, cost, model)


@dataclass(frozen=True, eq=False)
class FoldDescent:
    """The step of the path outside every fold: the latent loss is minimised from where the pace before ended."""

    fits: FoldFits
    latents: Mapping[float, Latent]  # of a pace, which may be wider for some classes
    max_iter: int

    def __call__(self, lam: float, state: State[FoldModel]) -> State[FoldModel]:
        """Fold fits at one pace, and the log-losses of what they had not seen."""
        latent, codes = self.latents[lam], self.fits.codes
        model = self.fits.fit(latent, state.model.params, self.max_iter, pace_label(latent, lam))
        losses = loss_of_scores(model.scores, codes)
        return State(model, losses, latent.weight(losses, codes), model.n_iter)


@dataclass(frozen=True, eq=False)
class FullModel:
    """Parameters of all rows, their scores, and how they were found."""

    params: Vector
    scores: Vector
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class FullDescent:
    """The step on all rows: a minimum of the latent loss."""

    objective: Objective
    metric: Metric
    latent: Latent
    max_iter: int
    tol: float

    def __call__(self, lam: float, state: State[FullModel]) -> State[FullModel]:  # noqa: ARG002
        """The model at one pace, which the latent loss already stands for."""
        objective, codes = self.objective.at(self.latent), self.objective.codes
        found = minimize(objective, state.model.params, metric=self.metric, max_iter=self.max_iter, tol=self.tol)
        scores = objective.scores(found.x)
        losses = loss_of_scores(scores, codes)
        model = FullModel(found.x, scores, found.n_iter, found.converged)
        return State(model, losses, self.latent.weight(losses, codes), found.n_iter, found.value * objective.total)


def predicted(scores: Vector) -> Codes:
    """Class with the largest score."""
    return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)


def pace_label(latent: Latent, lam: float) -> str:
    """How a pace is called in tables and sentences."""
    return "plain" if latent.regularizer is None else f"{latent.regularizer.name} lam={lam:.3g}"
