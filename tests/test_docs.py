"""Every code block of the documentation is run, its output is compared, and the site builds without warnings."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TOOLS = DOCS / "_tools"
# docs/results is written by `selfpaced reproduce`: pages of the site, but no text of ours
PAGES = sorted(p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if p.parent.name != "results")

MAY_LACK = "cleanlab|statsmodels|pandas|torch|dask|pyspark"


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import blocks

    return blocks


@pytest.fixture
def quiet_figures():
    matplotlib = pytest.importorskip("matplotlib", reason="the pages draw figures")
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.usefixtures("quiet_figures")
@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page, tools, tmp_path, monkeypatch):
    source = (DOCS / page).read_text(encoding="utf-8")
    for package in re.findall(rf"^(?:import|from) (?:selfpaced\.)?({MAY_LACK})\b", source, re.MULTILINE):
        pytest.importorskip(package, reason=f"docs/{page} uses {package}")
        if package == "pyspark" and shutil.which("java") is None:
            pytest.skip("Spark needs Java: install openjdk-17-jre-headless")
    assert {block.language for block in tools.blocks(source)} <= tools.LANGUAGES
    monkeypatch.chdir(tmp_path)
    for block, printed in tools.run(page):
        fits = block.printed is None or tools.same(block.printed, printed)
        assert fits, f"docs/{page}, line {block.line} printed\n{printed}\ninstead of\n{block.printed}"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_notebook_prints_what_it_shows(path, tools, tmp_path, monkeypatch):
    pytest.importorskip("pandas", reason="notebooks show tables")
    import notebook

    monkeypatch.chdir(tmp_path)
    cells = notebook.run(json.loads(path.read_text(encoding="utf-8")))
    for number, (cell, outputs) in enumerate(cells, 1):
        shown, printed = notebook.text(cell["outputs"]), notebook.text(outputs)
        assert tools.same(shown, printed), f"cell {number} of {path.name} printed\n{printed}\ninstead of\n{shown}"


@pytest.mark.parametrize(
    ("expected", "printed", "equal"),
    [
        ("a 0.97\n", "a 0.98\n", True),
        ("a 0.97\n", "a 0.77\n", False),
        ("between 17% and 24%", "between 16% and 24%", True),
        ("between 17% and 24%", "between 1% and 24%", False),
        ("lam=1.2: x", "lam=1.2: y", False),
        ("[True, True]", "[True, False]", False),
        ("[1, 2]", "[1, 2, 3]", False),
        ("so ... end", "so it came to an end", True),
    ],
)
def test_outputs_are_really_compared(expected, printed, equal, tools):
    assert tools.same(expected, printed) is equal


def test_outputs_are_written_anew(tools, tmp_path, monkeypatch):
    page = "Text\n\n```python\nprint('new')\n```\n\n```text\nold\n```\n\nEnd\n"
    (tmp_path / "page.md").write_text(page)
    monkeypatch.setattr(tools, "DOCS", tmp_path)
    assert tools.refresh("page.md")
    assert (tmp_path / "page.md").read_text() == page.replace("old", "new")
    assert not tools.refresh("page.md")


def test_pages_and_navigation_agree():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    written = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    assert sorted(re.findall(r"[\w/-]+\.md", text)) == written


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("api/")])
def test_members_that_are_listed_are_there(page):
    """A name that does not exist is left out of the site without a word."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, options in re.findall(r"^::: (\S+)\n((?:    .*\n?)*)", text, re.MULTILINE):
        package = name.split(".")[1]
        if package in MAY_LACK.split("|") or package == "spark":
            pytest.importorskip("pyspark" if package == "spark" else package, reason=f"docs/{page} shows {name}")
        found = resolve_name(name)
        listed = re.search(r"(?<!inherited_)members: \[(.*?)\]", options)
        assert [one for one in (listed[1].split(", ") if listed else []) if not hasattr(found, one)] == []


