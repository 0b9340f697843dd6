"""Stages of a fit on a cluster whose workers may die: a stage that fails with one is done again, and no other."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import dask
from distributed import Future, get_client, wait

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

INTERVAL = 1.0  # cost: seconds between two looks at the workers


class RepeatedStages:
    """Runs stages on the current client, if there is one, and remembers which had to be done again.

    Estimators that train on several workers at once do not outlive one of them: their fit ends in an error of their
    own. What a stage starts from (models of earlier stages, blocks of the table) is held here, or is made again by
    Dask, so that nothing but the stage itself is lost.
    """

    def __init__(self) -> None:
        try:
            self.client: Any = get_client()
        except ValueError:  # there is no cluster: a scheduler of this process has no workers to lose
            self.client = None
        self.repeated: list[str] = []

    def run(self, name: str, stage: Callable[[], Result]) -> Result:
        """What the stage gives; it is repeated as often as Dask repeats a task whose worker dies."""
        if self.client is None:
            return stage()
        for left in reversed(range(1 + dask.config.get("distributed.scheduler.allowed-failures"))):
            workers, began = set(self.client.nthreads()), time.perf_counter()
            try:
                with self._watched(workers):
                    found = stage()
            except (Exception, asyncio.CancelledError) as error:
                dead = workers - self._alive()
                if not dead or not left:
                    raise
                why = str(error).strip().split("\n")[0]
                logger.warning("%s: %d of %d workers died (%s); again", name, len(dead), len(workers), why)
                self.repeated.append(name)
                self.client.wait_for_workers(1, timeout=300)
            else:
                logger.info("%s (%.2f s)", name, time.perf_counter() - began)
                return found
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def _watched(self, workers: set[str]) -> Iterator[None]:
        """Tasks that are bound to a worker which is gone would be waited for without end: they are given up."""
        ended, before = threading.Event(), set(self.client.futures)

        def watch() -> None:
            idle = 0
            while not ended.wait(INTERVAL):
                lost = not workers <= set(self.client.nthreads())
                idle = idle + 1 if lost and not any(self.client.processing().values()) else 0
                if idle >= 3:  # what runs on others will end by itself, and must not be cut short
                    states = list(self.client.futures.items())
                    waiting = [key for key, state in states if key not in before and state.status == "pending"]
                    self.client.cancel([Future(key, self.client) for key in waiting])

        watcher = threading.Thread(target=watch, daemon=True, name="selfpaced-stage")
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def _alive(self) -> set[str]:
        """Workers that answer, fit for another training: the scheduler may not know yet that others are dead."""
        answers = self.client.run(_knows_network, on_error="return")
        alive = {address for address, answer in answers.items() if isinstance(answer, bool)}
        threads, stale = self.client.nthreads(), [address for address in alive if answers[address] is True]
        calls = [
            self.client.submit(_forget_network, number, workers=[address], pure=False)
            for address in stale
            for number in range(threads.get(address, 0))
        ]
        with suppress(TimeoutError, asyncio.TimeoutError):  # another one that dies is found by the next attempt
            wait(calls, timeout=INTERVAL * 10)
        return alive


def _knows_network() -> bool:
    return "lightgbm.basic" in sys.modules


def _forget_network(number: int) -> int:
    """LightGBM keeps the connections of a training that failed in each thread, and would use them in the next.

    Of as many calls as a worker has threads, each must find one of its own: hence the wait.
    """
    sys.modules["lightgbm.basic"]._LIB.LGBM_NetworkFree()
    time.sleep(0.1)
    return number
