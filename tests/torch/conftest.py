"""Small networks on small tables, one thread, every seed given. Nothing is imported where torch is missing."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def one_thread():
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def digits():
    """Digits, 40 % of the given training labels wrong."""
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from selfpaced.datasets import flip_symmetric

    X, y = load_digits(return_X_y=True)
    X = ((X - X.mean(0)) / (X.std(0) + 1e-6)).astype(np.float32)
    rows, test, clean, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    given, wrong = flip_symmetric(clean, 0.4, random_state=0)
    parts = {"X": rows, "given": given, "clean": clean, "wrong": wrong, "X_test": test, "y_test": y_test}
    return {name: torch.from_numpy(np.ascontiguousarray(part)) for name, part in parts.items()}


@pytest.fixture(scope="session")
def network():
    import torch

    def build(n_inputs, n_outputs, width=64, seed=0):
        torch.manual_seed(seed)
        layers = [torch.nn.Linear(n_inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, n_outputs)]
        return torch.nn.Sequential(*layers)

    return build


@pytest.fixture(scope="session")
def train():
    import torch

    def loop(net, X, y, criterion, epochs, *, batch=128, lr=5e-3, seed=0):
        """The plain loop."""
        optimizer = torch.optim.Adam(net.parameters(), lr)
        order = torch.Generator().manual_seed(seed)
        for _ in range(epochs):
            for rows in torch.randperm(len(X), generator=order).split(batch):
                optimizer.zero_grad()
                criterion(net(X[rows]), y[rows]).backward()
                optimizer.step()
            if criterion_steps(criterion):
                criterion.step_epoch()
        return net

    return loop


def criterion_steps(criterion):
    return hasattr(criterion, "step_epoch") and criterion.n is None


@pytest.fixture
def accuracy():
    import torch

    def share(net, X, y):
        with torch.no_grad():
            return (net(X).argmax(1) == y).float().mean().item()

    return share
