"""Checks of a table before the fit: they report, and never change data; labels are merged on request."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import row_keys
from ..formatting import listed, percent, plural
from .cells import MISSING, CellLevels, NumberFormat, are_days
from .columns import is_identifier, levels_of
from .text import suggestion

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "column_findings",
    "conflicting_duplicates",
    "label_text",
    "label_variants",
    "merge_labels",
    "notices",
    "read_merges",
    "summary_rows",
]

LEAK = 0.98  # a choice: share of the target that one column alone predicts, from which on it may be a leak
ENOUGH_ROWS = 50  # a choice: fewer rows say nothing about a column
LEAKAGE_CELLS = 1_000_000  # cost: cells that the check for leakage looks at
SHOWN = 5  # display: columns and labels that are named one by one
TINY_CLASS = 2  # a choice: rows of a label up to which it may be a typo of another
FEWEST_ROWS = 10  # a choice: rows of a class below which no row of it is assessed
SHORT_LABEL = 4  # a choice: letters of a label up to which one other letter makes another word
_SUMMARY = re.compile(
    r"(grand |sub)?totals?|sum|avg\.?|average|mean|median|min(imum)?|max(imum)?|std\.?( ?dev\.?)?|count"
    r"|n ?= ?[\d., ]+",
    re.IGNORECASE,
)


def notices(frame: pd.DataFrame, target: str, labels: Any, *, task: str, exclude: Any = ()) -> list[str]:
    """Return findings to read before a fit, as sentences; none of them is an error.

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
    told = [*_spaced_labels(frame[target]), *_label_notices(labels)] if task == "classification" else []
    told += [*(list(_repeated_header(frame)) or _header(frame)), *summary_rows(frame)]
    rows = min(len(frame), max(LEAKAGE_CELLS // max(features.shape[1], 1), ENOUGH_ROWS))
    places = np.linspace(0, len(frame) - 1, rows).astype(np.intp)
    told += _leaks(features.iloc[places], target, labels[places], task)
    told += _identifiers(features)
    if task == "classification" and features.shape[1]:
        count, groups = conflicting_duplicates(features, labels)
        if count:
            what = f"{count:,} rows are equal in every column but have different labels"
            told.append(f"{what} ({plural(groups, 'group')})")
    return told


# ----------------------------------------------------------------------------------------------------------- rows


def conflicting_duplicates(frame: pd.DataFrame, labels: Any) -> tuple[int, int]:
    """Return how many rows are equal in every column to one with another label, and how many groups they form.

    >>> import pandas as pd
    >>> conflicting_duplicates(pd.DataFrame({"x": [1, 1, 2, 2]}), ["a", "b", "c", "c"])
    (2, 1)
    """
    import pandas as pd

    keys = pd.Series(row_keys(frame))
    repeated = keys.duplicated(keep=False).to_numpy()
    if not repeated.any():
        return 0, 0
    groups = pd.Series(np.asarray(labels)[repeated]).groupby(keys[repeated].to_numpy())
    different = groups.transform("nunique") > 1
    return int(different.sum()), int(sum(groups.nunique() > 1))


def summary_rows(frame: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence if one of the last five rows sums up those above it: ``AVG``, ``Total``, ``N = 567``."""
    from pandas.api import types

    for name, end in frame.iloc[-5:].items():
        if types.is_numeric_dtype(end.dtype) or types.is_datetime64_any_dtype(end.dtype):
            continue
        words = [value for value in end if isinstance(value, str) and _SUMMARY.fullmatch(value.strip())]
        if words and not frame[name].iloc[:-5].isin(words).any():
            yield f"one of the last rows looks like a summary ({words[0]!r} in column {str(name)!r}): remove such rows"
            return


# -------------------------------------------------------------------------------------------------------- columns


def column_findings(features: pd.DataFrame) -> list[str]:
    """Return a sentence for every column that is empty, constant or of mixed type.

    >>> import pandas as pd
    >>> column_findings(pd.DataFrame({"a": [1, 1, 1], "b": [None, None, None]}))
    ["column 'a' is constant (1)", "column 'b' is empty"]
    """
    found = (_column(features.iloc[:, place]) for place in range(features.shape[1]))
    named = zip(features.columns, found, strict=True)
    return [f"column {str(name)!r} {text}" for name, text in named if text]


def _column(column: pd.Series) -> str:
    levels = levels_of(column)
    if levels is None and column.dtype == object:  # lists and the like
        return ""
    known = column.dropna().unique() if levels is None else levels.shown
    if not len(known):
        return "is empty"
    if len(known) == 1:
        share = float(np.mean(column.isna() if levels is None else levels.codes < 0))
        return f"is constant ({label_text(known[0])})" + f" or missing ({percent(share)})" * (share > 0)
    numbers = None if levels is None else NumberFormat.find(levels, ".")
    if levels is None or numbers is None:
        return ""
    odd = np.flatnonzero(np.isnan(numbers.parse(levels)))
    examples = ", ".join(repr(levels.shown[place]) for place in odd[:3])
    cells = plural(int(levels.counts[odd].sum()), "cell")
    return f"has numbers, but {cells} of text (such as {examples})" if odd.size else ""


def _header(frame: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence if the first line was data: most names are numbers, or cells of their own column."""
    names = [str(name) for name in frame.columns]
    numbers = [re.fullmatch(r"-?\d*\.?\d+(\.\d+)?", name) is not None for name in names]
    cells = [name in set(frame[name].iloc[:1000].astype(str)) for name in frame.columns]
    if 2 * int(np.sum(np.logical_or(numbers, cells))) > len(names):
        shown = ", ".join(map(repr, names[:4]))
        yield f"the first line looks like data ({shown}, ...): is there no header? (--no-header)"


def _repeated_header(frame: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence if the column names stand among the rows, as where files were put one after another."""
    if any(column.dtype.kind in "biufM" for _, column in frame.items()):  # such a row makes every column text
        return
    count = int((frame.astype(str) == [str(name) for name in frame.columns]).all(axis=1).sum())
    if count:
        yield f"{plural(count, 'row')} {'repeats' if count == 1 else 'repeat'} the column names: remove such rows"


def _identifiers(features: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on whole numbers of which every row has its own, unless they are not used anyway."""
    from pandas.api import types

    for name, column in features.items():
        if not types.is_integer_dtype(column.dtype) or len(column) < ENOUGH_ROWS or not column.is_unique:
            continue
        values = column.to_numpy()
        if column.hasnans or not (are_days(values) or is_identifier(str(name), values)):
            what = f"column {str(name)!r} has a different whole number in every row"
            yield f"{what}: is it an identifier? (--exclude {shlex.quote(str(name))})"


def _leaks(features: pd.DataFrame, target: str, labels: NDArray[Any], task: str) -> Iterator[str]:
    """Yield a sentence on the columns that alone predict the target."""
    if len(labels) < ENOUGH_ROWS or not features.shape[1]:
        return
    order = np.random.default_rng(0).permutation(len(labels))  # equal cells must not stand in the order of the labels
    names, matrix = _cells_as_numbers(features.iloc[order])
    shares = _rank_shares(matrix, labels[order]) if task == "regression" else _class_shares(matrix, labels[order])
    leaks = np.flatnonzero(shares >= LEAK)
    for place in leaks[:SHOWN]:
        what = f"column {names[place]!r} alone predicts {target!r} ({percent(shares[place], 1)}): possible leakage"
        yield f"{what}. Exclude it with --exclude {shlex.quote(names[place])}"
    if leaks.size > SHOWN:
        yield f"{leaks.size - SHOWN:,} more columns each predict {target!r} alone"


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

    with np.errstate(invalid="ignore", divide="ignore"):
        found = pd.DataFrame(matrix).rank().corrwith(pd.Series(np.asarray(values, dtype=float)).rank()).to_numpy()
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
    by_chance = (len(labels) - 1) * (1.0 - np.sum(np.square(counts / len(labels)))) - (len(counts) - 1)
    return np.where(changes < by_chance / 2.0, 1.0 - changes / pairs, 0.0)


# --------------------------------------------------------------------------------------------------------- labels


def label_text(value: Any) -> str:
    """Return a label as text without leading, trailing and double spaces; 1.0, which a gap makes of 1, is 1.

    >>> label_text(" Iran  "), label_text(1.0)
    ('Iran', '1')
    """
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else " ".join(str(value).split())


def label_variants(labels: Any) -> dict[str, str]:
    """Return labels that may be another spelling of a more frequent one: label -> the other.

    These are labels that differ from it only by case, and labels of one or two rows that differ by one letter, or by
    two that are exchanged.

    >>> label_variants(np.array(["Adelie"] * 50 + ["adelie", "Adelei"] + ["Gentoo"] * 40))
    {'adelie': 'Adelie', 'Adelei': 'Adelie'}
    """
    names, counts = np.unique(np.asarray(labels), return_counts=True)
    if names.dtype.kind not in "UO":
        return {}
    amount = dict(zip(map(str, names), counts.tolist(), strict=True))
    known: dict[str, str] = {}
    found: dict[str, str] = {}
    for name in sorted(amount, key=lambda one: -amount[one]):
        if known.setdefault(name.casefold(), name) != name:
            found[name] = known[name.casefold()]
    frequent = [folded for folded, name in known.items() if amount[name] > TINY_CLASS]
    rare = [folded for folded, name in known.items() if amount[name] <= TINY_CLASS]
    for folded in rare[:SHOWN]:
        near = next((other for other in frequent if len(other) > SHORT_LABEL and _one_typo(folded, other)), None)
        if near is not None:
            found[known[folded]] = known[near]
    return found


def _one_typo(text: str, other: str) -> bool:
    """Return whether one letter (no digit: digits number things) is wrong, missing or added, or two are exchanged."""
    same = next((k for k, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    text, other = text[same:], other[same:]
    if re.search(r"\d", text[:1] + other[:1]):
        return False
    exchanged = text[:2] == other[:2][::-1] and text[2:] == other[2:]
    return exchanged or text[1:] in (other, other[1:]) or text == other[1:]


def _spaced_labels(column: pd.Series) -> Iterator[str]:
    """Yield a sentence on labels that are read without their extra spaces."""
    spaced = [value for value in column.unique() if isinstance(value, str) and value != label_text(value)]
    odd = column[column.isin(spaced)]
    if len(odd):
        rows = f"{plural(len(odd), 'row')} {'has' if len(odd) == 1 else 'have'}"
        yield f"{rows} extra spaces in the label (such as {odd.iloc[0]!r}): read without them"


def _label_notices(labels: Any) -> Iterator[str]:
    """Yield sentences about labels that may be misspelled or missing, and about small classes."""
    names, counts = np.unique(np.asarray(labels), return_counts=True)
    amount = dict(zip(map(str, names), counts.tolist(), strict=True))
    if len(names) == 1:
        yield f"every row has the label {str(names[0])!r}: there is nothing to predict"
    variants = label_variants(labels)
    for name, other in list(variants.items())[:SHOWN]:
        how = "differ only in case" if name.casefold() == other.casefold() else "are spelled alike"
        rows = f"{plural(amount[name], 'row')} of {name!r} and {amount[other]:,} of {other!r} {how}"
        yield f"{rows}; to merge them: {_option(name, other)}"
    if len(variants) > SHOWN:
        yield f"{plural(len(variants) - SHOWN, 'more label')} may be other spellings"
    for name in (name for name in amount if name.casefold() in MISSING):
        rows = f"{plural(amount[name], 'row')} of {name!r} {'is' if amount[name] == 1 else 'are'} fitted as a class"
        yield f"{rows}; if the label is missing there: {_option(name, '')}"
    small = [name for name, count in amount.items() if count < FEWEST_ROWS and name not in variants]
    if len(small) == 1:
        yield f"the class {small[0]!r} has {plural(amount[small[0]], 'row')}, too few to assess"
    elif small:
        shown = listed([f"{name!r} ({amount[name]})" for name in small], SHOWN)
        yield f"{len(small):,} classes have fewer than {FEWEST_ROWS} rows, too few to assess: {shown}"


def _option(name: str, other: str) -> str:
    """Return the option that merges a label into another, as a shell takes it."""
    dash = "=" if name.startswith("-") else " "  # else it would be taken for an option
    return f"--merge-labels{dash}{shlex.quote(f'{name}={other}')}"


def read_merges(texts: Iterable[str], labels: Collection[str], *, all_known: bool = True) -> dict[str, str]:
    """Return the merges of ``FROM=TO``: label -> the other, or nothing if the label is missing.

    Parameters
    ----------
    texts : iterable of str
        Labels may have an equals sign themselves.
    labels : collection of str
        The labels of the table.
    all_known : bool
        Whether these are all labels, so that another one is a mistake.

    >>> read_merges(["iran=Iran", "None="], ["Iran", "Iraq", "None", "iran"])
    {'iran': 'Iran', 'None': ''}
    """
    merges: dict[str, str] = {}
    for text in texts:
        ways = [(label_text(text[:at]), label_text(text[at + 1 :])) for at, sign in enumerate(text) if sign == "="]
        if not ways:
            raise ValueError(f"must be FROM=TO, got {text!r}")
        old, new = next(((a, b) for a, b in ways if a in labels and (b in labels or not b)), ways[0])
        for label in (old, new) if new else (old,):
            if all_known and label not in labels:
                raise ValueError(f"there is no label {label!r}{suggestion(label, labels, 'the labels are')}")
        merges[old] = new
    for label, other in merges.items():
        if other in merges:
            raise ValueError(f"{other!r} is merged itself: merge {label!r} into {merges[other]!r} at once")
    return merges


def merge_labels(column: pd.Series, merges: Mapping[str, str]) -> tuple[pd.Series, dict[str, int]]:
    """Return the column with its labels merged, and how many rows each merge has changed.

    >>> import pandas as pd
    >>> column, counts = merge_labels(pd.Series(["iran", "Iran", "-"]), {"iran": "Iran", "-": ""})
    >>> column.tolist()[:2], bool(column.isna()[2]), counts
    (['Iran', 'Iran'], True, {'iran': 1, '-': 1})
    """
    from pandas.api import types

    if not merges:
        return column, {}
    number = types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype)
    known = {label_text(value): value for value in column.dropna().unique().tolist()}
    into = {old: known.get(new, float(new) if number and new else new or None) for old, new in merges.items()}
    found = column.map(label_text, na_action="ignore").astype(object)
    merged = column.astype(object)
    for old, value in into.items():
        merged[(found == old).to_numpy()] = value
    return merged.infer_objects(), {name: int((found == name).sum()) for name in merges}
