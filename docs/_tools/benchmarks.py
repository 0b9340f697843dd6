"""Copy tables from the pages of results into documents: ``python docs/_tools/benchmarks.py``.

A line ``<!-- copy PAGE | HEADING | NUMBER -->`` precedes table NUMBER (from 1) of the section HEADING of
``benchmarks/results/PAGE.md``, and ends with ``<!-- /copy -->``. A heading is matched by its beginning. Numbers of
columns may follow: ``| 1 3 2``. In ``BENCHMARKS.md`` the commit that saved a table is above it, by ``git blame``:
commit the results first. A test compares the documents with the results, so that no figure is typed by hand.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "BENCHMARKS.md"
PAGES = [PAGE, *(ROOT / "docs" / "guide" / name for name in ("any-estimator.md", "report.md"))]
RESULTS = ROOT / "benchmarks" / "results"
BLOCK = re.compile(
    r"(?P<start><!-- copy (?P<page>\w+) \| (?P<heading>.+?) \| (?P<number>\d+)(?: \| (?P<columns>[\d ]+))? -->\n)"
    r"(?P<saved>Saved in commit [^\n]*\n\n)?(?P<table>.*?)(?P<end><!-- /copy -->)",
    re.DOTALL,
)


def tables(page: str, heading: str) -> list[str]:
    """Return the tables of one section of a page of results."""
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    sections = re.split(r"^(?=#{1,3} )", text, flags=re.MULTILINE)
    found = [section for section in sections if section.lstrip("# ").startswith(heading)]
    if not found:
        raise ValueError(f"results/{page}.md must have a section {heading!r}")
    return [table.strip() for table in re.findall(r"(?:^\|.*\n)+", found[-1] + "\n", flags=re.MULTILINE)]


def chosen(table: str, columns: str) -> str:
    """Return some columns of a table, by their numbers."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return "\n".join(f"| {' | '.join(row[int(at) - 1] for at in columns.split())} |" for row in rows)


def saved(page: str, table: str) -> str:
    """Return the newest commit among the lines of a table, as a sentence."""
    path = RESULTS / f"{page}.md"
    first = path.read_text(encoding="utf-8").split(table, 1)[0].count("\n") + 1
    lines = f"{first},{first + table.count(chr(10))}"
    command = ["git", "blame", "--line-porcelain", "-L", lines, "--", str(path)]
    blame = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    times = re.findall(r"^([0-9a-f]{40}) .*?^committer-time (\d+)$", blame, re.DOTALL | re.MULTILINE)
    newest = max(times, key=lambda commit: int(commit[1]))[0]
    if not newest.strip("0"):
        raise ValueError(f"results/{page}.md must be committed first")
    shown = ["git", "show", "--no-patch", "--format=%h of %cs", newest]
    return subprocess.run(shown, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def filled(text: str, commits: bool = False) -> str:
    """Return the text of the page with every table, and with ``commits`` its commit, as the results have it."""

    def copy(match: re.Match[str]) -> str:
        table = tables(match["page"], match["heading"])[int(match["number"]) - 1]
        above = f"Saved in commit {saved(match['page'], table)}.\n\n" if commits else match["saved"] or ""
        shown = chosen(table, match["columns"]) if match["columns"] else table
        return f"{match['start']}{above}{shown}\n{match['end']}"

    return BLOCK.sub(copy, text)


if __name__ == "__main__":
    for document in PAGES:
        text = filled(document.read_text(encoding="utf-8"), commits=document == PAGE)
        document.write_text(text, encoding="utf-8")
        print(f"{document.name}: written")
