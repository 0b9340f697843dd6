"""How sample weights reach a wrapped estimator: directly, inside a Pipeline, by metadata routing, or as rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter
from sklearn.utils.validation import _num_samples as n_rows

from ..fitting import Method, check_weight
from ..selection import frequencies

__all__ = [
    "Array",
    "Delegating",
    "TooFewRows",
    "WeightRoute",
    "available_with",
    "fit_entries",
    "fit_weighted",
    "last_step",
    "n_rows",
    "routed_weight",
    "rows_left",
    "take_rows",
    "weight_route",
]

Array = NDArray[Any]
NEGLIGIBLE_WEIGHT = 1e-6  # numerical safety: weights below this share of the largest cannot move a fit
MOST_REPEATED = 10_000_000  # cost: rows that weights may become if rows are repeated


@dataclass(frozen=True)
class WeightRoute:
    """How weights are passed to an estimator's ``fit``."""

    keyword: str | None  # None: the estimator takes none, and rows are selected
    reason: str  # for termination_
    # Metadata routing delivers the weights, because the estimator's steps request them. If False, weighted fits run
    # with routing switched off: the keyword already names the step.
    routed: bool = False

    @property
    def takes_weights(self) -> bool:
        """Whether weights are passed."""
        return self.keyword is not None


def available_with(*names: str) -> Callable[[Method], Method]:
    """Make a method of a wrapper available if the wrapped model (fitted, if there is one) has one of these."""

    def check(wrapper: Any) -> bool:
        model = wrapper.estimator_ if hasattr(wrapper, "estimator_") else wrapper._base
        return any(hasattr(model, name) for name in names)

    decorate: Callable[[Method], Method] = available_if(check)
    return decorate


class Delegating:
    """Predictions and features of an estimator are those of the model that it has fitted, its ``estimator_``."""

    estimator_: Any

    @available_with("predict")
    def predict(self, X: Any) -> Array:
        """Return the label or value of every row by the fitted model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "estimator_")
        return self._named(np.asarray(self.estimator_.predict(X)))

    def _named(self, predicted: Array) -> Array:
        """Return predictions as the user names them."""
        return predicted

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


def last_step(estimator: Any) -> Any:
    """Return the model at the end of a Pipeline, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


# ------------------------------------------------------------------------------------------------------------ routes


def weight_route(estimator: Any) -> WeightRoute:
    """Return how ``estimator.fit`` takes sample weights.

    With metadata routing, a step that requests ``sample_weight`` gets it, and for a step that refuses it rows are
    selected. Without a request, wrapping the model is the request: a Pipeline gets ``laststep__sample_weight``.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> weight_route(make_pipeline(StandardScaler(), SVC())).keyword
    'svc__sample_weight'
    """
    if get_config().get("enable_metadata_routing", False) and _resampling(estimator) is None:
        last = last_step(estimator)
        try:
            requests = get_routing_for_object(last)
        except NotImplementedError:  # an estimator without metadata routing
            return _named_route(estimator)
        if getattr(getattr(requests, "fit", None), "requests", {}).get("sample_weight") is False:
            return WeightRoute(None, f"{type(last).__name__} refuses sample_weight (its fit request is False)")
        inside = last is not estimator or not has_fit_parameter(estimator, "sample_weight")
        if inside and requests.consumes("fit", ["sample_weight"]):
            return WeightRoute("sample_weight", f"routing delivers sample_weight to {type(last).__name__}", True)
    return _named_route(estimator)


def _named_route(estimator: Any) -> WeightRoute:
    """Return the route by the name of a keyword, as it is without metadata routing."""
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
    routes = [(_named_route(one), type(one).__name__) for one in _wrapped(estimator)]
    for route, inner_name in routes:
        if not route.takes_weights:
            return WeightRoute(None, f"{inner_name} inside {name} takes no sample_weight")
    if has_fit_parameter(estimator, "sample_weight"):
        return WeightRoute("sample_weight", f"{name}.fit takes sample_weight")
    keywords, parameters = {route.keyword for route, _ in routes}, inspect.signature(estimator.fit).parameters.values()
    if len(keywords) == 1 and any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return WeightRoute(keywords.pop(), f"{name} passes weights on to what it wraps")
    return WeightRoute(None, f"{name}.fit takes no sample_weight")


