"""Parameters of estimators: sensible ones, junk, and the names by which errors may speak of them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from selfpaced.pacing import Fixed, Geometric
from selfpaced.regularizers import REGISTRY, get

from .draws import JUNK, Draw

DATA_NAMES = [
    "X", "y", "sample_weight", "rows", "columns", "view", "views", "mask", "fitted", "weights", "n", "threshold",
]  # fmt: skip

#: Other values that a parameter may well have.
SENSIBLE: dict[str, list[Any]] = {
    "regularizer": [*REGISTRY, get("welsch"), get("hard")],
    "pace": ["auto", "paper", 0.3, 3, 1e6, 1e-6, np.inf, Fixed(1.0), Geometric()],
    "C": ["auto", 0.1, 1.0, 1e6, 1e-9],
    "penalty": ["l2", None],
    "alpha": [0.0, 1.0, 1e-9, 1e9],
    "class_weight": ["balanced", {0: 1.0, 1: 5.0}, {0: 0.0, 1: 1.0}, {"no": 2.0}],
    "tol": [1e-9, 1e-2, 1.0],
    "max_iter": [1, 2, 30],
    "rank": [1, 2, 5, "auto"],
    "n_clusters": [1, 2, 5, 30],
    "view_scaling": ["zscore", "variance", "unit-row", "none"],
    "embedding": [None, "spectral"],
    "cv": [2, 3, "auto"],
    "how": ["drop", "weight"],
    "center": ["auto", "both", "rows", "columns", None],
    "bounds": [(0, 1), (-5.0, 5.0), None],
    "backend": ["numpy", "auto"],
    "cross_fit": [True, False, "auto"],
    "start": ["auto", "robust", "plain"],
    "warm_start": [True],
}


def options(kind: type, draw: Draw, share: float = 0.08) -> dict[str, Any]:
    """Some parameters of a class: sensible ones, and junk."""
    found = {}
    for name in inspect.signature(kind.__init__).parameters:
        if name != "self" and draw.chance(share):
            found[name] = draw.one(SENSIBLE[name] if name in SENSIBLE and draw.chance(0.6) else JUNK)
    return found


def names_of(kind: type) -> list[str]:
    return [name for name in inspect.signature(kind.__init__).parameters if name != "self"] + DATA_NAMES
