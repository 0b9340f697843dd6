"""``selfpaced audit``: predictions in, suspects, page and review out."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from selfpaced import audit_labels


@pytest.fixture
def predictions(folder):
    """A file of labels and probabilities; columns p_cat and p_dog, a note, and which labels are wrong."""
    rng = np.random.default_rng(0)
    margin = 6 * rng.normal(size=800)
    p = 1 / (1 + np.exp(-margin))
    wrong = rng.random(800) < 0.15
    given = np.where((rng.random(800) < p) ^ wrong, "dog", "cat")
    frame = pd.DataFrame({"note": [f"n{i}" for i in range(800)], "y": given, "p_dog": p, "p_cat": 1 - p})
    frame.to_csv("predictions.csv", index=False)
    return frame, wrong


def test_files_and_figures_are_those_of_the_function(as_json, predictions):
    frame, wrong = predictions
    result = as_json("audit", "predictions.csv", "--label", "y", "--probabilities", "p_dog,p_cat")
    expected = audit_labels(frame["y"], frame[["p_dog", "p_cat"]].to_numpy(), classes=["dog", "cat"])
    assert result["noise_rate"] == pytest.approx(expected.noise_rate)
    assert result["noise_rate_interval"] == pytest.approx(expected.noise_rate_interval)
    found = pd.read_csv("audit/suspects.csv")
    assert found["row"].tolist() == expected.suspects()["row"].tolist()
    assert (found["line"] == found["row"] + 2).all()
    assert found["note"].tolist() == [f"n{row}" for row in found["row"]]
    assert wrong[found["row"][found["level"] == "likely error"]].mean() > 0.85
    assert "p_dog" not in found
    assert json.loads(Path("audit/metrics.json").read_text())["likely_errors"] == result["likely_errors"]
    assert sorted(Path(name).name for name in result["files"])[-1] == "suspects.csv"


def test_columns_named_after_the_labels_and_arrays(as_json, predictions):
    frame, _ = predictions
    first = as_json("audit", "predictions.csv", "--label", "y", "--probabilities", "p_dog,p_cat", "--no-report")
    frame.rename(columns={"p_dog": "dog", "p_cat": "cat"}).to_parquet("named.parquet")
    named = as_json("audit", "named.parquet", "--label", "y", "--no-report")
    np.save("probs.npy", frame[["p_dog", "p_cat"]].to_numpy())
    words = ["--probabilities", "probs.npy", "--classes", "dog,cat", "--no-report"]
    array = as_json("audit", "predictions.csv", "--label", "y", *words)
    assert named["noise_rate"] == pytest.approx(first["noise_rate"], abs=1e-3)
    assert array["noise_rate"] == pytest.approx(first["noise_rate"], abs=1e-6)


def test_the_decisions_of_a_review_clean_the_table(as_json, selfpaced, predictions):
    pytest.importorskip("jinja2", reason='the page needs the extra "report"')
    from selfpaced.cli.review import DecisionFile

    as_json("audit", "predictions.csv", "--label", "y", "--probabilities", "p_dog,p_cat")
    assert "predictions.csv" in Path("audit/report.html").read_text()
    row, expected = pd.read_csv("audit/suspects.csv").loc[0, ["row", "expected"]]
    DecisionFile(Path("audit")).decide(str(row), "relabel")
    code, _, err = selfpaced("clean", "predictions.csv", "--decisions", "audit/decisions.csv", "--out", "clean.csv")
    assert code == 0, err
    assert pd.read_csv("clean.csv")["y"][row] == expected


def test_missing_labels_groups_and_features(selfpaced, as_json, predictions):
    frame, _ = predictions
    frame.loc[:9, "y"] = None
    frame["who"] = np.arange(len(frame)) // 4
    frame.to_csv("predictions.csv", index=False)
    np.save("emb.npy", np.log(frame[["p_dog"]].to_numpy() / frame[["p_cat"]].to_numpy()))
    words = ["--groups", "who", "--features", "emb.npy", "--probabilities", "p_dog,p_cat", "--no-report"]
    result = as_json("audit", "predictions.csv", "--label", "y", *words)
    assert result["rows_without_label"] == 10
    assert result["independent_rows"] < 790
    assert "nearest confident rows" in pd.read_csv("audit/suspects.csv")["why"][0]
    code, out, _ = selfpaced("audit", "predictions.csv", "--label", "y", *words)
    assert code == 0
    assert "Estimated label-error rate" in out
    assert "fill in the column decision" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--label", "y"], "no column 'cat' of probabilities"),
        (["--label", "z", "--probabilities", "p_dog,p_cat"], "no column 'z'"),
        (["--label", "y", "--probabilities", "p_dog,p_bat"], "p_bat"),
        (["--label", "y", "--probabilities", "p_dog,p_cat", "--groups", "who"], "--groups"),
        (["--label", "y", "--probabilities", "absent.npy"], "there is no file"),
        (["--label", "y", "--probabilities", "p_dog,p_cat", "--classes", "dog,cow"], "'cat'"),
        (["--label", "y", "--probabilities", "note,p_cat"], "not named after"),
    ],
)
def test_bad_words_say_what_to_do(selfpaced, predictions, words, message):
    code, _, err = selfpaced("audit", "predictions.csv", *words)
    assert code in (2, 3)
    assert message in err
    assert not Path("audit").exists()
