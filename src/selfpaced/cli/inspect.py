"""``selfpaced inspect``: what can be said about a table without a model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from selfpaced.formatting import percent, plural

from .data import add_data_arguments
from .errors import FOUND, OK

if TYPE_CHECKING:
    import pandas as pd

    from .console import Console

USAGE = "selfpaced inspect DATA --target COLUMN [options]"
DESCRIPTION = """\
Check a table without fitting a model. Nothing is changed or written.

Reports labels that are spelled in several ways, columns that alone predict the
target (leakage), equal rows with different labels, copies, summary rows, and
columns that are constant, empty or of mixed type.
The exit code is 1 if something is reported, else 0.
"""
EPILOG = """\
examples:
  selfpaced inspect data.csv --target label
  selfpaced inspect data.csv --target label --json
"""
MOSTLY = 0.9  # display: share of numbers from which a column of text is called mostly numeric


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``inspect``."""
    add_data_arguments(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Read, check, report."""
    from selfpaced.tables import notices

    from .data import find_target, merged, merges_of, open_table
    from .training import check_columns

    table = open_table(args)
    check_columns(table, args)
    table, done = merged(table, merges_of(table, args), args)
    given = find_target(table, args, console)
    frame = table.frame.iloc[given.rows]
    found = notices(frame, given.name, given.values, task=given.task, exclude=args.exclude)
    found += column_findings(frame.drop(columns=[given.name, *args.exclude]))
    copies = _copies(frame)
    found += (
        [f"{plural(copies, 'row')} {'is a copy' if copies == 1 else 'are copies'} of another row"] if copies else []
    )
    for notice in done:
        console.notice(notice)
    rows, columns = len(table.frame), table.frame.shape[1]
    console.tell(f"{plural(rows, 'row')}, {plural(columns, 'column')}; {given.task} of {given.name!r}")
    console.tell(f"{plural(len(found), 'finding')}:" if found else "Nothing found.", strong=True)
    for text in found:
        console.tell(f"- {text}", indent="  ")
    facts = {"rows": rows, "columns": columns, "target": given.name, "task": given.task}
    console.result({"data": args.data, **facts, "findings": found})
    return FOUND if found else OK


def column_findings(features: pd.DataFrame) -> list[str]:
    """Return a sentence for every column that is empty, constant or of mixed type.

    >>> import pandas as pd
    >>> column_findings(pd.DataFrame({"a": [1, 1, 1], "b": [None, None, None]}))
    ["column 'a' is constant (1)", "column 'b' is empty"]
    """
    return [text for place, name in enumerate(features.columns) for text in _column(str(name), features.iloc[:, place])]


def _column(name: str, column: pd.Series) -> Iterator[str]:
    cells = column.dropna()
    if cells.empty:
        yield f"column {name!r} is empty"
        return
    texts = cells.astype(str)
    if texts.nunique() == 1:
        missing = f" or missing ({percent(1 - len(cells) / len(column))})" if len(cells) < len(column) else ""
        yield f"column {name!r} is constant ({texts.iloc[0]}){missing}"
        return
    odd = _not_numbers(cells)
    if odd is not None:
        examples = ", ".join(repr(text) for text in odd.unique()[:3])
        yield f"column {name!r} has numbers, but {plural(len(odd), 'cell')} of text (such as {examples})"


def _not_numbers(cells: pd.Series) -> Any:
    """The cells that are no numbers, in a column that mostly holds numbers; else None."""
    import pandas as pd
    from pandas.api import types

    if types.is_numeric_dtype(cells.dtype) or types.is_datetime64_any_dtype(cells.dtype):
        return None
    texts = cells.astype(str).str.strip()
    numbers = pd.to_numeric(texts.str.replace(r"[$€£%,\s]", "", regex=True), errors="coerce")
    odd = texts[numbers.isna()]
    return odd if 0 < len(odd) <= (1 - MOSTLY) * len(texts) else None


def _copies(frame: pd.DataFrame) -> int:
    """How many rows repeat an earlier one in every column."""
    import pandas as pd

    from selfpaced.fingerprint import row_keys

    return int(pd.Series(row_keys(frame)).duplicated().sum())
