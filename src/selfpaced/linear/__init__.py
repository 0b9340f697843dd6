"""Self-paced linear models, loaded on first use."""

from importlib import import_module
from typing import Any

_EXPORTS = {
    "SelfPacedLinearRegression": "regression",
    "SelfPacedLogisticRegression": "logistic",
}

__all__ = ["SelfPacedLinearRegression", "SelfPacedLogisticRegression"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
