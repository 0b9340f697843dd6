"""Audit several labels per row: every column of an indicator matrix is a question of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..assessment import LEVELS, AuditedLabels
from ..formatting import percent, plural
from ..inspection import as_table, lists_in_words
from ..parameters import check_most
from ._inputs import array_of, given_classes, missing, probabilities
from ._labels import AuditPage, LabelAudit

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class MultiLabelAudit(AuditPage):
    """The result of `audit_labels` with ``multi_label=True``.

    Attributes
    ----------
    classes : ndarray of shape (n_labels,)
        Names of the columns.
    audits : tuple of LabelAudit
        The audit of each column, whose classes are 0 and 1.
    noise_rate : ndarray of shape (n_labels,)
        Estimated share of wrong entries of each column; NaN if they cannot tell whether any are wrong.
    noise_rate_interval : ndarray of shape (n_labels, 2)
        95 % intervals.
    transition_matrix : ndarray of shape (n_labels, 2, 2)
        One matrix per column.
    clean_share : ndarray of shape (n_labels,)
        Estimated share of rows that truly have the label.
    calibrated_probs : ndarray of shape (n, n_labels)
        Probability that the row truly has the label.
    level_counts : ndarray of shape (3,)
        Number of entries of each level: not listed, worth a look, likely errors.
    """

    classes: Array
    audits: tuple[LabelAudit, ...]
    cells: Any = None
    ids: Any = None

    @property
    def noise_rate(self) -> Array:
        return np.array([audit.noise_rate for audit in self.audits])

    @property
    def noise_rate_interval(self) -> Array:
        return np.array([audit.noise_rate_interval for audit in self.audits])

    @property
    def transition_matrix(self) -> Array:
        return np.stack([audit.transition_matrix for audit in self.audits])

    @property
    def clean_share(self) -> Array:
        return np.array([audit.clean_share[1] for audit in self.audits])

    @property
    def calibrated_probs(self) -> Array:
        return np.column_stack([audit.calibrated_probs[:, 1] for audit in self.audits])

    @property
    def level_counts(self) -> Array:
        return np.asarray(np.sum([audit.level_counts for audit in self.audits], axis=0))

    def suspects(self, n: int | None = None, *, all_rows: bool = False) -> Any:
        """Return the entries to check, most suspicious first; ``n`` and ``all_rows`` as in `LabelAudit.suspects`.

        Returns
        -------
        pandas.DataFrame
            The columns of `LabelAudit.suspects`, and ``column``: the label in question.
        """
        tables = [audit.suspects(all_rows=all_rows) for audit in self.audits]
        columns: dict[str, Array] = {}
        for name in tables[0].columns:
            columns[name] = np.concatenate([np.asarray(table[name]) for table in tables])
            if name == "row":
                columns["column"] = np.repeat(self.classes, [len(table["row"]) for table in tables])
        place = np.zeros(len(columns["row"])) if all_rows else columns["level"] != LEVELS[2]
        order = np.lexsort((-columns["probability_if_noisy"], -columns["noise_probability"], place))[: check_most(n)]
        out = {name: values[order] for name, values in columns.items()}
        index = self.audits[0].given.index
        table = as_table(out)
        return table if index is None else table.set_axis(index[out["row"]])

    def label_issues(self) -> Any:
        """Return every entry in row order, column by column: ``row``, ``column`` and cleanlab's column names."""
        tables = [audit.label_issues() for audit in self.audits]
        n = len(tables[0]["level"])
        columns = {"row": np.tile(np.arange(n), len(tables)), "column": np.repeat(self.classes, n)}
        for name in tables[0].columns:
            columns[name] = np.concatenate([np.asarray(table[name]) for table in tables])
        return as_table(columns)

    def _lists(self) -> str:
        rest, look, likely = self.level_counts.tolist()
        table = self.suspects()
        level, wrong = np.asarray(table["level"]), np.asarray(table["noise_probability"])
        if_noisy = np.asarray(table["probability_if_noisy"])
        right = float(wrong[level == LEVELS[2]].mean()) if likely else np.nan
        if_any = float(if_noisy[level == LEVELS[1]].mean()) if look else np.nan
        return lists_in_words(likely, look, rest + look + likely, right, if_any, row="entry")

    def summary(self) -> str:
        """Return what was found, in a few sentences: one for each column with detected noise."""
        n = len(self.audits[0].given.probs)
        lines = [f"Audit of {plural(n, 'row')} with {plural(len(self.classes), 'label')} each.", self._lists()]
        for name, audit in zip(self.classes, self.audits, strict=True):
            if audit.noise.established:
                lines.append(f"{name}: {audit._rate()}")
        quiet = sum(not audit.noise.established for audit in self.audits)
        lines.append(f"No label noise detected in {plural(quiet, 'column')}.") if quiet else None
        return "\n".join([*lines, *dict.fromkeys(aside for audit in self.audits for aside in audit._asides())])

    def __repr__(self) -> str:
        _, look, likely = self.level_counts.tolist()
        rows = len(self.audits[0].given.probs)
        return f"MultiLabelAudit(n={rows}, labels={len(self.classes)}, likely={likely}, look={look})"

    def audited(self) -> AuditedLabels:
        """Return what a page shows: `selfpaced.report` takes it."""
        table = self.suspects()
        return AuditedLabels(
            name="Label audit",
            classes_=(),
            assessment=None,
            table={name: np.asarray(table[name]) for name in table.columns if name != "weight"},
            headline=self._lists(),
            sentence=" ".join(self.summary().splitlines()[2:]),
            facts=tuple(
                (str(name), "unknown" if np.isnan(audit.noise_rate) else percent(audit.noise_rate), "noise rate")
                for name, audit in zip(self.classes, self.audits, strict=True)
            ),
        )


def read_indicators(labels: Any, pred_probs: Any, classes: Any) -> tuple[Array, Array, Array]:
    """Indicators, probabilities and names of the columns; indicators are 0, 1 or missing."""
    probs = probabilities(pred_probs)
    lists = isinstance(labels, list | tuple) and len({np.size(row) for row in labels}) > 1
    given = None if lists else array_of(labels, "labels")
    if given is None or given.ndim != 2 or not given.size:
        raise ValueError(
            "labels must be an indicator matrix of shape (n, n_labels) with multi_label=True, got "
            f"{'lists of several lengths' if given is None else f'shape {given.shape}'}; turn lists of labels into one "
            "with sklearn.preprocessing.MultiLabelBinarizer"
        )
    if given.shape != probs.shape:
        raise ValueError(f"labels and pred_probs must have the same shape, got {given.shape} and {probs.shape}")
    other = [value for value in set(given[~missing(given)].tolist()) if value not in (0, 1)]
    if other:
        raise ValueError(f"labels must be 0 or 1 with multi_label=True, got {other[0]!r}")
    frames = [frame.columns for frame in (labels, pred_probs) if hasattr(frame, "columns")]
    names = classes if classes is not None else frames[0] if frames else range(probs.shape[1])
    named = given_classes(names)
    if len(named) != probs.shape[1]:
        raise ValueError(f"classes must name the {probs.shape[1]} columns of labels, got {len(named)}")
    return given, probs, named
