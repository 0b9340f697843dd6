"""What passed in an epoch, as counts: ranks merge by addition, order does not matter, nothing is rounded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from array_api_compat import torch as xp
from numpy.typing import NDArray
from torch import Tensor

from ..sketch import SKETCH_BINS, LossSketch, sketch_centers, sketch_index
from .lapse import BINS, WIDTH
from .rows import BatchRows

Ints = NDArray[np.int64]

# cost: losses of each class are counted sixteen bins of the sketch together, 1e-7 ... 52: 512 bytes for a class.
CLASS_BINS, _STRIDE, _FIRST = 64, 16, 1292
# cost: numbers of batches that wait to be counted together, 128 kB: one count of many rows takes hardly longer than one
# of a few. Counts of more classes would take over 1 MB on the device with them: their totals are left as they fall.
TOGETHER, MOST_CLASSES = 32_768, 1500


@dataclass(frozen=True, eq=False)
class Epoch:
    """The counts of all ranks since the epoch began."""

    rows: int
    broken: int
    losses: LossSketch
    agreement: NDArray[np.float64]  # (2, BINS): labels that contradict, labels that agree
    classes: Ints  # (n_groups, CLASS_BINS)


class Counts:
    """Counts on the device of the network's output.

    Not buffers of the module: `DistributedDataParallel` copies buffers from rank 0 to all others at every step, and
    these belong to their rank until the epoch's end. ``state_dict`` holds them all the same.
    """

    def __init__(self, n_groups: int, device: torch.device) -> None:
        self.n_groups = n_groups if n_groups <= MOST_CLASSES else 0
        self._sizes = [SKETCH_BINS, 2 * BINS, 1, 1, self.n_groups * CLASS_BINS]
        self.place(torch.zeros(sum(self._sizes), dtype=torch.int64, device=device))

    @property
    def flat(self) -> Tensor:
        """All counts, one after the other."""
        self._count()
        return self._flat

    def place(self, flat: Tensor) -> None:
        """Go on with these counts: moved to another device, or read from a checkpoint."""
        self._waiting: list[BatchRows] = []
        self._flat, self._numbers, self.device = flat, 0, flat.device
        self._losses, self._agreement, self._broken, self._rows, self._classes = flat.split_with_sizes(self._sizes)

    def add(self, rows: BatchRows) -> None:
        """Take a batch in. No number comes back to the host."""
        self._waiting.append(rows._replace(loss=rows.level))  # without the gradient's memory
        self._numbers += (rows.level if rows.log_p is None else rows.log_p).numel()
        if self._numbers >= TOGETHER:
            self._count()

    def _count(self) -> None:
        """Count the batches that wait."""
        waiting, self._waiting, self._numbers = self._waiting, [], 0
        if not waiting:
            return
        used = torch.cat([rows.used for rows in waiting])
        one, index = used.long(), sketch_index(torch.cat([rows.level for rows in waiting]), xp).long()
        self._losses.index_add_(0, index, one)
        self._broken.add_((torch.cat([rows.asked for rows in waiting]) & ~used).sum())
        if waiting[0].group is None:
            return
        group = torch.cat([rows.group for rows in waiting if rows.group is not None])
        if self.n_groups:
            coarse = (index - _FIRST).div_(_STRIDE, rounding_mode="floor").clamp_(0, CLASS_BINS - 1)
            self._classes.index_add_(0, coarse.add_(group, alpha=CLASS_BINS), one)
        if waiting[0].log_p is not None:
            log_p = torch.cat([rows.log_p for rows in waiting if rows.log_p is not None])
            best, predicted = log_p.max(1)
            agrees = predicted == group % log_p.shape[1]  # of several yes-or-no labels a column has two groups
            place = (torch.logit(best.exp(), eps=1e-7) / WIDTH).clamp_(0, BINS - 1).long()
            self._agreement.index_add_(0, place.add_(agrees, alpha=BINS), one)

    def close(self, rows: int) -> Epoch:
        """End the epoch: the counts of all ranks, once on the host, and a new start. A collective."""
        flat = self.flat
        self._rows.fill_(rows)
        if world_size() > 1:
            dist.all_reduce(flat)
        host = flat.to("cpu", copy=True).numpy()
        flat.zero_()
        losses, agreement, broken, total, classes = np.split(host, np.cumsum(self._sizes)[:-1])
        return Epoch(
            rows=int(total[0]),
            broken=int(broken[0]),
            losses=LossSketch.counted(losses),
            agreement=agreement.reshape(2, BINS).astype(np.float64),
            classes=classes.reshape(self.n_groups, CLASS_BINS),
        )


def class_centers() -> NDArray[np.float64]:
    """The loss that each bin of a class stands for."""
    return sketch_centers()[_FIRST + _STRIDE // 2 :: _STRIDE][:CLASS_BINS]


def world_size() -> int:
    """The number of ranks that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def mean_over_ranks(value: float) -> float:
    """The mean of a number that every rank has: all of them then decide alike. A collective."""
    if world_size() == 1:
        return float(value)
    backend = torch.device("cuda") if dist.get_backend() == "nccl" else torch.device("cpu")
    total = torch.tensor([float(value)], dtype=torch.float32, device=backend)
    dist.all_reduce(total)
    return float(total) / world_size()
