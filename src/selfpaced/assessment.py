"""What a fitted model holds about its rows, in one object that suspects, report, plots and the command line read.

A :class:`Assessment` says of every row which loss the rule saw, at which pace, what weight came of it, how probable it
is that the given label or value is wrong, and what the model expected instead. :class:`AssessmentMixin` is what every
estimator of this library is: it keeps the assessment of its training rows and gives one for new rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import median_abs_deviation

from .fingerprint import fingerprint as fingerprint
from .registry import Kind
from .regularizers import get
from .selection import Candidate

Array = NDArray[Any]

ROWS_AT_ONCE = 1 << 16  # cost: rows that are assessed at a time
SUSPECT = 0.5  # theory: even odds
UNLIKELY = 0.4  # benchmarks/wrappers.py, labels: probability of the given label below which a row is worth a look
OUTLIER_Z = 3.5  # theory: the usual bound of the modified z-score
PICTURES = 200  # cost: most suspicious rows whose pictures are opened for a report
LEVELS = np.array(["", "worth a look", "likely error"])


class Noise(Protocol):
    """Label noise as an assessment needs it: the clean label's probability, and that a given label is wrong."""

    def proba(self, logits: Any) -> Array:
        """Probability of each clean class, one row per sample."""
        ...

    def noise_probability(self, logits: Any, y: Any) -> Array:
        """Probability that the given label is wrong."""
        ...


@dataclass(frozen=True, eq=False)
class Labels:
    """Assessment of labels; probabilities are computed on demand.

    Attributes
    ----------
    classes : ndarray
        The labels.
    codes : ndarray of int
        Given labels as positions in ``classes``.
    logits : ndarray
        Scores as ``noise`` takes them.
    noise : Noise
        Turns scores into probabilities of the clean label.
    """

    classes: Array
    codes: NDArray[np.intp]
    logits: Array
    noise: Noise

    def __getstate__(self) -> dict[str, Any]:
        """Without what is worked out when it is asked for: of many rows most of a saved model would be that."""
        return {name: value for name, value in self.__dict__.items() if name not in ("proba", "wrong", "evidence")}

    def some(self, rows: Array) -> Labels:
        """The diagnosis about some of the rows."""
        return replace(self, codes=self.codes[rows], logits=self.logits[rows])

    @cached_property
    def proba(self) -> Array:
        """Probability of every clean label."""
        return piece_by_piece(self.noise.proba, self.logits)

    @property
    def given(self) -> Array:
        """Given labels."""
        return np.asarray(self.classes[self.codes])

    @property
    def expected(self) -> Array:
        """The most probable clean label."""
        return np.asarray(self.classes[self.proba.argmax(axis=1)])

    @property
    def support(self) -> Array:
        """Probability that the given label is the clean one."""
        return np.asarray(self.proba[np.arange(len(self.codes)), self.codes])

    @cached_property
    def wrong(self) -> Array:
        """Probability that the given label is wrong."""
        return np.clip(piece_by_piece(self.noise.noise_probability, self.logits, self.codes), 0.0, 1.0)

    @cached_property
    def evidence(self) -> Array:
        """Probability that the given label is wrong if any labels are wrong: what rows are ranked by."""
        conditional = getattr(self.noise, "probability_if_noisy", None)
        if conditional is None:
            return self.wrong
        return np.clip(piece_by_piece(conditional, self.logits, self.codes), 0.0, 1.0)


