"""Dask collections where arrays are expected: fit, predict and suspects run on the cluster, block by block."""

import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed", reason='tables on a cluster need the extra "dask"')

import dask
import dask.array as da
import dask.dataframe as dd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selfpaced import (
    SelfPacedClassifier,
    SelfPacedLinearRegression,
    SelfPacedLogisticRegression,
    label_issues,
    suspects,
)
from selfpaced.dask import table


@pytest.fixture(autouse=True)
def here():
    """Without a client, passes run in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 4))
    y = X @ [2.0, -1.0, 0.5, 0.0] + 0.3 * rng.logistic(size=900) > 0
    labels = np.where(y ^ (rng.random(900) < 0.15), "yes", "no")
    return X, labels, rng.integers(1, 4, size=900).astype(float)


@pytest.fixture(scope="module")
def memory(data):
    return SelfPacedLogisticRegression().fit(*data)


def frame_of(X, y, weight):
    frame = pd.DataFrame(X, columns=list("abcd"))
    return frame.assign(label=y, weight=weight)


def collections(data):
    """X, y and weights in the forms that a user may have them."""
    X, y, weight = data
    frame = dd.from_pandas(frame_of(X, y, weight), npartitions=4, sort=False)
    arrays = da.from_array(X, (300, 2)), da.from_array(y, 300), da.from_array(weight, 300)
    unknown = frame[list("abcd")].to_dask_array()
    return {
        "arrays": arrays,
        "labels in memory": (arrays[0], y, weight),
        "unknown chunk sizes": (
            unknown,
            frame["label"].astype(object).to_dask_array(),
            frame["weight"].to_dask_array(),
        ),
        "array and series": (unknown, frame["label"], frame["weight"]),
        "frame and names": (frame, "label", "weight"),
        "frame and series": (frame[list("abcd")], frame["label"], frame["weight"]),
        "frame and arrays": (
            frame[list("abcd")],
            frame["label"].astype(object).to_dask_array(),
            frame["weight"].to_dask_array(),
        ),
        "frame and memory": (frame[list("abcd")], pd.Series(y), weight),
        "frame and arrays in other blocks": (frame[list("abcd")], arrays[1], arrays[2].rechunk(500)),
        "array and series in other blocks": (arrays[0], frame["label"], frame["weight"]),
        "unknown chunk sizes and memory": (unknown, y, weight),
    }


@pytest.mark.parametrize("form", list(collections((np.zeros((4, 4)), np.zeros(4), np.zeros(4)))))
def test_fit_gives_the_model_of_memory(data, memory, form):
    model = SelfPacedLogisticRegression().fit(*collections(data)[form])
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-6, atol=1e-8)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.noise_rate_ == pytest.approx(memory.noise_rate_, abs=1e-6)
    np.testing.assert_allclose(model.noise_rate_interval_, memory.noise_rate_interval_, atol=1e-6)


@pytest.mark.parametrize("form", ["array", "memory", "frame", "series"])
def test_groups_are_held_out_together_as_in_memory(data, form):
    X, y, _ = data
    groups = np.array([f"g{i}" for i in np.arange(900) // 30])
    known = SelfPacedLogisticRegression().fit(X, y, groups=groups)
    assert known.noise_rate_interval_ != SelfPacedLogisticRegression().fit(X, y).noise_rate_interval_
    rows = da.from_array(X, (200, 4)), da.from_array(y, 200)
    frame = dd.from_pandas(frame_of(X, y, groups).rename(columns={"weight": "group"}), npartitions=4, sort=False)
    given = {
        "array": (*rows, da.from_array(groups, 200)),
        "memory": (*rows, groups),
        "frame": (frame, "label", "group"),
        "series": (frame[list("abcd")], frame["label"], frame["group"]),
    }[form]
    model = SelfPacedLogisticRegression().fit(given[0], given[1], groups=given[2])
    assert model.n_features_in_ == 4
    assert model.noise_rate_ == pytest.approx(known.noise_rate_, rel=1e-8)
    np.testing.assert_allclose(model.noise_rate_interval_, known.noise_rate_interval_, rtol=1e-8)


def test_a_missing_group_is_refused(data):
    X, y, _ = data
    groups = np.where(np.arange(900) == 700, np.nan, np.arange(900) // 30)
    with pytest.raises(ValueError, match="groups must not be missing, got a gap in row 700"):
        SelfPacedLogisticRegression().fit(da.from_array(X, (200, 4)), y, groups=da.from_array(groups, 200))


def test_predictions_are_lazy_and_those_of_memory(data, memory):
    forms = collections(data)
    for form in ("arrays", "unknown chunk sizes", "frame and series"):
        X = forms[form][0]
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            found = getattr(memory, method)(X)
            assert isinstance(found, da.Array)
            expected = getattr(memory, method)(data[0])
            assert found.dtype == expected.dtype
            assert found.ndim == expected.ndim
            assert np.array_equal(found.compute(), expected) or np.allclose(found.compute(), expected)


def test_scores_are_those_of_memory(data, memory):
    X, y, weight = data
    for name, (rows, labels, weights) in collections(data).items():
        if not isinstance(weights, str):  # else they would be a feature
            assert memory.score(rows, labels) == pytest.approx(memory.score(X, y)), name
        assert memory.score(rows, labels, weights) == pytest.approx(memory.score(X, y, weight)), name
    named = SelfPacedLogisticRegression().fit(pd.DataFrame(X, columns=list("abcd")), y, weight)
    assert named.score(*collections(data)["frame and names"]) == pytest.approx(memory.score(X, y, weight))
    values = X @ [1.0, 2.0, 0.0, 0.0] + 5
    line = SelfPacedLinearRegression().fit(X, values + np.random.default_rng(0).normal(size=len(X)))
    parts = da.from_array(X, (300, 2)), da.from_array(values, 300), da.from_array(weight, 300)
    assert line.score(*parts) == pytest.approx(line.score(X, values, weight))
    assert line.score(parts[0], da.zeros(len(X), chunks=300)) == line.score(X, np.zeros(len(X))) == 0.0


def test_predictions_of_a_frame_go_by_the_names_of_the_columns(data):
    X, y, _ = data
    frame = frame_of(X, y, np.ones(len(y)))
    model = SelfPacedLogisticRegression().fit(frame[list("abcd")], y)
    turned = dd.from_pandas(frame[list("dcba")], npartitions=3, sort=False)
    assert np.array_equal(model.predict(turned).compute(), model.predict(frame[list("abcd")]))


def test_predicting_other_columns_is_refused_before_anything_is_computed(memory):
    with pytest.raises(ValueError, match="5 features"):
        memory.predict(da.zeros((10, 5)))


@pytest.mark.parametrize("form", ["arrays", "unknown chunk sizes", "frame and names", "frame and series"])
def test_suspects_are_a_dask_frame_with_the_rows_of_memory(data, memory, form):
    X, y, _ = collections(data)[form]
    if form == "frame and names":
        X = X[["a", "b", "c", "d", "label"]]
    found = suspects(memory, X, y)
    assert isinstance(found, dd.DataFrame)
    found = found.compute().set_index("row")
    known = suspects(memory, data[0], data[1]).set_index("row").sort_index()
    assert found.index.tolist() == known.index.tolist()
    assert found["level"].tolist() == known["level"].tolist()
    assert found["given"].tolist() == known["given"].tolist()
    np.testing.assert_allclose(found["noise_probability"], known["noise_probability"])


def test_other_columns_of_a_frame_do_not_matter(data):
    X, y, weight = data
    frame = frame_of(X, y, weight)
    model = SelfPacedLogisticRegression().fit(frame[list("abcd")], y)
    expected = sorted(suspects(model, frame[list("abcd")], y)["row"])
    whole = dd.from_pandas(frame, npartitions=3, sort=False)
    for given in ("label", whole["label"]):
        assert suspects(model, whole, given).compute()["row"].tolist() == expected


def test_rows_of_one_class_are_those_of_the_class(data, memory):
    X, y, _ = data
    some = np.flatnonzero(y == "yes")
    arrays = da.from_array(X[some], (100, 4)), da.from_array(y[some], 100)
    expected = suspects(memory, X[some], y[some]).sort_values("row")
    for found in (suspects(memory, *arrays), suspects(memory, table(*arrays))):
        found = found.compute()
        assert found["row"].tolist() == expected["row"].tolist()
        assert set(found["given"]) == {"yes"}


def test_all_rows_and_label_issues_are_in_the_order_of_the_rows(data, memory):
    X, y, _ = collections(data)["arrays"]
    every = suspects(memory, X, y, all_rows=True).compute()
    assert every["row"].tolist() == list(range(900))
    issues, known = label_issues(memory, X, y).compute(), label_issues(memory, data[0], data[1])
    assert issues["is_label_issue"].tolist() == known["is_label_issue"].tolist()
    assert issues["predicted_label"].tolist() == known["predicted_label"].tolist()


def test_what_dask_collections_cannot_be_asked(data, memory):
    X, y, _ = collections(data)["arrays"]
    with pytest.raises(ValueError, match="nlargest"):
        suspects(memory, X, y, n=3)
    piped = make_pipeline(StandardScaler(), SelfPacedLogisticRegression()).fit(data[0], data[1])
    with pytest.raises(TypeError, match="transform X by Dask first"):
        suspects(piped, X, y)


def test_labels_that_the_fit_has_not_seen_are_refused(data, memory):
    X = collections(data)["arrays"][0]
    odd = da.from_array(np.where(np.arange(900) == 700, "maybe", data[1]), 300)
    with pytest.raises(ValueError, match="'maybe'"):
        suspects(memory, X, odd).compute()


@pytest.mark.parametrize("kind", ["object", "string", "Int64"])
def test_rows_without_a_label_are_left_out_and_counted(data, kind, caplog):
    X, y, _ = data
    labels = pd.Series(y if kind != "Int64" else (y == "yes").astype(int)).astype(kind)
    gaps = np.arange(0, 900, 30)
    labels[gaps] = None if kind == "object" else pd.NA
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=labels)
    lazy = dd.from_pandas(frame, npartitions=4, sort=False)
    model = SelfPacedLogisticRegression().fit(lazy, "label")
    assert "30 of 900 rows have no label" in caplog.text
    kept = np.setdiff1d(np.arange(900), gaps)
    known = SelfPacedLogisticRegression().fit(X[kept], labels[kept].to_numpy())
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-6, atol=1e-8)
    found = suspects(model, lazy, "label").compute()
    assert not set(found["row"]) & set(gaps)
    expected = kept[np.sort(suspects(known, X[kept], labels[kept].to_numpy())["row"])]
    assert found["row"].tolist() == expected.tolist()


def test_features_of_rows_without_a_label_do_not_count():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((25_000, 3))  # a sample decides, and all rows are summed up
    labels = np.where(X[:, 0] + 0.3 * rng.standard_normal(len(X)) > 0, "a", "b").astype(object)
    labels[::100] = None
    known = SelfPacedLogisticRegression().fit(X[labels != None], labels[labels != None])  # noqa: E711
    X[::100, 0] = np.nan
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=labels)
    model = SelfPacedLogisticRegression().fit(dd.from_pandas(frame, npartitions=4, sort=False), "label")
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-6, atol=1e-8)


@pytest.fixture
def brought(monkeypatch):
    """The largest number of bytes that one call has brought here."""
    seen, compute = [0], dask.compute

    def watched(*args, **kwargs):
        found = compute(*args, **kwargs)
        seen[0] = max(seen[0], sum(len(pickle.dumps(part)) for part in found))
        return found

    monkeypatch.setattr(dask, "compute", watched)
    monkeypatch.setattr(dask.base, "compute", watched)  # for the methods of collections
    return seen


def test_what_comes_to_the_client_does_not_grow_with_the_table(brought):
    rng = np.random.default_rng(0)
    seen = []
    for n in (160_000, 480_000):
        brought[0] = 0
        X = da.from_array(rng.standard_normal((n, 8)), (20_000, 8))
        y = (X[:, 0] + X[:, 1] > 0).astype(int)
        model = SelfPacedLogisticRegression(C=1.0).fit(X, y)
        seen.append(brought[0])
        assert model.predict(X[:100]).compute().mean() > 0.3
    assert seen[1] <= 1.2 * seen[0]
    assert seen[1] < 480_000 * 8 * 8 / 4  # a fraction of the table


def test_values(data):
    X, _, weight = data
    rng = np.random.default_rng(1)
    y = X @ [1.0, 2.0, 0.0, -1.0] + rng.normal(size=900)
    y[:40] += 50
    known = SelfPacedLinearRegression().fit(X, y, weight)
    lazy = da.from_array(X, (200, 4)), da.from_array(y, 200), da.from_array(weight, 200)
    model = SelfPacedLinearRegression().fit(*lazy)
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-3, atol=1e-3)
    assert isinstance(model.predict(lazy[0]), da.Array)
    np.testing.assert_allclose(model.predict(lazy[0]).compute(), model.predict(X))
    found = suspects(model, *lazy[:2]).compute()
    assert set(range(40)) <= set(found["row"][found["level"] == "likely error"])


@pytest.mark.parametrize("form", ["array", "frame"])
def test_groups_of_values_are_those_of_memory(data, form):
    X, _, _ = data
    rng = np.random.default_rng(1)
    groups = np.arange(900) // 30
    y = X @ [1.0, 2.0, 0.0, -1.0] + rng.normal(size=900) + rng.normal(size=30)[groups]
    y[:40] += 50
    known = SelfPacedLinearRegression().fit(X, y, groups=groups)
    if form == "frame":
        frame = frame_of(X, y, groups).rename(columns={"weight": "group"})
        given = dd.from_pandas(frame, npartitions=4, sort=False), "label", None, None, "group"
    else:
        given = da.from_array(X, (200, 4)), da.from_array(y, 200), None, None, da.from_array(groups, 200)
    model = SelfPacedLinearRegression().fit(*given)
    assert model.n_features_in_ == 4
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-8)
    errors = [np.sqrt(np.diag(one.inference_.covariance)) for one in (model, known)]
    np.testing.assert_allclose(*errors, rtol=1e-6)
    assert model.inference_.groups == 30


def test_wrappers_refuse_rows_that_they_would_bring_into_memory(data):
    X, y, _ = collections(data)["arrays"]
    with pytest.raises(TypeError, match="CrossFitClassifier"):
        SelfPacedClassifier().fit(X, y)
