"""What an estimator tried on its way: one record per candidate, the same for every estimator."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .regularizers import REGISTRY

CAUTIOUS, NEARLY_PLAIN = 0.8, 0.95  # display: mean weights below and above which a candidate is called so
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


def trust_in_words(mean_weight: float, noun: str = "rows") -> str:
    """A candidate by how much of the data it trusts.

    >>> trust_in_words(0.74)
    'cautious: trusts 74 % of the rows'
    """
    return f"{_temper(mean_weight)}: trusts {100 * mean_weight:.0f} % of the {noun}"


def _temper(mean_weight: float) -> str:
    return "cautious" if mean_weight < CAUTIOUS else "nearly plain" if mean_weight > NEARLY_PLAIN else "lenient"


def sentence_in_words(sentence: str, path: Iterable[Candidate], noun: str = "rows") -> str:
    """A sentence of ``termination_`` whose candidates are called by how much they trust, with one rule and pace.

    >>> path = [Candidate(lam, label=f"welsch lam={lam}", mean_weight=lam / 4) for lam in (2, 3)]
    >>> sentence_in_words("Welsch lam=2 was chosen: averaged with welsch lam=3.", path)
    'The cautious candidate (trusts 50 % of the rows; welsch lam=2) was chosen: averaged with the one that trusts 75 %.'
    """
    known = {candidate.label: candidate.mean_weight for candidate in path if _by_its_rule(candidate)}
    if not known:
        return sentence
    longest_first = sorted(known, key=len, reverse=True)
    first = True

    def words(found: re.Match[str]) -> str:
        nonlocal first
        label = found[0][:1].lower() + found[0][1:]
        weight = known[label]
        name = f"the one that trusts {100 * weight:.0f} %"
        if first:
            name = f"the {_temper(weight)} candidate (trusts {100 * weight:.0f} % of the {noun}; {label})"
        first = False
        return name if found[0] == label else name[:1].upper() + name[1:]

    # no label inside a longer number: "lam=1" is not the beginning of "lam=1.41"
    return re.sub(f"(?i:{'|'.join(map(re.escape, longest_first))})(?!\\.?\\d)", words, sentence)


def _by_its_rule(candidate: Candidate) -> bool:
    """Whether the label is a rule's name and its pace, which say nothing to most people; others are words already."""
    rule = re.split("[ ,]", candidate.label)[0]
    return rule in REGISTRY and math.isfinite(candidate.lam) and math.isfinite(candidate.mean_weight)


def probability_of_labels(score: float, spread: float) -> tuple[float, float]:
    """A mean log-likelihood of held-out labels as the probability that they are given, which people can read.

    >>> [round(part, 3) for part in probability_of_labels(-0.47, 0.016)]
    [0.625, 0.01]
    """
    return math.exp(score), math.exp(score) * spread
