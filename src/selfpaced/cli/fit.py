"""``selfpaced fit``: from a table to a model, its suspects and a report."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .console import UsageError
from .data import (
    Target,
    built_in,
    check_columns,
    find_target,
    merged,
    merges_in_words,
    merges_of,
    reading_options,
)
from .models import build, model_of

if TYPE_CHECKING:
    from selfpaced.tables import TableBatches

    from .console import Console
    from .training import Training

USAGE = "selfpaced fit [DATA] --target COLUMN [--out OUT] [options]"
DESCRIPTION = """\
Fit a model to a table with some wrong labels or values, and list the rows to
check: likely errors, and rows worth a look.

Writes into OUT:
  report.html    the result as a page, in one file
  suspects.csv   the rows to check, with an empty column for your decision:
                 keep, drop, relabel, relabel to LABEL, or set VALUE
  metrics.json   the result as numbers
  model.skops    the fitted model, for selfpaced predict
"""
EPILOG = """\
examples:
  selfpaced fit                                        the built-in table
  selfpaced fit data.csv --target label --out run/
  selfpaced fit houses.tsv.gz --target price --model boosting
  selfpaced fit 'data/*.parquet' --target label --memory 1GB --scratch /disk
  selfpaced fit data.csv --decisions run/decisions.csv --out run2/
