"""How one column becomes features: each encoder fills its columns of a shared matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CategoryCodes", "CategoryFlags", "Dates", "Number"]

# convention: the calendar
_CYCLES = {"month": 12.0, "weekday": 7.0, "hour": 24.0}


@dataclass(frozen=True)
class Number:
    """A number: as it is, or imputed by its median and standardised, with a flag for gaps where there were any.

    Attributes
    ----------
    name : str
    median, mean, spread : float
        Of the training rows; the mean and the spread are those after imputation.
    gaps : bool
        Whether training rows had gaps.
    scaled : bool
        False keeps numbers and gaps as they are.
    """

    name: str
    median: float
    mean: float
    spread: float
    gaps: bool
    scaled: bool

    @classmethod
    def learn(cls, name: str, values: np.ndarray, scaled: bool) -> Number:
        """From the training rows."""
        missing = np.isnan(values)
        gaps = bool(missing.any())
        if not scaled:
            return cls(name, 0.0, 0.0, 1.0, gaps, False)
        median = float(np.median(values[~missing] if gaps else values)) if not missing.all() else 0.0
        full = np.where(missing, median, values) if gaps else values
        mean, spread = float(full.mean(dtype=np.float64)), float(full.std(dtype=np.float64))
        # A spread that rounding alone can make is none.
        noise = 10.0 * np.finfo(np.float64).eps * max(abs(mean), float(np.abs(full).max(initial=0.0)))
        return cls(name, median, mean, spread if spread > noise else 1.0, gaps, True)

    @property
    def names(self) -> list[str]:
        """Names of its features."""
        return [self.name, f"{self.name} is missing"] if self.gaps and self.scaled else [self.name]

    def fill(self, out: np.ndarray, values: np.ndarray) -> None:
        """Write the features of these rows into the columns of ``out``."""
        if not self.scaled:
            out[:, 0] = values
            return
        missing = np.isnan(values)
        full = np.where(missing, self.median, values) if missing.any() else values
        out[:, 0] = (full - self.mean) / self.spread
        if self.gaps:
            out[:, 1] = missing


@dataclass(frozen=True)
class Dates:
    """A date: days since the first one, and where in the year, the week and the day it falls.

    Attributes
    ----------
    name : str
    first : int
        The first date, in seconds since 1970.
    hours : bool
        Whether there are times of day.
    parts : tuple of Number
        One for each number a date is taken apart into.
    """

    name: str
    first: int
    hours: bool
    parts: tuple[Number, ...]

    @classmethod
    def learn(cls, name: str, dates: pd.Series, scaled: bool) -> Dates:
        """From the training rows."""
        first = int(dates.min().timestamp())
        hours = bool((dates.dt.hour > 0).any())
        bare = cls(name, first, hours, ())
        parts = [Number.learn(f"{name} {part}", v, scaled) for part, v in bare.take_apart(dates, scaled).items()]
        # A date is missing as a whole: the first part says so for all.
        return cls(name, first, hours, (parts[0], *(replace(part, gaps=False) for part in parts[1:])))

    def take_apart(self, dates: pd.Series, cyclic: bool) -> dict[str, np.ndarray]:
        """The numbers; on a circle (sine and cosine) December is next to January, which trees do not need."""
        seconds = dates.to_numpy(dtype="datetime64[s]")
        days = seconds.astype(np.int64).astype(float) - self.first
        parts = {"days": np.where(np.isnat(seconds), np.nan, days / 86400.0)}
        for cycle, period in _CYCLES.items():
            if cycle == "hour" and not self.hours:
                continue
            accessor = {"month": "month", "weekday": "day_of_week", "hour": "hour"}[cycle]
            value = getattr(dates.dt, accessor).to_numpy(dtype=float, na_value=np.nan)
            if cyclic:
                angle = 2.0 * np.pi * value / period
                parts |= {f"{cycle} sin": np.sin(angle), f"{cycle} cos": np.cos(angle)}
            else:
                parts[cycle] = value
        return parts

    @property
    def names(self) -> list[str]:
        """Names of its features."""
        return [name for part in self.parts for name in part.names]

    def fill(self, out: np.ndarray, dates: pd.Series) -> None:
        """Write the features of these rows into the columns of ``out``."""
        scaled = self.parts[0].scaled
        start = 0
        for part, values in zip(self.parts, self.take_apart(dates, scaled).values(), strict=True):
            part.fill(out[:, start : start + len(part.names)], values)
            start += len(part.names)


@dataclass(frozen=True)
class CategoryFlags:
    """Categories, one column each that is 1 where a row has it; rare ones share the last."""

    name: str
    kept: tuple[str, ...]
    rare: bool

    @classmethod
    def learn(cls, name: str, column: pd.Series, limit: int) -> CategoryFlags:
        """From the training rows: the most frequent categories, in the order of their names."""
        kept, rare = _frequent(column, limit)
        return cls(name, kept, rare)

    @property
    def names(self) -> list[str]:
        """Names of its features."""
        return [f"{self.name}={category}" for category in (*self.kept, *(["(rare)"] if self.rare else []))]

    def fill(self, out: np.ndarray, column: pd.Series) -> None:
        """Write the features of these rows into the columns of ``out``; an unknown category counts as rare."""
        codes = _codes(column, self.kept, unknown=len(self.kept) if self.rare else -1)
        out[:] = 0.0
        known = codes >= 0
        out[np.flatnonzero(known), codes[known]] = 1.0


@dataclass(frozen=True)
class CategoryCodes:
    """Categories as numbers for trees; rare ones share the last, unknown ones are -1, which trees take as missing."""

    name: str
    kept: tuple[str, ...]
    rare: bool

    @classmethod
    def learn(cls, name: str, column: pd.Series, limit: int) -> CategoryCodes:
        """From the training rows: the most frequent categories, in the order of their names."""
        kept, rare = _frequent(column, limit)
        return cls(name, kept, rare)

    @property
    def names(self) -> list[str]:
        """Name of its feature."""
        return [self.name]

    def fill(self, out: np.ndarray, column: pd.Series) -> None:
        """Write the codes of these rows into the column of ``out``."""
        out[:, 0] = _codes(column, self.kept, unknown=len(self.kept) if self.rare else -1)


def _frequent(column: pd.Series, limit: int) -> tuple[tuple[str, ...], bool]:
    counts = column.value_counts()
    counts = counts[counts > 0]
    rare = len(counts) > limit
    ranked = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))[: limit - 1 if rare else limit]
    return tuple(sorted(str(name) for name, _ in ranked)), rare


def _codes(column: Any, kept: tuple[str, ...], unknown: int) -> np.ndarray:
    """Positions of the rows' categories among the kept ones."""
    place = {category: position for position, category in enumerate(kept)}
    table = np.array([place.get(str(category), unknown) for category in column.cat.categories] + [unknown])
    return table[column.cat.codes.to_numpy()]  # a missing row has code -1, the last entry
