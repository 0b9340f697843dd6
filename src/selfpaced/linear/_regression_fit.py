"""The automatic linear fit: search, assessment of the values, and an efficient fit of the rows that are right."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

from ..fitting import trusting
from ..regularizers import Regularizer, get
from ..robust import (
    ResidualRule,
    efficient_lam,
    efficient_rule,
    largest_sigma,
    outlier_share,
    residual_scale,
    tukey_loss,
)
from ..robust.scales import CUTOFF
from ..selection import Candidate, Decision, Trial, path_of, sentence
from ..value_noise import ValueAssessment, assess_values, by_model, nearest, repeated_value
from ._folds import ROWS_PER_FEATURE
from ._initial import robust_start
from ._least_squares import DENSE_GRAM, Squares, exact_floor, rounding_sigma
from ._leverage import Rejection, absurd_rows

__all__ = [
    "Attempt",
    "RegressionFit",
    "RegressionSettings",
    "automatic",
    "by_residuals",
    "checked",
    "deciding_rows",
    "plain_fit",
    "trusting_regression",
]

Floats = NDArray[np.floating[Any]]
DECIDING = 50_000  # cost: rows above which a sample decides; their sigma is then within a third of a percent
ROWS_PER_COEFFICIENT = 3  # a choice: below, outliers and a flexible fit cannot be told apart
TEST_LEVEL = 0.99  # convention: of the test for the largest residual of a plain fit, whose sigma may be 10 % too small
ROUNDING_REACH = (
    5.0  # numerical safety: of the size of rounding, within which a residual is none (Tukey's rule reaches 4.7)
)
EXACT_SHARE = 0.6  # a choice: of rows fitted exactly, from which the others are outliers of that fit
ROUGH = 2  # cost: weighted fits after which sigma is estimated again
WITHOUT = "least squares without gross rows"  # label of the candidate of least squares without them
LOOSE = 1e-3  # a choice: of the residuals' spread, by which a fit at the limit of iterations may still move


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
    """A complete result: every fit tried so far, the choice among them, and what is known about the noise."""

    squares: Squares
    trials: tuple[Trial, ...]  # the plain fit first; the ``fit`` of each is an `Attempt`
    decision: Decision
    scale: float  # sigma of the good residuals of the chosen one
    n_iter: int = 1
    status: str = ""  # the closing sentence of a given path; empty if the choice has its own
    warning: str = ""  # about the convergence
    notice: str = ""  # about the data
    final: bool = False  # whether the choice and its scale stand by themselves, without a check of the values
    extra_ridge: float = 0.0  # added to the given ridge because the rows are too few

    @property
    def plain(self) -> Attempt:
        """The plain fit."""
        return cast(Attempt, self.trials[0].fit)

    @property
    def trial(self) -> Trial:
        """The chosen candidate."""
        return self.trials[self.decision.index]

    @property
    def best(self) -> Attempt:
        """The chosen fit."""
        return cast(Attempt, self.trial.fit)

    @property
    def termination(self) -> str:
        """What was chosen, and why."""
        return self.status or sentence(self.trials, self.decision)

    @property
    def sigma(self) -> float:
        """Sigma of the good residuals, at least the size of rounding."""
        return max(self.scale, exact_floor(self.squares))

    def keeping_plain(self, reason: str) -> RegressionFit:
        """The same search, ended with the plain fit."""
        scale = fit_scale(self.squares, self.plain.residuals)
        return replace(self, decision=Decision(0, reason), scale=scale)

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


def deciding_rows(n_features: int) -> int:
    """Return how many rows decide at most; of more, a sample does."""
    return max(DECIDING, ROWS_PER_FEATURE * n_features)


def plain_fit(squares: Squares) -> RegressionFit:
    """The plain fit, to be kept until something better is found."""
    began = time.perf_counter()
    b = squares.solve()
    attempt = Attempt(b, squares.residuals(b))
    trial = Trial(math.inf, "plain", cost=time.perf_counter() - began, fit=attempt)
    return RegressionFit(
        squares, (trial,), Decision(0, "nothing else was tried"), fit_scale(squares, attempt.residuals)
    )


def paced_trial(fit: Reweighted, lam: float, label: str, rule: ResidualRule, began: float) -> Trial:
    """A fit at a pace as a candidate."""
    return Trial(lam, label, None, fit.weights, time.perf_counter() - began, Attempt(fit.b, fit.residuals, rule))


def unsettled(lam: float, max_iter: int) -> str:
    """What a user is told of a fit that did not settle."""
    return (
        f"the fit at lam = {lam:.4g} did not settle in {max_iter} weighted fits and the last one is kept; raise "
        "max_iter or tol"
    )


# ------------------------------------------------------------------------- reweighted least squares at one pace


@dataclass(frozen=True, eq=False)
class Reweighted:
    """A fit at one pace: coordinates, residuals, weights of the rows, and whether the weighted fits settled."""

    b: Floats
    residuals: Floats
    weights: Floats
    n_iter: int = 1
    converged: bool = True


def settle(
    squares: Squares, rule: ResidualRule, lam: float, b: Floats, *, tol: float, max_iter: int
) -> Reweighted | None:
    """Weigh and fit from b until the coordinates settle; None if no row has weight at this pace.

    This is half-quadratic minimisation of the latent loss. The normal matrix is factorised again only while the weights
    still move; with a stale factor each step is still exact in its fixed point, because the step is driven by the
    current gradient.
    """
    found = _settled(squares, rule, lam, b, tol, max_iter)
    if found is None:
        return None
    b, n_iter, converged = found
    residuals = squares.residuals(b)
    return Reweighted(b, residuals, rule.weights(residuals, lam), n_iter, converged)


def _settled(
    squares: Squares, rule: ResidualRule, lam: float, b: Floats, tol: float, max_iter: int
) -> tuple[Floats, int, bool] | None:
    floor, factor, before, spread, stale = exact_floor(squares), None, math.inf, 0.0, True
    last: tuple[Floats, Floats] | None = None
    matrix_free = sparse.issparse(squares.matrix) and squares.n_columns > DENSE_GRAM
    for iteration in range(1, max_iter + 1):
        residuals = squares.residuals(b)
        weights = rule.weights(residuals, lam)
        total: Floats = weights if squares.sample_weight is None else weights * squares.sample_weight
        mass = float(total.sum())
        if not mass > 0:
            return None
        spread = math.sqrt(float(total @ np.square(residuals)) / mass)
        if spread <= floor and squares.penalty(b) == 0.0:
            return b, iteration, True  # rounding is left, and would move what the rows leave open
        step: Floats
        if matrix_free:
            step = squares.solve(weights, b) - b
        else:
            if factor is None or stale:
                factor = squares.factor(total)
            step = squares.correct(factor, total, b, residuals)
        moved = float(np.max(np.abs(step), initial=0.0))
        # The coordinates are scaled: a step of one is about one unit of the target.
        if moved <= tol * spread + 1e-2 * floor:
            return b + step, iteration, True
        stale = moved > 0.2 * before or iteration == 1
        b, last = _mixed(b, step, last if moved < 2 * before else None), (b, step)
        before = moved
    return b, max_iter, bool(before <= LOOSE * spread)


def _mixed(b: Floats, step: Floats, last: tuple[Floats, Floats] | None) -> Floats:
    """The next point: the step itself, or Anderson's mixture with the one before, which converges much faster."""
    if last is None:
        return b + step
    turn = step - last[1]
    size = float(turn @ turn)
    share = float(step @ turn) / size if size > 0 else 0.0
    if not -5 < share < 5:
        return b + step
    return b + step - share * (b - last[0] + turn)


