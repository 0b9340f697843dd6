"""The command line: ``selfpaced``, the same as ``python -m selfpaced``."""

from .app import main

__all__ = ["main"]
