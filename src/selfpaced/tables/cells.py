"""Cells that mean numbers, dates or nothing: one convention for each column."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

READABLE = 0.9  # a choice: share of the cells that have to read as numbers (or dates) for the column to be one
GROUPED = 30  # theory: numbers such as 1,234 beside 950 that are thousands; 0.9 ** 30 of decimals would end in no zero
UNREADABLE_SHARE = 0.02  # a choice: share of the cells up to which endings that are no unit count as unreadable
LARGEST_NUMBER = 1e100  # numerical safety: the squares of larger numbers overflow
DATES_PROBED = 200  # cost: cells from which the format of dates is guessed

# convention: spellings of a missing value, in lower case
MISSING = frozenset([
    "", "-", "--", "---", "–", "—", "?", "??", ".", "..", "...", "n/a", "n.a.", "na", "#n/a", "#na", "nan", "none",
    "null", "nil", "unknown", "not available", "not applicable", "missing", "tbd", "tba", "unspecified", "#value!",
    "#ref!", "#div/0!", "<na>", "\\n", "k.a.", "n.d.",
])  # fmt: skip
_SIGNS = "$€£¥₹₽₩₺¢"
_CODES = r"usd|eur|gbp|chf|jpy|cny|inr|aud|cad|nzd|sek|nok|dkk|pln|czk|huf|brl|mxn|zar|rs\.?|kr\.?|zł|fr\."
_MONEY = rf"(?:[a-z]{{0,3}}[{_SIGNS}]|\b(?:{_CODES})(?![a-z]))"
_SPACES = "'’\u00a0\u202f\u2009 "
_CELL = re.compile(
    rf"(?P<open>\()?\s*[~≈<>≤≥]?\s*(?P<sign>[-+−–])?\s*{_MONEY}?\s*(?P<late>[-+−–])?\s*"
    rf"(?P<digits>\d[\d.,{_SPACES}]*\d|\d|[.,]\d+)(?P<separator>[.,])?(?P<exponent>e[-+]?\d+)?\s*"
    rf"(?P<ending>[^\W\d_][^\d()]{{0,15}}?|[%°\"{_SIGNS}][^\d()]{{0,15}}?)?\s*\)?\s*\+?",
    re.IGNORECASE,
)
# convention: what letters behind a number multiply it by
_TIMES = {
    **dict.fromkeys(("k", "thousand", "tsd"), 1e3),
    **dict.fromkeys(("m", "mn", "mm", "mio", "million"), 1e6),
    **dict.fromkeys(("b", "bn", "billion", "mrd"), 1e9),
    **dict.fromkeys(("tn", "trillion"), 1e12),
}
# convention: units of one kind, which are converted if a column mixes them
_UNITS: tuple[dict[str, float], ...] = (
    {"kg": 1, "g": 1e-3, "gr": 1e-3, "mg": 1e-6, "lb": 0.45359237, "pound": 0.45359237, "oz": 0.028349523, "ton": 1e3},
    {"m": 1, "mt": 1, "meter": 1, "metre": 1, "masl": 1, "cm": 1e-2, "mm": 1e-3, "km": 1e3, "ft": 0.3048,
     "feet": 0.3048, "in": 0.0254, "inch": 0.0254, "mi": 1609.344, "mile": 1609.344},
    {"min": 1, "minute": 1, "h": 60, "hr": 60, "hour": 60, "sec": 1 / 60, "second": 1 / 60, "day": 1440},
)  # fmt: skip


@dataclass(frozen=True)
class CellLevels:
    """The distinct cells of a column as text, without extra spaces and in one case.

    ``codes`` are the places of every row's cell in ``texts`` (-1: missing), ``shown`` is how the table spells them
    first, and ``counts`` are the rows of each.
    """

    codes: NDArray[np.intp]
    texts: list[str]
    shown: list[str]
    counts: NDArray[np.intp]

    @classmethod
    def of(cls, series: pd.Series) -> CellLevels:
        """Return the levels of a column of anything; every spelling of "missing" is missing."""
        import pandas as pd

        if isinstance(series.dtype, pd.CategoricalDtype):
            codes, values = series.cat.codes.to_numpy(), series.cat.categories
        else:
            codes, values = pd.factorize(series)
        known: dict[str, int] = {}
        shown: list[str] = []
        place = np.full(len(values) + 1, -1, dtype=np.intp)
        for number, value in enumerate(values.tolist()):
            # 1 and 1.0 are one level: a gap elsewhere in the column makes integers floats.
            text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
            folded = text.casefold()
            if folded not in MISSING:
                place[number] = known.setdefault(folded, len(known))
                shown += [text] * (len(known) > len(shown))
        codes = place[codes]
        return cls(codes, list(known), shown, np.bincount(codes[codes >= 0], minlength=len(known)))

    def share(self, holds: NDArray[np.bool_]) -> float:
        """Return the share of the cells, without the missing ones, whose level is one of these."""
        return float(self.counts[holds].sum() / max(self.counts.sum(), 1))

    def row_of(self, level: int) -> int:
        """Return the first row with this level."""
        return int(np.argmax(self.codes == level))


# ------------------------------------------------------------------------------------------------------ numbers


def separator_of(digits: str) -> str:
    """Return the decimal sign that one number tells: a point, a comma, or nothing if it has none or could have either.

    >>> [separator_of(text) for text in ("1.234,5", "1,234,567", "0.125", "2,5", "1,234", "12")]
    [',', '.', '.', ',', '', '']
    """
    points, commas = digits.count("."), digits.count(",")
    if points and commas:
        return "." if digits.rfind(".") > digits.rfind(",") else ","
    for sign, other, count in ((".", ",", points), (",", ".", commas)):
        if count > 1:
            return other
        if count == 1:
            head, tail = digits.split(sign)
            return sign if len(tail) != 3 or len(head) > 3 or head.strip("0") == "" else ""
    return ""


@dataclass(frozen=True)
class NumberFormat:
    """How a column writes its numbers: the decimal sign, and what letters behind a number multiply it by.

    The other sign separates thousands. If the decimal sign is empty, nothing tells it, and the numbers are not read.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.Series(["$1,200", "950.50 USD", "(70)", "2.1k", "n/a"])
    >>> NumberFormat.find(CellLevels.of(cells)).parse(CellLevels.of(cells)).tolist()
    [1200.0, 950.5, -70.0, 2100.0]
    """

    decimal: str = "."
    factors: dict[str, float] = field(default_factory=dict)

    @classmethod
    def find(cls, levels: CellLevels, default: str = "") -> NumberFormat | None:
        """Return the convention of a column, found from all its cells; None if it does not hold numbers.

        The decimal sign is ``default`` if the cells could be read either way (``1,234`` everywhere).
        """
        cells = [_CELL.fullmatch(text) for text in levels.texts]
        if not cells or levels.share(np.array([cell is not None for cell in cells])) < READABLE:
            return None
        matched = [(cell, int(count)) for cell, count in zip(cells, levels.counts, strict=True) if cell is not None]
        factors = _factors(matched)
        if factors is None:
            return None
        found = cls(_decimal(matched, default), factors)
        if found.decimal and levels.share(np.isfinite(found.parse(levels))) < READABLE:
            return None
        return found

    def parse(self, levels: CellLevels) -> NDArray[np.float64]:
        """Return the number of every level; NaN if it is none, or contradicts the convention."""
        return np.array([self.number(text) for text in levels.texts], dtype=np.float64)

    def number(self, text: str) -> float:
        """Return the number that a cell means, NaN if none."""
        cell = _CELL.fullmatch(text)
        if cell is None:
            return np.nan
        group = "," if self.decimal == "." else "."
        digits = _bare(cell["digits"]) + (cell["separator"] or "")
        if group in digits:
            whole = digits.split(self.decimal)[0]
            if not re.fullmatch(rf"[1-9]\d{{0,2}}(\{group}\d{{2,3}})*\{group}\d{{3}}", whole):
                return np.nan
            digits = digits.replace(group, "")
        ending = _ending(cell)
        if ending and ending not in self.factors:
            return np.nan
        try:
            value = float(digits.replace(self.decimal, ".") + (cell["exponent"] or ""))
        except ValueError:  # two decimal signs
            return np.nan
        negative = cell["open"] or (cell["sign"] or cell["late"] or "+") in "-−–"
        value *= self.factors.get(ending, 1.0)
        return (-value if negative else value) if abs(value) <= LARGEST_NUMBER else np.nan


def _decimal(matched: list[tuple[re.Match[str], int]], default: str) -> str:
    """Return the decimal sign of a column; up to a tenth of the cells may contradict it."""
    votes = {".": 0, ",": 0, "": 0}
    grouped, longest = 0, 0
    for cell, count in matched:
        digits = _bare(cell["digits"])
        votes[separator_of(digits)] += count
        grouped += "," in digits
        longest = max(longest, len(digits) * digits.isdecimal())
    told = votes["."] + votes[","]
    if told:
        sign = max((".", ","), key=lambda one: votes[one])
        return sign if votes[sign] >= READABLE * told else default
    if default or not grouped:  # 1.234 is how programs write a decimal point
        return default or "."
    return "." if grouped >= GROUPED and 0 < longest <= 3 else ""


def _factors(matched: list[tuple[re.Match[str], int]]) -> dict[str, float] | None:
    """Return what the endings of a column's numbers multiply them by; None if these are no units."""
    amount: dict[str, int] = {}
    for cell, count in matched:
        amount[_ending(cell)] = amount.get(_ending(cell), 0) + count
    total = sum(amount.values())
    endings = [ending for ending in amount if ending]
    for table in _UNITS:  # m is metres beside feet, and million beside thousands
        if sum(ending in table for ending in endings) > 1:
            return {ending: table[ending] for ending in endings if ending in table}
    # "5 m" is five metres if most cells end so, and five million if it is the exception.
    usual = [e for e in endings if 2 * amount[e] > total and not (e in _TIMES and e[0] in "kb")]
    scaled = {ending: _TIMES[ending] for ending in endings if ending in _TIMES and ending not in usual}
    odd = [ending for ending in endings if ending not in scaled and ending not in usual]
    if len(odd) == 1 and not usual:  # some cells have a unit and the others none
        usual = odd
    elif sum(amount[ending] for ending in odd) > UNREADABLE_SHARE * total:
        return None
    return {**scaled, **dict.fromkeys(usual, 1.0)}


