"""Any classifier, wrapped so that wrong labels do not spoil it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..label_noise import NoiseChannel
from ..pacing import Pacing
from ..regularizers import GroupRegularizer, Regularizer, get, relative
from .choice import Outcome, run
from .common import (
    MetaMixin,
    Progress,
    check_weight,
    make_folds,
    n_rows,
    route_fit_params,
    seeded,
    weight_route,
    with_callbacks,
)
from .outputs import as_logits, output_kind, read_output
from .problem import ClassifierProblem
from .routing import WeightRoute, fit_weighted

__all__ = ["SelfPacedClassifier"]

MIN_ROWS = 40


def _has(*names: str) -> Callable[[Any], bool]:
    """Available where the wrapped model (fitted, if there is one) has one of these methods."""

    def check(self: Any) -> bool:
        model = getattr(self, "estimator_", self.estimator)
        return any(hasattr(model, name) for name in names)

    return check


class SelfPacedClassifier(MetaMixin, ClassifierMixin, BaseEstimator):
    r"""Wrap any classifier so that rows whose labels it cannot explain lose their weight.

    A plain model is fitted first. Its predictions of rows it has not seen give every given label a probability
    :math:`p_{i y_i}` of being the clean one (a noise channel calibrates them), a loss
    :math:`\ell_i = \log(1 + \max_{j \ne y_i} p_{ij} / p_{i y_i})` and the weight
    :math:`v_i = \partial\phi(\lambda, \ell_i) / \partial\ell_i` of a self-paced regularizer; the model is then
    fitted again with these weights. Whether that was an improvement is decided on the noisy labels of unseen
    rows, and the plain model is kept unless it is beaten.

    Parameters
    ----------
    estimator : classifier
        Anything with scikit-learn's ``fit`` and ``predict``, Pipelines included. Weights are passed to
        ``sample_weight``, inside a Pipeline to that of its last step; where there is none, rows are selected
        (and ``termination_`` says so).
    regularizer : str or Regularizer, default="hard"
        Any elementwise rule of :mod:`selfpaced.regularizers`.
    pace : "auto", "paper", float or Pacing, default="auto"
        "auto" takes a label in while it is at least as probable as its strongest rival; "paper" follows the paper's
        schedule (half the samples first, lam times 1.05) to a stage chosen on unseen rows, at the price of one round
        of fits per stage; a number is a fixed lam; a :class:`~selfpaced.pacing.Pacing` is followed to its end.
    cross_fit : "auto" or bool, default="auto"
        Whether losses come from models that have not seen the row. "auto" cross-fits where the plain model is
        clearly better on the rows it has seen (it memorises wrong labels), and takes in-sample losses else.
    cv : "auto", int, splitter or iterable, default="auto"
        Folds of a cross-fit. "auto" halves the rows and averages the predictions over four halvings (two
        above 5,000 rows, one above 20,000): against label noise, the average of several half-trained models is a
        better witness than one model of more rows, at the same cost.
    random_state : int, RandomState or None, default=None
        Deals out the folds, and seeds the wrapped models where they have no seed of their own. None deals folds in
        the same way every time and leaves the models alone.
    n_jobs : int or None, default=None
        Folds fitted at the same time.
    verbose : int, default=0
        Log a line per round.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimator_ : classifier
        The chosen model, fitted on all rows with ``sample_weight_``.
    plain_ : classifier
        The plain model; the same object as ``estimator_`` where it was chosen.
    sample_weight_, sample_loss_ : ndarray of shape (n_samples,)
        Weight in [0, 1] and loss of every training row.
    sample_proba_ : ndarray of shape (n_samples, n_classes)
        Calibrated probabilities of the clean label of every training row, by models not fitted on it.
    sample_noise_ : ndarray of shape (n_samples,)
        Probability that the given label of a training row is wrong.
    training_codes_ : ndarray of shape (n_samples,)
        Given labels as positions in ``classes_``: by them :func:`selfpaced.suspects` knows the training rows.
    lam_ : float
        The pace; ``inf`` where the plain model was chosen.
    path_ : tuple of Candidate
        Every candidate: pace, score on unseen rows with its standard error, mean weight, cost.
    termination_ : str
        What was chosen, and why.
    noise_rate_, noise_rate_interval_ : float, tuple of float
        Estimated share of wrong labels, and its 95 % interval under the channel model.
    channel_ : NoiseChannel
        Maps raw scores to clean probabilities.
    n_features_in_, feature_names_in_
        Of the wrapped model.

    References
    ----------
    Fan, He, Liang, Hu. Self-paced learning: an implicit regularization perspective. AAAI 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from selfpaced import SelfPacedClassifier
    >>> X, y = make_moons(400, noise=0.15, random_state=0)
    >>> noisy = np.where(np.random.default_rng(0).random(400) < 0.2, 1 - y, y)
    >>> model = SelfPacedClassifier(DecisionTreeClassifier(random_state=0)).fit(X, noisy)
    >>> bool(model.score(X, y) > 0.9 > 0.85 > model.plain_.score(X, y))
    True
    """

    def __init__(
        self,
        estimator: Any,
        regularizer: str | Regularizer = "hard",
        *,
        pace: Any = "auto",
        cross_fit: bool | str = "auto",
        cv: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.regularizer = regularizer
        self.pace = pace
        self.cross_fit = cross_fit
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---------------------------------------------------------------------------------------------- fitting

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any
    ) -> SelfPacedClassifier:
        """Fit to labels some of which may be wrong.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Given to the wrapped model as it is.
        y : array-like of shape (n_samples,)
            Labels, numbers or strings.
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
        if y is None:
            raise ValueError("This SelfPacedClassifier estimator requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        route = weight_route(self.estimator)
        prior = check_weight(sample_weight, n_rows(X), route)
        template = seeded(self.estimator, self.random_state)
        params = route_fit_params(self, fit_params)
        with Progress(self, X, y).running() as progress:
            with progress.stage("plain fit"):
                y_seen = self._plain_fit(template, X, y, prior, route, params)
            problem = self._problem(template, X, y_seen, prior, route, params, groups, progress)
            outcome = run(problem, rule, self.pace, self.cross_fit, self.plain_)
        self._store(outcome, problem)
        return self

    def _checked_rule(self) -> Any:
        rule = get(self.regularizer)
        if isinstance(rule, GroupRegularizer):
            raise ValueError(f"regularizer must be an elementwise rule; {rule.name!r} needs groups of samples")
        number = isinstance(self.pace, Real) and not isinstance(self.pace, bool) and self.pace > 0
        if not (
            number or isinstance(self.pace, Pacing) or (isinstance(self.pace, str) and self.pace in ("auto", "paper"))
        ):
            raise ValueError(f"pace must be 'auto', 'paper', a positive number or a Pacing; got {self.pace!r}.")
        if self.cross_fit not in (True, False, "auto"):
            raise ValueError(f"cross_fit must be True, False or 'auto'; got {self.cross_fit!r}.")
        return relative(rule)

    def _plain_fit(
        self, template: Any, X: Any, y: np.ndarray, prior: Any, route: WeightRoute, params: dict[str, Any]
    ) -> np.ndarray:
        """Fit the plain model; returns the labels as the wrapped model wants them."""
        self.classes_, self.training_codes_ = np.unique(y, return_inverse=True)
        try:
            self.plain_ = fit_weighted(template, X, y, prior, route, counts=prior, fit_params=params)
        except ValueError:
            # some libraries only take the labels 0 .. n_classes - 1: encode for them, else keep the first error
            if np.array_equal(self.classes_, np.arange(self.classes_.size)):
                raise
            try:
                self.plain_ = fit_weighted(
                    template, X, self.training_codes_, prior, route, counts=prior, fit_params=params
                )
            except Exception:
                self.plain_ = None
            if self.plain_ is None:
                raise
            return self.training_codes_
        return y

    def _problem(
        self, template: Any, X: Any, y: np.ndarray, prior: Any, route: WeightRoute, params: dict[str, Any],
        groups: Any, progress: Progress,
    ) -> ClassifierProblem:  # fmt: skip
        self._encoded = y is self.training_codes_
        kind = output_kind(self.plain_)
        labels = np.arange(self.classes_.size) if self._encoded else self.classes_
        return ClassifierProblem(
            estimator=template, X=X, y=y, codes=self.training_codes_, labels=labels, kind=kind, route=route,
            repeats=self._repeats(X, y, prior, groups), prior=prior, fit_params=params, n_jobs=self.n_jobs,
            progress=progress, balanced=isinstance(self.pace, str) and self.pace == "auto",
        )  # fmt: skip

    def _repeats(self, X: Any, y: np.ndarray, prior: Any, groups: Any) -> list[Any]:
        n = n_rows(X)
        if n < MIN_ROWS or self.classes_.size < 2:
            return []
        strata = self.training_codes_ if prior is None else self.training_codes_ + self.classes_.size * (prior == 0.0)
        rng = check_random_state(0 if self.random_state is None else self.random_state)
        if not (isinstance(self.cv, str) and self.cv == "auto"):
            return [make_folds(X, strata, cv=self.cv, groups=groups, random_state=rng, y=y)]
        repeats = 4 if n <= 5_000 else 2 if n <= 20_000 else 1
        return [make_folds(X, strata, cv=2, groups=groups, random_state=rng, y=y) for _ in range(repeats)]

    def _store(self, outcome: Outcome, problem: ClassifierProblem) -> None:
        self.lam_, self.path_, self.termination_ = outcome.lam, outcome.path, outcome.termination
        self.estimator_ = self.plain_ if outcome.model is None else outcome.model
        self.sample_weight_, self.sample_loss_ = outcome.weight, outcome.losses
        self.channel_: NoiseChannel = outcome.channel
        self.noise_rate_, self.noise_rate_interval_ = outcome.rate, outcome.interval
        self.sample_proba_ = outcome.proba
        self.sample_noise_ = outcome.noise
        self._kind = problem.kind
        if outcome.interrupted:
            warnings.warn(outcome.termination, ConvergenceWarning, stacklevel=4)

    # ------------------------------------------------------------------------------------------- predicting

    @available_if(_has("predict"))
    def predict(self, X: Any) -> np.ndarray:
        """Most probable clean label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "estimator_")
        found = np.asarray(self.estimator_.predict(X))
        return self.classes_[found.astype(np.intp)] if self._encoded else found

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Raw scores of the chosen model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.decision_function(X)

    @available_if(_has("predict_proba", "decision_function"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each CLEAN label: the model's scores at the scale that unseen noisy labels support.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        raw = self._read(X)
        if self._kind == "predict_proba" and self.channel_.scale == 1.0:
            return raw
        return self.channel_.proba(as_logits(raw, self._kind)).astype(raw.dtype, copy=False)

    @available_if(_has("predict_proba", "decision_function"))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def clean_logits(self, X: Any) -> np.ndarray:
        """What ``channel_`` takes: the chosen model's logits, one column per class, whatever methods it has.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        return as_logits(self._read(X), self._kind)

    def _read(self, X: Any) -> np.ndarray:
        labels = np.arange(self.classes_.size) if self._encoded else self.classes_
        return read_output(self.estimator_, X, kind=self._kind, labels=labels)
