"""``selfpaced review``: decide about the listed rows in the browser."""

from __future__ import annotations

import argparse
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .console import Console

USAGE = "selfpaced review [RUN] [--no-browser] [--port N]"
DESCRIPTION = """\
Open the page of a run in the browser and decide about its rows. Every decision
is saved in RUN/decisions.csv at once.

The page is served to this machine only (127.0.0.1), and only with the token in
the address. Press Ctrl-C to stop.
"""
EPILOG = """\
examples:
  selfpaced fit data.csv --target label --out run
  selfpaced review run
  selfpaced clean data.csv --decisions run/decisions.csv
  selfpaced fit data.csv --decisions run/decisions.csv --out run2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``review``."""
    parser.add_argument(
        "run_folder",
        nargs="?",
        type=Path,
        default=Path("run"),
        metavar="RUN",
        help="output folder of fit (default: run)",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address and do not open it")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: any free port")


def run(args: argparse.Namespace, console: Console) -> int:
    """Serve until Ctrl-C."""
    from .serving import serve

    server, address = serve(args.run_folder, args.port)
    console.output(f"{address}\n")
    console.say("Every decision is saved at once. Press Ctrl-C to stop.")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        if not args.no_browser:
            webbrowser.open(address)
        while True:
            thread.join(0.5)
    except KeyboardInterrupt:
        console.signal = None  # the normal way to stop
    finally:
        server.shutdown()
        server.server_close()
    _tell(args.run_folder, server.RequestHandlerClass.file, console)  # type: ignore[attr-defined]
    return 0


def _next(name: str) -> str:
    """A name for the next run.

    >>> _next("run"), _next("run2")
    ('run2', 'run3')
    """
    stem = name.rstrip("0123456789")
    return f"{stem}{int(name[len(stem) :] or 1) + 1}"


def _tell(folder: Path, file: object, console: Console) -> None:
    from .serving import DecisionFile

    assert isinstance(file, DecisionFile)
    decided, total = len(file.decisions()), len(file.suspects)
    console.say(f"\n{decided:,} of {total:,} rows decided, {total - decided:,} undecided.")
    if decided:
        console.say(f"Next: selfpaced clean DATA --decisions {file.path}")
        console.say(f"  or: selfpaced fit DATA --decisions {file.path} --out {_next(folder.name)}")
    console.result({"decided": decided, "suspects": total, "file": str(file.path) if decided else None})
