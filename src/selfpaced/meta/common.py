"""What every self-paced wrapper shares: folds, cross-fitting, capacity, progress, delegation."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .routing import WeightRoute, fit_weighted, n_rows, take_rows, weight_route

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover - depends on the installed scikit-learn

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in where the installed scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Stand-in where the installed scikit-learn has no callbacks."""
        return method


__all__ = [
    "MetaMixin",
    "Progress",
    "WeightRoute",
    "check_weight",
    "cross_fit",
    "decide_cross_fit",
    "fit_weighted",
    "make_folds",
    "n_rows",
    "route_fit_params",
    "seeded",
    "take_rows",
    "weight_route",
    "with_callbacks",
]

logger = logging.getLogger("selfpaced")
Split = tuple[np.ndarray, np.ndarray]


def seeded(estimator: Any, random_state: Any) -> Any:
    """Clone with every unset nested ``random_state`` drawn from `random_state`, so that fits are repeatable.

    With ``random_state=None`` nothing is set. A value the user gave to the inner model is kept.
    """
    copy = clone(estimator)
    if random_state is None:
        return copy
    rng = check_random_state(random_state)
    unset = {
        key: int(rng.randint(np.iinfo(np.int32).max))
        for key, value in sorted(copy.get_params(deep=True).items(), key=lambda item: item[0])
        if (key == "random_state" or key.endswith("__random_state")) and value is None
    }
    return copy.set_params(**unset) if unset else copy


def make_folds(
    X: Any,
    strata: np.ndarray | None,
    *,
    cv: Any,
    groups: Any = None,
    random_state: Any = None,
    y: Any = None,
) -> list[Split]:
    """Training and test rows of every fold; every row is tested exactly once.

    Parameters
    ----------
    X : array-like
        Only its number of rows is used, unless `cv` is a splitter.
    strata : ndarray of int or None
        Class codes to be dealt evenly into the folds; None deals rows at random.
    cv : int, splitter or iterable
        A number makes shuffled folds, fewer of them where there are too few rows or groups; rows of a
        class with a single member are in every training fold and in no test fold. A scikit-learn splitter
        is used as it is.
    groups : array-like or None
        Rows of one group stay together.
    random_state : int, RandomState or None
        Shuffles the rows.
    y : array-like, optional
        Given to a splitter.

    Returns
    -------
    list of (train, test) index arrays
    """
    n = n_rows(X)
    if not isinstance(cv, (int, np.integer)):
        return _given_folds(cv, X, y, groups, n)
    if cv < 2:
        raise ValueError(f"cv must be an integer >= 2, a splitter or an iterable of splits; got {cv!r}.")
    rng = check_random_state(random_state)
    if groups is not None:
        return _group_folds(np.asarray(groups), strata, int(cv), rng)
    order = rng.permutation(n)
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
        counts = np.bincount(strata)
        order = order[counts[strata[order]] > 1]
    fold = np.full(n, -1)
    fold[order] = np.arange(order.size) % min(int(cv), max(order.size, 1))
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(fold.max(initial=-1) + 1)]


def _group_folds(groups: np.ndarray, strata: np.ndarray | None, cv: int, rng: Any) -> list[Split]:
    """Whole groups, largest first, each into the fold whose class counts it evens out most."""
    names, member = np.unique(groups, return_inverse=True)
    if names.size < 2:
        raise ValueError(f"groups must have at least 2 distinct values to cross-fit; got {names.size}.")
    k = min(cv, names.size)
    codes = np.zeros(groups.size, dtype=int) if strata is None else strata
    table = np.zeros((names.size, codes.max() + 1))
    np.add.at(table, (member, codes), 1.0)
    table /= table.sum(axis=0)
    filled, place = np.zeros((k, table.shape[1])), np.empty(names.size, dtype=int)
    order = rng.permutation(names.size)
    for g in order[np.argsort(-table[order].max(axis=1), kind="stable")]:
        place[g] = int(np.argmin(((filled + table[g]) ** 2 - filled**2).sum(axis=1)))
        filled[place[g]] += table[g]
    fold = place[member]
    return [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(k) if np.any(fold == j)]


