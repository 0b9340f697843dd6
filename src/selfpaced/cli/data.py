"""The table a command works on, from a file or built in, and its target column."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from selfpaced.formatting import plural

from .console import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import LoadedTable, NumberFormat, Reviewed

    from .console import Console

TARGET = "kind"
NAMES = ("target", "label", "labels", "class", "y", "outcome", "price", "value")
CLASSES_OF_NUMBERS = 20  # a choice: text with more distinct values that reads as numbers is a number


# ---------------------------------------------------------------------------------------------------------- table


def reading_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return how a file is to be read, as `read_table` takes it."""
    separator = {"tab": "\t", "\\t": "\t"}.get(args.separator, args.separator)
    if separator is not None and len(separator) != 1:
        raise UsageError(f"--separator must be one character or 'tab', got {args.separator!r}")
    return {
        "separator": separator,
        "header": not args.no_header,
        "encoding": args.encoding,
        "skip_broken": args.skip_broken,
        "decimal": args.decimal,
    }


def open_table(args: argparse.Namespace, text: Collection[str] = ()) -> LoadedTable:
    """Return the table of the arguments; ``text`` are columns that are read as text."""
    from selfpaced.tables import LoadedTable, read_table

    if args.data is None:
        return LoadedTable(built_in()[0])
    import pyarrow as pa

    pa.enable_signal_handlers(False)  # Arrow would send an interrupt again after the console has handled it
    return read_table(args.data, **reading_options(args), text=text)


def built_in() -> tuple[pd.DataFrame, np.ndarray]:
    """Return the table of an animal shelter with a fifth of wrong kinds, and which ones are wrong."""
    from selfpaced.datasets import flip_symmetric, make_shelter

    frame = make_shelter(random_state=0)
    frame[TARGET], wrong = flip_symmetric(frame[TARGET].to_numpy(dtype=str), 0.2, random_state=0)
    return frame, wrong


def decided(table: LoadedTable, args: argparse.Namespace) -> Reviewed | None:
    """Return the table as the decisions correct it; None if there are none. They may name the target, too."""
    from selfpaced.tables import apply_decisions, read_answers

    path = getattr(args, "decisions", None)
    if path is None:
        return None
    if args.target is None:
        args.target = next((answer.target for answer in read_answers(path) if answer.target), None)
    return apply_decisions(table.frame, path, target=args.target, decimal=table.dialect.decimal)


def check_columns(table: LoadedTable, args: argparse.Namespace) -> None:
    """Refuse names of columns that are not there."""
    from selfpaced.tables import suggestion

    groups = [] if getattr(args, "groups", None) is None else [args.groups]  # commands without a model have none
    for option, names in (("exclude", args.exclude), ("categorical", args.categorical), ("groups", groups)):
        for name in names:
            if name not in table.frame.columns:
                raise UsageError(f"--{option}: the table has no column {name!r}{suggestion(name, table.frame.columns)}")


def merged(
    table: LoadedTable, args: argparse.Namespace, merges: dict[str, str] | None = None
) -> tuple[LoadedTable, dict[str, str], list[str]]:
    """Return the table with its labels merged by ``--merge-labels``, the merges, and a sentence for each."""
    from selfpaced.tables import merge_labels

    merges = merges_of(table, args) if merges is None else merges
    if not merges:
        return table, {}, []
    name, frame = target_name(table, args), table.frame.copy(deep=False)
    frame[name], counts = merge_labels(frame[name], merges)
    return replace(table, frame=frame), merges, merges_in_words(merges, counts)


def merges_in_words(merges: dict[str, str], counts: Mapping[str, int]) -> list[str]:
    """Return a sentence for each merge."""
    done = {label: f"merged into {other!r}" if other else "read as missing labels" for label, other in merges.items()}
    return [f"{plural(counts[label], 'row')} of {label!r} {done[label]}" for label in merges]


