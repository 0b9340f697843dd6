"""``selfpaced fit``."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from selfpaced.cli.output import RECORD
from selfpaced.persistence import load, metadata


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != RECORD)


def test_fit_writes_everything(selfpaced, shop, shop_csv):
    header, rows, wrong = shop
    code, out, err = selfpaced("fit", shop_csv, "--target", "will buy", "--out", "run")
    assert code == 0, err
    assert files(shop_csv.parent / "run") == ["metrics.json", "model.skops", "report.html", "suspects.csv"]
    assert "likely error" in out
    assert "worth a look" in out
    assert "plain" in out

    suspects = pd.read_csv("run/suspects.csv")
    assert list(suspects.columns)[:9] == [
        "row",
        "line",
        "level",
        "given",
        "expected",
        "weight",
        "noise_probability",
        "probability_if_noisy",
        "why",
    ]
    likely = suspects["level"] == "likely error"
    assert likely.is_monotonic_decreasing
    assert set(suspects["level"]) == {"likely error", "worth a look"}
    flagged = np.zeros(len(rows), dtype=bool)
    flagged[suspects["row"][likely]] = True
    assert np.mean(wrong[flagged]) > 0.7
    assert np.mean(flagged[wrong]) > 0.5
    flagged[suspects["row"]] = True  # rows worth a look too
    assert np.mean(flagged[wrong]) > 0.6
    assert (suspects["given"] != suspects["expected"]).all()
    assert suspects["noise_probability"].is_monotonic_decreasing

    # `line` is the line of the file at which the row begins, although rows have line breaks and one line is blank.
    lines = shop_csv.read_text().split("\n")
    for record in suspects.to_dict("records"):
        assert record["given"] == rows[record["row"]][-1]
        assert lines[record["line"] - 1].startswith(next(iter(csv_line(rows[record["row"]]).split("\n"))))
    # a reason is given only if most of the similar rows have the expected label
    reasons = suspects["why"].dropna()
    told = reasons.str.extract(r"^([3-5]) of 5 similar rows are '(yes|no)' \(lines [\d, ]+\)$")
    assert len(reasons) > len(suspects) / 2
    assert told.notna().all(axis=None)
    assert (told[1] == suspects["expected"][reasons.index]).all()

    metrics = json.loads(Path("run/metrics.json").read_text())
    assert (metrics["likely_errors"], metrics["worth_a_look"]) == (likely.sum(), (~likely).sum())
    assert metrics["columns"] == {
        "numeric": ["age", "income"],
        "categorical": ["city"],
        "date": [],
        "text": ["note"],
    }
    assert metrics["not_used"] == []
    low, high = metrics["noise_rate_interval"]
    assert low < wrong.mean() < high
    assert any(candidate["lam"] is None for candidate in metrics["path"])
    assert sum(candidate["chosen"] for candidate in metrics["path"]) == 1

    model = load("run/model.skops")
    assert metadata("run/model.skops")["target"] == "will buy"
    frame = pd.DataFrame(rows, columns=header)
    truth = np.where(wrong, np.where(frame["will buy"] == "yes", "no", "yes"), frame["will buy"])
    assert np.mean(model.predict(frame) == truth) > np.mean(frame["will buy"] == truth)
    assert model[:-1].get_feature_names_out()[0] == "age"


def csv_line(row):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(row)
    return text.getvalue()


def test_why_names_rows_that_are_near_and_confident(shop_run, shop_csv):
    suspects, pipeline = pd.read_csv("run/suspects.csv"), load("run/model.skops")
    from selfpaced.tables import read_table

    table = read_table(shop_csv)
    Z = np.asarray(pipeline[:-1].transform(table.frame))
    weight, row_of = (
        pipeline[-1].sample_weight_,
        {line: row for row, line in enumerate(table.lines.of(range(len(Z))))},
    )
    first = suspects[suspects["why"].notna()].iloc[0]
    near = [row_of[int(line)] for line in first["why"].split("(lines ")[1].rstrip(")").split(", ")]
    assert weight[near].min() >= min(0.8, np.median(weight))
    assert not set(near) & set(suspects["row"])
    confident = np.setdiff1d(np.flatnonzero(weight >= min(0.8, np.median(weight))), suspects["row"])
    scale = np.where(Z[confident].std(axis=0) > 0, Z[confident].std(axis=0), 1)
    distance = np.linalg.norm((Z[confident] - Z[first["row"]]) / scale, axis=1)
    assert set(confident[np.argsort(distance)[:5]]) == set(near)


def test_regression_finds_its_outliers(as_json, price_tsv):
    path, wrong = price_tsv
    result = as_json("fit", path, "--target", "price", "--no-report")
    assert (result["task"], result["model"]) == ("regression", "ridge")
    suspects = pd.read_csv("run/suspects.csv")
    assert set(suspects["row"]) == set(wrong)
    assert (suspects["line"] == suspects["row"] + 2).all()
    assert (suspects["given"] > 5 * suspects["expected"]).all()
    assert suspects["why"].str.fullmatch(r"similar rows have \S+ to \S+ \(lines [\d, ]+\)").all()


def test_misfit_is_told_and_not_called_wrong(selfpaced, folder):
    rng = np.random.default_rng(0)
    carat = np.exp(rng.normal(-0.4, 0.55, 500))
    price = np.exp(8 + 1.7 * np.log(carat) + 0.15 * rng.normal(size=500))
    pd.DataFrame({"carat": carat, "price": price}).to_csv(folder / "stones.csv", index=False)
    code, out, _ = selfpaced("fit", "stones.csv", "--target", "price", "--model", "ridge")
    assert code == 0
    assert "of the values; these are not called errors" in " ".join(out.split())
    measured = json.loads((folder / "run" / "metrics.json").read_text())
    assert measured["noise_rate"] <= 0.02 < measured["misfit"]
    page = (folder / "run" / "report.html").read_text()
    assert "of the values; these are not called errors" in page.replace("\N{NO-BREAK SPACE}", " ")


def test_trees(as_json, shop, shop_csv):
    _, _, wrong = shop
    result = as_json("fit", shop_csv, "--target", "will buy", "--model", "boosting", "--no-report")
    assert result["model"] == "boosting"
    suspects = pd.read_csv("run/suspects.csv")
    assert np.mean(wrong[suspects["row"][:30]]) > 2 * wrong.mean()
    model = load("run/model.skops")[-1]
    given = model.sample_posterior_[suspects["row"], np.searchsorted(model.classes_, suspects["given"])]
    np.testing.assert_allclose(suspects["noise_probability"], 1.0 - given, atol=1e-4)
    assert "forest" in model.reference_weights_
    rows = as_json("predict", "run/model.skops", shop_csv)["predictions"]
    assert {row["prediction"] for row in rows} == {"yes", "no"}


def test_the_built_in_table_serves(selfpaced, as_json, folder):
    result = as_json("fit")
    assert result["rows"] == 600
    assert result["target"] == "kind"
    assert 90 < result["likely_errors"] < 130
    assert pd.read_csv("run/suspects.csv")["line"].isna().all()
    again = as_json("predict")
    assert again["rows"] == 600


def test_parquet_and_gzip_give_the_same_suspects(as_json, shop_csv):
    pd.read_csv(shop_csv).to_parquet("shop.parquet")
    pd.read_csv(shop_csv, dtype=str, keep_default_na=False).to_csv("shop.tsv.gz", sep="\t", index=False)
    found = []
    for name in ("shop.csv", "shop.parquet", "shop.tsv.gz"):
        as_json(
            "fit",
            name,
            "--target",
            "will buy",
            "--model",
            "logistic",
            "--no-report",
            "--out",
            f"out-{name}",
            "--decimal",
            ".",
        )
        found.append(pd.read_csv(f"out-{name}/suspects.csv")["row"].tolist())
    assert found[0] == found[1] == found[2]


def test_rows_without_a_label_are_left_out_but_counted(selfpaced, folder, shop):
    header, rows, _ = shop
    frame = pd.DataFrame(rows, columns=header).drop(columns="note")
    frame.loc[[0, 7], "will buy"] = None
    frame.to_csv("gaps.csv", index=False)
    code, _, err = selfpaced("fit", "gaps.csv", "--target", "will buy", "--model", "logistic", "--no-report")
    assert code == 0
    assert "2 rows have no value in 'will buy', the first on line 2" in err
    suspects = pd.read_csv("run/suspects.csv")
    assert (suspects["line"] == suspects["row"] + 2).all()
    assert (frame.loc[suspects["row"], "will buy"].to_numpy() == suspects["given"].to_numpy()).all()


def test_rerun_replaces_its_own_files_only(selfpaced, shop_run, shop_csv, folder):
    words = ["fit", shop_csv, "--target", "will buy", "--model", "logistic", "--no-report", "-q"]
    assert selfpaced(*words)[0] == 0
    (folder / "mine").mkdir()
    (folder / "mine" / "model.skops").write_text("precious")
    code, _, err = selfpaced(*words, "--out", "mine")
    assert code == 2
    assert "was not written by selfpaced" in err
    assert files(folder / "mine") == ["model.skops"]
    assert (folder / "mine" / "model.skops").read_text() == "precious"
    assert selfpaced(*words, "--out", "mine", "--force")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "will by"], "has no column 'will by'; did you mean 'will buy'?"),
        (["--target", "WILL BUY"], "did you mean 'will buy'?"),
        ([], "name the column to predict, for example --target 'will buy'"),
        (["--target", "will buy", "--model", "ridge"], "--model ridge is for regression"),
        (
            ["--target", "will buy", "--exclude", "ages"],
            "--exclude: the table has no column 'ages'; did you mean 'age'?",
        ),
        (["--target", "age", "--task", "classification"], "use --task regression"),
    ],
)
def test_what_cannot_be_asked(selfpaced, shop_csv, folder, words, message):
    code, _, err = selfpaced("fit", shop_csv, *words)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert files(folder) == ["shop.csv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,x\n2\n3,y\n", "bad.csv:3: the row has 1 field, where the header has 2"),
        ("a,b\n" + "1,x\n2,x\n" * 9, "has only one class, 'x'"),
        ("a,b\n" + "1,x\n1,y\n" * 10, "no column can be used"),
        ("a,b\n1,\n2,\n", "the column 'b' has no values"),
    ],
)
def test_data_that_cannot_be_fitted(selfpaced, folder, text, message):
    (folder / "bad.csv").write_text(text)
    code, _, err = selfpaced("fit", "bad.csv", "--target", "b")
    assert code in (2, 3)
    assert message in err
    assert files(folder) == ["bad.csv"]


@pytest.mark.parametrize("times", [1, 9])
def test_a_text_where_a_value_should_be_says_its_line(selfpaced, folder, times):
    (folder / "t.csv").write_text("a,b\n" + "1,5\n2,7\n3,9\n" * 20 + "4,many\n" * times)
    code, _, err = selfpaced("fit", "t.csv", "--target", "b", "--task", "regression", "--no-report")
    if times == 1:
        assert code == 0
        assert "1 row has no number in 'b', first 'many' on line 62; left out of the fit" in err
    else:
        assert code == 3
        assert "t.csv:62: the target 'b' must hold numbers for a regression, got 'many'" in err


def test_cells_with_markup_stay_text_in_the_report(selfpaced, folder):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    label = np.where((x > 0) ^ (rng.random(200) < 0.1), "<script>alert(1)</script>", "b")
    pd.DataFrame({"x": x, "label": label}).to_csv("t.csv", index=False)
    assert selfpaced("fit", "t.csv", "--target", "label", "-q")[0] == 0
    page = (folder / "run" / "report.html").read_text()
    assert "<script>alert(1)" not in page


def test_groups_are_held_out_together_and_are_no_feature(as_json, selfpaced, folder):
    rng = np.random.default_rng(0)
    base = np.repeat(rng.normal(size=80), 5)
    frame = pd.DataFrame(
        {"patient": np.repeat([f"p{i}" for i in range(80)], 5), "dose": base, "age": rng.normal(size=400)}
    )
    frame.assign(ill=np.where(base > 0, "yes", "no")).to_csv("visits.csv", index=False)
    facts = as_json("fit", "visits.csv", "--target", "ill", "--groups", "patient", "--model", "logistic", "--no-report")
    assert all("patient" not in names for names in facts["columns"].values())
    code, _, err = selfpaced("fit", "visits.csv", "--target", "ill", "--groups", "patients", "--force")
    assert code == 2
    assert "--groups: the table has no column 'patients'" in err
