"""What a trained network says about the rows of a loader: the assessment and the suspects of the rest of the
library."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset

from ..assessment import Assessment, Labels, TrainedNetwork, Values
from ..inspection import suspect_table
from ..robust import outlier_probability
from ..robust.scales import MAD_TO_SIGMA
from .criterion import SelfPacedLoss

Array = NDArray[Any]

PICTURES = 200  # cost: the most suspicious rows whose inputs are kept for the report
_LEAST_RATE = 1e-3  # numerical safety: a rate of 0 would make every label certain, whatever the network says


@dataclass(frozen=True)
class EvenNoise:
    """Labels that are wrong at one rate, the wrong one any of the others."""

    rate: float

    def proba(self, logits: Any) -> Array:
        """Probability of each clean class: what the network says."""
        shifted = np.asarray(logits) - np.max(logits, axis=1, keepdims=True)
        exp = np.exp(shifted)
        return np.asarray(exp / exp.sum(axis=1, keepdims=True))

    def noise_probability(self, logits: Any, y: Any) -> Array:
        """Probability that the given label is wrong, by Bayes' rule."""
        proba = self.proba(logits)
        given, rate = proba[np.arange(len(proba)), y], max(self.rate, _LEAST_RATE)
        wrong = rate / (proba.shape[1] - 1) * (1 - given)
        return np.asarray(wrong / (wrong + (1 - rate) * given))


def assess(model: nn.Module, loader: Any, criterion: SelfPacedLoss | None = None) -> Assessment:
    """What a trained network says about the given labels or values of the rows of a loader.

    Parameters
    ----------
    model : nn.Module
        Maps a batch of inputs to logits [B, K], or to one value for each row. It is put in eval mode and back.
    loader : DataLoader or iterable of (inputs, targets)
        A DataLoader is read in the order of its data set, whatever its sampler.
    criterion : SelfPacedLoss, optional
        The one it was trained with: gives the rate of wrong labels and the pace. Without it the rate is taken to be
        the share of labels that the network contradicts, and nothing is weighted.

    Returns
    -------
    Assessment
        Row numbers are positions in the data set. The network has been trained on the rows: only a paced one, which
        has not memorised its labels, has anything to say about them.
    """
    output, target = _outputs(model, loader)
    paced = criterion is not None and criterion.phase == "paced"
    rule, lam = (criterion.regularizer, criterion.lam) if criterion is not None and paced else (None, math.inf)
    rate = criterion.rate if criterion is not None else math.nan
    if target.is_floating_point():
        return _of_values(output, target, rate, rule, lam)
    if output.ndim != 2 or target.ndim != 1:
        shapes = f"{tuple(output.shape)} and {tuple(target.shape)}"
        raise ValueError(
            f"the model must give logits [B, K] for labels [B], or values [B] for values [B], got {shapes}"
        )
    if math.isnan(rate):
        rate = (output.argmax(1) != target).float().mean().item()
    losses = F.cross_entropy(output, target, reduction="none").numpy().astype(np.float64)
    codes = target.numpy().astype(np.intp)
    diagnosis = Labels(np.arange(output.shape[1]), codes, output.numpy().astype(np.float64), EvenNoise(rate))
    return Assessment("labels", diagnosis, losses, lam, rule)


def suspects(
    model: nn.Module,
    loader: Any,
    criterion: SelfPacedLoss | None = None,
    n: int | None = None,
    ids: Iterable[Any] | None = None,
) -> Any:
    """Rows whose given label or value is probably wrong, most suspicious first.

    Parameters
    ----------
    model, loader, criterion
        As in `assess`.
    n : int, optional
        How many rows; all by default.
    ids : sequence, optional
        Names of the rows, in the order of the data set, for the column ``row``; positions by default.

    Returns
    -------
    pandas.DataFrame, or Records where pandas is not installed
        The ranking of all rows, with the columns of `selfpaced.suspects`.
    """
    assessed = assess(model, loader, criterion)
    names = _names(ids, assessed)
    table = suspect_table(assessed, n, all_rows=True)
    if names is not None:
        table["row"] = names[np.asarray(table["row"])]
    return table


def review(
    model: nn.Module, loader: Any, criterion: SelfPacedLoss | None = None, ids: Iterable[Any] | None = None
) -> TrainedNetwork:
    """A trained network for the page: ``selfpaced.report(review(model, loader, criterion))``.

    Parameters
    ----------
    model, loader, criterion
        As in `assess`. Where the loader is a DataLoader over a data set that can be indexed and inputs are pictures
        [C, H, W] of one, three or four channels, the page shows those of the most suspicious rows.
    ids
        As in `suspects`.

    Returns
    -------
    TrainedNetwork
        The assessment of the rows, the epochs of the criterion, and why it is in its last phase.
    """
    assessed = assess(model, loader, criterion)
    return TrainedNetwork(
        name=type(model).__name__,
        assessment=assessed,
        epochs=() if criterion is None else tuple(criterion.history),
        termination="" if criterion is None else criterion.termination,
        names=_names(ids, assessed),
        pictures=_pictures(loader, assessed),
    )


def _names(ids: Iterable[Any] | None, assessed: Assessment) -> Array | None:
    if ids is None:
        return None
    names = np.asarray(list(ids))
    if len(names) != len(assessed.losses):
        raise ValueError(f"ids must name each of the {len(assessed.losses)} rows, got {len(names)}")
    return names


def _pictures(loader: Any, assessed: Assessment) -> tuple[Array, ...]:
    """The inputs of the most suspicious rows, where they are pictures."""
    if not _can_be_indexed(loader):
        return ()
    out = []
    for row in assessed.ranking(PICTURES):
        inputs = loader.collate_fn([loader.dataset[int(row)]])[0]
        if inputs.ndim != 4 or inputs.shape[1] not in (1, 3, 4):
            return ()
        out.append(inputs[0].cpu().numpy() if inputs.dtype is torch.uint8 else inputs[0].float().cpu().numpy())
    return tuple(out)


def _can_be_indexed(loader: Any) -> bool:
    return isinstance(loader, DataLoader) and not isinstance(loader.dataset, IterableDataset)


def _of_values(output: Tensor, target: Tensor, rate: float, rule: Any, lam: float) -> Assessment:
    if output.numel() != target.numel() or target.numel() != len(target):
        shapes = f"{tuple(output.shape)} and {tuple(target.shape)}"
        raise ValueError(
            f"values are assessed one for each row: the model must give as many as there are, got {shapes}"
        )
    expected, given = (part.reshape(-1).numpy().astype(np.float64) for part in (output, target))
    residual = given - expected
    sigma = MAD_TO_SIGMA * float(np.median(np.abs(residual)))
    wrong = outlier_probability(residual, sigma, 0.0 if math.isnan(rate) else rate)
    return Assessment("values", Values(given, expected, wrong), residual**2, lam, rule)


def _outputs(model: nn.Module, loader: Any) -> tuple[Tensor, Tensor]:
    """Outputs and targets of all rows, on the host."""
    if _can_be_indexed(loader):
        loader = DataLoader(loader.dataset, batch_size=loader.batch_size or 1, collate_fn=loader.collate_fn)
    first = next(iter(model.parameters()), torch.empty(0))
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            pairs = [(model(inputs.to(first.device)).float().cpu(), target.cpu()) for inputs, target in loader]
    finally:
        model.train(training)
    if not pairs:
        raise ValueError("the loader has no rows")
    outputs, targets = zip(*pairs, strict=True)
    return torch.cat(outputs), torch.cat(targets)
