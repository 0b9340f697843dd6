"""Numbers, shares and counts as people write them: the one place for the terminal and the page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable


def count(value: int) -> str:
    """Return an integer with thousands separators.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def percent(share: float, digits: int | None = None) -> str:
    """Return a share in percent: one digit below ten percent and above 99, none between, unless asked for.

    Only 1 itself is 100 %.

    >>> percent(0.031), percent(0.31), percent(0.0), percent(0.31, 1), percent(0.9999)
    ('3.1 %', '31 %', '0 %', '31.0 %', '99.9 %')
    """
    value = 100 * share
    if digits is None:
        digits = 1 if 0 < value < 9.95 or 99 < value < 100 else 0
        value = min(value, 99.9) if share < 1 else value
    return f"{value:.{digits}f} %"


def solid_percent(text: str) -> str:
    """Return a text whose percent signs all have a space before them, at which no line breaks.

    >>> solid_percent("6% to 7 %").replace("\\N{NO-BREAK SPACE}", "_")
    '6_% to 7_%'
    """
    return re.sub(r"(?<=\d) ?%", "\N{NO-BREAK SPACE}%", text)


def number(value: float, digits: int = 3) -> str:
    """Return a number with at least this many significant digits, without an exponent if possible.

    >>> number(0.123456), number(1234.5), number(1610800.0, 5), number(23456.7, 5), number(1e-9)
    ('0.123', '1234', '1,610,800', '23,457', '1.00e-09')
    """
    if not math.isfinite(value):
        return str(value)
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}"
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def plural(value: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "sample"), plural(2000, "entry")
    ('1 sample', '2,000 entries')
    """
    if value == 1:
        return f"1 {noun}"
    return f"{count(value)} {noun[:-1]}ies" if noun.endswith("y") else f"{count(value)} {noun}s"


def duration(seconds: float) -> str:
    """Return a time.

    >>> duration(0.42), duration(13.4), duration(95)
    ('0.4 s', '13 s', '1 min 35 s')
    """
    if seconds >= 60:
        return f"{int(seconds // 60)} min {round(seconds % 60)} s"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def listed(names: list[str], most: int = 8) -> str:
    """Return names with commas, the first ``most`` of them.

    >>> listed(["a", "b"]), listed(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    rest = f" and {count(len(names) - most)} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def unused_columns(columns: Iterable[tuple[str, str]]) -> str:
    """Return the columns that were not used, each with the reason.

    >>> unused_columns([("order_id", "identifier"), ("n2", "empty")])
    'Not used: order_id (identifier), n2 (empty).'
    """
    found = [f"{name} ({reason})" for name, reason in columns]
    return f"Not used: {listed(found)}." if found else ""


def rate_in_words(rate: float, interval: tuple[float, float] | None, found: bool = False) -> str:
    """Return an estimated error rate in words that claim no more than its interval does, unless errors were ``found``.

    >>> rate_in_words(0.2, (0.1, 0.3)), rate_in_words(0.0, (0.0, 0.024)), rate_in_words(0.2, None)
    ('about 20 % (10 % to 30 %)', 'none detected (at most 2.4 %)', 'about 20 %')
    >>> rate_in_words(math.nan, (0.0, 0.99)), rate_in_words(0.1, (0.0, 0.3))
    ('between 0 % and 99 %; the data do not show whether there are any', 'perhaps 10 %, perhaps none (0 % to 30 %)')
    >>> rate_in_words(0.1, (0.0, 0.3), found=True)
    'about 10 % (0 % to 30 %)'
    """
    if interval is None:
        return f"about {percent(rate)}"
    low, high = interval
    if math.isnan(rate):
        return f"between {percent(low)} and {percent(high)}; the data do not show whether there are any"
    between = f"({percent(low)} to {percent(high)})"
    if low > 0 or found or not math.isfinite(low):
        return f"about {percent(rate)} {between}"
    shown = rate >= 0.0005  # display: below, it would be printed as zero
    return f"perhaps {percent(rate)}, perhaps none {between}" if shown else f"none detected (at most {percent(high)})"
