"""A progress bar on the error stream, and nothing when it is not wanted."""

from __future__ import annotations

import logging
import sys
import time
from typing import TextIO

logger = logging.getLogger(__name__)


class Bar:
    """Counts sweeps: ``warm start [#####...............] 12/47  3.1 s``.

    Parameters
    ----------
    total : int
        The expected number of sweeps; the bar stretches if there are more.
    shown : bool
        Whether anything is written.
    stream : file, optional
        Where to write; the error stream by default.
    """

    width = 24

    def __init__(self, total: int, shown: bool, stream: TextIO | None = None) -> None:
        self.total, self.shown, self.done = total, shown, 0
        self.stream = sys.stderr if stream is None else stream
        self.began = time.perf_counter()

    def __call__(self, label: str) -> None:
        self.done += 1
        if not self.shown:
            return
        self.total = max(self.total, self.done)
        filled = self.width * self.done // self.total
        bar = "#" * filled + "." * (self.width - filled)
        seconds = time.perf_counter() - self.began
        self.stream.write(f"\r{label:<10s} [{bar}] {self.done}/{self.total} sweeps {seconds:7.1f} s")
        self.stream.flush()

    def close(self) -> None:
        """End the line; the total is logged in any case."""
        seconds = time.perf_counter() - self.began
        logger.info("%d sweeps in %.1f s", self.done, seconds)
        if self.shown:
            self.stream.write("\n")
            self.stream.flush()
