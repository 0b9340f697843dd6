"""Folds: which rows are held out together, and dealt out how; the same for every estimator that holds rows out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]


def deal(order: Rows, strata: NDArray[Any] | None, n_folds: int) -> Rows:
    """The fold of every row: rows in the given order are dealt out in turn, class by class.

    Parameters
    ----------
    order : ndarray of int
        Row numbers in the order in which they are dealt (all of them, or some).
    strata : ndarray of int or None
        Class of every row; each class is spread evenly over the folds.
    n_folds : int
        Number of folds.

    Returns
    -------
    ndarray of int
        One fold per entry of ``order``, in that order.

    Examples
    --------
    >>> deal(np.arange(4), np.array([0, 1, 0, 1]), 2).tolist()
    [0, 0, 1, 1]
    """
    turn = np.arange(order.size) if strata is None else np.argsort(strata[order], kind="stable")
    fold = np.empty(order.size, dtype=np.intp)
    fold[turn] = np.arange(order.size) % max(n_folds, 1)
    return fold


def make_folds(
    n_rows: int,
    strata: NDArray[Any] | None,
    *,
    cv: Any,
    groups: Any = None,
    random_state: Any = None,
    X: Any = None,
    y: Any = None,
) -> list[Split]:
    """Training and test rows of every fold; every row is tested exactly once.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    strata : ndarray of int or None
        Class codes to be dealt evenly into the folds; None deals rows at random.
    cv : int, splitter or iterable
        A number makes shuffled folds, fewer of them where there are too few rows or groups; rows of a
        class with a single member are in every training fold and in no test fold. A scikit-learn splitter
        is used as it is.
    groups : array-like or None
        Rows of one group stay together.
    random_state : int, RandomState or None
        Shuffles the rows.
    X, y : array-like, optional
        Given to a splitter.

    Returns
    -------
    list of (train, test) index arrays
    """
    if not isinstance(cv, int | np.integer):
        return _given_folds(cv, X, y, groups, n_rows)
    if cv < 2:
        raise ValueError(f"cv must be an integer >= 2, a splitter or an iterable of splits, got {cv!r}")
    rng = check_random_state(random_state)
    if groups is not None:
        return _group_folds(np.asarray(groups), strata, int(cv), rng)
    order = rng.permutation(n_rows)
    if strata is not None:
        order = order[np.bincount(strata)[strata[order]] > 1]
    fold = np.full(n_rows, -1, dtype=np.intp)
    fold[order] = deal(order, strata, min(int(cv), order.size))
    return _splits(fold)


def _splits(fold: Rows) -> list[Split]:
    return [
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k))
        for k in range(int(fold.max(initial=-1)) + 1)
        if np.any(fold == k)
    ]


def _group_folds(groups: NDArray[Any], strata: NDArray[Any] | None, cv: int, rng: Any) -> list[Split]:
    """Whole groups, largest first, each into the fold whose class counts it evens out most."""
    names, member = np.unique(groups, return_inverse=True)
    if names.size < 2:
        raise ValueError(f"groups must have at least 2 distinct values to cross-fit, got {names.size}")
    k = min(cv, names.size)
    codes = np.zeros(groups.size, dtype=np.intp) if strata is None else strata
    table = np.zeros((names.size, int(codes.max()) + 1))
    np.add.at(table, (member, codes), 1.0)
    table /= table.sum(axis=0)
    filled, place = np.zeros((k, table.shape[1])), np.empty(names.size, dtype=np.intp)
    order = rng.permutation(names.size)
    for g in order[np.argsort(-table[order].max(axis=1), kind="stable")]:
        place[g] = int(np.argmin(((filled + table[g]) ** 2 - filled**2).sum(axis=1)))
        filled[place[g]] += table[g]
    return _splits(place[member])


def _given_folds(cv: Any, X: Any, y: Any, groups: Any, n_rows: int) -> list[Split]:
    splits = [(np.asarray(a), np.asarray(b)) for a, b in check_cv(cv).split(X, y, groups)]
    tested = np.zeros(n_rows, dtype=np.intp)
    for _, test in splits:
        tested[test] += 1
    if np.any(tested != 1):
        raise ValueError(
            "cv must test every row exactly once, because every row needs a loss from a model that did not "
            f"see it; got {int(np.sum(tested == 0))} rows never tested and {int(np.sum(tested > 1))} tested "
            "repeatedly. Use a K-fold splitter or an integer."
        )
    return splits


__all__ = ["Rows", "Split", "deal", "make_folds"]
