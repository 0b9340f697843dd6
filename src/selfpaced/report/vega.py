"""The JavaScript of Vega-Lite, which draws the figures in the page: taken from the installed vl-convert package."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..datasets import cache_directory

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


@cache
def vega() -> Any:
    """The bundled script, which is trusted and goes into the page as it is.

    Bundling takes a second or more, so the script is kept in the cache directory, under the version it was made by.
    """
    from markupsafe import Markup

    try:
        kept = cache_directory() / f"vega-{version('vl-convert-python')}.js"
    except PackageNotFoundError as error:
        raise ImportError('the report needs vl-convert-python: pip install "selfpaced[report]"') from error
    try:
        return Markup(kept.read_text(encoding="utf-8"))
    except OSError:  # not there yet, or not readable: make it
        pass
    import vl_convert

    script = vl_convert.javascript_bundle(_SNIPPET)
    _keep(kept, script)
    return Markup(script)


def _keep(target: Path, script: str) -> None:
    """Write it whole or not at all; a cache that cannot be written only costs the second again."""
    part = target.with_suffix(f".{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(script, encoding="utf-8")
        part.replace(target)
    except OSError:
        with suppress(OSError):  # the folder may be no folder, or not ours
            part.unlink(missing_ok=True)
