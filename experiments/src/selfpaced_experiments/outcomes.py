"""How two methods are compared and an outcome is reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from selfpaced_experiments.results import Measure, Outcome, ResultTable, Row

__all__ = ["Tally", "against", "compare", "outcome_of", "rows_of"]


@dataclass(frozen=True)
class Tally:
    """Comparisons that were won, tied (within two standard errors of the paired difference) and lost."""

    won: int = 0
    tied: int = 0
    lost: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.won + other.won, self.tied + other.tied, self.lost + other.lost)

    @property
    def total(self) -> int:
        """All comparisons."""
        return self.won + self.tied + self.lost

    def __str__(self) -> str:
        return f"{self.won} of {self.total} won, {self.tied} tied, {self.lost} lost"


def compare(row: Row, other: Row, columns: Iterable[Measure]) -> Tally:
    """Compare two methods column by column, seed by seed.

    A difference counts if it is more than two standard errors of the paired differences; with a single seed, if it
    is not zero.
    """
    tally = Tally()
    for column in columns:
        mine, theirs = row.scores.get(column.name), other.scores.get(column.name)
        if mine is None or theirs is None:
            continue
        values = dict(zip(theirs.seeds, theirs.by_seed, strict=True))
        pairs = [(a, values[seed]) for seed, a in zip(mine.seeds, mine.by_seed, strict=True) if seed in values]
        if not pairs:
            continue
        n, gaps = len(pairs), np.array([a - b for a, b in pairs])
        gap = float(gaps.mean()) * (1 if column.higher_is_better else -1)
        error = float(gaps.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
        tally += Tally(gap > 2 * error, abs(gap) <= 2 * error, gap < -2 * error)
    return tally


def outcome_of(tally: Tally, ties_count: bool = False) -> Outcome:
    """Confirmed if (nearly) every comparison goes the paper's way, not confirmed if fewer than half do."""
    good = tally.won + (tally.tied if ties_count else 0)
    if good == tally.total:
        return "confirmed"
    return "under conditions" if good * 2 >= tally.total else "not confirmed"


def rows_of(table: ResultTable, methods: Sequence[str]) -> list[Row]:
    return [row for method in methods if (row := table.row(method)) is not None]


def against(table: ResultTable | None, methods: Sequence[str], other: str) -> Tally | None:
    if table is None or (reference := table.row(other)) is None or not rows_of(table, methods):
        return None
    tallies = [compare(row, reference, table.columns) for row in rows_of(table, methods)]
    return sum(tallies, Tally())
