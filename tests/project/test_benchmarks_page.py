"""The tables of BENCHMARKS.md are those of the pages of results."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_figure_was_typed_by_hand():
    tool = ROOT / "docs" / "_tools" / "benchmarks.py"
    spec = importlib.util.spec_from_file_location("benchmarks_page", tool)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- copy ") == page.count("<!-- /copy -->") >= 5
    assert page.count("\nSaved in commit ") == page.count("<!-- copy ")
    assert all("`python benchmarks/" in text for text in page.split("<!-- copy ")[:-1])
    assert page == module.filled(page), "copy the tables again: python docs/_tools/benchmarks.py"
