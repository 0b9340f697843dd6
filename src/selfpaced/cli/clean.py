"""``selfpaced clean``: write the table without its likely errors, or with them marked or corrected."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .data import add_data_arguments, add_decisions
from .models import add_model_arguments

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import LoadedTable

    from .console import Console

USAGE = "selfpaced clean [DATA] --target COLUMN [--how HOW] [--out FILE] [options]"
DESCRIPTION = """\
Write a copy of the table with its likely errors dropped, flagged or relabelled.
The input is never changed.

  --how drop     leave likely errors out (default)
  --how flag     add the columns suspect (1 or 0), expected and noise_probability
  --how relabel  replace the given label or value by the expected one

All other cells of a text file are copied as they are.
"""
EPILOG = """\
examples:
  selfpaced clean data.csv --target label          writes data.clean.csv
  selfpaced clean data.csv --target label --how flag --out flagged.csv
  selfpaced clean data.csv --decisions run/decisions.csv
"""
FLAGS = ("suspect", "expected", "noise_probability")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``clean``."""
    add_data_arguments(parser)
    add_model_arguments(parser)
    group = parser.add_argument_group("results")
    group.add_argument("--how", choices=("drop", "flag", "relabel"), default=None, help="what to do with likely errors")
    add_decisions(group)
    group.add_argument("--out", type=Path, metavar="FILE", help="default: the name of DATA with .clean in it, here")
    group.add_argument("--force", action="store_true", help="overwrite FILE if it exists")


@dataclass(frozen=True)
class Changes:
    """Changes of a table: rows to drop, new labels by row, labels to merge, and flags by row (None: no flags)."""

    target: str | None
    dropped: frozenset[int] = frozenset()
    labels: dict[int, Any] = field(default_factory=dict)
    merges: dict[str, str] = field(default_factory=dict)
    flags: dict[int, tuple[Any, ...]] | None = None


def run(args: argparse.Namespace, console: Console) -> int:
    """Find the likely errors, or read the decisions, and write the changed copy."""
    from .atomic_output import check_target
    from .errors import UsageError
    from .writing import format_of

    out = args.out if args.out is not None else _default(args.data)
    format_of(out)
    check_target(out, None if args.data is None else Path(args.data), force=args.force)
    if args.decisions is None:
        return _by_model(args, out, console)
    if args.how is not None:
        raise UsageError("--how cannot be combined with --decisions: each decision says what to do with its row")
    return _by_decisions(args, out, console)


def _by_model(args: argparse.Namespace, out: Path, console: Console) -> int:
    """Drop, flag or relabel the likely errors of a fit."""
    from .terminal import likely_errors
    from .training import STEPS, train

    how = args.how or "drop"
    with console.progress(STEPS + 1):
        result = train(args, console)
        with console.step("writing"):
            records = result.likely.to_dict("records")
            expected = {int(r["row"]): r["expected"] for r in records}
            flags = {int(r["row"]): (1, *(r[name] for name in FLAGS[1:])) for r in records}
            changes = Changes(
                result.target.name,
                dropped=frozenset(expected) if how == "drop" else frozenset(),
                labels=expected if how == "relabel" else {},
                merges=result.merges,
                flags=flags if how == "flag" else None,
            )
            rows = _write(result.table, changes, out)
    done = {"drop": "dropped", "flag": "flagged", "relabel": "relabelled"}[how]
    console.tell(f"\n{result.model.termination_}")
    found = likely_errors(len(records))
    console.tell(f"{found} among {len(result.table.frame):,} rows{f': {done}' if records else ''}.")
    console.say(f"Written: {out} ({rows:,} rows)")
    facts = {"out": str(out), "rows": rows, "likely_errors": len(records), "how": how}
    console.result(facts | {"suspect_rows": result.likely["row"], "termination": result.model.termination_})
    return 0


