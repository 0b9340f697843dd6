"""``selfpaced clean``: the table without its suspects, or with them marked or corrected."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .data import add_data_arguments, add_decisions
from .models import add_model_arguments

if TYPE_CHECKING:
    from selfpaced.tables import LoadedTable, Reviewed

    from .console import Console
    from .training import Training

USAGE = "selfpaced clean [DATA] --target COLUMN [--how drop|flag|relabel] [--out FILE] [options]"
DESCRIPTION = """\
Write the table again with its likely errors dropped, flagged or relabelled; never in place.

  --how drop     leave likely errors out (default)
  --how flag     add the columns suspect (1 or 0), expected and noise_probability
  --how relabel  put what the model expects in place of what is given

Everything else stays as it is written: cells of a text file are copied, not converted.
"""
EPILOG = """\
examples:
  selfpaced clean data.csv --target label                     writes data.clean.csv
  selfpaced clean data.csv --target label --how flag --out flagged.csv
  selfpaced clean data.csv --decisions run/decisions.csv      as a person has decided, row by row
"""
FLAGS = ("suspect", "expected", "noise_probability")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``clean``."""
    add_data_arguments(parser)
    add_model_arguments(parser)
    group = parser.add_argument_group("results")
    group.add_argument("--how", choices=("drop", "flag", "relabel"), default=None, help="what to do with likely errors")
    add_decisions(group)
    group.add_argument("--out", type=Path, metavar="FILE", help="default: the data's name with .clean in it, here")
    group.add_argument("--force", action="store_true", help="replace FILE if it exists")


def run(args: argparse.Namespace, console: Console) -> int:
    """Fit, then copy the table."""
    from .output import check_target
    from .telling import counted
    from .training import STEPS, train
    from .writing import format_of

    out = args.out if args.out is not None else _default(args.data)
    format_of(out)
    check_target(out, None if args.data is None else Path(args.data), force=args.force)
    if args.decisions is not None:
        return _by_decisions(args, out, console)
    args.how = args.how or "drop"
    with console.progress(STEPS + 1):
        result = train(args, console)
        with console.step("writing"):
            kept = _write(result, out, args.how)
    n = len(result.likely)
    done = {"drop": "dropped", "flag": "flagged", "relabel": "relabelled"}[args.how]
    console.say(f"\n{result.model.termination_}")
    console.say(f"{counted(n)} among {len(result.table.frame):,} rows{f': {done}' if n else ''}.")
    console.say(f"Written: {out} ({kept:,} rows)")
    console.result(
        {
            "out": str(out),
            "rows": kept,
            "likely_errors": n,
            "how": args.how,
            "suspect_rows": result.likely["row"],
            "termination": result.model.termination_,
        }
    )
    return 0


def _by_decisions(args: argparse.Namespace, out: Path, console: Console) -> int:
    """The table as a person has decided; nothing is fitted."""
    from selfpaced.tables import text_rows

    from .data import decided, merged, merges_of, open_table
    from .errors import UsageError
    from .rounds import tell_of_merges
    from .writing import format_of, write_frame, write_rows

    if args.how is not None:
        raise UsageError("--how is for suspects nobody has looked at; with --decisions every row has its own")
    table = open_table(args)
    review = decided(table.frame, args)
    assert review is not None
    tell_of_merges(args, console)
    corrected = replace(table, frame=review.corrected)
    merges = merges_of(corrected, args)
    corrected, done = merged(corrected, merges, args)
    review = replace(review, corrected=corrected.frame)
    for notice in done:
        console.notice(notice)
    if table.format == "csv" and format_of(out)[0] != "parquet":
        separator = "\t" if format_of(out)[0] == "tsv" else table.dialect.separator
        rows = _decided_rows(table, review, args.target, text_rows, merges)
        kept = write_rows(rows, out, separator, table.dialect) - int(table.dialect.header)
    else:
        write_frame(review.table, out)
        kept = len(review.table)
    console.say(f"Decisions: {review}.")
    console.say(f"Written: {out} ({kept:,} rows)")
    counts = {"corrected": len(review.replaced), "dropped": len(review.dropped), "kept": len(review.kept)}
    console.result({"out": str(out), "rows": kept, "how": "decisions", **counts})
    return 0


