"""The arguments of all commands, as data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

Options = dict[Any, dict[str, Any]]  # name, or names -> what argparse takes


def share(text: str) -> float:
    """Parse a number strictly between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, got {text!r}")
    return value


def folder(text: str) -> Path:
    """Parse the argument of ``--out``; an unset shell variable leaves it empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must name a folder, got an empty text")
    return Path(text)


def _flag(text: str) -> dict[str, Any]:
    return {"action": "store_true", "help": text}


def _text(metavar: str, text: str, **rest: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": text, **rest}


def _many(metavar: str, text: str) -> dict[str, Any]:
    return _text(metavar, f"{text}; may be repeated", action="append", default=[])


_BUILT_IN = "a built-in table of an animal shelter with 20 %% wrong labels"
_DECISIONS = "decisions.csv of selfpaced review or of the page, or a suspects.csv with the decision column filled in"
_MODELS = ("auto", "logistic", "ridge", "boosting")
_AUTO = """auto (default): logistic (or boosting, if it is far ahead) for classes; for values ridge or boosting, on the
plain or a log scale, whichever predicts held-out rows better"""
_TASK = "auto (default): text and few whole numbers are classes, other numbers are values"

_FILES = "CSV or TSV file, also gzipped, or Parquet"
DATA: Options = {"data": _text("DATA", f"{_FILES} (default: {_BUILT_IN})", nargs="?")}
READING = {
    "--decimal": {
        "choices": (".", ","),
        "default": "",
        "metavar": "SIGN",
        "help": "decimal sign, point or comma, of ambiguous numbers such as 1,234 (default: detected from other cells)",
    },
    "--separator": _text("SIGN", "field separator (default: detected; 'tab' for tabs)"),
    "--no-header": _flag("the first line is data; columns are column_1, ..."),
    "--encoding": _text("NAME", "encoding of the text (default: UTF-8, else Windows-1252)"),
    "--skip-broken": _flag("skip rows with too many or too few fields"),
}
TARGET = {
    "--target": _text("COLUMN", "column to predict, whose values may be wrong"),
    "--task": {"choices": ("auto", "classification", "regression"), "default": "auto", "help": _TASK},
    "--exclude": _many("COLUMN", "column not to use"),
    "--categorical": _many("COLUMN", "column of numbers that are codes, not quantities"),
    "--merge-labels": _many("FROM=TO", "read the label FROM as TO, such as 'iran=Iran'; 'FROM=' as a missing label"),
}
MODEL = {
    "--model": {"choices": _MODELS, "default": "auto", "help": _AUTO},
    "--threshold": _text(
        "P", "rows more probably wrong than this are likely errors (default 0.5)", type=share, default=0.5
    ),
    "--groups": _text("COLUMN", "rows that belong together, such as visits of a patient; not used as a feature"),
    "--seed": _text("N", "random seed (default 0)", type=int, default=0),
}
LARGE = {
    "--memory": _text("SIZE", "read in pieces with about this much memory, such as 1GB"),
    "--scratch": _text("DIR", "folder for temporary data (default: the system's)"),
}
DECISIONS = {"--decisions": _text("FILE", _DECISIONS, type=Path)}
OUTPUT: Options = {
    "--json": _flag("print the result as one JSON object"),
    ("--quiet", "-q"): _flag("print errors only"),
    "--debug": _flag("show the traceback of internal errors"),
}


def results(name: str) -> Options:
    """Return the arguments of commands that write a folder of results."""
    return {
        "--out": _text("OUT", f"output folder (default: {name})", type=folder, default=Path(name)),
        "--force": _flag("overwrite files that selfpaced did not create"),
        "--no-report": _flag("do not write report.html"),
    }


# Command -> title of a group -> its arguments; the first group has no title.
ARGUMENTS: dict[str, dict[str, Options]] = {
    "fit": {
        "": DATA,
        "table": TARGET | READING,
        "model": MODEL,
        "tables larger than memory (also if DATA is a pattern of several files)": LARGE,
        "decisions": DECISIONS,
        "results": results("run"),
    },
    "audit": {
        "": {"data": _text("DATA", _FILES)},
        "table": READING,
        "labels and probabilities": {
            "--label": _text("COLUMN", "column of the given labels", required=True),
            "--probabilities": _text(
                "COLUMNS",
                "columns with the probability of each label, separated by commas, or a file .npy (default: the "
                "columns named after the labels)",
            ),
            "--classes": _text("LABELS", "label of each column of probabilities, separated by commas"),
            "--groups": _text("COLUMN", "rows that belong together, such as visits of a patient"),
            "--features": _text(
                "FILE", "embeddings (.npy), to check for misfit and near-duplicates, and to give reasons", type=Path
            ),
        },
        "results": results("audit"),
    },
    "inspect": {"": DATA, "table": TARGET | READING},
    "review": {
        "": {
            "run_folder": _text(
                "RUN", "output folder of fit or audit (default: run)", nargs="?", type=Path, default=Path("run")
            ),
            "--no-browser": _flag("print the address and do not open it"),
            "--port": _text("N", "default: any free port", type=int, default=0),
        },
    },
    "clean": {
        "": DATA,
        "table": TARGET | READING,
        "model": MODEL,
        "results": {
            "--how": {"choices": ("drop", "flag", "relabel"), "help": "what to do with likely errors"},
            **DECISIONS,
            "--out": _text("FILE", "default: the name of DATA with .clean in it, here", type=Path),
            "--force": _flag("overwrite FILE if it exists"),
        },
    },
    "predict": {
        "": {
            "model": _text(
                "MODEL",
                "model file (default: run/model.skops)",
                nargs="?",
                type=Path,
                default=Path("run/model.skops"),
            ),
            **DATA,
        },
        "table": READING,
        "results": {
            "--out": _text("FILE", "CSV, TSV or Parquet, also .gz (default: standard output, as CSV)"),
            "--force": _flag("overwrite FILE if it exists"),
            "--trust": _many("TYPE", "also allow this type in the model file"),
        },
    },
}


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Give a command its arguments."""
    for title, arguments in (ARGUMENTS[command] | {"output": OUTPUT}).items():
        group = parser.add_argument_group(title) if title else parser
        for name, settings in arguments.items():
            group.add_argument(*([name] if isinstance(name, str) else name), **settings)
