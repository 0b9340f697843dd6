"""One self-contained HTML page about anything this library fitted.

The package itself can be called: ``selfpaced.report(model, X, y)`` is :func:`report`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .data import Summary
from .page import ReportFile, render, report
from .summarise import summarise


class _Callable(ModuleType):
    """A module that is also its main function: importing it rebinds ``selfpaced.report``, which users call."""

    def __call__(self, *args: Any, **kwargs: Any) -> ReportFile:
        return report(*args, **kwargs)


_Callable.__call__.__doc__ = report.__doc__
sys.modules[__name__].__class__ = _Callable

__all__ = ["ReportFile", "Summary", "render", "report", "summarise"]