"""
FILES = ["model.skops", "suspects.csv", "metrics.json", "report.html"]
LARGE_FILES = ["model.skops", "suspects.parquet", "metrics.json"]
DESCRIBED = 200_000  # cost: rows from which columns are described; medians of these are within a hundredth of a sigma
CELL_BYTES = 64  # cost: bytes that a cell of these rows takes at most, as an object of pandas
DEFAULT = "1GB"


def run(args: argparse.Namespace, console: Console) -> int:
    """Fit, write everything at once, and say what came out."""
    if _is_large(args):
        return _run_in_pieces(args, console)
    from selfpaced.persistence import save

    from .output import DECISIONS, staged, write_frame, write_json
    from .rounds import progress
    from .suspects import with_cells
    from .terminal import show_lists, summary, tell_next
    from .training import facts_of, metrics, train

    kept = args.out / DECISIONS
    carried = args.decisions is not None and not (kept.exists() and kept.samefile(args.decisions))
    with staged(args.out, [*FILES, DECISIONS] if carried else FILES, console, force=args.force) as stage:
        with console.progress():
            result = train(args, console)
            with console.step("writing"):
                facts = facts_of(result.target, result.model_name, result.merges)
                save(result.pipeline, stage / "model.skops", facts=facts)
                cells = result.table.frame.drop(columns=result.target.name)
                found = with_cells(result.listed, cells, result.target.name, result.marks)
                write_frame(found, stage / "suspects.csv")
                written = [name for name in FILES if name != "report.html"]
                if carried and result.last is not None and result.last.answers:
                    write_frame(result.last.decisions(), stage / DECISIONS)
                    written.append(DECISIONS)
                if not args.no_report and write_report(result, stage / "report.html", console):
                    written.append("report.html")
        measured = metrics(result, console) | progress(result.last, result.suspects["row"].tolist())
        write_json(measured, stage / "metrics.json")
    summary(result.findings, result.model.path_, measured, console)
    show_lists(result.suspects, console)
    if args.data is None:
        _tell_truth(result, console)
    tell_next(result, measured, [str(args.out / name) for name in written], str(args.out), console)
    console.result({**measured, "files": [str(args.out / name) for name in written]})
    return 0


def _tell_truth(result: Training, console: Console) -> None:
    """Print how many of the wrong labels of the built-in table are listed."""
    wrong = built_in()[1]
    likely, both = (int(wrong[rows["row"]].sum()) for rows in (result.likely, result.suspects))
    found = f"the likely errors hold {likely} of them, both lists {both}"
    console.tell(f"\nIn truth, {wrong.sum()} labels of this made-up table are wrong: {found}.")


def write_report(result: Training, path: Path, console: Console) -> bool:
    """Write the page of a fit."""
    from .output import write_page

    name = result.table.path.name if result.table.path is not None else "the built-in table"
    shown = result.suspects.drop(columns="weight")
    return write_page(
        path,
        console,
        result.pipeline[-1],
        result.features,
        result.target.values,
        suspects=shown.assign(target=result.target.name, fingerprint=list(result.marks[: len(shown)])),
        cells=result.table.frame,
        title=f"{result.target.name} in {name}",
        note=None if result.choice is None else result.choice.sentence(result.target.name),
        notices=result.notices,
        not_used=result.encoder.not_used_,
    )


# ------------------------------------------------------------------------------------------ larger than memory
#
# What the columns hold, medians, spreads and categories are learnt from a random sample of the rows. Then every batch
# is encoded once into a scratch file, and the model passes over the encoded rows as often as it needs to.


def _is_large(args: argparse.Namespace) -> bool:
    """Whether the table is to be read piece by piece."""
    pattern = args.data is not None and any(sign in args.data for sign in "*?[") and not Path(args.data).exists()
    if args.scratch is not None and args.memory is None and not pattern:
        raise UsageError("--scratch needs --memory: say how much memory to use, such as --memory 1GB")
    if args.memory is not None and args.data is None:
        raise UsageError("--memory needs DATA: the built-in table fits into memory")
    return pattern or args.memory is not None


@dataclass
class Encoded:
    """Batches of a table as features and labels, while they are read.

    Target and encoder are those of a sample. As far as the table was read, ``dropped`` are the numbers of the rows
    without a label, ``unread`` counts those whose value is no number, ``counts`` the rows of each label that was
    merged, and ``last`` is the last batch.
    """

    batches: TableBatches
    given: Target
    encoder: Any
    merges: dict[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    n: int = 0
    unread: int = 0
    dropped: list[np.ndarray] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    last: Any = None

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        from selfpaced.tables import merge_labels

        for frame in self.batches:
            frame.index += self.n  # so that warnings name rows of the whole table
            self.last, (labels, counts) = frame, merge_labels(frame[self.given.name], self.merges)
            self.counts.update(counts)
            present = labels.notna().to_numpy(copy=True)
            found = self.given.more(labels[present])
            if found.dtype.kind == "f":
                read = np.isfinite(found)
                self.unread += int(np.sum(~read))
                present[present], found = read, found[read]
            self.dropped.append(self.n + np.flatnonzero(~present))
            self.n += len(frame)
            if present.any():
                yield self.encoder.transform(frame if present.all() else frame[present]), found

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Numbers in the files of rows that were kept."""
        from selfpaced.distributed import numbers_with

        return numbers_with(self.dropped, rows)


