"""``selfpaced inspect``: what can be said about a table without a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from selfpaced.formatting import plural

from .console import Exit

if TYPE_CHECKING:
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


def run(args: argparse.Namespace, console: Console) -> int:
    """Read, check, report."""
    from selfpaced.fingerprint import row_keys
    from selfpaced.tables import column_findings, notices

    from .data import check_columns, find_target, merged, open_table

    table = open_table(args)
    check_columns(table, args)
    table, _, done = merged(table, args)
    given = find_target(table, args, console)
    frame = table.frame.iloc[given.rows]
    found = notices(frame, given.name, given.values, task=given.task, exclude=args.exclude)
    found += column_findings(frame.drop(columns=[given.name, *args.exclude]))
    copies = len(frame) - len(set(row_keys(frame).tolist()))
    if copies:
        found.append(f"{plural(copies, 'row')} {'is a copy' if copies == 1 else 'are copies'} of another row")
    for notice in done:
        console.notice(notice)
    rows, columns = len(table.frame), table.frame.shape[1]
    console.tell(f"{plural(rows, 'row')}, {plural(columns, 'column')}; {given.task} of {given.name!r}")
    console.tell(f"{plural(len(found), 'finding')}:" if found else "Nothing found.", strong=True)
    for text in found:
        console.tell(f"- {text}", indent="  ")
    facts = {"rows": rows, "columns": columns, "target": given.name, "task": given.task}
    console.result({"data": args.data, **facts, "findings": found})
    return Exit.FOUND if found else Exit.OK
