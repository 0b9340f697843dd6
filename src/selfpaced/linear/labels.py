"""Labels as the places of their classes, without sorting all of them where that can be avoided."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ..arguments import check_label_array
from ..assessment import Array
from ._loss import Codes

__all__ = ["encoded", "told"]

FEW_TEXTS = 16  # cost: different labels up to which looking for each takes less time than sorting all rows


def encoded(y: Any) -> tuple[Array, Codes]:
    """The labels, and the place of each row's among them."""
    if y.dtype.kind in "iu" and int(y.max()) - int(y.min()) < len(y) // 2:
        # Small numbers are counted in a fraction of the time that it takes to find out which there are.
        wide = y if y.dtype.kind == "u" else y.astype(np.intp, copy=False)  # differences need a bit more than labels
        places = (wide - wide.min()).astype(np.intp, copy=False)
        there = np.bincount(places) > 0
        classes = np.flatnonzero(there).astype(y.dtype) + y.min()
        codes = places if there.all() else (np.cumsum(there) - 1)[places]
    else:
        check_label_array(y)
        with np.errstate(invalid="ignore"):  # it casts labels to integers, however large they are
            check_classification_targets(y)
        classes, codes = _texts(y) if y.dtype.kind == "U" else np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least 2 classes; the data contains only one class: {told(classes[0])}")
    return classes, codes.astype(np.intp, copy=False)


def _texts(y: Any) -> tuple[Array, Codes]:
    """Texts; where few differ, rows are compared with each of them and need no sorting."""
    classes = np.unique(y)
    if len(classes) > FEW_TEXTS:
        return np.unique(y, return_inverse=True)
    codes = np.zeros(len(y), dtype=np.intp)
    for place, label in enumerate(classes[1:], 1):
        codes[y == label] = place
    return classes, codes


def told(label: Any) -> str:
    """A label as people write it."""
    return repr(np.asarray(label).item())
