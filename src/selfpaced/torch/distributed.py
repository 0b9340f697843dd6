"""Several ranks: their counts meet in the store of the process group, and no rank waits for another one's batches.

A collective inside ``forward`` would have to be called by every rank at the same moment. Ranks with more rows, more
steps, or a ``Join`` that has ended do not do that: they would wait forever, or take part in another collective.
"""

from __future__ import annotations

import itertools
import math
import pickle
import zlib
from typing import Any

import torch.distributed as dist

from .counts import EpochCounts

_numbers = itertools.count()


def world_size() -> int:
    """The number of ranks that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class Exchange:
    """Rounds of one post for each rank; a round is complete when every rank has posted.

    The result of a round is used from the step after the latest post on, counted on every rank: ranks that train in
    step change their pace in the same step.
    """

    def __init__(self) -> None:
        self._name: str | None = None
        self._round = 0
        self.posted = False

    def __reduce__(self) -> tuple[type[Exchange], tuple[()]]:
        return Exchange, ()  # a copy of a criterion has rounds of its own

    def post(self, counts: EpochCounts, step: int) -> None:
        """Publish what this rank counted up to this step."""
        if self._name is None:
            self._name = f"selfpaced/{next(_numbers)}"
        _store().set(self._key(dist.get_rank()), zlib.compress(pickle.dumps((step, counts)), 1))
        self.posted = True

    def ready(self, step: int) -> EpochCounts | None:
        """The sum over ranks if the round is complete, without waiting."""
        keys = [self._key(rank) for rank in range(world_size())]
        if not _store().check(keys):
            return None
        posts = self._read(keys)
        return None if step <= max(at for at, _ in posts) else self._finish(posts)

    def wait(self) -> EpochCounts:
        """The sum over ranks; every rank must come to this point."""
        keys = [self._key(rank) for rank in range(world_size())]
        try:
            _store().wait(keys)
        except Exception as error:
            missing = [rank for rank, key in enumerate(keys) if not _store().check([key])]
            raise RuntimeError(
                f"step_epoch() must be called by every rank; rank {missing} did not call it in time"
            ) from error
        return self._finish(self._read(keys))

    def _read(self, keys: list[str]) -> list[tuple[int, EpochCounts]]:
        store = _store()
        return [pickle.loads(zlib.decompress(store.get(key))) for key in keys]

    def _finish(self, posts: list[tuple[int, EpochCounts]]) -> EpochCounts:
        if self._round:  # whoever has posted in this round has read the one before
            _store().delete_key(self._key(dist.get_rank(), self._round - 1))
        self._round, self.posted = self._round + 1, False
        total = EpochCounts()
        for _, counts in posts:
            total = total + counts
        accuracies = [counts.held_out for _, counts in posts if not math.isnan(counts.held_out)]
        mean = sum(accuracies) / len(accuracies) if accuracies else math.nan
        return EpochCounts(**{**vars(total), "held_out": mean})

    def _key(self, rank: int, number: int | None = None) -> str:
        return f"{self._name}/{self._round if number is None else number}/{rank}"


def _store() -> Any:
    return dist.distributed_c10d._get_default_store()
