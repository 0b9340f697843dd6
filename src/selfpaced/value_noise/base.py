"""What the parts of the assessment share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.floating[Any]]
DEGREES = 4.0  # a choice: of the t distribution by which explanations are compared; normal tails trust too much


def t_log_density(z: Array, degrees: float = DEGREES) -> Array:
    """The logarithm of Student's density."""
    return np.asarray(t_log_peak(degrees) - (degrees + 1) / 2 * np.log1p(z * z / degrees))


def t_log_peak(degrees: float) -> float:
    """The logarithm of Student's density at 0."""
    return float(gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi))
