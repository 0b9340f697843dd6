"""A wrapper that makes any classifier robust against wrong labels."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils import column_or_1d, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..assessment import UNLIKELY, Assessment, Labels, look_by_share
from ..parameters import KINDS, check_label_array, check_pace, known_codes, speaking_of
from ..regularizers import Regularizer
from ._default_labels import fit_default_labels
from ._paced import fit_paced_labels
from ._routing import Array, available_with
from ._soft_labels import as_logits, confirmed, output_kind, read_output, rival_loss
from ._wrapper import Found, Task, Wrapper

__all__ = ["SelfPacedClassifier"]


class SelfPacedClassifier(ClassifierMixin, Wrapper):
    r"""Wrap any classifier so that wrong labels do not spoil it.

    A model that memorises cannot tell which of its labels are wrong. By default, therefore, reference models predict
    every row from other rows: a forest on halves of the rows, and a ridge logistic regression. A label-noise model
    turns their predictions into the probability :math:`q_{ij}` that class :math:`j` is the true label of row :math:`i`.
    The wrapped model is then fitted once, to these soft labels: each row is repeated for every label that it may have,
    with the weight :math:`q_{ij}`. If no noise is detected and reference models predict nearly all labels, the plain
    model is kept.

    If ``pace``, ``regularizer`` or ``cross_fit`` is set, the algorithm of the paper runs instead: the model's losses
    :math:`\ell_i = \log(1 + \max_{j \ne y_i} p_{ij} / p_{i y_i})` give the weights
    :math:`v_i = \partial\phi(\lambda, \ell_i) / \partial\ell_i`, and the model is fitted again with these.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Anything with scikit-learn's ``fit`` and ``predict``, Pipelines included; None is
        :class:`~sklearn.ensemble.HistGradientBoostingClassifier`. Weights are passed to ``sample_weight``, in a
        Pipeline to that of its last step. Without ``sample_weight``, the mean of a few models with drawn labels is used
        (with a pace, rows are selected). If the estimator holds rows out by itself (inner cross-validation, early
        stopping), rows keep their given label and are weighted by its probability. ``termination_`` says so.
    regularizer : "auto", str or Regularizer, default="auto"
        Any elementwise rule of :mod:`selfpaced.regularizers` weights rows by the model's own losses. "auto" is "hard"
        if a pace is given, else soft labels.
    pace : "auto", "paper", float or Pacing, default="auto"
        "auto" fits soft labels or, if a rule is given, includes a label while it is at least as probable as its
        strongest rival. "paper" follows the paper's schedule (half the samples first, lam times 1.05) to a stage chosen
        on unseen rows; each stage costs one round of fits. A number is a fixed lam. A
        :class:`~selfpaced.pacing.Pacing` is followed to its end.
    reference_models : "auto", "self", classifier or list of those, default="auto"
        The models that predict the labels. "auto" reads X as a table of numbers (missing values, categories and dates
        included; a wide sparse one is for the logistic regression alone), and uses the model itself if X is no such
        table. "self" is the model itself; classifiers of your own are fitted on folds.
    tune : bool, default=True
        Whether a known model (LightGBM, histogram boosting, forests) is regularised more, on up to 2,000 rows. Only
        parameters that are at their defaults are changed; ``tuned_params_`` and ``termination_`` name them.
    cross_fit : "auto" or bool, default="auto"
        With a pace: whether the model's own losses come from models that have not seen the row. "auto" cross-fits if
        the plain model is clearly better on the rows it has seen, because it then memorises wrong labels.
    cv : "auto", int, splitter or iterable, default="auto"
        How rows are held out. "auto" uses halves for trees and for the model itself, and five folds for other models.
        Folds follow from the content of the rows.
    keep_plain : bool, default=False
        Also fit the plain model and keep it as ``plain_``: one more fit.
    random_state : int, RandomState or None, default=None
        Seed of splits, reference models, and wrapped models without a seed of their own. None is a fixed seed: a fit
        repeats exactly.
    n_jobs : int or None, default=None
        Folds or trees fitted at the same time.
    verbose : int, default=0
        Log a line per stage. Callbacks of scikit-learn (``set_callbacks``) are told about every stage, too.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimator_ : classifier
        The chosen model, fitted on all rows.
    plain_ : classifier
        The plain model; the same object as ``estimator_`` if it was chosen. After a fit to soft labels, only with
        ``keep_plain``.
    sample_posterior_ : ndarray of shape (n_samples, n_classes)
        Probability of each true label of every training row, given its label and the doubt that there is any noise.
    sample_weight_, sample_loss_ : ndarray of shape (n_samples,)
        Weight in [0, 1] (for soft labels: that of the given one) and loss of every training row.
    sample_proba_ : ndarray of shape (n_samples, n_classes)
        Probability of each clean label of every training row, by models not fitted on it.
    sample_noise_ : ndarray of shape (n_samples,)
        Probability that the given label of a training row is wrong.
    assessment_ : Assessment
        All of this in one object, as :func:`selfpaced.suspects` reads it; ``assess(X, y)`` gives it for any rows.
    labelled_ : ndarray of bool of shape (n_samples,) or None
        If labels were missing: the rows that had one. Row numbers of the other attributes count these.
    reference_weights_ : dict of str to float
        The weight of each reference model; empty if there are none.
    tuned_params_ : dict
        Parameters of the wrapped model that were changed, see ``tune``.
    lam_ : float
        The pace; for soft labels the loss at which a label is as probably wrong as right; ``inf`` for the plain model.
    path_ : tuple of Candidate
        Every candidate: pace, score on unseen rows (``nan`` if there is none) with its standard error, mean weight,
        cost. Soft labels are not compared by a score.
    termination_ : str
        What was chosen, and why.
    noise_rate_, noise_rate_interval_ : float, tuple of float
        Estimated share of wrong labels, and its 95 % interval under the noise model. NaN if it cannot be estimated:
        there are too few rows, or nothing predicts the labels.
    noise_model_ : NoiseModel
        Maps raw scores to clean probabilities.
    n_features_in_, feature_names_in_
        As in the wrapped model.

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
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> bool(SelfPacedClassifier(tree).fit(X, noisy).score(X, y) > 0.9 > 0.85 > tree.fit(X, noisy).score(X, y))
    True
    """

    _default_estimator = HistGradientBoostingClassifier
    _parameter_rules = {**Wrapper._parameter_rules, "estimator": KINDS["classifier or None"]}

    def __init__(
        self,
        estimator: Any = None,
        regularizer: str | Regularizer = "auto",
        *,
        pace: Any = "auto",
        reference_models: Any = "auto",
        tune: bool = True,
        cross_fit: bool | str = "auto",
        cv: Any = "auto",
        keep_plain: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.regularizer = regularizer
        self.pace = pace
        self.reference_models = reference_models
        self.tune = tune
        self.cross_fit = cross_fit
        self.cv = cv
        self.keep_plain = keep_plain
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self._base).classifier_tags
        if inner is not None:  # here, because the tags of ClassifierMixin replace those of the wrapper
            tags.classifier_tags = replace(inner, multi_label=False)
        return tags

    def _checked_target(self, y: Any) -> tuple[Array, Array | None]:
        if y is None:
            raise ValueError("This SelfPacedClassifier estimator requires y to be passed, but the target y is None.")
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            raise ValueError(
                f"y must have one column, got shape {np.shape(y)}: fit one model per target "
                "(sklearn.multioutput.MultiOutputClassifier does)"
            )
        with speaking_of("y", "labels, one for each row"):
            y = column_or_1d(y, warn=True)
        known = np.ones(len(y), dtype=bool)
        if y.dtype.kind in "fO":
            known = np.array([value is not None and value == value for value in y], dtype=bool)
        if not known.any():
            raise ValueError(f"y must hold at least one label, got {len(y)} rows without one")
        if not known.all():
            y = y[known] if y.dtype.kind != "O" else np.array(y[known].tolist())
        if y.dtype.kind == "f" and np.isinf(y).any():
            raise ValueError("y must hold finite labels, got infinity. Input y contains infinity or a value too large.")
        check_label_array(y)
        check_classification_targets(y)
        return y, None if known.all() else known

    def _fit(self, task: Task) -> Found:
        if not self._has_pace:
            return fit_default_labels(task, self.reference_models, tune=self.tune, keep_plain=self.keep_plain)
        if self.reference_models != "auto":
            raise ValueError(
                "reference_models must be 'auto' if pace, regularizer or cross_fit are given, because the model then "
                f"weighs rows by its own losses, got {self.reference_models!r}"
            )
        return fit_paced_labels(task, self._rule, check_pace(self.pace), self.cross_fit)

    def _store(self, found: Found, task: Task, mark: str) -> None:
        chosen, reading, codes = found.chosen, found.chosen.fit, task.codes
        self.classes_ = np.asarray(task.classes)
        rule = self._rule if self._has_pace else None
        diagnosis = Labels(self.classes_, codes, reading.clean, found.reference)
        self.assessment_ = Assessment(
            "labels", diagnosis, reading.losses, chosen.lam, rule, mark,
            held_out=found.cross, given_weight=chosen.weight if rule is None and not chosen.plain else None,
            trusted=task.trusted, look=look_by_share(diagnosis.evidence, float(np.mean(diagnosis.support < UNLIKELY))),
        )  # fmt: skip
        self.reference_weights_, self.sample_loss_ = dict(found.weights), reading.losses
        self.sample_proba_, self.sample_noise_ = diagnosis.proba, self.assessment_.wrong
        self.sample_posterior_ = confirmed(task, found.reference.posterior(reading.clean, codes))
        self.noise_model_, self.noise_rate_interval_ = found.noise, found.reference.interval
        # an interval that excludes nothing is no estimate
        self.noise_rate_ = math.nan if self.noise_rate_interval_ == (0.0, 1.0) else found.reference.noise_rate
        self._kind = output_kind(found.model)
        self._encoded = not np.array_equal(np.asarray(found.labels), self.classes_)

    # -------------------------------------------------------------------------------------------- assessing rows

    def _assessed_rows(self, X: Any, y: Any) -> tuple[Any, Array]:
        X, y = indexable(X, y)
        if y is None:
            raise ValueError("y must hold the labels to be assessed, got None")
        with speaking_of("y", "labels, one for each row"):
            return X, known_codes(column_or_1d(y), self.classes_)

    def _assess(self, X: Any, y: Array) -> Assessment:
        logits = self.clean_logits(X)
        losses = rival_loss(self.noise_model_.proba(logits), y)
        diagnosis, rule = Labels(self.classes_, y, logits, self.noise_model_), self.assessment_.rule
        weight = None if rule is not None or np.isinf(self.lam_) else 1.0 - diagnosis.wrong
        look = self.assessment_.look
        return Assessment("labels", diagnosis, losses, self.lam_, rule, given_weight=weight, look=look)

    # ------------------------------------------------------------------------------------------- predicting

    def _named(self, predicted: Array) -> Array:
        return self.classes_[predicted.astype(np.intp)] if self._encoded else predicted

    @available_with("decision_function")
    def decision_function(self, X: Any) -> Array:
        """Return the raw scores of the chosen model for every row."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.decision_function(X))

    @available_with("predict_proba", "decision_function")
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each CLEAN label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        raw = self._read(X)
        if self._kind == "predict_proba" and self.noise_model_.scale == 1.0:
            return raw
        return np.asarray(self.noise_model_.proba(as_logits(raw, self._kind)), dtype=raw.dtype)

    @available_with("predict_proba", "decision_function")
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def clean_logits(self, X: Any) -> Array:
        """Return the input of ``noise_model_``: the chosen model's logits, one column per class."""
        check_is_fitted(self, "estimator_")
        return as_logits(self._read(X), self._kind)

    def _read(self, X: Any) -> Array:
        labels = np.arange(self.classes_.size) if self._encoded else self.classes_
        return read_output(self.estimator_, X, kind=self._kind, labels=labels)
