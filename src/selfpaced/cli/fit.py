"""``selfpaced fit``: from a table to a model, its suspects and a report."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from .atomic_output import folder_name
from .console import plain_data
from .data import add_data_arguments, add_decisions, add_large_arguments, is_large
from .models import add_model_arguments

if TYPE_CHECKING:
    import pandas as pd

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
  selfpaced fit houses.tsv.gz --target price --model hist-gradient-boosting
  selfpaced fit 'data/*.parquet' --target label --memory 1GB --scratch /fast/disk
  selfpaced fit data.csv --decisions run/decisions.csv --out run2/
"""
FILES = ["model.skops", "suspects.csv", "metrics.json", "report.html"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``fit``."""
    add_data_arguments(parser)
    add_model_arguments(parser)
    add_large_arguments(parser)
    group = parser.add_argument_group("decisions")
    add_decisions(group)
    group = parser.add_argument_group("results")
    group.add_argument(
        "--out", type=folder_name, default=Path("run"), metavar="OUT", help="output folder (default: run)"
    )
    group.add_argument("--force", action="store_true", help="overwrite files that selfpaced did not create")
    group.add_argument("--no-report", action="store_true", help="do not write report.html")


def run(args: argparse.Namespace, console: Console) -> int:
    """Fit, write everything at once, and say what came out."""
    if is_large(args):
        from .large import run as run_large

        return run_large(args, console)
    from selfpaced.persistence import save

    from .atomic_output import DECISIONS, staged
    from .rounds import decisions_so_far, round_of, suspects_file
    from .terminal import tell, tell_next
    from .training import STEPS, facts_of, metrics, train
    from .writing import write_frame

    carried = args.decisions is not None and not _is_there(args.decisions, args.out / DECISIONS)
    with staged(args.out, [*FILES, DECISIONS] if carried else FILES, console, force=args.force) as stage:
        with console.progress(STEPS + 1):
            result = train(args, console)
            with console.step("writing"):
                facts = facts_of(result.target, result.model_name, result.merges)
                save(result.pipeline, stage / "model.skops", facts=facts)
                write_frame(suspects_file(result), stage / "suspects.csv")
                written = [name for name in FILES if name != "report.html"]
                so_far = decisions_so_far(args.decisions) if carried else ()
                if len(so_far):
                    write_frame(so_far, stage / DECISIONS)
                    written.append(DECISIONS)
                if not args.no_report and write_report(result, stage / "report.html", console):
                    written.append("report.html")
        measured = metrics(result, console) | round_of(args, result)
        text = json.dumps(plain_data(measured), indent=2, ensure_ascii=False, allow_nan=False)
        (stage / "metrics.json").write_text(text + "\n", encoding="utf-8")
    tell(result, measured, console)
    tell_next(result, measured, [str(args.out / name) for name in written], str(args.out), console)
    console.result({**measured, "files": [str(args.out / name) for name in written]})
    return 0


def _is_there(path: Path, place: Path) -> bool:
    return path.exists() and place.exists() and path.samefile(place)


def write_report(result: Training, path: Path, console: Console) -> bool:
    """The page, unless the packages for it are not installed."""
    try:
        from selfpaced.report import report
    except ImportError as error:
        console.warn(f"no report: {error}")
        return False
    name = result.table.path.name if result.table.path is not None else "the built-in table"
    try:
        report(
            result.model,
            result.features,
            result.target.fitted,
            path,
            suspects=_shown(result),
            cells=result.table.frame,
            title=f"{result.target.name} in {name}",
            note=None if result.choice is None else result.choice.sentence(result.target.name),
            notices=result.notices,
            not_used=result.not_used,
        )
    except ImportError as error:
        console.warn(f"no report: {error}")
        return False
    return True


def _shown(result: Training) -> pd.DataFrame:
    """The rows of both lists as the page shows them."""
    first = ["row", "line", "given", "expected", "noise_probability", "probability_if_noisy", "against", "why", "level"]
    found = result.suspects.loc[:, [name for name in first if name in result.suspects]]
    return found.assign(target=result.target.name, fingerprint=list(result.marks[: len(found)]))
