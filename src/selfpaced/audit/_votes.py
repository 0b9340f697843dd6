"""Annotations as people have them: a wide table with gaps, or one line per vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._inputs import array_of, codes_among, given_classes, missing, plain, sorted_labels

Array = NDArray[Any]
Codes = NDArray[np.intp]

LONG_NAMES = ("row", "annotator", "label")


@dataclass(frozen=True, eq=False)
class Votes:
    """One entry per vote."""

    row: Codes  # place among ``rows``
    annotator: Codes  # place among ``annotators``
    label: Codes  # place among ``classes``
    rows: Array
    annotators: Array
    classes: Array

    def counts(self) -> NDArray[np.float64]:
        """Number of votes for each label of each row."""
        out = np.zeros((len(self.rows), len(self.classes)))
        np.add.at(out, (self.row, self.label), 1.0)
        return out


def read_votes(annotations: Any, n_rows: int | None, classes: Any) -> Votes:
    """Read a wide or a long table of annotations.

    A table is long if it is a data frame with the columns ``row``, ``annotator`` and ``label``, else wide.
    """
    columns = [str(name) for name in getattr(annotations, "columns", ())]
    absent = [name for name in LONG_NAMES if name not in columns]
    if not absent:
        votes, rows, people = _long([array_of(annotations[name], name) for name in LONG_NAMES], n_rows)
    elif "label" in columns:
        raise ValueError(f"a table of one vote per line must have the column {absent[0]!r}, got columns {columns!r}")
    else:
        votes, rows, people = _wide(annotations, columns)
        if n_rows not in (None, len(rows)):
            raise ValueError(f"annotations and pred_probs must have the same length, got {len(rows)} and {n_rows}")
    row, annotator, label = votes
    if not len(row):
        raise ValueError("annotations must hold some labels, got none")
    known = plain(label)
    order = sorted_labels(known) if classes is None else given_classes(classes)
    if len(order) < 2:
        raise ValueError(f"annotations must hold at least two labels, got {order.tolist()!r}")
    return Votes(row.astype(np.intp), annotator.astype(np.intp), codes_among(known, order), rows, people, order)


def _wide(annotations: Any, columns: list[str]) -> tuple[list[Array], Array, Array]:
    table = array_of(annotations, "annotations")
    if table.ndim != 2:
        raise ValueError(
            "annotations must be a table with one column per annotator, or a data frame with the columns 'row', "
            f"'annotator' and 'label', got shape {table.shape}"
        )
    present = ~missing(table)
    rows = np.asarray(annotations.index) if hasattr(annotations, "iloc") else np.arange(len(table))
    people = np.array(columns) if columns else np.arange(table.shape[1])
    return [*np.nonzero(present), table[present]], rows, people


def _long(votes: list[Array], n_rows: int | None) -> tuple[list[Array], Array, Array]:
    kept = ~missing(votes[-1])
    row, annotator, label = (part[kept] for part in votes)
    for name, part in zip(LONG_NAMES, votes, strict=True):
        gaps = np.flatnonzero(kept & missing(part))
        if len(gaps):
            raise ValueError(f"the column {name!r} must not have gaps, got one in line {gaps[0]}")
    people, who = np.unique(annotator, return_inverse=True)
    if n_rows is None:
        rows, where = np.unique(row, return_inverse=True)
    else:  # with probabilities, rows are named by their position
        outside = row if row.dtype.kind not in "iu" else row[(row < 0) | (row >= n_rows)]
        if len(outside):
            raise ValueError(
                f"the column 'row' must hold positions in pred_probs, 0 to {n_rows - 1}, got {outside.tolist()[0]!r}"
            )
        rows, where = np.arange(n_rows), row
    if len(np.unique(np.column_stack([where, who]), axis=0)) < len(row):
        raise ValueError("an annotator must label a row at most once, got several votes; drop the older ones")
    return [where, who, label], rows, people
