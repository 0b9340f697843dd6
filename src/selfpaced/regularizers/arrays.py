"""How an elementwise formula meets an array: namespaces, validation, blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import array_api_compat
import numpy as np

Array = Any  # a NumPy, torch or JAX array, or a scalar: whatever speaks the array API
Formula = Callable[[Any, Array, Any], Array]

# Blocks of 256 kB stay in the cache, so that the passes of a formula cost one trip to memory and no large
# temporary: on 1e7 samples this is faster than the bare expression.
BLOCK_VALUES = 1 << 15


def namespace(values: Array) -> tuple[Any, Array]:
    """The array namespace of ``values`` and the values as a real floating array of it."""
    if not array_api_compat.is_array_api_obj(values) or array_api_compat.is_numpy_array(values):
        array = np.asarray(values)
        if array.dtype.kind in "OUSMmVc":
            raise TypeError(f"expected real numbers, got an array of dtype {array.dtype}")
        return np, array if array.dtype.kind == "f" else array.astype(np.float64)
    xp = array_api_compat.array_namespace(values)
    if not xp.isdtype(values.dtype, "real floating"):
        values = xp.astype(values, xp.float64)
    return xp, values


def elementwise(
    formula: Formula, values: Array, lam: Any, *, what: str, lam_range: tuple[float, float] = (0.0, math.inf)
) -> Array:
    """Validate, then evaluate ``formula(xp, values, lam)`` on every element.

    Scalars come back as scalars, float32 stays float32, and no floating-point warning escapes: the formulas
    are written for the limits they pass through.
    """
    xp, array = namespace(values)
    lam = _valid_lam(xp, array, lam, lam_range)
    if xp is not np:
        _refuse_negative(xp, array, what)
        return formula(xp, array, lam)
    with np.errstate(all="ignore"):
        blocked = array.size > BLOCK_VALUES and not np.ndim(lam)
        result = _in_blocks(formula, array, lam, what) if blocked else _at_once(formula, array, lam, what)
    return result[()]


def _at_once(formula: Formula, array: Array, lam: Any, what: str) -> Array:
    _refuse_negative(np, array, what)
    return np.asarray(formula(np, array, lam))


def _in_blocks(formula: Formula, array: Array, lam: float, what: str) -> Array:
    flat = np.ravel(array)
    out = np.empty_like(flat)
    for start in range(0, flat.size, BLOCK_VALUES):
        block = flat[start : start + BLOCK_VALUES]
        _refuse_negative(np, block, what, offset=start)
        out[start : start + BLOCK_VALUES] = formula(np, block, lam)
    return out.reshape(array.shape)


def _refuse_negative(xp: Any, array: Array, what: str, offset: int = 0) -> None:
    if 0 in array.shape or bool(xp.min(array) >= 0):  # a NaN makes the minimum NaN, and the comparison False
        return
    flat = xp.reshape(array, (-1,))
    index = int(xp.argmax(xp.astype(~(flat >= 0), xp.int8)))
    raise ValueError(f"every {what} must be >= 0 and not NaN, got {float(flat[index])!r} at position {index + offset}")


def _valid_lam(xp: Any, array: Array, lam: Any, lam_range: tuple[float, float]) -> Any:
    low, high = lam_range
    info = xp.finfo(array.dtype)
    if np.ndim(lam) == 0:
        lam = float(lam)
        if not (low < lam < high or lam == high == math.inf):
            raise ValueError(f"lam must be in ({low:g}, {high:g}), got {lam!r}")
        # lam = inf is the plain model; a finite stand-in keeps inf * 0 out of the formulas.
        return min(max(lam, float(info.smallest_normal)), float(info.max))
    lam = xp.asarray(lam, dtype=array.dtype)
    inside = (lam > low) & ((lam < high) | (high == math.inf))
    if not bool(xp.all(inside)):
        worst = xp.reshape(lam, (-1,))[int(xp.argmax(xp.astype(~xp.reshape(inside, (-1,)), xp.int8)))]
        raise ValueError(f"every lam must be in ({low:g}, {high:g}), got {float(worst)!r}")
    return xp.clip(lam, float(info.smallest_normal), float(info.max))
