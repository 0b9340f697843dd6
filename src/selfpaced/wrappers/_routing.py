"""How sample weights reach a wrapped estimator: directly, inside a Pipeline, by metadata routing, or as rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    LeaveOneGroupOut,
    LeavePGroupsOut,
    StratifiedGroupKFold,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from ..fitting import Method, check_weight
from ..selection import frequencies

__all__ = [
    "TooFewRows",
    "WeightRoute",
    "available_with",
    "fit_entries",
    "fit_weighted",
    "groups_keyword",
    "last_step",
    "n_rows",
    "routed_weight",
    "row_params",
    "rows_left",
    "take_rows",
    "weight_route",
]

# numerical safety: weights below this share of the largest cannot move a fit, and as rows they cost time.
NEGLIGIBLE = 1e-6
MOST_REPEATED = 10_000_000  # cost: rows that weights may become where they are honoured by repeating rows
_BY_GROUP = (GroupKFold, GroupShuffleSplit, LeaveOneGroupOut, LeavePGroupsOut, StratifiedGroupKFold)


@dataclass(frozen=True)
class WeightRoute:
    """How weights are passed to an estimator's ``fit``.

    Parameters
    ----------
    keyword : str or None
        Name of the ``fit`` keyword that carries the weights; None: the estimator takes none, and rows are selected.
    reason : str
        Why, for ``termination_``.
    routed : bool
        Metadata routing delivers the weights, because the estimator's steps request them. If False, weighted fits run
        with routing switched off: the keyword already names the step.
    """

    keyword: str | None
    reason: str
    routed: bool = False

    @property
    def takes_weights(self) -> bool:
        """True when weights are passed, False when rows are selected."""
        return self.keyword is not None


def take_rows(X: Any, index: Any) -> Any:
    """Rows of an array, sparse matrix, pandas or polars frame, or sequence, in their own type."""
    if hasattr(X, "iloc"):
        return X.iloc[index]
    if sparse.issparse(X):
        return (X if X.format in ("csr", "lil") else X.tocsr())[index]
    if hasattr(X, "shape"):
        if isinstance(X, np.ndarray):
            return X[index]
        if hasattr(X, "get_column"):  # polars takes integers, not NumPy masks
            return X[np.flatnonzero(index) if np.asarray(index).dtype == bool else np.asarray(index)]
        return X[index]
    where = np.flatnonzero(index) if np.asarray(index).dtype == bool else np.asarray(index)
    return [X[i] for i in where]


def n_rows(X: Any) -> int:
    """Number of rows of anything `take_rows` accepts."""
    return int(X.shape[0]) if getattr(X, "shape", None) else len(X)


def available_with(*names: str) -> Callable[[Method], Method]:
    """Make a method of a wrapper available if the wrapped model (fitted, if there is one) has one of these."""

    def check(wrapper: Any) -> bool:
        model = wrapper.estimator_ if hasattr(wrapper, "estimator_") else wrapper._base
        return any(hasattr(model, name) for name in names)

    decorate: Callable[[Method], Method] = available_if(check)
    return decorate


def _accepts_any_keyword(estimator: Any) -> bool:
    parameters = inspect.signature(estimator.fit).parameters.values()
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def _inner(estimator: Any) -> list[Any]:
    """The estimators a meta-estimator wraps."""
    inner = getattr(estimator, "estimator", None)
    if isinstance(inner, BaseEstimator):
        return [inner]
    several = getattr(estimator, "estimators", None)
    pairs = [pair for pair in several if isinstance(pair, tuple)] if isinstance(several, list) else []
    return [pair[1] for pair in pairs if isinstance(pair[1], BaseEstimator)]


def weight_route(estimator: Any) -> WeightRoute:
    """Find out how `estimator.fit` takes sample weights.

    Metadata routing is used where it is enabled and a step requests ``sample_weight``; an explicit refusal
    (a request set to False) leads to selection by rows. Where no request is set, wrapping the model in a
    self-paced one *is* the request: a Pipeline then gets ``laststep__sample_weight``, as without routing.

    Parameters
    ----------
    estimator : estimator
        The model to be wrapped; it is not changed.

    Returns
    -------
    WeightRoute

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> weight_route(make_pipeline(StandardScaler(), SVC())).keyword
    'svc__sample_weight'
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> weight_route(KNeighborsClassifier()).takes_weights
    False
    """
    if not get_config().get("enable_metadata_routing", False) or _resampling(estimator) is not None:
        return _named_route(estimator)
    last = last_step(estimator)
    if _request(last) is False:
        return WeightRoute(None, f"{type(last).__name__} refuses sample_weight (its fit request is False)")
    if last is not estimator and _consumes(last):
        return WeightRoute("sample_weight", f"routing delivers sample_weight to {type(last).__name__}", True)
    if last is estimator and not has_fit_parameter(estimator, "sample_weight") and _consumes(estimator):
        return WeightRoute("sample_weight", f"{type(estimator).__name__} routes sample_weight", True)
    return _named_route(estimator)


def _named_route(estimator: Any) -> WeightRoute:
    """The route by the name of a keyword alone, as it is without metadata routing."""
    name = type(estimator).__name__
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        if last is None or isinstance(last, str):
            return WeightRoute(None, "the last step of the Pipeline is 'passthrough'")
        sampler = _resampling(estimator)
        if sampler is not None:
            return WeightRoute(None, f"step {sampler!r} resamples the rows, and sample_weight would not follow them")
        inner = _named_route(last)
        keyword = f"{step}__{inner.keyword}" if inner.takes_weights else None
        return WeightRoute(keyword, f"last step {step!r}: {inner.reason}")
    wrapped = [(_named_route(one), type(one).__name__) for one in _inner(estimator)]
    for route, inner_name in wrapped:
        if not route.takes_weights:
            return WeightRoute(None, f"{inner_name} inside {name} takes no sample_weight")
    if has_fit_parameter(estimator, "sample_weight"):
        return WeightRoute("sample_weight", f"{name}.fit takes sample_weight")
    keywords = {route.keyword for route, _ in wrapped}
    if len(keywords) == 1 and _accepts_any_keyword(estimator):
        return WeightRoute(keywords.pop(), f"{name} passes weights on to what it wraps")
    return WeightRoute(None, f"{name}.fit takes no sample_weight")


def _resampling(estimator: Any) -> str | None:
    """The step of a Pipeline that changes which rows there are, as samplers of imbalanced-learn do."""
    steps = estimator.steps[:-1] if isinstance(estimator, Pipeline) else []
    return next((name for name, step in steps if hasattr(step, "fit_resample")), None)


def groups_keyword(estimator: Any) -> str | None:
    """The ``fit`` keyword for groups of an estimator whose own folds respect them; None where they do not."""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        inner = groups_keyword(last)
        return None if inner is None else f"{step}__{inner}"
    takes = hasattr(estimator, "fit") and (has_fit_parameter(estimator, "groups") or _accepts_any_keyword(estimator))
    return "groups" if takes and isinstance(getattr(estimator, "cv", None), _BY_GROUP) else None


def last_step(estimator: Any) -> Any:
    """The model at the end of a Pipeline, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def _requests(estimator: Any) -> Any:
    """What an estimator requests by metadata routing; None where it does not implement routing."""
    try:
        return get_routing_for_object(estimator)
    except NotImplementedError:
        return None


