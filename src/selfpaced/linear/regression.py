"""Linear regression that finds its own outliers: ``SelfPacedLinearRegression``."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from ..assessment import Assessment, AssessmentMixin, Values, fingerprint, look_by_residuals
from ..distributed.scratch import opened
from ..distributed.table import MemoryTable, ScoreMixin, in_blocks, lazy_for_dask
from ..fitting import (
    CallbackSupportMixin,
    Interruptible,
    Progress,
    all_or_nothing,
    check_groups,
    check_rule,
    check_size,
    check_trusted,
    check_values,
    check_weight,
    interrupted_sentence,
    raise_interrupted,
    refuse_dates,
    with_callbacks,
)
from ..parameters import KINDS, check_pace, speaking_of
from ..regularizers import Regularizer
from ..robust import ResidualRule
from ..value_noise import EVEN_ODDS, ValueAssessment
from ._least_squares import DENSE_GRAM, build
from ._leverage import ABSURD
from ._regression_fit import (
    ROWS_PER_COEFFICIENT,
    RegressionFit,
    RegressionSettings,
    automatic,
    by_residuals,
    checked,
    deciding_rows,
    plain_fit,
    trusting_regression,
    unsettled,
)
from ._regression_paths import fixed, paced, penalised
from .inference import RegressionSummary, infer
from .regression_tables import TableEnd, fit_table

__all__ = ["SelfPacedLinearRegression"]

Floats = NDArray[np.floating[Any]]
logger = logging.getLogger(__name__)


class SelfPacedLinearRegression(CallbackSupportMixin, ScoreMixin, RegressorMixin, AssessmentMixin, BaseEstimator):
    r"""Robust linear regression that finds outliers and leaves them out.

    Minimises :math:`\sum_i \phi(\lambda, r_i^2) / \phi'(\lambda, 0) + \alpha \|b\|^2` over the coefficients, where
    :math:`\phi` is the latent loss of the regularizer and :math:`r_i` are residuals: far residuals count little
    or nothing. No share of outliers is asked for. With ``pace="auto"``:

    1. a robust start (halves suggested by principal sensitivity components, and random subsets, refined to an
       S-estimate; directions that a few rows alone determine are fitted after the others),
    2. hard self-pacing upward from the easy half, until the cut is 2.5 sigma of the fit's own good residuals,
    3. by its residuals the rows to leave out: gross errors that reference models confirm (``misfit_check_``), and rows
       that their features mislead or that form a second heap of residuals (``rejection_``),
    4. for the others the regularizer at the pace that is ``efficiency`` as precise as least squares on clean normal
       errors, or least squares if that is nearer to them, and
    5. the plain fit if no residual is an outlier, or if no row is left out and no other fit is nearer to the rows.

    A row that alone determines a coefficient keeps its weight. If the chosen fit predicts rows more than ten times as
    far off as the worst row of the plain fit, although nothing shows that they are wrong, a UserWarning says so, and
    ``far_off`` of the chosen candidate in ``path_`` counts them.

    Fewer than three rows per coefficient show no outliers by themselves: a ridge is added that predicts rows left out
    in turn (features should be of similar size), unless the plain fit predicts them as well, and a UserWarning says so.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge penalty, as in :class:`sklearn.linear_model.Ridge`; weights are relative to their largest value, so it
        means the same for every rule.
    regularizer : str or Regularizer, default="huber"
        Any elementwise rule of :mod:`selfpaced.regularizers`, or one made by ``from_loss``; the loss is the squared
        residual.
    pace : "auto", "paper", float or Pacing, default="auto"
        ``"paper"``: start where the mean weight is one half, lam times 1.05 per stage, stop where the rule is
        efficient for the sigma of the current residuals. A number is a fixed lam: half-quadratic fitting (a
        redescending M-estimate with known scale). A :class:`~selfpaced.pacing.Pacing` runs as it is.
    efficiency : float, default=0.95
        Precision on clean normal errors relative to least squares at which the pace stops: lower is more robust.
    start : {"auto", "robust", "plain"}, default="auto"
        First model of a ``pace`` other than "auto": the plain fit for "paper" and a Pacing; for a fixed lam both are
        tried and the lower objective wins.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is never penalised.
    max_iter : int, default=200
        Largest number of weighted fits at one pace.
    tol : float, default=1e-7
        A fit at one pace ends when no standardised coefficient moves by more than this share of the residuals'
        spread.
    random_state : int, RandomState or None, default=0
        Draws the random subsets of the search for a start, and the rows that it looks at if there are more than
        1,000 (and 10 per feature).
    verbose : int, default=0
        1 logs the stages and what was chosen.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
    alpha_ : float
        The ridge of the chosen fit; above ``alpha`` if the rows were fewer than three per coefficient.
    sample_weight_ : ndarray of shape (n_samples,)
        Weight of each row in [0, 1], relative to the largest; all 1 if the plain fit was chosen.
    sample_loss_ : ndarray of shape (n_samples,)
        Squared residuals.
    lam_ : float
        The pace of the chosen fit; ``inf`` is the plain fit.
    regularizer_, loss_unit_ : Regularizer, float
        The rule that made ``sample_weight_`` from ``sample_loss_ / loss_unit_``, for rows that are not left out. It
        is "hard" if least squares without gross rows was chosen; the unit is 1 unless the rule is not free of scale.
    scale_ : float
        Sigma of the good residuals; the size of rounding where they are fitted exactly. If there is no evidence for a
        majority of good rows, the root mean square of all residuals.
    noise_rate_, noise_rate_interval_ : float, tuple of float
        Estimated share of outliers that no other explanation accounts for, with an interval of about 95 %. It is too
        narrow for fewer than five rows per coefficient: it holds 0 for 82 % of clean tables at three.
    misfit_check_ : ValueAssessment
        Which values are grossly wrong, and what share the model only misfits (:mod:`selfpaced.value_noise`); printed,
        it is a sentence.
    rejection_ : Rejection or None
        Which rows have no weight although their values may be right; None if ``pace`` was given or the plain fit was
        chosen.
    path_ : tuple of Candidate
        Every fit that was tried; the score is minus the mean Tukey loss at ``scale_`` or, if the rows are fewer than
        three per coefficient, at the scale of the rows left out in turn.
    inference_ : Inference or None
        Covariance of the coefficients and robust R2, from which ``summary`` is made; None for sparse data with more
        than 2,000 columns.
    assessment_ : Assessment
        What the model holds about the training rows; ``assess`` gives the same for others.
    plain_ : LinearRegression or Ridge
        The plain fit.
    termination_ : str
        What was chosen, and why.
    n_iter_ : int
        Weighted fits at the last pace.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Pena and Yohai (1999), A fast procedure for outlier diagnostics in large regression problems, JASA.
    Rousseeuw and Yohai (1984), Robust regression by means of S-estimators.
    Salibian-Barrera and Yohai (2006), A fast algorithm for S-regression estimates, JCGS.
    Maronna and Yohai (2000), Robust regression with both continuous and categorical predictors, JSPI.
    Koller and Stahel (2011), Sharpening Wald-type inference in robust regression for small samples, CSDA.
    Fan, He, Liang and Hu (2017), Self-paced learning: an implicit regularization perspective, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced import SelfPacedLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X @ [1.0, 2.0] + 0.1 * rng.normal(size=200)
    >>> y[:80] += 10  # two of five rows are wrong
    >>> model = SelfPacedLinearRegression().fit(X, y)
    >>> model.coef_.round(1), round(model.noise_rate_, 1), model.sample_weight_[:80].max()
    (array([1., 2.]), 0.4, np.float64(0.0))
    """

    _parameter_rules = {"tol": KINDS["positive"]}
    _decides = False  # for a larger table, whose sample it is fitted to

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        regularizer: str | Regularizer = "huber",
        pace: Any = "auto",
        efficiency: float = 0.95,
        start: str = "auto",
        fit_intercept: bool = True,
        max_iter: int = 200,
        tol: float = 1e-7,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.regularizer = regularizer
        self.pace = pace
        self.efficiency = efficiency
        self.start = start
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, trusted: Any = None, groups: Any = None
    ) -> SelfPacedLinearRegression:
        """Fit the model and weigh the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or a table that is not in memory: a :class:`~selfpaced.distributed.Table` of values, or a source of
            batches as :func:`selfpaced.distributed.spool` takes it. Above 50,000 rows, a sample then sets the
            pace and assesses the values, and all rows are fitted; ``assessment_`` is that of the sample.
        y : array-like of shape (n_samples,), or str
            Values; for a source of batches, the name of their column.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts. Whole numbers are counts, up to a common divisor: a row of weight 2 beside rows
            of weight 1 is that row twice. Other weights are relative and stand for Kish's effective number of rows. A
            common factor changes nothing but the part of ``alpha``, which is in the unit of the weights as given. A
            row of weight 0 is only assessed.
        trusted : array-like of bool of shape (n_samples,), optional
            Rows that a person has confirmed: they keep their full weight and are never listed as suspects.
        groups : array-like of shape (n_samples,), optional
            Rows of one group depend on each other (a patient, a site, a copy): they are never split over folds, and
            standard errors are clustered by group. On Dask, of more than 50,000 rows, the standard errors are those of
            the sample.

        Returns
        -------
        self
        """
        if in_blocks(X):
            with (
                opened(X, y, sample_weight, labels=False, trusted=trusted, groups=groups) as table,
                Progress(self).running() as progress,
            ):
                end = fit_table(self, table, progress)
            self._tell(end)
            return self
        refuse_dates(X)
        settings = self._settings()
        X, y = self._validated_data(X, y)
        weight = check_weight(sample_weight, X.shape[0], relative=not self.alpha)
        confirmed = check_trusted(trusted, X.shape[0])
        codes = check_groups(groups, X.shape[0])
        kept = slice(None) if weight is None else np.flatnonzero(weight)
        wide = sparse.issparse(X) and X.shape[1] > DENSE_GRAM
        usual = confirmed is None and codes is None and not wide
        if usual and X.shape[0] > deciding_rows(X.shape[1]) and not self._decides:
            return self._fit_many(X, y, weight)
        rows = X[kept]
        squares = build(
            rows,
            y[kept].astype(np.float64),
            alpha=float(self.alpha),
            fit_intercept=bool(self.fit_intercept),
            sample_weight=None if weight is None else weight[kept],
        )
        with Progress(self, X, y).running() as progress:
            with progress.stage("plain fit"):
                plain = found = plain_fit(squares)
            assessment = rejection = None
            known = None if codes is None else codes[kept]
            with Interruptible() as guard, progress.stage(f"pace {self.pace!r}"):
                for found in _fits(plain, settings):  # noqa: B007
                    pass
                if not found.final:
                    options = {"groups": known, "random_state": self.random_state}
                    found, assessment, rejection = checked(found, rows, settings, **options)
                if confirmed is not None:
                    found = trusting_regression(found, confirmed[kept])
        termination = found.termination
        if guard.interrupted:
            termination = interrupted_sentence("the plain model" if found.trial.plain else found.trial.label)
        logger.log(logging.INFO if self.verbose else logging.DEBUG, "%s", termination)
        assessment = assessment or by_residuals(found)
        self.inference_ = infer(found, assessment.trusted, known)
        self.rejection_ = rejection if assessment.applied else None
        self._store(found, assessment, X, y, kept, termination, confirmed)
        if guard.interrupted:
            raise_interrupted(self)
        self._warn(found)
        return self

    def _warn(self, found: RegressionFit) -> None:
        if found.warning:
            warnings.warn(found.warning, ConvergenceWarning, stacklevel=5)
        if found.notice:
            warnings.warn(found.notice, UserWarning, stacklevel=5)
        far_off = next(candidate.far_off for candidate in self.path_ if candidate.chosen)
        if far_off:
            warnings.warn(
                f"{far_off} of {found.squares.n_rows} rows have residuals more than {ABSURD:g} times the largest one "
                "of the plain model, although their values may be right: their features are wrong, or coefficients "
                "are unstable. Check the rows of largest sample_loss_, raise alpha, or use plain_",
                UserWarning,
                stacklevel=5,
            )

    def _fit_many(self, X: Any, y: Floats, weight: Floats | None) -> SelfPacedLinearRegression:
        """Of many rows a sample decides, here as in any table of blocks."""
        table = MemoryTable(X, y.astype(np.float64), weight)
        names = getattr(self, "feature_names_in_", None)
        with Progress(self, X, y).running() as progress:
            end = fit_table(self, table, progress)
        if names is not None:
            self.feature_names_in_ = self.plain_.feature_names_in_ = names
        assessed = self._assess(X, y)
        self.assessment_ = replace(assessed, fingerprint=fingerprint(X, y))
        self.sample_loss_ = np.square(y - assessed.diagnosis.expected).astype(X.dtype)
        self.sample_weight_ = self.assessment_.weight.astype(X.dtype, copy=False)
        self._tell(end)
        return self

    def _tell(self, end: TableEnd) -> None:
        if end is TableEnd.INTERRUPTED:
            raise_interrupted(self)
        if end is TableEnd.MAX_ITER:
            warnings.warn(unsettled(self.lam_, self.max_iter), ConvergenceWarning, stacklevel=5)

    # -------------------------------------------------------------------------------------------- validation

    def _settings(self) -> RegressionSettings:
        return RegressionSettings(
            regularizer=check_rule(self.regularizer),
            pace=check_pace(self.pace),
            efficiency=float(self.efficiency),
            start=self.start,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            rng=check_random_state(self.random_state),
        )

    def _validated_data(self, X: Any, y: Any) -> tuple[Any, Floats]:
        if y is not None:
            check_values(y)
        with speaking_of("X"):
            X, y = validate_data(
                self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], y_numeric=True, ensure_min_samples=2
            )
        check_size("X", X)
        check_size("y", y)
        return X, y

    # ---------------------------------------------------------------------------------------------- results

    def _store(
        self,
        found: RegressionFit,
        assessment: ValueAssessment,
        X: Any,
        y: Floats,
        kept: Any,
        termination: str,
        confirmed: Any,
    ) -> None:
        best = found.best
        coef, intercept = found.squares.at.coefficients(best.b)
        self.coef_, self.intercept_ = coef.astype(X.dtype), X.dtype.type(intercept)
        expected = np.asarray(X @ coef + intercept)
        rule = best.rule or ResidualRule(check_rule(self.regularizer))
        self.regularizer_, self.loss_unit_ = rule.regularizer, rule.unit
        self.lam_ = float(found.trial.lam)
        self.scale_ = float(found.sigma)
        self.misfit_check_ = assessment
        self.noise_rate_, self.noise_rate_interval_ = assessment.rate, assessment.interval
        self.alpha_ = float(self.alpha) + found.extra_ridge
        trusted = assessment.trusted if confirmed is None else assessment.trusted | confirmed[kept]
        self.path_ = found.path(trusted)
        self.plain_ = self._plain_model(found)
        self.n_iter_ = max(int(found.n_iter), 1)
        self.termination_ = termination
        wrong = assessment.wrong
        if len(wrong) < len(y):  # rows of no weight were not asked
            wrong = self._wrong(X, expected, y)
            wrong[kept] = assessment.wrong
        found_by = self._assessment(X, expected, y, wrong, fingerprint(X, y))
        if found_by.given_weight is not None and found.trial.weight is not None:
            found_by.given_weight[kept] = found.trial.weight
        self.assessment_ = replace(found_by, trusted=confirmed)
        self.sample_loss_ = np.square(y - expected).astype(X.dtype)
        self.sample_weight_ = self.assessment_.weight.astype(X.dtype, copy=False)

    def _plain_model(self, found: RegressionFit) -> LinearRegression | Ridge:
        """The plain fit as the scikit-learn model that it is, without fitting it again."""
        model = Ridge(alpha=self.alpha, fit_intercept=self.fit_intercept) if self.alpha else LinearRegression()
        model.set_params(fit_intercept=self.fit_intercept)
        dtype = self.coef_.dtype
        coef, intercept = found.squares.at.coefficients(found.plain.b)
        model.coef_, model.intercept_ = coef.astype(dtype), dtype.type(intercept)
        model.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model

    # ---------------------------------------------------------------------------------------------- assessing

    def _assessed_rows(self, X: Any, y: Any) -> tuple[Any, Floats]:
        with speaking_of("X"):
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        given = column_or_1d(check_values(y))
        if given.dtype.kind not in "fiub":
            raise ValueError(f"y must be numbers for a regression, got dtype {given.dtype}")
        if len(given) != X.shape[0]:
            raise ValueError(f"X and y must have the same number of rows, got {X.shape[0]} and {len(given)}")
        # as validate_data has it in fit
        return X, given if given.dtype.kind == "f" else given.astype(np.float64)

    def _assess(self, X: Any, y: Floats) -> Assessment:
        expected = np.asarray(X @ self.coef_ + self.intercept_, dtype=np.float64)
        return self._assessment(X, expected, y, self._wrong(X, expected, y))

    def _wrong(self, X: Any, expected: Floats, y: Floats) -> Floats:
        """How probably values of rows that were not fitted are wrong."""
        return self.misfit_check_.probability(np.asarray(y, dtype=np.float64), expected, X)

    def _assessment(self, X: Any, expected: Floats, y: Floats, wrong: Floats, seen: str = "") -> Assessment:
        """Rows with these predictions: the rule, unit and pace are those that the fit ended with."""
        diagnosis = Values(y, expected, wrong, self.misfit_check_.misfit, self.misfit_check_.sentence)
        rule, lam, weight = ResidualRule(self.regularizer_, self.loss_unit_), self.lam_, None
        if self.rejection_ is not None:
            kept = (wrong <= EVEN_ODDS) & ~self.rejection_.rows(X, y, y - expected)
            weight = np.where(kept, rule.weights(y - expected, lam), 0.0)
        look = look_by_residuals(diagnosis.support) if seen else self.assessment_.look
        losses, shape = rule.losses(y - expected), rule.regularizer
        return Assessment("values", diagnosis, losses, lam, shape, seen, given_weight=weight, look=look)

    # ------------------------------------------------------------------------------------------- inference

    def summary(self, level: float = 0.95, cov: str = "HC3") -> RegressionSummary:
        """Return coefficients with robust standard errors, p-values and intervals, and a robust R2.

        The coefficients describe the centre of the bulk of the values, not their mean: the intercepts of the two differ
        if errors are skewed. The bias of a ridge is not in the intervals, and coefficients of columns that depend on
        each other are those of the shortest solution.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the intervals.
        cov : {"HC3", "even"}, default="HC3"
            ``"HC3"`` is the sandwich of the fit at its weights with leverage taken into account: the spread of errors
            may differ from row to row. ``"even"`` assumes that it does not (Koller and Stahel 2011), which is a little
            sharper in small samples. With ``groups`` in ``fit`` both are clustered.

        Returns
        -------
        RegressionSummary
            Prints as a table; ``frame()`` gives it as a data frame.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 1))
        >>> y = 2 * X[:, 0] + rng.normal(size=200) + 30 * (rng.random(200) < 0.1)
        >>> summary = SelfPacedLinearRegression().fit(X, y).summary()
        >>> bool(summary.low[1] < 2 < summary.high[1]), summary.names
        (True, ('intercept', 'x0'))
        """
        check_is_fitted(self)
        if not (isinstance(level, Real) and 0 < level < 1):
            raise ValueError(f"level must be between 0 and 1, got {level!r}")
        if cov not in ("HC3", "even"):
            raise ValueError(f"cov must be 'HC3' or 'even', got {cov!r}")
        if self.inference_ is None:
            raise ValueError(
                f"summary needs a covariance, which is not computed for {self.n_features_in_} sparse columns (at most "
                f"{DENSE_GRAM})"
            )
        features = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        first = self.intercept_ if self.fit_intercept else []
        names = ("intercept", *features) if self.fit_intercept else tuple(features)
        low, high = self.noise_rate_interval_
        estimand = (
            "mean of the values" if np.isinf(self.lam_) else "centre of the bulk of the values, not of their mean"
        )
        words = (
            f"Coefficients of the {estimand}; standard errors: {self.inference_.kind(cov)}.",
            f"{np.count_nonzero(self.sample_weight_)} of {self.sample_weight_.size} rows have weight; outliers "
            f"{100 * self.noise_rate_:.1f} % ({100 * low:.1f} % to {100 * high:.1f} %)",
            self.termination_,
        )
        estimate = np.r_[first, self.coef_].astype(np.float64)
        return RegressionSummary.of(
            self.inference_,
            tuple(map(str, names)),
            estimate,
            self.inference_.errors(cov),
            self.scale_,
            float(level),
            *words,
        )

    # ------------------------------------------------------------------------------------------- predicting

    @lazy_for_dask
    def predict(self, X: Any, interval: float | None = None) -> Floats:
        """Predict the target.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        interval : float, optional
            Probability with which an interval holds a new value that is not grossly wrong, for example 0.95. It follows
            the quantiles of the residuals, so they need not be normal; it is as wide in every row.

        Returns
        -------
        ndarray of shape (n_samples,)
            With ``interval``, of shape (n_samples, 3): prediction, lower and upper end.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 1))
        >>> model = SelfPacedLinearRegression().fit(X, 2 * X[:, 0] + rng.normal(size=300))
        >>> model.predict([[1.0]], interval=0.95).round(0).tolist()
        [[2.0, 0.0, 4.0]]
        """
        check_is_fitted(self)
        with speaking_of("X"):
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        expected = np.asarray(X @ self.coef_ + self.intercept_)
        if interval is None:
            return expected
        if not (isinstance(interval, Real) and 0 < interval < 1):
            raise ValueError(f"interval must be between 0 and 1, got {interval!r}")
        if self.inference_ is None:
            raise ValueError("interval needs a covariance, which is not computed for so many sparse columns")
        ends = self.inference_.reach(X, float(interval), bool(self.fit_intercept))
        return np.column_stack([expected, *(expected + end for end in ends)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _fits(plain: RegressionFit, settings: RegressionSettings) -> Iterator[RegressionFit]:
    """What is found on the way from the plain fit, each a complete result; the last one is the result."""
    if isinstance(settings.pace, float):
        return fixed(plain, settings, settings.pace)
    if settings.pace != "auto":
        return paced(plain, settings)
    few = plain.squares.size < ROWS_PER_COEFFICIENT * plain.squares.dof
    return penalised(plain, settings) if few else automatic(plain, settings)
