"""Components that only the whole matrix shows: what a fit leaves, held against itself with random signs.

A form that was chosen on some rows and columns has the components that show there. With more rows and columns a
component stands out the more: its singular value grows with the number of entries, that of noise with the root. Random
signs keep the sizes and places of the residuals and destroy whatever they have in common, so that they tell how large a
singular value noise has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import svds

from .entries import Floats

AT_ONCE = 6  # cost: components looked for at a time
FLIPS = 2  # cost: draws of signs
BEYOND = (
    1.155  # theory: of noise's largest singular value; 4 / sqrt(3) against 2 (Gavish and Donoho), else it adds noise
)
LOOSE = 1e-2  # cost: the precision of singular values


def further_components(residuals: Any, most: int, rng: np.random.Generator) -> tuple[Floats, Floats] | None:
    """The components that residuals have in common beyond noise, as factors of rows and columns, or None.

    Parameters
    ----------
    residuals : CSR array
        What is left of the entries, outliers as zeros.
    most : int
        As many components at most.
    rng : numpy.random.Generator
        Of the signs.
    """
    count = min(most, AT_ONCE, min(residuals.shape) - 1)
    if count < 1 or not residuals.data.any():
        return None
    start = rng.standard_normal(min(residuals.shape))
    noise = 0.0
    for _ in range(FLIPS):
        flipped = residuals.copy()
        flipped.data = flipped.data * rng.choice([-1.0, 1.0], residuals.data.size)
        noise = max(noise, float(svds(flipped, 1, v0=start, tol=LOOSE, return_singular_vectors=False)[0]))
    left, values, right = svds(residuals, count, v0=start, tol=LOOSE)
    found = values > BEYOND * noise
    if not found.any():
        return None
    # of an entry that was not seen nothing is known: what was seen stands for all
    seen = residuals.data.size / (residuals.shape[0] * residuals.shape[1])
    root = np.sqrt(values[found] / seen)
    return left[:, found] * root, right[found].T * root
