"""The automatic stop: which penalty and which pace, or the plain model, judged by held-out noisy labels alone.

1. Plain fits outside a few folds and, where rows are few for the parameters, under stronger penalties too, each
   started at the one before.
2. ``rho``, the share of wrong labels among the confident third of the best one's held-out predictions, tells how
   much noise there is.  Where it is small nothing is paced.
3. Otherwise each fold follows the path of paces upwards, from zero, under the weakest penalty; where a stronger one
   explains more, the widest paces under that one too, started from its plain fits: it has kept them from bending
   towards wrong labels.
4. Candidates are compared by the held-out log-likelihood of the noisy labels through a channel of one rate, with the
   paired standard error, and averaged, each by how near it comes to the best.  Nothing is picked where the labels
   cannot tell, so little depends on the deal of the folds; but where the paced have the larger part of the average,
   plain fits leave it.
5. The model is the mean of the fold fits: wrong labels move it less than one fit to all of them.  Of many rows, where
   one fold of a sample decides, it is the full fit of the best candidate, which starts there.

The paper's schedule compares its stages by noisy accuracy and noisy balanced accuracy instead (`decide`).
Fold fits never start from a robust fit of all the data: a basin remembers the labels it was found with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np

from ..label_noise import confident_error, one_rate_likelihood
from ..pacing import CalibrationError, Ladder, lam_at
from ..regularizers import Regularizer, relative
from ..selection import Decision, Trial, gap, mean_and_error, sentence
from ..solver import Solution, Stage, walk
from .descent import FoldDescent, FoldFits, FoldModel, pace_label
from .objective import Codes, Latent, Vector, loss_of_scores

# Measured by benchmarks/constants.py linear.
PENALTIES = (1.0, 0.1, 0.01)  # times the weakest penalty's C
PLENTY = 100  # rows per parameter from which on the weakest penalty is the best
# Losses (nats) that have half the full weight: Welsch with lam^2 = 2/3, 1, 2, whose weights are the powers 3/2, 1 and
# 1/2 of the probability of the given label.
HALF_LOSSES = tuple(np.log(2.0) * np.array([2 / 3, 1.0, 2.0]))
WIDE = 2  # paces that are tried under a stronger penalty too
CLEAN = 0.03  # rho below which nothing is paced
FARTHEST = 3.0  # standard errors behind the best from which on a candidate has no share
MOST_FLIPS = 0.35  # that the share of the rarest class is corrected for
RARE = 0.2  # share of a class below which it gets a pace of its own

# Measured by benchmarks/constants.py paper.
LITTLE, MUCH = 0.1, 0.4  # rho: below, plain unless clearly beaten; above, the smallest pace within one error
DOUBT = 0.5  # standard errors that the best pace must be ahead of the plain model unless there is much noise

GIVEN_STEPS = 50  # cost: of fold fits at a given pace: there is but one, so it may take its time


@dataclass(frozen=True, eq=False)
class FoldVerdict:
    """What the folds decided, and on which rows.

    Attributes
    ----------
    trials : tuple of Trial
        The plain model, under stronger penalties too where they were tried, then the paces.
    decision : Decision
        Which one, and why.
    codes, sample_weight : ndarray, ndarray or None
        Given labels and weights of the rows that were held out.
    shares : ndarray or None
        What every candidate has in the average; None where one was picked.
    """

    trials: tuple[Trial, ...]
    decision: Decision
    codes: Codes
    sample_weight: Vector | None
    shares: Vector | None = None

    @property
    def trial(self) -> Trial:
        """The chosen candidate."""
        return self.trials[self.decision.index]

    @property
    def averaged(self) -> bool:
        """Whether several candidates share in the model."""
        return self.shares is not None and int((self.shares > 0).sum()) > 1

    @cached_property
    def model(self) -> FoldModel:
        """The fold fits of the chosen candidate, averaged with its equals."""
        if self.shares is None or not self.averaged:
            return cast(FoldModel, self.trial.fit)
        return blend([trial.fit for trial in self.trials], self.decision.index, self.shares)

    def as_large(self, full: Vector) -> FoldVerdict:
        """The same with fold fits as large as the full fit: a fit of its own, where rows are many.

        At a pace the latent loss hardly fixes the size of the coefficients: those of all rows may be several times as
        large as those outside the fold, for whose scores the noise channel would be made. Every probability would then
        be too sure, or not sure enough.
        """
        model, sizes = self.model, [_spread(scores, self.sample_weight) for scores in (full, self.model.scores)]
        if not min(sizes) > 0:
            return self
        factor = sizes[0] / sizes[1]
        scaled = replace(model, by_deal=factor * model.by_deal, params=[factor * one for one in model.params])
        trial = replace(self.trial, fit=scaled)
        index = self.decision.index
        return replace(self, trials=(*self.trials[:index], trial, *self.trials[index + 1 :]), shares=None)

    @property
    def termination(self) -> str:
        """What was chosen and why; the plain model is only named where its predictions stand."""
        if self.shares is None or not self.averaged or not self.trial.plain:
            return sentence(self.trials, self.decision)
        return f"Plain models were averaged: {self.decision.reason}."


def penalties(fits: FoldFits, choose: bool) -> list[FoldFits]:
    """Fold fits under every penalty to be tried, the weakest first."""
    layout = fits.layout
    if not choose or layout.n_total > PLENTY * layout.X.shape[1] * (layout.n_classes - 1):
        return [fits]
    path, starts = [], [np.zeros(fits.objectives[0].size) for _ in fits.starts]
    for factor in sorted(PENALTIES):
        path.append(fits.penalised(factor * fits.penalty.C, starts))
        starts = path[-1].plain.fit.params
    return path[::-1]


def best_penalty(path: Sequence[FoldFits]) -> FoldFits:
    """The fold fits whose plain models explain the held-out labels best."""
    return path[0] if len(path) == 1 else path[_best(path[0], _explained(path[0], [fits.plain.fit for fits in path]))]


def _best(fits: FoldFits, likelihoods: Vector) -> int:
    return int(np.argmax(np.average(likelihoods, axis=1, weights=fits.relative_weight)))


def _explained(fits: FoldFits, models: Sequence[FoldModel]) -> Vector:
    """Log-likelihood of every held-out label under every model."""
    return one_rate_likelihood([model.scores for model in models], fits.codes, fits.relative_weight)


def automatic(path: Sequence[FoldFits], regularizer: Regularizer) -> FoldVerdict:
    """Plain fits under every penalty, the noise gauge, paces where it says so, and what each has in the average."""
    plain = [_named(fits.plain, "plain", fits, path[0]) for fits in path]
    likelihoods = _explained(path[0], [trial.fit for trial in plain])
    best = path[_best(path[0], likelihoods)]
    rho, by_class = confident_error(best.plain.fit.scores, best.codes, best.sample_weight)
    noise = f"{by_class:.1%} of the confident held-out predictions disagree with their labels"
    paced = _paced(path[0], best, regularizer, rho) if by_class >= CLEAN else []
    trials = [*plain, *paced]
    if len(trials) == 1:
        return verdict(best, tuple(plain), Decision(0, f"only {noise}"))
    if paced:
        likelihoods = np.concatenate([likelihoods, _explained(best, [trial.fit for trial in paced])])
    trials = [replace(trial, scores=row) for trial, row in zip(trials, likelihoods, strict=True)]
    shares = None if best.layout.alone else _shares(trials, best)
    index = _best(best, likelihoods) if shares is None else _chosen(trials, shares)
    reason = f"{_reason(trials, index, shares)}; {'only ' if not paced else ''}{noise}"
    return FoldVerdict(tuple(trials), Decision(index, reason), best.codes, best.sample_weight, shares)


def _paced(weakest: FoldFits, best: FoldFits, regularizer: Regularizer, rho: float) -> list[Trial]:
    """Every pace under the weakest penalty, and the widest under the best."""
    latents = paces(regularizer, class_scale(best, rho))
    found = [_named(trial, trial.label, weakest, weakest) for trial in follow(weakest, regularizer, latents)[1:]]
    if best is not weakest:
        wide = dict(reversed(list(latents.items())[-WIDE:]))
        trials = follow(best, regularizer, wide, start=best.plain.fit)[1:]
        found += [_named(trial, trial.label, best, weakest) for trial in trials]
    return found


def _named(trial: Trial, label: str, fits: FoldFits, weakest: FoldFits) -> Trial:
    same = fits.penalty.C == weakest.penalty.C
    return replace(trial, label=label if same else f"{label}, C={fits.penalty.C:.3g}")


def _shares(trials: Sequence[Trial], fits: FoldFits) -> Vector:
    """What every candidate has in the average: less, the more paired standard errors it is behind the best.

    Noisy labels hardly tell a plain fit that has bent towards them from a paced one that has not: where the paced
    have the larger part, they have all of it.
    """
    weight, size = fits.relative_weight, fits.evidence
    best = max(trials, key=lambda trial: mean_and_error(trial.scores, weight).mean)  # type: ignore[arg-type]
    z = np.array([max(gap(best, trial, weight, size).z, 0.0) for trial in trials])
    shares = np.where(z > FARTHEST, 0.0, np.exp(-0.5 * z**2))
    plain = np.array([trial.plain for trial in trials])
    if shares[plain].sum() < shares[~plain].sum():
        shares[plain] = 0.0
    return np.asarray(shares / shares.sum())


def _chosen(trials: Sequence[Trial], shares: Vector) -> int:
    """The candidate that stands for the average: the largest share among the plain or the paced, whichever has more."""
    plain = np.array([trial.plain for trial in trials])
    kind = plain if shares[plain].sum() >= 0.5 else ~plain
    return int(np.argmax(np.where(kind, shares, -1.0)))


def _reason(trials: Sequence[Trial], index: int, shares: Vector | None) -> str:
    if shares is None:
        return "it explains the held-out labels best"
    others = np.flatnonzero((shares > 0.005) & (np.arange(len(shares)) != index))
    if not len(others):
        return "it explains the held-out labels best"
    named = ", ".join(f"{trials[i].label} ({shares[i]:.0%})" for i in others[np.argsort(-shares[others])])
    own = f"{trials[index].label} ({shares[index]:.0%})"
    if trials[index].plain:
        return f"{own}, {named}, which explain the held-out labels about as well"
    return f"averaged ({shares[index]:.0%}) with {named}, which explain the held-out labels about as well"


def given(fits: FoldFits, regularizer: Regularizer, lam: float) -> FoldVerdict:
    """Held-out scores at one given pace beside the plain model, nothing being chosen."""
    trials = follow(fits, regularizer, {lam: Latent(regularizer, lam)}, max_iter=GIVEN_STEPS)
    return verdict(fits, trials, Decision(1, "it is the given pace"))


def verdict(fits: FoldFits, trials: tuple[Trial, ...], decision: Decision) -> FoldVerdict:
    """The decision with the labels it was reached on."""
    return FoldVerdict(trials, decision, fits.codes, fits.sample_weight)


def follow(
    fits: FoldFits,
    regularizer: Regularizer,
    latents: dict[float, Latent],
    *,
    max_iter: int | None = None,
    start: FoldModel | None = None,
) -> tuple[Trial, ...]:
    """The plain model and every pace, walked in their order in all folds."""
    trials = [fits.plain]
    if not latents:
        return tuple(trials)

    def record(stage: Stage, solution: Solution[FoldModel]) -> None:
        label = pace_label(solution.model.latent, stage.lam)
        trials.append(fits.trial(stage.lam, label, solution.model, solution.weights, stage.cost))

    walk(
        FoldDescent(fits, latents, fits.steps if max_iter is None else max_iter),
        relative(regularizer),
        Ladder(tuple(latents)),
        fits.start(next(iter(latents.values())), start),
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


def blend(models: Sequence[FoldModel], chosen: int, shares: Vector) -> FoldModel:
    """The candidates averaged at the scale of the chosen one, fold by fold."""
    sizes = np.array([float(np.median(np.abs(model.scores - _centre(model.scores)))) + 1e-12 for model in models])
    factors = shares * sizes[chosen] / sizes
    params = [
        np.sum([f * model.params[fold] for f, model in zip(factors, models, strict=True)], axis=0)
        for fold in range(len(models[chosen].params))
    ]
    scores = np.sum([f * model.by_deal for f, model in zip(factors, models, strict=True)], axis=0)
    return replace(models[chosen], params=params, by_deal=scores)


def _spread(scores: Vector, weight: Vector | None) -> float:
    """How large scores are, whatever is added to all classes of a row or to all rows."""
    z = scores.reshape(len(scores), -1)
    z = z if z.shape[1] == 1 else z - z.mean(axis=1, keepdims=True)
    z = z - np.average(z, axis=0, weights=weight)
    return float(np.sqrt(np.average((z**2).sum(axis=1), weights=weight)))


def _centre(scores: Vector) -> Any:
    return 0.0 if scores.shape[1] == 1 else scores.mean(axis=1, keepdims=True)
