"""How numbers, codes and dates are written: one convention for each column, everywhere."""

import json

import numpy as np
import pandas as pd
import pytest

from selfpaced.persistence import load
from selfpaced.tables import TableBatches, TableError, TableWarning, matching_files, read_table

N = 500


def values():
    rng = np.random.default_rng(0)
    x = rng.choice([0.125, 0.25, 0.5, 1.234, 2.5, 12.345, 7.0], N) + rng.integers(0, 9, N)
    return x, np.where(x > np.median(x), "yes", "no")


def german(numbers):
    return [f"{value:g}".replace(".", ",") for value in numbers]


def write(path, separator, **columns):
    frame = pd.DataFrame(columns)
    frame.to_csv(path, sep=separator, index=False)
    return frame


def reader(name="run"):
    """What gives the numbers or dates of a column as the fitted model reads it, and the model."""
    pipeline = load(f"{name}/model.skops")
    columns = {column.name: column for column in pipeline[0].columns_}
    return lambda frame, column: columns[column].values(frame[column])[0], pipeline


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("options", [[], ["--memory", "100MB"]], ids=["whole", "in pieces"])
def test_decimal_commas_are_read_alike_in_every_cell(as_json, folder, separator, options):
    x, y = values()
    frame = write("t.csv", separator, x=german(x), y=y)
    as_json("fit", "t.csv", "--target", "y", "--model", "logistic", *options)
    read, pipeline = reader()
    np.testing.assert_allclose(read(frame, "x"), x)
    np.testing.assert_allclose(read(read_table("t.csv").frame, "x"), x)
    assert np.mean(pipeline.predict(frame) == y) > 0.95


def test_values_with_a_decimal_comma(as_json, folder):
    x, _ = values()
    y = 3 * x + np.random.default_rng(1).normal(size=N).round(3)
    write("t.csv", ",", x=german(x), y=german(y.round(3)))
    result = as_json("fit", "t.csv", "--target", "y", "--model", "ridge", "--no-report")
    assert result["task"] == "regression"
    assert result["typical_error"] < 1.5
    assert result["likely_errors"] <= 2


@pytest.mark.parametrize("options", [[], ["--memory", "100MB"]], ids=["whole", "in pieces"])
def test_what_could_be_thousands_or_decimals_is_asked(selfpaced, folder, options):
    rng = np.random.default_rng(0)
    paid = rng.integers(1000, 999_999, 200)
    frame = write("t.csv", ";", paid=[f"{v:,}" for v in paid], k=rng.integers(0, 3, 200), y=["yes", "no"] * 100)
    words = ["fit", "t.csv", "--target", "y", "--model", "logistic", *options]
    code, _, err = selfpaced(*words)
    assert code == 0, err
    assert "--decimal" in err
    assert "paid" not in json.loads((folder / "run/metrics.json").read_text())["columns"]["numeric"]
    for sign, factor in ((".", 1), (",", 1000)):
        assert selfpaced(*words, "--decimal", sign, "--out", f"run{sign}")[0] == 0
        np.testing.assert_allclose(reader(f"run{sign}")[0](frame, "paid") * factor, paid)


def test_a_target_that_could_be_thousands_or_decimals_is_refused(selfpaced, as_json, folder):
    rng = np.random.default_rng(0)
    x = rng.integers(2000, 90_000, 200)
    write("t.csv", ";", x=x, y=[f"{v:,}" for v in x + rng.integers(0, 500, 200)])
    code, _, err = selfpaced("fit", "t.csv", "--target", "y")
    assert code == 3
    assert "--decimal" in err
    result = as_json("fit", "t.csv", "--target", "y", "--model", "ridge", "--decimal", ".", "--no-report")
    assert 10 < result["typical_error"] < 1000


def test_predict_reads_numbers_as_the_model_was_fitted(as_json, folder):
    x, y = values()
    big = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in x * 1e4]
    write(
        "t.csv",
        ";",
        x=german(x),
        big=big,
        y=y,
    )
    as_json("fit", "t.csv", "--target", "y", "--model", "logistic", "--no-report")
    write("new.csv", ";", x=["1,234", "7"], big=["12.340", "70.000"])  # by themselves these could be read either way
    write("same.csv", ",", x=["1,234", "7,0"], big=["12.340,00", "70.000,00"])
    found, same = (as_json("predict", "run/model.skops", name)["predictions"] for name in ("new.csv", "same.csv"))
    assert [row["p(yes)"] for row in found] == [row["p(yes)"] for row in same]


@pytest.mark.parametrize("kind", ["late", "second file"])
def test_one_convention_over_all_pieces_and_files(selfpaced, folder, kind):
    x, y = values()
    cells = german(x)
    if kind == "late":  # nothing tells in the first piece
        cells = ["7"] * 100_000 + ["1,234"] * 100_000 + cells[200:]
        x = np.r_[[7.0] * 100_000, [1.234] * 100_000, x[200:]]
        write("a0.csv", ";", x=cells, y=[*np.tile(y[:200], 1000), *y[200:]])
    else:
        write("a0.csv", ";", x=["1,234", "7"] * 100, y=y[:200])
        write("a1.csv", ";", x=cells[200:], y=y[200:])
        x = np.r_[[1.234, 7.0] * 100, x[200:]]
    assert selfpaced("fit", "a*.csv", "--target", "y", "--model", "logistic")[0] == 0
    read, _ = reader()
    table = TableBatches(matching_files("a*.csv"))
    table.sample(300_000)
    np.testing.assert_allclose(np.concatenate([read(batch, "x") for batch in table]), x)


