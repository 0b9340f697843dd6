"""What is found before the fit: rows that are suspects without a model, and what somebody should know of the table."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .data import Target
from .suspicion import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import Aside, LoadedTable

    from .console import Console

__all__ = ["Early", "before_the_fit", "with_aside"]


@dataclass(frozen=True)
class Early:
    """The target as the model learns it, and the rows that are suspects before it does.

    Attributes
    ----------
    target : Target
        Without the classes of one or two rows, and with one spelling for each label.
    aside : tuple of Aside
        By row of the table; what is expected of a row of a tiny class is left to the model (None).
    notices : tuple of str
    """

    target: Target
    aside: tuple[Aside, ...] = ()
    notices: tuple[str, ...] = ()


def before_the_fit(table: LoadedTable, given: Target, args: argparse.Namespace, console: Console) -> Early:
    """Look at labels, copies and columns."""
    from selfpaced.tables import notices, unlike_copies

    aside: list[Aside] = []
    told: list[str] = []
    if given.task == "classification":
        given, aside, told = _labels(given)
    frame = table.frame if given.rows.size == len(table.frame) else table.frame.iloc[given.rows]
    told += notices(frame, given.name, given.values, task=given.task, exclude=args.exclude)
    copies, sentence = unlike_copies(frame.drop(columns=[given.name, *args.exclude]), given.values)
    named = {one.row for one in aside}
    aside += [replace(one, row=int(given.rows[one.row])) for one in copies if int(given.rows[one.row]) not in named]
    told += [sentence] * bool(sentence)
    for notice in told:
        console.notice(notice)
    return Early(given, tuple(aside), tuple(told))


def _labels(given: Target) -> tuple[Target, list[Aside], list[str]]:
    """One spelling for every label, and tiny classes apart."""
    from selfpaced.tables import Aside, few_of_a_kind, label_variants

    aside, told, values = [], [], given.values
    variants = label_variants(values) if values.dtype.kind == "U" else {}
    for name, (other, how) in variants.items():
        rows = np.flatnonzero(given.values == name)
        told.append(f"{len(rows):,} row{'s' * (len(rows) > 1)} {name!r}: {how} apart from {other!r}, and taken for it")
        why = f"{how} apart from {other!r}"
        aside += [Aside(int(row), other, why, 1.0) for row in given.rows[rows]]
        values = np.where(given.values == name, other, values)
    tiny = few_of_a_kind(values)
    if tiny.size and np.unique(np.delete(values, tiny)).size >= 2:
        names = sorted(set(values[tiny].tolist()), key=str)
        shown = ", ".join(map(repr, map(str, names[:5]))) + (", ..." if len(names) > 5 else "")
        told.append(
            f"{len(tiny):,} row{'s' * (len(tiny) > 1)} of {shown}: too few to learn from, set aside as suspects"
        )
        why = "one or two rows of its class: too few to learn from"
        aside += [Aside(int(row), None, why) for row in given.rows[tiny]]
        left = np.setdiff1d(np.arange(values.size), tiny)
        return replace(given, rows=given.rows[left], values=values[left]), aside, told
    return replace(given, values=values), aside, told


def with_aside(
    found: pd.DataFrame, early: Early, table: LoadedTable, model: Any, prepare: Any, known: Any
) -> pd.DataFrame:
    """The suspects of the model after those that needed none, without rows that a person has confirmed (``known``)."""
    import pandas as pd

    aside = [one for one in early.aside if one.row not in known]
    if not aside:
        return found
    rows = np.array([one.row for one in aside], dtype=np.int64)
    expected = np.array([one.expected for one in aside], dtype=object)
    open_ = np.array([one.expected is None for one in aside])
    if open_.any():
        expected[open_] = np.asarray(model.predict(prepare.transform(table.frame.iloc[rows[open_]])))
    lines = table.lines.of(rows)
    first = pd.DataFrame(
        {
            "row": rows,
            "line": pd.array(lines if lines is not None else [None] * rows.size, dtype="Int64"),
            "given": table.frame[early.target.name].iloc[rows].to_numpy(),
            "expected": expected,
            "weight": np.where(open_, 0.0, 1.0),
            "noise_probability": [round(one.probability, 4) for one in aside],
            "why": [one.why for one in aside],
            "against": "",
        },
        columns=list(COLUMNS),
    ).sort_values("noise_probability", ascending=False, kind="stable", na_position="last")
    rest = found[~found["row"].isin(rows)]
    return first if rest.empty else pd.concat([first, rest], ignore_index=True)
