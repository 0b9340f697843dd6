"""What an estimator tried on its way: one record per candidate, the same for every estimator."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

BINS = 20  # display: bars of a histogram of weights


@dataclass(frozen=True)
class Candidate:
    """One model on the path, with the evidence for or against it.

    Attributes
    ----------
    lam : float
        The pace; ``inf`` is the plain, unweighted model.
    score, spread : float
        What the stop compared (larger is better) and its standard error; ``nan`` where there is none.
    mean_weight : float
        Mean weight relative to the rule's maximum, in [0, 1].
    cost : float
        Seconds spent on this candidate.
    chosen : bool
        Whether the estimator stopped here.
    histogram : tuple of int
        Counts of the relative weights in 20 equal bins of [0, 1].
    label : str
        A short name for tables and plots.
    """

    lam: float
    score: float = math.nan
    spread: float = math.nan
    mean_weight: float = math.nan
    cost: float = 0.0
    chosen: bool = False
    histogram: tuple[int, ...] = ()
    label: str = ""


def weight_histogram(relative_weight: Any) -> tuple[int, ...]:
    """Counts of relative weights in 20 equal bins of [0, 1].

    >>> weight_histogram([0.0, 0.01, 1.0])[0], weight_histogram([0.0, 0.01, 1.0])[-1]
    (2, 1)
    """
    counts, _ = np.histogram(np.clip(np.asarray(relative_weight), 0, 1), bins=BINS, range=(0, 1))
    return tuple(int(count) for count in counts)


def columns(path: Iterable[Candidate]) -> dict[str, list[Any]]:
    """The path as columns, ready for ``pandas.DataFrame`` or ``polars.DataFrame``."""
    records = [asdict(candidate) for candidate in path]
    return {name: [record[name] for record in records] for name in Candidate.__dataclass_fields__}
