"""What it is for: wrong labels are not memorised, and clean but difficult data are left alone."""

import functools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from sklearn.datasets import make_classification
from torch import nn

from selfpaced.datasets import flip_symmetric
from selfpaced.torch import SelfPacedLoss


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
    assert "labels contradict a confident network" in criterion.termination
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


def outputs_with_wrong_labels(unsure=0.0, rows=4000):
    """Outputs of a network that is sure and right, but of the share ``unsure``; one given label in five is wrong."""
    draw = torch.Generator().manual_seed(0)
    truth, height = torch.randint(10, (rows,), generator=draw), 4 + 8 * torch.rand(rows, generator=draw)
    wrong, missed = (torch.rand(rows, generator=draw) < share for share in (0.2, unsure))
    predicted, height = torch.where(missed, (truth + 5) % 10, truth), torch.where(missed, height / 8, height)
    output = nn.functional.one_hot(predicted, 10) * height[:, None]
    return output.requires_grad_(), torch.where(wrong, (truth + 1) % 10, truth)


def outputs_of_overlapping_classes(rows=4000):
    """Outputs of a network that knows the probability of every label."""
    draw = torch.Generator().manual_seed(0)
    output = 1.5 * torch.randn(rows, 10, generator=draw)
    return output.requires_grad_(), output.detach().softmax(1).multinomial(1, generator=draw)[:, 0]


@pytest.mark.parametrize("learns", [False, True])
def test_the_trusted_share_follows_the_paced_network_as_it_learns(learns):
    """Of the rows that the network misses at first, one in twenty, it learns all or none while it is paced."""
    criterion, trusted = SelfPacedLoss(n=4000), []
    for epoch in range(14):
        criterion(*outputs_with_wrong_labels(unsure=0.0 if learns and epoch >= 5 else 0.05))
        trusted.append(criterion.trusted)
    assert (criterion.phase, criterion.history[4]["phase"]) == ("paced", "paced")
    assert trusted[4] == pytest.approx(0.76, abs=0.01)
    assert trusted[-1] == pytest.approx(0.79 if learns else trusted[4], abs=0.011)
    assert trusted[-1] <= 1 - criterion.rate_interval[1]


@pytest.mark.parametrize(("classes", "sep"), [(10, 0.8), (3, 0.5), (2, 0.5)])
def test_overlap_is_no_noise(classes, sep, network, train):
    X, y = overlapping(classes, sep, 2000)
    criterion = SelfPacedLoss(n=len(X))
    train(network(40, classes), X, y, criterion, 20)
    assert criterion.phase == "plain"
    contradicts = criterion.history[-1]["agreement"] < 0.97
    assert ("overlap of the classes explains enough" in criterion.termination) is contradicts
    assert ("they are right, or it has memorised them" in criterion.termination) is not contradicts


def test_a_false_alarm_is_taken_back():
    """The paced network contradicts labels where it is unsure only."""
    criterion = SelfPacedLoss(n=4000)
    for epoch in range(14):
        criterion(*(outputs_with_wrong_labels() if epoch < 5 else outputs_of_overlapping_classes()))
    passed = [record["phase"] for record in criterion.history]
    assert passed[4:8] == ["paced"] * 4
    assert passed[-1] == "plain"
    assert "pacing was undone" in criterion.termination
    assert criterion.lam == math.inf


def bags_of_words(rows=1400, classes=6, words=500, seed=3):
    rng = np.random.default_rng(seed)
    p = np.where(rng.random((classes, words)) < 0.03, 6.0, 1.0) / (np.arange(words) + 3.0)
    y = rng.integers(classes, size=rows)
    X = np.stack([rng.multinomial(40, p[k] / p[k].sum()) for k in y])
    return torch.from_numpy(np.log1p(X).astype(np.float32)), torch.from_numpy(y)


def test_held_out_rows_show_that_words_are_memorised(network, train, accuracy):
    X, y = bags_of_words()
    given = torch.from_numpy(flip_symmetric(y.numpy(), 0.4, random_state=0)[0])
    reached, kept = [], slice(0, 800)
    for held_out in (False, True):
        net, criterion = network(500, 6), SelfPacedLoss(n=800)
        if held_out:
            criterion.validation = functools.partial(accuracy, net, X[800:1000], given[800:1000])
        train(net, X[kept], given[kept], criterion, 20)
        reached.append(accuracy(net, X[1000:], y[1000:]))
    assert "the network memorises labels" in criterion.termination
    assert "keep the network of the epoch with the best held-out accuracy" in criterion.termination
    assert criterion.phase == "paced"
    assert reached[1] > reached[0] + 0.05
    assert len(criterion.history) == 20
    assert all(0 < record["held_out"] < 1 for record in criterion.history)


