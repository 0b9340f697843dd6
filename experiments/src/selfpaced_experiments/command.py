"""``selfpaced reproduce``: every table and figure of the paper, ours beside theirs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from selfpaced_experiments import SECTIONS

__all__ = ["add_parser", "main", "run"]

_HELP = "repeat the paper's tables and figures, with today's alternatives beside them"
_EPILOG = """\
  table1    the rules, and a numerical check of the theory
  table2    matrix factorization
  table3    clustering of several views
  table5    classification (table 4 of the paper only describes the data)
  figure1   latent loss and weight
  figure2   half-quadratic optimisation and the path
  figure3   errors along the path
  claims    all of these, and every claim of the paper assessed

OUT receives results.json, results.md, claims.md, and the figures as PNG and
SVG. Each fit is cached, so an interrupted run continues where it stopped. Data
files are looked for in DIR, in the directory named by SELFPACED_DATA and in
the cache, then downloaded. Without a network their rows are left out, and the
results say so.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Register ``reproduce`` below another command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "reproduce",
        help=_HELP,
        description=_HELP.capitalize() + ".",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _arguments(parser)
    parser.set_defaults(run=run)
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text}")
    return value


def _seeds(text: str) -> dict[str, int]:
    """``3`` or ``table3=10,table5=3``."""
    if "=" not in text:
        return dict.fromkeys(SECTIONS, _positive(text))
    pairs = dict(part.partition("=")[::2] for part in text.split(","))
    unknown = sorted(set(pairs) - set(SECTIONS))
    if unknown:
        raise argparse.ArgumentTypeError(f"the sections are {', '.join(SECTIONS)}, got {', '.join(unknown)}")
    return {section: _positive(count) for section, count in pairs.items()}


def _arguments(parser: argparse.ArgumentParser) -> None:
    names = (*SECTIONS, "claims")
    parser.add_argument(
        "section", nargs="?", choices=names, default="claims", metavar="PART", help="see below (default: claims)"
    )
    parser.add_argument("--quick", action="store_true", help="few seeds and folds: about two minutes for all of them")
    seeds = "seeds of every section, or SECTION=N,... (default: table2 50, table3 20, table5 5, figures 10)"
    parser.add_argument("--seeds", type=_seeds, metavar="N", help=seeds)
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="directory with the data files")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="default: results")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N", help="worker processes")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="directory of the cache")
    parser.add_argument("--fresh", action="store_true", help="ignore the cache")
    parser.add_argument("--cached", action="store_true", help="compute nothing: show what is cached so far")
    parser.add_argument("--keep", action="store_true", help="keep the other sections in OUT as they are")
    parser.add_argument("--quiet", action="store_true", help="no progress and no tables, files only")
    parser.add_argument("--plain", action="store_true", help="tables as plain text")


def run(args: argparse.Namespace) -> int:
    """Run the command from parsed arguments and return its exit code."""
    from selfpaced_experiments.cells import Cache
    from selfpaced_experiments.progress import StageProgress
    from selfpaced_experiments.reproduce import ReproduceSettings, reproduce, write
    from selfpaced_experiments.terminal import show

    if args.data_dir is not None and not args.data_dir.is_dir():
        sys.stderr.write(f"selfpaced reproduce: --data-dir must be a directory, got {str(args.data_dir)!r}\n")
        return 2
    cache = Cache(fresh=args.fresh) if args.cache is None else Cache(args.cache, fresh=args.fresh)
    settings = ReproduceSettings(
        sections=SECTIONS if args.section == "claims" else (args.section,),
        quick=args.quick,
        seeds=args.seeds or {},
        data_dir=args.data_dir,
        out=args.out,
        jobs=args.jobs,
        cache=cache,
        command=_command(args),
        compute=not args.cached,
        keep=args.keep,
    )
    if args.keep and not (args.out / "results.json").is_file():
        sys.stderr.write(
            f"selfpaced reproduce: --keep needs {str(args.out / 'results.json')!r}, which does not exist\n"
        )
        return 2
    try:
        results = reproduce(settings, StageProgress(quiet=args.quiet))
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted. Finished fits are cached; run the same command to continue.\n")
        return 130
    written = write(results, args.out)
    if not args.quiet:
        show(results, plain=args.plain)
        sys.stdout.write("\nWritten: " + ", ".join(str(path) for path in written) + "\n")
    return 1 if results.skipped and not results.tables and args.section != "claims" else 0


def _command(args: argparse.Namespace) -> str:
    """The command for the record, without the directories of the machine it ran on."""
    words = ["selfpaced", "reproduce", args.section]
    words += ["--quick"] * args.quick + ["--cached"] * args.cached + ["--keep"] * args.keep
    if args.seeds:
        counts = set(args.seeds.values())
        same = len(counts) == 1 and len(args.seeds) == len(SECTIONS)
        told = str(counts.pop()) if same else ",".join(f"{name}={count}" for name, count in args.seeds.items())
        words += ["--seeds", told]
    return " ".join([*words, "--jobs", str(args.jobs)])


def main(argv: Sequence[str] | None = None) -> int:
    """The same command on its own: ``python -m selfpaced_experiments``."""
    parser = argparse.ArgumentParser(
        prog="python -m selfpaced_experiments",
        description=_HELP.capitalize() + ".",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _arguments(parser)
    return run(parser.parse_args(argv))
