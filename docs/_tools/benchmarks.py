"""Copy the tables of ``BENCHMARKS.md`` from the pages of results: ``python docs/_tools/benchmarks.py``.

A line ``<!-- copy PAGE | HEADING | NUMBER -->`` in ``BENCHMARKS.md`` precedes table NUMBER (from 1) of the section
HEADING of ``benchmarks/results/PAGE.md``, and ends with ``<!-- /copy -->``. A heading is matched by its beginning. A
test compares the page with the results, so that no figure is typed by hand.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "BENCHMARKS.md"
RESULTS = ROOT / "benchmarks" / "results"
BLOCK = re.compile(
    r"(<!-- copy (?P<page>\w+) \| (?P<heading>.+?) \| (?P<number>\d+) -->\n).*?(<!-- /copy -->)", re.DOTALL
)


def tables(page: str, heading: str) -> list[str]:
    """Return the tables of one section of a page of results."""
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    sections = re.split(r"^(?=#{1,3} )", text, flags=re.MULTILINE)
    found = [section for section in sections if section.lstrip("# ").startswith(heading)]
    if not found:
        raise ValueError(f"results/{page}.md must have a section {heading!r}")
    return [table.strip() for table in re.findall(r"(?:^\|.*\n)+", found[-1] + "\n", flags=re.MULTILINE)]


def filled(text: str) -> str:
    """Return the text of the page with every table as the results have it."""

    def copy(match: re.Match[str]) -> str:
        table = tables(match["page"], match["heading"])[int(match["number"]) - 1]
        return f"{match[1]}{table}\n{match[5]}"

    return BLOCK.sub(copy, text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{PAGE.name}: written")
