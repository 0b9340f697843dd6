"""A wrapped classifier as a Problem of the core: weighted (cross-)fits in, losses of every row out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..label_noise import NoiseChannel, fit_channel
from .common import Progress, Split, cross_fit
from .outputs import as_logits, read_output, rival_loss
from .routing import WeightRoute, fit_weighted, row_params, take_rows

__all__ = ["ClassifierProblem", "View", "paired_error", "scaled_channel"]

LN2 = float(np.log(2.0))
KEPT_PER_CLASS = 3
HEAVY = 0.25  # noise rate above which the plain models' own view is no longer worth averaging in


@dataclass(frozen=True, eq=False)
class View:
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
    channel : NoiseChannel
        The calibration of `unseen`.
    losses : ndarray of shape (n_samples,)
        Losses of the given labels.
    model : classifier or None
        The model fitted on all rows, where losses are in-sample.
    cost : float
        Seconds.
    """

    clean: np.ndarray
    unseen: np.ndarray | None
    correct: np.ndarray | None
    channel: NoiseChannel
    losses: np.ndarray
    model: Any = None
    cost: float = 0.0


def scaled_channel(channel: NoiseChannel, logits: np.ndarray, codes: np.ndarray, weight: Any = None) -> NoiseChannel:
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


def paired_error(difference: np.ndarray) -> float:
    """Standard error of the mean of paired differences."""
    return float(np.std(difference) / np.sqrt(max(difference.size, 1)))


