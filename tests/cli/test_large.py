"""``selfpaced fit`` on tables that are read piece by piece."""

import json
import logging
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from selfpaced.persistence import load
from selfpaced.tables import TableBatches, TableError, matching_files


def measured(folder):
    return json.loads((folder / "metrics.json").read_text())


def in_parts(frame, folder, n_parts=3):
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), n_parts)):
        frame.iloc[rows].to_parquet(folder / f"part-{i}.parquet", index=False)


def test_the_same_model_piece_by_piece(selfpaced, shop, shop_csv, folder):
    assert selfpaced("fit", shop_csv, "--target", "will buy", "--model", "logistic", "--out", "whole")[0] == 0
    header, rows, _ = shop
    for part in range(4):
        some = pd.DataFrame(rows[100 * part : 100 * (part + 1)], columns=header)
        some.to_csv(f"part-{part}.csv", index=False)
    words = ("--target", "will buy", "--model", "logistic", "--memory", "100MB", "--scratch", str(folder))
    code, _, err = selfpaced("fit", "part-*.csv", *words, "--out", "pieces")
    assert code == 0, err
    whole, pieces = measured(folder / "whole"), measured(folder / "pieces")
    for key in ("rows", "rows_fitted", "features", "columns", "not_used", "lam", "termination"):
        assert whole[key] == pieces[key], key
    assert whole["noise_rate"] == pytest.approx(pieces["noise_rate"], rel=1e-10)

    one, other = (load(folder / name / "model.skops") for name in ("whole", "pieces"))
    np.testing.assert_allclose(one[-1].coef_, other[-1].coef_, rtol=1e-10)
    frame = pd.read_csv(shop_csv)
    np.testing.assert_allclose(one.predict_proba(frame), other.predict_proba(frame), rtol=1e-10)

    listed = pd.read_csv("whole/suspects.csv").sort_values("row")
    streamed = pd.read_parquet("pieces/suspects.parquet")
    assert streamed["row"].tolist() == listed["row"].tolist()
    assert streamed["level"].tolist() == listed["level"].tolist()
    for key in ("likely_errors", "worth_a_look", "noise_rate_if_any"):
        assert whole[key] == pytest.approx(pieces[key], rel=1e-10), key
    assert pieces["likely_errors"] == (streamed["level"] == "likely error").sum() > 0
    np.testing.assert_allclose(streamed["noise_probability"], listed["noise_probability"], atol=6e-5)  # 4 digits there
    assert sorted(path.name for path in (folder / "pieces").iterdir()) == [
        ".selfpaced.json",
        "metrics.json",
        "model.skops",
        "suspects.parquet",
    ]


def test_values_piece_by_piece(selfpaced, price_tsv, folder):
    path, wrong = price_tsv
    assert selfpaced("fit", path, "--target", "price", "--out", "whole")[0] == 0
    code, out, err = selfpaced("fit", path, "--target", "price", "--memory", "100MB", "--out", "pieces")
    assert code == 0, err
    assert ": about" in out
    one, other = (load(folder / name / "model.skops") for name in ("whole", "pieces"))
    np.testing.assert_allclose(one[-1].coef_, other[-1].coef_, rtol=1e-10)
    found = pd.read_parquet("pieces/suspects.parquet")["row"]
    assert set(found) <= set(wrong)  # assessed as new rows are, without the folds that had not seen them
    assert len(found) > 0.7 * len(wrong)


def test_a_sample_describes_the_columns_and_all_rows_are_assessed(selfpaced, folder):
    rng = np.random.default_rng(0)
    n, d = 3_000, 200  # several blocks of the scratch file, and more than are kept to describe them
    X = rng.normal(size=(n, d)).round(2)
    y = 100 + 5 * X[:, :3].sum(axis=1) + 0.1 * rng.normal(size=n)
    y[-30:] *= 10  # the first block has no error
    pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]).assign(y=y.round(3)).to_csv("wide.csv", index=False)
    code, out, err = selfpaced("fit", "wide.csv", "--target", "y", "--memory", "64MiB")
    assert code == 0, err
    assert "3,000 rows; medians, spreads and categories are those of 1,304 of them" in out
    found = pd.read_parquet("run/suspects.parquet")
    likely = found[found["level"] == "likely error"]
    assert set(likely["row"]) == set(range(n - 30, n))
    assert len(likely) == measured(folder / "run")["likely_errors"]