def test_memorising_is_told_before_there_are_rows_enough_to_decide():
    accuracies = iter([0.6, 0.55, 0.5, 0.5, 0.5])
    criterion = SelfPacedLoss(validation=lambda: next(accuracies))
    for _ in range(5):
        criterion((5 * torch.eye(4)).requires_grad_(), torch.arange(4))
        criterion.step_epoch()
    assert criterion.phase == "paced"
    assert criterion.trusted == 0.5
    assert "50 % of the held-out ones agree" in criterion.termination


@pytest.mark.parametrize("returned", [None, "0.5", 50.0, math.nan])
def test_a_validation_that_returns_no_accuracy_is_an_error(returned):
    criterion = SelfPacedLoss(validation=lambda: returned)
    criterion(torch.zeros(4, 2, requires_grad=True), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"validation\(\) must be the accuracy on held-out rows, in \[0, 1\], got"):
        criterion.step_epoch()


# ------------------------------------------------------------------------------------------------- with row numbers


def rare_groups(size=10, rows=2000, seed=2):
    """Clean labels: 30 % of the rows lie in groups that have another label than what surrounds them."""
    rng = np.random.default_rng(seed)
    groups = int(0.3 * rows / size)
    centers = 1.5 * rng.normal(size=(20, 20))
    cluster = rng.integers(20, size=rows - groups * size)
    around = centers[rng.integers(20, size=groups)] + rng.normal(size=(groups, 20))
    X = np.vstack([centers[cluster] + rng.normal(size=(len(cluster), 20)), np.repeat(around, size, axis=0)])
    X[len(cluster) :] += 0.3 * rng.normal(size=(groups * size, 20))
    y = np.concatenate([cluster % 10, np.repeat(rng.integers(10, size=groups), size)])
    return torch.from_numpy((X / X.std(0)).astype(np.float32)), torch.from_numpy(y)


def train_with_ids(net, X, y, criterion, epochs, gives_ids=True):
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    order = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for rows in torch.randperm(len(X), generator=order).split(128):
            optimizer.zero_grad()
            criterion(net(X[rows]), y[rows], rows if gives_ids else None).backward()
            optimizer.step()
    return net


def test_rare_groups_are_told_from_wrong_labels_by_a_trial(network):
    X, y = rare_groups()
    found = {}
    for trial in (False, True):
        criterion = SelfPacedLoss(n=len(X))
        net = nn.Sequential(network(20, 128, 128), nn.ReLU(), nn.Linear(128, 10))
        train_with_ids(net, X, y, criterion, 30, gives_ids=trial)
        found[trial] = criterion.phase, (net(X).argmax(1) == y).float().mean().item()
    assert found[False][0] == "paced"
    assert found[True][0] == "plain"
    assert found[True][1] > found[False][1] + 0.1
    assert "rare groups, not label noise" in criterion.termination
    assert "trial" in {record["phase"] for record in criterion.history}


@pytest.mark.parametrize("kind", ["even", "pair"])
def test_wrong_labels_pass_the_trial(kind, digits, network, accuracy):
    """Labels of the next class too, which look more like a group."""
    given = digits["given"]
    if kind == "pair":
        flip = torch.rand(len(given), generator=torch.Generator().manual_seed(0)) < 0.3
        given = torch.where(flip, (digits["clean"] + 1) % 10, digits["clean"])
    criterion = SelfPacedLoss(n=len(given))
    net = train_with_ids(network(64, 10, 128), digits["X"], given, criterion, 40)
    assert criterion.phase == "paced"
    assert accuracy(net, digits["X_test"], digits["y_test"]) > 0.88


def test_the_weights_of_the_last_pass_stay_whatever_becomes_of_the_row_numbers():
    draw = torch.Generator().manual_seed(0)
    output, labels = 3 * torch.randn(64, 5, generator=draw), torch.randint(5, (64,), generator=draw)
    criterion, ids = SelfPacedLoss(trusted=0.5), torch.arange(8)
    for _ in range(2):
        for begin in range(0, 64, 8):  # a loader that uses one tensor again and again
            torch.arange(begin, begin + 8, out=ids)
            criterion(output[begin : begin + 8].requires_grad_(), labels[begin : begin + 8], ids)
        criterion.step_epoch()
    each = nn.functional.cross_entropy(output, labels, reduction="none").numpy()
    half = np.quantile(each, 0.5)  # Welsch: half weight there
    np.testing.assert_allclose(criterion.weights(), np.exp2(-each / half), atol=0.02)


