"""Tables in the terminal: coloured by rich where it is installed, aligned text elsewhere."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TextIO

from selfpaced_experiments.render import cell_text, difference
from selfpaced_experiments.results import Results, Row, Table

__all__ = ["show"]

_VERDICTS = {"confirmed": "green", "not confirmed": "red", "only if": "yellow"}


def show(results: Results, stream: TextIO | None = None, plain: bool = False) -> None:
    """Write every table, the theory's failures and the claims to a stream (standard output by default)."""
    stream = stream or sys.stdout
    console = None if plain else _console(stream)
    for table in (part for whole in results.tables for part in _fitting(whole, console)):
        header, rows = _cells(table)
        _write(stream, console, table.title, header, rows, [_tone(table, row) for row in table.rows])
    if results.theory:
        held = sum(s.holds for s in results.theory)
        title = f"Theory: {held} of {len(results.theory)} statements hold; those that do not"
        failed = [(s.subject, s.statement, s.value) for s in results.theory if not s.holds]
        _write_text(stream, console, title, ("what", "statement", "figure"), failed, [""] * len(failed))
    if results.claims:
        told = [(c.verdict, c.claim, c.figure) for c in results.claims]
        tones = [_VERDICTS.get(c.verdict, "") for c in results.claims]
        _write_text(stream, console, "Claims of the paper", ("verdict", "claim", "figure"), told, tones)
    for reason in results.skipped:
        stream.write(f"skipped: {reason}\n")


def _console(stream: TextIO) -> Any | None:
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=stream) if stream.isatty() else None


def _fitting(table: Table, console: Any | None) -> list[Table]:
    """The table in as many parts as its columns need to fit a terminal's width."""
    if console is None:
        return [table]
    name = max(len(row.method) for row in table.rows) + 4
    count = max((console.width - name) // 43, 1)  # 43: paper, ours and difference with their borders
    parts = [table.columns[i : i + count] for i in range(0, len(table.columns), count)]
    return [replace(table, columns=columns) for columns in parts]


def _cells(table: Table) -> tuple[list[str], list[list[str]]]:
    compared = [c for c in table.columns if any(c.name in row.published for row in table.rows)]
    header = ["method"]
    for column in table.columns:
        header += [f"{column.name} paper", "ours", "diff."] if column in compared else [column.name]
    rows = []
    for row in table.rows:
        cells = [row.method]
        for column in table.columns:
            paper, ours, gap = cell_text(column, row)
            cells += [paper, ours, gap] if column in compared else [ours]
        rows.append(cells)
    return header, rows


def _tone(table: Table, row: Row) -> dict[int, str]:
    """Colours by position: green where ours is better than the paper's figure, red where it is worse."""
    tones, position = {}, 1
    compared = [c for c in table.columns if any(c.name in r.published for r in table.rows)]
    for column in table.columns:
        gap = difference(column, row)
        if column in compared:
            if gap is not None:
                tones[position + 2] = "green" if gap >= 0 else "red"
            position += 3
        else:
            position += 1
    if row.group == "ours":
        tones[0] = "bold"
    return tones


def _write(
    stream: TextIO,
    console: Any | None,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    tones: Sequence[dict[int, str]],
) -> None:
    if console is not None:
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable(title=title, title_justify="left", header_style="bold")
        for i, name in enumerate(header):
            drawn.add_column(name, justify="left" if i == 0 else "right")
        for row, tone in zip(rows, tones, strict=True):
            drawn.add_row(*(Text(cell, style=tone.get(i, "")) for i, cell in enumerate(row)))
        console.print(drawn)
        return
    stream.write(f"\n{title}\n")
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        padded = (
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        stream.write("  ".join(padded).rstrip() + "\n")


def _write_text(
    stream: TextIO,
    console: Any | None,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    tones: Sequence[str],
) -> None:
    """Rows of prose: wrapped in a table where there is rich, as indented paragraphs elsewhere."""
    if console is not None:
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable(*header, title=title, title_justify="left", header_style="bold", show_lines=True)
        for row, tone in zip(rows, tones, strict=True):
            drawn.add_row(Text(row[0], style=tone), *(Text(cell) for cell in row[1:]))
        console.print(drawn)
        return
    stream.write(f"\n{title}\n")
    for first, second, third in rows:
        stream.write(f"- {first}: {second}\n")
        stream.write(textwrap.fill(third, 116, initial_indent="    ", subsequent_indent="    ") + "\n")
