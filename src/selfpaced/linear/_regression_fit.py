"""Choose between the plain linear fit and the self-paced one, from the residuals alone."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import chi2

from ..path import Candidate
from ..regularizers import Regularizer, get
from ..robust import (
    OutlierShare,
    ResidualRule,
    ResidualScale,
    efficient_lam,
    efficient_rule,
    largest_sigma,
    outlier_share,
    tukey_loss,
)
from ..robust.sigma import CUTOFF
from ..selection import Decision, Trial, path_of, sentence
from ._irls import Reweighted, fit_scale, robust_start, settle
from ._least_squares import Squares, exact_floor
from .support import absurd_rows

__all__ = ["Attempt", "RegressionFit", "RegressionSettings", "automatic", "plain_fit"]

Floats = NDArray[np.floating[Any]]
# a choice, made on development data.
GUARD = 1.08  # a stage may not raise the M-scale of the residuals by more than this
SECOND = 0.9  # of the efficiency, where a first try lets the majority down
WIDER = 1.1  # times its sigma is what the first reweighting may find at most
ROWS_PER_COEFFICIENT = 3  # below, outliers and a flexible fit cannot be told apart

LEVEL = 0.99  # convention: of the tests that the plain fit has to pass
SLACK = 1.1  # a choice: sigma itself is an estimate
EXACT = 5.0  # numerical safety: of the size of rounding, within which a residual is none (Tukey's rule reaches 4.7)
GATHERED = 0.2  # theory: of the residuals within 2.5 sigma, the share within one: 0.69 of normal, 0.4 of even ones
REST = 200  # a choice: rows besides a repeated value, from which on somebody is asked about them
EXACT_SHARE = 0.6  # a choice: of rows fitted exactly, from which the others are outliers of that fit


@dataclass(frozen=True, eq=False)
class RegressionSettings:
    """The estimator's parameters that a fit needs."""

    regularizer: Regularizer
    pace: Any
    efficiency: float
    start: str
    tol: float
    max_iter: int
    rng: np.random.RandomState


@dataclass(frozen=True, eq=False)
class Attempt:
    """One fit that was tried: coordinates, residuals, and the rule that weighed the rows (None: the plain fit)."""

    b: Floats
    residuals: Floats
    rule: ResidualRule | None = None


