"""Directions of the coefficients that only rows left out of a fit determine, such as a level with one row.

Nothing says what the fit should predict along such a direction, so a fit without these rows may end up anywhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ._least_squares import CONDITION, DENSE_GRAM, ROUNDING, Squares, exact_floor
from ._rare_levels import CommonPart, least_absolute_deviations
from ._rejection import CUT, FAR, row_sizes

__all__ = ["ABSURD", "absurd_rows", "supported"]

Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
ABSURD = 10.0  # a choice: times the largest residual of the plain fit
CLEARLY = 2.0  # a choice: times the counted rows, from which a direction is given to other rows
ALONE = 1e-6  # numerical safety: of the row that is farthest out in a direction; less is no part of it


def supported(squares: Squares, b: Floats, cut: float) -> Floats:
    """A robust fit, with the directions that its good rows leave open fitted to the other rows.

    Good rows have residuals within ``cut`` and usual features: of unusual rows the features may be what is wrong. Where
    a direction is open, each other row counts the same however far out it is in that direction, and unusual rows
    count less. The fit stays as it is unless clearly more rows support the other one; predictions of the good rows stay
    in any case.
    """
    sizes, inside = row_sizes(squares), np.abs(squares.residuals(b)) <= cut
    good = inside & (sizes <= FAR)
    free = _open_directions(squares, good)
    if free is None:
        return b
    rows = squares.rows(np.flatnonzero(~good))
    table = np.asarray(rows.matrix @ free, dtype=np.float64)
    reach = np.linalg.norm(table, axis=1)
    weight: Any = squares.total(np.square(FAR / np.maximum(sizes, FAR)))
    counts = np.where(reach > ALONE * reach.max(initial=0.0), weight[~good], 0.0)
    step = least_absolute_deviations(table, rows.residuals(b), counts / np.maximum(reach, ALONE * reach.max()))
    moved = np.asarray(b + free @ step)
    won = np.abs(rows.residuals(moved)) <= cut
    return moved if counts @ won > CLEARLY * (counts @ inside[~good]) else b


def absurd_rows(
    squares: Squares, residuals: Floats, plain: Floats, weights: Floats, sigma: float, trusted: Mask | None = None
) -> Mask:
    """Rows that a fit predicts absurdly although nothing shows that they are wrong.

    Absurd is ten times as far off as the worst row of the plain fit. Nothing shows that a row is wrong if it is
    trusted, or if the rows in the fit determine its prediction so poorly that the residual is within its error.
    """
    size = np.abs(residuals)
    absurd = size > max(ABSURD * float(np.abs(plain).max(initial=0.0)), exact_floor(squares))
    if absurd.any() and squares.n_columns <= DENSE_GRAM:
        values, axes = linalg.eigh(squares.gram(squares.total(weights)))
        least = float(np.finfo(np.float64).eps) * values[-1]
        turned = np.asarray(squares.matrix[np.flatnonzero(absurd)] @ axes, dtype=np.float64)
        error = sigma * np.sqrt(1 + (np.square(turned) / np.maximum(values, least)).sum(axis=1))
        known = size[absurd] > CUT * error
        absurd[absurd] = ~known if trusted is None else ~known | trusted[absurd]
    return absurd


def _open_directions(squares: Squares, kept: Mask) -> Floats | None:
    """Columns that span what the kept rows leave open and all rows determine; None if there is nothing."""
    if kept.all() or squares.n_columns > DENSE_GRAM or np.count_nonzero(kept) < squares.n_columns:
        return None
    part = squares.rows(np.flatnonzero(kept))
    if _determined(part) or not _determined(squares):
        return None
    dense = squares.matrix.toarray() if sparse.issparse(squares.matrix) else squares.matrix
    free = CommonPart.of(replace(squares, matrix=dense), ~kept).free
    return free if free.shape[1] else None


def _determined(squares: Squares) -> bool:
    """Whether the rows determine every direction beyond rounding."""
    values = linalg.eigvalsh(squares.gram(squares.sample_weight))
    rounding = ROUNDING * squares.n_columns * float(np.finfo(squares.matrix.dtype).eps)
    return bool(values[0] > max(CONDITION, rounding) * values[-1])
