"""Progress of a run: a live bar on a terminal, a line for each tenth of a stage in a log."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["StageProgress"]


class StageProgress:
    """Stage, cell (with its seed), share done, time spent and time left.

    Parameters
    ----------
    console : rich.console.Console, optional
        Default: standard error.
    quiet : bool, default=False
        Show nothing.
    """

    def __init__(self, console: Console | None = None, quiet: bool = False) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self.quiet = quiet
        self.log = not (quiet or self.console.is_terminal)
        self.bars = Progress(
            TextColumn("[bold]{task.fields[stage]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[label]}", style="dim"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=quiet or self.log,
        )
        self.task = TaskID(0)

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def start(self, stage: str, total: int) -> None:
        """A stage (a table, the figures) of so many cells begins."""
        self.task = self.bars.add_task(stage, total=total, stage=stage, label="")
        if self.log:
            self._line(f"{stage}: {total} cells")

    def step(self, label: str) -> None:
        """One cell is done."""
        self.bars.update(self.task, advance=1, label=label)
        if self.log:
            task = self.bars.tasks[self.task]
            done, total = int(task.completed), int(task.total or 1)
            if done * 10 // total > (done - 1) * 10 // total:
                left = "" if task.time_remaining is None else f"  about {task.time_remaining:.0f} s left"
                self._line(f"{task.description}: {done}/{total}  {label}{left}")

    def _line(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)
