"""Row numbers: data sets that give them, and what is remembered of every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset


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


class RowMemory:
    """Weight and agreement of every row at its last pass, by row number; batches wait to be written together."""

    def __init__(self, device: torch.device | None = None) -> None:
        self.weight = torch.empty(0, device=device)
        self.agreed = torch.empty(0, dtype=torch.bool, device=device)
        self.agreed_before: Tensor | None = None  # at the start of the trial
        self._seen = np.zeros(0, dtype=bool)
        self.n_different, self.n_repeats = 0, 0  # rows, and batches in a row without a new one
        self.has_agreement = False  # one label for each row: a trial is possible
        self._waiting: list[tuple[Tensor, Tensor, Tensor | None]] = []
        self.n_waiting = 0

    @classmethod
    def holding(cls, **parts: Any) -> RowMemory:
        """The memory of a checkpoint."""
        memory = cls()
        for name, part in parts.items():
            setattr(memory, name, part)
        memory._seen = ~np.isnan(memory.weight.numpy())
        memory.n_different = int(memory._seen.sum())
        return memory

    def add(self, ids: Tensor, weight: Tensor, agrees: Tensor | None) -> None:
        """Take a batch in; its row numbers are on the host."""
        self._waiting.append((ids.clone(), weight, agrees))
        self.n_waiting += len(ids)
        self.has_agreement |= agrees is not None

    def write(self) -> None:
        """Write the batches that wait. The host reads the row numbers only, no number comes back from the device."""
        waiting, self._waiting, self.n_waiting = self._waiting, [], 0
        if not waiting:
            return
        ids = torch.cat([numbers for numbers, _, _ in waiting])
        rows = ids.numpy()
        self._make_room(int(rows.min()), int(rows.max()))
        new = len(np.unique(rows[~self._seen[rows]]))
        self.n_different, self.n_repeats = self.n_different + new, 0 if new else self.n_repeats + 1
        self._seen[rows] = True
        ids = ids.to(self.weight.device)
        self.weight.index_copy_(0, ids, torch.cat([weight for _, weight, _ in waiting]).to(self.weight.dtype))
        agreed = [agrees for _, _, agrees in waiting if agrees is not None]
        if len(agreed) == len(waiting):
            self.agreed.index_copy_(0, ids, torch.cat(agreed))

    def _make_room(self, low: int, high: int) -> None:
        if low < 0 or high >= 2**31:
            raise ValueError(f"ids must be row numbers >= 0 and < 2**31, got {low if low < 0 else high}")
        size = len(self.weight)
        if high >= size:
            more = max(high + 1, 2 * size) - size
            self.weight = torch.cat([self.weight, self.weight.new_full((more,), torch.nan)])
            self.agreed = torch.cat([self.agreed, self.agreed.new_zeros(more)])
            self._seen = np.concatenate([self._seen, np.zeros(more, dtype=bool)])

    def to(self, device: torch.device) -> None:
        """Move to another device."""
        self.write()
        for name in ("weight", "agreed", "agreed_before"):
            part = getattr(self, name)
            setattr(self, name, None if part is None else part.to(device))

    def weights(self) -> NDArray[np.float32]:
        """By row number, up to the last row seen; nan for rows never seen."""
        self.write()
        weight = self.weight.cpu().numpy()
        seen = np.flatnonzero(~np.isnan(weight))
        return np.array(weight[: seen[-1] + 1 if seen.size else 0], dtype=np.float32)

    def begin_trial(self) -> None:
        """Keep the agreement of all rows, to compare with."""
        self.agreed_before = self.agreed.clone()

    def trial_counts(self) -> tuple[int, int, int]:
        """Control rows that came to agree since the trial began, that ceased to, and that did not agree at first."""
        assert self.agreed_before is not None
        before = self.agreed_before
        now = self.agreed[: len(before)]
        control = ~is_treated(torch.arange(len(before), device=before.device)) & ~self.weight[: len(before)].isnan()
        counts = (control & now & ~before, control & ~now & before, control & ~before)
        gained, lost, contradicted = (int(count.sum()) for count in counts)
        return gained, lost, contradicted


def is_treated(ids: Tensor) -> Tensor:
    """Which rows are trained on in a trial: three quarters, by a hash of the row number."""
    mixed = (ids.long() + 1) * 2_654_435_761 % 2**32
    for _ in range(2):
        mixed = ((mixed >> 16) ^ mixed) * 73_244_475 % 2**32
    return ((mixed >> 16) ^ mixed) < 3 * 2**30


def checked_ids(ids: Any, batch: int) -> Tensor:
    """Row numbers of a batch, on the host."""
    if not isinstance(ids, Tensor) or ids.shape != (batch,) or ids.is_floating_point() or ids.dtype is torch.bool:
        shape = tuple(ids.shape) if isinstance(ids, Tensor) else type(ids).__name__
        raise ValueError(f"ids must be a tensor of {batch} row numbers, one for each row of the batch, got {shape}")
    return ids.long().cpu()
