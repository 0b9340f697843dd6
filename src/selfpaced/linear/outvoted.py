"""Labels that a fit contradicts although it could have followed them.

With more features than rows a linear model can follow any label. What it contradicts all the same, other rows outvote.
Held-out labels cannot tell this: many are missed for want of rows, which looks like classes that overlap, so the
channel sees no noise at all. Labels given by a rule, as keywords give them to documents, are wrong in this way.
Many features that say a few things, as spectra do, are no such case: rows are not wanting, the fit contradicts as many
labels that it has seen as others, and classes that overlap are just that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..label_noise import NoiseChannel
from .objective import Objective, Vector
from .witness import SUSPECT

__all__ = ["contradictions"]

# Measured by benchmarks/classification.py --part rules.
OUTVOTED = 0.8  # probability that a label is wrong which a fit that has seen it is sure to be wrong
WANTING = 2 / 3  # contradicted labels of the fit over those of held-out rows, below which rows are wanting

BEYOND_DOUBT = 0.999  # theory: nine nats, which the choice among candidates does not bring about by chance


def contradictions(
    rows: Objective, params: Vector, channel: NoiseChannel, unseen: float
) -> tuple[NoiseChannel, NoiseChannel, str]:
    """The channel with at least the rate that the suspects make up, the one that judges these rows, and a sentence.

    Without more features than rows, where it is not beyond doubt that the features tell labels, or where as many labels
    of the fit are contradicted as of held-out rows (``unseen``, a share), the channel as it is, twice, and nothing to
    say.
    """
    if rows.n_features < rows.n or channel.suspicion is None or channel.suspicion.signal < BEYOND_DOUBT:
        return channel, channel, ""
    scores = rows.scores(params)
    if np.average(channel.decide(scores) != rows.codes, weights=rows.sample_weight) > WANTING * unseen:
        return channel, channel, ""
    judging = channel.contradicting(OUTVOTED)
    wrong = judging.noise_probability(scores, rows.codes)
    suspects = wrong > SUSPECT
    if not suspects.any():
        return channel, judging, ""
    rate = max(channel.noise_rate, float(np.average(wrong * suspects, weights=rows.sample_weight)))
    interval = (channel.interval[0], max(channel.interval[1], rate))
    said = f" {suspects.mean():.1%} of the labels are probably wrong: a model that was fitted to them contradicts them."
    channel = replace(channel, noise_rate=rate, interval=interval)
    return channel, channel.contradicting(OUTVOTED), said
