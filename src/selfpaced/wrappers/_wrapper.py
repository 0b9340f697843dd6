"""What both wrappers share: the rows of a fit, its result, and the conventions of scikit-learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_regressor
from sklearn.model_selection import GroupKFold
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from ..assessment import AssessmentMixin, fingerprint
from ..fingerprint import content_keys, hash_folds, mixed
from ..fitting import (
    CallbackSupportMixin,
    Progress,
    all_or_nothing,
    check_rule,
    check_trusted,
    few_threads,
    interrupted_sentence,
    raise_interrupted,
    refuse_dask,
    trusting,
    with_callbacks,
)
from ..folds import Split, make_folds, n_units, units
from ..parameters import KINDS
from ..regularizers import Regularizer, relative
from ..selection import Candidate, Decision, Trial, path_of, sentence
from ._routing import (
    Array,
    Delegating,
    WeightRoute,
    fit_weighted,
    last_step,
    n_rows,
    routed_weight,
    take_rows,
    weight_route,
)

__all__ = ["Found", "Task", "Wrapper", "changed_params", "seeded", "told"]


def seeded(estimator: Any, seed: int) -> Any:
    """Return a clone with every unset nested ``random_state`` derived from ``seed``, so that fits are repeatable."""
    copy, rng = clone(estimator), np.random.RandomState(seed)
    unset = {
        key: int(rng.randint(np.iinfo(np.int32).max))
        for key, value in sorted(copy.get_params(deep=True).items(), key=lambda item: item[0])
        if (key == "random_state" or key.endswith("__random_state")) and value is None
    }
    return copy.set_params(**unset) if unset else copy


def changed_params(estimator: Any, known: Mapping[str, Mapping[str, tuple[Any, Any]]]) -> dict[str, Any]:
    """Return parameters of a known model (or last step of a Pipeline) to change; none if the user has set any.

    ``known`` maps the name of a class to its parameters, each with its default and the changed value.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> known = {"RandomForestClassifier": {"min_samples_leaf": (1, 5)}}
    >>> changed_params(RandomForestClassifier(), known)
    {'min_samples_leaf': 5}
    >>> changed_params(RandomForestClassifier(min_samples_leaf=2), known)
    {}
    """
    last = last_step(estimator)
    changes = known.get(type(last).__name__, {})
    given = estimator.get_params(deep=True) if changes else {}
    prefix = next((key + "__" for key, value in given.items() if value is last), "")
    if any(given.get(prefix + name) != default for name, (default, _) in changes.items()):
        return {}
    return {prefix + name: value for name, (_, value) in changes.items()}


def told(params: Mapping[str, Any]) -> str:
    """Return changed parameters as part of a sentence."""
    return ", ".join(f"{name}={value!r}" for name, value in params.items())


@dataclass(frozen=True, eq=False)
class Task:
    """The rows of one fit and the estimator that is fitted to them."""

    estimator: Any
    X: Any
    y: Array  # labels as the estimator takes them, or values
    route: WeightRoute
    prior: Array | None  # the user's weights as frequencies
    keys: Array  # content of the rows
    groups: Any
    trusted: Array | None
    fit_params: Mapping[str, Any]
    folds: Any  # the user's number of folds or list of them; None: automatic
    seed: int
    n_jobs: int | None
    progress: Progress
    codes: Any = None  # labels as positions among the classes; None for values
    classes: Any = None

    @property
    def weight(self) -> Array:
        """The user's weights, or ones."""
        return np.ones(len(self.keys)) if self.prior is None else self.prior

    @property
    def n_used(self) -> int:
        """Number of rows that have any weight."""
        return int(np.sum(self.weight > 0.0))

    @property
    def n_units(self) -> int:
        """Number of rows that can be held out separately: copies and rows of no weight do not count."""
        return n_units(self.keys, self.weight == 0.0)

    @property
    def hard(self) -> Array:
        """Given labels as probabilities."""
        return np.asarray(np.eye(len(self.classes))[self.codes])

    def with_params(self, params: Mapping[str, Any]) -> Task:
        """Return the task with other parameters of the estimator."""
        return replace(self, estimator=clone(self.estimator).set_params(**params)) if params else self

    def splits(self, n_folds: int, repetition: int = 0) -> list[Split]:
        """Return training and test rows of each fold: the user's folds, or ``n_folds`` that follow from content.

        A row keeps its fold when others come or go, and equal rows share one, unless the table has few distinct rows.
        Groups are spread evenly over the folds instead. A class with rows in one fold alone is never held out.
        """
        if isinstance(self.folds, list):
            return self.folds
        n_folds, seed = self.folds or n_folds, self.seed + repetition
        values = self.y if self.codes is None else None
        if self.groups is not None:
            return make_folds(self.keys, self.codes, cv=n_folds, groups=self.groups, random_state=seed, y=values)
        keys, order = self._content
        fold = hash_folds(keys, n_folds, repetition=seed)
        if values is None:
            codes, used = self.codes, self.weight > 0.0
            present = np.zeros((n_folds, int(codes.max()) + 1), dtype=bool)
            present[fold[used], codes[used]] = True
            fold = np.where((present.sum(axis=0) < 2)[codes], -1, fold)
        fold = fold[order]
        return [(order[fold != k], order[fold == k]) for k in range(n_folds) if np.any(fold == k) and np.any(fold != k)]

    @cached_property
    def _content(self) -> tuple[Array, Array]:
        """Keys that folds follow from, and the rows in an order that their content gives."""
        unit = units(self.keys, self.codes)
        few_distinct = np.unique(self.keys).size < len(unit) == int(unit.max(initial=-1)) + 1
        second = content_keys(self.y) if self.codes is None else self.codes
        return mixed(unit.astype(np.uint64), 0) if few_distinct else self.keys, np.lexsort((second, self.keys))

    def distinct(self) -> tuple[Task, Array]:
        """Return a task in which equal rows and labels are one row of more weight, and its row for each of ours.

        Rows of no weight come last.
        """
        n, unit = len(self.keys), units(self.keys, self.codes)
        group = np.zeros(n) if self.groups is None else np.unique(np.asarray(self.groups), return_inverse=True)[1]
        listed = np.stack([self.weight == 0.0, group.reshape(-1), unit, self.codes])
        order = np.lexsort(listed[::-1])
        listed = listed[:, order]
        begins = np.r_[True, np.any(listed[:, 1:] != listed[:, :-1], axis=0)]
        of_row = np.empty(n, dtype=np.intp)
        of_row[order] = np.cumsum(begins) - 1
        first, sure = order[begins], None
        if self.trusted is not None:
            sure = np.bincount(of_row, self.trusted) > 0.0
        folds = self.folds
        if isinstance(folds, list):
            folds = [(np.unique(of_row[train]), np.unique(of_row[test])) for train, test in folds]
        fewer = replace(
            self, X=take_rows(self.X, first), y=self.y[first], prior=np.bincount(of_row, self.weight), folds=folds,
            keys=self.keys[first], groups=None if self.groups is None else group.reshape(-1)[first], trusted=sure,
            codes=self.codes[first], fit_params=_check_method_params(self.X, self.fit_params, first),
        )  # fmt: skip
        return fewer, of_row

    def total(self, weights: Array) -> Array:
        """Return weights times the user's own, with full weight for confirmed rows."""
        return np.asarray(trusting(weights, self.trusted) * self.weight)

    def fit(self, weight: Array | None, rows: Array | None = None) -> Any:
        """Return the estimator fitted to all rows, or to some."""
        return fit_weighted(
            self.estimator, self.X, self.y, weight, self.route, rows=rows, counts=self.prior,
            fit_params=self.fit_params,
        )  # fmt: skip

    def cross_fit(self, weight: Array | None, folds: Sequence[Split], read: Callable[[Any, Any], Array]) -> Array:
        """Return the mean of ``read(model, X)`` over models that have not seen a row."""
        return self.mean(
            folds, Parallel(n_jobs=self.n_jobs)(delayed(_one_fold)(self, weight, fold, read) for fold in folds)
        )

    def mean(self, folds: Sequence[Split], parts: Sequence[Array]) -> Array:
        """Return the mean prediction of every row by models of other rows; one never held out keeps its label."""
        total, times = np.zeros((len(self.y), *parts[0].shape[1:])), np.zeros(len(self.y))
        for (_, test), part in zip(folds, parts, strict=True):
            total[test] += part
            times[test] += 1.0
        if self.codes is not None:
            total[times == 0.0] = self.hard[times == 0.0]
        return np.asarray((total.T / np.maximum(times, 1.0)).T, dtype=parts[0].dtype)


