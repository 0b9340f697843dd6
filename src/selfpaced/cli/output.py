"""Results on the disk: complete or not at all."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .console import Console
from .errors import UsageError

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
        Replace files that no earlier run has written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out must be a folder, got the file {str(folder)!r}")
    folders = [name for name in names if (folder / name).is_dir()]
    if folders:
        raise UsageError(f"{str(folder / folders[0])!r} is a folder where a file is to go; choose another --out")
    old = [name for name in names if (folder / name).exists()]
    if old and not force and not _ours(folder):
        raise UsageError(
            f"{str(folder / old[0])!r} exists and was not written by selfpaced; choose another --out, or --force"
        )
    made = _make(folder)
    try:
        stage = Path(tempfile.mkdtemp(prefix=".selfpaced-", dir=folder))
        try:
            yield stage
            with console.shield():
                for path in sorted(stage.iterdir()):
                    os.replace(path, folder / path.name)
            made = []
        except OSError as error:
            error.filename = str(folder)  # the hidden folder tells nobody anything
            raise
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    finally:
        for parent in reversed(made):
            with suppress(OSError):
                parent.rmdir()


def _ours(folder: Path) -> bool:
    """Whether an earlier run has written into this folder."""
    try:
        found = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and isinstance(found.get("selfpaced"), str)


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
