"""The same model from Dask: arrays, frames, odd partitions, a worker that dies."""

import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

pytest.importorskip("distributed", reason='tables on a cluster need the extra "dask"')

import dask
import dask.array as da
import dask.dataframe as dd

from selfpaced import SelfPacedLinearRegression, SelfPacedLogisticRegression, suspects
from selfpaced.dask import DaskTable, table
from selfpaced.linear import _folds, _regression_fit


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Above 400 rows a sample of 400 decides."""
    monkeypatch.setattr(_folds, "SAMPLED_ROWS", 400)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    y = X @ [2.0, -1.0, 0.5, 0.0] + rng.logistic(size=2000) > 0
    return X, (y ^ (rng.random(2000) < 0.2)).astype(int)


@pytest.fixture(scope="module")
def memory(data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_folds, "SAMPLED_ROWS", 400)
        return SelfPacedLogisticRegression().fit(*data)


@pytest.fixture(autouse=True)
def here():
    """Without a client, passes run in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


def frame_of(X, y):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame["label"] = np.where(y, "yes", "no")
    return frame


def weights(model, rows):
    return suspects(model, rows, all_rows=True).compute()["weight"].to_numpy()


def close(model, memory, tol=1e-10):
    assert (model.lam_, model.C_) == (memory.lam_, memory.C_)
    for name in ("coef_", "intercept_", "clean_share_", "noise_rate_"):
        np.testing.assert_allclose(getattr(model, name), getattr(memory, name), rtol=tol, atol=tol, err_msg=name)


@pytest.mark.parametrize("chunks", [(2000, 4), (300, 4), (60, 4), ((1, 0, 1900, 99), 4), (500, 2)])
def test_arrays_of_any_chunks(data, memory, chunks):
    X, y = data
    made = table(da.from_array(X, chunks=chunks), da.from_array(y, chunks=700))
    model = SelfPacedLogisticRegression().fit(made)
    close(model, memory)
    np.testing.assert_allclose(weights(model, made), memory.sample_weight_, rtol=1e-9)


def test_frames_with_odd_partitions(data, memory):
    X, y = data
    frame = frame_of(X, y)
    order = np.argsort(y, kind="stable")  # partitions of one class
    pieces = [frame.iloc[order[:3]], frame.iloc[:0], frame.iloc[order[3:1900]], frame.iloc[order[1900:]]]
    ddf = dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=frame.iloc[:0])
    made = table(ddf, "label")
    model = SelfPacedLogisticRegression().fit(made)
    close(model, memory)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    found = suspects(model, made)
    assert isinstance(found, dd.DataFrame)
    found, expected = found.compute(), suspects(memory)
    assert sorted(order[found["row"]]) == sorted(expected["row"])
    assert len(expected) > 0
    assert found.dtypes.to_dict() == suspects(model, made).dtypes.to_dict()


def test_unknown_chunk_sizes_weights_and_sparse_blocks(data):
    X, y = data
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    memory = SelfPacedLogisticRegression().fit(X, y, weight)
    ddf = dd.from_pandas(frame_of(X, y).assign(code=y, w=weight), npartitions=5)
    values = ddf[["x0", "x1", "x2", "x3"]].values
    assert np.isnan(values.shape[0])
    close(SelfPacedLogisticRegression().fit(table(values, ddf["code"], ddf["w"].values)), memory, tol=1e-8)
    named = table(ddf.drop(columns="code"), "label", "w", persist=False)
    close(SelfPacedLogisticRegression().fit(named), memory, tol=1e-8)
    blocks = da.from_array(X, chunks=(400, 4)).map_blocks(sparse.csr_array, dtype=float)
    in_memory = SelfPacedLogisticRegression().fit(sparse.csr_array(X), y)
    close(SelfPacedLogisticRegression().fit(table(blocks, da.from_array(y, 400))), in_memory)


def test_few_rows_are_gathered(data):
    X, y = data[0][:300], data[1][:300]
    memory = SelfPacedLogisticRegression().fit(X, y)
    close(SelfPacedLogisticRegression().fit(table(da.from_array(X, (77, 4)), da.from_array(y, 77))), memory)


