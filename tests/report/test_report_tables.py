"""From tables of any kind to plain cells."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

from selfpaced.report.tables import cell, feature_rows, make_table


@dataclass
class Record:
    row: int
    weight: float


Named = namedtuple("Named", ["row", "weight"])


@pytest.mark.parametrize(
    "table",
    [
        {"row": [3, 1], "weight": [0.5, 1.0]},
        [{"row": 3, "weight": 0.5}, {"row": 1, "weight": 1.0}],
        [Record(3, 0.5), Record(1, 1.0)],
        [Named(3, 0.5), Named(1, 1.0)],
        np.array([(3, 0.5), (1, 1.0)], dtype=[("row", int), ("weight", float)]),
    ],
    ids=["mapping", "dicts", "dataclasses", "named tuples", "structured"],
)
def test_every_kind_of_table(table):
    made = make_table(table, limit=10)
    assert [(column.key, column.kind, list(column.values)) for column in made.columns] == [
        ("row", "integer", [3, 1]),
        ("weight", "weight", [0.5, 1.0]),
    ]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"row": [3, 1], "given": ["a", None], "weight": [0.5, float("nan")]})
    if library == "pandas":
        frame.index = [7, 8]
    made = make_table(frame, limit=10)
    assert [list(column.values) for column in made.columns] == [[3, 1], ["a", None], [0.5, None]]


def test_limit_keeps_the_first_and_the_total():
    made = make_table({"row": np.arange(50)}, limit=7)
    assert len(made) == 7
    assert made.total == 50


def test_empty_columns_are_left_out():
    assert [c.key for c in make_table({"row": [1], "line": [None]}, limit=5).columns] == ["row"]


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match=r"one length, got \[1, 2\]"):
        make_table({"row": [1], "weight": [0.1, 0.2]}, limit=5)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.25), 0.25),
        (np.int64(3), 3),
        (float("nan"), None),
        (float("inf"), "inf"),
        (np.True_, "true"),
        (None, None),
        (2**60, str(2**60)),
        (1 / 3, 0.333333),
        ("<b>", "<b>"),
        (np.datetime64("2020-01-02"), "2020-01-02"),
        (np.datetime64("NaT", "ns"), None),
    ],
)
def test_cells(value, expected):
    assert cell(value) == expected


def test_columns_of_floats_are_rounded_as_single_cells_are():
    values = [0.0, 1 / 3, -123456.789, 6.02e23, 1e-7, 99999.94, -0.25]
    (column,) = make_table({"loss": values}, limit=10).columns
    assert list(column.values) == pytest.approx([cell(value) for value in values], rel=1e-12)
    assert max(len(repr(value)) for value in column.values) <= 12


def test_long_text_is_cut():
    assert len(cell("x" * 1000)) == 300


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.coo_matrix], ids=["dense", "csr", "coo"])
def test_features_of_arrays(make):
    X = np.arange(12.0).reshape(4, 3)
    found = feature_rows(make(X), [2, 0], limit=5)
    assert found.names == ("x0", "x1", "x2")
    assert found.rows == ((6.0, 7.0, 8.0), (0.0, 1.0, 2.0))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_features_of_data_frames(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"age": [1, 2, 3], "name": ["a", "<b>", None]})
    found = feature_rows(frame, [1, 2], limit=5)
    assert found.names == ("age", "name")
    assert found.rows == ((2, "<b>"), (3, None))


def test_wide_data_is_cut_and_counted():
    found = feature_rows(np.ones((3, 100)), [0, 1, 2], limit=2, most=40)
    assert (len(found.names), len(found.rows), found.left_out) == (40, 2, 60)
