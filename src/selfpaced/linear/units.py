"""Powers of two that bring extreme numbers within reach before a fit, and take its results back out, both exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..fitting import reach

__all__ = ["Units"]

Floats = NDArray[np.floating[Any]]
# Beyond these, values lose digits, and their differences are no numbers.
SINGLE_ENDS = (1e-36, 1e36)  # numerical safety: of 32 bits
DOUBLE_ENDS = (1e-300, 1e300)  # numerical safety: of 64 bits
SOME = 1000  # cost: rows that are looked at first


@dataclass(frozen=True, eq=False)
class Units:
    """Exponents of two: a column ``x`` is fitted as ``x / 2**columns[j]``, the values as ``y / 2**values``.

    They are 0 for everything whose squares are numbers, which is everything that anybody measures.

    Attributes
    ----------
    columns : ndarray of int, or None
        One per column of X; None where all are 0.
    values : int
        Of y.
    """

    columns: NDArray[np.int64] | None = None
    values: int = 0

    @classmethod
    def of(cls, X: Any, y: Floats | None = None, *, least: float = 0.0) -> Units:
        """The exponents that these data need; columns whose largest value is below ``least`` are out of reach, too.

        >>> Units.of(np.array([[1e200, 1.0], [2e200, 3.0]])).columns
        array([666,   0])
        >>> Units.of(np.array([[1.0], [2.0]]), np.array([1e-162, 0.0])).values
        -538
        """
        columns = np.zeros(0, dtype=np.int64) if _usual(X, least) else _exponents("X", _largest(X), X.dtype, least)
        values = 0 if y is None else int(_exponents("y", np.atleast_1d(np.abs(y).max()), y.dtype)[0])
        return cls(columns if columns.any() else None, values)

    def features(self, X: Any) -> Any:
        """X as it is fitted."""
        if self.columns is None:
            return X
        if not sparse.issparse(X):
            return np.ldexp(X, -self.columns).astype(X.dtype, copy=False)
        moved = X.copy()
        moved.data = np.ldexp(X.data, -self.columns[X.indices]).astype(X.dtype, copy=False)
        return moved

    def target(self, y: Floats) -> Floats:
        """Values, or differences of them, as they are fitted."""
        return np.ldexp(y, -self.values) if self.values else y

    def given(self, y: Any) -> Any:
        """Fitted values, or a scale of them, as they are given."""
        return np.ldexp(y, self.values) if self.values else y

    def inward(self, coef: Floats) -> Floats:
        """Coefficients of the given features and values as those of the fitted ones."""
        return coef if self._shift is None else np.ldexp(coef, -self._shift)

    def outward(self, coef: Floats, dtype: Any = np.float64) -> Floats:
        """Coefficients (or errors of them) of the given features and values; refused where they are no numbers."""
        if self._shift is None:
            return coef.astype(dtype)
        with np.errstate(over="ignore", under="ignore"):
            moved = np.ldexp(coef, self._shift).astype(dtype)
            kept = np.ldexp(moved.astype(np.float64), -self._shift)
        lost = np.finfo(dtype).eps
        if not np.allclose(kept, coef, rtol=lost, atol=lost * float(np.abs(coef).max(initial=0.0))):
            raise ValueError(
                f"X must be of a size for which coefficients are numbers of {np.dtype(dtype).name}, got columns that "
                "need larger or smaller ones: change its unit"
            )
        return np.asarray(moved)

    @property
    def _shift(self) -> Any:
        if self.columns is None:
            return self.values or None
        return self.values - self.columns


def _usual(X: Any, least: float) -> bool:
    """Whether some of the rows show that no column is beyond reach: a look at all of them costs as much as a fit does.

    No value is larger than the root of the sum of squares; none of a column's largest is smaller than that of some.
    """
    if sparse.issparse(X) or len(X) <= SOME or not X.flags.c_contiguous:
        return False
    low, high = reach(X.dtype)
    flat = X.reshape(-1)
    with np.errstate(over="ignore"):
        if not float(np.vdot(flat, flat)) < high**2:
            return False
    return bool(_largest(X[:: len(X) // SOME]).min(initial=np.inf) >= max(low, least))


def _largest(X: Any) -> Floats:
    """The largest absolute value of every column."""
    if not sparse.issparse(X):
        return np.asarray(np.maximum(X.max(axis=0, initial=0), -X.min(axis=0, initial=0)))
    largest = np.zeros(X.shape[1], dtype=X.dtype)
    np.maximum.at(largest, X.indices, np.abs(X.data))
    return largest


def _exponents(name: str, largest: Floats, dtype: Any, least: float = 0.0) -> NDArray[np.int64]:
    largest = largest.astype(np.float64)
    (low, high), (smallest, greatest) = reach(dtype), SINGLE_ENDS if dtype.itemsize < 8 else DOUBLE_ENDS
    beyond = (largest > 0) & ((largest < max(low, least)) | (largest > high))
    odd = largest[beyond & ((largest < smallest) | (largest > greatest))]
    if odd.size:
        raise ValueError(
            f"{name} must have a largest absolute value between {smallest:g} and {greatest:g}, got {odd[0]:g}: "
            "change its unit"
        )
    return np.where(beyond, np.frexp(largest)[1], 0).astype(np.int64)
