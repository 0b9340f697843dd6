"""``selfpaced fit``: from a table to a model, its suspects and a report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .data import built_in

if TYPE_CHECKING:
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


def run(args: argparse.Namespace, console: Console) -> int:
    """Fit, write everything at once, and say what came out."""
    from . import large

    if large.is_large(args):
        return large.run(args, console)
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