@dataclass(frozen=True, eq=False)
class RegressionFit:
    """A complete result: every fit tried so far, the choice among them, and what is known about the noise.

    Attributes
    ----------
    squares : Squares
        The problem.
    trials : tuple of Trial
        The plain fit first; the ``fit`` of each is an `Attempt`.
    decision : Decision
        Which one is kept, and why.
    scale : ResidualScale
        Of the residuals of that one.
    status : str
        The closing sentence of a given path; empty where the choice has its own.
    warning : str
        What the user has to be told of the convergence.
    notice : str
        What the user has to be told of the data.
    final : bool
        Whether the choice and its scale stand by themselves, and nobody else is asked about the rows.
    extra_ridge : float
        What was added to the given ridge, because the rows are too few.
    """

    squares: Squares
    trials: tuple[Trial, ...]
    decision: Decision
    scale: ResidualScale
    n_iter: int = 1
    status: str = ""
    warning: str = ""
    notice: str = ""
    final: bool = False
    extra_ridge: float = 0.0

    @property
    def plain(self) -> Attempt:
        """The plain fit."""
        found: Attempt = self.trials[0].fit
        return found

    @property
    def trial(self) -> Trial:
        """The chosen candidate."""
        return self.trials[self.decision.index]

    @property
    def best(self) -> Attempt:
        """The chosen fit."""
        found: Attempt = self.trial.fit
        return found

    @property
    def termination(self) -> str:
        """What was chosen, and why."""
        return self.status or sentence(self.trials, self.decision)

    @property
    def sigma(self) -> float:
        """Sigma of the good residuals, at least the size of rounding."""
        return max(self.scale.sigma, exact_floor(self.squares))

    def keeping_plain(self, reason: str) -> RegressionFit:
        """The same search, ended with the plain fit."""
        scale = fit_scale(self.squares, self.plain.residuals)
        return replace(self, decision=Decision(0, reason), scale=scale)

    def outliers(self) -> OutlierShare:
        """The share of rows that the noise of the chosen fit does not explain."""
        return outlier_share(self.best.residuals, self.sigma, self.squares.sample_weight)

    def path(self, trusted: NDArray[np.bool_] | None = None) -> tuple[Candidate, ...]:
        """Every fit with its score: minus the mean Tukey loss of all rows at one common sigma, unless it has one."""
        trials = [
            trial if trial.scores is not None else replace(trial, scores=-tukey_loss(trial.fit.residuals, self.sigma))
            for trial in self.trials
        ]
        found = path_of(trials, self.decision, self.squares.sample_weight)
        counts = [int(self.far_off(trial, trusted).sum()) for trial in trials]
        return tuple(replace(one, far_off=count) for one, count in zip(found, counts, strict=True))

    def far_off(self, trial: Trial | None = None, trusted: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Rows that a candidate, the chosen one by default, predicts absurdly although nothing shows they are wrong."""
        trial = self.trial if trial is None else trial
        residuals, plain = trial.fit.residuals, self.plain.residuals
        few = self.squares.size < ROWS_PER_COEFFICIENT * self.squares.n_columns  # the plain fit has hardly a residual
        if trial.weight is None or few:
            return np.zeros(len(residuals), dtype=bool)
        return absurd_rows(self.squares, residuals, plain, trial.weight, self.sigma, trusted)


def plain_fit(squares: Squares) -> RegressionFit:
    """The plain fit, to be kept until something better is found."""
    began = time.perf_counter()
    b = squares.solve()
    attempt = Attempt(b, squares.residuals(b))
    trial = Trial(math.inf, "plain", cost=time.perf_counter() - began, fit=attempt)
    return RegressionFit(
        squares, (trial,), Decision(0, "nothing else was tried"), fit_scale(squares, attempt.residuals)
    )


def paced_trial(fit: Reweighted, lam: float, label: str, rule: ResidualRule, weight: Floats, began: float) -> Trial:
    """A fit at a pace as a candidate."""
    return Trial(lam, label, None, weight, time.perf_counter() - began, Attempt(fit.b, fit.residuals, rule))


def unsettled(lam: float, max_iter: int) -> str:
    """What a user is told of a fit that did not settle."""
    return (
        f"the fit at lam = {lam:.4g} did not settle in {max_iter} weighted fits and the last one is kept; raise "
        "max_iter or tol"
    )


# ------------------------------------------------------------------------------------------------- automatic


def automatic(plain: RegressionFit, settings: RegressionSettings) -> Iterator[RegressionFit]:
    """Robust start, upward pace, efficient stop, guard, and the plain fit if nothing is against it."""
    squares, floor = plain.squares, exact_floor(plain.squares)
    if not np.any(np.abs(plain.plain.residuals) > floor):
        yield replace(plain, decision=Decision(0, "it fits every row exactly"), scale=ResidualScale(floor, floor))
        return
    began = time.perf_counter()
    b, majority = robust_start(squares, settings.rng)
    residuals = squares.residuals(b)
    scale = largest_sigma(residuals, squares.sample_weight, dof=squares.dof)
    scale = ResidualScale(min(scale.sigma, majority), scale.majority)
    hard = ResidualRule(get("hard"))
    lam = efficient_lam(hard.regularizer, max(scale.sigma, floor))
    trial = paced_trial(Reweighted(b, residuals), lam, "hard, upward", hard, hard.weights(residuals, lam), began)
    upward = replace(
        plain,
        trials=(*plain.trials, trial),
        decision=Decision(1, f"the sigma of its good residuals is {scale.sigma:.4g}"),
        scale=scale,
    )
    if scale.sigma > floor and not _gathered(upward):
        yield _without_majority(upward)
        return
    yield upward
    fit = _efficient(upward, settings, majority, floor)
    yield fit
    yield _exact(fit, floor) if fit.scale.sigma <= floor else _prefer_plain(fit, settings.efficiency)


def _efficient(upward: RegressionFit, settings: RegressionSettings, majority: float, floor: float) -> RegressionFit:
    """The rule at the pace where it wastes little on clean data, unless it lets the majority down."""
    squares, rule_name, before = upward.squares, settings.regularizer.name or "custom", upward.scale
    options, fit = {"tol": settings.tol}, upward
    for target in (settings.efficiency, SECOND * settings.efficiency):
        began = time.perf_counter()
        rule, lam = efficient_rule(settings.regularizer, max(before.sigma, floor), target)
        rough = settle(squares, rule, lam, upward.best.b, max_iter=2, **options).model
        residuals = rough.residuals if rough.residuals.size else upward.best.residuals
        sigma = max(min(fit_scale(squares, residuals).sigma, WIDER * before.sigma, majority), floor)
        rule, lam = efficient_rule(settings.regularizer, sigma, target)
        solution = settle(squares, rule, lam, rough.b, max_iter=settings.max_iter, **options)
        if not solution.stages:  # no row has weight at this pace
            continue
        found = solution.model
        label = f"{rule_name}, {target:.0%} efficient"
        trial = paced_trial(found, lam, label, rule, solution.weights, began)
        fit = replace(
            fit,
            trials=(*fit.trials, trial),
            n_iter=solution.stages[-1].inner,
            warning="" if found.converged else unsettled(lam, settings.max_iter),
        )
        after = fit_scale(squares, found.residuals)
        if after.majority <= max(GUARD * before.majority, floor):
            scale = ResidualScale(max(after.sigma, floor), after.majority)
            reason = f"the sigma of its good residuals is {scale.sigma:.4g}"
            return replace(fit, decision=Decision(len(fit.trials) - 1, reason), scale=scale)
    reason = (
        f"{rule_name} at an efficient pace would raise the scale of the majority by more than {GUARD - 1:.0%} of "
        f"sigma = {before.sigma:.4g}"
    )
    return replace(fit, decision=Decision(1, reason))


def _prefer_plain(fit: RegressionFit, efficiency: float) -> RegressionFit:
    """Keep the plain fit where it differs from the paced one by no more than clean data explain.

    Least squares is the efficient fit at the normal, so the squared distance of the two, in units of the paced
    fit's extra variance, is chi-squared (Hausman 1978); and no residual may be an outlier by itself.
    """
    squares, sigma = fit.squares, fit.scale.sigma
    step = squares.matrix @ (fit.plain.b - fit.best.b)
    weight = squares.sample_weight
    extra = sigma**2 * (1 / efficiency - 1)
    distance = float(np.sum(np.square(step) if weight is None else weight * np.square(step))) / extra
    if weight is not None:
        distance *= squares.size / float(weight.sum())
    residuals = fit.best.residuals
    share = outlier_share(residuals, sigma, weight)
    largest = float(np.max(np.abs(residuals))) / sigma
    limit = -SLACK * float(ndtri((1 - LEVEL) / 2 / squares.size))
    if distance <= chi2.ppf(LEVEL, squares.dof) and share.low == 0 and largest <= limit:
        return replace(fit, decision=Decision(0, f"it agrees with {fit.trial.label} and no residual is an outlier"))
    return fit


# ------------------------------------------------------------------------------------------------ the plain fit


def _gathered(fit: RegressionFit) -> bool:
    """Whether the good residuals lie around zero, as those of a fit do."""
    size, weight = np.abs(fit.best.residuals), fit.squares.sample_weight
    near, good = (float(np.average(size <= cut * fit.scale.sigma, weights=weight)) for cut in (1.0, CUTOFF))
    return near >= GATHERED * good


def _without_majority(fit: RegressionFit) -> RegressionFit:
    """The plain fit: no part of the rows is fitted better than the rest."""
    reason = f"the residuals of {fit.trial.label} do not lie around zero, so there is no majority to follow"
    if not fit.squares.fit_intercept:
        reason += " (an intercept may be missing)"
    return _spread_of_all(fit, reason)


def _spread_of_all(fit: RegressionFit, reason: str) -> RegressionFit:
    """The plain fit, with its own root mean square as scale."""
    squares, residuals = fit.squares, fit.plain.residuals
    square = float(np.average(np.square(residuals), weights=squares.sample_weight))
    sigma = math.sqrt(square * squares.size / max(squares.size - squares.dof, 1.0))
    return replace(fit, decision=Decision(0, reason), scale=ResidualScale(sigma, sigma), final=True)


def _exact(fit: RegressionFit, floor: float) -> RegressionFit:
    """What can be said where the scale of the residuals is that of rounding.

    An exact fit of most rows is no coincidence, unless it only repeats a value that the target itself repeats (zeros,
    often): then the rest are the message, and not outliers of that value. A bare half is no majority.
    """
    squares, weight = fit.squares, fit.squares.sample_weight
    exact = np.abs(fit.best.residuals) <= EXACT * floor
    share = float(np.average(exact, weights=weight))
    usual = float(np.median(squares.target[exact])) if exact.any() else math.nan
    repeats = np.abs(squares.target - usual) <= EXACT * floor
    if np.sum(repeats & exact) > np.sum(exact) / 2:
        said = (
            f"{float(np.average(repeats, weights=weight)):.0%} of the rows have the value {usual + squares.offset:.4g}"
        )
        kept = _spread_of_all(fit, f"{said}, and a fit of these says nothing of the rest")
        return replace(kept, final=bool(np.sum(~repeats) < REST))
    if share < EXACT_SHARE:
        return _spread_of_all(
            fit, f"{fit.trial.label} fits {share:.0%} of the rows and only these, which is no majority"
        )
    reason = f"{share:.0%} of the rows are fitted exactly"
    return replace(fit, decision=replace(fit.decision, reason=reason), scale=ResidualScale(floor, fit.scale.majority))
