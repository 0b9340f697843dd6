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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..label_noise import confident_error
from ..pacing import CalibrationError, Ladder, lam_at
from ..regularizers import Regularizer, relative
from ..selection import Decision, Trial, behind
from ..solver import Solution, Stage, walk
from .descent import FoldDescent, FoldFits, FoldModel, pace_label
from .objective import Codes, Latent, Vector, loss_of_scores

# Measured by benchmarks/constants.py linear.
# Losses (nats) that have half the full weight: Welsch with lam^2 = 2/3, 1, 4/3, 2, whose weights are the powers
# 3/2, 1, 3/4 and 1/2 of the probability of the given label.
HALF_LOSSES = tuple(np.log(2.0) * np.array([2 / 3, 1.0, 4 / 3, 2.0]))
CLEAN = 0.03  # rho below which nothing is paced
LITTLE, MUCH = 0.1, 0.4  # rho: below, plain unless clearly beaten; above, the smallest pace within one error
MODERATE = 0.3  # rho below which the paces that are as good are averaged
DOUBT = 0.5  # standard errors that the best pace must be ahead of the plain model unless there is much noise
MOST_FLIPS = 0.35  # that the share of the rarest class is corrected for
RARE = 0.2  # share of a class below which it gets a pace of its own

GIVEN_STEPS = 50  # cost: of fold fits at a given pace: there is but one, so it may take its time


@dataclass(frozen=True, eq=False)
class FoldVerdict:
    """What the folds decided, and on which rows.

    Attributes
    ----------
    trials : tuple of Trial
        The plain model, then the paces.
    decision : Decision
        Which one, and why.
    codes, sample_weight : ndarray, ndarray or None
        Given labels and weights of the rows that were held out.
    blended : FoldModel or None
        The chosen pace averaged with its equals, where noise is moderate.
    """

    trials: tuple[Trial, ...]
    decision: Decision
    codes: Codes
    sample_weight: Vector | None
    blended: FoldModel | None = None

    @property
    def trial(self) -> Trial:
        """The chosen candidate."""
        return self.trials[self.decision.index]

    @property
    def model(self) -> FoldModel:
        """The fold fits of the chosen candidate, blended where that was decided."""
        chosen: FoldModel = self.trial.fit
        return chosen if self.trial.plain or self.blended is None else self.blended


def automatic(fits: FoldFits, regularizer: Regularizer) -> FoldVerdict:
    """Plain fits, the noise gauge, and the path where it says so."""
    plain = fits.plain
    rho, by_class = confident_error(plain.fit.scores, fits.codes, fits.sample_weight)
    if by_class < CLEAN:
        reason = f"only {by_class:.1%} of the confident held-out predictions disagree with their labels"
        return verdict(fits, (plain,), Decision(0, reason))
    trials = follow(fits, regularizer, paces(regularizer, class_scale(fits, rho)), fits.steps)
    gaps = behind(trials, fits.sample_weight)
    decision = decide(gaps, rho)
    if decision.index and len(fits.objectives) > 1 and LITTLE <= rho < MODERATE:
        return verdict(fits, trials, decision, blend(trials, decision.index, gaps))
    return verdict(fits, trials, decision)


def given(fits: FoldFits, regularizer: Regularizer, lam: float) -> FoldVerdict:
    """Held-out scores at one given pace beside the plain model, nothing being chosen."""
    trials = follow(fits, regularizer, {lam: Latent(regularizer, lam)}, GIVEN_STEPS)
    return verdict(fits, trials, Decision(1, "it is the given pace"))


def verdict(
    fits: FoldFits, trials: tuple[Trial, ...], decision: Decision, blended: FoldModel | None = None
) -> FoldVerdict:
    """The decision with the labels it was reached on."""
    return FoldVerdict(trials, decision, fits.codes, fits.sample_weight, blended)


def follow(fits: FoldFits, regularizer: Regularizer, latents: dict[float, Latent], max_iter: int) -> tuple[Trial, ...]:
    """The plain model and every pace, walked upwards in all folds."""
    trials = [fits.plain]
    if not latents:
        return tuple(trials)

    def record(stage: Stage, solution: Solution[FoldModel]) -> None:
        label = pace_label(solution.model.latent, stage.lam)
        trials.append(fits.trial(stage.lam, label, solution.model, solution.weights, stage.cost))

    walk(
        FoldDescent(fits, latents, max_iter),
        relative(regularizer),
        Ladder(tuple(latents)),
        fits.start(next(iter(latents.values()))),
        sample_weight=fits.sample_weight,
        callback=record,
    ).uninterrupted()
    return tuple(trials)


