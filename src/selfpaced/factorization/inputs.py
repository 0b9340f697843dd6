"""Every accepted input as one CSR matrix of observed entries, its labels, and the way back to the input's layout."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..fitting import check_size
from ..parameters import speaking_of
from .engine import Floats, Side

Array = NDArray[Any]
_DTYPES = (np.float64, np.float32)


@dataclass(frozen=True, eq=False)
class Layout:
    """How the input held its entries."""

    kind: str  # "triplets", "array", "pandas", "polars", or the name of a class of SciPy
    shape: tuple[int, int]
    places: tuple[Any, ...] = ()  # the indices of a sparse matrix; the index and columns of a frame
    size: int = 0  # how many entries triplets or a sparse matrix listed, observed or not
    position: Any = None  # the place of every observed entry among them; None: the same

    @property
    def listed(self) -> bool:
        """Whether the input listed its entries."""
        return self.kind not in ("array", "pandas", "polars")

    def restore(self, side: Side, values: Floats) -> Any:
        """``values``, one per observed entry, in the layout of the input; NaN where nothing was seen."""
        if not self.listed:
            table = np.full(self.shape, np.nan, dtype=values.dtype)
            table[side.row_of(), side.indices] = values
            return table if self.kind == "array" else self._frame(table)
        if self.position is not None:
            values, observed = np.full(self.size, np.nan, dtype=values.dtype), values
            values[self.position] = observed
        if self.kind == "triplets":
            return values
        places = (self.places,) if self.kind.startswith("coo") else self.places
        return getattr(sp, self.kind)((values, *places), shape=self.shape)

    def _frame(self, table: Floats) -> Any:
        index, columns = self.places
        module = import_module(self.kind)
        if self.kind == "polars":
            return module.DataFrame(table, schema=columns, orient="row")
        return module.DataFrame(table, index=index, columns=columns)


@dataclass(frozen=True)
class Observed:
    """What was observed."""

    matrix: Any  # stored entries are the observed ones; indices sorted, no duplicates
    sample_weight: Floats | None  # one positive weight per stored entry
    layout: Layout
    row_labels: Any = None
    column_labels: Any = None


def observe(
    estimator: BaseEstimator,
    X: Any,
    *,
    mask: Any = None,
    sample_weight: Any = None,
    shape: tuple[int, int] | None = None,
    long: Any = None,
    reset: bool = True,
) -> Observed:
    """Validate any accepted input; ``reset`` remembers the number and names of the columns, else they are checked."""
    names = _long_names(estimator, X, long, reset)
    if names is not None:
        observed = _from_long(estimator, X, names, mask, sample_weight, reset)
    elif isinstance(X, tuple) and len(X) == 3 and all(np.ndim(part) == 1 for part in X):
        observed = _from_triplets(estimator, X, mask, sample_weight, shape, reset)
    elif shape is not None:
        raise ValueError(f"shape is only meant for triplets (rows, columns, values), got shape={shape!r}")
    elif sp.issparse(X):
        observed = _from_sparse(estimator, X, mask, sample_weight, reset)
    else:
        observed = _from_dense(estimator, X, mask, sample_weight, reset)
    matrix = observed.matrix
    check_size("X", matrix)
    if np.isinf(matrix.data).any():
        raise ValueError("X contains infinity: mark missing entries with NaN, and gross errors need no mark at all")
    if reset and matrix.data.size == 0:
        raise ValueError(
            f"X must have at least one observed entry whose sample_weight is not zero, got none in shape {matrix.shape}"
        )
    return observed


def _long_names(estimator: Any, X: Any, long: Any, reset: bool) -> Any:
    """The names of a long frame's columns; those of ``fit`` are known again later."""
    there = list(X) if isinstance(X, dict) else list(getattr(X, "columns", ()))
    if long is None and not reset:
        known = getattr(estimator, "_long", None)
        return known if known is not None and set(known) <= set(there) else None
    if long is None:
        return None
    names = (long,) if isinstance(long, str) else tuple(long)
    if len(names) != 3:
        raise ValueError(f"long must name three columns: row ids, column ids and values, got {long!r}")
    missing = [name for name in names if name not in there]
    if missing:
        raise ValueError(f"long must name columns of X, got {missing!r}; X has {there!r}")
    return names