def merges_of(table: LoadedTable, args: argparse.Namespace, *, all_known: bool = True) -> dict[str, str]:
    """Return the labels that ``--merge-labels`` merges, and into which."""
    from selfpaced.tables import label_text, read_merges

    if not args.merge_labels:
        return {}
    labels = {label_text(label) for label in table.frame[target_name(table, args)].dropna().unique().tolist()}
    try:
        return read_merges(args.merge_labels, sorted(labels), all_known=all_known)
    except ValueError as error:
        raise UsageError(f"--merge-labels: {error}") from error


# --------------------------------------------------------------------------------------------------------- target


def log_scale(values: np.ndarray) -> tuple[np.ufunc, np.ufunc]:
    """Return the logarithm and its inverse; the asinh, which is like it for large values, if not all are positive."""
    return (np.log, np.exp) if values.min() > 0 else (np.arcsinh, np.sinh)


@dataclass(frozen=True)
class Target:
    """The target column: the ``rows`` of the table that have a label or value, and these.

    ``written`` is how values are written, if they are text; ``log`` tells whether a model of their logarithm is fitted.
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
        """Return values on the scale of the model in the unit of the target."""
        return log_scale(self.values)[1](values) if self.log else values

    def without(self, rows: np.ndarray) -> Target:
        """Return the same without some rows of the table."""
        left = ~np.isin(self.rows, rows)
        return replace(self, rows=self.rows[left], values=self.values[left])

    def more(self, cells: pd.Series) -> np.ndarray:
        """Return further labels or values of the kind of these; NaN if a cell is no number."""
        if self.task == "regression":
            return _numbers(cells, self.written)
        if self.values.dtype.kind != "i":
            return _labels(cells)
        numbers = np.asarray(cells.to_numpy())
        if np.any(np.mod(numbers, 1)):
            what = f"the target {self.name!r} holds whole numbers at first and others later"
            raise UsageError(f"{what}: if they are values, use --task regression")
        return numbers.astype(np.int64)


def target_name(table: LoadedTable, args: argparse.Namespace) -> str:
    """Return the target column, which must be there."""
    from selfpaced.tables import suggestion

    columns = [str(column) for column in table.frame.columns]
    name: str | None = args.target
    if name is None and args.data is None:
        name = TARGET
    if name is None:
        likely = sorted((c for c in columns if c.casefold() in NAMES), key=lambda c: NAMES.index(c.casefold()))
        likely = likely or columns[-1:]
        shown = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
        raise UsageError(f"name the column to predict, for example --target {likely[0]!r}; the columns are {shown}")
    if name not in table.frame.columns:
        raise UsageError(f"{_where(table)} has no column {name!r}{suggestion(name, columns)}")
    return name


def find_target(table: LoadedTable, args: argparse.Namespace, console: Console) -> Target:
    """Return the target column, what kind of task it makes, and which rows have it."""
    from selfpaced.tables import TableError
    from selfpaced.tables.cells import LARGEST_NUMBER, READABLE

    name = target_name(table, args)
    series = table.frame[name]
    present = series.notna().to_numpy()
    rows = np.flatnonzero(present)
    if not rows.size:
        raise TableError(_where(table), f"the column {name!r} has no values")
    if rows.size < len(series):
        first = table.lines.of([int(np.argmin(present))])
        at = f", the first on line {first[0]}" if first is not None else ""
        count = f"{len(series) - rows.size:,} row{'s have' if len(series) - rows.size > 1 else ' has'}"
        console.warn(f"{count} no value in {name!r}{at}; left out of the fit")
    cells = series.iloc[rows]
    nested = {type(cell) for cell in cells if isinstance(cell, list | dict | np.ndarray)} if cells.dtype == "O" else ()
    if args.task == "auto" and cells.dtype.kind == "M":
        what = f"the target {name!r} holds dates, which are neither classes nor values: use --task or another column"
        raise TableError(_where(table), what)
    for kind in nested:
        what = f"the target {name!r} must hold one label or value per row, got a {kind.__name__}"
        raise TableError(_where(table), what.replace("ndarray", "list"))
    written = _written(cells, table, args, name)
    task = task_of(cells) if args.task == "auto" else args.task
    if task == "regression" and args.merge_labels:
        raise UsageError(f"--merge-labels is for classes, but the target {name!r} holds values")
    if task == "classification":
        return Target(name, rows, _classes(cells, name), task)
    values = _numbers(cells, written)
    known = np.abs(values) <= LARGEST_NUMBER
    if not known.all():
        bad, line = int(np.argmin(known)), table.lines.of([rows[int(np.argmin(known))]])
        cell = " ".join(str(cells.iloc[bad]).split())[:40]
        if known.mean() < READABLE:
            what = f"the target {name!r} must hold numbers for a regression, got {cell!r}"
            raise TableError(_where(table), what, None if line is None else int(line[0]))
        count = f"{plural(int(np.sum(~known)), 'row')} {'has' if np.sum(~known) == 1 else 'have'}"
        at = f" on line {line[0]}" if line is not None else ""
        console.warn(f"{count} no number in {name!r}, first {cell!r}{at}; left out of the fit")
    return Target(name, rows[known], values[known], task, written)


def task_of(values: pd.Series) -> str:
    """Return the task: text and few whole numbers are classes, other numbers are values.

    >>> import pandas as pd
    >>> task_of(pd.Series([0, 1, 1, 0])), task_of(pd.Series([0.5, 1.2, 3.4]))
    ('classification', 'regression')
    """
    from pandas.api import types

    from selfpaced.tables import CellLevels, NumberFormat

    if types.is_bool_dtype(values.dtype):
        return "classification"
    if not types.is_numeric_dtype(values.dtype):
        many = values.nunique() > CLASSES_OF_NUMBERS
        return "regression" if many and NumberFormat.find(CellLevels.of(values)) is not None else "classification"
    distinct = values.unique()
    whole = bool(np.isfinite(distinct).all() and np.all(np.mod(distinct, 1) == 0))
    few = len(distinct) <= 2 or (len(distinct) <= CLASSES_OF_NUMBERS and len(distinct) * 10 <= len(values))
    return "classification" if whole and few else "regression"


def _written(values: pd.Series, table: LoadedTable, args: argparse.Namespace, name: str) -> NumberFormat | None:
    """Return how a target that is text writes its numbers; None if it holds none."""
    from pandas.api import types

    from selfpaced.tables import CellLevels, NumberFormat, TableError

    if types.is_numeric_dtype(values.dtype) or args.task == "classification":
        return None
    levels = CellLevels.of(values)
    found = NumberFormat.find(levels, table.dialect.decimal)
    if found is not None and not found.decimal:
        if args.task == "auto" and len(levels.texts) <= CLASSES_OF_NUMBERS:
            return None
        cell = next(text for text in levels.shown if re.search("[.,]", text))
        what = f"the separator of {cell!r} in the target {name!r} may separate decimals or thousands"
        raise TableError(_where(table), f"{what}: say which by --decimal , or --decimal .")
    return found


def _numbers(values: pd.Series, written: NumberFormat | None) -> np.ndarray:
    """Return the values of a target as numbers; NaN if a cell is none."""
    from pandas.api import types

    from selfpaced.tables import CellLevels, NumberFormat

    if types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype):
        return np.asarray(values, dtype=float)
    levels = CellLevels.of(values)
    return np.append((written or NumberFormat()).parse(levels), np.nan)[levels.codes]


def _classes(values: pd.Series, name: str) -> np.ndarray:
    from pandas.api import types

    if not types.is_numeric_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return _labels(values)
    numbers = np.asarray(values.to_numpy())
    if np.all(np.mod(numbers, 1) == 0):
        return numbers.astype(np.int64)
    if len(np.unique(numbers)) > max(CLASSES_OF_NUMBERS, len(numbers) // 10):
        raise UsageError(f"the target {name!r} holds numbers, not classes: use --task regression")
    return _labels(values)


def _labels(values: pd.Series) -> np.ndarray:
    """Return labels as NumPy text without extra spaces, by way of the few that differ."""
    import pandas as pd

    from selfpaced.tables import label_text

    codes, distinct = pd.factorize(values)
    return np.asarray(np.array([label_text(label) for label in distinct.tolist()])[codes])


def _where(table: LoadedTable) -> str:
    return str(table.path) if table.path is not None else "the built-in table"
