"""``selfpaced fit`` on a table that does not fit into memory: read piece by piece, rows kept in a scratch file.

What the columns hold, medians, spreads and categories are learnt from a random sample of the rows. Then every batch is
encoded once, and the model passes over the encoded rows as often as it needs to.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .console import UsageError
from .data import Target, check_columns, find_target, merged, merges_in_words, merges_of, reading_options
from .models import build, model_of

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import TableBatches

    from .console import Console

__all__ = ["run"]

DESCRIBED = 200_000  # cost: rows from which columns are described; medians of these are within a hundredth of a sigma
CELL_BYTES = 64  # cost: bytes that a cell of these rows takes at most, as an object of pandas
DEFAULT = "1GB"
FILES = ["model.skops", "suspects.parquet", "metrics.json"]


@dataclass
class Encoded:
    """Batches of a table as features and labels, while they are read.

    Target and encoder are those of a sample. As far as the table was read, ``dropped`` are the numbers of the rows
    without a label, ``counts`` the rows of each label that was merged, and ``last`` is the last batch.
    """

    batches: TableBatches
    given: Target
    encoder: Any
    merges: dict[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    n: int = 0
    dropped: list[np.ndarray] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    last: Any = None

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        from selfpaced.tables import merge_labels

        for frame in self.batches:
            frame.index += self.n  # so that warnings name rows of the whole table
            self.last, (labels, counts) = frame, merge_labels(frame[self.given.name], self.merges)
            self.counts.update(counts)
            present = labels.notna().to_numpy()
            self.dropped.append(self.n + np.flatnonzero(~present))
            self.n += len(frame)
            if present.any():
                kept = frame if present.all() else frame[present]
                yield self.encoder.transform(kept), self._labels(labels[present])

    def _labels(self, cells: pd.Series) -> np.ndarray:
        found = self.given.more(cells)
        bad = np.isnan(found) if found.dtype.kind == "f" else np.zeros(0, dtype=bool)
        if bad.any():
            what = f"the target {self.given.name!r} must hold numbers for a regression"
            raise ValueError(f"{what}, got {str(cells[bad].iloc[0])!r} in row {cells[bad].index[0]}")
        return found

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Numbers in the files of rows that were kept."""
        from selfpaced.distributed import numbers_with

        return numbers_with(self.dropped, rows)


def run(args: argparse.Namespace, console: Console) -> int:
    """Describe, encode, fit, and stream the suspects."""
    from selfpaced.distributed import parse_bytes, spool, write_suspects
    from selfpaced.persistence import save

    from .output import staged, write_json
    from .terminal import summary
    from .training import facts_of, joined, model_facts

    try:
        memory = parse_bytes(args.memory or DEFAULT)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    if args.scratch is not None and not Path(args.scratch).is_dir():
        raise UsageError(f"--scratch must be a folder, got {str(args.scratch)!r}")
    with staged(args.out, FILES, console, force=args.force) as stage:
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
                measured = {
                    **facts_of(encoded.given, name, encoded.merges),
                    **model_facts(model, encoded.encoder, encoded.given),
                    "data": args.data,
                    "rows": encoded.n,
                    "rows_fitted": table.n,
                    "features": table.n_features,
                    "notices": list(encoded.notices),
                    "likely_errors": int(counts[2]),
                    "worth_a_look": int(counts[1]),
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
    summary(model, measured, console)
    written = [str(args.out / name) for name in FILES]
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
        console.say(f"{n:,} rows; medians, spreads and categories are those of {len(frame):,} of them")
    encoder = encodings.encoder("linear", COMPONENTS["linear"]).fit(labelled)  # never sparse
    encoder.dtype_ = "float64"
    tell_notes(encoder, table, given, console)
    return Encoded(batches, given, encoder, merges, told)


def _at_the_end(encoded: Encoded, console: Console) -> tuple[str, ...]:
    """What is known after every row was read."""
    from selfpaced.tables import summary_rows

    told = (*merges_in_words(encoded.merges, encoded.counts), *summary_rows(encoded.last))
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
