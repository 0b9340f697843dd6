"""The criterion for networks, which needs torch."""

from __future__ import annotations

import inspect

from selfpaced.regularizers import REGISTRY

from .draws import JUNK, Draw
from .outcomes import attempt, finite


def network(draw: Draw) -> None:
    import torch

    from selfpaced.torch import SelfPacedLoss

    names = [*inspect.signature(SelfPacedLoss.__init__).parameters, "output", "target", "logits", "labels", "ids"]
    given = {}
    optional = ("regularizer", "pacing", "n", "ignore_index", "label_smoothing", "reduction", "trusted")
    for name in (*optional, "validation", "on_epoch"):
        if draw.chance(0.1):
            given[name] = draw.one([*REGISTRY, 0.5, 3]) if draw.chance(0.5) else draw.one(JUNK)
    if callable(given.get("on_epoch")):
        given["on_epoch"] = [].append  # an error inside a user's own function is the user's
    criterion = attempt(lambda: SelfPacedLoss(**given), names)
    if criterion is None:
        return
    torch.manual_seed(0)
    for _ in range(2):
        shape = draw.one([(8, 3), (8, 3), (8, 3), (1, 2), (8, 3, 2), (8,), (0, 3)])
        output = (torch.randn(shape) * draw.one([1.0, 1.0, 1e30, 0.0])).requires_grad_()
        labels = (
            torch.randint(0, 2, (shape[0], *shape[2:]))
            if draw.chance(0.8)
            else draw.one(
                [torch.full((8,), 7), torch.zeros(8), torch.zeros(5, dtype=torch.long), torch.full((8, 3), 1 / 3), None]
            )
        )
        ids = draw.one([None, None, torch.arange(8), torch.arange(3)])
        loss = attempt(lambda output=output, labels=labels, ids=ids: criterion(output, labels, ids), names)
        if loss is not None and shape[0]:
            finite("loss", float(loss.detach().sum()))
        attempt(criterion.step_epoch, names)