# ----------------------------------------------------------------------------------------------------- paces


def paces(regularizer: Regularizer, scale: Vector | None) -> dict[float, Latent]:
    """The paces to be tried, upwards, with their latent losses; ``scale`` widens them class by class."""
    found: dict[float, Any] = {}
    for half in HALF_LOSSES:
        try:
            lam = _pace(regularizer, half)
            found[lam] = lam if scale is None else np.array([_pace(regularizer, half * s) for s in scale])
        except CalibrationError:
            continue  # a rule with a unit of its own does not reach every loss
    low, high = regularizer.pace_range
    if not found and np.isfinite(high):
        found = {float(lam): float(lam) for lam in low + (high - low) * np.array([0.4, 0.6, 0.8, 0.95])}
    return {lam: Latent(regularizer, lams) for lam, lams in found.items()}


def class_scale(fits: FoldFits, rho: float) -> Vector | None:
    """How much wider each class's pace is: a rare class has large losses although its labels are right."""
    k = fits.layout.n_classes
    share = np.bincount(fits.codes, fits.sample_weight, minlength=k)
    flips = min(rho, MOST_FLIPS)
    rarest = (share.min() / share.sum() - flips) / (1 - 2 * flips)
    if k == 2 and rarest >= RARE:
        return None
    losses = loss_of_scores(fits.plain.fit.scores, fits.codes)
    members = [fits.codes == c for c in range(k)]
    medians = [np.median(losses[rows]) if rows.any() else 0.0 for rows in members]
    return np.asarray(np.maximum(np.array(medians) / np.log(2.0), 1.0))


def _pace(regularizer: Regularizer, half: float) -> float:
    """The pace that gives half the weight to this loss; rules without a unit of their own need one search."""
    if regularizer.power is None:
        return lam_at(regularizer, half)
    return float(_unit_pace(regularizer) * float(half) ** (1 / regularizer.power))


@lru_cache(maxsize=64)
def _unit_pace(regularizer: Regularizer) -> float:
    return lam_at(regularizer, 1.0)


# -------------------------------------------------------------------------------------------------- evidence


def decide(z: Vector, rho: float) -> Decision:
    """The chosen candidate (0 is the plain model) and why, from `behind` and the noise gauge."""
    noise = f"{rho:.1%} of the confident held-out predictions disagree with their labels"
    needed = 1.0 if rho < LITTLE else DOUBT if rho < MUCH else -1.0
    if z[0] <= needed:
        if needed < 0:
            return Decision(0, f"it beats every pace by a standard error, although {noise}")
        return Decision(0, f"no pace beats it by {needed:g} standard errors, and {noise}")
    allowed = min(1.0, max(0.0, (rho - LITTLE) / (MUCH - LITTLE)))
    for j in range(1, len(z)):
        if z[j] == 0:
            return Decision(j, f"it has the best held-out score; {noise}")
        if z[j] <= allowed and (z[j] <= z[0] or rho >= MUCH):
            within = f"within {allowed:.2f} standard errors of the best held-out score"
            return Decision(j, f"it is the smallest pace {within}; {noise}")
    return Decision(0, noise)


def blend(trials: Sequence[Trial], chosen: int, z: Vector) -> FoldModel:
    """The paced candidates averaged at equal scale, each by how near it comes to the best.

    With moderate noise several paces are as good, and their mean is better than any; with much noise the wide
    paces are not, and only the labels' noise makes them look so.
    """
    models: list[FoldModel] = [trial.fit for trial in trials]
    sizes = [float(np.median(np.abs(model.scores - _centre(model.scores)))) + 1e-12 for model in models]
    shares = np.exp(-0.5 * z**2)
    shares[0] = 0.0
    factors = shares / shares.sum() * sizes[chosen] / np.array(sizes)
    params = [
        np.sum([f * model.params[fold] for f, model in zip(factors, models, strict=True)], axis=0)
        for fold in range(len(models[chosen].params))
    ]
    scores = np.sum([f * model.scores for f, model in zip(factors, models, strict=True)], axis=0)
    return replace(models[chosen], params=params, scores=scores)


def _centre(scores: Vector) -> Any:
    return 0.0 if scores.shape[1] == 1 else scores.mean(axis=1, keepdims=True)
