"""From a fitted object to a :class:`~selfpaced.report.data.Summary`."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor

from ..assessment import Labels
from ..formatting import number, unused_columns
from ..inspection import look_through
from ..reasons import columns_against, common_patterns, confident_rows
from ..selection import Candidate
from .data import (
    History,
    Pairs,
    Pattern,
    ReportColumn,
    ReportTable,
    Review,
    Summary,
)
from .sections import section_of
from .supervised import FIRST, Section
from .tables import as_columns, cell, feature_rows, make_table, thumbnails

# cost: what a page holds, so that a browser stays fast (benchmarks/report.py): rows in the table, rows with their cells
MAX_ROWS = 5_000
MAX_DETAILED = 1_000
LABELS_SHOWN = 12  # display: labels in the table of given and expected labels
SCATTERED = 2_000  # cost: points of the scatter plot
HIDDEN = ("decision", "target", "fingerprint")


def summarise(
    fitted: Any,
    X: Any = None,
    y: Any = None,
    *,
    suspects: Any = None,
    cells: Any = None,
    title: str | None = None,
    note: str | None = None,
    notices: Sequence[str] = (),
    not_used: Sequence[tuple[str, str]] = (),
    max_rows: int = MAX_ROWS,
) -> Summary:
    """Return the content of the page about a fitted object as plain data.

    Parameters
    ----------
    fitted : object
        A fitted estimator of this library, a Pipeline or search that ends in one, an audit, or a network as
        `selfpaced.torch.review` gives it.
    X, y, suspects, cells, title, note, notices, not_used
        See :func:`report`.
    max_rows : int
        Rows of the table at most; counts and conclusions are about all of them.

    Returns
    -------
    Summary
    """
    inner = fitted.regressor_ if isinstance(fitted, TransformedTargetRegressor) else fitted
    model, seen = look_through(inner, X)
    section = section_of(model)
    section.scale = None if inner is fitted else fitted.transformer_
    section.check_rows(X, y)
    table = suspects if suspects is not None else _own_table(section, inner, X, seen, y)
    listed = {} if table is None else as_columns(table)  # all of them: the page may show fewer
    section.listed = listed
    shown = None if table is None else make_table(listed, limit=max_rows)
    shown, review = _reviewable(shown, section, title or section.name)
    path, cells = _path(section), X if cells is None else cells
    return Summary(
        title=title or section.name,
        kind=section.kind,
        sentence=section.sentence(),
        noun=section.noun,
        conclusion=section.conclusion(),
        notices=tuple(notices),
        not_used=unused_columns(not_used),
        termination=section.termination,
        note=note or "",
        facts=tuple(section.facts()),
        path=path,
        score_name=section.score_name,
        score_note=_score_note(path),
        suspects=shown,
        review=review,
        pairs=_pairs_of(listed, section),
        patterns=_patterns_of(listed, cells, section, "" if review is None else review.target),
        scatter=_scatter_of(section),
        scatter_scale="linear" if section.scale is None else "symlog",
        features=_features(shown, cells, section, by_label=suspects is not None),
        pictures=() if suspects is not None else thumbnails(section.pictures),
        grid=section.grid,
        history=_history(section),
        parameters=_parameters(model),
        versions=_versions(),
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _path(section: Section) -> tuple[Candidate, ...]:
    """The candidates by mean weight, the plain model last; stages of other paths in their order."""
    ordered = section.kind in ("classification", "regression")
    return tuple(sorted(section.path, key=lambda one: (math.isinf(one.lam), ordered and one.mean_weight)))


def _score_note(path: tuple[Candidate, ...]) -> str:
    """Why the chosen candidate is not the one with the highest score, if that is so."""
    scored = [one for one in path if math.isfinite(one.score)]
    best = max(scored, key=lambda one: one.score, default=None)
    chosen = next((one for one in scored if one.chosen), best)
    if best is None or chosen is None or best.score <= chosen.score:
        return ""
    ahead = best.score - chosen.score
    reach = "more than" if ahead > np.nanmax([0.0, best.spread, chosen.spread]) else "within"
    return f"{best.label} scores {number(ahead, 2)} higher, {reach} one standard error."


def _features(table: Any, X: Any, section: Section, *, by_label: bool) -> Any:
    if table is None or X is None or section.kind == "factorization" or isinstance(X, list | dict):
        return None
    rows: Any = next((column.values for column in table.columns if column.key == "row"), [])[:MAX_DETAILED]
    if not rows or not all(isinstance(row, int) for row in rows):
        return None
    if by_label and hasattr(X, "iloc"):
        rows = X.index.get_indexer(rows).tolist() if X.index.is_unique else [-1]
    if min(rows) < 0 or max(rows) >= X.shape[0]:
        return None  # the table is about other data
    return feature_rows(X, rows, getattr(section.model, "feature_names_in_", None), limit=MAX_DETAILED)


def _history(section: Section) -> History | None:
    """Numbers per epoch."""
    if section.recorded is None:
        return None
    columns = as_columns(section.recorded)
    index = columns.pop("epoch")
    phases = columns.pop("phase", ())
    series = {}
    for name, values in columns.items():
        plain = [cell(value) for value in values]
        if any(isinstance(value, float | int) for value in plain):
            series[name] = tuple(value if isinstance(value, float | int) else None for value in plain)
    if not series:
        return None
    bands = {
        name: (series.pop(low), series.pop(high))
        for name, (low, high) in section.bands.items()
        if {name, low, high} <= set(series)
    }
    return History(tuple(int(i) for i in index), series, bands, tuple(str(phase) for phase in phases))


def _parameters(model: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(model, BaseEstimator):
        return ()
    return tuple((name, str(cell(repr(value)))) for name, value in sorted(model.get_params(deep=False).items()))


def _versions() -> tuple[tuple[str, str], ...]:
    out = []
    for name in ("selfpaced", "numpy", "scipy", "scikit-learn"):
        try:
            out.append((name, version(name)))
        except PackageNotFoundError:  # pragma: no cover - run from a source tree
            continue
    return (*out, ("Python", platform.python_version()))


# -------------------------------------------------------------------------------------------- the listed rows


def _own_table(section: Section, fitted: Any, X: Any, seen: Any, y: Any) -> dict[str, Any] | None:
    """Return the library's own table of rows, with the contributing columns if X and y are given."""
    if section.scale is not None and y is not None:
        y = section.scale.transform(np.reshape(y, (-1, 1))).ravel()
    table = section.suspects(seen, y)
    if table is not None and section.scale is not None:
        table |= {key: section.in_unit(table[key]) for key in ("given", "expected")}
    if table is None or X is None or y is None or section.kind not in ("classification", "regression"):
        return table
    rows = np.asarray(table["row"], dtype=np.intp)
    confident = confident_rows(section.weights, rows)
    asked = section.model if seen is X else fitted  # for a Pipeline, name the raw columns, which people know
    against = [", ".join(names) or None for names in columns_against(asked, X, y, rows, confident)]
    first = [key for key in FIRST if key in table]
    return {key: table[key] for key in first} | {"against": against} | table


