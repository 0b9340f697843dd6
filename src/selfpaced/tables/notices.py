"""What no model needs to find: labels spelled in two ways, tiny classes, columns that give the target away, copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import row_keys
from .parsing import parse_numbers
from .schema import counts_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Aside", "few_of_a_kind", "label_variants", "notices", "unlike_copies"]

Rows = NDArray[np.intp]

TINY = 2  # a choice: rows of a class up to which nothing can be learnt of it
RARE = 0.1  # a choice: share of a label's rows up to which another one may be a slip of it
LETTERS = 4  # a choice: of shorter labels one letter makes another word
GIVEN_AWAY = 0.98  # a choice: share of the target that one column alone foretells, from which on it is asked about
FEW_COPIES = 0.05  # a choice: share of rows with a copy up to which copies are copies, and not coarse columns
SKEWED = 3.0  # a choice: the mean so many times the median
ENOUGH_ROWS = 50  # a choice: fewer rows say nothing of a column
SAMPLE = 20_000  # cost: rows looked at


@dataclass(frozen=True)
class Aside:
    """A row that is suspect before any model is fitted."""

    row: int
    expected: Any
    why: str
    probability: float = float("nan")


# ------------------------------------------------------------------------------------------------------- labels


def label_variants(labels: Any) -> dict[str, tuple[str, str]]:
    """Labels that differ from a more frequent one by case, spaces or one slip: label -> (the other, how they differ).

    >>> label_variants(np.array(["Adelie"] * 50 + ["adelie", "Adelie ", "Adelei"] + ["Gentoo"] * 40))["Adelei"]
    ('Adelie', 'one slip')
    """
    names, counts = np.unique(np.asarray(labels), return_counts=True)
    if names.dtype.kind not in "UO":
        return {}
    order = np.argsort(-counts, kind="stable")
    found: dict[str, tuple[str, str]] = {}
    known: dict[str, str] = {}
    for name in (str(names[k]) for k in order):
        plain = " ".join(name.split()).casefold()
        if plain in known:
            same = " ".join(name.split()) == " ".join(known[plain].split())
            found[name] = (known[plain], "spaces" if same else "case")
        else:
            known[plain] = name
    amount = dict(zip(names.tolist(), counts.tolist(), strict=True))
    plains = list(known)
    for place, plain in enumerate(plains):
        for other in plains[:place]:
            few = amount[known[plain]] <= max(1, RARE * amount[known[other]])
            if few and min(len(plain), len(other)) >= LETTERS and _one_slip(plain, other):
                found[known[plain]] = (known[other], "one slip")
                break
    return found


def _one_slip(a: str, b: str) -> bool:
    """Whether one letter more, less or other, or two in the wrong order, part two texts; digits are no slips."""
    if any(sign.isdigit() for sign in a + b) or abs(len(a) - len(b)) > 1:
        return False
    start = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rest = a[start:], b[start:]
    swapped = len(a) == len(b) and rest[0][:2] == rest[1][:2][::-1] and rest[0][2:] == rest[1][2:]
    return swapped or rest[0][1:] == rest[1][1:] or rest[0][1:] == rest[1] or rest[0] == rest[1][1:]


def few_of_a_kind(labels: Any) -> Rows:
    """Positions of labels of which there are only one or two.

    >>> few_of_a_kind(np.array(list("aaabbbc"))).tolist()
    [6]
    """
    _, codes, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[codes] <= TINY)


# ------------------------------------------------------------------------------------------------------- copies


def unlike_copies(frame: pd.DataFrame, labels: Any) -> tuple[list[Aside], str]:
    """Rows that are equal in every column and have another label than most of their copies, and a sentence about them.

    Where many rows have a copy, the columns are coarse and copies are no evidence: then there is only the sentence.
    """
    keys, labels = row_keys(frame), np.asarray(labels)
    ordered = np.sort(keys)
    if not np.any(ordered[1:] == ordered[:-1]):  # the usual case, in less time than finding the groups takes
        return [], ""
    group = np.unique(keys, return_inverse=True)[1]
    size = np.bincount(group)
    copies = np.flatnonzero(size[group] > 1)
    if not copies.size:
        return [], ""
    groups: dict[int, list[int]] = {}
    for row in copies.tolist():
        groups.setdefault(int(group[row]), []).append(row)
    unlike = [rows for rows in groups.values() if len(set(labels[rows].tolist())) > 1]
    if not unlike:
        return [], ""
    n = sum(len(rows) for rows in unlike)
    told = f"{n:,} rows are equal in every column and differ in the target ({len(unlike):,} groups)"
    if copies.size > FEW_COPIES * len(labels):
        return [], f"{told}: the columns are too coarse to tell them apart"
    found = []
    for rows in unlike:
        values, counts = np.unique(labels[rows], return_counts=True)
        most = values[counts.argmax()]
        for row in rows:
            if labels[row] != most:
                own = float(np.mean(labels[rows] == labels[row]))
                found.append(Aside(row, most, f"{counts.max()} of {len(rows)} equal rows have another target", 1 - own))
    return found, f"{told}: those in the minority are among the suspects"


# ------------------------------------------------------------------------------------------------------ notices


def notices(frame: pd.DataFrame, target: str, labels: Any, *, task: str, exclude: Any = ()) -> list[str]:
    """What somebody should look at before believing a fit: sentences, none of them an error.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows with a label, all columns.
    target : str
        The column of the labels.
    labels : array-like
        Labels or values.
    task : {"classification", "regression"}
    exclude : iterable of str
        Columns that are left out anyway.

    Returns
    -------
    list of str
    """
    used = [place for place in range(frame.shape[1]) if not _counts_rows(frame.iloc[:, place])]  # others are left out
    frame = frame.iloc[:, used]
    if len(frame) > SAMPLE:
        rows = np.linspace(0, len(frame) - 1, SAMPLE).astype(np.intp)
        frame, labels = frame.iloc[rows], np.asarray(labels)[rows]
    features = frame.drop(columns=[target, *exclude], errors="ignore")
    told = [*_header(frame), *_given_away(features, target, np.asarray(labels), task), *_counted(features)]
    return told + (_skew(target, np.asarray(labels, dtype=float)) if task == "regression" else [])


def _counts_rows(column: pd.Series) -> bool:
    from pandas.api import types

    return bool(types.is_integer_dtype(column.dtype)) and not column.isna().any() and counts_rows(column.to_numpy())


def _header(frame: pd.DataFrame) -> Iterator[str]:
    """A first line that was data: names that are numbers, or that their own column holds."""
    alike = sum(_is_number(name) or _holds(frame.iloc[:, k], name) for k, name in enumerate(frame.columns))
    if 2 * alike > len(frame.columns):
        shown = ", ".join(repr(str(name)) for name in frame.columns[:4])
        yield f"the first line looks like data ({shown}, ...): is there no header? (--no-header)"


def _holds(column: pd.Series, name: Any) -> bool:
    if column.dtype == object:  # of which some may be lists, that answer for each of their parts
        return any(isinstance(value, str) and value == name for value in column)
    return bool((column == name).any())


def _is_number(name: Any) -> bool:
    try:
        float(str(name).rsplit(".", 1)[0] if str(name).count(".") > 1 else str(name))
    except ValueError:
        return False
    return True


def _given_away(features: pd.DataFrame, target: str, labels: NDArray[Any], task: str) -> Iterator[str]:
    """Columns that alone foretell the target."""
    if len(labels) < ENOUGH_ROWS:
        return
    from pandas.api import types

    codes = np.unique(labels, return_inverse=True)[1] if task == "classification" else None
    for place, name in enumerate(features.columns):
        column = features.iloc[:, place]
        numbers = None
        if not types.is_datetime64_any_dtype(column.dtype) and not types.is_bool_dtype(column.dtype):
            numbers = column if types.is_numeric_dtype(column.dtype) else parse_numbers(column.astype(str))
            numbers = None if numbers.notna().mean() < 0.95 else numbers.to_numpy(dtype=float, na_value=np.nan)
        share = _foretold(column, numbers, labels, codes)
        if share >= GIVEN_AWAY:
            named = repr(str(name))
            yield f"column {named} alone foretells {target!r} ({share:.1%}): leave it out? (--exclude {named})"


def _foretold(column: pd.Series, numbers: Any, labels: NDArray[Any], codes: Any) -> float:
    """How much of the target one column foretells of rows it was not matched on: a share of rows, or of ranks."""
    import pandas as pd

    if codes is None:
        if numbers is None:
            return 0.0
        known = np.isfinite(numbers)
        if known.sum() < ENOUGH_ROWS or np.ptp(numbers[known]) == 0:
            return 0.0
        ranks = pd.Series(numbers[known]).rank(), pd.Series(np.asarray(labels, dtype=float)[known]).rank()
        return float(ranks[0].corr(ranks[1]) ** 2)
    half = np.arange(len(codes)) % 2 == 0
    most = np.bincount(codes).max() / len(codes)
    if numbers is not None and pd.Series(numbers).nunique() > 20:
        from sklearn.tree import DecisionTreeClassifier

        filled = np.where(np.isfinite(numbers), numbers, np.nanmedian(numbers))[:, None]
        tree = DecisionTreeClassifier(max_leaf_nodes=2 * int(codes.max() + 1), random_state=0)
        right = [np.mean(tree.fit(filled[a], codes[a]).predict(filled[~a]) == codes[~a]) for a in (half, ~half)]
    else:
        values = pd.factorize(column.astype(str))[0]
        if values.max() + 1 > len(codes) / 5:
            return 0.0
        right = [_matched(values, codes, a) for a in (half, ~half)]
    share = float(np.mean(right))
    return share if share > most + 0.5 * (1 - most) else 0.0


def _matched(values: Any, codes: Any, rows: Any) -> float:
    table = np.zeros((values.max() + 1, codes.max() + 1))
    np.add.at(table, (values[rows], codes[rows]), 1)
    return float(np.mean(table.argmax(axis=1)[values[~rows]] == codes[~rows]))


def _counted(features: pd.DataFrame) -> Iterator[str]:
    """Whole numbers of which every row has its own."""
    from pandas.api import types

    for place, name in enumerate(features.columns):
        column = features.iloc[:, place]
        if types.is_integer_dtype(column.dtype) and len(column) >= ENOUGH_ROWS and column.is_unique:
            yield f"column {str(name)!r} has another whole number in every row: is it an id? (--exclude {str(name)!r})"


def _skew(target: str, values: NDArray[np.float64]) -> list[str]:
    middle, mean = float(np.median(values)), float(np.mean(values))
    if len(values) < ENOUGH_ROWS or values.min() < 0 or middle <= 0 or mean < SKEWED * middle:
        return []
    return [
        f"the values of {target!r} are skewed (half are below {middle:.4g}, their mean is {mean:.4g}): their "
        "logarithm may be easier to model"
    ]
