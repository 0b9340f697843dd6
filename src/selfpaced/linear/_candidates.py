"""The candidates of a logistic regression, and the choice among them by held-out noisy labels alone.

1. Plain fits outside every fold, also under stronger penalties if rows are few for the parameters.
2. The error of the most confident third of the held-out predictions gauges the noise. If it is small, nothing is paced.
3. Otherwise every pace is fitted under the weakest penalty, and the wide paces under the best penalty too. They start
   from the class shares or from the plain fits of a strong penalty, which wrong labels have not bent yet.
4. Candidates are compared by the held-out log-likelihood of the noisy labels under a noise model with one rate, and
   averaged by their paired standard errors behind the best. If paced ones have the larger part, they have all of it.
5. The model is the mean of the fold fits, which wrong labels move less than one fit to all rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np

from ..label_noise import CLEAN, confident_error, one_rate_likelihood
from ..pacing import CalibrationError, lam_at
from ..regularizers import Regularizer
from ..selection import Decision, Trial, gap, mean_and_error
from ._fold_fits import FOLD_STEPS, FoldFits, FoldModel, Spec
from ._folds import FoldRows
from ._loss import Latent, Vector, loss_of_scores, predicted

# What each mechanism earns is measured by benchmarks/ablation.py; the values are a choice.
PENALTIES = (1.0, 0.1, 0.01)  # values of C that are tried; two are as good on development tables and worse on others
PLENTY = 25  # benchmarks/results/ablation.md: rows per parameter above which fits outside the folds differ little
# Losses (nats) that have half the full weight: Welsch with lam^2 = 2/3, 1, 2, whose weights are the powers 3/2, 1 and
# 1/2 of the probability of the given label.
HALF_LOSSES = tuple(np.log(2.0) * np.array([2 / 3, 1.0, 2.0]))
PENALISED_PACES = 2  # paces that are tried under a stronger penalty too


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidates, plain ones first, with the decision among them and the share of each in the average."""

    trials: tuple[Trial, ...]  # ``fit`` is a FoldModel
    decision: Decision
    shares: Vector | None = None  # None if one was given

    @property
    def trial(self) -> Trial:
        """The chosen candidate."""
        return self.trials[self.decision.index]

    @cached_property
    def model(self) -> FoldModel:
        """The fold fits of the chosen candidate, or the average."""
        if self.shares is None or (self.shares > 0).sum() == 1:
            return cast(FoldModel, self.trial.fit)
        return _blend([trial.fit for trial in self.trials], self.decision.index, self.shares)

    def rescaled(self, full: Vector) -> FoldModel:
        """The fold fits at the size of a fit of all rows, whose scores of the held-out rows are given.

        At a pace the latent loss hardly determines the size of the coefficients. The noise model must be fitted to
        scores of the same size as those that it is applied to.
        """
        model = self.model
        sizes = [_spread(scores) for scores in (full, model.scores)]
        factor = sizes[0] / sizes[1] if min(sizes) > 0 else 1.0
        return replace(model, params=factor * model.params, scores=factor * model.scores)


def penalties(fits: FoldFits, C: float, choose: bool) -> tuple[float, ...]:
    """Values of C to try, the largest first."""
    rows = fits.rows
    plenty = rows.n_total > PLENTY * rows.X.shape[1] * (rows.n_classes - 1)
    return (C,) if plenty or not choose else tuple(factor * C for factor in PENALTIES)


def plain_trials(fits: FoldFits, values: Sequence[float], start: Vector | None) -> list[Trial]:
    """Plain fits outside every fold under each penalty, scored by the likelihood of the held-out labels."""
    began = time.perf_counter()
    n_parameters = fits.everything.size - fits.n_outputs
    if start is None or fits.rows.n <= PLENTY * n_parameters:
        starts, steps = None, 2 * FOLD_STEPS  # with few rows the fit of all rows knows the held-out labels
    else:
        starts, steps = np.tile(start, (len(fits.weight), 1)), FOLD_STEPS
    models = fits.fit([Spec(Latent(), C, starts) for C in values], steps)
    cost = (time.perf_counter() - began) / len(models)
    labels = ["plain" if values[0] == C else f"plain, C={C:.3g}" for C in values]
    return _scored(fits, [Trial(np.inf, label, cost=cost, fit=m) for label, m in zip(labels, models, strict=True)])


