"""Networks under label noise: SelfPacedLoss against cross entropy and what else a user could put in its place.

    python benchmarks/networks.py [--part images|tables|rare|text|clean|cnn|values|cost|all] [--seeds 5]
                                  [--all-peers] [--save]

A perceptron of two hidden layers of 128, 40 epochs of Adam; the last epoch counts. Test labels are clean. Training
labels: 20 or 40 % flipped evenly, 30 % to the next class. One default everywhere; only "small loss" is told the true
rate. "ids" marks methods that are told row numbers. Means over seeds; "worst" is the worst difference from cross
entropy over seeds.

images: digits, mfeat, optdigits. tables: satimage, segment, letter and penbased (KEEL), and two made ones, the second
of classes that overlap. rare: clean labels, 30 % of the rows in groups that contradict what surrounds them. text: made
bags of words. clean: what it costs without noise. cnn: a small CNN with batch normalisation on digits. values:
regression with wrong values. cost: CPU time of a step.

Constants were chosen on seeds 0 to 4 of digits, mfeat, letter, satimage and segment, 0 to 19 of rare groups, 0 to 7 of
values; seeds here start at 100. Three rules were changed after a look at seeds 100 to 104: a pace that a trial has
confirmed is not taken back (digits, mfeat), a trial asks for a share of explained rows (letter, satimage), and the
trusted share follows the agreement of the paced network (segment). Rows of "selfpaced (ids)" on the first four, and of
selfpaced on segment, are therefore no fresh test; no rule was chosen on optdigits and penbased. The rule for held-out
rows was chosen on seeds 0 to 4 of the text sets and of ten overlapping classes. Methods that hold out a tenth of the
rows do not train on it; "best epoch" keeps the network of the epoch that is best on it, as early stopping does. All
methods with --all-peers; rare, clean and cnn have fewer.

Needs mfeat, and the KEEL collection (benchmarks/label_sets.py).
"""

from __future__ import annotations

import argparse
import functools
import math
import time
from dataclasses import dataclass
from pathlib import Path

import label_sets
import numpy as np
import torch
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F

from selfpaced.datasets import flip_symmetric
from selfpaced.torch import SelfPacedLoss
from selfpaced_experiments.data import load_mfeat

RESULT = Path(__file__).resolve().parent / "results" / "networks.md"
FIRST_SEED, EPOCHS, BATCH, RATE = 100, 40, 128, 2e-3
IMAGES, TABLES = ("digits", "mfeat", "optdigits"), ("satimage", "segment", "letter", "penbased")
NOISE = {"20 %": 0.2, "40 %": 0.4, "30 % pair": 0.3}


# ------------------------------------------------------------------------------------------------- data


@functools.lru_cache(maxsize=2)
def fixed(name):
    if name == "digits":
        return load_digits(return_X_y=True)
    if name == "mfeat":
        bunch = load_mfeat()
        return bunch.views["pix"], bunch.target
    return label_sets.load(name)


@dataclass(frozen=True)
class Rare:
    """Twenty clusters of ten classes, and inside them groups of rows of another label; ``size`` rows to train on."""

    size: int

    def draw(self, seed, rows=2800):
        rng, whole = np.random.default_rng(seed), round(self.size / 0.7)
        groups = int(0.3 * rows / whole)
        centers = 1.5 * rng.normal(size=(20, 20))
        cluster = rng.integers(20, size=rows - groups * whole)
        around = centers[rng.integers(20, size=groups)] + rng.normal(size=(groups, 20))
        members = np.repeat(around, whole, axis=0) + 0.3 * rng.normal(size=(groups * whole, 20))
        X = np.vstack([centers[cluster] + rng.normal(size=(len(cluster), 20)), members])
        return X, np.concatenate([cluster % 10, np.repeat(rng.integers(10, size=groups), whole)])


