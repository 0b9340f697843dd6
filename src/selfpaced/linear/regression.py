"""Linear regression that finds its own outliers: ``SelfPacedLinearRegression``."""

from __future__ import annotations

import logging
import math
import time
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..fitting import CallbackSupportMixin, Progress, with_callbacks
from ..pacing import Geometric, Pacing, Stages
from ..regularizers import Regularizer, get
from ..regularizers import relative as relative_rule
from ..residuals import EfficientStop, ResidualRule, efficient_pace
from ..solver import alternate
from .ascent import exact_floor, fit_scale, objective, reweight, robust_start
from .robust import ROWS_PER_COEFFICIENT, Search
from .squares import Squares, build

__all__ = ["SelfPacedLinearRegression"]

Floats = NDArray[np.floating[Any]]
logger = logging.getLogger(__name__)


class SelfPacedLinearRegression(CallbackSupportMixin, RegressorMixin, BaseEstimator):
    r"""Least squares on the rows that agree, with the outliers found and left out by itself.

    Minimises :math:`\sum_i \phi(\lambda, r_i^2) / \phi'(\lambda, 0) + \alpha \|b\|^2` over the coefficients, where
    :math:`\phi` is the latent loss of the regularizer and :math:`r_i` are residuals: far residuals count little
    or nothing. No share of outliers is asked for. With ``pace="auto"``:

    1. a robust start (halves suggested by principal sensitivity components, refined to an S-estimate),
    2. hard self-pacing upward from the easy half, until the cut is 2.5 sigma of the fit's own good residuals,
    3. the regularizer at the pace that is ``efficiency`` as precise as least squares on clean normal errors,
    4. a guard that steps back if that lets the majority of the rows down, and
    5. the plain fit if it agrees with the paced one as well as on clean data and no residual is an outlier.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge penalty, as in :class:`sklearn.linear_model.Ridge`; weights are relative to their largest value, so it
        means the same for every rule.
    regularizer : str or Regularizer, default="tukey"
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
        Draws the rows that the search for a start looks at, where there are more than 1,000 (and 10 per feature).
    verbose : int, default=0
        1 logs the stages and what was chosen.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
    sample_weight_ : ndarray of shape (n_samples,)
        Weight of each row in [0, 1], relative to the largest; all 1 where the plain fit was chosen.
    sample_loss_ : ndarray of shape (n_samples,)
        Squared residuals.
    lam_ : float
        The pace of the chosen fit; ``inf`` is the plain fit.
    regularizer_, loss_unit_ : Regularizer, float
        The rule that made ``sample_weight_`` from ``sample_loss_ / loss_unit_``. It is not the one asked for where the
        guard stepped back to hard selection; the unit is 1 unless the rule is not free of scale.
    scale_ : float
        Sigma of the good residuals; 0 where they are fitted exactly.
    noise_rate_, noise_rate_interval_ : float, tuple of float
        Estimated share of outliers, with an interval of about 95 %.
    path_ : tuple of Candidate
        Every fit that was tried; the score is minus the mean Tukey loss at ``scale_``.
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

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        regularizer: str | Regularizer = "tukey",
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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SelfPacedLinearRegression:
        """Fit the model and weigh the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as that row twice; weights that are not whole numbers count relative to each
            other.

        Returns
        -------
        self
        """
        rule = self._validated_rule()
        X, y = self._validated_data(X, y)
        weight = _validated_weight(sample_weight, X.shape[0])
        kept = slice(None) if weight is None else np.flatnonzero(weight)
        squares = build(
            X[kept],
            y[kept].astype(np.float64),
            alpha=float(self.alpha),
            fit_intercept=bool(self.fit_intercept),
            sample_weight=None if weight is None else weight[kept],
        )
        with Progress(self, X, y).running() as progress:
            with progress.stage("plain fit"):
                search = Search.begin(squares)
            try:
                with progress.stage(f"pace {self.pace!r}"):
                    self._search(search, rule)
            except KeyboardInterrupt:
                search.reason += "; interrupted from outside, the best fit so far was kept"
            logger.log(logging.INFO if self.verbose else logging.DEBUG, "%s", search.sentence())
        self._store(search, X, y)
        return self

    def _search(self, search: Search, rule: Regularizer) -> None:
        if isinstance(self.pace, str) and self.pace == "auto":
            search.automatic(
                rule,
                efficiency=float(self.efficiency),
                tol=float(self.tol),
                max_iter=int(self.max_iter),
                rng=check_random_state(self.random_state),
            )
        elif isinstance(self.pace, Real):
            self._fixed(search, rule, float(self.pace))
        else:
            self._paced(search, rule)

    def _robust(self, squares: Squares) -> Floats | None:
        if squares.size < ROWS_PER_COEFFICIENT * squares.dof:
            return None
        return robust_start(squares, check_random_state(self.random_state))[0]

    def _fixed(self, search: Search, regularizer: Regularizer, lam: float) -> None:
        """Half-quadratic fitting at one pace, from the plain and from a robust start; the better one wins."""
        squares, rule, began = search.squares, ResidualRule(regularizer), time.perf_counter()
        starts = [] if self.start == "robust" else [search.plain]
        if self.start != "plain" and (robust := self._robust(squares)) is not None:
            starts.append(robust)
        fits = [
            reweight(squares, rule, lam, b, tol=float(self.tol), max_iter=int(self.max_iter))
            for b in starts or [search.plain]
        ]
        best = min(fits, key=lambda fit: objective(squares, rule, fit.b, lam))
        search.n_iter, search.converged = best.n_iter, best.converged
        search.choose(
            search.add(best.b, lam, f"{_name(regularizer)}, fixed", rule, began), f"fixed pace lam = {lam:.4g}"
        )
        search.scale = fit_scale(squares, best.b)

    def _paced(self, search: Search, regularizer: Regularizer) -> None:
        """The alternation of the core along a given pace, or the paper's."""
        squares, began = search.squares, time.perf_counter()
        floor = exact_floor(squares)
        sigma = max(search.scale.sigma, floor)
        unit = 1.0 if regularizer.power is not None else efficient_pace(regularizer, sigma, float(self.efficiency))[1]
        rule = ResidualRule(relative_rule(regularizer), unit)
        pacing = self.pace
        if not isinstance(pacing, Pacing):
            stop = EfficientStop(float(self.efficiency), unit, squares.dof, squares.sample_weight, floor)
            pacing = Geometric(mu=1.05, fraction=0.5, floor=(floor**2 / unit) or 1e-300, stop=(stop, Stages(400)))
        initial = self._robust(squares) if self.start == "robust" else None
        solution = alternate(
            _SquaresProblem(squares, rule),
            rule.regularizer,
            pacing,
            inner=int(self.max_iter) if not isinstance(self.pace, str) else 5,
            tolerance=1e-10,
            sample_weight=squares.sample_weight,
            initial=search.plain if initial is None else initial,
        )
        search.n_iter = sum(stage.inner for stage in solution.stages)
        label = f"{_name(regularizer)}, {self.pace if isinstance(self.pace, str) else type(self.pace).__name__}"
        index = search.add(np.asarray(solution.model), solution.lam, label, rule, began)
        search.choose(index, solution.status.rstrip("."))
        search.scale = fit_scale(squares, search.best.b)

    # -------------------------------------------------------------------------------------------- validation

    def _validated_rule(self) -> Regularizer:
        rule = get(self.regularizer)
        if not isinstance(rule, Regularizer):
            raise ValueError(
                f"regularizer must weigh each row by itself; {type(rule).__name__} needs groups, which a linear "
                f"regression does not have, got {self.regularizer!r}"
            )
        if not (isinstance(self.alpha, Real) and 0 <= self.alpha < math.inf):
            raise ValueError(f"alpha must be a finite number >= 0, got {self.alpha!r}")
        if not (isinstance(self.efficiency, Real) and 0.3 <= self.efficiency < 1):
            raise ValueError(f"efficiency must be in [0.3, 1), got {self.efficiency!r}")
        if self.start not in ("auto", "robust", "plain"):
            raise ValueError(f"start must be 'auto', 'robust' or 'plain', got {self.start!r}")
        if not (isinstance(self.max_iter, Integral) and self.max_iter >= 1):
            raise ValueError(f"max_iter must be an integer >= 1, got {self.max_iter!r}")
        if not (isinstance(self.tol, Real) and self.tol > 0):
            raise ValueError(f"tol must be > 0, got {self.tol!r}")
        self._validated_pace()
        return rule

    def _validated_pace(self) -> None:
        pace = self.pace
        known = isinstance(pace, Pacing) or (isinstance(pace, str) and pace in ("auto", "paper"))
        number = isinstance(pace, Real) and not isinstance(pace, bool) and pace > 0
        if not (known or number):
            raise ValueError(
                f"pace must be 'auto', 'paper', a number > 0 (a fixed lam) or a selfpaced.pacing.Pacing, got {pace!r}"
            )

    def _validated_data(self, X: Any, y: Any) -> tuple[Any, Floats]:
        target = np.asarray(y) if y is not None else None
        if target is not None and (target.dtype.kind in "US" or _holds_text(target)):
            raise ValueError(
                f"y must be numbers for a regression, got text ({target.ravel()[0]!r}, ...); "
                "use SelfPacedLogisticRegression for labels"
            )
        if target is not None and target.ndim == 2 and target.shape[1] > 1:
            raise ValueError(
                f"y must have one column, got {target.shape[1]}: outliers differ between targets, so fit one model per "
                "target (sklearn.multioutput.MultiOutputRegressor does)"
            )
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], y_numeric=True, ensure_min_samples=2
        )
        return X, y

    # ---------------------------------------------------------------------------------------------- results

    def _store(self, search: Search, X: Any, y: Floats) -> None:
        squares, best = search.squares, search.best
        coef, intercept = squares.coefficients(best.b)
        self.coef_ = coef.astype(X.dtype)
        self.intercept_ = X.dtype.type(intercept)
        residuals = y - np.asarray(X @ coef + intercept)
        rule = best.rule or ResidualRule(get(self.regularizer))
        self.sample_loss_ = np.square(residuals).astype(X.dtype)
        self.regularizer_, self.loss_unit_ = rule.regularizer, rule.unit
        plain = best.rule is None
        self.sample_weight_ = np.ones(len(y), X.dtype) if plain else rule.weights(residuals, best.lam).astype(X.dtype)
        self.lam_ = float(best.lam)
        self.scale_ = float(search.scale.sigma)
        share = search.outliers()
        self.noise_rate_ = share.estimate
        self.noise_rate_interval_ = (share.low, share.high)
        self.path_ = search.path()
        self.plain_ = self._plain_model(search)
        self.n_iter_ = max(int(search.n_iter), 1)
        self.termination_ = search.sentence()
        if not search.converged:
            message = (
                f"the fit at lam = {best.lam:.4g} did not settle in {self.max_iter} weighted fits and the last one is "
                "kept; raise max_iter or tol"
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=3)

    def _plain_model(self, search: Search) -> LinearRegression | Ridge:
        """The plain fit as the scikit-learn model that it is, without fitting it again."""
        model = Ridge(alpha=self.alpha, fit_intercept=self.fit_intercept) if self.alpha else LinearRegression()
        model.set_params(fit_intercept=self.fit_intercept)
        coef, intercept = search.squares.coefficients(search.plain)
        model.coef_, model.intercept_ = coef.astype(self.coef_.dtype), self.coef_.dtype.type(intercept)
        model.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model

    def predict(self, X: Any) -> Floats:
        """Predict the target.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _SquaresProblem:
    """The linear model as a Problem of the core."""

    def __init__(self, squares: Squares, rule: ResidualRule) -> None:
        self.squares, self.rule = squares, rule

    def fit(self, weights: Floats | None, previous: Floats | None) -> Floats:
        if weights is not None and self.squares.sample_weight is not None:
            # The core multiplies the prior weights in; the squares do so by themselves.
            weights = weights / self.squares.sample_weight
        return self.squares.solve(weights, previous)

    def losses(self, model: Floats) -> Floats:
        return self.rule.losses(self.squares.residuals(model))

    def penalty(self, model: Floats) -> float:
        return self.squares.penalty(model) / self.rule.unit


def _name(regularizer: Regularizer) -> str:
    return regularizer.name or type(regularizer).__name__


def _holds_text(target: NDArray[Any]) -> bool:
    return target.dtype.kind == "O" and any(isinstance(value, str) for value in target.ravel()[:100])


def _validated_weight(sample_weight: Any, n_rows: int) -> Floats | None:
    """Weights per row, or None where they are all the same."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weight.ndim}D array.")
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one value per row: got {weight.shape} for {n_rows} rows")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must be finite and >= 0")
    if not weight.any():
        raise ValueError("sample_weight must not be zero for every row")
    return None if np.all(weight == 1) else weight
