"""The two lists of a fit, with place and reason of each row."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from selfpaced.formatting import number

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import LoadedTable

    from .data import Target

NEIGHBOURS = 5  # display: their lines are named one by one


def suspicious(
    model: Any,
    features: pd.DataFrame,
    given: Target,
    table: LoadedTable,
    *,
    threshold: float,
    undecided: np.ndarray | None = None,
    parts: Any = None,
) -> pd.DataFrame:
    """Return the likely errors and the rows worth a look, most suspicious first.

    ``undecided`` are rows that an earlier run has listed and nobody has decided about; they stay in the list. ``parts``
    is what text columns contribute to the features. ``against`` names the columns that contribute most.
    """
    import pandas as pd

    from selfpaced.reasons import columns_against, confident_rows

    found = _listed(model, features, given, threshold, undecided)
    places = found["row"].to_numpy(dtype=np.int64)
    rows = given.rows[places]
    reference = confident_rows(model.assessment_.weight, places)
    against: list[list[str]] = [[]] * len(places)
    if parts or hasattr(features, "columns"):  # a single text column is no reason
        against = columns_against(model, features, given.fitted, places, reference, parts)
    conditional = "probability_if_noisy"
    return pd.DataFrame(
        {
            "row": rows,
            "line": line_column(table, rows),
            "level": found["level"].to_numpy(),
            "given": given.values[places],
            "expected": _rounded(given.in_unit(found["expected"].to_numpy())),
            "weight": found["weight"].to_numpy(dtype=float).round(4),
            "noise_probability": found["noise_probability"].to_numpy(dtype=float).round(4),
            **({conditional: found[conditional].to_numpy(dtype=float).round(4)} if conditional in found else {}),
            "why": _reasons(features, given, table, found, reference),
            "against": [", ".join(names) for names in against],
        }
    )


def _listed(model: Any, features: Any, given: Target, threshold: float, undecided: np.ndarray | None) -> pd.DataFrame:
    """The rows of both levels, and after them the undecided rows of an earlier run, which are worth a look."""
    import pandas as pd

    from selfpaced.assessment import LEVELS
    from selfpaced.inspection import assessment_of, suspect_table

    assessed = assessment_of(model, features, given.fitted)
    found = pd.DataFrame(suspect_table(assessed, threshold=threshold))
    if undecided is None or not undecided.size:
        return found
    places = np.setdiff1d(np.flatnonzero(np.isin(given.rows, undecided)), found["row"])
    kept = pd.DataFrame(assessed.table(places, np.ones(len(given.values), dtype=np.int8)))
    if assessed.trusted is not None:
        kept = kept[~assessed.trusted[places]]
    return pd.concat([found, kept.assign(level=LEVELS[1])], ignore_index=True) if len(kept) else found


def _rounded(values: np.ndarray) -> np.ndarray:
    """Expected values to six digits; classes as they are."""
    return np.array([float(f"{v:.6g}") for v in values]) if values.dtype.kind == "f" else values


def _reasons(features: Any, given: Target, table: LoadedTable, found: pd.DataFrame, reference: Any) -> list[str]:
    """One sentence per row about the most similar confident rows; empty if they say nothing against the given one."""
    from sklearn.neighbors import NearestNeighbors

    from selfpaced.reasons import EXPLAINED_ROWS

    places = found["row"].to_numpy(dtype=np.int64)
    explained = places[:EXPLAINED_ROWS]
    if reference.size < NEIGHBOURS or not explained.size:
        return [""] * len(places)
    near_to, asked = _comparable(features, reference, explained)
    neighbours = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(near_to)
    nearest = reference[neighbours.kneighbors(asked, return_distance=False)]
    expected, label = given.in_unit(found["expected"].to_numpy()), given.values[places]
    reason = _class_reason if given.task == "classification" else _value_reason
    told = [reason(given.values[near], label[i], expected[i]) for i, near in enumerate(nearest)]
    places_of = [_places(given.rows[near], table) if text else "" for near, text in zip(nearest, told, strict=True)]
    return [f"{text}{where}" for text, where in zip(told, places_of, strict=True)] + [""] * (len(places) - len(told))


def _comparable(features: Any, reference: np.ndarray, asked: np.ndarray) -> tuple[Any, Any]:
    """Return both groups of rows with distances: gaps are filled and columns scaled; texts stay as they are."""
    if not hasattr(features, "to_numpy"):
        return features[reference], features[asked]
    known, other = (features.iloc[rows].to_numpy() for rows in (reference, asked))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of gaps has no median
        middle = np.nan_to_num(np.nanmedian(known, axis=0))
    known, other = (np.where(np.isnan(part), middle, part) for part in (known, other))
    spread = known.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0).astype(known.dtype)
    return known / scale, other / scale


def _places(rows: np.ndarray, table: LoadedTable) -> str:
    lines = table.lines.of(rows)
    noun, numbers = ("rows", rows) if lines is None else ("lines", lines)
    return f" ({noun} {', '.join(map(str, numbers))})"


def _class_reason(near: np.ndarray, given: Any, expected: Any) -> str:
    """A reason if most of the similar rows have the expected label.

    >>> _class_reason(np.array(["cat"] * 4 + ["dog"]), "dog", "cat")
    "4 of 5 similar rows are 'cat'"
    >>> _class_reason(np.array(["dog"] * 3 + ["cat"] * 2), "dog", "cat")
    ''
    """
    agreeing = int(np.sum(near == expected))
    if given == expected or 2 * agreeing <= len(near):
        return ""
    return f"{agreeing} of {len(near)} similar rows are {str(expected)!r}"


def _value_reason(near: np.ndarray, given: float, expected: float) -> str:
    """A reason if the given value is outside the range of the similar rows, on the far side of the expected one.

    >>> _value_reason(np.array([10.0, 12.0, 11.0]), 110.0, 11.5)
    'similar rows have 10 to 12'
    >>> _value_reason(np.array([10.0, 200.0, 11.0]), 110.0, 11.5)
    ''
    """
    low, high = float(near.min()), float(near.max())
    if low <= given <= high or (given > high) != (given > expected):
        return ""
    ends = list(dict.fromkeys(number(end, 4) for end in (low, high)))
    return f"similar rows have {' to '.join(ends)}"


# -------------------------------------------------------------------------------------------------- as a file


def with_cells(found: pd.DataFrame, cells: pd.DataFrame, target: str, marks: Sequence[str]) -> pd.DataFrame:
    """Return the suspects with an empty column for the decision, the cells of their rows, and their fingerprints.

    Columns of the table that have one of our names are called ``table.NAME``.
    """
    import pandas as pd

    ours = {*found.columns, "decision", "target", "fingerprint"}
    shown = cells.iloc[found["row"].to_numpy(dtype=np.intp)].set_axis(found.index)
    shown.columns = pd.Index([f"table.{name}" if name in ours else name for name in shown.columns])
    known = pd.DataFrame({"target": target, "fingerprint": list(marks)}, index=found.index)
    return pd.concat([found.assign(decision=""), shown, known], axis=1)


def line_column(table: LoadedTable, rows: np.ndarray) -> Any:
    """Return the lines of rows as a column; empty cells if rows have no lines."""
    import pandas as pd

    lines = table.lines.of(rows)
    return pd.array([None] * len(rows) if lines is None else lines, dtype="Int64")
