"""From a network's output and its targets to rows: the loss of each, and whether the label agrees with the network.

A row is what is weighted: a sample, a pixel, or one label of a multi-label sample. Nothing here waits for the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..arguments import integer, number

Criterion = Callable[[Tensor, Tensor], Tensor]


class BatchRows(NamedTuple):
    """What the pace sees of a batch, one entry per row."""

    loss: Tensor  # with gradient; class weights and label smoothing included; 0 where a row is not used
    level: Tensor  # without: the bare loss, >= 0, by which a row is weighted
    used: Tensor  # neither ignored nor broken
    asked: Tensor  # not ignored: one that is not used is broken
    mass: Tensor  # what the plain mean divides by
    group: Tensor | None = None  # class of the label
    log_p: Tensor | None = None  # log-probability of every label a row can have, of which the group's is the given one


class Reader(Protocol):
    """How one kind of criterion reads outputs and targets."""

    def n_groups(self, output: Tensor) -> int:
        """The number of classes whose total weight is kept; 0 without classes."""

    def n_answers(self, output: Tensor) -> int:
        """The number of labels a row can have; 0 without labels."""

    def read(self, output: Tensor, target: Tensor, looking: bool) -> BatchRows:
        """The rows of a batch; ``log_p`` only while looking."""


def reader_of(criterion: Criterion | None, weight: Tensor | None, ignore_index: int, label_smoothing: float) -> Reader:
    """The reader of a criterion, checked."""
    reduction = getattr(criterion, "reduction", "none")
    if reduction != "none":
        raise ValueError(
            "criterion must give one loss per row to be weighted: build it with reduction='none', "
            f"got {type(criterion).__name__}(reduction={reduction!r})"
        )
    number("label_smoothing", label_smoothing, 0, math.nextafter(1, 0), "in [0, 1)")
    integer("ignore_index", ignore_index, -(2**63), "an integer")
    if criterion is None:
        return LabelReader(weight, ignore_index, label_smoothing)
    if weight is not None or label_smoothing:
        raise ValueError("weight and label_smoothing belong to the criterion: give them to it, or leave criterion out")
    if isinstance(criterion, nn.CrossEntropyLoss | nn.NLLLoss):  # log-probabilities are logits as well
        return LabelReader(criterion.weight, criterion.ignore_index, getattr(criterion, "label_smoothing", 0.0))
    if isinstance(criterion, nn.BCEWithLogitsLoss):
        return EntryReader(criterion, ignore_index)
    if not callable(criterion):
        raise TypeError(f"criterion must be a loss module or function of (output, target), got {criterion!r}")
    return ValueReader(criterion)


class LabelReader(nn.Module):
    """Cross entropy: logits [B, K, ...] and integer labels [B, ...] or probabilities [B, K, ...]."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None, ignore_index: int, label_smoothing: float) -> None:
        super().__init__()
        self.register_buffer("weight", None if weight is None else torch.as_tensor(weight), persistent=False)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def n_groups(self, output: Tensor) -> int:
        return int(output.shape[1])

    n_answers = n_groups

    def read(self, output: Tensor, target: Tensor, looking: bool) -> BatchRows:
        soft = _checked_labels(output, target, self.weight)
        logits = _rows_of_classes(output)
        if soft:
            return self._read_soft(logits, _rows_of_classes(target).to(logits.dtype), looking)
        label = target.reshape(-1).long()
        asked = label != self.ignore_index
        label = torch.where(asked, label, 0)
        logits, whole = _finite_rows(logits)
        log_p = F.log_softmax(logits, 1)
        try:
            loss = F.nll_loss(log_p, label, reduction="none")
        except IndexError as error:  # asked for beforehand, it would make a device wait for every batch
            classes = f"0 .. {output.shape[1] - 1} or ignore_index={self.ignore_index}"
            raise ValueError(f"target must hold labels in {classes}, got another one ({error})") from error
        used = asked & whole & (loss.detach() < math.inf)
        loss = torch.where(used, loss, 0)
        level = loss.detach()
        if self.weight is not None or self.label_smoothing:
            smoothing = self.label_smoothing
            loss = F.cross_entropy(logits, label, self.weight, reduction="none", label_smoothing=smoothing)
            loss = torch.where(used, loss, 0)
        mass = used.sum() if self.weight is None else (self.weight[label] * used).sum()
        return BatchRows(loss, level, used, asked, mass, label, log_p.detach() if looking else None)

    def _read_soft(self, logits: Tensor, target: Tensor, looking: bool) -> BatchRows:
        logits, whole = _finite_rows(logits)
        used = whole & target.sum(1).isfinite()
        target = torch.where(used[:, None], target, 0)
        log_p = F.log_softmax(logits, 1)
        loss = F.cross_entropy(logits, target, self.weight, reduction="none", label_smoothing=self.label_smoothing)
        # A doubtful label costs its own entropy even if it is matched: that part is no reason to distrust it.
        level = torch.where(target > 0, target * (target.log() - log_p.detach()), 0).sum(1)
        used = used & level.isfinite()
        level = _level(level, used)
        label = target.argmax(1)
        asked = torch.ones_like(used)
        return BatchRows(
            torch.where(used, loss, 0), level, used, asked, used.sum(), label, log_p.detach() if looking else None
        )


