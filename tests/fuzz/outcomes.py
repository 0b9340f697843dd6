"""What may come of a case: a finite result, or an error that says what is wrong with what."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

#: Words of Python and NumPy about their own insides: they tell a user nothing.
FORBIDDEN = re.compile(
    r"is not callable|not supported between|has no attribute|unsupported operand|not subscriptable|has no len\(\)"
    r"|is not iterable|unhashable|list index|out of bounds|not enough values to unpack|too many values to unpack"
    r"|could not be broadcast|cannot be interpreted as an integer|ambiguous|mismatch in its core dimension"
    r"|zero-size array|argument must be|must be real number|only 0-dimensional|only length-1|required argument"
    r"|inhomogeneous shape|cannot reshape|array must not contain infs|SVD did not converge|Singular matrix|NoneType"
    r"|math domain|division by zero|Result too large|unexpected keyword|positional argument|ufunc|NAType",
    re.IGNORECASE,
)

#: Sentences by which scikit-learn says the same for every estimator, whatever X is called.
STANDARD = re.compile(
    r"Expected 2D array|Expected 2D input|Found array with|inconsistent numbers of samples|contains only one class"
    r"|Reshape your data|Unknown label type|Sparse data was passed|Complex data not supported|feature names"
    r"|Cannot center sparse|is a bare string|Expected sequence or array-like|Input contains NaN|This \w+ estimator"
)


class Unacceptable(AssertionError):
    """A result that is no result."""


@dataclass(frozen=True)
class Finding:
    """A case that came out as it must not."""

    subject: str
    number: int
    error: BaseException

    def __str__(self) -> str:
        kind = type(self.error).__name__
        return f"python -m fuzz {self.subject} {self.number}: {kind}: {str(self.error)[:300]}"


def acceptable(error: BaseException, names: Iterable[str]) -> bool:
    """Whether this is an error of ours that names what it is about."""
    said = str(error)
    if not isinstance(error, ValueError | TypeError):
        return False
    words = "|".join(map(re.escape, names))
    if re.match(rf"({words})( \S+)? must ", said):  # ours; it may quote the words of NumPy
        return True
    return bool(
        not FORBIDDEN.search(said) and (re.search(rf"(?<![\w.])({words})(?!\w)", said) or STANDARD.search(said))
    )


def attempt(call: Callable[[], Any], names: Iterable[str], *, ours: bool = True) -> Any:
    """The result of a call, or None where it ended in an acceptable error.

    ``ours``: overflow and the like would be our own, not that of a wrapped model.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if ours:
            warnings.simplefilter("error", RuntimeWarning)
        try:
            return call()
        except Exception as error:
            if acceptable(error, names):
                return None
            raise


def finite(name: str, found: Any, shape: tuple[int, ...] | None = None) -> None:
    """Refuse a result with holes, or of another shape."""
    array = found.toarray() if sparse.issparse(found) else np.asarray(found)
    if shape is not None and array.shape != shape:
        raise Unacceptable(f"{name} has the shape {array.shape}, not {shape}")
    if array.dtype.kind in "fc" and not np.isfinite(array).all():
        raise Unacceptable(f"{name} is not finite")
