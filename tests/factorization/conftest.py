"""Small matrices that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from selfpaced.datasets import make_low_rank
from selfpaced.factorization.engine import Entries, from_csr


@pytest.fixture(scope="session")
def made() -> Any:
    """The paper's synthetic matrix."""
    return make_low_rank(random_state=11)


@pytest.fixture(scope="session")
def csr(made: Any) -> Any:
    return sp.csr_array((made.observed, (made.rows, made.columns)), shape=made.data.shape)


@pytest.fixture(scope="session")
def entries(csr: Any) -> Entries:
    return from_csr(csr)


@pytest.fixture
def factors() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((100, 4)), rng.standard_normal((100, 4))


def rmse(model: Any, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((model.reconstruct() - truth) ** 2)))