def _given_folds(cv: Any, X: Any, y: Any, groups: Any, n: int) -> list[Split]:
    splits = [(np.asarray(a), np.asarray(b)) for a, b in check_cv(cv).split(X, y, groups)]
    tested = np.zeros(n, dtype=int)
    for _, test in splits:
        tested[test] += 1
    if np.any(tested != 1):
        raise ValueError(
            "cv must test every row exactly once, because every row needs a loss from a model that did not "
            f"see it; got {int(np.sum(tested == 0))} rows never tested and {int(np.sum(tested > 1))} tested "
            "repeatedly. Use a K-fold splitter or an integer."
        )
    return splits


def cross_fit(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    folds: Sequence[Split],
    read: Callable[[Any, Any], np.ndarray],
    *,
    weight: np.ndarray | None = None,
    route: WeightRoute,
    counts: np.ndarray | None = None,
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Predictions of every row by a model that was not fitted on it.

    Parameters
    ----------
    estimator, X, y, weight, route, counts, fit_params
        See `fit_weighted`; `weight` and `counts` have one entry per row of `X`.
    folds : sequence of (train, test)
        From `make_folds`.
    read : callable
        ``read(model, X_test)`` gives an array with one entry (or one row) per test row.
    n_jobs : int or None
        Folds fitted at once, through joblib.
    out : ndarray, optional
        Filled and returned; rows in no test fold keep what it holds (NaN when it is not given).

    Returns
    -------
    ndarray of shape (n_samples, ...)
    """
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_one_fold)(estimator, X, y, weight, route, counts, train, test, read, fit_params)
        for train, test in folds
    )
    for (_, test), part in zip(folds, parts, strict=True):
        if out is None:
            out = np.full((n_rows(X), *part.shape[1:]), np.nan, dtype=part.dtype)
        out[test] = part
    if out is None:
        raise ValueError("folds must hold at least one fold to cross-fit; got none.")
    return out


def _one_fold(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    route: WeightRoute,
    counts: np.ndarray | None,
    train: np.ndarray,
    test: np.ndarray,
    read: Callable[[Any, Any], np.ndarray],
    fit_params: Mapping[str, Any] | None,
) -> np.ndarray:
    model = fit_weighted(estimator, X, y, weight, route, rows=train, counts=counts, fit_params=fit_params)
    return read(model, take_rows(X, test))


def decide_cross_fit(
    setting: bool | str, seen: np.ndarray, unseen: np.ndarray, *, unit: str, least: float = 0.02, share: float = 0.0
) -> tuple[bool, str]:
    """Cross-fitted or in-sample losses, and the reason in words.

    A model that fits the rows it has seen clearly better than rows it has not seen memorises their noise:
    its training losses say nothing about which rows are wrong.

    Parameters
    ----------
    setting : bool or "auto"
        The wrapper's ``cross_fit``.
    seen, unseen : ndarray of shape (n_samples,)
        Per-row error of the plain model on rows it was, and was not, fitted on (0/1 errors, or losses in
        units of their mean): the paired difference decides.
    unit : str
        What the errors are, for the sentence.
    least : float
        Smallest difference of the means that counts.
    share : float
        Smallest difference that counts, as a share of the error on unseen rows.

    Returns
    -------
    bool, str
    """
    if setting is True or setting is False:
        return setting, f"{'cross-fitted' if setting else 'in-sample'} losses as asked (cross_fit={setting})"
    if setting != "auto":
        raise ValueError(f"cross_fit must be True, False or 'auto'; got {setting!r}.")
    gap = unseen - seen
    mean, error = float(np.mean(gap)), float(np.std(gap)) / max(np.sqrt(gap.size), 1.0)
    interpolates = mean > max(least, 2.0 * error, share * float(np.mean(unseen)))
    words = f"{unit} {np.mean(seen):.3g} on seen and {np.mean(unseen):.3g} on unseen rows"
    if interpolates:
        return True, f"cross-fitted losses, because the model memorises ({words})"
    return False, f"in-sample losses, because the model has little capacity to memorise ({words})"


class Progress:
    """Counts stages; a log line, a line of ``verbose``, and scikit-learn's callbacks where they exist.

    Parameters
    ----------
    owner : estimator
        The wrapper being fitted; its ``verbose`` and its callbacks are used.
    X, y : array-like
        Shown to callbacks.
    """

    def __init__(self, owner: Any, X: Any = None, y: Any = None) -> None:
        self.owner, self.X, self.y = owner, X, y
        self.verbose = int(getattr(owner, "verbose", 0) or 0)
        self.began = time.perf_counter()
        self.context: Any = None
        if hasattr(owner, "_init_callback_context"):
            self.context = owner._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=owner, X=X, y=y)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """One stage of the fit, told to whoever listens when it begins and when it ends."""
        task = None if self.context is None else self.context.subcontext(task_name=name)
        if task is not None:
            task.call_on_fit_task_begin(estimator=self.owner, X=self.X, y=self.y)
        start = time.perf_counter()
        yield
        message = f"{type(self.owner).__name__}: {name} ({time.perf_counter() - start:.2f} s)"
        logger.log(logging.INFO if self.verbose else logging.DEBUG, message)
        if task is not None:
            task.call_on_fit_task_end(estimator=self.owner, X=self.X, y=self.y)

    @contextmanager
    def running(self) -> Iterator[Progress]:
        """The whole fit; with ``verbose`` its lines go to stderr unless logging is configured."""
        handler, level = None, logger.level
        if self.verbose and not logger.isEnabledFor(logging.INFO):
            handler = logging.StreamHandler()
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
        try:
            yield self
        finally:
            if handler is not None:
                logger.removeHandler(handler)
                logger.setLevel(level)
            if self.context is not None:
                self.context.call_on_fit_task_end(estimator=self.owner, X=self.X, y=self.y)


class MetaMixin(CallbackSupportMixin, MetaEstimatorMixin):
    """Delegation to the wrapped model: features, tags, metadata routing of ``groups`` to the splitter.

    The class using it has the parameters ``estimator`` and ``cv`` and the fitted attribute ``plain_``. Its
    ``fit`` has ``sample_weight`` and ``groups`` as keywords: the first is its own (it always reaches the
    model), the second goes to the splitter.
    """

    # groups belong to the splitter below; a request of the wrapper too would ask users twice
    __metadata_request__fit = {"groups": UNUSED}

    estimator: Any
    cv: Any

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the wrapped model in ``fit``."""
        return int(_fitted_plain(self).n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features seen by the wrapped model in ``fit``."""
        return np.asarray(_fitted_plain(self).feature_names_in_)

    def get_metadata_routing(self) -> MetadataRouter:
        """Requests of this wrapper, of its estimator, and of the splitter used for cross-fitting.

        Returns
        -------
        MetadataRouter
        """
        splitter = self.cv if hasattr(self.cv, "split") else GroupKFold()
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.target_tags = replace(inner.target_tags, single_output=True, multi_output=False)
        if inner.classifier_tags is not None:
            tags.classifier_tags = replace(inner.classifier_tags, multi_label=False)
        tags.regressor_tags = inner.regressor_tags or tags.regressor_tags
        tags.non_deterministic = inner.non_deterministic
        return tags


def _fitted_plain(wrapper: Any) -> Any:
    """The fitted plain model, or AttributeError so that ``hasattr`` is False before ``fit``."""
    try:
        check_is_fitted(wrapper, "plain_")
    except NotFittedError as error:
        raise AttributeError(f"{type(wrapper).__name__} is not fitted yet; call fit first.") from error
    return wrapper.plain_


def route_fit_params(wrapper: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Further ``fit`` keywords for the wrapped model: by metadata routing where enabled, else unchanged."""
    if not params or not get_config().get("enable_metadata_routing", False):
        return dict(params)
    return dict(process_routing(wrapper, "fit", **params).estimator.fit)


def check_weight(sample_weight: Any, n: int, route: WeightRoute) -> np.ndarray | None:
    """Validated user weights, None when uniform; an error where the model could not honour them.

    Parameters
    ----------
    sample_weight : array-like, scalar or None
        As given to ``fit``.
    n : int
        Number of rows.
    route : WeightRoute
        How the model takes weights.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=float)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weight.ndim}D array.")
    if weight.shape[0] != n:
        raise ValueError(f"sample_weight must have one entry per row ({n}); got shape {weight.shape}.")
    if not np.all(np.isfinite(weight)) or np.any(weight < 0.0):
        raise ValueError("sample_weight must be finite and >= 0; got NaN, infinite or negative entries.")
    if not np.any(weight > 0.0):
        raise ValueError("sample_weight must not be zero for every row; got no positive weight.")
    if np.all(weight == 1.0):
        return None
    if not route.takes_weights and np.any(weight != np.rint(weight)):
        raise ValueError(
            f"sample_weight was given, but {route.reason}, and weights are never dropped silently. Whole "
            "numbers are honoured by repeating rows; else wrap an estimator that takes weights."
        )
    return weight