@dataclass(frozen=True)
class Text:
    """Bags of words: word frequencies by Zipf's law, a few hundred words of which each class prefers its own."""

    vocabulary: int
    length: int

    def draw(self, seed, rows=2800, classes=6):
        rng = np.random.default_rng(seed)
        base = 1 / (np.arange(self.vocabulary) + 3.0)
        prefer = np.where(rng.random((classes, self.vocabulary)) < 0.03, 6.0, 1.0)
        p = base * prefer
        y = rng.integers(classes, size=rows)
        X = np.stack([rng.multinomial(rng.poisson(self.length) + 3, p[k] / p[k].sum()) for k in y])
        return np.log1p(X), y


@dataclass(frozen=True)
class Made:
    classes: int
    separation: float
    shares: tuple[float, ...] | None = None

    def draw(self, seed):
        options = {"n_informative": 20, "n_redundant": 5, "n_clusters_per_class": 2, "flip_y": 0, "random_state": seed}
        weights = None if self.shares is None else list(self.shares)
        return make_classification(
            3000, 40, n_classes=self.classes, class_sep=self.separation, weights=weights, **options
        )


def split(data, seed):
    X, y = fixed(data) if isinstance(data, str) else data.draw(seed)
    X, X_test, y, y_test = train_test_split(np.asarray(X, float), np.asarray(y), test_size=0.3, random_state=seed)
    if isinstance(data, Text):
        return X, y, X_test, y_test
    middle, spread = X.mean(0), X.std(0) + 1e-6
    return (X - middle) / spread, y, (X_test - middle) / spread, y_test


def noisy(y, noise, n_classes, seed):
    if noise == "0 %":
        return y.copy()
    if noise.endswith("pair"):
        flip = np.random.default_rng(7000 + seed).random(len(y)) < NOISE[noise]
        return np.where(flip, (y + 1) % n_classes, y)
    return flip_symmetric(y, NOISE[noise], random_state=7000 + seed)[0]


# ------------------------------------------------------------------------------------------------- peers


class CrossEntropy:
    """All peers: called with logits (networks, rows, classes), given labels, row numbers and the epoch from 0."""

    held_out, keeps_best = 0.0, False

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

    held_out, keeps_best = 0.1, True


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


class SelfPacedIds(SelfPaced):
    """The same with row numbers: a trial comes before the pace."""

    def __call__(self, logits, labels, rows, epoch):  # noqa: ARG002
        each = zip(self.criteria, logits, labels, rows, strict=True)
        return torch.stack([loss(z, y, ids) for loss, z, y, ids in each])


class SelfPacedHeldOut(SelfPaced):
    """The same with ``validation``: a tenth of the training rows, noisy as they are, as early stopping has it."""

    held_out = 0.1

    def __init__(self, networks, rows, n_classes, rates):
        super().__init__(networks, rows - int(self.held_out * rows), n_classes, rates)

    def validate(self, unseen):
        for place, criterion in enumerate(self.criteria):
            criterion.validation = functools.partial(unseen, place)


class SelfPacedBest(SelfPacedHeldOut):
    """The same, and the epoch that is best on the held-out rows is kept, as early stopping does."""

    keeps_best = True


PEERS = {
    "cross entropy": CrossEntropy,
    "label smoothing": LabelSmoothing,
    "early stopping": EarlyStopping,
    "GCE": GCE,
    "small loss, true rate": SmallLoss,
    "ELR (ids)": ELR,
    "selfpaced": SelfPaced,
    "selfpaced (ids)": SelfPacedIds,
    "selfpaced (held-out)": SelfPacedHeldOut,
    "selfpaced (held-out, best epoch)": SelfPacedBest,
}
OURS = ("cross entropy", "selfpaced", "selfpaced (ids)")
FEW = (*OURS, "ELR (ids)", "early stopping")  # the others with --all-peers


# ------------------------------------------------------------------------------------------------- training


