"""Any regressor, wrapped so that outliers do not spoil it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state, column_or_1d, indexable
from sklearn.utils.validation import check_is_fitted

from ..arguments import speaking_of
from ..assessment import Assessment, AssessmentMixin, Values, fingerprint, look_by_residuals
from ..fitting import (
    Progress,
    all_or_nothing,
    check_rule,
    check_size,
    check_trusted,
    check_values,
    few_threads,
    raise_interrupted,
    trusting,
    with_callbacks,
)
from ..folds import Split, make_folds, n_units, row_keys
from ..pacing import check_pace
from ..parameters import KINDS
from ..path import Candidate
from ..regularizers import Regularizer, relative
from ..selection import path_of
from ..value_noise import Rows, numeric_features
from .routing import n_rows, routed_weight, weight_route
from .value_path import ValueFit, run
from .value_verdict import own_word
from .values import Array, RegressorProblem
from .wrapping import WrapperMixin, route_fit_params, seeded

__all__ = ["SelfPacedRegressor"]

MIN_ROWS = 20  # a choice: below, a fold is too small to assess by


class SelfPacedRegressor(AssessmentMixin, WrapperMixin, RegressorMixin, BaseEstimator):
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
        Residuals by which the rows were assessed (cross-fitted or in-sample), and their squares.
    assessment_ : Assessment
        All of this in one object, as :func:`selfpaced.suspects` reads it; ``assess(X, y)`` gives it for any rows.
    lam_ : float
        The pace; ``inf`` where the plain model was chosen.
    regularizer_, loss_unit_ : Regularizer, float
        The rule that made ``sample_weight_`` from ``sample_loss_ / loss_unit_``.
    scale_ : float
        Sigma of the good residuals.
    noise_rate_, noise_rate_interval_ : float, tuple of float
        Estimated share of outliers that no other explanation accounts for, with an interval of about 95 %.
    verdict_ : ValueAssessment
        How the values were assessed: which are grossly wrong, and what share the model only misfits
        (:mod:`selfpaced.value_noise`). Where rows were left out by it, ``lam_`` is the probability of being wrong, 0.5,
        above which they were.
    path_ : tuple of Candidate
        Every round; the score by which the last and the plain one were compared is minus the mean Tukey loss, in the
        sigma of the last one's residuals (``nan`` where a round was not compared).
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

    _parameter_rules = {"estimator": KINDS["regressor"]}

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
    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        trusted: Any = None,
        **fit_params: Any,
    ) -> SelfPacedRegressor:
        """Fit to targets some of which may be outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Given to the wrapped model as it is.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts, up to a common factor. Whole numbers are counts: a row of weight 2 beside rows of
            weight 1 is that row twice. Other weights are relative and stand for Kish's effective number of rows. A
            common factor changes nothing, and a row of weight 0 is only assessed. The wrapped model gets these
            frequencies times the self-paced weights; if it takes no weights, rows are repeated.
        groups : array-like of shape (n_samples,), optional
            Rows of one group are never split between fitting and assessing.
        trusted : array-like of bool of shape (n_samples,), optional
            Rows that a person has confirmed: they keep their full weight and are never listed as suspects.
        **fit_params
            Passed on to the wrapped model's ``fit``; entries with one value per row are cut along.

        Returns
        -------
        self
        """
        rule, pace = relative(check_rule(self.regularizer)), check_pace(self.pace)
        X, y, groups = indexable(X, y, groups)
        y = _checked_target(y)
        route = weight_route(self.estimator)
        prior = routed_weight(sample_weight, n_rows(X), route)
        confirmed = check_trusted(trusted, n_rows(X))
        # taken before the fit, which may change X in place
        mark = fingerprint(X, y.astype(np.float64))
        with few_threads(n_rows(X)), Progress(self, X, y).running() as progress:
            problem = RegressorProblem(
                estimator=seeded(self.estimator, self.random_state), X=X, y=y, route=route,
                folds=self._folds(X, y, prior, groups), prior=prior, fit_params=route_fit_params(self, fit_params),
                n_jobs=self.n_jobs, progress=progress, groups=groups, seed=self._seed(), trusted=confirmed,
            )  # fmt: skip
            with progress.stage("plain fit"):
                seen = problem.seen(prior)
            found = run(problem, rule, pace, float(self.efficiency), self.cross_fit, seen)
        self._store(found, problem, seen.model, mark)
        if found.interrupted:
            raise_interrupted(self)
        return self

    def _seed(self) -> int:
        return int(check_random_state(0 if self.random_state is None else self.random_state).randint(1 << 31))

    def _folds(self, X: Any, y: Array, prior: Any, groups: Any) -> list[Split]:
        keys = row_keys(X)
        unused = None if prior is None else prior == 0.0
        if n_units(keys, unused) < MIN_ROWS:
            return []
        rng = check_random_state(0 if self.random_state is None else self.random_state)
        return make_folds(keys, unused, cv=self.cv, groups=groups, random_state=rng, X=X, y=y)

    def _store(self, found: ValueFit, problem: RegressorProblem, plain: Any, mark: str) -> None:
        kept, made = found.kept, found.kept.fit
        residuals = made.residuals.values
        sigma = problem.sigma(residuals)
        verdict = found.verdict or own_word(problem, residuals)
        assessment = Assessment(
            "values",
            Values(problem.y, problem.y - residuals, verdict.wrong, verdict.misfit, verdict.sentence),
            verdict.wrong if verdict.applied else made.rule.losses(residuals),
            kept.lam,
            made.rule.regularizer,
            mark,
            held_out=found.cross,
            trusted=problem.trusted,
            look=look_by_residuals(residuals),
        )
        path = path_of(found.trials, found.decision, problem.prior)
        self.plain_ = plain
        self.estimator_ = plain if found.model is None else found.model
        self.assessment_ = assessment
        self.sample_weight_ = trusting(kept.weight, problem.trusted)
        self.sample_residual_, self.sample_loss_ = residuals, np.square(residuals)
        self.lam_: float = kept.lam
        self.regularizer_, self.loss_unit_ = made.rule.regularizer, made.rule.unit
        self.scale_ = sigma
        self.verdict_ = verdict
        self.noise_rate_, self.noise_rate_interval_ = verdict.rate, verdict.interval
        self.path_: tuple[Candidate, ...] = path
        self.termination_ = found.termination

    def _assessed_rows(self, X: Any, y: Any) -> tuple[Any, Array]:
        X, y = indexable(X, y)
        return X, _checked_target(y).astype(np.float64)

    def _assess(self, X: Any, y: Array) -> Assessment:
        expected = np.asarray(self.estimator_.predict(X), dtype=float).reshape(-1)
        verdict = self.verdict_
        wrong = verdict.probability(Rows(y, (expected,), numeric_features(X) if verdict.asked else None))
        losses = wrong if verdict.applied else np.square(y - expected) / self.loss_unit_
        diagnosis = Values(y, expected, wrong, verdict.misfit, verdict.sentence)
        return Assessment("values", diagnosis, losses, self.lam_, self.regularizer_, look=self.assessment_.look)

    def predict(self, X: Any) -> Array:
        """Predict the target by the chosen model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))


def _checked_target(y: Any) -> Array:
    if y is None:
        raise ValueError("This SelfPacedRegressor estimator requires y to be passed, but the target y is None.")
    target = column_or_1d(check_values(y), warn=True)
    with speaking_of("y", "numbers, one for each row"):
        target = target if target.dtype.kind == "f" else target.astype(np.float64)
    if not np.isfinite(target).all():
        raise ValueError("y must be finite; got NaN or infinity. Input y contains NaN or infinity.")
    check_size("y", target)
    return np.asarray(target)
