"""What both wrappers are to scikit-learn: features, tags and metadata of the wrapped model, seeds for its clones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from ..fitting import CallbackSupportMixin

__all__ = ["WrapperMixin", "route_fit_params", "seeded"]


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


class WrapperMixin(CallbackSupportMixin, MetaEstimatorMixin):
    """Delegation to the wrapped model: features, tags, metadata routing of ``groups`` to the splitter.

    The class using it has the parameters ``estimator`` and ``cv`` and the fitted attribute ``estimator_``. Its
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
        return int(_fitted(self).n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features seen by the wrapped model in ``fit``."""
        return np.asarray(_fitted(self).feature_names_in_)

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
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.target_tags = replace(inner.target_tags, single_output=True, multi_output=False)
        if inner.classifier_tags is not None:
            tags.classifier_tags = replace(inner.classifier_tags, multi_label=False)
        tags.regressor_tags = inner.regressor_tags or tags.regressor_tags
        tags.non_deterministic, tags.no_validation = inner.non_deterministic, inner.no_validation
        return tags


def _fitted(wrapper: Any) -> Any:
    """The fitted model, or AttributeError so that ``hasattr`` is False before ``fit``."""
    try:
        check_is_fitted(wrapper, "estimator_")
    except NotFittedError as error:
        raise AttributeError(f"{type(wrapper).__name__} is not fitted yet; call fit first.") from error
    return wrapper.estimator_


def route_fit_params(wrapper: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Further ``fit`` keywords for the wrapped model: by metadata routing where enabled, else unchanged."""
    if not params or not get_config().get("enable_metadata_routing", False):
        return dict(params)
    return dict(process_routing(wrapper, "fit", **params).estimator.fit)
