"""What the channel models share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Model:
    """One fitted channel model; ``evidence`` is its log-likelihood less the number of its parameters."""

    scale: float
    bias: Array
    transition: Array
    evidence: float
    rate: float
    error: float


def softmax(z: Array) -> Array:
    """Rows of probabilities."""
    out = np.asarray(z - z.max(axis=1, keepdims=True))
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)
    return out
