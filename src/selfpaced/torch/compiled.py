"""The criterion inside ``torch.compile``: one opaque operation counts a batch and returns its weights."""

from __future__ import annotations

import itertools
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from .targets import BatchRows

_criteria: WeakValueDictionary[int, Any] = WeakValueDictionary()
_numbers = itertools.count()


def register(criterion: Any) -> int:
    """The number by which the operation finds its criterion."""
    number = next(_numbers)
    _criteria[number] = criterion
    return number


@torch.library.custom_op("selfpaced::observe", mutates_args=())
def observe(
    level: Tensor,
    used: Tensor,
    asked: Tensor,
    group: Tensor | None,
    logits: Tensor | None,
    ids: Tensor | None,
    batch: int,
    n_groups: int,
    n_answers: int,
    number: int,
) -> Tensor:
    """The weights of a batch; its rows are counted, and an epoch may end."""
    # A compiled graph reuses its memory: what is kept is copied.
    kept = [None if part is None else part.clone() for part in (level, used, asked, group, logits)]
    rows = BatchRows(kept[0], kept[0], kept[1], kept[2], 0.0, kept[3], kept[4])  # type: ignore[arg-type]
    weight = _criteria[number]._observe(rows, ids, batch, n_groups, n_answers)
    return torch.ones_like(level) if weight is None else weight.to(level.dtype, copy=True)


@observe.register_fake
def _(level: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(level)
