"""By what rows are known again: a short text for the content of any table, labels included."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DIGESTED = 1 << 17  # cost: bytes up to which the digest itself is fast enough: about a tenth of a millisecond
BLOCK = 1 << 22  # cost: bytes that are laid out in order at a time, so that no table is copied as a whole
CHUNK = 1 << 14  # cost: cells that are turned into text at a time
LINE = 1024  # cost: words of 32 bits that are summed to one number: 4 kB


def fingerprint(X: Any, y: Any = None) -> str:
    """A short text that is the same for the same content in the same order, and different for any other.

    Parameters
    ----------
    X : array, sparse matrix, pandas or polars frame, list, dict or tuple of such
        Never copied as a whole.
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
    """Add an object to a digest, by its content."""
    if part is None:
        digest.update(b"none")
    elif hasattr(part, "indptr"):  # compressed sparse rows or columns
        digest.update(repr((part.shape, part.format)).encode())
        for array in (part.indptr, part.indices, part.data):
            _feed_array(digest, array)
    elif hasattr(part, "tocsr"):
        _feed(digest, part.tocsr())
    elif hasattr(part, "columns") and hasattr(part, "shape"):  # a pandas or polars frame
        _feed_frame(digest, part)
    elif isinstance(part, dict):
        for key, value in part.items():
            digest.update(repr(key).encode())
            _feed(digest, value)
    elif isinstance(part, tuple | list) and len(part) and hasattr(part[0], "shape"):  # views, triplets, images
        digest.update(f"{len(part)} parts".encode())
        for value in part:
            _feed(digest, value)
    elif isinstance(part, Sequence) and not isinstance(part, str | bytes):
        _feed_sequence(digest, part)
    else:
        _feed_array(digest, np.asarray(part))


def _feed_frame(digest: Any, frame: Any) -> None:
    """Column by column, by their places: names may come twice."""
    digest.update(repr(tuple(frame.shape)).encode())
    for place, name in enumerate(frame.columns):
        digest.update(f"{name!r}".encode())
        column = frame.iloc[:, place] if hasattr(frame, "iloc") else frame[name]
        if hasattr(getattr(column, "cat", None), "codes"):  # pandas keeps categories as numbers
            _feed_array(digest, np.asarray(column.cat.categories))
            _feed_array(digest, np.asarray(column.cat.codes))
        else:
            _feed_array(digest, np.asarray(column))


def _feed_sequence(digest: Any, part: Sequence[Any]) -> None:
    if len(part) and isinstance(part[0], str | bytes):  # as an array every text would be as long as the longest
        digest.update(f"{len(part)} texts".encode())
        _feed_cells(digest, part)
        return
    try:
        array = np.asarray(part)
    except ValueError:  # rows of different lengths
        digest.update(f"{len(part)} rows".encode())
        _feed_cells(digest, part)
    else:
        _feed_array(digest, array)


def _feed_cells(digest: Any, cells: Any) -> None:
    """Objects by the text that shows them, some at a time."""
    for begin in range(0, len(cells), CHUNK):
        for cell in cells[begin : begin + CHUNK]:
            if getattr(cell, "shape", ()):  # an array in a cell would be shown with its middle left out
                _feed(digest, cell)
            else:
                digest.update(repr(cell).encode() + b"\x1f")


def _feed_array(digest: Any, array: Array) -> None:
    digest.update(f"{array.shape}{array.dtype.str}".encode())
    if array.dtype.kind == "O":
        _feed_cells(digest, array.ravel())
        return
    for block in _blocks(array):
        words = block.reshape(-1).view(np.uint8)
        whole = 0
        if array.nbytes > DIGESTED:
            # A sum of words, each times a large number of its own, is taken at the speed of memory, where the digest of
            # a gigabyte takes a second; lines that differ have different sums but for a chance of one in billions.
            whole = words.size // (4 * LINE) * (4 * LINE)
            table = words[:whole].view(np.uint32).reshape(-1, LINE)
            digest.update(np.einsum("ij,j->i", table, _FACTORS).tobytes())
        digest.update(words[whole:].tobytes())


def _blocks(array: Array) -> Iterator[Array]:
    """Contiguous pieces of a table, the same ones whatever its layout."""
    if array.ndim == 0 or array.nbytes <= BLOCK:
        yield np.ascontiguousarray(array)
        return
    rows = max(1, BLOCK * len(array) // array.nbytes)
    for begin in range(0, len(array), rows):
        yield np.ascontiguousarray(array[begin : begin + rows])


_FACTORS = np.frombuffer(hashlib.shake_128(b"one number for every word of a line").digest(8 * LINE), dtype="<u8")


__all__ = ["fingerprint"]