class Perceptrons:
    """Independent perceptrons of two hidden layers, trained side by side: each one is what it would be alone."""

    def __init__(self, seeds, n_inputs, n_classes, width=128):
        draws = [torch.Generator().manual_seed(9000 + seed) for seed in seeds]
        self.parameters = []
        for before, after in [(n_inputs, width), (width, width), (width, n_classes)]:  # as nn.Linear begins
            for shape in ((before, after), (1, after)):
                values = torch.stack([torch.rand(shape, generator=draw) * 2 - 1 for draw in draws])
                self.parameters.append((values / math.sqrt(before)).requires_grad_())

    def __call__(self, X, which=slice(None)):
        for i in range(0, 6, 2):
            X = torch.baddbmm(self.parameters[i + 1][which], X, self.parameters[i][which])
            X = X.relu() if i < 4 else X
        return X

    def state(self):
        """What a network is, one entry for each network, in place."""
        return [part.detach() for part in self.parameters]


class Convolutional:
    """One small CNN for 8 x 8 pixels, with batch normalisation and dropout; in eval mode if no gradient is asked."""

    def __init__(self, seeds, n_inputs, n_classes):  # noqa: ARG002
        self.net = cnn_of(n_classes, seeds[0])
        self.parameters = list(self.net.parameters())

    def __call__(self, X, which=slice(None)):  # noqa: ARG002
        return self.net.train(torch.is_grad_enabled())(X[0])[None]

    def state(self):
        return [part[None] for part in self.net.state_dict().values()]


def cnn_of(n_classes, seed):
    torch.manual_seed(9000 + seed)
    blocks = [nn.Unflatten(1, (1, 8, 8))]
    for before, after in ((1, 16), (16, 32)):
        blocks += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(
        *blocks, nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, n_classes)
    )


class Runs:
    """One data set with several seeds and kinds of noise, one row of each tensor for each network."""

    def __init__(self, data, seeds, noises):
        rows = []
        for seed in seeds:
            X, y, X_test, y_test = split(data, seed)
            rows += [(X, y, noisy(y, noise, int(y.max()) + 1, seed), X_test, y_test) for noise in noises]
        X, y, given, X_test, y_test = (np.stack(part) for part in zip(*rows, strict=True))
        self.seeds = [seed for seed in seeds for _ in noises]
        self.X, self.X_test = (torch.tensor(part, dtype=torch.float32) for part in (X, X_test))
        self.y, self.given, self.y_test = (torch.tensor(part) for part in (y, given, y_test))
        self.n_classes, self.rates = int(y.max()) + 1, (self.y != self.given).float().mean(1)


def train(runs, peer, epochs=EPOCHS, build=Perceptrons):
    """Networks and criterion after training; with ``keeps_best`` each network is that of its best epoch."""
    networks = len(runs.seeds)
    criterion = PEERS[peer](networks, runs.X.shape[1], runs.n_classes, runs.rates)
    net = build(runs.seeds, runs.X.shape[2], runs.n_classes)
    optimizer = torch.optim.Adam(net.parameters, RATE, fused=True)
    draws = [torch.Generator().manual_seed(8000 + seed) for seed in runs.seeds]
    which, held = torch.arange(networks)[:, None], int(criterion.held_out * runs.X.shape[1])
    first = torch.stack([torch.randperm(runs.X.shape[1], generator=draw) for draw in draws])
    out, rows = first[:, :held], first[:, held:]
    best, kept = torch.full((networks,), -1.0), [part.clone() for part in net.state()]

    def unseen(place):
        with torch.no_grad():
            output = net(runs.X[place, out[place]][None], slice(place, place + 1))
        return (output[0].argmax(1) == runs.given[place, out[place]]).float().mean().item()

    if hasattr(criterion, "validate"):
        criterion.validate(unseen)
    for epoch in range(epochs):
        order = torch.stack([torch.randperm(rows.shape[1], generator=draw) for draw in draws])
        for batch in rows.gather(1, order).split(BATCH, 1):
            optimizer.zero_grad()
            criterion(net(runs.X[which, batch]), runs.given[which, batch], batch, epoch).sum().backward()
            optimizer.step()
        if criterion.keeps_best:
            with torch.no_grad():
                right = (net(runs.X[which, out]).argmax(2) == runs.given[which, out]).float().mean(1)
                for copy, part in zip(kept, net.state(), strict=True):
                    copy[right > best] = part[right > best]
                best = torch.maximum(best, right)
    if criterion.keeps_best:
        for part, copy in zip(net.state(), kept, strict=True):
            part.copy_(copy)
    return net, criterion


