"""What the page says about the listed rows: by label, in common, and what is needed to decide about them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from ..assessment import Labels
from ..inspection import look_through
from ..reasons import columns_against, common_patterns, confident_rows
from .data import Pairs, Pattern, ReportColumn, ReportTable, Review
from .supervised import FIRST, Section

__all__ = ["pairs_of", "patterns_of", "reviewable", "scatter_of", "with_reasons"]

MOST_LABELS = 12  # display: labels in the table of given and expected labels
SCATTERED = 2_000  # cost: points of the scatter plot
HIDDEN = ("decision", "target", "fingerprint")


def with_reasons(table: dict[str, Any] | None, section: Section, fitted: Any, X: Any, y: Any) -> dict[str, Any] | None:
    """Add the contributing columns to the library's own table, if X and y are given."""
    if table is None or X is None or y is None or section.kind not in ("classification", "regression"):
        return table
    rows = np.asarray(table["row"], dtype=np.intp)
    confident = confident_rows(section.weights, rows)
    model, seen = look_through(fitted, X)
    asked = model if seen is X else fitted  # for a Pipeline, name the raw columns, which people know
    against = [", ".join(names) or None for names in columns_against(asked, X, y, rows, confident)]
    first = [key for key in FIRST if key in table]
    return {key: table[key] for key in first} | {"against": against} | table


def reviewable(table: ReportTable | None, section: Section, title: str) -> tuple[ReportTable | None, Review | None]:
    """Return the table as it is shown, and what is needed to decide about its rows (None: nothing to decide)."""
    if table is None or section.kind not in ("classification", "regression"):
        return table, None
    columns = {column.key: column for column in table.columns}
    shown = replace(table, columns=tuple(column for column in table.columns if column.key not in HIDDEN))
    if not {"row", "given", "expected"} <= set(columns):
        return shown, None
    digest = hashlib.blake2b(title.encode(), digest_size=8)
    for key in ("row", "given", "expected"):
        digest.update(repr(list(columns[key].values)).encode())
    kind = "labels" if section.kind == "classification" else "values"
    classes = tuple(str(name) for name in getattr(section.model, "classes_", ()))[:500]
    target = _values(columns.get("target"))
    marks = tuple(str(mark) for mark in _values(columns.get("fingerprint")))
    return shown, Review(digest.hexdigest(), kind, str(target[0]) if target else "", classes, marks)


def _values(column: ReportColumn | None) -> list[Any]:
    return [] if column is None else list(column.values)


def pairs_of(table: ReportTable | None, section: Section) -> Pairs | None:
    """Count the listed rows by given and expected label, the most frequent labels only."""
    columns = {} if table is None else {column.key: column.values for column in table.columns}
    if section.kind != "classification" or not {"given", "expected"} <= set(columns) or not len(columns["given"]):
        return None
    given, expected = (np.array([str(v) for v in columns[key]]) for key in ("given", "expected"))
    left, above = _most(given), _most(expected)
    counts = tuple(tuple(int(np.sum((given == g) & (expected == e))) for e in above) for g in left)
    everyone = _counted(section.assessment.diagnosis)  # type: ignore[attr-defined]
    # rows excluded before the fit are not among those that the model assessed
    rows = tuple(max(everyone.get(g, 0), sum(row)) for g, row in zip(left, counts, strict=True))
    return Pairs(left, above, counts, rows)


def _counted(diagnosis: Any) -> dict[str, int]:
    """Number of rows with each given label."""
    if isinstance(diagnosis, Labels):  # does not build the labels of all rows
        names, counts = diagnosis.classes.astype(str), np.bincount(diagnosis.codes, minlength=len(diagnosis.classes))
    else:
        names, counts = np.unique(np.asarray(diagnosis.given).astype(str), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _most(labels: Any) -> tuple[str, ...]:
    names, counts = np.unique(labels, return_counts=True)
    return tuple(sorted(str(name) for name in names[np.argsort(-counts, kind="stable")][:MOST_LABELS]))


def patterns_of(table: ReportTable | None, cells: Any, section: Section, target: str) -> tuple[Pattern, ...]:
    """Find what the listed rows have in common in the columns of a data frame, except the target."""
    rows = next((column.values for column in table.columns if column.key == "row"), ()) if table is not None else ()
    if section.kind not in ("classification", "regression") or not _is_frame(cells) or not len(rows):
        return ()
    if not all(isinstance(row, int) for row in rows):
        return ()
    places, suspect = np.array(rows, dtype=np.intp), np.zeros(len(cells), dtype=bool)
    if places.min() < 0 or places.max() >= len(cells):
        return ()
    suspect[places] = True
    others = cells.loc[:, [name for name in cells.columns if str(name) != target]]
    return tuple(Pattern(*found) for found in common_patterns(others, suspect))


def _is_frame(cells: Any) -> bool:
    return hasattr(cells, "iloc") and hasattr(cells, "columns")


def scatter_of(section: Section) -> tuple[tuple[float, float, bool], ...]:
    """Given against expected values; a sample if there are many, with the likely errors first."""
    if section.kind != "regression":
        return ()
    assessment = section.assessment  # type: ignore[attr-defined]
    suspect = assessment.levels() == 2
    given, expected = (np.asarray(v, dtype=float) for v in (assessment.diagnosis.given, assessment.diagnosis.expected))
    order = np.argsort(~suspect, kind="stable")
    if order.size > SCATTERED:
        found = order[: min(int(suspect.sum()), SCATTERED // 2)]
        rest = order[int(suspect.sum()) :]
        order = np.concatenate([found, rest[:: max(1, rest.size // (SCATTERED - found.size) + 1)]])
    return tuple((float(f"{given[i]:.5g}"), float(f"{expected[i]:.5g}"), bool(suspect[i])) for i in order)
