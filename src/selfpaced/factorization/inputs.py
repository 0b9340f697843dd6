"""Every accepted input as one CSR matrix of observed entries, and the way back to the input's layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..arguments import speaking_of
from ..fitting import check_size
from .entries import Floats
from .ids import Ids, coded, labels_of

_DTYPES = (np.float64, np.float32)


@dataclass(frozen=True)
class Observed:
    """What was observed.

    Attributes
    ----------
    matrix : CSR array
        Stored entries are the observed ones; indices sorted, no duplicates.
    sample_weight : ndarray or None
        One positive weight per stored entry.
    layout : Layout
        Puts one value per stored entry back into the layout of the input.
    """

    matrix: Any
    sample_weight: Floats | None
    layout: Layout


@dataclass(frozen=True)
class Layout:
    """Where the stored entries came from.

    ``kind`` is "dense", "pandas", "polars", "sparse" or "triplets"; ``position`` gives, for sparse input and
    triplets, the place of every stored entry among the ``size`` given ones (None: in the same order).
    """

    kind: str
    shape: tuple[int, int]
    size: int = 0
    position: Any = None
    frame: Any = None  # (class, index, columns) of a data frame
    row_labels: Any = None
    column_labels: Any = None
    template: Any = None  # (class, format, indices, indptr) of a sparse matrix

    def restore(self, values: Floats, matrix: Any) -> Any:
        """``values``, one per stored entry of ``matrix``, in the layout of the input; NaN where nothing was seen."""
        if self.kind in ("sparse", "triplets"):
            if self.position is not None:
                given = np.full(self.size, np.nan, dtype=values.dtype)
                given[self.position] = values
                values = given
            if self.kind == "triplets":
                return values
            return self._sparse(values)
        out = np.full(self.shape, np.nan, dtype=values.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(matrix.indptr))
        out[rows, matrix.indices] = values
        if self.kind == "pandas":
            frame, index, columns = self.frame
            return frame(out, index=index, columns=columns)
        if self.kind == "polars":
            frame, _, columns = self.frame
            return frame(out, schema=columns, orient="row")
        return out

    def _sparse(self, values: Floats) -> Any:
        make, form, indices, indptr = self.template
        if form == "coo":
            return make((values, indices), shape=self.shape)
        return make((values, indices, indptr), shape=self.shape)


def is_triplets(X: Any) -> bool:
    """Whether X is a tuple (rows, columns, values) of three one-dimensional arrays."""
    return isinstance(X, tuple) and len(X) == 3 and all(np.ndim(part) == 1 for part in X)


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
    """Validate any accepted input.

    Parameters
    ----------
    estimator : estimator
        Remembers (``reset``) or checks the number and names of the columns.
    X : array-like with NaN, masked array, SciPy sparse, data frame or triplets
    mask : bool array-like, optional
        True where an entry is observed; entries that are NaN are missing in any case.
    sample_weight : array-like, optional
        One weight per entry in the layout of X, or one per row.
    shape : tuple, optional
        The matrix's shape, for triplets.
    long : sequence of three names, optional
        The columns of a long frame that hold row ids, column ids and values.
    """
    names = _long_names(estimator, X, long, reset)
    if names is not None:
        return _from_long(estimator, X, names, mask, sample_weight, reset)
    if is_triplets(X):
        return _from_triplets(estimator, X, mask, sample_weight, shape, reset)
    if shape is not None:
        raise ValueError(f"shape is only meant for triplets (rows, columns, values), got shape={shape!r}")
    if sp.issparse(X):
        return _from_sparse(estimator, X, mask, sample_weight, reset)
    return _from_dense(estimator, X, mask, sample_weight, reset)


def _long_names(estimator: Any, X: Any, long: Any, reset: bool) -> Any:
    """The names of a long frame's columns; those of ``fit`` are known again later."""
    if long is None and not reset:
        known = getattr(estimator, "_long", None)
        return known if known is not None and set(known) <= set(getattr(X, "columns", ())) else None
    if long is None:
        return None
    names = (long,) if isinstance(long, str) else tuple(long)
    if len(names) != 3:
        raise ValueError(f"long must name three columns: row ids, column ids and values, got {long!r}")
    there = list(X) if isinstance(X, dict) else list(getattr(X, "columns", ()))
    missing = [name for name in names if name not in there]
    if missing:
        raise ValueError(f"long must name columns of X, got {missing!r}; X has {there!r}")
    return names


