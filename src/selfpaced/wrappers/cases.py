"""Rows as references see them: equal ones together, in an order that follows from what they hold, as a table of
numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..folds import Rows, Split, make_folds, n_units, row_keys, units

__all__ = ["Array", "Cases", "cases_of", "numeric_table"]

Array = NDArray[Any]
LEVELS = 20  # cost: indicators that a categorical column becomes at most
NUMBERS = "biuf"
THIN = 200  # cost: columns up to which a sparse matrix is laid out as a table


@dataclass(frozen=True, eq=False)
class Cases:
    """Distinct rows and labels. Copies are one case of more weight, wherever they stand in the table.

    Attributes
    ----------
    first : ndarray of int of shape (n_cases,)
        A row of each case.
    of_row : ndarray of int of shape (n_rows,)
        The case of each row.
    codes, weight, unit : ndarray of shape (n_cases,)
        Given label, weight, and the unit that is held out as a whole: equal rows, or a group.
    keys : ndarray of uint64 of shape (n_cases,)
        What the rows hold.
    n_classes : int
        Number of classes.
    n_used : int
        Cases that have any weight. They stand first; nothing is learnt from the others, and they are assessed by all.
    trusted : ndarray of bool of shape (n_cases,)
        Whether a person has confirmed the label.
    """

    first: Rows
    of_row: Rows
    codes: Rows
    weight: Array
    unit: Rows
    keys: Array
    n_classes: int
    n_used: int
    trusted: Array

    @property
    def n_units(self) -> int:
        """Cases that can be held out apart from each other: copies and those of no weight do not count."""
        return n_units(self.keys[: self.n_used])

    @property
    def unused(self) -> Rows:
        """Cases of no weight."""
        return np.arange(self.n_used, len(self.codes))

    @property
    def hard(self) -> Array:
        """Given labels as probabilities."""
        return np.eye(self.n_classes)[self.codes]

    def folds(self, cv: Any, rng: Any, groups: Any = None, X: Any = None, y: Any = None) -> list[Split]:
        """Folds of the cases; a splitter is asked about the rows."""
        if isinstance(cv, int | np.integer):
            used = slice(0, self.n_used)
            held = None if groups is None else self.unit[used]
            dealt = make_folds(self.keys[used], self.codes[used], cv=cv, groups=held, random_state=rng)
            return [(train, np.concatenate([test, self.unused])) for train, test in dealt]
        splits = make_folds(self.keys, None, cv=cv, groups=groups, X=X, y=y)
        return [(np.unique(self.of_row[train]), np.unique(self.of_row[test])) for train, test in splits]


def cases_of(
    X: Any, codes: Rows, n_classes: int, prior: Array | None = None, groups: Any = None, trusted: Array | None = None
) -> Cases:
    """The cases of a table.

    Parameters
    ----------
    X : array, sparse matrix, frame or sequence
        Rows of any kind.
    codes : ndarray of int of shape (n_rows,)
        Given labels.
    n_classes : int
        Number of classes.
    prior : ndarray of shape (n_rows,), optional
        The user's weights.
    groups : array-like of shape (n_rows,), optional
        Rows of one group are held out together.
    trusted : ndarray of bool of shape (n_rows,), optional
        Rows that a person has confirmed.

    Returns
    -------
    Cases

    Examples
    --------
    >>> cases = cases_of(np.array([[2.0], [1.0], [2.0]]), np.array([0, 1, 0]), 2)
    >>> cases.weight[cases.of_row].tolist(), cases.n_units
    ([2.0, 1.0, 2.0], 2)
    """
    keys, n = row_keys(X), len(codes)
    unit = units(keys, codes)
    held = unit if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    weight = np.ones(n) if prior is None else np.asarray(prior, dtype=float)
    order = np.lexsort((codes, unit, held, weight == 0.0))
    listed = np.stack([held[order], unit[order], codes[order], weight[order] == 0.0])
    begins = np.r_[True, np.any(listed[:, 1:] != listed[:, :-1], axis=0)]
    of_row = np.empty(n, dtype=np.intp)
    of_row[order] = np.cumsum(begins) - 1
    first = order[begins]
    total, sure = np.bincount(of_row, weight), np.zeros(len(first), dtype=bool)
    if trusted is not None:
        np.logical_or.at(sure, of_row, trusted)
    n_used = int(np.sum(total > 0.0))
    return Cases(first, of_row, codes[first], total, held[first], keys[first], n_classes, n_used, sure)


# ------------------------------------------------------------------------------------------------- a table of numbers


def numeric_table(X: Any, rows: Any = slice(None), n_used: int | None = None) -> Any:
    """Standardised numbers, gaps flagged, categories as indicators; sparse if X is wide and sparse; None if no table.

    Parameters
    ----------
    X : array, sparse matrix, frame or sequence
        Rows of any kind.
    rows : ndarray of int, optional
        Those that are wanted.
    n_used : int, optional
        How many of these, from the first on, medians, spreads and categories are learnt from.

    Examples
    --------
    >>> numeric_table([[0.0, 1.0], [2.0, np.nan]]).round(1).tolist()
    [[-1.0, 0.0, -1.0], [1.0, 0.0, 1.0]]
    >>> numeric_table(["a text", "another"]) is None
    True
    """
    if sparse.issparse(X):
        X = X.tocsr()[rows]
        return _standardised(X.toarray(), n_used) if X.shape[1] <= THIN else _scaled(X, n_used)
    try:
        if hasattr(X, "columns") and hasattr(X, "shape"):
            return _of_frame(X, rows, n_used)
        table = np.asarray(X)
        if table.ndim != 2 or table.shape[1] == 0:
            return None
        if table.dtype.kind in NUMBERS:
            return _standardised(table[rows], n_used)
        return _of_frame(_pandas().DataFrame(table).infer_objects(), rows, n_used)
    except (ImportError, TypeError, ValueError, OverflowError):  # nothing that is read as a table of numbers
        return None


def _pandas() -> Any:
    import pandas as pd

    return pd


def _of_frame(frame: Any, rows: Any, n_used: int | None) -> Array | None:
    """Features of some rows; what a column holds is read off those used."""
    if not hasattr(frame, "iloc"):  # polars: through its columns, as there may be no Arrow
        columns = {str(name): np.asarray(frame[name]) for name in frame.columns}
        if all(column.dtype.kind in NUMBERS for column in columns.values()):
            return _standardised(np.column_stack(list(columns.values()))[rows], n_used)
        frame = _pandas().DataFrame(columns)
    if all(getattr(kind, "kind", "O") in NUMBERS for kind in frame.dtypes):
        return _standardised(frame.to_numpy(dtype=np.float64, na_value=np.nan)[rows], n_used)
    from ..tables import TableEncoder

    names = [name for name in frame.columns if isinstance(name, str)]
    if len(set(names)) < frame.shape[1]:
        frame = frame.set_axis([f"column {place}" for place in range(frame.shape[1])], axis=1)
    wanted = frame.iloc[rows]
    encoder = TableEncoder(max_levels=LEVELS, dtype="float64").fit(wanted.iloc[:n_used])
    if encoder.names_of("text"):  # the model reads what references cannot
        return None
    return np.asarray(encoder.transform(wanted))


def _standardised(values: Array, n_used: int | None) -> Array:
    """Medians in the gaps, with a flag for each column that has any; mean 0, deviation 1."""
    table = np.asarray(values, dtype=np.float64)
    known = np.isfinite(table)
    if not known.all():
        gaps, some = ~known[:n_used].all(axis=0), known[:n_used].any(axis=0)
        middle = np.zeros(table.shape[1])
        middle[some] = np.nanmedian(np.where(known, table, np.nan)[:n_used, some], axis=0)
        table = np.hstack([np.where(known, table, middle), (~known[:, gaps]).astype(float)])
    centre, spread = table[:n_used].mean(axis=0), table[:n_used].std(axis=0)
    return np.asarray((table - centre) / np.where(spread > 0.0, spread, 1.0))


def _scaled(matrix: Any, n_used: int | None) -> Any:
    """Columns of a sparse matrix divided by their deviation; zeros stay zeros."""
    part = matrix[:n_used]
    mean = np.asarray(part.mean(axis=0)).reshape(-1)
    square = np.asarray(part.multiply(part).mean(axis=0)).reshape(-1)
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    return (matrix @ sparse.diags_array(1.0 / np.where(spread > 0.0, spread, 1.0))).tocsr()
