"""``selfpaced fit``: from a table to a model, its suspects and a report."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from .console import plain_data
from .data import add_data_arguments, add_decisions, add_large_arguments, is_large
from .models import add_model_arguments
from .output import folder_name

if TYPE_CHECKING:
    import pandas as pd

    from .console import Console
    from .training import Training

USAGE = "selfpaced fit [DATA] --target COLUMN [--out OUT] [options]"
DESCRIPTION = """\
Fit a model to a table with some wrong labels or values, beside the plain model, and list the rows to check.

Writes into OUT:
  model.skops    the fitted pipeline, raw table to prediction (selfpaced predict)
  suspects.csv   row (from 0), line in the file, level (likely error, worth a look), given, expected, weight, why, the
                 row's cells, and an empty column for your decision: keep, drop, relabel, relabel to LABEL, set VALUE
  metrics.json   plain against self-paced, noise rate, columns, timings
  report.html    all of it to look at, one file, no network
"""
EPILOG = """\
examples:
  selfpaced fit                                        the built-in table
  selfpaced fit data.csv --target label --out run/
  selfpaced fit houses.tsv.gz --target price --model hist-gradient-boosting
  selfpaced fit 'data/*.parquet' --target label --memory 1GB --scratch /fast/disk
  selfpaced fit data.csv --decisions run/decisions.csv --out run2/     once more, with what you decided
"""
FILES = ["model.skops", "suspects.csv", "metrics.json", "report.html"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``fit``."""
    add_data_arguments(parser)
    add_model_arguments(parser)
    add_large_arguments(parser)
    group = parser.add_argument_group("what a person has decided")
    add_decisions(group)
    group = parser.add_argument_group("results")
    group.add_argument(
        "--out", type=folder_name, default=Path("run"), metavar="OUT", help="folder of the results (default: run)"
    )
    group.add_argument("--force", action="store_true", help="replace files that no run has written so")
    group.add_argument("--no-report", action="store_true", help="leave report.html out")


def run(args: argparse.Namespace, console: Console) -> int:
    """Fit, write everything at once, and say what came out."""
    if is_large(args):
        from .large import run as run_large

        return run_large(args, console)
    from selfpaced.persistence import save

    from .ledger import DECISIONS
    from .output import staged
    from .rounds import decisions_so_far, round_of, suspects_file
    from .telling import tell, tell_next
    from .training import STEPS, facts_of, metrics, train
    from .writing import write_frame

    place = round_of(args)
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
        measured = metrics(result, console) | place
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
        )
    except ImportError as error:
        console.warn(f"no report: {error}")
        return False
    return True


def _shown(result: Training) -> pd.DataFrame:
    """The suspects as the page has them: first how probably they are wrong, and by what their rows are known again."""
    first = ["row", "line", "level", "given", "expected", "noise_probability", "against", "why", "weight"]
    marks = list(result.marks[: len(result.suspects)])
    return result.suspects.loc[:, first].assign(target=result.target.name, fingerprint=marks)
