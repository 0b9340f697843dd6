"""Logistic regression that wrong labels do not spoil."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_array, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..pacing import Pacing
from ..regularizers import GroupRegularizer, Regularizer, get
from .objective import Codes, Matrix, Objective, Vector, loss_of_scores
from .progress import CallbackSupportMixin, Progress, with_callbacks
from .training import Outcome, Settings, Trainer


class SelfPacedLogisticRegression(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""Logistic regression that down-weights what it cannot explain, and finds out by itself how much.

    Minimises :math:`C \sum_i \phi(\lambda, \ell_i) + \frac{1}{2} \|w\|^2`, where :math:`\ell_i` is the log-loss
    (binary or multinomial) and :math:`\phi` the latent loss of a self-paced regularizer; the weight of a sample
    is its slope :math:`\partial \phi / \partial \ell`.  Alternating between weights and weighted fits ends at the
    same points; here the latent loss is minimised directly.

    Parameters
    ----------
    regularizer : str or Regularizer, default="welsch"
        Any elementwise rule of :mod:`selfpaced.regularizers`, or a loss of your own through ``from_loss``.
    pace : "auto", "paper", float or Pacing, default="auto"
        "auto" tries a few paces and the plain model and lets held-out noisy labels decide; "paper" follows the
        paper's schedule (half the samples first, lam times 1.05) to a stage chosen in the same way; a number is
        a fixed lam; a :class:`~selfpaced.pacing.Pacing` is followed to its end.
    C : float, default=1.0
        Inverse strength of the penalty, as in scikit-learn.
    penalty : "l2" or None, default="l2"
        None is no penalty.
    fit_intercept : bool, default=True
        Whether to add an unpenalised constant.
    class_weight : dict, "balanced" or None, default=None
        Weights of the given classes.
    tol : float, default=1e-4
        Largest entry of the gradient, per unit of sample weight, at which a fit has converged.
    max_iter : int, default=200
        Largest number of iterations of a full fit.
    warm_start : bool, default=False
        Start full fits from the previous ones.
    random_state : int, RandomState or None, default=None
        Deals out the folds.  None always deals them in the same way, so fits repeat.
    n_jobs : int or None, default=None
        Folds fitted at the same time, in threads.
    verbose : int, default=0
        Log a line per stage.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_, intercept_ : ndarray
        The raw, uncalibrated model, as in scikit-learn's LogisticRegression; the intercept includes the shift
        that class-conditional noise asks for.  With ``pace="auto"`` and fewer than 10,000 rows it is the mean of
        the fold fits of the chosen pace, which wrong labels move less than one fit to all of them.
    raw_intercept_ : ndarray
        The intercept without that shift: the one that was fitted, and that losses and weights refer to.
    sample_weight_, sample_loss_ : ndarray of shape (n_samples,)
        Weight in [0, 1] and log-loss of every training row.
    lam_ : float
        The pace; ``inf`` if the plain model was kept.
    lam_by_class_ : ndarray of shape (n_classes,)
        The pace of each given class: `lam_`, or more where a class is rare or hard as a whole.
    path_ : tuple of Candidate
        Every candidate: pace, held-out score and its standard error, mean weight, cost.
    termination_ : str
        What was chosen, and why.
    noise_rate_ : float
        Estimated share of wrong labels.
    noise_rate_interval_ : tuple of float
        Its 95 % interval under the channel model.
    channel_ : NoiseChannel
        Maps raw scores to clean probabilities, and to the posterior that a given label is wrong.
    plain_ : LogisticRegression
        The plain model.
    n_iter_ : ndarray of shape (1,)
        Iterations of the full fits.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Fan, He, Liang, Hu. Self-paced learning: an implicit regularization perspective. AAAI 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> import numpy as np
    >>> from selfpaced import SelfPacedLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> flipped = np.random.default_rng(0).random(len(y)) < 0.2
    >>> noisy = np.where(flipped, 1 - y, y)
    >>> model = SelfPacedLogisticRegression().fit(X, noisy)
    >>> bool(model.score(X, y) > 0.96 > model.plain_.score(X, y))
    True
    >>> low, high = model.noise_rate_interval_
    >>> bool(low < 0.2 < high)
    True
    """

    def __init__(
        self,
        regularizer: str | Regularizer = "welsch",
        *,
        pace: Any = "auto",
        C: float = 1.0,
        penalty: str | None = "l2",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.regularizer = regularizer
        self.pace = pace
        self.C = C
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---------------------------------------------------------------------------------------------- fitting

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SelfPacedLogisticRegression:
        """Fit to labels some of which may be wrong.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features; scaling matters as for any logistic regression with a penalty.
        y : array-like of shape (n_samples,)
            Labels, numbers or strings.
        sample_weight : array-like of shape (n_samples,), optional
            Weighting a row by k equals repeating it k times; 0 leaves it out.

        Returns
        -------
        self
        """
        settings_of = self._settings
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        check_classification_targets(y)
        codes = self._encode(y)
        weight = self._weights(codes, sample_weight)
        kept = slice(None) if weight is None or weight.all() else np.flatnonzero(weight)
        rows, labels = (X, codes) if isinstance(kept, slice) else (X[kept], codes[kept])
        inner_weight = None if weight is None else weight[kept]
        if len(np.unique(labels)) < 2:
            raise ValueError(
                "y must have at least 2 classes among the rows of positive weight; the data contains only one class: "
                f"{self.classes_[labels[0]]!r}"
            )
        total = float(len(labels) if inner_weight is None else inner_weight.sum())
        with Progress(self, X, y).running() as progress:
            trainer = Trainer(
                rows, labels, len(self.classes_), inner_weight, settings_of(total), progress, self._previous(X)
            )
            outcome = trainer.run()
        self._store(outcome, X, codes)
        return self

    def _settings(self, total: float) -> Settings:
        rule = get(self.regularizer)
        if isinstance(rule, GroupRegularizer):
            raise ValueError(f"regularizer must be an elementwise rule; {rule.name!r} needs groups")
        _check("C", self.C, isinstance(self.C, Real) and self.C > 0, "a positive number")
        _check("penalty", self.penalty, self.penalty in ("l2", None), "'l2' or None")
        _check("tol", self.tol, isinstance(self.tol, Real) and self.tol > 0, "a positive number")
        _check("max_iter", self.max_iter, isinstance(self.max_iter, Integral) and self.max_iter > 0, "an integer > 0")
        number = isinstance(self.pace, Real) and not isinstance(self.pace, bool) and self.pace > 0
        known = number or isinstance(self.pace, Pacing) or self.pace in ("auto", "paper")
        _check("pace", self.pace, known, "'auto', 'paper', a positive number or a Pacing")
        return Settings(
            regularizer=rule,
            pace=self.pace,
            ridge=0.0 if self.penalty is None else 1.0 / (self.C * total),
            fit_intercept=bool(self.fit_intercept),
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            random_state=check_random_state(0 if self.random_state is None else self.random_state),
        )

    def _encode(self, y: Any) -> Codes:
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least 2 classes; the data contains only one class: {self.classes_[0]!r}")
        return codes.astype(np.intp, copy=False)

    def _weights(self, codes: Codes, sample_weight: Any) -> Vector | None:
        """Sample times class weights, or None where all are 1."""
        weight = None
        if sample_weight is not None:
            weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
            weight = np.full(len(codes), float(weight)) if weight.ndim == 0 else weight
            if weight.shape != (len(codes),):
                raise ValueError(f"sample_weight must have shape ({len(codes)},), got {weight.shape}")
            if (weight < 0).any():
                raise ValueError(f"sample_weight must be >= 0, got {weight.min()!r}")
            if not weight.any():
                raise ValueError("sample_weight must not be zero everywhere: no row is left to learn from")
        if self.class_weight is None:
            return weight
        mass = np.bincount(codes, weight, minlength=len(self.classes_))
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            factors = mass.sum() / (len(mass) * np.maximum(mass, 1e-300))
        else:
            factors = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])
        return factors[codes] if weight is None else weight * factors[codes]

    def _previous(self, X: Matrix) -> Vector | None:
        plain = getattr(self, "plain_", None)
        if not self.warm_start or plain is None:
            return None
        outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        if plain.coef_.shape != (outputs, X.shape[1]):
            return None
        return np.column_stack([plain.coef_, plain.intercept_]).astype(np.float64).ravel()

    def _store(self, outcome: Outcome, X: Matrix, codes: Codes) -> None:
        channel, dtype = outcome.channel, X.dtype
        outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        params = outcome.params.reshape(outputs, -1)
        scores = outcome.scores
        if scores is None or len(scores) != len(codes):  # rows of weight 0 took no part
            scores = Objective([X], codes, len(self.classes_)).scores(outcome.params)
        self.sample_loss_ = loss_of_scores(scores, codes)
        self.sample_weight_ = outcome.latent.weight(self.sample_loss_, codes)
        shift = channel.bias / channel.scale
        shift = shift[1:] - shift[:1] if outputs == 1 else shift - shift.mean()
        self.coef_ = np.ascontiguousarray(params[:, :-1], dtype=dtype)
        self.raw_intercept_ = params[:, -1].astype(dtype)
        self.intercept_ = (params[:, -1] + shift).astype(dtype)
        self.channel_ = channel.without_bias()
        self.lam_, self.path_, self.termination_ = outcome.lam, outcome.path, outcome.termination
        self.lam_by_class_ = np.broadcast_to(outcome.latent.lam, len(self.classes_)).astype(float)
        self.noise_rate_, self.noise_rate_interval_ = channel.noise_rate, channel.interval
        self.n_iter_ = np.array([outcome.n_iter], dtype=np.int32)
        self.plain_ = self._plain_model(outcome.plain.reshape(outputs, -1), dtype)
        if outcome.interrupted:
            warnings.warn(outcome.termination, ConvergenceWarning, stacklevel=4)
        elif not outcome.converged:
            warnings.warn(
                f"The fit stopped after max_iter={self.max_iter} iterations before reaching tol={self.tol}; the best "
                "model so far is kept. Scale the features or raise max_iter.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _plain_model(self, params: Vector, dtype: Any) -> LogisticRegression:
        strength = np.inf if self.penalty is None else self.C
        plain = LogisticRegression(C=strength, fit_intercept=self.fit_intercept, tol=self.tol, max_iter=self.max_iter)
        plain.classes_, plain.n_features_in_ = self.classes_, self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_
        plain.coef_ = np.ascontiguousarray(params[:, :-1], dtype=dtype)
        plain.intercept_ = params[:, -1].astype(dtype)
        plain.n_iter_ = self.n_iter_
        return plain

    # ------------------------------------------------------------------------------------------- predicting

    def decision_function(self, X: Any) -> np.ndarray:
        """Raw scores: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Most probable clean label."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each CLEAN label, calibrated on held-out noisy ones."""
        check_is_fitted(self)
        return self.channel_.proba(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of `predict_proba`."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))


def _check(name: str, value: Any, valid: bool, rule: str) -> None:
    if not valid:
        raise ValueError(f"{name} must be {rule}, got {value!r}")
