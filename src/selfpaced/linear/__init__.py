"""Self-paced linear models, loaded on first use."""

import typing as _typing
from importlib import import_module as _import_module

_EXPORTS = {
    "SelfPacedLinearRegression": "regression",
    "SelfPacedLogisticRegression": "logistic",
}

__all__ = ["SelfPacedLinearRegression", "SelfPacedLogisticRegression"]


def __getattr__(name: str) -> _typing.Any:
    if name in _EXPORTS:
        return getattr(_import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
