"""`SelfPacedLinearRegression` on tables that are not in memory: a sample decides, all rows are fitted.

The sample says which rule weighs the rows and at which pace, or which rows are grossly wrong. What is left is weighted
least squares in sums over blocks: the weights follow from the residuals, and every pass gives the normal equations of
the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..distributed.table import Block, ContentSample, Sums, Table, drawn
from ..fitting import FitInterrupted, Interruptible, Progress, interrupted_sentence
from ..robust import ResidualRule
from ..value_noise import EVEN_ODDS
from ._folds import fetch
from ._least_squares import DENSE_GRAM, Coordinates, Factor, independent_axes, triangular, true_spreads
from ._regression_fit import deciding_rows

Floats = NDArray[np.floating[Any]]
#: Weights of the rows of a block from features, given values and residuals; None: all 1.
Weigh = Callable[[Any, Floats, Floats], Floats]


@dataclass(frozen=True, eq=False)
class SampledRows:
    """The sample of a table: features, values and weights of its rows."""

    sample: ContentSample
    X: Any
    y: Floats
    weight: Floats | None

    @classmethod
    def of(cls, table: Table, seed: int) -> SampledRows:
        """Drawn by content, in an order that is that of the table only where it has few rows: as in memory."""
        most = deciding_rows(table.n_features)
        sample = drawn(table, seed, most + 1, 0)
        few = sample.complete and table.n <= most
        order = np.argsort(sample.rows) if few else np.arange(len(sample.rows))
        weight, found = sample.sample_weight, fetch(table, sample.rows[order])
        if sparse.issparse(found.X) and table.n_features > DENSE_GRAM:
            limit = f"X must have at most {DENSE_GRAM} columns if it has sparse blocks"
            raise ValueError(f"{limit}, got {table.n_features}: fit them in memory")
        weight = None if weight is None else weight[order]
        return cls(replace(sample, rows=sample.rows[order]), found.X, found.y, weight)


@dataclass(frozen=True, eq=False)
class ByFit:
    """Weights of rows at the pace of a fit, which leaves out what it has found to be wrong."""

    model: Any

    def __call__(self, X: Any, y: Floats, residuals: Floats) -> Floats:
        model = self.model
        weight = np.asarray(ResidualRule(model.regularizer_, model.loss_unit_).weights(residuals, model.lam_))
        if model.rejection_ is None:
            return weight
        expected = model.predict(X)
        wrong = (model._wrong(X, expected, y) > EVEN_ODDS) | model.rejection_.rows(X, y, y - expected)
        return np.where(wrong, 0.0, weight)


class TableEnd(Enum):
    """How the fit of a table ended."""

    SETTLED = auto()
    MAX_ITER = auto()
    INTERRUPTED = auto()


def fit_table(model: Any, table: Table, progress: Progress) -> TableEnd:
    """Fit a regression to a table, and return how that ended.

    The automatic search, the scale of the residuals and the assessment of values look at the sample alone: at
    every distinct row, up to `deciding_rows` of them. The coefficients are those of all rows at the pace, or without
    the gross rows, that came of it. On Ctrl-C the best complete fit of the sample is kept.
    """
    rows = SampledRows.of(table, int(check_random_state(model.random_state).randint(1 << 31)))
    mass = float(len(rows.y) if rows.weight is None else rows.weight.sum())
    share = 1.0 if rows.sample.complete else mass / float(table.mass.sum())
    end, groups = TableEnd.SETTLED, getattr(table, "groups", None)
    with progress.stage(f"{len(rows.y)} rows decide"):
        small = clone(model).set_params(alpha=float(model.alpha) * share, verbose=0)
        small._decides = True  # and is not sampled again
        try:
            small.fit(rows.X, rows.y, rows.weight, groups=None if groups is None else groups[rows.sample.rows])
        except FitInterrupted:
            end = TableEnd.INTERRUPTED
    _adopt(model, small, table)
    if end is TableEnd.SETTLED and not rows.sample.complete:
        with Interruptible() as guard, progress.stage("full fit"):
            end = TableEnd.SETTLED if _carry(model, small, table, rows, share) else TableEnd.MAX_ITER
        if guard.interrupted:
            end = TableEnd.INTERRUPTED
            model.termination_ = interrupted_sentence("the fit of a sample")
    assessed = model._assess(rows.X, rows.y)
    model.assessment_ = replace(assessed, numbers=table.numbers(rows.sample.rows))
    return end


def _adopt(model: Any, small: Any, table: Table) -> None:
    """What the fit of the sample has found; rows of the sample are not those of the table."""
    model.coef_, model.intercept_, model.plain_ = small.coef_, small.intercept_, small.plain_
    model.regularizer_, model.loss_unit_, model.lam_ = small.regularizer_, small.loss_unit_, small.lam_
    model.scale_, model.inference_, model.rejection_ = small.scale_, small.inference_, small.rejection_
    model.misfit_check_, model.noise_rate_ = small.misfit_check_, small.noise_rate_
    model.noise_rate_interval_, model.n_features_in_ = small.noise_rate_interval_, small.n_features_in_
    model.path_, model.termination_, model.n_iter_ = small.path_, small.termination_, small.n_iter_
    model.assessment_ = small.assessment_
    model.alpha_ = small.alpha_ - small.alpha + float(model.alpha)
    if table.names is not None:
        model.feature_names_in_ = np.asarray(table.names, dtype=object)
        model.plain_.feature_names_in_ = model.feature_names_in_


def _carry(model: Any, small: Any, table: Table, rows: SampledRows, share: float) -> bool:
    """The plain and the chosen fit of all rows, begun at those of the sample."""
    at = coordinates(table, Block(rows.X, rows.y, rows.weight), bool(model.fit_intercept))
    tol, dtype = float(model.tol) * max(small.scale_, np.finfo(float).tiny), small.coef_.dtype
    options = {"alpha": float(model.alpha), "tol": tol, "max_iter": int(model.max_iter)}
    plain, n_iter, converged = settled(table, at, _point(at, small.plain_), None, **options)[0], small.n_iter_, True
    found = plain
    if np.isfinite(small.lam_):
        found, n_iter, converged = settled(table, at, _point(at, small), ByFit(_bare(small)), **options)
    # all at once: before, the model is that of the sample
    for one, b in ((model.plain_, plain), (model, found)):
        coef, intercept = at.coefficients(b)
        one.coef_, one.intercept_ = coef.astype(dtype), dtype.type(intercept)
    model.n_iter_ = n_iter
    if small.inference_ is not None and not small.inference_.groups:
        # The same weights per row, and more rows: variances fall in proportion. More rows of a group tell less than
        # that, so standard errors by groups stay those of the sample.
        known = small.inference_
        covariances = {"covariance": known.covariance * share, "even": known.even * share}
        model.inference_ = replace(known, **covariances, dof=known.dof / share)
    return converged


def _bare(small: Any) -> Any:
    """The model as others need it who weigh rows by it: without its own."""
    other = copy(small)
    for name in ("assessment_", "sample_weight_", "sample_loss_", "path_"):
        delattr(other, name)
    check = small.misfit_check_
    other.misfit_check_ = replace(check, wrong=check.wrong[:0], lost=None)
    return other


def _point(at: Coordinates, fitted: Any) -> Floats:
    """The coordinates of a fitted model."""
    coef = np.asarray(fitted.coef_, dtype=np.float64)
    if at.back.ndim == 1:
        slopes = np.divide(coef, at.back, out=np.zeros(len(coef)), where=at.back > 0)
    else:
        slopes = np.linalg.lstsq(at.back, coef)[0]
    level = float(fitted.intercept_) - at.offset + at.center @ coef
    return np.concatenate([[level], slopes]) if at.fit_intercept else slopes


# ------------------------------------------------------------------------- least squares in sums over blocks


def features_at(at: Coordinates, X: Any) -> Any:
    """Features of a block in these coordinates, in double precision."""
    lead = int(at.fit_intercept)
    if sparse.issparse(X):
        scaled = sparse.csr_array(X, dtype=np.float64) @ sparse.diags_array(at.back)
        return sparse.hstack([np.ones((X.shape[0], lead)), scaled], format="csr") if lead else scaled
    if at.back.ndim == 2:
        turned = (X - at.center) @ at.back
        return np.concatenate([np.ones((len(turned), lead)), turned], axis=1)
    out = np.empty((X.shape[0], X.shape[1] + lead))
    out[:, :lead] = 1.0
    np.subtract(X, at.center, out=out[:, lead:])
    out[:, lead:] *= at.back
    return out


def moments(block: Block, shift: Floats, offset: float) -> Sums:
    """Weight of the rows, and sums of features, their squares and the target about a provisional centre."""
    weight = np.ones(len(block.y)) if block.weight is None else block.weight
    target = float(weight @ (block.y - offset))
    if sparse.issparse(block.X):
        X = sparse.csr_array(block.X, dtype=np.float64)
        return Sums((float(weight.sum()), X.T @ weight, X.power(2).T @ weight, target))
    centred = np.asarray(block.X - shift, dtype=np.float64)
    return Sums((float(weight.sum()), weight @ centred, weight @ centred**2, target))


class Triangle:
    """The triangular factor of rows, which has their squares without having squared them; those of parts add up."""

    def __init__(self, factor: Floats) -> None:
        self.factor = factor

    @classmethod
    def of(cls, rows: Floats) -> Triangle:
        """The factor of some rows."""
        return cls(triangular(rows))

    def __add__(self, other: Triangle) -> Triangle:
        return Triangle.of(np.concatenate([self.factor, other.factor]))

    def __radd__(self, other: Any) -> Triangle:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum(parts) works


def triangle(block: Block, center: Floats) -> Triangle:
    """The factor of the centred features of a block."""
    centred = np.asarray(block.X, dtype=np.float64) - center
    return Triangle.of(centred if block.weight is None else centred * np.sqrt(block.weight)[:, None])


def residual_sums(block: Block, at: Coordinates, b: Floats, weigh: Weigh | None) -> Sums:
    """Normal matrix and gradient of the weighted squares at a point, and the weight of the rows."""
    Z = features_at(at, block.X)
    residuals = block.y - at.offset - Z @ b
    weight = np.ones(len(residuals)) if weigh is None else weigh(block.X, block.y, residuals)
    weight = weight if block.weight is None else weight * block.weight
    if sparse.issparse(Z):
        gram = (Z.T @ (sparse.diags_array(weight) @ Z)).toarray()
    else:
        half = Z * np.sqrt(weight)[:, None]
        gram = half.T @ half
    return Sums((gram, Z.T @ (weight * residuals), float(weight.sum())))


def coordinates(table: Table, rows: Block, fit_intercept: bool) -> Coordinates:
    """The centre and spread of all rows, taken about those of a sample so that no digits are lost: one pass.

    Where columns depend on each other in the sample, a second pass finds axes of all rows that do not.
    """
    shift, offset, loose = np.zeros(table.n_features), 0.0, sparse.issparse(rows.X)
    if fit_intercept:
        offset = float(np.average(rows.y, weights=rows.weight))
        if not loose:
            shift = np.asarray(np.average(rows.X, axis=0, weights=rows.weight), dtype=np.float64)
    mass, first, second, target = table.reduce(moments, shift, offset)
    centred = fit_intercept and not loose
    mean = first / mass if centred else np.zeros_like(first)
    center = shift + mean
    back = true_spreads(np.sqrt(np.maximum(second / mass - mean**2, 0.0)), center, table.dtype)[1]
    found = Coordinates(center, back, offset + target / mass if fit_intercept else 0.0, fit_intercept)
    if loose or Factor.of(residual_sums(rows, found, np.zeros(len(back) + fit_intercept), None)[0]).safe:
        return found
    return replace(found, back=independent_axes(table.reduce(triangle, center).factor, center, mass, table.dtype))


def settled(
    table: Table, at: Coordinates, b: Floats, weigh: Weigh | None, *, alpha: float, tol: float, max_iter: int
) -> tuple[Floats, int, bool]:
    """Weighted least squares from a point until no coordinate moves by more than ``tol``: where, passes, converged."""
    ridge = at.ridge(alpha)
    for passes in range(1, max_iter + 1):
        gram, gradient, _ = table.reduce(residual_sums, at, b, weigh)
        gram[np.diag_indices_from(gram)] += ridge
        step = Factor.of(gram).solve(gradient - ridge * b)
        b = b + step
        if np.abs(step).max(initial=0.0) <= tol:
            return b, passes, True
    return b, max_iter, False


__all__ = ["TableEnd", "fit_table"]
