"""The functions around the estimators: makers of noise, rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from selfpaced import datasets
from selfpaced.parameters import check_pace
from selfpaced.regularizers import REGISTRY, GroupRegularizer, get

from .draws import JUNK, SCALES, Draw, features, rows_of, target
from .outcomes import attempt, finite
from .parameters import DATA_NAMES, SENSIBLE

FLIPS = [datasets.flip_symmetric, datasets.flip_class_conditional]
FLIPS_BY_ROW = [datasets.flip_near_border, datasets.outliers_leverage]
SHIFTS = [datasets.outliers_one_sided]


def _some(draw: Draw, usual: list[Any]) -> Any:
    return draw.one(usual) if draw.chance(0.7) else draw.one(JUNK)


def noise(draw: Draw) -> None:
    names = ["rate", "rates", "random_state", "size", "distance", *DATA_NAMES]
    X = features(draw)
    function = draw.one([*FLIPS, *FLIPS_BY_ROW, *SHIFTS])
    labels = function in FLIPS or function in FLIPS_BY_ROW[:1]
    y = target(rows_of(X), draw, "labels" if labels else "values")
    rate = _some(draw, [0.0, 0.1, 0.5, 1.0, [0.1, 0.2], {0: 0.1, 1: 0.3}])
    arguments = (X, y, rate) if function in FLIPS_BY_ROW else (y, rate)
    found = attempt(lambda: function(*arguments, random_state=_some(draw, [0, 1, None])), names)
    if found is not None and not labels:
        finite(function.__name__, found[0] if isinstance(found, tuple) else found.target)


def rules(draw: Draw) -> None:
    name = _some(draw, list(REGISTRY))
    names = ["regularizer", "loss", "losses", "lam", "pace", "rule"]
    rule = attempt(lambda: get(name), names)
    attempt(lambda: check_pace(_some(draw, SENSIBLE["pace"])), names)
    if rule is None or not hasattr(rule, "opens"):
        return
    losses = np.abs(draw.rng.normal(size=draw.one([0, 1, 5]))) * draw.one([0.0, 1.0, *SCALES[:-1]])
    lam = draw.one([1e-6, 0.5, 1.0, 3.0, 1e6])
    if isinstance(rule, GroupRegularizer) or not np.isfinite(losses).all():
        return
    found = attempt(lambda: rule.weight(losses, lam), names, ours=False)
    if found is not None:
        finite("weight", found, losses.shape)
