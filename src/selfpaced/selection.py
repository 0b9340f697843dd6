"""The choice between candidates: scores per row, paired gaps, a decision with its reason, the path and the sentence.

Every estimator brings its own evidence (what a row's score is, and how large a gap must be); how candidates are
compared and how the outcome is told is the same for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating[Any]]
CLEARLY_BETTER = 2.0  # convention: standard errors by which a paced model must be better than the plain one
BITS = 40  # numerical safety: of relative weights; a tree decides ties by the last ones, which a factor changes
MOST_COPIES = 2.0**31  # numerical safety: beyond, every number is whole, and no count


@dataclass(frozen=True)
class Candidate:
    """One model on the path, with the evidence for or against it; ``pandas.DataFrame(model.path_)`` is the whole path.

    Attributes
    ----------
    lam : float
        The pace; ``inf`` is the plain, unweighted model.
    score, spread : float
        What the stop compared (larger is better) and its standard error; ``nan`` if there is none.
    mean_weight : float
        Mean weight relative to the rule's maximum, in [0, 1].
    cost : float
        Seconds spent on this candidate.
    chosen : bool
        Whether the estimator stopped here.
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
    label: str = ""
    far_off: int = 0
    accuracy: float = math.nan


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate with its score per row.

    Attributes
    ----------
    lam : float
        The pace; ``inf`` is the plain, unweighted model.
    label : str
        A short name for tables, plots and sentences.
    scores : ndarray, optional
        Held-out score, row by row, larger is better; None if nothing could be compared, NaN for rows without a
        score.
    weight : ndarray, optional
        Relative weights of the rows; None is full weight for all.
    cost : float
        Seconds.
    fit : object
        What the estimator needs to keep it.
    accuracy : float
        Share of held-out rows whose given label it predicts.
    """

    lam: float
    label: str
    scores: Floats | None = None
    weight: Floats | None = None
    cost: float = 0.0
    fit: Any = field(default=None, repr=False)
    accuracy: float = math.nan

    @property
    def plain(self) -> bool:
        """Whether this is the plain model."""
        return math.isinf(self.lam)


@dataclass(frozen=True)
class Gap:
    """By how much one candidate's score is above another's, on the same rows, and the standard error of that."""

    mean: float
    error: float

    @property
    def z(self) -> float:
        """The gap in standard errors."""
        return 0.0 if self.mean == 0 else self.mean / max(self.error, 1e-12)

    def __str__(self) -> str:
        return f"{self.mean:.3f} +- {self.error:.3f}"


@dataclass(frozen=True)
class Decision:
    """The chosen candidate, and the reason in words (without a full stop)."""

    index: int
    reason: str


def effective_size(sample_weight: Floats | None, n_rows: int) -> float:
    """How many rows the weights stand for, see `frequencies`.

    >>> effective_size(np.array([2.0, 1.0]), 2), round(effective_size(np.array([0.2, 0.1]), 2), 6)
    (3.0, 1.8)
    >>> effective_size(np.full(5, 2.0), 5), effective_size(np.full(5, 2.0000001), 5)
    (5.0, 5.0)
    """
    return float(n_rows) if sample_weight is None else float(np.sum(frequencies(sample_weight)))


def frequencies(sample_weight: Floats) -> NDArray[np.float64]:
    """Sample weights as frequencies: in the unit in which a weight of 1 is one row, whatever unit they came in.

    Whole numbers are counts, up to a common divisor, so that a row of weight 2 beside others of weight 1 is that row
    twice. Equal weights say nothing. All other weights are relative to each other, and sum to Kish's effective size.

    >>> frequencies(np.array([2.0, 1.0])).tolist(), frequencies(np.array([4.0, 2.0, 0.0])).tolist()
    ([2.0, 1.0], [2.0, 1.0, 0.0])
    >>> frequencies(np.array([0.3, 0.3])).tolist(), frequencies(np.array([0.2, 0.1])).round(6).tolist()
    ([1.0, 1.0], [1.2, 0.6])
    """
    weight = np.asarray(sample_weight, dtype=np.float64)
    largest = float(np.max(weight, initial=0.0))
    if not largest > 0:
        return weight
    share = weight / largest  # squares of tiny weights would vanish
    if np.all((share == 1.0) | (share == 0.0)):
        return share
    if largest < MOST_COPIES and np.array_equal(weight, np.rint(weight)):
        return np.asarray(weight / np.gcd.reduce(weight.astype(np.int64)))
    part, power = np.frexp(share)
    share = np.ldexp(np.rint(np.ldexp(part, BITS)), power - BITS)
    return np.asarray(share * (float(np.sum(share)) / float(np.sum(np.square(share)))))


def mean_and_error(values: ArrayLike, sample_weight: Floats | None = None, size: float | None = None) -> Gap:
    """The weighted mean of independent values, and its standard error; a value of weight 2 is that value twice.

    ``size`` says how many independent values they are worth, if the weights do not.

    >>> mean_and_error(np.array([0.0, 1.0, 1.0])) == mean_and_error(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    True
    """
    values = np.asarray(values, dtype=np.float64)
    mean = float(np.average(values, weights=sample_weight))
    size = effective_size(sample_weight, values.size) if size is None else size
    if size < 2:
        return Gap(mean, math.nan)  # one value says nothing about its error
    return Gap(mean, math.sqrt(float(np.average(np.square(values - mean), weights=sample_weight)) / size))


def gap(better: Trial, worse: Trial, sample_weight: Floats | None = None, size: float | None = None) -> Gap:
    """The paired gap between two candidates."""
    return mean_and_error(_scores(better) - _scores(worse), sample_weight, size)


def _scores(trial: Trial) -> Floats:
    if trial.scores is None:
        raise ValueError(f"{trial.label!r} must have scores to be compared, got None")
    return trial.scores


def behind(trials: Sequence[Trial], sample_weight: Floats | None = None) -> Floats:
    """How many paired standard errors every candidate is behind the best paced one (the plain one stands first).

    Negative if the plain model is ahead of it; zeros if there is only the plain model.
    """
    if len(trials) == 1:
        return np.zeros(1)
    best = max(trials[1:], key=lambda trial: mean_and_error(_scores(trial), sample_weight).mean)
    return np.array([gap(best, trial, sample_weight).z for trial in trials])


def end_of_pace(trials: Sequence[Trial], reason: str) -> Decision:
    """The last candidate of a given pace that left some row its weight, which is the very last for ``reason``.

    >>> held, lost = Trial(1.0, "first", weight=np.ones(2)), Trial(2.0, "last", weight=np.zeros(2))
    >>> end_of_pace([Trial(math.inf, "plain"), held, lost], "the pace ended there")
    Decision(index=1, reason='at lam = 2 every weight is zero (start at a larger fraction or set a floor)')
    """
    held = [number for number, trial in enumerate(trials) if trial.weight is None or np.any(trial.weight > 0)][-1]
    if held == len(trials) - 1:
        return Decision(held, reason)
    lam = trials[held + 1].lam
    return Decision(held, f"at lam = {lam:.4g} every weight is zero (start at a larger fraction or set a floor)")


def plain_or_paced(
    plain: Floats, paced: Floats, lam: float, sample_weight: Floats | None = None
) -> tuple[list[Trial], Decision]:
    """The plain or the paced model, by their scores on the same unseen rows: the paced one must be plainly better.

    >>> plain_or_paced(np.array([0.0, 0.1]), np.array([1.0, 1.2]), 0.5)[1]
    Decision(index=1, reason='its score on unseen rows is higher by 1.050 +- 0.035')
    """
    trials = [Trial(math.inf, "plain", plain), Trial(lam, "the paced model", paced)]
    gain = gap(trials[1], trials[0], sample_weight)
    if gain.mean > CLEARLY_BETTER * gain.error:
        return trials, Decision(1, f"its score on unseen rows is higher by {gain}")
    return trials, Decision(0, f"the paced model is not clearly better on unseen rows (score difference {gain})")


def path_of(trials: Sequence[Trial], decision: Decision, sample_weight: Floats | None = None) -> tuple[Candidate, ...]:
    """The record of the choice: every candidate with the score that was compared."""
    return tuple(_candidate(trial, index == decision.index, sample_weight) for index, trial in enumerate(trials))


def _candidate(trial: Trial, chosen: bool, sample_weight: Floats | None) -> Candidate:
    score = Gap(math.nan, math.nan) if trial.scores is None else _known(trial.scores, sample_weight)
    mean_weight = 1.0
    if trial.weight is not None:
        matched = sample_weight is not None and sample_weight.shape == trial.weight.shape
        mean_weight = float(np.average(trial.weight, weights=sample_weight if matched else None))
    return Candidate(
        lam=float(trial.lam),
        score=score.mean,
        spread=score.error,
        mean_weight=mean_weight,
        cost=trial.cost,
        chosen=chosen,
        label=trial.label,
        accuracy=trial.accuracy,
    )


def _known(scores: Floats, sample_weight: Floats | None) -> Gap:
    """Mean and error over the rows that have a score."""
    known = ~np.isnan(scores)
    if not known.any():
        return Gap(math.nan, math.nan)
    return mean_and_error(scores[known], sample_weight if sample_weight is None else sample_weight[known])


def sentence(trials: Sequence[Trial], decision: Decision) -> str:
    """The choice and its reason, as in ``termination_``.

    >>> sentence([Trial(math.inf, "plain")], Decision(0, "no noise was detected"))
    'The plain model is used: no noise was detected.'
    """
    trial = trials[decision.index]
    return chosen_in_words("" if trial.plain else trial.label, decision.reason)


def chosen_in_words(label: str, reason: str) -> str:
    """The model of this label, or the plain one, and the reason of the choice.

    >>> chosen_in_words("welsch lam=2", "it is better.")
    'Welsch lam=2 was chosen: it is better.'
    """
    what = f"{label[:1].upper()}{label[1:]} was chosen" if label else "The plain model is used"
    return f"{what}: {reason.rstrip('.')}."


# ------------------------------------------------------------------------------------- the path, for people


def end_in_words(termination: str, path: Iterable[Candidate], noun: str = "rows") -> str:
    """``termination_``, with the mean weight of the chosen candidate if it is not the plain model.

    >>> path = [Candidate(math.inf, mean_weight=1.0), Candidate(2.0, mean_weight=0.5, chosen=True)]
    >>> end_in_words("Welsch lam=2 was chosen: it is better.", path)
    'Welsch lam=2 was chosen: it is better. The mean weight of the rows is 0.50.'
    """
    paced = [one for one in path if one.chosen and math.isfinite(one.lam) and math.isfinite(one.mean_weight)]
    return termination + "".join(f" The mean weight of the {noun} is {one.mean_weight:.2f}." for one in paced)
