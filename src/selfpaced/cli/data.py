"""The table a command works on: from a file, or the one built in."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .atomic_output import settle
from .choice import log_scale
from .errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import LoadedTable, NumberFormat, Reviewed

    from .console import Console

__all__ = [
    "Target",
    "add_data_arguments",
    "add_decisions",
    "add_large_arguments",
    "built_in",
    "check_separator",
    "decided",
    "find_target",
    "is_large",
    "labels_of",
    "merged",
    "merges_in_words",
    "merges_of",
    "open_table",
    "target_name",
    "task_of",
]

TARGET = "kind"
NAMES = ("target", "label", "labels", "class", "y", "outcome", "price", "value")
MOST_CLASSES = 20  # a choice: text with more distinct values that reads as numbers is a number


@dataclass(frozen=True)
class Target:
    """The target column of the rows that have one.

    Attributes
    ----------
    name : str
    rows : ndarray of int
        Rows of the table with a value.
    values : ndarray
        Their labels (integers or strings) or values (floats).
    task : {"classification", "regression"}
    written : NumberFormat or None
        How values are written, if they are text.
    log : bool
        Whether a model of their logarithm is fitted.
    """

    name: str
    rows: np.ndarray
    values: np.ndarray
    task: str
    written: NumberFormat | None = None
    log: bool = False

    @property
    def fitted(self) -> np.ndarray:
        """The labels, or the values on the scale of the model."""
        return log_scale(self.values)[0](self.values) if self.log else self.values

    def in_unit(self, values: np.ndarray) -> np.ndarray:
        """Values on the scale of the model in the unit of the target."""
        return log_scale(self.values)[1](values) if self.log else values

    def without(self, rows: np.ndarray) -> Target:
        """The same without some rows of the table."""
        left = ~np.isin(self.rows, rows)
        return replace(self, rows=self.rows[left], values=self.values[left])


def add_data_arguments(parser: argparse.ArgumentParser, *, target: bool = True) -> None:
    """The arguments every command that reads a table has."""
    parser.add_argument(
        "data",
        nargs="?",
        metavar="DATA",
        help="CSV, TSV or Parquet file, also gzipped (default: a built-in table of an animal shelter with 20 %% wrong "
        "labels)",
    )
    group = parser.add_argument_group("table")
    if target:
        group.add_argument("--target", metavar="COLUMN", help="column to predict, whose values may be wrong")
        group.add_argument(
            "--task",
            choices=("auto", "classification", "regression"),
            default="auto",
            help="auto (default): text and few whole numbers are classes, other numbers are values",
        )
        group.add_argument(
            "--exclude", metavar="COLUMN", action="append", default=[], help="column not to use; may be repeated"
        )
        group.add_argument(
            "--categorical",
            metavar="COLUMN",
            action="append",
            default=[],
            help="column of numbers that are codes, not quantities; may be repeated",
        )
        group.add_argument(
            "--merge-labels",
            metavar="FROM=TO",
            action="append",
            default=[],
            help="read the label FROM as TO, such as 'iran=Iran'; 'FROM=' reads it as a missing label; may be repeated",
        )
    group.add_argument(
        "--decimal",
        choices=(".", ","),
        default="",
        help="decimal sign of ambiguous numbers such as 1,234 (default: detected from other cells)",
    )
    group.add_argument("--separator", metavar="SIGN", help="field separator (default: detected; 'tab' for tabs)")
    group.add_argument("--no-header", action="store_true", help="the first line is data; columns are column_1, ...")
    group.add_argument("--encoding", metavar="NAME", help="encoding of the text (default: UTF-8, else Windows-1252)")
    group.add_argument("--skip-broken", action="store_true", help="skip rows with too many or too few fields")


def add_decisions(group: Any) -> None:
    """The argument of commands that go on from what a person has decided."""
    group.add_argument(
        "--decisions",
        type=Path,
        metavar="FILE",
        help="decisions.csv of selfpaced review or of the page, or a suspects.csv with the decision column filled in",
    )


def decided(frame: pd.DataFrame, args: argparse.Namespace) -> Reviewed | None:
    """The table as the decisions correct it; None where there are none. They may name the target, too."""
    from selfpaced.tables import apply_decisions, read_answers

    path = getattr(args, "decisions", None)
    if path is None:
        return None
    settle(path.parent)
    if args.target is None:
        args.target = next((answer.target for answer in read_answers(path) if answer.target), None)
    return apply_decisions(frame, path, target=args.target)


def add_large_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments for tables that do not fit into memory."""
    group = parser.add_argument_group("tables larger than memory (also if DATA is a pattern of several files)")
    group.add_argument("--memory", metavar="SIZE", help="read in pieces with about this much memory, such as 1GB")
    group.add_argument("--scratch", metavar="DIR", help="folder for temporary data (default: the system's)")


