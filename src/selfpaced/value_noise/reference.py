"""Reference models of a target: what was to be expected of each row, and how far off it may be.

Each is fitted to other rows than it predicts. The user's own model is one of them; a robust line, for the target or its
logarithm, is another; boosted trees may add to both. The likeliest is the reference: rows that it predicts are no
errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr, ndtri
from scipy.stats import cauchy, chi2
from scipy.stats import t as student
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import HuberRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..fitting import few_threads
from ..folds import Split
from ..robust import madn, weighted_quantile
from ..robust.scales import CUTOFF

__all__ = ["Reference", "Rows", "best_references", "leverage_cluster", "numeric_features", "usual_but_for"]

Array = NDArray[np.floating[Any]]
MOST_FEATURES = 200  # cost: features up to which they are all looked at; beyond, the model's own predictions have to do
POSITIVE = 0.85  # of the values must be positive for a logarithm: benchmarks/regression.py errors
BOOSTED = 100  # a choice: rows from which on trees are tried
FREE_SHARES = (0.01, 0.05, 0.12, 0.25, 0.45)  # a choice: of values that no model has to account for
AHEAD_BY = 2.0  # standard errors that a model must be ahead by: benchmarks/regression.py errors
FEATURE_GAP = 0.5  # a choice: spreads of the others' features that part a cluster of outliers from them
EDGE = 0.1  # a choice: of the outliers and of the others that may lie on the wrong side of the gap
SMALLEST_SPREAD = 1e-300  # numerical safety: in place of a spread of zero


def numeric_features(X: Any) -> Array | None:
    """Return a table of numbers (text and categories as codes), or None if X is None, too wide or no table.

    >>> numeric_features([[1, 2], [3, 4]]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    >>> numeric_features(np.array([["a", 1.5], ["b", 2.5]], dtype=object)).tolist()
    [[0.0, 1.5], [1.0, 2.5]]
    """
    shape = np.shape(X)
    if len(shape) != 2 or not 0 < shape[1] <= MOST_FEATURES:
        return None
    if sparse.issparse(X):
        return np.asarray(X.toarray(), dtype=float)
    if hasattr(X, "iloc"):
        return np.column_stack([_column(X.iloc[:, j]) for j in range(shape[1])])
    table = np.asarray(X)
    if table.dtype.kind in "fiub":
        return np.asarray(table, dtype=float)
    return np.column_stack([_column(table[:, j]) for j in range(shape[1])])


def _column(values: Any) -> Array:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        codes: Array = np.unique(np.asarray(values).astype(str), return_inverse=True)[1].astype(float)
        return codes
    return np.where(np.isinf(numbers), np.nan, numbers)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to be assessed.

    Attributes
    ----------
    y : ndarray of shape (n,)
        The target.
    predicted : ndarray of shape (n,)
        Predictions of the user's model.
    features : ndarray of shape (n, p) or None
        Numbers that the target may depend on.
    weight : ndarray of shape (n,) or None
        Frequencies of the rows, see :func:`selfpaced.selection.frequencies`.
    """

    y: Array
    predicted: Array
    features: Array | None = None
    weight: Array | None = None

    def take(self, index: Any) -> Rows:
        """Return some of the rows."""
        features, weight = (None if part is None else part[index] for part in (self.features, self.weight))
        return Rows(self.y[index], self.predicted[index], features, weight)

    @property
    def size(self) -> float:
        """How many rows they count as."""
        return float(len(self.y) if self.weight is None else self.weight.sum())

    def inputs(self, middle: Array) -> Array:
        """Return the features, what the user's model expects, and what a reference does."""
        columns = (self.predicted, middle)
        return np.column_stack(columns if self.features is None else (self.features, *columns))


@dataclass(frozen=True, eq=False)
class Reference:
    """What is expected of rows on a scale of the target, and the spread around it.

    Attributes
    ----------
    least : float or None
        On the scale of the logarithm the smallest value it is taken of: predictions below are lifted to it. None is the
        target's own scale.
    middle, spread : ndarray of shape (n,)
        Expectation and spread of the rows it was made on, by models that had not seen the row.
    even, smallest : float
        The spread, or its factor if it is uneven, and the smallest one.
    trees, spreads, lines : tuple of regressors
        The mean of ``lines`` is the expectation (empty: the user's model), that of ``trees`` is added to it, and that
        of ``spreads`` is the logarithm of the spread (empty: it is even).
    """

    least: float | None
    middle: Array
    spread: Array
    even: float
    smallest: float = SMALLEST_SPREAD
    trees: tuple[Any, ...] = ()
    spreads: tuple[Any, ...] = ()
    lines: tuple[Any, ...] = ()

    def forward(self, y: Array) -> Array:
        """Return values on the scale of this reference."""
        return y if self.least is None else np.asarray(np.log(np.maximum(y, self.least)))

    def holds(self, y: Array) -> NDArray[np.bool_]:
        """Return which values the scale has a place for."""
        return np.ones(len(y), dtype=bool) if self.least is None else y > 0

    def standardised(self, y: Array) -> Array:
        """Return the residuals in units of their spread, of the rows it was made on."""
        return np.asarray((self.forward(y) - self.middle) / self.spread)

    def of(self, rows: Rows) -> Reference:
        """Return the same reference for other rows."""
        middle = self.forward(rows.predicted)
        if self.lines:
            middle = _mean(self.lines, rows.inputs(middle))
        if self.trees:
            middle = middle + _mean(self.trees, rows.inputs(middle))
        spread = np.full(len(rows.y), self.even)
        if self.spreads:
            spread = np.maximum(self.even * np.exp(_mean(self.spreads, rows.inputs(middle))), self.smallest)
        return replace(self, middle=middle, spread=spread)

    @property
    def words(self) -> str:
        """How it reads in a sentence."""
        parts = [
            "a robust line" if self.lines else "",
            "boosted trees" if self.trees else "",
            "a spread that differs from row to row" if self.spreads else "",
            "" if self.least is None else "the logarithm of the target",
        ]
        return " and ".join(", ".join(part for part in parts if part).rsplit(", ", 1))


class _FitComparison:
    """Compares references for the same rows by their held-out likelihood."""

    def __init__(self, rows: Rows, folds: Sequence[Split]) -> None:
        self.rows, self.folds = rows, folds
        centred = rows.y - np.median(rows.y)
        self.anything = cauchy.logpdf(centred, scale=5 * (madn(centred) or float(np.std(centred)) or 1.0))

    def density(self, reference: Reference) -> Array:
        """Return the log density of every row, at the likeliest share of values that need not be accounted for."""
        y = self.rows.y
        core = student.logpdf(reference.standardised(y), 4) - np.log(reference.spread)
        if reference.least is not None:  # densities on two scales become comparable by the slope
            core = np.where(reference.holds(y), core - reference.forward(y), -np.inf)
        tried = [np.logaddexp(np.log1p(-share) + core, np.log(share) + self.anything) for share in FREE_SHARES]
        return np.asarray(max(tried, key=np.sum))

    def better(self, kept: Reference, other: Reference | None) -> Reference:
        """Return the other one if it is clearly ahead."""
        if other is None:
            return kept
        gain = self.density(other) - self.density(kept)
        return other if gain.sum() > AHEAD_BY * float(gain.std()) * np.sqrt(len(gain)) else kept

    def around(self, least: float | None, middle: Array, **models: Any) -> Reference:
        """Return a reference with one spread for all rows."""
        found = Reference(least, middle, np.ones(len(middle)), 1.0, **models)
        residuals = found.standardised(self.rows.y)[found.holds(self.rows.y)]
        smallest = max(_resolution(found.forward(self.rows.y)), SMALLEST_SPREAD)
        even = max(madn(residuals - np.median(residuals)) or float(np.std(residuals)), smallest)
        return replace(found, spread=np.full(len(middle), even), even=even, smallest=smallest)

    def line(self, one: Reference) -> Reference | None:
        """Return a robust line on the same scale, fitted to values that are not too far away."""
        t = one.forward(self.rows.y)
        centre = float(np.median(t))
        unit = 20 * (madn(t - centre) or float(np.std(t)) or 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it need not be exact
            try:
                found = self._unseen(_line, one, np.clip(t, centre - unit, centre + unit))
            except ValueError:  # the solver of HuberRegressor gives up on some tables
                return None
        return None if found is None else self.around(one.least, found[0], lines=found[1])

    def with_trees(self, one: Reference) -> Reference | None:
        """Return the same expectation with what boosted means of its residuals, the far ones clipped, add to it."""
        residuals, held = one.standardised(self.rows.y) * one.even, one.holds(self.rows.y)
        centre = float(np.median(residuals[held]))
        added = self._unseen(self._boosted, one, np.clip(residuals, centre - 3 * one.even, centre + 3 * one.even))
        return None if added is None else self.around(one.least, one.middle + added[0], trees=added[1], lines=one.lines)

    def uneven(self, one: Reference) -> Reference | None:
        """Return the same expectation with a spread that follows from the row."""
        size, held = np.abs(one.standardised(self.rows.y)), one.holds(self.rows.y)
        typical = max(float(np.median(size[held])), SMALLEST_SPREAD)
        found = self._unseen(
            self._boosted, one, np.log(np.clip(size, max(0.05 * typical, SMALLEST_SPREAD), 20 * typical))
        )
        if found is None:
            return None
        factor = np.exp(found[0])
        even = max(one.even * madn(size[held] / factor[held]), SMALLEST_SPREAD)
        return replace(one, spread=np.maximum(even * factor, one.smallest), even=even, spreads=found[1])

    def _boosted(self) -> Any:
        trees = HistGradientBoostingRegressor(
            max_iter=40, max_leaf_nodes=8, min_samples_leaf=int(np.clip(len(self.rows.y) // 100, 5, 20)),
            learning_rate=0.2, max_bins=64, early_stopping=False, random_state=0,
        )  # fmt: skip
        # its sums have 32 bits: in another unit they would overflow
        return TransformedTargetRegressor(trees, transformer=StandardScaler())

    def _unseen(self, make: Callable[[], Any], one: Reference, target: Array) -> tuple[Array, tuple[Any, ...]] | None:
        """Return predictions by models that were not fitted to the row, and the models; None if they are of no use.

        They are if the model of the first fold predicts its own rows no better than the median.
        """
        inputs, held = self.rows.inputs(one.middle), one.holds(self.rows.y)
        out, models = np.empty(len(target)), []
        for train, test in self.folds:
            train, asked = train[held[train]], test[held[test]]
            models.append(make().fit(inputs[train], target[train]))
            out[test] = models[-1].predict(inputs[test])
            errors = [np.abs(target[asked] - guess).sum() for guess in (out[asked], np.median(target[train]))]
            if len(models) == 1 and asked.size and errors[0] >= errors[1]:
                return None
        return out, tuple(models)


def _mean(models: Sequence[Any], inputs: Array) -> Array:
    return np.asarray(np.mean([model.predict(inputs) for model in models], axis=0))


def _resolution(y: Array) -> float:
    """Return half the distance of a usual value to the next one: a smaller spread would only say that values repeat."""
    values, counts = np.unique(y, return_counts=True)
    gaps = np.r_[np.inf, np.diff(values), np.inf]
    return (
        0.5 * weighted_quantile(np.minimum(gaps[:-1], gaps[1:]), 0.5, counts.astype(float)) if len(values) > 1 else 0.0
    )


def _line() -> Any:
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    return make_pipeline(imputer, StandardScaler(), HuberRegressor(max_iter=100))


def best_references(
    rows: Rows, folds: Sequence[Split], *, linear: bool = False, flexible: bool = False, corrected: bool = True
) -> tuple[Reference, ...]:
    """Return the likeliest reference: the user's model on the target's own scale unless another is clearly ahead.

    If the logarithm is likelier before trees are tried, both scales are returned, the target's own first unless the
    logarithm is still clearly likelier: errors of one size stand out there, which a logarithm would draw back among the
    others, while values near zero are far out on the logarithm.

    Parameters
    ----------
    rows : Rows
        To be predicted.
    folds : sequence of (train, test)
        Each row is in one test part.
    linear : bool, default=False
        Whether the user's model is a line: no other is tried on the target's own scale.
    flexible : bool, default=False
        Whether the user's model is flexible: trees that correct it would follow single rows, see
        ``benchmarks/wrappers.py --part clean``.
    corrected : bool, default=True
        Whether lines and trees are tried, or the user's model alone on both scales.

    Returns
    -------
    tuple of Reference
    """
    comparison, positive = _FitComparison(rows, folds), rows.y > 0
    found, featured = [comparison.around(None, rows.predicted)], corrected and rows.features is not None
    if featured and not linear:
        found = [comparison.better(found[0], comparison.line(found[0]))]
    if positive.mean() >= POSITIVE:
        least = float(rows.y[positive].min())
        log = comparison.around(least, np.log(np.maximum(rows.predicted, least)))
        if featured:
            log = comparison.better(log, comparison.line(log))
        found = [log, *found] if comparison.better(found[0], log) is log else found
    if corrected and len(rows.y) >= BOOSTED:
        with few_threads(len(rows.y)):
            if not flexible:
                found = [comparison.better(one, comparison.with_trees(one)) for one in found]
            found = [comparison.better(one, comparison.uneven(one)) for one in found]
    return tuple(found if comparison.better(found[-1], found[0]) is found[0] else found[::-1])


def usual_but_for(gross: NDArray[np.bool_], z: Array) -> bool:
    """Return whether residuals, in units of the sigma of the good ones, are normal but for two gross ones or more."""
    return 2 <= gross.sum() <= len(z) / 2 and _normal(z[np.abs(z) <= CUTOFF])


def leverage_cluster(gross: NDArray[np.bool_], columns: Array) -> bool:
    """Return whether most rows of gross residuals lie beyond a gap in the features, as leverage points do.

    Trees could explain such a cluster, whatever its values are. A relation that bends has rows on its way from the good
    ones to the others.
    """
    filled = np.nan_to_num(columns)
    spread = filled[~gross].std(axis=0)
    filled = filled[:, spread > 0] / spread[spread > 0]
    others = filled[~gross]
    covariance = np.atleast_2d(np.cov(others.T)) + 1e-3 * np.eye(filled.shape[1])
    along = filled @ np.linalg.solve(covariance, filled[gross].mean(axis=0) - others.mean(axis=0))
    order = np.argsort(along, kind="stable")
    ours_below = np.cumsum(gross[order])[:-1] / gross.sum()
    others_below = np.cumsum(~gross[order])[:-1] / (~gross).sum()
    between = (ours_below <= EDGE) & (others_below >= 1 - EDGE)
    return bool(np.any(np.diff(along[order])[between] > FEATURE_GAP * float(along[~gross].std())))


def _normal(z: Array, cells: int = 10) -> bool:
    """Return whether residuals within the cutoff are those of a normal, by a chi-squared test at 0.1 %."""
    edges = ndtri(np.linspace(ndtr(-CUTOFF), ndtr(CUTOFF), cells + 1)[1:-1])
    expected = len(z) / cells
    counts = np.bincount(np.searchsorted(edges, z), minlength=cells)
    return bool(np.sum(np.square(counts - expected)) <= expected * chi2.ppf(0.999, cells - 1))
