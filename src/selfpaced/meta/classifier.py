"""Any classifier, wrapped so that wrong labels do not spoil it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..arguments import speaking_of
from ..fitting import Progress, all_or_nothing, check_rule, check_trusted, warn_interrupted, with_callbacks
from ..folds import Split, make_folds, n_units, row_keys
from ..judgement import Judgement, Judging, Labels, fingerprint
from ..label_noise import NoiseChannel
from ..pacing import check_pace
from ..parameters import KINDS
from ..path import Candidate
from ..regularizers import Regularizer, relative
from ..selection import path_of
from .label_path import LabelFit, run
from .labels import Array, ClassifierProblem
from .outputs import as_logits, output_kind, read_output, rival_loss
from .routing import available_with, fit_weighted, n_rows, routed_weight, weight_route
from .wrapping import MetaMixin, route_fit_params, seeded

__all__ = ["SelfPacedClassifier"]

MIN_ROWS = 40  # a choice: below, a fold is too small to judge by


class SelfPacedClassifier(Judging, MetaMixin, ClassifierMixin, BaseEstimator):
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
    judgement_ : Judgement
        All of this in one object, as :func:`selfpaced.suspects` reads it; ``judge(X, y)`` gives it for any rows.
    lam_ : float
        The pace; ``inf`` where the plain model was chosen.
    class_unit_ : ndarray of shape (n_classes,)
        The unit in which the losses of each class were weighed.
    path_ : tuple of Candidate
        Every candidate: pace, the score on unseen rows by which it was compared (``nan`` where it was not) with its
        standard error, mean weight, cost.
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

    _parameter_rules = {"estimator": KINDS["classifier"], "cv": KINDS["cv or auto"]}

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
    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        trusted: Any = None,
        **fit_params: Any,
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
        given = _given(y)
        route = weight_route(self.estimator)
        prior = routed_weight(sample_weight, n_rows(X), route)
        confirmed = check_trusted(trusted, n_rows(X))
        template, params = seeded(self.estimator, self.random_state), route_fit_params(self, fit_params)
        # taken before the fit, which may change X in place
        mark = fingerprint(X, given.codes)

        def plain_fit(labels: Array) -> Any:
            return fit_weighted(template, X, labels, prior, route, counts=prior, fit_params=params)

        with Progress(self, X, y).running() as progress:
            with progress.stage("plain fit"):
                model, encoded = _plain_fit(plain_fit, given)
            seen = given.codes if encoded else given.y
            problem = ClassifierProblem(
                estimator=template, X=X, y=seen, codes=given.codes,
                labels=np.arange(given.classes.size) if encoded else given.classes, kind=output_kind(model),
                route=route, repeats=self._repeats(X, seen, given, prior, groups), prior=prior, fit_params=params,
                n_jobs=self.n_jobs, progress=progress, balanced=pace == "auto", trusted=confirmed,
            )  # fmt: skip
            found = run(problem, rule, pace, self.cross_fit, model)
        self._store(found, problem, given, model, rule, mark)
        return self

    def _repeats(self, X: Any, y: Array, given: GivenLabels, prior: Any, groups: Any) -> list[list[Split]]:
        keys, k = row_keys(X), given.classes.size
        unused = None if prior is None else prior == 0.0
        n = n_units(keys, unused)
        if n < MIN_ROWS or k < 2:
            return []
        strata = given.codes if unused is None else given.codes + k * unused
        rng = check_random_state(0 if self.random_state is None else self.random_state)
        automatic = isinstance(self.cv, str) and self.cv == "auto"
        cv, repeats = (2, 4 if n <= 5_000 else 2 if n <= 20_000 else 1) if automatic else (self.cv, 1)
        found = [make_folds(keys, strata, cv=cv, groups=groups, random_state=rng, X=X, y=y) for _ in range(repeats)]
        return [folds for folds in found if folds]  # none where every class has one row alone

    def _store(
        self, found: LabelFit, problem: ClassifierProblem, given: GivenLabels, model: Any, rule: Regularizer, mark: str
    ) -> None:
        kept, reading = found.kept, found.kept.fit
        units = np.ones(given.classes.size) if kept.plain else problem.class_units(reading.losses)
        opinion = Labels(given.classes, given.codes, reading.clean, found.judge)
        losses = reading.losses / units[given.codes]
        judgement = Judgement("labels", opinion, losses, kept.lam, rule, mark, held_out=found.cross)
        judgement = replace(judgement, trusted=problem.trusted)
        path, proba, wrong = path_of(found.trials, found.decision, problem.prior), opinion.proba, judgement.wrong
        self.classes_ = given.classes
        self.plain_ = model
        self.estimator_ = model if found.model is None else found.model
        self.judgement_, self.class_unit_ = judgement, units
        self.lam_: float = kept.lam
        self.sample_weight_, self.sample_loss_ = kept.weight, reading.losses
        self.sample_proba_, self.sample_noise_ = proba, wrong
        self.channel_: NoiseChannel = found.channel
        self.noise_rate_, self.noise_rate_interval_ = found.judge.noise_rate, found.judge.interval
        self.path_: tuple[Candidate, ...] = path
        self.termination_ = found.termination
        self._kind, self._encoded = problem.kind, problem.y is given.codes
        if found.interrupted:
            warn_interrupted(self.termination_)

    # -------------------------------------------------------------------------------------------- judging rows

    def _judged_rows(self, X: Any, y: Any) -> tuple[Any, Array]:
        X, y = indexable(X, y)
        if y is None:
            raise ValueError("y must hold the labels to be judged, got None")
        with speaking_of("y", "labels, one for each row"):
            return X, _codes(column_or_1d(y), self.classes_)

    def _judge(self, X: Any, y: Array) -> Judgement:
        logits = self.clean_logits(X)
        losses = rival_loss(self.channel_.proba(logits), y) / self.class_unit_[y]
        opinion = Labels(self.classes_, y, logits, self.channel_)
        return Judgement("labels", opinion, losses, self.lam_, self.judgement_.rule)

    # ------------------------------------------------------------------------------------------- predicting

    @available_with("predict")
    def predict(self, X: Any) -> Array:
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

    @available_with("decision_function")
    def decision_function(self, X: Any) -> Array:
        """Raw scores of the chosen model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.decision_function(X))

    @available_with("predict_proba", "decision_function")
    def predict_proba(self, X: Any) -> Array:
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

    @available_with("predict_proba", "decision_function")
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def clean_logits(self, X: Any) -> Array:
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

    def _read(self, X: Any) -> Array:
        labels = np.arange(self.classes_.size) if self._encoded else self.classes_
        return read_output(self.estimator_, X, kind=self._kind, labels=labels)


