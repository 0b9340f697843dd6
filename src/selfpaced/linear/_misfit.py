"""The misfit check: what a more flexible reference model explains was misfit of the linear model, not label noise.

A linear model that misses a bend sees wrong labels wherever the bend is. So the same folds are fitted once more with
squares of the features, ranks of skewed features and, if features are few, nearness to some rows. If that model
explains the held-out labels better, the noise rate is its own, and the interval covers both; errors that the linear
model claims must be errors by it, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

from ..assessment import SUSPECT
from ..label_noise import MISFIT, ChannelModels, NoiseModel
from ..selection import CLEARLY_BETTER, mean_and_error
from ._fold_fits import FoldFits, Spec
from ._loss import Codes, Latent, Vector, predicted

# Measured by benchmarks/classification.py --part development.
CLIPPED_SQUARES = 3.0  # standard deviations: beyond, a square would be all leverage
SKEWED = 0.1  # standard deviations between mean and median from which the ranks of a feature are used
BUMPS, FEW_FEATURES = 30, 20  # rows nearness to which is a feature, and features above which all rows are far apart
REFERENCE_C = 0.03  # inverse penalty of the reference model, which has more to penalise
PRECISION = 0.7  # convention: share of the likely errors that are to be wrong

CHECKED = 1000  # cost: rows of the check at most; on development tables of up to 1,500 rows all of them change nothing
MANY_FEATURES = 100  # cost: features above which there is no check


@dataclass(frozen=True, eq=False)
class MisfitCheck:
    """What the reference model says about the held-out rows."""

    channel: NoiseModel  # of its own scores
    ahead: float  # standard errors by which it explains the held-out labels better than the linear model
    explained: float  # share of the labels that it predicts among those that the linear model misses and calls wrong
    confirmed: bool  # whether it finds the same single errors as the linear model
    rows: NDArray[np.bool_]  # the held-out rows that were checked
    wrong: Vector  # the probability of an error that it gives each of them

    @property
    def better(self) -> bool:
        """Whether its noise rate replaces that of the linear model."""
        return self.ahead >= CLEARLY_BETTER

    @property
    def explains_less(self) -> bool:
        """Whether it is clearly worse than the linear model: then it says nothing about it."""
        return self.ahead <= -CLEARLY_BETTER

    @property
    def trust(self) -> float:
        """How certain it is that it explains more, 0 to 1."""
        return float(np.clip(self.ahead - CLEARLY_BETTER + 1.0, 0.0, 1.0))

    def most(self, channel: NoiseModel) -> float:
        """The largest credible noise rate, the nearer to its own, the more certain it is that it explains more."""
        trust = self.trust
        if np.any(channel.bias):
            # Different error rates per class make even regions of mixed labels, which a flexible model copies without
            # predicting any of them. There it must predict half of what the linear model misses.
            trust *= min(1.0, 2.0 * self.explained)
        return channel.noise_rate - trust * max(channel.noise_rate - self.channel.noise_rate, 0.0)

    def applied(self, channel: NoiseModel) -> NoiseModel:
        """The linear model's noise model with an interval of the rate that covers both models'.

        If the linear model is wrong, the reference model may be as well: its rate has the full tolerance. Single errors
        are claimed only if both models find them.
        """
        if self.explains_less:
            return channel
        (low, high), (other_low, other_high) = channel.interval, self.channel.interval
        tolerated = max(self.channel.noise_rate - 2.0 * MISFIT * self.trust, 0.0)
        channel = replace(channel, interval=(min(low, other_low, tolerated), max(high, other_high)))
        if channel.suspicion is None or (self.confirmed and not self.trust):
            return channel
        return replace(channel, suspicion=replace(channel.suspicion, clean_scale=None))

    def credible(self, channel: NoiseModel, scores: Vector, codes: Codes) -> NoiseModel:
        """The linear model's noise model; without likely errors if a better model expects that too few are errors."""
        likely = channel.noise_probability(scores[self.rows], codes[self.rows]) > SUSPECT
        if self.better and likely.any() and self.wrong[likely].mean() < PRECISION:
            return channel.undecided()
        return channel


