"""Which entries are errors: a heavy-tailed core of residuals, and a broad component of gross errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaln, ndtr

from ..assessment import OUTLIER_Z
from .engine import WeightedSolve
from .entries import Floats, Side

DEGREES_OF_FREEDOM = (3.0, math.inf)  # theory: degrees of freedom; Student's t with heavy tails, and the normal
FEW_ERRORS = 0.05  # a choice: the share of errors that the EM algorithm starts at


@dataclass(frozen=True)
class CellErrors:
    """A mixture for residuals: Student's t (or the normal) for right entries, a uniform density for errors.

    A model that leaves structure in its residuals makes them heavy-tailed. With a normal core that misfit would be
    taken for errors; a t core has room for it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> residuals = np.concatenate([rng.normal(size=950), rng.uniform(-50, 50, 50)])
    >>> found = fit_cell_errors(residuals)
    >>> bool(0.03 < found.share < 0.06), bool(3 < found.beyond < 6)
    (True, True)
    """

    df: float  # degrees of freedom of the core; infinite is the normal
    scale: float  # scale of the core
    share: float  # share of errors
    least: float  # errors are uniform in size between these two
    reach: float

    def log_core(self, residuals: Floats) -> Floats:
        """Log density of right entries."""
        z2 = np.square(residuals / self.scale, dtype=np.float64)
        if math.isinf(self.df):
            return np.asarray(-z2 / 2 - math.log(self.scale * math.sqrt(2 * math.pi)))
        half = (self.df + 1) / 2
        norm = gammaln(half) - gammaln(self.df / 2) - math.log(self.scale * math.sqrt(self.df * math.pi))
        return np.asarray(norm - half * np.log1p(z2 / self.df))

    @property
    def log_errors(self) -> float:
        """Log of the share of errors times their density."""
        width = max(self.reach - self.least, self.scale)
        return math.log(self.share) - math.log(2 * width) if self.share > 0 else -math.inf

    def probability(self, residuals: Floats) -> Floats:
        """Probability that each entry is an error."""
        odds = self.log_core(residuals) + math.log1p(-self.share) - self.log_errors
        found = 1 / (1 + np.exp(np.clip(odds, -700, 700)))
        return np.asarray(np.where(np.abs(residuals) > self.least, found, 0.0))

    @property
    def beyond(self) -> float:
        """The size from which a residual is more probably an error than not; infinite if there is none."""
        drop = float(self.log_core(np.zeros(1))[0]) + math.log1p(-self.share) - self.log_errors
        if math.isinf(drop):
            return math.inf
        wide = 2 * drop if math.isinf(self.df) else self.df * math.expm1(drop * 2 / (self.df + 1))
        return max(self.scale * math.sqrt(max(wide, 0.0)), self.least)

    @property
    def look(self) -> float:
        """The size from which a residual is as rare among right entries as one beyond 3.5 sigma of a normal."""
        return float(self.scale * stats.t.isf(ndtr(-OUTLIER_Z), self.df))


def fit_cell_errors(residuals: Floats, floor: float = 0.0, least: float = 0.0) -> CellErrors:
    """The mixture of largest likelihood over both cores.

    Parameters
    ----------
    residuals : ndarray
        Given less expected values.
    floor : float
        The smallest scale of the core.
    least : float
        The smallest error.
    """
    size = np.abs(residuals, dtype=np.float64)
    reach = max(float(size.max(initial=0.0)), least)
    floor = max(floor, float(np.finfo(np.float64).eps) * reach, float(np.finfo(np.float64).tiny))
    fits = [_expect_maximise(size, CellErrors(df, floor, FEW_ERRORS, least, reach), floor) for df in DEGREES_OF_FREEDOM]
    return max(fits, key=lambda fit: fit[0])[1]


def _expect_maximise(size: Floats, start: CellErrors, floor: float) -> tuple[float, CellErrors]:
    """Log likelihood and mixture after the EM algorithm, from the lower quartile."""
    if not size.size:
        return 0.0, replace(start, share=0.0)
    now = replace(start, scale=max(float(np.quantile(size, 0.25) / stats.t.isf(0.375, start.df)), floor))
    for _ in range(50):
        wrong = now.probability(size)
        z2 = np.square(size / now.scale)
        weight = (1 - wrong) * (1.0 if math.isinf(now.df) else (now.df + 1) / (now.df + z2))
        variance = float((weight * size**2).sum() / max(float((1 - wrong).sum()), 1.0))
        share = min(float(wrong.mean()), 0.5)
        before, now = now.scale, replace(now, scale=max(math.sqrt(variance), floor), share=share)
        if share < 1 / size.size or abs(now.scale - before) <= 1e-4 * before:
            break
    mixed = np.log1p(-now.share) + now.log_core(size)
    return float(np.where(size > now.least, np.logaddexp(mixed, now.log_errors), mixed).sum()), now


def about_the_usual(level: Floats, cold: Any) -> tuple[Floats, float]:
    """Means as differences from their median, zero where there is no entry; and the median."""
    usual = float(np.median(np.delete(level, cold)))
    level = np.asarray(level - level.dtype.type(usual))
    level[cold] = 0.0
    return level, usual


def entry_weights(step: WeightedSolve, side: Side, residuals: Floats) -> Floats:
    """Relative weights of all entries, in pieces: a rule may need several temporaries."""
    if step.grouped:
        return step.relative_weight(residuals, side.row_of())
    weights = np.empty_like(residuals)
    for start, stop in side.blocks():
        part = slice(side.indptr[start], side.indptr[stop])
        weights[part] = step.relative_weight(residuals[part])
    return weights


def line_means(weights: Floats, line: Any, size: int) -> Floats:
    """The mean weight of every row or column; NaN where there is no entry."""
    count = np.bincount(line, minlength=size)
    total = np.bincount(line, weights, minlength=size)
    return np.asarray(np.divide(total, count, out=np.full(size, np.nan), where=count > 0))


def outlier_table(side: Side, residuals: Floats, weights: Floats, beyond: float, labels: tuple[Any, Any]) -> Any:
    """The entries farther off than ``beyond``, most suspicious first, by their labels if there are any."""
    far = residuals > beyond
    far |= residuals < -beyond
    found = np.flatnonzero(far).astype(np.int32 if far.size < 2**31 else np.int64)
    del far
    size = residuals[found]
    found = found[np.argsort(np.negative(np.abs(size, out=size), out=size))]
    del size
    real = residuals.dtype
    places = [np.int32 if given is None else given.dtype for given in labels]
    kinds = [("row", places[0]), ("column", places[1]), ("value", real), ("expected", real), ("weight", real)]
    out = np.empty(found.size, dtype=kinds)
    for low in range(0, found.size, 1 << 13):  # in pieces, because there may be as many outliers as entries
        part = found[low : low + (1 << 13)]
        rows = np.searchsorted(side.indptr, part, side="right") - 1
        named = (
            at if given is None else given[at] for at, given in zip((rows, side.indices[part]), labels, strict=True)
        )
        fields = (*named, side.values[part], side.values[part] - residuals[part], weights[part])
        for name, field in zip(out.dtype.names or (), fields, strict=True):
            out[name][low : low + (1 << 13)] = field
    return out
