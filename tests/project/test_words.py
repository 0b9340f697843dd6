"""The words of the project: what a reader meets is written in the terms of the field."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    *(path for path in (ROOT / "src").rglob("*") if path.suffix in {".py", ".j2", ".js", ".css", ".html"}),
    *(path for path in (ROOT / "docs").rglob("*.md") if "results" not in path.parts),
    *(path for folder in ("benchmarks", "examples", ".ci") for path in (ROOT / folder).rglob("*.py")),
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "BENCHMARKS.md", "SECURITY.md")),
]
# What was once written for what the field calls otherwise.
INSTEAD = {
    r"witness(es)?|testimony|is heard": "misfit check, flexible reference model",
    r"judge[sd]?|judging": "reference models, ensemble, assess",
    r"judgements?|judgments?|opinions?|doubted|verdicts?": "assessment, posterior of an error",
    r"dealt|deals? (?:again|of rows)": "split, repetition",
    r"foretells?|foretold": "predict",
    r"speaks? (?:against|for) (?:it|noise)": "evidence, contributing features",
    r"slips?(?: of the pen)?": "rare label, probable typo",
    r"hangs? on|hanging": "depends on, is sensitive to",
    r"plain to see": "significant, detected",
    r"wrong alike": "equal label-error rates per class",
    r"held-out labels right": "held-out accuracy",
    r"sets? aside": "excluded from the fit, reported separately",
    r"strays?": "outliers",
    r"labels that a rule gave": "programmatic labels",
    r"dirt": "label noise, gross errors",
    r"plain model (?:was|is) kept": "the plain model is used",
    r"vouch(?:es)?": "leak across folds",
}


@pytest.mark.parametrize("words", INSTEAD, ids=lambda words: words.partition("|")[0][:12])
def test_the_terms_of_the_field_are_used(words):
    pattern = re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line.replace("_", " "))
    ]
    assert found == [], f"write: {INSTEAD[words]}"


def test_every_file_is_read():
    assert len(FILES) > 150
    assert {".py", ".md", ".j2"} <= {path.suffix for path in FILES}
