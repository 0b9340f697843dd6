"""Audit one label per row."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..assessment import LEVELS, PICTURES, Assessment, AuditedLabels
from ..formatting import percent, plural
from ..inspection import as_table, lists_in_words, suspect_table
from ._inputs import AuditInput
from ._neighbours import Neighbours
from ._noise import FittedNoise, logits_of

Array = NDArray[Any]
Codes = NDArray[np.intp]

UNEVEN_RATES = 2.0  # display: times the mean rate between classes from which a pair is named

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")


class AuditPage:
    """What audits share: how they show themselves, by their ``summary``, ``suspects`` and ``audited``."""

    def report(self: Any, path: Any = "audit.html", *, title: str | None = None) -> Any:
        """Write one HTML page with the suspects, and the cells of their rows beside them.

        Parameters
        ----------
        path : path-like, default="audit.html"
            File to write.
        title : str, optional
            Heading.

        Returns
        -------
        ReportFile
            The path of the page, which shows the page itself in a notebook.
        """
        from ..report import report

        return report(self.audited(), path=path, cells=self.cells, title=title)

    def _repr_html_(self: Any) -> str:
        """The summary and the first suspects, for a notebook."""
        table = self.suspects(10)
        return paragraphs(self.summary()) + (table.to_html() if len(table) else "")


def paragraphs(text: str) -> str:
    """Lines as paragraphs of HTML."""
    return "".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines())


@dataclass(frozen=True, eq=False, repr=False)
class LabelAudit(AuditPage):
    """The result of `audit_labels`: how many labels are wrong, and which.

    Attributes
    ----------
    classes : ndarray
        Labels, in the order of the columns of all matrices here.
    noise_rate : float
        Estimated share of wrong labels; NaN if the labels cannot tell whether any are wrong.
    noise_rate_interval : tuple of float
        95 % interval of this share. It is [0, upper] unless noise is detected.
    noise_rate_if_any : float
        Expected share of wrong labels if any are wrong.
    transition_matrix : ndarray of shape (n_classes, n_classes)
        Entry ``[j, y]`` is the probability that a label ``j`` was recorded as ``y``.
    clean_share : ndarray of shape (n_classes,)
        Estimated shares of the true labels.
    calibrated_probs : ndarray of shape (n, n_classes)
        Probabilities of the true label of every row, also of rows without a label.
    assessment : Assessment
        Levels and probabilities of the labelled rows.
    level_counts : ndarray of shape (3,)
        Number of rows of each level: not listed, worth a look, likely errors.
    n_unlabelled : int
        Rows without a label. They are predicted, and took no part in the fit.
    size : float
        Number of independent rows that the labelled rows are worth: fewer than rows if these come in groups.
    in_sample : bool
        Whether the probabilities look in-sample; then nothing here holds.
    """

    noise: FittedNoise = field(repr=False)
    given: AuditInput = field(repr=False)
    neighbours: Neighbours | None = None
    sample_weight: Any = None
    groups: Any = None
    cells: Any = None
    ids: Any = None
    in_sample: bool = False

    @property
    def classes(self) -> Array:
        return self.given.classes

    @property
    def noise_rate(self) -> float:
        return self.noise.rate

    @property
    def noise_rate_interval(self) -> tuple[float, float]:
        return self.noise.model.interval

    @property
    def noise_rate_if_any(self) -> float:
        return self.noise.model.rate_if_any

    @property
    def transition_matrix(self) -> Array:
        return self.noise.model.transition

    @cached_property
    def calibrated_probs(self) -> Array:
        return self.noise.model.proba(logits_of(self.given.probs))

    @property
    def clean_share(self) -> Array:
        rows = self.calibrated_probs[self.given.labelled]
        return np.asarray(np.average(rows, axis=0, weights=self.sample_weight))

    @property
    def n_unlabelled(self) -> int:
        return len(self.given.probs) - len(self.given.labelled)

    @property
    def n_labelled(self) -> int:
        return len(self.given.labelled)

    @property
    def level_counts(self) -> Array:
        return np.bincount(self.assessment.levels(), minlength=3)

    @property
    def size(self) -> float:
        return self.noise.size

    @cached_property
    def assessment(self) -> Assessment:
        return self.noise.assessment(self.classes, self.numbers)

    @property
    def numbers(self) -> Codes:
        """Numbers of the rows of the assessment."""
        return self.given.labelled

    # ------------------------------------------------------------------------------------------------ tables

    def suspects(self, n: int | None = None, *, all_rows: bool = False) -> Any:
        """Return the rows to check, most suspicious first.

        Parameters
        ----------
        n : int, optional
            Number of rows at most; by default all rows of both levels.
        all_rows : bool, default=False
            Return the ranking of all labelled rows instead of the two levels.

        Returns
        -------
        pandas.DataFrame
            The columns of `selfpaced.suspects`: ``row``, ``level``, ``given``, ``expected``, ``weight``
            (1 - ``noise_probability``, a sample weight for the next fit), ``noise_probability``,
            ``probability_if_noisy`` and ``label_quality``; with ``ids`` also ``id``, with ``features`` also ``why``.
        """
        table = suspect_table(self.assessment, n, all_rows=all_rows)
        columns = {name: np.asarray(table[name]) for name in table.columns}
        rows = columns.pop("row")
        out = {"row": rows} | ({} if self.ids is None else {"id": self.ids[rows]}) | columns
        if self.neighbours is not None:
            labelled, assessed = self.given.labelled, self.assessment
            confident = np.flatnonzero(assessed.levels() == 0)
            known = confident, assessed.diagnosis.given, columns["expected"], labelled
            out["why"] = np.array(self.neighbours.reasons(np.searchsorted(labelled, rows), *known), dtype=object)
        return self._indexed(as_table(out), rows)

    def label_issues(self) -> Any:
        """Return every row in row order, with cleanlab's column names.

        Returns
        -------
        pandas.DataFrame
            ``is_label_issue`` (true for likely errors), ``label_quality``, ``given_label``, ``predicted_label`` and
            ``level``. Rows without a label have no quality, and are no issue.
        """
        n, rows, levels = len(self.given.probs), self.given.labelled, self.assessment.levels()
        issue, quality, names = np.zeros(n, dtype=bool), np.full(n, np.nan), np.full(n, "", dtype=LEVELS.dtype)
        issue[rows], quality[rows], names[rows] = levels == 2, 1.0 - self.assessment.wrong, LEVELS[levels]
        label = self.assessment.diagnosis.given
        if self.n_unlabelled:
            every = np.full(n, None, dtype=object)
            every[rows] = label.tolist()
            label = every
        predicted = self.classes[self.calibrated_probs.argmax(axis=1)]
        columns = {"is_label_issue": issue, "label_quality": quality, "given_label": label}
        return self._indexed(as_table({**columns, "predicted_label": predicted, "level": names}), np.arange(n))

    def near_duplicates(self) -> Any:
        """Return pairs of rows that are almost equal in ``features`` and have different labels, nearest first.

        Returns
        -------
        pandas.DataFrame
            ``row``, ``other``, ``given``, ``other_given`` and ``distance``.
        """
        if self.neighbours is None:
            raise ValueError("near_duplicates needs features: audit_labels(labels, pred_probs, features=embeddings)")
        first, second = self.neighbours.duplicates(self.noise.codes)
        given, rows = self.assessment.diagnosis.given, self.given.labelled
        pairs = {"row": rows[first], "other": rows[second], "given": given[first], "other_given": given[second]}
        return as_table({**pairs, "distance": self.neighbours.distance[first]})

    def _indexed(self, table: Any, rows: Codes) -> Any:
        index = self.given.index
        return table if index is None else table.set_axis(index[rows])

    # ------------------------------------------------------------------------------------------------- words

    def _lists(self) -> str:
        _, look, likely = self.level_counts.tolist()
        precision = self.assessment.expected_precision(self.assessment.levels())
        return lists_in_words(likely, look, self.n_labelled, *precision)

    def _rate(self) -> str:
        """What is known about the share of wrong labels."""
        low, high = map(percent, self.noise_rate_interval)
        if self.noise.model.suspicion is None:
            return "The probabilities do not predict the labels, so wrong labels cannot be found with them."
        if self.noise.established:
            return f"Estimated label-error rate {percent(self.noise_rate)} ({low} to {high})."
        if not np.isnan(self.noise_rate):
            return f"No label noise detected: at most {high} of the labels are wrong."
        return (
            f"Between 0 and {high} of the labels may be wrong (about {percent(self.noise_rate_if_any)} if any are); "
            "these labels cannot tell whether any are."
        )

    def _asides(self) -> list[str]:
        """What a reader must know to read the rest."""
        out = []
        if self.in_sample:
            out.append("The probabilities look in-sample: wrong labels can be found only with held-out ones.")
        if self.n_unlabelled:
            out.append(f"{plural(self.n_unlabelled, 'row')} without a label: predicted, and left out of the fit.")
        if self.groups is not None:
            groups = len(np.unique(self.groups))
            out.append(f"{plural(groups, 'group')}; the rows count as {self.size:,.0f} independent ones.")
        if self.neighbours is None:
            out.append("Misfit of the model cannot be checked without features (features=).")
        elif self.noise.reference is not None:
            out.append(
                "The nearest rows explain the labels better than the model, which misfits; the estimate uses both."
            )
        if self.neighbours is not None and len(pairs := self.neighbours.duplicates(self.noise.codes)[0]):
            out.append(f"{plural(len(pairs), 'pair')} of near-duplicates with different labels (near_duplicates()).")
        return out

    def _confusions(self) -> list[str]:
        """The largest rates from one class to another, if noise is detected."""
        if not self.noise.established:
            return []
        rates = self.transition_matrix - np.diag(np.diag(self.transition_matrix))
        largest = np.argsort(-rates, axis=None, kind="stable")[:3]
        pairs = [(int(j), int(y)) for j, y in zip(*np.unravel_index(largest, rates.shape), strict=True)]
        mean = float(rates.sum()) / (rates.size - len(rates))
        told = [
            f"{str(self.classes[j])!r} recorded as {str(self.classes[y])!r}: {percent(float(rates[j, y]))}"
            for j, y in pairs
            if rates[j, y] >= UNEVEN_RATES * mean or (rates.size == 4 and j != y)
        ]
        return ["; ".join(told) + "."] if told else []

    def summary(self) -> str:
        """Return what was found, in a few sentences."""
        n, k, right = self.n_labelled, len(self.classes), percent(self.noise.accuracy)
        head = f"Audit of {plural(n, 'label')} in {k} classes; the probabilities predict {right} of them."
        return "\n".join([head, self._rate(), *self._confusions(), self._lists(), *self._asides()])

    def __repr__(self) -> str:
        (low, high), (_, look, likely) = self.noise_rate_interval, self.level_counts.tolist()
        return (
            f"{type(self).__name__}(n={self.n_labelled}, classes={len(self.classes)}, noise_rate={self.noise_rate:.3f} "
            f"({low:.3f} to {high:.3f}), likely={likely}, look={look})"
        )

    def audited(self) -> AuditedLabels:
        """Return what a page shows: `selfpaced.report` takes it."""
        table = LabelAudit.suspects(self)  # those of blocks are not in memory
        columns: Mapping[str, Any] = {name: np.asarray(table[name]) for name in table.columns if name != "weight"}
        rate = "unknown" if np.isnan(self.noise_rate) else percent(self.noise_rate)
        low, high = self.noise_rate_interval
        return AuditedLabels(
            name="Label audit",
            classes_=tuple(self.classes.tolist()),
            assessment=self.assessment,
            table=columns,
            headline=f"{self._rate()} {self._lists()}",
            sentence=" ".join([*self._confusions(), *self._asides()]),
            pictures=pictures_of(self.cells, columns["row"]),
            facts=(
                ("labels", f"{self.n_labelled:,}", f"{len(self.classes)} classes"),
                ("estimated noise rate", rate, f"{percent(low)} to {percent(high)}"),
                ("held-out accuracy", percent(self.noise.accuracy), "on the given labels"),
            ),
        )


# ----------------------------------------------------------------------------------------------- pictures


def pictures_of(cells: Any, rows: Codes) -> tuple[NDArray[np.uint8], ...]:
    """Small pictures of some rows in this order, from the first column of image paths; none without Pillow."""
    if not hasattr(cells, "columns") or not len(rows) or find_spec("PIL") is None:
        return ()
    for place in range(cells.shape[1]):
        paths = [str(value) for value in cells.iloc[rows[:PICTURES], place]]
        if all(path.lower().endswith(IMAGE_SUFFIXES) and Path(path).is_file() for path in paths):
            return tuple(_small(path) for path in paths)
    return ()


def _small(path: str) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(path) as image:
        image.thumbnail((64, 64))
        return np.asarray(image.convert("RGB"), dtype=np.uint8)
