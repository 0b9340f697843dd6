"""What an experiment returns: plain typed data that turns into JSON and back without loss."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Union

import numpy as np

from selfpaced_experiments import SECTIONS

__all__ = [
    "Claim",
    "Figure",
    "FitCost",
    "Measure",
    "Published",
    "ResultTable",
    "Results",
    "Row",
    "RunRecord",
    "Score",
    "Statement",
    "load",
    "save",
]

SCHEMA = 1
_NUMBERS = re.compile(r"\[\n[-+\d.e,\s]*\]")  # a list of nothing but numbers goes on one line
Outcome = Literal["confirmed", "not confirmed", "under conditions", "not tested"]
Group = Literal["paper", "ours", "peer", "reference"]


@dataclass(frozen=True)
class Measure:
    """One measured quantity of a table: its name, whether more is better, and how many digits it is given."""

    name: str
    higher_is_better: bool = True
    digits: int = 3


@dataclass(frozen=True)
class Published:
    """A figure of the paper; ``std`` is None where the paper gives no spread."""

    mean: float
    std: float | None = None


@dataclass(frozen=True)
class Score:
    """A figure of ours: mean and standard deviation over all ``n`` measurements, and between seeds.

    ``by_seed`` holds the mean of each of the ``seeds``, so that two methods can be compared pair by pair.
    """

    mean: float
    std: float
    n: int
    by_seed: tuple[float, ...]
    seeds: tuple[int, ...]

    @property
    def seed_std(self) -> float:
        """Standard deviation between the seeds' means (0 for a single seed)."""
        return float(np.std(self.by_seed)) if self.by_seed else 0.0

    @classmethod
    def of(cls, per_seed: Mapping[int, Sequence[float]]) -> Score:
        """Summarise the measurements of each seed (for example ten folds each)."""
        seeds = sorted(per_seed)
        everything = np.concatenate([np.asarray(per_seed[seed], dtype=float) for seed in seeds])
        return cls(
            mean=float(everything.mean()),
            std=float(everything.std()),
            n=int(everything.size),
            by_seed=tuple(round(float(np.mean(per_seed[seed])), 6) for seed in seeds),
            seeds=tuple(seeds),
        )


@dataclass(frozen=True)
class FitCost:
    """Where a method's figures come from and what one fit cost, in CPU seconds."""

    seconds: float
    seeds: int


@dataclass(frozen=True)
class Row:
    """A method: its group (``paper``, ``ours``, ``peer`` or ``reference``), the paper's figures and ours."""

    method: str
    group: Group
    published: dict[str, Published] = field(default_factory=dict)
    scores: dict[str, Score] = field(default_factory=dict)
    fit: FitCost | None = None
    note: str = ""


