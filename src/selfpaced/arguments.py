"""Arguments of functions, refused by name: numbers, seeds, and whatever NumPy cannot make numbers of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "check_label_array", "encoded_labels", "floats", "integer", "labels", "number", "one_kind", "seeded", "speaking_of",
    "told_label",
]  # fmt: skip

FEW_TEXTS = 16  # cost: different labels up to which looking for each takes less time than sorting all rows
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
        said = str(error)
        names_another = re.match(r"(X|y|sample_weight) ", said) is not None and not said.startswith(f"{name} ")
        if not _CONVERSION.search(said) or said.startswith(f"{name} must be") or names_another:
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


def one_kind(distinct: Iterable[Any]) -> None:
    """Refuse distinct labels some of which are texts and others not, and numbers beyond 64 bits.

    NumPy would make texts of all of them, and 1 and "1" two classes of one name.

    >>> one_kind([2, 1, "1"])
    Traceback (most recent call last):
    ValueError: y must hold labels of one kind, got 1 (int) and '1' (str): make all of them texts, or all numbers
    """
    known = list(distinct)
    texts, others = ([label for label in known if isinstance(label, str) == text] for text in (True, False))
    if texts and others:
        alike = next((label for label in others if str(label) in texts), others[0])
        text = str(alike) if str(alike) in texts else texts[0]
        raise ValueError(
            f"y must hold labels of one kind, got {alike!r} ({type(alike).__name__}) and {text!r} (str): make all of "
            "them texts, or all numbers"
        )
    large = next((label for label in others if isinstance(label, int) and not -(2**63) <= label < 2**64), None)
    if large is not None:
        raise ValueError(f"y must hold whole numbers of at most 64 bits, got {large!r}: make the labels texts")


def check_label_array(y: np.ndarray) -> None:
    """Refuse arrays of objects that are no labels: gaps, several kinds, numbers that NumPy does not hold as such."""
    if y.dtype.kind != "O":
        return
    for row, label in enumerate(y.tolist()):
        if label is None or label != label:
            raise ValueError(f"y must not have gaps, got {label!r} in row {row}. Input y contains NaN.")
    found = {(type(label), label): label for label in y.tolist() if getattr(label, "__hash__", None)}
    one_kind(found.values())
    other = next((label for label in y.tolist() if not isinstance(label, str)), None)
    if other is not None:
        raise ValueError(
            f"y must be an array of numbers or of texts, got objects such as {other!r} ({type(other).__name__}): "
            "convert it, for example by y.astype(str). Unknown label type: object"
        )


def encoded_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The labels, and the place of each row's among them."""
    if y.dtype.kind in "iu" and int(y.max()) - int(y.min()) < len(y) // 2:
        # Small numbers are counted in a fraction of the time that it takes to find out which there are.
        wide = y if y.dtype.kind == "u" else y.astype(np.intp, copy=False)  # differences need a bit more than labels
        places = (wide - wide.min()).astype(np.intp, copy=False)
        there = np.bincount(places) > 0
        classes = np.flatnonzero(there).astype(y.dtype) + y.min()
        codes = places if there.all() else (np.cumsum(there) - 1)[places]
    else:
        check_label_array(y)
        from sklearn.utils.multiclass import check_classification_targets

        with np.errstate(invalid="ignore"):  # it casts labels to integers, however large they are
            check_classification_targets(y)
        classes, codes = _encoded_texts(y) if y.dtype.kind == "U" else np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least 2 classes; the data contains only one class: {told_label(classes[0])}")
    return classes, codes.astype(np.intp, copy=False)


def _encoded_texts(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Classes and codes of texts; if few differ, rows are compared with each class, which is faster than sorting."""
    classes = np.unique(y)
    if len(classes) > FEW_TEXTS:
        return np.unique(y, return_inverse=True)
    codes = np.zeros(len(y), dtype=np.intp)
    for place, label in enumerate(classes[1:], 1):
        codes[y == label] = place
    return classes, codes


def told_label(label: Any) -> str:
    """A label as people write it."""
    return repr(np.asarray(label).item())
