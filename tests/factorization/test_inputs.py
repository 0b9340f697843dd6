"""Every layout gives the same model, and the weights come back in the layout they came in."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from selfpaced import SelfPacedMF


def fitted(X, **fit):
    return SelfPacedMF(rank=4, random_state=0, backend="numpy", warm_sweeps=8, polish=2).fit(X, **fit)


@pytest.fixture(scope="module")
def dense(made):
    return fitted(made.data)


def same(model, dense):
    np.testing.assert_allclose(model.reconstruct(), dense.reconstruct(), atol=1e-8)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_sparse_entries_are_the_observed_ones(csr, dense, form, make):
    X = make(csr).asformat(form)
    model = fitted(X)
    same(model, dense)
    weights = model.entry_weight_
    assert weights.format == (form if form != "lil" else "coo")
    assert isinstance(weights, sp.sparray) == isinstance(X, sp.sparray)
    seen = ~np.isnan(dense.entry_weight_)
    np.testing.assert_allclose(weights.toarray()[seen], dense.entry_weight_[seen], atol=1e-8)


def test_stored_zeros_are_observations():
    rng = np.random.default_rng(0)
    X = np.outer(rng.standard_normal(30), rng.standard_normal(20))
    X[:, 3] = 0
    columns = np.tile(np.arange(20), 30)
    stored = sp.csr_array((X.ravel(), columns, np.arange(0, 601, 20)), shape=X.shape)
    assert stored.nnz == 600
    model = SelfPacedMF(rank=1, random_state=0, backend="numpy").fit(stored)
    assert model.missing_columns_.size == 0
    with pytest.warns(UserWarning, match=r"no observed entry in columns 3 \(1 in all, see missing_columns_\)"):
        dropped = SelfPacedMF(rank=1, random_state=0, backend="numpy").fit(sp.csr_array(X))
    assert dropped.missing_columns_.tolist() == [3]
    assert (dropped.components_[:, 3] == 0).all()


def test_triplets_in_any_order(made, dense):
    order = np.random.default_rng(0).permutation(made.rows.size)
    model = fitted((made.rows[order], made.columns[order], made.observed[order]), shape=(100, 100))
    same(model, dense)
    expected = dense.entry_weight_[made.rows[order], made.columns[order]]
    np.testing.assert_allclose(model.entry_weight_, expected, atol=1e-8)


def test_mask_is_the_same_as_nan(made, dense):
    full = np.where(np.isnan(made.data), 99.0, made.data)
    model = fitted(full, mask=~np.isnan(made.data))
    same(model, dense)
    assert np.isnan(model.entry_weight_[np.isnan(made.data)]).all()
    same(fitted(np.ma.MaskedArray(full, mask=np.isnan(made.data))), dense)
    everything = sp.csr_array(np.where(np.isnan(made.data), 99.0, made.data))
    same(fitted(everything, mask=~np.isnan(made.data)), dense)
    same(fitted(everything, mask=sp.csr_array(~np.isnan(made.data))), dense)


def test_data_frames(made, dense):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(made.data, index=[f"r{i}" for i in range(100)], columns=[f"c{i}" for i in range(100)])
    model = fitted(frame)
    same(model, dense)
    assert isinstance(model.entry_weight_, pandas.DataFrame)
    assert model.entry_weight_.index.equals(frame.index)
    assert model.entry_weight_.columns.equals(frame.columns)
    assert model.feature_names_in_[0] == "c0"


def test_polars_frames_with_nulls(made, dense):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(made.data, schema=[f"c{i}" for i in range(100)]).fill_nan(None)
    assert frame["c0"].null_count() > 0
    model = fitted(frame)
    same(model, dense)
    assert isinstance(model.entry_weight_, polars.DataFrame)
    assert model.entry_weight_.columns == frame.columns


def test_zero_weight_is_missing_and_weights_per_row_broadcast(made, csr, dense):
    full = np.where(np.isnan(made.data), 99.0, made.data)
    weights = (~np.isnan(made.data)).astype(float)
    same(fitted(full, sample_weight=weights), dense)
    per_row = np.linspace(0.5, 2, 100)
    by_row = fitted(made.data, sample_weight=per_row)
    same(fitted(made.data, sample_weight=np.repeat(per_row[:, None], 100, axis=1)), by_row)
    same(fitted(csr, sample_weight=per_row), by_row)
    same(fitted(csr.tocsc(), sample_weight=per_row), by_row)
    entrywise = np.repeat(per_row, np.diff(csr.indptr))
    same(fitted(csr, sample_weight=entrywise), by_row)
    same(fitted(csr, sample_weight=sp.csr_array((entrywise, csr.indices, csr.indptr), csr.shape)), by_row)
    same(fitted((made.rows, made.columns, made.observed), sample_weight=per_row[made.rows]), by_row)
    assert not np.allclose(by_row.reconstruct(), dense.reconstruct(), atol=1e-6)


def test_nan_stored_in_a_sparse_matrix_is_missing(csr):
    X = csr.copy()
    X.data[7] = np.nan
    model = fitted(X)
    assert np.isnan(model.entry_weight_.data[7])
    assert np.isfinite(np.delete(model.entry_weight_.data, 7)).all()


DUPLICATED = (np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("X", "fit", "message"),
    [
        (DUPLICATED, {}, r"1 duplicated \(row, column\) pairs, first of all \[\(0, 1\)\]"),
        (sp.coo_array((DUPLICATED[2], DUPLICATED[:2])), {}, "duplicated"),
        (sp.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2)), {}, "duplicated"),
        (np.full((3, 3), np.nan), {}, "at least one observed entry"),
        (np.empty((0, 3)), {}, "0 sample"),
        ((np.array([], int), np.array([], int), np.array([])), {}, "at least one observed entry, got an empty"),
        (np.array([[1.0, np.inf], [1, 2]]), {}, "contains infinity"),
        (sp.csr_array([[1.0, np.inf], [1, 2]]), {}, "contains infinity"),
        (np.array([["a", "b"], ["c", "d"]]), {}, "must be numeric"),
        (np.array([["a", 1], ["c", 2]], dtype=object), {}, "must be numeric"),
        ((np.array([0, 1]), np.array([0, 1]), np.array(["a", "b"])), {}, "must be numeric"),
        ((np.array([0, -1]), np.array([0, 1]), np.array([1.0, 2.0])), {}, "rows must be integers >= 0"),
        ((np.array([0, 1]), np.array([0.5, 1]), np.array([1.0, 2.0])), {}, "columns must be integers >= 0"),
        ((np.array([0, 1]), np.array([0]), np.array([1.0, 2.0])), {}, "equally long, got 2, 1 and 2"),
        ((np.array([0, 9]), np.array([0, 1]), np.array([1.0, 2.0])), {"shape": (5, 5)}, "inside shape"),
        (np.ones((3, 3)), {"shape": (3, 3)}, "only meant for triplets"),
        (np.ones((3, 3)), {"mask": np.ones((3, 2), bool)}, r"expected shape \(3, 3\), got \(3, 2\)"),
        (np.ones((3, 3)), {"mask": np.ones((3, 3))}, "mask must be boolean"),
        (np.ones((3, 3)), {"sample_weight": -np.ones((3, 3))}, "finite and >= 0"),
        (np.ones((3, 3)), {"sample_weight": np.ones(4)}, "one value per entry"),
        (np.ones((3, 3)), {"sample_weight": np.zeros((3, 3))}, "not zero"),
        (sp.csr_array(np.ones((3, 3))), {"sample_weight": np.ones(4)}, "one value per entry"),
    ],
)
def test_wrong_input_is_named(X, fit, message):
    with pytest.raises(ValueError, match=message):
        SelfPacedMF(rank=1, backend="numpy").fit(X, **fit)


def test_text_columns_of_a_frame_are_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    with pytest.raises(ValueError, match=r"must be numeric.*'b'|must be numeric.*\['b'\]"):
        SelfPacedMF(rank=1, backend="numpy").fit(frame)