def _from_long(estimator: Any, X: Any, names: Any, mask: Any, sample_weight: Any, reset: bool) -> Observed:
    """A long frame as triplets of positions; of new rows, entries in unknown columns are left out."""
    rows, at_row = coded(X[names[0]], names[0])
    columns, at_column = coded(X[names[1]], names[1])
    with speaking_of(str(names[2]), "numeric with NaN for missing entries"):
        values = np.array(X[names[2]], dtype=np.float64)
    if not reset:
        known = positions(estimator.column_labels_, columns)[at_column]
        values[known < 0] = np.nan
        columns, at_column = estimator.column_labels_, np.maximum(known, 0)
    triplets, shape = (at_row, at_column, values), (rows.size, columns.size)
    return _from_triplets(estimator, triplets, mask, sample_weight, shape, reset, (rows, columns))


def _from_triplets(
    estimator: Any,
    X: Any,
    mask: Any,
    sample_weight: Any,
    shape: tuple[int, int] | None,
    reset: bool,
    labels: tuple[Any, Any] = (None, None),
) -> Observed:
    rows, columns, values = (np.asarray(part) for part in X)
    if not rows.size == columns.size == values.size:
        raise ValueError(
            f"rows, columns and values must be equally long, got {rows.size}, {columns.size} and {values.size}"
        )
    for name, index in (("rows", rows), ("columns", columns)):
        if index.dtype.kind not in "iu" or (index.size and index.min() < 0):
            raise ValueError(f"{name} must be integers >= 0, got {index!r}")
    _check_numeric(values)
    values = values if values.dtype in _DTYPES else values.astype(np.float64)
    if not values.size:
        raise ValueError("X must have at least one observed entry, got an empty matrix")
    width = None if reset else estimator.n_features_in_
    shape = shape or (int(rows.max()) + 1, width or int(columns.max()) + 1)
    if rows.max() >= shape[0] or columns.max() >= shape[1]:
        raise ValueError(f"rows and columns must lie inside shape, got {shape!r} and {(rows.max(), columns.max())!r}")
    if reset:
        estimator.n_features_in_ = shape[1]
    elif shape[1] != width:
        raise ValueError(f"X has {shape[1]} features, but {type(estimator).__name__} expects {width} features as input")
    given = sp.coo_array((values, (rows, columns)), shape=shape)
    seen = None if mask is None else _mask(mask, values.shape)
    matrix, weights, position = _stored(given, _weights(sample_weight, given), seen)
    layout = Layout("triplets", shape, size=values.size, position=position)
    return Observed(matrix, weights, layout, *labels)


def _from_sparse(estimator: Any, X: Any, mask: Any, sample_weight: Any, reset: bool) -> Observed:
    X = X if X.format in ("csr", "csc", "coo") else X.tocoo()
    checked = validate_data(
        estimator, X, accept_sparse=("csr", "csc", "coo"), dtype=_DTYPES, ensure_all_finite=False, reset=reset
    )
    seen = None
    if mask is not None and sp.issparse(mask):
        if mask.shape != X.shape:
            raise ValueError(f"mask must have the shape of X, {X.shape}, got {mask.shape}")
        seen = np.asarray(mask.tocsr().astype(bool)[_coordinates(checked)]).ravel()
    elif mask is not None:
        seen = _mask(mask, X.shape)[_coordinates(checked)]
    places = (X.row, X.col) if X.format == "coo" else (X.indices, X.indptr)
    matrix, weights, position = _stored(checked, _weights(sample_weight, checked), seen)
    return Observed(matrix, weights, Layout(type(X).__name__, X.shape, places, X.data.size, position))


