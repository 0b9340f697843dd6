"""Compiled inner loops of the alternating solver (numba): one exact weighted ridge solve per row.

Nothing is compiled on import: the first call compiles (a few seconds) and the result is cached on disk.
The rank is a run-time value, so that a machine code serves every rank; the Gram matrix is updated by eight
entries at a time, which is what lets the compiler keep its rows in vector registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import IntEnum
from typing import Any

import numpy as np

from ..regularizers.program import OPERATIONS, Instruction, Program

try:
    import numba as nb
except ImportError as error:  # the NumPy path needs none of this file
    raise ImportError('the compiled kernels need numba: pip install "selfpaced[fast]"') from error

# Reassociation lets sums be vectorised; NaN and infinity keep their meaning (an infinite pace is legal).
_FAST = {"reassoc", "contract", "arcp", "nsz"}

# Numbered here and not where programs are made: the machine code on disk is as old as this file.
Op = IntEnum(
    "Op",
    "BEND FILL COPY WHERE ABS SQRT SQUARE EXP EXPM1 LOG LOG1P TANH ARCTAN ADD SUB MUL DIV POW MAX MIN "
    "LESS LESS_EQUAL GREATER GREATER_EQUAL RSUB RDIV",
)
OPCODES = {name: Op[name.upper()].value for name in OPERATIONS if name != "clip"}
# cost: entries weighed at a time; their registers stay in the cache.
BLOCK = 1024


def _compiled(**options: Any) -> Callable[[Any], Any]:
    """``njit`` with the cache on disk, or without it where no cache directory can be written."""

    def decorate(function: Any) -> Any:
        try:
            return nb.njit(cache=True, fastmath=_FAST, error_model="numpy", nogil=True, **options)(function)
        except RuntimeError:
            return nb.njit(fastmath=_FAST, error_model="numpy", nogil=True, **options)(function)

    return decorate


@_compiled()
def _with_constant(op, x, constants):  # type: ignore[no-untyped-def]
    """x = op(x, constant) in place. One loop per operation, so that each is vectorised."""
    one = x.dtype.type(1)
    zero = x.dtype.type(0)
    c = constants[0]
    if op == Op.BEND:
        shift, low, high = constants[1], constants[2], constants[3]
        for q in range(x.size):
            v = x[q] * c + shift
            v = low if v < low else v
            x[q] = high if v > high else v
    elif op == Op.RDIV:
        for q in range(x.size):
            x[q] = c / x[q]
    elif op == Op.DIV:
        for q in range(x.size):
            x[q] = x[q] / c
    elif op == Op.POW:
        for q in range(x.size):
            x[q] = x[q] ** c
    elif op == Op.LESS:
        for q in range(x.size):
            x[q] = one if x[q] < c else zero
    elif op == Op.LESS_EQUAL:
        for q in range(x.size):
            x[q] = one if x[q] <= c else zero
    elif op == Op.FILL:
        for q in range(x.size):
            x[q] = c
    elif op == Op.SQRT:
        for q in range(x.size):
            x[q] = math.sqrt(x[q])
    elif op == Op.SQUARE:
        for q in range(x.size):
            x[q] = x[q] * x[q]
    elif op == Op.EXP:
        for q in range(x.size):
            x[q] = math.exp(x[q])
    elif op == Op.LOG:
        for q in range(x.size):
            x[q] = math.log(x[q])
    elif op == Op.LOG1P:
        for q in range(x.size):
            x[q] = math.log1p(x[q])
    elif op == Op.EXPM1:
        for q in range(x.size):
            x[q] = math.expm1(x[q])
    elif op == Op.TANH:
        for q in range(x.size):
            x[q] = math.tanh(x[q])
    elif op == Op.ARCTAN:
        for q in range(x.size):
            x[q] = math.atan(x[q])
    else:
        for q in range(x.size):
            x[q] = abs(x[q])


@_compiled()
def _with_register(op, x, y, z):  # type: ignore[no-untyped-def]
    """x = op(x, y) in place, or for WHERE x = y where x else z; the arrays never overlap."""
    zero = x.dtype.type(0)
    if op == Op.COPY:
        for q in range(x.size):
            x[q] = y[q]
    elif op == Op.WHERE:
        for q in range(x.size):
            x[q] = y[q] if x[q] != zero else z[q]
    elif op == Op.ADD:
        for q in range(x.size):
            x[q] = x[q] + y[q]
    elif op == Op.SUB:
        for q in range(x.size):
            x[q] = x[q] - y[q]
    elif op == Op.MUL:
        for q in range(x.size):
            x[q] = x[q] * y[q]
    elif op == Op.DIV:
        for q in range(x.size):
            x[q] = x[q] / y[q]
    elif op == Op.POW:
        for q in range(x.size):
            x[q] = x[q] ** y[q]
    elif op == Op.MAX:
        for q in range(x.size):
            v = x[q]
            x[q] = y[q] if v < y[q] else v
    else:
        for q in range(x.size):
            v = x[q]
            x[q] = y[q] if v > y[q] else v


@_compiled(inline="always")
def _run(codes, constants, registers, count):  # type: ignore[no-untyped-def]
    """Run the steps of a rule's program on the first ``count`` places of the registers."""
    for s in range(codes.shape[0]):
        x = registers[codes[s, 1], :count]
        if codes[s, 2] < 0:  # no register: a constant
            _with_constant(codes[s, 0], x, constants[s])
        else:
            _with_register(codes[s, 0], x, registers[codes[s, 2], :count], registers[codes[s, 3], :count])


