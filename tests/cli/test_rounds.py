"""From suspects to decisions and to the next fit."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def answered(shop, shop_run):
    """A first run and its suspects, with true answers in the empty column: header, rows, and the rows relabelled."""
    wrong = shop[2]
    with open("run/suspects.csv", newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    place = header.index("decision")
    assert {row[place] for row in rows} == {""}
    for row in rows:
        row[place] = "relabel" if wrong[int(row[0])] else "keep"
    with open("run/answers.csv", "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return header, rows, [int(row[0]) for row in rows if row[place] == "relabel"]


def test_the_file_of_suspects_holds_the_cells_as_they_are_read_back(answered, shop):
    header, rows, _ = answered
    first = ["row", "line", "level", "given", "expected", "weight", "noise_probability"]
    first += ["probability_if_noisy", "why", "against", "decision"]
    assert header[:11] == first
    assert header[11:] == ["age", "income", "city", "note", "target", "fingerprint"]
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        names, given = shop[0], shop[1][int(cells["row"])]
        assert cells["city"] == given[names.index("city")]
        assert cells["note"] == given[names.index("note")]
        assert cells["target"] == "will buy"


def test_round_two_trusts_and_learns(answered, selfpaced, shop_csv):
    _, rows, relabelled = answered
    code, out, err = selfpaced(
        "fit", shop_csv, "--decisions", "run/answers.csv", "--out", "run2", "--model", "logistic", "--no-report"
    )
    assert code == 0, err
    metrics = json.loads(Path("run2/metrics.json").read_text())
    assert metrics["round"] == 2
    assert metrics["rows_before"] == len(rows)
    found = pd.read_csv("run2/suspects.csv")
    assert len(found) == metrics["likely_errors"] + metrics["worth_a_look"] < len(rows) / 2
    assert (metrics["undecided"], metrics["new"]) == (0, len(found))
    assert f"round 2: {len(rows)} -> 0 undecided, {len(found)} new " in out
    assert not set(found["row"]) & {int(row[0]) for row in rows}
    so_far = pd.read_csv("run2/decisions.csv")
    assert so_far["row"].tolist() == [int(row[0]) for row in rows]
    assert np.sum(so_far["decision"] != "keep") == len(relabelled)
    again = selfpaced(
        "fit", shop_csv, "--decisions", "run2/decisions.csv", "--out", "run3", "--model", "logistic", "--no-report"
    )[1]
    assert "round 3: " in again


def test_undecided_rows_stay_in_round_two(answered, selfpaced, shop_csv):
    header, rows, _ = answered
    place, left = header.index("decision"), {int(row[0]) for row in rows[3::4]}
    for row in rows[3::4]:
        row[place] = ""
    with open("run/answers.csv", "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    words = ["fit", shop_csv, "--decisions", "run/answers.csv", "--model", "logistic", "--no-report"]
    code, out, err = selfpaced(*words, "--out", "run2")
    assert code == 0, err
    found = pd.read_csv("run2/suspects.csv")
    assert left <= set(found["row"])
    new = len(found) - len(left)
    assert f"round 2: {len(rows)} -> {len(left)} undecided, {new} new " in out
    assert set(found["level"]) <= {"likely error", "worth a look"}
    # the decisions of round two are a file of their own: the list is the one beside it
    code, out, err = selfpaced("fit", shop_csv, "--decisions", "run2/decisions.csv", *words[4:], "--out", "run3")
    assert code == 0, err
    assert f"round 3: {len(found)} -> {len(found)} undecided, " in out


def test_rows_of_small_classes_are_not_counted_from_round_to_round(selfpaced, shop_csv):
    frame = pd.read_csv(shop_csv)
    frame.loc[:2, "will buy"] = "perhaps"
    frame.to_csv("three.csv", index=False)
    words = ["fit", "three.csv", "--target", "will buy", "--model", "logistic", "--no-report"]
    assert selfpaced(*words)[0] == 0
    first = pd.read_csv("run/suspects.csv", dtype=str, keep_default_na=False)
    assert first["level"].tolist().count("too few to assess") == 3
    first.loc[0, "decision"] = "keep"
    first.to_csv("answers.csv", index=False)
    code, out, _ = selfpaced(*words, "--decisions", "answers.csv", "--out", "run2")
    assert code == 0
    assert f"round 2: {len(first) - 3} -> {len(first) - 4} undecided, " in out


def test_clean_writes_what_was_decided_and_fits_nothing(answered, as_json, shop_csv):
    _, rows, relabelled = answered
    result = as_json("clean", shop_csv, "--decisions", "run/answers.csv")
    assert (result["corrected"], result["kept"], result["dropped"]) == (len(relabelled), len(rows) - len(relabelled), 0)
    old = pd.read_csv(shop_csv, dtype=str, keep_default_na=False)
    new = pd.read_csv("shop.clean.csv", dtype=str, keep_default_na=False)
    assert np.flatnonzero((old != new).any(axis=1)).tolist() == sorted(relabelled)


def test_dropped_rows_are_gone_and_labels_are_spelled_as_in_the_file(as_json, folder):
    pd.DataFrame({"x": [1, 2, 3, 4], "label": ["01", "02", "01", "02"]}).to_csv("t.csv", index=False)
    Path("d.csv").write_text("row,decision,target\n0,relabel to 2,label\n2,drop,label\n3,keep,label\n")
    as_json("clean", "t.csv", "--decisions", "d.csv")
    assert Path("t.clean.csv").read_text() == "x,label\n1,02\n2,02\n4,02\n"
    as_json("clean", "t.csv", "--decisions", "d.csv", "--out", "t.parquet")
    assert pd.read_parquet("t.parquet")["label"].tolist() == ["02", "02", "02"]


def test_a_changed_table_is_refused(answered, selfpaced, shop_csv):
    text = shop_csv.read_text().replace("Rome", "Bern")
    shop_csv.write_text(text)
    for command in (("clean", shop_csv), ("fit", shop_csv, "--out", "run2")):
        code, _, err = selfpaced(*command, "--decisions", "run/answers.csv")
        assert code == 3
        assert "run/answers.csv: the table has changed since it was assessed: line" in err
    assert not Path("run2").exists()
    assert not Path("shop.clean.csv").exists()


def test_how_and_decisions_exclude_each_other(answered, selfpaced, shop_csv):
    code, _, err = selfpaced("clean", shop_csv, "--decisions", "run/answers.csv", "--how", "drop")
    assert code == 2
    assert "--how cannot be combined with --decisions" in err


def test_decisions_of_a_person_are_not_replaced_by_others(answered, selfpaced, shop_csv):
    mine = "row,decision\n3,keep\n"
    Path("run/decisions.csv").write_text(mine)
    options = ["--model", "logistic", "--no-report", "--out", "run"]
    code, _, err = selfpaced("fit", shop_csv, "--decisions", "run/answers.csv", *options)
    assert code == 2
    assert "decisions.csv' exists and was not written by selfpaced" in " ".join(err.split())
    assert selfpaced("fit", shop_csv, "--target", "will buy", "--decisions", "run/decisions.csv", *options)[0] == 0
    assert Path("run/decisions.csv").read_text() == mine