def is_large(args: argparse.Namespace) -> bool:
    """Whether the table is to be read piece by piece."""
    pattern = args.data is not None and any(sign in args.data for sign in "*?[") and not Path(args.data).exists()
    if args.scratch is not None and args.memory is None and not pattern:
        raise UsageError("--scratch is for tables larger than memory: say how much there is, such as --memory 1GB")
    if args.memory is not None and args.data is None:
        raise UsageError("--memory needs DATA, the built-in table is small")
    return pattern or args.memory is not None


def open_table(args: argparse.Namespace, text: Collection[str] = ()) -> LoadedTable:
    """The table of the arguments; ``text`` are columns that are read as text."""
    from selfpaced.tables import LoadedTable, read_table

    if args.data is None:
        frame = getattr(args, "frame", None)
        return LoadedTable(built_in()[0] if frame is None else frame)
    return read_table(
        args.data,
        separator=check_separator(args),
        header=not args.no_header,
        encoding=args.encoding,
        skip_broken=args.skip_broken,
        decimal=args.decimal,
        text=text,
    )


def check_separator(args: argparse.Namespace) -> str | None:
    """The sign of ``--separator``."""
    separator: str | None = {"tab": "\t", "\\t": "\t"}.get(args.separator, args.separator)
    if separator is not None and len(separator) != 1:
        raise UsageError(f"--separator must be one character or 'tab', got {args.separator!r}")
    return separator


