"""Fingerprints: any container, any difference, and no second table in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from selfpaced.fingerprint import content_keys, fingerprint, row_keys

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


def test_keys_are_equal_for_equal_rows_only() -> None:
    X = np.random.default_rng(0).integers(0, 3, (400, 7)).astype(float)
    _, group = np.unique(X, axis=0, return_inverse=True)
    _, by_key = np.unique(row_keys(X), return_inverse=True)
    assert len(set(zip(group.ravel(), by_key, strict=True))) == group.max() + 1 == by_key.max() + 1


FORMS = pytest.mark.parametrize(
    "form",
    [
        lambda X: X.astype(np.float32),
        lambda X: X.astype(int),
        lambda X: X.astype(object),
        lambda X: X.tolist(),
        np.asfortranarray,
        sparse.csr_matrix,
        sparse.coo_array,
        lambda X: pd.DataFrame(X, columns=list("abcd")),
        lambda X: pd.DataFrame(X, columns=list("aabb")),
        lambda X: pl.DataFrame(X, schema=list("abcd")),
        lambda X: np.where(X == 0, -0.0, X),
    ],
)


@FORMS
def test_keys_do_not_depend_on_the_form(form) -> None:
    X = np.random.default_rng(0).integers(-2, 3, (50, 4)).astype(float)
    np.testing.assert_array_equal(row_keys(form(X)), row_keys(X))
    np.testing.assert_array_equal(content_keys(form(X)), content_keys(X))


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_matrix, lambda X: X.astype(object)])
def test_content_keys_do_not_see_rounding_errors(form) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)) * 10.0 ** rng.integers(-12, 12, 5)
    rounded = X * (1 + 4e-16 * rng.standard_normal(X.shape))
    assert (row_keys(form(X)) != row_keys(form(rounded))).mean() > 0.9
    assert (content_keys(form(X)) == content_keys(form(rounded))).all()
    assert (content_keys(form(X)) != content_keys(form(X * (1 + 1e-8)))).all()


def test_content_keys_of_numbers_that_cannot_be_rounded() -> None:
    numbers = np.array([np.inf, -np.inf, np.nan, np.finfo(float).max, 5e-324, 0.0])
    assert len(set(content_keys(numbers[:5, None]).tolist())) == 4  # the largest number is rounded to infinity
    assert content_keys(-np.abs(numbers[2:3, None])) == content_keys(numbers[2:3, None])


def test_keys_of_text_dates_gaps_and_uneven_rows() -> None:
    frame = pd.DataFrame({
        "text": ["a", "b", "a", "a"],
        "kind": pd.Categorical(["x", "y", "x", "x"]),
        "day": pd.to_datetime(["2020", "2021", "2020", "2020"]),
        "gap": [np.nan, 1.0, np.nan, 2.0],
        "none": [None, "q", None, None],
    })  # fmt: skip
    keys = row_keys(frame)
    assert keys[0] == keys[2]
    assert len(set(keys.tolist())) == 3
    for rows in (["a", "b", "a"], [[1, 2], [3], [1, 2]], [np.ones(3), np.zeros(3), np.ones(3)], np.ones((3, 2, 2))):
        keys = row_keys(rows)
        assert keys[0] == keys[2]


def test_keys_are_the_same_in_another_process() -> None:
    code = "from selfpaced.fingerprint import row_keys; print(row_keys(['a', 'b']).tolist())"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert other.stdout.strip() == str(row_keys(["a", "b"]).tolist())
