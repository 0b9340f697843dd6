"""Documents say what results.json says: the committed ones too."""

from __future__ import annotations

from pathlib import Path

import pytest

from selfpaced_experiments.claims import assess
from selfpaced_experiments.documents import main, refresh, stale
from selfpaced_experiments.render import claims_page, results_page
from selfpaced_experiments.results import load, save

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "docs" / "results"


def test_marked_places_are_written_from_the_results(results):
    text = (
        "LR has <!-- results: value table5-20 / LR / Breast -->0<!-- /results --> (paper "
        "<!-- results: paper table5-20 / LR / Breast --><!-- /results -->).\n\n"
        "<!-- results: table table5-0 -->stale words<!-- /results -->\n"
        "<!-- results: claims -->\n<!-- /results -->\n"
        "<!-- results: figure figure-2b --><!-- /results --><!-- results: claim theory --><!-- /results -->"
    )
    assessed = assess(results)
    fresh = refresh(text, assessed, "docs/results/")
    assert "LR has <!-- results: value table5-20 / LR / Breast -->93.05<!-- /results -->" in fresh
    assert "-->92.08<!-- /results -->)" in fresh
    assert "| SPL-hard |" in fresh
    assert "stale words" not in fresh
    assert "](docs/results/figure-2b.png)" in fresh
    assert "| confirmed |" in fresh
    assert refresh(fresh, assessed, "docs/results/") == fresh


@pytest.mark.parametrize("what", ["table nope", "value a / b", "value table5-20 / LR / Nope", "paper x", "song"])
def test_an_unknown_place_is_an_error(results, what):
    with pytest.raises(ValueError, match=r"got|write"):
        refresh(f"<!-- results: {what} --><!-- /results -->", results)


def test_the_command_rewrites_and_checks(results, tmp_path, capsys):
    path = save(assess(results), tmp_path)
    document = tmp_path / "README.md"
    document.write_text("<!-- results: value table5-0 / LR / Breast -->1.00<!-- /results -->", encoding="utf-8")
    assert main([str(path), str(document), "--check"]) == 1
    assert main([str(path), str(document)]) == 0
    assert "97.05" in document.read_text(encoding="utf-8")
    assert main([str(path), str(document), "--check"]) == 0
    assert not stale(document, load(path), tmp_path)
    assert "stale" in capsys.readouterr().out


@pytest.fixture
def committed():
    path = COMMITTED / "results.json"
    if not path.is_file():
        pytest.skip("no committed results in this checkout")
    return load(path)


def test_committed_pages_are_the_committed_json(committed):
    assert (COMMITTED / "results.md").read_text(encoding="utf-8") == results_page(committed)
    assert (COMMITTED / "claims.md").read_text(encoding="utf-8") == claims_page(committed)


def test_committed_claims_follow_from_the_committed_figures(committed):
    assert assess(committed).claims == committed.claims


def test_committed_figures_are_there(committed):
    for figure in committed.figures:
        for name in figure.files:
            assert (COMMITTED / name).stat().st_size > 1000


def test_no_document_is_stale(committed):
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert [path.name for path in documents if stale(path, committed, COMMITTED)] == []


def test_committed_results_are_of_a_full_run(committed):
    assert not committed.run.quick
    # Of one run, or of one section beside the others of an earlier one: nothing is missing.
    assert {table.key for table in committed.tables} >= {
        "table5-0", "table5-20", "table5-40", "table3-paper", "table2"
    }  # fmt: skip
    assert committed.theory
    assert committed.figures
    assert committed.run.command.startswith("selfpaced reproduce claims") != bool(committed.run.kept)
    assert committed.run.missing == 0
    assert not committed.skipped
