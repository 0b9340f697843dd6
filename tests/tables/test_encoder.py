"""`TableEncoder`: what columns hold, and their features."""

import io
import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse

pd = pytest.importorskip("pandas", reason='tables need the extra "io"')
pytest.importorskip("pyarrow", reason='tables need the extra "io"')

from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from selfpaced import SelfPacedLogisticRegression, TableEncoder  # noqa: E402
from selfpaced.tables import TableWarning  # noqa: E402


def raw(cells, **options):
    """The numbers of a column, as trees get them; None if it holds none."""
    cells = list(cells)
    frame = pd.DataFrame({"x": cells * 3, "other": np.arange(3.0 * len(cells)) ** 2})
    encoder = TableEncoder("tree", **options)
    features = encoder.fit_transform(frame)
    return features[: len(cells), 0] if "x" in encoder.names_of("number") else None


@pytest.fixture
def mixed():
    rng = np.random.default_rng(3)
    n = 80
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(40, 10, n)),
            "city": rng.choice(["Rome", "Oslo", "Lima"], n),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
            "note": [f"{rng.choice(['late', 'early', 'broken'])} parcel number {k}" for k in range(n)],
        }
    )
    frame.loc[3, "city"] = None
    frame.loc[5, "seen"] = pd.NaT
    return frame


# -------------------------------------------------------------------------------------------------------- cells


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["$1,200", "$950.50", "USD 7", "1,000 USD", "n/a"], [1200, 950.5, 7, 1000, np.nan]),
        (["1.234,56 EUR", "99,90 €", "1.000", "12", "—"], [1234.56, 99.9, 1000, 12, np.nan]),
        (["1,234.56", "99.90", "1,000", "12"], [1234.56, 99.9, 1000, 12]),
        (["1.234", "2.345", "0.125", "-"], [1.234, 2.345, 0.125, np.nan]),
        (["1'234.50", "12'000", "7"], [1234.5, 12000, 7]),
        (["1 234,5", "12 000,25", "7,5"], [1234.5, 12000.25, 7.5]),
        (["₹1,23,456", "₹5,000", "Rs. 70"], [123456, 5000, 70]),
        (["(1,234.5)", "-5", "−7", "1,000", "($3)"], [-1234.5, -5, -7, 1000, -3]),
        (["2.1k", "3M", "900", "1.5bn", "$4 million"], [2100, 3e6, 900, 1.5e9, 4e6]),
        (["5 m", "7 m", "12 m"], [5, 7, 12]),
        (["5 kg", "100 lbs", "2 kg"], [5, 45.359237, 2]),
        (["5000 ft", "1200 m", "1000 m"], [1524, 1200, 1000]),
        (["108 min", "90 min", "2 h"], [108, 90, 120]),
        (["45 %", "7%", "12.5%", "--"], [45, 7, 12.5, np.nan]),
        (["6e+07", "4500000 ", "5E6", "?"], [6e7, 4500000, 5e6, np.nan]),
        (["~50", "<5", "100+", "unknown"], [50, 5, 100, np.nan]),
        (["1 star", "2 stars", "5 stars"], [1, 2, 5]),
    ],
)
def test_numbers_as_people_write_them(cells, expected):
    np.testing.assert_allclose(raw(cells), expected)


@pytest.mark.parametrize(
    "cells",
    [
        ["02139", "10001", "94110"],
        ["W17768", "W04186", "X08457"],
        ["2150 W Galena Blvd", "221 Avenue A", "180 W Peckham Ln", "12 Oak Rd"],
        ["9.3.0", "2.10.1", "3.0.0"],
        ["555-1234", "555-9876", "555-4444"],
        ["1,234", "2,345", "12,500"],
    ],
)
def test_what_is_no_number_stays_what_it_is(cells):
    assert raw(cells) is None


