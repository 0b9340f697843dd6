"""The README as PyPI shows it: its own renderer, its own sanitiser."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Tables(HTMLParser):
    """The texts of the cells of every table."""

    def __init__(self, text):
        super().__init__()
        self.tables, self._cell = [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_data(self, data):
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][-1].append("".join(self._cell).strip())
            self._cell = None


@pytest.fixture(scope="module")
def page():
    markdown = pytest.importorskip("readme_renderer.markdown", reason="the README is rendered by readme_renderer")
    text = markdown.render((ROOT / "README.md").read_text(encoding="utf-8"))
    assert text is not None
    return text


def test_every_table_keeps_its_cells(page):
    tables = Tables(page).tables
    assert len(tables) == 4
    for table in tables:
        assert {len(row) for row in table} == {len(table[0])}
        assert all(cell for row in table[1:] for cell in row)


def test_our_figures_are_in_the_table_of_evidence(page):
    table = next(t for t in Tables(page).tables if t[0][-1] == "SelfPacedLogisticRegression")
    assert len(table) == 10
    assert all(re.fullmatch(r"\d\d\.\d\d", cell) for row in table[1:] for cell in row[1:])


def test_no_comment_or_markup_shows(page):
    words = re.sub(r"<[^>]*>", "", page)
    assert "results:" not in words
    assert "&lt;!--" not in words