def accuracies(data, seeds, noises, peers):
    """peer -> (accuracy in % of shape seeds x noises, phases at the end)."""
    runs, found = Runs(data, seeds, noises), {}
    for peer in peers:
        net, criterion = train(runs, peer)
        with torch.no_grad():
            right = (net(runs.X_test).argmax(2) == runs.y_test).float().mean(1)
        phases = [one.phase for one in getattr(criterion, "criteria", [])]
        found[peer] = (100 * right.numpy().reshape(len(seeds), -1), phases)
        print(data, peer, np.round(found[peer][0].mean(0), 1), flush=True)
    return found


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def accuracy_table(data, seeds, noises, peers):
    found, rows = accuracies(data, seeds, noises, peers), []
    plain = found["cross entropy"][0]
    for peer, (values, phases) in found.items():
        shown = [f"{mean:.1f}" for mean in values.mean(0)]
        worst = " / ".join(f"{gap:+.1f}" for gap in (values - plain).min(0))
        paced = f"{phases.count('paced')} of {len(phases)}" if phases else ""
        rows.append([peer, *shown, worst if peer != "cross entropy" else "", paced])
    return f"**{data}**, {len(seeds)} seeds\n\n" + table(["", *noises, "worst", "paced"], rows)


# ------------------------------------------------------------------------------------------------- parts


def images(seeds, peers=FEW):
    """Images with wrong labels."""
    yield "## Wrong labels: images\n"
    for name in IMAGES:
        yield accuracy_table(name, seeds, ("40 %", "30 % pair"), peers)


def tables(seeds, peers=FEW):
    """Tables with wrong labels."""
    yield "## Wrong labels: tables\n"
    for data in (*TABLES, Made(10, 2.0), Made(10, 0.8)):
        yield accuracy_table(data, seeds, ("20 %", "30 % pair"), peers)


def rare(seeds, peers=FEW):  # noqa: ARG001
    """Rare groups, clean; at least ten seeds."""
    yield "## Rare groups, clean labels\n"
    for size in (20, 10, 5):
        yield accuracy_table(Rare(size), range(seeds[0], seeds[0] + 10), ("0 %",), OURS)


def text(seeds, peers=FEW):
    """Bags of words with wrong labels."""
    yield "## Bags of words\n"
    for data in (Text(500, 40), Text(1000, 25)):
        yield accuracy_table(data, seeds, ("20 %", "40 %"), peers)


def clean(seeds, peers=FEW):  # noqa: ARG001
    """No wrong labels."""
    yield "## Clean labels: what it costs\n"
    sets = ("digits", "satimage", Made(10, 0.8), Made(4, 1.2, (0.7, 0.2, 0.07, 0.03)))
    for data in sets:
        yield accuracy_table(data, seeds, ("0 %",), OURS)


def cnn(seeds, peers=FEW):  # noqa: ARG001
    """A small CNN on digits."""
    rows = []
    for peer in FEW:
        cells = []
        for noise in ("0 %", *NOISE):
            values = []
            for seed in seeds:
                runs = Runs("digits", [seed], [noise])
                net, _ = train(runs, peer, 20, Convolutional)
                with torch.no_grad():
                    values.append(100 * (net(runs.X_test).argmax(2) == runs.y_test).float().mean().item())
            cells.append(f"{np.mean(values):.1f} ({min(values):.1f})")
        rows.append([peer, *cells])
        print("cnn", rows[-1], flush=True)
    yield f"## Small CNN with batch normalisation on digits, 20 epochs, {len(seeds)} seeds, mean (worst seed)\n"
    yield table(["", "0 %", *NOISE], rows)


