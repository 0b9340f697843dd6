"""Reference models of a target: what was to be expected of each row, and how far off it may be.

Each is fitted to other rows than it predicts. The user's own model is one of them; a robust line and boosted trees, on
several scales of the target, are the others. The likeliest is the reference: rows that it predicts are no errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import HuberRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..fitting import few_threads
from ..folds import Split
from ..robust import madn
from .scales import TargetScale, target_scales

__all__ = ["Reference", "Rows", "best_references"]

Array = NDArray[np.floating[Any]]
BOOSTED = 100  # a choice: rows from which on trees are tried
SHARES = (0.01, 0.05, 0.12, 0.25, 0.45)  # a choice: of values that no model has to account for
TREES, LEAVES, BINS = 40, 8, 64  # cost: of a boosted model
FAR = 20.0  # numerical safety: spreads of the target beyond which values count as this far
CUT = 3.0  # a choice: spreads of residuals beyond which they do not draw a boosted mean farther
WIDE = 5.0  # a choice: spreads of the target over which unaccounted values lie
DEGREES = 4.0  # a choice: of the t distribution by which models are compared; normal tails trust too much
EVIDENCE, ERRORS = 5.0, 2.0  # nats and standard errors that a model must be ahead by: benchmarks/regression.py errors
TINY = 0.05  # numerical safety: of the median residual; below, its logarithm says nothing


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to be assessed.

    Attributes
    ----------
    y : ndarray of shape (n,)
        The target.
    guesses : tuple of ndarray of shape (n,)
        Predictions of the user's model first.
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
        """Return some of the rows."""
        features, weight = (None if part is None else part[index] for part in (self.features, self.weight))
        return Rows(self.y[index], tuple(guess[index] for guess in self.guesses), features, weight)

    @property
    def size(self) -> float:
        """How many rows they count as."""
        return float(len(self.y) if self.weight is None else self.weight.sum())

    @property
    def inputs(self) -> Array:
        """Features, and what the user's model expects."""
        guess = self.guesses[0][:, None]
        return guess if self.features is None else np.hstack([self.features, guess])


@dataclass(frozen=True, eq=False)
class Reference:
    """What is expected of rows on a scale of the target, and the spread around it.

    Attributes
    ----------
    scale : TargetScale
        Of the target.
    lines, trees, spreads : tuple of regressors
        The mean of ``lines`` is the expectation (empty: the user's model), that of ``trees`` is added to it, and that
        of ``spreads`` is the logarithm of the spread (empty: it is even).
    middle, spread : ndarray of shape (n,)
        Expectation and spread of the rows it was made on, by models that had not seen the row.
    even : float
        The spread, or its factor if it is uneven.
    """

    scale: TargetScale
    middle: Array
    spread: Array
    even: float
    lines: tuple[Any, ...] = ()
    trees: tuple[Any, ...] = ()
    spreads: tuple[Any, ...] = ()

    def standardised(self, y: Array) -> Array:
        """Return the residuals in units of their spread, of the rows it was made on."""
        return np.asarray((self.scale.forward(y) - self.middle) / self.spread)

    def of(self, rows: Rows) -> Reference:
        """Return the same reference for other rows."""
        middle = _mean(self.lines, rows.inputs) if self.lines else self.scale.forward(rows.guesses[0])
        if self.trees:
            middle = middle + _mean(self.trees, np.c_[rows.inputs, middle])
        spread = np.full(len(rows.y), self.even)
        if self.spreads:
            spread = self.even * np.exp(_mean(self.spreads, np.c_[rows.inputs, middle]))
        return replace(self, middle=middle, spread=spread)

    @property
    def words(self) -> str:
        """How it reads in a sentence."""
        parts = [
            "a robust line" if self.lines else "",
            "boosted trees" if self.trees else "",
            "a spread that differs from row to row" if self.spreads else "",
            self.scale.words,
        ]
        return " with ".join(part for part in parts if part)


@dataclass(frozen=True, eq=False)
class _Scored:
    """A reference with its log density of every row."""

    reference: Reference
    density: Array


class _Comparison:
    """Compares references for the same rows by their held-out likelihood."""

    def __init__(self, rows: Rows, folds: Sequence[Split]) -> None:
        self.rows, self.folds = rows, folds
        centred = rows.y - np.median(rows.y)
        unit = WIDE * (madn(centred) or float(np.std(centred)) or 1.0)
        self.anything = -np.log(np.pi * unit * (1 + (centred / unit) ** 2))

    def scored(self, reference: Reference) -> _Scored:
        """Score with the log density at the likeliest share of values that it need not account for."""
        y, scale = self.rows.y, reference.scale
        core = student.logpdf(reference.standardised(y), DEGREES) - np.log(reference.spread) + scale.log_slope(y)
        core = np.where(scale.holds(y), core, -np.inf)
        tried = [np.logaddexp(np.log1p(-share) + core, np.log(share) + self.anything) for share in SHARES]
        return _Scored(reference, max(tried, key=np.sum))

    def best(self, candidates: Sequence[_Scored]) -> _Scored:
        """Return the likeliest; an earlier one unless a later one is clearly ahead."""
        kept = candidates[0]
        for candidate in candidates[1:]:
            gain = candidate.density - kept.density
            if gain.sum() > max(EVIDENCE, ERRORS * float(gain.std()) * np.sqrt(len(gain))):
                kept = candidate
        return kept

    def around(self, scale: TargetScale, middle: Array, **models: Any) -> _Scored:
        """Return a reference with one spread for all rows."""
        residuals = (scale.forward(self.rows.y) - middle)[scale.holds(self.rows.y)]
        even = madn(residuals - np.median(residuals)) or float(np.std(residuals)) or 1e-300
        return self.scored(Reference(scale, middle, np.full(len(middle), even), even, **models))

    def unseen(
        self, make: Callable[[], Any], inputs: Array, target: Array, held: NDArray[np.bool_]
    ) -> tuple[Array, tuple[Any, ...]] | None:
        """Return predictions by models that were not fitted to the row, and the models; None if they are of no use.

        They are if the model of the first fold predicts its own rows no better than the median.
        """
        out, models = np.empty(len(target)), []
        for train, test in self.folds:
            train, asked = train[held[train]], test[held[test]]
            model = _fitted(make(), inputs[train], target[train])
            if model is None:
                return None
            models.append(model)
            out[test] = model.predict(inputs[test])
            centre = float(np.median(target[train]))
            sizes = [float(np.mean(np.abs(target[asked] - m))) if asked.size else 0.0 for m in (out[asked], centre)]
            if len(models) == 1 and asked.size and sizes[0] >= sizes[1]:
                return None
        return out, tuple(models)