def _from_long(estimator: Any, X: Any, names: Any, mask: Any, sample_weight: Any, reset: bool) -> Observed:
    """A long frame as triplets of positions; of new rows, entries in unknown columns are left out."""
    rows, at_row = coded(X[names[0]], names[0])
    columns, at_column = coded(X[names[1]], names[1])
    values = np.array(X[names[2]], dtype=np.float64)
    if not reset:
        known = Ids(estimator.column_labels_).positions(columns)[at_column]
        values[known < 0] = np.nan
        columns, at_column = estimator.column_labels_, np.maximum(known, 0)
    shape = rows.size, columns.size
    seen = _from_triplets(estimator, (at_row, at_column, values), mask, sample_weight, shape, reset)
    return replace(seen, layout=replace(seen.layout, row_labels=rows, column_labels=columns))


def _frame_of(X: Any) -> tuple[str, Any]:
    module = type(X).__module__.split(".")[0]
    if module == "pandas" and hasattr(X, "index"):
        return "pandas", (type(X), X.index, X.columns)
    if module == "polars":
        return "polars", (type(X), None, X.columns)
    return "dense", None


def _check_numeric(X: Any) -> None:
    """A plain sentence for text; anything else is left to scikit-learn's own checks."""
    kind = np.dtype(getattr(X, "dtype", float)).kind if hasattr(X, "dtype") else None
    if kind in ("U", "S", "M", "m"):
        raise ValueError(f"X must be numeric with NaN for missing entries, got dtype {X.dtype!r}")
    if kind == "O":
        try:
            np.asarray(X, dtype=np.float64)
        except ValueError as error:
            raise ValueError(f"X must be numeric with NaN for missing entries, got dtype object: {error}") from error
        except TypeError:
            pass
    columns = getattr(X, "columns", None)
    if columns is not None and hasattr(X, "dtypes"):
        wrong = [name for name, kind in zip(columns, X.dtypes, strict=True) if "str" in str(kind).lower()]
        if wrong:
            raise ValueError(f"X must be numeric with NaN for missing entries, got text in the columns {wrong!r}")


def _from_dense(estimator: Any, X: Any, mask: Any, sample_weight: Any, reset: bool) -> Observed:
    kind, frame = _frame_of(X)
    hidden = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    if kind == "dense" and not isinstance(X, np.ndarray | list | tuple):
        X = np.asarray(X) if hasattr(X, "__array__") else X
    _check_numeric(X)
    table = np.ma.getdata(X) if hidden is not None else X
    with speaking_of("X"):
        values = validate_data(estimator, table, dtype=_DTYPES, ensure_all_finite=False, reset=reset)
    seen = ~np.isnan(values)
    if hidden is not None:
        seen &= ~hidden
    if mask is not None:
        seen &= _mask(mask, values.shape)
    weights = _dense_weights(sample_weight, values.shape)
    if weights is not None:
        seen &= weights > 0
    rows, columns = np.nonzero(seen)
    indptr = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
    matrix = sp.csr_array((values[rows, columns], columns, indptr), shape=values.shape)
    entry_weight = None if weights is None else weights[rows, columns].astype(values.dtype)
    labels = (None, None) if frame is None else (labels_of(frame[1]), labels_of(frame[2]))
    layout = Layout(kind, values.shape, frame=frame, row_labels=labels[0], column_labels=labels[1])
    return _finished(matrix, entry_weight, layout, reset)


def _mask(mask: Any, shape: tuple[int, ...]) -> Any:
    mask = np.asarray(mask)
    if mask.dtype.kind != "b":
        raise ValueError(f"mask must be boolean, True where an entry is observed, got dtype {mask.dtype!r}")
    if mask.shape != shape:
        raise ValueError(f"mask must have the layout of X: expected shape {shape}, got {mask.shape}")
    return mask


def _as_floats(sample_weight: Any) -> Floats:
    with speaking_of("sample_weight", "numbers"):
        return np.asarray(sample_weight, dtype=np.float64)


def _check_weights(weights: Floats) -> Floats:
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and >= 0")
    check_size("sample_weight", weights)
    return weights


def _dense_weights(sample_weight: Any, shape: tuple[int, int]) -> Floats | None:
    if sample_weight is None:
        return None
    weights = _check_weights(_as_floats(sample_weight))
    if weights.ndim == 1 and weights.size == shape[0]:
        weights = np.broadcast_to(weights[:, None], shape)
    if weights.shape != shape:
        raise ValueError(
            f"sample_weight must have one value per entry, shape {shape}, or one per row, got shape {weights.shape}"
        )
    return weights


