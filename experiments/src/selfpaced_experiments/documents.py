"""Keep figures in documents equal to ``results.json``.

A document marks a place with a pair of comments; what stands between them is written from the results::

    <!-- results: table table5-20 -->
    <!-- /results -->

Kinds: ``table KEY``, ``figure KEY`` (its picture and caption), ``claim KEY``, ``claims`` (all outcomes in one table),
``value TABLE / METHOD / COLUMN`` (a mean, inline), ``paper TABLE / METHOD / COLUMN`` (the paper's figure, inline).
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from selfpaced_experiments.render import figure_markdown, table_markdown
from selfpaced_experiments.results import Measure, Results, Row, load

__all__ = ["main", "refresh", "stale"]

_BLOCK = re.compile(r"(<!-- results: (?P<what>[^>]+?) -->)(?P<body>.*?)(<!-- /results -->)", re.DOTALL)


def refresh(text: str, results: Results, prefix: str = "") -> str:
    """The document with every marked place written from the results.

    Parameters
    ----------
    text : str
        The document.
    results : Results
        Where the figures come from.
    prefix : str
        Path from the document to the directory of the results, for pictures.
    """

    def replaced(match: re.Match[str]) -> str:
        body = _content(match["what"].strip(), results, prefix)
        inline = "\n" not in body
        return match[1] + (body if inline else f"\n\n{body.strip()}\n\n") + match[4]

    return _BLOCK.sub(replaced, text)


def stale(path: Path, results: Results, directory: Path) -> bool:
    """Whether a document says something else than the results."""
    text = path.read_text(encoding="utf-8")
    return refresh(text, results, _prefix(path, directory)) != text


def _prefix(path: Path, directory: Path) -> str:
    relative = Path(os.path.relpath(directory.resolve(), path.resolve().parent)).as_posix()
    return "" if relative == "." else relative + "/"


def _content(what: str, results: Results, prefix: str) -> str:
    kind, _, key = what.partition(" ")
    if kind == "claims" and not key:
        rows = [f"| {claim.claim} | {claim.outcome} |" for claim in results.claims]
        return "\n".join(["| claim of the paper | result |", "|---|---|", *rows])
    if kind == "table":
        found = results.table(key)
        if found is not None:
            return table_markdown(found)
    elif kind == "figure":
        drawn = next((figure for figure in results.figures if figure.key == key), None)
        if drawn is not None:
            return figure_markdown(drawn).replace("](figure-", f"]({prefix}figure-")
    elif kind == "claim":
        claim = next((claim for claim in results.claims if claim.key == key), None)
        if claim is not None:
            return f"{claim.claim}: {claim.outcome}. {claim.figure}"
    elif kind in ("value", "paper"):
        return _value(kind, key, results)
    raise ValueError(f"no results of this kind and key to write into the document: {what!r}")


def _value(kind: str, key: str, results: Results) -> str:
    row, column = _find(key, results)
    figure = row.scores.get(column.name) if kind == "value" else row.published.get(column.name)
    if figure is None:
        raise ValueError(f"there is no {kind} at {key!r}")
    return f"{figure.mean:.{column.digits}f}"


def _find(key: str, results: Results) -> tuple[Row, Measure]:
    parts = [part.strip() for part in key.split(" / ")]
    if len(parts) == 3:
        table = results.table(parts[0])
        row = table.row(parts[1]) if table is not None else None
        column = next((c for c in table.columns if c.name == parts[2]), None) if table is not None else None
        if row is not None and column is not None:
            return row, column
    raise ValueError(f"a figure is named TABLE / METHOD / COLUMN and must exist, got {key!r}")


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m selfpaced_experiments.documents RESULTS.json DOCUMENT ...``: rewrite or check the marked places."""
    parser = argparse.ArgumentParser(prog="python -m selfpaced_experiments.documents", description=main.__doc__)
    parser.add_argument("results", type=Path, help="results.json")
    parser.add_argument("documents", type=Path, nargs="+")
    parser.add_argument("--check", action="store_true", help="change nothing, fail if a document is stale")
    args = parser.parse_args(argv)
    results, directory = load(args.results), args.results.parent
    old = [path for path in args.documents if stale(path, results, directory)]
    for path in old:
        if not args.check:
            text = refresh(path.read_text(encoding="utf-8"), results, _prefix(path, directory))
            path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{'stale' if args.check else 'written'}: {path}\n")
    return 1 if args.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
