"""Which files in a folder a run has written, by their content; and runs that move files there, one at a time and whole.

The ledger is written before the first file moves, and says which folder of finished files they come from: whoever
comes next ends what a run that was killed among its moves has begun.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .errors import UsageError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks; there runs of one folder are not kept apart
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "DECISIONS",
    "LEDGER",
    "STAGE",
    "alive",
    "discard",
    "locked",
    "move",
    "remove_abandoned",
    "settle",
    "strangers",
]

LEDGER = ".selfpaced.json"  # convention: hidden, beside the results
STAGE = ".selfpaced-"  # convention: how folders of runs that are under way begin
DECISIONS = "decisions.csv"  # convention: what a person has decided


def strangers(folder: Path, names: Iterable[str]) -> list[str]:
    """Files of these names that no run has written as they are now."""
    known = _read(folder).files
    return [name for name in names if (folder / name).exists() and _digest(folder / name) not in known.get(name, [])]


@dataclass
class _Ledger:
    """Contents that runs have written, by name; the folder that files are moving from, and what leaves with them."""

    files: dict[str, list[str]] = field(default_factory=dict)
    moving: str = ""
    leaving: list[str] = field(default_factory=list)


def move(folder: Path, stage: Path) -> None:
    """Move the files of a run into its folder, whose lock is held.

    What an earlier run has written there, nobody has changed since and this run has not made leaves: a page about
    another model would be taken for this one's. Decisions stay: they are a person's, and each knows its row.
    """
    _finish(folder)
    ledger, made = _read(folder), sorted(stage.iterdir())
    unchanged = set(ledger.files) - set(strangers(folder, ledger.files))
    for path in made:
        there = ledger.files.get(path.name, []) if path.name in unchanged else []
        ledger.files[path.name] = [*there, _digest(path)]
    ledger.moving, ledger.leaving = stage.name, sorted(unchanged - {path.name for path in made} - {DECISIONS})
    _write(folder, ledger)
    _finish(folder)


def settle(folder: Path) -> None:
    """Finish what a run that was killed among its moves has begun, so that all files are of one run."""
    if not _read(folder).moving:
        return
    try:
        with locked(folder):
            _finish(folder)
    except OSError as error:
        raise UsageError(
            f"{str(folder)!r} holds files of two runs, since one was killed while it moved its own there, and they "
            f"cannot be put in order: {error.strerror}; run selfpaced fit into another folder"
        ) from error


def _finish(folder: Path) -> None:
    """Do what the ledger says is being done, from wherever it has come to."""
    ledger = _read(folder)
    if not ledger.moving:
        return
    stage = folder / ledger.moving
    for path in sorted(stage.glob("*")):
        if _digest(path) in ledger.files.get(path.name, []):
            os.replace(path, folder / path.name)
    for name in ledger.leaving:
        if not strangers(folder, [name]):
            (folder / name).unlink(missing_ok=True)
    there = {name: _digest(folder / name) for name in ledger.files if (folder / name).exists()}
    _write(folder, _Ledger({name: [digest] for name, digest in there.items() if digest in ledger.files[name]}))
    shutil.rmtree(stage, ignore_errors=True)


def discard(folder: Path, stage: Path) -> None:
    """Remove what a run has prepared, unless its files are on their way out: then the next one moves the rest."""
    if _read(folder).moving != stage.name:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """While one moves files into a folder or changes them there, another one waits."""
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
    """Finish what a run that was killed has begun, and remove what others have left behind."""
    settle(folder)
    if fcntl is None:  # pragma: no cover
        return
    with locked(folder):  # nobody begins to move or write meanwhile
        for name in (LEDGER, DECISIONS):
            for part in folder.glob(f".{name}.*.part"):
                part.unlink(missing_ok=True)
        for stage in folder.glob(f"{STAGE}*"):
            with suppress(OSError):
                handle = os.open(stage, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its run is alive
                    discard(folder, stage)
                finally:
                    os.close(handle)


def _read(folder: Path) -> _Ledger:
    """The ledger of a folder; empty where it is absent or odd, since the folder may come from anybody."""
    try:
        found = json.loads((folder / LEDGER).read_text(encoding="utf-8"))
        files = {_plain(name): [str(digest) for digest in digests] for name, digests in found["files"].items()}
        moving = found.get("moving") and _plain(found["moving"])
        if moving and not moving.startswith(STAGE):
            raise ValueError(f"no folder of ours: {moving!r}")
        return _Ledger(files, moving or "", [_plain(name) for name in found.get("leaving", [])])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _Ledger()


def _plain(name: Any) -> str:
    """The name of something in the folder itself."""
    if not isinstance(name, str) or name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise ValueError(f"no name of a file: {name!r}")
    return name


def _write(folder: Path, ledger: _Ledger) -> None:
    from selfpaced.persistence import replacing

    with replacing(folder / LEDGER) as stream:
        stream.write(json.dumps(asdict(ledger), indent=1).encode())


def _digest(path: Path) -> str:
    if not path.is_file():  # a pipe would never end
        return ""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
