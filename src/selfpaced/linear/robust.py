"""Choose between the plain linear fit and the self-paced one, from the residuals alone."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import chi2

from ..path import Candidate, weight_histogram
from ..regularizers import Regularizer, get
from ..residuals import (
    OutlierShare,
    ResidualRule,
    ResidualScale,
    efficient_lam,
    efficient_rule,
    outlier_share,
    tukey_loss,
)
from .ascent import exact_floor, fit_scale, reweight, robust_start
from .squares import Squares

__all__ = ["Search", "Trial", "judge"]

Floats = NDArray[np.floating[Any]]
GUARD = 1.08  # a stage may not raise the M-scale of the residuals by more than this
ROWS_PER_COEFFICIENT = 3  # below, outliers and a flexible fit cannot be told apart


@dataclass(frozen=True, eq=False)
class Trial:
    """One fit that was tried."""

    b: Floats
    lam: float
    label: str
    rule: ResidualRule | None
    cost: float


@dataclass(eq=False)
class Search:
    """The fits tried so far on one problem, and what is known about its noise.

    Every step leaves a complete result behind, so that an interrupted search is still a usable one.
    """

    squares: Squares
    plain: Floats
    trials: list[Trial] = field(default_factory=list)
    scale: ResidualScale = field(default_factory=lambda: ResidualScale(math.nan, math.nan))
    chosen: int = 0
    reason: str = ""
    n_iter: int = 0
    converged: bool = True

    @classmethod
    def begin(cls, squares: Squares) -> Search:
        began = time.perf_counter()
        plain = squares.solve()
        search = cls(squares, plain)
        search.add(plain, math.inf, "plain", None, began)
        search.scale = fit_scale(squares, plain)
        search.reason = "the plain fit was kept"
        return search

    def add(self, b: Floats, lam: float, label: str, rule: ResidualRule | None, began: float) -> int:
        self.trials.append(Trial(b, lam, label, rule, time.perf_counter() - began))
        return len(self.trials) - 1

    @property
    def best(self) -> Trial:
        return self.trials[self.chosen]

    def choose(self, index: int, reason: str) -> None:
        self.chosen, self.reason = index, reason

    def sentence(self) -> str:
        """What was chosen, and why."""
        return self.reason[0].upper() + self.reason[1:] + "."

    # ------------------------------------------------------------------------------------------- automatic

    def automatic(
        self, regularizer: Regularizer, *, efficiency: float, tol: float, max_iter: int, rng: np.random.RandomState
    ) -> None:
        """Robust start, upward pace, efficient stop, guard, and the plain fit where nothing speaks against it."""
        squares = self.squares
        if squares.size < ROWS_PER_COEFFICIENT * squares.dof:
            self.reason = (
                f"plain fit, because {squares.size:g} rows for {squares.dof:.3g} coefficients do not show which rows "
                f"are outliers (at least {ROWS_PER_COEFFICIENT} per coefficient are needed; a ridge, alpha, helps)"
            )
            return
        if not np.any(squares.residuals(self.plain) > exact_floor(squares)):
            self.scale = ResidualScale(0.0, 0.0)
            self.reason = "plain fit, because it fits every row exactly"
            return
        began = time.perf_counter()
        start, majority = robust_start(squares, rng)
        scale = fit_scale(squares, start)
        self.scale = ResidualScale(min(scale.sigma, majority), scale.majority)
        floor = exact_floor(squares)
        sigma = max(self.scale.sigma, floor)
        hard = ResidualRule(get("hard"))
        index = self.add(start, efficient_lam(hard.regularizer, sigma), "hard, upward", hard, began)
        self.choose(index, f"hard selection at sigma = {sigma:.4g}")
        self._efficient(regularizer, index, majority, floor, efficiency, tol, max_iter)
        if self.scale.sigma <= floor:
            self.scale = ResidualScale(0.0, self.scale.majority)
            self.reason += "; the rows that count are fitted exactly"
        else:
            self._prefer_plain(efficiency)

    def _efficient(
        self,
        regularizer: Regularizer,
        index: int,
        majority: float,
        floor: float,
        efficiency: float,
        tol: float,
        max_iter: int,
    ) -> None:
        """The rule at the pace where it wastes little on clean data, unless it lets the majority down."""
        squares, start, before = self.squares, self.trials[index].b, self.scale
        for target in (efficiency, 0.9 * efficiency):
            began = time.perf_counter()
            rule, lam = efficient_rule(regularizer, max(before.sigma, floor), target)
            b = reweight(squares, rule, lam, start, tol=tol, max_iter=2).b
            sigma = max(min(fit_scale(squares, b).sigma, 1.1 * before.sigma, majority), floor)
            rule, lam = efficient_rule(regularizer, sigma, target)
            fit = reweight(squares, rule, lam, b, tol=tol, max_iter=max_iter)
            self.n_iter, self.converged = fit.n_iter, fit.converged
            after = fit_scale(squares, fit.b)
            label = f"{regularizer.name or 'custom'}, {target:.0%} efficient"
            index = self.add(fit.b, lam, label, rule, began)
            if after.majority <= max(GUARD * before.majority, floor):
                self.scale = ResidualScale(sigma if sigma > floor else 0.0, after.majority)
                self.choose(index, f"{label} at sigma = {sigma:.4g}")
                return
        self.reason = (
            f"hard selection at sigma = {before.sigma:.4g}, because {regularizer.name or 'the rule'} at an efficient "
            f"pace would raise the scale of the majority by more than {GUARD - 1:.0%}"
        )

    def _prefer_plain(self, efficiency: float) -> None:
        """Keep the plain fit where it differs from the paced one by no more than clean data explain.

        Least squares is the efficient fit at the normal, so the squared distance of the two, in units of the paced
        fit's extra variance, is chi-squared (Hausman 1978); and no residual may be an outlier by itself.
        """
        squares, trial, sigma = self.squares, self.best, self.scale.sigma
        if trial.label.startswith("hard"):
            return
        step = squares.matrix @ (self.plain - trial.b)
        weight = squares.sample_weight
        extra = sigma**2 * (1 / efficiency - 1)
        distance = float(np.sum(np.square(step) if weight is None else weight * np.square(step))) / extra
        if weight is not None:
            distance *= squares.size / float(weight.sum())
        residuals = squares.residuals(trial.b)
        share = outlier_share(residuals, sigma, weight)
        largest = float(np.max(np.abs(residuals))) / sigma
        limit = -1.1 * float(ndtri(0.005 / squares.size))
        if distance <= chi2.ppf(0.99, squares.dof) and share.low == 0 and largest <= limit:
            self.choose(0, f"plain fit, because it agrees with {trial.label} and no residual is an outlier")

    # ----------------------------------------------------------------------------------------------- report

    def outliers(self) -> OutlierShare:
        """The share of rows that the noise of the chosen fit does not explain."""
        floor = exact_floor(self.squares)
        residuals = self.squares.residuals(self.best.b)
        return outlier_share(residuals, max(self.scale.sigma, floor), self.squares.sample_weight)

    def path(self) -> tuple[Candidate, ...]:
        """Every fit with its score: minus the mean Tukey loss of all rows at one common sigma."""
        return tuple(judge(self, index) for index in range(len(self.trials)))


def judge(search: Search, index: int) -> Candidate:
    """The record of one trial."""
    trial, squares = search.trials[index], search.squares
    residuals = squares.residuals(trial.b)
    weight = squares.sample_weight
    loss = tukey_loss(residuals, max(search.scale.sigma, exact_floor(squares)))
    mean = float(np.average(loss, weights=weight))
    spread = math.sqrt(float(np.average(np.square(loss - mean), weights=weight)) / squares.size)
    relative = np.ones(squares.n_rows) if trial.rule is None else trial.rule.weights(residuals, trial.lam)
    return Candidate(
        lam=trial.lam,
        score=-mean,
        spread=spread,
        mean_weight=float(np.average(relative, weights=weight)),
        cost=trial.cost,
        chosen=index == search.chosen,
        histogram=weight_histogram(relative),
        label=trial.label,
    )
