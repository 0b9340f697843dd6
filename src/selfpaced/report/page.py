"""From a summary to one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
import html
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..datasets import cache_directory
from ..formatting import number, solid_percent
from ..persistence import replacing
from .charts import charts
from .data import Summary
from .summarise import summarise


def report(
    fitted: Any,
    X: Any = None,
    y: Any = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    suspects: Any = None,
    cells: Any = None,
    title: str | None = None,
    note: str | None = None,
    notices: Sequence[str] = (),
    not_used: Sequence[tuple[str, str]] = (),
) -> ReportFile:
    """Write one HTML page about a fitted object: no network, no further files.

    Parameters
    ----------
    fitted : object
        A fitted estimator of this library, a Pipeline or search that ends in one, an audit, or a network as
        `selfpaced.torch.review` gives it.
    X, y : array-like, optional
        The data it was fitted on. They add the contributing columns and the cells of each row.
    path : path-like
        Output file; an existing file is replaced when the new one is complete.
    suspects : table, optional
        Shown instead of the library's own table of rows. Its column ``row`` holds index labels of the data if it is a
        data frame, else positions.
    cells : table, optional
        Table whose cells are shown, for example the raw table that X was made from; X by default.
    title : str, optional
        Heading; the estimator's class name by default.
    note : str, optional
        A sentence about the model, for example how it was chosen.
    notices : sequence of str
        Findings about the data before the fit.
    not_used : sequence of (column, reason)
        Columns of the data that the model does not use.

    Returns
    -------
    ReportFile
        The path of the page, which shows the page itself in a notebook.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from selfpaced import SelfPacedLinearRegression, report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X @ [1.0, 2.0] + 0.1 * rng.normal(size=100)
    >>> y[:20] += 30
    >>> model = SelfPacedLinearRegression().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(model, X, y, f"{folder}/report.html").name
    'report.html'
    """
    summary = summarise(
        fitted,
        X,
        y,
        suspects=suspects,
        cells=cells,
        title=title,
        note=note,
        notices=notices,
        not_used=not_used,
    )
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path must be in an existing folder, got {str(target)!r}")
    with replacing(target) as stream:
        stream.write(render(summary).encode())
    return ReportFile(target)


class ReportFile(type(Path())):  # type: ignore[misc]
    """The path of a report; a notebook shows the page in a frame."""

    def _repr_html_(self) -> str:
        page = html.escape(self.read_text(encoding="utf-8"), quote=True)
        frame = 'sandbox="allow-scripts allow-downloads" title="report" style="width: 100%; height: 40rem; border: 0"'
        return f'<iframe {frame} srcdoc="{page}"></iframe>'


def render(summary: Summary) -> str:
    """Return the page as text."""
    environment = _environment()
    table = summary.suspects
    data = {
        "charts": charts(summary),
        "table": None if table is None else [vars(column) for column in table.columns],
        "features": None if summary.features is None else vars(summary.features),
        "pictures": summary.pictures,
        "review": None if summary.review is None else vars(summary.review),
    }
    reviewed = [_asset("review.js")] if summary.review is not None and table else []
    scripts = [*([vega()] if data["charts"] else []), _asset("charts.js"), *reviewed, _asset("table.js")]
    page: str = environment.get_template("page.html.j2").render(
        s=summary,
        data=data,
        drawn=data["charts"],
        asset=_asset,
        scripts=scripts,
        policy=_policy(scripts),
    )
    return page


def _policy(scripts: list[Any]) -> str:
    """Content security policy: run these scripts only, show inline pictures, load nothing."""
    hashes = [base64.b64encode(hashlib.sha256(str(script).encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:  # pragma: no cover - depends on what is installed
        raise ImportError('the report needs Jinja2: pip install "selfpaced[report]"') from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("selfpaced.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["solid"] = solid_percent
    environment.filters["figure"] = _figure
    # compact, and an error rather than a NaN that no browser can parse
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":"), "sort_keys": False}
    return environment


def _figure(value: float, digits: int = 3) -> str:
    """A number as people write it, a dash if it is not known."""
    return number(float(value), digits) if math.isfinite(value) else "–"


@cache
def _asset(name: str) -> Any:
    """A style sheet or script of this package, which is trusted."""
    from markupsafe import Markup

    return Markup(files("selfpaced.report").joinpath("assets", name).read_text(encoding="utf-8"))


@cache
def vega() -> Any:
    """Return the script of Vega-Lite, which draws the figures: taken from the installed vl-convert package.

    Bundling takes a second or more, so the script is kept in the cache directory, under the version it was made by.
    """
    from markupsafe import Markup

    try:
        kept = cache_directory() / f"vega-{version('vl-convert-python')}.js"
    except PackageNotFoundError as error:
        raise ImportError('the report needs vl-convert-python: pip install "selfpaced[report]"') from error
    with suppress(OSError):  # not there yet, or not readable: make it
        return Markup(kept.read_text(encoding="utf-8"))
    import vl_convert

    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    with suppress(OSError):  # a cache that cannot be written only costs the second again
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replacing(kept) as stream:
            stream.write(script.encode())
    return Markup(script)
