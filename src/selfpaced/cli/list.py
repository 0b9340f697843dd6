"""``selfpaced list``: the weighting rules and their formulas."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .errors import UsageError

if TYPE_CHECKING:
    from .console import Console

USAGE = "selfpaced list [RULE ...] [options]"
DESCRIPTION = """\
Show the weighting rules: latent loss, weight and dual regularizer as functions
of the loss l, the weight v and the pace lam.
"""
EPILOG = """\
examples:
  selfpaced list
  selfpaced list welsch --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``list``."""
    parser.add_argument("rules", nargs="*", metavar="RULE", help="names of rules (default: all)")


def run(args: argparse.Namespace, console: Console) -> int:
    """Print the rules."""
    from selfpaced.regularizers import ALIASES, REGISTRY, get

    names = []
    for name in args.rules or REGISTRY:
        try:
            names.append(get(name).name)
        except ValueError as error:
            raise UsageError(str(error)) from error
    facts = [_facts(name) for name in names]
    for rule in facts:
        also = [alias for alias, name in ALIASES.items() if name == rule["name"]]
        groups = ", needs groups" if rule["groups"] else ""
        console.say(f"{rule['name']}{f' (also {also[0]})' if also else ''}: lam opens {rule['opens']}{groups}")
        for key in ("latent", "weight", "dual", "reference"):
            console.say(f"  {key:<9}  {rule[key]}")
        console.say()
    console.say("l: loss, v: weight, lam: pace. To test a rule: selfpaced check-loss RULE")
    console.result({"rules": facts})
    return 0


def _facts(name: str) -> dict[str, Any]:
    from selfpaced.regularizers import REGISTRY, GroupRegularizer

    rule = REGISTRY[name]
    formula = rule.formula
    return {
        "name": name,
        "opens": "up" if rule.opens > 0 else "down",
        "groups": issubclass(rule, GroupRegularizer),
        "latent": formula.latent,
        "weight": formula.weight,
        "dual": formula.dual,
        "reference": formula.reference,
    }
