"""The words of the project: what a reader meets is written in the terms of the field."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    *(path for path in (ROOT / "src").rglob("*") if path.suffix in {".py", ".j2", ".js", ".css", ".html"}),
    *(path for path in (ROOT / "docs").rglob("*.md") if "results" not in path.parts),
    *(path for folder in ("benchmarks", "examples", "experiments", ".ci") for path in (ROOT / folder).rglob("*.py")),
    *(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)),
    *(ROOT / "examples").glob("*.ipynb"),
    *(ROOT / "benchmarks" / "results").glob("*.md"),
    *(path for path in (ROOT / ".github").rglob("*") if path.is_file()),
    *ROOT.glob("*.md"),
    *(ROOT / name for name in ("CITATION.cff", "Makefile", "experiments/README.md", "mkdocs.yml", "pyproject.toml")),
]
# What was once written for what the field calls otherwise.
INSTEAD = {
    r"witness(es)?|testimony|heard": "misfit check, flexible reference model",
    r"judge[sd]?|judging": "reference models, ensemble, assess",
    r"judgements?|judgments?|opinions?|doubted|verdicts?": "assessment, posterior of an error",
    r"deals?|dealt": "split, repetition",
    r"foretell(?:s|ing)?|foretold": "predict",
    r"speaks? (?:against|for)": "evidence, contributing features",
    r"slips?(?: of the pen)?": "rare label, probable typo",
    r"hangs?(?: on)?|hanging|hung": "depends on, is sensitive to",
    r"plain to see": "significant, detected",
    r"wrong alike": "equal or different label-error rates per class",
    r"held-out labels right": "held-out accuracy",
    r"sets? aside": "excluded from the fit, reported separately",
    r"strays?": "outliers",
    r"labels that a rule gave": "programmatic labels",
    r"dirt": "label noise, gross errors",
    r"plain model was kept": "the plain model is used",
    r"vouch(?:es)?": "leak across folds",
    r"names next to nobody": "flags almost no rows",
    r"earn(?:s|ed) (?:its|a) place": "scored better",
}
# Names in code, but not words for readers: a rule is called Channel, and annotators vote.
IN_PROSE = {
    r"(?<!four )(?<!4 )channels?": "noise transition matrix, label-noise model",
    r"votes?|voted|voting": "reference models, out-of-fold predictions, ensemble",
}
# What the glossary of the project replaces, as it was once written.
REPLACED = (
    "witness, second witness, testimony, heard, noise_witness_, judge, judges, vote, judgement, opinion, doubted, "
    "deal, dealt, dealt again, foretell, speaks against it, slip, slips of the pen, hangs on, hanging, plain to see, "
    "wrong alike, not wrong alike, held-out labels right, set aside, strays, labels that a rule gave, dirt, channel, "
    "the plain model was kept"
)


@pytest.mark.parametrize("phrase", REPLACED.split(", "))
def test_every_phrase_of_the_glossary_is_looked_for(phrase):
    patterns = [*INSTEAD, *IN_PROSE]
    assert any(re.search(rf"\b(?:{words})\b", phrase.replace("_", " ")) for words in patterns)


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


def prose(path):
    """Comments, docstrings and messages of a module, or a document, without what is set as code; (line, text)."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
        pieces = [(1, text)]
    else:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        kinds = (tokenize.COMMENT, tokenize.STRING)
        pieces = [(token.start[0], token.string) for token in tokens if token.type in kinds and " " in token.string]
    for first, piece in pieces:
        for number, line in enumerate(piece.splitlines(), first):
            yield number, re.sub(r"`+[^`]*`+|\{[^}]*\}|^\s*(?:>>>|\.\.\.).*", "", line)


@pytest.mark.parametrize("words", IN_PROSE, ids=["channel", "vote"])
def test_prose_uses_the_terms_of_the_field(words):
    pattern = re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        if path.is_relative_to(ROOT / "src") or path.is_relative_to(ROOT / "docs")
        if "audit" not in path.relative_to(ROOT).as_posix()  # several annotators do vote
        for number, line in prose(path)
        if pattern.search(line)
    ]
    assert found == [], f"write: {IN_PROSE[words]}"


def test_every_file_is_read():
    assert len(FILES) > 350
    assert all(path.is_file() for path in FILES)
    assert {".py", ".md", ".j2"} <= {path.suffix for path in FILES}
