"""``selfpaced inspect``: findings about a table without a model."""

import numpy as np
import pandas as pd
import pytest

from selfpaced.tables import column_findings


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    kind = rng.choice(["Dog", "Cat"], 300)
    x = rng.normal(size=300)
    return pd.DataFrame({"x": x, "size": rng.integers(1, 50, 300).astype(str), "kind": kind})


def test_a_clean_table_has_no_findings(as_json, table, folder):
    table.to_csv("t.csv", index=False)
    before = sorted(folder.iterdir())
    result = as_json("inspect", "t.csv", "--target", "kind")
    assert result["findings"] == []
    assert (result["rows"], result["columns"], result["task"]) == (300, 3, "classification")
    assert sorted(folder.iterdir()) == before


def test_everything_that_needs_no_model_is_reported(as_json, selfpaced, table, folder):
    table = table.astype(object)
    table["leak"] = np.where(table["kind"] == "Dog", "D-1", "C-1")
    table["same"], table["nothing"] = "x", ""
    table.loc[3, "size"] = "about 7"
    table.loc[5, "kind"] = "dgo"
    table.loc[300] = table.loc[0]
    table.loc[301] = table.loc[1].replace({"Dog": "Cat", "Cat": "Dog"})
    table.loc[302] = ["", "Total", "Dog", "", "", ""]
    table.to_csv("t.csv", index=False)
    found = as_json("inspect", "t.csv", "--target", "kind", code=1)["findings"]
    for part in (
        "'leak' alone predicts 'kind'",
        "'dgo'",
        "equal in every column but have different labels",
        "1 row is a copy",
        "looks like a summary",
        "'size' has numbers, but",
        "'same' is constant (x)",
        "'nothing' is empty",
    ):
        assert any(part in text for text in found), (part, found)
    code, out, _ = selfpaced("inspect", "t.csv", "--target", "kind")
    assert code == 1
    assert f"{len(found)} findings:" in out
    assert max(map(len, out.splitlines())) <= 80


def test_columns_of_money_are_numbers():
    money = ["$1,200", "$35", "€ 12.50", "n/a?"] + ["$5"] * 30
    assert column_findings(pd.DataFrame({"fee": money})) == [
        "column 'fee' has numbers, but 1 cell of text (such as 'n/a?')"
    ]
    assert column_findings(pd.DataFrame({"fee": money[:3] * 9})) == []
