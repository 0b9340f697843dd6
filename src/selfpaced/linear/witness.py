"""A second witness: what a more flexible model explains was misfit, not dirt.

A linear model that misses a bend sees wrong labels wherever the bend is.  Before they are called wrong, the same folds
are fitted once more with squares and products of the features, ranks of the skewed ones and, where features are few,
nearness to some of the rows.  Where those explain the held-out labels better, the share of wrong labels is theirs to
tell, and the interval reaches over both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

from ..label_noise import MISFIT, UNDECIDED, NoiseChannel, fit_channel
from ..residuals import weighted_quantile
from ..selection import mean_and_error
from .descent import FoldFits, Geometry, Penalty, predicted
from .objective import Vector

# Measured by benchmarks/classification.py --part development.
CLIPPED = 3.0  # standard deviations: beyond, a square would be all leverage
SKEWED = 0.1  # a choice: standard deviations between mean and median from which on ranks of a feature are looked at
AXES = 5  # principal components whose products are taken
BUMPS, FEW_FEATURES = 30, 20  # rows nearness to which is a feature, and features above which all rows are far
BENT_C = 0.1  # of the flexible model, which has more to penalise
RANKS = 500  # cost: that are told apart
HEARD = 5000  # cost: rows that it is asked about, or up to twice as many
WIDEST = 100  # cost: features above which products say little and cost much
DOUBT, BETTER = 1.0, 2.0  # standard errors that the flexible model must be ahead to be heard, and to be believed
MOSTLY = 0.5  # share of what the linear model calls wrong that counts as all of it

SUSPECT, FEW, WORTH_SAYING = 0.5, 5, 0.2  # display: probability and number of suspects, share explained that is told


@dataclass(frozen=True, eq=False)
class Testimony:
    """What the flexible model says of the held-out rows.

    Attributes
    ----------
    channel : NoiseChannel
        Fitted to its scores.
    ahead : float
        Standard errors by which it explains the held-out labels better than the linear model.
    wrong : ndarray
        Probability that the label of a held-out row is wrong, by the linear model alone.
    agrees : ndarray of bool
        Whether it predicts the given label.
    explained : float
        Share of the labels that it predicts among those that the linear model misses and calls wrong, by how wrong.
    """

    channel: NoiseChannel
    ahead: float
    wrong: Vector
    agrees: NDArray[np.bool_]
    explained: float

    @property
    def better(self) -> bool:
        """Whether it is believed rather than the linear model."""
        return self.ahead >= BETTER

    @property
    def trust(self) -> float:
        """How sure it is that it explains more, 0 to 1."""
        return float(np.clip((self.ahead - DOUBT) / (BETTER - DOUBT), 0.0, 1.0))

    def most(self, channel: NoiseChannel) -> float:
        """The largest rate that is believed: the nearer to its own, the surer it is that it explains more."""
        trust = self.trust
        if np.any(channel.bias):
            # Classes that are not wrong alike make even regions of mixed labels, which a flexible model copies without
            # predicting one of them: there it has to predict what the linear model misses.
            trust *= min(1.0, self.explained / MOSTLY)
        own, other = channel.noise_rate, self.channel.noise_rate
        return own - trust * (own - other) if other < own else own

    def likely(self, channel: NoiseChannel) -> float:
        """The rate that probabilities go by: where it doubts the noise that the linear model sees, the mean of both."""
        doubts = self.channel.interval[0] == 0 < channel.interval[0]
        return 0.5 * (channel.noise_rate + self.channel.noise_rate) if doubts else 1.0

    def doubted(self, channel: NoiseChannel) -> NoiseChannel:
        """The linear model's channel with labels doubted as far as both witnesses doubt them.

        Each counts by how well it explains the labels. One that is ahead shows that the linear model is wrong: unless
        noise is plain to it, beyond what a wrong link can feign, what is left unexplained may be more of the same.
        """
        if channel.suspicion is None or self.channel.suspicion is None:
            return channel
        own, other = channel.suspicion.share, self.channel.suspicion.share
        standing, others = (float(np.exp(-0.5 * max(z, 0.0) ** 2)) for z in (self.ahead, -self.ahead))
        share = min(own, (standing * own + others * other) / (standing + others))
        plain = min(self.channel.interval[0] / MISFIT, 1.0)
        share = min(share, 1.0 - (1.0 - UNDECIDED) * self.trust * (1.0 - plain))
        return replace(channel, suspicion=replace(channel.suspicion, share=share))

    def widened(self, channel: NoiseChannel) -> NoiseChannel:
        """The linear model's channel with an interval that reaches over both witnesses."""
        pairs = zip(channel.interval, self.channel.interval, (min, max), strict=True)
        low, high = (pick(own, other) for own, other, pick in pairs)
        return replace(channel, interval=(low, high))

    @property
    def sentence(self) -> str:
        """What it says of the linear model's own suspects, where it explains many of them."""
        suspects = self.wrong > SUSPECT
        if not self.better or suspects.sum() < FEW:
            return ""
        explained = float(self.agrees[suspects].mean())
        if explained < WORTH_SAYING:
            return ""
        return (
            f" A more flexible model explains {explained:.0%} of the labels that this one alone would call wrong: "
            "perhaps the model is wrong there, and not the labels; try a flexible one (--model boosting)."
        )


