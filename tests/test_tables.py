"""Reading tables, finding out what columns hold, and making features of them."""

import gzip
import pickle
import warnings

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason='tables need the extra "io"')
pytest.importorskip("pyarrow", reason='tables need the extra "io"')

from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: E402

from selfpaced.tables import (  # noqa: E402
    TableError,
    TableFeatures,
    TableWarning,
    TypedColumns,
    infer_schema,
    preprocessor,
    read_table,
    text_rows,
)


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


# ------------------------------------------------------------------------------------------------------ reading


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("ending", ["", "{newline}"])
def test_lines_of_a_plain_file(tmp_path, newline, ending):
    text = newline.join(["a,b", "1,x", "2,y"]) + ending.format(newline=newline)
    table = read_table(write(tmp_path / "t.csv", text))
    assert table.frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}
    assert table.lines.of([0, 1]).tolist() == [2, 3]


def test_lines_with_blank_lines_and_quoted_newlines(tmp_path):
    text = '\na,"b\nc"\n\n1,"x\ny\nz"\n\n\n2,w\n"3",""\n'
    table = read_table(write(tmp_path / "t.csv", text))
    assert list(table.frame.columns) == ["a", "b\nc"]
    assert table.lines.of([0, 1, 2]).tolist() == [5, 10, 11]
    lines = text.split("\n")
    assert lines[10 - 1].startswith("2,")
    assert table.frame["b\nc"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separator_is_found(tmp_path, separator):
    rows = [["name", "b, or so", "c"], ["x", "1", "2"]]
    text = "\n".join(separator.join(f'"{cell}"' for cell in row) for row in rows)
    table = read_table(write(tmp_path / "t.csv", text))
    assert list(table.frame.columns) == rows[0]


def test_tsv_gzip_parquet_hold_the_same(tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": ["x, y", "z"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.parquet.gz").write_bytes(gzip.compress((tmp_path / "t.parquet").read_bytes()))
    for name in ("t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.parquet.gz"):
        table = read_table(tmp_path / name)
        pd.testing.assert_frame_equal(table.frame, frame)
        lines = table.lines.of([1])
        assert (lines is None) == ("parquet" in name)
        assert lines is None or lines.tolist() == [3]


def test_missing_values_and_decimal_comma(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a;b;c\n1,5;NA;true\n?;x;\n"))
    assert table.frame["a"].tolist()[0] == 1.5
    assert table.frame.isna().to_numpy().tolist() == [[False, True, False], [True, False, True]]
    assert table.frame["c"].tolist()[0] == "true"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(tmp_path, encoding):
    table = read_table(write(tmp_path / "t.csv", "naïve,b\né,1\n", encoding))
    assert table.frame.to_dict("list") == {"naïve": ["é"], "b": [1]}


def test_windows_text_is_read_with_a_warning(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\né,1\n", "cp1252")
    with pytest.warns(TableWarning, match="Windows-1252"):
        table = read_table(path)
    assert table.frame["a"].tolist() == ["é"]
    with pytest.raises(TableError, match="not written in 'utf-8'"):
        read_table(path, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a,b\n1,2\n3\n4,5\n", 3, "1 field, where the header has 2"),
        ("a,b\n1,2\n\n3,4,5\n6\n", 4, "3 fields, where the header has 2 .1 more such rows.: '3,4,5'"),
        ('a,b\n"x\ny",2\n3,4,5\n', 4, "3 fields"),
        ('a,b\n1,2\n3,"open\n5,6\n', 3, "never closed"),
        ("1,2\n3,4\n", 1, "--no-header"),
    ],
)
def test_a_broken_row_says_its_line(tmp_path, text, line, reason):
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(TableError, match=reason) as caught:
        read_table(path)
    assert caught.value.line == line
    assert f"{path}:{line}: " in str(caught.value)


def test_broken_rows_can_be_left_out(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1,2\n3\n4,5\n")
    with pytest.warns(TableWarning, match="1 broken rows left out .lines 3"):
        table = read_table(path, skip_broken=True)
    assert table.frame["a"].tolist() == [1, 4]
    assert table.lines.of([0, 1]).tolist() == [2, 4]
    assert list(text_rows(table)) == [["a", "b"], ["1", "2"], ["4", "5"]]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"\n \n", "is empty"),
        ("t.csv", b"a,b\n", "no rows"),
        ("t.csv", bytes(range(256)), "is not text"),
        ("t.parquet", b"PAR1 nonsense", "cannot be read as Parquet"),
        ("t.csv.gz", b"\x1f\x8b\x08 nonsense", "cannot be read"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99)[:-12], "cannot be read"),
    ],
    ids=["nothing", "blanks", "header", "bytes", "parquet", "gzip", "cut gzip"],
)
def test_what_is_no_table_is_refused(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=reason):
        read_table(tmp_path / name)


