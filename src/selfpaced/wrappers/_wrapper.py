"""What both wrappers share: the rows of a fit, held-out predictions, and the conventions of scikit-learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..assessment import AssessmentMixin
from ..fitting import CallbackSupportMixin, Progress, check_trusted, interrupted_sentence, trusting
from ..folds import Split, make_folds, n_units, row_keys
from ..selection import Decision, Trial, mean_and_error, sentence
from ._cases import Array, content_splits
from ._routing import WeightRoute, fit_weighted, n_rows, routed_weight, take_rows, weight_route

__all__ = ["Found", "Task", "Wrapper", "decide_cross_fit", "seeded"]

LARGEST_SEED = 1 << 31  # convention: seeds of scikit-learn are 31-bit integers


def seeded(estimator: Any, seed: int) -> Any:
    """Return a clone with every unset nested ``random_state`` derived from ``seed``, so that fits are repeatable.

    A seed the user gave to the inner model is kept.
    """
    copy = clone(estimator)
    rng = np.random.RandomState(seed)
    unset = {
        key: int(rng.randint(LARGEST_SEED - 1))
        for key, value in sorted(copy.get_params(deep=True).items(), key=lambda item: item[0])
        if (key == "random_state" or key.endswith("__random_state")) and value is None
    }
    return copy.set_params(**unset) if unset else copy


@dataclass(frozen=True, eq=False)
class Task:
    """The rows of one fit and the estimator that is fitted to them.

    Attributes
    ----------
    estimator : estimator
        Cloned for every fit.
    X, y : array-like
        Rows; labels as the estimator takes them, or values.
    route : WeightRoute
        How weights reach the estimator.
    prior : ndarray or None
        The user's weights as frequencies.
    keys : ndarray of uint64
        Content of the rows.
    groups : array-like or None
        Rows of one group are held out together.
    trusted : ndarray of bool or None
        Rows that a person has confirmed.
    fit_params : mapping
        Further keywords of ``fit``.
    cv : "auto", int, splitter or iterable
        How rows are held out.
    seed : int
        Seed of splits and reference models.
    n_jobs : int or None
        Folds fitted at the same time.
    progress : Progress
        Reports stages.
    codes : ndarray of int or None
        Labels as positions among ``classes``; None for values.
    classes : ndarray or None
        The distinct labels.
    """

    estimator: Any
    X: Any
    y: Array
    route: WeightRoute
    prior: Array | None
    keys: Array
    groups: Any
    trusted: Array | None
    fit_params: Mapping[str, Any]
    cv: Any
    seed: int
    n_jobs: int | None
    progress: Progress
    codes: Array | None = None
    classes: Array | None = None

    @property
    def unused(self) -> Array | None:
        """Rows of no weight."""
        return None if self.prior is None else self.prior == 0.0

    @property
    def n_units(self) -> int:
        """Number of rows that can be held out separately: copies and rows of no weight do not count."""
        return n_units(self.keys, self.unused)

    @property
    def automatic(self) -> bool:
        """Whether the number of folds is ours to choose."""
        return isinstance(self.cv, str) and self.cv == "auto"

    def splits(self, n_folds: int, repetition: int = 0) -> list[Split]:
        """Return training and test rows of each fold: the user's, or ``n_folds`` by content."""
        if not self.automatic and not isinstance(self.cv, int | np.integer):
            return make_folds(self.keys, None, cv=self.cv, groups=self.groups, X=self.X, y=self.y)
        if not self.automatic and self.cv < 2:
            raise ValueError(f"cv must be an integer >= 2, a splitter or an iterable of splits, got {self.cv!r}")
        return content_splits(
            self.keys, n_folds if self.automatic else int(self.cv), codes=self.codes,
            y=self.y if self.codes is None else None, used=None if self.prior is None else self.prior > 0.0,
            groups=self.groups, seed=self.seed + repetition,
        )  # fmt: skip

    def total(self, weights: Array) -> Array:
        """Return weights times the user's own, with full weight for confirmed rows."""
        weights = trusting(weights, self.trusted)
        return weights if self.prior is None else np.asarray(weights * self.prior)

    def fit(self, weight: Array | None, rows: Array | None = None) -> Any:
        """Return the estimator fitted to all rows, or to some."""
        return fit_weighted(
            self.estimator, self.X, self.y, weight, self.route, rows=rows, counts=self.prior,
            fit_params=self.fit_params,
        )  # fmt: skip

    def cross_fit(self, weight: Array | None, folds: Sequence[Split], read: Callable[[Any, Any], Array]) -> Array:
        """Return what ``read(model, X)`` says about every row by a model of other rows; NaN if never held out."""
        parts = Parallel(n_jobs=self.n_jobs)(delayed(_one_fold)(self, weight, fold, read) for fold in folds)
        out = np.full((len(self.y), *parts[0].shape[1:]), np.nan, dtype=parts[0].dtype)
        for (_, test), part in zip(folds, parts, strict=True):
            out[test] = part
        return out


def _one_fold(task: Task, weight: Array | None, fold: Split, read: Callable[[Any, Any], Array]) -> Array:
    return read(task.fit(weight, fold[0]), take_rows(task.X, fold[1]))