def fit_scale(squares: Squares, residuals: Floats) -> float:
    """Return sigma of the good residuals of a fit."""
    return max(rounding_sigma(squares), residual_scale(residuals, squares.sample_weight, dof=squares.dof))


# ------------------------------------------------------------------------------------------------- automatic


def automatic(plain: RegressionFit, settings: RegressionSettings) -> Iterator[RegressionFit]:
    """Robust start and upward pace: the fit whose residuals tell which rows disagree with the majority."""
    squares, floor = plain.squares, exact_floor(plain.squares)
    if not np.any(np.abs(plain.plain.residuals) > floor):
        reason = "it fits every row exactly"
        yield replace(plain, decision=Decision(0, reason), scale=floor, final=True)
        return
    began = time.perf_counter()
    b = robust_start(squares, settings.rng)
    residuals = squares.residuals(b)
    scale = largest_sigma(residuals, squares.sample_weight, dof=squares.dof)
    hard = ResidualRule(get("hard"))
    lam = efficient_lam(hard.regularizer, max(scale, floor))
    trial = paced_trial(Reweighted(b, residuals, hard.weights(residuals, lam)), lam, "hard, upward", hard, began)
    reason = f"without outliers, its residual scale is {scale:.4g}"
    upward = replace(plain, trials=(*plain.trials, trial), decision=Decision(1, reason), scale=scale)
    if scale <= floor:
        yield _exact(upward, floor)
    else:
        yield _followed(upward)


