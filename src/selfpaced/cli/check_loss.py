"""``selfpaced check-loss``: test a loss function against the conditions of the paper."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from .console import Exit, UsageError

if TYPE_CHECKING:
    from .console import Console

USAGE = "selfpaced check-loss [LOSS] [options]"
DESCRIPTION = """\
Test a loss function of your own, or a built-in rule, against the conditions of
the paper.

LOSS is module:name or the name of a built-in rule. The module is imported from
the current folder; name is a function phi(loss, lam) or a Regularizer. Without
LOSS, every built-in rule is tested.
The exit code is 1 if a condition fails. Each failure names the pace and the loss
at which it occurs.
"""
EPILOG = """\
examples:
  selfpaced check-loss mine:phi     the function phi of mine.py
  selfpaced check-loss welsch
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``check-loss``."""
    parser.add_argument("loss", nargs="?", metavar="LOSS", help="module:name, or a built-in rule")
    parser.add_argument(
        "--form",
        choices=("loss", "quadratic"),
        default="loss",
        help="the argument of the function: the loss (default), or its square root",
    )


def run(args: argparse.Namespace, console: Console) -> int:
    """Check one loss, or all rules, one line each."""
    from selfpaced.regularizers import REGISTRY, check

    if args.loss is None:
        return _all(console)
    rule: Any = args.loss if args.loss in REGISTRY else _imported(args.loss)
    try:
        report = check(rule, form=args.form)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise UsageError(f"{args.loss} cannot be checked: {error}") from error
    console.say(str(report))
    console.result(_data(args.loss, report))
    return 0 if report else Exit.FOUND


def _all(console: Console) -> int:
    """Check every built-in rule; their known jumps and kinks do not change the exit code."""
    from selfpaced.regularizers import REGISTRY, check

    rows, data = [], []
    for name in REGISTRY:
        report = check(name)
        failed = ", ".join(condition.name for condition in report.failures)
        rows.append([name, f"fails {failed}" if failed else "all conditions hold"])
        data.append(_data(name, report))
    console.table(["rule", "result"], rows, left=(0, 1))
    console.result({"rules": data})
    return 0


def _data(name: str, report: Any) -> dict[str, Any]:
    keys = ("name", "statement", "holds", "lam", "loss", "detail")
    conditions = [{key: getattr(condition, key) for key in keys} for condition in report.conditions]
    return {"loss": name, "form": report.form, "holds": bool(report), "conditions": conditions}


def _imported(text: str) -> Any:
    """Import the object ``module:name``."""
    from selfpaced.regularizers import REGISTRY
    from selfpaced.tables import suggestion

    module_name, colon, attribute = text.partition(":")
    if not colon or not attribute:
        raise UsageError(
            f"LOSS must be module:name or a built-in rule, got {text!r}{suggestion(text, REGISTRY, 'the rules are')}"
        )
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(f"there is no module {error.name!r} here ({os.getcwd()})") from error
    except Exception as error:
        raise UsageError(f"importing {module_name!r} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(os.getcwd())
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise UsageError(f"the module {module_name!r} has no {attribute!r}{suggestion(attribute, names, 'it has')}")
    return getattr(module, attribute)
