"""Exclude suspects, or reduce their weight, before another estimator is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..assessment import DelegatedAssessment
from ..fitting import all_or_nothing
from ..inspection import assessment_of
from ..parameters import KINDS
from ._routing import Delegating, available_with, fit_weighted, n_rows, routed_weight, take_rows, weight_route

__all__ = ["SuspectFilter"]


class SuspectFilter(Delegating, DelegatedAssessment, MetaEstimatorMixin, BaseEstimator):
    """Fit an estimator without the rows that a self-paced detector suspects.

    The detector and the estimator may be different models (a fast detector, a slow estimator). Steps of scikit-learn's
    Pipeline cannot drop rows, so this is an estimator, usable as the last step of one. Without an estimator it is a
    sampler: ``fit_resample`` returns the rows that are left, and imbalanced-learn's Pipeline takes it as a step.

    Parameters
    ----------
    detector : self-paced classifier or regressor
        Cloned and fitted first; any that :func:`selfpaced.suspects` takes.
    estimator : estimator or None, default=None
        Fitted to the rows that are left; None: only ``fit_resample`` is available.
    how : {"drop", "weight"}, default="drop"
        Drop the likely errors, or weight every row by its probability of being right.
    threshold : float, default=0.5
        Probability of being wrong above which a row is a likely error.

    Attributes
    ----------
    detector_, estimator_ : estimators
        Fitted.
    noise_probability_ : ndarray of shape (n_samples,)
        Probability that a training row's label or value is wrong.
    kept_ : ndarray of bool of shape (n_samples,)
        Rows that are no likely errors.
    sample_indices_ : ndarray of int
        Their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from selfpaced import SelfPacedLogisticRegression, SuspectFilter
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> noisy = np.where(rng.random(600) < 0.2, 1 - y, y)
    >>> model = SuspectFilter(SelfPacedLogisticRegression(), DecisionTreeClassifier(random_state=0)).fit(X, noisy)
    >>> bool(model.score(X, y) > 0.95 > DecisionTreeClassifier(random_state=0).fit(X, noisy).score(X, y))
    True
    >>> X_left, y_left = SuspectFilter(SelfPacedLogisticRegression()).fit_resample(X, noisy)
    >>> bool(450 < len(y_left) < 510)
    True
    """

    _parameter_rules = {"estimator": KINDS["estimator or None"]}

    def __init__(self, detector: Any, estimator: Any = None, *, how: str = "drop", threshold: float = 0.5) -> None:
        self.detector = detector
        self.estimator = estimator
        self.how = how
        self.threshold = threshold

    @property
    def _base(self) -> Any:
        return self.estimator

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, trusted: Any = None) -> SuspectFilter:
        """Fit the detector, then the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            For both.
        trusted : array-like of bool of shape (n_samples,), optional
            Rows that a person has confirmed: none of them is left out.

        Returns
        -------
        self
        """
        if self.estimator is None:
            raise ValueError("estimator must be given to fit, got None: use fit_resample to get the rows that are left")
        route = weight_route(self.estimator)
        if self.how == "weight" and not route.takes_weights:
            raise ValueError(f"how='weight' needs an estimator that takes weights, but {route.reason}; use how='drop'.")
        prior = routed_weight(sample_weight, n_rows(X), route)
        self._detect(X, y, prior, trusted)
        weight = self.kept_.astype(float) if self.how == "drop" else 1.0 - self.noise_probability_
        total = weight if prior is None else weight * prior
        self.estimator_ = fit_weighted(self.estimator, X, np.asarray(y), total, route, counts=prior)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    @all_or_nothing
    def _detect(self, X: Any, y: Any, prior: Any = None, trusted: Any = None) -> SuspectFilter:
        """Fit the detector and store which rows it suspects."""
        given = {} if prior is None else {"sample_weight": prior}
        if trusted is not None:
            given["trusted"] = trusted
        self.detector_ = clone(self.detector).fit(X, y, **given)
        assessed = assessment_of(self.detector_, X, y)
        self.noise_probability_ = np.asarray(assessed.wrong, dtype=float)
        self.kept_ = assessed.levels(self.threshold) < 2
        self.sample_indices_ = np.flatnonzero(self.kept_)
        return self

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Fit the detector and return the rows that are no likely errors, as samplers of imbalanced-learn do.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        X, y
            The rows that are left, in their own types.
        """
        self._detect(X, y)
        return take_rows(X, self.sample_indices_), take_rows(y, self.sample_indices_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.detector if self.estimator is None else self.estimator)
        tags.estimator_type, tags.input_tags = inner.estimator_type, inner.input_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        return tags

    @available_with("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities of the estimator."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(X))

    @available_with("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values of the estimator."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.decision_function(X))

    @available_with("score")
    def score(self, X: Any, y: Any, **params: Any) -> float:
        """Return the score of the estimator."""
        check_is_fitted(self, "estimator_")
        return float(self.estimator_.score(X, y, **params))