def testimony(fits: FoldFits, scores: Vector, channel: NoiseChannel) -> Testimony | None:
    """Fits with such features outside the same folds, beside the linear model's channel.

    None where features are sparse or too many.
    """
    layout = fits.layout
    if sparse.issparse(layout.X) or layout.X.shape[1] > WIDEST:
        return None
    step = max(1, layout.n // HEARD)
    kept = layout.held_out(np.arange(layout.n)) % step == 0
    layout, scores = layout.every(step), scores[kept]
    bent = replace(layout, X=bends(layout.X, layout.sample_weight))
    # As many rows as are heard: of a sample, a penalty beside the weight of all rows would be none.
    total = float(layout.n if layout.sample_weight is None else layout.sample_weight.sum())
    geometry = Geometry(bent.everything(ridge=1.0 / (BENT_C * total)))
    flexible = FoldFits(
        bent, penalty=Penalty(BENT_C, total), fit_intercept=True, plain=None, geometry=geometry, n_jobs=fits.n_jobs,
        progress=fits.progress,
    )  # fmt: skip
    z, codes, weight, size = flexible.plain.fit.scores, flexible.codes, flexible.relative_weight, flexible.evidence
    pairs = layout.n_classes == 2  # of more classes one rate is asked for: k^2 of them cost more than the fit
    heard = fit_channel(z, codes, sample_weight=weight, class_conditional=pairs, noiseless=True, size=size)
    rows = np.arange(len(codes))
    own, other = (
        np.log(np.maximum(witness.given_proba(seen)[rows, codes], 1e-12))
        for witness, seen in ((channel, scores), (heard, z))
    )
    agrees, missed = predicted(z) == codes, channel.decide(scores) != codes
    wrong = channel.noise_probability(scores, codes)
    doubted = wrong * missed * (1.0 if weight is None else weight)
    explained = float(doubted @ agrees / max(doubted.sum(), np.finfo(float).tiny))
    return Testimony(heard, mean_and_error(other - own, weight, size).z, wrong, agrees, explained)


def bends(X: Vector, weight: Vector | None) -> Vector:
    """The features, scaled and clipped, their squares, products of principal components, ranks, and nearness to rows.

    In single precision: half the time, and digits enough for a rough fit.
    """
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    Z = ((X - mean) / np.where(scale > 0, scale, 1.0)).astype(np.float32)
    ranks = [_ranks(column)[:, None] for column in Z.T if _skewed(column, weight)]
    np.clip(Z, -CLIPPED, CLIPPED, out=Z)
    _, axes = np.linalg.eigh(Z.T @ Z)
    parts = Z @ axes[:, ::-1][:, :AXES]
    parts = np.clip(parts / np.maximum(parts.std(axis=0), 1e-6), -CLIPPED, CLIPPED)
    i, j = np.triu_indices(parts.shape[1], 1)
    near = [_near(Z, along=parts[:, 0])] if Z.shape[1] <= FEW_FEATURES else []
    table = np.hstack([Z, Z**2, parts[:, i] * parts[:, j], *ranks, *near])
    table -= table.mean(axis=0)
    return table


def _skewed(column: Vector, weight: Vector | None) -> bool:
    """Whether the median of a standardised feature is far from its mean; of two values ranks say nothing new."""
    if abs(weighted_quantile(column, 0.5, weight)) <= SKEWED:
        return False
    return bool(((column != column.min()) & (column != column.max())).any())


def _ranks(column: Vector) -> Vector:
    """Normal scores of the ranks: incomes and counts act by their order of size, and a logarithm is not for zeros."""
    some = np.sort(column)[:: max(1, len(column) // RANKS)]
    below = np.searchsorted(some, column) + np.searchsorted(some, column, side="right")
    rank = np.clip(below / (2 * len(some)), 0.5 / len(some), 1 - 0.5 / len(some))
    return np.asarray(ndtri(rank).astype(np.float32))


def _near(Z: Vector, along: Vector) -> Vector:
    """How near every row is to some that lie spread along an axis: one bump for each, of unit variance.

    Not to the first ones: a witness that depends on the order of rows says another thing in every deal of the folds.
    """
    some = Z[np.argsort(along, kind="stable")[:: -(-len(Z) // BUMPS)]]
    distance = np.square(Z).sum(axis=1)[:, None] - 2 * Z @ some.T + np.square(some).sum(axis=1)
    bumps = np.exp(-distance / Z.shape[1])
    return np.asarray(bumps / np.maximum(bumps.std(axis=0), 1e-6))