class EntryReader(nn.Module):
    """BCE-with-logits: every entry of [B, ...] is a yes-or-no label; ``ignore_index`` leaves one out."""

    def __init__(self, criterion: nn.BCEWithLogitsLoss, ignore_index: int) -> None:
        super().__init__()
        self.criterion, self.ignore_index = criterion, ignore_index

    def n_groups(self, output: Tensor) -> int:
        return 2 * (output[0].numel() if output.ndim > 1 else 1)

    def n_answers(self, output: Tensor) -> int:  # noqa: ARG002
        return 2

    def read(self, output: Tensor, target: Tensor, looking: bool) -> BatchRows:
        if target.shape != output.shape:
            raise ValueError(
                f"logits and targets of BCEWithLogitsLoss must have one shape, got {_shapes(output, target)}"
            )
        logits, given = _precise(output), target.to(_precise(output).dtype)
        asked = given != self.ignore_index
        used = asked & logits.detach().isfinite() & given.isfinite()
        logits, given = torch.where(used, logits, 0), torch.where(used, given, 0)
        loss = torch.where(used, self.criterion(logits, given), 0)
        doubt = -torch.xlogy(given, given) - torch.xlogy(1 - given, 1 - given)
        level = F.binary_cross_entropy_with_logits(logits.detach(), given, reduction="none") - doubt
        yes = given > 0.5
        column = torch.arange(given.numel(), device=given.device) % (self.n_groups(output) // 2)
        loss, level, used, asked = (p.reshape(-1) for p in (loss, _level(level, used), used, asked))
        rows = BatchRows(loss, level, used, asked, used.sum(), 2 * column + yes.reshape(-1))
        if not looking:
            return rows
        z = logits.detach().reshape(-1)
        return rows._replace(log_p=torch.stack([F.logsigmoid(-z), F.logsigmoid(z)], 1))  # no, yes


class ValueReader(nn.Module):
    """Any other criterion: one loss per row, or several that are averaged; there are no labels to agree with."""

    def __init__(self, criterion: Criterion) -> None:
        super().__init__()
        self.criterion = criterion

    def n_groups(self, output: Tensor) -> int:  # noqa: ARG002
        return 0

    n_answers = n_groups

    def read(self, output: Tensor, target: Tensor, looking: bool) -> BatchRows:  # noqa: ARG002
        if isinstance(self.criterion, nn.Module) and target.shape != output.shape:
            name, shapes = type(self.criterion).__name__, _shapes(output, target)
            raise ValueError(f"output and target of {name} must have one shape, got {shapes}")
        whole = _finite_values(output) & _finite_values(target)
        loss = self.criterion(_zero_unless(whole, _precise(output)), _zero_unless(whole, target))
        if loss.ndim == 0 or loss.shape[0] != len(output):
            raise ValueError(
                "criterion must return one loss per row, unreduced (reduction='none'): "
                f"got shape {tuple(loss.shape)} for {len(output)} rows"
            )
        loss = loss.reshape(len(output), -1).mean(1)
        level = loss.detach()
        used = whole & level.isfinite()
        return BatchRows(torch.where(used, loss, 0), _level(level, used), used, torch.ones_like(used), used.sum())


# ---------------------------------------------------------------------------------------------------- pieces


def _checked_labels(output: Tensor, target: Tensor, weight: Tensor | None) -> bool:
    """Whether the targets are probabilities."""
    if output.ndim < 2:
        raise ValueError(f"logits must be [B, K] or [B, K, ...] with the classes second, got {_shapes(output, target)}")
    if output.shape[1] < 2:
        raise ValueError(
            "logits must have a column for each of at least two classes, got one; for one logit per row use "
            "criterion=nn.BCEWithLogitsLoss(reduction='none')"
        )
    if weight is not None and weight.shape != output.shape[1:2]:
        raise ValueError(f"weight must have one value for each of {output.shape[1]} classes, got {tuple(weight.shape)}")
    if target.is_floating_point() and target.shape == output.shape:
        return True
    if target.is_floating_point() or target.is_complex() or target.dtype is torch.bool:
        raise ValueError(
            "target must hold integer labels [B, ...] or probabilities of the shape of the logits, "
            f"got {target.dtype} of shape {tuple(target.shape)} for logits {tuple(output.shape)}; for values use "
            "criterion=nn.MSELoss(reduction='none')"
        )
    if target.shape != output.shape[:1] + output.shape[2:]:
        raise ValueError(
            f"target must be [B, ...] for logits [B, K, ...], got logits and target {_shapes(output, target)}"
        )
    return False


def _shapes(output: Tensor, target: Tensor) -> str:
    return f"{tuple(output.shape)} and {tuple(target.shape)}"


def _precise(output: Tensor) -> Tensor:
    return output if output.dtype is torch.float64 else output.float()  # half precision cannot rank losses


def _rows_of_classes(values: Tensor) -> Tensor:
    flat = values if values.ndim == 2 else values.movedim(1, -1).reshape(-1, values.shape[1])
    return _precise(flat)


def _finite_rows(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Broken rows replaced by zeros before the loss is taken, so that no gradient is NaN; and which are whole."""
    whole = logits.detach().amax(1).abs() < math.inf  # one logit of -inf is a class ruled out, not a broken row
    return torch.where(whole[:, None], logits, 0), whole


def _finite_values(values: Tensor) -> Tensor:
    flat = values.detach().reshape(len(values), -1)
    return flat.isfinite().all(1)


def _zero_unless(whole: Tensor, values: Tensor) -> Tensor:
    return torch.where(whole.reshape([-1] + [1] * (values.ndim - 1)), values, 0)


def _level(loss: Tensor, used: Tensor) -> Tensor:
    return torch.where(used, loss, 0).clamp_min(0)