def _bare(digits: str) -> str:
    return re.sub(f"[{_SPACES}]", "", digits)


def _ending(cell: re.Match[str]) -> str:
    """Return what stands behind a number, without money and per cent signs; plurals count as one."""
    ending = re.sub(_MONEY, "", (cell["ending"] or "").casefold()).strip(' %.°"')
    return ending.rstrip("s") if len(ending) > 2 else ending


def are_codes(levels: CellLevels) -> bool:
    """Return whether digits are codes and no quantities, as leading zeros tell: ``02139``.

    >>> import pandas as pd
    >>> [are_codes(CellLevels.of(pd.Series(cells))) for cells in (["02139", "10001"], ["2139", "10001"])]
    [True, False]
    """
    digits = np.array([text.isdecimal() for text in levels.texts], dtype=bool)
    zeros = np.array([len(text) > 1 and text[0] == "0" for text in levels.texts], dtype=bool) & digits
    if not zeros.any() or levels.share(digits) < READABLE:
        return False
    lengths = {len(text) for text, digit in zip(levels.texts, digits, strict=True) if digit}
    return len(lengths) == 1 or levels.share(zeros) > 1 - READABLE


# -------------------------------------------------------------------------------------------------------- dates


@dataclass(frozen=True)
class DateFormat:
    """How a column writes its dates, as ``strptime`` takes it, and whether day and month could be exchanged.

    Examples
    --------
    >>> import pandas as pd
    >>> DateFormat.find(CellLevels.of(pd.Series(["3.1.2020", "31.12.2021"])))
    DateFormat(form='%d.%m.%Y', ambiguous=False)
    """

    form: str
    ambiguous: bool = False

    @classmethod
    def find(cls, levels: CellLevels) -> DateFormat | None:
        """Return the one format in which the cells of a column are dates; None if there is none."""
        probe = [text for text in levels.shown[:DATES_PROBED] if re.search(r"\d", text)]
        if len(probe) < READABLE * min(len(levels.shown), DATES_PROBED):
            return None
        shares = {form: levels.share(~np.isnat(cls(form).parse(levels))) for form in _guesses(probe)}
        best = max(shares, key=lambda form: shares[form])
        twin = best.translate(str.maketrans("dm", "md"))
        return cls(best, twin != best and shares.get(twin) == shares[best]) if shares[best] >= READABLE else None

    def parse(self, levels: CellLevels) -> NDArray[np.datetime64]:
        """Return the date of every level without a time zone (offsets become UTC)."""
        import pandas as pd

        cells = pd.Series([_ORDINAL.sub("", text) for text in levels.shown], dtype=object)
        dates = pd.to_datetime(cells, format=self.form, errors="coerce", utc=True)
        return np.asarray(dates.dt.tz_localize(None).to_numpy(dtype="datetime64[s]"))


