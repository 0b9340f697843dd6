"""The content of a page as plain typed data, without estimators, arrays or markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..selection import Candidate

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Fact:
    """One figure with its label, ready to read."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class ReportColumn:
    """A column of a table: ``kind`` is "text", "integer", "number" or "weight" (a number in [0, 1])."""

    key: str
    label: str
    kind: str
    values: Sequence[Cell] = field(repr=False)


@dataclass(frozen=True)
class ReportTable:
    """Columns of equal length; ``total`` counts the rows before the limit."""

    columns: tuple[ReportColumn, ...]
    total: int

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0


@dataclass(frozen=True)
class Features:
    """The cells of the first rows of the table, in its order."""

    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(repr=False)
    left_out: int = 0


@dataclass(frozen=True)
class Pairs:
    """Number of listed rows by given and expected label; ``rows`` counts all rows with the given label."""

    given: tuple[str, ...]
    expected: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Pattern:
    """What listed rows have in common: their number among the rows with it, ``lift`` times the usual share."""

    where: str
    suspects: int
    rows: int
    lift: float


@dataclass(frozen=True)
class Review:
    """The data for decisions about the rows of the page.

    ``key`` identifies the run, ``kind`` is "labels" or "values", ``marks`` holds the fingerprint of each row.
    """

    key: str
    kind: str
    target: str = ""
    classes: tuple[str, ...] = ()
    marks: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Grid:
    """A matrix in blocks, with the mean absolute residual and the mean weight of each."""

    row_starts: tuple[int, ...]
    column_starts: tuple[int, ...]
    residual: tuple[tuple[float | None, ...], ...] = field(repr=False)
    weight: tuple[tuple[float | None, ...], ...] = field(repr=False)
    shape: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class History:
    """Numbers recorded once per epoch.

    ``bands`` holds the ends of a series with an interval, ``phases`` the name of the phase of every epoch.
    """

    index: tuple[int, ...]
    series: dict[str, tuple[float | None, ...]]
    bands: dict[str, tuple[tuple[float | None, ...], tuple[float | None, ...]]] = field(default_factory=dict)
    phases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """Everything that a page shows."""

    title: str
    kind: str
    sentence: str
    noun: str = "samples"
    conclusion: str = ""
    notices: tuple[str, ...] = ()
    not_used: str = ""
    termination: str = ""
    note: str = ""
    facts: tuple[Fact, ...] = ()
    path: tuple[Candidate, ...] = ()
    score_name: str = ""
    score_note: str = ""
    suspects: ReportTable | None = None
    review: Review | None = None
    pairs: Pairs | None = None
    patterns: tuple[Pattern, ...] = ()
    scatter: tuple[tuple[float, float, bool], ...] = field(default=(), repr=False)
    scatter_scale: str = "linear"
    features: Features | None = None
    pictures: tuple[str, ...] = field(default=(), repr=False)
    grid: Grid | None = None
    history: History | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    created: str = ""
