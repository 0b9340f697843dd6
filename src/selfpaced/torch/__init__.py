"""PyTorch: a loss that keeps a network from memorising wrong labels.

``criterion = SelfPacedLoss(n=len(train_set))`` replaces ``nn.CrossEntropyLoss()``; nothing else changes.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        'selfpaced.torch needs PyTorch, which is not installed: pip install "selfpaced[torch]"'
    ) from error

from .assessing import assess, review, soft_labels, suspects
from .criterion import SelfPacedLoss
from .rows import WithIndex

__all__ = ["SelfPacedLoss", "WithIndex", "assess", "review", "soft_labels", "suspects"]
