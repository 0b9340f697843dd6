"""Pictures of suspects, if the cells beside them are paths of image files."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["pictures_of"]

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")
MOST_PICTURES = 200  # cost: images that are opened
SIDE_OF_PICTURE = 64  # display: the longer side, in pixels


def pictures_of(cells: Any, rows: NDArray[np.intp]) -> tuple[NDArray[np.uint8], ...]:
    """Small pictures of some rows in this order, from the first column of image paths; none without Pillow."""
    if not hasattr(cells, "columns") or not len(rows) or find_spec("PIL") is None:
        return ()
    for place in range(cells.shape[1]):
        paths = [str(value) for value in cells.iloc[rows[:MOST_PICTURES], place]]
        if all(path.lower().endswith(IMAGE_SUFFIXES) and Path(path).is_file() for path in paths):
            return tuple(_small(path) for path in paths)
    return ()


def _small(path: str) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(path) as image:
        image.thumbnail((SIDE_OF_PICTURE, SIDE_OF_PICTURE))
        return np.asarray(image.convert("RGB"), dtype=np.uint8)
