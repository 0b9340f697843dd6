"""The label-noise model: from out-of-fold logits to clean probabilities and a noise rate.

A model trained on noisy labels, however robustly, is not calibrated: its logits have some arbitrary scale,
and the labels at hand are not the ones that matter.  The label-noise model relates both,

    P(given = y | z) = sum_j softmax(tau z + beta)_j T_jy ,

clean probabilities seen through a transition matrix ``T`` (``T[j, y]``: a true ``j`` recorded as ``y``).  Its
parameters are fitted by likelihood on out-of-fold logits, so no clean label is ever needed.  Nested models (scale
and one noise rate; also a bias; also one rate per class pair; on request those without any noise) are averaged by
their evidence.

The average is taken over parameters, not over probabilities: a weighted geometric mean of softmax models is
the softmax of the averaged parameters, so the result stays one linear map of the logits, and decision,
probability and predicted label can never disagree.
"""

from __future__ import annotations

from .fit import MISFIT, ChannelModels, fit_channel, one_rate_likelihood
from .model import (
    CLEAN,
    UNDECIDED,
    NoiseModel,
    Suspicion,
    confident_error,
    design_effect,
    logits_from_proba,
    rate_scores,
    share_to_check,
    softmax_columns,
    symmetric,
)

__all__ = [
    "CLEAN",
    "MISFIT",
    "UNDECIDED",
    "ChannelModels",
    "NoiseModel",
    "Suspicion",
    "confident_error",
    "design_effect",
    "fit_channel",
    "logits_from_proba",
    "one_rate_likelihood",
    "rate_scores",
    "share_to_check",
    "softmax_columns",
    "symmetric",
]
