"""The tables of BENCHMARKS.md and of the guides are those of the pages of results."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("benchmarks_page", ROOT / "docs" / "_tools" / "benchmarks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_figure_was_typed_by_hand(tool):
    for document in tool.PAGES:
        text = document.read_text(encoding="utf-8")
        assert text.count("<!-- copy ") == text.count("<!-- /copy -->") >= 1
        assert text == tool.filled(text), "copy the tables again: python docs/_tools/benchmarks.py"


def test_every_table_states_its_command_and_its_commit(tool):
    page = tool.PAGE.read_text(encoding="utf-8")
    assert page.count("\nSaved in commit ") == page.count("<!-- copy ") >= 5
    assert all("`python benchmarks/" in text for text in page.split("<!-- copy ")[:-1])


def test_every_script_that_is_named_exists():
    folders = {"docs": "*.md", "benchmarks": "*.*"}
    files = [path for folder, kind in folders.items() for path in (ROOT / folder).rglob(kind) if path.suffix != ".pyc"]
    named = {name for path in files for name in re.findall(r"benchmarks/\w+\.py", path.read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
