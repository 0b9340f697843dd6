"""Where the start decides: outliers that are nearly half, columns of one or two rows, few rows per column."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, RidgeCV

from selfpaced import SelfPacedLinearRegression


def far_outliers(n: int, p: int, share: float, size: float, seed: int):
    """Unit noise; the first rows are too large by ``size``."""
    rng = np.random.default_rng([seed, n, p, int(100 * share)])
    X, truth = rng.normal(size=(n, p)), rng.normal(size=p + 1)
    y = truth[0] + X @ truth[1:] + rng.normal(size=n)
    y[: int(share * n)] += size
    return X, y, truth


@pytest.mark.parametrize(
    ("n", "p", "share", "seeds"),
    [(50, 2, 0.4, (7, 11)), (50, 5, 0.4, (4, 5, 8)), (50, 2, 0.45, (5, 7, 11)), (100, 5, 0.45, (2, 4, 5))],
)
def test_far_outliers_that_are_nearly_half_are_found(n: int, p: int, share: float, seeds: tuple[int, ...]) -> None:
    for seed in seeds:  # each was once lost
        X, y, truth = far_outliers(n, p, share, 50.0, seed)
        model = SelfPacedLinearRegression().fit(X, y)
        error = np.sum((np.r_[model.intercept_, model.coef_] - truth) ** 2) * n / (p + 1)
        assert np.sqrt(error) < 5
        assert not model.sample_weight_[: int(share * n)].any()


def levels(seed: int, n: int = 100, share: float = 0.1, size: float = 20.0):
    """Three features and fifteen levels, the rarest with one or two rows; every level adds 5 to the first one's."""
    rng = np.random.default_rng([seed, n, 9])
    chance = 0.7 ** np.arange(15)
    features, level = rng.normal(size=(n, 3)), rng.choice(15, size=n, p=chance / chance.sum())
    columns = (level[:, None] == np.arange(1, 15)).astype(float)
    X = np.column_stack([features, columns[:, columns.any(axis=0)]])
    truth = X @ np.r_[rng.normal(size=3), np.full(X.shape[1] - 3, 5.0)]
    good = np.ones(n, dtype=bool)
    good[rng.permutation(n)[: int(share * n)]] = False
    return X, truth + rng.normal(size=n) + size * ~good, truth, good


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rare_levels_keep_their_coefficients(form) -> None:
    ratios = []
    for seed in (3, 4, 10):
        X, y, truth, good = levels(seed)
        model = SelfPacedLinearRegression().fit(form(X), y)
        oracle = LinearRegression().fit(X[good], y[good])
        errors = [np.mean((m.predict(Z) - truth)[good] ** 2) for m, Z in ((model, form(X)), (oracle, X))]
        ratios.append(errors[0] / errors[1])
    assert max(ratios) < 2  # once 194, 309 and 39


def test_a_row_that_alone_has_a_level_keeps_its_weight() -> None:
    X, y, _, _ = levels(0)
    alone = np.flatnonzero(X.sum(axis=0) == 1)
    alone = alone[alone >= 3]
    model = SelfPacedLinearRegression().fit(X, y)
    assert alone.size
    for column in alone:
        assert model.sample_weight_[np.flatnonzero(X[:, column])] == pytest.approx(1)


def test_a_level_that_the_sample_misses_is_fitted_on_all_rows() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(8000, 2)), np.zeros(8000)])
    X[:12, 2] = 1
    y = X @ [1.0, 2.0, 30.0] + rng.normal(size=8000)
    y[4000:] += 25 * (rng.random(4000) < 0.5)
    model = SelfPacedLinearRegression().fit(X, y)
    assert model.coef_[2] == pytest.approx(30, abs=1.2)
    assert model.sample_weight_[:12].min() > 0


def scarce(share: float, n: int = 60, p: int = 30):
    """Eight features of thirty count; a few rows far off, and features of new rows."""
    rng = np.random.default_rng(5)
    X, coef = rng.normal(size=(n, p)), rng.normal(size=p) * (np.arange(p) < 8)
    y = X @ coef + rng.normal(size=n)
    y[: int(share * n)] += 30
    return X, y, coef, rng.normal(size=(500, p))


def test_few_rows_per_coefficient_get_a_robust_ridge_and_a_warning() -> None:
    X, y, coef, fresh = scarce(0.15)
    with pytest.warns(UserWarning, match="60 rows for 31 coefficients: at least 3 per coefficient"):
        model = SelfPacedLinearRegression().fit(X, y)
    errors = [np.mean((m.predict(fresh) - fresh @ coef) ** 2) for m in (model, model.plain_)]
    assert errors[0] < 3 < 30 < errors[1]  # once the plain fit without a word
    assert model.alpha_ > 0 == model.alpha
    assert model.sample_weight_[:9].max() < 0.1 < 0.2 < model.sample_weight_[9:].min()
    assert "predicts rows that are left out better" in model.termination_


def test_few_clean_rows_lose_little_by_the_ridge() -> None:
    X, y, coef, fresh = scarce(0.0)
    with pytest.warns(UserWarning, match="rows for"):
        model = SelfPacedLinearRegression().fit(X, y)
    errors = [np.mean((m.predict(fresh) - fresh @ coef) ** 2) for m in (model, model.plain_)]
    assert errors[0] < 1.2 * errors[1]


def test_more_features_than_rows_have_a_scale() -> None:
    X, y, _, _ = scarce(0.0, n=30, p=60)
    with pytest.warns(UserWarning, match="30 rows for 30 coefficients"):
        model = SelfPacedLinearRegression().fit(X, y)
    assert model.scale_ > 0.1  # the plain fit goes through every row


# ---------------------------------------------------------------------------------------------------- levels


@pytest.mark.parametrize("dependent", [False, True])
def test_a_level_goes_where_most_of_its_rows_agree(dependent: bool) -> None:
    rng = np.random.default_rng(0)
    level = np.repeat(np.arange(4), [60, 50, 6, 22])
    columns = range(4) if dependent else range(1, 4)  # all four and an intercept depend on each other
    X = np.column_stack([rng.normal(size=138), *(level == j for j in columns)]).astype(float)
    y = X[:, 0] + 5 * (level > 0) + 0.1 * rng.normal(size=138)
    y[110:112] += 50  # two of six
    y[116:125] += 50  # nine of twenty-two
    model = SelfPacedLinearRegression().fit(X, y)
    effects = model.predict(np.column_stack([np.zeros(4), np.eye(4)[:, list(columns)]]))
    np.testing.assert_allclose(effects - effects[0], [0, 5, 5, 5], atol=0.3)


@pytest.mark.parametrize("seed", range(3))
def test_more_features_than_rows_and_outliers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, coef = rng.normal(size=(40, 60)), rng.normal(size=60) * (np.arange(60) < 8)
    y, new = X @ coef + rng.normal(size=40), rng.normal(size=(300, 60))
    y[:4] += 30
    with pytest.warns(UserWarning, match="at least 3 per coefficient"):
        model = SelfPacedLinearRegression().fit(X, y)
    peer = RidgeCV(np.geomspace(1e-2, 1e4, 13)).fit(X, y)
    errors = [np.mean((one.predict(new) - new @ coef) ** 2) for one in (model, peer)]
    assert errors[0] < errors[1]  # once the plain fit was kept, ten times worse
    assert model.alpha_ > 0
