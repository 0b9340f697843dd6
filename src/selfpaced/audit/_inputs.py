"""Labels and probabilities as users have them: NumPy, pandas, polars, torch or lists."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parameters import speaking_of

__all__ = [
    "AuditInput",
    "array_of",
    "check_in_sample",
    "class_order",
    "codes_among",
    "group_codes",
    "missing",
    "probabilities",
    "read_input",
    "row_values",
    "shown_cells",
    "sorted_labels",
    "warn_in_sample",
]

Array = NDArray[Any]
Floats = NDArray[np.float64]

SUM_ROUNDING = 0.02  # numerical safety: sums of rounded probabilities differ from 1 by less
EXPECTED = 10.0  # theory: errors that a model must expect of itself before their absence says anything
IN_SAMPLE = 0.05  # a choice: share of the expected disagreements below which probabilities look in-sample


@dataclass(frozen=True, eq=False)
class AuditInput:
    """The rows of an audit.

    Attributes
    ----------
    classes : ndarray
        Labels in the order of the columns of ``probs``.
    probs : ndarray of shape (n, n_classes)
        Probabilities of all rows.
    labelled : ndarray of int
        Numbers of the rows that have a label.
    codes : ndarray of int
        Their labels.
    index : object or None
        Index of the rows if labels or probabilities are pandas objects.
    """

    classes: Array
    probs: Floats
    labelled: NDArray[np.intp]
    codes: NDArray[np.intp]
    index: Any = None


def array_of(values: Any) -> Array:
    """Any array-like as a NumPy array; text and mixed kinds as objects."""
    if hasattr(values, "detach"):  # a torch tensor
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values  # NumPy knows no bfloat16
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    if isinstance(values, list | tuple) and any(isinstance(v, str) or v is None for v in values):
        out = np.empty(len(values), dtype=object)
        out[:] = values
        return out
    return np.asarray(values)


def missing(values: Array) -> NDArray[np.bool_]:
    """Which entries are None, NaN or pandas' NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    flat = [
        v is None or type(v).__name__ in ("NAType", "NaTType") or (isinstance(v, float) and v != v)
        for v in values.ravel()
    ]
    return np.array(flat, dtype=bool).reshape(values.shape)


def row_values(name: str, values: Any, n: int) -> Array:
    """One value for each row."""
    out = array_of(values)
    if out.ndim != 1 or len(out) != n:
        raise ValueError(f"{name} must have one value for each of the {n} rows, got shape {out.shape}")
    return out


def probabilities(pred_probs: Any, name: str = "pred_probs") -> Floats:
    """Numbers in [0, 1] without gaps, as they are laid out."""
    with speaking_of(name, "numbers, one row for each label"):
        probs = np.array(array_of(pred_probs), dtype=np.float64)
    if np.isnan(probs).any():
        row = int(np.argwhere(np.isnan(probs))[0][0])
        raise ValueError(
            f"{name} must not contain NaN, got NaN in row {row}; predict every row by a model that was not fitted "
            "on it, or leave these rows out"
        )
    if probs.size and (probs.min() < 0 or probs.max() > 1 + SUM_ROUNDING):
        worst = probs.min() if probs.min() < 0 else probs.max()
        raise ValueError(f"{name} must be in [0, 1], got {worst:.4g}; apply a softmax if these are logits")
    return np.minimum(probs, 1.0)


def read_input(labels: Any, pred_probs: Any, classes: Any = None) -> AuditInput:
    """Check labels and probabilities, and bring them to codes and one column per class."""
    probs = probabilities(pred_probs)
    if probs.ndim == 1 or (probs.ndim == 2 and probs.shape[1] == 1):
        probs = np.column_stack([1.0 - probs.ravel(), probs.ravel()])
    if probs.ndim != 2:
        raise ValueError(f"pred_probs must have shape (n,) or (n, n_classes), got {probs.shape}")
    given = array_of(labels)
    if given.ndim != 1:
        raise ValueError(
            f"labels must be one-dimensional, got shape {given.shape}; use multi_label=True for an indicator matrix, "
            "audit_annotators for one column per annotator"
        )
    if len(given) != len(probs):
        raise ValueError(f"labels and pred_probs must have the same length, got {len(given)} and {len(probs)}")
    labelled = np.flatnonzero(~missing(given))
    if not labelled.size:
        raise ValueError(f"labels must hold some labels, got {len(given)} missing ones")
    known = _plain(given[labelled])
    order = class_order(known, probs.shape[1], classes, getattr(pred_probs, "columns", None))
    index = next((v.index for v in (labels, pred_probs) if hasattr(v, "iloc")), None)
    return AuditInput(order, _normal(probs), labelled, codes_among(known, order), index)


def _plain(values: Array) -> Array:
    """Labels as numbers, booleans or text where all of them are."""
    kinds = {type(v) for v in values.tolist()}
    if kinds <= {int, float} and all(float(v).is_integer() for v in values.tolist()):
        return values.astype(np.int64)
    if kinds == {bool}:
        return values.astype(bool)
    return values.astype(str) if kinds == {str} else values