def built_in(seed: int = 0, rate: float = 0.2) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the table of an animal shelter with a share of wrong kinds, and which ones are wrong."""
    from selfpaced.datasets import flip_symmetric, make_shelter

    frame = make_shelter(random_state=0)
    frame[TARGET], wrong = flip_symmetric(frame[TARGET].to_numpy(dtype=str), rate, random_state=seed)
    return frame, wrong


def target_name(table: LoadedTable, args: argparse.Namespace) -> str:
    """The target column, which must be there."""
    name: str | None = args.target
    if name is None:
        name = TARGET if args.data is None else _ask_target(table.frame)
    if name not in table.frame.columns:
        raise UsageError(f"{_where(table)} has no column {name!r}{_nearest(name, table.frame)}")
    return name


def merges_of(table: LoadedTable, args: argparse.Namespace, *, all_known: bool = True) -> dict[str, str]:
    """The labels that ``--merge-labels`` merges, and into which."""
    from selfpaced.tables import label_text, read_merges

    if not args.merge_labels:
        return {}
    labels = {label_text(label) for label in table.frame[target_name(table, args)].dropna().unique().tolist()}
    try:
        return read_merges(args.merge_labels, sorted(labels), all_known=all_known)
    except ValueError as error:
        raise UsageError(f"--merge-labels: {error}") from error


def merged(table: LoadedTable, merges: dict[str, str], args: argparse.Namespace) -> tuple[LoadedTable, list[str]]:
    """The table with its labels merged, and what was done to how many rows."""
    from selfpaced.tables import merge_labels

    if not merges:
        return table, []
    name, frame = target_name(table, args), table.frame.copy(deep=False)
    frame[name], counts = merge_labels(frame[name], merges)
    return replace(table, frame=frame), merges_in_words(merges, counts)


def merges_in_words(merges: dict[str, str], counts: dict[str, int]) -> list[str]:
    """A sentence for each merge."""
    done = {label: f"merged into {other!r}" if other else "read as missing labels" for label, other in merges.items()}
    return [f"{counts[label]:,} row{'s' * (counts[label] != 1)} of {label!r} {done[label]}" for label in merges]


def find_target(table: LoadedTable, args: argparse.Namespace, console: Console) -> Target:
    """The target column, what kind of task it makes, and which rows have it."""
    from selfpaced.tables import TableError

    name = target_name(table, args)
    series = table.frame[name]
    present = series.notna().to_numpy()
    rows = np.flatnonzero(present)
    if rows.size < len(series):
        if not rows.size:
            raise TableError(_where(table), f"the column {name!r} has no values")
        first = table.lines.of([int(np.argmin(present))])
        at = f", the first on line {first[0]}" if first is not None else ""
        count = f"{len(series) - rows.size:,} row{'s have' if len(series) - rows.size > 1 else ' has'}"
        console.warn(f"{count} no value in {name!r}{at}; left out of the fit")
    values = series.iloc[rows]
    nested = values.map(lambda value: isinstance(value, list | dict | np.ndarray)) if values.dtype == object else None
    if nested is not None and nested.any():
        kind = type(values[nested].iloc[0]).__name__.replace("ndarray", "list")
        raise TableError(_where(table), f"the target {name!r} must hold one label or value per row, got a {kind}")
    written = _written(values, table, args, name)
    task = task_of(values) if args.task == "auto" else args.task
    if task == "regression" and args.merge_labels:
        raise UsageError(f"--merge-labels is for classes, but the target {name!r} holds values")
    return Target(name, rows, _values(values, task, name, table, rows, written), task, written)


def _written(values: pd.Series, table: LoadedTable, args: argparse.Namespace, name: str) -> NumberFormat | None:
    """How a target that is text writes its numbers; None if it holds none."""
    from pandas.api import types

    from selfpaced.tables import CellLevels, NumberFormat, TableError

    if types.is_numeric_dtype(values.dtype) or args.task == "classification":
        return None
    levels = CellLevels.of(values)
    found = NumberFormat.find(levels, table.dialect.decimal)
    if found is not None and not found.decimal:
        if args.task == "auto" and len(levels.texts) <= MOST_CLASSES:
            return None
        cell = next(text for text in levels.shown if re.search("[.,]", text))
        what = f"the separator of {cell!r} in the target {name!r} may separate decimals or thousands"
        raise TableError(_where(table), f"{what}: say which by --decimal , or --decimal .")
    return found


def _numbers(values: pd.Series, written: NumberFormat | None) -> np.ndarray:
    """The values of a target as numbers; NaN if a cell is none."""
    from pandas.api import types

    from selfpaced.tables import CellLevels, NumberFormat

    if types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype):
        return np.asarray(values, dtype=float)
    levels = CellLevels.of(values)
    return np.append((written or NumberFormat()).parse(levels), np.nan)[levels.codes]


def labels_of(values: pd.Series, given: Target) -> np.ndarray:
    """More labels or values of the kind of these."""
    if given.task == "regression":
        numbers = _numbers(values, given.written)
        if np.isnan(numbers).any():
            bad = int(np.isnan(numbers).argmax())
            what = f"the target {given.name!r} must hold numbers for a regression, got {str(values.iloc[bad])!r}"
            raise ValueError(f"{what} in row {values.index[bad]}")
        return numbers
    if given.values.dtype.kind in "iu":
        numbers = np.asarray(values, dtype=float)
        if np.any(np.mod(numbers, 1)):
            raise ValueError(
                f"the target {given.name!r} holds whole numbers at first and others later: are they values?"
            )
        return numbers.astype(np.int64)
    return _text(values)


def task_of(values: pd.Series) -> str:
    """Text and few whole numbers are classes, other numbers are values.

    >>> import pandas as pd
    >>> task_of(pd.Series([0, 1, 1, 0])), task_of(pd.Series([0.5, 1.2, 3.4]))
    ('classification', 'regression')
    """
    from pandas.api import types

    if types.is_bool_dtype(values.dtype) or not types.is_numeric_dtype(values.dtype):
        from selfpaced.tables import CellLevels, NumberFormat

        text = not types.is_bool_dtype(values.dtype)
        numbers = text and values.nunique() > MOST_CLASSES and NumberFormat.find(CellLevels.of(values)) is not None
        return "regression" if numbers else "classification"
    distinct = values.unique()
    whole = bool(np.all(np.mod(distinct, 1) == 0))
    few = len(distinct) <= 2 or (len(distinct) <= MOST_CLASSES and len(distinct) * 10 <= len(values))
    return "classification" if whole and few else "regression"


def _values(values: Any, task: str, name: str, table: LoadedTable, rows: np.ndarray, written: Any) -> np.ndarray:
    from pandas.api import types

    from selfpaced.tables import TableError

    numeric = types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype)
    if task == "regression":
        numbers = _numbers(values, written)
        bad = ~np.isfinite(numbers)
        if bad.any():
            first = int(np.argmax(bad))
            line = table.lines.of([rows[first]])
            text = f"the target {name!r} must hold numbers for a regression, got {str(values.iloc[first])!r}"
            raise TableError(_where(table), text, None if line is None else int(line[0]))
        return numbers
    if not numeric:
        return _text(values)
    numbers = np.asarray(values.to_numpy())
    if np.all(np.mod(numbers, 1) == 0):
        return numbers.astype(np.int64)
    if len(np.unique(numbers)) > max(MOST_CLASSES, len(numbers) // 10):
        raise UsageError(f"the target {name!r} holds numbers, not classes: use --task regression")
    return _text(values)


def _text(values: pd.Series) -> np.ndarray:
    """Labels as NumPy text without extra spaces, by way of the few that differ: a million Python strings weigh more."""
    import pandas as pd

    from selfpaced.tables import label_text

    codes, distinct = pd.factorize(values)
    return np.asarray(np.array([label_text(label) for label in distinct.tolist()])[codes])


def _ask_target(frame: pd.DataFrame) -> str:
    columns = [str(column) for column in frame.columns]
    likely = [c for c in columns if c.casefold() in NAMES] or columns[-1:]
    shown = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
    raise UsageError(f"say which column to predict, perhaps --target {likely[0]!r}; the columns are {shown}")


def _nearest(name: str, frame: pd.DataFrame) -> str:
    from selfpaced.tables import suggestion

    return suggestion(name, frame.columns)


def _where(table: LoadedTable) -> str:
    return str(table.path) if table.path is not None else "the built-in table"
