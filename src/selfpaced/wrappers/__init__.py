"""Self-paced wrappers for any scikit-learn estimator, loaded on first use."""

from importlib import import_module
from typing import Any

_EXPORTS = {
    "SelfPacedClassifier": "_classifier",
    "SelfPacedRegressor": "_regressor",
    "SuspectFilter": "_filter",
    "soft_label_rows": "_soft_labels",
}

__all__ = ["SelfPacedClassifier", "SelfPacedRegressor", "SuspectFilter", "soft_label_rows"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