@dataclass(eq=False)
class ClassifierProblem:
    """Weighted fits of a classifier on fixed data; a `Problem` whose model is a `View`.

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
    """

    estimator: Any
    X: Any
    y: np.ndarray
    codes: np.ndarray
    labels: np.ndarray
    kind: str
    route: WeightRoute
    repeats: Sequence[Sequence[Split]]
    prior: np.ndarray | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None
    progress: Progress | None = None
    balanced: bool = True
    cross: bool = True
    first: NoiseChannel | None = None
    before: np.ndarray | None = None
    count: int = 0

    def plain(self, seen: np.ndarray, model: Any) -> View:
        """The view of unweighted models; `seen` is the output of the plain `model` on its own rows."""
        began = time.perf_counter()
        unseen, correct = self._unseen(self.prior)
        self.first = fit_channel(unseen, self.codes, sample_weight=self.prior)
        clean = self._clean(as_logits(seen, self.kind), self.first)
        return self._view(clean, unseen, correct, self.first, model, began)

    def recast(self, view: View, cross: bool) -> View:
        """The plain view once it is decided whether losses are cross-fitted."""
        self.cross = cross
        if not cross:
            return view
        clean = self._clean(view.unseen, view.channel)
        self.before = clean if view.channel.noise_rate < HEAVY else None
        return replace(view, clean=clean, losses=self._losses(clean))

    def fit(self, weights: Any, previous: View | None) -> View:
        """Models fitted with these weights, seen through their predictions."""
        began = time.perf_counter()
        self.count += 1
        weights = self.with_every_class(np.asarray(weights, dtype=float), previous)
        task = f"{'cross-fitted' if self.cross else 'in-sample'} round {self.count}"
        with self.progress.stage(task) if self.progress is not None else nullcontext():
            return self._cross_view(weights, began) if self.cross else self._in_sample_view(weights, began)

    def _cross_view(self, weights: np.ndarray, began: float) -> View:
        unseen, correct = self._unseen(weights)
        channel = scaled_channel(self._first(), unseen, self.codes, self.prior)
        clean = self._clean(unseen, channel)
        if self.before is not None:
            clean = 0.5 * (clean + self.before)
        return self._view(clean, unseen, correct, channel, None, began)

    def _in_sample_view(self, weights: np.ndarray, began: float) -> View:
        model = self.full_fit(weights)
        logits = as_logits(self.read()(model, self.X), self.kind)
        channel = scaled_channel(self._first(), logits, self.codes, self.prior)
        return self._view(self._clean(logits, channel), None, None, channel, model, began)

    def subset(self, rows: np.ndarray) -> ClassifierProblem:
        """The same problem on some rows, with in-sample losses."""
        cut = row_params(self.fit_params, len(self.codes), rows)
        prior = None if self.prior is None else self.prior[rows]
        return replace(
            self, X=take_rows(self.X, rows), y=self.y[rows], codes=self.codes[rows], prior=prior, fit_params=cut,
            repeats=(), progress=None, cross=False, count=0,
        )  # fmt: skip

    def initial(self) -> View:
        """The plain view of a subset: an unweighted fit and its in-sample losses."""
        return self._in_sample_view(np.ones(len(self.codes)) if self.prior is None else self.prior, time.perf_counter())

    def losses(self, model: View) -> np.ndarray:
        """Loss of every row, in units of its class where classes are balanced."""
        return model.losses / self.class_scale(model.losses)

    def penalty(self, model: View) -> float:  # noqa: ARG002
        """The wrapped estimator keeps its penalty to itself."""
        return 0.0

    def score(self, correct: np.ndarray) -> np.ndarray:
        """Per row, what averages to the mean of accuracy and balanced accuracy on the given labels."""
        mass = np.ones(len(self.codes)) if self.prior is None else self.prior
        per_class = np.bincount(self.codes, mass, minlength=self.labels.size)
        lift = mass.sum() / (self.labels.size * np.maximum(per_class, 1e-300))
        return correct * (0.5 + 0.5 * lift[self.codes]) * (mass * (mass.size / mass.sum()))

    def full_fit(self, weight: np.ndarray | None) -> Any:
        """The estimator fitted on all rows."""
        return fit_weighted(
            self.estimator, self.X, self.y, weight, self.route, counts=self.prior, fit_params=self.fit_params
        )

    def read(self) -> Any:
        """The function that reads a fitted model's output."""
        return partial(read_output, kind=self.kind, labels=self.labels)

    def _first(self) -> NoiseChannel:
        if self.first is None:
            raise RuntimeError("the plain view has to come first")
        return self.first

    def _unseen(self, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
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
        return self.settle(total, correct, tested)

    def settle(self, total: np.ndarray, correct: np.ndarray, tested: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Average logits and share of correct predictions, from their sums over the models that tested a row."""
        never = tested == 0.0  # the only row of its class: nothing speaks against its label
        total[never, self.codes[never]] = 1.0
        correct[never] = 1.0
        share = np.maximum(tested, 1.0)
        return as_logits(total / share[:, None], self.kind), correct / share

    def _view(
        self, clean: np.ndarray, unseen: Any, correct: Any, channel: NoiseChannel, model: Any, began: float
    ) -> View:
        return View(clean, unseen, correct, channel, self._losses(clean), model, time.perf_counter() - began)

    @staticmethod
    def _clean(logits: np.ndarray, channel: NoiseChannel) -> np.ndarray:
        clean = channel.scale * logits + channel.bias
        return clean - clean.mean(axis=1, keepdims=True)

    def _losses(self, clean: np.ndarray) -> np.ndarray:
        return rival_loss(NoiseChannel.identity(self.labels.size).proba(clean), self.codes)

    def class_scale(self, losses: np.ndarray) -> np.ndarray:
        """Per row, the unit of its class: at least half the rows of every class stay within log 2 of it."""
        if not self.balanced:
            return np.ones(len(self.codes))
        mass = np.ones(len(losses)) if self.prior is None else self.prior
        medians = np.zeros(self.labels.size)
        for c in np.unique(self.codes[mass > 0.0]):
            rows = (self.codes == c) & (mass > 0.0)
            medians[c] = np.quantile(losses[rows], 0.5, method="inverted_cdf", weights=mass[rows])
        return np.maximum(medians / LN2, 1.0)[self.codes]

    def with_every_class(self, weights: np.ndarray, previous: View | None) -> np.ndarray:
        """No class may vanish from a fit: its easiest rows come back with full weight."""
        mass = np.bincount(self.codes, weights, minlength=self.labels.size)
        starved = np.flatnonzero(mass < 1e-3 * max(weights.max(initial=0.0), 1e-300))
        if not starved.size:
            return weights
        weights = weights.copy()
        full = np.ones_like(weights) if self.prior is None else self.prior
        for c in starved:
            rows = np.flatnonzero((self.codes == c) & (full > 0.0))
            order = rows if previous is None else rows[np.argsort(previous.losses[rows], kind="stable")]
            weights[order[:KEPT_PER_CLASS]] = full[order[:KEPT_PER_CLASS]]
        return weights
