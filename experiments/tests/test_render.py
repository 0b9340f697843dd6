"""Markdown and terminal say what the results say."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from selfpaced_experiments.claims import assess
from selfpaced_experiments.progress import StageProgress
from selfpaced_experiments.render import cell_text, claims_page, results_page, table_markdown
from selfpaced_experiments.results import Measure, Published, Row, Score
from selfpaced_experiments.terminal import show


def test_a_cell_shows_paper_ours_and_the_signed_difference():
    row = Row("m", "paper", {"e": Published(0.5, 0.1)}, {"e": Score.of({0: [0.4], 1: [0.2]})})
    assert cell_text(Measure("e", False, 2), row) == ("0.50 (0.10)", "0.30 (0.10)", "-0.20")
    assert cell_text(Measure("other"), row) == ("", "", "")


def test_the_page_holds_every_row_and_figure(results):
    page = results_page(assess(results))
    for table in results.tables:
        for row in table.rows:
            assert f"| {row.method} |" in page
    for part in (results.run.command, "![Figure 2b](figure-2b.png)", "Skipped: table 3: no file", "**fails**"):
        assert part in page


def test_a_table_without_the_paper_has_no_empty_columns(results):
    from dataclasses import replace

    table = results.tables[1]
    alone = replace(table, rows=tuple(replace(row, published={}) for row in table.rows))
    assert "paper" not in table_markdown(alone).split("\n")[4]


def test_the_page_of_claims_counts_its_outcomes(results):
    assessed = assess(results)
    page = claims_page(assessed)
    for claim in assessed.claims:
        assert f"## {claim.claim}" in page
        assert claim.figure[1:] in page
    assert f"{sum(c.outcome == 'confirmed' for c in assessed.claims)} confirmed" in page


def test_plain_text_has_aligned_tables_and_outcomes(results):
    stream = io.StringIO()
    show(assess(results), stream, plain=True)
    text = stream.getvalue()
    assert "Breast paper" in text
    assert "- not confirmed: Implicit rules improve" in text
    assert "skipped: table 3: no file" in text
    assert "\x1b" not in text
    lines = [line for line in text.splitlines() if line.startswith(("  LR ", "  SPL-"))]
    assert len(lines) == 14
    assert len({line.index("(") for line in lines[:7]}) == 1
    assert max(len(line.rstrip()) for line in text.splitlines() if line.startswith(("-", "    "))) <= 116


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def colours(monkeypatch):
    """A terminal that can show them, whatever the tests run in."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.usefixtures("colours")
def test_a_terminal_gets_colours_unless_plain_text_is_asked_for(results):
    stream = Terminal()
    show(assess(results), stream)
    assert "\x1b[32m" in stream.getvalue()
    assert "\x1b[31m" in stream.getvalue()
    stream = Terminal()
    show(assess(results), stream, plain=True)
    assert "\x1b" not in stream.getvalue()


@pytest.mark.usefixtures("colours")
def test_a_table_that_is_too_wide_for_the_terminal_comes_in_parts(results, monkeypatch):
    from dataclasses import replace

    monkeypatch.setenv("COLUMNS", "80")
    table = results.tables[0]
    wide = replace(table, columns=tuple(replace(table.columns[0], name=f"set {i}") for i in range(3)))
    stream = Terminal()
    show(replace(results, tables=(wide,)), stream)
    assert stream.getvalue().count(table.title) == 3


def test_a_log_tells_stage_cell_and_time_left():
    stream = io.StringIO()
    with StageProgress(Console(file=stream, highlight=False)) as bar:
        bar.start("clustering", 20)
        for seed in range(20):
            bar.step(f"welsch seed {seed}")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "clustering: 20 cells"
    assert len(lines) == 11
    assert lines[-1].startswith("clustering: 20/20  welsch seed 19  about 0 s left")


def test_a_terminal_shows_the_cell():
    stream = io.StringIO()
    with StageProgress(Console(file=stream, force_terminal=True, width=120)) as bar:
        bar.start("theory", 2)
        bar.step("first")
        bar.step("second")
    assert "theory" in stream.getvalue()
    assert "second" in stream.getvalue()


def test_quiet_writes_nothing(capsys):
    with StageProgress(quiet=True) as bar:
        bar.start("x", 1)
        bar.step("y")
    assert capsys.readouterr().err == ""
