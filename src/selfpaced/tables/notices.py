"""Checks of a table before the fit: they report, and never change data."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import row_keys
from .cells import CellLevels, NumberFormat
from .columns import counts_rows
from .labels import label_notices, spaced_labels

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["conflicting_duplicates", "notices", "summary_rows"]

LEAK = 0.98  # a choice: share of the target that one column alone predicts, from which on it may be a leak
SKEWED = 3.0  # a choice: the mean so many times the median
ENOUGH_ROWS = 50  # a choice: fewer rows say nothing about a column
CELLS = 1_000_000  # cost: cells that the check for leakage looks at
SHOWN = 5  # display: columns that are named one by one
LAST = 5  # a choice: rows at the end of a table that may be a summary of the others
_SUMMARY = re.compile(
    r"(grand |sub)?totals?|sum|avg\.?|average|mean|median|min(imum)?|max(imum)?|std\.?( ?dev\.?)?|count"
    r"|n ?= ?[\d., ]+",
    re.IGNORECASE,
)


def notices(frame: pd.DataFrame, target: str, labels: Any, *, task: str, exclude: Any = ()) -> list[str]:
    """Return what somebody should look at before believing a fit: sentences, none of them an error.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows with a label, all columns.
    target : str
        The column of the labels.
    labels : array-like
        Labels or values, as they are fitted.
    task : {"classification", "regression"}
    exclude : iterable of str
        Columns that are left out anyway.

    Returns
    -------
    list of str
    """
    labels = np.asarray(labels)
    features = frame.drop(columns=[target, *exclude], errors="ignore")
    told = [*spaced_labels(frame[target]), *label_notices(labels)] if task == "classification" else []
    told += [*_header(frame), *summary_rows(frame)]
    rows = max(CELLS // max(features.shape[1], 1), ENOUGH_ROWS)
    if len(frame) > rows:
        places = np.linspace(0, len(frame) - 1, rows).astype(np.intp)
        told += _leaks(features.iloc[places], target, labels[places], task)
    else:
        told += _leaks(features, target, labels, task)
    told += _identifiers(features)
    if task == "regression":
        return told + _skew(target, labels.astype(float))
    count, groups = conflicting_duplicates(features, labels)
    if count:
        what = f"{count:,} rows are equal in every column but have different labels"
        told.append(f"{what} ({groups:,} group{'s' * (groups > 1)})")
    return told


def conflicting_duplicates(frame: pd.DataFrame, labels: Any) -> tuple[int, int]:
    """Return how many rows are equal in every column to one with another label, and how many groups they form.

    >>> import pandas as pd
    >>> conflicting_duplicates(pd.DataFrame({"x": [1, 1, 2, 2]}), ["a", "b", "c", "c"])
    (2, 1)
    """
    import pandas as pd

    group, codes = (pd.factorize(values)[0] for values in (row_keys(frame), np.asarray(labels)))
    rows = pd.DataFrame({"group": group, "label": codes})
    repeated = rows[rows["group"].duplicated(keep=False)]
    different = repeated.groupby("group")["label"].nunique() > 1
    return int(repeated["group"].isin(different.index[different]).sum()), int(different.sum())


# ------------------------------------------------------------------------------------------------------ columns


def _header(frame: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence if the first line was data: names that are numbers, or that their own column holds."""
    alike = sum(_is_number(name) or _holds(frame.iloc[:, k], name) for k, name in enumerate(frame.columns))
    if 2 * alike > len(frame.columns):
        shown = ", ".join(repr(str(name)) for name in frame.columns[:4])
        yield f"the first line looks like data ({shown}, ...): is there no header? (--no-header)"


def _holds(column: pd.Series, name: Any) -> bool:
    from pandas.api import types

    if types.is_numeric_dtype(column.dtype) or types.is_datetime64_any_dtype(column.dtype):
        return False  # the name is no number
    if types.is_object_dtype(column.dtype):  # some cells may be lists
        return any(isinstance(value, str) and value == name for value in column)
    return bool((column == name).any())


def _is_number(name: Any) -> bool:
    try:
        float(str(name).rsplit(".", 1)[0] if str(name).count(".") > 1 else str(name))
    except ValueError:
        return False
    return True


