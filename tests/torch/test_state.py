"""A checkpoint continues bit for bit, in the middle of an epoch too."""

import copy
import io
import itertools
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn

from selfpaced.torch import SelfPacedLoss


def steps(net, optimizer, criterion, X, y, batches):
    for rows in batches:
        optimizer.zero_grad()
        criterion(net(X[rows]), y[rows]).backward()
        optimizer.step()


def shuffled(n, epochs, size=100):
    order = torch.Generator().manual_seed(0)
    return [rows for _ in range(epochs) for rows in torch.randperm(n, generator=order).split(size)]


def saved(state):
    """Through a file, read as untrusted files are read."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


STOPS = (3, 30, 57, 95, 120, 201)


def test_continues_bit_for_bit(digits, network):
    X, y = digits["X"], digits["given"]
    batches = shuffled(len(X), 16)
    net, criterion = network(64, 10), SelfPacedLoss(n=len(X))
    optimizer, states = torch.optim.Adam(net.parameters(), 5e-3), []
    for begin, end in itertools.pairwise((0, *STOPS, len(batches))):
        steps(net, optimizer, criterion, X, y, batches[begin:end])
        states.append(saved([net.state_dict(), optimizer.state_dict(), criterion.state_dict()]))
    assert criterion.phase == "paced"
    for stop, parts in zip(STOPS, states[:-1], strict=True):
        again, fresh = network(64, 10, seed=1), SelfPacedLoss(n=len(X))
        second = torch.optim.Adam(again.parameters(), 5e-3)
        for thing, state in zip((again, second, fresh), parts, strict=True):
            thing.load_state_dict(state)
        steps(again, second, fresh, X, y, batches[stop:])
        for a, b in zip(net.parameters(), again.parameters(), strict=True):
            assert torch.equal(a, b), stop
        assert repr(fresh.history) == repr(criterion.history)  # nan equals nan
        assert (fresh.phase, fresh.lam, fresh.termination) == (criterion.phase, criterion.lam, criterion.termination)


@pytest.mark.parametrize("loss", [None, nn.MSELoss(reduction="none"), nn.BCEWithLogitsLoss(reduction="none")])
def test_every_kind_has_a_state(loss):
    torch.manual_seed(0)
    output = torch.randn(40, 3, requires_grad=True)
    target = torch.arange(40) % 3 if loss is None else torch.rand(40, 3).round()
    for options in ({}, {"trusted": 0.5}):
        first, second = SelfPacedLoss(loss, **options), SelfPacedLoss(loss, **options)
        for _ in range(5):
            first(output, target)
            first.step_epoch()
        first(output, target)
        second.load_state_dict(saved(first.state_dict()))
        assert repr(second.history) == repr(first.history)
        assert second(output, target).item() == first(output, target).item()


def test_a_state_is_a_copy():
    criterion = SelfPacedLoss(n=1000)
    criterion(torch.zeros(4, 3, requires_grad=True), torch.arange(4) % 3)
    state = criterion.state_dict()
    before = copy.deepcopy(state)
    criterion(torch.zeros(4, 3, requires_grad=True), torch.arange(4) % 3)
    assert torch.equal(state["_extra_state"], before["_extra_state"])


def test_a_fresh_criterion_has_a_state_too():
    SelfPacedLoss().load_state_dict(saved(SelfPacedLoss().state_dict()))


def test_copies_and_pickles_continue_alike():
    criterion = SelfPacedLoss(trusted=0.5)
    output, target = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 3
    output.requires_grad_()
    criterion(output, target)
    criterion.step_epoch()
    expected = criterion(output, target).item()
    for twin in (copy.deepcopy(criterion), pickle.loads(pickle.dumps(criterion))):
        assert twin(output, target).item() == expected


def test_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    model = nn.ModuleDict({"net": nn.Linear(3, 3), "criterion": SelfPacedLoss(trusted=0.5)})
    inputs, target, ids = torch.randn(40, 3), torch.arange(40) % 3, torch.arange(40)
    for _ in range(2):
        model["criterion"](model["net"](inputs), target, ids)
        model["criterion"].step_epoch()
    safetensors.save_file(model.state_dict(), tmp_path / "model.safetensors")
    again = nn.ModuleDict({"net": nn.Linear(3, 3), "criterion": SelfPacedLoss(trusted=0.5)})
    again.load_state_dict(safetensors.load_file(tmp_path / "model.safetensors"))
    assert repr(again["criterion"].history) == repr(model["criterion"].history)
    assert again["criterion"].weights().tolist() == model["criterion"].weights().tolist()


def test_a_checkpoint_of_cross_entropy_loads_without_the_state():
    """As documented: strict=False, or the key is left out."""
    plain = nn.ModuleDict({"net": nn.Linear(3, 3), "criterion": nn.CrossEntropyLoss()})
    paced = nn.ModuleDict({"net": nn.Linear(3, 3), "criterion": SelfPacedLoss()})
    assert paced.load_state_dict(plain.state_dict(), strict=False).missing_keys == ["criterion._extra_state"]
    assert plain.load_state_dict(paced.state_dict(), strict=False).unexpected_keys == ["criterion._extra_state"]


def test_a_trial_continues_bit_for_bit(digits, network):
    X, y, batches = digits["X"], digits["given"], shuffled(len(digits["X"]), 14)
    found = []
    for stops in (False, True):
        net, criterion = network(64, 10, 128), SelfPacedLoss(n=len(X))
        optimizer = torch.optim.Adam(net.parameters(), 2e-3)
        for number, rows in enumerate(batches):
            if stops and criterion.phase == "trial" and number % 20 == 0:
                state, criterion = saved(criterion.state_dict()), SelfPacedLoss(n=len(X))
                criterion.load_state_dict(state)
            optimizer.zero_grad()
            criterion(net(X[rows]), y[rows], rows).backward()
            optimizer.step()
        assert "trial" in {record["phase"] for record in criterion.history}
        found.append((repr(criterion.history), net[0].weight.detach()))
    assert found[0][0] == found[1][0]
    assert torch.equal(found[0][1], found[1][1])


def test_every_epoch_is_told_to_a_function():
    told = []
    criterion = SelfPacedLoss(n=40, on_epoch=told.append)
    output, target = torch.randn(40, 3, requires_grad=True), torch.arange(40) % 3
    for _ in range(3):
        criterion(output, target)
    assert [record["epoch"] for record in told] == [1, 2, 3]
    assert repr(told) == repr(criterion.history)
