"""Explanations of a target: what was to be expected of each row, and how far off it may be.

Each is learnt on other rows than it is asked about. The user's own model is one of them; a line and boosted medians, on
several scales of the target, are the others. The likeliest wins, and rows that it explains are nobody's mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from ..folds import Split
from ..residuals import madn
from .base import Array, t_log_density
from .line import RobustLine
from .scales import TargetScale, target_scales

__all__ = ["Explanation", "Rows", "best_explanation"]

BOOSTED = 100  # a choice: rows from which on trees are asked
SHARES = (0.01, 0.05, 0.12, 0.25, 0.45)  # a choice: of values that no explanation has to account for
FAR = 20.0  # numerical safety: spreads of the target beyond which values do not count as farther
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
        Counts of the rows.
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
    source : int or regressor
        What the expectation starts from: a place in the guesses, or a line.
    middle, spread : ndarray of shape (n,)
        Expectation and spread of the rows it was made on, by models that had not seen the row.
    even : float
        The spread, or its factor where it is uneven.
    probe, uneven : regressor or None
        What is added to the expectation, and the logarithm of the spread.
    words : str
        How it reads in a sentence.
    """

    scale: TargetScale
    source: Any
    middle: Array
    spread: Array
    even: float
    probe: Any = None
    uneven: Any = None
    words: str = ""

    def standardised(self, y: Array) -> Array:
        """Residuals in units of their spread, of the rows it was made on."""
        return np.asarray((self.scale.forward(y) - self.middle) / self.spread)

    def of(self, rows: Rows) -> Explanation:
        """The same explanation of other rows."""
        if isinstance(self.source, int):
            middle = self.scale.forward(rows.guesses[self.source])
        else:
            middle = self.source.predict(rows.inputs)
        if self.probe is not None:
            middle = middle + self.probe.predict(np.c_[rows.inputs, middle])
        spread = np.full(len(rows.y), self.even)
        if self.uneven is not None:
            spread = self.even * np.exp(self.uneven.predict(np.c_[rows.inputs, middle]))
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

    def around(self, scale: TargetScale, middle: Array, source: Any, words: str, probe: Any = None) -> _Scored:
        """An explanation with one spread for all rows."""
        residuals = (scale.forward(self.rows.y) - middle)[scale.holds(self.rows.y)]
        even = madn(residuals - np.median(residuals)) or float(np.std(residuals)) or 1e-300
        spread = np.full(len(middle), even)
        return self.scored(Explanation(scale, source, middle, spread, even, probe, words=words))

    def unseen(self, make: Callable[[], Any], inputs: Array, target: Array, held: np.ndarray) -> Array:
        """Predictions for every row by models that were not fitted on it."""
        out = np.empty(len(target))
        for train, test in self.folds:
            train = train[held[train]]
            out[test] = fitted(make, inputs[train], target[train], self.weight[train]).predict(inputs[test])
        return out


def fitted(make: Callable[[], Any], inputs: Array, target: Array, weight: Array) -> Any:
    """A regressor; weights that are all alike are none."""
    return make().fit(inputs, target, None if np.ptp(weight) == 0 else weight)


def medians(n_rows: int) -> Any:
    """Boosted medians."""
    return HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=60, max_leaf_nodes=15, min_samples_leaf=10 if n_rows >= 400 else 5,
        learning_rate=0.15, early_stopping=False, random_state=0,
    )  # fmt: skip


def spreads(n_rows: int) -> Any:
    """Boosted means of log sizes."""
    return HistGradientBoostingRegressor(
        max_iter=30, max_leaf_nodes=8, min_samples_leaf=int(np.clip(n_rows // 20, 8, 30)), early_stopping=False,
        random_state=0,
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
            first.append(_by_line(court, scale))
    best = before = court.best(first)
    if len(rows.y) >= BOOSTED:
        best = court.best([best, _probed(court, best)])
        evens = [best]
        if best.explanation.scale.name != "none":  # an uneven spread may do what the scale does
            evens.append(court.best([one for one in first if one.explanation.scale.name == "none"]))
        best = court.best([best, *(_uneven(court, one) for one in evens)])
    return _complete(court, best.explanation, before.explanation)


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


def _by_line(court: _Court, scale: TargetScale) -> _Scored:
    target, centre, unit = _standard(court, scale)
    inputs, held = court.rows.inputs, scale.holds(court.rows.y)
    middle = centre + unit * court.unseen(RobustLine, inputs, target, held)
    return court.around(scale, middle, "line", "a robust line")


def _probed(court: _Court, best: _Scored) -> _Scored:
    """The same expectation and what boosted medians of its residuals add to it."""
    found = best.explanation
    held = found.scale.holds(court.rows.y)
    added = court.unseen(
        lambda: medians(len(held)), np.c_[court.rows.inputs, found.middle], _residuals(court, found), held
    )
    return court.around(
        found.scale, found.middle + added, found.source, f"{found.words} and boosted medians", "medians"
    )


def _residuals(court: _Court, found: Explanation) -> Array:
    """Residuals on the explanation's scale, the far ones cut off."""
    residuals = found.scale.forward(court.rows.y) - found.middle
    return np.asarray(np.clip(residuals, -FAR * found.even, FAR * found.even))


def _uneven(court: _Court, best: _Scored) -> _Scored:
    """The same expectation with a spread that follows from the row."""
    found = best.explanation
    inputs, y = np.c_[court.rows.inputs, found.middle], court.rows.y
    held = found.scale.holds(y)
    log_size, make = _log_size(found, y, held), lambda: spreads(len(y))
    factor = np.exp(court.unseen(make, inputs, log_size, held))
    even = madn(found.standardised(y)[held] * found.even / factor[held]) or 1e-300
    words = f"{found.words}, with a spread that differs from row to row"
    uneven = court.scored(replace(found, spread=even * factor, even=even, uneven="spreads", words=words))
    return uneven if court.total(uneven.density - best.density) > ENOUGH else best


def _log_size(found: Explanation, y: Array, held: np.ndarray) -> Array:
    size = np.abs(found.scale.forward(y) - found.middle)
    typical = float(np.median(size[held]))
    return np.asarray(np.log(np.clip(size, max(TINY * typical, 1e-300), FAR * max(typical, 1e-300))))


def _complete(court: _Court, best: Explanation, before: Explanation) -> Explanation:
    """With regressors of all these rows in place of their names, for rows that are not among them."""
    rows, weight = court.rows, court.weight
    held = best.scale.holds(rows.y)
    source, probe, uneven = best.source, best.probe, best.uneven
    if source == "line":
        target, centre, unit = _standard(court, best.scale)
        source = fitted(RobustLine, rows.inputs[held], centre + unit * target[held], weight[held])
    if probe is not None:
        inputs = np.c_[rows.inputs, before.middle][held]
        probe = fitted(lambda: medians(len(held)), inputs, _residuals(court, before)[held], weight[held])
    if uneven is not None:
        inputs = np.c_[rows.inputs, best.middle][held]
        uneven = fitted(lambda: spreads(len(held)), inputs, _log_size(best, rows.y, held)[held], weight[held])
    return replace(best, source=source, probe=probe, uneven=uneven)
