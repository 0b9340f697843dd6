"""Where files are kept that can be made or downloaded again."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

__all__ = ["cache_directory"]


def cache_directory() -> Path:
    """Return the directory of kept files: ``SELFPACED_CACHE``, else the platform's cache directory.

    >>> bool(cache_directory().name)
    True
    """
    chosen = os.environ.get("SELFPACED_CACHE")
    return Path(chosen) if chosen else user_cache_path("selfpaced", appauthor=False)
