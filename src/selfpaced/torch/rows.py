"""Row numbers: data sets that give them, and what is remembered of every row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

TREATED = 0.75  # a choice: share of the rows that others may be explained by in a trial; the rest are held back


class WithIndex(Dataset[Any]):
    """A data set whose samples carry their row number, for the ``ids`` of `SelfPacedLoss`.

    A sample ``(inputs, label)`` becomes ``(inputs, label, index)``; a dict gets the key "index".

    Parameters
    ----------
    dataset : Dataset
        Anything with ``len()`` and ``[]``.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> rows = WithIndex(TensorDataset(torch.zeros(4, 2), torch.arange(4)))
    >>> inputs, labels, ids = next(iter(DataLoader(rows, batch_size=3)))
    >>> ids
    tensor([0, 1, 2])
    """

    def __init__(self, dataset: Any) -> None:
        if (
            isinstance(dataset, IterableDataset)
            or not hasattr(dataset, "__getitem__")
            or not hasattr(dataset, "__len__")
        ):
            raise TypeError(f"dataset must have len() and [], got {type(dataset).__name__}")
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        sample = self.dataset[index]
        if isinstance(sample, Mapping):
            return {**sample, "index": index}
        return (*sample, index) if isinstance(sample, tuple | list) else (sample, index)


@dataclass(frozen=True)
class TrialCounts:
    """How a trial goes: of the rows that contradicted most, the share that agrees now; of all control rows, how many
    came to agree and how many ceased to."""

    treated: float
    control: float
    gained: int
    lost: int


class RowMemory:
    """Weight, loss and agreement of every row at its last pass, by row number."""

    def __init__(self, device: torch.device | None = None) -> None:
        self.weight = torch.empty(0, device=device)
        self.level = torch.empty(0, device=device)
        self.agreed = torch.empty(0, dtype=torch.bool, device=device)
        self.worst: Tensor | None = None
        self.agreed_before: Tensor | None = None
        self._seen = np.zeros(0, dtype=bool)
        self.n_different = 0
        self.has_agreement = False  # one label for each row: a trial is possible

    @classmethod
    def holding(cls, **parts: Any) -> RowMemory:
        """The memory of a checkpoint."""
        memory = cls()
        for name, part in parts.items():
            setattr(memory, name, part)
        memory._seen = ~np.isnan(memory.weight.numpy())
        memory.n_different = int(memory._seen.sum())
        return memory

    def see(self, ids: Tensor, weight: Tensor | None, level: Tensor, agrees: Tensor | None) -> None:
        """Remember a batch, for which room was made."""
        self.weight[ids] = 1.0 if weight is None else weight.to(self.weight.dtype)
        self.level[ids] = level.to(self.level.dtype)
        self.has_agreement = agrees is not None
        if agrees is not None:
            self.agreed[ids] = agrees

    def make_room(self, ids: Tensor) -> None:
        """Grow to hold these rows, and count the new ones. The host reads the numbers: leave them on the CPU."""
        low, high, size = int(ids.min()), int(ids.max()), len(self.weight)
        if low < 0:
            raise ValueError(f"ids must be row numbers >= 0, got {low}")
        if high >= size:
            more = max(high + 1, 2 * size) - size
            self.weight = torch.cat([self.weight, self.weight.new_full((more,), torch.nan)])
            self.level = torch.cat([self.level, self.level.new_zeros(more)])
            self.agreed = torch.cat([self.agreed, self.agreed.new_zeros(more)])
            self._seen = np.concatenate([self._seen, np.zeros(more, dtype=bool)])
        rows = ids.numpy()
        self.n_different += int(np.count_nonzero(~self._seen[rows]))
        self._seen[rows] = True

    def to(self, device: torch.device) -> None:
        """Move to another device."""
        for name in ("weight", "level", "agreed", "worst", "agreed_before"):
            part = getattr(self, name)
            setattr(self, name, None if part is None else part.to(device))

    def weights(self) -> NDArray[np.float32]:
        """By row number, up to the last row seen; nan for rows never seen."""
        weight = self.weight.cpu().numpy()
        seen = np.flatnonzero(~np.isnan(weight))
        return np.array(weight[: seen[-1] + 1 if seen.size else 0], dtype=np.float32)

    # ------------------------------------------------------------------------------------------------ the trial

    def begin_trial(self) -> None:
        """Mark the worse half of the rows that contradict the network."""
        contradict = ~self.agreed & ~self.weight.isnan()
        self.worst = contradict & (self.level >= self.level[contradict].median())
        self.agreed_before = self.agreed.clone()

    def trial_counts(self) -> TrialCounts:
        """How the trial goes."""
        assert self.worst is not None
        assert self.agreed_before is not None
        size = len(self.worst)
        treated = is_treated(torch.arange(size, device=self.worst.device))
        agreed, control = self.agreed[:size], ~treated & ~self.weight[:size].isnan()
        shares = [float(agreed[self.worst & side].float().mean()) for side in (treated, ~treated)]
        gained, lost = (control & agreed & ~self.agreed_before), (control & ~agreed & self.agreed_before)
        return TrialCounts(shares[0], shares[1], int(gained.sum()), int(lost.sum()))


def is_treated(ids: Tensor) -> Tensor:
    """Which rows are trained on in a trial: a fixed choice by a hash of the row number."""
    mixed = (ids.long() + 1) * 2_654_435_761 % 2**32
    for _ in range(2):
        mixed = ((mixed >> 16) ^ mixed) * 73_244_475 % 2**32
    return ((mixed >> 16) ^ mixed) < TREATED * 2**32
