"""Linear regression on tables of blocks: the same however rows are cut, and near the fit in memory."""

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from scipy import sparse
from sklearn.linear_model import LinearRegression, Ridge

from selfpaced import SelfPacedLinearRegression
from selfpaced.distributed import MemoryTable, spool, write_suspects
from selfpaced.linear import _regression_fit, regression, regression_tables
from selfpaced.pacing import Geometric, Stages


def rows(n=2000, d=4, share=0.2, seed=0):
    """Features of unequal size about a far centre; a share of the values is wrong."""
    rng = np.random.default_rng(seed)
    X = 100 + (rng.standard_t(5.0, (n, d)) * np.geomspace(1, 0.2, d)) @ rng.standard_normal((d, d))
    y = X @ np.arange(1.0, d + 1) + 3 + rng.standard_normal(n)
    wrong = rng.random(n) < share
    y[wrong] += 30 + 5 * rng.standard_normal(wrong.sum())
    return X, y, wrong


def elsewhere(X, y, n_blocks=7, weight=None):
    own = MemoryTable(X, y, weight, n_blocks=n_blocks)

    class Table:
        n, n_features, dtype, names, classes, mass = own.n, own.n_features, own.dtype, None, None, own.mass
        reduce, take, numbers = own.reduce, own.take, own.numbers

    return Table()


def same(one, other, tol=1e-10):
    for name in ("coef_", "intercept_", "scale_", "lam_", "noise_rate_", "alpha_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=tol, err_msg=name)
    np.testing.assert_allclose(one.plain_.coef_, other.plain_.coef_, rtol=tol)
    assert one.termination_ == other.termination_


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(_regression_fit, "DECIDING", 1000)


def test_few_rows_are_those_of_memory():
    X, y, _ = rows(1000)
    memory = SelfPacedLinearRegression().fit(X, y)
    for n_blocks in (1, 7, 60):
        same(memory, SelfPacedLinearRegression().fit(elsewhere(X, y, n_blocks)))


OPTIONS = {
    "automatic": {},
    "clean": {},
    "ridge": {"alpha": 50.0},
    "no intercept": {"fit_intercept": False},
    "fixed": {"pace": 6.0},
    "paper": {"pace": "paper"},
    "pacing": {"pace": Geometric(mu=1.5, fraction=0.5, stop=Stages(4))},
    "welsch": {"regularizer": "welsch"},
}


@pytest.mark.parametrize("case", OPTIONS)
def test_where_and_in_which_order_rows_lie_does_not_matter(few_are_many, case):
    X, y, _ = rows(share=0.0 if case == "clean" else 0.2)
    memory = SelfPacedLinearRegression(**OPTIONS[case]).fit(X, y)
    same(memory, SelfPacedLinearRegression(**OPTIONS[case]).fit(elsewhere(X, y, 7)))
    order = np.random.default_rng(1).permutation(len(y))
    same(memory, SelfPacedLinearRegression(**OPTIONS[case]).fit(elsewhere(X[order], y[order], 60)))
    assert memory.sample_weight_.shape == memory.assessment_.wrong.shape == y.shape


@pytest.mark.parametrize("case", OPTIONS)
def test_a_sample_decides_about_as_all_rows_do(monkeypatch, case):
    X, y, _ = rows(share=0.0 if case == "clean" else 0.2)
    whole = SelfPacedLinearRegression(**OPTIONS[case]).fit(X, y)
    monkeypatch.setattr(_regression_fit, "DECIDING", 1500)
    model = SelfPacedLinearRegression(**OPTIONS[case]).fit(X, y)
    np.testing.assert_allclose(model.plain_.coef_, whole.plain_.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.inference_.errors(), whole.inference_.errors(), rtol=0.2)
    assert np.abs(model.coef_ - whole.coef_).max() < whole.inference_.errors()[-4:].max()
    assert model.alpha_ == whole.alpha_


def test_plain_where_nothing_is_wrong(few_are_many):
    X, y, _ = rows(share=0.0)
    model = SelfPacedLinearRegression().fit(elsewhere(X, y))
    assert np.isinf(model.lam_)
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-8)


