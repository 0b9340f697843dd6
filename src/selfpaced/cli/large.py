"""``selfpaced fit`` on tables larger than memory.

What the columns hold, medians, spreads and categories are learnt from a random sample of the rows. Then every batch is
encoded once into a scratch file, and the model passes over the encoded rows as often as it needs to.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .console import UsageError
from .data import Target, check_columns, find_target, merged, merges_in_words, merges_of, reading_options
from .models import build, model_of
from .training import Encodings, check_classes, facts_of, fit_facts, noticed, tell_notes

if TYPE_CHECKING:
    from selfpaced.distributed import ScratchTable
    from selfpaced.tables import TableBatches

    from .console import Console

FILES = ["model.skops", "suspects.parquet", "metrics.json"]
DESCRIBED = 200_000  # cost: rows from which columns are described; medians of these are within a hundredth of a sigma
CELL_BYTES = 64  # cost: bytes that a cell of these rows takes at most, as an object of pandas
DEFAULT = "1GB"


def is_large(args: argparse.Namespace) -> bool:
    """Whether the table is to be read in pieces."""
    pattern = args.data is not None and any(sign in args.data for sign in "*?[") and not Path(args.data).exists()
    if args.scratch is not None and args.memory is None and not pattern:
        raise UsageError("--scratch is for tables larger than memory: say how much there is, such as --memory 1GB")
    if args.memory is not None and args.data is None:
        raise UsageError("--memory needs DATA, the built-in table is small")
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
    merges: dict[str, str]
    notices: tuple[str, ...]
    rows: int
    n: int = 0
    unread: int = 0
    dropped: list[np.ndarray] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    last: Any = None

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        from selfpaced.tables import merge_labels
        from selfpaced.tables.cells import LARGEST_NUMBER

        for frame in self.batches:
            frame.index += self.n  # so that warnings name rows of the whole table
            self.last, (labels, counts) = frame, merge_labels(frame[self.given.name], self.merges)
            self.counts.update(counts)
            present = labels.notna().to_numpy(copy=True)
            found = self.given.more(labels[present])
            if found.dtype.kind == "f":
                read = np.abs(found) <= LARGEST_NUMBER
                self.unread += int(np.sum(~read))
                present[present], found = read, found[read]
            self.dropped.append(self.n + np.flatnonzero(~present))
            self.n += len(frame)
            if present.any():
                yield self.encoder.transform(frame if present.all() else frame[present]), found

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers in the files of rows that were kept."""
        from selfpaced.distributed.scratch import numbers_with

        return numbers_with(self.dropped, rows)


def run(args: argparse.Namespace, console: Console) -> int:
    """Describe, encode, fit, and list the suspects, all without the whole table in memory."""
    import pyarrow as pa

    from selfpaced.distributed import write_suspects
    from selfpaced.distributed.scratch import parse_bytes
    from selfpaced.inspection import Findings
    from selfpaced.persistence import save

    from .output import staged, write_json
    from .terminal import summary

    pa.enable_signal_handlers(False)  # as in `open_table`
    try:
        memory = parse_bytes(args.memory or DEFAULT)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    with staged(args.out, FILES, console, force=args.force) as stage:
        with console.progress():
            with console.step(f"describing the columns of {args.data}"):
                encoded = _described(args, memory, console)
            name = "logistic" if encoded.given.task == "classification" else "ridge"
            model = build(name, encoded.given.task, args, [])
            with console.step("encoding the rows"):
                table = _spooled(encoded, memory, args.scratch)
            with table:
                notices = (*encoded.notices, *_at_the_end(encoded, console))
                with console.step(f"fitting plain and self-paced {name}"):
                    model.fit(table)
                with console.step("listing the rows to check"):
                    path = stage / "suspects.parquet"
                    counts = write_suspects(model, table, path, threshold=args.threshold, numbers=encoded.numbers)
            with console.step("writing"):
                from sklearn.pipeline import Pipeline

                facts = facts_of(encoded.given, name, encoded.merges)
                pipeline = Pipeline([("table", encoded.encoder.set_output(transform="pandas")), ("model", model)])
                save(pipeline, stage / "model.skops", facts=facts)
        found = Findings.of(model, (int(counts[2]), int(counts[1])), rows=table.n)
        measured = {
            "data": args.data,
            **facts,
            "rows": encoded.n,
            **fit_facts(found, model, encoded.encoder),
            "features": table.n_features,
            "passes": table.passes,
            "notices": list(notices),
            "seconds": dict(console.seconds),
        }
        write_json(measured, stage / "metrics.json")
    summary(found, model.path_, measured, console)
    written = [str(args.out / name) for name in FILES]
    console.tell(f"\nWritten: {', '.join(written)}")
    console.tell(console.timing())
    console.say(f"Next: selfpaced predict {written[0]} NEW.csv")
    console.result({**measured, "files": written})
    return 0


def _described(args: argparse.Namespace, memory: int, console: Console) -> Encoded:
    """What the columns hold and how they are encoded, from a sample."""
    from selfpaced.tables import Dialect, LoadedTable, TableBatches, matching_files
    from selfpaced.tables.encoder import COMPONENTS

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
    told = noticed(labelled, given, args, console, prefix=prefix)
    if n > len(frame):
        console.say(f"{n:,} rows; medians, spreads and categories are those of {len(frame):,} of them")
    encoder = Encodings(table, given, args).encoder("linear")
    encoder.set_params(n_components=COMPONENTS["linear"], dtype="float64").fit(labelled)  # never sparse
    tell_notes(encoder, table, given, console)
    return Encoded(batches, given, encoder, merges, told, n)


def _refuse(args: argparse.Namespace) -> None:
    """Refuse what needs the table in memory."""
    if args.model not in ("auto", "logistic", "ridge"):
        raise UsageError(f"--model {args.model} takes a table in memory: leave --memory out, or use logistic or ridge")
    for option in ("decisions", "groups"):
        if getattr(args, option) is not None:
            raise UsageError(f"--{option} is for tables in memory: leave --memory out")
    if args.scratch is not None and not Path(args.scratch).is_dir():
        raise UsageError(f"--scratch must be a folder, got {args.scratch!r}")


def _spooled(encoded: Encoded, memory: int, scratch: str | None) -> ScratchTable:
    """Encode all rows into a scratch file, if the disk has room for them."""
    from selfpaced.distributed import spool

    folder = tempfile.gettempdir() if scratch is None else scratch
    names = [str(name) for name in encoded.encoder.get_feature_names_out()]
    needed, free = 8 * encoded.rows * (len(names) + 1), shutil.disk_usage(folder).free
    if needed > free:
        what = f"{folder!r} has {free / 1e9:.2f} GB free, but the encoded rows need {needed / 1e9:.2f} GB"
        raise UsageError(f"{what}; name another folder with --scratch")
    table = spool(iter(encoded), labels=encoded.given.task == "classification", memory=memory, scratch=folder)
    table.names = names
    return table


def _at_the_end(encoded: Encoded, console: Console) -> list[str]:
    """What is known after every row was read."""
    from selfpaced.tables import summary_rows

    told = [*merges_in_words(encoded.merges, encoded.counts), *summary_rows(encoded.last)]
    if encoded.unread:
        what = f"{encoded.unread:,} cells of {encoded.given.name!r} are no numbers"
        told.append(f"{what}; their rows are left out of the fit")
    for notice in told:
        console.notice(notice)
    return told
