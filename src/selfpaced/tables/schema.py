"""What each column of a table holds: numbers, categories, dates, or nothing a model can use."""

from __future__ import annotations

import difflib
import json
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .conversion import blank, digits_of, to_categories, to_dates, to_numbers
from .errors import TableWarning
from .parsing import ENOUGH, SAMPLE, are_codes, date_format, decimal_sign, looks_numeric, parse_dates, parse_numbers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Schema", "SchemaColumn", "TypedColumns", "infer_schema", "suggestion"]

USED = ("numeric", "categorical", "date")
DAYS = "%Y%m%d"  # convention: dates as whole numbers, 20240131
FEW = 20  # a choice: so many different values are categories whatever they look like
SHOWN = 5  # display: columns that are named one by one
WORDS, LETTERS = 3.5, 40  # a choice: a mean from which on a column is free text


@dataclass(frozen=True)
class SchemaColumn:
    """One column and what was found in it.

    Attributes
    ----------
    name : str
    kind : {"numeric", "categorical", "date", "text", "identifier", "constant", "empty", "excluded"}
        The first three are used, the others are left out.
    missing : int
        Rows without a value.
    format : str
        How dates are written.
    note : str
        Why it was left out or read in a particular way; empty where there is nothing to say.
    bad : int
        First row whose value could not be read as the kind, -1 if none.
    decimal : {"", ".", ","}
        Decimal sign of numbers that are written as text.
    codes : bool
        Whether these are digits with leading zeros, which are no quantities.
    """

    name: str
    kind: str
    missing: int = 0
    format: str = ""
    note: str = ""
    bad: int = -1
    decimal: str = ""
    codes: bool = False

    @property
    def used(self) -> bool:
        """Whether a model sees this column."""
        return self.kind in USED

    @property
    def as_text(self) -> bool:
        """Whether new tables have to be read as text in this column, as the first one was."""
        return bool(self.decimal) or self.codes


@dataclass(frozen=True)
class Schema:
    """The columns of a table in their order."""

    columns: tuple[SchemaColumn, ...]

    def __getstate__(self) -> dict[str, str]:
        """Return the columns as one text: a file of ten thousand objects takes most of the time of a fit to write."""
        return {"columns": json.dumps([astuple(column) for column in self.columns])}

    def __setstate__(self, state: dict[str, str]) -> None:
        """Take the columns from their text."""
        columns = tuple(SchemaColumn(*values) for values in json.loads(state["columns"]))
        object.__setattr__(self, "columns", columns)

    @property
    def used(self) -> tuple[SchemaColumn, ...]:
        """The columns a model sees."""
        return tuple(column for column in self.columns if column.used)

    @property
    def left_out(self) -> tuple[SchemaColumn, ...]:
        """The columns nobody excluded and that are left out all the same."""
        return tuple(c for c in self.columns if not c.used and c.kind != "excluded")

    def names(self, kind: str) -> list[str]:
        """Names of the columns of one kind."""
        return [column.name for column in self.columns if column.kind == kind]


def infer_schema(
    frame: pd.DataFrame, *, categorical: Iterable[str] = (), exclude: Iterable[str] = (), decimal: str = ""
) -> Schema:
    """Find out what each column holds.

    Text that reads as numbers (``"1,234"``, ``"$ 5"``, ``"3 %"``) or as dates in at least 95 % of the rows is
    numbers or dates, and the rest of it is missing. Other text with few different values is categories. Free
    text, names, identifiers, constants and empty columns are left out.

    The decimal sign is decided for each column from all its cells. If they could be read either way (``"1,234"``), the
    column is text unless ``decimal`` tells. Digits with leading zeros are codes, and whole numbers such as 20240131 are
    dates.

    Parameters
    ----------
    frame : pandas.DataFrame
    categorical : iterable of str
        Columns that are categories whatever they look like.
    exclude : iterable of str
        Columns to leave out.
    decimal : {"", ".", ","}
        Decimal sign of text columns whose cells could be read either way.

    Returns
    -------
    Schema

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"paid": ["1,200.50", "950"] * 30, "day": ["3.1.2020", "4.1.2020"] * 30})
    >>> [column.kind for column in infer_schema(frame).columns]
    ['numeric', 'date']
    """
    categorical, exclude = set(categorical), set(exclude)
    unknown = (categorical | exclude) - set(frame.columns)
    if unknown:
        name = sorted(map(str, unknown))[0]
        raise ValueError(f"the table has no column {name!r}{suggestion(name, frame.columns)}")
    if decimal not in ("", ".", ","):
        raise ValueError(f"decimal must be '', '.' or ',', got {decimal!r}")
    columns = []
    for place, name in enumerate(frame.columns):
        if name in exclude:
            columns.append(SchemaColumn(str(name), "excluded"))
        else:
            columns.append(_infer(frame.iloc[:, place], str(name), name in categorical, decimal))
    return Schema(tuple(columns))


