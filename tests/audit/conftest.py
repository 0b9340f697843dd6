"""Held-out probabilities whose wrong labels are known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest


@dataclass
class Labelled:
    """True probabilities of rows, given labels as codes, and which of them are wrong."""

    probs: Any
    codes: Any
    wrong: Any


def drawn(n, n_classes, rate, seed, size=4.0):
    """Rows whose true label follows the probabilities; a share of labels is moved to another class."""
    rng = np.random.default_rng(seed)
    z = size * rng.normal(size=(n, n_classes))
    probs = np.exp(z - z.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    true = (rng.random(n)[:, None] > probs.cumsum(axis=1)).sum(axis=1)
    wrong = rng.random(n) < rate
    moved = (true + rng.integers(1, n_classes, n)) % n_classes
    return Labelled(probs, np.where(wrong, moved, true), wrong)


@pytest.fixture(scope="session", name="drawn")
def drawn_rows():
    return drawn


@pytest.fixture(scope="session")
def binary():
    return drawn(800, 2, 0.15, 0)


@pytest.fixture(scope="session")
def three():
    return drawn(900, 3, 0.15, 1)


@pytest.fixture(scope="session")
def clean():
    return drawn(900, 3, 0.0, 2)