@_compiled()
def _cholesky_solve(A, b):  # type: ignore[no-untyped-def]
    """Solve A x = b in place, A symmetric positive definite (its lower half is read and overwritten)."""
    r = b.size
    for j in range(r):
        total = A[j, j]
        for k in range(j):
            total -= A[j, k] * A[j, k]
        pivot = math.sqrt(total)
        A[j, j] = pivot
        for i in range(j + 1, r):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / pivot
    for i in range(r):
        total = b[i]
        for k in range(i):
            total -= A[i, k] * b[k]
        b[i] = total / A[i, i]
    for i in range(r - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, r):
            total -= A[k, i] * b[k]
        b[i] = total / A[i, i]


@_compiled()
def _add_outer(A, G, H):  # type: ignore[no-untyped-def]
    """A += H^T G for eight rows at a time."""
    r = A.shape[0]
    for k in range(r):
        h0, h1, h2, h3 = H[0, k], H[1, k], H[2, k], H[3, k]
        h4, h5, h6, h7 = H[4, k], H[5, k], H[6, k], H[7, k]
        for m in range(r):
            A[k, m] += (
                h0 * G[0, m]
                + h1 * G[1, m]
                + h2 * G[2, m]
                + h3 * G[3, m]
                + h4 * G[4, m]
                + h5 * G[5, m]
                + h6 * G[6, m]
                + h7 * G[7, m]
            )


@_compiled()
def _irls_weights(w, registers, indptr, indices, y, given, U, V, start, stop, offset, program, unit, eps, quadratic):  # type: ignore[no-untyped-def]
    """The IRLS weights of the entries of some rows: relative weight of the loss, over max(|residual|, eps) for L1."""
    codes, constants, _, result = program
    begin = indptr[start]
    for i in range(start, stop):
        first = indptr[i]
        row = w[first - begin : indptr[i + 1] - begin]
        for q in range(row.size):
            j = indices[first + q]
            e = y[first + q]
            for k in range(U.shape[1]):
                e -= U[i, k] * V[j, k]
            row[q] = abs(e)
    count = indptr[stop] - begin
    for low in range(0, count, BLOCK):
        residual = w[low : min(low + BLOCK, count)]
        weight = registers[result, : residual.size]
        if given.size:
            for q in range(residual.size):
                weight[q] = given[begin - offset + low + q]
        else:
            loss = registers[0, : residual.size]
            for q in range(residual.size):
                loss[q] = residual[q] * unit
            if quadratic:
                for q in range(residual.size):
                    loss[q] = loss[q] * residual[q]
            _run(codes, constants, registers, residual.size)
        if quadratic:
            for q in range(residual.size):
                residual[q] = weight[q]
        else:
            for q in range(residual.size):
                e = residual[q]
                residual[q] = weight[q] / (eps if e < eps else e)


@_compiled()
def _solve_range(  # type: ignore[no-untyped-def]
    indptr, indices, y, sample_weight, given, U, V, program, unit, eps, ridge, quadratic, start, stop, offset
):
    r = U.shape[1]
    longest = BLOCK
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    w = np.empty(longest, U.dtype)
    registers = np.empty((program[2], BLOCK), U.dtype)
    A = np.empty((r, r), U.dtype)
    b = np.empty(r, U.dtype)
    G = np.zeros((8, r), U.dtype)
    H = np.zeros((8, r), U.dtype)
    last = start
    while last < stop:
        # Short rows are weighed together: a step of the program then has work for a vector loop.
        low = last
        last += 1
        while last < stop and indptr[last + 1] - indptr[low] <= BLOCK:
            last += 1
        _irls_weights(w, registers, indptr, indices, y, given, U, V, low, last, offset, program, unit, eps, quadratic)
        begin = indptr[low]
        if sample_weight.size:
            for p in range(begin, indptr[last]):
                w[p - begin] *= sample_weight[p]
        for i in range(low, last):
            for k in range(r):
                b[k] = 0
                for m in range(r):
                    A[k, m] = 0
            filled = 0
            first = indptr[i]
            row = w[first - begin : indptr[i + 1] - begin]
            for q in range(row.size):
                weight = row[q]
                if weight > 0:  # rejected entries cost nothing
                    j = indices[first + q]
                    target = y[first + q] * weight
                    for k in range(r):
                        value = V[j, k]
                        G[filled, k] = value
                        H[filled, k] = weight * value
                        b[k] += target * value
                    filled += 1
                    if filled == 8:
                        _add_outer(A, G, H)
                        filled = 0
            if filled:
                for q in range(filled, 8):
                    for k in range(r):
                        H[q, k] = 0
                _add_outer(A, G, H)
            for k in range(r):
                A[k, k] += ridge
            _cholesky_solve(A, b)
            for k in range(r):
                U[i, k] = b[k]