def _by_decisions(args: argparse.Namespace, out: Path, console: Console) -> int:
    """Apply the decisions of a person; nothing is fitted."""
    from dataclasses import replace

    from .data import decided, merged, merges_of, open_table
    from .rounds import tell_of_merges

    table = open_table(args)
    review = decided(table.frame, args)
    assert review is not None
    tell_of_merges(args, console)
    merges = merges_of(table, args)
    for notice in merged(replace(table, frame=review.corrected), merges, args)[1]:
        console.notice(notice)
    values = review.corrected[args.target].iloc[review.replaced].tolist() if review.replaced.size else []
    labels = dict(zip(review.replaced.tolist(), values, strict=True))
    rows = _write(table, Changes(args.target, frozenset(review.dropped.tolist()), labels, merges), out)
    console.say(f"Decisions: {review}.")
    console.say(f"Written: {out} ({rows:,} rows)")
    counts = {"corrected": len(review.replaced), "dropped": len(review.dropped), "kept": len(review.kept)}
    console.result({"out": str(out), "rows": rows, "how": "decisions", **counts})
    return 0


def _default(data: str | None) -> Path:
    if data is None:
        return Path("shelter.clean.csv")
    name = Path(data).name
    packed = name.lower().endswith(".gz")
    stem = Path(name[:-3] if packed else name)
    return Path(f"{stem.stem}.clean{stem.suffix or '.csv'}{'.gz' if packed else ''}")


def _write(table: LoadedTable, changes: Changes, out: Path) -> int:
    """Write the changed copy and return its number of rows: text cell by cell, anything else as a frame."""
    from .writing import format_of, write_frame, write_rows

    if table.format == "csv" and format_of(out)[0] != "parquet":
        separator = "\t" if format_of(out)[0] == "tsv" else table.dialect.separator
        return write_rows(_records(table, changes), out, separator, table.dialect) - int(table.dialect.header)
    frame = _frame(table.frame, changes)
    write_frame(frame, out)
    return len(frame)


def _records(table: LoadedTable, changes: Changes) -> Iterator[list[str]]:
    """The records of the file; new labels are spelled as the file spells them elsewhere: 01 stays 01."""
    from selfpaced.tables import label_text, text_rows

    columns = list(table.frame.columns)
    place = columns.index(changes.target) if changes.target in columns else -1
    spelling = _spelling(table, place, changes.labels)
    records = text_rows(table)
    if table.dialect.header:
        header = next(records)
        yield header + _flag_names(header) if changes.flags is not None else header
    for row, cells in enumerate(records):
        if row in changes.dropped:
            continue
        if row in changes.labels:
            cells[place] = spelling.get(changes.labels[row], _text(changes.labels[row]))
        if changes.merges:
            cells[place] = changes.merges.get(label_text(cells[place]), cells[place])
        flags = [] if changes.flags is None else changes.flags.get(row, (0, "", ""))
        yield [*cells, *map(_text, flags)]


def _spelling(table: LoadedTable, place: int, labels: dict[int, Any]) -> dict[Any, str]:
    """How the file writes each of the new labels."""
    from selfpaced.tables import label_text, text_rows

    missing = {label for label in labels.values() if not isinstance(label, float)}
    spelling: dict[Any, str] = {}
    records = text_rows(table) if missing else iter(())
    if missing and table.dialect.header:
        next(records)
    values = table.frame.iloc[:, place].tolist() if missing else []
    for value, cells in zip(values, records, strict=bool(missing)):
        known = value if value in missing else label_text(value)
        if known in missing:
            spelling[known] = label_text(cells[place])
            missing.discard(known)
    return spelling


def _frame(frame: pd.DataFrame, changes: Changes) -> pd.DataFrame:
    """The frame with the changes."""
    from selfpaced.tables import merge_labels

    frame = frame.copy(deep=False)
    if changes.labels:
        values = frame[changes.target].astype(object)
        values.iloc[list(changes.labels)] = list(changes.labels.values())
        frame[changes.target] = values.infer_objects()
    if changes.merges:
        frame[changes.target] = merge_labels(frame[changes.target], changes.merges)[0]
    if changes.flags is not None:
        flags = [changes.flags.get(row, (0, None, None)) for row in range(len(frame))]
        for name, column in zip(_flag_names(list(map(str, frame.columns))), zip(*flags, strict=True), strict=True):
            frame[name] = list(column)
    return frame.drop(index=frame.index[sorted(changes.dropped)])


def _flag_names(header: list[str]) -> list[str]:
    return [name if name not in header else f"selfpaced_{name}" for name in FLAGS]


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
