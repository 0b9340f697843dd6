"""What is wrong with a file, and where."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["TableError", "TableWarning"]


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