def _fitted(model: Any, inputs: Array, target: Array) -> Any | None:
    """Return a fitted model; None if its solver fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it need not be exact
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return model.fit(inputs, target)
        except ValueError:  # the solver of HuberRegressor gives up on some tables
            return None


def _mean(models: Sequence[Any], inputs: Array) -> Array:
    return np.asarray(np.mean([model.predict(inputs) for model in models], axis=0))


def _line() -> Any:
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    return make_pipeline(imputer, StandardScaler(), HuberRegressor(max_iter=100))


def _boosted(n_rows: int) -> Any:
    return HistGradientBoostingRegressor(
        max_iter=TREES, max_leaf_nodes=LEAVES, min_samples_leaf=int(np.clip(n_rows // 100, 5, 20)), learning_rate=0.2,
        max_bins=BINS, early_stopping=False, random_state=0,
    )  # fmt: skip


def best_references(rows: Rows, folds: Sequence[Split], lines: bool = True) -> tuple[Reference, ...]:
    """Return the likeliest reference: the user's model on the target's own scale unless another is clearly ahead.

    If it is on another scale, the likeliest on the target's own scale comes second: errors of one size stand out there,
    which a logarithm would draw back among the others.

    Parameters
    ----------
    rows : Rows
        To be predicted.
    folds : sequence of (train, test)
        Each row is in one test part.
    lines : bool, default=True
        Whether to try a line on the target's own scale: not if the user's model is one.

    Returns
    -------
    tuple of Reference
    """
    comparison = _Comparison(rows, folds)
    first: list[_Scored] = []
    for scale in target_scales(rows.y):
        first.append(comparison.around(scale, scale.forward(rows.guesses[0])))
        if rows.features is not None and (lines or scale.name != "none"):
            first += _by_line(comparison, scale)
    best = comparison.best(first)
    found = [best]
    if best.reference.scale.name != "none":
        found.append(comparison.best([one for one in first if one.reference.scale.name == "none"]))
    if len(rows.y) >= BOOSTED:
        with few_threads(len(rows.y)):
            found = [_grown(comparison, one) for one in found]
    return tuple(one.reference for one in found)


def _grown(comparison: _Comparison, one: _Scored) -> _Scored:
    """Return a reference with what boosted trees add to it, and with a spread that they find."""
    one = comparison.best([one, *_with_trees(comparison, one)])
    return comparison.best([one, *_uneven(comparison, one)])


def _by_line(comparison: _Comparison, scale: TargetScale) -> list[_Scored]:
    """Return a robust line on a scale, fitted to values in units of their spread that are not too far away."""
    held = scale.holds(comparison.rows.y)
    t = scale.forward(comparison.rows.y)
    centre = float(np.median(t[held]))
    unit = madn(t[held] - centre) or float(np.std(t[held])) or 1.0
    found = comparison.unseen(_line, comparison.rows.inputs, np.clip(t, centre - FAR * unit, centre + FAR * unit), held)
    return [] if found is None else [comparison.around(scale, found[0], lines=found[1])]


def _with_trees(comparison: _Comparison, best: _Scored) -> list[_Scored]:
    """Return the same expectation with what boosted means of its residuals, the far ones clipped, add to it."""
    found, y = best.reference, comparison.rows.y
    residuals, held = found.scale.forward(y) - found.middle, found.scale.holds(y)
    middle = float(np.median(residuals[held]))
    residuals = np.clip(residuals, middle - CUT * found.even, middle + CUT * found.even)
    inputs = np.c_[comparison.rows.inputs, found.middle]
    added = comparison.unseen(lambda: _boosted(len(y)), inputs, residuals, held)
    if added is None:
        return []
    return [comparison.around(found.scale, found.middle + added[0], lines=found.lines, trees=added[1])]


def _uneven(comparison: _Comparison, best: _Scored) -> list[_Scored]:
    """Return the same expectation with a spread that follows from the row."""
    found, y = best.reference, comparison.rows.y
    inputs, held = np.c_[comparison.rows.inputs, found.middle], found.scale.holds(y)
    size = np.abs(found.scale.forward(y) - found.middle)
    typical = max(float(np.median(size[held])), 1e-300)
    log_size = np.log(np.clip(size, max(TINY * typical, 1e-300), FAR * typical))
    spread = comparison.unseen(lambda: _boosted(len(y)), inputs, log_size, held)
    if spread is None:
        return []
    factor = np.exp(spread[0])
    even = madn(found.standardised(y)[held] * found.even / factor[held]) or 1e-300
    return [comparison.scored(replace(found, spread=even * factor, even=even, spreads=spread[1]))]