def test_a_pattern_of_parquet_files(selfpaced, shop_csv, folder):
    frame = pd.read_csv(shop_csv)
    frame.loc[[3, 200], "will buy"] = None
    in_parts(frame, folder / "data")
    code, _, err = selfpaced("fit", "data/*.parquet", "--target", "will buy", "--out", "run")
    assert code == 0, err
    facts = measured(folder / "run")
    assert (facts["rows"], facts["rows_fitted"]) == (400, 398)
    found = pd.read_parquet("run/suspects.parquet")
    assert found["given"].tolist() == frame["will buy"][found["row"]].tolist()  # rows without a label are counted


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("data.csv", "--target", "y", "--memory", "much"), "--memory must be a number of bytes"),
        (("data.csv", "--target", "y", "--scratch", "."), "--scratch is for tables larger than memory"),
        (("data.csv", "--target", "y", "--memory", "1GB", "--model", "boosting"), "takes a table in memory"),
        (("data.csv", "--target", "x", "--memory", "1GB", "--model", "logistic"), "--model logistic is for"),
        (("data.csv", "--target", "z", "--memory", "1GB"), "has no column 'z'"),
        (("absent-*.csv", "--target", "y"), "no file matches this pattern in '.'; is the folder right?"),
        (("data.csv", "--target", "y", "--memory", "1GB", "--scratch", "absent"), "--scratch must be a folder"),
        (("--memory", "1GB"), "--memory needs DATA"),
    ],
)
def test_what_cannot_be_done(selfpaced, folder, words, message):
    rng = np.random.default_rng(0)
    pd.DataFrame({"x": rng.normal(size=60), "y": rng.integers(0, 2, 60)}).to_csv("data.csv", index=False)
    code, _, err = selfpaced("fit", *words)
    assert code in (2, 3)
    assert message in err
    assert not (folder / "run").exists()


