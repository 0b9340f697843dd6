"""The code blocks of the documentation: run them, compare what they print, or write it anew.

``python docs/_tools/blocks.py [PAGE ...]`` runs the pages (all by default) and writes what the blocks print into the
blocks of text below them. The tests allow small differences, as they occur from one machine to another.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import math
import os
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
PAGES = sorted(p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if p.parent.name != "results")
LANGUAGES = {"python", "py", "sh", "text"}  # "py" is code for another library: it is compiled, not run
_BLOCK = re.compile(r"^```(?P<language>[^\n]*)\n(?P<text>.*?)^```[ ]*$", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?P<percent> ?%)?(?!\w)")
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A code block; ``printed`` is the block of text that follows it directly, and ``span`` where that stands."""

    language: str
    text: str
    line: int
    printed: str | None = None
    span: tuple[int, int] = (0, 0)


def blocks(source: str) -> list[Block]:
    """The code blocks of a page."""
    found: list[Block] = []
    end = 0
    for match in _BLOCK.finditer(source):
        language, line = match["language"].strip(), source.count("\n", 0, match.start()) + 1
        directly = found and not source[end : match.start()].strip() and found[-1].language in ("python", "sh")
        if language == "text" and directly:
            last = found[-1]
            found[-1] = Block(last.language, last.text, last.line, match["text"], match.span("text"))
        else:
            found.append(Block(language, match["text"], line))
        end = match.end()
    return found


def same(expected: str, printed: str) -> bool:
    """Equal words, "..." for any; numbers may differ a little, as they do from one machine to another."""
    words = [_NUMBER.sub("#", text) for text in (expected, printed)]
    if not doctest.OutputChecker().check_output(*words, _FLAGS):
        return False
    if "..." in expected:
        return True
    pairs = zip(_NUMBER.finditer(expected), _NUMBER.finditer(printed), strict=True)
    return all(_near(a, b) for a, b in pairs)


def _near(a: re.Match[str], b: re.Match[str]) -> bool:
    first, second = (float(found[0].rstrip(" %")) for found in (a, b))
    return math.isclose(first, second, rel_tol=0.05, abs_tol=2 if a["percent"] else 0.01)


def run(page: str) -> Iterator[tuple[Block, str]]:
    """Run a page's blocks one after the other in the current folder, with what each one prints."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks((DOCS / page).read_text(encoding="utf-8")):
        if block.language == "python":
            printed = io.StringIO()
            code = "\n" * block.line + block.text  # so that a traceback shows the line of the page
            with contextlib.redirect_stdout(printed):
                exec(compile(code, str(DOCS / page), "exec"), names)
            yield block, printed.getvalue()
        elif block.language == "py":
            compile(block.text, str(DOCS / page), "exec")
        elif block.language == "sh":
            lines = block.text.replace("\\\n", " ").splitlines()
            yield block, "".join(_command(line, f"docs/{page}, line {block.line}") for line in lines)


def _command(line: str, place: str) -> str:
    """``selfpaced ...`` is run, ``pip install ...`` must name extras that exist, anything else is a mistake."""
    words = shlex.split(line, comments=True)
    if words[:2] == ["pip", "install"]:
        project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        named = {name for word in words for part in re.findall(r"\[(.+)\]", word) for name in part.split(",")}
        unknown = named - set(project["optional-dependencies"])
        assert not unknown, f"{place}: no extra is called {unknown}"
        return ""
    if not words:
        return ""
    assert words[0] == "selfpaced", f"{place}: {line}"
    from selfpaced.cli import main

    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = main(words[1:])
    expected = (0, 1) if words[1] == "inspect" else (0,)  # inspect ends with 1 if it has found something
    assert code in expected, f"{place}: {line}\n{printed.getvalue()}\n{said.getvalue()}"
    return printed.getvalue()


def refresh(page: str) -> bool:
    """Write what the blocks of a page print; whether anything had to be changed."""
    source = (DOCS / page).read_text(encoding="utf-8")
    pieces, end = [], 0
    for block, printed in run(page):
        kept = block.printed is None or block.printed.split() == printed.split()
        if not kept and not ("..." in block.printed and same(block.printed, printed)):
            pieces += [source[end : block.span[0]], printed.rstrip() + "\n"]
            end = block.span[1]
    if pieces:
        (DOCS / page).write_text("".join([*pieces, source[end:]]), encoding="utf-8")
    return bool(pieces)


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    for name in sys.argv[1:] or PAGES:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            changed = refresh(name)
        sys.stderr.write(f"{name}: {'written' if changed else 'as it was'}{os.linesep}")
