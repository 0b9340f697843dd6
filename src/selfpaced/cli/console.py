"""Output to the user: results on standard output, everything else on standard error; exit codes and signals."""

from __future__ import annotations

import errno
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
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TextIO

from selfpaced.formatting import duration, percent, solid_percent

if TYPE_CHECKING:
    from rich.progress import Progress

TERMINAL_WIDTH = 80  # convention: columns of a terminal
COLUMN_GAP = 2  # display: spaces between the columns of a table
SLOW = 2.0  # display: seconds after which a step gets a bar of its own


class Exit(IntEnum):
    """Exit codes as shells know them; 1: found something, 2: usage, 70: sysexits, 128 + n: signal n."""

    OK = 0
    FOUND = 1
    USAGE = 2
    DATA = 3
    REFUSED = 4
    DISK = 5
    PACKAGE = 6
    INTERNAL = 70
    INTERRUPTED = 130
    TERMINATED = 143


#: Exit codes and what they mean, as the help shows them.
CODES = {
    Exit.OK: "success",
    Exit.FOUND: "inspect has found something",
    Exit.USAGE: "wrong arguments",
    Exit.DATA: "the data cannot be read or fitted",
    Exit.REFUSED: "the model file is not trusted and was not opened",
    Exit.DISK: "a file could not be written",
    Exit.PACKAGE: "an optional package is missing",
    Exit.INTERNAL: "an error in selfpaced itself",
    Exit.INTERRUPTED: "interrupted by Ctrl-C (143: terminated); no incomplete file is left",
}


class UsageError(ValueError):
    """The arguments of the command do not fit together or do not fit the data."""


