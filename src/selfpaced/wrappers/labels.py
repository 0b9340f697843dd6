"""A wrapped classifier as a Problem of the core: weighted (cross-)fits in, losses of every row out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from ..fitting import Progress
from ..folds import Split, n_units, row_keys
from ..label_noise import NoiseModel, fit_channel
from .crossfit import cross_fit
from .outputs import as_logits, read_output, rival_loss
from .routing import WeightRoute, fit_weighted, row_params, rows_left, take_rows

__all__ = ["ClassifierProblem", "Reading", "scaled_channel", "scaled_to"]

Array = NDArray[Any]
# a choice, made on development data.
KEPT_PER_CLASS = 3  # the easiest rows of a class that would vanish from a fit
HEAVY = 0.25  # noise rate above which the plain models' own view is no longer worth averaging in

LN2 = float(np.log(2.0))  # theory: the loss of a guess between two classes


@dataclass(frozen=True, eq=False)
class Reading:
    """What weighted models say about the training rows.

    Attributes
    ----------
    clean : ndarray of shape (n_samples, n_classes)
        Calibrated logits of the clean label, which losses are taken from: of unseen rows where cross-fitted (averaged
        with those of the plain models under moderate noise), else in-sample.
    unseen : ndarray of shape (n_samples, n_classes) or None
        Raw logits of every row by models not fitted on it (their average over the repeats).
    correct : ndarray of shape (n_samples,) or None
        Share of those models whose prediction is the given label.
    channel : NoiseModel
        The calibration of the raw logits.
    losses : ndarray of shape (n_samples,)
        Losses of the given labels.
    model : classifier or None
        The model fitted on all rows, where losses are in-sample.
    number : int
        How many rounds of weighted fits led here.
    cost : float
        Seconds.
    """

    clean: Array
    unseen: Array | None
    correct: Array | None
    channel: NoiseModel
    losses: Array
    model: Any = None
    number: int = 0
    cost: float = 0.0


def scaled_channel(channel: NoiseModel, logits: Array, codes: Array, weight: Any = None) -> NoiseModel:
    """Refit only the scale of a channel, for the logits of another model.

    Weights that were derived from a first round of predictions have seen every label, so a later round agrees with
    the labels more than it should: its own noise rate would come out too small. The transition matrix of
    the first round is kept, and the bias is dropped, so that predicted labels stay the model's own.
    """
    centred = logits - logits.mean(axis=1, keepdims=True)
    mass = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=float)
    spread = float(np.average(np.abs(centred).mean(axis=1), weights=mass))
    if spread == 0.0:
        return replace(channel, bias=np.zeros_like(channel.bias))
    seen = channel.transition[:, codes].T

    def cost(log_scale: float) -> float:
        z = np.exp(log_scale) / spread * centred
        p = np.exp(z - z.max(axis=1, keepdims=True))
        q = (p * seen).sum(axis=1) / p.sum(axis=1)
        return float(-(mass @ np.log(np.maximum(q, 1e-12))) + 0.5 * (log_scale - LN2) ** 2)

    best = minimize_scalar(cost, bounds=(-4.0, 5.0), method="bounded", options={"xatol": 1e-3})
    return replace(channel, scale=float(np.exp(best.x)) / spread, bias=np.zeros_like(channel.bias))


def scaled_to(logits: Array, target: Array, weight: Any = None) -> float:
    """The factor on logits at which their probabilities come nearest to these, in cross-entropy."""
    centred = logits - logits.mean(axis=1, keepdims=True)
    spread = float(np.average(np.abs(centred).mean(axis=1), weights=weight))
    if spread == 0.0:
        return 1.0

    def cost(log_scale: float) -> float:
        z = np.exp(log_scale) / spread * centred
        return float(np.average(np.logaddexp.reduce(z, axis=1) - (target * z).sum(axis=1), weights=weight))

    best = minimize_scalar(cost, bounds=(-4.0, 5.0), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(best.x)) / spread


@dataclass(frozen=True, eq=False)
class ClassifierProblem:
    """Weighted fits of a classifier on fixed data; a `Problem` whose model is a `Reading`.

    Parameters
    ----------
    estimator : classifier
        Cloned for every fit.
    X, y, codes, labels
        Rows, labels as the estimator sees them, their codes, and the sorted distinct labels.
    kind : str
        The output read from models.
    route : WeightRoute
        How weights reach the estimator.
    repeats : sequence of folds
        One or more complete sets of folds; predictions are averaged over them.
    balanced : bool
        Whether losses are measured in a unit of their class.
    cross : bool
        Whether losses come from models that have not seen the row.
    first : NoiseModel or None
        The calibration of the plain models, which all later ones rest on.
    before : ndarray or None
        Clean logits of the plain models, where they are averaged with later ones.
    trusted : ndarray of bool or None
        Rows that a person has confirmed: the rule sees no loss of theirs.
    """

    estimator: Any
    X: Any
    y: Array
    codes: Array
    labels: Array
    kind: str
    route: WeightRoute
    repeats: Sequence[Sequence[Split]]
    prior: Array | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None
    progress: Progress | None = None
    balanced: bool = True
    cross: bool = True
    first: NoiseModel | None = None
    before: Array | None = None
    trusted: Array | None = None

    def stage(self, name: str) -> AbstractContextManager[None]:
        """A stage of the fit, for whoever listens."""
        return nullcontext() if self.progress is None else self.progress.stage(name)

    @property
    def n_units(self) -> int:
        """Rows that can be held out apart from each other: copies and rows without weight do not count."""
        return n_units(row_keys(self.X), None if self.prior is None else self.prior == 0.0)

    # ------------------------------------------------------------------------------------ the plain models

    def plain(self, seen: Array, model: Any) -> Reading:
        """The reading of unweighted models; `seen` is the output of the plain `model` on its own rows."""
        began = time.perf_counter()
        unseen, correct = self._unseen(self.prior)
        channel = fit_channel(unseen, self.codes, sample_weight=self.prior)
        clean = _clean(as_logits(seen, self.kind), channel)
        return Reading(clean, unseen, correct, channel, self._losses(clean), model, 0, time.perf_counter() - began)

    def settled(self, plain: Reading, cross: bool) -> tuple[ClassifierProblem, Reading]:
        """The problem and its plain reading, once it is decided whether losses are cross-fitted."""
        if not cross:
            return replace(self, cross=False, first=plain.channel), plain
        clean = _clean(plain.unseen, plain.channel)
        before = clean if plain.channel.noise_rate < HEAVY else None
        problem = replace(self, cross=True, first=plain.channel, before=before)
        return problem, replace(plain, clean=clean, losses=self._losses(clean))

    def subset(self, rows: Array) -> ClassifierProblem:
        """The same problem on some rows, with in-sample losses."""
        cut = row_params(self.fit_params, len(self.codes), rows)
        prior, trusted = (None if part is None else part[rows] for part in (self.prior, self.trusted))
        return replace(
            self, X=take_rows(self.X, rows), y=self.y[rows], codes=self.codes[rows], prior=prior, fit_params=cut,
            repeats=(), progress=None, cross=False, trusted=trusted,
        )  # fmt: skip

    def initial(self) -> Reading:
        """The plain reading of a subset: an unweighted fit and its in-sample losses."""
        return self._in_sample(np.ones(len(self.codes)) if self.prior is None else self.prior, 0)

    # ----------------------------------------------------------------------------------- a Problem of the core

    def fit(self, weights: Any, previous: Reading | None) -> Reading:
        """Models fitted with these weights, seen through their predictions."""
        weights = self.with_every_class(np.asarray(weights, dtype=float), previous)
        number = 1 if previous is None else previous.number + 1
        with self.stage(f"{'cross-fitted' if self.cross else 'in-sample'} round {number}"), rows_left():
            return self._cross_fitted(weights, number) if self.cross else self._in_sample(weights, number)

    def losses(self, model: Reading) -> Array:
        """Loss of every row, in the unit of its class where classes are balanced."""
        losses = np.asarray(model.losses / self.class_units(model.losses)[self.codes])
        return losses if self.trusted is None else np.where(self.trusted, 0.0, losses)

    def penalty(self, model: Reading) -> float:  # noqa: ARG002
        """The wrapped estimator keeps its penalty to itself."""
        return 0.0

    def _cross_fitted(self, weights: Array, number: int) -> Reading:
        began = time.perf_counter()
        unseen, correct = self._unseen(weights)
        channel = self._rescaled(unseen)
        clean = _clean(unseen, channel)
        if self.before is not None:
            clean = 0.5 * (clean + self.before)
        cost = time.perf_counter() - began
        return Reading(clean, unseen, correct, channel, self._losses(clean), None, number, cost)

    def _in_sample(self, weights: Array, number: int) -> Reading:
        began = time.perf_counter()
        model = self.full_fit(weights)
        logits = as_logits(self.read()(model, self.X), self.kind)
        channel = self._rescaled(logits)
        clean = _clean(logits, channel)
        cost = time.perf_counter() - began
        return Reading(clean, None, None, channel, self._losses(clean), model, number, cost)

    # ------------------------------------------------------------------------------------------------- models

    def full_fit(self, weight: Array | None) -> Any:
        """The estimator fitted on all rows."""
        return fit_weighted(
            self.estimator, self.X, self.y, weight, self.route, counts=self.prior, fit_params=self.fit_params
        )

    def read(self) -> Callable[[Any, Any], Array]:
        """The function that reads a fitted model's output."""
        return partial(read_output, kind=self.kind, labels=self.labels)

    def _rescaled(self, logits: Array) -> NoiseModel:
        if self.first is None:
            raise RuntimeError("the plain reading has to come first")
        return scaled_channel(self.first, logits, self.codes, self.prior)

    def _unseen(self, weight: Array | None) -> tuple[Array, Array]:
        total, tested = np.zeros((len(self.codes), self.labels.size)), np.zeros(len(self.codes))
        correct = np.zeros(len(self.codes))
        for folds in self.repeats:
            out = cross_fit(
                self.estimator, self.X, self.y, folds, self.read(), weight=weight, route=self.route,
                counts=self.prior, fit_params=self.fit_params, n_jobs=self.n_jobs,
            )  # fmt: skip
            rows = np.flatnonzero(~np.isnan(out[:, 0]))
            total[rows] += out[rows]
            correct[rows] += out[rows].argmax(axis=1) == self.codes[rows]
            tested[rows] += 1.0
        return self.averaged(total, correct, tested)

    def averaged(self, total: Array, correct: Array, tested: Array) -> tuple[Array, Array]:
        """Average logits and share of correct predictions, from their sums over the models that tested a row."""
        never = tested == 0.0  # the only row of its class: nothing speaks against its label
        total[never, self.codes[never]] = 1.0
        correct[never] = 1.0
        share = np.maximum(tested, 1.0)
        return as_logits(total / share[:, None], self.kind), correct / share

    # --------------------------------------------------------------------------------------- losses and scores

    def _losses(self, clean: Array) -> Array:
        return rival_loss(NoiseModel.identity(self.labels.size).proba(clean), self.codes)

    def class_units(self, losses: Array) -> Array:
        """The unit of every class: at least half the rows of every class stay within log 2 of it."""
        medians = np.zeros(self.labels.size)
        if self.balanced:
            mass = np.ones(len(losses)) if self.prior is None else self.prior
            for c in np.unique(self.codes[mass > 0.0]):
                rows = (self.codes == c) & (mass > 0.0)
                medians[c] = np.quantile(losses[rows], 0.5, method="inverted_cdf", weights=mass[rows])
        return np.maximum(medians / LN2, 1.0)

    def score(self, correct: Array | None) -> Array | None:
        """Per row, what averages (by sample weights) to the mean of accuracy and balanced accuracy on given labels."""
        if correct is None:
            return None
        mass = np.ones(len(self.codes)) if self.prior is None else self.prior
        per_class = np.bincount(self.codes, mass, minlength=self.labels.size)
        lift = mass.sum() / (self.labels.size * np.maximum(per_class, 1e-300))
        return np.asarray(correct * (0.5 + 0.5 * lift[self.codes]))

    def with_every_class(self, weights: Array, previous: Reading | None) -> Array:
        """No class may vanish from a fit: its easiest rows come back with full weight."""
        mass = np.bincount(self.codes, weights, minlength=self.labels.size)
        starved = np.flatnonzero(mass < 1e-3 * max(weights.max(initial=0.0), 1e-300))
        if not starved.size:
            return weights
        weights = weights.copy()
        full = np.ones_like(weights) if self.prior is None else self.prior
        for c in starved:
            rows = np.flatnonzero((self.codes == c) & (full > 0.0))
            if previous is not None:  # as many losses, not rows: copies come along
                easy = np.unique(previous.losses[rows])[:KEPT_PER_CLASS]
                rows = rows[previous.losses[rows] <= easy[-1]]
            weights[rows] = full[rows]
        return weights


def _clean(logits: Any, channel: NoiseModel) -> Array:
    clean = channel.scale * logits + channel.bias
    return np.asarray(clean - clean.mean(axis=1, keepdims=True))
