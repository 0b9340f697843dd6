"""The derivative of a recorded formula, as a recorded formula: the weight of a latent loss that a user wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .recording import RECORDER, Node, Value

# d op(x) / dx, from the node and its operand (a constant in the second place does not move).
_UNARY: dict[str, Callable[[Any, Any], Value]] = {
    "abs": lambda _, x: RECORDER.where(x < 0, -1.0, 1.0),
    "sqrt": lambda y, _: 0.5 / y,
    "square": lambda _, x: 2 * x,
    "exp": lambda y, _: y,
    "expm1": lambda _, x: RECORDER.exp(x),
    "log": lambda _, x: 1 / x,
    "log1p": lambda _, x: 1 / (1 + x),
    "tanh": lambda y, _: 1 - y * y,
    "arctan": lambda _, x: 1 / (1 + x * x),
}
# The same for both operands of two.
_BINARY: dict[str, tuple[Callable[[Any, Any, Any], Value], Callable[[Any, Any, Any], Value]]] = {
    "add": (lambda *_: 1.0, lambda *_: 1.0),
    "sub": (lambda *_: 1.0, lambda *_: -1.0),
    "rsub": (lambda *_: -1.0, lambda *_: 1.0),
    "mul": (lambda _, a, b: b, lambda _, a, b: a),  # noqa: ARG005
    "div": (lambda _, a, b: 1 / b, lambda y, a, b: -y / b),  # noqa: ARG005
    "rdiv": (lambda y, a, b: -y / a, lambda _, a, b: 1 / a),  # noqa: ARG005
    "pow": (lambda _, a, b: b * a ** (b - 1), lambda y, a, b: y * RECORDER.log(a)),  # noqa: ARG005
    "max": (lambda _, a, b: RECORDER.where(a < b, 0.0, 1.0), lambda _, a, b: RECORDER.where(a < b, 1.0, 0.0)),
    "min": (lambda _, a, b: RECORDER.where(a > b, 0.0, 1.0), lambda _, a, b: RECORDER.where(a > b, 1.0, 0.0)),
}


def derivative(value: Value, source: Node) -> Value:
    """d value / d source: a node, or a number where it does not depend on the source."""
    return _derivative(value, source, {source: 1.0})


def _derivative(value: Value, source: Node, known: dict[Node, Value]) -> Value:
    if not isinstance(value, Node):
        return 0.0
    if value not in known:
        slopes = [_derivative(arg, source, known) for arg in value.args]
        if value.op in _UNARY:
            found = _UNARY[value.op](value, value.args[0]) * slopes[0]
        elif value.op in _BINARY:
            a, b = value.args
            first, second = (
                0.0 if isinstance(slope, float) and slope == 0 else partial(value, a, b) * slope
                for partial, slope in zip(_BINARY[value.op], slopes, strict=True)
            )
            found = first + second
        elif value.op == "where":
            found = RECORDER.where(value.args[0], *slopes[1:])
        else:  # the input's own operands, and comparisons, which are flat
            found = 0.0
        known[value] = found
    return known[value]
