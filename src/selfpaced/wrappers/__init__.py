"""Self-paced wrappers for any scikit-learn estimator, loaded on first use."""

import typing as _typing
from importlib import import_module as _import_module

_EXPORTS = {
    "SelfPacedClassifier": "_classifier",
    "SelfPacedRegressor": "_regressor",
    "SuspectFilter": "_filter",
    "soft_label_rows": "_soft_labels",
}

__all__ = ["SelfPacedClassifier", "SelfPacedRegressor", "SuspectFilter", "soft_label_rows"]


def __getattr__(name: str) -> _typing.Any:
    if name in _EXPORTS:
        return getattr(_import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
