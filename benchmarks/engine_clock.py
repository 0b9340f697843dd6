"""Clocks of the parts of `engines.py` whose work is done by several processes."""

import time
from typing import NamedTuple


class Spent(NamedTuple):
    """Seconds of the processor and of the wall."""

    processor: float
    wall: float

    def __add__(self, other):
        return Spent(self.processor + other.processor, self.wall + other.wall)

    def over(self, other, name):
        """How many times another, in words."""
        return f"{self.processor / other.processor:.2f} x {name} ({self.wall / other.wall:.2f} by wall time)"

    def line(self, what, note):
        """A line of the table."""
        return what, self.processor, f"{self.wall:.3g} wall; {note}"


class Clock:
    """Processor time of this process and all below it, the JVM and its Python workers included; wall time beside."""

    def __init__(self):
        self._seen = {}

    def _processor(self):
        import psutil

        own = psutil.Process()
        for process in (own, *own.children(recursive=True)):
            try:
                used = process.cpu_times()
            except psutil.Error:
                continue
            self._seen[process.pid] = used.user + used.system
        return sum(self._seen.values())  # of those that have ended, what was last seen

    def timed(self, call, repeat=2):
        """What the cheapest run has spent, and the last value."""
        runs = []
        for _ in range(repeat):
            processor, wall = self._processor(), time.perf_counter()
            value = call()
            runs.append(Spent(self._processor() - processor, time.perf_counter() - wall))
        return min(runs), value


def each(spent, times=1, *, rows, size):
    """Processor time for a row and a byte of features, in words."""
    seconds = spent.processor / times
    return f"{seconds / rows * 1e9:.0f} ns a row, {seconds / size * 1e9:.2g} ns a byte"


__all__ = ["Clock", "Spent", "each"]