def test_weights_by_row_number(digits, network):
    criterion = SelfPacedLoss(n=len(digits["X"]))
    train_with_ids(network(64, 10), digits["X"][:1000], digits["given"][:1000], criterion, 3)
    weights = criterion.weights()
    assert weights.shape == (1000,)
    assert (weights >= 0).all()
    assert (weights <= 1).all()
    criterion = SelfPacedLoss(n=len(digits["X"]))
    train_with_ids(network(64, 10, 128), digits["X"], digits["given"], criterion, 40)
    wrong = digits["wrong"].numpy()
    assert criterion.weights()[wrong].mean() < 0.2 < 0.7 < criterion.weights()[~wrong].mean()


# ------------------------------------------------------------------------------------------------- other targets


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
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(12):
        for rows in torch.randperm(1000).split(20):
            optimizer.zero_grad()
            criterion(net(X[rows]), given[rows], rows).backward()
            optimizer.step()
    assert criterion.phase == "paced"  # without a trial: an image has no one label
    assert criterion.rate == pytest.approx(0.3, abs=0.05)
    assert criterion.weights().shape == (1000,)


# ------------------------------------------------------------------------------------------------- values


def line(rows=1000, far=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5)).astype(np.float32)
    clean = X @ np.array([1.0, -2.0, 0.5, 0.0, 3.0], dtype=np.float32)
    y = clean + 0.3 * rng.normal(size=rows)
    bad = rng.random(rows) < far
    y[bad] += 30 + 5 * rng.normal(size=bad.sum())
    return torch.from_numpy(X), torch.from_numpy(y.astype(np.float32))[:, None], torch.from_numpy(clean)[:, None]


def made_wrong(y, kind, seed=1):
    """A fifth of the values wrong: shifted, ten times too large, or those of another row."""
    rng = np.random.default_rng(seed)
    bad = torch.from_numpy(rng.random(len(y)) < (0.4 if kind == "shift of 40 %" else 0.2))
    wrong = {"times ten": 10 * y, "another row's": y[torch.from_numpy(rng.permutation(len(y)))]}.get(kind, y + 30)
    return torch.where(bad[:, None], wrong, y)


@pytest.fixture(scope="module", params=["shift", "times ten", "another row's"])
def wrong_values(request, network, train):
    """Features, given and clean values, and what Huber's loss learns of them."""
    X, y, clean = line()
    given = made_wrong(y, request.param)
    return X, given, clean, train(network(5, 1), X, given, nn.HuberLoss(), 30)


@pytest.mark.parametrize("loss", [nn.MSELoss, nn.L1Loss, nn.HuberLoss])
def test_wrong_values_are_held_back(loss, wrong_values, network, train):
    X, given, clean, huber = wrong_values
    criterion = SelfPacedLoss(loss(reduction="none"), n=1000)
    paced = train(network(5, 1), X, given, criterion, 30)
    assert criterion.phase == "paced"
    assert criterion.rate == pytest.approx(0.17, abs=0.06)
    error = [(net(X) - clean).square().mean().sqrt().item() for net in (paced, huber)]
    assert error[0] < 0.25
    assert error[0] < error[1]


def test_clean_values_are_fitted_as_least_squares_fits_them(network, train):
    error = []
    for seed in range(3):
        X, y, clean = line(seed=seed)
        nets = [
            train(network(5, 1), X, y, c, 30)
            for c in (SelfPacedLoss(nn.MSELoss(reduction="none"), n=1000), nn.MSELoss())
        ]
        error.append([(net(X) - clean).square().mean().sqrt().item() for net in nets])
    paced, plain = np.mean(error, axis=0)
    assert paced < 1.05 * plain


def test_too_many_wrong_values_are_told(network, train):
    X, y, _ = line()
    criterion = SelfPacedLoss(nn.MSELoss(reduction="none"), n=1000)
    train(network(5, 1), X, made_wrong(y, "shift of 40 %"), criterion, 20)
    assert criterion.phase == "look"
    assert "too many to tell which part is right" in criterion.termination


def test_a_loss_of_the_user_is_paced_if_the_share_is_given(network, train):
    X, y, clean = line(far=0.2)

    def own(output, target):
        return (output - target).square().mean(1)

    paced, plain = (train(network(5, 1), X, y, c, 40) for c in (SelfPacedLoss(own, n=1000, trusted=0.6), nn.MSELoss()))
    error = [(net(X) - clean).square().mean().sqrt().item() for net in (paced, plain)]
    assert error[0] < 0.5
    assert error[0] < error[1]


def test_a_loss_of_the_user_is_left_alone_without_a_share(network, train):
    X, y, _ = line()
    criterion = SelfPacedLoss(lambda output, target: (output - target).abs().mean(1), n=1000)
    train(network(5, 1), X, y, criterion, 5)
    assert (criterion.phase, criterion.lam) == ("plain", math.inf)
    assert "unless trusted= or pacing= is given" in criterion.termination