@_compiled(parallel=True)
def _solve_parallel(  # type: ignore[no-untyped-def]
    indptr, indices, y, sample_weight, given, U, V, program, unit, eps, ridge, quadratic, start, stop, offset, chunks
):
    rows = stop - start
    for chunk in nb.prange(chunks):
        low = start + rows * chunk // chunks
        high = start + rows * (chunk + 1) // chunks
        _solve_range(
            indptr, indices, y, sample_weight, given, U, V, program, unit, eps, ridge, quadratic, low, high, offset
        )


@_compiled()
def residuals_rows(indptr, indices, y, U, V, start, stop, out):  # type: ignore[no-untyped-def]
    """y - U V^T at the stored entries of rows start to stop."""
    offset = indptr[start]
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            e = y[p]
            for k in range(U.shape[1]):
                e -= U[i, k] * V[indices[p], k]
            out[p - offset] = e


@_compiled()
def residuals_at(rows, columns, y, U, V, out):  # type: ignore[no-untyped-def]
    """y - U V^T at the given entries."""
    for p in range(y.size):
        e = y[p]
        for k in range(U.shape[1]):
            e -= U[rows[p], k] * V[columns[p], k]
        out[p] = e


Bend = tuple[float, float, float, float]  # clip(slope x + shift, low, high)
_BENDS = {"clip", "mul", "add", "rsub"}
_COMPARISONS = {"less", "less_equal", "greater", "greater_equal"}


def _bent(bend: Bend, step: Instruction) -> Bend:
    """What scales, shifts and clips, followed by another step that does."""
    slope, shift, low, high = bend
    if step.op == "clip":
        low, high = (min(max(bound, step.constant), step.upper) for bound in (low, high))
        return slope, shift, low, high
    factor = {"mul": step.constant, "add": 1.0, "rsub": -1.0}[step.op]
    more = 0.0 if step.op == "mul" else step.constant
    low, high = sorted((factor * low + more, factor * high + more))
    return factor * slope, factor * shift + more, low, high


def _simpler(steps: Iterable[Instruction]) -> Iterator[Instruction]:
    """The same by fewer operations, of which each is a loop to compile."""
    for step in steps:
        op, target, constant = step.op, step.target, step.constant
        if op in _COMPARISONS and step.other is not None:  # of the difference with zero
            yield replace(step, op="sub")
        elif op in ("rsub", "rdiv") and step.other is not None:
            yield replace(step, op=op[1:])
            op, constant = ("mul", -1.0) if op == "rsub" else ("rdiv", 1.0)
        elif op not in _COMPARISONS:
            yield step
            continue
        if op in ("greater", "greater_equal"):
            yield Instruction("mul", target, constant=-1.0)
            op, constant = op.replace("greater", "less"), -constant
        yield Instruction(op, target, constant=constant)


def encode(program: Program, dtype: Any) -> tuple[Any, Any, int, int]:
    """A program as the compiled loops read it: codes, constants, number of registers, register of the result.

    Steps that only scale, shift and clip are one: the fewer loops, the less time goes into loads and stores.
    """
    codes: list[tuple[int, int, int, int]] = []
    constants: list[Bend] = []
    for step in _simpler(program.steps):
        if step.op not in _BENDS or step.other is not None:
            other, third = (-1 if place is None else place for place in (step.other, step.third))
            codes.append((OPCODES[step.op], step.target, other, max(third, 0)))
            constants.append((step.constant, 0.0, 0.0, 0.0))
            continue
        if not codes or codes[-1][:2] != (Op.BEND, step.target):
            codes.append((Op.BEND, step.target, -1, 0))
            constants.append((1.0, 0.0, -math.inf, math.inf))
        constants[-1] = _bent(constants[-1], step)
    return (
        np.array(codes, dtype=np.int64).reshape(-1, 4),
        np.array(constants, dtype=dtype).reshape(-1, 4),
        program.n_registers,
        program.result,
    )


def solve_rows(*args: Any, n_threads: int = 1) -> None:
    """Update rows start to stop of U in place, in parallel if more than one thread is asked for."""
    if n_threads <= 1:
        _solve_range(*args)
        return
    allowed = min(n_threads, int(nb.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
    before = nb.get_num_threads()
    nb.set_num_threads(allowed)
    try:
        _solve_parallel(*args, 8 * allowed)
    finally:
        nb.set_num_threads(before)