def test_a_cell_against_the_convention_of_its_column_is_missing_and_told(selfpaced, folder, monkeypatch):
    x, y = values()
    cells = german(x)
    cells[321] = "1234.5"
    frame = write("t.csv", ";", x=cells, y=y)
    code, _, err = selfpaced("fit", "t.csv", "--target", "y", "--model", "logistic", "--no-report")
    assert code == 0
    assert "'1234.5' on line 323" in " ".join(err.split())
    read, pipeline = reader()
    assert np.flatnonzero(np.isnan(read(frame, "x"))).tolist() == [321]
    with pytest.warns(TableWarning, match=r"'1234.5' in row 321"):
        pipeline.predict(frame)
    code, _, err = selfpaced("fit", "t.csv", "--target", "y", "--model", "logistic", "--memory", "100MB", "--out", "o")
    assert code == 0
    assert "'1234.5' in row 321" in " ".join(err.split())


@pytest.mark.parametrize("text", ["a,b,,y\n1,2,,yes\n", "a,b,y,\n1,2,yes,\n", "a,b,e,y\n1,2,,yes\n"])
@pytest.mark.parametrize("command", ["fit", "clean"])
def test_an_empty_column_is_left_out(as_json, folder, text, command):
    header, row = text.strip().split("\n")
    rng = np.random.default_rng(0)
    rows = [row.replace("1", f"{a:.2f}").replace("2", f"{b:.2f}") for a, b in rng.normal(size=(80, 2))]
    rows[::2] = [line.replace("yes", "no") for line in rows[::2]]
    (folder / "t.csv").write_text("\n".join([header, *rows]) + "\n")
    as_json(command, "t.csv", "--target", "y")


@pytest.mark.parametrize("options", [[], ["--memory", "100MB"]], ids=["whole", "in pieces"])
def test_codes_with_leading_zeros_are_no_quantities(as_json, folder, options):
    rng = np.random.default_rng(0)
    zips = rng.choice(["02139", "10001", "94110"], 300)
    y = np.where(zips == "02139", "yes", "no")
    write("t.csv", ",", zip=zips, x=rng.normal(size=300).round(3), y=y)
    result = as_json("fit", "t.csv", "--target", "y", "--model", "logistic", *options)
    assert result["columns"]["categorical"] == ["zip"]
    write("new.csv", ",", zip=["02139", "10001", "2139"], x=[0, 0, 0])
    found = as_json("predict", "run/model.skops", "new.csv")["predictions"]
    assert [row["prediction"] for row in found[:2]] == ["yes", "no"]
    assert found[2]["p(yes)"] < found[0]["p(yes)"]


@pytest.mark.parametrize("options", [[], ["--memory", "100MB"]], ids=["whole", "in pieces"])
def test_days_written_as_whole_numbers_are_dates(as_json, folder, options):
    days = pd.date_range("2019-12-25", periods=300, freq="D")
    day = days.strftime("%Y%m%d").to_series()
    day.iloc[7] = ""
    write("t.csv", ",", day=day.to_list(), x=np.random.default_rng(0).normal(size=300).round(3), y=["yes", "no"] * 150)
    result = as_json("fit", "t.csv", "--target", "y", "--model", "logistic", *options)
    assert result["columns"]["date"] == ["day"]
    dates = reader()[0](read_table("t.csv").frame, "day")
    assert dates[8] == days[8]
    assert np.isnat(dates).sum() == 1


def test_parquet_files_that_disagree_are_refused(selfpaced, folder):
    rng = np.random.default_rng(0)
    for name, labels in (("a", ["yes", "no"] * 50), ("b", [1, 0] * 50)):
        pd.DataFrame({"x": rng.normal(size=100), "y": labels}).to_parquet(f"{name}.parquet")
    with pytest.raises(TableError, match=r"b\.parquet: holds other kinds of cells than a\.parquet.* y "):
        TableBatches(matching_files("*.parquet"))
    code, _, err = selfpaced("fit", "*.parquet", "--target", "y")
    assert code == 3
    assert "b.parquet" in err


@pytest.mark.parametrize("options", [[], ["--memory", "100MB"]], ids=["whole", "in pieces"])
def test_a_summary_at_the_end_of_a_file_is_told(as_json, folder, options):
    rng = np.random.default_rng(0)
    name = [*(f"ward {k % 7}" for k in range(200)), "AVG"]
    write("t.csv", ",", ward=name, x=rng.normal(size=201).round(3), y=[*["yes", "no"] * 100, "yes"])
    result = as_json("fit", "t.csv", "--target", "y", "--model", "logistic", *options)
    assert [notice for notice in result["notices"] if "'AVG'" in notice]


@pytest.mark.parametrize("shape", [(60, 800), (120, 200)], ids=["numbers", "words"])
def test_wide_tables_are_fitted_without_noise(selfpaced, folder, shape):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, shape[0])
    if shape[1] == 200:
        cells = rng.choice(["red", "green", "x1", "x 2"], shape)
    else:
        cells = (rng.normal(size=shape) + y[:, None] * (np.arange(shape[1]) < 20)).round(3)
    frame = pd.DataFrame(cells, columns=[f"c{k}" for k in range(shape[1])])
    frame.assign(y=np.where(y, "yes", "no")).to_csv("wide.csv", index=False)
    code, _, err = selfpaced("fit", "wide.csv", "--target", "y", "--threshold", "0.1")
    assert code == 0
    assert "fragmented" not in err
    assert "warning" not in err
