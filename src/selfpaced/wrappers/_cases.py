"""Rows as the reference models use them: split by their content, without duplicates, as a table of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..fingerprint import mixed
from ..folds import Rows, Split, hash_folds, make_folds, row_keys, units

__all__ = ["Array", "Cases", "cases_of", "content_splits", "numeric_table", "unit_keys"]

Array = NDArray[Any]
LEVELS = 20  # cost: indicators that a categorical column becomes at most
NUMBERS = "biuf"
THIN = 200  # cost: columns up to which a sparse matrix is converted to a dense table


# ----------------------------------------------------------------------------------------------------------- splits


def unit_keys(keys: Array, codes: Array | None = None) -> Array:
    """Return the keys by which rows are held out: equal rows together, unless the table has few distinct rows."""
    unit = units(keys, codes)
    repeated = np.unique(keys).size < len(keys) == int(unit.max(initial=-1)) + 1
    return mixed(unit.astype(np.uint64), 0) if repeated else keys


def content_splits(
    keys: Array,
    n_folds: int,
    *,
    codes: Array | None = None,
    y: Array | None = None,
    used: Array | None = None,
    groups: Any = None,
    seed: int = 0,
) -> list[Split]:
    """Return training and test rows of folds that follow from the content of the rows.

    A row keeps its fold when others come or go, equal rows share one, and the order of the rows does not matter. Groups
    are spread evenly over the folds instead. A class with rows in one fold alone is never held out.

    Parameters
    ----------
    keys : ndarray of uint64
        The content of every row.
    n_folds : int
        Number of folds.
    codes : ndarray of int, optional
        Class of every row.
    y : ndarray, optional
        Values, which order rows of equal content.
    used : ndarray of bool, optional
        Rows that have weight.
    groups : array-like, optional
        Rows of one group stay together.
    seed : int
        Each seed is another split.

    Returns
    -------
    list of (train, test)
    """
    if groups is not None:
        return make_folds(keys, codes, cv=n_folds, groups=groups, random_state=seed, y=y)
    fold = hash_folds(unit_keys(keys, codes), n_folds, repetition=seed)
    if codes is not None:
        known = np.ones(len(keys), dtype=bool) if used is None else used
        present = np.zeros((n_folds, int(codes.max(initial=0)) + 1), dtype=bool)
        present[fold[known], codes[known]] = True
        fold = np.where((present.sum(axis=0) < 2)[codes], -1, fold)
    ties = (keys,) if codes is None else (codes, keys)
    order = np.lexsort(ties if y is None else (row_keys(y), *ties))
    fold = fold[order]
    return [(order[fold != k], order[fold == k]) for k in range(n_folds) if np.any(fold == k) and np.any(fold != k)]


# ------------------------------------------------------------------------------------------------------------ cases


@dataclass(frozen=True, eq=False)
class Cases:
    """Distinct rows and labels. Copies are one case of more weight.

    Attributes
    ----------
    first : ndarray of int of shape (n_cases,)
        A row of each case.
    of_row : ndarray of int of shape (n_rows,)
        The case of each row.
    codes, weight : ndarray of shape (n_cases,)
        Given label and weight.
    keys, held : ndarray of uint64 of shape (n_cases,)
        Content of the rows, and what is held out as a whole: equal rows, or a group.
    n_classes : int
        Number of classes.
    n_used : int
        Cases with any weight. They come first; the others are assessed by all models.
    trusted : ndarray of bool of shape (n_cases,)
        Whether a person has confirmed the label.
    groups : ndarray or None
        Groups of the cases.
    """

    first: Rows
    of_row: Rows
    codes: Rows
    weight: Array
    keys: Array
    held: Array
    n_classes: int
    n_used: int
    trusted: Array
    groups: Array | None = None

    @property
    def n_units(self) -> int:
        """Number of cases that can be held out separately."""
        return int(units(self.keys[: self.n_used]).max(initial=-1)) + 1

    @property
    def unused(self) -> Rows:
        """Cases without weight."""
        return np.arange(self.n_used, len(self.codes))

    @property
    def hard(self) -> Array:
        """Given labels as probabilities."""
        return np.eye(self.n_classes)[self.codes]

    def splits(self, n_folds: int, seed: int = 0) -> list[Split]:
        """Return folds of the cases."""
        used = slice(0, self.n_used)
        groups = None if self.groups is None else self.groups[used]
        folds = content_splits(self.keys[used], n_folds, codes=self.codes[used], groups=groups, seed=seed)
        return [(train, np.concatenate([test, self.unused])) for train, test in folds]

    def given_splits(self, splits: list[Split]) -> list[Split]:
        """Return splits of the rows as splits of the cases."""
        return [(np.unique(self.of_row[train]), np.unique(self.of_row[test])) for train, test in splits]

    def halves(self, seed: int) -> list[Split]:
        """Return both halves of a split; training cases have weight."""
        first = hash_folds(self.held[: self.n_used], 2, repetition=seed) == 0
        sides = [np.flatnonzero(first), np.flatnonzero(~first)]
        pairs = [(sides[0], sides[1]), (sides[1], sides[0])] if min(map(len, sides)) else []
        return [(train, np.concatenate([test, self.unused])) for train, test in pairs]


def cases_of(
    X: Any, codes: Rows, n_classes: int, prior: Array | None = None, groups: Any = None, trusted: Array | None = None
) -> Cases:
    """Return the distinct rows of a table.

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
    group = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    weight = np.ones(n) if prior is None else np.asarray(prior, dtype=float)
    listed = np.stack([np.zeros(n, dtype=np.intp) if group is None else group, unit, codes, weight == 0.0])
    order = np.lexsort(listed[[2, 1, 0, 3]])
    listed = listed[:, order]
    begins = np.r_[True, np.any(listed[:, 1:] != listed[:, :-1], axis=0)]
    of_row = np.empty(n, dtype=np.intp)
    of_row[order] = np.cumsum(begins) - 1
    first = order[begins]
    total, sure = np.bincount(of_row, weight), np.zeros(len(first), dtype=bool)
    if trusted is not None:
        np.logical_or.at(sure, of_row, trusted)
    held = unit_keys(keys, codes) if group is None else mixed(group.astype(np.uint64), 0)
    return Cases(
        first, of_row, codes[first], total, keys[first], held[first], n_classes, int(np.sum(total > 0.0)), sure,
        None if group is None else group[first],
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------- a table of numbers


def numeric_table(X: Any, rows: Any = slice(None), n_used: int | None = None) -> Any:
    """Return standardised numbers with missing values flagged and categories as indicators; None if X is no table.

    A wide sparse matrix stays sparse.

    Parameters
    ----------
    X : array, sparse matrix, frame or sequence
        Rows of any kind.
    rows : ndarray of int, optional
        Rows that are wanted.
    n_used : int, optional
        Medians, spreads and categories are learnt from the first ``n_used`` of them.

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
    """Return features of some rows; the kind of a column is read off the rows that are used."""
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
    if encoder.names_of("text"):  # only the wrapped model can read text
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
