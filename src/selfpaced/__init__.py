"""Find wrong labels and outliers in your data, and fit a model that they do not spoil."""

import typing as _typing
from importlib import import_module as _import_module

from .registry import ESTIMATORS as _ESTIMATORS

__version__ = "0.1.0"

# Attribute -> the module that defines it. Loaded on first use, so that `import selfpaced` costs nothing.
_EXPORTS = {name: known.module for name, known in _ESTIMATORS.items()} | {
    "LabelAudit": "audit",
    "SuspectFilter": "wrappers",
    "TableEncoder": "tables",
    "apply_decisions": "tables",
    "audit_annotators": "audit",
    "audit_labels": "audit",
    "label_issues": "inspection",
    "soft_label_rows": "wrappers",
    "suspects": "inspection",
}
# The documented modules. `report` is a package that can be called: selfpaced.report(model, X, y).
_MODULES = [
    *("clustering", "datasets", "inspection", "assessment", "pacing", "persistence", "plot"),
    *("regularizers", "report", "robust", "selection", "solver"),
]
_EXTRAS = ("torch",)  # need a package of their own: there when asked for, but no part of `import *`

__all__ = ["__version__", *sorted(_EXPORTS), *_MODULES]


def __getattr__(name: str) -> _typing.Any:
    if name in _EXPORTS:
        value = getattr(_import_module(f"{__name__}.{_EXPORTS[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES or name in _EXTRAS:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_EXTRAS, *(name for name in globals() if name.startswith("__"))})
