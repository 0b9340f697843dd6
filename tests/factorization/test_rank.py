"""The choice of rank and ridge does not depend on the seed, and the quality of a fit is told by held-out entries."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from selfpaced import SelfPacedMF
from selfpaced.factorization import rank

USERS, ITEMS = 1000, 60


@pytest.fixture(scope="module")
def ratings():
    """Ratings in bounds by unequal raters, with two weak tastes: training and test triplets."""
    rng = np.random.default_rng(4)
    level = 3 + 0.5 * rng.standard_normal((USERS, 1)) + 0.4 * rng.standard_normal(ITEMS)
    taste = 0.3 * rng.standard_normal((USERS, 2)) @ rng.standard_normal((2, ITEMS))
    noise = 0.7 * np.exp(0.5 * rng.standard_normal((USERS, 1)))
    values = np.clip(level + taste + noise * rng.standard_normal((USERS, ITEMS)), 1, 5)
    rows, columns = np.nonzero(rng.random(values.shape) < 0.5)
    test = rng.random(rows.size) < 0.1
    whole = rows, columns, values[rows, columns]
    return tuple(part[~test] for part in whole), tuple(part[test] for part in whole)


def fitted(ratings, seed=0, **setting):
    (train, _), shape = ratings, (USERS, ITEMS)
    return SelfPacedMF(bounds=(1, 5), random_state=seed, **setting).fit(train, shape=shape)


def error(model, ratings):
    rows, columns, values = ratings[1]
    return float(np.sqrt(np.mean((model.predict(rows, columns) - values) ** 2)))


def test_held_out_error_hardly_depends_on_the_seed(ratings):
    models = [fitted(ratings, seed) for seed in range(4)]
    errors = [error(model, ratings) for model in models]
    given = min(error(fitted(ratings, rank=2, ridge=ridge, center="both"), ratings) for ridge in (0.1, 0.35))
    assert max(errors) <= 1.02 * min(*errors, given)
    assert {model.quality_ for model in models} == {"recovered"}


def test_a_ridge_that_leaves_only_the_means_is_reported_as_such(ratings):
    with pytest.warns(ConvergenceWarning, match="means only"):
        strong = fitted(ratings, rank=2, ridge=1.0)
    assert strong.quality_ == "means only"
    found = fitted(ratings, rank=2, ridge=0.1)
    assert found.quality_ == "recovered"
    assert error(found, ratings) < 0.98 * error(strong, ratings)
    assert "held-out error" in found.termination_


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_no_spare_component_is_kept(seed):
    rng = np.random.default_rng(200 + seed)
    true = 1 + seed
    X = rng.normal(size=(40, true)) @ rng.normal(size=(true, 30))
    found = SelfPacedMF(random_state=0).fit(X)
    assert found.rank_ == true
    assert [candidate.label for candidate in found.rank_path_ if candidate.chosen] == [f"rank {true}"]


@pytest.mark.parametrize("given", [15, 20])
def test_a_given_rank_is_kept_however_few_entries_a_row_has(given):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + 0.1 * rng.normal(size=(30, 20))
    assert SelfPacedMF(given, random_state=0).fit(X).rank_ == given


def test_fits_that_disagree_are_called_unreliable(monkeypatch):
    monkeypatch.setattr(rank, "APART", 0.0)  # any difference between the two fits is too much
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40)) + 0.1 * rng.normal(size=(60, 40))
    with pytest.warns(ConvergenceWarning, match="unreliable .*do not rely on the fit"):
        found = SelfPacedMF(random_state=0).fit(X)
    assert found.quality_ == "unreliable"
    assert "two fits differ by" in found.termination_