def test_rows_that_the_assess_leaves_out(few_are_many):
    """An uneven spread: the assessment is asked, and its word carries over to all rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 10, (4000, 2))
    y = X @ [2.0, 1.0] + X[:, 0] * rng.standard_normal(4000)
    wrong = rng.random(4000) < 0.1
    y[wrong] *= 10
    model = SelfPacedLinearRegression().fit(elsewhere(X, y))
    other = SelfPacedLinearRegression().fit(elsewhere(X, y, 50))
    same(model, other)
    assert model.misfit_check_.references
    assert np.abs(model.coef_ - [2.0, 1.0]).max() < 0.3


def test_weights_and_single_precision(few_are_many):
    X, y, _ = rows()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    kept = np.repeat(np.arange(len(y)), weight.astype(int))
    model = SelfPacedLinearRegression().fit(elsewhere(X, y, 1, weight))
    same(model, SelfPacedLinearRegression().fit(elsewhere(X[kept], y[kept])), tol=1e-8)
    single = SelfPacedLinearRegression().fit(elsewhere(X.astype(np.float32), y))
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, SelfPacedLinearRegression().fit(elsewhere(X, y)).coef_, atol=0.02)


def test_files_and_suspects(few_are_many, tmp_path):
    X, y, wrong = rows()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(price=y)
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    with spool(str(tmp_path / "rows.parquet"), "price", labels=False) as table:
        model = SelfPacedLinearRegression().fit(table)
        write_suspects(model, table, tmp_path / "suspects.parquet")
    assert model.feature_names_in_.tolist() == list("abcd")
    found = parquet.read_table(tmp_path / "suspects.parquet").to_pandas()
    assert wrong[found["row"]].mean() > 0.98
    assert len(found) > 0.9 * wrong.sum()
    np.testing.assert_allclose(found["given"], y[found["row"]])
    assessed = model.assessment_
    np.testing.assert_array_equal(assessed.diagnosis.given, y[assessed.numbers])
    np.testing.assert_allclose(model.predict(frame[list("abcd")]), X @ model.coef_ + model.intercept_)
    named = SelfPacedLinearRegression().fit(str(tmp_path / "rows.parquet"), "price")
    same(model, named)


def test_what_cannot_be_done(few_are_many):
    X, y, _ = rows()
    with pytest.raises(ValueError, match="X must be a table of values"):
        SelfPacedLinearRegression().fit(MemoryTable(X, (y > 0).astype(int), classes=np.arange(2)))
    with pytest.raises(ValueError, match="trusted must be None"):
        SelfPacedLinearRegression().fit(elsewhere(X, y), trusted=np.zeros(2000, bool))
    wide = sparse.random_array((2000, 2001), density=0.001, format="csr", rng=0)
    with pytest.raises(ValueError, match="at most 2000 columns if it has sparse blocks, got 2001"):
        SelfPacedLinearRegression().fit(elsewhere(wide, y))
    with pytest.raises(ValueError, match="y must be finite, got nan in row 7"):
        SelfPacedLinearRegression().fit(iter([(X, np.where(np.arange(2000) == 7, np.nan, y))]))
    with pytest.warns(match="did not settle"):
        SelfPacedLinearRegression(max_iter=1).fit(elsewhere(X, y))


def test_an_interrupt_keeps_the_fit_of_the_sample(few_are_many, monkeypatch):
    X, y, _ = rows()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(regression_tables, "_carry", interrupt)
    model = SelfPacedLinearRegression()
    with pytest.raises(KeyboardInterrupt, match="the fit of a sample is kept"):
        model.fit(X, y)
    assert np.abs(model.coef_ - np.arange(1.0, 5.0)).max() < 0.5
    assert model.sample_weight_.shape == y.shape


@pytest.mark.parametrize("in_memory", [True, False])
def test_an_interrupt_while_the_sample_decides_keeps_its_plain_fit(few_are_many, monkeypatch, in_memory):
    X, y, _ = rows()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(regression, "automatic", interrupt)
    monkeypatch.setattr(regression_tables, "_carry", lambda *_: pytest.fail("the fit went on"))
    model = SelfPacedLinearRegression()
    with pytest.raises(KeyboardInterrupt, match="kept"):
        model.fit(X, y) if in_memory else model.fit(elsewhere(X, y))
    assert model.predict(X).shape == y.shape
    assert np.isinf(model.lam_)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("near", [0.0, 1e-6])
def test_columns_that_depend_on_each_other(few_are_many, near, alpha):
    """Exactly: the shortest solution. Nearly: what normal equations, which square the ratio, could not tell."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1] + near * rng.standard_normal(2000)])
    y = X @ [1.0, 2.0, 3.0, 4.0] + 3.0 + 0.3 * rng.standard_normal(2000)
    shortest = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean())[0]
    plain = Ridge(alpha, solver="svd").fit(X, y).coef_ if alpha else shortest
    wrong = rng.random(2000) < 0.2
    given = y + np.where(wrong, 40.0, 0.0)
    memory = SelfPacedLinearRegression(alpha).fit(X, given)
    for n_blocks in (1, 60):
        clean = SelfPacedLinearRegression(alpha).fit(elsewhere(X, y, n_blocks))
        np.testing.assert_allclose(clean.coef_, plain, rtol=1e-8 if near == 0 or alpha else 1e-4)
        model = SelfPacedLinearRegression(alpha).fit(elsewhere(X, given, n_blocks))
        np.testing.assert_allclose(model.predict(X), memory.predict(X), rtol=1e-9, atol=1e-9)
        assert np.abs(model.predict(X) - y)[~wrong].max() < 2


def test_sparse_blocks(few_are_many):
    rng = np.random.default_rng(0)
    X = sparse.random_array((4000, 30), density=0.1, format="csr", rng=rng, data_sampler=rng.standard_normal)
    coef = rng.standard_normal(30)
    y = X @ coef + 2 + 0.1 * rng.standard_normal(4000)
    clean = SelfPacedLinearRegression().fit(elsewhere(X, y))
    np.testing.assert_allclose(clean.coef_, LinearRegression().fit(X.toarray(), y).coef_, rtol=1e-7, atol=1e-9)
    y[rng.random(4000) < 0.2] += 30
    memory = SelfPacedLinearRegression().fit(X, y)
    assert np.abs(memory.coef_ - coef).max() < 0.05
    same(memory, SelfPacedLinearRegression().fit(elsewhere(X, y, 7)), tol=1e-9)
    weight = rng.integers(1, 3, 4000).astype(float)
    weighted = SelfPacedLinearRegression(2.0, fit_intercept=False).fit(elsewhere(X, y, 1, weight))
    dense = SelfPacedLinearRegression(2.0, fit_intercept=False).fit(elsewhere(X.toarray(), y, 1, weight))
    np.testing.assert_allclose(weighted.coef_, dense.coef_, rtol=1e-3, atol=1e-3)
