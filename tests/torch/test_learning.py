"""What it is for: wrong labels are not memorised, and clean but difficult data are left alone."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from sklearn.datasets import make_classification
from torch import nn

from selfpaced.pacing import LossSketch
from selfpaced.torch import SelfPacedLoss, verdict
from selfpaced.torch.verdict import LapseVerdict, far_share


def overlapping(classes=10, sep=0.8, rows=3000, seed=0):
    X, y = make_classification(
        rows,
        40,
        n_informative=20,
        n_classes=classes,
        n_clusters_per_class=2,
        class_sep=sep,
        flip_y=0,
        random_state=seed,
    )
    return torch.from_numpy(((X - X.mean(0)) / X.std(0)).astype(np.float32)), torch.from_numpy(y)


def test_wrong_labels_are_not_memorised(digits, network, train, accuracy):
    criterion = SelfPacedLoss(n=len(digits["X"]))
    paced = train(network(64, 10), digits["X"], digits["given"], criterion, 30)
    plain = train(network(64, 10), digits["X"], digits["given"], nn.CrossEntropyLoss(), 30)
    assert criterion.phase == "paced"
    assert criterion.rate == pytest.approx(0.4, abs=0.06)
    assert criterion.rate_interval[0] <= criterion.rate <= criterion.rate_interval[1]
    assert criterion.trusted == pytest.approx(0.6, abs=0.1)
    assert "labels contradict a sure network" in criterion.termination
    assert accuracy(paced, digits["X_test"], digits["y_test"]) > 0.88
    assert (
        accuracy(paced, digits["X_test"], digits["y_test"]) > accuracy(plain, digits["X_test"], digits["y_test"]) + 0.1
    )
    wrong = digits["wrong"]
    assert accuracy(paced, digits["X"][wrong], digits["given"][wrong]) < 0.15


def test_clean_labels_are_left_alone(digits, network, train, accuracy):
    criterion = SelfPacedLoss()
    net = train(network(64, 10), digits["X"], digits["clean"], criterion, 20)
    assert (criterion.phase, criterion.lam) == ("plain", math.inf)
    assert criterion.rate < 0.03
    assert accuracy(net, digits["X_test"], digits["y_test"]) > 0.95


@pytest.mark.parametrize(("classes", "sep"), [(10, 0.8), (3, 0.5), (2, 0.5)])
def test_overlap_is_no_noise(classes, sep, network, train):
    X, y = overlapping(classes, sep, 2000)
    criterion = SelfPacedLoss(n=len(X))
    train(network(40, classes), X, y, criterion, 20)
    assert criterion.phase == "plain"
    assert "overlap explains enough" in criterion.termination


def test_a_false_alarm_is_taken_back(network, train, monkeypatch):
    X, y = overlapping(rows=2000)
    criterion = SelfPacedLoss(n=len(X))

    def alarm(self):
        self.phase, self.trusted = "paced", self.agreement

    monkeypatch.setattr(LapseVerdict, "_decide", alarm)
    train(network(40, 10), X, y, criterion, 20)
    phases = [record["phase"] for record in criterion.history]
    assert verdict.TRIAL <= phases.count("paced") < 10
    assert phases[-1] == "plain"
    assert "taken back" in criterion.termination
    assert criterion.lam == math.inf


@pytest.mark.parametrize(("gain", "kept"), [(0.05, True), (-0.05, False)])
def test_held_out_rows_are_a_second_guard(gain, kept, digits, network, train):
    criterion = SelfPacedLoss(n=len(digits["X"]))
    criterion.validation = lambda: 0.5 + (gain if criterion.phase == "paced" else 0.0)
    train(network(64, 10), digits["X"], digits["given"], criterion, 20)
    assert (criterion.phase == "paced") is kept
    assert ("45.0% of the held-out labels agree, 50.0% before" in criterion.termination) is not kept


def test_several_labels_a_row(network, train):
    torch.manual_seed(0)
    X = torch.randn(1500, 20)
    clean = (X @ torch.randn(20, 6) > 0).float()
    flipped = torch.rand(clean.shape) < 0.25
    given = torch.where(flipped, 1 - clean, clean)
    criterion = SelfPacedLoss(nn.BCEWithLogitsLoss(reduction="none"), n=1500)
    paced = train(network(20, 6, 128), X, given, criterion, 40)
    plain = train(network(20, 6, 128), X, given, nn.BCEWithLogitsLoss(), 40)
    assert criterion.phase == "paced"
    right = [((net(X) > 0) == clean.bool()).float().mean().item() for net in (paced, plain)]
    assert right[0] > right[1] + 0.03


def test_pixels(train):
    torch.manual_seed(0)
    X = torch.randn(1000, 2, 6, 6)
    clean = (X[:, 0] + X[:, 1] > 0).long() + (X[:, 0] - X[:, 1] > 1.5).long()
    noise = torch.rand(clean.shape) < 0.3
    given = torch.where(noise, (clean + torch.randint(1, 3, clean.shape)) % 3, clean)
    net = nn.Sequential(nn.Conv2d(2, 32, 1), nn.ReLU(), nn.Conv2d(32, 3, 1))
    criterion = SelfPacedLoss(n=1000)
    train(net, X, given, criterion, 20, batch=20, lr=1e-2)
    assert criterion.phase == "paced"
    assert criterion.rate == pytest.approx(0.3, abs=0.05)


# ------------------------------------------------------------------------------------------------- values


def line(rows=1000, far=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5)).astype(np.float32)
    clean = X @ np.array([1.0, -2.0, 0.5, 0.0, 3.0], dtype=np.float32)
    y = clean + 0.3 * rng.normal(size=rows)
    bad = rng.random(rows) < far
    y[bad] += 30 + 5 * rng.normal(size=bad.sum())
    return torch.from_numpy(X), torch.from_numpy(y.astype(np.float32))[:, None], torch.from_numpy(clean)[:, None]


@pytest.mark.parametrize("loss", [nn.MSELoss, nn.L1Loss, nn.HuberLoss])
def test_far_values_are_held_back(loss, network, train):
    X, y, clean = line(far=0.2)
    criterion = SelfPacedLoss(loss(reduction="none"), n=1000)
    paced, plain = (train(network(5, 1), X, y, c, 40) for c in (criterion, loss()))
    assert criterion.phase == "paced"
    assert criterion.rate == pytest.approx(0.2, abs=0.05)
    error = [(net(X) - clean).square().mean().sqrt().item() for net in (paced, plain)]
    assert error[0] < 0.5
    assert error[0] < error[1]


@pytest.mark.parametrize("loss", [nn.MSELoss, nn.L1Loss, nn.HuberLoss])
def test_values_without_a_gap_are_left_alone(loss, network, train):
    X, y, _ = line()
    criterion = SelfPacedLoss(loss(reduction="none"), n=1000)
    train(network(5, 1), X, y, criterion, 20)
    assert (criterion.phase, criterion.lam) == ("plain", math.inf)
    assert criterion.termination == "no part of the losses lies off the others: nothing is held back"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("draw", ["normal", "standard_cauchy", "laplace", "exponential", "lognormal"])
@pytest.mark.parametrize("power", [1, 2])
def test_no_smooth_distribution_has_a_gap(draw, power, seed):
    losses = np.abs(getattr(np.random.default_rng(seed), draw)(size=1000)) ** power
    assert far_share(LossSketch.of(losses)) < verdict.LEAST_RATE


def test_losses_that_are_all_zero_have_no_gap():
    assert far_share(LossSketch.of(np.zeros(10))) == 0.0