def _from_sparse(estimator: Any, X: Any, mask: Any, sample_weight: Any, reset: bool) -> Observed:
    if X.format not in ("csr", "csc", "coo"):
        X = X.tocoo()
    template: Any = (type(X), X.format, getattr(X, "indices", None), getattr(X, "indptr", None))
    if X.format == "coo":
        template = (type(X), "coo", (X.row, X.col), None)
    checked = validate_data(
        estimator, X, accept_sparse=("csr", "csc", "coo"), dtype=_DTYPES, ensure_all_finite=False, reset=reset
    )
    size = checked.data.size
    weights = _sparse_weights(sample_weight, checked)
    position = None
    if checked.format == "csr" and checked.has_sorted_indices:
        matrix = sp.csr_array((checked.data, checked.indices, checked.indptr), shape=checked.shape)
        _refuse_duplicates(matrix)
    else:
        rows, columns = _coordinates(checked)
        matrix, position = _sorted_csr(rows, columns, checked.data, checked.shape)
        weights = weights if weights is None else weights[position]
    keep = ~np.isnan(matrix.data)
    if mask is not None:
        keep &= _sparse_mask(mask, matrix)
    if weights is not None:
        keep &= weights > 0
    if not keep.all():
        matrix, position, weights = _subset(matrix, keep, position, weights)
    weights = None if weights is None else weights.astype(matrix.dtype)
    return _finished(matrix, weights, Layout("sparse", checked.shape, size, position, template=template), reset)


def _coordinates(X: Any) -> tuple[Any, Any]:
    if X.format == "coo":
        return X.row, X.col
    major = np.repeat(np.arange(X.indptr.size - 1), np.diff(X.indptr))
    return (major, X.indices) if X.format == "csr" else (X.indices, major)


def _sparse_mask(mask: Any, matrix: Any) -> Any:
    if sp.issparse(mask):
        mask = mask.tocsr().astype(bool)
        if mask.shape != matrix.shape:
            raise ValueError(f"mask must have the shape of X, {matrix.shape}, got {mask.shape}")
        rows, columns = _coordinates(matrix)
        return np.asarray(mask[rows, columns]).ravel()
    mask = _mask(mask, matrix.shape)
    return mask[_coordinates(matrix)]


def _sparse_weights(sample_weight: Any, X: Any) -> Floats | None:
    if sample_weight is None:
        return None
    if sp.issparse(sample_weight):
        if sample_weight.shape != X.shape:
            raise ValueError(f"sample_weight must have the shape of X, {X.shape}, got {sample_weight.shape}")
        rows, columns = _coordinates(X)
        return _check_weights(np.asarray(sample_weight.tocsr()[rows, columns], dtype=np.float64).ravel())
    weights = _check_weights(_as_floats(sample_weight))
    if weights.shape == (X.data.size,):
        return weights
    if weights.shape == (X.shape[0],):
        return np.asarray(weights[_coordinates(X)[0]])
    if weights.shape == X.shape:
        return np.asarray(weights[_coordinates(X)])
    raise ValueError(
        f"sample_weight must have one value per stored entry ({X.data.size}), one per row ({X.shape[0]}) or the shape "
        f"of X {X.shape}, got shape {weights.shape}"
    )


def _sorted_csr(rows: Any, columns: Any, values: Floats, shape: tuple[int, int]) -> tuple[Any, Any]:
    order = np.lexsort((columns, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    matrix = sp.csr_array((values[order], columns[order], indptr), shape=shape)
    _refuse_duplicates(matrix)
    return matrix, order


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


def _subset(matrix: Any, keep: Any, position: Any, weights: Any) -> tuple[Any, Any, Any]:
    counts = np.concatenate([[0], np.cumsum(keep)])
    kept = sp.csr_array((matrix.data[keep], matrix.indices[keep], counts[matrix.indptr]), shape=matrix.shape)
    position = np.flatnonzero(keep) if position is None else position[keep]
    return kept, position, None if weights is None else weights[keep]


def _from_triplets(
    estimator: Any, X: Any, mask: Any, sample_weight: Any, shape: tuple[int, int] | None, reset: bool
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
    if values.dtype not in _DTYPES:
        values = values.astype(np.float64)
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
    weights = None
    if sample_weight is not None:
        weights = _check_weights(_as_floats(sample_weight))
        if weights.shape != values.shape:
            raise ValueError(f"sample_weight must have one value per triplet, {values.size}, got shape {weights.shape}")
    matrix, position = _sorted_csr(rows, columns, values, shape)
    weights = None if weights is None else weights[position]
    keep = ~np.isnan(matrix.data)
    if mask is not None:
        keep &= _mask(mask, values.shape)[position]
    if weights is not None:
        keep &= weights > 0
    matrix, position, weights = _subset(matrix, keep, position, weights)
    weights = None if weights is None else weights.astype(matrix.dtype)
    return _finished(matrix, weights, Layout("triplets", shape, values.size, position), reset)


def _finished(matrix: Any, weights: Floats | None, layout: Layout, reset: bool) -> Observed:
    check_size("X", matrix)
    if np.isinf(matrix.data).any():
        raise ValueError("X contains infinity: mark missing entries with NaN, and gross errors need no mark at all")
    if reset and matrix.data.size == 0:
        raise ValueError(
            f"X must have at least one observed entry whose sample_weight is not zero, got none in shape {matrix.shape}"
        )
    return Observed(matrix, weights, layout)