@dataclass(frozen=True, eq=False)
class Found:
    """The result of a fit.

    Attributes
    ----------
    model, plain : estimator or None
        The chosen model, and the plain one if it was fitted.
    trials : sequence of Trial
        The plain model and every candidate.
    decision : Decision
        Which candidate was chosen.
    cross : bool
        Whether rows were assessed by models that had not seen them.
    interrupted : bool
        Whether the fit ended early.
    labels : ndarray or None
        Labels as the chosen classifier knows them.
    noise : Any
        Noise model of the chosen model's output, or assessment of the values.
    reference : Any
        Noise model of the clean logits by which rows are assessed.
    details : mapping
        Further fitted attributes.
    """

    model: Any
    plain: Any
    trials: Sequence[Trial]
    decision: Decision
    cross: bool = False
    interrupted: bool = False
    labels: Array | None = None
    noise: Any = None
    reference: Any = None
    details: Mapping[str, Any] | None = None

    @property
    def chosen(self) -> Trial:
        """The candidate that was chosen."""
        return self.trials[self.decision.index]

    @property
    def termination(self) -> str:
        """What was chosen and why."""
        if self.interrupted:
            return interrupted_sentence("the plain model" if self.decision.index == 0 else self.chosen.label)
        return sentence(self.trials, self.decision)


def decide_cross_fit(
    setting: bool | str, seen: Array, unseen: Array, weight: Array | None = None, *, unit: str, least: float = 0.02,
    share: float = 0.0,
) -> tuple[bool, str]:  # fmt: skip
    """Return whether losses are cross-fitted, and why.

    A model that fits the rows it has seen clearly better than other rows memorises their noise: its training losses do
    not tell which rows are wrong.

    Parameters
    ----------
    setting : bool or "auto"
        The wrapper's ``cross_fit``.
    seen, unseen : ndarray of shape (n_samples,)
        Error of the plain model on each row that it was, and was not, fitted to.
    weight : ndarray of shape (n_samples,), optional
        Weights of the rows.
    unit : str
        What the errors are, for the sentence.
    least, share : float
        Smallest difference of the means that counts, and the same as a share of the error on unseen rows.

    Examples
    --------
    >>> decide_cross_fit("auto", np.zeros(50), np.tile([0.0, 1.0], 25), unit="error")
    (True, 'cross-fitted losses, because the model memorises (error 0 on seen and 0.5 on unseen rows)')
    """
    if setting is True or setting is False:
        return setting, f"{'cross-fitted' if setting else 'in-sample'} losses as asked (cross_fit={setting})"
    gap = mean_and_error(unseen - seen, weight)
    before, after = (float(np.average(errors, weights=weight)) for errors in (seen, unseen))
    words = f"{unit} {before:.3g} on seen and {after:.3g} on unseen rows"
    if gap.mean > max(least, 2.0 * gap.error, share * after):
        return True, f"cross-fitted losses, because the model memorises ({words})"
    return False, f"in-sample losses, because the model has little capacity to memorise ({words})"


class Wrapper(AssessmentMixin, CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator):
    """The common part of both wrappers: parameters of the wrapped model, its features, tags and metadata."""

    # groups belong to the splitter below; a request of the wrapper too would ask users twice
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": UNUSED}

    estimator: Any
    regularizer: Any
    pace: Any
    cross_fit: Any
    cv: Any
    random_state: Any
    n_jobs: int | None

    @abstractmethod
    def _default_estimator(self) -> Any:
        """Return the model that is wrapped if none is given."""

    @property
    def _base(self) -> Any:
        return self._default_estimator() if self.estimator is None else self.estimator

    @property
    def _has_pace(self) -> bool:
        """Whether rows are weighted by the model's own losses, because one of these parameters was set."""
        return not all(isinstance(value, str) and value == "auto" for value in self._paced_parameters)

    @property
    def _paced_parameters(self) -> tuple[Any, ...]:
        return self.pace, self.regularizer, self.cross_fit

    def _task(
        self, X: Any, y: Array, sample_weight: Any, groups: Any, trusted: Any, params: Mapping[str, Any],
        progress: Progress,
    ) -> Task:  # fmt: skip
        """Return the checked rows of a fit."""
        base, n = self._base, n_rows(X)
        route = weight_route(base)
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(LARGEST_SEED - 1))
        return Task(
            seeded(base, seed), X, y, route, routed_weight(sample_weight, n, route), row_keys(X), groups,
            check_trusted(trusted, n), self._routed(params), self.cv, seed, self.n_jobs, progress,
        )  # fmt: skip

    def _routed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return further ``fit`` keywords for the wrapped model: by metadata routing if enabled, else unchanged."""
        if not params or not get_config().get("enable_metadata_routing", False):
            return dict(params)
        return dict(process_routing(self, "fit", **params).estimator.fit)

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the wrapped model in ``fit``."""
        return int(self._fitted.n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features seen by the wrapped model in ``fit``."""
        return np.asarray(self._fitted.feature_names_in_)

    @property
    def _fitted(self) -> Any:
        """The fitted model, or AttributeError so that ``hasattr`` is False before ``fit``."""
        try:
            check_is_fitted(self, "estimator_")
        except NotFittedError as error:
            raise AttributeError(f"{type(self).__name__} is not fitted yet; call fit first.") from error
        return self.estimator_

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the requests of this wrapper, of its estimator, and of the splitter.

        Returns
        -------
        MetadataRouter
        """
        splitter = self.cv if hasattr(self.cv, "split") else GroupKFold()
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self._base, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base)
        tags.input_tags = inner.input_tags
        tags.target_tags = replace(inner.target_tags, single_output=True, multi_output=False)
        tags.non_deterministic, tags.no_validation = inner.non_deterministic, inner.no_validation
        return tags
