"""What tables of files, Dask and Spark share: passes that are counted, and what is known of a block before a fit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..parameters import one_kind
from .table import Array, Block, Result, Rows, total

logger = logging.getLogger(__name__)


class CountedPasses:
    """A table that counts its passes and logs them; ``_sum`` makes one."""

    n: int
    starts: Rows  # number of the first row of every block
    passes = 0

    def reduce(self, function: Callable[..., Result], *args: Any) -> Result:
        """The sum over blocks, in their order, of ``function(block, *args)``: one pass."""
        began = time.perf_counter()
        self.passes += 1
        total: Result = self._sum(function, args)
        name = getattr(function, "__name__", "sum")
        logger.info("pass %d, %s: %d rows (%.2f s)", self.passes, name, self.n, time.perf_counter() - began)
        return total

    def _sum(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        raise NotImplementedError

    def _wanted(self, rows: Rows) -> list[Rows]:
        """Places in every block of some rows, by ascending numbers."""
        parts = np.split(rows, np.searchsorted(rows, self.starts[1:]))
        return [part - start for part, start in zip(parts, self.starts, strict=True)]


def aligned(X: Array) -> Array:
    """The same at an address that NumPy would choose: what comes over the wire lies anywhere, and products of it are
    then rounded in another order, so that a block that has moved would not give the same bits.
    """
    return X if X.ctypes.data % 16 == 0 else np.array(X)


def starts_of(sizes: Any) -> Rows:
    """Numbers of the first rows of blocks of these sizes."""
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)


def joined(blocks: Sequence[Block]) -> Block:
    """Blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    X = [block.X for block in blocks]
    weights = [block.weight for block in blocks]
    return Block(
        sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X),
        np.concatenate([block.y for block in blocks]),
        None if weights[0] is None else np.concatenate([w for w in weights if w is not None]),
    )


class Facts(NamedTuple):
    """Rows of a block, labels with their weights, type and number of the features, and the first fault in words."""

    n: int
    labels: dict[Any, float]
    dtype: Any
    n_features: int
    fault: str = ""


def facts_of(block: Block, labels: bool, gaps: bool = False) -> Facts:
    """What is known of a block whose target is as it was given: labels, or values; features may have gaps or not."""
    X, given, weight = block
    n, d = int(X.shape[0]), int(X.shape[1])
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    if len(given) != n or (weight is not None and len(weight) != n):
        return Facts(n, {}, dtype, d, f"{len(given)} labels or values for {n} rows")
    if X.dtype.kind not in "biufO":
        return Facts(n, {}, dtype, d, f"{X.dtype} in X")
    fault = _fault(X.data if sparse.issparse(X) else np.asarray(X), "X", gaps)
    if not labels or given.dtype.kind == "f":
        fault = fault or _fault(given, "y")
    elif given.dtype.kind == "O":
        row = next((row for row, label in enumerate(given.tolist()) if label is None or label != label), None)
        fault = fault or ("" if row is None else f"a gap in y, row {row}")
    if weight is not None:
        fault = fault or _fault(np.asarray(weight), "sample_weight")
        if not fault and n and float(np.min(weight)) < 0:
            fault = f"{float(np.min(weight))!r} in sample_weight"
    if fault or not n:
        return Facts(n, {}, dtype, d, fault)
    return Facts(n, _labels(given, weight) if labels else {0: total(weight, n)}, dtype, d)


def classes_of(known: Sequence[Facts], labels: bool) -> tuple[Array | None, Array]:
    """The labels of all blocks, sorted, and their weights; None and one number where they hold values."""
    found: dict[Any, float] = {}
    for facts in known:
        for label, mass in facts.labels.items():
            found[label] = found.get(label, 0.0) + mass
    if not known[0].n_features:
        raise ValueError("X must have at least one feature, got none")
    if not any(found.values()):
        raise ValueError("sample_weight must not be zero for every row: no row is left to learn from")
    if not labels:
        return None, np.array([found[0]])
    classes = label_array(found)
    order = np.argsort(classes, kind="stable")
    return classes[order], np.array(list(found.values()))[order]


def places_among(given: Array | None, classes: Array | None) -> Rows | None:
    """Where the labels of a table are among those of a fit; None if they are the same, or there are none."""
    if given is None or classes is None or np.array_equal(given, classes):
        return None
    places = np.minimum(np.searchsorted(classes, given), len(classes) - 1)
    unknown = given[classes[places] != given]
    if len(unknown):
        raise ValueError(f"y must hold labels of the fit, {classes.tolist()!r}, got {unknown[0].item()!r}")
    return places


def label_array(distinct: Iterable[Any]) -> Array:
    """Distinct labels as an array in which they stay distinct."""
    known = list(distinct)
    one_kind(known)
    labels = np.array(known)
    names, counts = np.unique(labels, return_counts=True)
    if names.size < labels.size:
        alike = [label for label, found in zip(known, labels, strict=True) if found == names[counts.argmax()]]
        raise ValueError(
            f"y must hold labels that stay different as numbers of one type, got {alike[0]!r} and {alike[1]!r}"
        )
    return labels


def _labels(given: Any, weight: Any) -> dict[Any, float]:
    if given.dtype.kind == "O":
        one_kind(set(given.tolist()))
    distinct, codes = np.unique(given, return_inverse=True)
    mass = np.bincount(codes.reshape(-1), weight, minlength=len(distinct))
    return dict(zip(distinct.tolist(), mass.tolist(), strict=True))


def _fault(values: Any, name: str, gaps: bool = False) -> str:
    """The first entry that is no number, in words."""
    numbers = np.asarray(values, dtype=np.float64)
    right = ~np.isinf(numbers) if gaps else np.isfinite(numbers)
    if right.all():
        return ""
    row = int(np.argwhere(~right)[0][0])
    return f"{'' if gaps else 'NaN or '}infinity in {name}, row {row}"
