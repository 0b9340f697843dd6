"""The kinds of columns: what is learnt about one, and its features."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..formatting import plural
from .cells import LARGEST_NUMBER, CellLevels, DateFormat, NumberFormat, are_codes, are_days, days_of

if TYPE_CHECKING:
    import pandas as pd

COUNTING_ROWS = 20  # a choice: rows from which on whole numbers that only count are identifiers
SPANS = 20.0  # a choice: times its median size that a number must reach before its asinh is a feature, too
FARTHEST_NUMBER = 10.0  # numerical safety: standard deviations at which a number is cut off
LEVEL_ROWS = 5  # a choice: rows of a level with a feature of its own; others share one
FREQUENT = (10, 0.005)  # a choice: rows, and share of them, of a level of many that has a flag besides its letters
MOST_CODES = 250  # numerical safety: scikit-learn's boosting takes at most 255 categories
# convention: the calendar
_CYCLES = {"month": 12.0, "weekday": 7.0, "hour": 24.0}

Reader = Callable[[Any], NDArray[Any]]


@dataclass(frozen=True)
class NotUsed:
    """A column without information, and why."""

    reason: str


@dataclass(frozen=True)
class Note:
    """Something a person should know about how a column was read; ``row`` is the first one concerned, -1 if none."""

    column: str
    text: str
    row: int = -1


@dataclass
class StandardScale:
    """Standardised numbers: gaps get the median, and the asinh is a second feature if they span orders of magnitude."""

    mean: float = 0.0
    spread: float = 1.0
    middle: float = 0.0
    gaps: bool = False
    unit: float = 0.0

    @classmethod
    def fit(cls, values: NDArray[Any], *, spans: bool) -> StandardScale:
        known = values if values.dtype.kind in "iu" else values[np.isfinite(values)]
        found = cls(gaps=known.size < values.size)
        if not known.size:
            return found
        if found.gaps:
            found.middle = float(np.median(known))
        count, gaps = known.size, values.size - known.size
        # in two passes: a tiny spread around a large mean is kept
        found.mean = float((known.mean(dtype=np.float64) * count + found.middle * gaps) / values.size)
        away = known.astype(np.float64) - found.mean
        square = float(np.dot(away, away)) + gaps * (found.middle - found.mean) ** 2
        found.spread = float(np.sqrt(square / values.size)) or 1.0
        if spans:
            sample = np.abs(known[:: max(1, known.size // 20_000)].astype(np.float64))
            middle, high = np.quantile(sample, [0.5, 0.99])
            found.unit = max(float(middle), 1e-3 * float(high)) if high > SPANS * middle else 0.0
        return found

    def features(self, values: NDArray[Any]) -> NDArray[np.float64]:
        values = np.asarray(values, dtype=np.float64)
        if not self.unit and not self.gaps:
            scaled = np.clip((values - self.mean) / self.spread, -FARTHEST_NUMBER, FARTHEST_NUMBER)
            return np.nan_to_num(scaled, copy=False, nan=(self.middle - self.mean) / self.spread)[:, None]
        missing = ~np.isfinite(values)
        values = np.where(missing, self.middle if self.gaps else self.mean, values)
        blocks = [np.clip((values - self.mean) / self.spread, -FARTHEST_NUMBER, FARTHEST_NUMBER)]
        if self.unit:
            blocks.append(np.arcsinh(values / self.unit))
        if self.gaps:
            blocks.append(missing)
        return np.column_stack(blocks)


@dataclass
class NumberColumn:
    """A column of numbers.

    If they were written as ``text``, new tables have to be read as text, too; else ``decimal`` is the sign to use for
    text that could be read either way.
    """

    name: str
    text: bool = False
    decimal: str = "."
    factors: dict[str, float] = field(default_factory=dict)
    scaled: dict[str, Any] = field(default_factory=dict)
    kind = "number"

    def fit(self, series: pd.Series, linear: bool) -> NumberColumn:
        """Learn centre and spread."""
        if linear:
            self.scaled = vars(StandardScale.fit(self.values(series)[0], spans=True))
        return self

    def values(self, series: pd.Series) -> tuple[NDArray[Any], int]:
        """Return the numbers, and the first row whose cell is none (-1 if all are, or are missing)."""
        if _is_number(series):
            values = _numbers(series)
            large = too_large(values)
            return (np.where(large, np.nan, values), int(large.argmax())) if large.any() else (values, -1)
        levels = CellLevels.of(series)
        known = self._written(levels).parse(levels)
        bad = np.flatnonzero(np.isnan(known))
        return np.append(known, np.nan)[levels.codes], levels.row_of(int(bad[0])) if bad.size else -1

    def _written(self, levels: CellLevels) -> NumberFormat:
        """Return the convention of the fitted column, or of these cells if the fitted ones were no text."""
        if self.text:
            return NumberFormat(self.decimal, self.factors)
        found = NumberFormat.find(levels, self.decimal)
        return found if found is not None and found.decimal else NumberFormat(self.decimal or ".")

    def reader(self, series: pd.Series, linear: bool) -> tuple[Reader, int]:
        """Return what gives the features of some rows, and the first row whose cell is no number, or -1."""
        (values, bad), scaled = self.values(series), StandardScale(**self.scaled)
        if linear:
            return lambda rows: scaled.features(values[rows]), bad
        return lambda rows: values[rows, None], bad

    def names(self, linear: bool) -> list[str]:
        """Return the names of the features."""
        if not linear:
            return [self.name]
        logged, gaps = [f"{self.name}=log scale"], [f"{self.name} is missing"]
        return [self.name, *logged * bool(self.scaled["unit"]), *gaps * self.scaled["gaps"]]


@dataclass
class DateColumn:
    """A column of dates: days since the first one, month, weekday and, if there are times, hour.

    Linear models get sine and cosine of the last three: on a circle December is next to January.
    """

    name: str
    text: bool = False
    form: str = ""
    first: int = 0
    hours: bool = False
    scaled: dict[str, Any] = field(default_factory=dict)
    kind = "date"

    def fit(self, series: pd.Series, linear: bool) -> DateColumn:
        """Find the first date and whether there are times."""
        dates = self.values(series)[0]
        known = dates[~np.isnat(dates)].astype(np.int64)
        self.first, self.hours = int(known.min()), bool(np.mod(known, 86400).any())
        if linear:
            self.scaled = vars(StandardScale.fit(self._days(dates), spans=False))
        return self

    def values(self, series: pd.Series) -> tuple[NDArray[Any], int]:
        """Return the dates, and the first row whose cell is none (-1 if all are, or are missing)."""
        from pandas.api import types

        if types.is_datetime64_any_dtype(series.dtype):
            plain = series.dt.tz_convert("UTC").dt.tz_localize(None) if series.dt.tz is not None else series
            return plain.to_numpy(dtype="datetime64[s]"), -1
        if _is_number(series):
            return days_of(_numbers(series).astype(np.float64)), -1
        levels = CellLevels.of(series)
        known = DateFormat(self.form or "ISO8601").parse(levels)
        bad = np.flatnonzero(np.isnat(known))
        dates = np.append(known, np.datetime64("NaT", "s"))[levels.codes]
        return dates, levels.row_of(int(bad[0])) if bad.size else -1

    def _days(self, dates: NDArray[Any]) -> NDArray[np.float64]:
        return np.where(np.isnat(dates), np.nan, (dates.astype(np.int64).astype(float) - self.first) / 86400)

    def reader(self, series: pd.Series, linear: bool) -> tuple[Reader, int]:
        """Return what gives the features of some rows, and the first row whose cell is no date, or -1."""
        (dates, bad), scaled = self.values(series), StandardScale(**self.scaled)

        def features(rows: Any) -> NDArray[np.float64]:
            days, parts = self._days(dates[rows]), self._parts(dates[rows])
            if not linear:
                return np.column_stack([days, *parts.values()])
            angles = [2.0 * np.pi * part / _CYCLES[name] for name, part in parts.items()]
            circles = [np.nan_to_num(curve(angle)) for angle in angles for curve in (np.sin, np.cos)]
            return np.column_stack([scaled.features(days), *circles])

        return features, bad

    def _parts(self, dates: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
        missing = np.isnat(dates)
        day = dates.astype("datetime64[D]").astype(np.int64)
        parts = {
            "month": dates.astype("datetime64[M]").astype(np.int64) % 12 + 1,
            "weekday": (day + 3) % 7,  # 1970 began on a Thursday
            "hour": dates.astype("datetime64[h]").astype(np.int64) % 24,
        }
        return {name: np.where(missing, np.nan, part) for name, part in parts.items() if name != "hour" or self.hours}

    def names(self, linear: bool) -> list[str]:
        """Return the names of the features."""
        cycles = [cycle for cycle in _CYCLES if cycle != "hour" or self.hours]
        if not linear:
            return [f"{self.name}={part}" for part in ("days", *cycles)]
        gaps = [f"{self.name} is missing"] * self.scaled["gaps"]
        return [f"{self.name}=days", *gaps, *(f"{self.name}={c} {curve}" for c in cycles for curve in ("sin", "cos"))]


@dataclass
class CategoryColumn:
    """A column of strings or codes: a feature for every frequent level; for trees its rank by frequency.

    Other levels share a feature if there are ``rare`` ones. ``many`` levels have their letters as features, too.
    ``either``: these are numbers whose separators could be read either way.
    """

    name: str
    text: bool = False
    levels: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    rare: bool = False
    gaps: bool = False
    many: bool = False
    either: bool = False

    @property
    def kind(self) -> str:
        """Categories, or text if letters are features, too."""
        return "text" if self.many else "category"

    def fit(self, found: CellLevels, linear: bool, most: int) -> CategoryColumn:
        """Choose the levels with features of their own."""
        n, count = len(found.codes), len(found.texts)
        self.many = count > 2 and (count > most or 2 * count > n)
        least = (
            1 if not linear else max(FREQUENT[0], FREQUENT[1] * n) if self.many else min(LEVEL_ROWS, n / (2 * count))
        )
        order = np.argsort(-found.counts, kind="stable")[: most if linear else MOST_CODES]
        chosen = order[found.counts[order] >= least]
        chosen = np.sort(chosen) if linear else chosen
        self.levels, self.shown = [found.texts[k] for k in chosen], [found.shown[k] for k in chosen]
        self.rare = len(chosen) < count and not self.many
        self.gaps = bool((found.codes < 0).any())
        return self

    def reader(self, found: CellLevels, linear: bool) -> Reader:
        """Return what gives the features of some rows; an unknown level counts as rare, if there are rare ones."""
        place = {level: k for k, level in enumerate(self.levels)}
        rank = np.array([place.get(text, len(place)) for text in found.texts] + [-1], dtype=np.intp)
        if not linear:
            codes = np.where(rank < 0, np.nan, rank)
            return lambda rows: codes[found.codes[rows], None]
        flags = np.zeros((len(rank), len(place) + 2))
        flags[np.arange(len(rank)), rank] = 1.0  # a missing cell is the last one
        kept = np.r_[: len(place), [len(place)] * self.rare, [len(place) + 1] * self.gaps].astype(np.intp)
        flags = flags[:, kept]
        return lambda rows: flags[found.codes[rows]]

    def names(self, linear: bool) -> list[str]:
        """Return the names of the features."""
        if not linear:
            return [self.name]
        return [f"{self.name}={level}" for level in [*self.shown, *["(rare)"] * self.rare, *["(missing)"] * self.gaps]]


Column = NumberColumn | DateColumn | CategoryColumn


# --------------------------------------------------------------------------------------------- what a column is


def describe(
    series: pd.Series, levels: CellLevels | None, *, categorical: bool = False, decimal: str = ""
) -> tuple[Column | NotUsed, list[Note]]:
    """Return what a column holds, not fitted yet, and notes on how it is read; ``levels`` are its cells as text."""
    name = str(series.name)
    if levels is None:
        if not len(series) or series.isna().all():
            return NotUsed("empty"), []
        if _is_number(series):
            return _describe_numbers(series, name, decimal)
        return (NotUsed("nested values") if series.dtype == object else DateColumn(name)), []
    if not levels.texts:
        return NotUsed("empty"), []
    if len(levels.texts) == 1 and (levels.codes >= 0).all():
        return NotUsed("constant"), []
    if categorical or series.dtype.name == "category":
        return CategoryColumn(name, text=not _is_number(series)), []
    return _describe_text(levels, name, decimal)


def _describe_numbers(series: pd.Series, name: str, decimal: str) -> tuple[Column | NotUsed, list[Note]]:
    values = _numbers(series)
    whole = values.dtype.kind in "iu"
    if whole or not np.isnan(values).any():
        if values.min() == values.max():
            return NotUsed("constant"), []
        if whole and is_identifier(name, values):
            return NotUsed("identifier"), []
    if are_days(values):
        first = int(values[np.isfinite(values)][0])
        return DateColumn(name), [Note(name, f"whole numbers such as {first} are read as dates")]
    large = too_large(values)
    count = int(large.sum())
    first = int(large.argmax())
    what = f"{plural(count, 'value')} above {LARGEST_NUMBER:.0e} count{'s' * (count == 1)} as missing"
    told = [Note(name, f"{what}, first {values[first]:g}", first)] if count else []
    return NumberColumn(name, decimal=decimal), told


def _describe_text(levels: CellLevels, name: str, decimal: str) -> tuple[Column | NotUsed, list[Note]]:
    notes: list[Note] = []
    if are_codes(levels):
        notes.append(Note(name, "digits with leading zeros are codes, not quantities"))
    elif (numbers := NumberFormat.find(levels, decimal)) is not None:
        if numbers.decimal:
            values = numbers.parse(levels)
            if are_days(values):
                return DateColumn(name, True, "%Y%m%d"), [Note(name, "whole numbers are read as dates")]
            return NumberColumn(name, True, numbers.decimal, numbers.factors), _unread(
                levels, np.isnan(values), name, "numbers"
            )
        shown = next(text for text in levels.shown if re.search("[.,]", text))
        what = f"numbers such as {shown!r} may have decimals or thousands, so it is read as text (see --decimal)"
        return CategoryColumn(name, True, either=True), [Note(name, what)]
    elif (dates := DateFormat.find(levels)) is not None:
        told = f"dates read as {dates.form}: day and month cannot be told apart"
        notes = _unread(levels, np.isnat(dates.parse(levels)), name, "dates")
        return DateColumn(name, True, dates.form), notes or [Note(name, told)] * dates.ambiguous
    if _are_identifiers(levels):
        return NotUsed("identifier"), []
    return CategoryColumn(name, True), notes


def levels_of(series: pd.Series, *, categorical: bool = False) -> CellLevels | None:
    """Return the cells of a column as text; None if they are numbers, dates, or lists and the like."""
    from pandas.api import types

    if types.is_datetime64_any_dtype(series.dtype) or (_is_number(series) and not categorical):
        return None
    if series.dtype == object and series.map(type).isin([list, dict, np.ndarray, set, bytes]).any():
        return None
    return CellLevels.of(series)


def _unread(levels: CellLevels, bad: NDArray[np.bool_], name: str, what: str) -> list[Note]:
    """Return a note on the cells that could not be read."""
    if not bad.any():
        return []
    count, first = int(levels.counts[bad].sum()), int(bad.argmax())
    cells = f"{count:,} cell{'s are' if count > 1 else ' is'} not {what} and count{'s' * (count == 1)} as missing"
    return [Note(name, f"{cells}, first {levels.shown[first][:40]!r}", levels.row_of(first))]


def _are_identifiers(levels: CellLevels) -> bool:
    """Whether every row has its own code, which only digits tell from the others (or which is a hash)."""
    if (
        len(levels.codes) < COUNTING_ROWS
        or len(levels.texts) < len(levels.codes)
        or any(" " in t for t in levels.texts)
    ):
        return False
    if len({re.sub(r"\d+", "", text) for text in levels.texts}) == 1:
        return True
    return all(re.fullmatch(r"[0-9a-f-]{16,}", text) for text in levels.texts)


def is_identifier(name: str, values: NDArray[Any]) -> bool:
    """Return whether whole numbers only count the rows, or are unique in a column that is called so."""
    if values.size < COUNTING_ROWS:
        return False
    called = re.search(r"(^|[\W_])id$|ID$", name, re.ASCII) is not None
    return counts_rows(values) or (called and np.unique(values).size == values.size)


def counts_rows(values: NDArray[Any]) -> bool:
    """Return whether whole numbers only count the rows, up or down.

    >>> counts_rows(np.arange(3, 9)), counts_rows(np.array([1, 2, 4]))
    (True, False)
    """
    if abs(int(values[-1]) - int(values[0])) != len(values) - 1:
        return False
    steps = np.diff(values)
    return bool(np.all(steps == 1) or np.all(steps == -1))


def too_large(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which numbers are infinite, or so large that their squares are."""
    if values.dtype.kind != "f" or not values.size or np.nanmax(np.abs(values), initial=0.0) <= LARGEST_NUMBER:
        return np.zeros(values.size, dtype=bool)
    return np.asarray(np.abs(values) > LARGEST_NUMBER)


def _is_number(series: pd.Series) -> bool:
    from pandas.api import types

    return bool(types.is_numeric_dtype(series.dtype) or types.is_timedelta64_dtype(series.dtype))


def _numbers(series: pd.Series) -> NDArray[Any]:
    """Return numbers without a copy if they are plain numbers already."""
    if series.dtype.kind == "m":
        series = series.dt.total_seconds()
    plain = isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiu"
    return np.asarray(series.to_numpy() if plain else series.to_numpy(dtype=float, na_value=np.nan))
