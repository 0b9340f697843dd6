"""From tables of any kind (data frames, dicts, records, arrays) to columns of plain cells; pictures of rows."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import Cell, Features, ReportColumn, ReportTable

LABELS = {
    "row": "Row",
    "column": "Column",
    "line": "Line",
    "given": "Given",
    "value": "Value",
    "expected": "Expected",
    "level": "Level",
    "residual": "Residual",
    "weight": "Weight",
    "noise_probability": "Wrong",
    "loss": "Loss",
    "cluster": "Cluster",
    "outlier": "Outlier",
    "why": "Why",
    "against": "Because of",
}
_TEXT_LIMIT = 300  # display: characters of a cell
SIDE = 64  # display: the longer side of a thumbnail, in pixels
THUMBNAIL_BYTES = 1_000_000  # cost: of all thumbnails of a page together; those that come after are left out


def as_columns(table: Any) -> dict[str, Sequence[Any]]:
    """Any table as a dict of columns.

    Parameters
    ----------
    table : data frame, mapping of columns, or what pandas makes a data frame of

    Examples
    --------
    >>> as_columns([{"row": 3, "weight": 0.5}, {"row": 1, "weight": 1.0}])["row"].tolist()
    [3, 1]
    """
    if isinstance(table, Mapping):
        return {str(name): values for name, values in table.items()}
    if not hasattr(table, "columns"):
        import pandas as pd  # takes a second

        table = pd.DataFrame(table)
    return {str(name): table[name] for name in table.columns}


def cell(value: Any, digits: int = 6) -> Cell:
    """A scalar that JSON can hold: numbers stay numbers (rounded), NaN is None, everything else is text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return None if value is None else str(value).lower()
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)  # a browser's numbers are doubles
    if isinstance(value, float):
        if not math.isfinite(value):
            return None if math.isnan(value) else str(value)
        return float(f"{value:.{digits}g}")
    text = str(value)
    if hasattr(value, "isoformat"):  # a date without a time, as people write it
        text = text.removesuffix("+00:00").removesuffix(" 00:00:00")
    if text in ("NaT", "<NA>"):
        return None
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"


def make_table(table: Any, *, limit: int) -> ReportTable:
    """A table of at most ``limit`` rows, in the order given, without its empty columns."""
    columns = as_columns(table)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"the columns of a table must have one length, got {sorted(lengths)}")
    length = lengths.pop() if lengths else 0
    made = [_column(key, values, limit) for key, values in columns.items()]
    filled = [column for column in made if any(value is not None for value in column.values)]
    return ReportTable(tuple(filled or made), length)


def _column(key: str, values: Any, limit: int) -> ReportColumn:
    plain = [cell(value) for value in _head(values, limit)]
    kinds = {type(value) for value in plain if value is not None}
    if kinds == {int}:
        kind = "integer"
    elif kinds and kinds <= {int, float}:
        kind = "number"
        if key.endswith(("weight", "probability")) and all(v is None or 0 <= v <= 1 for v in plain):  # type: ignore[operator]
            kind = "weight"
    else:
        kind = "text"
        plain = [value if value is None else str(value) for value in plain]
    return ReportColumn(key, LABELS.get(key, key.replace("_", " ").capitalize()), kind, plain)


def _head(values: Any, limit: int) -> Any:
    if hasattr(values, "iloc"):  # a pandas column: positions, not labels
        return values.iloc[:limit].tolist()
    values = values[:limit]
    return values.tolist() if hasattr(values, "tolist") else list(values)


def feature_rows(X: Any, rows: Sequence[int], names: Any = None, *, limit: int, most: int = 40) -> Features | None:
    """The cells of ``X`` in the first ``limit`` of these rows, at most ``most`` columns; None if X is no table."""
    rows = list(rows[:limit])
    if hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
        taken = X.iloc[rows, :most] if hasattr(X, "iloc") else X[rows, :most]
        picked = list(zip(*(list(_head(taken[name], limit)) for name in taken.columns), strict=True))
    elif hasattr(X, "tocsr"):
        picked = X.tocsr()[rows, :most].toarray().tolist()
    elif getattr(X, "ndim", 0) == 2:
        picked = np.asarray(X)[rows, :most].tolist()
    else:
        return None
    width = int(X.shape[1])
    if names is None or len(names) != width:
        names = [f"x{j}" for j in range(min(width, most))]
    made = tuple(tuple(cell(value) for value in row) for row in picked)
    return Features(tuple(str(name) for name in names[:most]), made, max(0, width - most))


def key_of(name: Hashable) -> str:
    """A view's name as text, "view 0" for a bare number."""
    return f"view {name}" if isinstance(name, int | np.integer) else str(name)


# ------------------------------------------------------------------------------------------------------ pictures


def thumbnails(pictures: Sequence[Any]) -> tuple[str, ...]:
    """Return pictures [H, W], [H, W, C] or [C, H, W] as data URLs, as many of the first as a page can hold.

    Bytes and values in [0, 1] are shown as they are; others, as a network is fed with them, share one scale from
    their least to their largest value. Without Pillow there are no pictures.

    >>> thumbnails([np.zeros((2, 2), dtype=np.uint8)])[0][:30]
    'data:image/png;base64,iVBORw0K'
    """
    try:
        from PIL import Image
    except ImportError:  # pragma: no cover - depends on what is installed
        return ()
    arrays = [_channels_last(np.asarray(picture)) for picture in pictures]
    known = np.concatenate([np.zeros(0), *(part[np.isfinite(part)] for part in arrays if part.dtype != np.uint8)])
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    out: list[str] = []
    left = THUMBNAIL_BYTES
    for part in arrays:
        if part.dtype != np.uint8:
            scaled = (np.nan_to_num(part, nan=low) - low) / max(high - low, 1e-12)
            part = np.rint(255 * scaled.clip(0, 1)).astype(np.uint8)
        image, file = Image.fromarray(part[:, :, 0] if part.shape[2] == 1 else part), io.BytesIO()
        image.thumbnail((SIDE, SIDE))
        image.save(file, format="PNG")
        out.append("data:image/png;base64," + base64.b64encode(file.getvalue()).decode())
        left -= len(out[-1])
        if left < 0:
            return tuple(out[:-1])
    return tuple(out)


def _channels_last(picture: NDArray[Any]) -> NDArray[Any]:
    if picture.ndim == 2:
        return picture[:, :, None]
    if picture.ndim == 3 and picture.shape[-1] in (1, 3, 4):
        return picture
    if picture.ndim == 3 and picture.shape[0] in (1, 3, 4):
        return np.moveaxis(picture, 0, -1)
    raise ValueError(f"a picture must be [H, W], [H, W, C] or [C, H, W] with 1, 3 or 4 channels, got {picture.shape}")
