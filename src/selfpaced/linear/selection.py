"""The automatic stop: which pace, or the plain model, judged by held-out noisy labels alone.

1. Plain fits outside a few folds.  ``rho``, the share of wrong labels among the confident third of their
   held-out predictions, tells how much noise there is.  Where it is small the plain model stays, at the price of
   those few fits.
2. Otherwise each fold follows the path of paces upwards, from zero.
3. Candidates are compared by noisy accuracy and noisy balanced accuracy, with the paired standard error.  The
   plain model stays unless it is beaten by a standard error under little noise and by half of one under some;
   under much, where it is hardly ever best, it must be ahead by one.  Of the paces the smallest is taken that is
   as good as the best, within a margin that grows to one standard error as noise hides the differences.
4. The model is the mean of the chosen pace's fold fits: wrong labels move it less than one fit to all of them.
   Of many rows, where one fold of a sample decides, it is the full fit that starts there.

Fold fits never start from a robust fit of all the data: a basin remembers the labels it was found with.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from ..label_noise import confident_error
from ..pacing import CalibrationError, lam_at
from ..path import weight_histogram
from ..regularizers import Regularizer
from .folds import Folds
from .minimize import Metric, minimize
from .objective import Codes, Latent, Vector, loss_of_scores
from .progress import Progress

# Losses (nats) that have half the full weight: Welsch with lam^2 = 2/3, 1, 4/3, 2, whose weights are the powers
# 3/2, 1, 3/4 and 1/2 of the probability of the given label.
HALF_LOSSES = tuple(np.log(2.0) * np.array([2 / 3, 1.0, 4 / 3, 2.0]))
CLEAN = 0.03  # rho below which nothing is paced
LITTLE, MUCH = 0.1, 0.4  # rho: below, plain unless clearly beaten; above, the smallest pace within one error
STEPS = 10  # per pace and fold: enough to tell candidates apart
ROUGH = 2e-4  # gradient entry at which a fold fit ends
MODERATE = 0.3  # rho below which the paces that are as good are averaged
DOUBT = 0.5  # standard errors that the best pace must be ahead of the plain model unless there is much noise
RARE = 0.2  # share of a class below which it gets a pace of its own


@dataclass
class Trial:
    """A candidate: its latent loss, what the folds said of it, and where a full fit may start."""

    latent: Latent
    lam: float
    label: str
    scores: Vector | None = None
    params: list[Vector] = field(default_factory=list)
    cost: float = 0.0
    score: float = np.nan
    spread: float = np.nan
    mean_weight: float = 1.0
    histogram: tuple[int, ...] = ()

    @property
    def start(self) -> Vector:
        """Mean of the fold fits."""
        return np.mean(self.params, axis=0)


@dataclass(frozen=True)
class Selection:
    """What the folds decided."""

    trials: list[Trial]
    chosen: int
    reason: str
    codes: Codes
    sample_weight: Vector | None
    blend: Trial | None = None

    @property
    def trial(self) -> Trial:
        """The chosen candidate, blended with its equals where noise is moderate."""
        return self.trials[self.chosen] if self.blend is None or self.chosen == 0 else self.blend


class Selector:
    """Runs the folds.

    Parameters
    ----------
    folds : Folds
        The rows.
    regularizer : Regularizer
        The rule whose paces are tried.
    options : dict
        ``ridge`` and ``fit_intercept`` of the objectives.
    plain : ndarray or None
        The plain fit of all the data, where fold fits may start from it.
    curvature, metric : Metric
        Geometries of the plain and of the paced fits, shared by all folds.
    unit : float
        Scale of gradient entries.
    """

    def __init__(
        self,
        folds: Folds,
        regularizer: Regularizer,
        *,
        options: dict[str, Any],
        plain: Vector | None,
        curvature: Metric,
        metric: Metric,
        unit: float = 1.0,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.folds, self.regularizer, self.n_jobs = folds, regularizer, n_jobs
        self.curvature, self.metric = curvature, metric
        self.progress = progress if progress is not None else Progress(None)
        self._plain: Trial | None = None
        self.tol = ROUGH * unit
        # A sample of few rows costs nothing beside the full fits that start where it ends: take it further.
        self.steps = 3 * STEPS if folds.n_total > 20 * folds.n else STEPS
        self.objectives = [folds.training(k, **options) for k in range(folds.n_validated)]
        self.codes, self.sample_weight = folds.held_out(folds.codes), folds.held_out(folds.sample_weight)
        n, d, k = folds.n, folds.X.shape[1], folds.n_classes
        # With few rows per parameter the full fit still knows the held-out labels: start from nothing.
        self.warm = plain if plain is not None and n > 20 * d * (k - 1) else None

    def plain_start(self) -> Vector:
        """Parameters of the plain fold fits."""
        return self.plain_trial().start

    def plain_trial(self) -> Trial:
        """The plain fold fits, made once."""
        if self._plain is None:
            self._plain = Trial(Latent(), np.inf, "plain")
            starts = self._zeros() if self.warm is None else [self.warm] * len(self.objectives)
            self.fit(self._plain, starts, max_iter=25 if self.warm is None else 12)
        return self._plain

    def _zeros(self) -> list[Vector]:
        return [np.zeros(self.objectives[0].size) for _ in self.objectives]

    def _blank(self) -> list[Vector]:
        """No coefficients, and the intercept of the class shares."""
        starts = self._zeros()
        for start, objective in zip(starts, self.objectives, strict=True):
            if objective.fit_intercept:
                share = np.bincount(objective.codes, objective.sample_weight, minlength=objective.n_classes)
                logs = np.log(np.maximum(share / share.sum(), 1e-3))
                own = start.reshape(objective.n_outputs, -1)
                own[:, -1] = logs[1] - logs[0] if objective.n_outputs == 1 else logs - logs.mean()
        return starts

    def run(self) -> Selection:
        """Plain fits, the noise gauge, and the path where it says so."""
        plain = self.plain_trial()
        rho, by_class = confident_error(plain.scores, self.codes, self.sample_weight)
        trials = [plain]
        if by_class < CLEAN:
            self.judge(trials)
            reason = f"only {by_class:.1%} of the confident held-out predictions disagree with their labels"
            return self.selection(trials, 0, reason)
        scale = self._class_scale(plain, rho)
        for trial in candidates(self.regularizer, scale):
            self.fit(trial, self._start(trial) if len(trials) == 1 else trials[-1].params, max_iter=self.steps)
            trials.append(trial)
        gaps = behind(*self.judge(trials))
        chosen, reason = decide(gaps, rho)
        if chosen and len(self.objectives) > 1 and LITTLE <= rho < MODERATE:
            mixed = blend(trials, chosen, gaps)
            return Selection(trials, chosen, reason, self.codes, self.sample_weight, mixed)
        return self.selection(trials, chosen, reason)

    def _start(self, trial: Trial) -> list[Vector]:
        """From zero, where the first step is a difference of class means.

        Not from the plain fit, which has already bent towards the wrong labels, unless the rule gives no weight
        to anything at zero.
        """
        k = self.folds.n_classes
        weight = trial.latent.weight(np.full(k, np.log(k)), np.arange(k))
        return self._blank() if weight.min() > 0.05 else self.plain_trial().params

    def single(self, trial: Trial) -> Selection:
        """Held-out scores of one given candidate beside the plain one, nothing being chosen."""
        plain = self.plain_trial()
        self.fit(trial, self._start(trial), max_iter=50)
        self.judge([plain, trial])
        return self.selection([plain, trial], 1, "the given pace")

    def selection(self, trials: list[Trial], chosen: int, reason: str) -> Selection:
        """The verdict with the labels it was reached on."""
        return Selection(trials, chosen, reason, self.codes, self.sample_weight)

    def fit(self, trial: Trial, starts: list[Vector], max_iter: int) -> None:
        """Fit a candidate outside every fold and score what was held out."""
        began = time.perf_counter()
        tasks = range(len(self.objectives))
        with self.progress.stage(f"folds, {trial.label}"):
            if self.n_jobs in (None, 1) or len(tasks) == 1:
                results = [self._fold(k, trial.latent, starts[k], max_iter) for k in tasks]
            else:
                run = Parallel(n_jobs=self.n_jobs, prefer="threads")
                results = run(delayed(self._fold)(k, trial.latent, starts[k], max_iter) for k in tasks)
        trial.params = [params for params, _ in results]
        trial.scores = np.concatenate([scores for _, scores in results])
        trial.cost = time.perf_counter() - began

    def _fold(self, fold: int, latent: Latent, start: Vector, max_iter: int) -> tuple[Vector, Vector]:
        objective = self.objectives[fold]
        objective.latent = latent
        metric = self.curvature if latent.plain else self.metric
        found = minimize(objective, start, metric=metric, max_iter=max_iter, tol=self.tol)
        return found.x, self.folds.scores(fold, found.x)

    def _class_scale(self, plain: Trial, rho: float) -> Vector | None:
        """How much wider each class's pace is: a rare class has large losses although its labels are right."""
        k = self.folds.n_classes
        share = np.bincount(self.codes, self.sample_weight, minlength=k)
        flips = min(rho, 0.35)
        rarest = (share.min() / share.sum() - flips) / (1 - 2 * flips)
        if k == 2 and rarest >= RARE:
            return None
        losses = loss_of_scores(plain.scores, self.codes)
        medians = [np.median(losses[self.codes == c]) if (self.codes == c).any() else 0.0 for c in range(k)]
        return np.maximum(np.array(medians) / np.log(2.0), 1.0)

    def judge(self, trials: list[Trial]) -> tuple[Vector, Vector]:
        """Score every candidate; the scores per row (rows x candidates) and the rows' weights."""
        k, codes = self.folds.n_classes, self.codes
        weight = np.ones(len(codes)) if self.sample_weight is None else self.sample_weight
        share = np.bincount(codes, weight, minlength=k) / weight.sum()
        worth = 0.5 + 0.5 / (k * np.maximum(share, 1e-12))[codes]
        columns = []
        for trial in trials:
            right = predicted(trial.scores) == codes
            columns.append(right * worth)
            trial.score = float(np.average(columns[-1], weights=weight))
            trial.spread = _error(columns[-1] - trial.score, weight)
            if not trial.latent.plain:
                loss = loss_of_scores(trial.scores, codes)
                relative = trial.latent.weight(loss, codes)
                trial.mean_weight = float(np.average(relative, weights=weight))
                trial.histogram = weight_histogram(relative)
            else:
                trial.histogram = weight_histogram(np.ones(len(codes)))
        return np.stack(columns, axis=1), weight