def test_the_disk_is_asked_first(selfpaced, shop_csv, folder, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    monkeypatch.setattr("selfpaced.distributed.spool", None)  # is not called
    code, _, err = selfpaced("fit", shop_csv, "--target", "will buy", "--memory", "100MB", "--scratch", ".")
    assert code == 2
    assert "'.' has 0.00 GB free" in err
    assert "name another folder with --scratch" in err
    assert not (folder / "run").exists()


def test_every_pass_is_shown_on_a_terminal(selfpaced, shop_csv, monkeypatch):
    shown = []
    monkeypatch.setattr("rich.progress.Progress.update", lambda *_, description="", **__: shown.append(description))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    logger = logging.getLogger("selfpaced")
    before = logger.level, list(logger.handlers)
    assert selfpaced("fit", shop_csv, "--target", "will buy", "--memory", "100MB")[0] == 0
    passes = [text for text in shown if text.startswith("fitting: pass ")]
    assert len(passes) == measured(shop_csv.parent / "run")["passes"] > 0
    assert (logger.level, logger.handlers) == before


def test_a_broken_row_is_named(selfpaced, folder):
    lines = ["x,y"] + [f"{i / 7:.3f},{i % 2}" for i in range(300)]
    lines[250] += ",extra"
    (folder / "data.csv").write_text("\n".join(lines))
    code, _, err = selfpaced("fit", "data.csv", "--target", "y", "--memory", "1GB")
    assert code == 3
    assert "data.csv:251: the row has 3 fields" in err
    code, _, err = selfpaced("fit", "data.csv", "--target", "y", "--memory", "1GB", "--skip-broken")
    assert code == 0, err
    assert "1 broken rows left out" in err


# ----------------------------------------------------------------------------------------------- the batches


def test_types_that_the_beginning_does_not_tell(folder):
    rows = 200_000  # more than one piece
    (folder / "data.csv").write_text("x,y\n" + "".join(f"{i},a\n" for i in range(rows)) + "n.a.,b\n")
    table = TableBatches([folder / "data.csv"])
    frame, n = table.sample(rows + 1)
    assert n == len(frame) == rows + 1
    assert frame["x"].tolist()[-2:] == [str(rows - 1), "n.a."]
    assert [name for batch in table for name in batch["y"]] == ["a"] * rows + ["b"]


def test_the_sample_is_random_and_repeats(folder):
    frame = pd.DataFrame({"x": np.arange(5000)})
    in_parts(frame, folder / "data", 4)
    table = TableBatches(matching_files("data/*.parquet"), rows=300)
    one, n = table.sample(200, seed=1)
    assert (len(one), n) == (200, 5000)
    assert one["x"].is_monotonic_increasing
    assert abs(one["x"].mean() - 2500) < 400
    assert one.equals(TableBatches(matching_files("data/*.parquet"), rows=77).sample(200, seed=1)[0])
    assert not one.equals(table.sample(200, seed=2)[0])


def test_files_must_have_the_same_columns(folder):
    pd.DataFrame({"x": [1]}).to_parquet("a.parquet")
    pd.DataFrame({"z": [1]}).to_parquet("b.parquet")
    with pytest.raises(TableError, match=r"b.parquet: has other columns than a.parquet: \['z'\]"):
        TableBatches(matching_files("*.parquet"))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_columns_in_another_order(folder, kind):
    one, other = pd.DataFrame({"x": [1.0], "y": [2]}), pd.DataFrame({"y": [4], "x": [3.0]})
    for name, table in (("a", one), ("b", other), ("c", one[["x"]])):
        getattr(table, f"to_{kind}")(f"{name}.{kind}", index=False)
    found = pd.concat(TableBatches(matching_files(f"[ab].{kind}")), ignore_index=True)
    assert found.to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert list(found.columns) == ["x", "y"]
    with pytest.raises(TableError, match=rf"c.{kind}: lacks the column .* of a.{kind}"):
        TableBatches(matching_files(f"*.{kind}"))


def test_files_of_two_formats_are_refused(folder):
    pd.DataFrame({"x": [1]}).to_parquet("a.parquet")
    pd.DataFrame({"x": [1]}).to_csv("b.csv")
    with pytest.raises(TableError, match=r"a\.parquet: is of another format than other files"):
        TableBatches(matching_files("[ab].*"))


@pytest.mark.parametrize("late", [False, True])
def test_another_encoding_is_asked_for(folder, late):
    rows = ["x,y", *["1,Rome"] * (100_000 * late), "1,R\xf4me"]
    (folder / "t.csv").write_bytes("\n".join(rows).encode("cp1252"))
    with pytest.raises(TableError, match=r"t\.csv: .*utf-8"):
        TableBatches([folder / "t.csv"]).sample(10)
    table = TableBatches([folder / "t.csv"], encoding="cp1252")
    assert [name for batch in table for name in batch["y"]][-1] == "R\xf4me"


def test_codes_are_told_in_pieces_and_numbers_stay_numbers(folder):
    zips = ["10001"] * 60_000 + ["02139"] * 60_000
    pd.DataFrame({"zip": zips, "n": range(120_000), "s": "x"}).to_csv("t.csv", index=False)
    pd.DataFrame({"zip": [], "n": [], "s": []}).to_csv("u.csv", index=False)  # a part without rows
    frame, _ = TableBatches(matching_files("[tu].csv")).sample(1000)
    assert set(frame["zip"]) == {"10001", "02139"}
    assert frame["n"].dtype == np.int64


def test_text_dates_and_money_in_parquet_give_the_model_of_memory(selfpaced, folder):
    rng = np.random.default_rng(0)
    amount, age, city = rng.gamma(2.0, 500.0, 900), rng.integers(0, 900, 900), rng.integers(0, 3, 900)
    score = (amount - 1000) / 400 + (age - 450) / 300 + city - 1
    wrong = rng.random(900) < 0.1
    frame = pd.DataFrame(
        {
            "amount": [f"${value:,.2f}" for value in amount],
            "since": pd.Timestamp("2024-01-01") - pd.to_timedelta(age, unit="D"),
            "city": np.array(["Lima", "Oslo", "Rome"])[city],
            "kept": np.where((score + rng.logistic(size=900) * 0.5 > 0) ^ wrong, "yes", "no"),
        }
    )
    in_parts(frame, folder / "data")
    frame.to_parquet("whole.parquet", index=False)
    for data, out in (("whole.parquet", "whole"), ("data/*.parquet", "parts")):
        code, _, err = selfpaced("fit", data, "--target", "kept", "--model", "logistic", "--out", out)
        assert code == 0, err
    whole, parts = (load(folder / name / "model.skops") for name in ("whole", "parts"))
    np.testing.assert_allclose(parts[-1].coef_, whole[-1].coef_, rtol=1e-8)
    np.testing.assert_allclose(parts.predict_proba(frame), whole.predict_proba(frame), rtol=1e-8)
    assert measured(folder / "whole")["noise_rate"] == pytest.approx(measured(folder / "parts")["noise_rate"], rel=1e-8)
