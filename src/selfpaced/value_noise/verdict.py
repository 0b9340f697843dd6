"""The verdict about the values of a regression: which are grossly wrong, how many, and what the model only misfits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..fingerprint import mixed, row_keys
from ..folds import make_folds
from ..robust import outlier_probability, outlier_share
from ..robust.outliers import NORMAL_95
from ..selection import effective_size, frequencies
from .base import Array
from .explanation import Explanation, Rows, best_explanation
from .mixture import NEAR, Mixture, fit_mixture
from .pattern import GROSS, strewn

__all__ = ["EVEN_ODDS", "WITHOUT", "Verdict", "assess_values", "model_verdict", "repeated_value"]

MIN_ROWS = 60  # a choice: with fewer, misfit and dirt cannot be told apart, and the model's word has to do
SAMPLE = 2000  # cost: rows that explanations are learnt from
FOLDS = 3  # cost: of those rows
FEW, MANY = 10, 0.002  # a choice: outliers so few show no pattern, and are asked about where they are such a share
VISIBLE = 0.05  # a choice: share of mistakes that stand out at least, if any do; below, an interval would say nothing
ATOM = 0.15  # a choice: share of one repeated value (zero, often) that no residual can assess
EVEN_ODDS = 0.5  # convention: above, a value is more probably wrong than right
WITHOUT = "without gross rows"  # what the candidate is called that leaves them out
POOR = 0.02  # a choice: share of misfit values from which on a fit is called poor


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is wrong with values, and what is not.

    Attributes
    ----------
    wrong : ndarray of shape (n,)
        Probability that a value is grossly wrong.
    rate : float
        Share of gross errors, of those that no explanation accounts for.
    interval : tuple of float
        Of about 95 %, with the doubt whether what is far out belongs to them.
    misfit : float
        Share of values that the model cannot explain though something else can.
    explanation, mixture
        In whose units rows are assessed; None: those of the model.
    sigma : float
        Of the model's good residuals.
    reach, least : float
        The largest of its residuals, and the share that one of the rows is: other rows are assessed by them, each by
        itself.
    atom : float or None
        A value repeated so often that it is not assessed.
    applied : bool
        Whether the rows that are wrong were left out of the fit for that reason.
    lost : ndarray of shape (n,) or None
        Rows that no explanation comes near, wrong or not: by them no two models can be compared. None where they are
        few: a few may stand for a place that no other row is in.
    """

    wrong: Array
    rate: float
    interval: tuple[float, float]
    sigma: float
    misfit: float = 0.0
    explanation: Explanation | None = None
    mixture: Mixture | None = None
    atom: float | None = None
    applied: bool = False
    lost: np.ndarray | None = None
    reach: float = 0.0
    least: float = 0.0

    @property
    def found(self) -> bool:
        """Whether the assessment, not the model, has found gross errors."""
        return self.mixture is not None and self.mixture.found

    @property
    def asked(self) -> bool:
        """Whether other explanations than the model's were looked for."""
        return self.explanation is not None

    @property
    def trusted(self) -> np.ndarray:
        """Rows that are more probably right than wrong."""
        return np.asarray(self.wrong <= EVEN_ODDS)

    @property
    def comparable(self) -> np.ndarray:
        """Rows by which models can be compared: right, and near to the likeliest explanation."""
        return self.trusted if self.lost is None else self.trusted & ~self.lost

    @property
    def sentence(self) -> str:
        """What misfit there is, as a part of a sentence; empty where there is little."""
        if self.explanation is None or self.misfit < POOR:
            return ""
        parts = [self.explanation.words, self.explanation.scale.words]
        how = " ".join(part for part in parts if part)
        return f"{self.misfit:.1%} of the values are beyond this model, but no errors: {how} would explain them"

    def probability(self, rows: Rows) -> Array:
        """How probably the values of other rows are grossly wrong."""
        if self.explanation is None or self.mixture is None:
            residuals, share = rows.y - rows.guesses[0], max(self.rate, self.least)
            return outlier_probability(residuals, self.sigma, share, reach=self.reach)
        if not self.mixture.found:
            return np.zeros(len(rows.y))
        wrong = self.mixture.gross(self.explanation.of(rows).standardised(rows.y))
        return wrong if self.atom is None else np.where(rows.y == self.atom, 0.0, wrong)


