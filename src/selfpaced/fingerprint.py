"""By what rows are known again: a short text for the content of any table, and a number for that of each row."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Keys = NDArray[np.uint64]

N_FOLDS = 5  # convention: five-fold cross-validation, as in scikit-learn
EXACT_BITS = 52  # theory: bits after the leading one of a number of double precision
CONTENT_BITS = 32  # numerical safety: bits that are compared, so that other processors make the same folds
MIXED_AT_ONCE = 1 << 15  # cost: numbers that are mixed at a time, so that they stay in the cache


def fingerprint(X: Any, y: Any = None) -> str:
    """A short text that is the same for the same content in the same order, and different for any other.

    Parameters
    ----------
    X : array, sparse matrix, pandas or polars frame, list, dict or tuple of such
        Numbers are compared as numbers, whatever their type and their layout in memory.
    y : array-like, optional
        Labels or values that belong to it.

    Examples
    --------
    >>> table = np.arange(6.0).reshape(3, 2)
    >>> fingerprint(table, [0, 1, 0]) == fingerprint(table.copy(), [0, 1, 0])
    True
    >>> fingerprint(table, [0, 1, 0]) == fingerprint(table[[0, 2, 1]], [0, 1, 0])
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in (X, y):
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: Any, part: Any) -> None:
    """Add an object to a digest: its kind and shape, and the key of every row."""
    if part is None:
        digest.update(b"none")
    elif isinstance(part, dict) and not hasattr(part, "tocsr"):  # a sparse matrix may be a dict too
        for key, value in part.items():
            digest.update(repr(key).encode())
            _feed(digest, value)
    elif isinstance(part, tuple | list) and len(part) and hasattr(part[0], "shape"):  # views, triplets, images
        digest.update(f"{len(part)} parts".encode())
        for value in part:
            _feed(digest, value)
    else:
        part = part if hasattr(part, "shape") or isinstance(part, Sequence) else np.asarray(part)
        shape = part.shape if hasattr(part, "shape") else len(part)
        digest.update(repr((shape, list(getattr(part, "columns", ())))).encode())
        digest.update(row_keys(part))


def content_keys(X: Any) -> Keys:
    """A number of 64 bits per row as from `row_keys`, of numbers rounded to about nine digits.

    Folds and samples follow from it. Features that another processor or library computes differ in their last digits
    there; rows keep their folds all the same.

    Examples
    --------
    >>> table = np.array([[0.1 + 0.2, 5.0]])
    >>> bool(content_keys(table) == content_keys(np.array([[0.3, 5.0]])))
    True
    >>> bool(row_keys(table) == row_keys(np.array([[0.3, 5.0]])))
    False
    """
    return row_keys(X, bits=CONTENT_BITS)


def row_keys(X: Any, *, bits: int = EXACT_BITS) -> Keys:
    """A number of 64 bits per row: equal for equal rows, wherever they stand, and different for any others.

    Parameters
    ----------
    X : array, sparse matrix, pandas or polars frame, or sequence of rows
        Numbers are compared as numbers: a sparse matrix, a frame and an array of single precision have the keys of
        the same table in double precision.
    bits : int
        To how many bits after the leading one numbers are rounded before they are compared.

    Examples
    --------
    >>> keys = row_keys(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> bool(keys[0] == keys[2] != keys[1])
    True
    """
    if hasattr(X, "tocsr"):
        return _sparse_keys(X.tocsr(), bits)
    if hasattr(X, "columns") and hasattr(X, "shape"):
        keys = np.zeros(X.shape[0], dtype=np.uint64)
        for place, name in enumerate(X.columns):
            column = X.iloc[:, place] if hasattr(X, "iloc") else X[name]
            keys += _column_keys(column, bits) * _odd(place, 1)[0]
        return keys
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], str | bytes):
        return _cell_keys(_objects(X), bits)
    try:
        table = np.asarray(X)
    except ValueError:  # rows of different lengths
        return _cell_keys(_objects(X), bits)
    return _table_keys(table.reshape(len(table), math.prod(table.shape[1:])), bits)


def mixed(words: Keys, seed: int) -> Keys:
    """Words scattered over all 64 bits, in another way for another seed."""
    words = words + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def hash_folds(keys: Keys, n_folds: int = N_FOLDS, *, repetition: int = 0) -> NDArray[np.intp]:
    """Return the fold of every row as a hash of its content, so that a row keeps its fold when others come or go.

    Equal rows share a fold. Folds have about the same size, not exactly the same.

    Parameters
    ----------
    keys : ndarray of uint64
        The content of every row, from `content_keys`.
    n_folds : int
        Number of folds.
    repetition : int
        Each repetition is a split of its own.

    Returns
    -------
    ndarray of int
        Folds from 0 to ``n_folds - 1``.

    Examples
    --------
    >>> keys = row_keys(np.arange(6.0)[:, None])
    >>> bool((hash_folds(keys[2:]) == hash_folds(keys)[2:]).all())
    True
    """
    return np.asarray(mixed(keys, repetition + 1) % np.uint64(n_folds), dtype=np.intp)