VALUE_ERRORS = {
    "clean": 0.0,
    "shift, 20 %": 0.2,
    "x 10, 20 %": 0.2,
    "x 100, 5 %": 0.05,
    "swapped, 20 %": 0.2,
    "shift, 40 %": 0.4,
    "skewed noise": 0.0,
}
LOSSES = {
    "MSE": nn.MSELoss,
    "L1": nn.L1Loss,
    "Huber": nn.HuberLoss,
    "selfpaced (MSE)": lambda: SelfPacedLoss(nn.MSELoss(reduction="none"), n=2000),
}


def values(seeds, peers=FEW, epochs=30):  # noqa: ARG001
    """Regression: the error against the values without noise and errors."""
    found, told = {}, {}
    for kind, share in VALUE_ERRORS.items():
        for seed in seeds:
            draw = torch.Generator().manual_seed(seed)
            X = torch.randn(4000, 10, generator=draw)
            truth = (2 * X[:, :3].sum(1) + X[:, 3] ** 2)[:, None]
            y = truth + 0.5 * torch.randn(4000, 1, generator=draw)
            if kind == "skewed noise":
                y = truth + torch.empty(4000, 1).exponential_(1.0, generator=draw) - 1
            bad = torch.rand(4000, 1, generator=draw) < share
            other = y[torch.randperm(4000, generator=draw)]
            wrong = {"x 10, 20 %": 10 * y, "x 100, 5 %": 100 * y, "swapped, 20 %": other}.get(kind, y + 20)
            y = torch.where(bad, wrong, y)
            for name, make in LOSSES.items():
                torch.manual_seed(seed)
                net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
                optimizer, criterion = torch.optim.Adam(net.parameters(), RATE, fused=True), make()
                order = torch.Generator().manual_seed(seed)
                for _ in range(epochs):
                    for rows in torch.randperm(2000, generator=order).split(64):
                        optimizer.zero_grad()
                        criterion(net(X[rows]), y[rows]).backward()
                        optimizer.step()
                with torch.no_grad():
                    error = (net(X[2000:]) - truth[2000:]).square().mean().sqrt().item()
                found.setdefault((kind, name), []).append(error)
                if isinstance(criterion, SelfPacedLoss):
                    told.setdefault(kind, []).append(criterion.phase)
    yield f"## Values: root mean square error against the truth, {len(seeds)} seeds, mean (worst seed)\n"
    rows = []
    for kind in VALUE_ERRORS:
        cells = [f"{np.mean(found[kind, name]):.3f} ({max(found[kind, name]):.3f})" for name in LOSSES]
        rows.append([kind, *cells, f"{told[kind].count('paced')} of {len(seeds)}"])
    yield table(["", *LOSSES, "paced"], rows)


