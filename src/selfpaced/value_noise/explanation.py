"""Explanations of a target: what was to be expected of each row, and how far off it may be.

Each is learnt on other rows than it is asked about. The user's own model is one of them; a line and boosted medians, on
several scales of the target, are the others. The likeliest wins, and rows that it explains are nobody's mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from ..fitting import few_threads
from ..folds import Split
from ..robust import madn
from .base import Array, t_log_density
from .line import RobustLine
from .scales import TargetScale, target_scales

__all__ = ["Explanation", "Rows", "best_explanation"]

BOOSTED = 100  # a choice: rows from which on trees are asked
SHARES = (0.01, 0.05, 0.12, 0.25, 0.45)  # a choice: of values that no explanation has to account for
TREES, LEAVES, BINS = 40, 8, 64  # cost: of a probe
FAR = 20.0  # numerical safety: spreads of the target beyond which values do not count as farther
CUT = 3.0  # a choice: spreads of residuals beyond which they do not draw a mean farther
WIDE = 5.0  # a choice: spreads of the target over which unaccounted values are strewn
EVIDENCE = 5.0  # nats that an explanation must be ahead by: benchmarks/values.py
ERRORS = 2.0  # standard errors that it must be ahead by: benchmarks/values.py
ENOUGH = 3.0  # nats for a spread that differs from row to row: benchmarks/values.py
TINY = 0.05  # numerical safety: of the median residual; below, its logarithm says nothing


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to be explained.

    Attributes
    ----------
    y : ndarray of shape (n,)
        The target.
    guesses : sequence of ndarray of shape (n,)
        What the user's models expect, the one in question first.
    features : ndarray of shape (n, p) or None
        Numbers that the target may depend on.
    weight : ndarray of shape (n,) or None
        Frequencies of the rows, see :func:`selfpaced.selection.frequencies`.
    """

    y: Array
    guesses: tuple[Array, ...]
    features: Array | None = None
    weight: Array | None = None

    def take(self, index: Any) -> Rows:
        """Some of them."""
        features, weight = (None if part is None else part[index] for part in (self.features, self.weight))
        return Rows(self.y[index], tuple(guess[index] for guess in self.guesses), features, weight)

    @property
    def size(self) -> float:
        """How many rows they count as."""
        return float(len(self.y) if self.weight is None else self.weight.sum())

    def size_of(self, some: NDArray[np.bool_]) -> float:
        """How many rows those of a mask count as."""
        return float(np.sum(some) if self.weight is None else self.weight @ some)

    @property
    def inputs(self) -> Array:
        """Features, and what the model in question expects."""
        columns = [self.guesses[0][:, None]] if self.features is None else [self.features, self.guesses[0][:, None]]
        return np.hstack(columns)


@dataclass(frozen=True, eq=False)
class Explanation:
    """What is expected of rows on a scale of the target, and the spread around it.

    Attributes
    ----------
    scale : TargetScale
        Of the target.
    source : int or tuple of regressors
        What the expectation starts from: a place in the guesses, or lines of which the mean is taken.
    middle, spread : ndarray of shape (n,)
        Expectation and spread of the rows it was made on, by models that had not seen the row.
    even : float
        The spread, or its factor where it is uneven.
    probe, uneven : tuple of regressors
        Whose mean is added to the expectation, and is the logarithm of the spread; empty: nothing is, and it is even.
    words : str
        How it reads in a sentence.
    """

    scale: TargetScale
    source: Any
    middle: Array
    spread: Array
    even: float
    probe: tuple[Any, ...] = ()
    uneven: tuple[Any, ...] = ()
    words: str = ""

    def standardised(self, y: Array) -> Array:
        """Residuals in units of their spread, of the rows it was made on."""
        return np.asarray((self.scale.forward(y) - self.middle) / self.spread)

    def of(self, rows: Rows) -> Explanation:
        """The same explanation of other rows."""
        if isinstance(self.source, int):
            middle = self.scale.forward(rows.guesses[self.source])
        else:
            middle = _mean(self.source, rows.inputs)
        if self.probe:
            middle = middle + _mean(self.probe, np.c_[rows.inputs, middle])
        spread = np.full(len(rows.y), self.even)
        if self.uneven:
            spread = self.even * np.exp(_mean(self.uneven, np.c_[rows.inputs, middle]))
        return replace(self, middle=middle, spread=spread)