def best_of(fits: FoldFits, trials: Sequence[Trial]) -> Trial:
    """The candidate with the largest likelihood of the held-out labels."""
    weight = fits.rows.evidence_weight
    return max(trials, key=lambda trial: mean_and_error(trial.scores, weight).mean)  # type: ignore[arg-type]


def choose(fits: FoldFits, plain: list[Trial], regularizer: Regularizer) -> Choice:
    """Gauge the noise, try the paces if there may be any, and average the candidates."""
    rows, best = fits.rows, best_of(fits, plain)
    _, by_class = confident_error(best.fit.scores, rows.held_codes, rows.held_weight)
    trials = plain + (_paced(fits, plain, best, regularizer) if by_class >= CLEAN else [])
    if len(trials) == 1:
        return Choice((best,), Decision(0, ""))
    shares = _shares(fits, trials)
    paced = np.array([not trial.plain for trial in trials])
    kind = paced if shares[paced].sum() > 0.5 else ~paced
    return Choice(tuple(trials), Decision(int(np.argmax(np.where(kind, shares, -1.0))), ""), shares)


def _paced(fits: FoldFits, plain: list[Trial], best: Trial, regularizer: Regularizer) -> list[Trial]:
    """Every pace under the weakest penalty, and the wide ones under the best penalty."""
    began, weakest = time.perf_counter(), plain[0].fit.C
    latents = paces(regularizer, _class_scale(fits, best))
    wanted = [(lam, latent, weakest, None) for lam, latent in latents.items()]
    if weakest != best.fit.C:
        wanted += [
            (lam, latent, best.fit.C, best.fit.params)
            for lam, latent in list(latents.items())[max(len(latents) - PENALISED_PACES, 0) :]
        ]
    specs = [
        Spec(
            latent, C, start if start is not None or _learns_from_zero(latent, fits.rows.n_classes) else best.fit.params
        )
        for _, latent, C, start in wanted
    ]
    models = fits.fit(specs) if specs else []
    cost = (time.perf_counter() - began) / max(len(models), 1)
    trials = []
    for (lam, latent, C, _), model in zip(wanted, models, strict=True):
        label = pace_label(latent, lam) + ("" if weakest == C else f", C={C:.3g}")
        trials.append(Trial(lam, label, weight=held_weights(fits, model), cost=cost, fit=model))
    return _scored(fits, trials)


def held_weights(fits: FoldFits, model: FoldModel) -> Vector:
    """Weights of the held-out rows at the pace of a candidate."""
    codes = fits.rows.held_codes
    return model.latent.weight(loss_of_scores(model.scores, codes), codes)


def _learns_from_zero(latent: Latent, n_classes: int) -> bool:
    """Whether rows have some weight if nothing is known yet; a plain fit of a weak penalty has bent to wrong labels."""
    return bool(latent.weight(np.full(n_classes, np.log(n_classes)), np.arange(n_classes)).min() > 0.05)


def _scored(fits: FoldFits, trials: Sequence[Trial]) -> list[Trial]:
    """The trials with the log-likelihood of every held-out label."""
    if not trials:
        return []
    rows = fits.rows
    likelihoods = one_rate_likelihood([t.fit.scores for t in trials], rows.held_codes, rows.evidence_weight)
    return [
        replace(trial, scores=own, accuracy=_accuracy(trial.fit.scores, rows))
        for trial, own in zip(trials, likelihoods, strict=True)
    ]


def _accuracy(scores: Vector, rows: FoldRows) -> float:
    """Weighted share of the held-out labels that the scores predict."""
    return float(np.average(predicted(scores) == rows.held_codes, weights=rows.held_weight))


