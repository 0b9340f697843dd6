"""Labels and probabilities as users have them: NumPy, pandas, polars, torch or lists."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parameters import speaking_of

Array = NDArray[Any]
Floats = NDArray[np.float64]

SUM_ROUNDING = 0.02  # numerical safety: sums of rounded probabilities differ from 1 by less
EXPECTED = 10.0  # theory: errors that a model must expect of itself before their absence says anything
# benchmarks/audit.py, in-sample: held-out labels contradict 0.40 to 2.82 times as often as expected, those of a forest
# that has seen them 0 to 0.11 times.
IN_SAMPLE = 0.05  # share of the expected contradictions up to which probabilities look in-sample


@dataclass(frozen=True, eq=False)
class AuditInput:
    """The rows of an audit."""

    classes: Array  # labels in the order of the columns of ``probs``
    probs: Floats  # of all rows
    labelled: NDArray[np.intp]  # numbers of the rows that have a label
    codes: NDArray[np.intp]  # their labels
    index: Any = None  # of the rows if labels or probabilities are pandas objects


def array_of(values: Any, name: str) -> Array:
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
    with speaking_of(name, "an array, every row of the same length"):
        return np.asarray(values)


def missing(values: Array) -> NDArray[np.bool_]:
    """Which entries are None, NaN or pandas' NA."""
    import pandas as pd

    return np.asarray(pd.isna(values))


def row_values(name: str, values: Any, n: int) -> Array:
    """One value for each row."""
    out = array_of(values, name)
    if out.ndim != 1 or len(out) != n:
        raise ValueError(f"{name} must have one value for each of the {n} rows, got shape {out.shape}")
    return out


def probabilities(pred_probs: Any, name: str = "pred_probs") -> Floats:
    """Numbers in [0, 1] without gaps, as they are laid out."""
    given = array_of(pred_probs, name)
    if given.ndim not in (1, 2) or given.dtype.kind == "c":
        raise ValueError(
            f"{name} must be probabilities of shape (n,) or (n, n_classes), got {given.dtype} of shape {given.shape}"
        )
    with speaking_of(name, "numbers, one row for each label"):
        probs = np.array(given, dtype=np.float64)
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
    given = array_of(labels, "labels")
    if given.ndim != 1:
        raise ValueError(
            f"labels must be one-dimensional, got shape {given.shape}; use multi_label=True for an indicator matrix, "
            "audit_annotators for one column per annotator"
        )
    if len(given) != len(probs):
        raise ValueError(f"labels and pred_probs must have the same length, got {len(given)} and {len(probs)}")
    labelled = np.flatnonzero(~missing(given))
    if not labelled.size:
        raise ValueError(f"labels must hold some labels, got none in {len(given)} rows")
    known = plain(given[labelled])
    order = class_order(known, probs.shape[1], classes, getattr(pred_probs, "columns", None))
    index = next((v.index for v in (labels, pred_probs) if hasattr(v, "iloc")), None)
    return AuditInput(order, _normal(probs), labelled, codes_among(known, order), index)


def plain(values: Any) -> Array:
    """Labels as numbers, booleans or text where all of them are, else as objects."""
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    kinds = {type(value) for value in listed}
    if kinds <= {int, float} and all(float(value).is_integer() for value in listed):
        return np.array(listed, dtype=np.int64)
    if kinds in ({bool}, {str}):
        return np.array(listed)
    out = np.empty(len(listed), dtype=object)
    out[:] = listed
    return out


def sorted_labels(known: Array) -> Array:
    """The distinct labels in their order, those of several kinds kind by kind."""
    return plain(sorted(set(known.tolist()), key=lambda label: (str(type(label)), label)))


def given_classes(classes: Any) -> Array:
    """The labels of the columns, as a user names them."""
    given = array_of(list(classes) if isinstance(classes, Iterable) else classes, "classes")
    if given.ndim != 1:
        raise ValueError(f"classes must be a sequence of labels, got {classes!r}")
    order = plain(given)
    if len(set(order.tolist())) < len(order):
        raise ValueError(f"classes must be different from each other, got {order.tolist()!r}")
    return order


def class_order(known: Array, width: int, classes: Any, columns: Any) -> Array:
    """The label of every column: as given, by the names of the columns, or the sorted labels."""
    found = sorted_labels(known).tolist()
    if classes is not None:
        order = given_classes(classes)
        if len(order) != width:
            raise ValueError(f"classes must name the {width} columns of pred_probs, got {len(order)}")
        return order
    names = [] if columns is None or width != len(columns) else list(columns)
    if names and set(map(str, found)) <= set(map(str, names)):
        like = {str(label): label for label in found}
        return plain([like.get(str(name), name) for name in names])
    by_themselves = [f"column_{i}" for i in range(len(names))]  # names that polars gives
    if any(isinstance(name, str) for name in names) and names != by_themselves:
        raise ValueError(
            f"the columns of pred_probs must be named after the labels, got columns {names[:5]!r} and labels "
            f"{found[:5]!r}; name the label of every column with classes="
        )
    if len(found) == width:
        return plain(found)
    if all(isinstance(label, int) and 0 <= label < width for label in found):
        return np.arange(width)
    raise ValueError(
        f"pred_probs must have one column per label, got {width} columns and {len(found)} labels "
        f"{found[:5]!r}; name the label of every column with classes="
    )


def codes_among(known: Array, classes: Array) -> NDArray[np.intp]:
    """The place of every label among the classes."""
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
        f"pred_probs look in-sample: they contradict {found} of {n} labels, although they imply about "
        f"{expected:.0f} errors. Wrong labels cannot be found this way. Use held-out probabilities, for example "
        "cross_val_predict(model, X, y, method='predict_proba').",
        UserWarning,
        stacklevel=stacklevel,
    )
    return True


def shown_cells(cells: Any, n: int) -> Any:
    """What is shown of a row, as a table; None as it is."""
    if cells is None:
        return None
    if isinstance(cells, list | tuple) or np.ndim(cells) == 1:
        import pandas as pd

        cells = pd.DataFrame({getattr(cells, "name", None) or "cell": list(cells)})
    if hasattr(cells, "to_pandas"):
        cells = cells.to_pandas()
    if not hasattr(cells, "__len__") or len(cells) != n:
        raise ValueError(f"cells must have one row for each of the {n} rows, got {np.shape(cells)}")
    return cells
