"""Results on disk: all files of a run appear together or not at all.

A run writes into a hidden folder inside its output folder. A record is saved before the first file moves, so that the
next command can finish the moves of a run that was killed. The record also holds the hash of every file that was
written: a file with another content belongs to the user and is not overwritten.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UsageError

if TYPE_CHECKING:
    from .console import Console

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks: two runs into one folder are not kept apart
    fcntl = None  # type: ignore[assignment]

__all__ = ["DECISIONS", "RECORD", "check_target", "folder_name", "locked", "remove_abandoned", "settle", "staged"]

RECORD = ".selfpaced.json"  # convention: hidden, beside the results
STAGE = ".selfpaced-"  # convention: prefix of the folders of unfinished runs
DECISIONS = "decisions.csv"  # convention: the user's decisions


def folder_name(text: str) -> Path:
    """Parse the argument of ``--out``; an unset shell variable leaves it empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must name a folder, got an empty text")
    return Path(text)


def check_target(out: Path, source: Path | None, *, force: bool) -> None:
    """Refuse to write over the input, or over any other file without ``--force``."""
    if source is not None and out.exists() and out.samefile(source):
        raise UsageError(f"--out is the input itself ({str(source)!r}); a table is never changed in place")
    if out.is_dir():
        raise UsageError(f"--out must be a file, got the folder {str(out)!r}")
    if out.exists() and not force:
        raise UsageError(f"{str(out)!r} exists; choose another --out, or use --force")
    if not out.parent.is_dir():
        raise UsageError(f"--out must be in an existing folder, got {str(out)!r}")


@contextmanager
def staged(folder: Path, names: list[str], console: Console, *, force: bool = False) -> Iterator[Path]:
    """Yield a hidden folder inside ``folder`` to write results into; they move out together at the end.

    Parameters
    ----------
    folder : Path
        Output folder. It is created if needed, and removed again if the run fails.
    names : list of str
        The files that will be written.
    console : Console
        Holds back interrupts while files move.
    force : bool
        Overwrite files that selfpaced did not create or that were changed since.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out must be a folder, got the file {str(folder)!r}")
    made = [parent for parent in [folder, *folder.parents] if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        remove_abandoned(folder)
        _refuse_foreign(folder, names, force)
        stage = Path(tempfile.mkdtemp(prefix=STAGE, dir=folder))
        try:
            with _alive(stage):
                yield stage
                with console.shield(), locked(folder):
                    _refuse_foreign(folder, names, force)
                    _move(folder, stage)
            made = []
        except OSError as error:
            error.filename = str(folder)  # the name of the hidden folder would not help
            raise
        finally:
            _discard(folder, stage)
    finally:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()


def settle(folder: Path) -> None:
    """Finish the moves of a run that was killed, so that all files are from one run."""
    if not _read(folder).moving:
        return
    try:
        with locked(folder):
            _finish(folder)
    except OSError as error:
        raise UsageError(
            f"{str(folder)!r} holds files of two runs, because one was killed while it moved its files, and this "
            f"cannot be repaired: {error.strerror}; run selfpaced fit into another folder"
        ) from error


def remove_abandoned(folder: Path) -> None:
    """Finish what a killed run has begun, and remove what it has left behind."""
    settle(folder)
    if fcntl is None:  # pragma: no cover
        return
    with locked(folder):
        for name in (RECORD, DECISIONS):
            for part in folder.glob(f".{name}.*.part"):
                part.unlink(missing_ok=True)
        for stage in folder.glob(f"{STAGE}*"):
            with suppress(OSError):
                handle = os.open(stage, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its run is alive
                    _discard(folder, stage)
                finally:
                    os.close(handle)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder while files in it change."""
    if fcntl is None:  # pragma: no cover
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _alive(stage: Path) -> Iterator[None]:
    """Lock a run's own folder as long as the process lives, however it ends."""
    handle = os.open(stage, os.O_RDONLY) if fcntl is not None else None
    try:
        if handle is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _refuse_foreign(folder: Path, names: list[str], force: bool) -> None:
    """Refuse to replace folders, and without ``--force`` files that selfpaced did not write as they are now."""
    folders = [name for name in names if (folder / name).is_dir()]
    if folders:
        raise UsageError(f"{str(folder / folders[0])!r} is a folder, but a file of this name is needed")
    found = [] if force else _foreign(folder, names)
    if found:
        raise UsageError(
            f"{str(folder / found[0])!r} exists and was not written by selfpaced, or was changed since; choose another "
            "--out, or use --force"
        )


# -------------------------------------------------------------------------------------------------- the record


@dataclass
class _Record:
    """Hashes of the files that runs have written, the folder that files move from, and files to remove with them."""

    files: dict[str, list[str]] = field(default_factory=dict)
    moving: str = ""
    leaving: list[str] = field(default_factory=list)


def _foreign(folder: Path, names: Iterable[str]) -> list[str]:
    known = _read(folder).files
    return [name for name in names if (folder / name).exists() and _digest(folder / name) not in known.get(name, [])]


def _move(folder: Path, stage: Path) -> None:
    """Move the files of a run into its folder, whose lock is held.

    Unchanged files of an earlier run that this run did not write are removed: a page about another model would be
    misleading. Decisions stay.
    """
    _finish(folder)
    record, made = _read(folder), sorted(stage.iterdir())
    unchanged = set(record.files) - set(_foreign(folder, record.files))
    for path in made:
        before = record.files.get(path.name, []) if path.name in unchanged else []
        record.files[path.name] = [*before, _digest(path)]
    record.moving, record.leaving = stage.name, sorted(unchanged - {path.name for path in made} - {DECISIONS})
    _write(folder, record)
    _finish(folder)


def _finish(folder: Path) -> None:
    """Do what the record says, from any state in which it may have stopped."""
    record = _read(folder)
    if not record.moving:
        return
    stage = folder / record.moving
    for path in sorted(stage.glob("*")):
        if _digest(path) in record.files.get(path.name, []):
            os.replace(path, folder / path.name)
    for name in record.leaving:
        if not _foreign(folder, [name]):
            (folder / name).unlink(missing_ok=True)
    found = {name: _digest(folder / name) for name in record.files if (folder / name).exists()}
    _write(folder, _Record({name: [digest] for name, digest in found.items() if digest in record.files[name]}))
    shutil.rmtree(stage, ignore_errors=True)


def _discard(folder: Path, stage: Path) -> None:
    """Remove the folder of a run, unless its files are already moving: the next command finishes that."""
    if _read(folder).moving != stage.name:
        shutil.rmtree(stage, ignore_errors=True)


def _read(folder: Path) -> _Record:
    """The record of a folder; empty if it is absent or malformed, because the folder may come from anybody."""
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        files = {_plain(name): [str(digest) for digest in digests] for name, digests in found["files"].items()}
        moving = found.get("moving") and _plain(found["moving"])
        if moving and not moving.startswith(STAGE):
            raise ValueError(f"not a folder of an unfinished run: {moving!r}")
        return _Record(files, moving or "", [_plain(name) for name in found.get("leaving", [])])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _Record()


def _plain(name: Any) -> str:
    """The name of something in the folder itself."""
    if not isinstance(name, str) or name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise ValueError(f"not a file name: {name!r}")
    return name


def _write(folder: Path, record: _Record) -> None:
    from selfpaced.persistence import replacing

    with replacing(folder / RECORD) as stream:
        stream.write(json.dumps(asdict(record), indent=1).encode())


def _digest(path: Path) -> str:
    if not path.is_file():  # a pipe would never end
        return ""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
