"""A formula as a short list of in-place steps: what makes every rule fast by its one class.

:func:`weight_program` and :func:`latent_program` record a rule at a pace (:mod:`.recording`) and lay the graph out
over a few registers, each step overwriting the first of them. NumPy runs the steps here, without temporaries beyond
the registers; the factorization's compiled loop runs the same steps row by row. What cannot be recorded, or does not
give the rule's own values, has no program: the caller then evaluates the rule as it is.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from .recording import QUICK, RECORDER, Node, safe

if TYPE_CHECKING:
    from .base import Regularizer

Floats = NDArray[Any]
_Key = ParamSpec("_Key")

_BLOCK = 1 << 16  # cost: the registers of so many values stay in the cache
_ROUNDINGS = 64  # numerical safety: how far a program may be from the rule at its probes
# numerical safety: beyond it the ratio of a loss to the scale leaves float32, and the rule's careful formula is needed
_WIDEST = 1e12
# Losses, in units of the scale, at which a program has to give the rule's values: none, far below and far above.
_PROBES = np.append(0.0, np.geomspace(1e-6, 1e4, 31))

_UNARY: dict[str, Any] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "square": np.square,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "arctan": np.arctan,
}
_BINARY: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
# The same operation with its operands exchanged, for a target that is the second of them.
MIRROR = {
    "add": "add",
    "mul": "mul",
    "max": "max",
    "min": "min",
    "sub": "rsub",
    "div": "rdiv",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
_REVERSED = {"rsub": np.subtract, "rdiv": np.divide}
#: Every operation that a step can name.
OPERATIONS = ("fill", "copy", "where", "clip", *_UNARY, *_BINARY, *_REVERSED)


@dataclass(frozen=True)
class Instruction:
    """``target = op(target, other)``; without ``other`` the second operand is ``constant``.

    ``third`` is the other branch of a where, ``upper`` the upper bound of a clip.
    """

    op: str
    target: int
    other: int | None = None
    third: int | None = None
    constant: float = 0.0
    upper: float = math.inf


@dataclass(frozen=True)
class Program:
    """Steps over registers; the first holds the input at the start, ``result`` the value at the end."""

    steps: tuple[Instruction, ...]
    n_registers: int
    result: int

    def __call__(self, values: Floats) -> Floats:
        """The formula at every element; ``values`` are not overwritten."""
        if values.size <= _BLOCK:
            return self._at_once(values)
        flat, out = values.reshape(-1), np.empty(values.size, values.dtype)
        for start in range(0, flat.size, _BLOCK):
            out[start : start + _BLOCK] = self._at_once(flat[start : start + _BLOCK])
        return out.reshape(values.shape)

    def _at_once(self, values: Floats) -> Floats:
        held: list[Any] = [values, *[None] * (self.n_registers - 1)]
        buffers: list[Any] = [None] * self.n_registers  # of what has been overwritten, to be written again
        with np.errstate(all="ignore"):
            for step in self.steps:
                if step.op == "copy":  # the next step reads it and writes elsewhere
                    held[step.target] = held[step.other or 0]
                else:
                    held[step.target] = buffers[step.target] = _run(step, held, buffers[step.target])
        found: Floats = held[self.result] if self.steps else values.copy()
        return found


def _run(step: Instruction, held: list[Any], out: Any) -> Any:
    op, target = step.op, held[step.target]
    if op in _UNARY:
        return _UNARY[op](target, out=out)
    if op == "fill":
        return np.full_like(held[0], step.constant)
    other = step.constant if step.other is None else held[step.other]
    if op == "where":
        return np.where(target, other, held[step.third or 0])
    if op == "clip":  # also for one bound: twice as fast as np.minimum
        return target.clip(other, step.upper, out)
    if op in _REVERSED:
        return _REVERSED[op](other, target, out=out)
    # a comparison writes 0 and 1 into numbers, never a boolean array
    return _BINARY[op](target, other, out=np.empty_like(target) if out is None else out)


class _Layout:
    """Registers for the nodes of a graph: a value dies with its last reader, which may overwrite it."""

    def __init__(self, source: Node, result: Node) -> None:
        order = list(_in_order(result, set()))
        self.readers = Counter(arg for node in order for arg in node.args if isinstance(arg, Node))
        self.readers[result] += 1
        self.place: dict[Node, int] = {source: 0}
        self.free: list[int] = []
        self.n_registers = 1
        self.steps: list[Instruction] = []
        for node in order:
            if node is not source:
                self._emit(node)

    def _take(self) -> int:
        if self.free:
            return self.free.pop()
        self.n_registers += 1
        return self.n_registers - 1

    def _dies(self, value: Any) -> bool:
        return isinstance(value, Node) and self.readers[value] == 1

    def _own(self, value: Any) -> int:
        """A register with this value that may be overwritten."""
        if self._dies(value):
            return self.place[value]
        register = self._take()
        if isinstance(value, Node):
            self.steps.append(Instruction("copy", register, self.place[value]))
        else:
            self.steps.append(Instruction("fill", register, constant=float(value)))
        return register

    def _append(self, step: Instruction) -> None:
        last = self.steps[-1] if self.steps else None
        if last is not None and step.op == last.op == "clip" and step.target == last.target:
            low, high = (min(max(bound, step.constant), step.upper) for bound in (last.constant, last.upper))
            self.steps[-1] = Instruction("clip", step.target, constant=low, upper=high)
        else:
            self.steps.append(step)

    def _emit(self, node: Node) -> None:
        op, args = node.op, node.args
        if op == "fill":
            target = self._own(args[1])
        elif op == "where":
            target = self._own(args[0])
            branches = [self.place[arg] if isinstance(arg, Node) else self._own(arg) for arg in args[1:]]
            self.steps.append(Instruction(op, target, *branches))
            self.free += [
                register for arg, register in zip(args[1:], branches, strict=True) if not isinstance(arg, Node)
            ]
        else:
            other = args[1] if len(args) == 2 else None
            first = args[0]
            if isinstance(other, Node) and not self._dies(first) and self._dies(other) and op in MIRROR:
                first, other, op = other, first, MIRROR[op]
            target = self._own(first)
            if isinstance(other, Node):
                self.steps.append(Instruction(op, target, self.place[other]))
            else:
                self._append(_with_constant(op, target, other))
        for arg in args:
            if isinstance(arg, Node):
                self.readers[arg] -= 1
                if not self.readers[arg] and self.place[arg] != target:
                    self.free.append(self.place[arg])
        self.place[node] = target


def _with_constant(op: str, target: int, constant: float | None) -> Instruction:
    value = 0.0 if constant is None else constant
    if op == "max":
        return Instruction("clip", target, constant=value)
    if op == "min":
        return Instruction("clip", target, constant=-math.inf, upper=value)
    if op == "div" and safe(value):
        return Instruction("mul", target, constant=1 / value)  # several times faster, a rounding apart
    return Instruction(op, target, constant=value)


def _in_order(node: Node, seen: set[Node]) -> Iterator[Node]:
    """The nodes that a node needs, and itself, operands first."""
    if node in seen:
        return
    seen.add(node)
    for arg in node.args:
        if isinstance(arg, Node):
            yield from _in_order(arg, seen)
    yield node


Formula = Callable[[Any, Any], Any]


def record(formula: Formula, dtype: Any, namespace: Any = RECORDER) -> Program:
    """The program of ``formula(xp, values)``; raises whatever the formula raises where it cannot be recorded."""
    source = Node("input", (), np.dtype(dtype))
    result = formula(namespace, source)
    if not isinstance(result, Node):
        result = Node("fill", (source, float(result)), source.dtype)
    layout = _Layout(source, result)
    return Program(tuple(layout.steps), layout.n_registers, layout.place[result])


def _checked(formula: Formula, exact: Formula, probes: Floats, namespace: Any) -> Program | None:
    """The recorded program, if it gives the values of the exact formula at the probes."""
    try:
        with np.errstate(all="ignore"):
            expected = np.asarray(exact(np, probes))
            program = record(formula, probes.dtype, namespace)
    except Exception:  # a user's formula may do anything with a value that is no array
        return None
    slack = _ROUNDINGS * float(np.finfo(probes.dtype).eps)
    size = np.abs(expected)
    close = np.abs(program(probes) - expected) <= slack * (size + float(size.max(initial=0.0)))
    return program if bool(close.all()) else None


def _cached(function: Callable[_Key, Program | None]) -> Callable[_Key, Program | None]:
    """Remember programs; a rule that cannot be hashed is recorded every time."""
    remembered: Any = functools.lru_cache(maxsize=256)(function)

    @functools.wraps(function)
    def call(*key: _Key.args, **named: _Key.kwargs) -> Program | None:
        try:
            found: Program | None = remembered(*key, **named)
        except TypeError:
            found = function(*key, **named)
        return found

    return call


@_cached
def weight_program(rule: Regularizer, lam: float, dtype: Any) -> Program | None:
    """The weight relative to its maximum, as steps on the losses; None where the rule has to be called itself."""
    if not _inside(rule, lam):
        return None
    lam = float(lam)

    def formula(xp: Any, loss: Any) -> Any:
        return rule._relative(xp, loss, lam)

    return _checked(formula, formula, (_scale(rule, lam) * _PROBES).astype(dtype), RECORDER)


@_cached
def latent_program(rule: Regularizer, lam: float, unit: float, dtype: Any) -> Program | None:
    """The latent loss of losses in this unit, divided by the largest weight: to the digits of float32 sums."""
    scale = unit * _scale(rule, lam)
    if not _inside(rule, lam) or not 1 / _WIDEST < scale < _WIDEST:
        return None
    lam, factor = float(lam), unit / float(rule.max_weight(lam))

    def formula(xp: Any, loss: Any) -> Any:
        return rule._quick_latent(xp, loss / unit, lam) * factor

    def exact(xp: Any, loss: Any) -> Any:
        return rule._latent(xp, loss / unit, lam) * factor

    probes = (scale * _PROBES).astype(dtype)
    return _checked(formula, exact, probes, QUICK) or _checked(formula, exact, probes, RECORDER)


def _inside(rule: Regularizer, lam: float) -> bool:
    low, high = rule.lam_range
    return low < lam < high


def _scale(rule: Regularizer, lam: float) -> float:
    return 1.0 if rule.power is None else float(lam**rule.power)