@dataclass(frozen=True, eq=False)
class _Scored:
    """An explanation with its log density of every row."""

    explanation: Explanation
    density: Array


class _Court:
    """Compares explanations of the same rows by their held-out likelihood."""

    def __init__(self, rows: Rows, folds: Sequence[Split]) -> None:
        self.rows, self.folds = rows, folds
        y = rows.y
        spread = madn(y - np.median(y), rows.weight) or float(np.std(y)) or 1.0
        u = (y - np.median(y)) / (WIDE * spread)
        self.anything = -np.log(np.pi * WIDE * spread * (1 + u * u))
        self.weight = np.ones(len(y)) if rows.weight is None else rows.weight

    def scored(self, explanation: Explanation) -> _Scored:
        """With the log density at the likeliest share of values that it need not account for."""
        y, scale = self.rows.y, explanation.scale
        core = t_log_density(explanation.standardised(y)) - np.log(explanation.spread) + scale.log_slope(y)
        core = np.where(scale.holds(y), core, -np.inf)
        tried = [np.logaddexp(np.log1p(-share) + core, np.log(share) + self.anything) for share in SHARES]
        return _Scored(explanation, max(tried, key=self.total))

    def total(self, density: Array) -> float:
        return float(self.weight @ density)

    def ahead(self, one: _Scored, other: _Scored) -> bool:
        """Whether one is clearly likelier than the other."""
        gain = one.density - other.density
        total = self.total(gain)
        error = float(np.sqrt(np.sum(np.square(self.weight * (gain - total / self.weight.sum())))))
        return total > max(EVIDENCE, ERRORS * error)

    def best(self, candidates: Sequence[_Scored]) -> _Scored:
        """The likeliest; an earlier one unless a later one is clearly ahead."""
        kept = candidates[0]
        for candidate in candidates[1:]:
            if self.ahead(candidate, kept):
                kept = candidate
        return kept

    def around(
        self, scale: TargetScale, middle: Array, source: Any, words: str, probe: tuple[Any, ...] = ()
    ) -> _Scored:
        """An explanation with one spread for all rows."""
        residuals = (scale.forward(self.rows.y) - middle)[scale.holds(self.rows.y)]
        even = madn(residuals - np.median(residuals)) or float(np.std(residuals)) or 1e-300
        spread = np.full(len(middle), even)
        return self.scored(Explanation(scale, source, middle, spread, even, probe, words=words))

    def unseen(self, make: Callable[[], Any], inputs: Array, target: Array, held: np.ndarray) -> _Unseen | None:
        """Predictions for every row by models that were not fitted on it; None where those of the first fold are idle.

        They are where the first fold's model predicts its own rows no better than no model.
        """
        out, models = np.empty(len(target)), []
        for train, test in self.folds:
            train, asked = train[held[train]], test[held[test]]
            weight = self.weight[train]
            models.append(make().fit(inputs[train], target[train], None if np.ptp(weight) == 0 else weight))
            out[test] = models[-1].predict(inputs[test])
            centre = float(np.median(target[train]))
            sizes = [np.average(np.abs(target[asked] - m), weights=self.weight[asked]) for m in (out[asked], centre)]
            if len(models) == 1 and asked.size and sizes[0] >= sizes[1]:
                return None
        return _Unseen(out, tuple(models))


@dataclass(frozen=True, eq=False)
class _Unseen:
    """Predictions of rows by models that had not seen them, and the models."""

    values: Array
    models: tuple[Any, ...]


def _mean(models: Sequence[Any], inputs: Array) -> Array:
    return np.asarray(np.mean([model.predict(inputs) for model in models], axis=0))