def _wrapped(estimator: Any) -> list[Any]:
    """Return the estimators that a meta-estimator wraps."""
    several = getattr(estimator, "estimators", None)
    pairs = [pair[1] for pair in several if isinstance(pair, tuple)] if isinstance(several, list) else []
    return [one for one in (getattr(estimator, "estimator", None), *pairs) if isinstance(one, BaseEstimator)]


def _resampling(estimator: Any) -> str | None:
    """Return the step of a Pipeline that changes which rows there are, as samplers of imbalanced-learn do."""
    steps = estimator.steps[:-1] if isinstance(estimator, Pipeline) else []
    return next((name for name, step in steps if hasattr(step, "fit_resample")), None)


def routed_weight(sample_weight: Any, n: int, route: WeightRoute) -> NDArray[np.float64] | None:
    """Return the user's weights as frequencies (None if uniform), or raise if the model could not honour them."""
    given = check_weight(sample_weight, n, relative=True)
    weight = None if given is None else frequencies(given)
    if given is None or weight is None or np.all(weight == 1.0):
        return None
    if route.takes_weights:
        return weight
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


# ----------------------------------------------------------------------------------------------------------- fitting


class TooFewRows(ValueError):
    """Weights left a wrapped model with rows that it cannot be fitted to, such as one of a class."""


@contextmanager
def rows_left() -> Iterator[None]:
    """Put an error of a model that had fewer rows than were asked for down to that."""
    try:
        yield
    except ValueError as error:
        raise TooFewRows(f"the model cannot be fitted to the rows that keep weight ({error})") from error


def fit_weighted(
    estimator: Any, X: Any, y: Array, weight: Array | None, route: WeightRoute, *, rows: Array | None = None,
    counts: Array | None = None, fit_params: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Fit a clone to some rows (or all) with weights, or to the rows of at least half the full weight if it takes none.

    ``counts`` are the user's own weights, already a factor of ``weight``. If rows are selected, these are whole
    numbers: a row is used if the rest of its weight is at least 1/2, and then as often as its count says.
    """
    index = np.arange(n_rows(X)) if rows is None else np.asarray(rows)
    passed: Array | None = None
    if weight is not None:
        local = np.asarray(weight)[index]
        if not np.any(local > 0.0):
            raise ValueError("sample weights must not be zero for every row; got no positive weight.")
        if route.takes_weights:
            keep = local > NEGLIGIBLE_WEIGHT * local.max()
            index, passed = index[keep], local[keep]
        else:
            index = _selected(index, local, None if counts is None else np.asarray(counts)[index])
    return fit_entries(clone(estimator), X, y[index], index, passed, route, fit_params)


def _selected(index: Array, weight: Array, counts: Array | None) -> Array:
    """Return rows of at least half the full weight, each as often as its count says."""
    full = weight.max() if counts is None else counts
    inside = (weight >= 0.5 * full) & (weight > 0.0)
    inside = inside if inside.any() else weight >= 0.5 * weight.max()
    return index[inside] if counts is None else np.repeat(index[inside], np.rint(counts[inside]).astype(np.intp))


def fit_entries(
    model: Any, X: Any, y: Array, rows: Array, weight: Array | None, route: WeightRoute,
    fit_params: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Fit a model to entries: a row of X, which may be repeated, with a label or value and a weight each time."""
    params = dict(fit_params or {})
    if rows.size != n_rows(X) or np.any(rows != np.arange(rows.size)):
        X, params = take_rows(X, rows), _check_method_params(X, params, rows)
    # rows of negligible weight, left out, may have moved the others a little from one
    if weight is None or route.keyword is None or np.all(np.abs(weight - 1.0) <= NEGLIGIBLE_WEIGHT):
        return model.fit(X, y, **params)  # some models are several times slower with uniform weights
    enabled = bool(get_config().get("enable_metadata_routing", False))
    if enabled and not route.routed and params:
        raise ValueError(
            f"with metadata routing enabled, {sorted(params)} can only be passed on together with weights "
            "where the last step requests sample_weight; call set_fit_request(sample_weight=True) on it."
        )
    with config_context(enable_metadata_routing=enabled and route.routed):
        return model.fit(X, y, **params, **{route.keyword: weight})
