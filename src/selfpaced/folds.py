"""Folds: which rows are held out together; the same for every estimator that holds rows out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from .fingerprint import N_FOLDS, Keys, content_keys, mixed

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]


def make_folds(
    keys: Keys,
    strata: NDArray[Any] | None,
    *,
    cv: Any,
    groups: Any = None,
    random_state: Any = None,
    X: Any = None,
    y: Any = None,
) -> list[Split]:
    """Training and test rows of every fold; every row is tested exactly once.

    Which fold a row is in follows from what it holds, not from where it stands: the order of rows does not matter, and
    equal rows share a fold, so that no copy of a held-out row leaks its label, and a row of weight 2 is the same
    as that row twice. The exception is a table of few distinct rows, see `units`.

    Parameters
    ----------
    keys : ndarray of uint64
        The content of every row, from :func:`~selfpaced.fingerprint.content_keys`.
    strata : ndarray of int or None
        Class codes to be spread evenly over the folds; None treats all rows alike.
    cv : int, splitter or iterable
        A number makes shuffled folds, fewer of them where there are too few rows or groups; rows of a
        class that one row alone (with its copies) holds are in every training fold and in no test fold. A
        scikit-learn splitter is used as it is.
    groups : array-like or None
        Rows of one group stay together.
    random_state : int, RandomState or None
        Shuffles the rows.
    X, y : array-like, optional
        Given to a splitter.

    Returns
    -------
    list of (train, test) index arrays
        In an order that follows from what the rows hold, too.
    """
    if not isinstance(cv, int | np.integer):
        return _given_folds(cv, X, y, groups, len(keys))
    if cv < 2:
        raise ValueError(f"cv must be an integer >= 2, a splitter or an iterable of splits, got {cv!r}")
    rng = check_random_state(random_state)
    codes = np.zeros(len(keys), dtype=np.intp) if strata is None else np.asarray(strata, dtype=np.intp)
    order = _order(keys, codes, y)
    if groups is not None:
        return _splits(_group_folds(np.asarray(groups), keys, codes, int(cv), rng), order)
    return _splits(_content_folds(mixed(keys, int(rng.randint(1 << 31))), codes, y, int(cv), strata is not None), order)


def units(keys: Keys, codes: Rows | None = None, y: Any = None) -> Rows:
    """The unit of every row that is held out as a whole, numbered in the order of the keys: equal rows are one.

    In a table of few distinct rows, each there more often than there are folds, every row is a unit: copies are further
    observations there, and a model that has not seen any of them is asked about what it cannot know.
    """
    found = np.unique(keys, return_inverse=True)[1].reshape(-1)
    if keys.size <= N_FOLDS * (int(found.max(initial=-1)) + 1):
        return np.asarray(found, dtype=np.intp)
    order = _order(keys, np.zeros(keys.size, dtype=np.intp) if codes is None else codes, y)
    found[order] = np.arange(keys.size)
    return np.asarray(found, dtype=np.intp)


def n_units(keys: Keys, unused: NDArray[np.bool_] | None = None) -> int:
    """How many units there are among the rows that are used."""
    return int(units(keys if unused is None else keys[~unused]).max(initial=-1)) + 1


def _order(keys: Keys, codes: Rows, y: Any) -> Rows:
    """Rows in an order that does not depend on where they stand; rows that are equal throughout may be exchanged."""
    return np.lexsort((codes, keys) if y is None else (content_keys(y), codes, keys))


def _content_folds(keys: Keys, codes: Rows, y: Any, cv: int, stratified: bool) -> Rows:
    """The fold of every row, -1 where it is never held out."""
    unit = units(keys, codes, y)
    n_units, n_codes = int(unit.max(initial=-1)) + 1, int(codes.max(initial=0)) + 1
    held = np.ones(n_codes, dtype=bool)
    if stratified:
        pairs = np.unique(unit * n_codes + codes)
        held = np.bincount(pairs % n_codes, minlength=n_codes) > 1
    stratum = np.full(n_units, n_codes, dtype=np.intp)
    np.minimum.at(stratum, unit, np.where(held[codes], codes, n_codes))
    assigned = np.flatnonzero(stratum < n_codes)
    in_turn = assigned[np.argsort(stratum[assigned], kind="stable")]  # each class is spread evenly over the folds
    place = np.full(n_units, -1, dtype=np.intp)
    place[in_turn] = np.arange(assigned.size) % max(min(cv, assigned.size), 1)
    return np.where(held[codes], place[unit], -1)


def _splits(fold: Rows, order: Rows) -> list[Split]:
    fold = fold[order]
    return [(order[fold != k], order[fold == k]) for k in range(int(fold.max(initial=-1)) + 1) if np.any(fold == k)]


def _group_folds(groups: NDArray[Any], keys: Keys, codes: Rows, cv: int, rng: Any) -> Rows:
    """Whole groups, largest first, each into the fold whose class counts it evens out most; copies count once."""
    names, member = np.unique(groups, return_inverse=True)
    if names.size < 2:
        raise ValueError(f"groups must have at least 2 distinct values to cross-fit, got {names.size}")
    k = min(cv, names.size)
    order = np.lexsort((codes, keys, member))
    listed = np.stack([member[order].astype(np.uint64), keys[order], codes[order].astype(np.uint64)])
    distinct = order[np.r_[True, np.any(listed[:, 1:] != listed[:, :-1], axis=0)]]
    table = np.zeros((names.size, int(codes.max()) + 1))
    np.add.at(table, (member[distinct], codes[distinct]), 1.0)
    table /= np.maximum(table.sum(axis=0), 1.0)
    filled, place = np.zeros((k, table.shape[1])), np.empty(names.size, dtype=np.intp)
    turn = rng.permutation(names.size)
    for g in turn[np.argsort(-table[turn].max(axis=1), kind="stable")]:
        place[g] = int(np.argmin(((filled + table[g]) ** 2 - filled**2).sum(axis=1)))
        filled[place[g]] += table[g]
    return place[member]


def _given_folds(cv: Any, X: Any, y: Any, groups: Any, n_rows: int) -> list[Split]:
    splits = _pairs(cv, X, y, groups)
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


def _pairs(cv: Any, X: Any, y: Any, groups: Any) -> list[Split]:
    """The splits of a splitter, or those that an iterable holds."""
    if hasattr(cv, "split"):
        return [(np.asarray(a), np.asarray(b)) for a, b in check_cv(cv).split(X, y, groups)]
    try:
        return [(np.asarray(a, dtype=np.intp), np.asarray(b, dtype=np.intp)) for a, b in check_cv(cv).split(X, y)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"cv must hold pairs of training and test rows, got {cv!r} ({error})") from error