def test_a_cell_against_the_convention_of_its_column_is_missing_and_told():
    frame = pd.DataFrame({"x": ["1.234,50", "3,5", "7,25", "8,5", "9,5", "6,5", "4,5", "3,25", "2,25", "1,5", "12.5"]})
    encoder = TableEncoder("tree").fit(frame)
    (note,) = encoder.notes_
    assert (note.column, note.row) == ("x", 10)
    assert "1 cell is not numbers and counts as missing, first '12.5'" in note.text
    with pytest.warns(TableWarning, match=r"first '12.5' in row 10"):
        assert np.isnan(encoder.transform(frame)[10, 0])


def test_commas_beside_short_numbers_separate_thousands():
    numbers = [f"{value:,}" for value in range(950, 1100)]
    series = pd.Series(numbers, name="paid")
    encoder = TableEncoder("tree").fit(series.to_frame())
    assert encoder.columns_[0].kind == "number"
    np.testing.assert_array_equal(encoder.transform(series.to_frame())[:, 0], np.arange(950, 1100))


def test_numbers_that_could_be_read_either_way_follow_the_other_columns_or_the_user():
    paid = ["1,234", "12,500", "7,125"] * 20
    frame = pd.DataFrame({"paid": paid})
    encoder = TableEncoder().fit(frame)
    assert encoder.names_of("category") == ["paid"]
    assert "--decimal" in encoder.notes_[0].text
    assert TableEncoder("tree", decimal=".").fit_transform(frame)[0, 0] == 1234
    assert TableEncoder("tree", decimal=",").fit_transform(frame)[0, 0] == 1.234
    beside = frame.assign(size=["0,5", "1,25"] * 30)
    assert TableEncoder("tree").fit_transform(beside)[0].tolist() == [1.234, 0.5]


def test_dates_are_read_as_they_are_meant():
    n = 20
    frame = pd.DataFrame(
        {
            "eu": ["31/01/2024", "1/12/2023"] * n,
            "us": ["01/31/2024", "12/1/2023"] * n,
            "iso": ["2024-01-31T00:00:00Z", "2023-12-01T00:00:00Z"] * n,
            "words": ["January 31st, 2024", "December 1st, 2023"] * n,
            "day": [20240131, 20231201] * n,
            "weekday": ["EOW: Wednesday, January 31, 2024", "EOW: Friday, December 1, 2023"] * n,
        }
    )
    encoder = TableEncoder("tree").fit(frame)
    assert encoder.names_of("date") == list(frame)
    days = [k for k, name in enumerate(encoder.get_feature_names_out()) if name.endswith("=days")]
    assert (encoder.transform(frame)[:2, days] == [[61.0], [0.0]]).all()
    told = TableEncoder().fit(pd.DataFrame({"d": ["1/2/2024", "3/4/2024"] * 20})).notes_
    assert "cannot be told apart" in told[0].text


def test_dates_are_periodic():
    frame = pd.DataFrame({"t": pd.to_datetime(["2024-01-01 00:00", "2024-01-08 06:00", "2024-12-31 18:00"])})
    plain = TableEncoder("tree").set_output(transform="pandas").fit_transform(frame)
    assert plain["t=days"].tolist() == [0.0, 7.25, 365.75]
    assert plain["t=month"].tolist() == [1.0, 1.0, 12.0]
    assert plain["t=weekday"].tolist() == [0.0, 0.0, 1.0]
    assert plain["t=hour"].tolist() == [0.0, 6.0, 18.0]
    parts = TableEncoder().set_output(transform="pandas").fit_transform(frame)
    assert parts["t=weekday sin"].iloc[0] == parts["t=weekday sin"].iloc[1]  # two Mondays
    np.testing.assert_allclose(parts["t=hour sin"], [0, 1, -1], atol=1e-12)


# ------------------------------------------------------------------------------------------------------ columns