def test_absent_file_suggests_the_nearest(tmp_path):
    write(tmp_path / "customers.csv", "a\n1\n")
    with pytest.raises(TableError, match=r"did you mean '.*customers\.csv'"):
        read_table(tmp_path / "custmers.csv")


def test_column_names_are_made_unique(tmp_path):
    path = write(tmp_path / "t.csv", ",a,a,a.1\n1,2,3,4\n")
    with pytest.warns(TableWarning, match="'a' appears more than once"):
        table = read_table(path)
    assert list(table.frame.columns) == ["column_1", "a", "a.2", "a.1"]
    assert list(read_table(path, header=False).frame.columns) == [
        "column_1",
        "column_2",
        "column_3",
        "column_4",
    ]


def test_types_do_not_depend_on_where_a_value_is(tmp_path):
    # Beyond the first block of the reader, too, a text makes the column text and a fraction makes it float.
    body = "1,2,x\n" * 300_000
    table = read_table(write(tmp_path / "t.csv", "a,b,c\n" + body + "oops,2.5,y\n"))
    assert table.frame["a"].iloc[-1] == "oops"
    assert table.frame["b"].iloc[-1] == 2.5
    assert table.lines.of([300_000]).tolist() == [300_002]


@pytest.mark.parametrize("late", ["", "oops,2,x\n", "1,2.5,x\n", "1,2,é\n", '1,2,"a\nb"\n', "1\n"])
def test_a_large_file_is_read_piece_by_piece_to_the_same(tmp_path, monkeypatch, late):
    path = write(tmp_path / "t.csv", "a,b,c\n" + "1,2,x\n" * 40_000 + late + "3,4,y\n" * 9, "cp1252")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        whole = read_table(path, skip_broken=True)
        monkeypatch.setattr("selfpaced.tables.reading.STREAMED", 1 << 14)
        pieces = read_table(path, skip_broken=True)
    pd.testing.assert_frame_equal(pieces.frame, whole.frame)
    rows = [0, 39_999, len(whole.frame) - 1]
    assert pieces.lines.of(rows).tolist() == whole.lines.of(rows).tolist()


# --------------------------------------------------------------------------------------------------- the types


def kinds(**columns):
    return {column.name: column.kind for column in infer_schema(pd.DataFrame(columns)).columns}