@dataclass(frozen=True, eq=False)
class GivenLabels:
    """Labels as given, the distinct ones, and the place of each among them."""

    y: Array
    classes: Array
    codes: NDArray[np.intp]


def _given(y: Any) -> GivenLabels:
    if y is None:
        raise ValueError("This SelfPacedClassifier estimator requires y to be passed, but the target y is None.")
    with speaking_of("y", "labels, one for each row"):
        y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return GivenLabels(y, classes, codes)


def _codes(given: Array, classes: Array) -> Array:
    """Labels as positions in ``classes``."""
    codes = np.searchsorted(classes, given)
    known = codes < classes.size
    known[known] = classes[codes[known]] == given[known]
    if not known.all():
        raise ValueError(f"y must hold labels seen in fit {classes.tolist()!r}, got {given[~known][0]!r}")
    return np.asarray(codes)


def _plain_fit(fit: Callable[[Array], Any], given: GivenLabels) -> tuple[Any, bool]:
    """The plain model, and whether it was given codes instead of labels."""
    try:
        return fit(given.y), False
    except ValueError:
        # some libraries only take the labels 0 .. n_classes - 1: encode for them, else keep the first error
        if not np.array_equal(given.classes, np.arange(given.classes.size)):
            with suppress(Exception):
                return fit(given.codes), True
        raise
