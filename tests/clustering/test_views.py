"""What users hand in, and what they get told when it is wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selfpaced import SelfPacedMultiViewKMeans
from selfpaced.clustering.views import check_lengths, column_map, fit_scaler, missing_rows


def model(**settings):
    return SelfPacedMultiViewKMeans(3, n_init=4, random_state=0, **settings)


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


def test_every_form_of_input_is_the_same_data(two_views):
    (a, b), y = two_views
    table = np.hstack([a, b])
    names = [f"c{i}" for i in range(7)]
    frame = pd.DataFrame(table, columns=names)
    columns = {"a": names[:4], "b": names[4:]}
    expected = model().fit([a, b])
    assert same_partition(expected.labels_, y)
    forms = {
        "dict": (model(), {"a": a, "b": b}),
        "slices": (model(views={"a": slice(0, 4), "b": slice(4, None)}), table),
        "indices": (model(views={"a": [0, 1, 2, 3], "b": np.array([4, 5, 6])}), table),
        "labels": (model(views=["a"] * 4 + ["b"] * 3), table),
        "frame": (model(views=columns), frame),
        "frames": (model(), [frame[columns["a"]], frame[columns["b"]]]),
        "sparse": (model(), [sp.csr_matrix(a), b]),
        "sparse table": (model(views=["a"] * 4 + ["b"] * 3), sp.csc_matrix(table)),
    }
    for form, (clusterer, X) in forms.items():
        assert same_partition(clusterer.fit(X).labels_, expected.labels_), form
        np.testing.assert_array_equal(clusterer.predict(X), clusterer.labels_, err_msg=form)
        assert clusterer.sample_weight_.shape == (150, 2)


def test_polars_frame(two_views):
    pl = pytest.importorskip("polars")
    (a, b), y = two_views
    frame = pl.DataFrame(np.hstack([a, b]), schema=[f"c{i}" for i in range(7)])
    found = model(views={"a": ["c0", "c1", "c2", "c3"], "b": ["c4", "c5", "c6"]}).fit(frame)
    assert same_partition(found.labels_, y)


def test_centres_come_as_the_views_came(two_views):
    (a, b), _ = two_views
    one = model().fit(a)
    assert one.cluster_centers_.shape == (3, 4)
    listed = model().fit([a, b]).cluster_centers_
    assert [c.shape for c in listed] == [(3, 4), (3, 3)]
    named = model().fit({"a": a, "b": b})
    assert list(named.cluster_centers_) == named.view_names_ == ["a", "b"]


def test_centres_are_in_the_units_of_the_input(two_views):
    (a, b), _ = two_views
    found = model(regularizer=None).fit([1000 * a + 7, b])
    for center, view in zip(found.cluster_centers_, [1000 * a + 7, b], strict=True):
        means = np.stack([view[found.labels_ == k].mean(axis=0) for k in range(3)])
        np.testing.assert_allclose(center, means, rtol=1e-4, atol=1e-3)


def test_pipeline_with_a_column_map(two_views):
    (a, b), y = two_views
    pipe = make_pipeline(StandardScaler(), model(views=["a"] * 4 + ["b"] * 3))
    assert same_partition(pipe.fit_predict(np.hstack([a, b])), y)
    assert pipe.transform(np.hstack([a, b])[:5]).shape == (5, 3)


def test_predict_from_some_views(two_views):
    (a, b), _ = two_views
    by_name, by_place = model().fit({"a": a, "b": b}), model().fit([a, b])
    np.testing.assert_array_equal(by_name.predict({"b": b}), by_name.labels_)
    np.testing.assert_array_equal(by_place.predict([None, b]), by_place.labels_)
    assert by_name.transform({"a": a[:4]}).shape == (4, 3)
    table = np.hstack([a, b])
    mapped = model(views=["a"] * 4 + ["b"] * 3).fit(table)
    table[:, 4:] = np.nan
    np.testing.assert_array_equal(mapped.predict(table), mapped.labels_)
    np.testing.assert_array_equal(mapped.predict({"a": a}), mapped.labels_)


def test_missing_views_get_no_weight_and_no_error(two_views):
    (a, b), y = two_views
    rng = np.random.default_rng(0)
    lost = rng.random((150, 2)) < 0.3
    lost[lost.all(axis=1)] = False
    a, b = a.copy(), b.copy()
    a[lost[:, 0]], b[lost[:, 1]] = np.nan, np.nan
    found = model().fit([a, b])
    assert same_partition(found.labels_, y)
    assert (found.sample_weight_[lost] == 0).all()
    assert (found.sample_loss_[lost] == 0).all()
    assert (found.sample_weight_[~lost] > 0).all()
    np.testing.assert_array_equal(found.predict([a, b]), found.labels_)
    np.testing.assert_array_equal(found.transform([a, b]).argmin(axis=1), found.labels_)


def test_missing_rows_of_a_sparse_view(two_views):
    (a, b), y = two_views
    a = a.copy()
    a[:10] = np.nan
    found = model().fit([sp.csr_matrix(a), b])
    assert same_partition(found.labels_, y)
    assert (found.sample_weight_[:10, 0] == 0).all()


def bad_inputs():
    views = [np.random.default_rng(0).random((20, 3)), np.random.default_rng(1).random((20, 2))]
    constant, short, inf = np.ones((20, 2)), views[1][:19], views[0].copy()
    inf[0, 0] = np.inf
    nothing = [view.copy() for view in views]
    for view in nothing:
        view[4] = np.nan
    return {
        "constant": ({"a": views[0], "flat": constant}, r"view 'flat' must have a column that varies"),
        "another length": ([views[0], short], r"same samples, 20 of them, got \{1: 19\}|got \{0: 20\}"),
        "infinite": ([inf, views[1]], "infinity"),
        "no view at all": (nothing, "at least one view, got only NaN for 1 samples, the first is sample 4"),
        "a view lost throughout": ([views[0], np.full((20, 2), np.nan)], "view 1 is missing for every sample"),
        "none given": ([views[0], None], "none that is None"),
        "empty": ({}, "at least one view"),
    }


@pytest.mark.parametrize("case", bad_inputs())
def test_clear_errors(case):
    X, message = bad_inputs()[case]
    with pytest.raises(ValueError, match=message):
        model().fit(X)


def test_more_clusters_than_samples():
    with pytest.raises(ValueError, match="n_samples=5, got 8"):
        SelfPacedMultiViewKMeans(8).fit(np.random.default_rng(0).random((5, 2)))


def test_errors_of_predict(two_views):
    (a, b), _ = two_views
    found = model().fit({"a": a, "b": b})
    with pytest.raises(ValueError, match=r"must hold views seen in fit, \['a', 'b'\], got \['c'\]"):
        found.predict({"c": a})
    with pytest.raises(ValueError, match="view 'a' must have the 4 columns it was fitted with, got 3"):
        found.predict({"a": a[:, :3]})
    with pytest.raises(ValueError, match="X must be a dict of views, as in fit, got ndarray"):
        found.predict(a)
    with pytest.raises(ValueError, match="must hold the 2 views of fit, None for one"):
        found.predict([a])
    with pytest.raises(ValueError, match="at least one view"):
        found.predict({})


@pytest.mark.parametrize(
    ("views", "message"),
    [
        (["a", "b"], "name the view of each of the 7 columns, got 2"),
        ({"a": ["nope"]}, "columns that X does not have"),
        ({"a": [99]}, "must pick from 7 columns"),
        ({"a": []}, "at least one column"),
    ],
)
def test_bad_column_maps(views, message, two_views):
    with pytest.raises(ValueError, match=message):
        model(views=views).fit(np.hstack(two_views[0]))


def test_column_map_takes_masks_and_single_columns():
    found = column_map({"a": np.array([True, False, True]), "b": 1}, 3, None)
    assert {name: columns.tolist() for name, columns in found.items()} == {"a": [0, 2], "b": [1]}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_scalings(kind):
    rng = np.random.default_rng(0)
    block = rng.random((50, 4)) * [1, 10, 100, 0] + [0, 0, 0, 5]
    raw = sp.csr_matrix(block) if kind == "sparse" else block
    gone = missing_rows("a", raw)
    for scaling, check in {
        "zscore": lambda X: np.testing.assert_allclose(X.var(axis=0)[:3], 1 / 3, rtol=1e-4),
        "variance": lambda X: np.testing.assert_allclose(X.var(axis=0).sum(), 1, rtol=1e-4),
        "unit-row": lambda X: np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5),
        "none": lambda X: np.testing.assert_allclose(X - X.mean(0), block - block.mean(0), atol=1e-4),
    }.items():
        scaled = fit_scaler("a", raw, scaling, gone, None).apply(raw, gone)
        assert scaled.dtype == np.float32
        check(scaled.toarray() if kind == "sparse" else scaled)


def test_scale_does_not_depend_on_missing_rows_and_uses_weights():
    rng = np.random.default_rng(0)
    block = rng.random((30, 2))
    holes = np.vstack([block, np.full((5, 2), np.nan)])
    plain = fit_scaler("a", block, "zscore", np.zeros(30, bool), None)
    holed = fit_scaler("a", holes, "zscore", missing_rows("a", holes), None)
    np.testing.assert_allclose(plain.scale, holed.scale)
    counts = rng.integers(1, 4, 30)
    repeated = fit_scaler("a", np.repeat(block, counts, axis=0), "zscore", np.zeros(counts.sum(), bool), None)
    weighted = fit_scaler("a", block, "zscore", np.zeros(30, bool), counts.astype(float))
    np.testing.assert_allclose(repeated.scale, weighted.scale)


def test_check_lengths_names_the_odd_one_out():
    blocks = {"a": np.ones((4, 1)), "b": np.ones((4, 1)), "c": np.ones((5, 1))}
    with pytest.raises(ValueError, match=r"got \{'c': 5\}"):
        check_lengths(blocks)
