"""Arguments of functions, refused by name: numbers, seeds, and whatever NumPy cannot make numbers of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["floats", "integer", "labels", "number", "seeded", "speaking_of"]

LARGEST = 1e150  # numerical safety: sums of squares are numbers

# How NumPy and pandas speak of what they cannot convert; nobody is told of which argument.
_CONVERSION = re.compile(
    r"convert|float\(\) argument|real number|setting an array element|inhomogeneous|or dtype is required"
    r"|could not be promoted|not compatible with arrays|common DType|not supported between|unhashable|invalid literal"
    r"|cannot be interpreted|Casting complex"
    r"|bad input shape|should be a 1d array|unique column names|len\(\) of unsized|unsized object"
)


@contextmanager
def speaking_of(name: str, rule: str = "a table of numbers, every row of the same length") -> Iterator[None]:
    """Errors of a conversion say what was converted.

    >>> with speaking_of("y", "numbers"):
    ...     np.array(["one"], dtype=float)
    Traceback (most recent call last):
    ValueError: y must be numbers (could not convert string to float: 'one')
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        if not _CONVERSION.search(str(error)) or str(error).startswith(f"{name} must be"):
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{name} must be {rule} ({error})") from error


def number(name: str, value: Any, low: float, high: float, words: str) -> float:
    """A number from ``low`` to ``high``, both included.

    >>> number("rate", 1.5, 0, 1, "in [0, 1]")
    Traceback (most recent call last):
    ValueError: rate must be in [0, 1], got 1.5
    """
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or not low <= float(value) <= high:
        raise ValueError(f"{name} must be {words}, got {value!r}")
    return float(value)


def integer(name: str, value: Any, low: int, words: str) -> int:
    """A whole number, at least ``low``; one that is written as a float will do."""
    whole = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not whole or (not isinstance(value, Integral) and not float(value).is_integer()) or int(value) < low:
        raise ValueError(f"{name} must be {words}, got {value!r}")
    return int(value)


def seeded(random_state: Any) -> np.random.RandomState:
    """The generator of a parameter ``random_state``."""
    from sklearn.utils import check_random_state

    try:
        found: np.random.RandomState = check_random_state(random_state)
    except (ValueError, TypeError):
        words = "None, an integer >= 0 and < 2**32 or a RandomState"
        raise ValueError(f"random_state must be {words}, got {random_state!r}") from None
    return found


def floats(name: str, values: Any, ndim: int) -> np.ndarray:
    """A copy as finite numbers of this many dimensions."""
    with speaking_of(name, "numbers"):
        if np.iscomplexobj(values):
            raise TypeError("Casting complex numbers to real ones would lose a part of them")
        found = np.array(values, dtype=np.float64)
    if found.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' * (ndim > 1)}, got shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if np.abs(found).max(initial=0.0) > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:g} in size, got {float(np.abs(found).max()):g}")
    return found


def labels(name: str, values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of any one kind, the distinct ones, and the place of each among them."""
    with speaking_of(name, "labels of one kind, one for each row"):
        found = np.asarray(values)
        if found.ndim != 1:
            raise ValueError(f"{name} must be one-dimensional, got shape {found.shape}")
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError(f"{name} must be labels, got NaN or infinity")
        return found, *np.unique(found, return_inverse=True)
