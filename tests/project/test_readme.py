"""The README as PyPI shows it: its own renderer, its own sanitiser."""

import importlib.util
import re
import tomllib
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
def description():
    """The README as the build puts it into the package's metadata."""
    hooks = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["metadata"]["hooks"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for change in hooks["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    return text


@pytest.fixture(scope="module")
def page(description):
    markdown = pytest.importorskip("readme_renderer.markdown", reason="the README is rendered by readme_renderer")
    text = markdown.render(description)
    assert text is not None
    return text


def test_the_description_of_the_package_has_no_picture_or_link_that_an_index_cannot_show(page):
    assert "<img" not in page
    assert [link for link in re.findall(r'href="([^"]*)"', page) if not link.startswith(("http", "#"))] == []
    assert "benchmarks/results" not in page


def test_every_table_keeps_its_cells(page):
    tables = Tables(page).tables
    assert len(tables) == 2
    for table in tables:
        assert {len(row) for row in table} == {len(table[0])}
        assert all(cell for row in table[1:] for cell in row)


@pytest.fixture(scope="module")
def look():
    spec = importlib.util.spec_from_file_location("figures", ROOT / "docs" / "_tools" / "figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.look


@pytest.fixture(scope="module")
def compared(page):
    table = next(t for t in Tables(page).tables if t[0][1:] == METHODS)
    return {row[0]: row[1:] for row in table[1:]}


METHODS = ["selfpaced", "cleanlab", "tuned model", "LogisticRegressionCV"]
COLUMNS = {
    "clean labels": "clean",
    "20 % wrong": "20 %",
    "40 % wrong": "40 %",
    "20 % wrong near the border": "border 20 %",
}


@pytest.mark.parametrize("labels", COLUMNS)
def test_the_gains_are_those_of_the_pages_of_results(compared, labels, look):
    column = COLUMNS[labels]
    boosted = [
        look("wrappers", "Wrong labels", f"LightGBM {name}", column) for name in ("selfpaced", "cleanlab", "tuned")
    ]
    assert compared[f"LightGBM, {labels}"] == [*boosted, "-"]
    place = "Tables of the fourth look > Accuracy over plain"
    ours, cleanlab, cv = (look("classification", place, name, column) for name in ("selfpaced", "cleanlab", "LR CV"))
    assert compared[f"Logistic regression, {labels}"] == [ours, cleanlab, "-", cv]


def test_false_alarms_and_cost_are_those_of_the_pages_of_results(compared, look):
    lists = ("likely errors", "both levels", "cleanlab")
    likely, both, cleanlab = (look("wrappers", "Lists of suspects", "LightGBM clean", name) for name in lists)
    assert compared["Rows reported as errors, clean labels (LightGBM, 300 rows)"][:2] == [likely, cleanlab]
    assert compared["Rows to check, clean labels (LightGBM, 300 rows)"][:2] == [both, cleanlab]
    place = "Tables of the fourth look > Processor time"
    ours, cleanlab, cv = (look("classification", place, name, "clean") for name in ("selfpaced", "cleanlab", "LR CV"))
    assert compared["Cost in plain fits (logistic regression, clean labels)"] == [ours, cleanlab, "-", cv]


def test_the_sentences_before_and_after_the_table_are_those_of_the_pages_of_results(page, look):
    words = " ".join(re.sub(r"<[^>]*>", "", page).split())
    assert look("audit", "One label", ".*, .*", "likely of 1,000") == "0.0"
    both, cleanlab = (look("audit", "One label", "mean of 8", f"{name} of 1,000") for name in ("both", "cleanlab"))
    assert f"lists {float(cleanlab):.0f} of 1,000 rows on average" in words
    assert f"ranks {float(both):.0f} of 1,000 rows" in words
    assert f"costs {look('wrappers', 'Cost at', 'LightGBM .*', 'selfpaced')} plain fits" in words


def test_the_outcomes_are_those_of_the_page_of_claims(page):
    words = " ".join(re.sub(r"<[^>]*>", "", page).split())
    claims = (ROOT / "docs/results/claims.md").read_text(encoding="utf-8")
    yes, only, no = re.search(r"(\d+) confirmed, (\d+) under conditions, (\d+) not confirmed", claims).groups()
    assert f"{yes} were confirmed, {only} hold only under conditions and {no} were not confirmed" in words


def test_it_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_no_comment_or_markup_shows(page):
    words = re.sub(r"<[^>]*>", "", page)
    assert "results:" not in words
    assert "&lt;!--" not in words
