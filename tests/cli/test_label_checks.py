"""Checks of labels: they report, and never change data; labels are merged on request."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def separable(folder, **counts):
    """A table whose classes are far apart: labels by their name, and how many rows each has."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(len(counts)), list(counts.values())))
    label = np.array([name.replace("_", " ") for name in counts])[codes]
    x = 9.0 * codes + rng.normal(size=codes.size)
    frame = pd.DataFrame({"x": x.round(3), "z": rng.normal(size=codes.size).round(3), "kind": label})
    frame.to_csv(folder / "kinds.csv", index=False)
    return frame


def words(command):
    return (command, "kinds.csv", "--target", "kind", "--model", "logistic")


@pytest.mark.parametrize(
    "counts",
    [{"type_A": 400, "type_B": 36, "type_C": 400}, {"Iran": 300, "Iraq": 25}, {"a": 200, "A": 300}],
    ids=["types", "countries", "case"],
)
def test_labels_that_look_alike_stay_classes(as_json, folder, counts):
    frame = separable(folder, **counts)
    fitted = as_json(*words("fit"), "--no-report")
    assert fitted["rows_fitted"] == len(frame)
    assert fitted["likely_errors"] <= 2
    assert fitted["merged_labels"] == {}
    predicted = [row["prediction"] for row in as_json("predict", "run/model.skops", "kinds.csv")["predictions"]]
    assert np.mean(np.array(predicted) == frame["kind"]) > 0.99
    as_json(*words("clean"))
    left = pd.read_csv("kinds.clean.csv")["kind"].value_counts()
    assert all(left[name.replace("_", " ")] >= count - 2 for name, count in counts.items())


def test_a_spelling_variant_is_told_and_merged_on_request(selfpaced, as_json, folder):
    frame = separable(folder, Iran=200, Iraq=200)
    frame.loc[[3, 5, 7], "kind"] = ["IRAN", "iran", "Iran "]
    frame["kind"] = frame["kind"].where(frame.index != 9, "-")
    frame.to_csv("kinds.csv", index=False)
    code, _, err = selfpaced(*words("fit"), "--no-report")
    assert code == 0, err
    said = " ".join(err.split())
    assert "1 row has extra spaces in the label (such as 'Iran ')" in said
    for option in ("--merge-labels IRAN=Iran", "--merge-labels iran=Iran", "--merge-labels=-="):
        assert option in said
    merges = ["--merge-labels", "IRAN=Iran", "--merge-labels", "iran=Iran", "--merge-labels=-="]
    code, _, err = selfpaced(*words("fit"), "--no-report", *merges)
    assert code == 0, err
    metrics = json.loads(Path("run/metrics.json").read_text())
    assert metrics["merged_labels"] == {"IRAN": "Iran", "iran": "Iran", "-": ""}
    assert metrics["rows_fitted"] == 399
    assert sum("merged into 'Iran'" in notice for notice in metrics["notices"]) == 2
    assert set(pd.DataFrame(as_json("predict", "run/model.skops", "kinds.csv")["predictions"])["prediction"]) == {
        "Iran",
        "Iraq",
    }
    as_json(*words("clean"), *merges, "--how", "flag")
    clean = pd.read_csv("kinds.clean.csv", keep_default_na=False)
    assert clean["kind"][[3, 5, 7, 9]].tolist() == ["Iran", "Iran", "Iran ", ""]
    others = ~clean.index.isin([3, 5, 9])
    assert (clean["kind"][others] == frame["kind"][others]).all()


@pytest.mark.parametrize("options", [[], ["--memory", "100MB"]], ids=["whole", "in pieces"])
def test_merging_is_the_same_in_memory_and_in_pieces(as_json, folder, options):
    frame = separable(folder, Iran=200, Iraq=200)
    frame.loc[:30, "kind"] = frame.loc[:30, "kind"].str.lower()
    frame.to_csv("kinds.csv", index=False)
    merges = ["--merge-labels", "iran=Iran", "--merge-labels", "iraq=Iraq"]
    result = as_json(*words("fit"), *merges, *options)
    assert result["merged_labels"] == {"iran": "Iran", "iraq": "Iraq"}
    assert result["rows_fitted"] == 400
    assert sum(" merged into " in notice for notice in result["notices"]) == 2
    assert result["likely_errors"] <= 2


