"""`SelfPacedLinearRegression` on tables that are not in memory: a sample decides, all rows are fitted."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..distributed import Block, ContentSample, Table, drawn
from ..fitting import FitInterrupted, Interruptible, Progress, interrupted_sentence
from ..robust import ResidualRule
from ..value_noise import EVEN_ODDS
from ._folds import fetch
from ._least_squares import DENSE_GRAM
from ._streaming import Coordinates, coordinates, settled

Floats = NDArray[np.floating[Any]]

DECIDING = 50_000  # cost: rows above which a sample decides; their sigma is then within a third of a percent
ROWS_PER_FEATURE = 50  # cost: rows of the sample, where these are more


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
        size = max(DECIDING, ROWS_PER_FEATURE * table.n_features) + 1
        sample = drawn(table, seed, size, 0)
        few = sample.complete and not many(table.n, table.n_features)
        order = np.argsort(sample.rows) if few else np.arange(len(sample.rows))
        weight, found = sample.sample_weight, fetch(table, sample.rows[order])
        if sparse.issparse(found.X) and table.n_features > DENSE_GRAM:
            most = f"X must have at most {DENSE_GRAM} columns where it has sparse blocks"
            raise ValueError(f"{most}, got {table.n_features}: fit them in memory")
        weight = None if weight is None else weight[order]
        return cls(replace(sample, rows=sample.rows[order]), found.X, found.y, weight)


@dataclass(frozen=True, eq=False)
class ByRule:
    """Weights of rows at the pace of a fit."""

    rule: Any
    lam: float

    def __call__(self, X: Any, y: Floats, residuals: Floats) -> Floats:  # noqa: ARG002
        return np.asarray(self.rule.weights(residuals, self.lam))


@dataclass(frozen=True, eq=False)
class ByAssessment:
    """Weights of rows that the assessment of a fit holds right."""

    model: Any

    def __call__(self, X: Any, y: Floats, residuals: Floats) -> Floats:  # noqa: ARG002
        return (np.asarray(self.model._wrong(X, self.model.predict(X), y)) < EVEN_ODDS).astype(float)


class TableEnd(Enum):
    """How the fit of a table ended."""

    SETTLED = auto()
    MAX_ITER = auto()
    INTERRUPTED = auto()


def fit_table(model: Any, table: Table, progress: Progress) -> TableEnd:
    """Fit a regression to a table, and return how that ended.

    The automatic search, the scale of the residuals and the assessment of values look at the sample alone: at
    every distinct
    row, up to `DECIDING` of them. The coefficients are those of all rows at the pace, or without the gross rows, that
    came of it. On Ctrl-C the best complete fit of the sample is kept.
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
    for name, value in vars(small).items():
        if name.endswith("_") and not name.startswith("_") and name not in ("sample_weight_", "sample_loss_"):
            setattr(model, name, value)
    model.alpha_ = small.alpha_ - small.alpha + float(model.alpha)
    if table.names is not None:
        model.feature_names_in_ = np.asarray(table.names, dtype=object)
        model.plain_.feature_names_in_ = model.feature_names_in_


def many(n: int, d: int) -> bool:
    """Whether there are so many rows that a sample may decide."""
    return n > max(DECIDING, ROWS_PER_FEATURE * d)


def _carry(model: Any, small: Any, table: Table, rows: SampledRows, share: float) -> bool:
    """The plain and the chosen fit of all rows, begun at those of the sample."""
    at = coordinates(table, Block(rows.X, rows.y, rows.weight), bool(model.fit_intercept))
    tol, dtype = float(model.tol) * max(small.scale_, np.finfo(float).tiny), small.coef_.dtype
    options = {"alpha": float(model.alpha), "tol": tol, "max_iter": int(model.max_iter)}
    plain, n_iter, converged = settled(table, at, _point(at, small.plain_), None, **options)[0], small.n_iter_, True
    found = plain
    if np.isfinite(small.lam_):
        rule = ResidualRule(small.regularizer_, small.loss_unit_)
        weigh: Any = ByAssessment(_bare(small)) if small.misfit_check_.applied else ByRule(rule, small.lam_)
        found, n_iter, converged = settled(table, at, _point(at, small), weigh, **options)
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
    other.misfit_check_ = replace(check, wrong=check.wrong[:0], lost=None, dropped=None)
    return other


def _point(at: Coordinates, fitted: Any) -> Floats:
    return at.point(np.asarray(fitted.coef_, dtype=np.float64), float(fitted.intercept_))


__all__ = ["TableEnd", "fit_table", "many"]
