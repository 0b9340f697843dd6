"""Formulas as expressions of Spark's columns: no row leaves the JVM for a weight."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from pyspark.sql import functions as F

from ..regularizers import Regularizer
from ..regularizers.program import Program, weight_program

FLOOR = 1e-3  # convention: of probabilities, as in label_noise.logits_from_proba


def _log(x: Any) -> Any:
    """As NumPy has it: Spark's is null where there is none."""
    return F.when(x > 0, F.log(x)).when(x == 0, F.lit(-math.inf)).otherwise(F.lit(math.nan))


def _divided(a: Any, b: Any) -> Any:
    """As NumPy has it: Spark's division by zero is an error, or null."""
    beyond = F.when(a > 0, F.lit(math.inf)).when(a < 0, F.lit(-math.inf)).otherwise(F.lit(math.nan))
    return F.when(b == 0, beyond).otherwise(F.try_divide(a, b))


_UNARY: dict[str, Callable[[Any], Any]] = {
    "abs": F.abs, "sqrt": F.sqrt, "square": lambda x: x * x, "exp": F.exp, "expm1": F.expm1, "log": _log,
    "log1p": F.log1p, "tanh": F.tanh, "arctan": F.atan,
}  # fmt: skip
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divided,
    "rsub": lambda a, b: b - a,
    "rdiv": lambda a, b: _divided(b, a),
    "pow": F.pow,
    "max": F.greatest,
    "min": F.least,
    "less": lambda a, b: (a < b).cast("double"),
    "less_equal": lambda a, b: (a <= b).cast("double"),
    "greater": lambda a, b: (a > b).cast("double"),
    "greater_equal": lambda a, b: (a >= b).cast("double"),
}


def weight_column(rule: Regularizer, lam: float, loss: Any) -> Any:
    """The relative weight of a column of losses at a pace."""
    program = weight_program(rule, lam, np.float64)
    if program is None:
        raise ValueError(f"regularizer must be a formula of elementary functions to be a column of Spark, got {rule!r}")
    return _run(program, loss)


def _run(program: Program, source: Any) -> Any:
    """The steps of a program on columns."""
    held: list[Any] = [source, *[None] * (program.n_registers - 1)]
    for step in program.steps:
        target, constant = held[step.target], F.lit(step.constant)
        other = constant if step.other is None else held[step.other]
        if step.op == "fill":
            found = constant
        elif step.op == "copy":
            found = held[step.other or 0]
        elif step.op == "where":
            found = F.when(target != 0, other).otherwise(held[step.third or 0])
        elif step.op == "clip":
            found = target if step.constant == -math.inf else F.greatest(target, constant)
            found = found if step.upper == math.inf else F.least(found, F.lit(step.upper))
        elif step.op in _UNARY:
            found = _UNARY[step.op](target)
        else:
            found = _BINARY[step.op](target, other)
        held[step.target] = found
    return held[program.result]


def outlier_column(residual: Any, sigma: float, share: float, reach: float) -> Any:
    """:func:`selfpaced.robust.outlier_probability` of a column, each residual by itself."""
    if not sigma > 0:
        return (F.abs(residual) > 1e-9 * max(reach, 1e-300)).cast("double")
    share, reach = min(share, 0.5), max(reach, 3.0 * sigma)
    broad = math.log(share) - math.log(2.0 * reach)
    most = math.log1p(-share) - math.log(sigma * math.sqrt(2.0 * math.pi))
    odds = most - broad - 0.5 * F.pow(F.least(F.abs(residual) / sigma, F.lit(1e150)), 2)
    return 1.0 / (1.0 + F.exp(F.greatest(F.least(odds, F.lit(700.0)), F.lit(-700.0))))


def right_label_column(probability: Any, label: Any, scale: float, bias: list[float], transition: Any) -> Any:
    """Probability that a given label is right, by probabilities of the classes seen through a noise channel."""
    logits = [F.log(F.greatest(F.get(probability, F.lit(c)), F.lit(FLOOR))) for c in range(len(bias))]
    clean = [F.exp(scale * logit + shift) for logit, shift in zip(logits, bias, strict=True)]
    table = [F.array(*[F.lit(float(rate)) for rate in line]) for line in transition]
    joint = [own * F.get(line, label.cast("int")) for own, line in zip(clean, table, strict=True)]
    total = joint[0]
    for one in joint[1:]:
        total = total + one
    own = F.get(F.array(*joint), label.cast("int"))
    return F.when(total > 0, own / total).otherwise(F.lit(1.0))


__all__ = ["outlier_column", "right_label_column", "weight_column"]