def efficient(fit: RegressionFit, settings: RegressionSettings, kept: NDArray[np.bool_]) -> RegressionFit:
    """The rule at the pace where it wastes little on clean data, for the rows that are kept.

    It is the plain fit if no residual is an outlier, for which least squares is efficient.
    """
    began, squares, floor = time.perf_counter(), fit.squares, exact_floor(fit.squares)
    part, paced, scale = (
        squares.rows(np.flatnonzero(kept)),
        Reweighted(fit.best.b, fit.best.residuals, kept.astype(float)),
        fit.scale,
    )
    for max_iter in (ROUGH, settings.max_iter):
        rule, lam = efficient_rule(settings.regularizer, max(scale, floor), settings.efficiency)
        found = settle(part, rule, lam, paced.b, tol=settings.tol, max_iter=max_iter)
        if found is None:
            return fit
        residuals = squares.residuals(found.b)
        weights, scale = np.where(kept, rule.weights(residuals, lam), 0.0), fit_scale(part, residuals[kept])
        paced = Reweighted(found.b, residuals, weights, found.n_iter, found.converged)
    label = f"{settings.regularizer.name or 'custom'}, {100 * settings.efficiency:.0f} % efficient"
    reason = f"no row is left out, far ones count less, and the residual scale of the others is {scale:.4g}"
    if not kept.all():
        share = float(np.average(~kept, weights=squares.sample_weight))
        reason = (
            f"{100 * share:.1f} % of the rows are left out (gross errors, unusual features, or far from the rest), and "
            f"the residual scale of the others is {scale:.4g}"
        )
    tried = replace(
        fit,
        trials=(*fit.trials, paced_trial(paced, lam, label, rule, began)),
        decision=Decision(len(fit.trials), reason),
        scale=scale,
        n_iter=paced.n_iter,
        warning="" if paced.converged else unsettled(lam, settings.max_iter),
    )
    clean = kept.all() and outlier_share(residuals, scale, squares.sample_weight).low == 0
    largest = -1.1 * ndtri((1 - TEST_LEVEL) / 2 / squares.size) * scale
    if clean and np.all(np.abs(residuals) <= largest):
        return tried.keeping_plain("no value is an outlier")
    return tried


def checked(
    fit: RegressionFit, X: Any, settings: RegressionSettings, *, groups: Any = None, random_state: Any = 0
) -> tuple[RegressionFit, ValueAssessment, Rejection | None]:
    """Assess the values, and fit the rows that are neither grossly wrong nor rejected; which rows are rejected.

    ``X`` are the features of the rows as given; nothing is chosen if the pace was given. Rows of a group are predicted
    by models of other groups.
    """
    squares = fit.squares
    y = squares.target + squares.at.offset
    if fit.scale <= exact_floor(squares) and repeated_value(y, squares.sample_weight) is None:
        return fit, by_residuals(fit), None
    assessment = assess_values(
        y,
        y - fit.best.residuals,
        fit.sigma,
        X=X,
        sample_weight=squares.sample_weight,
        groups=groups,
        linear=True,
        random_state=random_state,
    )
    if settings.pace != "auto" or (fit.trial.plain and (assessment.minority or not assessment.found)):
        return fit, assessment, None
    rejection = Rejection.of(squares, fit.best.residuals)
    kept = assessment.trusted & ~rejection.rows(squares.features, y, fit.best.residuals)
    if not np.average(kept, weights=squares.sample_weight) * squares.size > squares.dof:
        kept[:] = True
    found = efficient(fit, settings, kept)
    chosen = found if found.trial.plain else _nearest(found, assessment, kept)
    if chosen.trial.plain:
        return chosen, assessment, rejection
    heaps = rejection.heaps(squares.features, fit.best.residuals) & ~kept & assessment.trusted
    share = float(np.average(heaps, weights=squares.sample_weight))
    return chosen, assessment.with_left_out(share, squares.size), rejection


def _nearest(fit: RegressionFit, assessment: ValueAssessment, kept: NDArray[np.bool_]) -> RegressionFit:
    """Return the fit, least squares for the same rows, or the plain fit.

    The plain one is left if one of the others is nearer to the rows that are kept, or if rows are left out.
    """
    rivals = [fit] if kept.all() else [fit, _least_squares(fit, kept)]
    # other rows would decide for the plain fit, which follows them
    compared = replace(assessment, wrong=np.where(kept, assessment.wrong, 1.0))
    residuals = [fit.squares.left_out(one.best.residuals, one.trial.weight) for one in rivals]
    number = nearest(residuals, fit.squares.left_out(fit.plain.residuals), compared, fit.squares.sample_weight)
    if number is not None:
        return rivals[number]
    if not kept.all():
        return fit
    said = assessment.sentence
    reason = f"{fit.trial.label} is not better on the rows that are not grossly wrong" + (f"; {said}" if said else "")
    return fit.keeping_plain(reason)