def misfit_check(fits: FoldFits, scores: Vector, channel: NoiseModel) -> MisfitCheck | None:
    """Fit the reference model outside the same folds; None if features are sparse or too many."""
    rows = fits.rows
    if sparse.issparse(rows.X) or rows.X.shape[1] > MANY_FEATURES:
        return None
    step = -(-rows.n // CHECKED)
    kept = rows.held % step == 0
    rows, scores = rows.every(step), scores[kept]
    total = float(rows.n if rows.weight is None else rows.weight.sum())
    flexible = FoldFits(replace(rows, X=bends(rows.X, rows.weight), folds=rows.folds[:1]), total, True)
    z = flexible.fit([Spec(Latent(), REFERENCE_C)])[0].scores
    codes, weight, size = rows.held_codes, rows.evidence_weight, rows.evidence_size
    shift: bool | str = "auto" if rows.n_classes == 2 else False  # cost: one rate for more classes
    own = ChannelModels.of(z, codes, weight, size=size, shift=shift).assessed()
    at = np.arange(len(codes))
    likelihoods = [
        np.log(np.maximum(model.given_proba(seen)[at, codes], 1e-12)) for model, seen in ((channel, scores), (own, z))
    ]
    agrees, missed = predicted(z) == codes, channel.decide(scores) != codes
    wrong = channel.noise_probability(scores, codes) * missed
    suspected = wrong if weight is None else wrong * weight
    single = channel.unless_established().noise_probability(scores, codes) > SUSPECT
    confirmed = own.unless_established().noise_probability(z[single], codes[single]) > SUSPECT
    return MisfitCheck(
        own,
        ahead=mean_and_error(likelihoods[1] - likelihoods[0], weight, size).z,
        explained=float(suspected @ agrees / max(suspected.sum(), np.finfo(float).tiny)),
        confirmed=bool(confirmed.all()),
        rows=kept,
        wrong=own.probability_if_noisy(z, codes),
    )


def bends(X: Vector, weight: Vector | None) -> NDArray[np.float32]:
    """Return scaled and clipped features, their squares, ranks of skewed ones, and nearness to rows."""
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    Z = ((X - mean) / np.where(scale > 0, scale, 1.0)).astype(np.float32)
    ranks = [_normal_scores(Z[:, j])[:, None] for j in np.flatnonzero(np.abs(np.median(Z, axis=0)) > SKEWED)]
    np.clip(Z, -CLIPPED_SQUARES, CLIPPED_SQUARES, out=Z)
    return np.hstack([Z, Z**2, *ranks, *([_nearness(Z)] if Z.shape[1] <= FEW_FEATURES else [])])


def _normal_scores(column: Vector) -> NDArray[np.float32]:
    """Normal scores of the ranks: incomes and counts act by their order, and a logarithm fails at zero."""
    knots = np.linspace(0, len(column) - 1, min(32, len(column))).astype(np.intp)  # in between, a line will do
    scores = ndtri((knots + 0.5) / len(column))
    return np.asarray(np.interp(column, np.sort(column)[knots], scores), dtype=np.float32)


def _nearness(Z: Vector) -> Vector:
    """Nearness of each row to rows that lie spread along the first principal axis, whatever the order of the rows."""
    along = Z @ np.linalg.eigh(Z.T @ Z)[1][:, -1]
    some = Z[np.argsort(along, kind="stable")[:: -(-len(Z) // BUMPS)]]
    distance = np.square(Z).sum(axis=1)[:, None] - 2 * Z @ some.T + np.square(some).sum(axis=1)
    bumps = np.exp(-distance / Z.shape[1])
    return np.asarray(bumps / np.maximum(bumps.std(axis=0), 1e-6))  # of unit variance, as the penalty expects


__all__ = ["MisfitCheck", "misfit_check"]
