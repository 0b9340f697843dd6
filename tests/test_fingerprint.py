"""Fingerprints: any container, any difference, and no second table in memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from selfpaced.fingerprint import BLOCK, fingerprint

ROWS = 40_000


def one_hot() -> np.ndarray:
    """Rows of equal sums, where swapped rows change no sum of a row or of a column."""
    return np.eye(8)[np.random.default_rng(0).integers(0, 8, ROWS)]


def swapped(table: Any, i: int, j: int) -> Any:
    order = np.arange(len(table))
    order[[i, j]] = order[[j, i]]
    return table.iloc[order] if hasattr(table, "iloc") else table[order]


@pytest.mark.parametrize("step", [1, 8, 64, 512, 20_000])
def test_two_rows_of_a_large_table_cannot_change_places(step: int) -> None:
    table = one_hot()
    i = next(i for i in range(ROWS - step) if not np.array_equal(table[i], table[i + step]))
    assert fingerprint(table) != fingerprint(swapped(table, i, i + step))
    frame = pd.DataFrame(table)
    assert fingerprint(frame) != fingerprint(swapped(frame, i, i + step))


@pytest.mark.parametrize("rows", [100, 30_000, 300_000])
def test_the_layout_in_memory_makes_no_difference(rows: int) -> None:
    table = np.random.default_rng(0).normal(size=(rows, 5))
    assert (table.nbytes > BLOCK) == (rows == 300_000)
    assert fingerprint(table) == fingerprint(np.asfortranarray(table))
    wide = np.zeros((rows, 10))
    wide[:, ::2] = table
    assert fingerprint(table) == fingerprint(wide[:, ::2])


def test_names_that_come_twice_and_categories_are_told_apart() -> None:
    twice = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    assert fingerprint(twice) != fingerprint(pd.DataFrame([[1, 3], [3, 4]], columns=["a", "a"]))
    kinds = pd.DataFrame({"kind": pd.Categorical(["x", "y", None])})
    assert fingerprint(kinds) == fingerprint(kinds.copy())
    assert fingerprint(kinds) != fingerprint(kinds.assign(kind=pd.Categorical(["x", "z", None])))
    assert fingerprint(kinds) != fingerprint(kinds.assign(kind=pd.Categorical(["y", "x", None])))
    for frame in (
        pl.DataFrame({"k": ["x", "y"]}, schema={"k": pl.Categorical}),
        pl.DataFrame({"k": ["x", "y"]}, schema={"k": pl.Enum(["x", "y"])}),
        pd.DataFrame({"k": pd.array(["x", None], dtype="string"), "b": pd.array([True, None], dtype="boolean")}),
        pd.DataFrame({"when": pd.to_datetime(["2020-01-01", None], utc=True)}),
    ):
        assert fingerprint(frame) == fingerprint(frame[:])
        assert fingerprint(frame) != fingerprint(frame[::-1])


@pytest.mark.parametrize("form", ["coo", "dia", "lil", "dok"])
def test_every_sparse_format_has_a_fingerprint(form: str) -> None:
    matrix = sparse.random_array((30, 4), density=0.3, rng=np.random.default_rng(0)).asformat(form)
    assert fingerprint(matrix) == fingerprint(matrix.copy())
    assert fingerprint(matrix) != fingerprint((2 * matrix).asformat(form))


def test_one_long_text_does_not_blow_up_a_list() -> None:
    texts = ["short"] * 20_000 + ["long " * 20_000]
    tracemalloc.start()
    found = fingerprint(texts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6  # as an array the list would take 8 GB
    assert found != fingerprint([*texts[1:], texts[0]])


def test_arrays_in_cells_are_read_to_their_middle() -> None:
    def cells(middle: float) -> np.ndarray:
        column = np.empty(2, dtype=object)
        column[:] = [np.zeros(5000), np.r_[np.zeros(2500), middle, np.zeros(2499)]]
        return column

    assert fingerprint(cells(1.0)) == fingerprint(cells(1.0))
    assert fingerprint(cells(1.0)) != fingerprint(cells(2.0))


def test_a_table_is_not_copied() -> None:
    table = np.asfortranarray(np.random.default_rng(0).normal(size=(500_000, 8)))
    tracemalloc.start()
    fingerprint(table)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * table.nbytes
