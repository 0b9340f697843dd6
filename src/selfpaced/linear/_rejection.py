"""Rows that a linear fit should not follow: misled by their own features, or in a second heap of residuals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..robust import madn, weighted_quantile
from ..robust.rules import TUKEY
from ._least_squares import Squares, exact_floor

__all__ = ["FAR", "best_start", "rejected_rows", "row_sizes"]

Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
# Measured by benchmarks/regression.py tables.
FAR = 2.0  # times the size of the median row, from which on features are unusual
CUT = 3.0  # sigmas, below which the residual of an unusual row says nothing
EXTREME = 0.85  # mean rank of |y - median| of misled rows, above which the relation bends there
HUBER = 1.7  # sigmas, Huber's corner
RIDGE = 0.1  # of sigma over the spread of y, squared: it stops wild coefficients only
HEAP, RATIO, RISING = 2.5, 1.5, 2.0  # first cut in sigmas, width of a window, z from which the density rises again
CAPPED = 4.0  # squared standardised residual, beyond which rows count the same when two fits are compared

STEP = 1.1  # cost: ratio of neighbouring cuts
ROUNDS = 4  # cost: of rejecting rows and fitting again
FITS = 20  # cost: reweighted fits of a round


def row_sizes(squares: Squares) -> Floats:
    """Return how far each row of features is from their medians, relative to the median row.

    A column counts in units of its median nonzero deviation, so that indicators and counts have a unit, too.
    """
    X = squares.source if squares.source is not None else squares.matrix
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    size = np.abs(X - np.median(X, axis=0))
    unit = np.array([np.median(column[column > 0]) if column.any() else 1.0 for column in size.T])
    size /= unit
    largest = np.maximum(size.max(axis=1, initial=0.0), np.finfo(float).tiny)  # squares of these may overflow
    distance = largest * np.sqrt(np.mean(np.square(size / largest[:, None]), axis=1))
    usual = float(np.median(distance)) or float(np.median(distance[distance > 0])) if distance.any() else 1.0
    return np.asarray(distance / usual)


def rejected_rows(squares: Squares, residuals: Floats, sizes: Floats, kept: Mask | None = None) -> Mask:
    """Return the rows that are misled by unusual features, and usual rows in a second heap of residuals."""
    kept = np.ones(len(residuals), dtype=bool) if kept is None else kept
    weight = None if squares.sample_weight is None else squares.sample_weight[kept]
    centre = weighted_quantile(residuals[kept], 0.5, weight)
    sigma = madn(residuals[kept] - centre, weight)
    if not sigma > exact_floor(squares):
        return np.zeros(len(residuals), dtype=bool)
    off = misled_rows(squares, residuals, sigma, sizes)
    t = (residuals - centre) / sigma
    usual = ~off if squares.sample_weight is None else ~off & (squares.sample_weight > 0)
    return off | (((t > second_heap(t[usual])) | (-t > second_heap(-t[usual]))) & (sizes <= FAR))


def misled_rows(squares: Squares, residuals: Floats, sigma: float, sizes: Floats) -> Mask:
    """Return the rows of unusual features that the fit predicts worse than the median of the values does.

    Wrong features say nothing of the values. If these values are extreme themselves, the features are right and the
    relation is no line there: then no row is misled.
    """
    size, spread = np.abs(residuals), np.abs(squares.target - np.median(squares.target))
    misled = (sizes > FAR) & (size > CUT * sigma) & (size > spread)
    if misled.any() and np.mean(np.searchsorted(np.sort(spread), spread[misled], "right")) > EXTREME * len(size):
        misled[:] = False
    return np.asarray(misled)


def second_heap(t: Floats) -> float:
    """Return the cut beyond which the density of standardised residuals rises again; inf if it only falls.

    Residuals of clean data become rarer the farther out one looks. For an even density, a share ``RATIO / (1 +
    RATIO)`` of the rows in a window of two equal ratios would lie in its outer half.

    >>> rng = np.random.default_rng(0)
    >>> clean = rng.standard_t(3, size=500)
    >>> second_heap(clean), 3 < second_heap(np.r_[clean, rng.normal(9, 1, size=50)]) < 9
    (inf, True)
    """
    t = np.sort(t[t > HEAP / RATIO])
    if not (t.size and t[-1] > HEAP):
        return np.inf
    cuts = HEAP * STEP ** np.arange(int(np.log(t[-1] / HEAP) / np.log(STEP)) + 1)
    below, here, above = (np.searchsorted(t, cuts * ratio) for ratio in (1 / RATIO, 1.0, RATIO))
    even, rows = RATIO / (1 + RATIO), np.maximum(above - below, 1)
    z = (above - here - even * rows) / np.sqrt(even * (1 - even) * rows)
    best = int(z.argmax())
    return float(cuts[best]) if z[best] > RISING else np.inf


def best_start(squares: Squares, first: Floats, sizes: Floats) -> Floats:
    """Return the start that explains most rows: a given one, or Huber's fit without the rejected rows.

    Huber's fits begin with equal weights and with weights that fall with the size of a row. The given start, found by
    the search for a majority, wins if outliers are nearly half of the rows.
    """
    starts = [_reweighted(squares, weights, _huber) for weights in (None, np.square(FAR / np.maximum(sizes, FAR)))]
    fits = [first, *(_without_rejected(squares, start, sizes) for start in starts)]
    residuals = [squares.residuals(b) for b in fits]
    sigma = max(min(madn(r, squares.sample_weight) for r in residuals), exact_floor(squares))
    losses = [np.average(np.minimum(np.square(r / sigma), CAPPED), weights=squares.sample_weight) for r in residuals]
    return fits[int(np.argmin(losses))]


def _without_rejected(squares: Squares, b: Floats, sizes: Floats) -> Floats:
    """Reject rows by the residuals of Tukey's fit and fit the others by Huber's, until the rows stay the same."""
    kept = np.ones(squares.n_rows, dtype=bool)
    for _ in range(ROUNDS):
        sharp = _reweighted(squares, kept.astype(float), _tukey, b)
        before, kept = kept, ~rejected_rows(squares, squares.residuals(sharp), sizes, kept)
        if kept.sum() <= squares.dof or np.array_equal(kept, before):
            break
        b = _reweighted(squares, kept.astype(float), _huber, b)
    return b


def _huber(t: Floats) -> Floats:
    return np.asarray(np.minimum(1.0, HUBER / np.maximum(t, HUBER)))


def _tukey(t: Floats) -> Floats:
    return np.asarray(np.square(np.clip(1 - np.square(t / TUKEY), 0.0, None)))


def _reweighted(squares: Squares, prior: Floats | None, rule: Any, b: Floats | None = None) -> Floats:
    """Reweighted least squares with the scale of the current residuals, and a ridge against wild coefficients."""
    weight, floor = squares.sample_weight, exact_floor(squares)
    spread = max(madn(squares.target - weighted_quantile(squares.target, 0.5, weight), weight), floor)
    b = squares.solve(prior) if b is None else b
    used = slice(None) if prior is None else prior > 0
    counted = None if weight is None else weight[used]
    for _ in range(FITS):
        residuals = squares.residuals(b)
        sigma = madn(residuals[used], counted)
        if not sigma > floor:
            break
        ridge = squares.ridge + (RIDGE * min(sigma / spread, 1.0)) ** 2 * (np.arange(squares.n_columns) > 0)
        weights = rule(np.abs(residuals) / sigma)
        update = replace(squares, ridge=ridge).solve(weights if prior is None else prior * weights, b)
        moved = float(np.max(np.abs(update - b), initial=0.0))
        b = update
        if moved < 1e-3 * sigma:
            break
    return b