def _least_squares(fit: RegressionFit, kept: NDArray[np.bool_]) -> RegressionFit:
    """Return least squares for the rows that are kept."""
    began, weights = time.perf_counter(), kept.astype(float)
    b = fit.squares.solve(weights, fit.best.b)  # what the other rows leave open stays
    residuals = fit.squares.residuals(b)
    rule, lam = ResidualRule(get("hard")), float(np.square(np.abs(residuals[kept]).max()) * (1 + 1e-9))
    trial = Trial(lam, WITHOUT, None, weights, time.perf_counter() - began, Attempt(b, residuals, rule))
    scale = fit_scale(fit.squares, residuals)
    decision = Decision(len(fit.trials), fit.decision.reason)
    return replace(fit, trials=(*fit.trials, trial), decision=decision, scale=scale, n_iter=1, warning="")


def by_residuals(fit: RegressionFit) -> ValueAssessment:
    """Return the assessment by the residuals of the fit alone."""
    y = fit.squares.target
    return by_model(y, y - fit.best.residuals, fit.sigma, fit.squares.sample_weight)


def trusting_regression(fit: RegressionFit, trusted: NDArray[np.bool_]) -> RegressionFit:
    """Return the chosen fit again, with full weight for the rows that a person has confirmed."""
    if fit.trial.plain:
        return fit
    weights: Any = trusting(fit.trial.weight, trusted)
    b = fit.squares.solve(weights)
    trials = list(fit.trials)
    attempt = replace(fit.best, b=b, residuals=fit.squares.residuals(b))
    trials[fit.decision.index] = replace(fit.trial, weight=weights, fit=attempt)
    return replace(fit, trials=tuple(trials))


# ------------------------------------------------------------------------------------------------ the plain fit


def _gathered(fit: RegressionFit) -> bool:
    """Whether the good residuals lie around zero: of those within 2.5 sigma, 69 % of normal ones are within one."""
    size, weight = np.abs(fit.best.residuals), fit.squares.sample_weight
    near, good = (float(np.average(size <= cut * fit.scale, weights=weight)) for cut in (1.0, CUTOFF))
    return near >= 0.2 * good


def _followed(fit: RegressionFit) -> RegressionFit:
    """The fit, whose sigma is at least that of rounding; the plain one if it fits no part of the rows."""
    fit = replace(fit, scale=max(rounding_sigma(fit.squares), fit.scale))
    if _gathered(fit):
        return fit
    reason = f"the residuals of {fit.trial.label} do not lie around zero, so there is no majority to follow"
    if not fit.squares.at.fit_intercept:
        reason += " (an intercept may be missing)"
    return _spread_of_all(fit, reason)


def _spread_of_all(fit: RegressionFit, reason: str) -> RegressionFit:
    """The plain fit, with its own root mean square as scale."""
    squares, residuals = fit.squares, fit.plain.residuals
    square = float(np.average(np.square(residuals), weights=squares.sample_weight))
    sigma = math.sqrt(square * squares.size / max(squares.size - squares.dof, 1.0))
    return replace(fit, decision=Decision(0, reason), scale=sigma, final=True)


def _exact(fit: RegressionFit, floor: float) -> RegressionFit:
    """What can be said if the scale of the residuals is that of rounding.

    An exact fit of most rows is no coincidence, unless these rows have no more different values than there are
    coefficients (zeros, often): then it says nothing of the rest. A bare half is no majority.
    """
    squares, weight = fit.squares, fit.squares.sample_weight
    exact = np.abs(fit.best.residuals) <= ROUNDING_REACH * floor
    share = float(np.average(exact, weights=weight))
    values = np.unique(np.round(squares.target[exact] / (2 * ROUNDING_REACH * floor)))
    if len(values) <= squares.dof:
        usual = float(np.median(squares.target[exact])) + squares.at.offset
        shown = f"one of {len(values)} values" if len(values) > 1 else f"the value {usual:.4g}"
        reason = f"{100 * share:.0f} % of the rows have {shown}, and a fit of these says nothing about the rest"
        alone = len(values) == 1 and repeated_value(squares.target, weight) is None  # hardly any other row
        return replace(_spread_of_all(fit, reason), final=alone)
    if share < EXACT_SHARE:
        reason = f"{fit.trial.label} fits {100 * share:.0f} % of the rows and only these, which is no majority"
        return _followed(fit) if rounding_sigma(squares) > floor else _spread_of_all(fit, reason)
    reason = f"{100 * share:.0f} % of the rows are fitted exactly"
    return replace(fit, decision=replace(fit.decision, reason=reason), scale=floor)
