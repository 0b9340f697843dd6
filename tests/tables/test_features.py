"""From typed columns to features."""

import io
import pickle

import numpy as np
import pytest
import sklearn

pd = pytest.importorskip("pandas", reason='tables need the extra "io"')
pytest.importorskip("pyarrow", reason='tables need the extra "io"')

from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: E402

from selfpaced.tables import TableFeatures, TypedColumns, preprocessor  # noqa: E402


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


@pytest.mark.parametrize("kind", ["linear", "tree"])
def test_what_was_learnt_is_saved_and_trusted(mixed, kind):
    pytest.importorskip("skops", reason="models are saved by skops")
    from selfpaced.persistence import load, save

    prepare = preprocessor(kind, max_categories=3).fit(mixed)
    file = io.BytesIO()
    save(prepare, file)
    pd.testing.assert_frame_equal(load(file).transform(mixed), prepare.transform(mixed))


def test_scikit_learn_s_own_choice_of_output_does_not_matter(mixed):
    typed = TypedColumns().fit_transform(mixed)
    plain = TableFeatures().fit_transform(typed)
    with sklearn.config_context(transform_output="pandas"):
        pd.testing.assert_frame_equal(TableFeatures().fit_transform(typed), plain)


def test_kind_of_model_is_checked():
    with pytest.raises(ValueError, match="got DataFrame: preprocessor\\(\\).fit\\(table\\) takes tables"):
        preprocessor(pd.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match="kind must be 'linear' or 'tree', got 'forest'"):
        preprocessor("forest")


def test_large_tables_are_single_precision(monkeypatch):
    monkeypatch.setattr("selfpaced.tables.features.LARGE", 50)
    frame = pd.DataFrame({"a": np.arange(60.0) ** 2, "b": np.arange(60) % 7})
    assert set(preprocessor().fit_transform(frame).dtypes.astype(str)) == {"float32"}
    assert set(preprocessor().fit_transform(frame.iloc[:20]).dtypes.astype(str)) == {"float64"}


def test_no_columns_give_no_features():
    nothing = pd.DataFrame(index=range(3))
    assert TableFeatures().fit(nothing).transform(nothing).shape == (3, 0)
