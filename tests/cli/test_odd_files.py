"""Names and files that a command cannot use: a sentence and the right exit code, and nothing half-written."""

import gzip
import json
import os
import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from selfpaced.cli import main
from selfpaced.tables import read_table

FIT = ["fit", "shop.csv", "--target", "will buy", "--quiet"]


def run(arguments):
    try:
        return main(arguments)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([*FIT, "--encoding", "nope"], 3, "encoding must be one that Python knows"),
        ([*FIT, "--encoding", "zip"], 3, "encoding must be one that Python knows"),
        ([*FIT, "--out", ""], 2, "must name a folder, got an empty text"),
        (["fit", "pipe", "--target", "will buy", "--quiet"], 3, "is a pipe or a device"),
        ([*FIT, "--out", "old", "--force"], 2, "is a folder, but a file of this name is needed"),
    ],
)
def test_what_cannot_be_used_is_said(shop_csv, folder, capsys, arguments, code, words):
    os.mkfifo("pipe")
    os.makedirs("old/report.html")
    assert run(arguments) == code
    assert words in " ".join(capsys.readouterr().err.split())
    assert sorted(os.listdir()) == ["old", "pipe", "shop.csv"]
    assert os.listdir("old") == ["report.html"]


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}])
def test_a_target_of_lists_or_records_is_refused(folder, capsys, value):
    pd.DataFrame({"x": range(30), "y": [value] * 30}).to_parquet("nested.parquet")
    assert run(["fit", "nested.parquet", "--target", "y"]) == 3
    assert "the target 'y' must hold one label or value per row, got a" in " ".join(capsys.readouterr().err.split())
    assert os.listdir() == ["nested.parquet"]


@pytest.mark.parametrize("column", ["note", "label"])
def test_a_cell_of_ten_megabytes_is_refused_with_its_line(folder, capsys, column):
    rows = [f"{i},short,{'ab'[i % 2]}" for i in range(40)]
    rows[3] = f"3,{'x' * 10_000_000},a" if column == "note" else f"3,short,{'x' * 10_000_000}"
    (folder / "long.csv").write_text("\n".join(["x,note,label", *rows]))
    assert run(["fit", "long.csv", "--target", "label"]) == 3
    assert "long.csv:5: a row is longer than 1 MB" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.parquet.gz"])
def test_a_file_that_unpacks_into_too_much_is_refused(folder, capsys, monkeypatch, name):
    monkeypatch.setattr("selfpaced.tables.bombs.FREE", 1 << 22)
    with gzip.open(name, "wb") as stream:
        for _ in range(9):
            stream.write(b"x,y\n" + b"0,a\n" * 250_000)
    assert run(["fit", name, "--target", "y"]) == 3
    assert "unpacks into more than 200 times its size" in " ".join(capsys.readouterr().err.split())


def parquet_bombs():
    """Tables of a few kilobytes that would be megabytes."""
    long = pa.array(["x" * 100_000])
    often = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), long)
    lists = pa.ListArray.from_arrays(pa.array([0, 1_000], pa.int32()), often)
    gaps = pa.ListArray.from_arrays(pa.array([0, 2_000_000], pa.int32()), pa.nulls(2_000_000, pa.int32()))
    return {
        "rows": ({"x": pa.array([0.0] * 1_000_000)}, {}),
        "a list": ({"x": gaps}, {}),
        "texts": ({"x": often}, {}),
        "texts in a list": ({"x": lists}, {}),
        "texts in a record": ({"x": pa.StructArray.from_arrays([often], ["a"])}, {}),
        "beginnings": (
            {"x": pa.array(long.to_pylist() * 200)},
            {"use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}},
        ),
    }


@pytest.mark.parametrize("kind", parquet_bombs())
@pytest.mark.parametrize("options", [[], ["--memory", "100MB"]], ids=["whole", "in pieces"])
def test_a_parquet_file_that_repeats_itself_without_end_is_refused(folder, capsys, monkeypatch, kind, options):
    monkeypatch.setattr("selfpaced.tables.bombs.FREE", 1 << 22)
    columns, how = parquet_bombs()[kind]
    parquet.write_table(pa.table(columns), "bomb.parquet", compression="zstd", store_schema=False, **how)
    assert os.path.getsize("bomb.parquet") < 20_000
    assert run(["fit", "bomb.parquet", "--target", "y", *options]) == 3
    assert "unpacks into more than 200 times its size" in " ".join(capsys.readouterr().err.split())
    assert os.listdir() == ["bomb.parquet"]


def test_a_parquet_table_of_usual_texts_is_none(folder, monkeypatch):
    monkeypatch.setattr("selfpaced.tables.bombs.FREE", 1 << 10)
    frame = pd.DataFrame({"x": range(3_000), "city": ["Rome", "Oslo", None] * 1_000})
    frame.to_parquet("cities.parquet")
    assert read_table("cities.parquet").frame.equals(pd.read_parquet("cities.parquet"))


@pytest.mark.parametrize("value", [["a", "b"], {"a": 1}])
def test_a_column_of_lists_or_records_is_left_out(folder, value):
    frame = pd.DataFrame({"x": [i % 7 for i in range(60)], "odd": [value] * 60, "y": ["no", "yes"] * 30})
    frame.to_parquet("nested.parquet")
    assert run(["fit", "nested.parquet", "--target", "y", "--no-report"]) == 0
    assert json.loads((folder / "run/metrics.json").read_text())["not_used"] == [
        {"column": "odd", "reason": "nested values"}
    ]


def test_a_home_that_cannot_be_written_is_not_needed(shop_csv, folder):
    nowhere = "/proc/nowhere"
    homes = dict.fromkeys(["HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "MPLCONFIGDIR"], nowhere)
    code = "import numpy as np, selfpaced; X = np.outer(range(1, 20), range(1, 9)) + 0.0\n"
    code += "selfpaced.SelfPacedMF(1, max_sweeps=2, random_state=0).fit(X)\n"
    code += "from selfpaced.cli import main\n"
    code += "raise SystemExit(main(['fit', 'shop.csv', '--target', 'will buy', '--quiet']))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **homes}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "run/report.html").stat().st_size > 10_000


@pytest.mark.parametrize("text", ['"selfpaced"', '["selfpaced"]', '{"about": "selfpaced"}', '{"selfpaced": 3}', "{"])
def test_files_of_others_are_not_replaced(shop_csv, folder, capsys, text):
    os.mkdir("run")
    (folder / "run/metrics.json").write_text(text, encoding="utf-8")
    assert run([*FIT, "--out", "run"]) == 2
    assert "was not written by selfpaced" in " ".join(capsys.readouterr().err.split())
    assert (folder / "run/metrics.json").read_text(encoding="utf-8") == text