def _consumes(estimator: Any) -> bool:
    requests = _requests(estimator)
    return requests is not None and bool(requests.consumes("fit", ["sample_weight"]))


def _request(estimator: Any) -> Any:
    return getattr(getattr(_requests(estimator), "fit", None), "requests", {}).get("sample_weight")


def routed_weight(sample_weight: Any, n: int, route: WeightRoute) -> NDArray[np.float64] | None:
    """Return the user's weights as frequencies (None if uniform), or raise if the model could not honour them.

    Parameters
    ----------
    sample_weight : array-like, scalar or None
        As given to ``fit``.
    n : int
        Number of rows.
    route : WeightRoute
        How the model takes weights.
    """
    given = check_weight(sample_weight, n, relative=True)
    if given is None:
        return None
    weight = frequencies(given)
    if route.takes_weights or np.all(weight == 1.0):
        return None if np.all(weight == 1.0) else weight
    if np.any(given != np.rint(given)) and np.any(weight != np.rint(weight)):
        raise ValueError(
            f"sample_weight was given, but {route.reason}, and weights are never dropped silently. Whole "
            "numbers are honoured by repeating rows; else wrap an estimator that takes weights."
        )
    if np.any(weight != np.rint(weight)) or weight.sum() > max(MOST_REPEATED, n):
        raise ValueError(
            f"sample_weight must sum to at most {MOST_REPEATED:,} because {route.reason}, so that rows are repeated, "
            f"got {float(given.sum()):.3g}: divide the weights, or wrap an estimator that takes weights"
        )
    return weight


def row_params(params: Mapping[str, Any], n: int, keep: np.ndarray) -> dict[str, Any]:
    """Fit parameters with one entry per row are cut to the rows kept; the rest pass unchanged."""

    def per_row(value: Any) -> bool:
        if isinstance(value, (str, bytes)) or value is None:
            return False
        if getattr(value, "shape", None):
            return int(value.shape[0]) == n
        return isinstance(value, (list, tuple)) and len(value) == n

    return {key: take_rows(value, keep) if per_row(value) else value for key, value in params.items()}