def test_kinds_of_columns():
    n = 60
    rng = np.random.default_rng(0)
    found = kinds(
        numbers=rng.normal(size=n),
        codes=rng.integers(0, 3, n),
        flags=rng.random(n) < 0.5,
        money=[f"$ {v:,}" for v in rng.integers(1, 10**6, n)],
        percent=[f"{v} %" for v in rng.integers(0, 100, n)],
        letters=rng.choice(["a", "b"], n),
        words=[f"a sentence with number {i} in it" for i in range(n)],
        names=[f"N{i}" for i in range(n)],
        order=np.arange(n) + 7,
        customer_id=rng.permutation(n) * 13,
        same="x",
        zero=0.0,
        nothing=[None] * n,
        iso=["2024-02-01T10:00:00Z", "2024-12-31T11:30:00Z"] * (n // 2),
        european=["31/01/2024", "1/12/2023"] * (n // 2),
        american=["01/31/2024", "12/1/2023"] * (n // 2),
        stamps=pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
        nested=[[1, 2]] * n,
    )
    assert found == {
        "numbers": "numeric",
        "codes": "numeric",
        "flags": "numeric",
        "money": "numeric",
        "percent": "numeric",
        "letters": "categorical",
        "words": "text",
        "names": "identifier",
        "order": "identifier",
        "customer_id": "identifier",
        "same": "constant",
        "zero": "constant",
        "nothing": "empty",
        "iso": "date",
        "european": "date",
        "american": "date",
        "stamps": "date",
        "nested": "text",
    }


def test_dates_are_read_as_they_are_meant():
    n = 20
    frame = pd.DataFrame({"eu": ["31/01/2024", "1/12/2023"] * n, "us": ["01/31/2024", "12/1/2023"] * n})
    typed = TypedColumns().fit_transform(frame)
    expected = pd.to_datetime(["2024-01-31", "2023-12-01"])
    assert (typed["eu"].iloc[:2].to_numpy() == expected.to_numpy()).all()
    assert (typed["us"].iloc[:2].to_numpy() == expected.to_numpy()).all()


def test_ambiguous_dates_are_told():
    column = infer_schema(pd.DataFrame({"d": ["1/2/2024", "3/4/2024"] * 20})).columns[0]
    assert column.kind == "date"
    assert "cannot be told apart" in column.note


def test_unreadable_cells_count_as_missing_and_say_where():
    values = [str(i % 7) for i in range(100)]
    values[41] = "unknown"
    schema = infer_schema(pd.DataFrame({"v": values}))
    column = schema.columns[0]
    assert (column.kind, column.missing, column.bad) == ("numeric", 1, 41)
    assert "'unknown'" in column.note
    typed = TypedColumns().fit(pd.DataFrame({"v": values}))
    assert np.isnan(typed.transform(pd.DataFrame({"v": values}))["v"].iloc[41])


def test_blank_cells_are_missing():
    frame = pd.DataFrame({"n": ["1", " ", "3", ""] * 9, "c": ["x", "", "y", "y"] * 9, "e": [""] * 36})
    columns = infer_schema(frame).columns
    assert [(c.kind, c.missing, c.note) for c in columns[:2]] == [("numeric", 18, ""), ("categorical", 9, "")]
    assert columns[2].kind == "empty"
    typed = TypedColumns().fit_transform(frame)
    assert typed["n"].isna().sum() == 18
    assert set(typed["c"]) == {"x", "y", "(missing)"}


def test_infinite_values_count_as_missing():
    frame = pd.DataFrame({"v": [1.0, np.inf, -np.inf, 2.0]})
    typed = TypedColumns().fit(frame)
    assert "2 infinite values" in typed.schema_.columns[0].note
    assert typed.transform(frame)["v"].isna().tolist() == [False, True, True, False]


def test_new_tables_are_typed_like_the_old_one():
    frame = pd.DataFrame({"n": np.arange(40.0) ** 2, "c": ["1", "2"] * 20, "d": ["2024-01-05", "2024-02-07"] * 20})
    typed = TypedColumns(categorical=["c"]).fit(frame)
    new = pd.DataFrame({"extra": [0, 0], "d": ["2024-03-01", "soon"], "c": [1.0, None], "n": ["7", "many"]})
    with pytest.warns(TableWarning) as told:
        out = typed.transform(new)
    assert sorted(str(w.message)[:10] for w in told) == ["column 'd'", "column 'n'"]
    assert list(out.columns) == ["n", "c", "d"]
    assert out["n"].tolist()[0] == 7.0
    assert out["c"].tolist() == ["1", "(missing)"]
    assert out.isna().sum().to_dict() == {"n": 1, "c": 0, "d": 1}


def test_missing_column_suggests_the_nearest():
    typed = TypedColumns().fit(pd.DataFrame({"income": np.arange(9.0) ** 2}))
    with pytest.raises(ValueError, match="no column 'income'.*did you mean 'Income '"):
        typed.transform(pd.DataFrame({"Income ": [1.0], "age": [2.0]}))
    with pytest.raises(ValueError, match="its columns are qqq"):
        typed.transform(pd.DataFrame({"qqq": [1.0]}))


def test_bad_input_to_types():
    with pytest.raises(ValueError, match="no column can be used: 'a': every value is 1"):
        TypedColumns().fit(pd.DataFrame({"a": [1, 1]}))
    with pytest.raises(ValueError, match="no column 'b'; did you mean|no column 'b'; its columns"):
        TypedColumns(exclude=["b"]).fit(pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(TypeError, match="column names"):
        TypedColumns().fit(np.eye(3))


def test_polars_frames_are_taken():
    pl = pytest.importorskip("polars")
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.5, None, 0.25]})
    ours = preprocessor().fit_transform(pl.from_pandas(frame))
    pd.testing.assert_frame_equal(ours, preprocessor().fit_transform(frame))


def test_large_tables_are_single_precision(monkeypatch):
    monkeypatch.setattr("selfpaced.tables.features.LARGE", 50)
    frame = pd.DataFrame({"a": np.arange(60.0) ** 2, "b": np.arange(60) % 7})
    assert set(preprocessor().fit_transform(frame).dtypes.astype(str)) == {"float32"}
    assert set(preprocessor().fit_transform(frame.iloc[:20]).dtypes.astype(str)) == {"float64"}


# ------------------------------------------------------------------------------------------------- the features


@pytest.fixture
def mixed():
    rng = np.random.default_rng(3)
    n = 80
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(40, 10, n)),
            "city": rng.choice(["Rome", "Oslo", "Lima"], n),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
        }
    )
    frame.loc[3, "city"] = None
    frame.loc[5, "seen"] = pd.NaT
    return frame


