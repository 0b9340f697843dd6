"""The warm start: L1 factorization by IRLS with a falling ridge (PRMF), and the rank it reveals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import svds

from ..regularizers import Hard
from ..robust.scales import MAD_TO_SIGMA
from .engine import Engine, Entries, Factors, Floats, Levels, WeightedSolve

Tick = Callable[[str], None]

# a choice, made on development data.
RIDGE_END = 0.005  # share of the ridge bound where the continuation ends
RIDGE_RANK = 0.35  # and where the rank shows best
SMOOTHING = 0.25  # eps of the warm start, in units of the MADN of its residuals
SPARE = 4  # factors beyond the rank in the first half of the warm start
RANK_FLOOR = 0.03  # smaller shares of the largest singular value are noise; without it stars get ranks up to 7, not 1

LEVER = 30.0  # numerical safety: the means' constant in units of a factor: they see 1/900 of the factors' ridge
MEAN_SWEEPS = 8  # cost: L1 sweeps for the means alone

# Measured by benchmarks/factorization.py, parts offsets and quality.
START_CUT = 2.0  # of a guarded start, in scales of what the means leave; at 3 one-sided errors of 45 % are not left out
CROWDED = 0.3  # the share of the entries whose shortest interval shows where the right ones are

AT_ONCE = 6  # cost: components looked for at a time
BEYOND_START = 1.155  # theory: of noise's largest singular value; 4 / sqrt(3) against 2 (Gavish and Donoho)

QUARTILE = 0.3186  # theory: of the absolute standard normal


def low_scale(errors: Floats) -> float:
    """The noise scale by the lower quartile: three in four entries may be wrong."""
    return float(np.quantile(np.abs(errors), 0.25)) / QUARTILE


def crowded(values: Floats) -> float:
    """The middle of the shortest interval with 30 % of the values: most may lie elsewhere, if they are spread out."""
    ordered = np.sort(values)
    inside = max(int(CROWDED * ordered.size), 1)
    widths = ordered[inside:] - ordered[:-inside]
    first = int(np.argmin(widths))
    return float(ordered[first] + ordered[first + inside]) / 2


def ridge_bound(entries: Entries, cut: float) -> float:
    """The spectral norm of the observed signs: the smallest ridge at which the L1 solution is zero.

    It does not depend on the unit of the data, which makes it the natural unit of the ridge. A few power
    iterations are enough, because only its magnitude matters. Entries beyond the ``cut`` do not count.
    """
    side, width = entries.by_row, entries.shape[1]
    real = side.sample_weight.dtype if side.sample_weight.size else np.float32
    vector = np.random.default_rng(0).standard_normal(width).astype(real)
    norm = 0.0
    for _ in range(20):
        image = np.zeros_like(vector)
        for start, stop in side.blocks(1 << 20):  # signs of all entries at once would be the peak of memory
            part = side.rows(start, stop)
            signs: Floats = np.sign(part.values).astype(np.float32, copy=False)
            if math.isfinite(cut):
                signs = np.where(np.abs(part.values) < cut, signs, np.float32(0))
            if part.sample_weight.size:
                signs = signs * part.sample_weight
            matrix = part.matrix(signs, width)
            image = image + matrix.T @ (matrix @ vector)
        length = float(np.linalg.norm(image))
        if length == 0:
            return 1.0
        norm, vector = math.sqrt(length), image / image.dtype.type(length)
    return norm


def typical_size(entries: Entries) -> float:
    """The median absolute entry; the mean where most entries are zero."""
    size = np.abs(entries.sample[2])
    return float(np.median(size)) or float(np.mean(size)) or 1.0


def random_factors(entries: Entries, rank: int, rng: np.random.Generator) -> Factors:
    """Normal factors whose product has about the magnitude of the data."""
    spread = math.sqrt(typical_size(entries) / math.sqrt(max(rank, 1)))
    U = spread * rng.standard_normal((entries.shape[0], rank))
    V = spread * rng.standard_normal((entries.shape[1], rank))
    return U.astype(entries.dtype), V.astype(entries.dtype)


def descend(
    engine: Engine,
    entries: Entries,
    factors: Factors,
    ridges: Any,
    floor: float,
    tick: Tick,
    cut: float = math.inf,
) -> Factors:
    """Plain L1 sweeps, one per ridge; eps follows the residuals (the dominant knob of IRLS).

    Entries farther off than ``cut`` do not count.
    """
    U, V = factors
    rule = Hard() if math.isfinite(cut) else None
    for ridge in ridges:
        size = np.abs(engine.sampled_residuals(entries, U, V))
        if rule is not None:
            size = size[size < cut]
        eps = SMOOTHING * MAD_TO_SIGMA * float(np.median(size)) if size.size else floor
        engine.sweep(entries, U, V, WeightedSolve(rule, cut, float(ridge), max(eps, floor, entries.grain)))
        tick("warm start")
    return U, V


def continuation(bound: float, first: float, last: float, sweeps: int) -> Floats:
    """Ridges falling geometrically from ``first`` to ``last`` (shares of the bound), then staying for 40 %."""
    falling = np.arange(sweeps) / max(0.6 * sweeps, 1e-9)
    return bound * first * (last / first) ** np.minimum(falling, 1.0)


@dataclass(frozen=True, eq=False)
class Centred:
    """Entries less first robust means; the means go on being fitted from there."""

    engine: Engine  # it knows which means are part of the model
    entries: Entries  # what is left of the entries
    levels: Levels  # what was taken off
    cut: float = math.inf  # what is farther off does not count in a guarded start; else infinite


def lever(entries: Entries) -> float:
    """The constant that means are multiplied by: large against factors whose product is as large as the entries."""
    return LEVER * math.sqrt(typical_size(entries))


def _cut(residuals: Floats) -> float:
    """What does not count in a guarded start; where a quarter of the entries is met exactly, everything does."""
    return START_CUT * low_scale(residuals) or math.inf


def centred(engine: Engine, entries: Entries, guarded: bool = False) -> Centred:
    """Take off L1 means of the rows and of the columns, of those that the engine has means for.

    A ``guarded`` start takes entries that are far from where most crowd for wrong from the beginning. It is for data
    with more wrong entries than medians can bear, and it loses what is rare but right.
    """
    (m, n), means = entries.shape, engine.means
    none: Factors = (np.zeros((m, 0), entries.dtype), np.zeros((n, 0), entries.dtype))
    if not means.count:
        cut = _cut(entries.sample[2]) if guarded else math.inf
        return Centred(engine, entries, Levels(means, np.zeros(m, entries.dtype), np.zeros(n, entries.dtype)), cut)
    values = entries.sample[2]
    middle = np.full(m, crowded(values) if guarded else np.median(values), entries.dtype)
    start = entries.shifted(middle, np.zeros(n, entries.dtype))
    U, V = means.join(*none, lever(start))
    floor, cut = 1e-6 * typical_size(start), math.inf
    for _ in range(MEAN_SWEEPS):
        if guarded:
            cut = _cut(engine.sampled_residuals(start, U, V))
        descend(engine, start, (U, V), [1e-6], floor, lambda _: None, cut=cut)
    _, _, rows, columns = means.split(U, V)
    rows = middle + rows
    rest = entries.shifted(rows, columns)
    return Centred(engine, rest, Levels(means, rows, columns), _cut(rest.sample[2]) if guarded else math.inf)


def balanced(U: Floats, V: Floats) -> tuple[Floats, Floats, Floats]:
    """The same product with orthogonal, equally long columns, largest first, and its singular values.

    There are no more columns than the product has rows or columns.
    """
    if not U.shape[1]:
        return U, V, np.zeros(0)
    if not (np.isfinite(U).all() and np.isfinite(V).all()):
        raise ValueError("X must have entries of comparable size, got a range beyond the precision of numbers")
    left, left_triangle = np.linalg.qr(U)
    right, right_triangle = np.linalg.qr(V)
    inner_left, values, inner_right = np.linalg.svd(left_triangle @ right_triangle.T, full_matrices=False)
    root = np.sqrt(values)
    U, V = left @ inner_left * root, right @ inner_right.T * root
    # a sign convention: the largest element of each component is positive
    signs = np.sign(V[np.argmax(np.abs(V), axis=0), np.arange(V.shape[1])])
    signs[signs == 0] = 1
    return U * signs, V * signs, values


def reveal_rank(values: Floats, complete: bool) -> int:
    """The place of the largest drop between neighbouring singular values.

    ``complete`` says that there are no further singular values, so that all of them may be kept. Otherwise the last
    few are spare: a matrix cut off at some width has a drop of its own at its end.
    """
    if not values[0] > 0:
        return 1
    kept = np.maximum(np.append(values, 0.0) if complete else values, RANK_FLOOR * values[0])
    drops = kept[:-1] / kept[1:]
    return int(np.argmax(drops if complete else drops[: max(values.size - SPARE, 1)])) + 1 if drops.size else 1


def further_components(residuals: Any, most: int, rng: np.random.Generator) -> tuple[Floats, Floats] | None:
    """The components that residuals have in common beyond noise, as factors of rows and columns, or None.

    A form that was chosen on some rows and columns has the components that show there. With more entries a component
    stands out the more. Random signs keep the sizes and places of the residuals and destroy what they have in common,
    so that they tell how large a singular value noise has.

    Parameters
    ----------
    residuals : CSR array
        What is left of the entries, outliers as zeros.
    most : int
        As many components at most.
    rng : numpy.random.Generator
        Of the signs.
    """
    count = min(most, AT_ONCE, min(residuals.shape) - 1)
    if count < 1 or not residuals.data.any():
        return None
    start = rng.standard_normal(min(residuals.shape))
    noise = 0.0
    for _ in range(2):
        flipped = residuals.copy()
        flipped.data = flipped.data * rng.choice([-1.0, 1.0], residuals.data.size)
        noise = max(noise, float(svds(flipped, 1, v0=start, tol=1e-2, return_singular_vectors=False)[0]))
    left, values, right = svds(residuals, count, v0=start, tol=1e-2)
    found = values > BEYOND_START * noise
    if not found.any():
        return None
    # of an entry that was not seen nothing is known: what was seen stands for all
    seen = residuals.data.size / (residuals.shape[0] * residuals.shape[1])
    root = np.sqrt(values[found] / seen)
    return left[:, found] * root, right[found].T * root