def test_kinds_of_columns_and_what_is_not_used():
    n = 60
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "numbers": rng.normal(size=n),
            "flags": rng.random(n) < 0.5,
            "money": [f"$ {v:,}.50" for v in rng.integers(1, 10**7, n)],
            "letters": rng.choice(["a", "b"], n),
            "long": rng.choice(["a sentence that is repeated, however long it may be", "another one of the kind"], n),
            "words": [f"a sentence with number {i} in it" for i in range(n)],
            "stamps": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
            "spent": pd.to_timedelta(rng.integers(0, 99, n), "h"),
            "zip": rng.choice(["02139", "10001", "94110"], n),
            "names": [f"N{i}" for i in range(n)],
            "hash": [f"{i:08x}-{i:08x}" for i in range(n)],
            "order": np.arange(n) + 7,
            "customer_id": rng.permutation(n) * 13,
            "same": "x",
            "zero": 0.0,
            "nothing": [None] * n,
            "dashes": ["-", "n/a", "None", ""] * 15,
            "nested": [[1, 2]] * n,
            "left": 1.5,
        }
    )
    encoder = TableEncoder(exclude=["left"]).fit(frame)
    assert encoder.names_of("number") == ["numbers", "flags", "money", "spent"]
    assert encoder.names_of("date") == ["stamps"]
    assert encoder.names_of("category") == ["letters", "long", "zip"]
    assert encoder.names_of("text") == ["words"]
    assert dict(encoder.not_used_) == {
        "names": "identifier",
        "hash": "identifier",
        "order": "identifier",
        "customer_id": "identifier",
        "same": "constant",
        "zero": "constant",
        "nothing": "empty",
        "dashes": "empty",
        "nested": "nested values",
    }
    assert np.isfinite(encoder.transform(frame)).all()


def test_feature_names(mixed):
    names = TableEncoder().fit(mixed).get_feature_names_out().tolist()
    assert names[:2] == ["age", "age is missing"]
    assert {"city=Rome", "city=Oslo", "city=Lima", "city=(missing)"} < set(names)
    assert {"seen=days", "seen is missing", "seen=month sin", "seen=weekday cos"} < set(names)
    assert names[-1].startswith("note=text ")
    assert not any("hour" in name for name in names)
    tree = TableEncoder("tree").fit(mixed)
    assert tree.get_feature_names_out().tolist()[:6] == [
        "age",
        "city",
        "seen=days",
        "seen=month",
        "seen=weekday",
        "note",
    ]
    assert [tree.get_feature_names_out()[k] for k in tree.categorical_features_] == ["city", "note"]


def test_numbers_are_what_scikit_learn_makes_of_them(mixed):
    ours = TableEncoder().fit_transform(mixed)
    oracle = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    np.testing.assert_allclose(ours[:, :1], oracle.fit_transform(mixed[["age"]]), rtol=1e-12)
    np.testing.assert_array_equal(ours[:, 1], mixed["age"].isna())
    assert np.isfinite(ours).all()


def test_a_tiny_spread_around_a_large_mean_is_kept():
    seconds = 1.7e9 + np.arange(60) ** 2 / 10
    out = TableEncoder(dtype="float32").fit_transform(pd.DataFrame({"t": seconds}))
    np.testing.assert_allclose(out[:, 0], StandardScaler().fit_transform(seconds[:, None])[:, 0], rtol=1e-5)


def test_numbers_over_orders_of_magnitude_have_a_second_feature():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"wide": np.exp(rng.normal(0, 3, 300)), "narrow": rng.normal(5, 1, 300)})
    assert TableEncoder().fit(frame).get_feature_names_out().tolist() == ["wide", "wide=log scale", "narrow"]


def test_levels_share_a_feature_if_they_are_rare_and_case_does_not_matter():
    frame = pd.DataFrame({"c": ["Rome"] * 30 + ["rome "] * 10 + ["Oslo"] * 30 + ["Lima", "Bonn"]})
    encoder = TableEncoder().fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["c=Rome", "c=Oslo", "c=(rare)"]
    new = encoder.transform(pd.DataFrame({"c": ["ROME", "Lima", "never seen"]}))
    assert new.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]


