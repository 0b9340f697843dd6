"""The paper's experiments as data: run them, read them, write them.

>>> from selfpaced_experiments import paper
>>> paper.FACTORIZATION["SPL-IR-welsch"]["RMSE"].mean
0.0596
"""

from importlib import import_module
from typing import Any

_EXPORTS = {
    "Cache": "cells",
    "Results": "results",
    "ReproduceSettings": "reproduce",
    "load": "results",
    "write": "reproduce",
}

#: What can be run by itself, numbered as in the paper.
SECTIONS = ("table1", "table2", "table3", "table5", "figure1", "figure2", "figure3")

__all__ = ["SECTIONS", "Cache", "ReproduceSettings", "Results", "load", "write"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