def test_the_figures_of_the_limits_are_those_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import figures

    page = (DOCS / "limits.md").read_text(encoding="utf-8")
    assert page == figures.filled(page), "write the figures again: python docs/_tools/figures.py"
    known = tuple(f"| {situation}" for situation in figures.figures())
    rows = [line for line in page.splitlines() if re.search(r"\d[^|]*\|$", line)]
    assert [line for line in rows if not line.startswith(known)] == []


def test_sentences_that_quote_results_have_their_figures(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import figures

    assert sum(map(len, figures.sentences().values())) > 10
    assert figures.missing() == [], "write these into the pages"


def test_the_tables_of_the_theory_hold_every_rule(monkeypatch):
    pytest.importorskip("latex2mathml", reason="building the documentation needs latex2mathml")
    monkeypatch.syspath_prepend(str(TOOLS))
    import hooks

    from selfpaced.regularizers import REGISTRY

    page = hooks.on_page_markdown((DOCS / "theory.md").read_text(encoding="utf-8"))
    for name in REGISTRY:
        assert page.count(f"| `{name}` |") == 1
    assert not re.findall(r"<m\w+[^>]*>[^<]*\\", page), "latex2mathml has left a command as it was"
    assert "$" not in re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    assert page.count("<math") > 3 * len(REGISTRY)
    assert page.count('<div class="equation"') == len(
        re.findall(r"^\$\$", (DOCS / "theory.md").read_text(), re.MULTILINE)
    )
    assert "<code>" not in page.split("## All rules")[1].split("##")[0]


@pytest.mark.parametrize(
    ("typed", "pieces"),
    [
        ("l/2 if l <= lam^2 else 0", [r"\frac{\ell}{2}\ \text{if}\ \ell \le \lambda^{2}\ \text{else}\ 0"]),
        ("lam^2 l / (lam^2 + l)", [r"\frac{\lambda^{2} \ell}{\lambda^{2} + \ell}"]),
        ("(a + b) (c - v) / log z", [r"\frac{\left(a + b\right) \left(c - v\right)}{\log z}"]),
        ("e^-l, i the rank in the group", [r"e^{-\ell},", r"i\ \text{the rank in the group}"]),
        ("v in {0, 1}", [r"v \in \left\{0, 1\right\}"]),
    ],
)
def test_formulas_are_read_as_they_are_typed(typed, pieces, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    from formulas import latex

    assert latex(typed) == pieces


def test_a_formula_that_cannot_be_read_is_refused(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    from formulas import latex

    with pytest.raises(ValueError, match="is not closed"):
        latex("lam (1 - v")
    with pytest.raises(ValueError, match="cannot read"):
        latex("lam * v")


def quoted(page):
    """The quotations of a page, which examples of a docstring must not be."""
    return " ".join(re.findall(r"<blockquote>.*?</blockquote>", page.read_text(encoding="utf-8"), re.DOTALL))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site, and what MkDocs said."""
    for package in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        pytest.importorskip(package, reason="building the documentation needs the extra docs")
    site = tmp_path_factory.mktemp("site")
    # not --quiet, which drops warnings before --strict can count them
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return site, subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_the_site_builds_without_warnings(built):
    site, done = built
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
    assert [page for page in (site / "api").rglob("*.html") if quoted(page)] == []
    for page in PAGES:
        made = site / (page.removesuffix(".md") if page != "index.md" else "") / "index.html"
        text = made.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?(https?://[^\s\">]+)", text) == []


def test_no_page_of_the_api_is_endless_and_no_page_is_wider_than_a_phone(built):
    webdriver = pytest.importorskip("selenium.webdriver", reason="pages are measured by Selenium")
    paths = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in paths:
        pytest.skip("pages are measured in Chromium")
    options = webdriver.ChromeOptions()
    options.binary_location = paths[0]
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(paths[1]))
    try:
        for width, size, most, pages in ((1280, "scrollHeight", 10_000, "api/*"), (390, "scrollWidth", 390, "**")):
            shape = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
            for page in sorted(built[0].glob(f"{pages}/index.html")):
                browser.get(page.as_uri())
                found = browser.execute_script(f"return document.documentElement.{size}")
                assert found <= most, f"{page.parent.name}: {size} {found}"
    finally:
        browser.quit()