def test_decisions_and_merges_go_together(selfpaced, as_json, folder):
    frame = separable(folder, Iran=100, Iraq=100)
    frame.loc[:9, "kind"] = frame.loc[:9, "kind"].str.lower()
    frame.to_csv("kinds.csv", index=False)
    merges = ["--merge-labels", "iran=Iran", "--merge-labels", "iraq=Iraq"]
    as_json(*words("fit"), *merges, "--no-report")
    Path("run/decisions.csv").write_text("row,decision,target\n3,drop,kind\n5,relabel to Iraq,kind\n")
    for name in ("again.csv", "again.parquet"):
        code, _, err = selfpaced("clean", "kinds.csv", "--decisions", "run/decisions.csv", *merges, "--out", name)
        assert code == 0, err
        found = pd.read_csv(name) if name.endswith("csv") else pd.read_parquet(name)
        expected = frame["kind"].str.capitalize()
        expected[5] = "Iraq"
        assert found["kind"].tolist() == expected.drop(3).tolist()


@pytest.mark.parametrize("text", ["Iran", "Irran=Iran", "Iran=Irak"])
def test_labels_that_cannot_be_merged_are_refused(selfpaced, folder, text):
    separable(folder, Iran=60, Iraq=60)
    code, _, err = selfpaced(*words("fit"), "--merge-labels", text)
    assert code == 2
    assert "--merge-labels" in err
    assert not Path("run").exists()


@pytest.mark.parametrize("options", [[], ["--memory", "100MB"]], ids=["whole", "in pieces"])
def test_replicated_measurements_are_no_suspects(as_json, folder, options):
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=40), 3).round(3)
    pd.DataFrame({"x": x, "y": (2 * x + 0.1 * rng.normal(size=120)).round(4)}).to_csv("twice.csv", index=False)
    result = as_json("fit", "twice.csv", "--target", "y", "--threshold", "0.99", "--out", "o", *options)
    assert result["likely_errors"] == 0


def test_duplicates_with_different_labels_are_likely_errors_by_the_threshold_only(as_json, folder):
    frame = separable(folder, no=150, yes=150)
    rows = np.flatnonzero(frame["kind"] == "no")[:60].reshape(20, 3)
    for group in rows:
        frame.loc[group, ["x", "z"]] = frame.loc[group[0], ["x", "z"]].to_numpy()
    frame.loc[rows[:, 2], "kind"] = "yes"
    frame.to_csv("kinds.csv", index=False)
    for threshold in (0.5, 0.99):
        result = as_json(*words("fit"), "--no-report", "--threshold", threshold)
        assert any(notice.startswith("60 rows are equal in every column") for notice in result["notices"])
        found = pd.read_csv("run/suspects.csv")
        assert ((found["noise_probability"] > threshold) == (found["level"] == "likely error")).all()
        assert set(found["row"]) <= set(rows[:, 2].tolist())
        assert len(found) >= 15


def test_a_class_of_one_row_is_told_and_kept(as_json, folder):
    frame = separable(folder, Adelie=60, Gentoo=60, Chinstrap=60)
    frame.loc[100, "kind"] = "Emperor"
    frame.to_csv("kinds.csv", index=False)
    result = as_json(*words("fit"), "--no-report")
    assert result["rows_fitted"] == 180
    assert any("'Emperor' has 1 row" in notice for notice in result["notices"])
    Path("d.csv").write_text("row,decision,target\n100,keep,kind\n")
    as_json("fit", "kinds.csv", "--decisions", "d.csv", "--model", "logistic", "--no-report", "--out", "b")
    assert 100 not in set(pd.read_csv("b/suspects.csv")["row"])
