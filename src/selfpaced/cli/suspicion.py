"""Which rows are suspicious, where they are in the file, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import LoadedTable

    from .data import Target

__all__ = ["COLUMNS", "suspicious"]

COLUMNS = (
    "row",
    "line",
    "level",
    "given",
    "expected",
    "weight",
    "noise_probability",
    "probability_if_noisy",
    "why",
    "against",
)
NEIGHBOURS = 5  # display: their lines are named one by one
EXPLAINED = 5_000  # cost: suspects that get neighbours; the table is sorted, the rest is far down


def suspicious(
    model: Any, features: pd.DataFrame, given: Target, table: LoadedTable, *, threshold: float
) -> pd.DataFrame:
    """The likely errors and the rows worth a look, most suspicious first.

    Parameters
    ----------
    model : estimator
        Fitted self-paced model.
    features : pandas.DataFrame
        What it was fitted on.
    given : Target
        The given labels.
    table : LoadedTable
        Knows the lines.
    threshold : float
        Rows whose probability of being wrong is above it are likely errors.

    Returns
    -------
    pandas.DataFrame
        With the columns ``row, line, level, given, expected, weight, noise_probability, why, against``, of labels also
        ``probability_if_noisy``. ``against`` names the columns that contribute most to the expected label or value.
    """
    import pandas as pd

    from selfpaced.inspection import assessment_of, suspect_table
    from selfpaced.reasons import columns_against, confident_rows

    assessed = assessment_of(model, features, given.fitted)
    found = pd.DataFrame(suspect_table(assessed, threshold=threshold))
    places = found["row"].to_numpy(dtype=np.int64)
    rows = given.rows[places]
    lines = table.lines.of(rows)
    reference = confident_rows(model.assessment_.weight, places)
    why = _why(model, features, given, table, places, found, reference)
    against = columns_against(model, features, given.fitted, places, reference)
    return pd.DataFrame(
        {
            "row": rows,
            "line": pd.array(lines, dtype="Int64")
            if lines is not None
            else pd.array([None] * len(rows), dtype="Int64"),
            "level": found["level"].to_numpy(),
            "given": given.values[places],
            "expected": _rounded(given.in_unit(found["expected"].to_numpy())),
            "weight": found["weight"].to_numpy(dtype=float).round(4),
            "noise_probability": found["noise_probability"].to_numpy(dtype=float).round(4),
            **_if_noisy(found),
            "why": why,
            "against": [", ".join(names) for names in against],
        }
    )


def _if_noisy(found: pd.DataFrame) -> dict[str, Any]:
    """The probability of an error if any labels are wrong; values have none."""
    name = "probability_if_noisy"
    return {name: found[name].to_numpy(dtype=float).round(4)} if name in found else {}


def _why(
    model: Any, features: Any, given: Target, table: LoadedTable, places: Any, found: Any, reference: Any
) -> list[str]:
    """One sentence per suspect about the confident rows next to it."""
    from sklearn.neighbors import NearestNeighbors

    explained = places[:EXPLAINED]
    if reference.size < NEIGHBOURS or not explained.size:
        return ["the model disagrees; too few confident rows to compare with"] * len(places)
    matrix = _comparable(features, reference)
    neighbours = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(matrix[reference])
    nearest = reference[neighbours.kneighbors(matrix[explained], return_distance=False)]
    lines = table.lines.of(given.rows[nearest.ravel()])
    numbers = (given.rows[nearest.ravel()] if lines is None else lines).reshape(nearest.shape)
    noun = "rows" if lines is None else "lines"
    expected = found["expected"].to_numpy()
    told = [
        _sentence(given.values[near], expected[i], given.task, f"{noun} {', '.join(map(str, numbers[i]))}")
        for i, near in enumerate(nearest)
    ]
    rest = ["the model disagrees; neighbours are looked up for the first 5,000 suspects only"]
    poor = (
        "; what is expected comes from a poor fit" if getattr(model.assessment_.diagnosis, "misfit_words", "") else ""
    )
    return [f"{reason}{poor}" for reason in told + rest * (len(places) - len(told))]


def _comparable(features: Any, reference: Any) -> Any:
    """Features in which rows have distances: gaps are filled, and each counts alike; texts are as they are."""
    if not hasattr(features, "to_numpy"):
        return features
    matrix = features.to_numpy()
    if np.isnan(matrix).any():  # trees take gaps, distances do not
        matrix = np.where(np.isnan(matrix), np.nanmedian(matrix, axis=0), matrix)
    spread = matrix[reference].std(axis=0)
    return matrix / np.where(spread > 0, spread, 1.0).astype(matrix.dtype)


def _rounded(values: np.ndarray) -> np.ndarray:
    """Expected values to six digits; classes as they are."""
    return np.array([float(f"{v:.6g}") for v in values]) if values.dtype.kind == "f" else values


def _sentence(values: np.ndarray, expected: Any, task: str, where: str) -> str:
    if task == "classification":
        agreeing = int(np.sum(values == expected))
        return f"{agreeing} of the {len(values)} nearest confident rows are {str(expected)!r} ({where})"
    return f"rows like it have {values.min():.4g} to {values.max():.4g} (the {len(values)} nearest: {where})"