def _infer(series: pd.Series, name: str, categorical: bool, decimal: str) -> SchemaColumn:
    from pandas.api import types

    missing = int(series.isna().sum())
    values = series.dropna() if missing else series
    if not len(values):
        return SchemaColumn(name, "empty", missing, note="it has no values")
    if categorical:
        return SchemaColumn(name, "categorical", missing, codes=_is_text(series))
    if types.is_datetime64_any_dtype(series.dtype):
        return SchemaColumn(name, "date", missing)
    if types.is_numeric_dtype(series.dtype) or types.is_timedelta64_dtype(series.dtype):
        return _infer_numeric(values, name, missing)
    if series.dtype == object and values.map(type).isin([list, dict, np.ndarray, set, bytes]).any():
        return SchemaColumn(name, "text", missing, note="it holds nested values")
    text = values.astype(str)
    empty = blank(text)
    if empty.all():
        return SchemaColumn(name, "empty", missing + len(text), note="it has no values")
    return _infer_text(text[~empty], name, missing + int(empty.sum()), decimal)


def counts_rows(array: Any) -> bool:
    """Whether whole numbers only count the rows, up or down.

    >>> counts_rows(np.arange(3, 9)), counts_rows(np.array([1, 2, 4]))
    (True, False)
    """
    steps = np.diff(array)
    return bool(np.all(steps == 1) or np.all(steps == -1))


def are_days(array: NDArray[Any]) -> bool:
    """Whether whole numbers are dates of the years 1800 to 2199 written as YYYYMMDD.

    >>> are_days(np.array([20240131, 19991231])), are_days(np.array([20240131, 20241331]))
    (True, False)
    """
    if array.dtype.kind not in "iuf" or array.min() < 18_000_101 or array.max() > 21_991_231 or np.mod(array, 1).any():
        return False
    return bool(parse_dates(digits_of(np.unique(array)), DAYS).notna().all())


def _is_text(series: pd.Series) -> bool:
    from pandas.api import types

    return not types.is_numeric_dtype(series.dtype)


def _infer_numeric(values: pd.Series, name: str, missing: int) -> SchemaColumn:
    array = values.to_numpy()
    if array.min() == array.max():
        return (
            SchemaColumn(name, "constant", missing, note=f"every value is {array[0]!s}")
            if not missing
            else SchemaColumn(name, "numeric", missing)
        )
    if are_days(array):
        return SchemaColumn(name, "date", missing, DAYS, note=f"whole numbers such as {array[0]:.0f} are read as dates")
    if array.dtype.kind in "iu" and array.size >= FEW and not missing:
        if counts_rows(array):
            return SchemaColumn(name, "identifier", missing, note="it only counts the rows")
        if re.search(r"(^|[\W_])id$|ID$", name, re.ASCII) and np.unique(array).size == array.size:
            return SchemaColumn(name, "identifier", missing, note="every row has its own number")
    infinite = int(np.isinf(array).sum()) if array.dtype.kind == "f" else 0
    note = f"{infinite:,} infinite values count as missing" if infinite else ""
    return SchemaColumn(name, "numeric", missing, note=note)


