"""The state of a criterion as one tensor of bytes, so that every format of checkpoints can hold it."""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .counts import Counts, EpochCounts
from .phases import KINDS
from .rows import RowMemory

_NUMBERS = ("_warned", "epoch", "broken")
_MEMORY = ("weight", "agreed", "agreed_before", "has_agreement")


def pack(criterion: Any) -> Tensor:
    """The state of a criterion."""
    counts, phases, memory, pending = criterion._counts, criterion._phases, criterion._memory, criterion._pending
    if memory is not None:
        memory.write()
    contents = {
        "counts": None
        if counts is None
        else (counts.width, counts.n_answers, counts.flat(criterion._confidence).cpu()),
        "pace": (criterion.lam, _on_host(criterion._pace.factor)),
        "phases": {"kind": type(phases).__name__, **asdict(phases)},
        "memory": None if memory is None else {name: _on_host(getattr(memory, name)) for name in _MEMORY},
        "pending": None if pending is None else {name: _as_tensor(part) for name, part in vars(pending).items()},
        "numbers": {name: getattr(criterion, name) for name in _NUMBERS},
        "progress": vars(criterion._progress),
        "history": criterion.history,
    }
    file = io.BytesIO()
    torch.save(contents, file)
    return torch.frombuffer(bytearray(file.getbuffer()), dtype=torch.uint8)


def unpack(criterion: Any, packed: Tensor) -> None:
    """Put a packed state into a criterion."""
    contents = torch.load(io.BytesIO(packed.cpu().numpy().tobytes()), weights_only=True)
    counts, phases, memory = contents["counts"], contents["phases"], contents["memory"]
    criterion._counts = None
    if counts is not None:
        criterion._counts = Counts(counts[0], counts[1], torch.device("cpu"))
        criterion._counts.place(counts[2])
    criterion._pace.lam, criterion._pace.factor = contents["pace"]
    criterion._phases = KINDS[phases.pop("kind")](**phases)
    criterion._memory = None if memory is None else RowMemory.holding(**memory)
    pending = contents["pending"]
    criterion._pending = pending and EpochCounts(**{name: _as_array(part) for name, part in pending.items()})
    for name, value in contents["numbers"].items():
        setattr(criterion, name, value)
    vars(criterion._progress).update(contents["progress"])
    criterion.history = contents["history"]


def _on_host(part: Any) -> Any:
    return part.cpu() if isinstance(part, Tensor) else part


def _as_tensor(part: Any) -> Any:
    return torch.from_numpy(part) if isinstance(part, np.ndarray) else part


def _as_array(part: Any) -> Any:
    return part.numpy() if isinstance(part, Tensor) else part
