"""What an estimator tried on its way: one record per candidate, the same for every estimator."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

CAUTIOUS, NEARLY_PLAIN = 0.8, 0.95  # display: mean weights below and above which a candidate is called so
HISTOGRAM_BINS = 20  # display: bars of a histogram of weights


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
    far_off : int
        Training rows that a linear fit predicts more than ten times as far off as the worst row of the plain model,
        although nothing shows that they are wrong.
    accuracy : float
        Share of held-out rows whose given label the candidate predicts; ``nan`` if that is not known.
    """

    lam: float
    score: float = math.nan
    spread: float = math.nan
    mean_weight: float = math.nan
    cost: float = 0.0
    chosen: bool = False
    histogram: tuple[int, ...] = ()
    label: str = ""
    far_off: int = 0
    accuracy: float = math.nan


def weight_histogram(relative_weight: Any) -> tuple[int, ...]:
    """Counts of relative weights in 20 equal bins of [0, 1].

    >>> weight_histogram([0.0, 0.01, 1.0])[0], weight_histogram([0.0, 0.01, 1.0])[-1]
    (2, 1)
    """
    counts, _ = np.histogram(np.clip(np.asarray(relative_weight), 0, 1), bins=HISTOGRAM_BINS, range=(0, 1))
    return tuple(int(count) for count in counts)


def columns(path: Iterable[Candidate]) -> dict[str, list[Any]]:
    """The path as columns, ready for ``pandas.DataFrame`` or ``polars.DataFrame``."""
    records = [asdict(candidate) for candidate in path]
    return {name: [record[name] for record in records] for name in Candidate.__dataclass_fields__}


def trust_in_words(mean_weight: float, noun: str = "rows") -> str:
    """A candidate by how much of the data it trusts.

    >>> trust_in_words(0.74)
    'cautious: trusts 74 % of the rows'
    """
    temper = "cautious" if mean_weight < CAUTIOUS else "nearly plain" if mean_weight > NEARLY_PLAIN else "lenient"
    return f"{temper}: trusts {100 * mean_weight:.0f} % of the {noun}"


def end_in_words(termination: str, path: Iterable[Candidate], noun: str = "rows") -> str:
    """``termination_``, with how much of the data the chosen candidate trusts if it is not the plain model.

    >>> path = [Candidate(math.inf, mean_weight=1.0), Candidate(2.0, mean_weight=0.5, chosen=True)]
    >>> end_in_words("Welsch lam=2 was chosen: it is better.", path)
    'Welsch lam=2 was chosen: it is better. It trusts 50 % of the rows.'
    """
    paced = [one for one in path if one.chosen and math.isfinite(one.lam) and math.isfinite(one.mean_weight)]
    return termination + "".join(f" It trusts {100 * one.mean_weight:.0f} % of the {noun}." for one in paced)
