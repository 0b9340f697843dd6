"""From a network's output and its targets to rows: the loss of each, and how sure the network is of its prediction.

A row is what is weighted: a sample, a pixel, or one label of a multi-label sample. Nothing here waits for the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..parameters import check_integer, check_number

Criterion = Callable[[Tensor, Tensor], Tensor]
#: Losses of a residual: the residual itself decides the weight, whichever of them is minimised.
RESIDUAL_LOSSES = (nn.MSELoss, nn.L1Loss, nn.HuberLoss, nn.SmoothL1Loss)


class BatchRows(NamedTuple):
    """What the criterion needs of a batch, one entry per row."""

    loss: Tensor  # with gradient; class weights and label smoothing included; 0 if a row is not used
    level: Tensor  # without: the bare loss, >= 0, by which a row is weighted
    used: Tensor | None  # neither ignored nor broken; None for all
    asked: Tensor | None  # not ignored: a row that is asked and not used is broken; None for all
    mass: Tensor | float  # what the plain mean divides by
    group: Tensor | None = None  # class of the label
    logits: Tensor | None = None  # without gradient, one row each, for `confidence`


def targets_of(
    criterion: Criterion | None, weight: Tensor | None, ignore_index: int, label_smoothing: float, by_residual: bool
) -> ClassTargets | BinaryTargets | ValueTargets:
    """The reader of a criterion, checked."""
    reduction = getattr(criterion, "reduction", "none")
    if reduction != "none":
        raise ValueError(
            "criterion must give one loss per row to be weighted: build it with reduction='none', "
            f"got {type(criterion).__name__}(reduction={reduction!r})"
        )
    check_number("label_smoothing", label_smoothing, 0, math.nextafter(1, 0), "in [0, 1)")
    check_integer("ignore_index", ignore_index, -(2**63), "an integer")
    if criterion is None:
        return ClassTargets(weight, ignore_index, label_smoothing)
    if weight is not None or label_smoothing:
        raise ValueError("weight and label_smoothing belong to the criterion: give them to it, or leave criterion out")
    if isinstance(criterion, nn.CrossEntropyLoss | nn.NLLLoss):  # log-probabilities are logits as well
        return ClassTargets(criterion.weight, criterion.ignore_index, getattr(criterion, "label_smoothing", 0.0))
    if isinstance(criterion, nn.BCEWithLogitsLoss):
        return BinaryTargets(criterion, ignore_index)
    if not callable(criterion) or isinstance(criterion, type):
        raise TypeError(f"criterion must be a loss module or function of (output, target), got {criterion!r}")
    return ValueTargets(criterion, by_residual and isinstance(criterion, RESIDUAL_LOSSES))


class ClassTargets(nn.Module):
    """Cross entropy: logits [B, K, ...] and integer labels [B, ...] or probabilities [B, K, ...].

    All readers have: n_groups, the classes whose total weight is kept; n_answers, the labels a row can have; read, the
    rows of a batch; confidence, the log-odds of every prediction and whether the label agrees with it.
    """

    weight: Tensor | None

    def __init__(self, weight: Tensor | None, ignore_index: int, label_smoothing: float) -> None:
        super().__init__()
        self.register_buffer("weight", None if weight is None else torch.as_tensor(weight), persistent=False)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def n_groups(self, output: Tensor) -> int:
        return int(output.shape[1])

    n_answers = n_groups

    def read(self, output: Tensor, target: Tensor) -> BatchRows:
        soft = _checked_labels(output, target, self.weight)
        logits = _precise(output)
        if soft:
            return self._read_soft(_rows_of_classes(logits), _rows_of_classes(target).to(logits.dtype))
        label = target if target.dtype is torch.int64 else target.long()
        try:
            loss = F.cross_entropy(logits, label, reduction="none", ignore_index=self.ignore_index)
        except IndexError as error:  # asked for beforehand, it would make a device wait for every batch
            classes = f"0 .. {output.shape[1] - 1} or ignore_index={self.ignore_index}"
            raise ValueError(f"target must hold labels in {classes}, got another one ({error})") from error
        if self.weight is None and not self.label_smoothing and _known_finite(loss) and self._all_asked(label):
            loss = loss if loss.ndim == 1 else loss.reshape(-1)
            return BatchRows(loss, loss.detach(), None, None, loss.numel(), label.reshape(-1), logits.detach())
        asked = label != self.ignore_index
        logits, loss, used = self._without_broken_rows(logits, label, asked)
        level = loss.detach()
        if self.weight is not None or self.label_smoothing:
            options: dict[str, Any] = {"ignore_index": self.ignore_index, "label_smoothing": self.label_smoothing}
            loss = torch.where(used, F.cross_entropy(logits, label, self.weight, reduction="none", **options), 0)
        label = torch.where(asked, label, 0)
        mass = used.sum() if self.weight is None else (self.weight[label] * used).sum()
        loss, level, used, asked = (part.reshape(-1) for part in (loss, level, used, asked))
        return BatchRows(loss, level, used, asked, mass, label.reshape(-1), logits.detach())

    def _all_asked(self, label: Tensor) -> bool:
        # one number is quicker to find than a mask
        return bool(label.min().item() >= 0 if self.ignore_index < 0 else (label != self.ignore_index).all())

    def _without_broken_rows(self, logits: Tensor, label: Tensor, asked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Put zeros in the place of broken rows before the loss is taken, so that no gradient is NaN."""
        whole = logits.detach().amax(1).abs() < math.inf  # one logit of -inf is a class ruled out, not a broken row
        logits = torch.where(whole.unsqueeze(1), logits, 0)
        loss = F.cross_entropy(logits, label, reduction="none", ignore_index=self.ignore_index)
        used = asked & whole & (loss.detach() < math.inf)
        return logits, torch.where(used, loss, 0), used

    def _read_soft(self, logits: Tensor, target: Tensor) -> BatchRows:
        whole = logits.detach().amax(1).abs() < math.inf
        used = whole & target.sum(1).isfinite()
        logits, target = torch.where(whole[:, None], logits, 0), torch.where(used[:, None], target, 0)
        log_p = F.log_softmax(logits.detach(), 1)
        loss = F.cross_entropy(logits, target, self.weight, reduction="none", label_smoothing=self.label_smoothing)
        # A doubtful label costs its own entropy even if it is matched: that part is no reason to distrust it.
        level = torch.where(target > 0, target * (target.log() - log_p), 0).sum(1)
        used = used & level.isfinite()
        level, label = torch.where(used, level, 0).clamp_min(0), target.argmax(1)
        return BatchRows(torch.where(used, loss, 0), level, used, None, used.sum(), label, logits.detach())

    def confidence(self, logits: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
        best, predicted = logits.max(1)
        p = (best - logits.logsumexp(1)).exp()
        return torch.logit(p, eps=1e-7).reshape(-1), predicted.reshape(-1) == group


class BinaryTargets(nn.Module):
    """BCE-with-logits: every entry of [B, ...] is a yes-or-no label; ``ignore_index`` leaves one out."""

    def __init__(self, criterion: nn.BCEWithLogitsLoss, ignore_index: int) -> None:
        super().__init__()
        self.criterion, self.ignore_index = criterion, ignore_index

    def n_groups(self, output: Tensor) -> int:
        return 2 * (output[0].numel() if output.ndim > 1 else 1)

    def n_answers(self, output: Tensor) -> int:  # noqa: ARG002
        return 2

    def read(self, output: Tensor, target: Tensor) -> BatchRows:
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
        level = torch.where(used, level, 0).clamp_min(0)
        column = torch.arange(given.numel(), device=given.device) % (self.n_groups(output) // 2)
        group = 2 * column + (given > 0.5).reshape(-1)
        loss, level, used, asked = (part.reshape(-1) for part in (loss, level, used, asked))
        return BatchRows(loss, level, used, asked, used.sum(), group, logits.detach().reshape(-1))

    def confidence(self, logits: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
        return logits.abs(), (logits > 0) == (group % 2 == 1)


class ValueTargets(nn.Module):
    """Any other criterion: one loss per row, or several that are averaged; there are no labels to agree with."""

    def __init__(self, criterion: Criterion, by_residual: bool) -> None:
        super().__init__()
        self.criterion, self.by_residual = criterion, by_residual

    def n_groups(self, output: Tensor) -> int:  # noqa: ARG002
        return 0

    n_answers = n_groups

    def read(self, output: Tensor, target: Tensor) -> BatchRows:
        if isinstance(self.criterion, nn.Module) and target.shape != output.shape:
            name, shapes = type(self.criterion).__name__, _shapes(output, target)
            raise ValueError(f"output and target of {name} must have one shape, got {shapes}")
        if not (output.ndim and target.ndim and len(output) == len(target)):
            raise ValueError(f"output and target must have one entry for each row, got {_shapes(output, target)}")
        whole = _finite_values(output) & _finite_values(target)
        output, target = _zero_unless(whole, _precise(output)), _zero_unless(whole, target)
        loss = self.criterion(output, target)
        if not isinstance(loss, Tensor) or loss.ndim == 0 or loss.shape[0] != len(output):
            got = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise ValueError(
                "criterion must return one loss per row, unreduced (reduction='none'): "
                f"got {got} for {len(output)} rows"
            )
        loss = loss.reshape(len(output), -1).mean(1)
        level = (output.detach() - target).square().reshape(len(output), -1).mean(1) if self.by_residual else loss
        level = level.detach()
        used = whole & level.isfinite()
        level = torch.where(used, level, 0).clamp_min(0)
        return BatchRows(torch.where(used, loss, 0), level, used, None, used.sum())

    def confidence(self, logits: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError  # values have no labels


# ---------------------------------------------------------------------------------------------------- pieces


def _known_finite(loss: Tensor) -> bool:
    """Whether no row is broken, if the answer costs nothing: on a device, or in a compiled graph, it would."""
    if torch.compiler.is_compiling() or loss.device.type != "cpu":
        return False
    return math.isfinite(loss.detach().sum().item())


def _checked_labels(output: Tensor, target: Tensor, weight: Tensor | None) -> bool:
    """Whether the targets are probabilities."""
    if output.ndim < 2:
        raise ValueError(f"logits must be [B, K] or [B, K, ...] with the classes second, got {_shapes(output, target)}")
    if output.is_complex():
        raise ValueError(f"logits must be real numbers, got {output.dtype}")
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
    # half precision cannot rank losses
    return output if output.dtype in (torch.float32, torch.float64) else output.float()


def _rows_of_classes(values: Tensor) -> Tensor:
    return values if values.ndim == 2 else values.movedim(1, -1).reshape(-1, values.shape[1])


def _finite_values(values: Tensor) -> Tensor:
    flat = values.detach().reshape(len(values), -1)
    return flat.isfinite().all(1)


def _zero_unless(whole: Tensor, values: Tensor) -> Tensor:
    return torch.where(whole.reshape([-1] + [1] * (values.ndim - 1)), values, 0)
