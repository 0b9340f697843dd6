"""From decisions about suspects to a corrected table."""

import numpy as np
import pandas as pd
import pytest

import selfpaced
from selfpaced.tables import TableError, apply_decisions, read_answers, read_table, row_marks

TABLE = pd.DataFrame(
    {"size": [1.0, 2.5, 3.0, 4.0], "note": ["=x", None, "b", "c"], "kind": ["a", "b", "b", "a"], "n": [1, 2, 3, 4]},
    index=[10, 11, 12, 13],
)


def decisions(*words, rows=range(9), **columns):
    return pd.DataFrame({"row": list(rows)[: len(words)], "decision": words, **columns})


def test_each_word_does_what_it_says():
    before = TABLE.copy()
    made = apply_decisions(
        TABLE, decisions("keep", "relabel", "Relabel to c d", "drop", expected=["", "z", "", ""]), target="kind"
    )
    assert made.table["kind"].tolist() == ["a", "z", "c d"]
    assert made.table.index.tolist() == [10, 11, 12]
    assert made.trusted.tolist() == [True, True, True]
    assert (made.kept.tolist(), made.replaced.tolist(), made.dropped.tolist()) == ([0], [1, 2], [3])
    assert str(made) == "2 corrected, 1 dropped, 1 kept"
    pd.testing.assert_frame_equal(TABLE, before)


def test_values_are_numbers():
    made = apply_decisions(TABLE, decisions("set 7.25", "set to 8", "set", expected=["", "", 9.5]), target="size")
    assert made.table["size"].tolist() == [7.25, 8.0, 9.5, 4.0]
    whole = apply_decisions(TABLE, decisions("relabel to 7"), target="n").table["n"]
    assert whole.dtype == np.int64
    assert whole.tolist() == [7, 2, 3, 4]
    with pytest.raises(TableError, match="decisions:1: the column holds numbers, got 'much'"):
        apply_decisions(TABLE, decisions("set much"), target="size")


def test_undecided_rows_are_passed_over_and_the_last_word_counts():
    made = apply_decisions(TABLE, decisions("", None, "keep", "drop", rows=[0, 1, 2, 2]))
    assert (len(made.table), made.dropped.tolist(), made.trusted.any()) == (3, [2], False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (decisions("maybe"), "decision must be keep, drop"),
        (decisions("keep it"), "decision must be keep, drop"),
        (decisions("relabel"), "relabel needs a value"),
        (decisions("keep", rows=[4]), r"row must be in the table \(4 rows\), got 4"),
        (decisions("keep", rows=["x"]), "row must be a number, got 'x'"),
        (pd.DataFrame({"row": [1]}), "it has no column 'decision'"),
        (decisions("relabel to z"), "the column of labels is not known"),
        (decisions("relabel to z", target=["sort"]), "the table has no column 'sort'"),
    ],
)
def test_what_cannot_be_done_is_refused(given, message):
    with pytest.raises(TableError, match=message):
        apply_decisions(TABLE, given)


def test_a_row_that_has_changed_is_refused_by_line(tmp_path):
    path = tmp_path / "decisions.csv"
    decisions("keep", "drop", "keep", target="kind", fingerprint=row_marks(TABLE, [0, 1, 2])).to_csv(path, index=False)
    assert apply_decisions(TABLE, path).dropped.tolist() == [1]
    for column in TABLE.columns:
        other = TABLE.copy()
        other.loc[11, column] = other.loc[13, column]
        with pytest.raises(TableError, match=r"decisions.csv: the table has changed .* line 3 \(row 1\); nothing was"):
            apply_decisions(other, path)
    with pytest.raises(TableError, match=r"line 2 \(row 0\), line 3 \(row 1\), line 4 \(row 2\)"):
        apply_decisions(TABLE.iloc[::-1], path)


def test_marks_are_texts_to_a_spreadsheet_and_know_a_row_in_any_file(tmp_path):
    marks = row_marks(TABLE)
    assert len(set(marks)) == 4
    assert all(mark[0] == "r" and len(mark) == 17 for mark in marks)
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    assert row_marks(read_table(tmp_path / "t.csv").frame, [0, 2, 3]) == [marks[0], *marks[2:]]


def test_a_file_from_a_spreadsheet_is_read(tmp_path):
    path = tmp_path / "suspects.csv"
    path.write_text('row;expected;decision;why\r\n3;\'=b;relabel;"two\r\nlines"\r\n1;x;;\r\n2;x;DROP;\r\n', "utf-8-sig")
    answers = read_answers(path)
    assert [(a.row, a.what, a.value, a.line) for a in answers] == [(3, "replace", "=b", 2), (2, "drop", "", 5)]


def test_it_is_part_of_the_package():
    assert selfpaced.apply_decisions is apply_decisions


def test_a_value_is_written_with_the_decimal_sign_of_its_column():
    frame = pd.DataFrame({"price": ["1.250,50 €", "80,25 €", "7,5 €"]})
    corrected = apply_decisions(frame, {"row": [1, 2], "decision": ["set 1268.25", "set 9,75"]}, target="price")
    assert corrected.table["price"].tolist() == ["1.250,50 €", "1268,25", "9,75"]