def test_feature_names_are_kept(mixed):
    names = preprocessor().fit_transform(mixed).columns.tolist()
    assert names[:2] == ["age", "age is missing"]
    assert {"city=Rome", "city=Oslo", "city=Lima", "city=(missing)"} < set(names)
    assert {"seen days", "seen month sin", "seen month cos", "seen weekday sin", "seen weekday cos"} < set(names)
    assert not any("hour" in name for name in names)
    assert [name for name in names if "missing" in name] == [
        "age is missing",
        "city=(missing)",
        "seen days is missing",
    ]
    assert preprocessor("tree").fit_transform(mixed).columns.tolist() == [
        "age",
        "city",
        "seen days",
        "seen month",
        "seen weekday",
    ]


def test_numbers_are_what_scikit_learn_makes_of_them(mixed):
    ours = preprocessor().fit_transform(mixed)
    oracle = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    np.testing.assert_allclose(ours[["age"]], oracle.fit_transform(mixed[["age"]]), rtol=1e-12)
    np.testing.assert_array_equal(ours["age is missing"], mixed["age"].isna())
    assert np.isfinite(ours).all(axis=None)


def test_categories_are_what_scikit_learn_makes_of_them(mixed):
    ours = preprocessor().fit_transform(mixed).filter(like="city=")
    text = mixed[["city"]].fillna("(missing)").astype(object)
    oracle = OneHotEncoder(sparse_output=False).fit(text)
    np.testing.assert_array_equal(ours, oracle.transform(text))
    assert ours.columns.tolist() == [f"city={name}" for name in oracle.categories_[0]]


def test_a_tiny_spread_around_a_large_mean_is_kept():
    seconds = 1.7e9 + np.arange(60) ** 2 / 10
    out = TableFeatures(dtype="float32").fit_transform(pd.DataFrame({"t": seconds}))
    np.testing.assert_allclose(out["t"], StandardScaler().fit_transform(seconds[:, None])[:, 0], rtol=1e-5)


