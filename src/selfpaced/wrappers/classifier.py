"""Any classifier, wrapped so that wrong labels do not spoil it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, column_or_1d, indexable
from sklearn.utils.validation import check_is_fitted

from ..arguments import speaking_of
from ..assessment import Assessment, AssessmentMixin, Labels, fingerprint, look_by_share
from ..fitting import (
    Progress,
    all_or_nothing,
    check_rule,
    check_trusted,
    few_threads,
    raise_interrupted,
    with_callbacks,
)
from ..folds import Split, make_folds, n_units, row_keys
from ..label_noise import NoiseModel
from ..pacing import check_pace
from ..parameters import KINDS
from ..path import Candidate
from ..regularizers import Regularizer, relative
from ..selection import path_of
from .given import GivenLabels, codes_of, given_labels
from .label_path import LabelFit, run
from .labels import Array, ClassifierProblem
from .outputs import as_logits, output_kind, read_output, rival_loss
from .routing import available_with, n_rows, routed_weight, weight_route
from .soft_labels import Fitted, SoftFit
from .soft_path import MIN_ROWS, SoftProblem, run_soft
from .wrapping import WrapperMixin, route_fit_params, seeded

__all__ = ["SelfPacedClassifier"]

# benchmarks/ranking.py: F1 of the rows worth a look is flat between .4 and .6
UNLIKELY = 0.4  # probability of the given label below which a row is worth a look


class SelfPacedClassifier(AssessmentMixin, WrapperMixin, ClassifierMixin, BaseEstimator):
    r"""Wrap any classifier so that wrong labels do not spoil it.

    A model that memorises cannot tell which of its labels are wrong. So others assess: forests on halves of the
    rows and
    a ridge logistic regression, none of which has seen the label that it votes on. Their votes, stacked, and a noise
    channel give the probability :math:`q_{ij}` that class :math:`j` is the true label of row :math:`i`, in view of the
    given one. The wrapped model is then fitted once, to these soft labels: each row comes once for every class that it
    may belong to, with the weight :math:`q_{ij}`. Where the references see no sign of noise, the plain model is kept,
    unless they foretell labels of unseen rows clearly better than it does: then it learns as if one label in twenty
    were wrong, which makes it smoother, and none is called so.

    With a pace, a rule or a kind of losses of your own the model is its own reference, as in the paper: its losses
    :math:`\ell_i = \log(1 + \max_{j \ne y_i} p_{ij} / p_{i y_i})` give the weights
    :math:`v_i = \partial\phi(\lambda, \ell_i) / \partial\ell_i`, it is fitted again with these, and whether that was
    an improvement is decided on the noisy labels of unseen rows.

    Parameters
    ----------
    estimator : classifier
        Anything with scikit-learn's ``fit`` and ``predict``, Pipelines included. Weights are passed to
        ``sample_weight``, inside a Pipeline to that of its last step. Where there is none, the mean of a few models
        with labels drawn from the soft ones takes its place (with a pace, rows are selected); where the estimator
        holds rows out by itself (inner cross-validation, early stopping), rows keep their given label and weigh as
        much as it is probable. ``termination_`` says so.
    regularizer : "auto", str or Regularizer, default="auto"
        Any elementwise rule of :mod:`selfpaced.regularizers` weighs rows by the model's own losses. "auto" is "hard"
        where a pace is given, else soft labels.
    pace : "auto", "paper", float or Pacing, default="auto"
        "auto" fits soft labels or, where a rule is given, takes a label in while it is at least as probable as its
        strongest rival; "paper" follows the paper's schedule (half the samples first, lam times 1.05) to a stage chosen
        on unseen rows, at the price of one round of fits per stage; a number is a fixed lam; a
        :class:`~selfpaced.pacing.Pacing` is followed to its end.
    reference_models : "auto", "self", classifier or list of those, default="auto"
        Who assesses the labels. "auto" reads X as a table of numbers (gaps, categories and dates included; a wide and
        sparse one is for the logistic regression alone), and asks the model itself where X is no such table. The model
        itself (out of its bags if it is a forest, else on halves of the rows) joins where it is clearly the better
        reference. "self" is the model itself, outside of folds; so are classifiers of your own.
    cross_fit : "auto" or bool, default="auto"
        Whether the model's own losses come from models that have not seen the row. "auto" cross-fits where the plain
        model is clearly better on the rows it has seen (it memorises wrong labels), and takes in-sample losses else.
    cv : "auto", int, splitter or iterable, default="auto"
        Folds outside of which rows are assessed. "auto" halves the rows for trees and for the model itself, several
        times, and deals five folds for the others: against label noise, the average of several half-trained models is
        a better witness than one model of more rows, at the same cost.
    keep_plain : bool, default=False
        Also fit the plain model and keep it as ``plain_``, to compare: one fit more.
    random_state : int, RandomState or None, default=None
        Deals out the folds, and seeds references, and the wrapped models where they have no seed of their own.
        None does
        it in the same way every time and leaves the models alone.
    n_jobs : int or None, default=None
        Folds or trees fitted at the same time.
    verbose : int, default=0
        Log a line per round.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimator_ : classifier
        The chosen model, fitted on all rows.
    plain_ : classifier
        The plain model; the same object as ``estimator_`` where it was chosen. Where soft labels were chosen, only with
        ``keep_plain``, or where its own votes out of the bag were asked for.
    sample_posterior_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the true label of every training row, in view of the given one and of the doubt that there is
        any noise.
    sample_weight_, sample_loss_ : ndarray of shape (n_samples,)
        Weight in [0, 1] (of soft labels the probability of the given one, if there is noise) and loss of every training
        row.
    sample_proba_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the clean label of every training row, by models not fitted on it.
    sample_noise_ : ndarray of shape (n_samples,)
        Probability that the given label of a training row is wrong. The fit goes by soft labels wherever there may be
        noise, which costs little if there is none; a label is called wrong only as far as noise is more probable than
        classes that overlap.
    assessment_ : Assessment
        All of this in one object, as :func:`selfpaced.suspects` reads it; ``assess(X, y)`` gives it for any rows.
    reference_weights_ : dict of str to float
        The part of each reference in the stack; empty where nobody else was asked.
    lam_ : float
        The pace; of soft labels the loss at which a label is as probably wrong as right; ``inf`` where the plain model
        was chosen.
    class_unit_ : ndarray of shape (n_classes,)
        The unit in which the losses of each class were weighed.
    path_ : tuple of Candidate
        Every candidate: pace, score on unseen rows (``nan`` where there is none) with its standard error, mean weight,
        cost. Beside soft labels the score is the mean log-likelihood of given labels through one noise rate, by the
        references and, for the plain model, by the model itself, on the rows that the model was asked about.
    termination_ : str
        What was chosen, and why.
    noise_rate_, noise_rate_interval_ : float, tuple of float
        Estimated share of wrong labels, and its 95 % interval under the noise model. NaN if it cannot be estimated:
        there are too few rows, or nothing predicts the labels.
    noise_model_ : NoiseModel
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
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> bool(SelfPacedClassifier(tree).fit(X, noisy).score(X, y) > 0.9 > 0.85 > tree.fit(X, noisy).score(X, y))
    True
    """

    _parameter_rules = {
        "estimator": KINDS["classifier"],
        "cv": KINDS["cv or auto"],
        "regularizer": KINDS["rule or auto"],
    }

    def __init__(
        self,
        estimator: Any,
        regularizer: str | Regularizer = "auto",
        *,
        pace: Any = "auto",
        reference_models: Any = "auto",
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
        self.cross_fit = cross_fit
        self.cv = cv
        self.keep_plain = keep_plain
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
        X, y, groups = indexable(X, y, groups)
        given = given_labels(y)
        route = weight_route(self.estimator)
        prior = routed_weight(sample_weight, n_rows(X), route)
        fitted = SoftFit(
            estimator=seeded(self.estimator, self.random_state), route=route, labels=given.classes, codes=given.codes,
            keys=row_keys(X), prior=prior, fit_params=route_fit_params(self, fit_params),
            groups=None if groups is None else np.asarray(groups), trusted=check_trusted(trusted, n_rows(X)),
        )  # fmt: skip
        # taken before the fit, which may change X in place
        mark = fingerprint(X, given.codes)
        with few_threads(n_rows(X)), Progress(self, X, y).running() as progress:
            found = (self._paced if self._weighs_itself else self._assessed)(X, given, fitted, progress, mark)
        if found.interrupted:
            raise_interrupted(self)
        return self

    @property
    def _weighs_itself(self) -> bool:
        """Whether rows are weighed by the model's own losses: a pace, a rule or a kind of losses was asked for."""
        return not (self.pace == "auto" and self.regularizer == "auto" and self.cross_fit == "auto")

    def _assessed(self, X: Any, given: GivenLabels, fitted: SoftFit, progress: Progress, mark: str) -> LabelFit:
        """The default: references, and one fit to soft labels."""
        problem = SoftProblem(
            X,
            fitted,
            progress,
            fitted.groups,
            self.reference_models,
            self.cv,
            self.random_state,
            self.n_jobs,
            self.keep_plain,
        )
        end = run_soft(problem)
        stored = Stored(end.chosen, end.plain, None, np.ones(given.classes.size), mark)
        self._store(end.found, given, stored, fitted)
        self.reference_weights_: dict[str, float] = end.reference_models
        return end.found

    def _paced(self, X: Any, given: GivenLabels, fitted: SoftFit, progress: Progress, mark: str) -> LabelFit:
        """Weights by the model's own losses along a pace."""
        if self.reference_models != "auto":
            raise ValueError(
                "reference_models must be 'auto' if pace, regularizer or cross_fit are given, because the model then "
                f"weighs rows by its own losses, got {self.reference_models!r}"
            )
        rule = relative(check_rule("hard" if self.regularizer == "auto" else self.regularizer))
        pace = check_pace(self.pace)
        with progress.stage("plain fit"):
            plain = fitted.fit(X, np.eye(given.classes.size)[given.codes])
        seen = plain.labels[given.codes]
        problem = ClassifierProblem(
            estimator=fitted.estimator, X=X, y=seen, codes=given.codes, labels=plain.labels,
            kind=output_kind(plain.model), route=fitted.route,
            repeats=self._repeats(X, seen, given, fitted.prior, fitted.groups), prior=fitted.prior,
            fit_params=fitted.fit_params, n_jobs=self.n_jobs, progress=progress, balanced=pace == "auto",
            trusted=fitted.trusted,
        )  # fmt: skip
        found = run(problem, rule, pace, self.cross_fit, plain.model)
        units = np.ones(given.classes.size) if found.kept.plain else problem.class_units(found.kept.fit.losses)
        chosen = plain if found.model is None else Fitted(found.model, plain.labels)
        self._store(found, given, Stored(chosen, plain, rule, units, mark), fitted)
        self.reference_weights_ = {}
        return found

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

    def _store(self, found: LabelFit, given: GivenLabels, end: Stored, fitted: SoftFit) -> None:
        kept, reading = found.kept, found.kept.fit
        diagnosis = Labels(given.classes, given.codes, reading.clean, found.reference)
        losses = reading.losses / end.units[given.codes]
        weight = kept.weight if end.rule is None and not kept.plain else None
        assessment = Assessment(
            "labels", diagnosis, losses, kept.lam, end.rule, end.mark, held_out=found.cross, given_weight=weight,
            trusted=fitted.trusted, look=look_by_share(diagnosis.evidence, float(np.mean(diagnosis.support <
            UNLIKELY))),
        )  # fmt: skip
        path, proba, wrong = path_of(found.trials, found.decision, fitted.prior), diagnosis.proba, assessment.wrong
        self.classes_ = given.classes
        self.estimator_ = end.chosen.model
        if end.plain is not None:
            self.plain_ = end.plain.model
        self.assessment_, self.class_unit_ = assessment, end.units
        self.lam_: float = kept.lam
        self.sample_weight_, self.sample_loss_ = kept.weight, reading.losses
        self.sample_proba_, self.sample_noise_ = proba, wrong
        self.sample_posterior_ = fitted.confirmed(found.reference.posterior(reading.clean, given.codes))
        self.noise_model_: NoiseModel = found.channel
        self.noise_rate_interval_ = found.reference.interval
        # an interval that leaves nothing out says nothing
        self.noise_rate_ = math.nan if self.noise_rate_interval_ == (0.0, 1.0) else found.reference.noise_rate
        self.path_: tuple[Candidate, ...] = path
        self.termination_ = found.termination
        self._kind = output_kind(end.chosen.model)
        self._encoded = not np.array_equal(end.chosen.labels, self.classes_)

    # -------------------------------------------------------------------------------------------- assessing rows

    def _assessed_rows(self, X: Any, y: Any) -> tuple[Any, Array]:
        X, y = indexable(X, y)
        if y is None:
            raise ValueError("y must hold the labels to be assessed, got None")
        with speaking_of("y", "labels, one for each row"):
            return X, codes_of(column_or_1d(y), self.classes_)

    def _assess(self, X: Any, y: Array) -> Assessment:
        logits = self.clean_logits(X)
        losses = rival_loss(self.noise_model_.proba(logits), y) / self.class_unit_[y]
        diagnosis, rule = Labels(self.classes_, y, logits, self.noise_model_), self.assessment_.rule
        weight = None if rule is not None or np.isinf(self.lam_) else 1.0 - diagnosis.wrong
        look = self.assessment_.look
        return Assessment("labels", diagnosis, losses, self.lam_, rule, given_weight=weight, look=look)

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
        if self._kind == "predict_proba" and self.noise_model_.scale == 1.0:
            return raw
        return self.noise_model_.proba(self._logits(raw)).astype(raw.dtype, copy=False)

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
        """What ``noise_model_`` takes: the chosen model's logits, one column per class, whatever methods it has.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        return self._logits(self._read(X))

    def _logits(self, raw: Array) -> Array:
        return as_logits(raw, self._kind)

    def _read(self, X: Any) -> Array:
        labels = np.arange(self.classes_.size) if self._encoded else self.classes_
        return read_output(self.estimator_, X, kind=self._kind, labels=labels)


@dataclass(frozen=True, eq=False)
class Stored:
    """What a fit leaves besides its path: models, rule (None: soft labels), units of losses, the rows' mark."""

    chosen: Fitted
    plain: Fitted | None
    rule: Regularizer | None
    units: Array
    mark: str
