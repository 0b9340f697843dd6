"""Cells: what is cached, when it is stale, and that an interrupted run continues."""

from __future__ import annotations

import importlib
import sys

import pytest

from selfpaced_experiments.cells import Cache, Cell, run_cells

WORK = """
calls = []
fail_at = None

def work(*, x, data_dir):
    if fail_at == x:
        raise KeyboardInterrupt
    calls.append((x, data_dir))
    return {"square": x * x}
"""


@pytest.fixture
def worker(monkeypatch, tmp_path_factory):
    """A module of made-up work that counts its calls and can be told to fail."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "made_up_work.py").write_text(WORK, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module("made_up_work")
    del sys.modules["made_up_work"]


def _cells(count=4):
    return [Cell("made_up_work:work", {"x": x}, f"x = {x}") for x in range(count)]


def test_answers_are_computed_once(worker, tmp_path):
    cache = Cache(tmp_path / "deep" / "cells")
    first = list(run_cells(_cells(), cache=cache, data_dir="there"))
    assert [a.value["square"] for a in first] == [0, 1, 4, 9]
    assert worker.calls[1] == (1, "there")
    again = list(run_cells(_cells(), cache=cache))
    assert [a.cached for a in again] == [True] * 4
    assert [a.value for a in again] == [a.value for a in first]
    assert len(worker.calls) == 4


def test_an_interrupted_run_continues_where_it_was(worker, tmp_path):
    cache = Cache(tmp_path)
    worker.fail_at = 2
    with pytest.raises(KeyboardInterrupt):
        list(run_cells(_cells(), cache=cache))
    worker.fail_at = None
    answers = list(run_cells(_cells(), cache=cache))
    assert sorted(a.cell.params["x"] for a in answers) == [0, 1, 2, 3]
    assert [x for x, _ in worker.calls] == [0, 1, 2, 3]
    assert sum(a.cached for a in answers) == 2


def test_what_is_cached_can_be_looked_at_without_computing(worker, tmp_path):
    list(run_cells(_cells(2), cache=Cache(tmp_path)))
    found = list(run_cells(_cells(4), cache=Cache(tmp_path), compute=False))
    assert [a.value["square"] for a in found] == [0, 1]
    assert len(worker.calls) == 2


def test_fresh_computes_anew_and_a_damaged_file_counts_as_absent(worker, tmp_path):
    list(run_cells(_cells(2), cache=Cache(tmp_path)))
    list(run_cells(_cells(2), cache=Cache(tmp_path, fresh=True)))
    assert len(worker.calls) == 4
    for path in tmp_path.glob("*.json"):
        path.write_text("{", encoding="utf-8")
    list(run_cells(_cells(2), cache=Cache(tmp_path)))
    assert len(worker.calls) == 6
    assert not list(tmp_path.glob("*.part"))


def test_parallel_workers_give_the_same_answers(tmp_path):
    cells = [Cell("collections:OrderedDict", {"x": x}, str(x)) for x in range(6)]
    answers = list(run_cells(cells, cache=Cache(tmp_path), jobs=2))
    assert sorted(a.value["x"] for a in answers) == list(range(6))
    assert all(a.cached for a in run_cells(cells, cache=Cache(tmp_path), jobs=2))


def test_the_key_follows_what_decides_the_answer():
    base = Cell("selfpaced_experiments.tasks.clustering:run", {"seed": 1}, "label", ("selfpaced_experiments.metrics",))
    keys = {
        base.key,
        Cell(base.function, {"seed": 2}, base.label, base.parts).key,
        Cell(base.function, base.params, base.label, ("selfpaced.regularizers",)).key,
        Cell("selfpaced_experiments.tasks.factorization:run", base.params, base.label, base.parts).key,
        Cell(base.function, base.params, base.label, base.parts, ("scipy",)).key,
    }
    assert len(keys) == 5
    assert Cell(base.function, base.params, "another label", base.parts).key == base.key
