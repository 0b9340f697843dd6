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
from ._least_squares import DENSE_GRAM

if TYPE_CHECKING:
    from ._regression_fit import RegressionFit

__all__ = ["Inference", "RegressionSummary", "infer"]

Floats = NDArray[np.floating[Any]]
SMOOTHED = 0.25  # a choice: sigmas over which the slope of psi is taken, so that a hard rule's step has one
ALONE = 0.999  # numerical safety: leverage of a row without which a coefficient is not determined
LEAST_RATE = 0.1  # numerical safety: of the slope of psi to the weights; 0.76 for Tukey's rule at the normal


@dataclass(frozen=True, eq=False)
class Inference:
    """What a summary needs of the training rows.

    Attributes
    ----------
    covariance : array
        Of the intercept (first, if there is one) and the coefficients.
    dof : float
        Weight of the rows less the number of coefficients.
    r2 : float
        Robust coefficient of determination.
    """

    covariance: Floats
    dof: float
    r2: float

    def errors(self) -> Floats:
        """Standard errors."""
        return np.sqrt(np.clip(np.diag(self.covariance), 0, None))


def infer(found: RegressionFit) -> Inference | None:
    """The sandwich of the chosen fit at its weights; None if the columns are too many for it, or no row has any weight.

    With psi = weight * residual the fit solves sum psi x = 0, so its covariance is B^-1 M B^-1 with
    B = sum psi' x x' and M = sum psi^2 x x'. As Koller and Stahel (2011) do, B is taken as (mean psi' / mean weight)
    sum weight x x', which few rows estimate well; M has psi / (1 - leverage), as in HC3, so the errors need not have
    the same spread everywhere.
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
    alone = leverage > ALONE
    pull = np.where(alone, sigma, weight * residuals / (1 - np.where(alone, 0, leverage)))
    meat = squares.gram(given * unit * np.square(pull)) - np.diag(squares.ridge)
    mass = float(given @ weight)
    rate = max(float(given @ slope) / mass, LEAST_RATE)
    inside = inverse @ meat @ inverse / (rate * unit) ** 2
    turn = squares.jacobian()
    return Inference(turn @ inside @ turn.T, max(unit * mass - squares.dof, 1.0), _robust_r2(found, given, weight))


def _by_rule(found: RegressionFit, weight: Floats) -> bool:
    """Whether the rule made the weights of the residuals: neither for the plain fit nor for rows chosen otherwise."""
    rule = found.best.rule
    return rule is not None and np.allclose(rule.weights(found.best.residuals, found.trial.lam), weight)


def _slopes(found: RegressionFit, weight: Floats) -> Floats:
    """The slope of psi at the residuals; weights that do not follow the residuals are its slope themselves."""
    rule, lam, residuals = found.best.rule, found.trial.lam, found.best.residuals
    if rule is None or not _by_rule(found, weight):
        return weight
    step = SMOOTHED * found.sigma
    above, below = (moved * rule.weights(moved, lam) for moved in (residuals + step, residuals - step))
    return np.asarray((above - below) / (2 * step))


def _robust_r2(found: RegressionFit, given: Floats, weight: Floats) -> float:
    """Renaud and Victoria-Feser (2010): weighted, with the weighted residuals made consistent at the normal."""
    squares, best, total = found.squares, found.best, given * weight
    target = squares.target + squares.offset
    fitted = target - best.residuals
    middle = np.average(target, weights=total) if squares.fit_intercept else 0.0
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
        Of the coefficients, "intercept" first if there is one.
    estimate, error, t, p_value, low, high : array
        Coefficients, their standard errors, t values, two-sided p-values and the bounds of their intervals.
    level : float
        Of the intervals.
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
        """The table as a pandas DataFrame, or as :class:`~selfpaced.inspection.Records` without pandas."""
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
            (name, f"{b:.4g}", f"{e:.3g}", f"{t:.2f}", _p(p), f"{low:.4g} to {high:.4g}")
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


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"
