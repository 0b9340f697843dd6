"""The counts of an epoch: order does not matter, nothing is rounded, and those of several ranks are added.

Counts of ranks meet in the store of the process group. A collective inside ``forward`` would have to be called by every
rank at the same moment: ranks with more rows, more steps, or a ``Join`` that has ended would wait forever.
"""

from __future__ import annotations

import itertools
import math
import pickle
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from array_api_compat import torch as xp
from numpy.typing import NDArray
from torch import Tensor

from ..pacing import SKETCH_BINS, LossSketch, sketch_centers, sketch_index
from .noise_rate import BIN_WIDTH, LOGIT_BINS
from .targets import BatchRows

Ints = NDArray[np.int64]
Confidence = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

# cost: losses of each class, 1e-7 ... 52, are counted sixteen bins of the sketch together: 512 bytes for a class.
CLASS_BINS, _STRIDE = 64, 16
_FIRST_BIN = int(sketch_index(1e-7))
# cost: numbers of batches that wait to be counted together, 128 kB: one count of many rows takes hardly longer than one
# of a few. Counts of more classes would take over 1 MB on the device with them: their totals are left as they fall.
TOGETHER, COUNTED_CLASSES = 32_768, 1500
MOST_PIXELS = 256  # cost: of a batch of images that are counted; together they weigh as much as one row of each image


@dataclass(frozen=True, eq=False)
class EpochCounts:
    """The counts of an epoch on the host; ``a + b`` are those of two ranks."""

    rows: int = 0
    broken: int = 0
    counted: Ints | None = None  # (SKETCH_BINS,): losses
    agreement: Ints | None = None  # (2, LOGIT_BINS): labels that contradict, labels that agree
    classes: Ints | None = None  # (n_groups, CLASS_BINS)
    n_answers: int = 0
    held_out: float = float("nan")  # accuracy of the user's validation, mean over ranks

    def __add__(self, other: EpochCounts) -> EpochCounts:
        if self.counted is None or other.counted is None:
            return self if other.counted is None else other
        assert self.classes is not None
        assert other.classes is not None
        if self.classes.shape != other.classes.shape:
            raise ValueError(
                "ranks must train on the same classes, got logits of "
                f"{len(self.classes)} and of {len(other.classes)} columns"
            )
        names = ("rows", "broken", "counted", "agreement", "classes")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def losses(self) -> LossSketch:
        """All losses of the epoch."""
        return LossSketch.counted(np.zeros(SKETCH_BINS) if self.counted is None else self.counted)