def _shares(fits: FoldFits, trials: Sequence[Trial]) -> Vector:
    """Share of every candidate in the average: the less, the more paired standard errors it is behind the best.

    Noisy labels hardly distinguish a plain fit that has bent towards them from a paced one that has not. If the paced
    ones have the larger part, they have all of it.
    """
    weight, size, best = fits.rows.evidence_weight, fits.rows.evidence_size, best_of(fits, trials)
    z = np.array([max(gap(best, trial, weight, size).z, 0.0) for trial in trials])
    shares = np.exp(-0.5 * z**2)
    plain = np.array([trial.plain for trial in trials])
    if shares[plain].sum() < shares[~plain].sum():
        shares[plain] = 0.0
    return np.asarray(shares / shares.sum())


def _blend(models: Sequence[FoldModel], chosen: int, shares: Vector) -> FoldModel:
    """The weighted mean of the candidates, each brought to the size of the chosen one."""
    sizes = np.array([float(np.median(np.abs(_centred(model.scores)))) + 1e-12 for model in models])
    factors = shares * sizes[chosen] / sizes
    kept = [(f, model) for f, model in zip(factors, models, strict=True) if f > 0]
    return replace(
        models[chosen],
        params=np.sum([f * model.params for f, model in kept], axis=0),
        scores=np.sum([f * model.scores for f, model in kept], axis=0),
    )


def _centred(scores: Vector) -> Vector:
    return scores if scores.shape[1] == 1 else scores - scores.mean(axis=1, keepdims=True)


def _spread(scores: Vector) -> float:
    """Size of scores, whatever is added to all classes of a row or to all rows."""
    z = _centred(scores)
    return float(np.sqrt(np.square(z - z.mean(axis=0)).sum(axis=1).mean()))


# ----------------------------------------------------------------------------------------------------- paces


def given_pace(fits: FoldFits, plain: Trial, regularizer: Regularizer, lam: float) -> Choice:
    """Fold fits at a given pace beside the plain model; nothing is chosen."""
    if np.isinf(lam):
        return Choice((plain,), Decision(0, "it is the given pace"))
    latent = Latent(regularizer, lam)
    start = None if _learns_from_zero(latent, fits.rows.n_classes) else plain.fit.params
    model = fits.fit([Spec(latent, plain.fit.C, start)], 3 * FOLD_STEPS)[0]
    trial = _scored(fits, [Trial(lam, pace_label(latent, lam), weight=held_weights(fits, model), fit=model)])[0]
    return Choice((plain, trial), Decision(1, "it is the given pace"))


def paces(regularizer: Regularizer, scale: Vector | None = None) -> dict[float, Latent]:
    """The paces to try, upwards, with their latent losses; ``scale`` widens them class by class."""
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


def _class_scale(fits: FoldFits, best: Trial) -> Vector | None:
    """How much wider the pace of each class is: a rare class has large losses although its labels are right."""
    codes = fits.rows.held_codes
    losses = loss_of_scores(best.fit.scores, codes)
    medians = [np.median(losses[own]) if (own := codes == c).any() else 0.0 for c in range(fits.rows.n_classes)]
    scale = np.maximum(np.array(medians) / np.log(2.0), 1.0)
    return None if np.all(scale == 1.0) else scale


def _pace(regularizer: Regularizer, half: float) -> float:
    """The pace that gives half the weight to this loss; rules without a unit of their own need one search."""
    if regularizer.power is None:
        return lam_at(regularizer, half)
    return float(_unit_pace(regularizer) * float(half) ** (1 / regularizer.power))


@lru_cache(maxsize=64)
def _unit_pace(regularizer: Regularizer) -> float:
    return lam_at(regularizer, 1.0)


def pace_label(latent: Latent, lam: float) -> str:
    """Name of a pace in tables and sentences."""
    return "plain" if latent.regularizer is None else f"{latent.regularizer.name} lam={lam:.3g}"


__all__ = [
    "CLEAN",
    "Choice",
    "best_of",
    "choose",
    "given_pace",
    "held_weights",
    "pace_label",
    "paces",
    "penalties",
    "plain_trials",
]
