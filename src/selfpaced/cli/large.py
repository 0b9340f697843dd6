"""``selfpaced fit`` on a table that does not fit into memory: read piece by piece, rows kept in a scratch file.

What the columns hold, medians, spreads and categories are learnt from a random sample of the rows. Then every batch is
encoded once, and the model passes over the encoded rows as often as it needs to.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .console import plain_data
from .data import Target, check_separator, find_target, labels_of, merged, merges_in_words, merges_of
from .errors import UsageError
from .models import build, model_of

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.distributed import ScratchTable
    from selfpaced.tables import TableBatches

    from .console import Console

__all__ = ["run"]

STEPS = 5  # display: of `run`
DESCRIBED = 200_000  # cost: rows from which columns are described; medians of these are within a hundredth of a sigma
CELL = 64  # cost: bytes that a cell of these rows takes at most, as an object of pandas
COMPONENTS = 120  # cost: of all texts together, as for a table in memory
DEFAULT = "1GB"
FILES = ["model.skops", "suspects.parquet", "metrics.json"]


@dataclass
class Encoded:
    """Batches of a table as features and labels, while they are read.

    Attributes
    ----------
    batches : TableBatches
        The table.
    given : Target
        The target, of the sample.
    encoder : TableEncoder
        Fitted to the sample.
    merges : dict of str to str
        Labels that are merged, and into which.
    notices : tuple of str
        What checks of the sample report.
    dropped : list of ndarray
        Numbers of the rows that have no label, as far as it was read.
    counts : Counter
        Rows of each label that was merged, as far as it was read.
    last : pandas.DataFrame
        The last batch.
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
                yield self.encoder.transform(kept), labels_of(labels[present], self.given)

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Numbers in the files of rows that were kept."""
        gaps = np.concatenate(self.dropped) if self.dropped else np.empty(0, dtype=np.intp)
        return rows + np.searchsorted(gaps - np.arange(len(gaps)), rows, side="right")


def run(args: argparse.Namespace, console: Console) -> int:
    """Describe, encode, fit, and stream the suspects."""
    from selfpaced.distributed import parse_bytes, spool, write_suspects
    from selfpaced.persistence import save

    from .atomic_output import staged
    from .terminal import summary

    try:
        memory = parse_bytes(args.memory or DEFAULT)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    if args.scratch is not None and not Path(args.scratch).is_dir():
        raise UsageError(f"--scratch must be a folder, got {str(args.scratch)!r}")
    with staged(args.out, FILES, console, force=args.force) as stage:
        with console.progress(STEPS):
            with console.step(f"describing the columns of {args.data}"):
                encoded, _ = _described(args, memory, console)
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
                measured = _metrics(args, encoded, table, model, counts) | {"model": name}
            with console.step("writing"):
                from .training import facts_of, joined

                save(
                    joined(encoded.encoder.set_output(transform="pandas"), model),
                    stage / "model.skops",
                    facts=facts_of(encoded.given, name, encoded.merges),
                )
        measured["seconds"] = dict(console.seconds)
        text = json.dumps(plain_data(measured), indent=2, ensure_ascii=False, allow_nan=False)
        (stage / "metrics.json").write_text(text + "\n", encoding="utf-8")
    summary(model, measured, console)
    written = [str(args.out / name) for name in FILES]
    console.tell(f"\nWritten: {', '.join(written)}")
    console.tell(console.timing())
    console.result({**measured, "files": written})
    return 0


def _described(args: argparse.Namespace, memory: int, console: Console) -> tuple[Encoded, pd.DataFrame]:
    """What the columns hold and how they are encoded, from a sample."""
    from selfpaced.tables import Dialect, LoadedTable, TableBatches, matching_files

    from .training import Encodings, check_classes, check_columns, noticed, tell_notes

    _refuse(args)
    batches = TableBatches(
        matching_files(args.data),
        separator=check_separator(args),
        header=not args.no_header,
        encoding=args.encoding,
        skip_broken=args.skip_broken,
        decimal=args.decimal,
    )
    width = CELL * len(batches.columns)
    batches.rows = int(np.clip(memory // 16 // width, 1 << 10, 1 << 16))
    count = int(np.clip(memory // 4 // width, 1000, DESCRIBED))
    frame, n = batches.sample(count, args.seed)
    table = LoadedTable(frame, batches.paths[0], dialect=Dialect(decimal=batches.decimal))
    merges = merges_of(table, args, all_known=n == len(frame))
    table, _ = merged(table, merges, args)
    given = find_target(table, args, console)
    model_of(args, given.task)
    check_columns(table, args)
    check_classes(given)
    labelled = table.frame.iloc[given.rows]
    prefix = f"in a sample of {len(frame):,} rows: " if n > len(frame) else ""
    told = noticed(labelled, given, args, console, (), prefix)
    encodings = Encodings(table, given, args)
    _compare(encodings, given, args, console)
    if n > len(frame):
        console.say(f"{n:,} rows; medians, spreads and categories are those of {len(frame):,} of them")
    encoder = encodings.encoder("linear", COMPONENTS).fit(labelled)
    encoder.dtype_ = "float64"
    tell_notes(encoder, table, given, console)
    return Encoded(batches, given, encoder, merges, told), frame


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


def _compare(encodings: Any, given: Target, args: argparse.Namespace, console: Console) -> None:
    """Say so if a model that cannot be fitted here would predict the labels better."""
    from .choice import FLEXIBLE, choose

    if model_of(args, given.task) == "auto" and given.task == "classification":
        choice = choose(encodings, given.values, given.task, args.seed, least=encodings.frame.shape[1])
        if choice.model == FLEXIBLE:
            console.warn(
                f"boosting would be ahead by {choice.gain:.3f} +- {choice.error:.3f} nats a row, but takes a table in "
                "memory: what logistic regression cannot explain may be called wrong"
            )


def _metrics(
    args: argparse.Namespace, encoded: Encoded, table: ScratchTable, model: Any, counts: Any
) -> dict[str, Any]:
    from selfpaced import __version__
    from selfpaced.inspection import held_out_accuracy

    from .training import candidate, columns_of

    return {
        "selfpaced": __version__,
        "data": args.data,
        "rows": encoded.n,
        "rows_fitted": table.n,
        "target": encoded.given.name,
        "task": encoded.given.task,
        "merged_labels": encoded.merges,
        "notices": list(encoded.notices),
        "features": table.n_features,
        **columns_of(encoded.encoder),
        "lam": model.lam_,
        "noise_rate": model.noise_rate_,
        "noise_rate_interval": model.noise_rate_interval_,
        "noise_rate_if_any": getattr(model, "noise_rate_if_any_", None),
        "likely_errors": int(counts[2]),
        "worth_a_look": int(counts[1]),
        "passes": table.passes,
        "held_out_accuracy": held_out_accuracy(model) if encoded.given.task == "classification" else None,
        "termination": model.termination_,
        "path": [candidate(found) | {"chosen": found.chosen} for found in model.path_],
    }