def summary_rows(frame: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence if one of the last rows sums up those above it: ``AVG``, ``Total``, ``N = 567``."""
    from pandas.api import types

    for name, end in frame.iloc[-LAST:].items():
        if types.is_numeric_dtype(end.dtype) or types.is_datetime64_any_dtype(end.dtype):
            continue
        words = [value for value in end if isinstance(value, str) and _SUMMARY.fullmatch(value.strip())]
        if words and not frame[name].iloc[:-LAST].isin(words).any():
            yield f"one of the last rows looks like a summary ({words[0]!r} in column {str(name)!r}): remove such rows"
            return


def _leaks(features: pd.DataFrame, target: str, labels: NDArray[Any], task: str) -> Iterator[str]:
    """Yield a sentence on the columns that alone predict the target."""
    if len(labels) < ENOUGH_ROWS or not features.shape[1]:
        return
    order = np.random.default_rng(0).permutation(len(labels))  # equal cells must not stand in the order of the labels
    names, matrix = _cells_as_numbers(features.iloc[order])
    shares = _rank_shares(matrix, labels[order]) if task == "regression" else _class_shares(matrix, labels[order])
    for place in np.flatnonzero(shares >= LEAK)[:SHOWN]:
        what = f"column {names[place]!r} alone predicts {target!r} ({shares[place]:.1%}): possible leakage"
        yield f"{what}. Exclude it with --exclude {shlex.quote(names[place])}"
    more = int(np.count_nonzero(shares >= LEAK)) - SHOWN
    if more > 0:
        yield f"{more:,} more columns each predict {target!r} alone"


def _cells_as_numbers(features: pd.DataFrame) -> tuple[list[str], NDArray[np.float64]]:
    """Return names and cells of the columns that have values; words are numbered as they come."""
    from pandas.api import types

    plain = [types.is_numeric_dtype(kind) for kind in features.dtypes]
    matrix = np.empty(features.shape)
    matrix[:, plain] = features.loc[:, plain].to_numpy(dtype=float, na_value=np.nan)
    for place in np.flatnonzero(np.logical_not(plain)):
        column = features.iloc[:, place]
        if types.is_datetime64_any_dtype(column.dtype):
            matrix[:, place] = np.where(column.isna(), np.nan, column.astype("int64"))
            continue
        levels = CellLevels.of(column.astype(str).where(column.notna()))
        found = NumberFormat.find(levels, ".")
        numbers = np.arange(len(levels.texts), dtype=float) if found is None else found.parse(levels)
        matrix[:, place] = np.append(numbers, np.nan)[levels.codes]
    known = ~np.isnan(matrix).all(axis=0)
    return [str(name) for name in features.columns[known]], matrix[:, known]


def _rank_shares(matrix: NDArray[np.float64], values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the squared rank correlation of every column with the target."""
    import pandas as pd

    ranks = pd.DataFrame(matrix).rank()
    with np.errstate(invalid="ignore", divide="ignore"):
        found = ranks.corrwith(pd.Series(np.asarray(values, dtype=float)).rank()).to_numpy()
    enough = np.isfinite(matrix).sum(axis=0) >= ENOUGH_ROWS
    return np.where(enough, np.nan_to_num(found) ** 2, 0.0)


def _class_shares(matrix: NDArray[np.float64], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of labels that every column predicts: in its order, equal labels are neighbours.

    A row in the wrong place makes two changes of the label, and k classes make k - 1 changes anyway. A share counts
    only if it halves the errors of a column in random order, so that rare classes are no leak.
    """
    codes, counts = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    pairs = 2.0 * (len(labels) - 1)
    ordered = codes[np.argsort(matrix, axis=0, kind="stable")]
    changes = np.count_nonzero(ordered[1:] != ordered[:-1], axis=0) - (len(counts) - 1)
    by_chance = (1.0 - np.sum(np.square(counts / len(labels)))) / 2.0
    return np.where(changes / pairs <= by_chance / 2.0, 1.0 - changes / pairs, 0.0)


def _identifiers(features: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on whole numbers of which every row has its own."""
    from pandas.api import types

    for place, kind in enumerate(features.dtypes):
        if types.is_integer_dtype(kind) and len(features) >= ENOUGH_ROWS:
            column, name = features.iloc[:, place], str(features.columns[place])
            if column.is_unique and not (column.notna().all() and counts_rows(column.to_numpy())):
                what = f"column {name!r} has another whole number in every row"
                yield f"{what}: is it an identifier? (--exclude {shlex.quote(name)})"


def _skew(target: str, values: NDArray[np.float64]) -> list[str]:
    middle, mean = float(np.median(values)), float(np.mean(values))
    if len(values) < ENOUGH_ROWS or values.min() < 0 or middle <= 0 or mean < SKEWED * middle:
        return []
    return [
        f"the values of {target!r} are skewed (half are below {middle:.4g}, their mean is {mean:.4g}): their "
        "logarithm may be easier to model"
    ]