def _infer_text(values: pd.Series, name: str, missing: int, decimal: str) -> SchemaColumn:
    sample = values.iloc[:: max(1, len(values) // SAMPLE)]
    if looks_numeric(sample):
        return _infer_digits(values, sample, name, missing, decimal)
    found, ambiguous = date_format(sample, ENOUGH)
    if found:
        column = _converted(values, name, missing, "date", found, parse_dates(values, found))
        if ambiguous and not column.note:
            note = f"dates read as {found}: day and month cannot be told apart"
            return SchemaColumn(name, "date", missing, found, note)
        return column
    return _infer_words(values, sample, name, missing)


def _infer_digits(values: pd.Series, sample: pd.Series, name: str, missing: int, decimal: str) -> SchemaColumn:
    """Text that looks like numbers: quantities, dates, codes, or no one can tell."""
    sign = decimal_sign(values, decimal)
    if are_codes(values):
        note = "digits with leading zeros are codes, no quantities"
    elif sign and parse_numbers(sample, sign).notna().mean() >= ENOUGH:
        numbers = parse_numbers(values, sign)
        if are_days(numbers.dropna().to_numpy()):
            return _converted(values, name, missing, "date", DAYS, parse_dates(values.str.strip(), DAYS))
        return replace(_converted(values, name, missing, "numeric", "", numbers), decimal=sign)
    else:
        shown = sample[sample.str.contains("[.,]", regex=True)].iloc[0]
        note = f"numbers such as {shown!r} may have decimals or thousands, so it is read as text (see --decimal)"
    found = _infer_words(values, sample, name, missing)
    return replace(found, codes=True, note=f"{note}; {found.note}" if found.note else note)


def _infer_words(values: pd.Series, sample: pd.Series, name: str, missing: int) -> SchemaColumn:
    distinct, n = int(values.nunique()), len(values)
    if distinct == 1 and not missing:
        return SchemaColumn(name, "constant", missing, note=f"every value is {values.iloc[0]!r}")
    if distinct <= FEW and 2 * distinct <= n:
        return SchemaColumn(name, "categorical", missing)
    words, letters = float(sample.str.count(r"\S+").mean()), float(sample.str.len().mean())
    if words >= WORDS or letters >= LETTERS:
        return SchemaColumn(name, "text", missing, note=f"it is free text ({words:.0f} words on average)")
    if 2 * distinct > n:
        return SchemaColumn(name, "identifier", missing, note=f"{distinct:,} different values in {n:,} rows")
    return SchemaColumn(name, "categorical", missing)


def _converted(values: pd.Series, name: str, missing: int, kind: str, form: str, parsed: pd.Series) -> SchemaColumn:
    """A text column that reads as numbers or dates, with a note on the cells that do not."""
    bad = parsed.isna()
    count = int(bad.sum())
    if not count:
        return SchemaColumn(name, kind, missing, form)
    first, what = bad.idxmax(), {"numeric": "numbers", "date": "dates"}[kind]
    note = f"{count:,} cell{'s are' if count > 1 else ' is'} not {what} and count as missing, first {values[first]!r}"
    return SchemaColumn(name, kind, missing + count, form, note, int(first))


class TypedColumns(TransformerMixin, BaseEstimator):
    """Give the columns of a table their types, and leave out those no model can use.

    The output is a pandas frame whose columns are floats, categories or dates; what cannot be read as its kind is
    missing.

    Parameters
    ----------
    categorical : sequence of str
        Columns that are categories whatever they look like.
    exclude : sequence of str
        Columns to leave out.
    decimal : {"", ".", ","}
        Decimal sign of text columns whose cells could be read either way; such columns are text by default.

    Attributes
    ----------
    schema_ : Schema
        What was found in :meth:`fit`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"paid": ["1,200.50", "950"] * 30, "kind": ["a", "b"] * 30, "fixed": 1})
    >>> TypedColumns().fit_transform(frame).dtypes.astype(str).to_dict()
    {'paid': 'float64', 'kind': 'category'}
    """

    def __init__(self, categorical: Sequence[str] = (), exclude: Sequence[str] = (), decimal: str = "") -> None:
        self.categorical = categorical
        self.exclude = exclude
        self.decimal = decimal

    def fit(self, X: pd.DataFrame, y: Any = None) -> TypedColumns:  # noqa: ARG002
        """Find the types.

        Parameters
        ----------
        X : pandas.DataFrame
        y : ignored

        Returns
        -------
        self
        """
        X = _frame(X)
        self.schema_ = infer_schema(X, categorical=self.categorical, exclude=self.exclude, decimal=self.decimal)
        if not self.schema_.used:
            left = self.schema_.left_out
            shown = "; ".join(f"{c.name!r}: {c.note}" for c in left[:SHOWN]) + "; ..." * (len(left) > SHOWN)
            raise ValueError(f"no column can be used: {shown}")
        self.feature_names_in_ = np.array([c.name for c in self.schema_.columns], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def fit_transform(self, X: pd.DataFrame, y: Any = None, **_: Any) -> pd.DataFrame:
        """Find the types and return the used columns; the schema's notes tell of cells that could not be read."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)
            return self.fit(X, y).transform(X)

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """The used columns with their types; further columns of ``X`` do not matter.

        Parameters
        ----------
        X : pandas.DataFrame

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        check_is_fitted(self, "schema_")
        X = _frame(X)
        used = self.schema_.used
        absent = [c.name for c in used if c.name not in X.columns]
        if absent:
            raise ValueError(
                f"the table has no column {absent[0]!r}, which the model was fitted on"
                + suggestion(absent[0], X.columns)
                + (f" {len(absent) - 1} more are missing: {absent[1:6]}" if len(absent) > 1 else "")
            )
        return pd.DataFrame({c.name: self._typed(X[c.name], c) for c in used}, index=X.index, copy=False)

    def _typed(self, series: pd.Series, column: SchemaColumn) -> Any:
        if column.kind == "categorical":
            return to_categories(series)
        if column.kind == "date":
            return to_dates(series, column)
        return to_numbers(series, column, self.decimal)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Names of the used columns."""
        check_is_fitted(self, "schema_")
        return np.array([c.name for c in self.schema_.used], dtype=object)


def suggestion(name: str, known: Iterable[Any]) -> str:
    """``"; did you mean ...?"`` for a name that is nearly one of the known ones, else the known ones.

    >>> suggestion("lable", ["label", "age"])
    "; did you mean 'label'?"
    """
    names = [str(other) for other in known]
    folded = {other.casefold().strip(): other for other in names}
    near = difflib.get_close_matches(str(name).casefold().strip(), list(folded), n=1, cutoff=0.5)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; its columns are {shown}"


def _frame(X: Any) -> pd.DataFrame:
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "to_pandas"):  # polars, Arrow
        return X.to_pandas()
    raise TypeError(f"X must be a table with column names (a pandas or polars DataFrame), got {type(X).__name__}")
