"""The parser of the command line, and how a command starts and ends."""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from .arguments import add_arguments
from .console import CODES, Console, Exit, classify

# Shown in this order; each is a module of its own, imported only when it is used.
COMMANDS = {
    "fit": "fit a model to a table with errors, and list the rows to check",
    "audit": "find wrong labels from any model's held-out probabilities",
    "inspect": "check a table without a model: spelling, leakage, duplicates",
    "review": "decide about the listed rows in the browser",
    "clean": "write a copy of the table without its likely errors",
    "predict": "predict with a model that selfpaced fit has saved",
    "reproduce": "repeat the tables and figures of the paper",
}
# Commands of other distributions: an entry point of the group, a function that adds the command's parser.
GROUP = "selfpaced.commands"
ELSEWHERE = {"reproduce": "selfpaced-experiments"}
DESCRIPTION = """\
Learn from a table in which some labels or values are wrong.

selfpaced fits a model that the errors do not spoil, estimates how many there
are, and lists the rows to check: likely errors, and rows worth a look.
"""
EPILOG = "exit codes:\n" + "\n".join(f"  {code:>3}  {text}" for code, text in CODES.items())


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in words if not word.startswith("-")), None)
    try:
        parser = _parser(command)
    except ImportError as error:
        return Console().fail(str(error), Exit.PACKAGE)
    try:
        args = parser.parse_args(words)
    except SystemExit as end:
        return int(end.code or 0)
    if args.command is None:
        parser.print_help()
        return Exit.OK
    if args.command in ELSEWHERE:  # it has worker processes, and handles Ctrl-C itself
        return int(args.run(args))
    console = Console(quiet=bool(getattr(args, "quiet", False)), as_json=bool(getattr(args, "json", False)))
    with console.signals(last=argv is None):
        return _run(args, console)


def _run(args: argparse.Namespace, console: Console) -> int:
    """Run one command and turn its errors into exit codes."""
    try:
        with console.listening():
            return int(args.run(args, console))
    except KeyboardInterrupt:
        return _interrupted(console)
    except BrokenPipeError:
        _close_output()  # the reader (head, less) has seen enough
        return Exit.OK
    except Exception as error:
        if console.signal is not None:  # some compiled code turns an interrupt into an error of its own
            return _interrupted(console)
        if getattr(args, "debug", False):
            raise
        if isinstance(error, OSError):
            _close_output()
        code, message = classify(error)
        return console.fail(message, code)


def _interrupted(console: Console) -> int:
    console.end()
    code = Exit.TERMINATED if console.signal == signal.SIGTERM else Exit.INTERRUPTED
    return console.fail("interrupted; no incomplete file was left", code)


def _close_output() -> None:
    """Keep Python from reporting a closed standard output once more when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Style(argparse.RawDescriptionHelpFormatter):
    """Help of at most 100 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=min(shutil.get_terminal_size((100, 24)).columns, 100))
        self._action_max_length = 14  # argparse forgets the indent of the commands


class _Parser(argparse.ArgumentParser):
    """Prints the error first, and points to the help instead of printing the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, f"{self.prog}: error: {message}\nTry: {self.prog} --help\n")


def _parser(command: str | None) -> argparse.ArgumentParser:
    """Build the parser; only the command in use gets its arguments, which keeps help and errors fast."""
    from selfpaced import __version__

    parser = _Parser(prog="selfpaced", description=DESCRIPTION, epilog=EPILOG, formatter_class=_Style)
    parser.add_argument("--version", action="version", version=f"selfpaced {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=_Parser)
    for name, text in COMMANDS.items():
        if name != command:
            commands.add_parser(name, help=text)
        elif name in ELSEWHERE:
            _add_from_elsewhere(commands, name)
        else:
            _add(commands, name, text)
    return parser


def _add(commands: Any, name: str, text: str) -> None:
    module = importlib.import_module(f"{__package__}.{name}")
    parser = commands.add_parser(
        name,
        help=text,
        description=module.DESCRIPTION,
        epilog=module.EPILOG,
        formatter_class=_Style,
        usage=module.USAGE,
    )
    add_arguments(parser, name)
    parser.set_defaults(run=module.run)


def _add_from_elsewhere(commands: Any, name: str) -> None:
    """Add a command that another distribution provides."""
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        package = ELSEWHERE[name]
        raise ImportError(f"{name} needs the package {package}: pip install {package} (in a checkout: ./experiments)")
    found.load()(commands)
