"""A progress bar with the cell at work and the time left: rich if installed, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

__all__ = ["PlainProgress", "Progress", "RichProgress", "make_progress"]


class Progress(Protocol):
    """What an experiment tells about its work."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *details: object) -> None: ...

    def start(self, stage: str, total: int) -> None:
        """A stage (a table, the figures) of so many cells begins."""

    def step(self, label: str, cached: bool = False) -> None:
        """One cell is done; a cached one says nothing about the time that the others will take."""


class PlainProgress:
    """Lines on a stream, at most one for each tenth of a stage."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.stream, self.quiet = stream or sys.stderr, quiet
        self.stage, self.total, self.done, self.ready, self.began = "", 0, 0, 0, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def start(self, stage: str, total: int) -> None:
        """See :class:`Progress`."""
        self.stage, self.total, self.done, self.ready, self.began = stage, total, 0, 0, time.monotonic()
        self._write(f"{stage}: {total} cells")

    def step(self, label: str, cached: bool = False) -> None:
        """See :class:`Progress`."""
        self.done += 1
        if cached:
            self.ready, self.began = self.done, time.monotonic()
        if self.done * 10 // max(self.total, 1) > (self.done - 1) * 10 // max(self.total, 1):
            spent = time.monotonic() - self.began
            left = spent / max(self.done - self.ready, 1) * (self.total - self.done)
            self._write(f"{self.stage}: {self.done}/{self.total}  {label}  about {left:.0f} s left")

    def _write(self, line: str) -> None:
        if not self.quiet:
            self.stream.write(line + "\n")
            self.stream.flush()


class RichProgress:
    """A live bar: stage, cell (with its seed), share done, time spent and time left."""

    def __init__(self, console: Any) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bars

        self.bars = Bars(
            TextColumn("[bold]{task.fields[stage]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[label]}", style="dim"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=False,
        )
        self.task: Any = None

    def __enter__(self) -> Self:
        self.bars.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self.bars.__exit__(kind, error, trace)

    def start(self, stage: str, total: int) -> None:
        """See :class:`Progress`."""
        self.task = self.bars.add_task(stage, total=total, stage=stage, label="")

    def step(self, label: str, cached: bool = False) -> None:  # noqa: ARG002
        """See :class:`Progress`."""
        self.bars.update(self.task, advance=1, label=label)


def make_progress(quiet: bool = False) -> Progress:
    """A live bar on a terminal with rich installed, plain lines otherwise, nothing when quiet."""
    if quiet or not sys.stderr.isatty():
        return PlainProgress(quiet=quiet)
    try:
        from rich.console import Console
    except ImportError:
        return PlainProgress()
    return RichProgress(Console(stderr=True))
