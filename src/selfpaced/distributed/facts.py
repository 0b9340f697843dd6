"""What is known of a block before any fit: its rows, its labels, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..arguments import one_kind
from .table import Array, Block, total


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
    if not labels:
        return None, np.array([found[0]])
    classes = label_array(found)
    order = np.argsort(classes, kind="stable")
    return classes[order], np.array(list(found.values()))[order]


def label_array(distinct: Iterable[Any]) -> Array:
    """Distinct labels as an array in which they stay distinct."""
    known = list(distinct)
    one_kind(known)
    labels = np.array(known)
    names, counts = np.unique(labels, return_counts=True)
    if names.size < labels.size:
        alike = [label for label, found in zip(known, labels, strict=True) if found == names[counts.argmax()]]
        raise ValueError(f"y must hold labels that one type of numbers tells apart, got {alike[0]!r} and {alike[1]!r}")
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


__all__ = ["Facts", "classes_of", "facts_of", "label_array"]
