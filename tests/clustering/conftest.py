"""Small multi-view data with known clusters."""

from __future__ import annotations

import numpy as np
import pytest


def blobs(n: int = 150, clusters: int = 3, widths: tuple[int, ...] = (4, 3), seed: int = 0, spread: float = 0.5):
    """Gaussian clusters seen in several views, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % clusters
    views = [rng.normal(0, 3, (clusters, d))[y] + spread * rng.standard_normal((n, d)) for d in widths]
    return views, y


@pytest.fixture
def two_views():
    return blobs()
