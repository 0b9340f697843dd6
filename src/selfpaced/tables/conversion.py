"""Cells of a column as numbers, dates or categories, once its kind is known."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import TableWarning
from .parsing import decimal_sign, parse_dates, parse_numbers

if TYPE_CHECKING:
    import pandas as pd

    from .schema import SchemaColumn

__all__ = ["MISSING", "blank", "digits_of", "to_categories", "to_dates", "to_numbers"]

MISSING = "(missing)"


def to_numbers(series: pd.Series, column: SchemaColumn, decimal: str) -> NDArray[Any]:
    """Numbers without a copy where they are numbers already."""
    import pandas as pd
    from pandas.api import types

    if types.is_timedelta64_dtype(series.dtype):
        series = series.dt.total_seconds()
    elif not types.is_numeric_dtype(series.dtype):
        sign = column.decimal or decimal_sign(series, decimal)
        parsed = parse_numbers(series, sign) if sign else pd.to_numeric(series, errors="coerce")
        _tell_unreadable(series, parsed, column, "numbers")
        series = parsed
    plain = isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiu"
    values: NDArray[Any] = series.to_numpy() if plain else series.to_numpy(dtype=float, na_value=np.nan)
    if values.dtype.kind != "f" or not np.isinf(values).any():
        return values
    return np.where(np.isinf(values), np.nan, values)


def to_dates(series: pd.Series, column: SchemaColumn) -> pd.Series:
    from pandas.api import types

    if types.is_datetime64_any_dtype(series.dtype):
        return series.dt.tz_localize(None) if series.dt.tz is not None else series
    text = digits_of(series) if types.is_numeric_dtype(series.dtype) else series.astype("object").str.strip()
    parsed = parse_dates(text, column.format or "ISO8601")
    _tell_unreadable(series, parsed, column, "dates")
    return parsed


def to_categories(series: pd.Series) -> pd.Categorical:
    """Categories as text; gaps are one of them."""
    import pandas as pd

    codes, values = pd.factorize(series)
    # 1 and 1.0 are one category: a gap elsewhere in the column makes integers floats.
    names = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values.tolist()]
    names = [name if name.strip() else MISSING for name in names] + [MISSING]
    known = {name: place for place, name in enumerate(sorted(set(names)))}
    table = np.array([known[name] for name in names])
    return pd.Categorical.from_codes(table[codes], categories=list(known))  # a gap has code -1, the last entry


def blank(text: pd.Series) -> pd.Series:
    """Cells with nothing in them: missing, wherever the table comes from."""
    return text.str.strip() == ""


def _tell_unreadable(series: pd.Series, parsed: pd.Series, column: SchemaColumn, what: str) -> None:
    """Warn of unreadable cells and say where the first one is."""
    unread = series[parsed.isna() & series.notna()]
    unread = unread[~blank(unread.astype(str))]
    if len(unread):
        cells = f"{len(unread):,} cell{'s are' if len(unread) > 1 else ' is'} not {what}"
        sign = f" with decimal {column.decimal!r}" if column.decimal else ""
        where = f"first {unread.iloc[0]!r} in row {unread.index[0]}"
        message = f"column {column.name!r}: {cells}{sign} and count{'s' * (len(unread) == 1)} as missing, {where}"
        warnings.warn(message, TableWarning, stacklevel=2)


def digits_of(values: Any) -> pd.Series:
    """Whole numbers as text; what is missing stays so."""
    import pandas as pd

    series = pd.Series(values)
    return series.astype("Int64").astype(str).where(series.notna())
