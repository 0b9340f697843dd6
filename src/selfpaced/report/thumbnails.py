"""Small pictures of rows, inline in the page as PNG: NumPy and zlib write them."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

SIDE = 64  # display: the longer side of a thumbnail, in pixels
MOST_BYTES = 1_000_000  # cost: of all thumbnails of a page together; those that come after are left out
_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # convention: what PNG calls grey, grey + alpha, RGB, RGB + alpha


def thumbnails(pictures: Sequence[Any]) -> tuple[str, ...]:
    """Pictures [H, W], [H, W, C] or [C, H, W] as data URLs, as many of the first as a page can hold.

    Bytes and values in [0, 1] are shown as they are; others, as a network is fed with them, share one scale from
    their least to their largest value.

    >>> thumbnails([np.zeros((2, 2), dtype=np.uint8)])[0][:30]
    'data:image/png;base64,iVBORw0K'
    """
    small = [_shrunk(_channels_last(np.asarray(picture))) for picture in pictures]
    finite = [part[np.isfinite(part)] for part in small]
    low = min((float(part.min()) for part in finite if part.size), default=0.0)
    high = max((float(part.max()) for part in finite if part.size), default=1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    out: list[str] = []
    left = MOST_BYTES
    for part, picture in zip(small, pictures, strict=True):
        ends = (0.0, 255.0) if np.asarray(picture).dtype == np.uint8 else (low, high)
        scaled = (np.nan_to_num(part, nan=low) - ends[0]) / max(ends[1] - ends[0], 1e-12)
        url = "data:image/png;base64," + base64.b64encode(png(np.rint(255 * scaled.clip(0, 1)))).decode()
        left -= len(url)
        if left < 0:
            break
        out.append(url)
    return tuple(out)


def is_picture(shape: tuple[int, ...]) -> bool:
    """Whether an array of this shape can be shown: one, three or four channels, first or last, or none.

    >>> is_picture((3, 32, 32)), is_picture((28, 28)), is_picture((7, 9, 9)), is_picture((64,))
    (True, True, False, False)
    """
    return len(shape) == 2 or (len(shape) == 3 and (shape[0] in (1, 3, 4) or shape[-1] in (1, 3, 4)))


def png(pixels: Any) -> bytes:
    """An image file of pixels [H, W, C] with levels 0 to 255."""
    data: Pixels = np.ascontiguousarray(pixels, dtype=np.uint8)
    height, width, channels = data.shape
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    lines = np.zeros((height, 1 + width * channels), dtype=np.uint8)  # each begins with its filter: none
    lines[:, 1:] = data.reshape(height, -1)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _channels_last(picture: NDArray[Any]) -> NDArray[np.float64]:
    if not is_picture(picture.shape):
        raise ValueError(
            f"a picture must be [H, W], [H, W, C] or [C, H, W] with 1, 3 or 4 channels, got {picture.shape}"
        )
    if picture.ndim == 2:
        picture = picture[:, :, None]
    elif picture.shape[0] in (1, 3, 4) and picture.shape[-1] not in (1, 3, 4):
        picture = np.moveaxis(picture, 0, -1)
    return np.asarray(picture, dtype=np.float64)


def _shrunk(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of blocks, so that no side is longer than a thumbnail's."""
    step = -(-max(picture.shape[:2]) // SIDE)
    if step <= 1:
        return picture
    height, width, channels = picture.shape
    rows, columns = -(-height // step), -(-width // step)
    # the last blocks are filled up with the edge
    padded = np.pad(picture, ((0, rows * step - height), (0, columns * step - width), (0, 0)), mode="edge")
    return np.asarray(padded.reshape(rows, step, columns, step, channels).mean(axis=(1, 3)))