def _reviewable(table: ReportTable | None, section: Section, title: str) -> tuple[ReportTable | None, Review | None]:
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


def _pairs_of(listed: Mapping[str, Any], section: Section) -> Pairs | None:
    """Count the listed rows by given and expected label, the most frequent labels only."""
    if section.kind != "classification" or not {"given", "expected"} <= set(listed) or not len(listed["given"]):
        return None
    given, expected = (np.asarray(listed[key]).astype(str) for key in ("given", "expected"))
    left, above = _most(given), _most(expected)
    counts = tuple(tuple(int(np.sum((given == g) & (expected == e))) for e in above) for g in left)
    everyone = _label_counts(section.assessment.diagnosis)  # type: ignore[attr-defined]
    # rows excluded before the fit are not among those that the model assessed
    rows = tuple(max(everyone.get(g, 0), sum(row)) for g, row in zip(left, counts, strict=True))
    return Pairs(left, above, counts, rows)


def _label_counts(diagnosis: Any) -> dict[str, int]:
    """Number of rows with each given label."""
    if isinstance(diagnosis, Labels):  # does not build the labels of all rows
        names, counts = diagnosis.classes.astype(str), np.bincount(diagnosis.codes, minlength=len(diagnosis.classes))
    else:
        names, counts = np.unique(np.asarray(diagnosis.given).astype(str), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _most(labels: Any) -> tuple[str, ...]:
    names, counts = np.unique(labels, return_counts=True)
    return tuple(sorted(str(name) for name in names[np.argsort(-counts, kind="stable")][:LABELS_SHOWN]))


def _patterns_of(listed: Mapping[str, Any], cells: Any, section: Section, target: str) -> tuple[Pattern, ...]:
    """Find what the listed rows have in common in the columns of a data frame, except the target."""
    places = np.asarray(listed.get("row", ()))
    if section.kind not in ("classification", "regression") or not _is_frame(cells) or not places.size:
        return ()
    suspect = np.zeros(len(cells), dtype=bool)
    if places.dtype.kind not in "iu" or places.min() < 0 or places.max() >= len(cells):
        return ()
    suspect[places] = True
    others = cells.loc[:, [name for name in cells.columns if str(name) != target]]
    return tuple(Pattern(*found) for found in common_patterns(others, suspect))


def _is_frame(cells: Any) -> bool:
    return hasattr(cells, "iloc") and hasattr(cells, "columns")


def _scatter_of(section: Section) -> tuple[tuple[float, float, bool], ...]:
    """Given against expected values; a sample if there are many, with the likely errors first."""
    if section.kind != "regression":
        return ()
    assessment = section.assessment  # type: ignore[attr-defined]
    suspect = assessment.levels() == 2
    found = (assessment.diagnosis.given, assessment.diagnosis.expected)
    given, expected = (section.in_unit(np.asarray(values, dtype=float)) for values in found)
    order = np.argsort(~suspect, kind="stable")
    if order.size > SCATTERED:
        first = order[: min(int(suspect.sum()), SCATTERED // 2)]
        rest = order[int(suspect.sum()) :]
        order = np.concatenate([first, rest[:: max(1, rest.size // (SCATTERED - first.size) + 1)]])
    return tuple((float(f"{given[i]:.5g}"), float(f"{expected[i]:.5g}"), bool(suspect[i])) for i in order)