def _decided_rows(
    table: LoadedTable, review: Reviewed, target: str | None, records_of: Any, merges: dict[str, str]
) -> Iterator[list[str]]:
    """The records of the file; new labels are spelled as the file spells them elsewhere: 01 stays 01."""
    from selfpaced.tables import label_text

    records, dropped = records_of(table), set(review.dropped.tolist())
    if table.dialect.header:
        yield next(records)
    new: dict[int, str] = {}
    position = list(table.frame.columns).index(target) if review.replaced.size or merges else -1
    if review.replaced.size:
        values = review.corrected.iloc[review.replaced, position].tolist()
        missing, spelling = set(values), {}
        again = records_of(table)
        if table.dialect.header:
            next(again)
        for value, cells in zip(table.frame.iloc[:, position].tolist(), again, strict=True):
            if value in missing:
                spelling[value] = cells[position]
                missing.discard(value)
        new = {int(r): spelling.get(v, _text(v)) for r, v in zip(review.replaced, values, strict=True)}
    for row, cells in enumerate(records):
        if row in new:
            cells[position] = new[row]
        if merges:
            cells[position] = merges.get(label_text(cells[position]), cells[position])
        if row not in dropped:
            yield cells


def _default(data: str | None) -> Path:
    if data is None:
        return Path("breast.clean.csv")
    name = Path(data).name
    packed = name.lower().endswith(".gz")
    stem = Path(name[:-3] if packed else name)
    return Path(f"{stem.stem}.clean{stem.suffix or '.csv'}{'.gz' if packed else ''}")


def _write(result: Training, out: Path, how: str) -> int:
    """Text to text is copied cell by cell; everything else goes through the frame."""
    from .writing import format_of, write_frame, write_rows

    table = result.table
    if table.format == "csv" and format_of(out)[0] != "parquet":
        separator = "\t" if format_of(out)[0] == "tsv" else table.dialect.separator
        header = int(table.dialect.header)
        return write_rows(_copied(result, how), out, separator, table.dialect) - header
    frame = _changed(result, how)
    write_frame(frame, out)
    return len(frame)


def _copied(result: Training, how: str) -> Iterator[list[str]]:
    """The records of the file, changed only where asked."""
    from selfpaced.tables import label_text, text_rows

    table, name = result.table, result.target.name
    position = list(table.frame.columns).index(name)
    suspects = {int(r["row"]): r for r in result.likely.to_dict("records")}
    written = _spelling(result, position) if how == "relabel" else {}
    records = text_rows(table)
    if table.dialect.header:
        header = next(records)
        yield header + _flag_names(header) if how == "flag" else header
    for row, cells in enumerate(records):
        suspect = suspects.get(row)
        label = result.merges.get(label_text(cells[position]))
        if label is not None:
            cells[position] = label
        if how == "flag":
            yield cells + _flags(suspect)
        elif suspect is None:
            yield cells
        elif how == "relabel":
            expected = suspect["expected"]
            yield [*cells[:position], written.get(expected, _text(expected)), *cells[position + 1 :]]


def _spelling(result: Training, position: int) -> dict[Any, str]:
    """How the file itself writes each class: 01 stays 01."""
    from selfpaced.tables import label_text, text_rows

    if result.target.task != "classification":
        return {}
    missing = set(result.target.values.tolist())
    label_of = dict(zip(result.target.rows.tolist(), result.target.values.tolist(), strict=True))
    spelling: dict[Any, str] = {}
    records = text_rows(result.table)
    if result.table.dialect.header:
        next(records)
    for row, cells in enumerate(records):
        label = label_of.get(row)
        if label in missing:
            spelling[label] = label_text(cells[position])
            missing.discard(label)
            if not missing:
                break
    return spelling


def _changed(result: Training, how: str) -> Any:
    """The frame, changed as asked."""
    frame, found = result.table.frame, result.likely
    rows = found["row"].to_numpy()
    if how == "drop":
        return frame.drop(index=frame.index[rows])
    frame = frame.copy()
    if how == "relabel":
        values = frame[result.target.name].astype(object)
        values.iloc[rows] = found["expected"].to_numpy()
        frame[result.target.name] = values.infer_objects()
        return frame
    names = _flag_names([str(column) for column in frame.columns])
    for name, source, default in zip(names, (None, "expected", "noise_probability"), (0, None, None), strict=True):
        column = [default] * len(frame)
        for row, record in zip(rows, found.to_dict("records"), strict=True):
            column[row] = 1 if source is None else record[source]
        frame[name] = column
    return frame


def _flag_names(header: list[str]) -> list[str]:
    return [name if name not in header else f"selfpaced_{name}" for name in FLAGS]


def _flags(suspect: dict[str, Any] | None) -> list[str]:
    if suspect is None:
        return ["0", "", ""]
    return ["1", _text(suspect["expected"]), _text(suspect["noise_probability"])]


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
