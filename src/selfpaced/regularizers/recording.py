"""A rule's own formula, recorded as a graph of elementary operations.

The formulas of the rules are written for any array namespace. Here the namespace is :data:`RECORDER` and the array a
:class:`Node`: evaluating a formula on it leaves a graph, which :mod:`.program` turns into steps that run in place.
The pace is a number while recording, so everything that depends on it alone is a constant of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Value = Any  # a Node, or a number

# numerical safety: constants are merged, and divisions turned into products, only far from overflow and underflow.
_SAFE = 1e30


class Unrecordable(TypeError):
    """A formula that asks a recorded value for something only a number could answer."""


class Node:
    """An operation on one or two values; the constant, if there is one, is the second."""

    __slots__ = ("args", "dtype", "op")

    def __init__(self, op: str, args: tuple[Any, ...], dtype: np.dtype[Any]) -> None:
        self.op, self.args, self.dtype = op, args, dtype

    def constant(self, *ops: str) -> bool:
        """Whether this is one of the operations, with a constant."""
        return self.op in ops and not isinstance(self.args[1], Node)

    def __add__(self, other: Value) -> Value:
        return _add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Value) -> Value:
        return _subtract(self, other)

    def __rsub__(self, other: Value) -> Value:
        return _subtract(other, self)

    def __mul__(self, other: Value) -> Value:
        return _multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Value) -> Value:
        return _divide(self, other)

    def __rtruediv__(self, other: Value) -> Value:
        return _divide(other, self)

    def __pow__(self, other: Value) -> Value:
        return _raise(self, other)

    def __rpow__(self, other: Value) -> Value:
        return _unary("exp")(self * math.log(other))

    def __neg__(self) -> Value:
        return _scale(self, -1.0)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Value:
        return _unary("abs")(self)

    def __lt__(self, other: Value) -> Value:
        return _compare("less", self, other)

    def __le__(self, other: Value) -> Value:
        return _compare("less_equal", self, other)

    def __gt__(self, other: Value) -> Value:
        return _compare("greater", self, other)

    def __ge__(self, other: Value) -> Value:
        return _compare("greater_equal", self, other)

    # Truth values are recorded as 0 and 1.
    def __and__(self, other: Value) -> Value:
        return _multiply(self, other)

    def __or__(self, other: Value) -> Value:
        return _extreme("max")(self, other)

    def __invert__(self) -> Value:
        return 1.0 - self

    def __bool__(self) -> bool:
        raise Unrecordable("the formula branches on the value of a loss")

    def __float__(self) -> float:
        raise Unrecordable("the formula needs the value of a loss")

    __array__ = None  # NumPy shall not make an object array of it

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Value:
        known = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or options or known is None:
            raise Unrecordable(f"numpy.{ufunc.__name__} cannot be recorded")
        return known(*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Value:
        known = getattr(RECORDER, function.__name__, None)
        if known is None:
            raise Unrecordable(f"numpy.{function.__name__} cannot be recorded")
        return known(*args, **kwargs)


def _node(op: str, a: Node, b: Value) -> Node:
    return Node(op, (a, b if isinstance(b, Node) else float(b)), a.dtype)


def safe(value: float) -> bool:
    """Whether constants may be merged into it, and a division by it be a product."""
    return 1 / _SAFE < abs(value) < _SAFE


def _scale(x: Node, factor: float) -> Any:
    """x * factor, into a constant that is already there."""
    if factor == 0:
        return 0.0
    if factor == 1:
        return x
    if x.constant("mul", "rdiv") and safe(x.args[1] * factor):
        return _node(x.op, x.args[0], x.args[1] * factor)
    if x.constant("div") and safe(x.args[1] / factor):
        return _node("div", x.args[0], x.args[1] / factor)
    if factor == -1 and x.constant("add"):
        return _node("rsub", x.args[0], -x.args[1])
    if factor == -1 and x.constant("rsub"):
        return _shift(x.args[0], -x.args[1])
    return _node("mul", x, factor)


def _shift(x: Node, number: float) -> Node:
    """x + number, into a constant that is already there."""
    if number == 0:
        return x
    if x.constant("add", "rsub"):
        return _node(x.op, x.args[0], x.args[1] + number)
    return _node("add", x, number)


def _add(a: Value, b: Value) -> Any:
    if isinstance(a, Node):
        return _node("add", a, b) if isinstance(b, Node) else _shift(a, float(b))
    return _shift(b, float(a)) if isinstance(b, Node) else a + b


def _subtract(a: Value, b: Value) -> Any:
    if not isinstance(b, Node):
        return _add(a, -b)
    if isinstance(a, Node):
        return _node("sub", a, b)
    return _shift(_scale(b, -1.0), float(a)) if b.constant("add", "rsub") else _node("rsub", b, a)


def _multiply(a: Value, b: Value) -> Any:
    if isinstance(a, Node) and isinstance(b, Node):
        return Node("square", (a,), a.dtype) if a is b else _node("mul", a, b)
    if isinstance(a, Node):
        return _scale(a, float(b))
    return _scale(b, float(a)) if isinstance(b, Node) else a * b


def _divide(a: Value, b: Value) -> Any:
    if isinstance(b, Node):
        return _node("div", a, b) if isinstance(a, Node) else _node("rdiv", b, a)
    if not isinstance(a, Node):
        return a / b
    number = float(b)
    if a.constant("div") and safe(a.args[1] * number):
        return _node("div", a.args[0], a.args[1] * number)
    if a.constant("mul", "rdiv") and safe(a.args[1] / number):
        return _node(a.op, a.args[0], a.args[1] / number)
    return a if number == 1 else _node("div", a, number)


def _raise(x: Node, power: Value) -> Value:
    if isinstance(power, Node):
        return _node("pow", x, power)
    whole = float(power)
    if whole in (1.0, 2.0, 3.0):
        return x if whole == 1 else x * x if whole == 2 else x * x * x
    return _unary("sqrt")(x) if whole == 0.5 else _node("pow", x, whole)


_MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def _compare(op: str, a: Value, b: Value) -> Any:
    if not isinstance(a, Node):
        return _compare(_MIRRORED[op], b, a) if isinstance(b, Node) else getattr(np, op)(a, b)
    if not isinstance(b, Node) and a.constant("div") and a.args[1] > 0 and safe(a.args[1]):
        return _node(op, a.args[0], float(b) * a.args[1])  # exact where the bound is 1
    return _node(op, a, b)


def _extreme(op: str) -> Callable[[Value, Value], Any]:
    def of(a: Value, b: Value) -> Any:
        if isinstance(a, Node):
            return _node(op, a, b)
        return _node(op, b, a) if isinstance(b, Node) else getattr(np, op + "imum")(a, b)

    return of


def _unary(op: str) -> Callable[[Value], Any]:
    def of(x: Value) -> Any:
        return Node(op, (x,), x.dtype) if isinstance(x, Node) else getattr(np, op)(x)

    return of


class Recorder:
    """The part of an array namespace that can be recorded; numbers are passed on to NumPy."""

    abs, sqrt, exp, expm1 = (staticmethod(_unary(op)) for op in ("abs", "sqrt", "exp", "expm1"))
    log, log1p, tanh, arctan = (staticmethod(_unary(op)) for op in ("log", "log1p", "tanh", "arctan"))
    atan = arctan
    maximum, minimum = staticmethod(_extreme("max")), staticmethod(_extreme("min"))
    finfo = staticmethod(np.finfo)
    float32, float64 = np.float32, np.float64

    def clip(self, x: Value, min: Any = None, max: Any = None) -> Value:
        if min is not None:
            x = self.maximum(x, min)
        return x if max is None else self.minimum(x, max)

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        if not isinstance(condition, Node):
            return yes if condition else no
        return Node("where", (condition, yes, no), condition.dtype)

    def logaddexp(self, a: Value, b: Value) -> Value:
        return self.maximum(a, b) + self.log1p(self.exp(-abs(a - b)))

    def isinf(self, x: Value) -> Value:
        return abs(x) > float(np.finfo(x.dtype).max) if isinstance(x, Node) else np.isinf(x)

    def astype(self, x: Value, dtype: Any) -> Value:  # noqa: ARG002
        return x

    def zeros_like(self, x: Value) -> float:  # noqa: ARG002
        return 0.0

    def ones_like(self, x: Value) -> float:  # noqa: ARG002
        return 1.0

    def full_like(self, x: Value, value: float) -> float:  # noqa: ARG002
        return value


class QuickRecorder(Recorder):
    """The same without the digits near zero that the slow ``expm1`` and ``log1p`` keep."""

    @staticmethod
    def expm1(x: Value) -> Value:
        return Recorder.exp(x) - 1

    @staticmethod
    def log1p(x: Value) -> Value:
        return Recorder.log(1 + x)


RECORDER, QUICK = Recorder(), QuickRecorder()

_UFUNCS: dict[str, Callable[..., Value]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "negative": lambda x: -x,
    "power": lambda x, power: x**power,
    "square": lambda x: x * x,
    "absolute": abs,
    "reciprocal": lambda x: 1 / x,
    **{name: lambda a, b, op=name: _compare(op, a, b) for name in _MIRRORED},
    **{
        name: getattr(RECORDER, name)
        for name in (
            "sqrt",
            "exp",
            "expm1",
            "log",
            "log1p",
            "tanh",
            "arctan",
            "maximum",
            "minimum",
            "logaddexp",
            "isinf",
        )
    },
}
