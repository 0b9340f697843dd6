"""Suspects of a network: the same table as everywhere."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from sklearn.metrics import average_precision_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from selfpaced.torch import SelfPacedLoss, WithIndex, assess, review, soft_labels, suspects
from selfpaced.torch.assessing import PICTURES

COLUMNS = ["row", "level", "given", "expected", "weight", "noise_probability", "probability_if_noisy", "label_quality"]


@pytest.fixture
def trained(digits, network, train):
    criterion = SelfPacedLoss(n=len(digits["X"]))
    net = train(network(64, 10), digits["X"], digits["given"], criterion, 25)
    assert criterion.phase == "paced"
    return net, criterion, DataLoader(TensorDataset(digits["X"], digits["given"]), batch_size=100, shuffle=True)


def test_flipped_rows_come_first(trained, digits):
    net, criterion, loader = trained
    table = suspects(net, loader, criterion)
    assert list(table.columns) == COLUMNS
    wrong = digits["wrong"].numpy()
    assert sorted(table["row"]) == list(range(len(wrong)))
    ranked = np.empty(len(wrong))
    ranked[np.asarray(table["row"])] = -np.arange(len(wrong))
    assert average_precision_score(wrong, ranked) > 0.95
    assert wrong[np.asarray(table["row"][:100])].mean() > 0.95
    right = np.asarray(table["expected"][:100]) == digits["clean"].numpy()[np.asarray(table["row"][:100])]
    assert right.mean() > 0.9


def test_the_weights_are_those_of_the_pace(trained, digits):
    net, criterion, loader = trained
    assessed = assess(net, loader, criterion)
    np.testing.assert_allclose(assessed.weight, np.exp(-assessed.losses / criterion.lam**2), rtol=1e-9)
    assert assessed.wrong.mean() == pytest.approx(0.4, abs=0.06)
    assert net.training


def test_ids_name_the_rows(trained):
    net, criterion, loader = trained
    rows = np.asarray(suspects(net, loader, criterion, n=5)["row"])
    names = [f"scan {i}" for i in range(len(loader.dataset))]
    assert list(suspects(net, loader, criterion, n=5, ids=names)["row"]) == [f"scan {i}" for i in rows]
    with pytest.raises(ValueError, match="ids must name each of the 1257 rows, got 3"):
        suspects(net, loader, criterion, ids=names[:3])


def test_the_review_of_a_network_is_what_the_report_shows(trained, digits):
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    from selfpaced.report import summarise

    net, criterion, loader = trained
    summary = summarise(review(net, loader, criterion))
    assert "Sequential was trained for 25 epochs on 1,257 samples, paced from epoch " in summary.sentence
    assert summary.termination == criterion.termination
    assert summary.history.phases == tuple(record["phase"] for record in criterion.history)
    table = suspects(net, loader, criterion)
    assert list(summary.suspects.columns[0].values) == list(table["row"])
    assert summary.pictures == ()  # rows of 64 numbers are no pictures


def test_pictures_of_the_most_suspicious_rows(trained, digits):
    net, criterion, _ = trained
    images = digits["X"].reshape(-1, 1, 8, 8)
    loader = DataLoader(TensorDataset(images, digits["given"]), batch_size=100, shuffle=True)
    seen = review(nn.Sequential(nn.Flatten(), net), loader, criterion, ids=range(1000, 1000 + len(images)))
    order = seen.assessment.ranking(PICTURES)
    assert len(seen.pictures) == PICTURES
    for row, picture in zip(order[:5], seen.pictures, strict=False):
        np.testing.assert_array_equal(picture, images[row].numpy())
    assert seen.names[0] == 1000
    batches = [(images[:100], digits["given"][:100])]
    assert review(nn.Sequential(nn.Flatten(), net), batches, criterion).pictures == ()


def test_values(network):
    X = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    net = nn.Linear(3, 1)
    with torch.no_grad():
        y = net(X) + 0.1 * torch.randn(200, 1, generator=torch.Generator().manual_seed(1))
    y[7] += 10
    table = suspects(net, [(X, y)])
    assert int(table["row"][0]) == 7
    assert "residual" in table.columns


class Keywords(nn.Module):
    """A network that takes keyword arguments and returns a dict, as those of Hugging Face."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, pixels, labels=None):
        return {"logits": self.net(pixels)}


def test_batches_that_are_dicts_and_batches_with_row_numbers(trained, digits):
    net, criterion, loader = trained
    expected = np.asarray(suspects(net, loader, criterion)["row"])
    rows = [{"pixels": x, "labels": y} for x, y in zip(digits["X"], digits["given"], strict=True)]
    dicts = DataLoader(WithIndex(rows), batch_size=100, shuffle=True)
    assert list(suspects(Keywords(net), dicts, criterion)["row"]) == list(expected)
    tuples = DataLoader(WithIndex(loader.dataset), batch_size=100, shuffle=True)
    assert list(suspects(net, tuples, criterion)["row"]) == list(expected)
    with pytest.raises(ValueError, match=r"must hold 'labels' or 'label', got \['index', 'pixels'\]"):
        suspects(Keywords(net), [{"pixels": digits["X"], "index": 0}])


def test_soft_labels(trained, digits):
    net, criterion, loader = trained
    soft = soft_labels(net, loader, criterion)
    np.testing.assert_allclose(soft.sum(1), 1.0, rtol=1e-5)
    assert (soft.argmax(1) == digits["clean"].numpy()).mean() > 0.9
    with pytest.raises(ValueError, match="soft labels need targets that are labels, got values"):
        soft_labels(nn.Linear(3, 1), [(torch.zeros(4, 3), torch.zeros(4, 1))])


def test_data_sets_with_row_numbers():
    rows = WithIndex([10, 11, 12])
    assert (len(rows), rows[2]) == (3, (12, 2))
    with pytest.raises(TypeError, match=r"dataset must have len\(\) and \[\], got generator"):
        WithIndex(row for row in ())


def test_what_cannot_be_assessed():
    net = nn.Linear(3, 2)
    with pytest.raises(ValueError, match="the loader has no rows"):
        assess(net, [])
    with pytest.raises(ValueError, match=r"logits \[B, K\] for labels \[B\], .* got \(4, 2\) and \(4, 2\)"):
        assess(net, [(torch.zeros(4, 3), torch.zeros(4, 2, dtype=torch.long))])
    with pytest.raises(ValueError, match=r"one for each row: .* got \(4, 2\) and \(4, 2\)"):
        assess(net, [(torch.zeros(4, 3), torch.zeros(4, 2))])
