"""The README as PyPI shows it: its own renderer, its own sanitiser."""

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


def page_table(name, heading, words):
    """The first table below a heading of a page of results whose header has these words, by its first cells."""
    text = (ROOT / "benchmarks" / "results" / f"{name}.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text.split(f"\n## {heading}", 1)[1], flags=re.MULTILINE)[0]
    tables = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)]
    rows = [[[cell.strip() for cell in line.strip("|").split("|")] for line in table] for table in tables]
    return next(table for table in rows if words <= {cell for row in table for cell in row})


def gains(name, heading, words, keys, column):
    """What the methods gain in one column of a page of results, without the standard error."""
    header, _, *rows = page_table(name, heading, words)
    found = {key: row[header.index(column)].split()[0] for row in rows for key in keys if row[: len(key)] == list(key)}
    return [found[key] for key in keys]


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
def test_the_gains_are_those_of_the_pages_of_results(compared, labels):
    boosted = [("LightGBM", "selfpaced"), ("LightGBM", "cleanlab"), ("LightGBM", "tuned")]
    linear = [("selfpaced",), ("cleanlab",), ("LR CV",)]
    column = COLUMNS[labels]
    assert compared[f"LightGBM, {labels}"] == [*gains("wrappers", "Wrong labels", {"base"}, boosted, column), "-"]
    ours, cleanlab, cv = gains("classification", "Tables of the third look", {"+0.00 (0.00)"}, linear, column)
    assert compared[f"Logistic regression, {labels}"] == [ours, cleanlab, "-", cv]


def test_false_alarms_and_cost_are_those_of_the_pages_of_results(compared):
    lists = page_table("wrappers", "Lists of suspects", {"both levels"})
    row = next(row for row in lists if row[:2] == ["LightGBM", "clean"])
    cleanlab, both, likely = (cell.removesuffix(" rows") for cell in row[2:])
    assert compared["Rows reported as errors, clean labels (LightGBM, 300 rows)"][:2] == [likely, cleanlab]
    assert compared["Rows to check, clean labels (LightGBM, 300 rows)"][:2] == [both, cleanlab]
    text = (ROOT / "benchmarks/results/classification.md").read_text(encoding="utf-8")
    third = text.split("## Tables of the third look", 1)[1].split("Processor time of a fit", 1)[1]
    cost = dict(re.findall(r"^\| (LR CV|cleanlab|selfpaced) \| ([\d.]+) ", third, re.MULTILINE)[:3])
    shown = compared["Cost in plain fits (logistic regression, clean labels)"]
    assert shown == [cost["selfpaced"], cost["cleanlab"], "-", cost["LR CV"]]


def test_the_sentences_before_and_after_the_table_are_those_of_the_pages_of_results(page):
    words = " ".join(re.sub(r"<[^>]*>", "", page).split())
    *cases, mean = page_table("audit", "One label per row", {"mean of 8"})[2:]
    assert len(cases) == 8
    assert {row[1] for row in [*cases, mean]} == {"0.0"}
    assert f"lists {float(mean[3]):.0f} of 1,000 rows on average" in words
    assert f"ranks {float(mean[2]):.0f} of 1,000 rows" in words
    cost = sorted(row[3].split()[0] for row in page_table("wrappers", "Cost at", {"base"}) if row[0] == "LightGBM")
    assert f"costs {cost[0]} to {cost[-1]} plain fits" in words


def test_the_verdicts_are_those_of_the_page_of_claims(page):
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
