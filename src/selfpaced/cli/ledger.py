"""Which files in a folder a run has written, by their content; and one run at a time that moves files there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks; there runs of one folder are not kept apart
    fcntl = None  # type: ignore[assignment]

__all__ = ["LEDGER", "STAGE", "alive", "locked", "note", "remove_abandoned", "strangers"]

LEDGER = ".selfpaced.json"  # convention: hidden, beside the results
STAGE = ".selfpaced-"  # convention: how folders of runs that are under way begin


def strangers(folder: Path, names: Iterable[str]) -> list[str]:
    """Files of these names that no run has written as they are now."""
    known = _known(folder)
    return [name for name in names if (folder / name).exists() and _digest(folder / name) not in known.get(name, [])]


def note(folder: Path, made: Iterable[Path]) -> None:
    """Remember files that are about to be moved into a folder, beside those that are there.

    It is written first, so that a run that is killed among the moves leaves nothing that its successor does not know.
    """
    from selfpaced.persistence import replacing

    known = _known(folder)
    for path in made:
        there = [_digest(folder / path.name)] if (folder / path.name).is_file() else []
        known[path.name] = [*(d for d in there if d in known.get(path.name, [])), _digest(path)]
    with replacing(folder / LEDGER) as stream:
        stream.write(json.dumps({"files": known}, indent=1).encode())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """While one run moves its files into a folder, another one waits."""
    if fcntl is None:  # pragma: no cover
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems know no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def alive(stage: Path) -> Iterator[None]:
    """A sign in a run's own folder that somebody is at work; it goes with the process, however that ends."""
    handle = os.open(stage, os.O_RDONLY) if fcntl is not None else None
    try:
        if handle is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def remove_abandoned(folder: Path) -> None:
    """Remove what runs that were killed have left behind."""
    if fcntl is None:  # pragma: no cover
        return
    for stage in folder.glob(f"{STAGE}*"):
        with suppress(OSError):
            handle = os.open(stage, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its run is alive
                shutil.rmtree(stage, ignore_errors=True)
            finally:
                os.close(handle)


def _known(folder: Path) -> dict[str, list[str]]:
    """Name -> contents that runs have written; nothing where the ledger is absent or odd."""
    try:
        found = json.loads((folder / LEDGER).read_text(encoding="utf-8"))["files"]
        return {str(name): [str(digest) for digest in digests] for name, digests in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _digest(path: Path) -> str:
    if not path.is_file():  # a pipe would never end
        return ""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