def assess_values(
    y: Array,
    guesses: tuple[Array, ...],
    sigma: float,
    *,
    features: Array | None = None,
    sample_weight: Array | None = None,
    groups: Any = None,
    lines: bool = True,
    random_state: Any = 0,
) -> Verdict:
    """Assess the values of a regression.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Given values.
    guesses : tuple of ndarray of shape (n,)
        Predictions of the model in question, then those of other models worth a look (the plain one).
    sigma : float
        Of the good residuals of the first.
    features : ndarray of shape (n, p), optional
        Numbers that the target may depend on.
    sample_weight : ndarray of shape (n,), optional
        Frequencies of the rows, up to a common factor.
    groups : array-like of shape (n,), optional
        Rows of one group are explained by other groups.
    lines : bool, default=True
        Whether a line is worth asking: not where the model is one.
    random_state : int, RandomState or None
        Draws rows and folds.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(1, 4, size=1000)
    >>> price = np.exp(x + 0.3 * rng.normal(size=1000))
    >>> slope, intercept = np.polyfit(x, price, 1)
    >>> line = intercept + slope * x
    >>> verdict = assess_values(price, (line,), sigma=np.median(np.abs(price - line)), features=x[:, None])
    >>> verdict.rate, verdict.misfit > 0.02, verdict.explanation.scale.name
    (0.0, True, 'log')
    """
    sample_weight = None if sample_weight is None else frequencies(sample_weight)
    rows = Rows(np.asarray(y, dtype=float), guesses, features, sample_weight)
    by_model = model_verdict(rows.y, guesses[0], sigma, sample_weight)
    z = (rows.y - guesses[0]) / sigma if sigma > 0 else np.zeros(len(y))
    gross = rows.size_of(np.abs(z) > GROSS)
    if rows.size < MIN_ROWS or not gross > 0:
        return by_model
    atom = repeated_value(rows.y, sample_weight)
    assessed = np.arange(len(y)) if atom is None else np.flatnonzero(rows.y != atom)
    seed = int(check_random_state(random_state).randint(1 << 31))
    # by what rows hold: neither their order nor a copy of one matters
    keys = row_keys(guesses[0][:, None] if features is None else features)
    sample = _sample(assessed[np.argsort(mixed(keys[assessed], seed), kind="stable")], rows)
    pattern = gross >= FEW or gross < MANY * rows.size
    if pattern and strewn(z[sample], rows.take(sample).inputs):
        return by_model
    known = None if groups is None else np.asarray(groups)[sample]
    folds = make_folds(keys[sample], None, cv=FOLDS, groups=known, random_state=seed)
    drawn = replace(rows.take(sample), weight=None)
    return _asked(rows, by_model, sample, assessed, atom, best_explanation(drawn, folds, lines))


def _sample(order: np.ndarray, rows: Rows) -> np.ndarray:
    """The first rows of an order, each as often as it counts; parts of a count add up along the order."""
    if rows.weight is None:
        return order[:SAMPLE]
    passed = np.floor(np.cumsum(np.minimum(rows.weight[order], SAMPLE)) + 0.5).astype(np.intp)
    return np.repeat(order, np.diff(passed, prepend=0))[:SAMPLE]


def model_verdict(y: Array, predicted: Array, sigma: float, sample_weight: Array | None = None) -> Verdict:
    """The model's own word: what normal errors of this sigma do not explain."""
    residuals = y - predicted
    share = outlier_share(residuals, sigma, sample_weight)
    used = residuals if sample_weight is None else residuals[sample_weight > 0]
    reach, least = float(np.abs(used).max(initial=0.0)), 1.0 / max(effective_size(sample_weight, len(residuals)), 2)
    wrong = outlier_probability(residuals, sigma, max(share.estimate, least), reach=reach)
    return Verdict(wrong, share.estimate, (share.low, share.high), sigma, reach=reach, least=least)


def repeated_value(y: Array, sample_weight: Array | None = None) -> float | None:
    """A value that is repeated so often that it is no measurement, beside enough others to be assessed."""
    values, place = np.unique(y, return_inverse=True)
    counts = np.bincount(place.reshape(-1), sample_weight)
    common, total = int(counts.argmax()), float(counts.sum())
    often = counts[common] >= ATOM * total and total - counts[common] >= MIN_ROWS
    return float(values[common]) if often else None


def _asked(
    rows: Rows,
    by_model: Verdict,
    sample: np.ndarray,
    assessed: np.ndarray,
    atom: float | None,
    explanation: Explanation,
) -> Verdict:
    """After other explanations were looked for."""
    z = np.zeros(len(rows.y))
    if len(np.unique(sample)) < len(assessed):
        z[assessed] = explanation.of(rows.take(assessed)).standardised(rows.y[assessed])
    z[sample] = explanation.standardised(rows.y[sample])
    mixture = fit_mixture(z[sample])
    wrong, far = np.zeros(len(rows.y)), np.zeros(len(rows.y), dtype=bool)
    far[assessed] = mixture.distance(z[assessed]) > NEAR
    if mixture.found:
        wrong[assessed] = mixture.gross(z[assessed])
    shares = (wrong, far & (wrong <= EVEN_ODDS), _marked(rows.y, assessed))
    rate, tail, part = (float(np.average(share, weights=rows.weight)) for share in shares)
    low, high = mixture.interval
    low, high = (min(low * part, _moved(rate, rows, -1)), high * part) if mixture.found else (0.0, 0.0)
    hidden = _moved(tail, rows, 1) / _visible(rows.y[sample], explanation, mixture)
    high = max(high, _moved(rate, rows, 1)) + hidden
    beyond = (by_model.wrong > EVEN_ODDS) & (wrong <= EVEN_ODDS)
    misfit = float(np.average(beyond, weights=rows.weight))
    return replace(
        by_model, wrong=wrong, rate=rate, interval=(max(low, 0.0), min(high, 1.0)), misfit=misfit,
        explanation=replace(explanation, middle=np.empty(0), spread=np.empty(0)), mixture=mixture, atom=atom,
        lost=far if rows.size_of(far) >= FEW else None,
    )  # fmt: skip


def _visible(y: Array, explanation: Explanation, mixture: Mixture) -> float:
    """Share of mistakes that stand out: of values that belong to another row, which is the least an error does.

    What lies far out and was not called wrong may be all that shows of so many mistakes.
    """
    mixed_up = np.roll(y, len(y) // 2)  # the sample has no order
    return max(float(np.mean(mixture.distance(explanation.standardised(mixed_up)) > NEAR)), VISIBLE)


def _marked(y: Array, assessed: np.ndarray) -> np.ndarray:
    marked = np.zeros(len(y))
    marked[assessed] = 1.0
    return marked


def _moved(share: float, rows: Rows, side: int) -> float:
    """A share at an end of its 95 % interval."""
    n = rows.size
    return share + side * NORMAL_95 * math.sqrt((share * (1 - share) + 1 / n) / n)
