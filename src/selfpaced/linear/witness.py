"""A second witness: what a more flexible model explains was misfit, not dirt.

A linear model that misses a bend sees wrong labels wherever the bend is.  Before they are called wrong, the same folds
are fitted once more with squares and products of the features.  Where those explain the held-out labels better, the
share of wrong labels is theirs to tell, and the interval reaches over both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..label_noise import NoiseChannel, fit_channel
from ..selection import mean_and_error
from .descent import FoldFits, Geometry, Penalty, predicted
from .objective import Vector

# Measured by benchmarks/classification.py --part development.
CLIPPED = 3.0  # standard deviations: beyond, a square would be all leverage
AXES = 5  # principal components whose products are taken
BENT_C = 0.1  # of the flexible model, which has more to penalise
WIDEST = 100  # cost: features above which products say little and cost much
DOUBT, BETTER = 1.0, 2.0  # standard errors that the flexible model must be ahead to be heard, and to be believed

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
    agrees : ndarray of bool
        Held-out rows whose given label is the one it predicts.
    """

    channel: NoiseChannel
    ahead: float
    agrees: NDArray[np.bool_]

    @property
    def better(self) -> bool:
        """Whether it is believed rather than the linear model."""
        return self.ahead >= BETTER

    def most(self, channel: NoiseChannel) -> float:
        """The largest rate that is believed: the nearer to its own, the surer it is that it explains more."""
        trust = float(np.clip((self.ahead - DOUBT) / (BETTER - DOUBT), 0.0, 1.0))
        own, other = channel.noise_rate, self.channel.noise_rate
        return own - trust * (own - other) if other < own else own

    def likely(self, channel: NoiseChannel) -> float:
        """The rate that probabilities go by: where it doubts the noise that the linear model sees, the mean of both."""
        doubts = self.channel.interval[0] == 0 < channel.interval[0]
        return 0.5 * (channel.noise_rate + self.channel.noise_rate) if doubts else 1.0

    def widened(self, channel: NoiseChannel) -> NoiseChannel:
        """The linear model's channel with an interval that reaches over both witnesses."""
        pairs = zip(channel.interval, self.channel.interval, (min, max), strict=True)
        low, high = (pick(own, other) for own, other, pick in pairs)
        return replace(channel, interval=(low, high))

    def sentence(self, wrong: Vector) -> str:
        """What it says of the suspects, where it explains many of them."""
        suspects = wrong > SUSPECT
        if not self.better or suspects.sum() < FEW:
            return ""
        explained = float(self.agrees[suspects].mean())
        if explained < WORTH_SAYING:
            return ""
        return (
            f" A model with squares and products explains {explained:.0%} of the suspects: perhaps the model is wrong "
            "there, and not the labels; try a flexible one (--model boosting)."
        )


def testimony(fits: FoldFits, scores: Vector, channel: NoiseChannel) -> Testimony | None:
    """Fits with squares and products outside the same folds, beside the linear model's channel.

    None where features are sparse or too many, or only a sample of the rows decides.
    """
    layout = fits.layout
    if sparse.issparse(layout.X) or layout.X.shape[1] > WIDEST or layout.sampled:
        return None
    bent = replace(layout, X=bends(layout.X, layout.sample_weight))
    total = fits.penalty.total
    geometry = Geometry(bent.everything(ridge=1.0 / (BENT_C * total)))
    flexible = FoldFits(
        bent, penalty=Penalty(BENT_C, total), fit_intercept=True, plain=None, geometry=geometry, n_jobs=fits.n_jobs,
        progress=fits.progress,
    )  # fmt: skip
    z, codes, weight, size = flexible.plain.fit.scores, flexible.codes, flexible.relative_weight, flexible.evidence
    heard = fit_channel(z, codes, sample_weight=weight, noiseless=True, size=size)
    rows = np.arange(len(codes))
    own, other = (
        np.log(np.maximum(witness.given_proba(seen)[rows, codes], 1e-12))
        for witness, seen in ((channel, scores), (heard, z))
    )
    return Testimony(heard, mean_and_error(other - own, weight, size).z, predicted(z) == codes)


def bends(X: Vector, weight: Vector | None) -> Vector:
    """The features, scaled and clipped, their squares, and products of their principal components."""
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    Z = np.clip((X - mean) / np.where(scale > 0, scale, 1.0), -CLIPPED, CLIPPED).astype(np.float64)
    _, axes = np.linalg.eigh(Z.T @ Z)
    parts = Z @ axes[:, ::-1][:, :AXES]
    parts = np.clip(parts / np.maximum(parts.std(axis=0), 1e-12), -CLIPPED, CLIPPED)
    i, j = np.triu_indices(parts.shape[1], 1)
    table = np.hstack([Z, Z**2, parts[:, i] * parts[:, j]])
    return np.ascontiguousarray(table - table.mean(axis=0))