def _one_fold(task: Task, weight: Array | None, fold: Split, read: Callable[[Any, Any], Array]) -> Array:
    return read(task.fit(weight, fold[0]), take_rows(task.X, fold[1]))


@dataclass(frozen=True, eq=False)
class Found:
    """The result of a fit."""

    model: Any
    plain: Any  # None if it was not fitted
    trials: Sequence[Trial]  # the plain model and every candidate
    decision: Decision
    cross: bool = False  # whether rows were assessed by models that had not seen them
    interrupted: bool = False
    labels: Array | None = None  # as the chosen classifier knows them
    noise: Any = None  # noise model of the chosen model's output, or assessment of the values
    reference: Any = None  # noise model of the clean logits by which rows are assessed
    weights: Mapping[str, float] = field(default_factory=dict)  # of the reference models
    params: Mapping[str, Any] = field(default_factory=dict)  # of the wrapped model that were changed

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


class Wrapper(Delegating, AssessmentMixin, CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator):
    """The common part of both wrappers: fitting, parameters of the wrapped model, its features, tags and metadata."""

    # groups belong to the splitter below; a request of the wrapper too would ask users twice
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": UNUSED}

    _default_estimator: ClassVar[type]
    _parameter_rules: ClassVar[dict[str, Any]] = {"cv": KINDS["cv or auto"], "regularizer": KINDS["rule or auto"]}

    estimator: Any
    regularizer: Any
    pace: Any
    cross_fit: Any
    cv: Any
    random_state: Any
    n_jobs: int | None

    @abstractmethod
    def _fit(self, task: Task) -> Found:
        """Fit the wrapped model."""

    @abstractmethod
    def _store(self, found: Found, task: Task, mark: str) -> None:
        """Set the attributes that follow from the assessment; ``mark`` is the fingerprint of the rows."""

    @abstractmethod
    def _checked_target(self, y: Any) -> tuple[Array, Array | None]:
        """Return labels or values, and which rows have one (None: all of them)."""

    @property
    def _base(self) -> Any:
        return self._default_estimator() if self.estimator is None else self.estimator

    @property
    def _has_pace(self) -> bool:
        """Whether rows are weighted by the model's own losses, because one of these parameters was set."""
        asked = (self.pace, self.regularizer, self.cross_fit)
        return not all(isinstance(value, str) and value == "auto" for value in asked)

    @property
    def _rule(self) -> Regularizer:
        automatic = isinstance(self.regularizer, str) and self.regularizer == "auto"
        return relative(check_rule("hard" if automatic else self.regularizer))

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
    ) -> Self:
        """Fit the model; some labels or values may be wrong.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Passed to the wrapped model as it is.
        y : array-like of shape (n_samples,)
            Labels (numbers or strings) or values. Rows whose label is missing (NaN or None) are left out of the fit,
            with a note in ``termination_``; ``predict`` gives their labels afterwards. Values must be finite.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts, up to a common factor. Whole numbers are counts: a row of weight 2 beside rows of
            weight 1 is that row twice. Other weights are relative and stand for Kish's effective number of rows. A row
            of weight 0 is only assessed. The wrapped model gets these frequencies times the self-paced weights; if it
            takes no weights, rows are repeated.
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
        refuse_dask(X)
        X, y, groups = indexable(X, y, groups)
        y, known = self._checked_target(y)
        if known is not None:
            per_row = (sample_weight, groups, trusted)
            sample_weight, groups, trusted = (v if np.ndim(v) == 0 else np.asarray(v)[known] for v in per_row)
            fit_params = _check_method_params(X, fit_params, np.flatnonzero(known))
            X = take_rows(X, np.flatnonzero(known))
        classes, codes = (None, None) if is_regressor(self) else np.unique(y, return_inverse=True)
        mark = fingerprint(X, y.astype(np.float64) if codes is None else codes)  # the fit may change X in place
        with few_threads(n_rows(X)), Progress(self, X, y).running() as progress:
            task = self._task(X, y, sample_weight, groups, trusted, fit_params, progress)
            found = self._fit(replace(task, codes=codes, classes=classes))
        self.estimator_, self.tuned_params_ = found.model, dict(found.params)
        if found.plain is not None:
            self.plain_ = found.plain
        self.lam_, self.sample_weight_ = float(found.chosen.lam), np.asarray(found.chosen.weight)
        self.path_: tuple[Candidate, ...] = path_of(found.trials, found.decision, task.prior)
        self.termination_ = found.termination
        self._store(found, replace(task, codes=codes, classes=classes), mark)
        if known is not None:
            self.termination_ += f" {int(np.sum(~known))} rows without a label were left out; predict labels them."
        if codes is not None:
            self.labelled_ = known
        if found.interrupted:
            raise_interrupted(self)
        return self

    def _task(
        self, X: Any, y: Array, sample_weight: Any, groups: Any, trusted: Any, params: Mapping[str, Any],
        progress: Progress,
    ) -> Task:  # fmt: skip
        """Return the checked rows of a fit."""
        base, n, keys, folds = self._base, n_rows(X), content_keys(X), self.cv
        if isinstance(folds, str):
            folds = None
        elif not isinstance(folds, int | np.integer):
            folds = make_folds(keys, None, cv=folds, groups=groups, X=X, y=y)
        elif folds < 2:
            raise ValueError(f"cv must be an integer >= 2, a splitter or an iterable of splits, got {folds!r}")
        if params and get_config().get("enable_metadata_routing", False):
            params = process_routing(self, "fit", **params).estimator.fit
        route, most = weight_route(base), np.iinfo(np.int32).max
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(most))
        return Task(
            seeded(base, seed), X, y, route, routed_weight(sample_weight, n, route), keys, groups,
            check_trusted(trusted, n), dict(params), folds, seed, self.n_jobs, progress,
        )  # fmt: skip

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the requests of this wrapper, of its estimator, and of the splitter.

        Returns
        -------
        MetadataRouter
        """
        splitter = self.cv if hasattr(self.cv, "get_n_splits") else GroupKFold()
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self._base, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self._base)
        tags.input_tags = inner.input_tags
        tags.target_tags = replace(inner.target_tags, single_output=True, multi_output=False)
        tags.non_deterministic, tags.no_validation = inner.non_deterministic, inner.no_validation
        return tags