def candidates(regularizer: Regularizer, scale: Vector | None) -> list[Trial]:
    """The paces to be tried, upwards; ``scale`` widens them class by class."""
    found = []
    for half in HALF_LOSSES:
        try:
            lam = _pace(regularizer, half)
            lams: Any = lam if scale is None else np.array([_pace(regularizer, half * s) for s in scale])
        except CalibrationError:
            continue  # a rule with a unit of its own does not reach every loss
        found.append((lam, lams))
    low, high = regularizer.pace_range
    if not found and np.isfinite(high):
        found = [(lam, lam) for lam in low + (high - low) * np.array([0.4, 0.6, 0.8, 0.95])]
    return [Trial(Latent(regularizer, lams), lam, f"{regularizer.name} lam={lam:.3g}") for lam, lams in found]


def _pace(regularizer: Regularizer, half: float) -> float:
    """The pace that gives half the weight to this loss; rules without a unit of their own need one search."""
    if regularizer.power is None:
        return lam_at(regularizer, half)
    return _unit_pace(regularizer) * float(half) ** (1 / regularizer.power)


@lru_cache(maxsize=64)
def _unit_pace(regularizer: Regularizer) -> float:
    return lam_at(regularizer, 1.0)


def behind(columns: Vector, weight: Vector) -> Vector:
    """How far every candidate is behind the best paced one, in paired standard errors (the plain one is first)."""
    means = np.average(columns, axis=0, weights=weight)
    if len(means) == 1:
        return np.zeros(1)
    best = 1 + int(means[1:].argmax())
    gap = means[best] - means
    spread = np.array([_error(columns[:, best] - columns[:, j] - gap[j], weight) for j in range(len(means))])
    return np.where(gap == 0, 0.0, gap / np.maximum(spread, 1e-12))