def sorted_labels(values: Array, keep_order: bool = False) -> tuple[Array, Array]:
    """The distinct labels, sorted or in their own order, and all labels as one kind of value."""
    known = _plain(values)
    found = list(dict.fromkeys(known.tolist()))
    return _plain(_objects(found if keep_order else sorted(found, key=lambda v: (str(type(v)), v)))), known


def class_order(known: Array, width: int, classes: Any, columns: Any) -> Array:
    """The label of every column: as given, by the names of the columns, or the sorted labels."""
    found = sorted_labels(known)[0].tolist()
    if classes is not None:
        order = _plain(array_of(classes))
        if order.ndim != 1 or len(order) != width:
            raise ValueError(f"classes must name the {width} columns of pred_probs, got {len(np.atleast_1d(order))}")
        if len(set(order.tolist())) < width:
            raise ValueError(f"classes must be different from each other, got {order.tolist()!r}")
        return order
    names = [] if columns is None or width != len(columns) else list(columns)
    if names and set(map(str, found)) <= set(map(str, names)):
        like = {str(label): label for label in found}
        return _plain(_objects([like.get(str(name), name) for name in names]))
    if names and any(isinstance(name, str) for name in names) and not _numbered(names):
        raise ValueError(
            f"the columns of pred_probs must be named after the labels, got columns {names[:5]!r} and labels "
            f"{found[:5]!r}; name the label of every column with classes="
        )
    if len(found) == width:
        return _plain(_objects(found))
    if all(isinstance(label, int) and 0 <= label < width for label in found):
        return np.arange(width)
    raise ValueError(
        f"pred_probs must have one column per label, got {width} columns and {len(found)} labels "
        f"{found[:5]!r}; name the label of every column with classes="
    )


def _numbered(names: list[Any]) -> bool:
    """Whether the columns have the names that polars gives by itself."""
    return [str(name) for name in names] == [f"column_{i}" for i in range(len(names))]


def _objects(values: list[Any]) -> Array:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def codes_among(known: Array, classes: Array) -> NDArray[np.intp]:
    place = {label: code for code, label in enumerate(classes.tolist())}
    unknown = sorted({str(label) for label in known.tolist() if label not in place})
    if unknown:
        raise ValueError(
            f"labels must be among the classes {classes.tolist()[:5]!r}, got {unknown[:5]!r}; name the label "
            "of every column of pred_probs with classes="
        )
    return np.array([place[label] for label in known.tolist()], dtype=np.intp)


def _normal(probs: Floats) -> Floats:
    """Rows that sum to 1, which rounding may have moved a little."""
    sums = probs.sum(axis=1)
    off = np.abs(sums - 1.0)
    if off.max(initial=0.0) > SUM_ROUNDING:
        row = int(off.argmax())
        raise ValueError(
            f"the rows of pred_probs must sum to 1, got {sums[row]:.4g} in row {row}; divide by the row sums, or use "
            "multi_label=True if a row may have several labels"
        )
    return np.asarray(probs / sums[:, None])


def check_in_sample(probs: Floats, codes: NDArray[np.intp], stacklevel: int = 3) -> bool:
    """Warn if probabilities agree with the labels more than held-out ones could."""
    top = probs.max(axis=1)
    expected, found = float(np.sum(1.0 - top)), int(np.sum(probs.argmax(axis=1) != codes))
    return warn_in_sample(expected, found, len(codes), bool(np.all(top == 1.0)), stacklevel + 1)


def warn_in_sample(expected: float, found: int, n: int, certain: bool, stacklevel: int) -> bool:
    """The same, from the number of labels that probabilities contradict and expect to, and whether all are certain."""
    certain = found == 0 and n >= 5 * EXPECTED and certain
    if not certain and (expected < EXPECTED or found > IN_SAMPLE * expected):
        return False
    warnings.warn(
        f"pred_probs look in-sample: {found} of {n} labels are contradicted, and the probabilities themselves "
        f"expect {expected:.0f}. Wrong labels cannot be found this way. Use held-out probabilities, for example "
        "cross_val_predict(model, X, y, method='predict_proba').",
        UserWarning,
        stacklevel=stacklevel,
    )
    return True


def group_codes(groups: Any, n: int) -> NDArray[np.intp]:
    """The group of each row, as a number."""
    names = row_values("groups", groups, n)
    if missing(names).any():
        raise ValueError(f"groups must name the group of every row, got none for row {int(missing(names).argmax())}")
    return np.unique(names.astype(str), return_inverse=True)[1]


def shown_cells(cells: Any, n: int) -> Any:
    """What is shown of a row, as a table; None as it is."""
    if cells is None:
        return None
    if isinstance(cells, list | tuple) or np.ndim(cells) == 1:
        import pandas as pd

        cells = pd.DataFrame({getattr(cells, "name", None) or "cell": list(cells)})
    if hasattr(cells, "to_pandas"):
        cells = cells.to_pandas()
    if len(cells) != n:
        raise ValueError(f"cells must have one row for each of the {n} rows, got {len(cells)}")
    return cells