def boosted(n_rows: int) -> Any:
    """Boosted means, small: what they predict only has to show that there is something to be predicted."""
    return HistGradientBoostingRegressor(
        max_iter=TREES, max_leaf_nodes=LEAVES, min_samples_leaf=int(np.clip(n_rows // 100, 5, 20)), learning_rate=0.2,
        max_bins=BINS, early_stopping=False, random_state=0,
    )  # fmt: skip


def best_explanation(rows: Rows, folds: Sequence[Split], lines: bool = True) -> Explanation:
    """The likeliest explanation of the rows; the user's model, on the target's own scale, unless another is ahead.

    Parameters
    ----------
    rows : Rows
        To be explained.
    folds : sequence of (train, test)
        Each row is in one test part.
    lines : bool, default=True
        Whether a line on the target's own scale is worth asking: not where the user's model is one.

    Returns
    -------
    Explanation
    """
    court = _Court(rows, folds)
    first: list[_Scored] = []
    for scale in target_scales(rows.y):
        first += _by_guesses(court, scale)
        if rows.features is not None and (lines or scale.name != "none"):
            first += _by_line(court, scale)
    best = court.best(first)
    if len(rows.y) >= BOOSTED:
        with few_threads(len(rows.y)):
            best = _grown(court, best, first)
    return best.explanation


def _grown(court: _Court, best: _Scored, first: Sequence[_Scored]) -> _Scored:
    """With what boosting adds, and a spread that it finds."""
    best = court.best([best, *_probed(court, best)])
    evens = [best]
    if best.explanation.scale.name != "none":  # an uneven spread may do what the scale does
        evens.append(court.best([one for one in first if one.explanation.scale.name == "none"]))
    return court.best([best, *(_uneven(court, one) for one in evens)])


def _by_guesses(court: _Court, scale: TargetScale) -> list[_Scored]:
    return [
        court.around(scale, scale.forward(guess), number, "the model itself" if number == 0 else "the plain model")
        for number, guess in enumerate(court.rows.guesses)
    ]


def _standard(court: _Court, scale: TargetScale) -> tuple[Array, float, float]:
    """The target on a scale, centred, in units of its spread and not too far away, with both."""
    t = scale.forward(court.rows.y)
    held = t[scale.holds(court.rows.y)]
    centre = float(np.median(held))
    unit = madn(held - centre) or float(np.std(held)) or 1.0
    return np.clip((t - centre) / unit, -FAR, FAR), centre, unit


def _by_line(court: _Court, scale: TargetScale) -> list[_Scored]:
    target, centre, unit = _standard(court, scale)
    found = court.unseen(RobustLine, court.rows.inputs, centre + unit * target, scale.holds(court.rows.y))
    return [] if found is None else [court.around(scale, found.values, found.models, "a robust line")]


def _probed(court: _Court, best: _Scored) -> list[_Scored]:
    """The same expectation and what boosted means of its residuals, the far ones cut off, add to it."""
    found, y = best.explanation, court.rows.y
    residuals = found.scale.forward(y) - found.middle
    held = found.scale.holds(y)
    middle = float(np.median(residuals[held]))
    residuals = np.clip(residuals, middle - CUT * found.even, middle + CUT * found.even)
    added = court.unseen(lambda: boosted(len(held)), np.c_[court.rows.inputs, found.middle], residuals, held)
    if added is None:
        return []
    words = f"{found.words} and boosted trees"
    return [court.around(found.scale, found.middle + added.values, found.source, words, added.models)]


def _uneven(court: _Court, best: _Scored) -> _Scored:
    """The same expectation with a spread that follows from the row."""
    found = best.explanation
    inputs, y = np.c_[court.rows.inputs, found.middle], court.rows.y
    held = found.scale.holds(y)
    spread = court.unseen(lambda: boosted(len(y)), inputs, _log_size(found, y, held), held)
    if spread is None:
        return best
    factor = np.exp(spread.values)
    even = madn(found.standardised(y)[held] * found.even / factor[held]) or 1e-300
    words = f"{found.words}, with a spread that differs from row to row"
    uneven = court.scored(replace(found, spread=even * factor, even=even, uneven=spread.models, words=words))
    return uneven if court.total(uneven.density - best.density) > ENOUGH else best


def _log_size(found: Explanation, y: Array, held: np.ndarray) -> Array:
    size = np.abs(found.scale.forward(y) - found.middle)
    typical = float(np.median(size[held]))
    return np.asarray(np.log(np.clip(size, max(TINY * typical, 1e-300), FAR * max(typical, 1e-300))))
