"""What the channel models share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Model:
    """One fitted channel model.

    Attributes
    ----------
    scale, bias, transition
        See `NoiseModel`.
    evidence : float
        Log-likelihood less the number of parameters beside the scale and the first rate.
    rate, error : float
        Share of wrong labels and its standard error; both 0 in a model without noise.
    noisy : bool
        Whether labels may be wrong in it at all.
    """

    scale: float
    bias: Array
    transition: Array
    evidence: float
    rate: float
    error: float
    noisy: bool = True


def softmax(z: Array) -> Array:
    """Rows of probabilities."""
    if z.shape[1] == 2:
        return pair(z[:, 1] - z[:, 0])
    out = np.asarray(z - z.max(axis=1, keepdims=True))
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)
    return out


def pair(margin: Array) -> Array:
    """The probabilities of two classes from the margin of the second; both keep their digits, however small."""
    ratio = np.exp(-np.abs(margin))
    likely = 1.0 / (1.0 + ratio)
    unlikely, second = ratio * likely, margin > 0
    out = np.empty((len(margin), 2))
    out[:, 0], out[:, 1] = np.where(second, unlikely, likely), np.where(second, likely, unlikely)
    return out


def symmetric(rate: float, n_classes: int) -> Array:
    """The transition matrix of one rate, wrong labels falling on all other classes alike."""
    out = np.full((n_classes, n_classes), rate / (n_classes - 1))
    out[np.diag_indices(n_classes)] = 1 - rate
    return out
