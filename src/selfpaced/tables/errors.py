"""What is wrong with a file, and where."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["TableError", "TableWarning", "suggestion"]


class TableError(ValueError):
    """A file that cannot be read as a table.

    Attributes
    ----------
    path : Path
        The file.
    line : int or None
        The line, from 1, where it breaks.
    """

    def __init__(self, path: str | os.PathLike[str], message: str, line: int | None = None) -> None:
        self.path, self.line = Path(path), line
        where = f"{self.path}:{line}" if line is not None else f"{self.path}"
        super().__init__(f"{where}: {message}")


class TableWarning(UserWarning):
    """Something in a table was left out or read in a particular way."""


def suggestion(name: str, known: Iterable[Any]) -> str:
    """Return ``"; did you mean ...?"`` for a name that is nearly one of the known ones, else the known ones.

    >>> suggestion("lable", ["label", "age"])
    "; did you mean 'label'?"
    """
    names = [str(other) for other in known]
    folded = {other.casefold().strip(): other for other in names}
    near = difflib.get_close_matches(str(name).casefold().strip(), list(folded), n=1, cutoff=0.5)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; its columns are {shown}"