def _selected(index: np.ndarray, weight: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """Rows of at least half the full weight, each as often as its count says."""
    if counts is None:
        return np.asarray(index[weight >= 0.5 * weight.max()])
    inside = (counts > 0.0) & (weight >= 0.5 * counts)
    if not inside.any():
        inside = weight >= 0.5 * weight.max()
    return np.asarray(np.repeat(index[inside], np.rint(np.maximum(counts[inside], 1.0)).astype(np.intp)))


class TooFewRows(ValueError):
    """Weights left a wrapped model with rows that it cannot be fitted to, such as one of a class."""


def fit_weighted(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    route: WeightRoute,
    *,
    rows: np.ndarray | None = None,
    counts: np.ndarray | None = None,
    fit_params: Mapping[str, Any] | None = None,
) -> Any:
    """Fit a clone with weights, or on the rows of at least half the largest weight if it takes no weights.

    Parameters
    ----------
    estimator : estimator
        Cloned, never fitted itself.
    X, y : array-like
        All rows; `X` is indexed, never converted.
    weight : ndarray of shape (n_samples,) or None
        Weights of all rows. None or all ones is a plain fit without weights: some models are several times slower
        with uniform weights. Rows of zero weight are left out.
    route : WeightRoute
        From `weight_route`.
    rows : ndarray of int, optional
        Fit on these rows only (a training fold).
    counts : ndarray of shape (n_samples,), optional
        The user's own weights, already a factor of `weight`. If rows are selected, these are whole numbers: a row is
        used if the rest of its weight is >= 1/2, and then as often as its count says.
    fit_params : mapping, optional
        Further keywords of ``fit``; those with one entry per row are cut along.

    Returns
    -------
    fitted estimator
    """
    asked = index = np.arange(n_rows(X)) if rows is None else np.asarray(rows)
    passed: np.ndarray | None = None
    if weight is not None:
        local = np.asarray(weight)[index]
        if not np.any(local > 0.0):
            raise ValueError("sample weights must not be zero for every row; got no positive weight.")
        if route.takes_weights:
            keep = local > NEGLIGIBLE * local.max()
            index, passed = index[keep], local[keep]
        else:
            index = _selected(index, local, None if counts is None else np.asarray(counts)[index])
    fewer = index.size < asked.size
    return fit_entries(clone(estimator), X, y[index], index, passed, route, fit_params=fit_params, fewer=fewer)


def fit_entries(
    model: Any,
    X: Any,
    y: np.ndarray,
    rows: np.ndarray,
    weight: np.ndarray | None,
    route: WeightRoute,
    *,
    groups: Mapping[str, Any] | None = None,
    fit_params: Mapping[str, Any] | None = None,
    fewer: bool = False,
) -> Any:
    """Fit a model to entries: a row of X, which may be repeated, with a label or value and a weight each time.

    Parameters
    ----------
    model : estimator
        It is fitted itself.
    X : array-like
        All rows.
    y, rows, weight : ndarray of shape (n_entries,)
        Label or value, row number and weight of every entry; None is a fit without weights.
    route : WeightRoute
        From `weight_route`.
    groups : mapping, optional
        Keyword and one value per entry, for an estimator whose own folds respect groups.
    fit_params : mapping, optional
        Further keywords of ``fit``; those with one entry per row of X are cut along.
    fewer : bool
        Whether an error may be due to rows that lost their weight.

    Returns
    -------
    fitted estimator
    """
    n = n_rows(X)
    params = dict(fit_params or {})
    if rows.size != n or np.any(rows != np.arange(n)):
        X, params = take_rows(X, rows), row_params(params, n, rows)
    # rows of negligible weight, left out, may have moved the others a little from one
    uniform = weight is None or bool(np.all(np.abs(weight - 1.0) <= NEGLIGIBLE))
    return _passed(model, X, y, None if uniform else weight, route, {**params, **(groups or {})}, fewer)


def _passed(
    model: Any,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    route: WeightRoute,
    params: Mapping[str, Any],
    fewer: bool = False,
) -> Any:
    """Fit with weights by the keyword of the route, metadata routing switched off where the keyword names the step."""
    if weight is None or route.keyword is None:
        with rows_left(fewer):
            return model.fit(X, y, **params)
    enabled = bool(get_config().get("enable_metadata_routing", False))
    if enabled and not route.routed and params:
        raise ValueError(
            f"with metadata routing enabled, {sorted(params)} can only be passed on together with weights "
            "where the last step requests sample_weight; call set_fit_request(sample_weight=True) on it."
        )
    with config_context(enable_metadata_routing=enabled and route.routed), rows_left(fewer):
        return model.fit(X, y, **params, **{route.keyword: weight})


@contextmanager
def rows_left(fewer: bool = True) -> Iterator[None]:
    """An error of a model that had fewer rows than were asked for is put down to that."""
    try:
        yield
    except ValueError as error:
        if not fewer or isinstance(error, TooFewRows):
            raise
        raise TooFewRows(f"the model cannot be fitted to the rows that keep weight ({error})") from error
