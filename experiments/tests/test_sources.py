"""A cached answer is stale exactly when code that it depends on has changed."""

from __future__ import annotations

import importlib
import sys

import pytest

from selfpaced_experiments import classification, clustering, factorization
from selfpaced_experiments.cells import Cell
from selfpaced_experiments.sources import code, fingerprint, source

LIBRARY = {
    "__init__": "",
    "used": "from . import deep\nfrom .beside import helper\n",
    "beside": "def helper():\n    return 1\n",
    "deep/__init__": "",
    "deep/inner": "from selfpaced.far import value\n",
    "far": "value = 1\n",
    "unused": "value = 1\n",
}
EXPERIMENTS = {
    "__init__": "",
    "task": "from selfpaced.used import helper\nfrom selfpaced_experiments.telling import told\n",
    "telling": "told = 1\n",
}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Both packages, made up; what is imported already stays as it is."""
    for package, files in {"selfpaced": LIBRARY, "selfpaced_experiments": EXPERIMENTS}.items():
        for name, text in files.items():
            path = tmp_path / package / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    fingerprint.cache_clear()
    yield tmp_path
    fingerprint.cache_clear()


@pytest.mark.parametrize("file", ["used", "beside", "deep/inner", "far"])
def test_what_is_imported_counts_however_far_it_is(tree, file):
    _changes(tree / "selfpaced" / f"{file}.py", True)


@pytest.mark.parametrize("file", ["selfpaced/unused", "selfpaced_experiments/telling"])
def test_what_is_not_used_and_what_only_tells_do_not_count(tree, file):
    _changes(tree / f"{file}.py", False)


def test_the_task_itself_counts(tree):
    _changes(tree / "selfpaced_experiments" / "task.py", True)


def _changes(path, expected):
    parts = ("selfpaced_experiments.task",)
    before = fingerprint(parts)
    path.write_text(path.read_text(encoding="utf-8") + "\nmore = 2\n", encoding="utf-8")
    fingerprint.cache_clear()
    assert (fingerprint(parts) != before) is expected


def test_a_module_alone_brings_nothing_along(tree):
    before = fingerprint((), ("selfpaced.used",))
    (tree / "selfpaced" / "beside.py").write_text("changed = 1\n", encoding="utf-8")
    fingerprint.cache_clear()
    assert fingerprint((), ("selfpaced.used",)) == before


@pytest.mark.parametrize("name", ["selfpaced.no_such_module", "no_such_package", "builtins"])
def test_a_part_that_is_not_there_is_an_error(name):
    with pytest.raises(ValueError, match=f"got '{name}'"):
        source(name)


def test_every_part_of_every_cell_is_there():
    made: list[Cell] = [
        *classification.cells(quick=True, seeds=1, sets=["Breast"]),
        *clustering.cells(quick=True, seeds=1),
        *factorization.cells(quick=True, seeds=1),
        *factorization.figure2_cells(quick=True, seeds=1),
    ]
    assert len({cell.key for cell in made}) == len(made)


def test_the_sections_follow_their_estimators_to_the_mathematics():
    for parts in (classification.OURS, clustering.PARTS, factorization.PARTS):
        assert fingerprint(parts) != fingerprint((), tuple(parts))  # more than themselves


def test_comments_and_docstrings_do_not_make_an_answer_stale():
    plain = "def f(x):\n    return x + 1\n"
    documented = '"""Words."""\n\n\ndef f(x):\n    """More words."""\n    return x + 1  # why\n'
    assert code(plain) == code(documented)
    assert code(plain) != code(plain.replace("1", "2"))
