"""Annotations as people have them: a wide table with gaps, or one line per vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._inputs import array_of, missing, sorted_labels

__all__ = ["Votes", "read_votes"]

Array = NDArray[Any]
Codes = NDArray[np.intp]

LONG_NAMES = ("row", "annotator", "label")


@dataclass(frozen=True, eq=False)
class Votes:
    """One entry per vote.

    Attributes
    ----------
    row, annotator, label : ndarray of int
        Positions in ``rows``, ``annotators`` and ``classes``.
    rows, annotators, classes : ndarray
        Names.
    """

    row: Codes
    annotator: Codes
    label: Codes
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
    if set(LONG_NAMES) <= set(columns):
        row, annotator, label = (array_of(annotations[name]) for name in LONG_NAMES)
        return _long(row, annotator, label, n_rows, classes)
    table = array_of(annotations)
    if table.ndim != 2:
        raise ValueError(
            "annotations must be a table with one column per annotator, or a data frame with the columns 'row', "
            f"'annotator' and 'label', got shape {table.shape}"
        )
    present = ~missing(table)
    row, annotator = np.nonzero(present)
    if not row.size:
        raise ValueError("annotations must hold some labels, got none")
    index = getattr(annotations, "index", None) if hasattr(annotations, "iloc") else None
    names = np.arange(len(table)) if index is None else np.asarray(index)
    people = np.array(columns) if columns else np.arange(table.shape[1])
    order, codes = _labels(table[present], classes)
    _check_rows(len(table), n_rows)
    return Votes(row, annotator, codes, names, people, order)


def _long(row: Array, annotator: Array, label: Array, n_rows: int | None, classes: Any) -> Votes:
    kept = ~missing(label)
    if not kept.any():
        raise ValueError("annotations must hold some labels, got none")
    row, annotator, label = row[kept], annotator[kept], label[kept]
    order, codes = _labels(label, classes)
    people, who = np.unique(annotator, return_inverse=True)
    if n_rows is None:
        rows, where = np.unique(row, return_inverse=True)
    else:  # with probabilities, rows are named by their position
        if row.dtype.kind not in "iu" or row.min() < 0 or row.max() >= n_rows:
            raise ValueError(
                f"the column 'row' must hold positions in pred_probs, 0 to {n_rows - 1}, got {row.max()!r}"
            )
        rows, where = np.arange(n_rows), row.astype(np.intp)
    pairs = np.unique(np.column_stack([where, who]), axis=0)
    if len(pairs) < len(row):
        raise ValueError("an annotator must label a row at most once, got several votes; drop the older ones")
    return Votes(where.astype(np.intp), who.astype(np.intp), codes, rows, people, order)


def _labels(values: Array, classes: Any) -> tuple[Array, Codes]:
    order, known = sorted_labels(values)
    if classes is not None:
        order = sorted_labels(array_of(list(classes)), keep_order=True)[0]
    if len(order) < 2:
        raise ValueError(f"annotations must hold at least two labels, got {order.tolist()!r}")
    place = {label: code for code, label in enumerate(order.tolist())}
    unknown = sorted({str(label) for label in known.tolist() if label not in place})
    if unknown:
        raise ValueError(f"labels must be among the classes {order.tolist()!r}, got {unknown!r}")
    return order, np.array([place[label] for label in known.tolist()], dtype=np.intp)


def _check_rows(rows: int, n_rows: int | None) -> None:
    if n_rows is not None and rows != n_rows:
        raise ValueError(f"annotations and pred_probs must have the same length, got {rows} and {n_rows}")
