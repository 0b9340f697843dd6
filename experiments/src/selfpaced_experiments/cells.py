"""Cells of an experiment: the smallest thing that is computed, cached on disk and run in parallel."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import time
import uuid
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from selfpaced.datasets import cache_directory
from selfpaced_experiments.sources import fingerprint

__all__ = ["Answer", "Cache", "Cell", "run_cells"]

# Not the whole package: where a file is found does not change what it holds, since its checksum is verified.
_DATA = ("selfpaced_experiments.data.loaders", "selfpaced.datasets.noise", "selfpaced.datasets.synthetic")


@dataclass(frozen=True)
class Cell:
    """One computation: ``function(data_dir=..., **params)``, which returns a dict that JSON can hold.

    Parameters
    ----------
    function : str
        ``"module:name"``, so that a worker process can import it.
    params : dict
        Keyword arguments, plain values.
    label : str
        What a progress bar says of it.
    parts : tuple of str
        Modules or packages whose source decides the answer: a change there makes a cached answer stale.
    packages : tuple of str
        Installed packages whose version decides it as well.
    """

    function: str
    params: dict[str, Any]
    label: str
    parts: tuple[str, ...] = ()
    packages: tuple[str, ...] = ("numpy", "scikit-learn")

    @property
    def key(self) -> str:
        """Name of the cell in the cache."""
        module, _, _ = self.function.partition(":")
        identity = {
            "function": self.function,
            "params": self.params,
            "sources": fingerprint(self.parts, (module, *_DATA)),
            "versions": {name: _version(name) for name in self.packages},
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Answer:
    """The answer of a cell, the seconds it took when it was computed, and whether it came from the cache."""

    cell: Cell
    value: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    cached: bool = False


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


@dataclass(frozen=True)
class Cache:
    """Answers of cells on disk, one small JSON file each.

    Parameters
    ----------
    directory : Path, optional
        Default: ``experiments`` below the library's cache directory.
    fresh : bool, default=False
        Do not read earlier answers (they are still written).
    """

    directory: Path = field(default_factory=lambda: cache_directory() / "experiments")
    fresh: bool = False

    def get(self, cell: Cell) -> Answer | None:
        """The stored answer, or None; an unreadable file counts as absent and is computed again."""
        if self.fresh:
            return None
        try:
            stored = json.loads((self.directory / f"{cell.key}.json").read_text(encoding="utf-8"))
            return Answer(cell, stored["value"], float(stored["seconds"]), cached=True)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, answer: Answer, key: str | None = None) -> None:
        """Store an answer; the rename makes it all or nothing."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"{key or answer.cell.key}.json"
        part = path.with_suffix(f".{uuid.uuid4().hex[:8]}.part")
        stored = {"label": answer.cell.label, "value": answer.value, "seconds": answer.seconds}
        part.write_text(json.dumps(stored), encoding="utf-8")
        part.replace(path)


def _compute(cell: Cell, key: str, cache: Cache, data_dir: str | None) -> Answer:
    """Run one cell in a worker and store its answer there, so that an interrupted run keeps it."""
    module, _, name = cell.function.partition(":")
    function = getattr(importlib.import_module(module), name)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they would hide the progress bar
        value = function(data_dir=data_dir, **cell.params)
    answer = Answer(cell, value, time.perf_counter() - start)
    cache.put(answer, key)  # the key of the code that was asked, should a file change meanwhile
    return answer


def run_cells(
    cells: Sequence[Cell],
    *,
    cache: Cache,
    jobs: int = 1,
    data_dir: str | os.PathLike[str] | None = None,
    compute: bool = True,
) -> Iterator[Answer]:
    """Yield the answer of every cell, cached ones first, the others as they finish.

    Parameters
    ----------
    cells : sequence of Cell
    cache : Cache
    jobs : int, default=1
        Worker processes (joblib); 1 computes in this process.
    data_dir : path-like, optional
        Handed to the cells; not part of their identity, since the files are verified by checksum.
    compute : bool, default=True
        False gives what is cached and nothing else.
    """
    from joblib import Parallel, delayed

    waiting = []
    for cell in cells:
        stored = cache.get(cell)
        if stored is None:
            waiting.append(cell)
        else:
            yield stored
    if not compute:
        return
    directory = None if data_dir is None else os.fspath(data_dir)
    if jobs == 1 or len(waiting) < 2:
        for cell in waiting:
            yield _compute(cell, cell.key, cache, directory)
        return
    tasks = (delayed(_compute)(cell, cell.key, cache, directory) for cell in waiting)
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(tasks)
