"""Any regressor, wrapped so that outliers do not spoil it."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d, indexable
from sklearn.utils.validation import check_is_fitted

from ..pacing import Fixed, Geometric, Pacing, Stages
from ..path import Candidate
from ..regularizers import Regularizer, get, relative
from ..residuals import EfficientStop, ResidualRule, efficient_pace, efficient_rule, outlier_share
from ..residuals.rules import TUKEY
from ..solver import alternate
from .common import (
    MetaMixin,
    Progress,
    check_weight,
    decide_cross_fit,
    make_folds,
    n_rows,
    route_fit_params,
    seeded,
    weight_route,
    with_callbacks,
)
from .residuals import RegressorProblem, Tried, View, better, easy_rows, record, sigma_of

__all__ = ["SelfPacedRegressor"]

MIN_ROWS = 20  # below, a fold is too small to judge by
ROUNDS = 3  # rounds of cross-fitting after the plain one
LEAST_GAIN = 0.01  # leaving out rows of large residuals alone lowers the loss of clean rows by a little less than this
IN_SAMPLE = 12  # rounds of a model of little capacity, which settle and are cheap


class SelfPacedRegressor(MetaMixin, RegressorMixin, BaseEstimator):
    r"""Wrap any regressor so that outliers in the target lose their weight.

    A plain model is fitted first; its residuals on rows it has not seen, centred by the shortest half, select the
    easy rows. The model is fitted again on those, and then with the weights
    :math:`v_i = \phi'(\lambda, r_i^2) / \phi'(\lambda, 0)` of a self-paced regularizer, whose pace follows from a
    robust scale of the residuals: no share of outliers is asked for. The plain model is kept unless the paced one is
    clearly better on unseen rows, by a loss that counts far residuals alike.

    Parameters
    ----------
    estimator : regressor
        Anything with scikit-learn's ``fit`` and ``predict``, Pipelines included. Weights are passed to
        ``sample_weight``, inside a Pipeline to that of its last step; where there is none, rows are selected
        (and ``termination_`` says so).
    regularizer : str or Regularizer, default="hard"
        Any elementwise rule of :mod:`selfpaced.regularizers`; the loss is the squared residual. Hard selection
        spares models that are much slower with weights than without.
    pace : "auto", "paper", float or Pacing, default="auto"
        "paper": half the rows first, lam times 1.05 per round, until the rule is efficient for the residuals; a round
        is a cross-fit, so this is slow for large models. A number is a fixed lam; a
        :class:`~selfpaced.pacing.Pacing` is followed to its end.
    cross_fit : "auto" or bool, default="auto"
        Whether residuals come from models that have not seen the row. "auto" cross-fits where the plain model is
        clearly better on rows it has seen, because such a model memorises outliers, and takes in-sample residuals else.
    cv : int, splitter or iterable, default=5
        Folds of a cross-fit.
    efficiency : float, default=0.95
        Precision on clean normal errors, relative to no weights at all, at which the pace stops.
    random_state : int, RandomState or None, default=None
        Deals out the folds, and seeds the wrapped models where they have no seed of their own. None deals folds in
        the same way every time and leaves the models alone.
    n_jobs : int or None, default=None
        Folds fitted at the same time.
    verbose : int, default=0
        Log a line per round.

    Attributes
    ----------
    estimator_, plain_ : regressor
        The chosen model, and the plain one; the same object where the plain model was chosen.
    sample_weight_ : ndarray of shape (n_samples,)
        Weight of each row in [0, 1]; all 1 where the plain model was chosen.
    sample_residual_, sample_loss_ : ndarray of shape (n_samples,)
        Residuals by which the rows were judged (cross-fitted or in-sample), and their squares.
    training_values_ : ndarray of shape (n_samples,)
        The given targets: by them :func:`selfpaced.suspects` knows the training rows.
    lam_ : float
        The pace; ``inf`` where the plain model was chosen.
    regularizer_, loss_unit_ : Regularizer, float
        The rule that made ``sample_weight_`` from ``sample_loss_ / loss_unit_``.
    scale_ : float
        Sigma of the good residuals.
    noise_rate_, noise_rate_interval_ : float, tuple of float
        Estimated share of outliers, with an interval of about 95 %.
    path_ : tuple of Candidate
        Every round; the score is minus the mean Tukey loss at ``scale_``.
    termination_ : str
        What was chosen, and why.
    n_features_in_, feature_names_in_
        Of the wrapped model.

    References
    ----------
    Fan, He, Liang, Hu. Self-paced learning: an implicit regularization perspective. AAAI 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from selfpaced import SelfPacedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(400, 1))
    >>> truth = np.sin(X[:, 0])
    >>> y = truth + 0.1 * rng.normal(size=400)
    >>> y[:80] += 5  # every fifth row is wrong
    >>> model = SelfPacedRegressor(DecisionTreeRegressor(min_samples_leaf=5, random_state=0)).fit(X, y)
    >>> error = [float(np.abs(one.predict(X) - truth).mean()) for one in (model, model.plain_)]
    >>> error[0] < 0.1 < 0.9 < error[1], round(model.noise_rate_, 1)
    (True, 0.2)
    """

    def __init__(
        self,
        estimator: Any,
        regularizer: str | Regularizer = "hard",
        *,
        pace: Any = "auto",
        cross_fit: bool | str = "auto",
        cv: Any = 5,
        efficiency: float = 0.95,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.regularizer = regularizer
        self.pace = pace
        self.cross_fit = cross_fit
        self.cv = cv
        self.efficiency = efficiency
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any
    ) -> SelfPacedRegressor:
        """Fit to targets some of which may be outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Given to the wrapped model as it is.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies the self-paced weights.
        groups : array-like of shape (n_samples,), optional
            Rows of one group are never split between fitting and judging.
        **fit_params
            Passed on to the wrapped model's ``fit``; entries with one value per row are cut along.

        Returns
        -------
        self
        """
        rule = self._checked_rule()
        X, y, groups = indexable(X, y, groups)
        y = _checked_target(y)
        route = weight_route(self.estimator)
        prior = check_weight(sample_weight, n_rows(X), route)
        template = seeded(self.estimator, self.random_state)
        with Progress(self, X, y).running() as progress:
            problem = RegressorProblem(
                estimator=template, X=X, y=y, route=route, folds=[], prior=prior,
                fit_params=route_fit_params(self, fit_params), n_jobs=self.n_jobs, progress=progress,
            )  # fmt: skip
            with progress.stage("plain fit"):
                plain = problem.seen(prior)
            self.plain_ = plain.model
            rounds = Rounds(problem, plain)
            if n_rows(X) >= MIN_ROWS:
                rng = check_random_state(0 if self.random_state is None else self.random_state)
                problem.folds = make_folds(X, None, cv=self.cv, groups=groups, random_state=rng, y=y)
                self._run(rounds, rule)
            else:
                rounds.reason = f"the plain model was kept: {n_rows(X)} rows are too few to judge outliers by"
        self._store(rounds, rule)
        return self

    def _checked_rule(self) -> Regularizer:
        rule = get(self.regularizer)
        if not isinstance(rule, Regularizer):
            raise ValueError(f"regularizer must be an elementwise rule; {rule.name!r} needs groups of samples")
        pace = self.pace
        number = isinstance(pace, Real) and not isinstance(pace, bool) and pace > 0
        if not (number or isinstance(pace, Pacing) or (isinstance(pace, str) and pace in ("auto", "paper"))):
            raise ValueError(f"pace must be 'auto', 'paper', a positive number or a Pacing; got {pace!r}.")
        if self.cross_fit not in (True, False, "auto"):
            raise ValueError(f"cross_fit must be True, False or 'auto'; got {self.cross_fit!r}.")
        if not (isinstance(self.efficiency, Real) and 0.3 <= self.efficiency < 1):
            raise ValueError(f"efficiency must be in [0.3, 1); got {self.efficiency!r}.")
        return relative(rule)

    def _run(self, rounds: Rounds, rule: Regularizer) -> None:
        problem = rounds.problem
        try:
            if self.cross_fit is not False:
                with problem.progress.stage("plain cross-fit"):
                    rounds.unseen = problem.unseen(problem.prior)
            problem.cross, how = rounds.decide(self.cross_fit)
            if not problem.route.takes_weights:
                how += f"; rows are selected instead of weighted, because {problem.route.reason}"
            if isinstance(self.pace, str) and self.pace == "auto":
                rounds.automatic(rule, float(self.efficiency))
                rounds.choose()
            else:
                rounds.paced(rule, self.pace, float(self.efficiency))
            rounds.reason += f"; {how}"
            rounds.finish()
        except KeyboardInterrupt:
            rounds.interrupted()

    def _store(self, rounds: Rounds, rule: Regularizer) -> None:
        problem, chosen = rounds.problem, rounds.chosen
        plain = chosen is None
        self.estimator_ = self.plain_ if plain else rounds.model
        view = rounds.base if plain else chosen.view
        self.sample_residual_ = view.residuals
        self.sample_loss_ = np.square(view.residuals)
        self.training_values_ = problem.y
        self.sample_weight_ = np.ones(problem.y.size) if plain else chosen.weights
        self.lam_ = math.inf if plain else float(chosen.lam)
        self.regularizer_, self.loss_unit_ = (rule, 1.0) if plain else (chosen.rule.regularizer, chosen.rule.unit)
        self.scale_ = sigma_of(problem, view.residuals)
        share = outlier_share(view.residuals, self.scale_, problem.prior)
        self.noise_rate_, self.noise_rate_interval_ = share.estimate, (share.low, share.high)
        self.path_ = rounds.path(self.scale_)
        self.termination_ = rounds.reason[:1].upper() + rounds.reason[1:] + "."
        if rounds.broken:
            warnings.warn(self.termination_, ConvergenceWarning, stacklevel=3)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target by the chosen model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X)


@dataclass(eq=False)
class Rounds:
    """The state of a fit: everything tried so far, so that an interrupted one is still usable."""

    problem: RegressorProblem
    seen: View
    unseen: View | None = None
    tried: list[Tried] = field(default_factory=list)
    chosen: Tried | None = None
    model: Any = None
    reason: str = "the plain model was kept"
    broken: bool = False

    @property
    def base(self) -> View:
        """The plain model's residuals, of the kind that rows are judged by."""
        return self.unseen if self.problem.cross and self.unseen is not None else self.seen

    def decide(self, setting: bool | str) -> tuple[bool, str]:
        """Cross-fitted or in-sample residuals."""
        if self.unseen is None:
            return decide_cross_fit(False, np.empty(0), np.empty(0), unit="")
        unit = sigma_of(self.problem, self.unseen.residuals)
        seen, unseen = (np.minimum(np.abs(view.residuals) / unit, 5.0) for view in (self.seen, self.unseen))
        return decide_cross_fit(setting, seen, unseen, unit="absolute residual (in sigma)", least=0.05)

    def automatic(self, rule: Regularizer, efficiency: float) -> None:
        """Easy rows, then rounds of weights at the pace that is efficient for the current residuals."""
        problem = self.problem
        weights, cut = easy_rows(problem, self.base.residuals)
        label, used, lam = "easy rows", ResidualRule(get("hard")), cut**2
        for index in range(ROUNDS if problem.cross else IN_SAMPLE):
            view = problem.fit(problem.total(weights))
            self.tried.append(Tried(weights, view, used, lam, label, view.cost))
            used, lam = efficient_rule(rule, sigma_of(problem, view.residuals), efficiency)
            before, weights = weights, used.weights(view.residuals, lam)
            label = f"{rule.name or 'custom'} round {index + 1}"
            if np.abs(weights - before).max() < 1e-3:
                break
        # The last weights are those of the last residuals: as good as a round more, and one cross-fit cheaper.
        self.tried.append(Tried(weights, self.tried[-1].view, used, lam, label))

    def paced(self, rule: Regularizer, pace: Any, efficiency: float) -> None:
        """Alternate along a given pace; the last round is kept, the plain model only by the paper's pace."""
        problem = self.problem
        sigma = sigma_of(problem, self.base.residuals)
        problem.unit = 1.0 if rule.power is not None else efficient_pace(rule, sigma, efficiency)[1]
        inner, pacing = 1, pace
        if isinstance(pace, Real):
            pacing, inner = Fixed(float(pace)), 5
            problem.unit = 1.0
        elif isinstance(pace, str):
            stop = EfficientStop(efficiency, problem.unit, 1.0, problem.prior, problem.floor)
            pacing = Geometric(floor=problem.floor**2 / problem.unit or 1e-300, stop=(stop, Stages(100)))
        used = ResidualRule(rule, problem.unit)
        name = rule.name or "custom"

        def keep(stage: Any, state: Any) -> None:
            label = f"{name} stage {len(self.tried) + 1}"
            self.tried.append(Tried(np.asarray(state.weights), state.model, used, stage.lam, label, state.model.cost))

        solution = alternate(
            problem, rule, pacing, inner=inner, tolerance=1e-4, sample_weight=problem.prior, initial=self.base,
            callback=keep,
        )  # fmt: skip
        self.reason = solution.status.rstrip(".")
        self.broken = solution.interrupted
        if isinstance(pace, str):
            self.choose(self.reason)
        elif self.tried:
            self.chosen = self.tried[-1]

    def choose(self, why: str = "") -> None:
        """The last candidate, unless the plain model is as good on rows that neither has seen."""
        if not self.tried:
            return
        problem, last = self.problem, self.tried[-1]
        plain, paced = self.base.residuals, last.view.residuals
        where = "unseen rows" if problem.cross else "the rows themselves"
        if not problem.cross and self.unseen is not None:
            plain, paced, where = (
                self.unseen.residuals,
                problem.unseen(problem.total(last.weights)).residuals,
                "unseen rows",
            )
        sigma = sigma_of(problem, paced)
        gain, error = better(problem, plain, paced, sigma)
        figures = f"its Tukey loss on {where} is lower by {gain:.3f} +- {error:.3f}"
        gross = bool(np.any(np.abs(paced) > TUKEY * sigma))
        if gain > max(2 * error, LEAST_GAIN if gross else 5 * LEAST_GAIN):
            self.chosen, self.reason = last, f"{last.label} was chosen: {figures}"
        else:
            self.reason = f"the plain model was kept: for {last.label}, {figures}"
        self.reason += f"; {why[0].lower() + why[1:]}" if why else ""

    def finish(self) -> None:
        """Fit the chosen weights on all rows."""
        if self.chosen is None:
            return
        began = time.perf_counter()
        with self.problem.progress.stage("final fit"):
            self.model = self.problem.full_fit(self.problem.total(self.chosen.weights))
        self.chosen.cost += time.perf_counter() - began

    def interrupted(self) -> None:
        """Keep what there is: the model of the last complete in-sample round, or the plain one."""
        self.broken, self.chosen = True, None
        for one in reversed(self.tried):
            if one.view.model is not None:
                self.chosen, self.model = one, one.view.model
                break
        kept = "the plain model" if self.chosen is None else self.chosen.label
        self.reason = f"interrupted from outside, {kept} was kept"

    def path(self, sigma: float) -> tuple[Candidate, ...]:
        """The plain model and every candidate."""
        ones = np.ones(self.problem.y.size)
        rows = [(self.base.residuals, ones, math.inf, "plain", self.chosen is None, self.seen.cost)]
        rows += [
            (one.view.residuals, one.weights, float(one.lam), one.label, one is self.chosen, one.cost)
            for one in self.tried
        ]
        return tuple(
            record(self.problem, residuals, sigma, weights, lam=lam, label=label, chosen=chosen, cost=cost)
            for residuals, weights, lam, label, chosen, cost in rows
        )


def _checked_target(y: Any) -> np.ndarray:
    if y is None:
        raise ValueError("This SelfPacedRegressor estimator requires y to be passed, but the target y is None.")
    target = np.asarray(y)
    text = target.dtype.kind in "US" or (
        target.dtype.kind == "O" and any(isinstance(value, str) for value in target.ravel()[:100])
    )
    if text:
        raise ValueError(f"y must be numbers for a regression; got text ({target.ravel()[0]!r}, ...).")
    if target.ndim == 2 and target.shape[1] > 1:
        raise ValueError(
            f"y must have one column; got {target.shape[1]}. Outliers differ between targets: fit one model per target "
            "(sklearn.multioutput.MultiOutputRegressor does)."
        )
    target = column_or_1d(target, warn=True)
    target = target if target.dtype.kind == "f" else target.astype(np.float64)
    if not np.isfinite(target).all():
        raise ValueError("y must be finite; got NaN or infinity. Input y contains NaN or infinity.")
    return target
