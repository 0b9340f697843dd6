"""Parameters of well-known models that a wrapper may change if the user has left them at their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import Pipeline

__all__ = ["ABSOLUTE_ERROR", "REGULARISED", "changed_params", "told"]

Changes = Mapping[str, tuple[Any, Any]]

# name of a class -> parameter -> (default, changed value); measured by benchmarks/wrappers.py --part labels
REGULARISED: Mapping[str, Changes] = {
    "LGBMClassifier": {"num_leaves": (31, 7), "min_child_samples": (20, 50)},
    "HistGradientBoostingClassifier": {"max_leaf_nodes": (31, 7), "min_samples_leaf": (20, 50)},
    "RandomForestClassifier": {"min_samples_leaf": (1, 5)},
    "ExtraTreesClassifier": {"min_samples_leaf": (1, 5)},
}
# measured by benchmarks/wrappers.py --part values
ABSOLUTE_ERROR: Mapping[str, Changes] = {
    "HistGradientBoostingRegressor": {"loss": ("squared_error", "absolute_error")},
    "GradientBoostingRegressor": {"loss": ("squared_error", "absolute_error")},
    "LGBMRegressor": {"objective": (None, "regression_l1")},
    "XGBRegressor": {"objective": ("reg:squarederror", "reg:absoluteerror")},
}


def changed_params(estimator: Any, known: Mapping[str, Changes]) -> dict[str, Any]:
    """Return the changed parameters of a known model, alone or as the last step of a Pipeline.

    Empty if the model is not known, or if the user has set one of the parameters.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> changed_params(RandomForestClassifier(), REGULARISED)
    {'min_samples_leaf': 5}
    >>> changed_params(RandomForestClassifier(min_samples_leaf=2), REGULARISED)
    {}
    """
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    changes = known.get(type(estimator).__name__, {})
    if not changes or not hasattr(estimator, "get_params"):
        return {}
    given = estimator.get_params(deep=False)
    if any(name not in given or given[name] != default for name, (default, _) in changes.items()):
        return {}
    return {prefix + name: value for name, (_, value) in changes.items()}


def told(params: Mapping[str, Any]) -> str:
    """Return changed parameters as part of a sentence."""
    return ", ".join(f"{name}={value!r}" for name, value in params.items())