def test_text_tells_what_its_words_tell():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    words = np.array([["river", "boat", "sailor"], ["engine", "wheel", "driver"]])
    text = [f"{words[k][rng.integers(3)]} {words[k][rng.integers(3)]} no. {rng.integers(10**6)}" for k in y]
    table = pd.DataFrame({"text": text, "x": rng.normal(size=300)})
    assert cross_val_score(make_pipeline(TableEncoder(), LogisticRegression()), table, y, cv=3).mean() > 0.95


def test_a_table_of_text_only_is_sparse():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    topic = np.array([["cats purr", "kittens play"], ["dogs bark", "puppies run"]])
    text = [f"{topic[k][rng.integers(2)]} on day {rng.integers(10**6)} of the year" for k in y]
    table = pd.DataFrame({"id": np.arange(200), "text": text})
    encoder = TableEncoder().fit(table)
    features = encoder.transform(table)
    assert sparse.issparse(features)
    assert encoder.sparse_
    assert features.shape == (200, len(encoder.get_feature_names_out()))
    model = make_pipeline(TableEncoder(), SelfPacedLogisticRegression()).fit(table, y)
    assert model.score(table, y) > 0.95
    assert not sparse.issparse(TableEncoder(n_components=10).fit_transform(table))


@pytest.mark.parametrize("kind", ["linear", "tree", "sparse"])
def test_features_of_texts_are_the_sum_of_what_columns_contribute(mixed, kind):
    table = mixed.assign(place=[f"place {k} of many" for k in range(len(mixed))])
    table = table[["note", "place"]] if kind == "sparse" else table
    encoder = TableEncoder("linear" if kind == "sparse" else kind).fit(table)
    features = encoder.transform(table)
    (place, note), (same, where) = encoder.text_parts(table).values()
    assert place == same
    rows = np.array([3, 7, 50])
    difference = note(rows) + where(rows) - features[rows][:, place]
    assert np.abs(difference).max() < 1e-6  # single precision


def test_features_of_new_rows(mixed):
    encoder = TableEncoder().fit(mixed)
    new = pd.DataFrame(
        {
            "extra": 0,
            "note": [None, "late"],
            "age": [None, 41.0],
            "city": ["Atlantis", None],
            "seen": [pd.NaT, pd.Timestamp("2030-05-01")],
        }
    )
    out = encoder.transform(new)
    assert np.isfinite(out).all()
    cities = [k for k, name in enumerate(encoder.get_feature_names_out()) if name.startswith("city=")]
    assert out[:, cities].sum(axis=1).tolist() == [0.0, 1.0]  # an unknown city is no city
    with pytest.raises(ValueError, match="no column 'age'.*did you mean 'Age '"):
        encoder.transform(new.rename(columns={"age": "Age "}))


def test_numbers_that_come_as_text_later_are_read():
    encoder = TableEncoder("tree", categorical=["c"]).fit(
        pd.DataFrame({"n": np.arange(40.0) ** 2, "c": ["1", "2"] * 20, "d": ["2024-01-05", "2024-02-07"] * 20})
    )
    new = pd.DataFrame({"d": ["2024-03-01", "soon"], "c": [1.0, None], "n": ["7", "many"]})
    with pytest.warns(TableWarning) as told:
        out = encoder.transform(new)
    assert sorted(str(w.message)[:10] for w in told) == ["column 'd'", "column 'n'"]
    assert out[0, :3].tolist() == [7.0, 0.0, 56.0]
    assert np.isnan(out[1, :3]).all()


def test_trees_get_gaps_and_ranks(mixed):
    encoder = TableEncoder("tree").fit(mixed)
    out = encoder.transform(mixed)
    assert np.isnan(out[:, 0]).sum() == mixed["age"].isna().sum()
    assert np.isnan(out[:, 1]).sum() == 1
    assert set(encoder.transform(mixed.assign(city="Atlantis"))[:, 1]) == {3.0}


def test_infinite_values_count_as_missing():
    frame = pd.DataFrame({"v": [1.0, np.inf, -np.inf, 2.0]})
    encoder = TableEncoder("tree").fit(frame)
    assert "2 values above 1e+100 count as missing" in encoder.notes_[0].text
    with pytest.warns(TableWarning, match="row 1"):
        assert np.isnan(encoder.transform(frame)[:, 0]).tolist() == [False, True, True, False]


