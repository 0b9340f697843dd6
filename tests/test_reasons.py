"""Evidence against a row, and what suspects have in common."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from selfpaced import SelfPacedClassifier, SelfPacedLinearRegression, SelfPacedLogisticRegression, TableEncoder
from selfpaced.reasons import columns_against, common_patterns

pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)


def test_a_value_behind_the_suspects_is_named():
    """As the surcharge of a kind of trip: an exact number in a column of many."""
    fee = RNG.choice([0.5, 1.0, 2.5, 4.3], size=2000, p=[0.3, 0.4, 0.25, 0.05])
    cells = pd.DataFrame({"km": RNG.exponential(3, 2000), "fee": fee, "zone": RNG.choice(list("abc"), 2000)})
    suspect = (fee == 4.3) | (RNG.random(2000) < 0.01)
    rule, found, rows, lift = common_patterns(cells, suspect)[0]
    assert rule in ("fee = 4.3", "fee above 2.5")
    assert found == rows == np.sum(fee == 4.3)
    assert lift > 10


def test_what_is_no_more_frequent_than_usual_is_no_rule():
    """Once the rows above a value are told, the rest of their group has more suspects than what is left, but few."""
    shop, size = RNG.choice(list("ABCD"), 3000), RNG.normal(size=3000)
    suspect = (shop == "D") & ((size > 0.5) | (RNG.random(3000) < 0.03))
    rules = common_patterns(pd.DataFrame({"shop": shop, "size": size}), suspect)
    assert rules
    assert min(lift for *_, lift in rules) >= 1.5


def test_two_conditions_together():
    cells = pd.DataFrame({"zone": RNG.choice(list("abc"), 3000), "year": RNG.choice([2019, 2020, 2021], 3000)})
    inside = (cells["zone"] == "b") & (cells["year"] == 2021)
    rules = common_patterns(cells, inside.to_numpy() & (RNG.random(3000) < 0.8))
    assert len(rules) == 1
    assert "zone = b" in rules[0][0]
    assert " and " in rules[0][0]
    assert "2021" in rules[0][0] or "year above 2020" in rules[0][0]


@pytest.mark.parametrize("seed", range(5))
def test_chance_has_nothing_in_common(seed):
    rng = np.random.default_rng(seed)
    cells = pd.DataFrame({f"x{j}": rng.normal(size=1000) for j in range(20)} | {"k": rng.choice(list("abcdefg"), 1000)})
    assert common_patterns(cells, rng.random(1000) < 0.1) == []


def test_gaps_dates_and_odd_cells_do_no_harm():
    cells = pd.DataFrame(
        {
            "day": pd.date_range("2020-01-01", periods=200),
            "list": [[1], [2]] * 100,
            "gap": [None, "a"] * 100,
            "flag": [True, False] * 100,
        }
    )
    rules = common_patterns(cells, np.arange(200) % 2 == 0)
    assert rules[0][0] in ("gap is missing", "flag = True")


@pytest.mark.parametrize("kind", ["linear", "tree"])
def test_the_column_that_decides_contributes_to_a_wrong_label(kind):
    X = pd.DataFrame(RNG.normal(size=(500, 3)), columns=["a", "city=x", "city=y"])
    y = np.where(X["city=x"] > 0, "yes", "no")
    y[:40] = np.where(y[:40] == "yes", "no", "yes")
    tree = SelfPacedClassifier(DecisionTreeClassifier(max_depth=3, random_state=0))
    model = (SelfPacedLogisticRegression() if kind == "linear" else tree).fit(X, y)
    rows = np.flatnonzero(model.assessment_.levels())
    confident = np.setdiff1d(np.arange(500), rows)
    named = columns_against(model, X, y, rows, confident)
    assert np.mean([names[:1] == ["city"] for names in named]) > 0.9
    assert columns_against(model, X, y, [], confident) == []


def test_columns_alike_are_named_and_the_surest_rows_too():
    """Of thirty columns that all say the same none says most of it; and probabilities of nearly 0 differ, too."""
    hidden = RNG.normal(size=600)
    X = 30 * hidden[:, None] + RNG.normal(size=(600, 30))
    y = np.where(hidden > 0, "yes", "no")
    y[:60] = np.where(y[:60] == "yes", "no", "yes")
    model = SelfPacedLogisticRegression().fit(X, y)
    named = columns_against(model, X, y, np.flatnonzero(np.abs(hidden[:60]) > 0.5), np.arange(60, 600))
    assert all(named)


def test_the_column_that_decides_contributes_to_a_wrong_value():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    y = 5 * X["a"].to_numpy() + 0.1 * rng.normal(size=300)
    y[:20] += 4  # another value of "a" would explain it
    model = SelfPacedLinearRegression().fit(X, y)
    rows = np.flatnonzero(model.assessment_.levels())
    named = columns_against(model, X, y, rows, np.arange(20, 300))
    assert np.mean([names[:1] == ["a"] for names in named]) > 0.8
    y[:20] += 1000  # nothing in the row could explain it
    assert not any(columns_against(model, X, y, rows, np.arange(20, 300)))


@pytest.mark.parametrize("make", ["array", "polars", "sparse"])
def test_tables_of_any_kind_are_asked_alike(make):
    X = RNG.normal(size=(300, 3))
    y = np.where(X[:, 1] > 0, "yes", "no")
    y[:30] = np.where(y[:30] == "yes", "no", "yes")
    table = X
    if make == "polars":
        table = pytest.importorskip("polars").DataFrame(X, schema=["a", "b", "c"])
    elif make == "sparse":
        table = csr_array(X)
    model = SelfPacedLogisticRegression().fit(table, y)
    named = columns_against(model, table, y, np.arange(30), np.arange(30, 300))
    assert np.mean([names[:1] == [{"polars": "b"}.get(make, "x1")] for names in named]) > 0.9


def test_a_pipeline_is_asked_about_its_raw_columns():
    """Texts, categories and gaps get cells of confident rows, of their own type."""
    n = 400
    X = pd.DataFrame({"city": RNG.choice(["Oslo", "Rome"], n), "size": pd.Categorical(RNG.choice(["s", "l"], n))})
    X["age"] = np.where(RNG.random(n) < 0.2, np.nan, RNG.integers(20, 60, n))
    y = np.where(X["city"] == "Oslo", "cold", "warm")
    y[:40] = np.where(y[:40] == "cold", "warm", "cold")
    encode = make_column_transformer((OneHotEncoder(), ["city", "size"]), (SimpleImputer(), ["age"]))
    model = make_pipeline(encode, SelfPacedLogisticRegression()).fit(X, y)
    named = columns_against(model, X, y, np.arange(40), np.arange(40, n))
    assert all(names[:1] == ["city"] for names in named)


@pytest.mark.parametrize("only_text", [False, True])
def test_texts_that_share_features_are_named_apart(only_text):
    y = np.where(RNG.random(300) < 0.5, "boat", "car")
    words = {"boat": "sails over the wide river", "car": "drives down the long road"}
    table = pd.DataFrame(
        {
            "report": [f"{words[kind]} on day {RNG.integers(10**6)}" for kind in y],
            "remark": [f"nothing of note {RNG.integers(10**6)} today" for _ in y],
        }
    )
    table = table if only_text else table.assign(size=RNG.normal(size=300))
    y[:20] = np.where(y[:20] == "boat", "car", "boat")
    encoder = TableEncoder()
    features = encoder.fit_transform(table)
    model = SelfPacedLogisticRegression().fit(features, y)
    parts = encoder.text_parts(table)
    named = columns_against(model, features, y, np.arange(20), np.arange(20, 300), parts)
    assert all(names[:1] == ["report"] for names in named)


def test_what_it_costs_is_bounded():
    """Of wide tables fewer rows are asked about; of too wide ones, of texts and of pictures, none."""
    seen = []

    class Counting(SelfPacedLogisticRegression):
        def decision_function(self, X):
            seen.append(len(X))
            return super().decision_function(X)

    X = RNG.normal(size=(1500, 200))
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = Counting(pace=1.0).fit(X, y)
    y[:500] = np.where(y[:500] == "yes", "no", "yes")
    seen.clear()
    named = columns_against(model, X, y, np.arange(500), np.arange(500, 1500))
    assert len(named) == 500
    assert sum(seen[1:]) <= 50_000
    assert max(seen) <= 5_000
    assert named[249]
    assert not any(named[250:])
    assert columns_against(model, ["a text"] * 3, y[:3], [0], [1]) == [[]]
    assert columns_against(model, np.zeros((3, 4, 4)), y[:3], [0], [1]) == [[]]
