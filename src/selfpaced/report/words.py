"""Numbers as people read them."""

from __future__ import annotations

import math


def count(value: int) -> str:
    """An integer with thousands separated.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def percent(share: float, digits: int | None = None) -> str:
    """A share in percent: one digit below ten percent, none above, unless asked for.

    >>> percent(0.031), percent(0.31), percent(0.0), percent(0.31, 1)
    ('3.1 %', '31 %', '0 %', '31.0 %')
    """
    value = 100 * share
    if digits is not None:
        return f"{value:.{digits}f} %"
    return f"{value:.1f} %" if 0 < value < 9.95 else f"{value:.0f} %"


def number(value: float, digits: int = 3) -> str:
    """A number with this many significant digits, no exponent where it can be avoided.

    >>> number(0.123456), number(1234.5), number(float("inf"))
    ('0.123', '1,234', 'inf')
    """
    if not math.isfinite(value):
        return str(value)
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def share(rate: float, interval: tuple[float, float]) -> str:
    """A share of wrong rows in words that claim no more than its interval does.

    >>> share(0.2, (0.1, 0.3)), share(0.0, (0.0, 0.024))
    ('about 20 % (between 10 % and 30 %)', 'none found (at most 2.4 %)')
    >>> share(math.nan, (0.0, 0.99))
    'between 0 % and 99 %; the data cannot tell whether any are'
    """
    low, high = interval
    if math.isnan(rate):
        return f"between {percent(low)} and {percent(high)}; the data cannot tell whether any are"
    between = f"between {percent(low)} and {percent(high)}"
    if low > 0 or not math.isfinite(low):
        return f"about {percent(rate)} ({between})"
    return f"none found (at most {percent(high)})" if rate < 0.0005 else f"perhaps {percent(rate)} ({between})"


def plural(value: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "sample"), plural(2000, "entry")
    ('1 sample', '2,000 entries')
    """
    if value == 1:
        return f"1 {noun}"
    return f"{count(value)} {noun[:-1]}ies" if noun.endswith("y") else f"{count(value)} {noun}s"