def _odd(begin: int, count: int) -> Keys:
    """An odd factor of its own for every column."""
    return mixed(np.arange(begin + 1, begin + count + 1, dtype=np.uint64), 1) | np.uint64(1)


def _table_keys(table: Array, bits: int) -> Keys:
    n, d = table.shape
    keys, factors = np.empty(n, dtype=np.uint64), _odd(0, d)
    step = max(1, MIXED_AT_ONCE // max(d, 1))
    if table.dtype.kind not in "biuf":
        for begin in range(0, n, step):
            block = table[begin : begin + step]
            keys[begin : begin + step] = np.einsum(
                "ij,j->i", _cell_keys(block.ravel(), bits).reshape(block.shape), factors
            )
        return keys
    room = np.empty((2, min(step, n), d))  # made once: to ask for memory costs as much as to mix what is in it
    for begin in range(0, n, step):
        block = table[begin : begin + step]
        numbers, spare = room[:, : len(block)]
        np.add(block, 0.0, out=numbers)  # minus zero is zero
        words = _number_keys(numbers, bits, spare.view(np.uint64))
        np.einsum("ij,j->i", words, factors, out=keys[begin : begin + len(block)])
    return keys


def _sparse_keys(X: Any, bits: int) -> Keys:
    """Cells of zero add nothing, stored or not; sums of words are exact, so differences of running sums are too."""
    odd, keys = _odd(0, X.shape[1]), np.empty(X.shape[0], dtype=np.uint64)
    step = max(MIXED_AT_ONCE * X.shape[0] // max(X.nnz, 1), 1)
    for start in range(0, X.shape[0], step):
        bounds = X.indptr[start : start + step + 1]
        part = slice(bounds[0], bounds[-1])
        cells = _cell_keys(np.asarray(X.data[part]), bits) * odd[X.indices[part]]
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(cells, dtype=np.uint64)])
        keys[start : start + step] = np.diff(sums[bounds - bounds[0]])
    return keys


def _column_keys(column: Any, bits: int) -> Keys:
    """A number per cell of a column; texts that occur often are looked at once."""
    if str(column.dtype) not in ("str", "string") or not hasattr(column, "factorize"):
        return _cell_keys(_column(column), bits)
    codes, distinct = column.factorize()
    keys = _object_keys(np.array([*distinct, column.dtype.na_value], dtype=object), bits)
    return np.asarray(keys[codes])  # a gap has -1


def _column(column: Any) -> Array:
    """A column of a frame; categories are text or numbers, as if they were written out."""
    return np.asarray(column.astype(object) if hasattr(getattr(column, "cat", None), "codes") else column)


def _cell_keys(cells: Array, bits: int) -> Keys:
    """A number per cell; that of zero is zero."""
    kind = cells.dtype.kind
    if kind in "mM":
        cells = cells.astype(np.int64)
    if kind in "biufmM":
        return _number_keys(cells.astype(np.float64) + 0.0, bits)  # minus zero is zero
    return _object_keys(cells, bits)


def _number_keys(numbers: Array, bits: int, spare: Keys | None = None) -> Keys:
    """A number per number, in their place; ``spare`` is room for as many."""
    flat = numbers.reshape(-1)
    if np.isnan(np.vdot(flat, flat)):  # a sum of squares is no number only where one of them is none
        numbers[np.isnan(numbers)] = np.nan  # one of many bit patterns
    words = numbers.view(np.uint64)
    if bits < EXACT_BITS:
        words += np.uint64(1 << (EXACT_BITS - bits - 1))
        words &= np.uint64(2**64 - (1 << (EXACT_BITS - bits)))
    words ^= np.right_shift(words, np.uint64(32), out=spare)  # numbers that people write differ in their upper bits
    words *= np.uint64(0x9E3779B97F4A7C15)
    words ^= np.right_shift(words, np.uint64(29), out=spare)
    return words


def _object_keys(cells: Array, bits: int) -> Keys:
    """By the text that shows a cell, which is made once for equal ones."""
    known: dict[Any, int] = {}
    keys = np.empty(len(cells), dtype=np.uint64)
    for place, cell in enumerate(cells.tolist() if cells.dtype.kind in "US" else cells):
        try:
            if cell not in known:
                known[cell] = _object_key(cell, bits)
            keys[place] = known[cell]
        except TypeError:  # a list, an array
            keys[place] = _object_key(cell, bits)
    return keys


def _object_key(cell: Any, bits: int) -> int:
    if isinstance(cell, bool | int | float | np.integer | np.floating | np.bool_):
        return int(_cell_keys(np.asarray([cell], dtype=np.float64), bits)[0])
    text = fingerprint(cell) if getattr(cell, "shape", ()) else repr(cell)
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


def _objects(rows: Sequence[Any]) -> Array:
    cells = np.empty(len(rows), dtype=object)
    for place, row in enumerate(rows):
        cells[place] = row
    return cells
