"""Errors of the command line and their exit codes."""

from __future__ import annotations

import errno
from typing import Final

__all__ = ["CODES", "UsageError", "classify"]

# convention: exit codes as shells know them; 1: found something, 2: usage, 70: sysexits, 128 + n: signal n
OK: Final = 0
FOUND: Final = 1
USAGE: Final = 2
DATA: Final = 3
REFUSED: Final = 4
DISK: Final = 5
PACKAGE: Final = 6
INTERNAL: Final = 70
INTERRUPTED: Final = 130
TERMINATED: Final = 143

#: Exit codes and what they mean, as the help shows them.
CODES: Final = {
    OK: "success",
    FOUND: "inspect or check-loss has found something",
    USAGE: "wrong arguments",
    DATA: "the data cannot be read or fitted",
    REFUSED: "the model file is not trusted and was not opened",
    DISK: "a file could not be written",
    PACKAGE: "an optional package is missing",
    INTERNAL: "an error in selfpaced itself",
    INTERRUPTED: "interrupted by Ctrl-C (143: terminated); no incomplete file is left",
}


class UsageError(ValueError):
    """The arguments of the command do not fit together or do not fit the data."""


def classify(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the message of an error."""
    from selfpaced.persistence import UntrustedFileError
    from selfpaced.tables import TableError

    if isinstance(error, UsageError):
        return USAGE, str(error)
    if isinstance(error, UntrustedFileError):
        return REFUSED, str(error)
    if isinstance(error, TableError):
        return DATA, str(error)
    if isinstance(error, ModuleNotFoundError):  # an ImportError of the library names the extra
        return PACKAGE, f'the command line needs {error.name}: pip install "selfpaced[cli]"'
    if isinstance(error, ImportError):
        return PACKAGE, str(error)
    if isinstance(error, MemoryError):
        return DATA, "the table does not fit into memory"
    if isinstance(error, OSError):
        return DISK, _disk(error)
    if isinstance(error, ValueError | TypeError):
        return DATA, str(error)
    return INTERNAL, f"{type(error).__name__}: {error} (run again with --debug to see where)"


def _disk(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"no space left on the disk to write{where}; no incomplete file was left"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission to write{where}: {error.strerror}"
    return f"{error.strerror or error}{':' if where else ''}{where}"