@dataclass(frozen=True)
class ResultTable:
    """A table of an experiment: its protocol in one sentence, columns, rows, and remarks."""

    key: str
    title: str
    protocol: str
    columns: tuple[Measure, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def row(self, method: str) -> Row | None:
        """The row of a method, or None."""
        return next((row for row in self.rows if row.method == method), None)


@dataclass(frozen=True)
class Statement:
    """A line of the theory table: what was asserted, whether it holds, and the number behind it."""

    part: Literal["conditions", "equivalence", "theorem", "misprint"]
    subject: str
    statement: str
    holds: bool
    value: str


@dataclass(frozen=True)
class Figure:
    """A drawn figure: its files beside the JSON, a caption, and the series that were drawn."""

    key: str
    title: str
    caption: str
    files: tuple[str, ...]
    series: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, our outcome and the figure it rests on."""

    key: str
    claim: str
    place: str
    outcome: Outcome
    figure: str
    remark: str = ""


@dataclass(frozen=True)
class RunRecord:
    """How the results were made; ``kept`` names sections that are those of an earlier run, and its date."""

    command: str
    quick: bool
    seeds: dict[str, int]
    date: str
    seconds: float
    jobs: int
    versions: dict[str, str]
    sources: dict[str, str]
    cells: int
    cached: int
    work: float = 0.0
    missing: int = 0
    kept: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Results:
    """Everything that one ``selfpaced reproduce`` found.

    Examples
    --------
    >>> from selfpaced_experiments.results import Results, RunRecord
    >>> run = RunRecord("selfpaced reproduce table1", True, {}, "2026-01-01", 1.0, 1, {}, {}, 0, 0)
    >>> Results.from_json(Results(run=run).to_json()).run == run
    True
    """

    run: RunRecord
    tables: tuple[ResultTable, ...] = ()
    theory: tuple[Statement, ...] = ()
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    skipped: tuple[str, ...] = ()
    schema: int = SCHEMA

    def table(self, key: str) -> ResultTable | None:
        """The table of this key, or None."""
        return next((table for table in self.tables if table.key == key), None)

    def beside(self, earlier: Results, sections: Sequence[str]) -> Results:
        """These results of some sections, and those of all others from an earlier run."""
        others = [name for name in SECTIONS if name not in sections]
        kept = [table for table in earlier.tables if table.key.split("-")[0] in others]
        figures = [figure for figure in earlier.figures if figure.key[:8].replace("-", "") in others]
        order = sorted([*kept, *self.tables], key=lambda table: table.key.split("-")[0])
        run, before = self.run, earlier.run
        told = before.kept or f"{', '.join(others)} of {before.date}"
        return dataclasses.replace(
            self,
            run=dataclasses.replace(
                run,
                seeds={**before.seeds, **run.seeds},
                sources={**before.sources, **{name: run.sources[name] for name in sections if name in run.sources}},
                kept=told,
            ),
            tables=tuple(order),
            theory=earlier.theory if "table1" in others else self.theory,
            figures=tuple(sorted([*figures, *self.figures], key=lambda figure: figure.key)),
        )

    def to_json(self) -> str:
        """The results as indented JSON; floats keep six significant digits."""
        text = json.dumps(_plain(self), indent=1, ensure_ascii=False)
        return _NUMBERS.sub(lambda found: re.sub(r"\s+", " ", found[0]), text) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Results:
        """Rebuild the results; a missing field or a wrong type is a ValueError that names it."""
        data = json.loads(text)
        if data.get("schema") != SCHEMA:
            raise ValueError(f"results.json must have schema {SCHEMA}, got {data.get('schema')!r}")
        results: Results = _typed(cls, data, "results")
        return results


def save(results: Results, directory: Path) -> Path:
    """Write ``results.json`` into a directory."""
    path = directory / "results.json"
    path.write_text(results.to_json(), encoding="utf-8")
    return path


def load(path: Path) -> Results:
    """Read a ``results.json``."""
    return Results.from_json(Path(path).read_text(encoding="utf-8"))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            return str(float(value))  # JSON has no inf or nan
        return float(f"{float(value):.6g}")
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"results hold plain values only, got {type(value).__name__} {value!r}")


def _typed(kind: Any, value: Any, where: str) -> Any:
    """Rebuild a value of a declared type; the path of the field is part of every error."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        inner = [argument for argument in arguments if argument is not type(None)]
        return None if value is None else _typed(inner[0], value, where)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{where} must be one of {arguments}, got {value!r}")
        return value
    if origin is tuple:
        return tuple(_typed(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        return {key: _typed(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _typed_dataclass(kind, value, where)
    if kind is float and isinstance(value, (int, float, str)) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{where} must be {kind.__name__}, got {value!r}")
    return value


def _typed_dataclass(kind: Any, value: Any, where: str) -> Any:
    hints = typing.get_type_hints(kind)
    names = {f.name for f in dataclasses.fields(kind)}
    if not isinstance(value, dict) or set(value) != names:
        found = sorted(value) if isinstance(value, dict) else value
        raise ValueError(f"{where} must have exactly the fields {sorted(names)}, got {found!r}")
    return kind(**{name: _typed(hints[name], value[name], f"{where}.{name}") for name in names})
