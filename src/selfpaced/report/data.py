"""What a report says, as plain typed data: no estimator, array or markup in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Fact:
    """One figure of the headline, ready to read."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """The plain model beside the self-paced one."""

    name: str
    plain: str
    paced: str
    note: str = ""


@dataclass(frozen=True)
class PathStep:
    """One candidate of the path; ``histogram`` holds shares of samples, not counts.

    ``words`` tell it by how much it trusts, ``compared`` its score with the spread.
    """

    stage: int
    label: str
    words: str
    plain: bool
    lam: float | None
    score: float | None
    spread: float | None
    compared: str
    mean_weight: float | None
    cost: float
    chosen: bool
    histogram: tuple[float, ...]


@dataclass(frozen=True)
class Histogram:
    """Counts of relative weights in equal bins of [0, 1], one series per given label or a single one."""

    series: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ReportColumn:
    """A column of a table: ``kind`` is "text", "integer", "number" or "weight" (a number in [0, 1])."""

    key: str
    label: str
    kind: str
    values: Sequence[Cell] = field(repr=False)


@dataclass(frozen=True)
class ReportTable:
    """Columns of equal length; ``total`` counts the rows there would be without a limit."""

    columns: tuple[ReportColumn, ...]
    total: int

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0


@dataclass(frozen=True)
class Features:
    """The features of the first rows of the table of suspects, in its order."""

    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(repr=False)
    left_out: int = 0


@dataclass(frozen=True)
class Pairs:
    """How many suspects have which given and which expected label; ``rows`` counts all rows with the given one."""

    given: tuple[str, ...]
    expected: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Pattern:
    """What suspects have in common: how many of the rows where it holds they are, ``lift`` times the usual share."""

    where: str
    suspects: int
    rows: int
    lift: float


@dataclass(frozen=True)
class Review:
    """What a page needs so that somebody can decide about its suspects.

    ``key`` is that of the run, ``kind`` "labels" or "values", ``marks`` holds the fingerprint of each suspect's row.
    """

    key: str
    kind: str
    target: str = ""
    classes: tuple[str, ...] = ()
    marks: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Grid:
    """A matrix seen from afar: blocks of rows x columns with their mean absolute residual and weight."""

    row_starts: tuple[int, ...]
    column_starts: tuple[int, ...]
    residual: tuple[tuple[float | None, ...], ...] = field(repr=False)
    weight: tuple[tuple[float | None, ...], ...] = field(repr=False)
    shape: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class ViewWeights:
    """One view of a clustering: its mean weight and the shares of samples by weight."""

    name: str
    mean_weight: float
    histogram: tuple[float, ...]


@dataclass(frozen=True)
class History:
    """Numbers that were recorded once per epoch or stage.

    ``bands`` holds the lower and the upper end of a series that was recorded with an interval, ``phases`` a name for
    every epoch where the training went through phases.
    """

    unit: str
    index: tuple[int, ...]
    series: dict[str, tuple[float | None, ...]]
    bands: dict[str, tuple[tuple[float | None, ...], tuple[float | None, ...]]] = field(default_factory=dict)
    phases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """Everything a page shows."""

    title: str
    kind: str
    sentence: str
    noun: str = "samples"
    verdict: str = ""
    aside: str = ""
    notices: tuple[str, ...] = ()
    termination: str = ""
    note: str = ""
    facts: tuple[Fact, ...] = ()
    comparison: tuple[Comparison, ...] = ()
    path: tuple[PathStep, ...] = ()
    score_name: str = "selection score"
    weights: Histogram | None = None
    suspects: ReportTable | None = None
    review: Review | None = None
    pairs: Pairs | None = None
    patterns: tuple[Pattern, ...] = ()
    scatter: tuple[tuple[float, float, bool], ...] = field(default=(), repr=False)
    features: Features | None = None
    pictures: tuple[str, ...] = field(default=(), repr=False)
    grid: Grid | None = None
    views: tuple[ViewWeights, ...] = ()
    history: History | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    citation: str = ""
    created: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Dictionaries, tuples and scalars only, ready for JSON."""
        return asdict(self)
