"""A benchmark in parts, each of which prints a section and can be run and saved alone."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

lines: list[str] = []


def say(text: str = "") -> None:
    print(text, flush=True)
    lines.append(text)


def table(head: list[str], rows: list[list[Any]]) -> None:
    say("| " + " | ".join(head) + " |")
    say("|" + "---|" * len(head))
    for row in rows:
        say("| " + " | ".join(str(cell) for cell in row) + " |")
    say()


def _save(name: str, title: str, parts: list[str], part: str, quick: bool) -> None:
    """Replace one part's section of the results."""
    target = Path(__file__).parent / "results" / f"{name}.md"
    sections = {}
    if target.exists():
        for section in target.read_text().split("<!-- part: ")[1:]:
            known, text = section.split(" -->\n", 1)
            sections[known] = text.strip()
    command = f"`python benchmarks/{name}.py{' --quick' * quick} --save --parts {part}`"
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True)
    sections[part] = f"{command} at commit {commit.stdout.strip()}\n\n" + "\n".join(lines).strip()
    ordered = [f"<!-- part: {known} -->\n{sections[known]}\n" for known in parts if known in sections]
    target.write_text(f"# {title}\n\n" + "\n".join(ordered))


def main(name: str, title: str, description: str | None, parts: dict[str, Callable[[bool], None]]) -> None:
    """The command line of a benchmark: ``--quick``, ``--save``, ``--parts``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes and few seeds")
    parser.add_argument("--save", action="store_true", help=f"write benchmarks/results/{name}.md")
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts), metavar="PART", help=", ".join(parts))
    options = parser.parse_args()
    for part in options.parts:
        lines.clear()
        parts[part](options.quick)
        if options.save:
            _save(name, title, list(parts), part, options.quick)