def test_features_of_new_rows(mixed):
    prepare = preprocessor().fit(mixed)
    new = pd.DataFrame({"age": [None, 41.0], "city": ["Atlantis", None], "seen": [pd.NaT, pd.Timestamp("2030-05-01")]})
    out = prepare.transform(new)
    assert np.isfinite(out).all(axis=None)
    assert out.filter(like="city=").sum(axis=1).tolist() == [0.0, 1.0]  # an unknown city is no city


def test_a_column_without_values_in_the_rows_fitted_is_zero():
    full = pd.DataFrame({"a": [1.0, 2.0, 3.0, 7.0], "b": [None, None, None, 5.0]}, dtype=float)
    features = TableFeatures().fit(full.iloc[:3])
    assert features.transform(full.iloc[:3])["b"].tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="must have rows"):
        TableFeatures().fit(full.iloc[:0])
    assert features.transform(full.iloc[:0]).shape == (0, 2)


@pytest.mark.parametrize("kind", ["linear", "tree"])
def test_blocks_do_not_show(mixed, monkeypatch, kind):
    wide = mixed.assign(**{f"x{j}": np.sin(np.arange(len(mixed)) * (j + 1)) for j in range(7)})
    wide.loc[4, "x3"] = np.nan
    typed = TypedColumns().fit_transform(wide)
    whole = TableFeatures(kind).fit_transform(typed)
    monkeypatch.setattr("selfpaced.tables.features.BLOCK", 200)  # two columns, or some rows, at a time
    pieces = TableFeatures(kind).fit_transform(typed)
    pd.testing.assert_frame_equal(pieces, whole)
    assert whole.columns[0] == "age"
    assert whole.columns[-1] == "x6"


def test_rare_categories_share_a_column():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": [f"c{v}" for v in np.minimum(rng.geometric(0.1, 3000), 99)]})
    names = preprocessor(max_categories=5).fit_transform(frame).columns.tolist()
    assert len(names) == 5
    assert names[-1] == "c=(rare)"
    new = preprocessor(max_categories=5).fit(frame).transform(pd.DataFrame({"c": ["c1", "c98", "never seen"]}))
    assert new["c=(rare)"].tolist() == [0.0, 1.0, 1.0]


def test_trees_get_gaps_and_codes(mixed):
    prepare = preprocessor("tree").fit(mixed)
    out = prepare.transform(mixed)
    assert out["age"].isna().sum() == mixed["age"].isna().sum()
    assert out["city"].nunique() == 4
    assert prepare.transform(mixed.assign(city="Atlantis"))["city"].eq(-1).all()


def test_dates_are_periodic():
    frame = pd.DataFrame({"t": pd.to_datetime(["2024-01-01 00:00", "2024-01-08 06:00", "2024-12-31 18:00"])})
    plain = preprocessor("tree").fit_transform(frame)
    assert plain["t days"].tolist() == [0.0, 7.25, 365.75]
    assert plain["t weekday"].tolist() == [0.0, 0.0, 1.0]
    assert plain["t hour"].tolist() == [0.0, 6.0, 18.0]
    parts = preprocessor().fit_transform(frame)
    assert parts["t weekday sin"].iloc[0] == parts["t weekday sin"].iloc[1]  # two Mondays
    raw = np.array([0.0, 1.0, -1.0])
    np.testing.assert_allclose(parts["t hour sin"], (raw - raw.mean()) / raw.std(), atol=1e-12)


def test_a_pipeline_survives_pickle_and_takes_raw_tables(mixed):
    y = (mixed["age"].fillna(40) > 40).astype(int)
    model = make_pipeline(preprocessor(), LogisticRegression()).fit(mixed, y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(mixed.iloc[::-1]) == model.predict(mixed)[::-1]).all()
    assert model.score(mixed, y) > 0.9


def test_kind_of_model_is_checked():
    with pytest.raises(ValueError, match="kind must be 'linear' or 'tree', got 'forest'"):
        preprocessor("forest")
