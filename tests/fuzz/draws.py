"""Odd things to hand to a library: tables, targets, weights, parameters."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression


class Draw:
    """A generator of choices; the same seed makes the same ones."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]


# --------------------------------------------------------------------------------------------------------- tables

SIZES = [24, 24, 24, 40, 40, 12, 8, 5, 3, 2, 1, 0]
WIDTHS = [3, 3, 3, 3, 2, 1, 1, 8, 30, 0]
SCALES = [1e-320, 1e-300, 1e-162, 1e-100, 1e-30, 1e-8, 1e8, 1e30, 1e100, 1e155, 1e200, 1e300, 1e308]


def table(draw: Draw) -> np.ndarray:
    """Numbers as a well-behaved user has them, sometimes few, constant, repeated, dependent or far away."""
    n, d = draw.one(SIZES), draw.one(WIDTHS)
    X = draw.rng.normal(size=(n, d))
    if draw.chance(0.5) or not X.size:
        return X
    column, row = int(draw.rng.integers(d)), int(draw.rng.integers(n))
    change: Callable[[], Any] = draw.one(
        [
            lambda: X.__setitem__((slice(None), column), 1.0),
            lambda: X.__setitem__((slice(None), column), X[:, 0]),
            lambda: X.__setitem__((slice(None), column), X[:, column] * draw.one(SCALES[1:-1])),
            lambda: X.__setitem__(slice(None), X * draw.one(SCALES[1:-1])),
            lambda: X.__setitem__((row, column), draw.one([np.nan, np.inf, -np.inf, 1e300, -1e12, 5e-324])),
            lambda: X.__setitem__(slice(None), X + 1e9),
            lambda: X.__setitem__(slice(None), np.round(X)),
            lambda: X.__setitem__(slice(None), X[row]),
            lambda: X.__setitem__(slice(None), 0.0),
        ]
    )
    change()
    return X


def _text(X: np.ndarray, draw: Draw) -> np.ndarray:
    odd = X.astype(object)
    if odd.size:
        odd[0, 0] = draw.one(["", "a", "1.5", None, True, 1j, b"x", object(), [1, 2], Decimal("1.5"), Fraction(1, 3)])
    return odd


def _frame(X: np.ndarray, draw: Draw) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    if draw.chance(0.5):
        frame["odd"] = draw.one(
            [
                pd.date_range("2020", periods=len(X)),
                pd.Series(["x", "y"] * len(X)).iloc[: len(X)].to_numpy(),
                pd.Categorical.from_codes([0] * len(X), ["one"]),
                [None] * len(X),
                [True] * len(X),
                [datetime.timedelta(1)] * len(X),
            ]
        )
    if draw.chance(0.1) and X.shape[1] > 1:
        frame.columns = [frame.columns[0]] * frame.shape[1]
    return frame


def _read_only(X: np.ndarray) -> np.ndarray:
    X.flags.writeable = False
    return X


FORMS: list[Callable[[np.ndarray, Draw], Any]] = [
    lambda X, draw: X.astype(np.float32),
    lambda X, draw: X.astype(np.float16),
    lambda X, draw: np.nan_to_num(X).clip(-1e6, 1e6).astype(draw.one([np.int64, np.int8, np.uint16, bool])),
    lambda X, draw: X.astype(complex),
    lambda X, draw: np.asfortranarray(X),
    lambda X, draw: np.repeat(X, 2, axis=1)[:, ::2],
    lambda X, draw: _read_only(X),
    lambda X, draw: np.ma.masked_greater(X, 1.0),
    lambda X, draw: np.ma.masked_invalid(X),
    lambda X, draw: X.tolist(),
    lambda X, draw: [*X.tolist(), [1.0]],
    lambda X, draw: X.ravel(),
    lambda X, draw: X[None],
    lambda X, draw: X.astype(str),
    lambda X, draw: X.astype(">f8"),
    _text,
    _text,
    _frame,
    _frame,
    _frame,
    lambda X, draw: sparse.csr_matrix(X),
    lambda X, draw: sparse.csr_array(X),
    lambda X, draw: sparse.csc_matrix(X),
    lambda X, draw: sparse.coo_array(X),
    lambda X, draw: draw.one(
        [None, "X", 3, 3.5, {}, {"a": 1}, set(), object(), iter([]), b"bytes", [], [[]], (), True]
    ),
]


def features(draw: Draw) -> Any:
    """A table of numbers in one of the forms that somebody may hand over."""
    X = table(draw)
    with np.errstate(all="ignore"):
        return X if draw.chance(0.6) else draw.one(FORMS)(X, draw)


def rows_of(X: Any) -> int:
    """How many rows this has, as far as it has any."""
    shape = getattr(X, "shape", None)
    if shape:
        return int(shape[0])
    return len(X) if hasattr(X, "__len__") else 5


# -------------------------------------------------------------------------------------------------------- targets


def _labels(n: int, draw: Draw) -> np.ndarray:
    return np.arange(n) % draw.one([2, 2, 2, 3, 3, 5]) if draw.chance(0.5) else draw.rng.integers(0, 2, n)