class Counts:
    """Counts on the device of the network's output.

    Not buffers of the module: `DistributedDataParallel` copies buffers from rank 0 to all others at every step, and
    these belong to their rank until the epoch's end. ``state_dict`` holds them all the same.
    """

    def __init__(self, n_groups: int, n_answers: int, device: torch.device) -> None:
        self.width, self.n_answers = n_groups, n_answers
        self.n_groups = n_groups if n_groups <= COUNTED_CLASSES else 0
        self._sizes = [SKETCH_BINS, 2 * LOGIT_BINS, 1, self.n_groups * CLASS_BINS]
        self.place(torch.zeros(sum(self._sizes), dtype=torch.int64, device=device))

    def place(self, flat: Tensor) -> None:
        """Go on with these counts: moved to another device, or read from a checkpoint."""
        self._waiting: list[tuple[Any, ...]] = []
        self._flat, self._numbers, self.device = flat, 0, flat.device
        self._losses, self._agreement, self._broken, self._classes = flat.split_with_sizes(self._sizes)

    def flat(self, confidence: Confidence | None = None) -> Tensor:
        """All counts, one after the other; batches that wait are counted first."""
        self._count(confidence)
        return self._flat

    def add(self, rows: BatchRows, confidence: Confidence | None) -> None:
        """Take a batch in. No number comes back to the host."""
        if rows.logits is not None and rows.logits.ndim > 2:
            rows = _some_pixels(rows)
        logits = None if confidence is None else rows.logits
        self._waiting.append((rows.level, rows.used, rows.asked, rows.group, logits))
        self._numbers += (rows.level if logits is None else logits).numel()
        if self._numbers >= TOGETHER:
            self._count(confidence)

    def _count(self, confidence: Confidence | None) -> None:
        """Count the batches that wait."""
        waiting, self._waiting, self._numbers = self._waiting, [], 0
        if not waiting:
            return
        parts = list(zip(*waiting, strict=True))
        levels, groups, logits = parts[0], parts[3], parts[4]
        used, asked = (torch.cat([_or_ones(*pair) for pair in zip(parts[k], levels, strict=True)]) for k in (1, 2))
        one, index = used.long(), sketch_index(torch.cat(levels), xp).long()
        self._losses.index_add_(0, index, one)
        self._broken.add_((asked & ~used).sum())
        if groups[0] is None:
            return
        group = torch.cat(groups)
        if self.n_groups:
            coarse = (index - _FIRST_BIN).div_(_STRIDE, rounding_mode="floor").clamp_(0, CLASS_BINS - 1)
            self._classes.index_add_(0, coarse.add_(group, alpha=CLASS_BINS), one)
        if confidence is not None and all(part is not None for part in logits):
            odds, agrees = confidence(torch.cat(logits), group)
            place = (odds / BIN_WIDTH).clamp_(0, LOGIT_BINS - 1).long()
            self._agreement.index_add_(0, place.add_(agrees, alpha=LOGIT_BINS), one)

    def close(self, rows: int, confidence: Confidence | None, held_out: float = float("nan")) -> EpochCounts:
        """End the epoch: the counts, once on the host, and a new start."""
        flat = self.flat(confidence)
        host = flat.to("cpu", copy=True).numpy()
        flat.zero_()
        losses, agreement, broken, classes = np.split(host, np.cumsum(self._sizes)[:-1])
        return EpochCounts(
            rows=rows,
            broken=int(broken[0]),
            counted=losses,
            agreement=agreement.reshape(2, LOGIT_BINS),
            classes=classes.reshape(self.n_groups, CLASS_BINS),
            n_answers=self.n_answers,
            held_out=held_out,
        )


def _or_ones(mask: Tensor | None, like: Tensor) -> Tensor:
    return torch.ones_like(like, dtype=torch.bool) if mask is None else mask


def _some_pixels(rows: BatchRows) -> BatchRows:
    """Evenly spread pixels of every image, with their logits as rows."""
    assert rows.logits is not None
    images, pixels = len(rows.logits), rows.logits[0, 0].numel()
    step = -(-images * pixels // MOST_PIXELS) | 1  # odd, so that columns of even images take turns
    parts = {name: getattr(rows, name) for name in ("level", "used", "asked", "group")}
    logits = rows.logits.flatten(2)[:, :, ::step].movedim(1, -1).reshape(-1, rows.logits.shape[1])
    some = {name: part.view(images, pixels)[:, ::step].reshape(-1) for name, part in parts.items() if part is not None}
    return rows._replace(**some, logits=logits)


def class_centers() -> NDArray[np.float64]:
    """The loss that each bin of a class stands for."""
    return sketch_centers()[_FIRST_BIN + _STRIDE // 2 :: _STRIDE][:CLASS_BINS]


# ---------------------------------------------------------------------------------------------------- several ranks

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
        total = sum((counts for _, counts in posts), EpochCounts())
        accuracies = [counts.held_out for _, counts in posts if not math.isnan(counts.held_out)]
        mean = sum(accuracies) / len(accuracies) if accuracies else math.nan
        return replace(total, held_out=mean)

    def _key(self, rank: int, number: int | None = None) -> str:
        return f"{self._name}/{self._round if number is None else number}/{rank}"


def _store() -> Any:
    return dist.distributed_c10d._get_default_store()
