"""Small pictures of rows, inline in the page as PNG."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIDE = 64  # display: the longer side of a thumbnail, in pixels
THUMBNAIL_BYTES = 1_000_000  # cost: of all thumbnails of a page together; those that come after are left out


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
