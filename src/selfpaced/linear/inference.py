"""What statisticians ask of a linear fit: standard errors, intervals, p-values and R2, at the weights it ended with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import t as student

from ..inspection import as_table
from ..robust import consistency
from ._least_squares import DENSE_GRAM, Squares

if TYPE_CHECKING:
    from ._regression_fit import RegressionFit

__all__ = ["Inference", "RegressionSummary", "infer"]

Floats = NDArray[np.floating[Any]]
SMOOTHED = 0.25  # a choice: sigmas over which the slope of psi is taken, so that a hard rule's step has one
ONLY_ROW = 0.999  # numerical safety: leverage of a row without which a coefficient is not determined
QUANTILES = 201  # display: of residuals, from which prediction intervals are interpolated
LEAST_SLOPE = 0.1  # numerical safety: of the slope of psi to the weights; 0.76 for Tukey's rule at the normal


@dataclass(frozen=True, eq=False)
class Inference:
    """What a summary needs of the training rows."""

    covariance: Floats  # HC3, of the intercept (first, if there is one) and the coefficients
    even: Floats  # the same with one spread for all rows
    dof: float  # weight of the rows less the number of coefficients; number of groups less one
    r2: float  # robust coefficient of determination
    quantiles: Floats  # of the residuals of rows that are not grossly wrong, at evenly spaced probabilities
    groups: int = 0

    def errors(self, cov: str = "HC3") -> Floats:
        """Return the standard errors."""
        return np.sqrt(np.clip(np.diag(self.covariance if cov == "HC3" else self.even), 0, None))

    def kind(self, cov: str) -> str:
        """Return how the standard errors are called."""
        return (
            f"{'HC3' if cov == 'HC3' else 'even spread'}{f', clustered by {self.groups} groups' if self.groups else ''}"
        )

    def reach(self, X: Any, level: float, fit_intercept: bool) -> tuple[Floats, Floats]:
        """Return how far the interval of new values lies below and above each prediction."""
        X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        rows = np.column_stack([np.ones(len(X)), X]) if fit_intercept else X
        variance = np.clip(np.einsum("ij,jk,ik->i", rows, self.covariance, rows, optimize=True), 0, None)
        fitted = student.ppf((1 + level) / 2, self.dof) ** 2 * variance
        grid = np.linspace(0, 1, len(self.quantiles))
        low, high = (float(np.interp(q, grid, self.quantiles)) for q in ((1 - level) / 2, (1 + level) / 2))
        below, above = (np.sign(end) * np.sqrt(end * end + fitted) for end in (min(low, 0.0), max(high, 0.0)))
        return np.where(below < 0, below, -np.sqrt(fitted)), np.where(above > 0, above, np.sqrt(fitted))


def infer(found: RegressionFit, trusted: NDArray[np.bool_], groups: NDArray[np.intp] | None = None) -> Inference | None:
    """Return the sandwich of the chosen fit at its weights; None if the columns are too many, or no row has any weight.

    With psi = weight * residual the fit solves sum psi x = 0, so its covariance is B^-1 M B^-1 with
    B = sum psi' x x' and M = sum psi^2 x x'. M has psi / (1 - leverage), as in HC3. With an even spread B is
    (mean psi' / mean weight) sum weight x x', which few rows estimate well (Koller and Stahel, 2011).
    """
    squares, best = found.squares, found.best
    if sparse.issparse(squares.matrix) and squares.n_columns > DENSE_GRAM:
        return None
    sigma, residuals = found.sigma, best.residuals
    given = np.ones(squares.n_rows) if squares.sample_weight is None else squares.sample_weight
    unit = squares.size / float(given.sum())  # rows that a sample weight of one stands for
    weight = np.ones(squares.n_rows) if found.trial.weight is None else found.trial.weight
    if not given @ weight > 0:
        return None
    slope = _slopes(found, weight)
    inverse = squares.factor(squares.total(weight)).solve(np.eye(squares.n_columns))
    leverage = squares.leverage(weight, inverse) / unit
    alone = leverage > ONLY_ROW
    pull = np.where(alone, sigma, weight * residuals / (1 - np.where(alone, 0, leverage)))
    meat, mass = _meat(squares, given * unit, pull, groups), float(given @ weight)
    rate = max(float(given @ slope) / mass, LEAST_SLOPE)
    turn = squares.at.jacobian()
    even = turn @ inverse / (rate * unit)
    own = even if best.rule is None else turn @ _own_bread(squares, given * slope, inverse / rate) / unit
    count = 0 if groups is None else int(groups.max()) + 1
    dof = max(count - 1.0, 1.0) if count else max(unit * mass - squares.dof, 1.0)
    kept = residuals[trusted] if trusted.any() else residuals
    quantiles = np.quantile(kept, np.linspace(0, 1, QUANTILES)) * math.sqrt(
        len(kept) / max(len(kept) - squares.dof, 1.0)
    )
    covariances = (own @ meat @ own.T, even @ meat @ even.T)
    return Inference(*covariances, dof, _robust_r2(found, given, weight), quantiles, count)


def _meat(squares: Squares, given: Floats, pull: Floats, groups: NDArray[np.intp] | None) -> Floats:
    """Return the sum of squared scores, of rows or of groups."""
    if groups is None:
        return squares.gram(given * np.square(pull)) - np.diag(squares.ridge)
    count = int(groups.max()) + 1
    members = sparse.csr_array((given * pull, (groups, np.arange(len(groups)))), shape=(count, len(groups)))
    scores = members @ squares.matrix
    scores = np.asarray(scores.toarray() if sparse.issparse(scores) else scores, dtype=np.float64)
    return np.asarray(scores.T @ scores * (count / (count - 1)))


def _own_bread(squares: Squares, slope: Floats, even: Floats) -> Floats:
    """Return the inverse of sum psi' x x'; the even one if that is not clearly positive."""
    positive, negative = np.clip(slope, 0, None), np.clip(-slope, 0, None)
    gram = squares.gram(positive) - (squares.gram(negative) - np.diag(squares.ridge))
    values, axes = np.linalg.eigh(gram)
    usual = np.einsum("ji,jk,ki->i", axes, even, axes)  # the even inverse along the same axes
    if np.any(values * usual < LEAST_SLOPE):
        return even
    return np.asarray((axes / values) @ axes.T)


def _by_rule(found: RegressionFit, weight: Floats) -> bool:
    """Whether the rule made the weights of the rows that have one: not if a person has confirmed some."""
    rule, kept = found.best.rule, weight > 0
    return rule is not None and np.allclose(rule.weights(found.best.residuals[kept], found.trial.lam), weight[kept])


def _slopes(found: RegressionFit, weight: Floats) -> Floats:
    """The slope of psi at the residuals; weights that do not follow the residuals are its slope themselves."""
    rule, lam, residuals = found.best.rule, found.trial.lam, found.best.residuals
    if rule is None or not _by_rule(found, weight):
        return weight
    step = SMOOTHED * found.sigma
    above, below = (moved * rule.weights(moved, lam) for moved in (residuals + step, residuals - step))
    left_out = (weight == 0) & (rule.weights(residuals, lam) > 0)
    return np.where(left_out, 0.0, (above - below) / (2 * step))


def _robust_r2(found: RegressionFit, given: Floats, weight: Floats) -> float:
    """Renaud and Victoria-Feser (2010): weighted, with the weighted residuals made consistent at the normal."""
    squares, best, total = found.squares, found.best, given * weight
    target = squares.target + squares.at.offset
    fitted = target - best.residuals
    middle = np.average(target, weights=total) if squares.at.fit_intercept else 0.0
    explained = float(total @ np.square(fitted - middle))
    rest = float(total @ np.square(best.residuals))
    if best.rule is not None and _by_rule(found, weight):
        rest *= consistency(best.rule.regularizer, found.trial.lam, found.sigma / math.sqrt(best.rule.unit))
    return explained / (explained + rest) if explained + rest > 0 else 0.0


@dataclass(frozen=True, eq=False)
class RegressionSummary:
    """A linear fit in figures; printed, it is a table.

    Attributes
    ----------
    names : tuple of str
        Names of the coefficients, "intercept" first if there is one.
    estimate, error, t, p_value, low, high : array
        Coefficients, their standard errors, t values, two-sided p-values and the bounds of their intervals.
    level : float
        Confidence level of the intervals.
    dof : float
        Degrees of freedom of the t values: weight of the rows less the number of coefficients.
    scale, r2 : float
        Sigma of the good residuals and the robust coefficient of determination.
    words : tuple of str
        What the fit says of its rows: how many have weight, the share of outliers, and what was chosen.
    """

    names: tuple[str, ...]
    estimate: Floats
    error: Floats
    t: Floats
    p_value: Floats
    low: Floats
    high: Floats
    level: float
    dof: float
    scale: float
    r2: float
    words: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        inference: Inference,
        names: tuple[str, ...],
        estimate: Floats,
        error: Floats,
        scale: float,
        level: float,
        *words: str,
    ) -> RegressionSummary:
        """The figures that follow from standard errors."""
        ratio = np.divide(estimate, error, out=np.full(error.size, np.nan), where=error > 0)
        reach = student.ppf((1 + level) / 2, inference.dof) * error
        p_value = 2 * student.sf(np.abs(ratio), inference.dof)
        low, high = estimate - reach, estimate + reach
        return cls(names, estimate, error, ratio, p_value, low, high, level, inference.dof, scale, inference.r2, words)

    def frame(self) -> Any:
        """The table as a pandas DataFrame."""
        return as_table(
            {
                "name": np.array(self.names),
                "estimate": self.estimate,
                "error": self.error,
                "t": self.t,
                "p_value": self.p_value,
                "low": self.low,
                "high": self.high,
            }
        )

    def __str__(self) -> str:
        head = ("", "estimate", "std. error", "t", "p", f"{100 * self.level:g} % interval")
        columns = zip(self.names, self.estimate, self.error, self.t, self.p_value, self.low, self.high, strict=True)
        lines = [head] + [
            (name, f"{b:.4g}", f"{e:.3g}", _t(t), _p(p), f"{low:.4g} to {high:.4g}")
            for name, b, e, t, p, low, high in columns
        ]
        widths = [max(len(line[j]) for line in lines) for j in range(len(head))]
        shown = [
            "  ".join(
                [line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))]
            )
            for line in lines
        ]
        last = f"sigma {self.scale:.4g}, robust R2 {self.r2:.3f}, {self.dof:.1f} degrees of freedom"
        return "\n".join([*shown, "", last, *self.words])

    __repr__ = __str__


def _t(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 1e5 else f"{value:.1e}"


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"
