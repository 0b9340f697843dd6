"""Who hears about the stages of a fit: the log, a line of ``verbose``, and scikit-learn's callbacks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover - depends on the installed scikit-learn

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in where the installed scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Stand-in where the installed scikit-learn has no callbacks."""
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]

logger = logging.getLogger("selfpaced")


class Progress:
    """Tells whoever listens which stage of a fit has ended, and what it took."""

    def __init__(self, owner: Any, X: Any = None, y: Any = None) -> None:
        self.owner, self.X, self.y = owner, X, y
        self.verbose = int(getattr(owner, "verbose", 0) or 0)
        self.context: Any = None
        if hasattr(owner, "_init_callback_context"):
            self.context = owner._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=owner, X=X, y=y)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """One stage of the fit."""
        task = None if self.context is None else self.context.subcontext(task_name=name)
        if task is not None:
            task.call_on_fit_task_begin(estimator=self.owner, X=self.X, y=self.y)
        began = time.perf_counter()
        yield
        message = f"{type(self.owner).__name__}: {name} ({time.perf_counter() - began:.2f} s)"
        logger.log(logging.INFO if self.verbose else logging.DEBUG, message)
        if task is not None:
            task.call_on_fit_task_end(estimator=self.owner, X=self.X, y=self.y)

    @contextmanager
    def running(self) -> Iterator[Progress]:
        """The whole fit; with ``verbose`` its lines go to stderr unless logging is configured."""
        handler, level = None, logger.level
        if self.verbose and not logger.isEnabledFor(logging.INFO):
            handler = logging.StreamHandler()
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
        try:
            yield self
        finally:
            if handler is not None:
                logger.removeHandler(handler)
                logger.setLevel(level)
            if self.context is not None:
                self.context.call_on_fit_task_end(estimator=self.owner, X=self.X, y=self.y)
