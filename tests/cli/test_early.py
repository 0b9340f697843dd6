"""Suspects that need no model, and notices, from the file to the page."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def birds(folder):
    """A table with labels spelled in four ways, a class of one row and a column that is the label again."""
    rng = np.random.default_rng(0)
    label = np.repeat(["Adelie", "Gentoo", "Chinstrap"], 60)
    place = {"Adelie": 0.0, "Gentoo": 4.0, "Chinstrap": 8.0}
    bill = np.array([place[name] for name in label]) + rng.normal(size=180)
    given = label.astype(object)
    given[[3, 5, 7, 100]] = ["adelie", "Adelie ", "Adelei", "Emperor"]
    frame = pd.DataFrame({"bill": bill.round(3), "code": [name[:2] for name in label], "species": given})
    frame.to_csv("birds.csv", index=False)
    return folder / "birds.csv"


def test_from_the_file_to_the_page_and_back(selfpaced, birds):
    code, _, err = selfpaced("fit", birds, "--target", "species", "--model", "logistic")
    assert code == 0, err
    for words in (
        "notice: 1 row 'adelie': case apart from 'Adelie', and taken for it",
        "notice: 1 row 'Adelie ': spaces apart from 'Adelie', and taken for it",
        "notice: 1 row 'Adelei': one slip apart from 'Adelie', and taken for it",
        "notice: 1 row of 'Emperor': too few to learn from, set aside as suspects",
        "notice: column 'code' alone foretells 'species' (",
    ):
        assert words in err
    metrics = json.loads(Path("run/metrics.json").read_text())
    assert len(metrics["notices"]) == 5
    assert metrics["rows_fitted"] == 179
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "one slip apart from &#39;Adelie&#39;, and taken for it" in page
    found = pd.read_csv("run/suspects.csv", keep_default_na=False).set_index("row")
    assert {3, 5, 7, 100} <= set(found.index)
    assert found.loc[[3, 5, 7], "expected"].tolist() == ["Adelie"] * 3
    assert found.loc[5, "given"] == "Adelie "
    assert found.loc[100, ["given", "expected", "noise_probability"]].tolist() == ["Emperor", "Gentoo", ""]

    table = found.reset_index()
    table["decision"] = np.where(table["row"].isin([3, 5, 7, 100]), "relabel", "")
    table.to_csv("run/suspects.csv", index=False)
    code, _, err = selfpaced("clean", birds, "--decisions", "run/suspects.csv")
    assert code == 0, err
    assert set(pd.read_csv("birds.clean.csv")["species"]) == {"Adelie", "Gentoo", "Chinstrap"}
    words = ["--decisions", "run/suspects.csv", "--out", "b", "--model", "logistic", "--no-report"]
    code, _, err = selfpaced("fit", birds, *words)
    assert code == 0, err
    assert "apart from" not in err
    assert not set(pd.read_csv("b/suspects.csv")["row"]) & {3, 5, 7, 100}


def test_a_tiny_class_that_a_person_confirms_is_not_listed_again(as_json, birds):
    Path("d.csv").write_text("row,decision,target\n100,keep,species\n")
    as_json("fit", birds, "--decisions", "d.csv", "--model", "logistic", "--no-report")
    assert 100 not in set(pd.read_csv("run/suspects.csv")["row"])