def _run_in_pieces(args: argparse.Namespace, console: Console) -> int:
    """Describe, encode, fit, and stream the suspects."""
    from selfpaced.distributed import parse_bytes, spool, write_suspects
    from selfpaced.inspection import Findings
    from selfpaced.persistence import save

    from .output import staged, write_json
    from .terminal import summary
    from .training import facts_of, fit_facts, joined

    try:
        memory = parse_bytes(args.memory or DEFAULT)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    if args.scratch is not None and not Path(args.scratch).is_dir():
        raise UsageError(f"--scratch must be a folder, got {str(args.scratch)!r}")
    with staged(args.out, LARGE_FILES, console, force=args.force) as stage:
        with console.progress():
            with console.step(f"describing the columns of {args.data}"):
                encoded = _described(args, memory, console)
            classes = encoded.given.task == "classification"
            name = "logistic" if classes else "ridge"
            model = build(name, encoded.given.task, args, [])
            with console.step("encoding the rows"):
                table = spool(iter(encoded), labels=classes, memory=memory, scratch=args.scratch)
                encoded.notices += _at_the_end(encoded, console)
            with table:
                table.names = [str(name) for name in encoded.encoder.get_feature_names_out()]
                with console.step(f"fitting plain and self-paced {name}"):
                    model.fit(table)
                with console.step("listing the rows to check"):
                    path = stage / "suspects.parquet"
                    counts = write_suspects(model, table, path, threshold=args.threshold, numbers=encoded.numbers)
                found = Findings.of(model, (int(counts[2]), int(counts[1])), rows=table.n)
                measured = {
                    **facts_of(encoded.given, name, encoded.merges),
                    **fit_facts(found, model.path_, model.lam_, encoded.encoder),
                    "data": args.data,
                    "rows": encoded.n,
                    "features": table.n_features,
                    "notices": list(encoded.notices),
                    "passes": table.passes,
                }
            with console.step("writing"):
                save(
                    joined(encoded.encoder.set_output(transform="pandas"), model),
                    stage / "model.skops",
                    facts=facts_of(encoded.given, name, encoded.merges),
                )
        measured["seconds"] = dict(console.seconds)
        write_json(measured, stage / "metrics.json")
    summary(found, model.path_, measured, console)
    written = [str(args.out / name) for name in LARGE_FILES]
    console.tell(f"\nWritten: {', '.join(written)}")
    console.tell(console.timing())
    console.result({**measured, "files": written})
    return 0


def _described(args: argparse.Namespace, memory: int, console: Console) -> Encoded:
    """What the columns hold and how they are encoded, from a sample."""
    from selfpaced.tables import Dialect, LoadedTable, TableBatches, matching_files
    from selfpaced.tables.encoder import COMPONENTS

    from .training import Encodings, check_classes, noticed, tell_notes

    _refuse(args)
    batches = TableBatches(matching_files(args.data), **reading_options(args))
    width = CELL_BYTES * len(batches.columns)
    batches.rows = int(np.clip(memory // 16 // width, 1 << 10, 1 << 16))
    count = int(np.clip(memory // 4 // width, 1000, DESCRIBED))
    frame, n = batches.sample(count, args.seed)
    table = LoadedTable(frame, batches.paths[0], dialect=Dialect(decimal=batches.decimal))
    merges = merges_of(table, args, all_known=n == len(frame))
    table, _, _ = merged(table, args, merges)
    given = find_target(table, args, console)
    model_of(args, given.task)
    check_columns(table, args)
    check_classes(given)
    labelled = table.frame.iloc[given.rows]
    prefix = f"in a sample of {len(frame):,} rows: " if n > len(frame) else ""
    told = noticed(labelled, given, args, console, (), prefix)
    encodings = Encodings(table, given, args)
    if n > len(frame):
        console.say(f"{n:,} rows; medians, spreads and categories were learnt from {len(frame):,} of them")
    encoder = encodings.encoder("linear", COMPONENTS["linear"]).fit(labelled)  # never sparse
    encoder.dtype_ = "float64"
    tell_notes(encoder, table, given, console)
    return Encoded(batches, given, encoder, merges, told)


def _at_the_end(encoded: Encoded, console: Console) -> tuple[str, ...]:
    """What is known after every row was read."""
    from selfpaced.tables import summary_rows

    told = (*merges_in_words(encoded.merges, encoded.counts), *summary_rows(encoded.last))
    if encoded.unread:
        told += (
            f"{encoded.unread:,} cells of {encoded.given.name!r} are not numbers; their rows are left out of the fit",
        )
    for notice in told:
        console.notice(notice)
    return told


def _refuse(args: argparse.Namespace) -> None:
    """What needs the table in memory."""
    if args.model not in ("auto", "logistic", "ridge"):
        raise UsageError(f"--model {args.model} takes a table in memory: leave --memory out, or use logistic or ridge")
    for option in ("decisions", "groups"):
        if getattr(args, option) is not None:
            raise UsageError(f"--{option} are for tables in memory: leave --memory out")
