"""The assessment of the values of a regression: which are grossly wrong, how many, and what the model only misfits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ..fingerprint import content_keys, mixed
from ..folds import make_folds
from ..robust import outlier_probability, outlier_share, second_heap
from ..robust.scales import CUTOFF, NORMAL_95, WINDOW
from ..selection import effective_size, frequencies, mean_and_error
from .mixture import NEAR, Mixture, fit_mixture
from .reference import Reference, Rows, best_references, leverage_cluster, numeric_features, usual_but_for

__all__ = [
    "EVEN_ODDS",
    "ValueAssessment",
    "assess_values",
    "by_model",
    "nearest",
    "repeated_value",
]

Array = NDArray[np.floating[Any]]
REFERENCE_ROWS = (
    60  # a choice: with fewer, misfit and gross errors cannot be told apart, and the model's residuals decide
)
REFERENCE_SAMPLE = 2000  # cost: rows that reference models are fitted to, in three folds
GROSS = 4.0  # theory: sigmas; 0.006 % of normal errors lie beyond
VISIBLE = 0.05  # a choice: share of errors that stand out at least, if any do; below, an interval would say nothing
COUNTED_SHARE = (
    0.1  # share of errors that count on a less likely scale alone: benchmarks/regression.py messy and tables
)
ATOM = 0.15  # a choice: share of one repeated value (zero, often) that no residual can assess
CROWD = 0.25  # share of gross rows, or in a second heap, that would own a reference: benchmarks/regression.py shifted
EVEN_ODDS = 0.5  # convention: above, a value is more probably wrong than right
UNPROVEN = 1.0  # standard errors that a gain must have if no gross errors were found: benchmarks/regression.py tables


@dataclass(frozen=True, eq=False, repr=False)
class ValueAssessment:
    """Gross errors among the values, and values that the model only misfits. Printed, it is a sentence.

    Attributes
    ----------
    wrong : ndarray of shape (n,)
        Probability that a value is grossly wrong.
    rate, interval : float, tuple of float
        Share of gross errors that stand out, and an interval of about 95 %.
    misfit : float
        Share of values that the model cannot explain although the reference model can.
    references, mixtures : tuple
        In whose units rows are assessed, the likeliest first, and the errors in them; empty: those of the model.
    sigma : float
        Scale of the model's good residuals.
    reach, least : float
        The largest of its residuals, and the share that one row is: other rows are assessed by them, each by itself.
    ends : tuple of float
        Residuals in sigmas beyond which the model alone calls a value wrong.
    atom : float or None
        A value repeated so often that it is not assessed.
    assessed : float
        Share of the values that are assessed.
    left_out : float
        Share of values that are not called wrong but left out of the fit, because they are far from the rest.
    shared : float
        Share of values that looked wrong, as do most rows like them: a rule of the data that the model does not know.
    applied : bool
        Whether rows were left out of the fit because of the assessment.
    lost : ndarray of shape (n,) or None
        Rows that no reference comes near, wrong or not: when models are compared, they count as the worst other row.
    """

    wrong: Array
    rate: float
    interval: tuple[float, float]
    sigma: float
    misfit: float = 0.0
    references: tuple[Reference, ...] = ()
    mixtures: tuple[Mixture, ...] = ()
    atom: float | None = None
    applied: bool = False
    lost: NDArray[np.bool_] | None = None
    reach: float = 0.0
    least: float = 0.0
    ends: tuple[float, float] = (GROSS, GROSS)
    assessed: float = 1.0
    left_out: float = 0.0
    shared: float = 0.0

    @property
    def found(self) -> bool:
        """Whether gross errors were found beside the reference model."""
        return any(mixture.found for mixture in self.mixtures)

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """Rows that are more probably right than wrong."""
        return np.asarray(self.wrong <= EVEN_ODDS)

    @property
    def sentence(self) -> str:
        """What misfit there is, as a part of a sentence; empty if there is little."""
        if self.shared:
            return f"{100 * self.shared:.1f} % of the values are far from this model, and so are most rows like them"
        words = self.references[0].words if self.references else ""
        if self.misfit < 0.02 or not words:
            return ""
        return f"{100 * self.misfit:.1f} % of the values are far from this model but plausible with {words}"

    def __repr__(self) -> str:
        low, high = self.interval
        share = f"{100 * self.rate:.1f} %" if self.rate >= 0.0005 else "less than 0.1 %"
        found = f"Gross errors: {share} of the values" if self.rate > 0 else "No gross errors stand out"
        far = (
            f"{100 * self.left_out:.1f} % of the values are left out, far from the rest"
            if self.left_out >= 0.0005
            else ""
        )
        if self.rate == 0 and self.minority:
            found = f"Gross errors cannot be told: {100 * (1 - self.assessed):.1f} % of the values are {self.atom:g}"
        elif self.rate == 0 and far:
            found, far = f"Possible gross errors: {far}", ""
        elif self.atom is not None:
            found += f", among the {100 * self.assessed:.1f} % that are not {self.atom:g}"
        rest = [f"{part}." for part in (far, self.sentence) if part]
        return " ".join([f"{found} (95 % interval {100 * low:.1f} % to {100 * high:.1f} %).", *rest])

    @property
    def minority(self) -> bool:
        """Whether most values are one that is not assessed: no majority shows which of the others are right."""
        return self.assessed < EVEN_ODDS

    def undecided(self, n: float) -> ValueAssessment:
        """Return the same with the interval that a minority allows, if nothing is found among n rows."""
        if self.rate > 0 or not self.minority:
            return self
        low, high = self.interval
        return replace(self, interval=(low, max(high, moved_share(EVEN_ODDS * self.assessed, n, 1))))

    def without_claims(self, sample_weight: Array | None = None) -> ValueAssessment:
        """Return the same for values that looked wrong as do most rows like them: none of them is called wrong."""
        share = float(np.average(~self.trusted, weights=sample_weight))
        return replace(
            self, wrong=np.zeros(len(self.wrong)), rate=0.0, interval=(0.0, self.interval[1]), shared=share,
            mixtures=tuple(replace(one, needed=math.inf) for one in self.mixtures), ends=(math.inf, math.inf),
        )  # fmt: skip

    def with_left_out(self, share: float, n: float) -> ValueAssessment:
        """Return the same for a fit that left out rows, this share of them although they are not called wrong."""
        low, high = self.interval
        if share > 0:
            high = max(high, moved_share(self.rate + share, n, 1))
        return replace(self, applied=True, interval=(low, min(high, 1.0)), left_out=share)

    def probability(self, y: Array, predicted: Array, X: Any = None) -> Array:
        """Return how probably the values of other rows are grossly wrong."""
        if not self.references:
            return _by_residuals(y - predicted, self.sigma, max(self.rate, self.least), self.reach, self.ends)
        rows = Rows(np.asarray(y, dtype=float), predicted, numeric_features(X))
        wrong = _gross(self.mixtures, [reference.of(rows) for reference in self.references], rows.y)
        return wrong if self.atom is None else np.where(rows.y == self.atom, 0.0, wrong)


def assess_values(
    y: Array,
    predicted: Array,
    sigma: float,
    *,
    X: Any = None,
    sample_weight: Array | None = None,
    groups: Any = None,
    linear: bool = False,
    flexible: bool = False,
    random_state: Any = 0,
) -> ValueAssessment:
    """Assess the values of a regression.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Given values.
    predicted : ndarray of shape (n,)
        Predictions of the model.
    sigma : float
        Scale of its good residuals.
    X : array-like, DataFrame or sparse matrix of shape (n, p), optional
        Features that the target may depend on. More than 200, or anything but a table, are not used.
    sample_weight : ndarray of shape (n,), optional
        Frequencies of the rows, up to a common factor.
    groups : array-like of shape (n,), optional
        Rows of one group are predicted by models of other groups.
    linear : bool, default=False
        Whether the model is a line, which leverage points may draw, and which no other line needs to correct.
    flexible : bool, default=False
        Whether the model is flexible: trees need not correct it, and others are fitted only if it sees a sign of gross
        errors itself.
    random_state : int, RandomState or None
        Draws rows and folds.

    Returns
    -------
    ValueAssessment

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(1, 4, size=1000)
    >>> price = np.exp(x + 0.3 * rng.normal(size=1000))
    >>> slope, intercept = np.polyfit(x, price, 1)
    >>> line = intercept + slope * x
    >>> found = assess_values(price, line, sigma=np.median(np.abs(price - line)), X=x[:, None])
    >>> found.rate, found.misfit > 0.02, found.references[0].words
    (0.0, True, 'a robust line and the logarithm of the target')
    """
    sample_weight = None if sample_weight is None else frequencies(sample_weight)
    rows = Rows(np.asarray(y, dtype=float), predicted, numeric_features(X), sample_weight)
    first = by_model(rows.y, predicted, sigma, sample_weight)
    gross = np.abs(rows.y - predicted) > GROSS * sigma
    atom = repeated_value(rows.y, sample_weight)
    assessed = np.arange(len(y)) if atom is None else np.flatnonzero(rows.y != atom)
    part = replace(first, atom=atom, assessed=rows.take(assessed).size / rows.size)
    if rows.size < REFERENCE_ROWS or not (sigma > 0 and gross.any()):
        return part.undecided(rows.size)
    seed = int(check_random_state(random_state).randint(1 << 31))
    # by what rows hold: neither their order nor a copy of one matters
    columns = predicted[:, None] if rows.features is None else rows.features
    keys = content_keys(columns)
    sample = _sample(assessed[np.argsort(mixed(keys[assessed], seed), kind="stable")], rows)
    z = (rows.y[sample] - predicted[sample]) / sigma
    if usual_but_for(gross[sample], z):
        heaps = second_heap(-z), second_heap(z)
        near = (z >= -min(heaps[0], GROSS)) & (z <= min(heaps[1], GROSS))
        if min(heaps) < math.inf and np.mean(~near) > CROWD:
            return _beyond(heaps, rows, first)
        if linear and leverage_cluster(gross[sample], columns[sample]):
            return first
    known = None if groups is None else np.asarray(groups)[sample]
    folds = make_folds(keys[sample], None, cv=3, groups=known, random_state=seed)
    drawn = replace(rows.take(sample), weight=None)
    found = part
    if flexible:  # other models are fitted only if a gross part gains half of what a claim needs
        references = best_references(drawn, folds, linear=linear, flexible=True, corrected=False)
        found = _by_references(rows, part, sample, assessed, references, enough=math.log(rows.size))
    if found.references:
        return found
    references = best_references(drawn, folds, linear=linear, flexible=flexible)
    return _by_references(rows, part, sample, assessed, references)


def _sample(order: np.ndarray, rows: Rows) -> np.ndarray:
    """The first rows of an order, each as often as it counts; parts of a count add up along the order."""
    if rows.weight is None:
        return order[:REFERENCE_SAMPLE]
    passed = np.floor(np.cumsum(np.minimum(rows.weight[order], REFERENCE_SAMPLE)) + 0.5).astype(np.intp)
    return np.repeat(order, np.diff(passed, prepend=0))[:REFERENCE_SAMPLE]


def by_model(y: Array, predicted: Array, sigma: float, sample_weight: Array | None = None) -> ValueAssessment:
    """Return the assessment by the model alone: gross residuals that normal errors of this sigma do not explain."""
    residuals = y - predicted
    share = outlier_share(residuals, sigma, sample_weight)
    used = residuals if sample_weight is None else residuals[sample_weight > 0]
    n = max(effective_size(sample_weight, len(residuals)), 2)
    reach, least, high = float(np.abs(used).max(initial=0.0)), 1.0 / n, max(share.high, moved_share(0.0, n, 1))
    first = ValueAssessment(np.empty(0), 0.0, (0.0, high), sigma, reach=reach, least=least)
    wrong = _by_residuals(residuals, sigma, max(share.estimate, least), reach, first.ends)
    if not (wrong > EVEN_ODDS).any():
        return replace(first, wrong=wrong)
    gross = float(np.average(wrong > 0.99, weights=sample_weight))
    rate = share.estimate if share.low > 0 else min(gross, share.estimate)
    return replace(first, wrong=wrong, rate=rate, interval=(share.low, high))


def _beyond(heaps: tuple[float, float], rows: Rows, first: ValueAssessment) -> ValueAssessment:
    """Return the assessment by the model alone, by which values in a second heap are gross, and none before it."""
    below, above = (max(cut / WINDOW, CUTOFF) if cut < math.inf else GROSS for cut in heaps)  # before the density rises
    ends, share = (below, above), max(first.rate, first.least)
    wrong = _by_residuals(rows.y - rows.predicted, first.sigma, share, first.reach, ends)
    rate = float(np.average(wrong > EVEN_ODDS, weights=rows.weight))
    low = min(first.interval[0], max(moved_share(rate, rows.size, -1), 0.0))
    return replace(first, wrong=wrong, rate=rate, interval=(low, first.interval[1]), ends=ends)


def _between(residuals: Array, sigma: float, ends: tuple[float, float]) -> NDArray[np.bool_]:
    return np.asarray((residuals >= -ends[0] * sigma) & (residuals <= ends[1] * sigma))


def _by_residuals(residuals: Array, sigma: float, share: float, reach: float, ends: tuple[float, float]) -> Array:
    """Return how probably values are wrong by the residuals of the model; only gross ones are."""
    wrong = outlier_probability(residuals, sigma, share, reach=reach)
    return np.where(_between(residuals, sigma, ends), 0.0, wrong)


def repeated_value(y: Array, sample_weight: Array | None = None) -> float | None:
    """A value that is repeated so often that it is no measurement, beside enough others to be assessed."""
    values, place = np.unique(y, return_inverse=True)
    counts = np.bincount(place.reshape(-1), sample_weight)
    common, total = int(counts.argmax()), float(counts.sum())
    second = np.partition(counts, -2)[-2] if len(counts) > 1 else 0.0
    often = counts[common] >= max(ATOM * total, 2 * second) and total - counts[common] >= REFERENCE_ROWS
    return float(values[common]) if often else None


def _by_references(
    rows: Rows,
    first: ValueAssessment,
    sample: NDArray[np.intp],
    assessed: NDArray[np.intp],
    references: tuple[Reference, ...],
    enough: float = math.inf,
) -> ValueAssessment:
    """Return the assessment in units of the reference models, or the given one if a gross part gains enough."""
    y, weight = rows.y[assessed], None if rows.weight is None else rows.weight[assessed]
    placed, mixtures = [_placed(reference, rows, sample, assessed) for reference in references], []
    for one in placed:
        mixtures.append(fit_mixture(one.standardised(y), weight, finest=min(one.smallest / one.even, 1.0)))
        if mixtures[0].gain >= enough:  # the others cost time
            return first
    wrong, far = np.zeros(len(rows.y)), np.zeros(len(rows.y), dtype=bool)
    distances = [mixture.distance(one.standardised(y)) for mixture, one in zip(mixtures, placed, strict=True)]
    far[assessed] = np.min(distances, axis=0) > NEAR
    used, mixtures = _counted(references, mixtures)
    if max(mixture.gain for mixture in mixtures) >= enough:
        return first
    references = tuple(references[k] for k in used)
    wrong[assessed] = _gross(mixtures, [placed[k] for k in used], y)
    tail = far & (wrong <= EVEN_ODDS)
    shares = (wrong, tail, (first.wrong > EVEN_ODDS) & (wrong <= EVEN_ODDS) & ~tail)
    rate, beyond, misfit = (float(np.average(share, weights=rows.weight)) for share in shares)
    ends = [mixture.interval for mixture in mixtures if mixture.found]
    part = first.assessed
    low = max(min([moved_share(rate, rows.size, -1), *(end * part for end, _ in ends)]), 0.0) if ends else 0.0
    hidden = moved_share(beyond, rows.size, 1) / _visible(rows.y[sample], references[0], mixtures[0])
    high = min(max([moved_share(rate, rows.size, 1), *(end * part for _, end in ends)]) + hidden, 1.0)
    bare = tuple(replace(one, middle=np.empty(0), spread=np.empty(0)) for one in references)
    return replace(
        first, wrong=wrong, rate=rate, interval=(low, high), misfit=misfit, references=bare, mixtures=tuple(mixtures),
        lost=far,
    ).undecided(rows.size)  # fmt: skip


def _counted(references: Sequence[Reference], mixtures: list[Mixture]) -> tuple[list[int], list[Mixture]]:
    """Return which references count, and the errors in their units.

    The target's own scale comes first only if the logarithm is not clearly likelier: errors must then be found on both.
    What is found on one scale alone counts if it is large: a small part is the far end of a skewed or bent target.
    """
    agreed = mixtures[0].found if references[0].least is not None else all(one.found for one in mixtures)
    used = [k for k, one in enumerate(mixtures) if agreed or one.share >= COUNTED_SHARE]
    if not used:
        return [0], [replace(mixtures[0], needed=math.inf)]
    return used, [mixtures[k] for k in used]


def _gross(mixtures: Sequence[Mixture], references: Sequence[Reference], y: Array) -> Array:
    """Return how probably values are gross errors, by any of the references whose scale has a place for them."""
    pairs = zip(mixtures, references, strict=True)
    return np.asarray(np.max([mixture.gross(one.standardised(y)) * one.holds(y) for mixture, one in pairs], axis=0))


def _placed(reference: Reference, rows: Rows, sample: NDArray[np.intp], assessed: NDArray[np.intp]) -> Reference:
    """Return the reference for all assessed rows; those of its sample keep their own, which are held out."""
    place = np.searchsorted(assessed, sample)
    own = np.full(len(assessed), np.nan)
    placed = replace(reference, middle=own, spread=own.copy())
    if len(np.unique(sample)) < len(assessed):
        placed = reference.of(rows.take(assessed))
    placed.middle[place], placed.spread[place] = reference.middle, reference.spread
    return placed


def _visible(y: Array, reference: Reference, mixture: Mixture) -> float:
    """Return the share of errors that stand out, of values that belong to another row: the least an error does.

    What lies far out and was not called wrong may be all that shows of so many errors.
    """
    mixed_up = np.roll(y, len(y) // 2)  # the sample has no order
    return max(float(np.mean(mixture.distance(reference.standardised(mixed_up)) > NEAR)), VISIBLE)


def moved_share(share: float, n: float, side: int) -> float:
    """Return a share of n rows at an end of its 95 % interval."""
    return share + side * NORMAL_95 * math.sqrt((share * (1 - share) + 1 / n) / n)


def nearest(
    paced: Sequence[Array], plain: Array, assessment: ValueAssessment, sample_weight: Array | None = None
) -> int | None:
    """Return which model is nearest to the rows that are right; None if that is the plain one.

    It must be nearer than the plain one both by the size of residuals and by their square: a model that gives up the
    far end of a skewed target wins by size alone, one that follows a few far values by squares alone. If no gross
    errors were found, it must be so beyond a standard error. Wrong rows do not count, and rows far from every reference
    count as the worst of the others.

    Parameters
    ----------
    paced : sequence of ndarray of shape (n,)
        Residuals of unseen rows, of each model.
    plain : ndarray of shape (n,)
        Those of the plain model.
    assessment : ValueAssessment
        Which rows count.
    sample_weight : ndarray of shape (n,), optional
        Counts of the rows.

    Returns
    -------
    int or None

    Examples
    --------
    >>> plain = np.array([1.0, 2.0, 3.0])
    >>> nothing = ValueAssessment(np.array([0.0, 0.0, 1.0]), 0.0, (0.0, 0.0), sigma=1.0)
    >>> nearest([np.array([0.0, 1.0, 9.0])], plain, nothing), nearest([np.array([0.0, 2.3, 9.0])], plain, nothing)
    (0, None)
    """
    compared = assessment.trusted
    if compared.sum() < 2:
        return None
    lost = np.zeros(len(plain), dtype=bool) if assessment.lost is None else assessment.lost
    limit = np.where(lost, np.abs(plain[compared & ~lost]).max(initial=0.0), np.inf)[compared]
    weight = None if sample_weight is None else sample_weight[compared]
    errors = 0.0 if assessment.found else UNPROVEN
    unit = float(np.abs(plain).max(initial=0.0)) or 1.0  # in which squares of squares are numbers
    squares: dict[int, float] = {}
    for number, residuals in enumerate(paced):
        before, after = (np.minimum(np.abs(one[compared]), limit) / unit for one in (plain, residuals))
        gains = [mean_and_error(before**power - after**power, weight) for power in (1, 2)]
        if all(gain.mean > errors * gain.error for gain in gains):
            squares[number] = gains[1].mean
    return max(squares, key=squares.__getitem__, default=None)
