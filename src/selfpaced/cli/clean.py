"""``selfpaced clean``: write the table without its likely errors, or with them marked or corrected."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import LoadedTable

    from .console import Console

USAGE = "selfpaced clean [DATA] --target COLUMN [--how HOW] [--out FILE] [options]"
DESCRIPTION = """\
Write a copy of the table with its likely errors dropped, flagged or relabelled.
The input is never changed.

  --how drop     leave likely errors out (default)
  --how flag     add columns suspect (1 or 0), expected and noise_probability
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


def run(args: argparse.Namespace, console: Console) -> int:
    """Find the likely errors, or read the decisions, and write the changed copy."""
    from .console import UsageError
    from .output import check_target, format_of

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
    from .training import train

    how = args.how or "drop"
    with console.progress():
        result = train(args, console)
        with console.step("writing"):
            likely = result.likely.set_index("row")
            expected = likely["expected"].to_dict() if how == "relabel" else {}
            written = result.target.written
            decimal = result.table.dialect.decimal if written is None else written.decimal
            frame = _changed(result.table, result.target.name, expected, result.merges, decimal)
            if how == "flag":
                names = [name if name not in frame else f"selfpaced_{name}" for name in FLAGS]
                frame[names[0]] = frame.index.isin(likely.index).astype(int)
                for name, column in zip(names[1:], FLAGS[1:], strict=True):
                    frame[name] = likely[column].reindex(frame.index)
            rows = _write(frame.drop(index=likely.index) if how == "drop" else frame, result.table, out, decimal)
    done = {"drop": "dropped", "flag": "flagged", "relabel": "relabelled"}[how]
    console.tell(f"\n{result.findings.lists()}", strong=True)
    console.tell(f"{result.model.termination_}{f' The likely errors are {done}.' if len(likely) else ''}")
    console.say(f"Written: {out} ({rows:,} rows)")
    facts = {"out": str(out), "rows": rows, "likely_errors": len(likely), "how": how}
    console.result(facts | {"suspect_rows": result.likely["row"], "termination": result.model.termination_})
    return 0


def _by_decisions(args: argparse.Namespace, out: Path, console: Console) -> int:
    """Apply the decisions of a person; nothing is fitted."""
    from dataclasses import replace

    from .data import decided, merged, merges_of, open_table

    table = open_table(args)
    review = decided(table, args)
    assert review is not None
    merges = merges_of(table, args)
    for notice in merged(replace(table, frame=review.corrected), args, merges)[2]:
        console.notice(notice)
    values = review.corrected[args.target].iloc[review.replaced].tolist() if review.replaced.size else []
    labels = dict(zip(review.replaced.tolist(), values, strict=True))
    frame = _changed(table, args.target, labels, merges, table.dialect.decimal).drop(index=review.dropped)
    rows = _write(frame, table, out, table.dialect.decimal)
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


def _changed(
    table: LoadedTable, target: str | None, labels: dict[int, Any], merges: dict[str, str], decimal: str
) -> pd.DataFrame:
    """Return the table with new labels by row and with merged labels.

    Cells of a text file stay as they are written, and new labels are spelled as the file spells them: 01 stays 01, and
    numbers have its decimal sign.
    """
    import pandas as pd

    from selfpaced.tables import label_text, merge_labels, text_rows

    if table.format != "csv":
        frame = table.frame.copy(deep=False)
        if labels:
            values = frame[target].astype(object)
            values.iloc[list(labels)] = list(labels.values())
            frame[target] = values.infer_objects()
        if merges:
            frame[target] = merge_labels(frame[target], merges)[0]
        return frame
    records = list(text_rows(table))[int(table.dialect.header) :]
    frame = pd.DataFrame(records, columns=table.frame.columns, dtype=object)
    if labels or merges:
        cells = frame[target].tolist()
        spelled = {label_text(cell): label_text(cell) for cell in cells}
        known = dict(zip(table.frame[target].tolist(), cells, strict=True)) if labels else {}
        for row, label in labels.items():
            if isinstance(label, float):
                cells[row] = _text(label, decimal)
            else:
                cells[row] = label_text(known.get(label, spelled.get(str(label), label)))
        frame[target] = [merges.get(label_text(cell), cell) for cell in cells]
    return frame


def _write(frame: pd.DataFrame, table: LoadedTable, out: Path, decimal: str) -> int:
    """Write the changed table and return its number of rows; text as the file it came from is written."""
    from selfpaced.tables import text_rows

    from .output import format_of, write_frame, write_rows

    separator = format_of(out)[0]
    if table.format != "csv" or not separator:
        write_frame(frame, out)
        return len(frame)
    separator = "\t" if separator == "\t" else table.dialect.separator
    rows = [[_text(cell, decimal) for cell in row] for row in frame.to_numpy(dtype=object).tolist()]
    if table.dialect.header:
        written = next(text_rows(table))
        rows.insert(0, [*written, *map(str, frame.columns[len(written) :])])
    write_rows(rows, out, separator, table.dialect)
    return len(frame)


def _text(value: Any, decimal: str) -> str:
    """Return a cell as text, a number with the decimal sign of the file.

    >>> _text(0.5, ""), _text(1268.25, ","), _text(float("nan"), ","), _text("0.5", ",")
    ('0.5', '1268,25', '', '0.5')
    """
    if not isinstance(value, float):
        return str(value)
    plain = "" if value != value else np.format_float_positional(float(f"{value:.6g}"), trim="-")
    return plain.replace(".", decimal or ".")
