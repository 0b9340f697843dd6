"""Labels as text: their spelling, what may be wrong with it, and merging on request."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import suggestion

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["label_notices", "label_text", "label_variants", "merge_labels", "read_merges", "spaced_labels"]

TINY = 2  # a choice: rows of a class up to which nothing can be learnt about it
SHOWN = 5  # display: labels that are named one by one
ALIKE = 0.8  # a choice: similarity (difflib) from which on a label of one or two rows may be a misspelling
_NOT_A_LABEL = frozenset(["none", "null", "nil", "n.a.", "-", "--", "unknown", "missing"])


def label_text(value: Any) -> str:
    """Return a label as text without leading, trailing and double spaces; 1.0, which a gap makes of 1, is 1.

    >>> label_text(" Iran  "), label_text(1.0)
    ('Iran', '1')
    """
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else " ".join(str(value).split())


def label_variants(labels: Any) -> dict[str, str]:
    """Return labels that may be another spelling of a more frequent one: label -> the other.

    These are labels that differ from it only by case, and labels of one or two rows that nearly equal it.

    >>> label_variants(np.array(["Adelie"] * 50 + ["adelie", "Adelei"] + ["Gentoo"] * 40))
    {'adelie': 'Adelie', 'Adelei': 'Adelie'}
    """
    names, counts = np.unique(np.asarray(labels), return_counts=True)
    if names.dtype.kind not in "UO":
        return {}
    known: dict[str, str] = {}
    found: dict[str, str] = {}
    for name in (str(names[k]) for k in np.argsort(-counts, kind="stable")):
        if known.setdefault(name.casefold(), name) != name:
            found[name] = known[name.casefold()]
    amount = dict(zip(map(str, names), counts.tolist(), strict=True))
    frequent = [folded for folded, name in known.items() if amount[name] > TINY]
    rare = [folded for folded, name in known.items() if amount[name] <= TINY]
    for folded in rare[:SHOWN]:
        near = difflib.get_close_matches(folded, frequent, n=1, cutoff=ALIKE)
        if near and _digits(near[0]) == _digits(folded):  # digits number things
            found[known[folded]] = known[near[0]]
    return found


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


# ------------------------------------------------------------------------------------------------------ notices


def spaced_labels(column: pd.Series) -> Iterator[str]:
    """Yield a sentence on labels that are read without their extra spaces."""
    spaced = [value for value in column.unique() if isinstance(value, str) and value != label_text(value)]
    odd = column[column.isin(spaced)]
    if len(odd):
        rows = f"{_many(len(odd), 'row')} {'has' if len(odd) == 1 else 'have'}"
        yield f"{rows} extra spaces in the label (such as {odd.iloc[0]!r}): read without them"


def label_notices(labels: Any) -> list[str]:
    """Return sentences about labels that may be misspelled or missing, and about classes of one or two rows."""
    names, counts = np.unique(np.asarray(labels), return_counts=True)
    amount = dict(zip(map(str, names), counts.tolist(), strict=True))
    variants = label_variants(labels)
    told = []
    for name, other in list(variants.items())[:SHOWN]:
        how = "differ only in case" if name.casefold() == other.casefold() else "are spelled alike"
        rows = f"{_many(amount[name], 'row')} of {name!r} and {amount[other]:,} of {other!r} {how}"
        told.append(f"{rows}; to merge them: {_option(name, other)}")
    if len(variants) > SHOWN:
        told.append(f"{_many(len(variants) - SHOWN, 'more label')} may be other spellings")
    for name in (name for name in amount if name.casefold() in _NOT_A_LABEL):
        rows = f"{_many(amount[name], 'row')} of {name!r} {'is' if amount[name] == 1 else 'are'} fitted as a class"
        told.append(f"{rows}; if the label is missing there: {_option(name, '')}")
    tiny = [name for name, count in amount.items() if count <= TINY and name not in variants]
    if tiny:
        shown = ", ".join(map(repr, tiny[:SHOWN])) + ", ..." * (len(tiny) > SHOWN)
        rows = _many(sum(amount[name] for name in tiny), "row")
        told.append(f"{rows} of {shown}: too few to learn {'this class' if len(tiny) == 1 else 'these classes'} from")
    return told


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _option(name: str, other: str) -> str:
    """Return the option that merges a label into another, as a shell takes it."""
    dash = "=" if name.startswith("-") else " "  # else it would be taken for an option
    return f"--merge-labels{dash}{shlex.quote(f'{name}={other}')}"


# ------------------------------------------------------------------------------------------------------ merging


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
    merges = dict(_merge(text, labels, all_known) for text in texts)
    for label, other in merges.items():
        if other in merges:
            raise ValueError(f"{other!r} is merged itself: merge {label!r} into {merges[other]!r} at once")
    return merges


def _merge(text: str, labels: Collection[str], all_known: bool) -> tuple[str, str]:
    ways = [(label_text(text[:at]), label_text(text[at + 1 :])) for at, sign in enumerate(text) if sign == "="]
    if not ways:
        raise ValueError(f"must be FROM=TO, got {text!r}")
    old, new = next(((a, b) for a, b in ways if a in labels and (b in labels or not b)), ways[0])
    unknown = [label for label in (old, new) if label not in labels and (label or label is old)]
    if all_known and unknown:
        raise ValueError(f"there is no label {unknown[0]!r}{suggestion(unknown[0], labels)}")
    return old, new


def merge_labels(column: pd.Series, merges: Mapping[str, str]) -> tuple[pd.Series, dict[str, int]]:
    """Return the column with its labels merged, and how many rows each merge has changed.

    >>> import pandas as pd
    >>> column, counts = merge_labels(pd.Series(["iran", "Iran", "-"]), {"iran": "Iran", "-": ""})
    >>> column.tolist()[:2], bool(column.isna()[2]), counts
    (['Iran', 'Iran'], True, {'iran': 1, '-': 1})
    """
    import pandas as pd
    from pandas.api import types

    codes, distinct = pd.factorize(column)
    names = [label_text(value) for value in distinct.tolist()]
    counts = {name: int(np.isin(codes, [k for k, one in enumerate(names) if one == name]).sum()) for name in merges}
    if not any(counts.values()):
        return column, counts
    number = types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype)
    values = {name: value for name, value in zip(names, distinct.tolist(), strict=True) if name not in merges}
    new: list[Any] = []
    for name, value in zip(names, distinct.tolist(), strict=True):
        into = merges.get(name)
        new.append(value if into is None else values.get(into, float(into) if number and into else into or None))
    merged = pd.Series(np.array([*new, None], dtype=object)[codes], index=column.index, name=column.name)
    return merged.infer_objects(), counts
