"""Logistic regression that wrong labels do not spoil."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from ..assessment import Array, Assessment, AssessmentMixin, Labels, fingerprint, piece_by_piece
from ..distributed.scratch import opened
from ..distributed.table import MemoryTable, ScoreMixin, Table, class_weighted, in_blocks, lazy_for_dask
from ..fitting import (
    CallbackSupportMixin,
    Interruptible,
    Progress,
    all_or_nothing,
    check_groups,
    check_rule,
    check_size,
    check_trusted,
    check_weight,
    interrupted_sentence,
    raise_interrupted,
    refuse_dates,
    trusting,
    with_callbacks,
)
from ..label_noise import MISFIT
from ..parameters import KINDS, check_pace, encoded_labels, known_codes, speaking_of, told_label
from ..regularizers import Regularizer, relative
from ..selection import chosen_in_words, frequencies
from ._lbfgs import minimize
from ._logistic_fit import LogisticFit, LogisticSettings, LogisticTrainer
from ._loss import Codes, Matrix, Objective, Vector, clean_shares, loss_of_scores

LITTLE_SIGNAL = 0.8  # display: share of the error of guessing above which an upper limit of the rate says nothing


class SelfPacedLogisticRegression(CallbackSupportMixin, ScoreMixin, ClassifierMixin, AssessmentMixin, BaseEstimator):
    r"""Logistic regression for data with some wrong labels: rows that it cannot explain get less weight.

    Minimises :math:`C \sum_i \phi(\lambda, \ell_i) + \frac{1}{2} \|w\|^2`, where :math:`\ell_i` is the log-loss
    (binary or multinomial) and :math:`\phi` the latent loss of a self-paced regularizer; the weight of a sample
    is its slope :math:`\partial \phi / \partial \ell`.  Alternating between weights and weighted fits ends at the
    same points; here the latent loss is minimised directly.

    Parameters
    ----------
    regularizer : str or Regularizer, default="welsch"
        Any elementwise rule of :mod:`selfpaced.regularizers`, or a loss of your own through ``from_loss``.
    pace : "auto", "paper", float or Pacing, default="auto"
        "auto" tries a few paces and the plain model, and chooses by held-out noisy labels. "paper" follows the paper's
        schedule (half the samples first, lam times 1.05) to a stage that is chosen in the same way. A number is a fixed
        lam. A :class:`~selfpaced.pacing.Pacing` is followed to its end.
    C : "auto" or float, default="auto"
        Inverse strength of the penalty.  A number means what it means in scikit-learn.  "auto" starts from
        scikit-learn's default of 1; with fewer than 25 rows per parameter it also tries 0.1 and 0.01 and chooses by
        held-out noisy labels.  With ``pace="paper"`` nothing is chosen: C is the given number, or 1 for "auto".
    penalty : "l2" or None, default="l2"
        None is no penalty.
    fit_intercept : bool, default=True
        Whether to add an unpenalised constant.
    class_weight : dict, "balanced" or None, default=None
        Weights of the given classes.
    balance : float, default=0.0
        How far `predict` favours rare classes: 0 minimises the error rate, 1 the mean error rate of the classes, by
        their estimated clean shares.  Scores and probabilities do not change.
    shift : bool or "auto", default="auto"
        Whether the intercepts follow label-error rates that differ between classes.  "auto" shifts them as far as
        held-out accuracy on the given labels does not fall and no more predictions change than the error rate can
        explain.  True shifts them fully; False does not.
    tol : float, default=1e-4
        Largest entry of the gradient, per unit of sample weight, at which a fit has converged.
    max_iter : int, default=200
        Largest number of iterations of a full fit.
    warm_start : bool, default=False
        Start full fits from the previous ones.
    random_state : int, RandomState or None, default=None
        Seed of the hash that assigns rows to folds by their content, and of the sample that decides for tables of more
        than 10,000 distinct rows.  None is a fixed seed: fits repeat.
    verbose : int, default=0
        Log a line per stage.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_, intercept_ : ndarray
        The raw, uncalibrated model, as in scikit-learn's LogisticRegression; the intercept includes the shift for
        label-error rates that differ between classes.  With ``pace="auto"`` and up to 10,000 distinct rows, it is the
        mean of the fold fits of the candidates that explain held-out labels best: wrong labels move that mean less than
        one fit to all rows.
    raw_intercept_ : ndarray
        The intercept without that shift: the one that was fitted, and that losses and weights refer to.
    sample_weight_, sample_loss_ : ndarray of shape (n_samples,)
        Weight in [0, 1] and log-loss of every training row.
    C_ : float
        The penalty of the chosen candidate.
    lam_ : float
        The pace; ``inf`` if the plain model, or an average of plain models, is used.
    lam_by_class_ : ndarray of shape (n_classes,)
        The pace of each given class: `lam_`, or more if a class is rare or hard as a whole.
    path_ : tuple of Candidate
        Every candidate: pace, held-out score (mean log-likelihood of the noisy labels; accuracy for the paper's stages)
        and its standard error, mean weight, cost.
    termination_ : str
        Which model is used and why, and what is known about wrong labels.
    noise_rate_ : float
        Estimated share of wrong labels.  It is 0 if at most 3 % can be wrong, and NaN if the interval contains 0 and is
        wider: then the labels cannot tell whether any are wrong.
    noise_rate_interval_ : tuple of float
        Its interval: 95 % under the noise model if noise is significant, else from 0 to the held-out error.
    noise_rate_if_any_ : float
        Expected share of wrong labels if any are wrong; NaN if it was not estimated.
    misfit_check_ : "linear" or "quadratic"
        Result of the misfit check.  "quadratic": a flexible reference model (squares, ranks of skewed features and,
        with few features, nearness to some rows) explains held-out labels better.  Its noise rate is used, and likely
        errors are claimed only if it expects at least 70 % of them to be wrong.  "linear": it does not, or the check
        was not needed.
    assessment_ : Assessment
        Assessment of the training rows; ``assess`` returns the same for other rows.
    clean_share_ : ndarray of shape (n_classes,)
        Estimated shares of the classes among clean labels.
    noise_model_ : NoiseModel
        The label-noise model: maps raw scores to clean probabilities and to the posterior that a given label is wrong.
    plain_ : LogisticRegression
        The plain model under the penalty `C_`.
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

    _parameter_rules = {"tol": KINDS["positive"]}

    def __init__(
        self,
        regularizer: str | Regularizer = "welsch",
        *,
        pace: Any = "auto",
        C: float | str = "auto",
        penalty: str | None = "l2",
        fit_intercept: bool = True,
        class_weight: Any = None,
        balance: float = 0.0,
        shift: bool | str = "auto",
        tol: float = 1e-4,
        max_iter: int = 200,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.regularizer = regularizer
        self.pace = pace
        self.C = C
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.balance = balance
        self.shift = shift
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---------------------------------------------------------------------------------------------- fitting

    @with_callbacks
    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, trusted: Any = None, groups: Any = None
    ) -> SelfPacedLogisticRegression:
        """Fit the model; some labels may be wrong.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features; scaling matters as for any logistic regression with a penalty.  Or a table that is not in
            memory: a :class:`~selfpaced.distributed.Table`, or a source of batches as
            :func:`selfpaced.distributed.spool` takes it.  The model is the same; ``assessment_``
            then covers a sample of the rows.
        y : array-like of shape (n_samples,), or str
            Labels, numbers or strings; for a source of batches, the name of their column.
        sample_weight : array-like of shape (n_samples,), optional
            Frequencies: weighting a row by k equals repeating it k times; 0 excludes it.  With ``C="auto"``, or without
            a penalty, a common factor changes nothing.  A given `C` has the unit of the weights, as in scikit-learn.
        trusted : array-like of bool of shape (n_samples,), optional
            Rows that a person has confirmed: they keep their full weight and are never listed as suspects.
        groups : array-like of shape (n_samples,), optional
            Rows that belong together, such as visits of a patient. A group is never split over folds, and the interval
            of the noise rate counts independent groups.

        Returns
        -------
        self

        Raises
        ------
        KeyboardInterrupt
            On Ctrl-C.  If there was a complete model by then, the estimator keeps the best one.
        """
        if in_blocks(X):
            with opened(X, y, sample_weight, labels=True, trusted=trusted, groups=groups) as table:
                return self._fit_table(table)
        refuse_dates(X)
        with speaking_of("X"):
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        check_size("X", X)
        classes, codes = encoded_labels(y)
        free = self.penalty is None or self.C == "auto"  # a given C has the unit of the weights
        given_weight = check_weight(sample_weight, len(codes), relative=free)
        if free and given_weight is not None:
            given_weight = frequencies(given_weight)
        weight = self._weights(classes, codes, given_weight)
        confirmed, known = check_trusted(trusted, len(codes)), check_groups(groups, len(codes))
        kept = slice(None) if weight is None or weight.all() else np.flatnonzero(weight)
        rows, labels = (X, codes) if isinstance(kept, slice) else (X[kept], codes[kept])
        inner = None if weight is None or np.all(weight[kept] == 1.0) else weight[kept]
        mass = np.bincount(labels, inner, minlength=len(classes))
        _check_classes(classes, mass)
        with Progress(self, X, y).running() as progress:
            table = MemoryTable(rows, labels, inner, classes=classes)
            own = None if known is None else known[kept]
            trainer = LogisticTrainer(table, len(classes), self._settings(), progress, self._previous(classes), own)
            fit, interrupted = self._run(trainer)
        if confirmed is not None:
            fit = _with_trusted(trainer, fit, confirmed[kept])
        self._keep(fit, classes, X.dtype)
        scores = Objective(X, codes, len(classes)).scores(fit.params)
        assessed = self._assessment(scores, codes, check_rule(self.regularizer), fingerprint(X, codes))
        self.assessment_ = replace(assessed, trusted=confirmed, stability=_of_all(fit.stability, weight, codes))
        self.sample_loss_, self.sample_weight_ = self.assessment_.losses, self.assessment_.weight
        clean = piece_by_piece(self.noise_model_.proba, scores + self._shift)
        self.clean_share_ = np.average(clean, axis=0, weights=weight)
        self._finish(fit, interrupted)
        return self

    def _fit_table(self, table: Table) -> SelfPacedLogisticRegression:
        """Fit a table of blocks; the assessment is kept of all rows if they fit in memory, else of a sample."""
        groups = getattr(table, "groups", None)
        with Progress(self).running() as progress:
            classes = np.asarray(table.classes)
            _check_classes(classes, table.mass)
            if self.class_weight is not None:
                table = class_weighted(table, self._factors(classes, table.mass))
            self.n_features_in_ = table.n_features
            if table.names is not None:
                self.feature_names_in_ = np.asarray(table.names, dtype=object)
            trainer = LogisticTrainer(table, len(classes), self._settings(), progress, self._previous(classes), groups)
            fit, interrupted = self._run(trainer)
            self._keep(fit, classes, table.dtype)
            rows, numbers = trainer.assessed
            seen = fingerprint(rows.X, rows.codes)
            assessed = self._assessment(rows.scores(fit.params), rows.codes, check_rule(self.regularizer), seen)
            numbers = None if numbers is None else table.numbers(numbers)
            self.assessment_ = replace(assessed, numbers=numbers, stability=fit.stability)
            share, mass = table.reduce(clean_shares, fit.params, self._shift, self.noise_model_, len(classes))
            self.clean_share_ = share / mass
        self._finish(fit, interrupted)
        return self

    @staticmethod
    def _run(trainer: LogisticTrainer) -> tuple[LogisticFit, bool]:
        """Run a fit; on Ctrl-C return the last complete one, if there is any."""
        with Interruptible() as guard:
            trainer.run()
        if trainer.best is None:
            raise KeyboardInterrupt
        return trainer.best, guard.interrupted

    def _settings(self) -> LogisticSettings:
        rule = check_rule(self.regularizer)
        state = check_random_state(0 if self.random_state is None else self.random_state)
        return LogisticSettings(
            regularizer=rule,
            pace=_wide_is_plain(check_pace(self.pace), rule),
            C=np.inf if self.penalty is None else 1.0 if self.C == "auto" else float(self.C),
            choose_penalty=self.penalty is not None and self.C == "auto",
            fit_intercept=bool(self.fit_intercept),
            tol=self.tol,
            max_iter=self.max_iter,
            seed=int(state.randint(1 << 31)),
            shift=self.shift,
        )

    def _weights(self, classes: Array, codes: Codes, weight: Vector | None) -> Vector | None:
        """Sample times class weights, or None where all are 1."""
        if self.class_weight is None:
            return weight
        factors = self._factors(classes, np.bincount(codes, weight, minlength=len(classes)))
        return np.asarray(factors[codes] if weight is None else weight * factors[codes])

    def _factors(self, classes: Array, mass: Array) -> Vector:
        """What ``class_weight`` makes of classes with these weights."""
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return np.asarray(mass.sum() / (len(mass) * np.maximum(mass, 1e-300)))
        return np.asarray(compute_class_weight(self.class_weight, classes=classes, y=classes))

    def _previous(self, classes: Array) -> Vector | None:
        plain = getattr(self, "plain_", None)
        if not self.warm_start or plain is None:
            return None
        outputs = 1 if len(classes) == 2 else len(classes)
        if plain.coef_.shape != (outputs, self.n_features_in_):
            return None
        return np.column_stack([plain.coef_, plain.intercept_]).astype(np.float64).ravel()

    def _keep(self, fit: LogisticFit, classes: Array, dtype: Any) -> None:
        """What a fit says of the model, without its rows."""
        channel, outputs = fit.channel, 1 if len(classes) == 2 else len(classes)
        params = fit.params.reshape(outputs, -1)
        shift = channel.bias / channel.scale
        shift = shift[1:] - shift[:1] if outputs == 1 else shift - shift.mean()
        self.classes_ = classes
        self.coef_ = np.ascontiguousarray(params[:, :-1], dtype=dtype)
        self.raw_intercept_ = params[:, -1].astype(dtype)
        self.intercept_ = (params[:, -1] + shift).astype(dtype)
        self.noise_model_ = channel.without_bias()
        self.C_, self.lam_, self.path_ = fit.C, fit.lam, fit.path
        self.lam_by_class_ = np.broadcast_to(fit.latent.lam, len(classes)).astype(float)
        low, high = self.noise_rate_interval_ = channel.interval
        # Below a rate that misfit alone can bring about, no noise is a sound estimate; above, none is.
        self.noise_rate_ = channel.noise_rate if low > 0 else 0.0 if high <= MISFIT else math.nan
        self.noise_rate_if_any_ = channel.rate_if_any
        self._look = fit.look
        self.misfit_check_ = "quadratic" if fit.check is not None and fit.check.better else "linear"
        self.n_iter_ = np.array([fit.n_iter], dtype=np.int32)
        self.plain_ = self._plain_model(fit.plain.reshape(outputs, -1), dtype)

    @property
    def _shift(self) -> Vector:
        return np.asarray(self.intercept_ - self.raw_intercept_)

    def _finish(self, fit: LogisticFit, interrupted: bool) -> None:
        self.termination_ = termination(fit)
        if interrupted:
            self.termination_ = interrupted_sentence(
                "the plain model" if fit.latent.plain else "the last complete model"
            )
            raise_interrupted(self)
        if not fit.converged:
            warnings.warn(
                f"The fit stopped after max_iter={self.max_iter} iterations before reaching tol={self.tol}; the best "
                "model so far is kept. Scale the features or raise max_iter.",
                ConvergenceWarning,
                stacklevel=5,  # past _finish, fit and its two decorators
            )

    def _plain_model(self, params: Vector, dtype: Any) -> LogisticRegression:
        plain = LogisticRegression(C=self.C_, fit_intercept=self.fit_intercept, tol=self.tol, max_iter=self.max_iter)
        plain.classes_, plain.n_features_in_ = self.classes_, self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_
        plain.coef_ = np.ascontiguousarray(params[:, :-1], dtype=dtype)
        plain.intercept_ = params[:, -1].astype(dtype)
        plain.n_iter_ = self.n_iter_
        return plain

    # ------------------------------------------------------------------------------------------- predicting

    @lazy_for_dask
    def decision_function(self, X: Any) -> Array:
        """Raw scores: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        check_is_fitted(self)
        with speaking_of("X"):
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return np.asarray(scores.ravel() if scores.shape[1] == 1 else scores)

    @lazy_for_dask
    def predict(self, X: Any) -> Array:
        """Return the most probable clean label, adjusted by ``balance``."""
        scores = self.decision_function(X)
        if self.balance:
            lean = self.balance * np.log(np.maximum(self.clean_share_, 1e-3)) / self.noise_model_.scale
            scores = scores - (lean[1] - lean[0] if scores.ndim == 1 else lean)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    @lazy_for_dask
    def predict_proba(self, X: Any) -> Array:
        """Probability of each CLEAN label, calibrated on held-out noisy ones."""
        check_is_fitted(self)
        return self.noise_model_.proba(self.decision_function(X))

    @lazy_for_dask
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny)))

    # --------------------------------------------------------------------------------------------- assessing

    def _assessed_rows(self, X: Any, y: Any) -> tuple[Matrix, Codes]:
        with speaking_of("X"):
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        given = column_or_1d(y)
        check_consistent_length(X, given)
        return X, known_codes(given, self.classes_)

    def _assess(self, X: Matrix, y: Codes) -> Assessment:
        params = np.column_stack([self.coef_, self.raw_intercept_]).astype(np.float64)
        scores = Objective(X, y, len(self.classes_)).scores(params.ravel())
        return self._assessment(scores, y, self.assessment_.rule)

    def _assessment(self, scores: Vector, codes: Codes, rule: Regularizer, seen: str = "") -> Assessment:
        """Rows with these raw scores: the loss before the shift and the pace of the given class, as in the fit."""
        one = bool(np.all(self.lam_by_class_ == self.lam_))
        return Assessment(
            kind="labels",
            diagnosis=Labels(self.classes_, codes, scores + self._shift, self.noise_model_),
            losses=loss_of_scores(scores, codes),
            lam=self.lam_ if one else self.lam_by_class_[codes],
            rule=rule,
            fingerprint=seen,
            look=self._look,
        )


def _check_classes(classes: Array, mass: Array) -> None:
    if classes.dtype.kind == "f" and np.any(classes != np.floor(classes)):
        fraction = float(classes[classes != np.floor(classes)][0])
        raise ValueError(f"y must hold labels, got the fraction {fraction!r}: use a regression for values")
    if (mass > 0).sum() < 2:
        raise ValueError(
            "y must have at least 2 classes among the rows of positive weight; the data contains only one class: "
            f"{told_label(classes[int(np.argmax(mass))])}"
        )


def _with_trusted(trainer: LogisticTrainer, fit: LogisticFit, trusted: Any) -> LogisticFit:
    """Refit the model with its weights, but with full weight for confirmed rows, at the size of the old scores.

    The noise model was fitted to scores of that size.
    """
    if fit.latent.plain:
        return fit
    objective = trainer.in_memory.penalised(1.0 / (fit.C * trainer.total))
    scores, own = objective.scores(fit.params), objective.sample_weight
    weight = trusting(fit.latent.weight(loss_of_scores(scores, objective.codes), objective.codes), trusted)
    objective = objective.weighted(weight if own is None else weight * own)
    tol, steps = trainer.settings.tol * trainer.unit, trainer.settings.max_iter
    found = minimize(objective, fit.params, metric=trainer.metric(fit.C), max_iter=steps, tol=tol)
    size = np.linalg.norm(objective.scores(found.x))
    return replace(fit, params=found.x * (np.linalg.norm(scores) / size if size > 0 else 1.0))


def _of_all(stability: Vector | None, weight: Vector | None, codes: Codes) -> Vector | None:
    """Of all rows, also those of weight 0, which took no part."""
    if stability is None or weight is None or len(stability) == len(codes):
        return stability
    out = np.full(len(codes), np.nan)
    out[weight > 0] = stability
    return out


def _wide_is_plain(pace: Any, rule: Regularizer) -> Any:
    """A pace at which every loss has full weight is the plain model; its latent loss would be rounding alone."""
    if isinstance(pace, float) and float(relative(rule).weight(np.array([100.0]), pace)[0]) > 1 - 1e-7:
        return np.inf
    return pace


def termination(fit: LogisticFit) -> str:
    """Return one or two sentences: which model is used and why, and what is known about wrong labels."""
    return " ".join(part for part in (_which_model(fit), _what_is_known(fit)) if part)


def _which_model(fit: LogisticFit) -> str:
    if fit.latent.plain:
        if fit.reason:
            return chosen_in_words("", fit.reason)
        if math.isnan(fit.accuracy):
            return "The plain model is used."
        if any(math.isfinite(candidate.lam) for candidate in fit.path):
            return "No reweighted model scored better; the plain model is used."
        if fit.channel.interval[0] > 0:
            return "The plain model is used: its confident predictions agree with their labels."
        return "No noise detected; the plain model is used."
    label = next((candidate for candidate in fit.path if candidate.chosen), fit.path[0]).label
    if fit.reason:
        return chosen_in_words(label, fit.reason)
    return f"Reweighted models are used ({label}): they explain held-out labels better than the plain model."


def _what_is_known(fit: LogisticFit) -> str:
    if math.isnan(fit.accuracy):
        return ""
    (low, high), channel = fit.channel.interval, fit.channel
    if low > 0:
        between = f"Estimated label-error rate {100 * channel.noise_rate:.0f} % ({_percent(low)} to {100 * high:.0f} %)"
        return between + (
            f", different between classes; this changes {100 * fit.moved:.1f} % of the predictions."
            if fit.moved
            else "."
        )
    if high <= MISFIT:
        return f"At most {100 * max(high, 0.001):.1f} % of the labels are wrong."
    by_class = f", but different rates by class change {100 * fit.moved:.1f} % of the predictions" if fit.moved else ""
    if fit.channel.suspicion is None or high >= LITTLE_SIGNAL * (1 - 1 / channel.n_classes):
        return (
            "The features do not predict the labels well enough to tell whether any are wrong "
            f"(held-out accuracy {100 * fit.accuracy:.0f} %){by_class}."
        )
    about = f" (about {_percent(channel.rate_if_any)} if any are)" if channel.rate_if_any >= 0.001 else ""
    return (
        f"Between 0 and {100 * high:.0f} % of the labels may be wrong{about}; these labels cannot tell whether any "
        f"are{by_class}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.01 else f"{100 * share:.0f} %"