def piece_by_piece(function: Callable[..., Array], *columns: Array) -> Array:
    """What a function of each row gives for all of them; for some at a time, whose copies then stay in the cache."""
    n = len(columns[0])
    parts = [
        function(*(column[begin : begin + ROWS_AT_ONCE] for column in columns))
        for begin in range(0, max(n, 1), ROWS_AT_ONCE)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Values:
    """Assessment of values: of a regression, of entries of a matrix, or of distances to a centre.

    Attributes
    ----------
    given, expected : ndarray
        Given and fitted values.
    wrong : ndarray
        Probability that a value is an outlier.
    misfit : float
        Share of the fitted values that the model cannot explain though something else can: they are no outliers.
    misfit_words : str
        What explains them; empty if the fit is not poor.
    """

    given: Array
    expected: Array
    wrong: Array
    misfit: float = 0.0
    misfit_words: str = ""

    @property
    def support(self) -> Array:
        """Given less expected value."""
        return np.asarray(self.given, dtype=np.float64) - self.expected

    @property
    def evidence(self) -> Array:
        """Size of the residual."""
        return np.asarray(np.abs(self.support))


@dataclass(frozen=True, eq=False)
class Places:
    """Positions of assessed entries in their matrix, whose rows and columns may have labels."""

    rows: NDArray[np.integer[Any]]
    columns: NDArray[np.integer[Any]]
    shape: tuple[int, int]
    row_labels: Array | None = None
    column_labels: Array | None = None

    def named(self, which: Any) -> tuple[Array, Array]:
        """Rows and columns of some entries, by label if there are labels."""
        rows, columns = self.rows[which], self.columns[which]
        return (
            rows if self.row_labels is None else self.row_labels[rows],
            columns if self.column_labels is None else self.column_labels[columns],
        )


@dataclass(frozen=True, eq=False)
class Assessment:
    """A model's assessment of some rows.

    Attributes
    ----------
    kind : {"labels", "values", "entries", "samples"}
        What is assessed: labels, values, entries of a matrix, or samples of a clustering.
    diagnosis : Labels or Values
        What was expected of the rows, and how probably they are wrong.
    losses : ndarray
        The losses as the rule saw them: of the kind and in the unit by which the weights were made.
    lam : float or ndarray
        The pace, of every row if it differs; ``inf`` is the plain model.
    rule : Regularizer or None
        The rule that ``lam`` belongs to; None if nothing was weighed.
    fingerprint : str
        Fingerprint of the rows and their given labels or values, see :func:`fingerprint`; may be empty.
    held_out : bool
        Whether it is the assessment of models that had not seen the rows.
    places : Places or None
        Places of the entries of a matrix; None for rows of a table.
    given_weight : ndarray or None
        The weights, if they are not simply the rule's at ``lam``: a missing view of a sample has weight 0.
    trusted : ndarray of bool or None
        Rows that a person has confirmed: their weight is 1, they are not wrong, and no table of suspects lists them.
    numbers : ndarray or None
        Numbers of the rows in their table, if only a sample of it is assessed.
    stability : ndarray or None
        Share of fits to parts of the rows by which each is a suspect; None if no such fits are known.
    look : float
        Evidence from which a row is worth a look, see `levels`: of labels the probability of an error if any labels are
        wrong, of values the size of the residual.

    Examples
    --------
    >>> diagnosis = Values(np.array([1.0, 9.0]), np.array([1.1, 2.0]), wrong=np.array([0.0, 0.9]))
    >>> assessment = Assessment("values", diagnosis, losses=np.array([0.01, 49.0]), lam=1.0, rule="hard")
    >>> assessment.ranking().tolist(), assessment.weight.tolist()
    ([1, 0], [1.0, 0.0])
    """

    kind: Kind
    diagnosis: Labels | Values
    losses: Array
    lam: Any
    rule: Any = None
    fingerprint: str = ""
    held_out: bool = False
    places: Places | None = None
    given_weight: Array | None = None
    trusted: NDArray[np.bool_] | None = None
    numbers: NDArray[np.intp] | None = None
    stability: Array | None = None
    look: float = math.inf

    def __getstate__(self) -> dict[str, Any]:
        """Without the weights, that follow from the rest."""
        return {name: value for name, value in self.__dict__.items() if name != "weight"}

    @property
    def evidence(self) -> Array:
        """The figure that decides whether a row is worth a look."""
        return self.diagnosis.evidence

    def levels(self, threshold: float = SUSPECT) -> NDArray[np.int8]:
        """The level of every row: 2 for a likely error, 1 for a row worth a look, 0 for all others.

        This is the one definition of a suspect. A likely error is more probably wrong than right (its probability of
        being wrong is above ``threshold``). A row worth a look is among those that would be checked first if any labels
        or values are wrong. In both cases the model expects another label than the given one, and nobody has confirmed
        the row.
        """
        likely, look = np.asarray(self.wrong > threshold), np.asarray(self.evidence >= self.look)
        rows = np.flatnonzero(likely | look)
        levels = np.zeros(len(likely), dtype=np.int8)
        levels[rows] = np.where(likely[rows], 2, 1)
        if isinstance(self.diagnosis, Labels):
            listed = self.diagnosis.some(rows)
            levels[rows[listed.given == listed.expected]] = 0
        if self.trusted is not None:
            levels[self.trusted] = 0
        return levels

    def expected_precision(self, levels: NDArray[np.int8]) -> tuple[float, float]:
        """Expected share of errors among the likely errors, and among the rows worth a look if any labels are wrong.

        NaN for an empty list, and for rows worth a look of values.
        """
        likely, look = levels == 2, levels == 1
        first = float(self.wrong[likely].mean()) if likely.any() else math.nan
        known = isinstance(self.diagnosis, Labels) and bool(look.any())
        return first, float(self.evidence[look].mean()) if known else math.nan

    @cached_property
    def weight(self) -> Array:
        """Relative weight of every row, in [0, 1]."""
        weight = weights_at(self.rule, self.losses, self.lam) if self.given_weight is None else self.given_weight
        return weight if self.trusted is None else np.where(self.trusted, weight.dtype.type(1.0), weight)

    @property
    def wrong(self) -> Array:
        """Probability that the given label or value is wrong."""
        wrong = self.diagnosis.wrong
        return wrong if self.trusted is None else np.where(self.trusted, 0.0, wrong)

    def ranking(self, n: int | None = None, only: NDArray[np.bool_] | None = None) -> NDArray[np.intp]:
        """Row numbers (only some of them on request), most suspicious first, without confirmed rows."""
        losses = self.losses if np.ndim(self.losses) == 1 else self.losses.sum(axis=1)  # over the views of a sample
        asked: Any = slice(None) if only is None else np.flatnonzero(only)
        order: NDArray[np.intp] = np.lexsort((-losses[asked], -self.evidence[asked], -self.wrong[asked]))
        order = order if only is None else asked[order]
        return (order if self.trusted is None else order[~self.trusted[order]])[:n]

    def table(self, order: NDArray[np.intp], levels: NDArray[np.int8] | None = None) -> dict[str, Array]:
        """Return what is known of some rows, column by column; ``levels`` are those of all rows."""
        numbers, asked = self.numbers, order
        place = {"row": order if numbers is None else numbers[order]}
        if self.places is not None:
            place["row"], place["column"] = self.places.named(order)
        diagnosis: Any = self.diagnosis
        if isinstance(diagnosis, Labels):  # of many rows, few are asked for
            diagnosis, asked = diagnosis.some(order), np.arange(len(order))
        level = (self.levels() if levels is None else levels)[order]
        support = {} if isinstance(diagnosis, Labels) else {"residual": diagnosis.support[asked]}
        conditional = {"probability_if_noisy": diagnosis.evidence[asked]} if isinstance(diagnosis, Labels) else {}
        return {
            **place,
            "level": LEVELS[level],
            "given": diagnosis.given[asked],
            "expected": diagnosis.expected[asked],
            **support,
            "weight": self.weight[order],
            "noise_probability": self.wrong[order],
            **conditional,
            "label_quality": 1.0 - self.wrong[order],
            **({} if self.stability is None else {"stability": self.stability[order]}),
        }

    def of(self, X: Any, y: Any) -> bool:
        """Whether these are the rows that were assessed."""
        return bool(self.fingerprint) and self.fingerprint == fingerprint(X, y)


def look_by_share(evidence: Array, share: float, weight: Array | None = None) -> float:
    """The evidence above which a share of the rows, or of their weight, lies.

    It lies between the last row that is in and the first that is out, so that rounding moves no row over it.

    >>> look_by_share(np.array([0.1, 0.9, 0.5, 0.2]), 0.5), look_by_share(np.array([0.1, 0.9]), 0.0)
    (0.35, inf)
    """
    if not share > 0:
        return math.inf
    if weight is None:
        ordered, count = evidence, round(share * len(evidence))
    else:
        order = np.argsort(-evidence, kind="stable")
        ordered, count = evidence[order[::-1]], 1 + int(np.searchsorted(np.cumsum(weight[order]), share * weight.sum()))
    if count == 0:
        return math.inf
    first, last = max(len(ordered) - count - 1, 0), max(len(ordered) - count, 0)
    return float(np.partition(ordered, (first, last))[[first, last]].mean())


def look_by_residuals(residuals: Array) -> float:
    """The size of a residual from which it is an outlier by its modified z-score (Iglewicz and Hoaglin, 1993).

    >>> round(look_by_residuals(np.array([-1.0, 0.0, 1.0, 2.0, -2.0])), 2)
    5.19
    """
    spread = float(median_abs_deviation(residuals, scale="normal")) if len(residuals) else 0.0
    return OUTLIER_Z * spread if spread > 0 else math.inf


def weights_at(rule: Any, losses: Array, lam: Any) -> Array:
    """Relative weights of losses at a pace, of all rows or of each."""
    if rule is None or not np.isfinite(lam).any():
        return np.ones_like(losses, dtype=np.result_type(losses, np.float32))
    return np.asarray(get(rule).relative_weight(losses, lam))


class AssessmentMixin(ABC):
    """Mixin for estimators that assess their training rows, and new rows by the same loss and pace.

    A subclass sets these attributes in ``fit`` and implements ``_assess`` for rows it has not been fitted on.
    """

    assessment_: Assessment
    path_: tuple[Candidate, ...]
    lam_: float
    termination_: str

    def assess(self, X: Any, y: Any = None) -> Assessment:
        """Assess the given labels or values of rows.

        Parameters
        ----------
        X : array-like
            Rows. Those of ``fit``, with the same ``y``, are recognised by their content and get the assessment that
            was made then, by models that had not seen the row if there are such.
        y : array-like, optional
            Their given labels or values; not for estimators that take none.

        Returns
        -------
        Assessment
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "assessment_")
        rows, given = self._assessed_rows(X, y)
        return self.assessment_ if self.assessment_.of(rows, given) else self._assess(rows, given)

    def _assessed_rows(self, X: Any, y: Any) -> tuple[Any, Any]:
        """X and y as they were when the fingerprint of ``assessment_`` was taken."""
        return X, y

    @abstractmethod
    def _assess(self, X: Any, y: Any) -> Assessment:
        """The assessment of rows that were not fitted."""


def without_rows(model: AssessmentMixin) -> AssessmentMixin:
    """The model as others need it who assess rows by it: without what it holds of its own."""
    other, held = copy(model), model.assessment_
    diagnosis: Any = held.diagnosis
    if isinstance(diagnosis, Labels):
        diagnosis = replace(diagnosis, codes=diagnosis.codes[:0], logits=diagnosis.logits[:0])
    elif isinstance(diagnosis, Values):
        diagnosis = replace(
            diagnosis, given=diagnosis.given[:0], expected=diagnosis.expected[:0], wrong=diagnosis.wrong[:0]
        )
    bare: Any = {"numbers": None, "fingerprint": "", "trusted": None, "stability": None}
    other.assessment_ = replace(held, diagnosis=diagnosis, losses=held.losses[:0], **bare)
    return other


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network after its training, as the report shows it: its epochs stand where an estimator has a path.

    Attributes
    ----------
    name : str
        What the network calls itself.
    assessment : Assessment
        Assessment of the rows it was trained on.
    epochs : tuple of dict
        One record for each: epoch, phase, agreement, rate, lower, upper, trusted, lam.
    termination : str
        Why the training is in its last phase.
    names : ndarray or None
        Names of the rows; positions without.
    pictures : tuple of ndarray
        Pictures of the most suspicious rows, in the order of ``assessment.ranking()``, if the inputs are pictures.
    """

    name: str
    assessment: Assessment
    epochs: tuple[dict[str, Any], ...] = ()
    termination: str = ""
    names: Array | None = None
    pictures: tuple[Array, ...] = ()


@dataclass(frozen=True, eq=False)
class AuditedLabels:
    """Labels that were audited from given probabilities, as the report shows them.

    Attributes
    ----------
    name : str
        Heading of the page.
    classes_ : tuple
        The labels; empty if several labels belong to each row.
    assessment : Assessment or None
        Assessment of the labelled rows; None if several labels belong to each row.
    table : mapping of str to ndarray
        The suspects, column by column.
    headline, sentence : str
        What was found, and what a reader must know to understand it.
    facts : tuple of (label, value, note)
        Figures of the headline.
    pictures : tuple of ndarray
        Pictures of the first suspects.
    """

    name: str
    classes_: tuple[Any, ...]
    assessment: Assessment | None
    table: Mapping[str, Any]
    headline: str
    sentence: str
    facts: tuple[tuple[str, str, str], ...] = ()
    pictures: tuple[Array, ...] = ()


class DelegatedAssessment:
    """An estimator that leaves the assessment to another, which it holds as ``detector_`` once it is fitted.

    Suspects and reports look through it, as through a Pipeline (:func:`selfpaced.inspection.look_through`).
    """

    detector_: Any