def decide(z: Vector, rho: float) -> tuple[int, str]:
    """Index of the chosen candidate (0 is the plain model) and why, from `behind` and the noise gauge."""
    noise = f"{rho:.1%} of the confident held-out predictions disagree with their labels"
    needed = 1.0 if rho < LITTLE else DOUBT if rho < MUCH else -1.0
    if z[0] <= needed:
        if needed < 0:
            return 0, f"the plain model beats every pace by a standard error, although {noise}"
        return 0, f"no pace beats the plain model by {needed:g} standard errors, and {noise}"
    allowed = min(1.0, max(0.0, (rho - LITTLE) / (MUCH - LITTLE)))
    for j in range(1, len(z)):
        if z[j] == 0:
            return j, f"the best held-out score; {noise}"
        if z[j] <= allowed and (z[j] <= z[0] or rho >= MUCH):
            return j, f"the smallest pace within {allowed:.2f} standard errors of the best held-out score; {noise}"
    return 0, noise


def blend(trials: list[Trial], chosen: int, z: Vector) -> Trial:
    """The paced candidates averaged at equal scale, each by how near it comes to the best.

    With moderate noise several paces are as good, and their mean is better than any; with much noise the wide
    paces are not, and only the labels' noise makes them look so.
    """
    trial = trials[chosen]
    sizes = [float(np.median(np.abs(t.scores - _centre(t.scores)))) + 1e-12 for t in trials]
    shares = np.exp(-0.5 * z**2)
    shares[0] = 0.0
    factors = shares / shares.sum() * sizes[chosen] / np.array(sizes)
    mixed = replace(trial)
    mixed.params = [
        np.sum([f * t.params[k] for f, t in zip(factors, trials, strict=True)], axis=0)
        for k in range(len(trial.params))
    ]
    mixed.scores = np.sum([f * t.scores for f, t in zip(factors, trials, strict=True)], axis=0)
    return mixed


def _centre(scores: Vector) -> Any:
    return 0.0 if scores.shape[1] == 1 else scores.mean(axis=1, keepdims=True)


def predicted(scores: Vector) -> Codes:
    """Class with the largest score."""
    return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)


def _error(deviation: Vector, weight: Vector) -> float:
    """Standard error of a weighted mean from deviations."""
    return float(np.sqrt(np.sum((weight * deviation) ** 2)) / weight.sum())