_ORDINAL = re.compile(
    r"(?<=\d)(?:st|nd|rd|th)\b|^[a-z ]{2,8}:\s*|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day,? *", re.I
)
# convention: formats that pandas does not guess
_FORMS = (
    "ISO8601",
    "%d-%b-%y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d.%m.%y",
    "%B %Y",
    "%b %Y",
    "%B %d %Y",
    "%b %d %Y",
    "%d %B %y",
)


def _guesses(probe: list[str]) -> list[str]:
    """Return the formats that some of the cells may have."""
    from pandas.tseries.api import guess_datetime_format

    found: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # day and month: both ways are tried
        for text in probe[:: max(1, len(probe) // 20)]:
            for day_first in (False, True):
                form = guess_datetime_format(_ORDINAL.sub("", text), dayfirst=day_first)
                found |= {form: None} if form and not re.search(r"%Y-%d-%m|%z", form) else {}
    return [form for form in [*_FORMS, *found] if form != "%Y-%m-%d"]


def are_days(values: NDArray[Any]) -> bool:
    """Return whether whole numbers are dates of the years 1800 to 2199 written as YYYYMMDD.

    >>> are_days(np.array([20240131, 19991231])), are_days(np.array([20240131, 20241331]))
    (True, False)
    """
    known = values[np.isfinite(values)]
    if not known.size or known.min() < 18_000_101 or known.max() > 21_991_231 or np.mod(known, 1).any():
        return False
    return not bool(np.isnat(days_of(np.unique(known))).any())


def days_of(values: NDArray[Any]) -> NDArray[np.datetime64]:
    """Return numbers such as 20240131 as dates; what is none is missing."""
    import pandas as pd

    cells = pd.Series(values, dtype="float64").astype("Int64").astype(str).where(np.isfinite(values))
    return np.asarray(pd.to_datetime(cells, format="%Y%m%d", errors="coerce").to_numpy(dtype="datetime64[s]"))
