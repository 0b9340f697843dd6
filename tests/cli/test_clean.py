"""``selfpaced clean``."""

import gzip

import numpy as np
import pandas as pd
import pytest

LOGISTIC = ("--model", "logistic")  # what auto chooses here, without the comparison


def test_drop_copies_the_rest_as_it_is_written(as_json, shop_csv, folder):
    before = shop_csv.read_bytes()
    result = as_json("clean", shop_csv, "--target", "will buy", *LOGISTIC)
    assert result["out"] == "shop.clean.csv"
    assert shop_csv.read_bytes() == before
    old = pd.read_csv(shop_csv, dtype=str, keep_default_na=False)
    new = pd.read_csv("shop.clean.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(new, old.drop(index=result["suspect_rows"]).reset_index(drop=True))
    kept = [line for line in before.decode().split("\n") if line]
    assert all(line in kept for line in (folder / "shop.clean.csv").read_text().split("\n") if line)
    assert result["rows"] == 400 - result["likely_errors"]


def test_flag_adds_columns(as_json, shop_csv):
    result = as_json("clean", shop_csv, "--target", "will buy", *LOGISTIC, "--how", "flag", "--out", "flagged.csv")
    old = pd.read_csv(shop_csv, dtype=str, keep_default_na=False)
    new = pd.read_csv("flagged.csv", dtype=str, keep_default_na=False)
    assert list(new.columns) == [*old.columns, "suspect", "expected", "noise_probability"]
    pd.testing.assert_frame_equal(new[old.columns], old)
    assert np.flatnonzero(new["suspect"] == "1").tolist() == sorted(result["suspect_rows"])
    assert set(new.loc[new["suspect"] == "0", "expected"]) == {""}


def test_relabel_changes_only_the_suspects(as_json, shop_csv):
    result = as_json("clean", shop_csv, "--target", "will buy", *LOGISTIC, "--how", "relabel")
    old = pd.read_csv(shop_csv, dtype=str, keep_default_na=False)
    new = pd.read_csv("shop.clean.csv", dtype=str, keep_default_na=False)
    changed = (old != new).any(axis=1)
    assert np.flatnonzero(changed).tolist() == sorted(result["suspect_rows"])
    assert (old.drop(columns="will buy") == new.drop(columns="will buy")).all(axis=None)
    assert set(new["will buy"]) == {"yes", "no"}


def test_relabel_spells_classes_as_the_file_does(as_json, folder):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    label = np.where((x > 0) ^ (rng.random(300) < 0.1), "01", "02")
    pd.DataFrame({"x": x, "label": label}).to_csv("t.csv", index=False)
    as_json("clean", "t.csv", "--target", "label", "--how", "relabel")
    assert set(pd.read_csv("t.clean.csv", dtype=str)["label"]) == {"01", "02"}


def test_values_are_replaced_by_expected_ones(as_json, price_tsv):
    path, wrong = price_tsv
    result = as_json("clean", path, "--target", "price", "--model", "ridge", "--how", "relabel")
    assert result["out"] == "price.clean.tsv"
    old, new = pd.read_csv(path, sep="\t"), pd.read_csv("price.clean.tsv", sep="\t")
    assert np.flatnonzero(old["price"] != new["price"]).tolist() == wrong.tolist()
    np.testing.assert_allclose(new["price"][wrong], old["price"][wrong] / 10, rtol=0.2)


@pytest.mark.parametrize("how", ["drop", "flag", "relabel"])
def test_parquet(as_json, shop_csv, how):
    pd.read_csv(shop_csv).to_parquet("shop.parquet")
    from_text = as_json("clean", shop_csv, "--target", "will buy", *LOGISTIC, "--how", how, "--out", "a.csv")
    from_parquet = as_json("clean", "shop.parquet", "--target", "will buy", *LOGISTIC, "--how", how, "--decimal", ".")
    assert from_parquet["out"] == "shop.clean.parquet"
    a, b = pd.read_csv("a.csv"), pd.read_parquet("shop.clean.parquet")
    assert from_text["suspect_rows"] == from_parquet["suspect_rows"]
    pd.testing.assert_frame_equal(a, b.reset_index(drop=True), check_dtype=False)


def test_gzip_in_gzip_out(as_json, shop_csv, folder):
    (folder / "s.csv.gz").write_bytes(gzip.compress(shop_csv.read_bytes()))
    assert as_json("clean", "s.csv.gz", "--target", "will buy", *LOGISTIC)["out"] == "s.clean.csv.gz"
    assert gzip.decompress((folder / "s.clean.csv.gz").read_bytes()).startswith(b"age,income,city")


def test_the_built_in_table_serves(as_json, folder):
    assert as_json("clean")["out"] == "shelter.clean.csv"
    assert len(pd.read_csv("shelter.clean.csv")) < 600


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("shop.csv", "never changed in place"),
        ("./sub/../shop.csv", "never changed in place"),
        ("link.csv", "never changed in place"),
        ("other.csv", "'other.csv' exists; choose another --out, or use --force"),
        ("nowhere/new.csv", "must be in an existing folder"),
        ("new.xlsx", "the format of"),
    ],
)
def test_never_in_place(selfpaced, shop_csv, folder, out, message):
    (folder / "sub").mkdir()
    (folder / "link.csv").symlink_to(shop_csv)
    (folder / "other.csv").write_text("mine")
    before = shop_csv.read_bytes()
    force = ["--force"] if "in place" in message else []
    code, _, err = selfpaced("clean", shop_csv, "--target", "will buy", *LOGISTIC, "--out", out, *force)
    assert code == 2
    assert message in err
    assert shop_csv.read_bytes() == before
    assert (folder / "other.csv").read_text() == "mine"


@pytest.mark.parametrize("unit", ["", " €"], ids=["numbers", "money"])
def test_corrected_values_are_written_with_a_decimal_comma(as_json, folder, unit):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = np.where(np.arange(200) % 40 == 7, 10.0, 1.0) * (50 + 3 * x + 0.1 * rng.normal(size=200))
    cells = [[f"{value:.3f}".replace(".", ",") for value in part] for part in (x, y)]
    pd.DataFrame({"x": cells[0], "y": [cell + unit for cell in cells[1]]}).to_csv("t.csv", sep=";", index=False)
    words = ("--target", "y", "--model", "ridge", "--how")
    result = as_json("clean", "t.csv", *words, "relabel")
    assert sorted(result["suspect_rows"]) == [7, 47, 87, 127, 167]
    new = pd.read_csv("t.clean.csv", sep=";", dtype=str)["y"].str.removesuffix(unit)
    assert not new.str.contains(".", regex=False).any()
    np.testing.assert_allclose(new.str.replace(",", ".").astype(float), np.where(y > 200, y / 10, y), rtol=0.05)
    as_json("clean", "t.csv", *words, "flag", "--out", "flagged.csv")
    expected = pd.read_csv("flagged.csv", sep=";", decimal=",")["expected"]
    np.testing.assert_allclose(expected.dropna(), y[expected.notna()] / 10, rtol=0.05)
    pd.DataFrame({"row": [7], "decision": ["set 51.25"], "target": "y"}).to_csv("decisions.csv", index=False)
    as_json("clean", "t.csv", "--decisions", "decisions.csv", "--out", "decided.csv")
    assert pd.read_csv("decided.csv", sep=";", dtype=str)["y"][7] == "51,25"
    assert (
        as_json("fit", "t.csv", "--decisions", "decisions.csv", "--model", "ridge", "--no-report")["rows_fitted"] == 200
    )
