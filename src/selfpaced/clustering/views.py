"""From what users have (arrays, dicts, data frames, sparse matrices) to scaled views, and back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from ..fingerprint import content_keys, mixed
from ..fitting import refuse_dates
from ..parameters import speaking_of
from .kernels import Holed, Views

Floats = NDArray[Any]
DOUBLE_NUMBERS = 1 << 18  # cost: numbers in all views up to which the work is done in double precision

# What tells rows that are directions (counts, tf-idf, ink), measured by benchmarks/clustering.py (scaling).
MOSTLY_ZEROS = 0.5  # share of zeros from which the spread of a column only says how rare it is
NEGATIVE_SHARE = 0.01  # share of the other cells that may be negative: a typo does not change the form of a view
FEW_COLUMNS = 5  # convention: fewer columns hold no direction worth the name


def is_collection(X: Any) -> bool:
    """Whether X is several views (a dict, or a list of two-dimensional things) rather than one table."""
    if isinstance(X, Mapping):
        return not sp.issparse(X)  # a dictionary-of-keys matrix is a mapping too
    if not isinstance(X, list | tuple) or not len(X):
        return False
    return all(part is None or len(getattr(part, "shape", ())) == 2 for part in X)


def named(X: Any) -> dict[Hashable, Any]:
    """A collection of views by name; the views of a list are named 0, 1, 2, ..."""
    return dict(X) if isinstance(X, Mapping) else dict(enumerate(X))


def check_view(name: Hashable, block: Any) -> Any:
    """One view as a float array or CSR matrix, NaN still in it."""
    try:
        with speaking_of(f"view {name!r}"):
            return check_array(
                block,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite="allow-nan",
                input_name=f"view {name!r}",
            )
    except ValueError as error:
        said = str(error)
        raise ValueError(said if said.startswith("view ") else f"view {name!r}: {said}") from error


def column_map(views: Any, n_features: int, feature_names: Sequence[str] | None) -> dict[Hashable, NDArray[np.intp]]:
    """Columns of every view, from a dict of view -> columns or a sequence with one view name per column."""
    if not isinstance(views, Mapping):
        labels = list(views)
        if len(labels) != n_features:
            raise ValueError(
                f"views as a sequence must name the view of each of the {n_features} columns, got {len(labels)} names"
            )
        order = dict.fromkeys(labels)
        return {name: np.flatnonzero([label == name for label in labels]) for name in order}
    places = {name: place for place, name in enumerate(feature_names)} if feature_names is not None else {}
    return {name: _columns(name, columns, n_features, places) for name, columns in views.items()}


def _columns(name: Hashable, columns: Any, n_features: int, places: Mapping[str, int]) -> NDArray[np.intp]:
    if isinstance(columns, slice | int | np.integer):
        found = np.atleast_1d(np.arange(n_features)[columns])
    else:
        columns = [columns] if isinstance(columns, str) else list(columns)
        unknown = [c for c in columns if isinstance(c, str) and c not in places]
        if unknown:
            raise ValueError(f"view {name!r} names columns that X does not have, got {unknown!r}")
        picked = np.asarray([places[c] if isinstance(c, str) else c for c in columns])
        picked = picked if len(columns) else picked.astype(np.intp)
        try:
            found = np.arange(n_features)[picked]
        except IndexError as error:
            raise ValueError(f"view {name!r} must pick from {n_features} columns, got {columns!r}") from error
    if not found.size:
        raise ValueError(f"view {name!r} must hold at least one column, got {columns!r}")
    return found.astype(np.intp)


def missing_rows(name: Hashable, block: Any) -> NDArray[np.bool_]:
    """Rows that are NaN throughout: the sample lacks this view. NaN inside a row of a sparse view is an error."""
    if not sp.issparse(block):
        return np.asarray(np.isnan(block).all(axis=1)) if np.isnan(np.sum(block)) else np.zeros(len(block), bool)
    rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    holes = np.bincount(rows, np.isnan(block.data), minlength=block.shape[0])
    partial = (holes > 0) & (holes < block.shape[1])
    if partial.any():
        row = int(np.flatnonzero(partial)[0])
        raise ValueError(
            f"view {name!r} is sparse and must hold no NaN inside a row, got NaN in {int(partial.sum())} rows, the "
            f"first is row {row}: leave unknown cells out, or set the whole row to NaN to mark the view as missing"
        )
    return np.asarray(holes > 0)


@dataclass(frozen=True)
class Scaler:
    """Centre and scale of one view; ``unit-row`` scales samples instead of columns."""

    name: Hashable
    scaling: str
    center: Floats  # (d,), zero for sparse views: distances do not depend on it
    scale: Floats  # (d,)

    @property
    def n_features(self) -> int:
        return len(self.scale)

    def apply(self, block: Any, missing: NDArray[np.bool_] | None, dtype: Any = np.float32) -> Any:
        """The scaled view, zeros where the view is missing."""
        if block.shape[1] != self.n_features:
            raise ValueError(
                f"view {self.name!r} must have the {self.n_features} columns it was fitted with, got {block.shape[1]}"
            )
        holes = missing if missing is not None and missing.any() else None
        if sp.issparse(block):
            if holes is not None:
                block = block.copy()
                block.data = np.nan_to_num(block.data)
                block = sp.diags((~holes).astype(block.dtype)) @ block
            block = unit_rows(block) if self.scaling == "unit-row" else block
            return sp.csr_matrix(block @ sp.diags(1 / self.scale), dtype=dtype)
        if self.scaling == "unit-row":
            block = unit_rows(block)
        out = np.asarray((block - self.center) / self.scale, dtype=dtype, order="C")
        if holes is not None:
            out[holes] = 0
        if not np.isnan(np.sum(out)):
            return out
        known = ~np.isnan(out)
        return Holed(np.where(known, out, 0).astype(dtype, copy=False), known.astype(dtype))

    def weighted(self, share: float) -> Scaler:
        """The same with squared distances times ``share``, but never none."""
        return replace(self, scale=self.scale / np.sqrt(max(share, 1e-3)))

    def invert(self, centers: Floats) -> Floats:
        """Centres in the units the view came in (for ``unit-row``, of its unit rows)."""
        return centers.astype(np.float64) * self.scale + self.center


def unit_rows(block: Any) -> Any:
    """Rows of length one; zero rows stay zero."""
    if sp.issparse(block):
        length = np.sqrt(np.asarray(block.multiply(block).sum(axis=1)).ravel())
        return sp.diags(1 / np.where(length > 0, length, 1)) @ block
    length = np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
    if np.isnan(np.sum(length)):
        # As if the unknown cells were like the known ones of the same row.
        known = ~np.isnan(block)
        squares = np.where(known, block * block, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        length = np.sqrt(block.shape[1] * squares)[:, None]
    return block / np.where(length > 0, length, 1)


def fit_scaler(name: Hashable, block: Any, scaling: str, missing: NDArray[np.bool_], weight: Floats | None) -> Scaler:
    """Centre and scale of a view from the samples that have it.

    ``zscore`` gives every column unit variance and then every view total variance 1, so that views compare;
    ``variance`` does only the second.
    """
    here = ~missing
    if not here.any():
        raise ValueError(f"view {name!r} is missing for every sample: leave it out")
    rows = block if here.all() else block[here]
    mean, variance = _moments(rows, None if weight is None else weight[here])
    # Rounding leaves a constant column with a variance of order eps**2 mean**2.
    floor = (10 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
    varies = variance > floor
    if not varies.any():
        raise ValueError(
            f"view {name!r} must have a column that varies, got {len(mean)} constant columns in "
            f"n_samples={rows.shape[0]}: it says nothing about the clusters, leave it out"
        )
    scale = np.ones(len(mean))
    center = np.zeros(len(mean)) if sp.issparse(block) or scaling == "unit-row" else mean
    if scaling == "zscore":
        scale[varies] = np.sqrt(variance[varies] * varies.sum())
    elif scaling == "variance":
        scale[:] = np.sqrt(variance[varies].sum())
    return Scaler(name, scaling, center, scale)


def automatic_scaler(name: Hashable, block: Any, missing: NDArray[np.bool_], weight: Floats | None) -> Scaler:
    """The scaling that the form of a view asks for, and then total variance 1, so that views compare.

    Rows of counts or tf-idf, non-negative and mostly zeros, are directions: their lengths tell how long a text is,
    and columns brought to one variance would be ruled by the rarest word.
    """
    if not is_direction(block[~missing]):
        return fit_scaler(name, block, "zscore", missing, weight)
    scaler = fit_scaler(name, block, "unit-row", missing, weight)
    here = ~missing
    _, variance = _moments(unit_rows(block[here]), None if weight is None else weight[here])
    # Rows of one single direction vary by their lengths alone, which unit rows leave out.
    return replace(scaler, scale=np.full(scaler.n_features, np.sqrt(variance.sum()) or 1.0))


def is_direction(rows: Any) -> bool:
    """Whether most rows of a view look like counts: many columns, mostly zeros, hardly a negative number.

    Every row is looked at by itself, so that noise in some rows does not change the form of the view.
    """
    if rows.shape[1] < FEW_COLUMNS or not rows.shape[0]:
        return False
    filled, negative = (np.asarray(hits.sum(axis=1)).ravel() for hits in (rows != 0, rows < 0))
    counts = (filled <= (1 - MOSTLY_ZEROS) * rows.shape[1]) & (negative <= NEGATIVE_SHARE * filled)
    return bool(counts[filled > 0].mean() > 0.5) if filled.any() else False


def _moments(rows: Any, weight: Floats | None) -> tuple[Floats, Floats]:
    """Weighted mean and variance of every column, in float64."""
    weight = np.full(rows.shape[0], 1 / rows.shape[0]) if weight is None else weight / weight.sum()
    if sp.issparse(rows):
        mean = np.asarray(rows.T @ weight).ravel()
        # Around the mean, not as a difference of squares, which cancels for a column that hardly varies.
        stored = np.repeat(weight, np.diff(rows.indptr))
        spread = np.bincount(rows.indices, stored * (rows.data - mean[rows.indices]) ** 2, minlength=len(mean))
        zeros = np.maximum(1 - np.bincount(rows.indices, stored, minlength=len(mean)), 0)
        return mean, spread + np.where(zeros > 1e-12, zeros, 0) * mean**2
    if np.isnan(np.sum(rows)):
        known = ~np.isnan(rows)
        share = np.maximum(weight @ known, np.finfo(np.float64).tiny)
        mean = weight @ np.where(known, rows, 0) / share
        return mean, weight @ np.where(known, rows - mean, 0) ** 2 / share
    mean = weight @ rows
    return mean, weight @ (rows - mean) ** 2


def working_dtype(blocks: Mapping[Hashable, Any]) -> Any:
    """Single precision, which halves the time; double for small data, which cost nothing anyway."""
    return (
        np.float64
        if sum(block.shape[0] * block.shape[1] for block in blocks.values()) <= DOUBLE_NUMBERS
        else np.float32
    )


def assemble(
    scalers: Sequence[Scaler],
    blocks: Mapping[Hashable, Any],
    weight: Floats | None = None,
    dtype: Any = np.float32,
) -> tuple[Views, list[int]]:
    """Scaled views of the samples in ``blocks`` and the places of the views that are there.

    ``blocks`` may lack views (predicting from some of them), and rows may lack views too.
    """
    used = [place for place, scaler in enumerate(scalers) if blocks.get(scaler.name) is not None]
    raw = [(scalers[place], blocks[scalers[place].name]) for place in used]
    lost = [missing_rows(scaler.name, block) for scaler, block in raw]
    scaled = tuple(scaler.apply(block, gone, dtype) for (scaler, block), gone in zip(raw, lost, strict=True))
    present = None
    if any(gone.any() for gone in lost):
        present = ~np.stack(lost)
        bare = np.flatnonzero(~present.any(axis=0))
        if bare.size:
            raise ValueError(
                f"every sample must have at least one view, got only NaN for {bare.size} samples, the first is "
                f"sample {int(bare[0])}: leave them out"
            )
    return Views(scaled, present, None if weight is None else weight.astype(dtype)), used


def check_lengths(blocks: Mapping[Hashable, Any]) -> int:
    """The common number of samples, or an error that says which view differs."""
    lengths = {name: int(block.shape[0]) for name, block in blocks.items() if block is not None}
    if not lengths:
        raise ValueError("X must hold at least one view, got none")
    usual = max(set(lengths.values()), key=list(lengths.values()).count)
    odd = {name: length for name, length in lengths.items() if length != usual}
    if odd:
        raise ValueError(f"all views must have the same samples, {usual} of them, got {odd!r}")
    return usual


def class_means(block: Any, labels: NDArray[np.int32], clusters: int) -> Floats:
    """Mean of the members of every cluster, samples without the view left out."""
    out = np.full((clusters, block.shape[1]), np.nan)
    gone = missing_rows("", block)
    for cluster in range(clusters):
        members = np.flatnonzero((labels == cluster) & ~gone)
        if members.size:
            out[cluster] = np.asarray(block[members].mean(axis=0)).ravel()
    return out


@dataclass(frozen=True, eq=False)
class Distinct:
    """One sample for all that are equal, with the sum of their weights; none for those without weight.

    They stand in an order that follows from what they hold. So where samples stand makes no difference, and a sample
    of weight 2 is that sample twice: to random seeds and to neighbours as well.
    """

    rows: NDArray[np.intp]  # where the distinct samples are
    copy: NDArray[np.intp]  # which of them each sample is a copy of, -1 for one without weight
    weight: Floats | None  # their weights; None if all are one

    @classmethod
    def of(cls, blocks: Mapping[Hashable, Any], weight: Floats | None) -> Distinct:
        """The distinct samples of these views."""
        keys = sum(mixed(content_keys(block), place) for place, block in enumerate(blocks.values(), start=1))
        n = len(np.asarray(keys))
        used = np.arange(n) if weight is None else np.flatnonzero(weight)
        _, first, copy = np.unique(np.asarray(keys)[used], return_index=True, return_inverse=True)
        place = np.full(n, -1, dtype=np.intp)
        place[used] = copy.reshape(-1)
        mass = np.bincount(place[used], None if weight is None else weight[used])
        return cls(used[first], place, None if np.all(mass == 1) else mass.astype(np.float64))

    @property
    def complete(self) -> bool:
        """Whether every sample has weight."""
        return bool(self.copy.min(initial=0) >= 0)

    @property
    def n_used(self) -> int:
        """Samples of positive weight."""
        return int(np.count_nonzero(self.copy >= 0))

    def check_enough(self, clusters: int, n: int) -> None:
        """Refuse more clusters than there are samples of weight, of ``n`` in all."""
        if clusters > self.n_used:
            count = f"n_samples={n}" if self.complete else f"{self.n_used} samples of positive weight"
            raise ValueError(f"n_clusters must be at most the number of samples, {count}, got {clusters!r}")

    def views(self, data: Views) -> Views:
        """The distinct samples of scaled views."""
        part = data.take(self.rows)
        return Views(part.blocks, part.present, None if self.weight is None else self.weight.astype(data.dtype))


class ViewInput(BaseEstimator):
    """The views as an estimator takes them: a matrix, its columns by view, or a list or dict of matrices."""

    views: Any
    view_names_: list[Hashable]
    n_features_in_: int
    _kind: str | None  # what X was in fit: a list or a dict of views, or None for a single one
    _columns: Mapping[Hashable, NDArray[np.intp] | None]  # of the views in one array X; empty if they came apart
    _scalers: list[Scaler]

    def _blocks(self, X: Any, reset: bool) -> dict[Hashable, Any]:
        """The views by name, checked one by one; not yet scaled."""
        if is_collection(X):
            return self._collection(X, reset)
        if not reset and not self._columns:
            raise ValueError(
                f"X must be a {self._kind} of views, as in fit, got {type(X).__name__}; "
                f"the views are {self.view_names_!r}"
            )
        refuse_dates(X)
        with speaking_of("X"):
            X = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite="allow-nan",
            )
        if reset:
            self._kind = None if self.views is None else "dict"
            names = getattr(self, "feature_names_in_", None)
            self._columns = {0: None} if self.views is None else column_map(self.views, X.shape[1], names)
        return {name: X if columns is None else X[:, columns] for name, columns in self._columns.items()}

    def _collection(self, X: Any, reset: bool) -> dict[Hashable, Any]:
        given = named(X)
        if reset:
            self._kind = "dict" if isinstance(X, Mapping) else "list"
            self._columns = {}
        elif not isinstance(X, Mapping) and len(given) != len(self._scalers):
            raise ValueError(
                f"X must hold the {len(self._scalers)} views of fit, None for one that is not there, got {len(given)}"
            )
        known = given if reset else {scaler.name: None for scaler in self._scalers}
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"X must hold views seen in fit, {list(known)!r}, got {unknown!r}")
        blocks = {name: check_view(name, block) for name, block in given.items() if block is not None}
        if reset:
            if len(blocks) < len(given) or not blocks:
                raise ValueError(f"X must hold at least one view and none that is None, got {list(given)!r}")
            self.n_features_in_ = sum(block.shape[1] for block in blocks.values())
        return blocks
