"""What a trained network says about the rows of a loader: assessment, suspects and soft labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset

from ..assessment import PICTURES, Assessment, Labels, TrainedNetwork, Values
from ..inspection import suspect_table
from ..label_noise import NoiseModel, symmetric
from ..robust import outlier_probability
from ..robust.scales import MAD_TO_SIGMA
from .criterion import SelfPacedLoss

Array = NDArray[Any]


def assess(model: nn.Module, loader: Any, criterion: SelfPacedLoss | None = None) -> Assessment:
    """Return what a trained network says about the given labels or values of the rows of a loader.

    Parameters
    ----------
    model : nn.Module
        Maps a batch of inputs to logits [B, K], or to one value for each row. It is put in eval mode and back. Outputs
        with ``logits``, as those of Hugging Face, will do.
    loader : DataLoader or iterable of batches
        Batches are ``(inputs, targets, ...)``, or dicts with "labels" or "label": the other entries are then the
        keyword arguments of the model, except "index". A DataLoader is read in the order of its data set, whatever its
        sampler.
    criterion : SelfPacedLoss, optional
        The one it was trained with: gives the rate of wrong labels and the pace. Without it the rate is the share of
        labels that the network contradicts, and all rows weigh 1.

    Returns
    -------
    Assessment
        Row numbers are positions in the data set. The network was trained on the rows: only a paced network, which
        has not memorised the labels, can tell wrong ones.
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
    if int(target.min()) < 0 or int(target.max()) >= output.shape[1]:
        raise ValueError(f"labels must be 0 .. {output.shape[1] - 1}, got {int(target.min())} to {int(target.max())}")
    if math.isnan(rate):
        rate = (output.argmax(1) != target).float().mean().item()
    losses = F.cross_entropy(output, target, reduction="none").numpy().astype(np.float64)
    codes = target.numpy().astype(np.intp)
    classes = np.arange(output.shape[1])
    diagnosis = Labels(classes, codes, output.numpy().astype(np.float64), _even_noise(rate, len(classes)))
    return Assessment("labels", diagnosis, losses, lam, rule)


def _even_noise(rate: float, n_classes: int) -> NoiseModel:
    """Label noise at one rate, the wrong label any of the others."""
    rate = max(rate, 1e-3)  # a rate of 0 would make every label certain, whatever the network says
    transition = symmetric(rate, n_classes)
    return NoiseModel(1.0, np.zeros(n_classes), transition, rate, interval=(rate, rate), model_weights=(1.0,))


def suspects(
    model: nn.Module,
    loader: Any,
    criterion: SelfPacedLoss | None = None,
    n: int | None = None,
    ids: Iterable[Any] | None = None,
) -> Any:
    """Return the rows whose given label or value is probably wrong, most suspicious first.

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
    pandas.DataFrame
        The ranking of all rows, with the columns of `selfpaced.suspects`.
    """
    assessed = assess(model, loader, criterion)
    names = _names(ids, assessed)
    table = suspect_table(assessed, n, all_rows=True)
    if names is not None:
        table["row"] = names[np.asarray(table["row"])]
    return table


def soft_labels(model: nn.Module, loader: Any, criterion: SelfPacedLoss | None = None) -> Array:
    """Return the probability of every class given the inputs and the given label, for training another model.

    Parameters
    ----------
    model, loader, criterion
        As in `assess`; targets must be labels.

    Returns
    -------
    ndarray of float32 [n, K]
        By Bayes' rule: the network's probabilities, and label noise at the rate of the criterion.

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Linear(2, 2)
    >>> _ = torch.nn.init.eye_(net.weight), torch.nn.init.zeros_(net.bias)
    >>> loader = [(torch.tensor([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0]]), torch.tensor([0, 0, 1]))]
    >>> soft_labels(net, loader).round(2)
    array([[1., 0.],
           [1., 0.],
           [1., 0.]], dtype=float32)
    """
    labels = assess(model, loader, criterion).diagnosis
    if not isinstance(labels, Labels) or not isinstance(labels.noise, NoiseModel):
        raise ValueError("soft labels need targets that are labels, got values")
    return labels.noise.posterior(labels.logits, labels.codes).astype(np.float32)


def review(
    model: nn.Module, loader: Any, criterion: SelfPacedLoss | None = None, ids: Iterable[Any] | None = None
) -> TrainedNetwork:
    """Return a trained network for the report: ``selfpaced.report(review(model, loader, criterion))``.

    Parameters
    ----------
    model, loader, criterion
        As in `assess`. If the loader is a DataLoader over a data set that can be indexed and inputs are pictures
        [C, H, W] of one, three or four channels, the report shows those of the most suspicious rows.
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
    """The inputs of the most suspicious rows, if they are pictures."""
    if not _can_be_indexed(loader):
        return ()
    out = []
    for row in assessed.ranking(PICTURES):
        batch = loader.collate_fn([loader.dataset[int(row)]])
        inputs = next(iter(_unpacked(batch)[0].values())) if isinstance(batch, Mapping) else batch[0]
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
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a module of PyTorch, got {type(model).__name__}")
    device = next(iter(model.parameters()), torch.empty(0)).device
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            pairs = [_evaluated(model, batch, device) for batch in loader]
    finally:
        model.train(training)
    if not pairs:
        raise ValueError("the loader has no rows")
    outputs, targets = zip(*pairs, strict=True)
    return torch.cat(outputs), torch.cat(targets)


def _evaluated(model: nn.Module, batch: Any, device: torch.device) -> tuple[Tensor, Tensor]:
    inputs, target = _unpacked(batch)
    if isinstance(inputs, Mapping):
        output = model(**{name: part.to(device) if hasattr(part, "to") else part for name, part in inputs.items()})
    else:
        output = model(inputs.to(device))
    output = output["logits"] if isinstance(output, Mapping) else getattr(output, "logits", output)
    return output.float().cpu(), target.cpu()


def _unpacked(batch: Any) -> tuple[Any, Tensor]:
    """Inputs and targets of a batch."""
    if isinstance(batch, Mapping):
        name = next((name for name in ("labels", "label") if name in batch), None)
        if name is None:
            raise ValueError(f"a batch that is a dict must hold 'labels' or 'label', got {sorted(map(str, batch))}")
        return {key: part for key, part in batch.items() if key not in (name, "index")}, batch[name]
    if not isinstance(batch, tuple | list) or len(batch) < 2:
        raise ValueError(f"a batch must be (inputs, targets, ...) or a dict, got {type(batch).__name__}")
    return batch[0], batch[1]
