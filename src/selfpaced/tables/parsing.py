"""Text that means numbers or dates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["date_format", "parse_dates", "parse_numbers"]

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


def parse_numbers(values: pd.Series) -> pd.Series:
    """Numbers written with thousands separators, a decimal comma, a currency or per cent sign; else NaN.

    >>> import pandas as pd
    >>> parse_numbers(pd.Series(["1,234.5", "$ 7", "3 %", "2,5", "seven"])).tolist()
    [1234.5, 7.0, 3.0, 2.5, nan]
    """
    import pandas as pd

    plain = pd.to_numeric(values, errors="coerce")
    rest = plain.isna() & values.notna()
    if not rest.any():
        return plain.astype("float64")
    text = values[rest].astype(str).str.strip().str.strip("$€£¥% ").str.strip()
    thousands = text.str.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
    text = text.where(~thousands, text.str.replace(",", "", regex=False))
    comma = text.str.fullmatch(r"[-+]?\d+,\d+")
    text = text.where(~comma, text.str.replace(",", ".", regex=False))
    plain = plain.astype("float64")
    plain[rest] = pd.to_numeric(text, errors="coerce").astype("float64")
    return plain


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
    probe = values.iloc[:200]
    if not probe.str.contains(r"\d", regex=True).mean() >= enough:
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