def _from_dense(estimator: Any, X: Any, mask: Any, sample_weight: Any, reset: bool) -> Observed:
    hidden = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    module = type(X).__module__.split(".")[0]
    frame = X if module == "polars" or (module == "pandas" and hasattr(X, "index")) else None
    if frame is None and not isinstance(X, np.ndarray | list | tuple):
        X = np.asarray(X) if hasattr(X, "__array__") else X
    _check_numeric(X)
    table = np.ma.getdata(X) if hidden is not None else X
    with speaking_of("X"):
        values = validate_data(estimator, table, dtype=_DTYPES, ensure_all_finite=False, reset=reset)
    n, width = values.shape
    whole = sp.csr_array((values.ravel(), np.tile(np.arange(width), n), np.arange(n + 1) * width), shape=values.shape)
    seen = None if hidden is None else ~hidden.ravel()
    if mask is not None:
        seen = _mask(mask, values.shape).ravel() & (True if seen is None else seen)
    matrix, weights, _ = _stored(whole, _weights(sample_weight, whole), seen)
    if frame is None:
        return Observed(matrix, weights, Layout("array", values.shape))
    rows, columns = getattr(frame, "index", None), frame.columns
    return Observed(matrix, weights, Layout(module, values.shape, (rows, columns)), labels_of(rows), labels_of(columns))


def _stored(given: Any, weights: Floats | None, seen: Any) -> tuple[Any, Floats | None, Any]:
    """The entries that count as a CSR array, their weights, and where among those given they stand."""
    order = None
    if given.format == "csr" and given.has_sorted_indices:
        matrix = sp.csr_array((given.data, given.indices, given.indptr), shape=given.shape)
    else:
        rows, columns = _coordinates(given)
        order = np.lexsort((columns, rows))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=given.shape[0]))])
        matrix = sp.csr_array((given.data[order], columns[order], indptr), shape=given.shape)
    _refuse_duplicates(matrix)
    keep = ~np.isnan(given.data)
    if seen is not None:
        keep &= seen
    if weights is not None:
        keep &= weights > 0
    if not keep.all():
        kept = keep if order is None else keep[order]
        counts = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
        matrix = sp.csr_array((matrix.data[kept], matrix.indices[kept], counts), shape=matrix.shape)
        order = np.flatnonzero(kept) if order is None else order[kept]
    if weights is not None:
        weights = (weights if order is None else weights[order]).astype(matrix.dtype)
    return matrix, weights, order


def _coordinates(X: Any) -> tuple[Any, Any]:
    if X.format == "coo":
        return X.row, X.col
    major = np.repeat(np.arange(X.indptr.size - 1), np.diff(X.indptr))
    return (major, X.indices) if X.format == "csr" else (X.indices, major)


def _refuse_duplicates(matrix: Any) -> None:
    same = matrix.indices[1:] == matrix.indices[:-1]
    ends = matrix.indptr[1:-1]
    ends = ends[(ends > 0) & (ends < matrix.indices.size)]
    same[ends - 1] = False  # the last entry of a row and the first of the next
    if same.any():
        places = np.flatnonzero(same)
        rows = np.searchsorted(matrix.indptr, places, side="right") - 1
        named = [(int(i), int(j)) for i, j in zip(rows[:3], matrix.indices[places[:3]], strict=True)]
        raise ValueError(
            f"every entry may be given once, got {places.size} duplicated (row, column) pairs, first of all {named!r}; "
            "average or drop them before fitting"
        )


def _check_numeric(X: Any) -> None:
    """A plain sentence for text; anything else is left to scikit-learn's own checks."""
    rule = "X must be numeric with NaN for missing entries"
    kind = np.dtype(getattr(X, "dtype", float)).kind
    if kind in "USMm":
        raise ValueError(f"{rule}, got dtype {X.dtype!r}")
    if kind == "O":
        with speaking_of("X", "numeric with NaN for missing entries"):
            np.asarray(X, dtype=np.float64)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        wrong = [name for name, kind in zip(X.columns, X.dtypes, strict=True) if "str" in str(kind).lower()]
        if wrong:
            raise ValueError(f"{rule}, got text in the columns {wrong!r}")


