"""Finding out what columns hold."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason='tables need the extra "io"')
pytest.importorskip("pyarrow", reason='tables need the extra "io"')

from selfpaced.tables import TableWarning, TypedColumns, infer_schema, preprocessor  # noqa: E402


def kinds(**columns):
    return {column.name: column.kind for column in infer_schema(pd.DataFrame(columns)).columns}


def test_kinds_of_columns():
    n = 60
    rng = np.random.default_rng(0)
    found = kinds(
        numbers=rng.normal(size=n),
        codes=rng.integers(0, 3, n),
        flags=rng.random(n) < 0.5,
        money=[f"$ {v:,}" for v in rng.integers(1, 10**7, n)],
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
    with pytest.warns(TableWarning, match="first 'unknown' in row 41"):
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
