"""Results on the disk: complete or not at all."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .console import Console
from .errors import UsageError
from .ledger import STAGE, alive, discard, locked, move, remove_abandoned, strangers

__all__ = ["check_target", "folder_name", "staged"]


def folder_name(text: str) -> Path:
    """The argument of ``--out``, which an unset variable of a script leaves empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must name a folder, got nothing")
    return Path(text)


@contextmanager
def staged(folder: Path, names: list[str], console: Console, *, force: bool = False) -> Iterator[Path]:
    """A hidden folder inside ``folder`` to write results into; they move out together at the end.

    Parameters
    ----------
    folder : Path
        Where the results go; made where it does not exist, and removed again where nothing came of it.
    names : list of str
        The files that will be written.
    console : Console
        Holds back interrupts while finished files change names.
    force : bool
        Replace files that no earlier run has written as they are now.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out must be a folder, got the file {str(folder)!r}")
    made = _make(folder)
    try:
        remove_abandoned(folder)
        _refuse_others(folder, names, force)
        stage = Path(tempfile.mkdtemp(prefix=STAGE, dir=folder))
        try:
            with alive(stage):
                yield stage
                with console.shield(), locked(folder):
                    _refuse_others(folder, names, force)
                    move(folder, stage)
            made = []
        except OSError as error:
            error.filename = str(folder)  # the hidden folder tells nobody anything
            raise
        finally:
            discard(folder, stage)
    finally:
        for parent in reversed(made):
            with suppress(OSError):
                parent.rmdir()


def _refuse_others(folder: Path, names: list[str], force: bool) -> None:
    """Files that are not as a run has written them are somebody's work, and folders are never replaced."""
    folders = [name for name in names if (folder / name).is_dir()]
    if folders:
        raise UsageError(f"{str(folder / folders[0])!r} is a folder where a file is to go; choose another --out")
    found = [] if force else strangers(folder, names)
    if found:
        raise UsageError(
            f"{str(folder / found[0])!r} exists and was not written by selfpaced, or was changed since; choose another "
            "--out, or --force"
        )


def _make(folder: Path) -> list[Path]:
    """Make a folder and give back the ones that did not exist before, outermost first."""
    missing = [p for p in [folder, *folder.parents] if not p.exists()][::-1]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def check_target(out: Path, source: Path | None, *, force: bool) -> None:
    """Refuse to write a table over the one it came from, or over any other by accident."""
    if source is not None and out.exists() and out.samefile(source):
        raise UsageError(f"--out is the data itself ({str(source)!r}); a table is never changed in place")
    if out.is_dir():
        raise UsageError(f"--out must be a file, got the folder {str(out)!r}")
    if out.exists() and not force:
        raise UsageError(f"{str(out)!r} exists; choose another --out, or --force")
    if not out.parent.is_dir():
        raise UsageError(f"--out must be in an existing folder, got {str(out)!r}")