def _mask(mask: Any, shape: tuple[int, ...]) -> Any:
    mask = np.asarray(mask)
    if mask.dtype.kind != "b":
        raise ValueError(f"mask must be boolean, True where an entry is observed, got dtype {mask.dtype!r}")
    if mask.shape != shape:
        raise ValueError(f"mask must have the layout of X: expected shape {shape}, got {mask.shape}")
    return mask


def _weights(sample_weight: Any, X: Any) -> Floats | None:
    """One weight per stored entry, from one per entry, one per row, or a matrix of the same shape."""
    if sample_weight is None:
        return None
    rows, columns = _coordinates(X)
    if sp.issparse(sample_weight):
        if sample_weight.shape != X.shape:
            raise ValueError(f"sample_weight must have the shape of X, {X.shape}, got {sample_weight.shape}")
        sample_weight = np.asarray(sample_weight.tocsr()[rows, columns]).ravel()
    with speaking_of("sample_weight", "numbers"):
        weights = np.asarray(sample_weight, dtype=np.float64)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and >= 0")
    check_size("sample_weight", weights)
    if weights.shape == (X.data.size,):
        return weights
    if weights.shape == (X.shape[0],):
        return np.asarray(weights[rows])
    if weights.shape == X.shape:
        return np.asarray(weights[rows, columns])
    raise ValueError(
        f"sample_weight must have one value per entry ({X.data.size}), one per row ({X.shape[0]}) or the shape "
        f"of X {X.shape}, got shape {weights.shape}"
    )


# ------------------------------------------------------------------------------------------------------ labels


def positions(labels: Array, given: Any) -> NDArray[np.intp]:
    """Where labels stand among distinct ones; -1 for unknown ones.

    >>> positions(np.array(["ann", "bob"]), ["bob", "eve"]).tolist()
    [1, -1]
    """
    flat = np.asarray(given)
    if labels.dtype.kind in "mM":  # dates in another unit are the same dates
        try:
            labels, flat = labels.astype(np.int64), flat.astype(labels.dtype).astype(np.int64)
        except ValueError:
            return np.full(flat.shape, -1, dtype=np.intp)
    at = {label: k for k, label in enumerate(labels.tolist())}
    found = [at.get(label, -1) for label in flat.ravel().tolist()]
    return np.array(found, dtype=np.intp).reshape(flat.shape)


def _tidy(labels: Any) -> Array:
    """Labels as an array that can be saved: text as text, not as objects."""
    array = np.asarray(labels)
    if array.dtype == object and all(isinstance(label, str) for label in array):
        array = array.astype(str)
    return array


def coded(values: Any, name: str) -> tuple[Array, NDArray[np.intp]]:
    """Distinct ids in order, and which of them each value is."""
    array = _tidy(values)
    missing = array.dtype.kind == "f" and bool(np.isnan(array).any())
    if missing or (array.dtype == object and any(value is None or value != value for value in array)):
        raise ValueError(f"{name} must name a row or column in every line, got missing ids")
    try:
        labels, codes = np.unique(array, return_inverse=True)
    except TypeError:  # ids of several types have no order
        place: dict[Any, int] = {}
        codes = np.array([place.setdefault(value, len(place)) for value in array.tolist()], dtype=np.intp)
        labels = np.empty(len(place), dtype=object)
        labels[:] = list(place)
    return labels, codes


def labels_of(labels: Any) -> Array | None:
    """Labels of a frame's side; None where they are only counted, or not distinct."""
    if labels is None:
        return None
    array = _tidy(labels)
    counted = array.dtype.kind in "iu" and np.array_equal(array, np.arange(array.size))
    return None if counted or len(set(array.tolist())) < array.size else array


def check_positions(given: Any, size: int, name: str, unknown: bool = False) -> NDArray[np.intp]:
    """Positions as integers from 0; those beyond the end are -1 if ``unknown`` ones are allowed."""
    at = np.asarray(given)
    if at.dtype.kind not in "iu" or (at.size and at.min() < 0):
        raise ValueError(f"{name} must be integers >= 0, got {given!r}")
    if not unknown and at.size and at.max() >= size:
        raise ValueError(f"{name} must be below {size}, got {int(at.max())}")
    return np.where(at < size, at, -1).astype(np.intp)
