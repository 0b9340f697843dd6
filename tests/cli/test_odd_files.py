"""Names and files that a command cannot use: a sentence and the right exit code, and nothing half-written."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

from selfpaced.cli import main

FIT = ["fit", "shop.csv", "--target", "will buy", "--model", "logistic", "--quiet"]


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
        (["fit", "pipe", "--target", "will buy", "--quiet"], 3, "is not a regular file"),
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


def test_a_cell_of_ten_megabytes_is_refused(folder, capsys):
    rows = [f"{i},short,{'ab'[i % 2]}" for i in range(40)]
    rows[3] = f"3,{'x' * 10_000_000},a"
    (folder / "long.csv").write_text("\n".join(["x,note,label", *rows]))
    assert run(["fit", "long.csv", "--target", "label"]) == 3
    assert "cannot be read as a table" in " ".join(capsys.readouterr().err.split())


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
    code = "import importlib.util\n"
    code += (
        "if importlib.util.find_spec('numba'): import selfpaced.factorization.kernels  # finds a place for its cache\n"
    )
    code += "from selfpaced.cli import main\n"
    code += "raise SystemExit(main(['fit', 'shop.csv', '--target', 'will buy', '--model', 'logistic', '--quiet']))"
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
