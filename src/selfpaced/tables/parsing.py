"""Text that means numbers or dates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ONLY",
    "are_codes",
    "date_format",
    "decimal_sign",
    "has_decimal_commas",
    "looks_numeric",
    "parse_dates",
    "parse_numbers",
]

ENOUGH = 0.95  # a choice: share of the values that have to read as numbers (or dates) for the column to be one
SAMPLE = 20_000  # cost: values looked at to tell the kind of a column
PROBE = 200  # cost: values looked at to rule a kind out


def _only(decimal: str, group: str) -> str:
    """Return the pattern of numbers that can be read with this decimal sign only."""
    d, g = re.escape(decimal), re.escape(group)
    forms = (
        rf"[1-9]\d{{0,2}}({g}\d{{3}})+{d}\d*",  # 1,234.5
        rf"[1-9]\d{{0,2}}({g}\d{{3}}){{2,}}",  # 1,234,567
        rf"\d*{d}(\d\d?|\d{{4,}})",  # 2.5, .25
        rf"(0\d*|\d{{4,}})?{d}\d{{3}}",  # 0.125, 1234.567
        rf"\d+{d}\d*[eE][-+]?\d+",
    )
    return rf"[-+]?({'|'.join(forms)})"


#: Patterns of numbers that can be read with this decimal sign only.
ONLY = {".": _only(".", ","), ",": _only(",", ".")}
_EITHER = r"[-+]?[1-9]\d{0,2},\d{3}"
_NUMBER = {
    d: rf"[-+]?([1-9]\d{{0,2}}({re.escape(g)}\d{{3}})+|\d*)({re.escape(d)}\d*)?([eE][-+]?\d+)?" for d, g in (".,", ",.")
}
_DAYS = (
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d-%b-%Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d.%m.%y",
)
_TIMES = ("", " %H:%M", " %H:%M:%S")
_TWINS = {form: form.replace("%d", "?").replace("%m", "%d").replace("?", "%m") for form in _DAYS}


def parse_numbers(values: pd.Series, decimal: str = ".") -> pd.Series:
    """Return numbers written with thousands separators, a currency or per cent sign; what is none becomes NaN.

    Parameters
    ----------
    values : pandas.Series
        Text or numbers.
    decimal : {".", ","}, default="."
        The decimal sign of the whole column, which :func:`decimal_sign` finds; the other one separates thousands.

    >>> import pandas as pd
    >>> parse_numbers(pd.Series(["1,234.5", "$ 7", "3 %", "seven"])).tolist()
    [1234.5, 7.0, 3.0, nan]
    >>> parse_numbers(pd.Series(["0,125", "1.200"]), ",").tolist()
    [0.125, 1200.0]
    """
    import pandas as pd
    from pandas.api import types

    if types.is_numeric_dtype(values.dtype):
        return values.astype("float64")
    plain = pd.to_numeric(values if decimal == "." else values.mask(_separated(values)), errors="coerce")
    plain = plain.astype("float64")
    rest = plain.isna() & values.notna()
    if not rest.any():
        return plain
    text, group = _bare(values[rest]), "," if decimal == "." else "."
    text = text.where(text.str.fullmatch(_NUMBER[decimal])).str.replace(group, "", regex=False)
    plain[rest] = pd.to_numeric(text.str.replace(decimal, ".", regex=False), errors="coerce").astype("float64")
    return plain


def decimal_sign(values: pd.Series, default: str = "") -> str:
    """Return the decimal sign of a column of text, decided from all its cells; ``default`` if they do not tell.

    ``0,125`` and ``1.234,5`` have a decimal comma, ``1,234.5`` and ``1,234,567`` a decimal point, and ``1,234`` could
    have either. Cells that contradict the others are the exception up to a share of 5 %.

    >>> import pandas as pd
    >>> decimal_sign(pd.Series(["0,125", "1,234"])), decimal_sign(pd.Series(["1,234", "12,500"]))
    (',', '')
    """
    text = _bare(values[_separated(values)])
    if not len(text):
        return "."
    votes = {sign: int(text.str.fullmatch(pattern).sum()) for sign, pattern in ONLY.items()}
    if any(votes.values()):
        sign = max(votes, key=lambda one: votes[one])
        return sign if votes[sign] >= ENOUGH * sum(votes.values()) else default
    if text.str.fullmatch(_EITHER).any():
        return default
    return default or "."  # 1.234 is how programs write a decimal point


def has_decimal_commas(frame: pd.DataFrame) -> bool:
    """Return whether a text column of the table holds numbers with a decimal comma."""
    from pandas.api import types

    for place, kind in enumerate(frame.dtypes):
        if not (types.is_string_dtype(kind) or types.is_object_dtype(kind)):
            continue
        values = frame.iloc[:, place].dropna()
        if looks_numeric(values.iloc[:: max(1, len(values) // SAMPLE)]) and decimal_sign(values) == ",":
            return True
    return False


def looks_numeric(values: pd.Series) -> bool:
    """Return whether most cells are numbers, with a decimal point or a decimal comma."""
    text = values.astype(str)
    if not len(text) or text.iloc[:PROBE].str.contains(r"\d", regex=True).mean() < ENOUGH:
        return False
    readable = parse_numbers(text, ".").notna() | parse_numbers(text, ",").notna()
    return bool(readable.mean() >= ENOUGH)


def are_codes(values: pd.Series) -> bool:
    """Return whether digits are codes and no quantities, as leading zeros tell: ``02139``.

    >>> import pandas as pd
    >>> are_codes(pd.Series(["02139", "10001"])), are_codes(pd.Series(["2139", "10001"]))
    (True, False)
    """
    digits = values[values.str.fullmatch(r"\d+")]
    zeros = digits.str.fullmatch(r"0\d+")
    if not zeros.any() or len(digits) < ENOUGH * len(values):
        return False
    return bool(digits.str.len().nunique() == 1 or zeros.mean() > 1 - ENOUGH)


def _separated(values: pd.Series) -> pd.Series:
    """Return which cells have a point or a comma."""
    return values.astype(str).str.contains("[.,]", regex=True) & values.notna()


def _bare(values: pd.Series) -> pd.Series:
    """Return text without spaces, currency and per cent signs around it."""
    return values.astype(str).str.strip().str.strip("$€£¥% ").str.strip()


def parse_dates(values: pd.Series, form: str) -> pd.Series:
    """Dates without a time zone (offsets become UTC); what does not match is missing."""
    import pandas as pd

    parsed = pd.to_datetime(values.astype("object"), format=form, errors="coerce", utc=True)
    return parsed.dt.tz_localize(None)


def date_format(values: pd.Series, enough: float) -> tuple[str, bool]:
    """The format in which at least a share ``enough`` of the values are dates, and whether another reads them too.

    >>> import pandas as pd
    >>> date_format(pd.Series(["3.1.2020", "31.12.2021"]), 0.95)
    ('%d.%m.%Y', False)
    """
    probe = values.iloc[:PROBE]
    if not probe.str.contains(r"\d\D+\d", regex=True).mean() >= enough:
        return "", False
    if parse_dates(values, "ISO8601").notna().mean() >= enough:
        return "ISO8601", False
    for day in _DAYS:
        for time in _TIMES:
            form = day + time
            if parse_dates(probe, form).notna().mean() < enough:
                continue
            share = parse_dates(values, form).notna().mean()
            other = parse_dates(values, _TWINS[day] + time).notna().mean() if _TWINS[day] in _DAYS else 0.0
            if max(share, other) >= enough:
                return (form, bool(other == share)) if share >= other else (_TWINS[day] + time, False)
    return "", False
