"""What parameters and arguments may be: one rule for every parameter's name, and errors that name the argument.

Parameters are checked before a fit touches anything. An estimator whose parameter means something else than that of the
others says so in ``_parameter_rules``. A test walks the signatures, so that no parameter is without a rule.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from .pacing import Pacing
from .regularizers import get


@dataclass(frozen=True)
class Rule:
    """What a parameter may be: in words that follow "must be", and as a test."""

    words: str
    holds: Callable[[Any], bool]

    @classmethod
    def asked(cls, check: Callable[[Any], Any]) -> Rule:
        """Of a parameter with a check of its own, which raises."""

        def holds(value: Any) -> bool:
            check(value)
            return True

        return cls("", holds)

    def __or__(self, other: Rule) -> Rule:
        return Rule(f"{self.words} or {other.words}", lambda value: self.holds(value) or other.holds(value))


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def integer(low: int, high: int | None = None) -> Rule:
    """An integer, which a bool is not."""

    def holds(value: Any) -> bool:
        whole = isinstance(value, Integral) and not _is_bool(value)
        return whole and low <= int(value) and (high is None or int(value) <= high)

    return Rule(f"an integer >= {low}" + ("" if high is None else f" and <= {high}"), holds)


def number(low: float, high: float = math.inf, *, above: bool = False, words: str = "") -> Rule:
    """A number >= ``low`` (or above it) and below ``high``."""

    def holds(value: Any) -> bool:
        if not isinstance(value, Real) or _is_bool(value):
            return False
        return (float(value) > low if above else float(value) >= low) and float(value) < high

    return Rule(words or f"a finite number {'>' if above else '>='} {low:g}", holds)


def one_of(*names: str | None) -> Rule:
    """One of these words."""
    shown = [repr(name) for name in names]
    words = " or ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
    return Rule(words, lambda value: (value is None or isinstance(value, str)) and value in names)


def _rule_or_none(value: Any) -> Any:
    return value if value is None or (isinstance(value, str) and value.lower() == "mspl") else get(value)


def _rule_or_auto(value: Any) -> Any:
    return value if isinstance(value, str) and value == "auto" else get(value)


def check_pace(pace: Any) -> Any:
    """The parameter ``pace`` of an estimator: "auto", "paper", a Pacing, or a number, which is one fixed lam.

    A lam of ``inf`` is the plain model.

    >>> check_pace(2), check_pace("auto")
    (2.0, 'auto')
    """
    if isinstance(pace, Pacing) or (isinstance(pace, str) and pace in ("auto", "paper")):
        return pace
    if isinstance(pace, Real) and not isinstance(pace, bool) and float(pace) > 0:
        return float(pace)
    raise ValueError(
        f"pace must be 'auto', 'paper', a positive number (a fixed lam) or a selfpaced.pacing.Pacing, got {pace!r}"
    )


NOTHING = Rule("None", lambda value: value is None)
YES_OR_NO = Rule("True or False", _is_bool)
AUTO = one_of("auto")


def _is_estimator(value: Any) -> bool:
    return not inspect.isclass(value) and callable(getattr(value, "fit", None))


def _kind(value: Any, test: Callable[[Any], bool]) -> bool:
    """What scikit-learn takes an object for; of one that it knows nothing about, nothing is said."""
    try:
        return bool(test(value))
    except (AttributeError, TypeError):
        return False


ESTIMATOR = Rule("an estimator with fit", _is_estimator)


def _may_be(value: Any, asked: Callable[[Any], bool], other: Callable[[Any], bool]) -> bool:
    # stacks without a final estimator have no predict before fit, but are known to scikit-learn
    predicts = hasattr(value, "predict") and not _kind(value, other)
    return _is_estimator(value) and (predicts or _kind(value, asked))


def classifier(value: Any) -> bool:
    """Whether this may be a classifier."""
    return _may_be(value, is_classifier, is_regressor)


def regressor(value: Any) -> bool:
    """Whether this may be a regressor."""
    return _may_be(value, is_regressor, is_classifier)


def _reference_models(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(classifier(one) or (isinstance(one, str) and one == "self") for one in value)
    return classifier(value) or (isinstance(value, str) and value in ("auto", "self"))


def splits(value: Any) -> bool:
    """Whether this may say which rows are held out: a splitter, or an iterable of splits."""
    return hasattr(value, "split") or (isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping))


def _is_collection(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _is_range(value: Any) -> bool:
    pair = list(value) if isinstance(value, tuple | list) else []
    return len(pair) == 2 and all(isinstance(x, Real) and not _is_bool(x) for x in pair) and pair[0] < pair[1]


def _is_seed(value: Any) -> bool:
    if isinstance(value, np.random.RandomState) or value is None or value is np.random:
        return True
    return isinstance(value, Integral) and not _is_bool(value) and 0 <= int(value) < 2**32


CV = integer(2) | Rule(
    "a splitter or an iterable of splits", lambda value: not isinstance(value, str) and splits(value)
)

#: Name -> what it may be.
RULES: dict[str, Rule] = {
    "C": AUTO
    | Rule("a positive number", lambda value: isinstance(value, Real) and not _is_bool(value) and float(value) > 0),
    "alpha": number(0),
    "backend": one_of("auto", "numba", "numpy"),
    "balance": number(0, 1 + 1e-12, words="in [0, 1]"),
    "bounds": NOTHING | Rule("two numbers (low, high)", _is_range),
    "callback": NOTHING | Rule("callable", callable),
    "center": one_of("auto", "both", "rows", "columns", None),
    "class_weight": one_of(None, "balanced") | Rule("a dict", lambda value: isinstance(value, Mapping)),
    "continuation": YES_OR_NO,
    "cross_fit": YES_OR_NO | AUTO,
    "cv": CV,
    "efficiency": number(0.3, 1, words="in [0.3, 1)"),
    "embedding": one_of(None, "spectral"),
    "estimator": ESTIMATOR,
    "fit_intercept": YES_OR_NO,
    "how": one_of("drop", "weight"),
    "init": one_of("warm", "random"),
    "detector": ESTIMATOR,
    "reference_models": Rule("'auto', 'self', a classifier or a list of those", _reference_models),
    "keep_plain": YES_OR_NO,
    "tune": YES_OR_NO,
    "max_iter": integer(1),
    "max_rank": integer(1),
    "max_sweeps": integer(1),
    "n_clusters": integer(1),
    "n_init": integer(1),
    "n_jobs": NOTHING | Rule("a non-zero integer", lambda value: integer(-(2**31), 2**31).holds(value) and value != 0),
    "n_keep": integer(1),
    "n_neighbors": integer(1),
    "outlier_threshold": number(0, above=True, words="a positive number"),
    "pace": Rule.asked(check_pace),
    "penalty": one_of("l2", None),
    "polish": YES_OR_NO | integer(0),
    "random_state": Rule("None, an integer >= 0 and < 2**32 or a RandomState", _is_seed),
    "rank": AUTO | integer(1),
    "regularizer": Rule.asked(get),
    "rescue": YES_OR_NO,
    "reweight_rows": AUTO | integer(0),
    "ridge": number(0),
    "shift": YES_OR_NO | AUTO,
    "start": one_of("auto", "robust", "plain"),
    "threshold": number(0, 1 + 1e-12, words="in [0, 1]"),
    "tol": number(0),
    "verbose": YES_OR_NO | integer(0),
    "view_scaling": one_of("auto", "zscore", "variance", "unit-row", "none"),
    "views": NOTHING | Rule("a mapping or a sequence", _is_collection),
    "warm_start": YES_OR_NO,
    "warm_sweeps": integer(1),
}  # fmt: skip

#: Where a name means something else.
KINDS = {
    "classifier": Rule("a classifier", classifier),
    "classifier or None": Rule("a classifier", classifier) | NOTHING,
    "regressor": Rule("a regressor", regressor),
    "regressor or None": Rule("a regressor", regressor) | NOTHING,
    "estimator or None": ESTIMATOR | NOTHING,
    "cv or auto": AUTO | CV,
    "rule or None": Rule.asked(_rule_or_none),
    "rule or auto": Rule.asked(_rule_or_auto),
    "integer or None": NOTHING | integer(1),
    "number or auto": AUTO | number(0),
    "positive": number(0, above=True, words="a positive number"),
}


def check_parameters(model: Any) -> None:
    """Refuse what a parameter of an estimator may not be, by its name.

    Parameters
    ----------
    model : estimator
        Its ``_parameter_rules``, where it has any, come before the common `RULES`.
    """
    own: Mapping[str, Rule] = getattr(model, "_parameter_rules", {})
    for name, value in model.get_params(deep=False).items():
        rule = own.get(name) or RULES[name]
        if not rule.holds(value):
            raise ValueError(f"{name} must be {rule.words}, got {value!r}")


# ------------------------------------------------------------------------------------------------- arguments

# Errors of conversion by NumPy and pandas, which do not name the argument.
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


def check_number(name: str, value: Any, low: float, high: float, words: str) -> float:
    """A number from ``low`` to ``high``, both included.

    >>> check_number("rate", 1.5, 0, 1, "in [0, 1]")
    Traceback (most recent call last):
    ValueError: rate must be in [0, 1], got 1.5
    """
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or not low <= float(value) <= high:
        raise ValueError(f"{name} must be {words}, got {value!r}")
    return float(value)


def check_integer(name: str, value: Any, low: int, words: str) -> int:
    """A whole number, at least ``low``; one that is written as a float will do."""
    whole = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not whole or (not isinstance(value, Integral) and not float(value).is_integer()) or int(value) < low:
        raise ValueError(f"{name} must be {words}, got {value!r}")
    return int(value)


def check_most(n: Any) -> int | None:
    """Return the argument ``n`` of a list, the number of its lines at most; None is all of them."""
    return None if n is None else check_integer("n", n, 0, "an integer >= 0 or None")


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
        classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least 2 classes; the data contains only one class: {told_label(classes[0])}")
    return classes, codes.astype(np.intp, copy=False)


def known_codes(given: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """The place of each label among the sorted classes of a fit, or an error that names one that is not there."""
    check_label_array(given)
    codes = np.searchsorted(classes, given)
    known = codes < classes.size
    known[known] = classes[codes[known]] == given[known]
    if not known.all():
        raise ValueError(f"y must hold labels seen in fit {classes.tolist()!r}, got {told_label(given[~known][0])}")
    return codes


def told_label(label: Any) -> str:
    """A label as people write it."""
    return repr(np.asarray(label).item())
