"""``selfpaced review``: decide about suspects in the browser, kept in the run's folder."""

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
Open the page of a run, and keep what you decide about its suspects in RUN/decisions.csv as you decide it.

The page is served to this machine alone (127.0.0.1), to whoever has the address with its token. Ctrl-C ends it.
"""
EPILOG = """\
examples:
  selfpaced fit data.csv --target label --out run
  selfpaced review run
  selfpaced clean data.csv --decisions run/decisions.csv
  selfpaced fit data.csv --decisions run/decisions.csv --out run2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``review``."""
    parser.add_argument("run_folder", nargs="?", type=Path, default=Path("run"), metavar="RUN", help="default: run")
    parser.add_argument("--no-browser", action="store_true", help="only say the address")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: any that is free")


def run(args: argparse.Namespace, console: Console) -> int:
    """Serve until Ctrl-C."""
    from .serving import serve

    server, address = serve(args.run_folder, args.port)
    console.output(f"{address}\n")
    console.say("Decisions are saved as you make them; Ctrl-C ends the review.")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        if not args.no_browser:
            webbrowser.open(address)
        while True:
            thread.join(0.5)
    except KeyboardInterrupt:
        console.signal = None  # asked for, and nothing was interrupted
    finally:
        server.shutdown()
        server.server_close()
    _tell(args.run_folder, server.RequestHandlerClass.file, console)  # type: ignore[attr-defined]
    return 0


def _tell(folder: Path, file: object, console: Console) -> None:
    from .serving import DecisionFile

    assert isinstance(file, DecisionFile)
    decided, total = len(file.decisions()), len(file.suspects)
    console.say(f"\n{decided:,} of {total:,} suspects decided.")
    if decided:
        console.say(f"Next: selfpaced clean DATA --decisions {file.path}")
        console.say(f"  or: selfpaced fit DATA --decisions {file.path} --out {folder.name}2")
    console.result({"decided": decided, "suspects": total, "file": str(file.path) if decided else None})