@pytest.mark.parametrize("kind", ["linear", "tree"])
def test_blocks_do_not_show(mixed, monkeypatch, kind):
    wide = mixed.assign(**{f"x{j}": np.sin(np.arange(len(mixed)) * (j + 1)) for j in range(7)})
    wide.loc[4, "x3"] = np.nan
    whole = TableEncoder(kind).fit_transform(wide)
    monkeypatch.setattr("selfpaced.tables.encoder.CELLS_AT_ONCE", 200)  # some rows at a time
    np.testing.assert_array_equal(TableEncoder(kind).fit_transform(wide), whole)


def test_large_tables_are_single_precision(monkeypatch):
    monkeypatch.setattr("selfpaced.tables.encoder.LARGE", 50)
    frame = pd.DataFrame({"a": np.arange(60.0) ** 2, "b": np.arange(60) % 7})
    assert TableEncoder().fit_transform(frame).dtype == np.float32
    assert TableEncoder().fit_transform(frame.iloc[:20]).dtype == np.float64


# ----------------------------------------------------------------------------------------------- with scikit-learn


def test_a_pipeline_survives_pickle_and_takes_raw_tables(mixed):
    y = (mixed["age"].fillna(40) > 40).astype(int)
    model = make_pipeline(TableEncoder(), LogisticRegression()).fit(mixed, y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(mixed.iloc[::-1]) == model.predict(mixed)[::-1]).all()
    assert model.score(mixed, y) > 0.9


@pytest.mark.parametrize("kind", ["linear", "tree", "text"])
def test_what_was_learnt_is_saved_and_trusted(mixed, kind):
    pytest.importorskip("skops", reason="models are saved by skops")
    from selfpaced.persistence import load, save

    table = mixed[["note"]] if kind == "text" else mixed
    encoder = TableEncoder("linear" if kind == "text" else kind).fit(table)
    file = io.BytesIO()
    save(encoder, file)
    again = load(file)
    difference = again.transform(table) - encoder.transform(table)
    assert np.nanmax(np.abs(difference.toarray() if kind == "text" else difference)) == 0
    assert again.notes_ == encoder.notes_


def test_polars_frames_are_taken(mixed):
    pl = pytest.importorskip("polars")
    ours = TableEncoder().fit_transform(pl.from_pandas(mixed))
    np.testing.assert_allclose(ours, TableEncoder().fit_transform(mixed))


def test_pandas_output(mixed):
    plain = TableEncoder().fit_transform(mixed)
    with sklearn.config_context(transform_output="pandas"):
        frame = TableEncoder().fit_transform(mixed)
    assert frame.columns.tolist() == TableEncoder().fit(mixed).get_feature_names_out().tolist()
    np.testing.assert_array_equal(frame, plain)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "forest"}, "kind must be 'linear' or 'tree', got 'forest'"),
        ({"decimal": ";"}, "decimal must be"),
        ({"max_levels": 1}, "max_levels must be at least 2, got 1"),
        ({"n_components": 0}, "n_components must be at least 1 or None, got 0"),
        ({"exclude": ["b"]}, "no column 'b'"),
        ({"categorical": ["A"]}, "did you mean 'a'"),
    ],
)
def test_bad_arguments(options, words):
    with pytest.raises(ValueError, match=words):
        TableEncoder(**options).fit(pd.DataFrame({"a": [1, 2, 4]}))


def test_bad_tables():
    with pytest.raises(ValueError, match="no column can be used: 'a': constant"):
        TableEncoder().fit(pd.DataFrame({"a": [1, 1]}))
    with pytest.raises(ValueError, match="must have rows"):
        TableEncoder().fit(pd.DataFrame({"a": [1.0]}).iloc[:0])
    with pytest.raises(ValueError, match="unique column names, got 'a'"):
        TableEncoder().fit(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
    with pytest.raises(TypeError, match="column names"):
        TableEncoder().fit(np.eye(3))