def _values(n: int, draw: Draw) -> np.ndarray:
    y = draw.rng.normal(size=n)
    y[: n // 5] += 10
    return y


def _mixed(n: int, draw: Draw) -> list[Any]:
    return [draw.one([1, "a", None, 2.5, True, (1, 2), np.nan]) for _ in range(n)]


TARGETS: list[Callable[[int, Draw], Any]] = [
    lambda n, draw: np.where(_labels(n, draw) > 0, "yes", "no"),
    lambda n, draw: _labels(n, draw).astype(bool),
    lambda n, draw: pd.Series(_labels(n, draw)),
    lambda n, draw: pd.Categorical(_labels(n, draw)),
    lambda n, draw: _labels(n, draw)[:, None],
    lambda n, draw: np.column_stack([_labels(n, draw)] * 2),
    lambda n, draw: np.zeros(n),
    lambda n, draw: np.arange(n),
    lambda n, draw: (np.arange(n) == 0).astype(int),
    lambda n, draw: _labels(n + 1, draw),
    lambda n, draw: _labels(n, draw).astype(float) * draw.one(SCALES),
    lambda n, draw: _values(n, draw) * draw.one(SCALES[:-1]),
    lambda n, draw: _values(n, draw).astype(draw.one([np.float32, np.float16, object, str, complex, "M8[s]"])),
    lambda n, draw: np.where(np.arange(n) == 1, draw.one([np.nan, np.inf, -np.inf, 1e300]), _values(n, draw)),
    lambda n, draw: np.full(n, draw.one([1e300, 1e-300, -7.0, 3])),
    lambda n, draw: sparse.csr_matrix(_values(n, draw)[:, None]),
    lambda n, draw: pd.Series(_labels(n, draw)).where(lambda s: s.index != 1, None),
    lambda n, draw: np.array([datetime.date(2020, 1, 1 + i % 20) for i in range(n)], dtype=object),
    _mixed,
    lambda n, draw: [draw.one([2**70, 1, "1", True]) for _ in range(n)],
    lambda n, draw: np.array([draw.one([2**70, 1]) for _ in range(n)], dtype=object),
    lambda n, draw: _labels(n, draw).astype(object),
    lambda n, draw: pd.Series(pd.date_range("2020", periods=n)),
    lambda n, draw: np.repeat(_labels(n, draw), 4).reshape(n, 2, 2),
    lambda n, draw: draw.one([None, 1, "y", [], {}, set(), object(), [[1], [2, 3]], np.zeros((2, 2, 2)), True]),
]


def target(n: int, draw: Draw, kind: str) -> Any:
    """Labels or values for n rows, mostly such as they should be."""
    usual = _labels if kind == "labels" else _values
    with np.errstate(all="ignore"):
        return usual(n, draw) if draw.chance(0.65) else draw.one(TARGETS)(n, draw)


WEIGHTS: list[Callable[[int, Draw], Any]] = [
    lambda n, draw: draw.rng.random(n),
    lambda n, draw: draw.rng.integers(0, 3, n),
    lambda n, draw: np.ones(n),
    lambda n, draw: np.zeros(n),
    lambda n, draw: (np.arange(n) == 0).astype(float),
    lambda n, draw: draw.rng.random(n) * draw.one(SCALES),
    lambda n, draw: np.where(np.arange(n) == 1, draw.one([np.nan, np.inf, -1.0, 1e300, 1e-300]), 1.0),
    lambda n, draw: np.full(n, draw.one([1 / max(n, 1), 2.0000001, 1e12, 1e-9])),
    lambda n, draw: np.where(np.arange(n) % 3 == 0, draw.one([0.01, 1e-9, 1e6, 1e12]), 1.0),
    lambda n, draw: -np.ones(n),
    lambda n, draw: np.ones(n + 1),
    lambda n, draw: np.ones((n, 2)),
    lambda n, draw: pd.Series(draw.rng.random(n)),
    lambda n, draw: draw.one([2.0, 0, "a", ["a"] * n, object(), {}, [None] * n, [1j] * n, True, [], set()]),
]


def weight(n: int, draw: Draw) -> Any:
    """Sample weights, mostly none."""
    return None if draw.chance(0.8) else draw.one(WEIGHTS)(n, draw)


# ----------------------------------------------------------------------------------------------------- parameters

JUNK: list[Any] = [
    object(), [], {}, set(), (), "nonsense", "False", "auto", b"auto", "", float("nan"), float("inf"), -float("inf"),
    -1, 0, 1, 2, 3, -0.5, 0.0, 0.5, 1.5, 1e-320, 1e-12, 1e308, 10**12, 2**70, True, False, None, np.zeros(3),
    np.array("auto"), np.float32(0.5), np.int8(2), np.array([2]), np.array(2), 1j, lambda: 3, print, int,
    LogisticRegression, KMeans(), pd.Timestamp("2020"), Decimal("0.5"), Fraction(1, 2), [1, 2], (0, 1), {"a": 1},
    range(3), iter([1]), np.random.default_rng(0), np.random.RandomState(0), datetime.date(2020, 1, 1), NotImplemented,
]  # fmt: skip
