"""What is said to the user: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Console", "plain_data"]


class Console:
    """Progress, warnings, results; and whether somebody pressed Ctrl-C.

    Parameters
    ----------
    quiet : bool
        Say nothing but errors (and the result, with ``as_json``).
    as_json : bool
        Say one JSON object on standard output, nothing else there.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.warnings: list[str] = []
        self.seconds: dict[str, float] = {}
        self.signal: int | None = None
        self.ended = False
        self._shielded = False
        self._bar: tuple[Progress, TaskID] | None = None

    # ------------------------------------------------------------------------------------------- results

    def say(self, text: str = "") -> None:
        """A line for people."""
        if not (self.quiet or self.as_json):
            self._write(text + "\n", sys.stdout)

    def tell(self, text: str, *, strong: bool = False) -> None:
        """Sentences for people, in lines of at most 80 signs; strong ones stand out where a terminal can show it."""
        lines = [textwrap.fill(line, 80, break_long_words=False, break_on_hyphens=False) for line in text.split("\n")]
        bold = strong and sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self.say("\n".join(f"\x1b[1m{line}\x1b[0m" if bold and line else line for line in lines))

    def table(self, rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
        """Aligned columns under a header; the first ``left`` of them to the left, numbers to the right."""
        widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
        for i, row in enumerate(rows):
            cells = [c.ljust(w) if j < left else c.rjust(w) for j, (c, w) in enumerate(zip(row, widths, strict=True))]
            self.say(("  " + "   ".join(cells)).rstrip())
            if i == 0:
                self.say("  " + "   ".join("-" * width for width in widths))

    def result(self, value: Mapping[str, Any]) -> None:
        """The result for machines."""
        if self.as_json:
            data = plain_data({**value, "warnings": self.warnings})
            self._write(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n", sys.stdout)

    def output(self, text: str) -> None:
        """The output itself (a table on standard output), whatever is asked to be quiet."""
        self._write(text, sys.stdout)

    # ------------------------------------------------------------------------------- warnings and errors

    def warn(self, message: str) -> None:
        """Something the user should know."""
        if message not in self.warnings:
            self.warnings.append(message)
            if not self.quiet:
                self._note(f"warning: {message}")

    def notice(self, message: str) -> None:
        """Something about the data that is no trouble, and worth a look."""
        if not (self.quiet or self.as_json):
            self._note(f"notice: {message}")

    def fail(self, message: str, code: int) -> int:
        """Say what went wrong and give back the exit code."""
        if self.as_json:
            with suppress(OSError):
                self._write(json.dumps({"error": message, "code": code}) + "\n", sys.stdout)
        self._note(f"selfpaced: error: {message}")
        return code

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Warnings of libraries come here; those about code, not data, are dropped."""

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            self.warn(" ".join(str(message).split()))

        with warnings.catch_warnings():
            warnings.simplefilter("default")
            for category in (DeprecationWarning, FutureWarning, PendingDeprecationWarning, ResourceWarning):
                warnings.simplefilter("ignore", category)
            warnings.showwarning = show
            yield

    # ------------------------------------------------------------------------------------------ progress

    @contextmanager
    def progress(self, total: int) -> Iterator[None]:
        """A bar over so many steps where standard error is a terminal; elsewhere each step is a line."""
        from rich.console import Console as Screen
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        if self.quiet or not sys.stderr.isatty():
            yield
            return
        words, detail = TextColumn("{task.description}"), TextColumn("[dim]{task.fields[detail]}")
        columns = (SpinnerColumn(), words, BarColumn(bar_width=24), TimeElapsedColumn(), detail)
        with Progress(*columns, console=Screen(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=total, detail="")
            with _stages(lambda name: bar.update(task, detail=name)):
                self._bar = (bar, task)
                try:
                    yield
                finally:
                    self._bar = None

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One step of the work; an interrupt that compiled code has swallowed is raised again when it ends."""
        if self._bar is not None:
            self._bar[0].update(self._bar[1], description=name, detail="")
        began = time.perf_counter()
        yield
        self.check()
        self.seconds[name] = round(time.perf_counter() - began, 3)
        if self._bar is not None:
            self._bar[0].advance(self._bar[1])
        elif not (self.quiet or self.as_json):
            self._note(f"{name} ... {self.seconds[name]:.1f} s")

    # ------------------------------------------------------------------------------------------- signals

    @contextmanager
    def signals(self, last: bool = False) -> Iterator[None]:
        """Ctrl-C and a polite kill become one exception, which no library can hide.

        Where the program ends with it (``last``), what comes after the first one is not heard: it would end the
        program in the middle of its end, with another exit code.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [signal.SIGINT, signal.SIGTERM]
        before = [signal.signal(number, self._arrived) for number in numbers]
        try:
            yield
        finally:
            deaf = last and (self.ended or self.signal is not None)
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, signal.SIG_IGN if deaf else handler)

    def _arrived(self, number: int, _: Any) -> None:
        self.signal = number
        if not (self._shielded or self.ended):
            raise KeyboardInterrupt

    def end(self) -> None:
        """Hear no further interrupts: the command ends, and another one must not change its exit code."""
        self.ended = True

    def check(self) -> None:
        """Raise the interrupt that came while nobody could hear it."""
        if self.signal is not None:
            raise KeyboardInterrupt

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Interrupts wait until the block is done: for the moment in which finished files change names."""
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False

    def _note(self, text: str) -> None:
        if self._bar is not None:
            self._bar[0].console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            with suppress(OSError):
                self._write(text + "\n", sys.stderr)

    @staticmethod
    def _write(text: str, stream: TextIO) -> None:
        stream.write(text)
        stream.flush()


def plain_data(value: Any) -> Any:
    """NumPy values, dates and infinities as what JSON knows: numbers, strings, null.

    >>> import numpy as np
    >>> plain_data({"lam": np.float64("inf"), "rows": np.arange(2)})
    {'lam': None, 'rows': [0, 1]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain_data(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain_data(value.tolist())
    if isinstance(value, list | tuple | set):
        return [plain_data(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | type(None)) else str(value)


@contextmanager
def _stages(show: Callable[[str], None]) -> Iterator[None]:
    """Show what estimators log about their stages."""
    logger = logging.getLogger("selfpaced")

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            show(record.getMessage())

    handler, level, propagate = Listener(), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
