"""Steps of the path that minimise the latent loss directly: outside every fold, and on all rows."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from ..fitting import Progress
from ..selection import Trial, effective_size
from ..solver import State
from .folds import FoldLayout
from .minimize import Metric, Minimum, Rows, minimize, minimize_all
from .objective import Codes, Latent, Objective, Vector, loss_of_scores
from .stack import Stack

# Measured by benchmarks/constants.py linear.
STEPS = 8  # per pace and fold: enough to tell candidates apart
ROWS_PER_PARAMETER = 20  # above, fold fits may start from the fit of all rows without knowing what is held out
ROUGH = 2e-4  # gradient entry at which a fold fit ends

ALIKE = 0.1  # a choice: correlation of the errors of equal rows


@dataclass(frozen=True, eq=False)
class Geometry:
    """In which geometry and unit fits are made, under any penalty; of many rows, those of a sample."""

    rows: Objective

    def curvature(self, ridge: float) -> Metric:
        """Of plain fits."""
        return self.rows.penalised(ridge).curvature()

    def metric(self, ridge: float) -> Metric:
        """Of paced fits."""
        return self.rows.penalised(ridge).standardized()

    @cached_property
    def unit(self) -> float:
        """Of gradient entries."""
        return self.rows.unit


@dataclass(frozen=True, eq=False)
class FoldModel:
    """One model per fold, fitted without it, and what they say about what was held out.

    Attributes
    ----------
    latent : Latent
        The loss that was minimised.
    C : float
        Inverse strength of the penalty.
    params : sequence of ndarray
        Parameters outside each fold, deal after deal.
    by_deal : ndarray of shape (n_deals, n_held_out, n_outputs)
        Raw scores of the held-out rows, in every deal.
    n_iter : int
        Iterations of the fold that took most.
    """

    latent: Latent
    C: float
    params: Sequence[Vector]
    by_deal: Vector
    n_iter: int = 0

    @property
    def scores(self) -> Vector:
        """Raw scores of the held-out rows, fold after fold: the mean over the deals."""
        return np.asarray(self.by_deal[0] if len(self.by_deal) == 1 else self.by_deal.mean(axis=0))

    @property
    def mean(self) -> Vector:
        """Mean of the fold fits."""
        return np.asarray(np.mean(self.params, axis=0))


@dataclass(frozen=True)
class Penalty:
    """Inverse strength of the penalty, and the total weight of the rows that it stands beside."""

    C: float
    total: float

    @property
    def ridge(self) -> float:
        """Weight of half the squared norm beside the mean loss."""
        return 1.0 / (self.C * self.total)


class FoldFits:
    """Fits outside every fold, in one geometry and to one tolerance, and the evidence of what they hold out.

    Parameters
    ----------
    layout : FoldLayout
        The rows.
    penalty : Penalty
        Of the objectives.
    fit_intercept : bool
        Whether the intercepts are free.
    plain : ndarray or None
        The plain fit of all the data, where fold fits may start from it.
    geometry : Geometry
        Shared by all folds.
    n_jobs : int or None
        Folds fitted at the same time, in threads.
    progress : Progress
        Hears of every round of fits.
    """

    def __init__(
        self,
        layout: FoldLayout,
        *,
        penalty: Penalty,
        fit_intercept: bool,
        plain: Vector | None,
        geometry: Geometry,
        n_jobs: int | None,
        progress: Progress,
    ) -> None:
        self.layout, self.penalty, self.geometry = layout, penalty, geometry
        self.n_jobs, self.progress = n_jobs, progress
        self.tol = ROUGH * geometry.unit
        # A sample of few rows costs nothing beside the full fits that start where it ends: take it further.
        self.steps = 3 * STEPS if layout.n_total > 20 * layout.n else STEPS
        options = {"ridge": penalty.ridge, "fit_intercept": fit_intercept}
        self.objectives = [layout.training(k, **options) for k in range(layout.n_validated)]
        self.codes: Codes = layout.held_out(layout.codes)
        self.sample_weight: Vector | None = layout.held_out(layout.sample_weight)
        n, d, k = layout.n, layout.X.shape[1], layout.n_classes
        # With few rows per parameter the full fit still knows the held-out labels: start from nothing.
        warm = plain if plain is not None and n > ROWS_PER_PARAMETER * d * (k - 1) else None
        start = np.zeros(self.objectives[0].size) if warm is None else warm
        self.starts: Sequence[Vector] = [start] * (layout.n_validated * len(layout.deals))
        self.plain_steps = 25 if warm is None else 12

    def penalised(self, C: float, starts: Sequence[Vector]) -> FoldFits:
        """The same folds under another penalty, whose plain fits start elsewhere."""
        other = copy.copy(self)
        for known in ("plain", "curvature", "metric"):
            other.__dict__.pop(known, None)
        other.penalty = replace(self.penalty, C=C)
        other.objectives = [objective.penalised(other.penalty.ridge) for objective in self.objectives]
        other.starts, other.plain_steps = starts, 25
        return other

    @cached_property
    def curvature(self) -> Metric:
        """Geometry of the plain fits."""
        return self.geometry.curvature(self.penalty.ridge)

    @cached_property
    def metric(self) -> Metric:
        """Geometry of the paced fits."""
        return self.geometry.metric(self.penalty.ridge)

    # ------------------------------------------------------------------------------------------------ fits

    def fit(self, latent: Latent, starts: Sequence[Vector], max_iter: int, label: str) -> FoldModel:
        """Fit outside every fold and score what was held out."""
        stack = replace(self.stack, ridge=self.penalty.ridge, latent=latent)
        metric = self.curvature if latent.plain else self.metric
        parts = np.array_split(np.arange(len(starts)), max(1, min(self.n_jobs or 1, len(starts))))

        def side_by_side(part: Rows) -> list[Minimum]:
            own, begin = replace(stack, weight=stack.weight[part]), np.stack([starts[k] for k in part])
            return minimize_all(own, begin, metric=metric, max_iter=max_iter, tol=self.tol)

        with self.progress.stage(f"folds, {label}"):
            if len(parts) == 1:
                found = side_by_side(parts[0])
            else:
                run = Parallel(n_jobs=len(parts), prefer="threads")
                found = [one for part in run(delayed(side_by_side)(part) for part in parts) for one in part]
        params = [one.x for one in found]
        scores = self.layout.held_out_scores(params)
        return FoldModel(latent, self.penalty.C, params, scores, max(one.n_iter for one in found))

    @cached_property
    def stack(self) -> Stack:
        """The plain objectives of all folds."""
        layout = self.layout
        places = [(fold, deal) for deal in range(len(layout.deals)) for fold in range(layout.n_validated)]
        weight = np.stack([layout.outside(fold, deal) for fold, deal in places])
        options = self.objectives[0]
        return Stack(
            layout.X, layout.codes, layout.n_classes, weight, options.ridge, options.fit_intercept, options.latent
        )

    def blank(self) -> FoldModel:
        """No coefficients, and the intercept of the class shares."""
        params, shape = [], (self.objectives[0].n_outputs, self.objectives[0].n_features + 1)
        for weight in self.stack.weight:
            own = np.zeros(shape)
            if self.stack.fit_intercept:
                share = np.bincount(self.layout.codes, weight, minlength=self.layout.n_classes)
                logs = np.log(np.maximum(share / share.sum(), 1e-3))
                own[:, -1] = logs[1] - logs[0] if shape[0] == 1 else logs - logs.mean()
            params.append(own.ravel())
        return FoldModel(Latent(), self.penalty.C, params, self.layout.held_out_scores(params))

    @cached_property
    def plain(self) -> Trial:
        """The plain fold fits, made once."""
        began = time.perf_counter()
        model = self.fit(Latent(), self.starts, max_iter=self.plain_steps, label="plain")
        return self.trial(np.inf, "plain", model, None, time.perf_counter() - began)

    def start(self, latent: Latent, model: FoldModel | None = None) -> State[FoldModel]:
        """Where a path begins: at given fits, or at zero, from where the first step is a difference of class means.

        Not at the plain fit of a weak penalty, which has already bent towards the wrong labels, unless the rule gives
        no weight to anything at zero.
        """
        if model is None:
            k = self.layout.n_classes
            weight = latent.weight(np.full(k, np.log(k)), np.arange(k))
            model = self.blank() if weight.min() > 0.05 else self.plain.fit
        return State(model, loss_of_scores(model.scores, self.codes))

    # -------------------------------------------------------------------------------------------- evidence

    @cached_property
    def relative_weight(self) -> Vector | None:
        """Weights of the held-out rows as evidence about a model: equal rows err alike, so copies count less and less.

        On a table of few distinct rows every bend that the model misses would otherwise be beyond doubt, and pass for
        wrong labels.  Shares of labels among equal rows stay as they are.
        """
        copies, weight = self.layout.held_out(self.layout.copies), self.sample_weight
        if weight is None or copies is None:
            return weight
        return np.asarray(weight / (1 + ALIKE * (copies - 1)))  # Kish's design effect of a cluster of copies

    @cached_property
    def evidence(self) -> float:
        """How many independent rows the held-out ones are worth."""
        weight, own = self.sample_weight, self.relative_weight
        size = effective_size(weight, len(self.codes))
        return size if weight is None or own is None else size * float(own.sum() / weight.sum())

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
    """Parameters of all rows, and how they were found."""

    params: Vector
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class FullDescent:
    """The step on all rows: a minimum of the latent loss, shown by the losses of rows that stand for all."""

    objective: Any
    evidence: Objective
    metric: Metric
    latent: Latent
    max_iter: int
    tol: float

    def __call__(self, lam: float, state: State[FullModel]) -> State[FullModel]:  # noqa: ARG002
        """The model at one pace, which the latent loss already stands for."""
        objective, start = self.objective, state.model.params
        found = minimize(objective, start, metric=self.metric, max_iter=self.max_iter, tol=self.tol)
        losses = self.evidence.losses(found.x)
        weights = self.latent.weight(losses, self.evidence.codes)
        model = FullModel(found.x, found.n_iter, found.converged)
        return State(model, losses, weights, found.n_iter, found.value * objective.total)


def predicted(scores: Vector) -> Codes:
    """Class with the largest score."""
    return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)


def pace_label(latent: Latent, lam: float) -> str:
    """How a pace is called in tables and sentences."""
    return "plain" if latent.regularizer is None else f"{latent.regularizer.name} lam={lam:.3g}"
