"""Tables and outcomes in the terminal, with colours; plain text in a pipe."""

from __future__ import annotations

from dataclasses import replace
from typing import TextIO

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from selfpaced_experiments.render import cell_text, difference
from selfpaced_experiments.results import Measure, Results, ResultTable, Row

__all__ = ["show"]

_OUTCOMES = {"confirmed": "green", "not confirmed": "red", "under conditions": "yellow"}
_PROSE = 116  # a line of text at most
_COMPARED = 43  # what paper, ours and difference take with their borders


def show(results: Results, stream: TextIO | None = None, plain: bool = False) -> None:
    """Write every table, the theory's failures and the claims to a stream (standard output by default)."""
    console = Console(file=stream, force_terminal=False if plain else None, highlight=False)
    if not console.is_terminal:
        console.width = 1000  # nothing to fit: a table in a file is not cut
    for table in results.tables:
        for part in _fitting(table, console):
            console.print(_grid(part), "")
    if results.theory:
        held = sum(s.holds for s in results.theory)
        console.print(f"Theory: {held} of {len(results.theory)} statements hold; those that do not", style="bold")
        for s in results.theory:
            if not s.holds:
                _paragraph(console, Text(f"{s.subject}: {s.statement}"), s.value)
    if results.claims:
        console.print("\nClaims of the paper", style="bold")
        for c in results.claims:
            _paragraph(console, Text.assemble((c.outcome, _OUTCOMES.get(c.outcome, "")), f": {c.claim}"), c.figure)
    for reason in results.skipped:
        console.print(f"skipped: {reason}", markup=False, soft_wrap=True)


def _paragraph(console: Console, head: Text, body: str) -> None:
    width = min(console.width, _PROSE)
    console.print(Text("- ") + head, width=width)
    console.print(Padding(Text(body), (0, 0, 0, 4), expand=False), width=width)


def _fitting(table: ResultTable, console: Console) -> list[ResultTable]:
    """The table in as many parts as its columns need to fit the width."""
    name = max(len(row.method) for row in table.rows) + 4
    count = max((console.width - name) // _COMPARED, 1)
    parts = [table.columns[i : i + count] for i in range(0, len(table.columns), count)]
    return [replace(table, columns=columns) for columns in parts]


def _grid(table: ResultTable) -> Grid:
    grid = Grid(title=table.title, title_justify="left", box=box.SIMPLE_HEAD, header_style="bold")
    grid.add_column("method", no_wrap=True)
    compared = [column for column in table.columns if any(column.name in row.published for row in table.rows)]
    for column in table.columns:
        for header in (f"{column.name} paper", "ours", "diff.") if column in compared else (column.name,):
            grid.add_column(header, justify="right")
    for row in table.rows:
        cells = [cell for column in table.columns for cell in _cells(column, row, column in compared)]
        grid.add_row(Text(row.method, style="bold" if row.group == "ours" else ""), *cells)
    return grid


def _cells(column: Measure, row: Row, compared: bool) -> list[Text]:
    """Ours, or the paper's figure, ours and their difference: green where ours is better, red where it is worse."""
    paper, ours, told = cell_text(column, row)
    gap = difference(column, row)
    tone = "" if gap is None else "green" if gap >= 0 else "red"
    return [Text(paper), Text(ours), Text(told, style=tone)] if compared else [Text(ours)]
