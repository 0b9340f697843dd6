"""Audit labels of several annotators: consensus, errors of each, and which rows to ask about again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from ..assessment import LEVELS, SUSPECT, AuditedLabels, look_by_share
from ..formatting import percent, plural
from ..inspection import as_table, lists_in_words
from ..label_noise.model import as_matrix
from ..parameters import check_most
from ._annotator_model import AnnotatorModel, fit_annotators, information_gain
from ._inputs import probabilities, shown_cells
from ._labels import AuditPage
from ._neighbours import find_neighbours
from ._noise import logits_of
from ._votes import Votes, read_votes

Array = NDArray[Any]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class AnnotatorAudit(AuditPage):
    """The result of `audit_annotators`.

    Attributes
    ----------
    classes, rows, annotators : ndarray
        Names of labels, rows and annotators, in the order of everything else here.
    consensus : ndarray of shape (n_rows,)
        Most probable true label of each row.
    consensus_probability : ndarray of shape (n_rows,)
        Its probability.
    probabilities : ndarray of shape (n_rows, n_classes)
        Probability of each true label.
    annotator_matrix : ndarray of shape (n_annotators, n_classes, n_classes)
        Entry ``[a, j, y]`` is the probability that annotator ``a`` calls a true ``j`` ``y``.
    """

    votes: Votes
    model: AnnotatorModel
    cells: Any = None

    @property
    def classes(self) -> Array:
        return self.votes.classes

    @property
    def rows(self) -> Array:
        return self.votes.rows

    @property
    def annotators(self) -> Array:
        return self.votes.annotators

    @property
    def probabilities(self) -> Floats:
        return self.model.posterior

    @property
    def consensus(self) -> Array:
        return np.asarray(self.classes[self.probabilities.argmax(axis=1)])

    @property
    def consensus_probability(self) -> Floats:
        return np.asarray(self.probabilities.max(axis=1))

    @property
    def annotator_matrix(self) -> Floats:
        return self.model.matrices

    @cached_property
    def _wrong(self) -> Floats:
        """Probability that each vote is wrong."""
        return np.asarray(1.0 - self.probabilities[self.votes.row, self.votes.label])

    @cached_property
    def annotator_error(self) -> Any:
        """Error rate of each annotator with a 95 % interval, worst first.

        Returns
        -------
        pandas.DataFrame
            ``annotator``, ``votes``, ``error``, ``lower`` and ``upper``.
        """
        who, n_people = self.votes.annotator, len(self.annotators)
        votes = np.bincount(who, minlength=n_people).astype(float)
        shares = np.zeros((n_people, len(self.classes)))
        np.add.at(shares, who, self.probabilities[self.votes.row])
        shares /= np.maximum(votes, 1.0)[:, None]
        right = np.einsum("ajj->aj", self.annotator_matrix)
        error = np.clip((shares * (1.0 - right)).sum(axis=1), 1e-6, 1 - 1e-6)
        # Sampling error at the votes and pseudo-votes there are, and what is not known about the true labels.
        unknown = np.bincount(who, self._wrong * (1.0 - self._wrong), minlength=n_people) / np.maximum(votes, 1.0) ** 2
        variance = error * (1.0 - error) / (votes + self.model.strength + 1.0) + unknown
        size = np.maximum(error * (1.0 - error) / variance - 1.0, 1.0)
        low, high = beta.interval(0.95, error * size, (1.0 - error) * size)
        order = np.argsort(-error, kind="stable")
        columns = {
            "annotator": self.annotators,
            "votes": votes.astype(int),
            "error": error,
            "lower": low,
            "upper": high,
        }
        return as_table({name: values[order] for name, values in columns.items()})

    @cached_property
    def _levels(self) -> NDArray[np.int8]:
        wrong = self._wrong
        look = wrong >= look_by_share(wrong, float(wrong.mean()))
        levels = np.where(wrong > SUSPECT, 2, np.where(look, 1, 0)).astype(np.int8)
        levels[self.votes.label == self.probabilities[self.votes.row].argmax(axis=1)] = 0
        return levels

    def suspects(self, n: int | None = None, *, all_rows: bool = False) -> Any:
        """Return the votes to check, most suspicious first; ``n`` and ``all_rows`` as in `LabelAudit.suspects`.

        Returns
        -------
        pandas.DataFrame
            ``row``, ``annotator``, ``level``, ``given``, ``expected`` (the consensus), ``noise_probability`` and
            ``label_quality``.
        """
        asked = np.arange(len(self._wrong)) if all_rows else np.flatnonzero(self._levels > 0)
        place = np.zeros(len(asked)) if all_rows else -self._levels[asked]
        order = asked[np.lexsort((-self._wrong[asked], place))][: check_most(n)]
        columns = {
            "row": self.rows[self.votes.row[order]],
            "annotator": self.annotators[self.votes.annotator[order]],
            "level": LEVELS[self._levels[order]],
            "given": self.classes[self.votes.label[order]],
            "expected": self.consensus[self.votes.row[order]],
            "noise_probability": self._wrong[order],
            "label_quality": 1.0 - self._wrong[order],
        }
        return as_table(columns)

    def ask_again(self, n: int | None = None) -> Any:
        """Return rows in the order in which one more vote tells most about their true label.

        Returns
        -------
        pandas.DataFrame
            ``row``, ``votes``, ``consensus``, ``consensus_probability`` and ``information``: what a vote by an ordinary
            annotator is expected to tell, in nats.
        """
        gain = information_gain(self.probabilities, self.model.common)
        order = np.lexsort((self.consensus_probability, -gain))[: check_most(n)]
        columns = {
            "row": self.rows[order],
            "votes": np.bincount(self.votes.row, minlength=len(self.rows))[order],
            "consensus": self.consensus[order],
            "consensus_probability": self.consensus_probability[order],
            "information": gain[order],
        }
        return as_table(columns)

    def _lists(self) -> str:
        likely, look = int(np.sum(self._levels == 2)), int(np.sum(self._levels == 1))
        right = float(self._wrong[self._levels == 2].mean()) if likely else np.nan
        return lists_in_words(likely, look, len(self._wrong), right, np.nan, row="vote")

    def _people(self) -> str:
        table = self.annotator_error
        worst = {name: np.asarray(table[name])[0] for name in table.columns}
        return (
            f"About {percent(float(self._wrong.mean()))} of the votes are wrong; most of those by annotator "
            f"{worst['annotator']}: {percent(worst['error'])} ({percent(worst['lower'])} to {percent(worst['upper'])})."
        )

    def summary(self) -> str:
        """Return what was found, in a few sentences."""
        votes, people = len(self.votes.row), len(self.annotators)
        head = f"{plural(votes, 'vote')} by {plural(people, 'annotator')} on {plural(len(self.rows), 'row')}"
        unsure = int(np.sum(self.consensus_probability < 1 - SUSPECT / 2))
        weight = "" if not self.model.scale else f" The model's log-probabilities have weight {self.model.scale:.2g}."
        return "\n".join(
            [
                f"{head}, {len(self.classes)} classes.{weight}",
                self._people(),
                self._lists(),
                f"{plural(unsure, 'row')} with a consensus below {percent(1 - SUSPECT / 2)} (ask_again()).",
            ]
        )

    def __repr__(self) -> str:
        likely = int(np.sum(self._levels == 2))
        return (
            f"AnnotatorAudit(rows={len(self.rows)}, annotators={len(self.annotators)}, votes={len(self.votes.row)}, "
            f"likely={likely})"
        )

    def audited(self) -> AuditedLabels:
        """Return what a page shows: `selfpaced.report` takes it."""
        table = self.suspects()
        return AuditedLabels(
            name="Audit of annotators",
            classes_=(),
            assessment=None,
            table={name: np.asarray(table[name]) for name in table.columns},
            headline=self._lists(),
            sentence=" ".join(self.summary().splitlines()),
            facts=(
                ("rows", f"{len(self.rows):,}", ""),
                ("annotators", f"{len(self.annotators):,}", f"{len(self.votes.row):,} votes"),
            ),
        )


def audit_annotators(
    annotations: Any, pred_probs: Any = None, *, features: Any = None, classes: Any = None, cells: Any = None
) -> AnnotatorAudit:
    """Estimate the true labels from several annotators, and the error rate of each annotator.

    Every annotator has a transition matrix, shrunk towards a common one as far as the annotators are alike. The
    probabilities of a model, if given, count as one more annotator, as strong as the votes support.

    Parameters
    ----------
    annotations : table
        Wide: one row per item, one column per annotator, None or NaN where there is no vote. Long: a data frame with
        the columns ``row``, ``annotator`` and ``label``; with `pred_probs` or `features`, ``row`` holds positions.
    pred_probs : array-like of shape (n, n_classes) or (n,), optional
        Held-out probabilities of a model, in the order of the sorted labels or of `classes`.
    features : array-like of shape (n, n_features), optional
        Features or embeddings, used if there are no `pred_probs`: the labels of the nearest rows stand in for a model.
    classes : array-like, optional
        Labels in the order of the columns of `pred_probs`.
    cells : data frame or array, optional
        Shown beside each row in the report.

    Returns
    -------
    AnnotatorAudit

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced import audit_annotators
    >>> rng = np.random.default_rng(0)
    >>> true = rng.integers(0, 2, 200)
    >>> error = np.array([0.05, 0.1, 0.1, 0.4])
    >>> votes = np.where(rng.random((200, 4)) < error, 1 - true[:, None], true[:, None])
    >>> audit = audit_annotators(votes)
    >>> bool((audit.consensus == true).mean() > 0.95), int(audit.annotator_error["annotator"][0])
    (True, 3)
    """
    if pred_probs is not None:
        probs = probabilities(pred_probs)
        votes = read_votes(annotations, len(probs), classes)
        logits: Floats | None = _logits(probs, len(votes.classes))
    else:
        votes = read_votes(annotations, None if features is None else np.shape(features)[0], classes)
        logits = None if features is None else _from_neighbours(votes, features)
    return AnnotatorAudit(votes, fit_annotators(votes, logits), shown_cells(cells, len(votes.rows)))


def _logits(probs: Floats, k: int) -> Floats:
    """Log-probabilities, one column per label."""
    if probs.ndim == 1:
        probs = np.column_stack([1.0 - probs, probs])
    if probs.shape[1] != k:
        raise ValueError(
            f"pred_probs must have one column per label, got {probs.shape[1]} columns and {k} labels; name the label "
            "of every column with classes="
        )
    return as_matrix(logits_of(probs / np.maximum(probs.sum(axis=1, keepdims=True), np.finfo(float).tiny)))


def _from_neighbours(votes: Votes, features: Any) -> Floats:
    """Log-probabilities from the most frequent labels of the nearest rows with votes."""
    counts = votes.counts()
    voted = np.flatnonzero(counts.sum(axis=1) > 0)
    found = find_neighbours(features, len(counts), voted, None)
    out = np.zeros(counts.shape)
    out[voted] = np.log(found.probabilities(counts[voted].argmax(axis=1), counts.shape[1]))
    return out