def classify(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the message of an error."""
    from selfpaced.persistence import UntrustedFileError

    if isinstance(error, UsageError):
        return Exit.USAGE, str(error)
    if isinstance(error, UntrustedFileError):
        return Exit.REFUSED, str(error)
    if isinstance(error, ModuleNotFoundError):  # an ImportError of the library names the extra
        return Exit.PACKAGE, f'the command line needs {error.name}: pip install "selfpaced[cli]"'
    if isinstance(error, ImportError):
        return Exit.PACKAGE, str(error)
    if isinstance(error, MemoryError):
        return Exit.DATA, "the table does not fit into memory"
    if isinstance(error, OSError):
        return Exit.DISK, _disk(error)
    if isinstance(error, ValueError | TypeError):  # a TableError, too
        return Exit.DATA, str(error)
    return Exit.INTERNAL, f"{type(error).__name__}: {error} (run again with --debug to see where)"


def _disk(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"no space left on the disk to write{where}; no incomplete file was left"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission to write{where}: {error.strerror}"
    return f"{error.strerror or error}{':' if where else ''}{where}"


class Console:
    """Progress, warnings and results of a command, and its signals.

    ``quiet`` prints errors only. ``as_json`` prints one JSON object on standard output, and nothing else there.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.warnings: list[str] = []
        self.seconds: dict[str, float] = {}
        self.signal: int | None = None
        self.ended = False
        self._shielded = False
        self._bar: Progress | None = None

    # ------------------------------------------------------------------------------------------- results

    def say(self, text: str = "") -> None:
        """Print a line for people."""
        if not (self.quiet or self.as_json):
            self._write(text + "\n", sys.stdout)

    def tell(self, text: str, *, strong: bool = False, indent: str = "") -> None:
        """Print sentences for people in lines of at most 80 characters; strong ones are bold on a terminal."""
        wrap = textwrap.TextWrapper(
            TERMINAL_WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent
        )
        solid = solid_percent(text)
        lines = [wrap.fill(line).replace("\N{NO-BREAK SPACE}", " ") for line in solid.split("\n")]
        bold = strong and sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self.say("\n".join(f"\x1b[1m{line}\x1b[0m" if bold and line else line for line in lines))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> None:
        """Print a table of at most 80 characters; the columns in ``left`` are text, the others are numbers."""
        if self.quiet or self.as_json:
            return
        from rich import box
        from rich.console import Console as Screen
        from rich.table import Table
        from rich.text import Text

        made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, COLUMN_GAP, 0, 0))
        widths = [max(len(row[place]) for row in [header, *rows]) for place in range(len(header))]
        left_over = (
            TERMINAL_WIDTH - sum(width + COLUMN_GAP + 1 for width in widths[:-1]) - COLUMN_GAP
        )  # for the last column, which is cut
        for place, name in enumerate(header):
            made.add_column(name, justify="left" if place in left else "right", no_wrap=True)
        for row in rows:
            last = textwrap.shorten(row[-1], left_over, placeholder=" …").strip()
            last = last if last != "…" else f"{row[-1][: left_over - 1]}…"  # of a long word, its beginning
            made.add_row(*map(Text, [*row[:-1], last]))  # as Text: brackets are no markup
        Screen(file=sys.stdout, width=TERMINAL_WIDTH, highlight=False).print(made)

    def result(self, value: Mapping[str, Any]) -> None:
        """Print the result for machines."""
        if self.as_json:
            data = plain_data({**value, "warnings": self.warnings})
            self._write(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n", sys.stdout)

    def output(self, text: str) -> None:
        """Print the output itself (such as a table), even with ``quiet``."""
        self._write(text, sys.stdout)

    # ------------------------------------------------------------------------------- warnings and errors

    def warn(self, message: str) -> None:
        """Print something the user should know."""
        if message not in self.warnings:
            self.warnings.append(message)
            if not self.quiet:
                self._note(f"warning: {message}")

    def notice(self, message: str) -> None:
        """Print a finding about the data that is not an error."""
        if not (self.quiet or self.as_json):
            self._note(f"notice: {message}")

    def fail(self, message: str, code: int) -> int:
        """Print what went wrong and return the exit code."""
        if self.as_json:
            with suppress(OSError):
                self._write(json.dumps({"error": message, "code": code}) + "\n", sys.stdout)
        self._note(f"selfpaced: error: {message}")
        return code

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Print warnings of libraries about data; drop those about code."""

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
    def progress(self) -> Iterator[None]:
        """Show a bar for every slow step on a terminal; elsewhere each step is a line."""
        from rich.console import Console as Screen
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        if self.quiet or not sys.stderr.isatty():
            yield
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
        with Progress(*columns, console=Screen(stderr=True), transient=True) as bar:
            self._bar = bar
            try:
                yield
            finally:
                self._bar = None

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step of the work; an interrupt that compiled code has swallowed is raised again when it ends."""
        began = time.perf_counter()
        with self._slow_step(name):
            yield
        self.check()
        self.seconds[name] = round(time.perf_counter() - began, 3)
        if self._bar is None and not (self.quiet or self.as_json):
            self._note(f"{name} ... {duration(self.seconds[name])}")

    @contextmanager
    def _slow_step(self, name: str) -> Iterator[None]:
        """Show the step once it has taken two seconds."""
        bar = self._bar
        if bar is None:
            yield
            return
        task = bar.add_task(name, total=None, visible=False)
        timer = threading.Timer(SLOW, bar.update, [task], {"visible": True})
        timer.daemon = True
        timer.start()
        try:
            with _listening(lambda text: bar.update(task, description=f"{name.split()[0]}: {text}")):
                yield
        finally:
            timer.cancel()
            bar.remove_task(task)

    def timing(self) -> str:
        """Return the total time and the share of each step, which is named by its first word."""
        total = sum(self.seconds.values())
        shares = [f"{name.split()[0]} {percent(spent / max(total, 1e-9), 0)}" for name, spent in self.seconds.items()]
        return f"Time: {duration(total)} ({', '.join(shares)})."

    # ------------------------------------------------------------------------------------------- signals

    @contextmanager
    def signals(self, last: bool = False) -> Iterator[None]:
        """Turn SIGINT and SIGTERM into one exception, which no library can hide.

        If the program ends with it (``last``), later signals are ignored: they would change the exit code.
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
        """Ignore further interrupts: the command ends, and another one must not change its exit code."""
        self.ended = True

    def check(self) -> None:
        """Raise the interrupt that compiled code has swallowed."""
        if self.signal is not None:
            raise KeyboardInterrupt

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Delay interrupts until the block is done, while finished files are moved."""
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False

    def _note(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            with suppress(OSError):
                self._write(text + "\n", sys.stderr)

    @staticmethod
    def _write(text: str, stream: TextIO) -> None:
        stream.write(text)
        stream.flush()


@contextmanager
def _listening(show: Callable[[str], None]) -> Iterator[None]:
    """Show what is logged, such as passes over a table larger than memory."""
    logger, handler = logging.getLogger("selfpaced"), logging.Handler(logging.INFO)
    level = logger.level
    handler.emit = lambda record: show(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def plain_data(value: Any) -> Any:
    """Return NumPy values, dates and infinities as JSON types: numbers, strings, null.

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
