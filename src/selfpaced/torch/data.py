"""Data sets whose samples carry their row number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
