"""Forged model files: refused by name, in little memory, and nothing of theirs is run."""

from __future__ import annotations

import importlib.util
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

pytest.importorskip("skops.io", reason='saving models needs the extra "io"')  # now: its memory is not that of a file

from selfpaced.persistence import UntrustedFileError, load, metadata

_spec = importlib.util.spec_from_file_location("forged", Path(__file__).with_name("forged.py"))
assert _spec is not None
assert _spec.loader is not None
forged = sys.modules["forged"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(forged)


@pytest.mark.parametrize("title", forged.FORGED)
def test_a_forged_file_is_refused(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.skops").write_bytes(forged.FORGED[title]())
    tracemalloc.start()
    with pytest.raises(UntrustedFileError, match=r"^model.skops "):
        load("model.skops")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20
    assert os.listdir() == ["model.skops"]


@pytest.mark.parametrize("title", [title for title in forged.ODD_FILES if title.startswith(("facts", "versions"))])
def test_odd_facts_are_refused(title: str) -> None:
    with pytest.raises(UntrustedFileError, match=r"^the file is damaged"):
        metadata(forged.FORGED[title]())


@pytest.mark.parametrize("title", forged.CODE_FILES)
def test_what_would_run_is_named(title: str) -> None:
    with pytest.raises(UntrustedFileError, match="may run code"):
        load(forged.FORGED[title]())


def test_the_parts_that_files_are_forged_from_are_sound() -> None:
    """Else they would be refused for being damaged."""
    assert load(forged.archive(forged.FINE)) == {"a": 1}
    model = load(forged.archive(forged.pipeline(forged.transformer(forged.partial(forged.CHECK)))))
    assert model.transform([[1.0]]).tolist() == [[1.0]]