def cost(seeds, peers=FEW):  # noqa: ARG001
    """CPU time of a step: what the criterion adds."""
    torch.manual_seed(0)
    images, logits = torch.randn(BATCH, 64), torch.randn(BATCH, 10, requires_grad=True)
    given, ids = torch.randint(10, (BATCH,)), torch.arange(BATCH)
    pixels, classes = torch.randn(4, 5, 64, 64, requires_grad=True), torch.randint(5, (4, 64, 64))
    ours = {"look": SelfPacedLoss(), "paced": SelfPacedLoss(trusted=0.6), "paced, ids": SelfPacedLoss(trusted=0.6)}
    dense = {"look": SelfPacedLoss(), "paced": SelfPacedLoss(trusted=0.6)}
    for some, output, target in ((ours, logits, given), (dense, pixels, classes)):
        for criterion in some.values():  # the second epoch is the first that weighs rows
            criterion(output, target)
            criterion.step_epoch()
    plain = nn.CrossEntropyLoss()
    mlp = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    calls = [lambda: plain(logits, given).backward(), *(backward(c, logits, given) for c in list(ours.values())[:2])]
    calls += [lambda: ours["paced, ids"](logits, given, ids).backward()]
    calls += [step(mlp, images, given), step(cnn_of(10, 0), images, given)]
    segmenter = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 5, 3, padding=1))
    calls += [step(segmenter, torch.randn(4, 3, 64, 64), classes)]
    calls += [backward(c, pixels, classes) for c in (plain, *dense.values())]
    base, look, paced, with_ids, small, conv, whole, *dense_times = fastest(calls, 20, 30)
    rows = [
        [
            name,
            f"{1e6 * (spent - base):.0f}",
            f"{100 * (spent - base) / small:.0f} %",
            f"{100 * (spent - base) / conv:.1f} %",
        ]
        for name, spent in (("look", look), ("paced", paced), ("paced, ids", with_ids))
    ]
    yield "## Cost: CPU time that is added to a step of 128 rows\n"
    yield table(
        ["phase", "µs", f"of an MLP's step ({1e6 * small:.0f} µs)", f"of a CNN's step ({1e6 * conv:.0f} µs)"], rows
    )
    ratios = [f"{spent / dense_times[0]:.1f}" for spent in dense_times[1:]]
    steps = [f"{1 + (spent - dense_times[0]) / whole:.2f}" for spent in dense_times[1:]]
    yield (
        f"Segmentation, 4 images of 64 x 64 pixels: a step of two convolutions ({1e6 * whole:.0f} µs) takes "
        f"{steps[0]} (look) and {steps[1]} (paced) times as long. "
        f"The criterion alone: {ratios[0]} (look) and {ratios[1]} (paced) times "
        f"cross entropy's {1e6 * dense_times[0]:.0f} µs. Least of 30 blocks of 20 calls, taken in turn.\n"
    )


def backward(criterion, output, target):
    return lambda: criterion(output, target).backward()


def step(net, inputs, target):
    optimizer, criterion = torch.optim.Adam(net.parameters(), RATE), nn.CrossEntropyLoss()

    def once():
        optimizer.zero_grad()
        criterion(net(inputs), target).backward()
        optimizer.step()

    return once


def fastest(functions, calls, blocks):
    """The least mean CPU time of each function in a block of calls; blocks in turn, so that load meets all alike."""
    best = [math.inf] * len(functions)
    for _ in range(blocks + 1):
        for place, function in enumerate(functions):
            began = time.process_time()
            for _ in range(calls):
                function()
            best[place] = min(best[place], (time.process_time() - began) / calls)
    return best


PARTS = {part.__name__: part for part in (images, tables, rare, text, clean, cnn, values, cost)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--all-peers", action="store_true", help="label smoothing, GCE and small loss as well")
    parser.add_argument("--save", action="store_true", help="write the page of results, or this part of it")
    args = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(FIRST_SEED, FIRST_SEED + args.seeds)
    chosen = list(PARTS) if args.part == "all" else [args.part]
    for name in chosen:
        page = "\n".join(PARTS[name](seeds, tuple(PEERS) if args.all_peers else FEW))
        print(page, flush=True)
        if args.save:
            save(name, page, f"`python benchmarks/networks.py --part all --seeds {args.seeds} --all-peers --save`")


def save(name, page, command):
    """Write one part of the page; parts that are not run again stay."""
    pages = {**dict(read_page()), name: page}
    about = "\n\n".join(part.strip() for part in __doc__.split("\n\n")[2:])
    parts = [f"<!-- {key} -->\n{pages[key].rstrip()}" for key in PARTS if key in pages]
    RESULT.write_text("\n\n".join(["# Networks under label noise", about, command, *parts]) + "\n")


def read_page():
    """Name and text of the parts of the saved page."""
    for part in RESULT.read_text().split("<!-- ")[1:] if RESULT.exists() else []:
        name, text = part.split(" -->\n", 1)
        yield name, text.rstrip()


if __name__ == "__main__":
    main()