def test_what_is_wrong_is_named(data):
    X, y = data
    bad = X.copy()
    bad[1234, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in X, row 234 of block 2"):
        table(da.from_array(bad, (500, 4)), da.from_array(y, 500))
    with pytest.raises(ValueError, match="sample_weight of block 0"):
        table(da.from_array(X, (500, 4)), da.from_array(y, 500), da.from_array(np.full(2000, -1.0), 500))
    with pytest.raises(ValueError, match="y must have 2000 entries"):
        table(da.from_array(X, (500, 4)), da.from_array(y[:7], 500))
    with pytest.raises(TypeError, match="X must be a Dask array"):
        table(X, y)
    ddf = dd.from_pandas(frame_of(X, y), npartitions=2)
    with pytest.raises(ValueError, match="y must name a column"):
        table(ddf, "lable")
    with pytest.raises(ValueError, match="features must be numbers, got string in column 'label'"):
        table(ddf, ddf["label"])
    with pytest.raises(ValueError, match="features must be numbers"):
        table(ddf, "x0", labels=False)
    with pytest.raises(ValueError, match="has no rows"):
        table(ddf[ddf["x0"] > 1e9], "label")
    with pytest.raises(TypeError, match=r"y must be one column, got a data frame of \['label'\]"):
        table(ddf[["x0"]], ddf[["label"]])
    with pytest.raises(ValueError, match="got complex128 in X"):
        table(da.from_array(X, (500, 4)).astype(complex), da.from_array(y, 500))
    with pytest.raises(ValueError, match="at least one feature"):
        table(ddf[["label"]], "label")
    with pytest.raises(ValueError, match="sample_weight must not be zero for every row"):
        table(ddf, "label", 0 * ddf["x0"])
    with pytest.raises(ValueError, match="y must hold labels, got the fraction"):
        SelfPacedLogisticRegression().fit(ddf.drop(columns="label"), "x0")
    made = table(ddf, "label")
    with pytest.raises(ValueError, match="X must have the columns of the fit, got none with the name 'x1'"):
        SelfPacedLogisticRegression().fit(made).predict(ddf[["x0"]])
    with pytest.raises(ValueError, match="y must be None if X is a table"):
        suspects(SelfPacedLogisticRegression().fit(made), made, y)


# ------------------------------------------------------------------------------------------------- a cluster


class Mortal(DaskTable):
    """A table one of whose workers is killed before a pass of a given number."""

    client, fatal = None, 0

    def reduce(self, function, *args):
        if self.passes + 1 == self.fatal:
            pids = self.client.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        return super().reduce(function, *args)


def test_a_worker_that_dies_changes_no_bit(data, memory, client, monkeypatch):
    X, y = data
    with dask.config.set(scheduler=client):
        arrays = da.from_array(X, (250, 4)), da.from_array(y, 250)
        alive = table(*arrays)
        one = SelfPacedLogisticRegression().fit(alive)
        close(one, memory)
        assert alive.passes > 4
        mortal = table(*arrays)
        mortal.__class__, Mortal.client, Mortal.fatal = Mortal, client, 4
        other = SelfPacedLogisticRegression().fit(mortal)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)
        np.testing.assert_array_equal(other.noise_rate_, one.noise_rate_)
        np.testing.assert_array_equal(weights(other, mortal), weights(one, alive))


# ------------------------------------------------------------------------------------------------ regression


@pytest.fixture(scope="module")
def values():
    """Rows of which a fifth have wrong values, and the model of them in memory, where 1,000 rows decide."""
    rng = np.random.default_rng(0)
    X = 10 + rng.standard_normal((2000, 3)) @ rng.standard_normal((3, 3))
    y = X @ [1.0, -2.0, 3.0] + 0.3 * rng.standard_normal(2000) + np.where(rng.random(2000) < 0.2, 15.0, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_regression_fit, "DECIDING", 1000)
        return X, y, SelfPacedLinearRegression().fit(X, y)


@pytest.fixture
def few_values_are_many(monkeypatch):
    monkeypatch.setattr(_regression_fit, "DECIDING", 1000)


def same_values(model, memory):
    assert model.termination_ == memory.termination_
    for name in ("coef_", "intercept_", "scale_", "lam_", "noise_rate_"):
        np.testing.assert_allclose(getattr(model, name), getattr(memory, name), rtol=1e-10, err_msg=name)


@pytest.mark.parametrize("chunks", [2000, 286, 40, (1, 0, 1900, 99)])  # 1, 7 and 50 blocks, and a skewed one
def test_values_in_any_chunks(values, few_values_are_many, chunks):
    X, y, memory = values
    made = table(da.from_array(X, (chunks, 3)), da.from_array(y, chunks), labels=False)
    model = SelfPacedLinearRegression().fit(made)
    same_values(model, memory)
    np.testing.assert_allclose(weights(model, made), memory.sample_weight_, rtol=1e-8, atol=1e-12)
    found = suspects(model, made).compute()
    levels = memory.assessment_.levels()
    assert found["row"].tolist() == np.flatnonzero(levels).tolist()
    assert ((found["level"] == "likely error").to_numpy() == (levels[levels > 0] == 2)).all()


def test_values_of_unknown_chunks(values, few_values_are_many):
    X, y, memory = values
    ddf = dd.from_pandas(pd.DataFrame(X, columns=list("abc")).assign(y=y), npartitions=5)
    arrays = ddf[list("abc")].values, ddf["y"].values
    assert np.isnan(arrays[0].shape[0])
    same_values(SelfPacedLinearRegression().fit(table(*arrays, labels=False)), memory)
    same_values(SelfPacedLinearRegression().fit(table(ddf, "y", labels=False, persist=False)), memory)


def test_values_and_a_worker_that_dies(values, few_values_are_many, client):
    X, y, memory = values
    with dask.config.set(scheduler=client):
        arrays = da.from_array(X, (250, 3)), da.from_array(y, 250)
        one = SelfPacedLinearRegression().fit(table(*arrays, labels=False))
        same_values(one, memory)
        mortal = table(*arrays, labels=False)
        mortal.__class__, Mortal.client, Mortal.fatal = Mortal, client, 3
        other = SelfPacedLinearRegression().fit(mortal)
        assert mortal.passes > 3
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.intercept_ == other.intercept_


def test_without_dask_the_error_says_what_to_install():
    code = "import sys; sys.modules['dask'] = None; import selfpaced.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'selfpaced.dask needs Dask: pip install "selfpaced[dask]"' in done.stderr
